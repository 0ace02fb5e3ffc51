"""Small problems with exactly known values, for the demonstration and for measuring error rates.

They differ in what makes bounds err: the sign of the rewards, early ends, how far apart the policies are, and which way
the weighted returns are skewed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import TightropeError
from tightrope.base.names import must_be_one_of
from tightrope.base.policy import TabularPolicy
from tightrope.domains.cliff_walking import HORIZON, along_the_edge, cliff_walking
from tightrope.domains.finite import FiniteMDP


@dataclass(frozen=True, eq=False)
class SmallProblem:
    """A process, the policy that made the logs, and the candidate."""

    name: str  # as ``small`` knows it
    about: str  # what happens in it
    mdp: FiniteMDP  # the process
    behavior: TabularPolicy  # made the logs
    candidate: TabularPolicy  # is to be evaluated
    max_ratio: float  # no importance ratio can exceed it
    observe: tuple[int, ...] | None = None  # what is logged of each state, where some of it is hidden
    needs: str = ""  # which answer is right on these logs

    true_value_error: ClassVar[float] = 0.0
    behavior_value_error: ClassVar[float] = 0.0

    @cached_property
    def true_value(self) -> float:
        """The candidate's value, exactly."""
        return self.mdp.value(self._seen(self.candidate))

    @cached_property
    def behavior_value(self) -> float:
        """The behaviour policy's value, exactly."""
        return self.mdp.value(self._seen(self.behavior))

    def logs(self, n: int, *, rng: np.random.Generator) -> TrajectoryDataset:
        """n episodes of the behaviour policy, as the logger sees them."""
        data = self.mdp.simulate(self._seen(self.behavior), n, rng=rng, candidate=self._seen(self.candidate))
        if self.observe is None:
            return data
        assert data.states is not None
        seen = np.array(self.observe)[data.states]
        return replace(data, states=seen, final_states=None, behavior=self.behavior)

    def configuration(self) -> dict[str, Any]:
        """Every number; transitions as rows of (state, action, next state or end, probability, reward)."""
        mdp = self.mdp
        possible = np.argwhere(mdp.transition_probs > 0)
        chances, rewards = (table[tuple(possible.T)].tolist() for table in (mdp.transition_probs, mdp.rewards))
        return {
            "name": self.name,
            "states": len(mdp.start_probs),
            "horizon": mdp.horizon,
            "discount": mdp.discount,
            "max_ratio": self.max_ratio,
            "start_probs": mdp.start_probs.tolist(),
            "behavior": self.behavior.table.tolist(),
            "candidate": self.candidate.table.tolist(),
            "observe": None if self.observe is None else list(self.observe),
            "transitions": [[*row, p, r] for row, p, r in zip(possible.tolist(), chances, rewards, strict=True)],
        }

    def _seen(self, policy: TabularPolicy) -> TabularPolicy:
        """A policy over what is seen as one over states."""
        return policy if self.observe is None else TabularPolicy(policy.table[list(self.observe)])


def _walker() -> SmallProblem:
    """Six places on the rope. Careful steps rarely fail; running gets across sooner and falls more often."""
    places, horizon = 6, 12
    transition = np.zeros((places, 2, places + 1))
    rewards = np.full((places, 2, places + 1), -1.0)
    for place in range(places):
        for action, (advance, fall) in enumerate([(0.7, 0.01), (0.9, 0.06)]):
            across = place == places - 1
            transition[place, action, place] = 1 - advance - fall
            transition[place, action, places] += fall
            transition[place, action, places if across else place + 1] += advance
            # On the last place both ways end the episode; the fall's penalty is charged in expectation.
            rewards[place, action, places] = -1 - 20 * (fall / (advance + fall) if across else 1)
    start = np.eye(places)[0]
    return SmallProblem(
        "walker",
        "cross a rope in few steps without falling: negative rewards, episodes that end early",
        FiniteMDP(transition, rewards, start, horizon),
        TabularPolicy(np.tile([0.5, 0.5], (places, 1))),
        TabularPolicy(np.tile([0.7, 0.3], (places, 1))),
        max_ratio=1.4**horizon,
    )


def _bonus() -> SmallProblem:
    """Three states; the candidate seeks a reward that the behaviour policy rarely meets."""
    transition = np.zeros((3, 2, 4))
    transition[0] = [[0.8, 0.2, 0.0, 0.0], [0.2, 0.7, 0.1, 0.0]]
    transition[1] = [[0.5, 0.4, 0.0, 0.1], [0.1, 0.4, 0.4, 0.1]]
    transition[2] = [[0.3, 0.3, 0.4, 0.0], [0.0, 0.2, 0.7, 0.1]]
    rewards = np.zeros((3, 2, 4))
    rewards[1, 1], rewards[2, 0], rewards[2, 1] = 0.2, 0.5, 1.0
    behavior = np.array([[0.6, 0.4], [0.6, 0.4], [0.5, 0.5]])
    candidate = np.array([[0.4, 0.6], [0.4, 0.6], [0.3, 0.7]])
    return SmallProblem(
        "bonus",
        "seek a rare reward: positive rewards, discounted",
        FiniteMDP(transition, rewards, np.array([1.0, 0.0, 0.0]), horizon=8, discount=0.95),
        TabularPolicy(behavior),
        TabularPolicy(candidate),
        max_ratio=float((candidate / behavior).max()) ** 8,
    )


def _decline() -> SmallProblem:
    """Every step costs more the longer one stays; the candidate stays, the behaviour policy leaves."""
    transition = np.zeros((4, 2, 5))
    for state in range(4):
        transition[state, 0, min(state + 1, 3)] = 0.9
        transition[state, 0, 4] = 0.1
        transition[state, 1, 4] = 0.6
        transition[state, 1, state] = 0.4
    rewards = -np.array([0.2, 0.5, 1.0, 3.0])[:, None, None] * np.ones((4, 2, 5))
    behavior = np.tile([0.4, 0.6], (4, 1))
    candidate = np.tile([0.6, 0.4], (4, 1))
    return SmallProblem(
        "decline",
        "rare and costly: heavy ratios go with low returns, so weighted returns are skewed to the left",
        FiniteMDP(transition, rewards, np.array([0.7, 0.3, 0.0, 0.0]), horizon=10),
        TabularPolicy(behavior),
        TabularPolicy(candidate),
        max_ratio=1.5**10,
    )


def _clinic() -> SmallProblem:
    """One decision for a patient drawn from five groups: the one-step case."""
    cured = np.array([[0.3, 0.6], [0.5, 0.5], [0.7, 0.4], [0.2, 0.35], [0.9, 0.92]])
    transition = np.zeros((5, 2, 6))
    transition[..., 5] = 1.0
    rewards = np.zeros((5, 2, 6))
    # A one-step reward must depend on the outcome: split each group into cured and not by its next state.
    transition[..., 5] = cured
    transition[..., 0] = 1.0 - cured
    rewards[..., 5] = 1.0
    return SmallProblem(
        "clinic",
        "one treatment decision each, cured or not: the recommender's and the trial's case",
        FiniteMDP(transition, rewards, np.array([0.3, 0.25, 0.2, 0.15, 0.1]), horizon=1),
        TabularPolicy(np.tile([0.8, 0.2], (5, 1))),
        TabularPolicy(np.array([[0.1, 0.9], [0.5, 0.5], [0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])),
        max_ratio=4.5,
    )


def _cliff() -> SmallProblem:
    """Deterministic moves, where a model explains its own data without any error."""
    return SmallProblem(
        "cliff",
        "walk along a cliff: deterministic moves, rare and costly falls, pairs that were never logged",
        cliff_walking(),
        along_the_edge(0.3),
        along_the_edge(0.2),
        max_ratio=float((0.85 / 0.775) ** HORIZON),
    )


def _rare() -> SmallProblem:
    """Every step may, very rarely, end in a disaster: two logs of fifty episodes in five hold none."""
    places, loss = 3, -50.0
    transition = np.zeros((places, 2, places + 1))
    rewards = np.zeros((places, 2, places + 1))
    for place in range(places):
        for action, (disaster, pay) in enumerate([(0.0035, 0.5), (0.003, 1.2)]):
            transition[place, action, place] = 0.5
            transition[place, action, (place + 1) % places] = 0.5 - disaster
            transition[place, action, places] = disaster
            rewards[place, action] = pay
            rewards[place, action, (place + 1) % places] += 0.6
            rewards[place, action, places] = loss
    return SmallProblem(
        "rare",
        "a loss so rare that logs of fifty episodes often hold none",
        FiniteMDP(transition, rewards, np.eye(places)[0], horizon=5),
        TabularPolicy(np.tile([0.5, 0.5], (places, 1))),
        TabularPolicy(np.tile([0.3, 0.7], (places, 1))),
        max_ratio=1.4**5,
    )


SMALL: dict[str, Callable[[], SmallProblem]] = {
    "walker": _walker,
    "bonus": _bonus,
    "decline": _decline,
    "clinic": _clinic,
    "cliff": _cliff,
    "rare": _rare,
}


SWAPPED = ", swapped"


def small(name: str) -> SmallProblem:
    """A problem by name; "bonus, swapped" is "bonus" with its two policies exchanged, so that the gain changes sign."""
    plain = name.removesuffix(SWAPPED)
    if plain not in SMALL:
        raise TightropeError(must_be_one_of("problem", name, SMALL))
    problem = SMALL[plain]()
    if plain == name:
        return problem
    old, new = problem.candidate, problem.behavior
    largest = float((new.table / old.table).max()) ** problem.mdp.horizon
    return replace(
        problem, name=name, about=f"{plain} the other way round", behavior=old, candidate=new, max_ratio=largest
    )
