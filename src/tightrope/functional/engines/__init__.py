"""Where the sums of replicates are computed. The engine takes the statistic; a statistic never imports an engine."""

from tightrope.functional.engines.local import Engine, Precision, Replicates, replicate
from tightrope.functional.engines.threads import Progress

__all__ = ["Engine", "Precision", "Progress", "Replicates", "replicate"]
