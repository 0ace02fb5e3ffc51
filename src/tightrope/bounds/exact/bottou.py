"""The two-part interval of Bottou and others (2013): sampling noise, and the mass that was clipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.base.checks import is_number
from tightrope.base.dataset import Array
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.problem import Problem
from tightrope.base.records import About, Bound, Side
from tightrope.base.warnings import Caution, caution
from tightrope.bounds.base import ProcessBound
from tightrope.bounds.exact.empirical_bernstein import bernstein


@dataclass(frozen=True)
class Bottou(ProcessBound):
    """Clipped importance sampling, m·H + Ȳ, and what was clipped, which may have earned anything from m to M.

    With Y the sum of γ^t min(ρ_t, c)(r_t − m) and W that of γ^t min(ρ_t, c) over an episode, and H = Σ γ^t,

        m·H + E[Y] ≤ V ≤ m·H + E[Y] + (M − m)(H − E[W]),

    the *inner* interval: it is as wide as the missing mass H − E[W]. The *outer* one puts empirical Bernstein bounds in
    place of E[Y] and E[W], δ for the one mean of a lower bound and δ/2 for each of the two of an upper bound. A
    warning without consequences (``clipped-mass``) tells both parts: more logs help against noise, logs nearer to the
    candidate or a larger c against missing mass.

    Counted from the ceiling, (M − m)W − Y = Σ γ^t min(ρ_t, c)(M − r_t), and the right-hand side is M·H less its mean:
    the missing mass is what the reflection leaves. ``clipped`` with ``empirical-bernstein`` bounds that one mean: by
    the triangle inequality for standard deviations it is never wider, and its lower bound is the same. Bottou and
    others choose c by the sample (the fifth largest ratio) and drop ratios beyond it; here c is fixed beforehand, which
    keeps the bound exact, and larger ratios count as c. The cube root of n, since the range costs 7cH ln(4/δ)/3n and
    would outweigh the noise at c = √n. "Counterfactual reasoning and learning systems" (JMLR 2013).
    """

    name: ClassVar[str] = "bottou"
    of: ClassVar[str] = "clipped"

    largest: float | None = None  # c; None: the cube root of n
    per_decision: bool = True  # False: whole returns, weighed by the last ratio, as in the paper

    def __post_init__(self) -> None:
        if self.largest is not None and not (is_number(self.largest) and self.largest > 0):
            raise TightropeError(
                f"largest must be a number above 0, or None for the cube root of n; got {self.largest!r}"
            )

    def bound(self, problem: Problem, *, confidence: float, side: Side, seed: int, about: About) -> Bound:
        """The bound on the candidate's value; both ends of the range and the horizon must be declared."""
        _check(problem, about)
        parts, delta = self.parts(problem), 1 - confidence
        low, high = problem.dataset.value_range or (-np.inf, np.inf)
        value = parts.lower(delta) if side == "lower" else parts.upper(delta)
        return Bound(
            value=min(max(value, low), high), side=side, confidence=confidence, estimate=parts.inner[0],
            estimator=self.of, method=self.name, guarantee="exact",
            warnings=(*problem.dataset.notes, parts.told(value, side)),
            n_trajectories=problem.dataset.n_trajectories, about=about,
        )  # fmt: skip

    def parts(self, problem: Problem) -> Parts:
        """Y and W of every episode; what was cut off adds to neither."""
        data, ratios = problem.dataset, problem.ratios
        most = float(np.cbrt(data.n_trajectories)) if self.largest is None else float(self.largest)
        low, high = (data.step_range if self.per_decision else data.value_range) or (-np.inf, np.inf)
        if not np.isfinite(high - low):
            raise BoundError(
                "bottou needs both ends of the reward declared, not taken from the sample: reward_range "
                "(read(reward_range=...), --reward-range)"
            )
        rewards, masses = [], []
        for start, stop in data.chunks():
            used = np.exp(np.minimum(ratios.log(start, stop), np.log(most)))
            used[data.unknown_steps(start, stop)] = 0.0
            if self.per_decision:
                above = data.pad(data.rewards[data.steps(start, stop)], start, stop) - low
                rewards.append((used * above) @ data.discounts)
                masses.append(used @ data.discounts)
            else:
                rewards.append(used[:, -1] * (data.returns_of(start, stop) - low))
                masses.append(used[:, -1])
        total = float(data.discounts.sum()) if self.per_decision else 1.0
        return Parts(np.concatenate(rewards), np.concatenate(masses), low, high, total, most)


@dataclass(frozen=True, eq=False)
class Parts:
    """What the interval is made of."""

    rewards: Array  # (n,): Y
    masses: Array  # (n,): W
    low: float  # m
    high: float  # M
    total: float  # H
    most: float  # c

    @property
    def inner(self) -> tuple[float, float]:
        """The ends if the two means were known to be those of the sample."""
        floor = self.low * self.total + float(self.rewards.mean())
        return floor, floor + (self.high - self.low) * self.missing

    @property
    def missing(self) -> float:
        """H − W̄, the candidate's weight that was clipped; noise can make it negative, and it is not."""
        return max(self.total - float(self.masses.mean()), 0.0)

    def lower(self, delta: float) -> float:
        """m·H and a lower bound on E[Y]."""
        top = self.most * (self.high - self.low) * self.total
        return self.low * self.total + max(0.0, float(bernstein(self.rewards, top, delta, len(self.rewards))))

    def upper(self, delta: float) -> float:
        """m·H, an upper bound on E[Y], and (M − m) times one on the missing mass."""
        n, width = len(self.rewards), self.high - self.low
        top, heaviest = self.most * width * self.total, self.most * self.total
        earned = top - float(bernstein(top - self.rewards, top, delta / 2, n))
        mass = min(max(0.0, float(bernstein(self.masses, heaviest, delta / 2, n))), self.total)
        return self.low * self.total + earned + width * (self.total - mass)

    def told(self, value: float, side: Side) -> Caution:
        """Both parts in words."""
        floor, ceiling = self.inner
        noise, missing = abs(value - (floor if side == "lower" else ceiling)), ceiling - floor
        text = (
            f"clipping ratios at {self.most:.4g} leaves {self.missing / self.total:.1%} of the candidate's weight out, "
            f"worth up to {missing:.4g}, which {'a lower' if side == 'lower' else 'an upper'} bound takes for the "
            f"{'least' if side == 'lower' else 'most'} possible; sampling noise takes {noise:.4g} more"
        )
        return caution("clipped-mass", text, missing=missing, noise=noise, largest=self.most)


def _check(problem: Problem, about: About) -> None:
    """Refuse what would not be exact."""
    if about == "gain":
        raise BoundError("bottou bounds the value, not the gain; for the gain use clipped with empirical-bernstein")
    if problem.behavior is not None:
        raise BoundError(
            f"bottou is exact only with the true behaviour probabilities; with an estimate of them "
            f"(behavior={problem.behavior.name!r}) nothing is. Log them, or use a bootstrap method"
        )
    if problem.dataset.n_dropped:
        raise BoundError(
            "nothing exact can be said when episodes were left out for being cut off; declare a shorter horizon, or "
            "use a bootstrap method"
        )
    if not problem.dataset.horizon_declared:
        raise BoundError(
            "bottou counts every step up to the horizon, which must be declared, not taken from the sample: "
            "read(horizon=...), --horizon"
        )
