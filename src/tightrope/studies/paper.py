"""The experiments of "Bootstrapping with Models", as studies: its methods as it paired them, and what it did not cross.

Labels: the estimator, then how its model is fitted. A line of the tables is ``label/bound``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.domains import CliffWorld, Domain
from tightrope.estimators import IS, MB, PDIS, PDWIS, WDR, WIS, Estimator
from tightrope.estimators.base import Anchor
from tightrope.functional.statistic import FittedStatistic
from tightrope.models import LinearModel, PolynomialModel, Rollouts, TabularModel
from tightrope.models.tabular.rollouts import Noise
from tightrope.studies.study import Method, Study

SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
ALL = ("percentile", "bca", "studentized")
ROLLOUTS = 100  # of the paper's Monte Carlo evaluation of a tabular model; the number is ours
NOISES: tuple[Noise, ...] = ("frozen", "fresh")  # the same uniform numbers for all replicates, or each its own


@dataclass(frozen=True)
class Normalized(Estimator):
    """IS or PDIS counted from the end of a range that the logs themselves do not declare.

    The paper maps returns and rewards to [0, 1] in CliffWorld too, where pushes are Gaussian and nothing is a true
    floor: this range is one that a push six standard deviations out does not leave, good for a bootstrap and not for
    an exact bound.
    """

    estimator: IS | PDIS
    span: tuple[float, float]

    @property
    def name(self) -> str:
        """The name of the estimator within."""
        return self.estimator.name

    def preference(self, dataset: TrajectoryDataset) -> int:
        """That of the estimator within."""
        return self.estimator.preference(dataset)

    def anchored(self, anchor: Anchor) -> Self:
        """Count from the floor or from the ceiling."""
        return replace(self, estimator=self.estimator.anchored(anchor))

    def __call__(self, problem: Problem) -> FittedStatistic:
        """The statistic of the candidate's value."""
        ranges: dict[str, Any] = {"reward_range": None, "return_range": None}
        ranges["return_range" if isinstance(self.estimator, IS) else "reward_range"] = self.span
        return self.estimator(Problem(replace(problem.dataset, **ranges), problem.policy))


def mountain_car_methods(domain: Domain) -> tuple[Method, ...]:
    """Tabular models; a pair never logged leads back to its state and costs 1, as every decision does."""
    return (
        Method("is", IS(), (*ALL, "betting")),
        Method("is-raw", IS(normalize=False), ("percentile", "bca")),
        Method("pdis", PDIS(), ALL),
        Method("wis", WIS(), ALL),
        Method("pdwis", PDWIS(), ALL),
        Method("mb", MB(), ("percentile", "bca")),
        *(
            Method(f"mb-{noise}", MB(TabularModel(rollouts=Rollouts(ROLLOUTS, noise))), ("percentile",), 32, 512, 50)
            for noise in NOISES
        ),
        Method("wdr", WDR(fit="shared"), ALL),
        Method("wdr-cross", WDR(), ALL),
        Method("wdr-refit", WDR(fit="refit"), ("percentile",), largest=512, trials=50),
    )


def cliff_world_methods(domain: Domain) -> tuple[Method, ...]:
    """Regression models, rewards and ends known; linear is the true class, polynomial is not."""
    assert isinstance(domain, CliffWorld)
    return (*_sampling(domain), *_modelled(domain, "lr", LinearModel), *_modelled(domain, "pr", PolynomialModel))


def shifted_methods(domain: Domain) -> tuple[Method, ...]:
    """What depends on where the origin is: the polynomial model, beside the best of importance sampling."""
    assert isinstance(domain, CliffWorld)
    return (Method("pdwis", PDWIS(), ("percentile", "bca")), *_modelled(domain, "pr", PolynomialModel))


def repair_methods(domain: Domain) -> tuple[Method, ...]:
    """What the paper's WDR with a linear model is missing, on more data sets."""
    assert isinstance(domain, CliffWorld)
    return (
        Method("wis", WIS(), ALL),
        Method("pdwis", PDWIS(), ALL),
        Method("wdr-lr", WDR(_model(domain, LinearModel, 2), fit="shared"), ALL),
        Method("wdr-lr-cross", WDR(_model(domain, LinearModel, 2)), ALL),
        Method("wdr-lr-precise", WDR(_model(domain, LinearModel, 10), fit="shared"), ALL),
    )


def _sampling(domain: CliffWorld) -> tuple[Method, ...]:
    farthest, push = 2 * domain.size, 2 * (domain.max_push + 6 * domain.variance_ratio**0.5 * domain.candidate_noise)
    step = farthest + push
    returns = Normalized(IS(), (-step * domain.horizon - domain.fall_cost, 0.0))
    rewards = Normalized(PDIS(), (-step - domain.fall_cost, 0.0))
    return (
        Method("is", returns, ("percentile", "bca")),
        Method("is-raw", IS(), ("percentile", "bca")),
        Method("pdis", rewards, ("percentile", "bca")),
        Method("wis", WIS(), ALL),
        Method("pdwis", PDWIS(), ALL),
    )


def _modelled(domain: CliffWorld, suffix: str, model: Any) -> tuple[Method, ...]:
    return (
        Method(f"mb-{suffix}", MB(_model(domain, model, 2)), ("percentile",)),
        Method(f"wdr-{suffix}", WDR(_model(domain, model, 2), fit="shared"), ALL),
        Method(f"wdr-{suffix}-cross", WDR(_model(domain, model, 2)), ALL),
    )


def _model(domain: CliffWorld, model: Any, n_rollouts: int) -> Any:
    return model(
        reward=domain.reward,
        terminated=domain.terminated,
        n_rollouts=n_rollouts,
        point_rollouts=100_000,  # the estimate itself must be surer than the bootstrap's spread at n = 2048
        replicate_rollouts=128,
    )


PAPER: dict[str, Study] = {
    study.id: study
    for study in (
        Study("mountain-car", "mountain-car", SIZES, 400, mountain_car_methods, about="the paper's first domain"),
        Study("cliff-world", "cliff-world", SIZES, 100, cliff_world_methods, about="the paper's second domain"),
        Study(
            "cliff-world-shifted",
            "cliff-world-shifted",
            (2, 8, 32, 128, 512, 2048),
            100,
            shifted_methods,
            about="the same with another origin, on which a polynomial model depends",
        ),
        Study(
            "cliff-world-repairs",
            "cliff-world",
            (16, 128),
            400,
            repair_methods,
            about="what repairs the bounds that err in CliffWorld",
            seed=1,
        ),
    )
}
QUICK_SIZES = (2, 8, 32, 128, 512)


def quick(study: Study) -> Study:
    """The same at a size that takes a minute or so: the orderings show, the error rates hardly."""
    sizes = tuple(n for n in study.sizes if n in QUICK_SIZES)
    return replace(study, id=f"{study.id}-quick", sizes=sizes, trials=16, n_resamples=500)
