"""Where the sums of replicates are computed. The engine takes the statistic; a statistic never imports an engine."""

from tightrope.functional.engines.local import Precision, Replicates, replicate
from tightrope.functional.engines.threads import Progress

__all__ = ["Precision", "Progress", "Replicates", "replicate"]
