"""TDR: the doubly robust estimator on a tether, so that no episode's value falls below −C, however large its ratio.

    x += W_{t−1}(ℓ_t + θ ḡ) − W_t (ℓ_t + θ g(a_t))  at every step,    X = x + W_last (return − floor),

where W is the ratio so far, ℓ_t what the return surely exceeds its floor by, g(a) the model's guess of how much more it
will be after action a, ḡ the candidate's average of g, and θ in [0, 1] as large as the tether allows: with
K = C + x + W_{t−1} ℓ_t and D = max_a ρ(a) g(a) − ḡ, θ = K / (K + W_{t−1} D). What is added has mean zero given the
past, whatever the model says, so E[X] = V − floor; and θ keeps x + W_t ℓ_t ≥ −C whichever action comes. C = 0 is
importance sampling from a rising floor, C = ∞ is DR. See docs/tether.md for the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import ClassVar, Self

import numpy as np

from tightrope.base.clusters import Clusters, by_arrival, fold_of
from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.folder import Scratch, wide_parts
from tightrope.base.joined import joined
from tightrope.base.problem import Problem
from tightrope.base.ratios import Ratios
from tightrope.estimators.base import Anchor, SequentialEstimator
from tightrope.estimators.choices import Choices, choices
from tightrope.estimators.guesses import Guesses, guesses
from tightrope.estimators.importance import check_ratio_size, missing_range
from tightrope.functional.statistic import RatioSum, SumStatistic
from tightrope.functional.values import TrajectoryValues
from tightrope.models import Model

GRID: Array = np.array([0.0, 0.06, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])  # of the mean of return − floor
LEAST = 0.02  # of the range: where the first episodes earn nothing, tethers are multiples of this
SHARE = 0.5  # of sd·√n: a longer tether would let single episodes skew the mean


@dataclass(frozen=True)
class TDR(SequentialEstimator):
    """Tethered doubly robust: unbiased with any model, and never below the floor by more than C.

    ``tether`` is C as a multiple of the mean of return − floor; None chooses it from the data, and exact bounds always
    choose it themselves. With ``model="none"`` the guess is the mean return still to come at each time, which needs no
    states. Where the behaviour policy itself is not known, the problem's ``max_step_ratio`` says how large a step's
    ratio can be.
    """

    name: ClassVar[str] = "tdr"

    model: str | Model = "auto"  # by name, as an object, or "none"
    folds: int = 5  # of cross-fitting
    tether: float | None = None  # C, as a multiple of the mean of return − floor; None: from the data
    anchor: Anchor = "low"  # the end of the range to count from; bounds choose it themselves

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise TightropeError(f"folds is {self.folds}; cross-fitting needs at least 2")
        if self.tether is not None and not self.tether >= 0:
            raise TightropeError(f"tether is {self.tether!r}; give a number ≥ 0, or None to choose it from the data")

    @property
    def corrects_model(self) -> bool:
        """Unless it guesses without one."""
        return self.model != "none"

    def anchored(self, anchor: Anchor) -> Self:
        """Count from the floor ("low") or from the ceiling ("high")."""
        return replace(self, anchor=anchor)

    def textbook(self, dataset: TrajectoryDataset) -> Self:
        """Counted from the floor, or from the ceiling where only that is declared."""
        low, high = dataset.value_range or (-np.inf, np.inf)
        return replace(self, anchor="high" if np.isinf(low) and np.isfinite(high) else "low")

    def __call__(self, problem: Problem) -> SumStatistic:
        """The mean of cross-fitted values, on a tether short enough that no episode skews it."""
        if problem.behavior is not None:
            raise BoundError(
                "tdr needs the true behaviour probabilities; with an estimate of them use pdwis or wdr, whose "
                "bounds allow for the estimate's error"
            )
        game = self._tethered(problem, exact=False)
        values = game.values

        def make_columns(start: int, stop: int) -> Array:
            return np.column_stack([np.ones(stop - start), game.sign * values[start:stop]])

        combine = RatioSum(np.ones(1), constant=game.origin)
        return SumStatistic(problem.dataset.n_trajectories, combine.fields, make_columns, combine, game.scratch)

    def sequential_values(self, problem: Problem) -> TetheredValues:
        """Values for bounds that learn on the way; refuses where nothing was declared to count from."""
        self._check_declared(problem)
        return self._tethered(problem, exact=True)

    def continued_values(self, problem: Problem, past: TrajectoryDataset | None, *, limited: bool) -> TetheredValues:
        """Values of a game that goes on: models may learn from the past, whose episodes stand before the problem's.

        Another policy may have logged the past: no values are made of its episodes. Unless steps' ratios are
        ``limited``, the values hold for a tether of length 0 alone. Logs without any overlap are values like others.
        """
        self._check_declared(problem)
        if past is not None:
            problem = replace(problem, dataset=joined(past, problem.dataset))
        problem = problem.coded  # names of states and actions get the same numbers in past and present
        before = 0 if past is None else past.n_trajectories
        present = replace(problem, dataset=problem.dataset.take(np.arange(before, problem.dataset.n_trajectories)))
        check_ratio_size(self.name, Ratios(present.dataset, present.eval_log_probs))
        known = choices(present, exact=limited).after(problem.dataset.n_steps - present.dataset.n_steps)
        guess = guesses(self.model if limited else "none", problem, self.anchor, known, exact=True)
        return TetheredValues(self, problem.dataset, known, guess, exact=True)

    def _check_declared(self, problem: Problem) -> None:
        missing = missing_range(problem.dataset, self.anchor)
        if missing:
            bound, side = ("lower", "lowest") if self.anchor == "low" else ("upper", "highest")
            raise BoundError(
                f"an exact {bound} bound with tdr counts from the {side} possible return, which must be declared, not "
                f"taken from the sample; missing: {missing}"
            )

    def trajectory_values(self, problem: Problem, *, max_ratio: float | None) -> TrajectoryValues:
        """Values for other exact bounds: a random half of the episodes, told by what the other half taught."""
        game, n = self.sequential_values(problem), problem.dataset.n_trajectories
        order = by_arrival(problem.dataset, None)[np.random.default_rng(n).permutation(n)]  # of places, not of names
        earlier, later = order[: n // 2], order[n // 2 :]
        tethers = np.unique(GRID * game.unit(earlier)) if len(earlier) else np.zeros(1)
        within = game.learned([(earlier[::2], earlier[1::2])], tethers) if len(earlier) > 1 else np.zeros((1, 1))
        best = _longest(within, tethers)
        values = game.learned([(earlier, later)], tethers[best : best + 1])[:, 0] + tethers[best]
        return TrajectoryValues(
            np.maximum(values, 0.0), game.origin - game.sign * tethers[best], game.sign, None,
            "a ceiling, which tethered values do not have", np.asarray(later, dtype=np.int64),
            problem.dataset.scratch,
        )  # fmt: skip

    def _tethered(self, problem: Problem, *, exact: bool) -> TetheredValues:
        data = problem.dataset
        check_ratio_size(self.name, problem.ratios)
        low, high = data.value_range or (-np.inf, np.inf)
        if not np.isfinite(low if self.anchor == "low" else high):
            end = "floor" if self.anchor == "low" else "ceiling"
            raise BoundError(
                f"tdr counts from the {end} of the return, which must be declared: reward_range or return_range "
                "(--reward-range, --return-range); dr does without"
            )
        known = choices(problem, exact=exact)
        return TetheredValues(self, data, known, guesses(self.model, problem, self.anchor, known, exact=exact), exact)


@dataclass(frozen=True, eq=False)
class TetheredValues:
    """Tethered values of all episodes: ``SequentialValues``."""

    estimator: TDR
    data: TrajectoryDataset
    choices: Choices
    guesses: Guesses
    exact: bool  # what was cut off counts as the worst that is possible, not as ended

    @property
    def sign(self) -> float:
        """+1 from the floor, −1 from the ceiling."""
        return 1.0 if self.estimator.anchor == "low" else -1.0

    @property
    def scratch(self) -> Scratch:
        """Where the logs have it."""
        return self.data.scratch

    @property
    def origin(self) -> float:
        """The end of the range that values are counted from."""
        assert self.data.value_range is not None
        return self.data.value_range[0 if self.sign > 0 else 1]

    @property
    def estimate(self) -> float:
        """The mean of cross-fitted values, mapped back."""
        return self.origin + self.sign * float(self.values.mean())

    @cached_property
    def values(self) -> Array:
        """X of every episode from the model of the other folds, (n,)."""
        room, everyone = self.scratch, self.scratch.numbered(self.data.n_trajectories)
        fold, unit = fold_of(self.data, self.estimator.folds), self.unit(everyone)
        if self.estimator.tether is None:
            tethers = np.unique(GRID * unit)
        else:
            tethers = np.array([np.inf if np.isinf(self.estimator.tether) else self.estimator.tether * unit])
        sizes = np.bincount(fold, minlength=self.estimator.folds)
        sizes, kept = sizes[sizes > 0], np.flatnonzero(sizes)
        held_out = room.apart(np.append(0, np.cumsum(sizes)), np.int64)
        others = room.apart(np.append(0, np.cumsum(len(fold) - sizes)), np.int64)
        for k, own, rest in zip(kept, held_out, others, strict=True):
            own[:], rest[:] = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        blocks = [(one if len(one) else everyone, other) for one, other in zip(others, held_out, strict=True)]
        table = self.learned(blocks, tethers, held_out)
        clusters = Clusters.of(self.data)
        independent = table if clusters is None else clusters.means(table)
        chosen = _longest(independent, tethers) if self.estimator.tether is None else 0
        return room.copy(table[:, chosen])

    def unit(self, past: IntArray) -> float:
        """The mean distance of the return from the end that values are counted from, and some of the range at least.

        What was cut off may lie beyond that end.
        """
        low, high = self.data.value_range or (-np.inf, np.inf)
        least = LEAST * (high - low) if np.isfinite(high - low) else 0.0
        return max(float((self.sign * (self.data.returns[past] - self.origin)).mean()), least) if len(past) else least

    def along(self, order: IntArray, edges: Sequence[int], tethers: Array) -> Array:
        """X in this order, each block told by what all earlier ones taught."""
        return self.learned([(order[:start], order[start:stop]) for start, stop in pairwise(edges)], tethers)

    def learned(
        self, blocks: Sequence[tuple[IntArray, IntArray]], tethers: Array, rows: Sequence[IntArray] | None = None
    ) -> Array:
        """X of the second episodes of each pair, told by the first ones, under each tether: (all of them, tethers).

        They come one block after the other, or in these rows.
        """
        room, ends = self.scratch, np.cumsum([0, *(len(later) for _, later in blocks)])
        if rows is None:
            places = room.numbered(int(ends[-1]))
            rows = [places[start:stop] for start, stop in pairwise(ends.tolist())]
        table: Array = room.empty((int(ends[-1]), len(tethers)))
        orders, forwards = (room.apart(ends, np.int64) for _ in range(2))
        for (_, later), order, same in zip(blocks, orders, forwards, strict=True):
            order[:] = np.argsort(later, kind="stable")  # files are read forwards
            same[:] = later[order]
        pairs = [(earlier, same) for (earlier, _), same in zip(blocks, forwards, strict=True)]
        for block, some, guess in self.guesses.of(pairs):
            table[rows[block][orders[block][some]]] = self._block(pairs[block][1][some], guess, tethers)
        return table

    def _block(self, later: IntArray, guess: Array, tethers: Array) -> Array:
        from tightrope.estimators.tether_kernels import tethered_values

        data, sign, known = self.data, self.sign, self.choices
        low, high = sorted(sign * end for end in data.value_range or (-np.inf, np.inf))
        rewards = sorted(sign * end for end in data.step_range) if data.step_range is not None else [-np.inf]
        values = np.empty((len(later), len(tethers)))
        tethered_values(
            data.offsets[:-1][later], data.lengths[later], data.rewards, sign, known.ratios, known.taken,
            known.probs, known.reach, guess, data.discount, data.horizon, low, high - low, rewards[0], tethers, values,
        )  # fmt: skip
        if self.exact and data.any_cut:  # whatever followed, a value is never below this
            assert data.cut is not None
            values[data.cut[later]] = -tethers
        return values


def _longest(table: Array, tethers: Array) -> int:
    """The longest tether that is no longer than half of sd·√n of the values it gives."""
    n = len(table)
    mean = sum(table[part].sum(axis=0) for part in wide_parts(n)) / n
    variance = sum(np.square(table[part] - mean).sum(axis=0) for part in wide_parts(n)) / n
    allowed = tethers <= SHARE * np.sqrt(variance) * np.sqrt(n)
    return int(np.flatnonzero(allowed)[-1]) if allowed.any() else 0
