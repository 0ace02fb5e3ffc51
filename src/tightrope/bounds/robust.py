"""The robust model-based bound: the worst value in any finite process close enough to the counts.

After Chow, Petrik and Ghavamzadeh (2015), "Robust policy optimization with baseline guarantees", for a finite
horizon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import is_number
from tightrope.base.dataset import Array, BoolArray, TrajectoryDataset
from tightrope.base.errors import BoundError, PolicyError
from tightrope.base.policy import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.base.records import About, Bound, Guarantee, Side
from tightrope.base.warnings import Caution, caution
from tightrope.bounds.base import ProcessBound
from tightrope.bounds.model_bias.finite_model import Counts, count, logged_states, renumbered
from tightrope.models import has_tabular
from tightrope.models.tabular.model import numbered, policy_table

DENSE = 20_000_000  # numbers in a table (states, actions, next states)
LARGEST_DISTANCE = 2.0  # no two distributions are further apart in L1


@dataclass(frozen=True)
class Robust(ProcessBound):
    """The candidate's value in the worst process that the logged transitions leave possible, whatever the behaviour.

    For numbered states and actions. Exact where the policy's table declares them and the reward range and horizon are
    declared; worth something only with many visits to every pair that the candidate takes.
    """

    name: ClassVar[str] = "robust"
    of: ClassVar[str] = "mb"
    preference: ClassVar[int] = 4

    def bound(self, problem: Problem, *, confidence: float, side: Side, seed: int, about: About) -> Bound:
        """The bound on the candidate's value."""
        if about == "gain":
            raise BoundError("robust bounds a value, not a gain; use tdr with betting for an exact bound on the gain")
        problem.check_memory("robust")
        problem = problem.coded
        data = problem.dataset
        if not has_tabular(problem):
            raise PolicyError("robust needs integer states and actions and a policy that lists its probabilities")
        assert data.states is not None
        assert data.actions is not None
        declared = isinstance(problem.policy, TabularPolicy)
        states = problem.policy.states if declared else logged_states(data)
        if len(states) ** 2 > DENSE:
            raise BoundError(f"robust makes dense tables; {len(states)} states are too many for it")
        table, actions = policy_table(problem.policy, states, numbered("action", data.actions), data.horizon)
        if table[0].size * len(states) > DENSE:
            raise BoundError(
                f"robust makes dense tables; {len(states)} states and {len(actions)} actions are too many for it"
            )
        data = renumbered(data, states, actions)
        return robust_bound(data, table, confidence=confidence, side=side, states_declared=declared)


def l1_worst_case(probs: Array, values: Array, radius: npt.ArrayLike, *, possible: BoolArray | None = None) -> Array:
    """min Σ q v over distributions q with Σ |q − p| ≤ radius, on the last axis: sort, then shift radius/2 to the worst.

    The mass comes from the best outcomes first. ``probs`` is (..., K), ``values`` (K,) or (..., K), ``radius`` (...);
    outcomes that are not ``possible`` take no mass.
    """
    if possible is not None:
        best = np.max(np.broadcast_to(values, possible.shape), axis=-1, where=possible, initial=-np.inf, keepdims=True)
        values = np.where(possible, values, best)
    order = np.argsort(values, axis=-1)
    ranked = np.take_along_axis(values, order, axis=-1)
    p = (
        probs[..., order]
        if order.ndim == 1
        else np.take_along_axis(np.broadcast_to(probs, order.shape), order, axis=-1)
    )
    shift = np.minimum(np.asarray(radius) / 2, 1.0 - p[..., 0])
    above = np.cumsum(p[..., ::-1], axis=-1)[..., ::-1] - p  # mass on better outcomes
    taken = np.clip(shift[..., None] - above, 0.0, p)
    result: Array = ((p - taken) * ranked).sum(axis=-1) + taken.sum(axis=-1) * ranked[..., 0]
    return result


def robust_value(
    transition_probs: Array,
    start_probs: Array,
    rewards: Array,
    policy: Array,
    *,
    transition_radii: npt.ArrayLike,
    start_radius: float,
    discount: float = 1.0,
    possible: BoolArray | None = None,
    possible_starts: BoolArray | None = None,
) -> float:
    """The candidate's least value over all processes within the radii, by backward induction.

    ``transition_probs`` is (S, A, S+1), the last column the end; ``rewards`` (S, A), or (S, A, S+1) where they depend
    on the next state; ``policy`` (L, S, A); ``transition_radii`` (S, A). The worst rows are chosen anew at every
    step, which can only lower the value.
    """
    n_states = len(start_probs)
    by_outcome = rewards.ndim == 3
    ahead = np.zeros(n_states + 1)
    for table in policy[::-1]:
        outcomes = rewards + discount * ahead if by_outcome else discount * ahead
        worst = l1_worst_case(transition_probs, outcomes, transition_radii, possible=possible)
        ahead[:-1] = (table * (worst if by_outcome else rewards + worst)).sum(axis=1)
    return float(l1_worst_case(start_probs, ahead[:-1], start_radius, possible=possible_starts))


def deviation(visits: npt.ArrayLike, log_inverse_delta: npt.ArrayLike) -> Array:
    """How far the mean of values in [0, 1] can be from its expectation, at all numbers of visits n ≥ 1 at once.

    √((n + 1)(2 ln(1/δ) + ln(n + 1))) / 2n. With S_n the sum of the deviations of n visits, exp(λ S_n − λ² n / 8) is a
    supermartingale for each λ (Hoeffding's lemma), hence so is its average over λ ~ N(0, 4), exp(2 S_n² / (n + 1)) /
    √(n + 1); by Ville's inequality it ever reaches 1/δ with probability at most δ. Robbins (1970), "Statistical
    methods related to the law of the iterated logarithm". Infinite without visits.
    """
    n = np.asarray(visits, dtype=np.float64)
    with np.errstate(divide="ignore"):
        result: Array = np.sqrt((n + 1) * (2 * np.asarray(log_inverse_delta) + np.log1p(n))) / (2 * n)
    return result


def transition_radius(visits: npt.ArrayLike, n_outcomes: npt.ArrayLike, delta: float) -> Array:
    """The L1 radius of a row of counts over k outcomes that holds at all numbers of visits at once.

    Half the L1 distance is the largest deviation over the 2^{k-1} − 1 ways to split the outcomes in two, each of
    which is a ``deviation`` (Weissman et al. 2003, with every number of visits in place of a fixed one).
    """
    k = np.asarray(n_outcomes, dtype=np.float64)
    splits = _log_splits(k)
    radius = 2 * deviation(visits, np.where(k > 1, splits, 0.0) + np.log(1 / delta))
    result: Array = np.where(k > 1, np.minimum(radius, LARGEST_DISTANCE), 0.0)
    return result


def start_radius(n: int, n_outcomes: int, delta: float) -> float:
    """The L1 radius after n independent starts over k states: √(2 ln((2^k − 2)/δ) / n), Weissman et al. (2003)."""
    if n_outcomes <= 1:
        return 0.0
    exponent = float(_log_splits(np.asarray(n_outcomes, dtype=np.float64))) + np.log(2 / delta)
    return float(min(np.sqrt(2 * exponent / n), LARGEST_DISTANCE))


def robust_bound(
    dataset: TrajectoryDataset,
    policy: Array,
    *,
    confidence: float = 0.95,
    side: Side = "lower",
    rewards: Array | None = None,
    possible: BoolArray | None = None,
    possible_starts: BoolArray | None = None,
    states_declared: bool = True,
) -> Bound:
    """A bound on the candidate's value, that of the worst process near the counts, whatever the behaviour policy was.

    Every next-state row, every mean reward and the start distribution get an equal share of 1 − confidence, over the
    pairs that the candidate (a table (L, S, A)) may take; a pair never logged takes the worst reward and goes to the
    worst state. ``rewards``, where known, are (S, A) or (S, A, S+1); ``possible`` (S, A, S+1) narrows the next
    states.

    Why it holds although steps inside an episode depend on each other and visits are counted after the fact: given
    the past, the next state of a visit to (s, a) is a fresh draw from P(·|s, a), so over the visits to one pair, in
    logged order, the deviations are martingale differences, and the radii hold at every number of visits at once, so
    also at the random number reached. The guarantee is "exact" for independent episodes of a process that is Markov
    in the logged states and does not change with time, with the numbers of states and actions, the horizon and the
    rewards (or their range) declared; "approximate" where one of these was taken from the logs. With many states and
    few visits it is vacuous.
    """
    _check_settings(dataset, policy, confidence, side, rewards)
    _, n_states, n_actions = policy.shape
    counts = count(dataset, n_states, n_actions)
    allowed = np.ones(counts.transitions.shape, dtype=bool) if possible is None else possible
    starts = np.ones(n_states, dtype=bool) if possible_starts is None else possible_starts
    _check_possible(counts, allowed, starts)
    taken: BoolArray = np.any(policy > 0, axis=0)
    delta = (1 - confidence) / (1 + int(taken.sum()) * (2 if rewards is None else 1))
    seen = counts.transitions.sum(axis=2)
    rows = np.where(seen[..., None] > 0, counts.transitions, allowed)  # a row never seen is wholly open
    sign = 1.0 if side == "lower" else -1.0
    mean, least = _rewards(dataset, counts, rewards, sign, delta)

    def value(earned: Array, transition_radii: Array, radius: float) -> float:
        return sign * robust_value(
            rows / rows.sum(axis=2, keepdims=True),
            counts.starts / counts.starts.sum(),
            earned,
            policy,
            transition_radii=transition_radii,
            start_radius=radius,
            discount=dataset.discount,
            possible=possible,
            possible_starts=possible_starts,
        )

    radii = transition_radius(seen, allowed.sum(axis=2), delta)
    bound = value(least, radii, start_radius(dataset.n_trajectories, int(starts.sum()), delta))
    return Bound(
        value=_within(bound, dataset, side),
        side=side,
        confidence=confidence,
        estimate=value(mean, np.where(seen > 0, 0.0, radii), 0.0),
        estimator="mb",
        method="robust",
        guarantee=_guarantee(dataset, rewards, states_declared),
        n_trajectories=dataset.n_trajectories,
        warnings=(*dataset.notes, *_unvisited(taken, counts)),
        rests_on_model=True,
    )


def _rewards(
    dataset: TrajectoryDataset, counts: Counts, known: Array | None, sign: float, delta: float
) -> tuple[Array, Array]:
    """Mean rewards (times sign) as counted and at their least; the worst in range where a pair was never visited."""
    if known is not None:
        return sign * known, sign * known
    low, high = _reward_ends(dataset)
    floor = low if sign > 0 else -high
    visits = np.maximum(counts.visits, 1.0)
    mean = np.where(counts.visits > 0, sign * counts.reward_sums / visits, floor)
    margin = (high - low) * deviation(visits, np.log(1 / delta)) if high > low else 0.0
    return mean, np.maximum(np.where(counts.visits > 0, mean - margin, floor), floor)


def _reward_ends(dataset: TrajectoryDataset) -> tuple[float, float]:
    """The declared range of rewards, an end that is not declared taken from the sample."""
    low, high = dataset.reward_range or (-np.inf, np.inf)
    seen_low, seen_high = float(dataset.rewards.min()), float(dataset.rewards.max())
    return low if np.isfinite(low) else seen_low, high if np.isfinite(high) else seen_high


def _guarantee(dataset: TrajectoryDataset, rewards: Array | None, states_declared: bool) -> Guarantee:
    ranged = dataset.reward_range is not None and bool(np.isfinite(dataset.reward_range).all())
    # What was cut off may have been cut off for what it was about to show: the counts are then no fair sample.
    whole = not dataset.n_dropped and not dataset.any_cut
    known = states_declared and dataset.horizon_declared and whole
    return "exact" if known and (rewards is not None or ranged) else "approximate"


def _within(value: float, dataset: TrajectoryDataset, side: Side) -> float:
    """The bound, no further out than the declared range of the return."""
    if dataset.value_range is None:
        return value
    low, high = dataset.value_range
    return max(value, low) if side == "lower" else min(value, high)


def _unvisited(taken: BoolArray, counts: Counts) -> list[Caution]:
    missing, possible = int((taken & (counts.visits == 0)).sum()), int(taken.sum())
    if not missing:
        return []
    text = (
        f"{missing} of the {possible} state-action pairs that the candidate may take were never logged; they count as "
        "the worst possible"
    )
    return [caution("unvisited", text, missing=missing, possible=possible)]


def _log_splits(k: Array) -> Array:
    """ln(2^{k-1} − 1), the number of ways to split k ≥ 2 outcomes in two."""
    rest = np.maximum(k - 1, 1.0)
    result: Array = rest * np.log(2) + np.log1p(-np.exp2(-rest))
    return result


def _check_settings(
    dataset: TrajectoryDataset, policy: Array, confidence: float, side: Side, rewards: Array | None
) -> None:
    if not (is_number(confidence) and 0.0 < confidence < 1.0):
        raise BoundError(f"confidence is {confidence!r}; it must lie between 0 and 1, such as 0.95")
    if side not in ("lower", "upper"):
        raise BoundError(f'side is {side!r}; "lower" or "upper"')
    if policy.ndim != 3 or len(policy) != dataset.horizon:
        raise BoundError(f"policy has shape {policy.shape}; a table ({dataset.horizon}, states, actions) is expected")
    shape = policy.shape[1:]
    if rewards is not None and rewards.shape not in (shape, (*shape, shape[0] + 1)):
        raise BoundError(f"rewards has shape {rewards.shape}; {shape} or {(*shape, shape[0] + 1)} is expected")


def _check_possible(counts: Counts, allowed: BoolArray, starts: BoolArray) -> None:
    for name, mask, held in (("possible", allowed, counts.transitions), ("possible_starts", starts, counts.starts)):
        if mask.shape != held.shape or mask.dtype != np.bool_:
            raise BoundError(f"{name} is {mask.dtype} of shape {mask.shape}; true or false, {held.shape}, is expected")
        if (held[~mask] > 0).any():
            place = tuple(int(index) for index in np.argwhere((held > 0) & ~mask)[0])
            raise BoundError(f"{name} rules out {place}, which is in the logs")
        if not mask.any(axis=-1).all():
            raise BoundError(f"{name} leaves nothing possible in a row; each needs at least one outcome")
