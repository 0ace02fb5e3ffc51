"""What a report shows beside the believed bounds: the exact ones, and the gain as a share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tightrope.base.beside import Lift
from tightrope.base.problem import Problem
from tightrope.base.records import About, Bound, Overlap, Summary
from tightrope.base.warnings import coded
from tightrope.evaluation.recommend import rules

CLEARLY = 5.0  # standard errors between the behaviour policy's mean return and 0, for a share of it to mean something


def exact_bounds(problem: Problem, overlap: Overlap, bounds: Sequence[Bound], about: About) -> tuple[Bound, ...]:
    """On each side the first computed bound of the rules for exact ones, unless it says nothing or rests on nothing.

    The rules are fixed beforehand: the tightest of several exact bounds would not be exact.
    """
    firsts = []
    for side in dict.fromkeys(bound.side for bound in bounds):
        own = {(bound.estimator, bound.method): bound for bound in bounds if bound.side == side}
        parts = [part for rule in rules(problem, overlap, side, about, strict=True) for part in rule.parts]
        firsts += [own[pair] for part in parts if (pair := (part.estimator, part.method)) in own][:1]
    finite = [bound for bound in firsts if bound.guarantee == "exact" and math.isfinite(bound.value)]
    return tuple(bound for bound in finite if not coded(bound.warnings, "vacuous", "mean-ratio"))


def lift(gains: Sequence[Bound], summary: Summary) -> Lift | None:
    """The gain and its bounds as shares of the behaviour policy's mean return; None where that may be about 0."""
    size = abs(summary.return_mean)
    if not gains or not size > CLEARLY * summary.return_error:
        return None
    sides = {bound.side: bound.value / size for bound in gains}
    return Lift(gains[0].estimate / size, sides.get("lower"), sides.get("upper"))
