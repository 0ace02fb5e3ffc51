"""SLOPE and OPERA: estimators that choose among others, or blend them, by the standard errors of the same logs.

What is chosen depends on the logs, so it is part of the estimator: every row of weights computes all members anew *and*
chooses anew. A bootstrap then varies the choice too, but shows no bias that the choice accepts. An interval that takes
the chosen member for one that was fixed beforehand is void: docs/field.md has how often each errs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from tightrope.base.checks import is_number
from tightrope.base.clusters import Clusters
from tightrope.base.dataset import Array, IntArray
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.names import must_be_one_of
from tightrope.base.problem import Problem
from tightrope.estimators.base import Anchor, Estimator
from tightrope.estimators.clipped import Clipped, Shrunk
from tightrope.estimators.doubly_robust import DR, WDR
from tightrope.estimators.importance import IS, PDIS
from tightrope.estimators.model_based import MB, ROW_BYTES, ModelStatistic
from tightrope.estimators.weighted import PDWIS, WIS
from tightrope.functional.statistic import FittedStatistic, SumStatistic
from tightrope.models import Model, SmoothModel

PLAIN: dict[str, Callable[[], Estimator]] = {cls.name: cls for cls in (IS, PDIS, WIS, PDWIS, Clipped, Shrunk)}
MODELLED: dict[str, Callable[..., Estimator]] = {cls.name: cls for cls in (MB, DR, WDR)}
BEND = 1e-4  # by which share weights move to see how slopes change
RIDGE = 1e-6  # of each variance, added to it: members that move alike leave a matrix that has no inverse
LEAST = 1e-9  # of the largest standard error: what a member has at least


@dataclass(frozen=True)
class _Among(Estimator):
    """What the two share: members, and their values and influences under any weights."""

    chooses: ClassVar[bool] = True

    choices: tuple[str | Estimator, ...] = ("pdis", "pdwis", "wdr", "mb")  # by name or as objects
    model: str | Model | None = "auto"  # for those named that need one
    anchor: Anchor = "low"  # the side of the bound; bounds choose it themselves

    def __post_init__(self) -> None:
        if isinstance(self.choices, str) or len(self.choices) < 2:
            raise TightropeError(f"choices must be two estimators at least, as a tuple; got {self.choices!r}")
        object.__setattr__(self, "choices", tuple(self.choices))  # lists are not hashable
        for one in self.choices:
            if not isinstance(one, Estimator) and one not in (*PLAIN, *MODELLED):
                raise TightropeError(must_be_one_of("choices", one, [*PLAIN, *MODELLED], "an estimator object"))
        if all(member.model is None for member in self.members):
            object.__setattr__(self, "model", None)

    @property
    def members(self) -> tuple[Estimator, ...]:
        """The estimators, for this side."""
        plain = [
            one if isinstance(one, Estimator)
            else PLAIN[one]() if one in PLAIN
            else MODELLED[one](model="auto" if self.model is None else self.model)
            for one in self.choices
        ]  # fmt: skip
        return tuple(one.anchored(self.anchor) for one in plain)

    @property
    def uses_ratios(self) -> bool:
        """Where any of them does."""
        return any(member.uses_ratios for member in self.members)

    @property
    def shares_weights(self) -> bool:
        """Where any of them does."""
        return any(member.shares_weights for member in self.members)

    @property
    def fitted_to_all(self) -> bool:
        """Where any of them is."""
        return any(member.fitted_to_all for member in self.members)

    @property
    def rests_on_model(self) -> bool:
        """Where any of them does: it may be the one."""
        return any(member.rests_on_model for member in self.members)

    def anchored(self, anchor: Anchor) -> Self:
        """All of them for one side."""
        return replace(self, anchor=anchor)

    def picked(self, values: Array, errors: Array) -> Array:
        """The value under each row, (rows,), from members' values (rows, k) and their covariances (rows, k, k)."""
        raise NotImplementedError

    def picked_slopes(self, among: Among, weights: Array) -> Array:
        """Its derivative by each weight, (rows, n)."""
        raise NotImplementedError

    def __call__(self, problem: Problem) -> ModelStatistic:
        """The statistic of the candidate's value, with the choice in it."""
        clusters = None if problem.dataset.clusters is None else problem.clusters
        return ModelStatistic(Among(self, tuple(member(problem) for member in self.members), clusters))


@dataclass(frozen=True, eq=False)
class Among:
    """Members under any weights, and what is made of them."""

    estimator: _Among
    statistics: tuple[FittedStatistic, ...]
    clusters: Clusters | None = None  # whose episodes they are; None: every episode is an independent draw

    @property
    def n_trajectories(self) -> int:
        """How many weights it takes."""
        return self.statistics[0].n_trajectories

    def values(self, weights: Array) -> Array:
        """What is picked under each row of weights, (rows,)."""
        parts = [self.estimator.picked(self.parts(rows)[0], self.covariances(rows)) for rows in self._blocks(weights)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def influences(self, weights: Array) -> Array:
        """∂value/∂w_i under each row, (rows, n)."""
        parts = [self.estimator.picked_slopes(self, rows) for rows in self._blocks(weights)]
        return np.concatenate(parts) if parts else np.zeros(weights.shape)

    def parts(self, weights: Array) -> tuple[Array, Array]:
        """Each member's value, (rows, k), and ∂value/∂w_i, (rows, k, n).

        The last ones are kept: who wants standard errors has just had the values of the same rows.
        """
        last = self._kept.get("last")
        if last is None or not np.array_equal(last[0], weights):
            values = np.stack([statistic(weights) for statistic in self.statistics], axis=1)
            self._kept["last"] = last = weights.copy(), values, self.slopes(weights)
        return last[1], last[2]

    @cached_property
    def _kept(self) -> dict[str, tuple[Array, Array, Array]]:
        return {}

    def covariances(self, weights: Array) -> Array:
        """Those of the members under each row, (rows, k, k), from what is drawn together."""
        return covariances(self.together(self.parts(weights)[1], weights), weights, self.draws)

    @property
    def draws(self) -> int:
        """How many independent draws there are: episodes, or clusters of them."""
        return self.n_trajectories if self.clusters is None else self.clusters.n

    def together(self, values: Array, weights: Array) -> Array:
        """Values (rows, ..., n) as they are, or the weighted mean of each episode's cluster."""
        return values if self.clusters is None else self.clusters.together(values, weights)

    def slopes(self, weights: Array) -> Array:
        """∂value/∂w_i of each member, (rows, k, n)."""
        return np.stack([self._slopes(place, weights) for place in range(len(self.statistics))], axis=1)

    def bends(self, weights: Array, changes: Array) -> Array:
        """How slopes change along weights · (1 + changes), (rows, k, n), by a central difference."""
        step = BEND / np.maximum(np.abs(changes).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        up, down = (self.slopes(weights * (1.0 + sign * step * changes)) for sign in (1.0, -1.0))
        result: Array = (up - down) / (2.0 * step[:, :, None])
        return result

    def _slopes(self, place: int, weights: Array) -> Array:
        statistic = self.statistics[place]
        if isinstance(statistic, SumStatistic):
            sums = sum(weights[:, start:stop] @ columns for start, stop, columns in statistic.chunks())
            by_sum = statistic.combine.gradient(np.asarray(sums))
            return np.hstack([by_sum @ columns.T for _, _, columns in statistic.chunks()])
        if isinstance(statistic, ModelStatistic) and isinstance(statistic.model, SmoothModel):
            return statistic.model.influences(weights)
        member = self.estimator.members[place]
        raise BoundError(
            f"{self.estimator.name} compares standard errors, and {member.name} has none on these logs; leave it out "
            'of choices, or give it a tabular model, and fit="cross" if it has that setting'
        )

    def _blocks(self, weights: Array) -> Iterator[Array]:
        size = max(1, ROW_BYTES // (8 * self.n_trajectories * len(self.statistics)))
        for first in range(0, len(weights), size):
            yield weights[first : first + size]


def covariances(slopes: Array, weights: Array, draws: int) -> Array:
    """The infinitesimal jackknife's covariances of members under each row, (rows, k, k), whatever the weights' scale.

    Σ_i w_i s_i s_iᵀ for n draws, times n/(n − 1), as for a mean. With clusters s_i is the mean of its cluster: m
    episodes of weight w/m each then give w s sᵀ, as the cluster does.
    """
    shares = weights * (weights.sum(axis=1, keepdims=True) / max(draws - 1, 1))
    result: Array = np.einsum("rn,rkn,rln->rkl", shares, slopes, slopes, optimize=True)
    return result


@dataclass(frozen=True)
class Slope(_Among):
    """The last member whose interval still meets those of all before it: Lepski's choice.

    ``choices`` go from little bias and much variance to the reverse. Around each stands value ± 2 · ``width`` standard
    errors; as long as all intervals so far have a point in common, bias is not larger than noise, and the later member
    is the better one. Su, Srinath and Krishnamurthy (2020), "Adaptive estimator selection for off-policy evaluation";
    how wide the intervals are is our choice.

    **Choosing on the same data voids a naive interval**: bound SLOPE itself, never what it chose. Even then a bias
    within the noise goes unseen, and bounds err more often than they say where a model is wrong.
    """

    name: ClassVar[str] = "slope"

    width: float = 1.96  # standard errors that a member's noise may take it away from its mean

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.width) and self.width > 0):
            raise TightropeError(f"width must be a number above 0; got {self.width!r}")

    def picked(self, values: Array, errors: Array) -> Array:
        """The chosen member's value; NaN where the weights leave none of those that could be chosen defined."""
        places = self.places(values, errors)
        result: Array = np.take_along_axis(values, places[:, None], axis=1)[:, 0]
        return result

    def picked_slopes(self, among: Among, weights: Array) -> Array:
        """The chosen member's: a choice stays as it is under a small change of weights."""
        values, slopes = among.parts(weights)
        places = self.places(values, among.covariances(weights))
        return slopes[np.arange(len(weights)), places]

    def places(self, values: Array, errors: Array) -> IntArray:
        """Which member is chosen under each row, (rows,)."""
        reach = 2.0 * self.width * np.sqrt(np.einsum("rkk->rk", errors))
        defined = np.isfinite(values) & np.isfinite(reach)  # an undefined one excludes nothing and is not chosen
        low, high = (np.where(defined, values + sign * reach, sign * np.inf) for sign in (-1.0, 1.0))
        meets = np.maximum.accumulate(low, axis=1) <= np.minimum.accumulate(high, axis=1)
        usable = meets & defined
        last = usable.shape[1] - 1 - np.argmax(usable[:, ::-1], axis=1)
        return np.asarray(np.where(usable.any(axis=1), last, 0), dtype=np.int64)


@dataclass(frozen=True)
class Opera(_Among):
    """The blend Σ_k α_k V̂_k with Σ α = 1 that has the least variance: α = M⁻¹1 / 1ᵀM⁻¹1.

    M holds the members' estimated errors: Nie and others (2024, "OPERA: Automatic offline policy evaluation with
    re-weighted aggregates of multiple estimators") estimate it by a bootstrap around each member's own value; here it
    is that bootstrap's covariance to first order, from influence values, since a bootstrap inside every replicate would
    take B² fits. Neither sees the bias of a member that is wrong at every n, as MB with a wrong model is. Shares may
    be negative. Members that move alike get equal shares.

    **Blending by the same data voids a naive interval**: bound OPERA itself, never the blend with its shares fixed.
    """

    name: ClassVar[str] = "opera"

    def picked(self, values: Array, errors: Array) -> Array:
        """The blend under each row; NaN where a member is undefined."""
        result: Array = np.einsum("rk,rk->r", values, self.shares(errors))
        return result

    def picked_slopes(self, among: Among, weights: Array) -> Array:
        """Σ α s, and what the shares do: −z ∂M/∂w α with z = M⁻¹(V̂_k − V̂), where M has the slopes in it."""
        (values, slopes), errors = among.parts(weights), among.covariances(weights)
        shares = self.shares(errors)
        apart = values - np.einsum("rk,rk->r", values, shares)[:, None]
        pulls = self._solved(errors, apart)
        ours, theirs = (np.einsum("rk,rkn->rn", one, slopes) for one in (shares, pulls))
        our_mean, their_mean = (among.together(one, weights) for one in (ours, theirs))
        both, total = our_mean * their_mean, weights.sum(axis=1, keepdims=True)
        bent = np.einsum("rk,rkn->rn", shares, among.bends(weights, their_mean))
        bent += np.einsum("rk,rkn->rn", pulls, among.bends(weights, our_mean))
        direct = ours * their_mean + our_mean * theirs - both
        moved = ((weights * both).sum(axis=1, keepdims=True) + total * (direct + bent)) / max(among.draws - 1, 1)
        result: Array = ours - moved
        return result

    def shares(self, errors: Array) -> Array:
        """α under each row, (rows, k), from covariances (rows, k, k)."""
        raw = self._solved(errors, np.ones(errors.shape[:2]))
        result: Array = raw / raw.sum(axis=1, keepdims=True)
        return result

    def _solved(self, errors: Array, right: Array) -> Array:
        """M⁻¹ times the right-hand side of each row, (rows, k), through correlations; M is 1 where it is undefined."""
        known = np.isfinite(errors).all(axis=(1, 2), keepdims=True)
        errors = np.where(known, errors, 0.0)
        sizes = np.sqrt(np.einsum("rkk->rk", errors))
        largest = sizes.max(axis=1, keepdims=True)
        sizes = np.where(largest > 0, np.maximum(sizes, LEAST * largest), 1.0)
        alike = errors / (sizes[:, :, None] * sizes[:, None, :]) + RIDGE * np.eye(errors.shape[1])
        result: Array = np.linalg.solve(alike, (right / sizes)[:, :, None])[:, :, 0] / sizes
        return result
