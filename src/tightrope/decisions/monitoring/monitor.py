"""A monitor: bounds on a candidate's value that hold at every look, however often one looks."""

from __future__ import annotations

import os
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.base.blas import one_blas_thread
from tightrope.base.clusters import extent
from tightrope.base.content import digest
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import BoundError, DataError, failing
from tightrope.base.names import suggests_keywords
from tightrope.base.policy import as_policy
from tightrope.base.problem import Problem
from tightrope.base.warnings import Caution, caution
from tightrope.decisions.monitoring.counting import Progress, count_batch
from tightrope.decisions.monitoring.past import check_new, hashes, is_known
from tightrope.decisions.monitoring.state import Look, State, Terms, differences, read_state, write_state
from tightrope.estimators.choices import is_limited
from tightrope.evaluation.overlap import FALSE_ALARM
from tightrope.evaluation.provenance import provenance
from tightrope.evaluation.settings import Settings
from tightrope.io.write import write_text
from tightrope.models import Model
from tightrope.report.course import course


class Monitor:
    """Bounds on the candidate's value while logs arrive, which hold at all looks together.

    With the given confidence the lower bound never exceeds the value, at no look, however many there are and whenever
    one stops; the same holds of the upper bound. Each ``update`` counts the episodes of one batch; the logging policy
    may change from batch to batch, also in response to earlier outcomes. What must not change is the candidate's value.
    The tutorial on monitors says what else the promise rests on.

    - ``policy``: the candidate; None uses the ``eval_prob`` column of the logs.
    - ``confidence``: of each bound, between 0.5 and 1.
    - ``model``: what TDR corrects: "auto", "tabular", "none" or an object.
    - ``max_step_ratio``: a number that no action's ratio exceeds at any step, logged or not. Without it, and without
      the behaviour policy itself (``read(behavior=...)``), the bounds are those of importance sampling: valid, wider.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> monitor = tightrope.Monitor(walker.candidate)
    >>> look = monitor.update(walker.logs(300, rng=np.random.default_rng(0)), label="monday")
    >>> look.lower < walker.true_value < look.upper
    True
    >>> monitor.save("walker.npz")
    >>> tightrope.Monitor.load("walker.npz", walker.candidate).episodes
    300
    """

    @suggests_keywords
    def __init__(
        self,
        policy: Any = None,
        *,
        confidence: float = 0.95,
        model: str | Model = "auto",
        max_step_ratio: float | None = None,
    ) -> None:
        Settings(confidence=confidence)  # refuses what is none
        self._policy = None if policy is None else as_policy(policy)
        self._confidence, self._model, self._max_step_ratio = float(confidence), model, max_step_ratio
        self._state: State | None = None

    # -- what is known -----------------------------------------------------------------------------------------

    @property
    def episodes(self) -> int:
        """How many were counted."""
        return 0 if self._state is None else self._state.count

    @property
    def looks(self) -> tuple[Look, ...]:
        """What was known after each update."""
        return () if self._state is None else tuple(self._state.looks)

    @property
    def terms(self) -> Terms | None:
        """What was fixed by the first update; None before it."""
        return None if self._state is None else self._state.terms

    @property
    def warnings(self) -> tuple[Caution, ...]:
        """What speaks against the bounds: logged probabilities that cannot be true."""
        if self._state is None or self._state.evidence <= -np.log(FALSE_ALARM):
            return ()
        text = (
            "the importance ratios average more than 1: the probabilities of the logged actions are wrong, and so are "
            "the bounds"
        )
        return (caution("mean-ratio", text, evidence=self._state.evidence),)

    # -- its file ----------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that the next update needs to a file, whole or not at all.

        - ``path``: of the file, usually ending in ``.npz``.
        """
        if self._state is None:
            raise DataError("a monitor must have counted some episodes before it is saved")
        write_state(self._state, Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str], policy: Any = None, *, model: str | Model | None = None) -> Monitor:
        """The monitor that ``save`` wrote; ``update`` refuses to go on with another candidate.

        - ``path``: of the file.
        - ``policy``: the same candidate as before: the file holds a hash of it.
        - ``model``: the same as before, where it was an object.
        """
        state = read_state(Path(path))
        chosen = state.terms.model if model is None else model
        known = cls(policy, confidence=state.terms.confidence, model=chosen, max_step_ratio=state.terms.max_step_ratio)
        known._state = state
        return known

    def plot(self, path: str | os.PathLike[str], *, above: float | None = None, below: float | None = None) -> None:
        """Draw the bounds at every look, as SVG.

        - ``path``: of the file, ending in ``.svg``.
        - ``above``, ``below``: values to draw lines at.
        """
        if self._state is None:
            raise DataError("a monitor must have counted some episodes before it is drawn")
        points = [(look.episodes, look.lower, look.upper) for look in self._state.looks]
        limits = [(words, value) for words, value in (("above", above), ("below", below)) if value is not None]
        picture = course(points, (self._state.low, self._state.high), self._state.terms.confidence, limits)
        write_text(Path(path), picture)

    # -- counting ----------------------------------------------------------------------------------------------

    @suggests_keywords
    @one_blas_thread
    def update(
        self,
        logs: TrajectoryDataset,
        *,
        label: str = "",
        every: int | None = None,
        skip_known: bool = False,
        progress: Progress | None = None,
    ) -> Look:
        """Count the episodes of one batch, wholly or not at all, and say what is known now.

        - ``logs``: the batch, with a declared range and horizon. Its episodes count in the order of their first rows.
        - ``label``: what to call this look, such as the day.
        - ``every``: also look after each so many episodes of the batch, for a picture of the time before today.
        - ``skip_known``: leave out episodes that were counted before; otherwise they are an error.
        - ``progress``: a function that is called with the share done, from 0 to 1.
        """
        if every is not None and not (isinstance(every, int) and every >= 1):
            raise DataError(f"every must be a whole number of episodes, at least 1, or None; got {every!r}")
        problem = Problem(logs, self._policy, max_step_ratio=self._max_step_ratio)
        state, names = self._ready(problem), hashes(logs)
        seen = is_known(state.known, names)
        if not skip_known:
            check_new(logs, seen)
        assert logs.arrival is not None
        fresh = np.argsort(logs.arrival, kind="stable")
        fresh = fresh[~seen[fresh]]
        if len(fresh):
            with failing():
                batch = replace(problem, dataset=logs.take(fresh))
                state = count_batch(state, batch, self._model, label, every, progress)
            state.known = np.sort(np.concatenate([state.known, names[fresh]]))
        self._state = state  # only now: an error leaves the monitor as it was
        return state.looks[-1]

    @property
    def _candidate(self) -> str:
        return digest("the logs' own column" if self._policy is None else self._policy)

    @property
    def _model_name(self) -> str:
        return self._model if isinstance(self._model, str) else digest(self._model)

    def _ready(self, problem: Problem) -> State:
        """A copy of the state to go on with, once the logs are what it can count."""
        logs, value_range = problem.dataset, _checked(problem.dataset)
        terms = Terms(
            self._candidate, self._confidence, logs.horizon, logs.discount, logs.reward_range, logs.return_range,
            self._model_name, self._max_step_ratio, True, provenance().versions["tightrope"],
        )  # fmt: skip
        if self._state is None:
            return State.new(replace(terms, limited=is_limited(problem)), value_range)
        self.check_terms(terms)
        return deepcopy(self._state)

    def check_terms(self, terms: Terms) -> None:
        """Refuse terms that are not those of the first update."""
        assert self._state is not None
        changed = differences(self._state.terms, terms)
        if changed:
            raise DataError(
                f"{'; '.join(changed)}. A monitor watches one candidate on the terms that it began with: begin another "
                "one for others, with another file"
            )


def _checked(logs: TrajectoryDataset) -> tuple[float, float]:
    """The declared range of the return; refuses logs that no bound at every look can be made of."""
    low, high = logs.value_range or (-np.inf, np.inf)
    if not (np.isfinite(high - low) and logs.horizon_declared):
        missing = (
            "horizon (read(horizon=...), --horizon)"
            if np.isfinite(high - low)
            else ("reward_range or return_range, with both ends (read(reward_range=...), --reward-range)")
        )
        raise BoundError(f"a monitor bets on means within a declared range of the return; missing: {missing}")
    if logs.behavior_log_probs is None:
        raise DataError(
            "a monitor needs the true probabilities of the logged actions: a column behavior_prob, or the behaviour "
            "policy itself (read(behavior=policy), --behavior-policy)"
        )
    if logs.n_dropped:
        raise BoundError(
            "a monitor must count all episodes: which ones were cut off and left out may depend on how they went. Read "
            'the logs with incomplete="terminate" (--incomplete terminate), or declare a shorter horizon'
        )
    # Episodes of a cluster that arrive one after the other are no martingale differences: whoever knows the first ones
    # knows something of the next, so that the wealth's mean is not one and Ville's inequality says nothing.
    if logs.clusters is not None or logs.strata is not None:
        raise BoundError(
            f"a monitor must get independent episodes; got {extent(logs)}. Where episodes arrive over time and "
            "resemble earlier ones, its bounds do not hold. Give it one episode for each cluster, such as a patient's "
            "whole course once it is complete, and name no cluster or strata"
        )
    return low, high
