"""Run many independent tasks in several processes; a process that dies is replaced, and its task is tried again.

Each worker has a pipe of its own and one task at a time, so that a death costs that task alone, and workers whose
parent was killed find their pipe closed and leave.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from tightrope.base.errors import StudyError, TightropeError

Task = TypeVar("Task")
Result = TypeVar("Result")

ATTEMPTS = 3  # a task that takes its process down this often is reported, not tried again
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_CONTEXT = get_context("spawn")


def run_all(job: Callable[[Task], Result], tasks: Sequence[Task], workers: int) -> Iterator[tuple[int, Result]]:
    """Yield (position of the task, its result) as they finish; tasks are begun in the given order.

    ``job`` must be something that another process can import. An error of ours in it is raised here as one; anything
    else is a bug and comes with its traceback.
    """
    waiting = list(reversed(range(len(tasks))))
    deaths: Counter[int] = Counter()
    crew: dict[Connection, _Worker] = {}
    try:
        while waiting or crew:
            while waiting and len(crew) < workers:
                worker = _Worker(job)
                crew[worker.pipe] = worker
                worker.begin(waiting.pop(), tasks)
            for pipe in wait(list(crew)):
                worker = crew[pipe]  # type: ignore[index]
                try:
                    kind, result = worker.pipe.recv()
                except (EOFError, OSError):
                    del crew[worker.pipe]
                    deaths[worker.task] += 1
                    code = worker.stop()
                    if deaths[worker.task] >= ATTEMPTS:
                        raise StudyError(
                            f"{tasks[worker.task]} ended its process {ATTEMPTS} times with exit code {code}. -9 often "
                            "means a lack of memory: use fewer workers"
                        ) from None
                    waiting.append(worker.task)
                    continue
                if kind != "done":
                    failure = StudyError if kind == "refused" else RuntimeError
                    raise failure(f"{tasks[worker.task]}: {result}")
                done = worker.task
                if waiting:
                    worker.begin(waiting.pop(), tasks)
                else:
                    del crew[worker.pipe]
                    worker.stop()
                yield done, result
    finally:
        for worker in crew.values():
            worker.stop()


class _Worker:
    """One process and the pipe to it."""

    def __init__(self, job: Callable[[Any], Any]):
        self.task = -1
        self.pipe, there = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_serve, args=(job, there), daemon=True)
        with _one_thread():
            self.process.start()
        there.close()  # the other end lives in the worker alone: when that dies, ours is at its end

    def begin(self, task: int, tasks: Sequence[Any]) -> None:
        """Send a task; whether the worker is still there shows when its answer is read."""
        self.task = task
        try:
            self.pipe.send(tasks[task])
        except OSError:
            return

    def stop(self) -> int | None:
        """End the process; its exit code."""
        self.pipe.close()
        self.process.terminate()
        self.process.join()
        return self.process.exitcode


def _serve(job: Callable[[Any], Any], pipe: Connection) -> None:
    """What a worker does until its parent closes the pipe or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answer = ("done", job(task))
        except TightropeError as error:
            answer = ("refused", str(error))
        except Exception:
            answer = ("broken", traceback.format_exc())
        try:
            pipe.send(answer)
        except OSError:
            return


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that are started inside get one thread each: there are as many of them as cores."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
