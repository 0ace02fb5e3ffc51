"""Tethered values of episodes, step by step, compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tightrope.base.compiled import compiled


@compiled
def tethered_values(
    first_steps: Any, lengths: Any, rewards: Any, sign: Any, ratios: Any, taken: Any, probs: Any, reach: Any,
    q_values: Any, discount: Any, horizon: Any, floor: Any, width: Any, lowest_reward: Any, tethers: Any, values: Any,
) -> None:  # fmt: skip
    """X of each episode under each tether, into values (episodes, tethers).

    Steps of all episodes lie in the flat arrays from ``first_steps`` on; ``q_values`` (steps, choices) hold those of
    these episodes alone, one after the other. ``probs`` and ``reach`` (N, choices) are the candidate's probability and
    the largest ratio of each choice that the behaviour policy can make, ``taken`` (N,) which was made. Rewards and
    guesses count ``sign`` times; ``floor`` is then the lowest return, ``width`` how far above it the highest is.
    """
    rest = np.zeros(horizon + 1)  # Σ γ^k over the steps left
    for t in range(horizon - 1, -1, -1):
        rest[t] = 1.0 + discount * rest[t + 1]
    x = np.empty(len(tethers))
    row = 0
    for episode in range(len(lengths)):
        x[:] = 0.0
        weight, earned, shrink = 1.0, 0.0, 1.0
        for t in range(lengths[episode]):
            step = first_steps[episode] + t
            if weight > 0.0:
                sure = max(0.0, earned + lowest_reward * shrink * rest[t] - floor) if lowest_reward > -math.inf else 0.0
                mean, most, chosen = 0.0, 0.0, 0.0
                for a in range(probs.shape[1]):
                    if reach[step, a] > 0.0:
                        g = min(max(earned + shrink * (sign * q_values[row, a]) - floor, sure), width) - sure
                        mean += probs[step, a] * g
                        if g > 0.0:  # a ratio without a ceiling times nothing is nothing
                            most = max(most, reach[step, a] * g)
                        if a == taken[step]:
                            chosen = g
                danger, following = max(0.0, most - mean), weight * ratios[step]
                for k in range(len(tethers)):
                    room = tethers[k] + x[k] + weight * sure
                    share = 0.0
                    if tethers[k] == math.inf:
                        share = 1.0
                    elif tethers[k] > 0.0 and room > 0.0:
                        share = room / (room + weight * danger)
                    x[k] += weight * (sure + share * mean) - following * (sure + share * chosen)
                weight = following
            earned += shrink * (sign * rewards[step])
            shrink *= discount
            row += 1
        for k in range(len(tethers)):
            values[episode, k] = max(x[k] + weight * (earned - floor), -tethers[k])  # rounding alone could go below


@compiled
def mean_returns_to_come(offsets: Any, episodes: Any, rewards: Any, discount: Any, horizon: Any) -> Any:
    """The mean, over the episodes given, of the discounted return from each time to the end, (horizon,)."""
    sums, counts = np.zeros(horizon), np.zeros(horizon)
    for episode in episodes:
        to_come = 0.0
        for t in range(offsets[episode + 1] - offsets[episode] - 1, -1, -1):
            to_come = rewards[offsets[episode] + t] + discount * to_come
            sums[t] += to_come
            counts[t] += 1.0
    return sums / np.maximum(counts, 1.0)
