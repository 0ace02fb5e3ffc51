"""One side of a monitor: gamblers who bet, in order of arrival, that the mean is larger than it is said to be.

A gambler who bets λ_i that X_i exceeds m has the wealth Π_i (1 + λ_i (X_i − m)). X_i is a tethered value, so its mean
given the past is V − floor whatever its model and its tether were, as long as these, and λ_i, come from earlier
episodes. Against m = V − floor the wealth is then a non-negative martingale that starts at 1, and so is its average
over gamblers. By Ville's inequality it ever reaches 1/δ with probability at most δ. Each factor falls in m, so the
means that are refuted at some time are an interval from the floor, and the true one is ever among them with
probability at most δ.

A bet that is best for 100 episodes is too bold for 10,000. So three gamblers share the start equally, each of whom
plans for another number of episodes, and later for as many as there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.base.dataset import Array, IntArray
from tightrope.bounds.exact.betting import MOST_STAKE, plan_of

AIMS: Array = np.array([1e2, 1e3, 1e4])  # episodes that each gambler plans for
POINTS = 10_000  # means that are bet against; a bound is rounded to one of them, to the safe side
LENGTHS: Array = np.concatenate([[0.0], np.ldexp(1.0, np.arange(-8, 3))])  # tethers, of the range's width
PLANNED = 1000  # values that a bet is planned on
MARGIN = 1e-9  # of log-wealth: what rounding may add up to


@dataclass(eq=False)
class Game:
    """The wealth of all gamblers on one side, and how they will bet next."""

    width: float  # of the declared range
    delta: float
    limited: bool  # whether a step's ratio has a limit, without which there is no tether
    logs: Array  # (gamblers, POINTS): log-wealth
    live: IntArray  # (2,): how many means are refuted; where those begin that are given up
    chosen: IntArray  # (gamblers,): which tether
    bets: Array  # (gamblers,): λ
    stakes: Array  # (gamblers,): the largest share of what could be lost

    @classmethod
    def new(cls, width: float, delta: float, *, limited: bool) -> Game:
        """Nothing is known: no tether, and small stakes."""
        n = len(AIMS)
        return cls(
            width, delta, limited, np.zeros((n, POINTS)), np.array([0, POINTS]), np.zeros(n, dtype=np.int64),
            np.full(n, np.inf), np.minimum(0.5, np.sqrt(2 * np.log(1 / delta) / (3 * AIMS))),
        )  # fmt: skip

    @property
    def tethers(self) -> Array:
        """The lengths to choose from."""
        return (LENGTHS if self.limited else LENGTHS[:1]) * self.width

    @property
    def means(self) -> Array:
        """The means that are bet against: the last is the largest possible."""
        return self.width * np.arange(1, POINTS + 1) / POINTS

    def refuted(self, count: int) -> float:
        """The largest of so many refuted means; what lies above it may be true."""
        return self.width * count / POINTS

    def bet(self, table: Array, ends: IntArray) -> IntArray:
        """Bet on values (episodes, tethers); how many means are refuted after each of these numbers of episodes."""
        from tightrope.decisions.monitoring import kernels

        reached = np.empty(len(ends), dtype=np.int64)
        values = np.ascontiguousarray(table[:, self.chosen])
        kernels.advance(
            self.logs, self.means, self.live, values, self.bets, self.stakes, self.tethers[self.chosen],
            ends, float(np.log(1 / self.delta)) + MARGIN, reached,
        )  # fmt: skip
        return reached

    def plan(self, past: Array, count: int) -> None:
        """Choose tethers and bets that would have served best on these values, (past, tethers), of count episodes."""
        if len(past) > PLANNED:
            past = past[:: -(-len(past) // PLANNED)]
        needed = np.log(len(AIMS) / self.delta)
        for j, aim in enumerate(AIMS):
            self.chosen[j], self.bets[j] = plan_of(past, self.tethers, float(needed / max(aim, count)))
        self.stakes[:] = MOST_STAKE
