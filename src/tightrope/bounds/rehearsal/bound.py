"""The rehearsed bound: WDR − q·se, with q from logs that were simulated from models of the logs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from tightrope.base.errors import BoundError
from tightrope.base.policy import DiscretePolicy
from tightrope.base.problem import Problem
from tightrope.base.progress import part
from tightrope.base.records import About, Bound, Side
from tightrope.base.threads import side_by_side
from tightrope.bounds.base import ModelledBound
from tightrope.bounds.rehearsal.linear import LinearStage
from tightrope.bounds.rehearsal.stage import Stage
from tightrope.bounds.rehearsal.tabular import TabularStage
from tightrope.models import Model, is_discrete


@dataclass(frozen=True)
class Rehearsed(ModelledBound):
    """WDR − q·se: q is the largest, over four models, of the level's quantile of (WDR_m − V_model)/se_m.

    The models repeat logged steps in new combinations, so that simulated logs hold the rare episodes that the logs
    themselves have missed; in each of them the candidate's value is known. Standard errors are the jackknife's. The
    rank of q is ⌈(1 − δ)(M + 1)⌉ of M, so that the level is right on average whatever M is. Logs of more than 1,000
    episodes are rehearsed with 1,000, and q is then no less than the normal quantile: more would only bring it there.

    Where states are numbers or names, the models are tables and the value in them is exact. Where states are
    quantities, they are linear regressions with residuals resampled from the logs, and the value in them comes from
    roll-outs, taken two standard errors to the safe side; actions must be discrete. WDR is then computed with the
    model that was asked for in every simulated log, so one without roll-outs (model="fitted-q") is the one to ask
    for. ``world`` is a linear or polynomial model with its features and with rewards and ends that are known; "auto"
    is that of WDR itself, or linear on the features of its fitted Q. docs/tether.md says how this fared: it is no
    recommended bound there.
    """

    name: ClassVar[str] = "rehearsed"
    of: ClassVar[str] = "wdr"
    n_rehearsals: int | None = None  # logs simulated from each model; None: 399 of tables, 99 of linear models
    n_jobs: int | None = None  # threads, a model each; None: as many as there are cores. Linear models take one
    world: str | Model = "auto"  # what follows a step where states are quantities, as above
    model: str | Model = "auto"  # of WDR; calls that name an estimator put its model here

    def with_model(self, model: str | Model | None) -> Rehearsed:
        """The same bound for WDR with this model."""
        return replace(self, model="auto" if model is None else model)

    def bound(self, problem: Problem, *, confidence: float, side: Side, seed: int, about: About) -> Bound:
        """The bound on the candidate's value, or on its gain over the behaviour policy."""
        problem.check_memory("rehearsal")
        stage = stage_of(problem, side, self.model, self.world)
        count = stage.usual_count if self.n_rehearsals is None else self.n_rehearsals
        rank = int(np.ceil(confidence * (count + 1) - 1e-9))
        if rank > count:
            raise BoundError(
                f"n_rehearsals must be at least {fewest(confidence)} for confidence {confidence:g}; got {count}"
            )
        stage.check_cost(count)
        estimate, error = stage.wdr(about)
        worlds = stage.worlds

        def quantile(place: int) -> float:
            with part(place, len(worlds)):
                return float(np.sort(stage.pivots(worlds[place], count, seed, about))[rank - 1])

        worst = max(side_by_side(quantile, range(len(worlds)), self.n_jobs if stage.parallel else 1))
        if stage.n_rehearsed < problem.dataset.n_trajectories:  # a bias to the safe side shrinks in larger logs
            worst = max(worst, NormalDist().inv_cdf(confidence))
        value = estimate - worst * error if np.isfinite(worst) and error > 0 else -np.inf
        sign = stage.sign
        return Bound(
            value=sign * value, side=side, confidence=confidence, estimate=sign * estimate, estimator="wdr",
            method=self.name, guarantee="approximate", standard_error=error,
            n_trajectories=problem.dataset.n_trajectories, seed=seed, about=about, warnings=stage.cautions,
        )  # fmt: skip


def fewest(confidence: float) -> int:
    """How many rehearsals it takes to see an error as rare as this confidence allows."""
    return int(np.ceil(confidence / (1 - confidence) - 1e-9))


def stage_of(problem: Problem, side: Side, model: str | Model, world: str | Model = "auto") -> Stage[Any]:
    """The logs as rehearsal needs them: tables where states are numbered or named, else linear worlds."""
    if is_discrete(problem) and isinstance(problem.coded.policy, DiscretePolicy):
        return TabularStage.of(problem, side)
    return LinearStage.of(problem, side, model, world)
