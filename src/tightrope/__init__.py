"""tightrope: how good is this policy, at worst, judging only from logs of another policy?"""

from tightrope.adapters import StatePolicy, greedy, softened
from tightrope.adapters.log import log_episodes
from tightrope.api import (
    advise,
    estimate,
    evaluate,
    interval,
    lower_bound,
    statistic,
    upper_bound,
)
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import (
    BoundError,
    DataError,
    MissingBoundError,
    NoOverlapError,
    PolicyError,
    StudyError,
    TightropeError,
)
from tightrope.base.policy import (
    CallablePolicy,
    DeterministicControl,
    DeterministicPolicy,
    GaussianPolicy,
    MixturePolicy,
    Policy,
    SoftmaxPolicy,
    TabularPolicy,
    UniformPolicy,
)
from tightrope.base.records import Advice, Bound, Interval
from tightrope.base.warnings import Caution
from tightrope.decisions.comparing import compare
from tightrope.decisions.constraints import Constrained, Demand, constrained
from tightrope.decisions.distribution import distribution
from tightrope.decisions.improve import improve
from tightrope.decisions.improvement.record import Improvement
from tightrope.decisions.monitoring import Look, Monitor
from tightrope.decisions.planning import plan
from tightrope.decisions.shown import Comparison, Plan
from tightrope.decisions.tails.record import Distribution, Tail
from tightrope.functional.resampling import Bayesian, Multinomial, Poisson, draw_weights
from tightrope.io import read, write
from tightrope.report.evaluation import Evaluation

__version__ = "0.1.0"

__all__ = [
    "Advice",
    "Bayesian",
    "Bound",
    "BoundError",
    "CallablePolicy",
    "Caution",
    "Comparison",
    "Constrained",
    "DataError",
    "Demand",
    "DeterministicControl",
    "DeterministicPolicy",
    "Distribution",
    "Evaluation",
    "GaussianPolicy",
    "Improvement",
    "Interval",
    "Look",
    "MissingBoundError",
    "MixturePolicy",
    "Monitor",
    "Multinomial",
    "NoOverlapError",
    "Plan",
    "Poisson",
    "Policy",
    "PolicyError",
    "SoftmaxPolicy",
    "StatePolicy",
    "StudyError",
    "TabularPolicy",
    "Tail",
    "TightropeError",
    "TrajectoryDataset",
    "UniformPolicy",
    "advise",
    "compare",
    "constrained",
    "distribution",
    "draw_weights",
    "estimate",
    "evaluate",
    "greedy",
    "improve",
    "interval",
    "log_episodes",
    "lower_bound",
    "plan",
    "read",
    "softened",
    "statistic",
    "upper_bound",
    "write",
]
