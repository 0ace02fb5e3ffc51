"""Processes drawn at random to order: how many states, how long, how much overlap, which skew, how much is hidden."""

from __future__ import annotations

import numpy as np

from tightrope.base.dataset import Array, IntArray
from tightrope.base.errors import TightropeError
from tightrope.base.policy import TabularPolicy
from tightrope.domains.finite import FiniteMDP
from tightrope.domains.overlap import effective_share, largest_ratio
from tightrope.domains.small import SmallProblem

REACHED = 3  # states that one pair of state and action leads to, at most
CHANGES, WEIGHT = 0.3, 1.5  # of the hidden part: how often an action sets it, and what it adds to rewards at most
LOOKS_AHEAD, ROUNDS = 0.9, 60  # discount and length of what the candidate thinks an action is worth
STRONGEST, HALVINGS = 200.0, 60  # of the tilt that sets the overlap


def drawn_problem(
    seed: int,
    *,
    states: int = 6,
    actions: int = 3,
    horizon: int = 10,
    overlap: float = 0.3,
    skew: float = 0.0,
    hidden: int = 1,
) -> SmallProblem:
    """A process drawn at random, the policy that logs it, and a candidate as far from it as you say.

    The candidate takes more often what it believes to be better, and is right more often than not.

    - ``seed``: of all that is drawn; a knob changes nothing that it does not speak of.
    - ``states``: as the log shows them.
    - ``actions``: at least 2.
    - ``horizon``: steps of every episode; none ends early.
    - ``overlap``: how many of the candidate's episodes one logged episode is worth at the last step, 1 / E[ρ²]; 1 is
      the behaviour policy itself, 0.01 makes a hundred logged episodes worth one.
    - ``skew``: the skewness of the distribution that rewards are drawn from: 0 is normal, −2 has rare losses, 2 rare
      gains.
    - ``hidden``: how many values the part of the state has that neither the log nor the policies see. Actions set it,
      it lasts for a few steps, and it raises or lowers all rewards: those that the candidate likes mostly raise it
      for even seeds, and lower it for odd ones. 1 hides nothing; more makes models wrong.
    """
    _check(states=states, actions=actions, horizon=horizon, hidden=hidden)
    if not 0 < overlap <= 1:
        raise TightropeError(f"overlap must lie above 0 and be at most 1; got {overlap!r}")
    rng = np.random.default_rng([*b"drawn problem", seed])
    behavior = 0.9 * rng.dirichlet(np.full(actions, 3.0), states) + 0.1 / actions
    errors, chance = rng.normal(size=(2, states, actions))
    plain = _process(rng, states, actions, horizon, skew)
    liked = _advantages(plain, behavior) + errors
    mdp = _with_hidden_part(plain, chance - liked if seed % 2 else chance + liked, hidden)
    seen = np.repeat(np.arange(states), hidden)
    candidate = _tilted(mdp, behavior, liked, seen, overlap)
    return SmallProblem(
        f"drawn-{seed}-{states}-{actions}-{horizon}-{overlap:g}-{skew:g}-{hidden}",
        f"drawn at random: {states} states, {actions} actions, {horizon} steps, a logged episode worth {overlap:g} of "
        f"the candidate's, rewards of skewness {skew:g}, {'nothing' if hidden == 1 else 'a part of the state'} hidden",
        mdp,
        TabularPolicy(behavior),
        TabularPolicy(candidate),
        max_ratio=largest_ratio(mdp, TabularPolicy(behavior[seen]), TabularPolicy(candidate[seen])),
        observe=None if hidden == 1 else tuple(seen.tolist()),
    )


def _check(**counts: int) -> None:
    for name, count in counts.items():
        least = 2 if name == "actions" else 1
        if count < least:
            raise TightropeError(f"{name} must be at least {least}; got {count!r}")


def _process(rng: np.random.Generator, states: int, actions: int, horizon: int, skew: float) -> FiniteMDP:
    """From each pair to a few states, each with its own reward."""
    transition = np.zeros((states, actions, states + 1))
    for pair in np.ndindex(states, actions):
        reached = rng.choice(states, min(REACHED, states), replace=False)
        transition[(*pair, reached)] = rng.dirichlet(np.ones(len(reached)))
    start = rng.dirichlet(np.ones(states))
    return FiniteMDP(transition, _rewards(rng, transition.shape, skew), start, horizon)


def _rewards(rng: np.random.Generator, shape: tuple[int, ...], skew: float) -> Array:
    """Of mean 0 and variance 1: a gamma distribution of this skewness, or its mirror image."""
    if skew == 0:
        return rng.normal(size=shape)
    form = 4 / skew**2
    return np.asarray(np.sign(skew) * (rng.gamma(form, size=shape) - form) / np.sqrt(form))


def _with_hidden_part(plain: FiniteMDP, hints: Array, values: int) -> FiniteMDP:
    """Each state in ``values`` versions, from bad to good; the higher a pair's hint, the better the one it sets."""
    if values == 1:
        return plain
    states, actions, _ = plain.transition_probs.shape
    rank = (np.argsort(np.argsort(hints, axis=None)) * values // hints.size).reshape(hints.shape)
    worth = np.linspace(-WEIGHT, WEIGHT, values)
    transition = np.zeros((states * values, actions, states * values + 1))
    rewards = np.zeros_like(transition)
    stays = np.eye(values)
    for state, action in np.ndindex(states, actions):
        moves = (1 - CHANGES) * stays + CHANGES * stays[rank[state, action]]  # (before, after)
        rows = slice(state * values, (state + 1) * values)
        transition[rows, action, :-1] = np.kron(plain.transition_probs[state, action, :-1], moves)
        rewards[rows, action, :-1] = np.repeat(plain.rewards[state, action, :-1], values) + worth[:, None]
    return FiniteMDP(transition, rewards, np.repeat(plain.start_probs / values, values), plain.horizon)


def _advantages(mdp: FiniteMDP, behavior: Array) -> Array:
    """How much better than the behaviour policy's choice each action is, (S, A), in units of their spread."""
    mean_rewards = np.einsum("sap,sap->sa", mdp.transition_probs, mdp.rewards)
    worth = mean_rewards
    for _ in range(ROUNDS):
        ahead = np.append((behavior * worth).sum(axis=1), 0.0)
        worth = mean_rewards + LOOKS_AHEAD * mdp.transition_probs @ ahead
    better = worth - (behavior * worth).sum(axis=1, keepdims=True)
    return np.asarray(better / better.std())


def _tilted(mdp: FiniteMDP, behavior: Array, direction: Array, seen: IntArray, overlap: float) -> Array:
    """The behaviour policy tilted towards ``direction`` as far as the overlap says, by halving."""
    logger = TabularPolicy(behavior[seen])

    def tilted(strength: float) -> Array:
        scores = np.log(behavior) + strength * direction
        table = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(table / table.sum(axis=1, keepdims=True))

    def share(strength: float) -> float:
        return effective_share(mdp, logger, TabularPolicy(tilted(strength)[seen]))

    near, far = 0.0, STRONGEST
    if share(far) > overlap:
        raise TightropeError(
            f"overlap is {overlap:g}, but in this process the least is {share(far):.3g}: give more, or a longer horizon"
        )
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        near, far = (middle, far) if share(middle) > overlap else (near, middle)
    return behavior.copy() if overlap == 1 else tilted(far)
