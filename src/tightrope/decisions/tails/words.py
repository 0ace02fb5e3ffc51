"""What a distribution says about the tail, in sentences: what is safe to say first, then the other side."""

from __future__ import annotations

import math

from tightrope.base.clusters import counted
from tightrope.base.rounding import outward
from tightrope.decisions.tails.record import Distribution, Tail


def sentences(shape: Distribution) -> list[str]:
    """One sentence for each thing that was named."""
    return [_sentence(tail) for tail in shape.tails]


def standing(shape: Distribution) -> str:
    """What kind of bounds these are, and how far they hold together."""
    if shape.guarantee == "exact":
        return f"Exact: all lines hold together with confidence {shape.confidence:g}."
    those = counted(shape.n_trajectories, shape.n_clusters)
    return (
        f"Approximate, from {shape.n_resamples} resamples of {those}: each line holds alone with confidence "
        f"{shape.confidence:g}. --strict gives exact bounds."
    )


def number(value: float, side: str = "") -> str:
    """A number in a few digits; a lower bound is rounded down and an upper one up."""
    turned = outward(value, "lower" if side == "lower" else "upper") if side else value
    return "nothing" if math.isinf(value) else f"{turned + 0.0:.4g}"


def _sentence(tail: Tail) -> str:
    low, high, estimate = number(tail.lower, "lower"), number(tail.upper, "upper"), number(tail.estimate)
    if tail.kind == "below":
        return f"A return below {tail.at:g} has a probability of at most {high} (at least {low}; estimate {estimate})."
    share = f"{100 * tail.at:g} %"
    if tail.kind == "cvar":
        return f"The lowest {share} of returns have a mean of at least {low} (at most {high}; estimate {estimate})."
    return f"The {share} quantile of returns is at least {low} (at most {high}; estimate {estimate})."
