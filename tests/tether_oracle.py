"""Slow and obvious: the value of an episode on a tether, step by step. Nothing here imports tightrope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from tests.oracle import Episode

Probs = Callable[[int, int], Sequence[float]]  # (state, time) to the probability of each action
Q = Callable[[int, int, int], float]  # (state, action, time) to a guess of the return still to come


@dataclass(frozen=True)
class Range:
    """What was declared: the return lies between ``low`` and ``high``, a reward is at least ``reward``."""

    low: float
    high: float = inf
    reward: float = -inf

    def sure(self, earned: float, t: int, discount: float, horizon: int) -> float:
        """What the return surely exceeds its floor by, given what was earned before time t."""
        if self.reward == -inf:
            return 0.0
        rest = sum(discount**k for k in range(t, horizon))
        return max(0.0, earned + self.reward * rest - self.low)


def tethered(
    e: Episode, candidate: Probs, behavior: Probs, q: Q, declared: Range, discount: float, horizon: int, tether: float
) -> tuple[float, float]:
    """X, not clamped, and the lowest that x + W ℓ came to on the way."""
    x, w, earned, lowest = 0.0, 1.0, 0.0, 0.0
    for t, (s, taken, reward) in enumerate(zip(e.states, e.actions, e.rewards, strict=True)):
        if w == 0:
            break
        p, b = candidate(s, t), behavior(s, t)
        actions = [a for a in range(len(p)) if b[a] > 0]
        sure = declared.sure(earned, t, discount, horizon)
        guess = {}
        for a in actions:
            total = earned + discount**t * q(s, a, t) - declared.low
            guess[a] = min(max(total, sure), declared.high - declared.low) - sure
        mean = sum(p[a] * guess[a] for a in actions)
        danger = max(0.0, *(p[a] / b[a] * guess[a] - mean for a in actions))
        room = tether + x + w * sure
        share = room / (room + w * danger) if 0 < tether < inf and room > 0 else float(tether == inf)
        following = w * p[taken] / b[taken]
        x += w * (sure + share * mean) - following * (sure + share * guess[taken])
        lowest = min(lowest, x + following * sure)
        w, earned = following, earned + discount**t * reward
    earned = sum(discount**t * r for t, r in enumerate(e.rewards))
    return x + w * (earned - declared.low), lowest


def blind(
    e: Episode,
    g: Callable[[int], float],
    most: float,
    declared: Range,
    discount: float,
    horizon: int,
    tether: float,
) -> float:
    """The same where nothing is known but logged ratios, guesses by time and a ceiling of a step's ratio."""
    ratios = [p / b for p, b in zip(e.candidate, e.behavior, strict=True)]
    x, w, earned = 0.0, 1.0, 0.0
    for t, reward in enumerate(e.rewards):
        sure = declared.sure(earned, t, discount, horizon)
        total = earned + discount**t * g(t) - declared.low
        guess = min(max(total, sure), declared.high - declared.low) - sure
        room = tether + x + w * sure
        below = room + w * guess * max(0.0, most - 1)
        share = room / below if tether > 0 and room > 0 else 0.0
        x += w * (sure + share * guess) - w * ratios[t] * (sure + share * guess)
        w, earned = w * ratios[t], earned + discount**t * reward
    return x + w * (earned - declared.low)


def rising_floor(e: Episode, declared: Range, discount: float, horizon: int) -> float:
    """Importance sampling from a rising floor: each rise is weighted by the ratio of the actions up to it."""
    value, earned = declared.sure(0.0, 0, discount, horizon), 0.0
    for t, reward in enumerate(e.rewards):
        before, earned = declared.sure(earned, t, discount, horizon), earned + discount**t * reward
        last = t + 1 == len(e.rewards)
        after = earned - declared.low if last else declared.sure(earned, t + 1, discount, horizon)
        value += e.ratio(t) * (after - before)
    return value
