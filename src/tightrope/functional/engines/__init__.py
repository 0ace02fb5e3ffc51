"""Where the sums of replicates are computed. The engine takes the statistic; a statistic never imports an engine."""

from tightrope.functional.engines.base import Engine
from tightrope.functional.engines.local import EngineName, replicate
from tightrope.functional.engines.replicates import Replicates
from tightrope.functional.engines.sums import Precision
from tightrope.functional.engines.threads import Progress

__all__ = ["Engine", "EngineName", "Precision", "Progress", "Replicates", "replicate"]
