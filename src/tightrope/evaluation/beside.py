"""What a report shows beside the believed bounds: the gain as a share."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.base.beside import Lift
from tightrope.base.records import Bound, Summary

CLEARLY = 5.0  # standard errors between the behaviour policy's mean return and 0, for a share of it to mean something


def lift(gains: Sequence[Bound], summary: Summary) -> Lift | None:
    """The gain and its bounds as shares of the behaviour policy's mean return; None where that may be about 0."""
    size = abs(summary.return_mean)
    if not gains or not size > CLEARLY * summary.return_error:
        return None
    sides = {bound.side: bound.value / size for bound in gains}
    return Lift(gains[0].estimate / size, sides.get("lower"), sides.get("upper"))
