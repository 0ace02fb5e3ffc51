"""Random rewards, and what is declared of them and of the ratios: always true of the logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.oracle import Episode

Rng = np.random.Generator
Ends = tuple[float | None, float | None]


def with_rewards(rng: Rng, episodes: list[Episode]) -> list[Episode]:
    """Rewards of either sign, of any size, constant, whole, or zero."""
    kind = str(
        rng.choice(["real", "whole", "binary", "half", "constant", "zero"], p=[0.35, 0.2, 0.15, 0.2, 0.05, 0.05])
    )
    sign = int(rng.choice([-1, 0, 1]))
    size = 1.0
    if kind in ("real", "constant") and rng.random() < 0.25:
        size = float(10.0 ** rng.integers(-140, 71))
    draw = {
        "real": lambda k: rng.normal(size=k) * size,
        "whole": lambda k: rng.integers(-100, 101, size=k).astype(float),
        "binary": lambda k: rng.integers(0, 2, size=k).astype(float),
        "half": lambda k: rng.integers(-8, 9, size=k) / 2,
        "constant": lambda k: np.full(k, 0.7 * size),
        "zero": np.zeros,
    }[kind]
    made = []
    for e in episodes:
        rewards = draw(len(e.rewards))
        if sign and kind != "binary":
            rewards = sign * np.abs(rewards)
        made.append(replace(e, rewards=[float(r) + 0.0 for r in rewards]))  # no negative zero
    return made


def ranges(rng: Rng, episodes: list[Episode], discount: float) -> tuple[Ends | None, Ends | None]:
    """What is declared of rewards and returns; always true of the logs."""
    rewards = [r for e in episodes for r in e.rewards]
    returns = [e.discounted_return(discount) for e in episodes]
    spans: list[Ends | None] = []
    for seen, chance in ((rewards, 0.75), (returns, 0.25)):
        low, high = min(seen), max(seen)
        room = (high - low) or abs(low) or 1.0
        share = float(rng.choice([0.0, 0.1, 1.0])) if high > low and seen is rewards else float(rng.choice([0.1, 1.0]))
        ends: list[float | None] = [low - share * room, high + share * room]
        if rng.random() < 0.15:
            ends[int(rng.integers(2))] = None
        spans.append((ends[0], ends[1]) if rng.random() < chance else None)
    return spans[0], spans[1]


def max_ratio(rng: Rng, episodes: list[Episode], horizon: int) -> float | None:
    if rng.random() < 0.3:
        return None
    largest = max(e.ratio(t) for e in episodes for t in range(horizon))
    return max(largest, 1.0) * float(rng.choice([1.0001, 2.0, 10.0]))
