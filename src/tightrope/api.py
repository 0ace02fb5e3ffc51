"""The public calls, thin over the rest: estimate, statistic, lower_bound, upper_bound, interval, evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as with_changes
from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from tightrope.advice import advise, skew_warning
from tightrope.bounds import Method, method
from tightrope.bounds.base import BootstrapBound, ExactBound, is_exact, rank
from tightrope.dataset import TrajectoryDataset
from tightrope.diagnostics import overlap, summarize
from tightrope.engines import Replicates, replicate
from tightrope.engines.local import Precision, Progress
from tightrope.errors import BoundError, TightropeError
from tightrope.estimators import ESTIMATORS, Estimator
from tightrope.estimators import estimator as find_estimator
from tightrope.problem import Problem
from tightrope.records import Bound, Evaluation, Interval, Overlap, Side
from tightrope.resampling import Seed, WeightScheme, scheme, seed_of
from tightrope.statistic import SumStatistic, standard_error

DEFAULT_ESTIMATOR = "pdwis"
DEFAULT_METHOD = "studentized"  # of all, the nearest to its nominal error rate: docs/coverage.md
DEFAULT_METHODS = ("percentile", "bca", "studentized", "betting")


class Options(TypedDict, total=False):
    """What every bound takes, by keyword. Defaults stand in ``Settings``."""

    confidence: float  # of each one-sided bound, or of the whole interval; in (0.5, 1)
    n_resamples: int  # bootstrap replicates, the paper's B
    rng: Seed  # a whole number or a numpy Generator; one seed gives the same bits
    resampling: str | WeightScheme  # "multinomial", "bayesian", "poisson", or a scheme such as Multinomial(size=m)
    max_ratio: float | None  # the largest importance ratio that can occur; hoeffding and empirical-bernstein need it
    precision: Precision  # "float32" is faster on wide problems and loses under 1e-4 standard errors
    progress: Progress | None  # called with the share done, 0 to 1


@dataclass(frozen=True)
class Settings:
    """The options with their defaults, checked."""

    confidence: float = 0.95
    n_resamples: int = 2000
    rng: Seed = 0
    resampling: str | WeightScheme = "multinomial"
    max_ratio: float | None = None
    precision: Precision = "float64"
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if not (_is_number(self.confidence) and 0.5 < self.confidence < 1.0):
            raise BoundError(f"confidence is {self.confidence!r}; it must lie between 0.5 and 1, such as 0.95")
        if not (_is_number(self.n_resamples) and self.n_resamples % 1 == 0 and self.n_resamples >= 1):
            raise BoundError(f"n_resamples is {self.n_resamples!r}; it must be a whole number, at least 1")
        if self.max_ratio is not None and not (_is_number(self.max_ratio) and self.max_ratio > 0):
            raise BoundError(f"max_ratio is {self.max_ratio!r}; it must be positive")
        if self.precision not in ("float64", "float32"):
            raise BoundError(f'precision is {self.precision!r}; "float64" or "float32"')
        object.__setattr__(self, "n_resamples", int(self.n_resamples))
        object.__setattr__(self, "rng", seed_of(self.rng))
        object.__setattr__(self, "resampling", scheme(self.resampling))

    @property
    def seed(self) -> int:
        """The 64-bit key."""
        return seed_of(self.rng)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def statistic(
    dataset: TrajectoryDataset, policy: Any = None, *, estimator: str | Estimator = DEFAULT_ESTIMATOR
) -> SumStatistic:
    """The estimator as a function of trajectory weights: (..., n) to (...,), NaN where undefined."""
    return find_estimator(estimator)(Problem(dataset, policy))


def estimate(
    dataset: TrajectoryDataset, policy: Any = None, *, estimator: str | Estimator = DEFAULT_ESTIMATOR
) -> float:
    """The point estimate of the candidate's value."""
    return statistic(dataset, policy, estimator=estimator).estimate


def lower_bound(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator = DEFAULT_ESTIMATOR,
    method: str | Method = DEFAULT_METHOD,
    **options: Unpack[Options],
) -> Bound:
    """A value that the candidate's true value exceeds with the given confidence.

    ``policy=None`` uses the logs' ``eval_prob`` column. See ``Options`` for the other keywords.
    """
    return _one(dataset, policy, "lower", estimator, method, Settings(**options))


def upper_bound(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator = DEFAULT_ESTIMATOR,
    method: str | Method = DEFAULT_METHOD,
    **options: Unpack[Options],
) -> Bound:
    """A value that the candidate's true value stays below with the given confidence."""
    return _one(dataset, policy, "upper", estimator, method, Settings(**options))


def interval(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator = DEFAULT_ESTIMATOR,
    method: str | Method = DEFAULT_METHOD,
    **options: Unpack[Options],
) -> Interval:
    """A lower and an upper bound that hold together with the given confidence, half the error on each side."""
    settings = Settings(**options)
    each = with_changes(settings, confidence=(1 + settings.confidence) / 2)
    low, high = (_one(dataset, policy, side, estimator, method, each) for side in ("lower", "upper"))
    return Interval(low, high, settings.confidence)


def evaluate(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimators: Sequence[str | Estimator] | None = None,
    methods: Sequence[str | Method] | None = None,
    side: Literal["lower", "upper", "both"] = "lower",
    true_value: float | None = None,
    **options: Unpack[Options],
) -> Evaluation:
    """Every estimator with every bound that is valid for it, on one set of weights, and which to believe.

    Pairs that cannot be computed are listed with the reason in ``skipped``. With ``side="both"`` each bound has the
    given confidence on its own side.
    """
    if side not in ("lower", "upper", "both"):
        raise BoundError(f'side is {side!r}; "lower", "upper" or "both"')
    settings = Settings(**options)
    problem = Problem(dataset, policy)
    found = overlap(problem)
    chosen = [find_estimator(item) for item in (estimators or list(ESTIMATORS))]
    pairs = [(one, method(item)) for one in chosen for item in (methods or DEFAULT_METHODS)]
    bounds: list[Bound] = []
    skipped: dict[tuple[str, str], str] = {}
    for each in ("lower", "upper") if side == "both" else (side,):
        for pair, result in zip(pairs, _bounds(problem, found, pairs, each, settings), strict=True):
            if isinstance(result, Bound):
                bounds.append(result)
            else:
                skipped[pair[0].name, pair[1].name] = str(result)
    if not bounds:
        raise BoundError("; ".join(f"{one} with {how}: {why}" for (one, how), why in skipped.items()))
    advice = [advise(bounds, found, each) for each in ("lower", "upper") if any(b.side == each for b in bounds)]
    return Evaluation(
        bounds=tuple(bounds),
        skipped=tuple((*pair, why) for pair, why in skipped.items()),
        summary=summarize(dataset),
        overlap=found,
        advice="\n".join(dict.fromkeys(text for text, _ in advice)),
        believe=tuple(index for _, index in advice if index is not None),
        true_value=true_value,
        settings={
            "confidence": settings.confidence,
            "n_resamples": settings.n_resamples,
            "seed": settings.seed,
        },
    )


def _one(
    dataset: TrajectoryDataset,
    policy: Any,
    side: Side,
    estimator: str | Estimator,
    chosen: str | Method,
    settings: Settings,
) -> Bound:
    problem = Problem(dataset, policy)
    pair = (find_estimator(estimator), method(chosen))
    (result,) = _bounds(problem, overlap(problem), [pair], side, settings)
    if isinstance(result, TightropeError):
        raise result
    return result


def _bounds(
    problem: Problem,
    found: Overlap,
    pairs: Sequence[tuple[Estimator, Method]],
    side: Side,
    settings: Settings,
) -> list[Bound | TightropeError]:
    """One bound, or the reason why there is none, for each pair; all bootstraps on the same weights."""
    anchored = {one: one.anchored("low" if side == "lower" else "high") for one, _ in pairs}
    needs: dict[Estimator, set[str]] = {}
    for one, how in pairs:
        if not is_exact(how):
            needs.setdefault(one, set()).update(how.needs)  # type: ignore[union-attr]
    replicates: dict[Estimator, Replicates | TightropeError] = {}
    statistics: dict[Estimator, SumStatistic] = {}
    for one in needs:
        try:
            if problem.dataset.n_trajectories < 2:
                raise BoundError("a bootstrap needs at least two episodes; the logs hold 1")
            statistics[one] = anchored[one](problem)
        except TightropeError as error:
            replicates[one] = error
    replicates |= _replicates(statistics, needs, settings)
    influence = {one: stat.influence() for one, stat in statistics.items()}
    results: list[Bound | TightropeError] = []
    for one, how in pairs:
        try:
            if is_exact(how):
                results.append(_exact(problem, found, anchored[one], how, side, settings))  # type: ignore[arg-type]
            else:
                ready = replicates[one]
                if isinstance(ready, TightropeError):
                    raise ready
                skew = skew_warning(influence[one], side, settings.confidence, second_order=how.second_order)  # type: ignore[union-attr]
                told = [*problem.dataset.notes, *found.warnings, *skew]
                results.append(_approximate(ready, standard_error(influence[one]), one, how, side, settings, told))  # type: ignore[arg-type]
        except TightropeError as error:
            results.append(error)
    return results


def _replicates(
    statistics: dict[Estimator, SumStatistic], needs: dict[Estimator, set[str]], settings: Settings
) -> dict[Estimator, Replicates | TightropeError]:
    """What the bounds need of each statistic, all from the same weight rows."""
    drawn = [one for one in statistics if "values" in needs[one]]
    if drawn:
        rank(1 - settings.confidence, settings.n_resamples)  # refuse too few before the work, not after it
    results: dict[Estimator, Replicates | TightropeError] = {}
    if drawn:
        values = replicate(
            [statistics[one] for one in drawn],
            scheme(settings.resampling),
            n_resamples=settings.n_resamples,
            seed=settings.seed,
            precision=settings.precision,
            standard_errors=any("standard_errors" in needs[one] for one in drawn),
            progress=settings.progress,
        )
        results.update(zip(drawn, values, strict=True))
    for one, stat in statistics.items():
        if "leave_one_out" in needs[one]:
            known = results.get(one, Replicates(stat.n_trajectories, stat.estimate, np.empty(0)))
            assert isinstance(known, Replicates)
            results[one] = with_changes(known, leave_one_out=stat.leave_one_out())
    return results


def _approximate(
    replicates: Replicates,
    error: float,
    estimator: Estimator,
    how: BootstrapBound,
    side: Side,
    settings: Settings,
    told: list[str],
) -> Bound:
    if side == "lower":
        value, warnings = how.lower(replicates, delta=1 - settings.confidence)
    else:
        value, warnings = how.lower(replicates.reflected(), delta=1 - settings.confidence)
        value = -value
    drawn = "values" in how.needs
    undefined = replicates.n_undefined if drawn else 0
    if undefined:
        warnings = [
            f"undefined: in {undefined} of {len(replicates.values)} replicates the estimator had no weight to "
            "divide by; "
            "they count as the worst value",
            *warnings,
        ]
    return Bound(
        value=value,
        side=side,
        confidence=settings.confidence,
        estimate=replicates.estimate,
        estimator=estimator.name,
        method=how.name,
        guarantee="approximate",
        standard_error=error,
        warnings=(*told, *warnings),
        n_trajectories=replicates.n_trajectories,
        n_resamples=settings.n_resamples if drawn else None,
        n_undefined=undefined,
        seed=settings.seed if drawn else None,
    )


def _exact(
    problem: Problem, found: Overlap, estimator: Estimator, how: ExactBound, side: Side, settings: Settings
) -> Bound:
    if not hasattr(estimator, "trajectory_values"):
        independent = ", ".join(name for name, cls in ESTIMATORS.items() if hasattr(cls, "trajectory_values"))
        raise BoundError(
            f"{how.name} needs one independent value per trajectory; a self-normalised estimator divides by a sum over "
            f"all of them, so the pair has no guarantee. Use {independent}, or a bootstrap method"
        )
    sample = estimator.trajectory_values(problem, max_ratio=settings.max_ratio)
    bound = how.lower(sample, delta=1 - settings.confidence, seed=settings.seed)
    warnings = list(problem.dataset.notes) + [text for text in found.warnings if text.startswith("mean-ratio")]
    if bound <= 0:
        end = "lowest" if side == "lower" else "highest"
        warnings.append(f"vacuous: the bound does not improve on the {end} possible value")
        bound = 0.0
    return Bound(
        value=float(sample.origin + sample.sign * bound),
        side=side,
        confidence=settings.confidence,
        estimate=sample.estimate,
        estimator=estimator.name,
        method=how.name,
        guarantee="exact",
        standard_error=standard_error(sample.values - sample.values.mean()),
        warnings=tuple(warnings),
        n_trajectories=len(sample.values),
        seed=settings.seed if how.name == "cut" else None,
    )
