"""A model's error on logs, importance-sampled to the candidate, and the bias bounds that follow from it.

What logs can estimate is not the divergence K_t of ``model_bias`` but the cross-entropy, −log-likelihood in place of
ε, which exceeds it by the entropy of the true dynamics: an upper bound where states are discrete, since entropy is
then ≥ 0, and a mere diagnostic for comparing models where they are not. "Bootstrapping with Models", Corollary 2 and
its proof, corrected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import ROUNDING, is_number
from tightrope.base.clusters import Clusters, extent, n_independent
from tightrope.base.dataset import Array, BoolArray, TrajectoryDataset
from tightrope.base.errors import BoundError, DataError
from tightrope.base.folder import parts, wide_parts
from tightrope.base.ratios import Ratios
from tightrope.bounds.base import ExactBound
from tightrope.bounds.exact.hoeffding import Hoeffding
from tightrope.bounds.model_bias.bias import BiasBound, Dynamics, Form, bias_bound
from tightrope.bounds.model_bias.finite_model import UNKNOWN, next_states, pairs
from tightrope.functional.values import TrajectoryValues

Kind = Literal["bound", "diagnostic"]

LARGEST_LOG = 600.0  # beyond this a ratio times an error may not fit a float64


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """What a model says of logged transitions: log-probabilities, or log-densities where states are continuous.

    The difference of two models' log-likelihoods, as continuous ones, gives the paired difference of their errors.
    """

    steps: Array  # (N,): log P̂(s'|s, a); NaN where the next state is unknown, allowed at the horizon alone
    starts: Array  # (n,): log d̂_0(s)
    discrete: bool
    smallest_prob: float = 0.0  # the least probability the model gives to any next state that can happen
    smallest_start_prob: float = 0.0  # and to any start
    training_ids: npt.ArrayLike | None = None  # episodes the model was fitted on, () for none; None: not said


@dataclass(frozen=True, eq=False)
class ModelError:
    """Estimates of K_t with cross-entropy or negative log-likelihood for ε, t < L."""

    kind: Kind  # "bound": estimates something above the divergence; "diagnostic": compares models, bounds nothing
    steps: Array  # (L,)
    standard_errors: Array  # (L,)
    self_normalised: bool
    n_trajectories: int

    @property
    def total(self) -> float:
        """The error over whole episodes, in nats."""
        return float(self.steps[-1])

    @property
    def standard_error(self) -> float:
        """Of the total."""
        return float(self.standard_errors[-1])

    def gap(self, training: ModelError) -> tuple[float, float]:
        """By how much this (held-out) error exceeds that on other (training) episodes, and the standard error."""
        return self.total - training.total, float(np.hypot(self.standard_error, training.standard_error))

    def bias_bound(self, *, reward_range: tuple[float, float], discount: float = 1.0, **options: Any) -> BiasBound:
        """The bias bound at these estimates, with no allowance for their sampling error."""
        if self.kind == "diagnostic":
            raise BoundError(
                "the error is a negative log-likelihood of densities, whose entropy can be negative: it compares "
                "models on the same episodes and bounds nothing. A bias bound needs discrete states"
            )
        return bias_bound(self.steps, reward_range=reward_range, discount=discount, **options)


def tabular_likelihoods(
    dataset: TrajectoryDataset,
    model: Dynamics,
    *,
    possible: BoolArray | None = None,
    possible_starts: BoolArray | None = None,
    training_ids: npt.ArrayLike | None = None,
) -> Likelihoods:
    """The log-likelihoods of a finite model; ``possible`` (S, A, S+1): next states that can happen, by default all."""
    n_states, n_actions, _ = model.transition_probs.shape
    states, actions = pairs(dataset, n_states, n_actions)
    following = next_states(dataset, n_states)
    known = following != UNKNOWN
    steps = np.full(dataset.n_steps, np.nan)
    with np.errstate(divide="ignore"):
        steps[known] = np.log(model.transition_probs[states[known], actions[known], following[known]])
        starts = np.log(model.start_probs[states[dataset.offsets[:-1]]])
    smallest, smallest_start = (
        float(np.min(probs, where=True if mask is None else mask, initial=1.0))
        for probs, mask in ((model.transition_probs, possible), (model.start_probs, possible_starts))
    )
    return Likelihoods(steps, starts, True, smallest, smallest_start, training_ids)


def model_error(
    ratios: Ratios, likelihoods: Likelihoods, *, self_normalised: bool = False, outcome_rewards: bool = False
) -> ModelError:
    """The model's importance-sampled error on the episodes of ``ratios``: training or held-out, as they are.

    Plain: K̂_t = mean of −log d̂_0 − Σ_{k<t} ρ_k log P̂, unbiased. Self-normalised: each step's mean is divided by
    that of ρ_k, finished episodes staying in the denominator; consistent, and steadier. Standard errors to first
    order, of clusters where the logs name some. Infinite where the model calls impossible what the logs hold and the
    candidate may do. With ``outcome_rewards`` a step's own transition counts.
    """
    data = ratios.dataset
    _check(data, likelihoods, outcome_rewards)
    n, draws, horizon = data.n_trajectories, n_independent(data), data.horizon
    clusters = None if data.clusters is None else Clusters.of(data)
    if not self_normalised and ratios.log_max.max() > LARGEST_LOG:
        raise BoundError("importance ratios are too large for a plain mean; use self_normalised=True")
    kind: Kind = "bound" if likelihoods.discrete else "diagnostic"
    weighted, weights = np.zeros(horizon), np.zeros(horizon)
    scale = ratios.log_max if self_normalised else np.zeros(horizon)
    with np.errstate(over="ignore", invalid="ignore"):  # infinite errors have infinite standard errors
        for _, _, ratio, product in _terms(ratios, likelihoods, scale):
            weighted += product.sum(axis=0)
            weights += ratio.sum(axis=0)
        divisor = weights if self_normalised else np.full(horizon, float(n))
        level = weighted / divisor
        start = -float(likelihoods.starts.mean())
        squares, whole = np.zeros(horizon + 1), data.scratch.full((0 if clusters is None else draws, horizon + 1), 0.0)
        for first, stop, ratio, product in _terms(ratios, likelihoods, scale):
            apart = product - level * (ratio if self_normalised else 1.0)
            apart = np.concatenate([-likelihoods.starts[first:stop, None] - start, apart * (n / divisor)], axis=1)
            moved = np.cumsum(apart, axis=1)
            if clusters is None:
                squares += np.square(moved).sum(axis=0)
            else:
                np.add.at(whole, clusters.code[first:stop], moved)
    shown = slice(1, None) if outcome_rewards else slice(None, horizon)
    steps = np.cumsum(np.append(start, level))[shown]
    squares += sum(np.square(whole[part]).sum(axis=0) for part in wide_parts(len(whole)))
    errors = np.sqrt(squares * (draws / max(draws - 1, 1)))[shown] / n
    errors[~np.isfinite(steps) | np.isnan(errors) | (draws < 2)] = np.inf
    return ModelError(kind, steps, errors, self_normalised, n)


def finite_sample_bias_bound(
    ratios: Ratios,
    likelihoods: Likelihoods,
    *,
    max_ratio: float | None,
    confidence: float = 0.95,
    form: Form = "per-step",
    outcome_rewards: bool = False,
    method: ExactBound | None = None,
) -> BiasBound:
    """A bound on |V̂ − V| that holds with the given confidence at every n: the paper's Corollary 2, corrected.

    The mean of X = −log d̂_0 − Σ_{k<t} ρ_k log P̂ over held-out episodes is bounded from above by ``method``
    (Hoeffding's inequality), X lying between 0 and −log p_0 − t ρ̄ log p with p_0 and p the smallest probabilities of
    the model and ρ̄ = ``max_ratio``. The paper prints the range ρ̄ alone, with which the step fails nearly half the
    time. "per-step" shares the error over the L steps. V̂ is the value in this model, fitted on other episodes, with
    the true rewards. Fails where the candidate takes actions that the behaviour policy never takes.
    """
    data = ratios.dataset
    _check(data, likelihoods, outcome_rewards)
    _check_held_out(data, likelihoods, outcome_rewards)
    if data.clusters is not None or data.strata is not None:
        raise BoundError(f"the bias bound must get independent episodes, one a cluster; got {extent(data)}")
    most = _check_declared(ratios, max_ratio, confidence)
    assert data.step_range is not None
    values = np.concatenate(
        [
            np.cumsum(np.concatenate([-likelihoods.starts[first:stop, None], product], axis=1), axis=1)
            for first, stop, _, product in _terms(ratios, likelihoods, np.zeros(data.horizon))
        ]
    )
    moves = np.arange(data.horizon) + int(outcome_rewards)
    ceilings = -np.log(likelihoods.smallest_start_prob) - moves * most * np.log(likelihoods.smallest_prob)
    chosen = range(data.horizon) if form == "per-step" else [data.horizon - 1]
    delta = (1 - confidence) / len(chosen)
    divergences = np.full(data.horizon, np.inf)
    for t in chosen:
        divergences[t] = _upper(values[:, moves[t]], float(ceilings[t]), method or Hoeffding(), delta)
    bound = bias_bound(
        divergences if form == "per-step" else divergences[-1:].repeat(data.horizon),
        reward_range=data.step_range,
        discount=data.discount,
        form=form,  # a declared return_range is of the true process: episodes of the model may leave it
    )
    return replace(bound, confidence=confidence)


def _upper(values: Array, ceiling: float, method: ExactBound, delta: float) -> float:
    """An upper bound on the mean of values in [0, ceiling]: the lower bound of what is missing to the ceiling."""
    if ceiling <= 0 or not np.isfinite(ceiling):
        return max(ceiling, 0.0)
    missing = TrajectoryValues(np.maximum(ceiling - values, 0.0), ceiling, -1.0, ceiling)
    return float(np.clip(ceiling - method.lower(missing, delta=delta, seed=0), 0.0, ceiling))


def _terms(ratios: Ratios, likelihoods: Likelihoods, scale: Array) -> Iterator[tuple[int, int, Array, Array]]:
    """Episodes first..stop: ρ_t e^{-scale} and that times −log P̂, 0 where not counted; (stop - first, horizon)."""
    data = ratios.dataset
    for first, stop in data.chunks():
        ratio = np.exp(ratios.log(first, stop) - scale)
        errors = -data.pad(likelihoods.steps[data.steps(first, stop)], first, stop)
        counted = ratio > 0  # what the candidate would not do is no error of the model, however unlikely
        yield first, stop, ratio, np.multiply(ratio, errors, where=counted, out=np.zeros_like(ratio))


def _check(data: TrajectoryDataset, likelihoods: Likelihoods, outcome_rewards: bool) -> None:
    for name, values, size in (
        ("steps", likelihoods.steps, data.n_steps),
        ("starts", likelihoods.starts, data.n_trajectories),
    ):
        if values.shape != (size,):
            raise DataError(f"the model's log-likelihoods of {name} have shape {values.shape}; ({size},) expected")
    largest = -np.inf
    for part in parts(data.n_steps):
        some, needed = likelihoods.steps[part], outcome_rewards | (data.times_at(part) < data.horizon - 1)
        bad = needed & (np.isnan(some) | (some == np.inf))
        if bad.any():
            step = part.start + int(np.argmax(bad))
            reason = ". Where rewards depend on the next state the logs must hold the last one (final_states)"
            raise DataError(
                f"the model's log-likelihood is {likelihoods.steps[step]} at {data.where(step)}; it must be a number "
                f"or -inf{reason * outcome_rewards}"
            )
        largest = max(largest, float(np.max(some, where=needed, initial=-1)))
    if np.isnan(likelihoods.starts).any() or (likelihoods.starts == np.inf).any():
        raise DataError("the model's log-likelihood of a start is NaN or inf; it must be a number or -inf")
    if likelihoods.discrete and max(likelihoods.starts.max(), largest) > ROUNDING:
        raise DataError("the model gives a logged transition a probability above 1; densities are discrete=False")


def _check_declared(ratios: Ratios, max_ratio: float | None, confidence: float) -> float:
    """What the finite-sample bound rests on besides the model; returns max_ratio."""
    data = ratios.dataset
    if not (is_number(confidence) and 0.0 < confidence < 1.0):
        raise BoundError(f"confidence is {confidence!r}; it must lie between 0 and 1, such as 0.95")
    if max_ratio is None:
        raise BoundError(
            "the finite-sample bias bound needs max_ratio, which no cumulative importance ratio can exceed, declared "
            "and not taken from the sample"
        )
    if not (is_number(max_ratio) and max_ratio > 0):
        raise BoundError(f"max_ratio is {max_ratio!r}; it must be positive")
    largest = float(ratios.log_max.max())
    if largest > np.log(max_ratio) + 1e-9:
        raise BoundError(
            f"max_ratio is {max_ratio:g}, but the logs hold a cumulative importance ratio of "
            f"{np.exp(min(largest, 700.0)):.4g}: the declared bound is wrong"
        )
    if data.step_range is None or not np.isfinite(data.step_range).all() or not data.horizon_declared:
        missing = "horizon" if not data.horizon_declared else "reward_range with two finite ends"
        raise BoundError(f"the finite-sample bias bound needs a declared {missing}; pass it to read()")
    if data.n_dropped:
        raise BoundError("episodes were dropped from these logs, so the rest are no sample of all; no exact bound")
    if data.any_cut:
        raise BoundError("some episodes were cut off and nobody knows what followed; no exact bound on the bias")
    return float(max_ratio)


def _check_held_out(data: TrajectoryDataset, likelihoods: Likelihoods, outcome_rewards: bool) -> None:
    """Whether the model's negative log-likelihood is bounded, and the episodes were kept from its fit."""
    if not likelihoods.discrete:
        raise BoundError(
            "log-densities bound nothing, since entropy can be negative; the finite-sample bias bound needs discrete "
            "states"
        )
    counted = likelihoods.steps[np.ones(data.n_steps, bool) if outcome_rewards else data.times < data.horizon - 1]
    for name, smallest, logged in (
        ("smallest_prob", likelihoods.smallest_prob, counted),
        ("smallest_start_prob", likelihoods.smallest_start_prob, likelihoods.starts),
    ):
        if not 0.0 < smallest <= 1.0:
            raise BoundError(
                f"{name} is {smallest:g}: where the model calls a possible outcome impossible the negative "
                "log-likelihood is infinite and has no range; smooth the model (smoothed_model) or say what is possible"
            )
        if np.min(logged, initial=0.0) < np.log(smallest) - 1e-9:
            raise BoundError(
                f"{name} is {smallest:g}, but the model gives a logged outcome "
                f"{np.exp(logged.min()):.4g}: it is not the smallest"
            )
    if likelihoods.training_ids is None:
        raise BoundError(
            "say which episodes the model was fitted on: training_ids=..., () for a model given beforehand"
        )
    shared = np.intersect1d(np.asarray(likelihoods.training_ids), np.asarray(data.episode_ids))
    if len(shared):
        raise BoundError(
            f"the model was fitted on {len(shared)} of these {data.n_trajectories} episodes ({shared[0]} first); the "
            "finite-sample bound needs others: fit on one part, bound on the rest (take)"
        )
