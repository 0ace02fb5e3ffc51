"""Lepski's choice among PDIS, PDWIS and WIS."""

from __future__ import annotations

from math import sqrt

from tests.field import Entry, Question

RANGE, WIDTH = (-4.0, 6.0), 0.1
Member = tuple[float, list[float]]  # a value and its derivative by each weight


def pdis(question: Question) -> Member:
    """Counted from the floor: the derivative of a weighted mean by w_i is (x_i − mean) / Σ w."""
    floor, total = question.reward_range[0], sum(question.weights)
    values = [
        sum(question.discount**t * episode.ratio(t) * (episode.reward(t) - floor) for t in range(question.horizon))
        for episode in question.episodes
    ]
    mean = sum(w * x for w, x in zip(question.weights, values, strict=True)) / total
    length = sum(question.discount**t for t in range(question.horizon))
    return floor * length + mean, [(x - mean) / total for x in values]


def wis(question: Question) -> Member:
    """That of a ratio of sums: ρ_i (G_i − value) / Σ w ρ."""
    ratios = [episode.ratio(question.horizon - 1) for episode in question.episodes]
    returns = [episode.discounted_return(question.discount) for episode in question.episodes]
    below = sum(w * r for w, r in zip(question.weights, ratios, strict=True))
    value = sum(w * r * g for w, r, g in zip(question.weights, ratios, returns, strict=True)) / below
    return value, [r * (g - value) / below for r, g in zip(ratios, returns, strict=True)]


def pdwis(question: Question) -> Member:
    """The same at every time, summed."""
    total, slopes = 0.0, [0.0] * len(question.episodes)
    for t in range(question.horizon):
        pairs = [(episode.ratio(t), episode.reward(t)) for episode in question.episodes]
        below = sum(w * ratio for w, (ratio, _) in zip(question.weights, pairs, strict=True))
        value = sum(w * ratio * reward for w, (ratio, reward) in zip(question.weights, pairs, strict=True)) / below
        total += question.discount**t * value
        for i, (ratio, reward) in enumerate(pairs):
            slopes[i] += question.discount**t * ratio * (reward - value) / below
    return total, slopes


def covariance(question: Question, one: list[float], other: list[float]) -> float:
    """Σ w_i s_i s'_i · Σw / (n − 1)."""
    total, n = sum(question.weights), len(question.episodes)
    return sum(w * a * b for w, a, b in zip(question.weights, one, other, strict=True)) * total / (n - 1)


def slow(question: Question) -> float:
    chosen, lowest, highest = None, -float("inf"), float("inf")
    for value, slopes in (pdis(question), pdwis(question), wis(question)):
        reach = 2 * WIDTH * sqrt(covariance(question, slopes, slopes))
        lowest, highest = max(lowest, value - reach), min(highest, value + reach)
        if lowest > highest:
            break
        chosen = value
    return chosen


# PDIS from the floor of −4: −6 and the mean of 2·5 + ½·8 = 14 and ½·10 + ½·½·4 = 6, so 4; derivatives ±2, standard
# error √(2 · (4 + 4)) = 4. PDWIS: at first (2·1 + ½·6) / 2.5 = 2, then ½ · 4 / 1.5 = 4/3: 10/3; derivatives
# ∓(4/5 − 4/9) = ∓16/45, standard error 32/45. WIS: (1·3 + ½·6) / 1.5 = 4; derivatives ∓2/3, standard error 4/3.
# Intervals of 0.2 standard errors: 3.2 to 4.8, then 3.19 to 3.48, which meets it, then 3.73 to 4.27, which does not:
# PDWIS. Standard errors know the number of episodes, so copies of logs could change a choice; of these they do not.
ENTRY = Entry(
    slow,
    golden=10 / 3,
    settings={"choices": ("pdis", "pdwis", "wis"), "width": WIDTH},
    reward_range=RANGE,
)
