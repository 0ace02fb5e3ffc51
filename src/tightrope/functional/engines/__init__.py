"""Where the sums of replicates are computed. The engine takes the statistic; a statistic never imports an engine."""

from tightrope.functional.engines.local import Replicates, replicate

__all__ = ["Replicates", "replicate"]
