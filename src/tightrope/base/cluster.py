"""The workers of a dask cluster as an engine: they run the parts, and add their sums in a tree among themselves.

What a call needs travels with it, except arrays that lie in files: workers open those by their names, so logs that are
too large for the memory must lie in a folder that all workers see (``read(scratch=...)``). Retries and lost workers are
the engine's own business; if no worker is left for a while, or the scheduler is gone, that is an error.
"""

from __future__ import annotations

import io
import pickle
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.errors import BoundError, CannotSendError, TightropeError
from tightrope.base.folder import mapping_of

Sums = list[npt.NDArray[np.float64]]

ENGINES = ("local", "cuda")  # that go by a name of their own
MOST_BYTES = 64 << 20  # of a call that travels to every worker
PATIENCE = 60.0  # seconds without any worker
CONNECT = "10s"  # for a scheduler to answer
RETRIES = 5  # of a part whose worker was lost


@dataclass(frozen=True, eq=False)
class Cluster:
    """A ``dask.distributed.Client`` as an engine."""

    client: Any

    @property
    def parts(self) -> int:
        """One for each thread of each worker."""
        return max(1, int(sum(self.client.nthreads().values())))

    def add(self, call: Callable[[range], Sums], ranges: Sequence[range]) -> Sums:
        """The sum over all ranges, in a tree of tasks: one result comes here."""
        waiting = self._submitted(call, ranges)
        while len(waiting) > 1:
            pairs = [waiting[place : place + 2] for place in range(0, len(waiting), 2)]
            waiting = [self._task(added, *pair) if len(pair) == 2 else pair[0] for pair in pairs]
        (result,) = self._results(waiting)
        return list(result)

    def map(self, call: Callable[[range], Any], ranges: Sequence[range]) -> Iterator[Any]:
        """What the call returns for each range."""
        return self._results(self._submitted(call, ranges) if ranges else [])

    def finished(self, call: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """(position of the task, its result) as they finish; ``call`` is something that a worker can import."""
        futures = [self._task(call, task) for task in tasks]
        waiting, patience = list(range(len(futures))), _Patience(self.client)
        while waiting:
            done = [place for place in waiting if futures[place].done()]
            patience.wait(bool(done))
            waiting = [place for place in waiting if place not in done]
            for place in done:
                yield place, _result(futures[place])
                futures[place] = None  # the worker may forget it

    def _submitted(self, call: Callable[[range], Any], ranges: Sequence[range]) -> list[Any]:
        try:
            packed = _packed(call)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            raise CannotSendError(f"what workers of a cluster need cannot be packed for them: {error}") from error
        if len(packed) > MOST_BYTES:
            raise CannotSendError(
                f"logs in memory must be small to travel to the workers of a cluster; these take {len(packed):,}"
                " bytes. Keep them in files that all workers see: read(memory=..., scratch=...), --memory and --scratch"
            )
        return [self._task(_run, packed, one) for one in ranges]

    def _task(self, call: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return self.client.submit(call, *arguments, pure=False, retries=RETRIES)
        except (OSError, RuntimeError) as error:  # a client without a scheduler
            raise _lost(error) from error

    def _results(self, futures: Sequence[Any]) -> Iterator[Any]:
        """The results in order."""
        patience, waiting = _Patience(self.client), list(futures)
        for place in range(len(waiting)):
            while not waiting[place].done():
                patience.wait(False)
            result, waiting[place] = _result(waiting[place]), None  # the worker may forget it
            yield result


class _Patience:
    """Waits for workers, unless there is nobody left to wait for."""

    def __init__(self, client: Any) -> None:
        self.client, self.seen = client, time.monotonic()

    def wait(self, something_done: bool) -> None:
        """A moment; too long without any worker is an error."""
        now = time.monotonic()
        if something_done:
            self.seen = now
            return
        time.sleep(0.01)
        if now - self.seen < 1.0:
            return
        if not self._is_alone():
            self.seen = now
        elif now - self.seen > PATIENCE:
            raise _lost(f"no worker for {PATIENCE:.0f} s")

    def _is_alone(self) -> bool:
        """Whether there is no scheduler, or no worker."""
        if self.client.status != "running":
            return True
        try:
            return not self.client.nthreads()
        except Exception:  # the scheduler went while it was asked
            return True


def _result(future: Any) -> Any:
    """What it returned; our own errors are those of the part that failed."""
    try:
        return future.result()
    except TightropeError:
        raise
    except Exception as error:
        raise _lost(error) from error


def cluster_at(address: str) -> Cluster:
    """The cluster whose scheduler is at an address such as tcp://host:8786; the connection ends with its last user."""
    try:
        from distributed import Client
    except ImportError as error:
        raise BoundError(f'engine {address!r} needs dask: pip install "tightrope[dask]"; or use "local"') from error
    try:
        client = Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise BoundError(
            f"engine must be the address of a dask scheduler that is running; got {address!r}: {error}"
        ) from error
    cluster = Cluster(client)
    weakref.finalize(cluster, client.close)
    return cluster


def added(one: Sums, other: Sums) -> Sums:
    """The sum of two results."""
    return [left + right for left, right in zip(one, other, strict=True)]


def clustered(engine: Any) -> Any:
    """The cluster that an address or a dask client stands for; anything else as it is."""
    if isinstance(engine, str) and "://" in engine:
        return cluster_at(engine)
    return Cluster(engine) if is_client(engine) else engine


def is_client(engine: Any) -> bool:
    """Whether it is dask's; nobody else has imported it yet if it is not."""
    return any(kind.__module__.startswith("distributed.") for kind in type(engine).__mro__)


def _lost(why: Any) -> BoundError:
    name = f"{type(why).__name__}: " if isinstance(why, Exception) else ""
    return BoundError(
        f"the cluster could not finish ({name}{why}); nothing "
        'was concluded from what it did. Start it again, or use engine="local"'
    )


def _run(packed: bytes, part: range) -> Any:
    """One part, on a worker."""
    return _unpacked(packed)(part)


@lru_cache(maxsize=4)
def _unpacked(packed: bytes) -> Callable[[range], Any]:
    import cloudpickle  # dask brings it

    call: Callable[[range], Any] = cloudpickle.loads(packed)
    return call


def _packed(call: Callable[[range], Any]) -> bytes:
    """A call as bytes; arrays in files go by the names of their files."""
    import cloudpickle

    class Packer(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, np.ndarray):
                file = mapping_of(thing)
                if file is not None and thing.flags.c_contiguous:
                    if file.mode != "r":  # others may not see what is not yet written
                        file.flush()
                    offset = file.offset + thing.__array_interface__["data"][0] - file.__array_interface__["data"][0]
                    return _opened, (str(file.filename), thing.dtype, thing.shape, offset)
            return super().reducer_override(thing)

    stream = io.BytesIO()
    Packer(stream).dump(call)
    return stream.getvalue()


def _opened(path: str, dtype: Any, shape: tuple[int, ...], offset: int) -> Any:
    """An array in a file, as it was, on another machine."""
    try:
        return np.memmap(path, dtype, "r", offset=offset, shape=shape)
    except OSError as error:
        raise BoundError(
            f"a worker cannot open {path}: {error}. Logs that are too large for the memory must be kept where all "
            "workers see them: read(scratch=...), --scratch"
        ) from error
