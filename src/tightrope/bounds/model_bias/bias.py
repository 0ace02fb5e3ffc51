"""How far a model's value of a policy can be from the true one.

Theorem 1 and Corollary 1 of "Bootstrapping with Models" (Hanna, Stone, Niekum 2017), corrected.

Rewards and termination are known functions here; only the dynamics are modelled (the end of an episode is one of the
next states). ε_0 is the divergence of the start distributions, ε(s, a) that of the next-state distributions, and

    K_t = ε_0 + Σ_{k<t} E_{π_b}[ρ_k ε(S_k, A_k)] = ε_0 + Σ_{k<t} E_{π_e}[ε(S_k, A_k)]

is the divergence of what has happened by the time that step t is paid, so K_{L-1}, of L − 1 transitions, is that of
whole episodes. Where a reward depends on the state that the step leads to, that transition counts too
(``outcome_rewards``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from tightrope.base.dataset import Array
from tightrope.base.errors import BoundError
from tightrope.base.names import must_be_one_of

Form = Literal["per-step", "tight", "printed"]


class Dynamics(Protocol):
    """Start and next-state probabilities over states 0..S-1; next state S is the end of the episode."""

    @property
    def transition_probs(self) -> Array:
        """P(s'|s, a), (S, A, S+1)."""
        ...

    @property
    def start_probs(self) -> Array:
        """d_0(s), (S,)."""
        ...


@dataclass(frozen=True)
class BiasBound:
    """A bound on |V̂ − V|."""

    value: float  # never above the trivial range
    uncapped: float  # what the formula gives
    trivial: float  # g_max − g_min, which no error can exceed
    form: Form
    divergence: float  # K of whole episodes
    confidence: float | None = None  # None: the divergences are taken as they are, without sampling error


def total_variation(divergence: npt.ArrayLike) -> Array:
    """The largest total variation at a Kullback–Leibler divergence K: min{√(K/2), √(1 − e^{−K})}.

    Pinsker's inequality is the better below K ≈ 1.6, Bretagnolle and Huber's (1979) above. The paper prints √(2K).
    """
    k = np.asarray(divergence, dtype=np.float64)
    result: Array = np.minimum(np.sqrt(k / 2), np.sqrt(-np.expm1(-k)))
    return result


def step_kls(
    true: Dynamics,
    model: Dynamics,
    policy: Array,
    *,
    behavior: Array | None = None,
    outcome_rewards: bool = False,
) -> Array:
    """K_t for t < L by the chain rule, (L,), of known dynamics and the candidate's table (L, S, A).

    Infinite from the first step at which the model calls something impossible that can happen. The importance-sampled
    expectation under the behaviour policy is the same number wherever that policy takes every action the candidate
    may take; given its table, this is checked.
    """
    from scipy.special import rel_entr

    _check_same(true, model)
    start = max(0.0, float(rel_entr(true.start_probs, model.start_probs).sum()))
    rows = np.maximum(rel_entr(true.transition_probs, model.transition_probs).sum(axis=2), 0.0)
    return _accumulate(true, policy, start, rows, behavior, outcome_rewards)


def step_cross_entropies(
    true: Dynamics,
    model: Dynamics,
    policy: Array,
    *,
    behavior: Array | None = None,
    outcome_rewards: bool = False,
) -> Array:
    """K_t with cross-entropies −E[log P̂] in place of divergences, (L,): what logs can estimate, and never smaller."""
    from scipy.special import xlogy

    _check_same(true, model)
    start = -float(xlogy(true.start_probs, model.start_probs).sum())
    rows = -xlogy(true.transition_probs, model.transition_probs).sum(axis=2)
    return _accumulate(true, policy, start, rows, behavior, outcome_rewards)


def bias_bound(
    step_divergences: npt.ArrayLike,
    *,
    reward_range: tuple[float, float],
    discount: float = 1.0,
    form: Form = "per-step",
    return_range: tuple[float, float] | None = None,
    ends_early: bool = True,
) -> BiasBound:
    """|V̂ − V| from K_t, t < L, or from anything above K_t.

    - "per-step": (r_max − r_min) Σ_t γ^t TV(K_t), never above "tight" unless a narrower return_range helps that;
    - "tight": (g_max − g_min) TV(K_{L-1}), at least four times below "printed" for rewards ≥ 0, twice for others;
    - "printed": 2√2 L r_max √K_{L-1}, the paper's Corollary 1, with r_max = max |r|.

    TV(K) is ``total_variation``. The range of rewards is widened to hold the 0 that an ended episode earns, unless
    ``ends_early`` is False. A narrower ``return_range`` must hold in the model's episodes as well as in the true
    ones.
    """
    if form not in get_args(Form):
        raise BoundError(must_be_one_of("form", form, get_args(Form)))
    divergences = _check_divergences(step_divergences)
    low, high = _check_range("reward_range", reward_range)
    horizon, last = len(divergences), float(divergences[-1])
    if ends_early and horizon > 1:
        low, high = min(low, 0.0), max(high, 0.0)
    discounts = np.power(discount, np.arange(horizon), dtype=np.float64)
    trivial = (high - low) * float(discounts.sum())
    if return_range is not None:
        least, most = _check_range("return_range", return_range)
        trivial = min(trivial, most - least)
    if form == "printed":
        largest = max(abs(low), abs(high))
        uncapped = 2 * np.sqrt(2) * horizon * largest * np.sqrt(last) if largest > 0 else 0.0
    elif form == "tight":
        uncapped = trivial * float(total_variation(last))
    else:
        uncapped = (high - low) * float(discounts @ total_variation(divergences))
    return BiasBound(min(float(uncapped), trivial), float(uncapped), trivial, form, last)


def _accumulate(
    true: Dynamics, policy: Array, start: float, rows: Array, behavior: Array | None, outcome_rewards: bool
) -> Array:
    """start + Σ_k E_{π_e}[rows(S_k, A_k)] by the time each step is paid; finished episodes add nothing."""
    n_states, n_actions, _ = true.transition_probs.shape
    for name, table in (("policy", policy), ("behavior", behavior)):
        if table is not None and (table.ndim != 3 or table.shape != (len(policy), n_states, n_actions)):
            raise BoundError(f"{name} has shape {table.shape}; a table (horizon, {n_states}, {n_actions}) is expected")
    total, states, result = start, true.start_probs, np.empty(len(policy))
    for t, table in enumerate(policy):
        pairs = states[:, None] * table
        if behavior is not None and ((pairs > 0) & (behavior[t] <= 0)).any():
            state, action = np.argwhere((pairs > 0) & (behavior[t] <= 0))[0]
            raise BoundError(
                f"the candidate may take action {action} in state {state} at step {t} and the behaviour policy never "
                "does: importance sampling cannot see the model's error there"
            )
        ahead = total + float(np.multiply(pairs, rows, where=pairs > 0, out=np.zeros_like(pairs)).sum())
        result[t] = ahead if outcome_rewards else total
        total, states = ahead, np.einsum("sa,sap->p", pairs, true.transition_probs)[:-1]
    return result


def _check_same(true: Dynamics, model: Dynamics) -> None:
    shapes = {
        "transition_probs": (true.transition_probs.shape, model.transition_probs.shape),
        "start_probs": (true.start_probs.shape, model.start_probs.shape),
    }
    for name, (shape, other) in shapes.items():
        if shape != other:
            raise BoundError(f"{name} of the model has shape {other}, of the truth {shape}; they must be the same")


def _check_divergences(values: npt.ArrayLike) -> Array:
    divergences = np.asarray(values, dtype=np.float64)
    if divergences.ndim != 1 or not len(divergences):
        raise BoundError(f"step_divergences has shape {divergences.shape}; one number per step is expected")
    bad = np.isnan(divergences) | (divergences < 0)
    if bad.any():
        step = int(np.argmax(bad))
        raise BoundError(
            f"step_divergences is {divergences[step]:g} at step {step}; a divergence is ≥ 0. A negative "
            "log-likelihood of densities can be below 0 and bounds nothing"
        )
    return divergences


def _check_range(name: str, value: tuple[float, float]) -> tuple[float, float]:
    low, high = value
    if not (np.isfinite(low) and np.isfinite(high) and low <= high):
        raise BoundError(f"{name} is ({low}, {high}); a bias bound needs two finite ends, the lowest first")
    return float(low), float(high)
