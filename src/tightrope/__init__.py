"""tightrope: how good is this policy, at worst, judging only from logs of another policy?"""

from tightrope.api import (
    advise,
    estimate,
    evaluate,
    interval,
    lower_bound,
    statistic,
    upper_bound,
)
from tightrope.dataset import TrajectoryDataset
from tightrope.errors import BoundError, DataError, NoOverlapError, PolicyError, StudyError, TightropeError
from tightrope.evaluation import Evaluation
from tightrope.policies import StatePolicy, softened
from tightrope.policy import (
    CallablePolicy,
    DeterministicControl,
    DeterministicPolicy,
    GaussianPolicy,
    MixturePolicy,
    Policy,
    SoftmaxPolicy,
    TabularPolicy,
    UniformPolicy,
    epsilon_softened,
)
from tightrope.readers import read, write
from tightrope.records import Advice, Bound, Interval
from tightrope.resampling import Bayesian, Multinomial, Poisson, draw_weights
from tightrope.settings import Options

__version__ = "0.1.0"

__all__ = [
    "Advice",
    "Bayesian",
    "Bound",
    "BoundError",
    "CallablePolicy",
    "DataError",
    "DeterministicControl",
    "DeterministicPolicy",
    "Evaluation",
    "GaussianPolicy",
    "Interval",
    "MixturePolicy",
    "Multinomial",
    "NoOverlapError",
    "Options",
    "Poisson",
    "Policy",
    "PolicyError",
    "SoftmaxPolicy",
    "StatePolicy",
    "StudyError",
    "TabularPolicy",
    "TightropeError",
    "TrajectoryDataset",
    "UniformPolicy",
    "advise",
    "draw_weights",
    "epsilon_softened",
    "estimate",
    "evaluate",
    "interval",
    "lower_bound",
    "read",
    "softened",
    "statistic",
    "upper_bound",
    "write",
]
