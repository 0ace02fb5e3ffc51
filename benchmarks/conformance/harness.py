"""What every runner shares: it reads the problems, asks its library for numbers, and writes them down.

It needs NumPy alone, because it runs in the environment of each library. A runner judges nothing: which number obeys a
law is decided in ``laws.py``, the same for all.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

ALPHA = 0.05  # of two-sided intervals
RESAMPLES = 500
ROUNDS = 3  # of a time
EIGHT = ("eight of one step", "eight of equal length", "eight of unequal length")  # data sets that laws transform


@dataclass(frozen=True, eq=False)
class Data:
    """A data set of the problems file, with repeated episodes written out; steps are flat, N in all."""

    record: Mapping[str, Any]

    @cached_property
    def episodes(self) -> list[Mapping[str, Any]]:
        """Every episode as often as it is repeated."""
        return [one for one in self.record["episodes"] for _ in range(one["count"])]

    @property
    def n(self) -> int:
        """How many episodes."""
        return len(self.episodes)

    @property
    def discount(self) -> float:
        """γ."""
        return float(self.record["discount"])

    @property
    def horizon(self) -> int:
        """How many steps count."""
        return int(self.record["horizon"])

    @cached_property
    def lengths(self) -> np.ndarray:
        """Steps of each episode, (n,)."""
        return np.array([len(one["states"]) for one in self.episodes])

    @property
    def equal(self) -> bool:
        """Whether all episodes have the same length."""
        return bool((self.lengths == self.lengths[0]).all())

    @cached_property
    def states(self) -> np.ndarray:
        """(N,)."""
        return self._flat("states").astype(int)

    @cached_property
    def actions(self) -> np.ndarray:
        """(N,)."""
        return self._flat("actions").astype(int)

    @cached_property
    def rewards(self) -> np.ndarray:
        """(N,)."""
        return self._flat("rewards").astype(float)

    @cached_property
    def episode(self) -> np.ndarray:
        """The number of each step's episode, (N,)."""
        return np.repeat(np.arange(self.n), self.lengths)

    @cached_property
    def t(self) -> np.ndarray:
        """The time of each step, (N,)."""
        return np.concatenate([np.arange(length) for length in self.lengths])

    @cached_property
    def last(self) -> np.ndarray:
        """Whether a step is its episode's last, (N,)."""
        return self.t == self.lengths[self.episode] - 1

    def table(self, name: str) -> np.ndarray:
        """``behavior``, ``candidate`` or ``q_values``, (states, actions)."""
        return np.array(self.record[name], dtype=float)

    def rows(self, name: str) -> np.ndarray:
        """The rows of a table that belong to the steps, (N, actions)."""
        return self.table(name)[self.states]

    def logged(self, name: str) -> np.ndarray:
        """The entries of a table that belong to the logged actions, (N,)."""
        return self.table(name)[self.states, self.actions]

    def one_hot(self, states: np.ndarray | None = None) -> np.ndarray:
        """States as vectors, (N, states)."""
        return np.eye(len(self.record["behavior"]), dtype=np.float32)[self.states if states is None else states]

    def padded(self) -> Data:
        """With steps after an episode's end written out: an absorbing state, one action, no reward, values of 0."""
        if self.equal and self.lengths[0] == self.horizon:
            return self
        after = len(self.record["behavior"])
        tables = {name: [*self.record[name], [1.0, 0.0]] for name in ("behavior", "candidate")}
        tables["q_values"] = [*self.record["q_values"], [0.0, 0.0]]

        def filled(one: Mapping[str, Any]) -> dict[str, Any]:
            more = self.horizon - len(one["states"])
            added = {"states": [after] * more, "actions": [0] * more, "rewards": [0.0] * more}
            return {**one, **{name: [*one[name], *values] for name, values in added.items()}}

        return Data({**self.record, **tables, "episodes": [filled(one) for one in self.record["episodes"]]})

    def _flat(self, name: str) -> np.ndarray:
        return np.concatenate([np.asarray(one[name]) for one in self.episodes])


Estimate = Callable[[Data], float]
Bounds = Callable[[Data], tuple[float, float]]


@dataclass(frozen=True)
class Entry:
    """One estimator of a library, as its users would call it."""

    estimate: Estimate
    reading: str  # which call, with which options, and where the library says so
    self_normalized: bool = False
    tolerance: float = 1e-8  # of numbers that should be equal; larger for float32 and for trained networks
    exempt: Mapping[str, str] = field(default_factory=dict)  # law: why it does not apply
    intervals: Mapping[str, Bounds] = field(default_factory=dict)  # 95 % two-sided, or a lower bound and infinity
    weighted: Callable[[Data, np.ndarray], float] | None = None  # the estimate under weights of episodes
    timed: bool = True
    only: tuple[str, ...] = ()  # the data sets to ask about, where each takes long; none named: all


class InapplicableError(Exception):
    """The library says, in its own documentation, that it does not do this."""


def attempt(call: Callable[[], Any]) -> Any:
    """What a call returns, as JSON can hold it, or what it raised."""
    try:
        value = call()
    except InapplicableError as reason:
        return {"skipped": str(reason)}
    except Exception as error:  # whatever the library raises is a result
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    return plain(value)


def plain(value: Any) -> Any:
    """A number of JSON; not-a-number and infinity as text."""
    value = float(value)
    return value if math.isfinite(value) else str(value)


def seconds(call: Callable[[], Any]) -> float | None:
    """The median time of a call; None if it fails."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        try:
            call()
        except Exception:
            return None
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def drawn(sample: Mapping[str, Any]) -> Iterable[Data]:
    """The data sets of a sample."""
    record, episodes = sample["data"], sample["data"]["episodes"]
    for row in sample["drawn"]:
        yield Data({**record, "episodes": [episodes[i] for i in row]})


def measured(entry: Entry, problems: Mapping[str, Any]) -> dict[str, Any]:
    """All numbers of one estimator."""
    data = {name: Data(record) for name, record in problems["data"].items()}
    chosen = entry.only or tuple(data)
    values = {name: attempt(lambda each=data[name]: entry.estimate(each)) for name in chosen}
    repeats = np.array(problems["repeats"], dtype=float)
    weigh = entry.weighted
    weighted = (
        None if weigh is None else {name: attempt(lambda name=name: weigh(data[name], repeats)) for name in EIGHT}
    )
    intervals: dict[str, Any] = {method: {"data": {}, "samples": {}} for method in entry.intervals}
    for name, each in data.items():
        for method, bounds in entry.intervals.items():
            if "eight" in name:
                intervals[method]["data"][name] = attempt(lambda: bounds(each))  # noqa: B023 (called at once)
    for name, sample in problems["samples"].items() if entry.intervals else ():
        for each in drawn(sample):
            for method, bounds in entry.intervals.items():
                intervals[method]["samples"].setdefault(name, []).append(attempt(lambda: bounds(each)))  # noqa: B023
    speed = Data(problems["speed"])
    speed.states, speed.actions, speed.rewards, speed.episode, speed.t, speed.last  # noqa: B018 (made before the clock)
    times = {"estimate": seconds(lambda: entry.estimate(speed)) if entry.timed else None}
    times |= {method: seconds(lambda b=b: b(speed)) if entry.timed else None for method, b in entry.intervals.items()}
    return {
        "reading": entry.reading,
        "self_normalized": entry.self_normalized,
        "tolerance": entry.tolerance,
        "exempt": dict(entry.exempt),
        "values": values,
        "weighted": weighted,
        "intervals": intervals,
        "times": times,
    }


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Of Python and of the packages that are there."""
    listed = {"python": platform.python_version()}
    for name in packages:
        try:
            listed[name] = version(name)
        except PackageNotFoundError:
            continue
    return listed


def main(library: str, entries: Mapping[str, Entry], packages: Iterable[str]) -> None:
    """Read the problems, ask the library, write the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    problems = json.loads(given.problems.read_text(encoding="utf-8"))
    results = {
        "library": library,
        "versions": versions(packages),
        "estimators": {name: measured(entry, problems) for name, entry in entries.items()},
    }
    given.out.write_text(json.dumps(results), encoding="utf-8")
