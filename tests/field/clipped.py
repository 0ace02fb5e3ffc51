"""Per-decision importance sampling with ratios clipped at c."""

from __future__ import annotations

from tests.field import Entry, Question

FLOOR, LARGEST = -4.0, 1.5


def slow_limited(question: Question, limited) -> float:
    """a Σ_t γ^t + Σ_i w_i Σ_t γ^t ρ'_t (r_t − a) / Σ w, absorbing steps included."""
    floor = question.reward_range[0]
    total = length = 0.0
    for t in range(question.horizon):
        length += question.discount**t
        for weight, episode in zip(question.weights, question.episodes, strict=True):
            ratio = limited(episode.ratio(t))
            total += weight * question.discount**t * ratio * (episode.reward(t) - floor)
    return floor * length + total / sum(question.weights)


def slow(question: Question) -> float:
    return slow_limited(question, lambda ratio: min(ratio, LARGEST))


# Counted from −4 with a discount of 1/2: −4 · 1.5 = −6. The first episode: ratios 2, clipped to 1.5, then 1; 1.5 · 5 +
# ½ · 1 · 8 = 11.5. The second: ratio ½ and an absorbing step that earns 0, which is 4 above the floor; ½ · 10 +
# ½ · ½ · 4 = 6. −6 + (11.5 + 6) / 2 = 2.75; unclipped it would be −6 + (14 + 6) / 2 = 4.
ENTRY = Entry(
    slow,
    golden=2.75,
    settings={"largest": LARGEST},
    reward_range=(FLOOR, 6.0),
    exempt={"enumeration": "clipped ratios average to less than one: the mean lies below the value, by design"},
)
