"""Fitted Q evaluation: regress what was earned, plus what the candidate would earn from there, on what was done.

Backwards over time, q̂_t(s, a) predicts r + γ v̂_{t+1}(s') with v̂_{t+1}(s') = E_{a ~ π_e} q̂_{t+1}(s', a), and v̂ = 0 after
an end and after the horizon. All steps of all times teach every q̂_t: the process is taken to be the same at all times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tightrope.base.dataset import Array, BoolArray, TrajectoryDataset
from tightrope.base.errors import DataError, PolicyError
from tightrope.base.policy import Actor, DiscretePolicy, as_actor, open_uniforms
from tightrope.base.problem import Problem
from tightrope.models.fitted.bases import FeatureMap, MapBasis, PairBasis, linear, plain
from tightrope.models.fitted.linear import LinearQ, Unseen
from tightrope.models.fitted.regressed import RegressedQ
from tightrope.models.fitted.steps import Steps, following_places, stacked
from tightrope.models.fitted.sums import QSums, orthonormal
from tightrope.models.learner import Learner
from tightrope.models.rollouts.transitions import Transitions
from tightrope.models.tabular.model import TabularModel, is_numbered, numbered, policy_table


@dataclass(frozen=True)
class FittedQ:
    """Fitted Q evaluation, linear in features, by sums per episode: a refit is one product and a few small solves.

    Features are one for every pair where states and actions are numbered (then it is the tabular model, and its values
    are the same); else 1 and s for every discrete action, or 1, s and a; or what ``features(states, actions)``
    returns, (N, p), for rows as logged. A step of which nobody logged what follows teaches rewards and nothing else.
    Pairs without weight are worth what they are in the tabular model: the lowest reward, and the state stays.

    With a ``regressor`` every row of weights takes a fit for each time, of a copy, with the episodes' weights as
    ``sample_weight``; X are the features, which are then s and a unless given. Steps of which nobody logged what
    follows teach the last time alone.

    Wrong where q̂ is not linear in the features, and no resampling shows it. Le, Voloshin and Yue (2019), "Batch Policy
    Learning under Constraints"; Hao et al. (2021), "Bootstrapping Fitted Q-Evaluation for Off-Policy Inference":
    resample whole episodes.
    """

    name: ClassVar[str] = "fitted-q"

    features: FeatureMap | None = None  # of states and actions as logged; None: pairs, or linear
    regressor: Any = None  # instead of least squares: fit(X, y, sample_weight=...) and predict(X), as scikit-learn has
    stationary: bool = False  # declared: the candidate does not change with time, so it is asked once about each state
    draws: int = 32  # actions of a candidate that does not list them, in mirrored pairs, the same draws everywhere
    seed: int = 0  # of these draws, and of a regressor's random_state that is None
    unseen_reward: float | None = None  # of a pair without weight; None: the lowest (highest, for an upper bound)

    def __post_init__(self) -> None:
        if not isinstance(self.draws, int) or self.draws < 2 or self.draws % 2:
            raise DataError(f"draws must be an even number, at least 2, because they come in pairs; got {self.draws!r}")
        TabularModel(unseen_reward=self.unseen_reward)  # refuses what is no reward

    def prepare(self, problem: Problem, *, anchor: str) -> LinearQ | RegressedQ:
        """The sums of these logs; refuses logs that do not determine the coefficients."""
        learner = None if self.regressor is None else Learner(self.regressor, self.seed)
        data = problem.coded.dataset
        pairs = self.features is None and is_numbered(data.states) and is_numbered(data.actions)
        steps = self._pairs(problem.coded) if pairs else self._mapped(problem)
        if learner is not None:
            return RegressedQ(steps, learner)
        if not isinstance(steps.basis, PairBasis):
            return LinearQ(steps, QSums.of(steps, orthonormal(steps)), None)
        sums, probs = QSums.of(steps, None), steps.basis.probs
        _, n_states, n_actions = probs.shape
        times = steps.typical_times
        loops, each = np.zeros((len(times), n_states, n_actions, n_states, n_actions)), np.arange(n_states)
        loops[:, each, :, each] = np.swapaxes(probs[times], 0, 1)[:, :, None]
        reward = TabularModel(unseen_reward=self.unseen_reward).reward_of_unseen(steps.data, anchor)
        return LinearQ(steps, sums, Unseen(reward, loops.reshape(len(times), sums.width, sums.width)))

    def _pairs(self, problem: Problem) -> Steps:
        """A feature for every pair."""
        data, policy = problem.dataset, problem.policy
        if not isinstance(policy, DiscretePolicy):
            raise PolicyError(
                "fitted-q must have the policy itself (probs(states, t)), because it evaluates the candidate beyond "
                "the logged actions; its probabilities of the logged actions are not enough"
            )
        final_known = _final_known(data, whole=True)
        states, actions = numbered("state", stacked(data, final_known)), numbered("action", data.actions)
        labels = np.unique(states)
        probs, action_labels = policy_table(policy, labels, actions, data.horizon)
        place, taken = np.searchsorted(labels, states), np.searchsorted(action_labels, actions)
        n_actions = len(action_labels)
        basis = PairBasis(place, place[: data.n_steps] * n_actions + taken, probs)
        return Steps(data, basis, following_places(data, final_known), self.stationary)

    def _mapped(self, problem: Problem) -> Steps:
        """Features that are a function of states and actions."""
        data, policy = problem.dataset, problem.policy
        if data.states is None or data.actions is None or data.actions.dtype.kind == "U":
            raise DataError("fitted-q must have states, and actions that are numbers, at every step; number them")
        final_known = _final_known(data, whole=False)
        states = stacked(data, final_known)
        actor: DiscretePolicy | Actor = policy if isinstance(policy, DiscretePolicy) else as_actor(policy)
        uniforms = self._uniforms(actor)
        if self.features is None:
            function, names = (plain if self.regressor is not None else linear)(Transitions.of(data))
        else:
            function = self.features
            width = np.shape(function(data.states[:1], data.actions[:1]))[-1:]
            names = [f"feature {k}" for k in range(*width)] if width else []
        basis = MapBasis(states, data.actions, function, names, actor, uniforms)
        return Steps(data, basis, following_places(data, final_known), self.stationary)

    def _uniforms(self, policy: DiscretePolicy | Actor) -> Array:
        """The noise with which the candidate acts in every state; none where it lists its actions or needs none."""
        if isinstance(policy, DiscretePolicy):
            return np.zeros((0, 0))
        if policy.noise_width == 0:
            return np.zeros((1, 0))
        half = open_uniforms(np.random.default_rng(self.seed), (self.draws // 2, policy.noise_width))
        return np.concatenate([half, 1.0 - half])


def _final_known(data: TrajectoryDataset, *, whole: bool) -> BoolArray:
    """Whether the logs hold the state after each episode's last step, (n,)."""
    final = data.final_states
    if final is None or final.dtype.kind not in ("iu" if whole else "iuf"):
        return np.zeros(data.n_trajectories, dtype=np.bool_)
    rows = final.reshape(len(final), -1)
    return np.asarray((rows >= 0).all(axis=1) if whole else np.isfinite(rows).all(axis=1))
