"""Per-decision importance sampling with shrunk ratios."""

from __future__ import annotations

from tests.field import Entry, Question
from tests.field.clipped import FLOOR, slow_limited

LARGEST = 1.0
STRENGTH = 4 * LARGEST**2  # λ


def slow(question: Question) -> float:
    return slow_limited(question, lambda ratio: STRENGTH * ratio / (ratio**2 + STRENGTH))


# As for clipped ratios, with λ = 4: ratios 2, 1 and ½ become 8/8 = 1, 4/5 = 0.8 and 2/4.25 = 8/17. The first episode:
# 1 · 5 + ½ · 0.8 · 8 = 8.2. The second: 8/17 · 10 + ½ · 8/17 · 4 = 96/17. −6 + (8.2 + 96/17) / 2 = −1.9 + 48/17.
ENTRY = Entry(
    slow,
    golden=-1.9 + 48 / 17,
    settings={"largest": LARGEST},
    reward_range=(FLOOR, 6.0),
    exempt={
        "enumeration": "shrunk ratios average to less than one: the mean lies below the value, by design",
        "on policy": "a ratio of one is shrunk too",
    },
)
