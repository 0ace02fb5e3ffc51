"""One estimator with one bound: what `lower_bound` computes once and `evaluate` for every valid pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from tightrope.base.errors import BoundError, TightropeError, failing
from tightrope.base.problem import Problem
from tightrope.base.records import BehaviorCheck, Bound, ModelCheck, Overlap, Side
from tightrope.base.warnings import Caution, caution, coded
from tightrope.bounds import Method
from tightrope.bounds.base import BootstrapBound, ExactBound, ProcessBound, is_exact, learns, rank
from tightrope.estimators import ESTIMATORS, Estimator
from tightrope.estimators.base import IndependentEstimator, SequentialEstimator
from tightrope.estimators.gain import possible_range, subject
from tightrope.estimators.model_based import ModelStatistic
from tightrope.evaluation.advice import spread_warning
from tightrope.evaluation.model_check import check_model
from tightrope.evaluation.settings import Settings
from tightrope.functional.engines import Replicates, replicate
from tightrope.functional.resampling import ModelBootstrap, scheme
from tightrope.functional.statistic import FittedStatistic, standard_error
from tightrope.functional.values import SequentialValues
from tightrope.models import Model, SimulatedModel, has_tabular

Pair = tuple[Estimator, Method]

NOISY = 0.2  # of the bootstrap's standard error: simulation noise above this is told


def bounds_of(
    problem: Problem,
    found: Overlap,
    pairs: Sequence[Pair],
    side: Side,
    settings: Settings,
    behavior: BehaviorCheck | None = None,
    *,
    check_models: bool = True,
) -> tuple[list[Bound | TightropeError], Work]:
    """One bound, or the reason why there is none, for each pair, all bootstraps on the same weights; and the work that
    went into them. Studies that only count errors need not ask how the models fare.
    """
    _check_max_ratio(problem, settings)
    work = Work(problem, found, side, settings, behavior)
    work.check_models = check_models
    work.draw(pairs)
    results: list[Bound | TightropeError] = []
    for estimator, method in pairs:
        try:
            with failing():
                results.append(work.bound(estimator, method))
        except TightropeError as error:
            results.append(error)
    return results, work


def is_valid(estimator: Estimator, method: Method) -> bool:
    """Whether the pair means something: exact bounds need independent values per trajectory, the robust one a model."""
    if isinstance(method, ProcessBound):
        return estimator.name == method.of
    return not is_exact(method) or isinstance(estimator, IndependentEstimator)


def _check_max_ratio(problem: Problem, settings: Settings) -> None:
    if settings.max_ratio is None or problem.dataset.behavior_log_probs is None or problem.behavior is not None:
        return
    largest = problem.ratios.log_max.max()
    if largest > np.log(settings.max_ratio) + 1e-9:
        raise BoundError(
            f"max_ratio is {settings.max_ratio:g}, but the logs hold a cumulative importance ratio of "
            f"{np.exp(min(largest, 700.0)):.4g}: the declared bound is wrong"
        )


class Work:
    """The statistics and replicates of one side, shared by all pairs."""

    def __init__(
        self, problem: Problem, found: Overlap, side: Side, settings: Settings, behavior: BehaviorCheck | None
    ):
        self.problem, self.found, self.side, self.settings = problem, found, side, settings
        self.behavior = behavior
        self.statistics: dict[Estimator, FittedStatistic] = {}
        self.replicates: dict[Estimator, Replicates] = {}
        self.failures: dict[Estimator, TightropeError] = {}
        self.checks: dict[str | Model, ModelCheck] = {}
        self.check_models = True

    def anchored(self, estimator: Estimator) -> Estimator:
        """The estimator for this side."""
        return estimator.anchored("low" if self.side == "lower" else "high")

    def draw(self, pairs: Sequence[Pair]) -> None:
        """Make the replicates that the approximate bounds among the pairs need, all from the same weight rows."""
        needs: dict[Estimator, set[str]] = {}
        for estimator, method in pairs:
            if hasattr(method, "needs"):
                needs.setdefault(estimator, set()).update(method.needs)
        for estimator in needs:
            with self._failing(estimator):
                if self.problem.dataset.n_trajectories < 2:
                    raise BoundError("a bootstrap needs at least two episodes; the logs hold 1")
                self.statistics[estimator] = self.anchored(estimator)(self.problem)
        self._resample([one for one in self.statistics if "values" in needs[one]], needs)
        for one, statistic in self.statistics.items():
            with self._failing(one):
                if one not in self.replicates:
                    self.replicates[one] = Replicates(statistic.n_trajectories, statistic.estimate, np.empty(0))
                if "leave_one_out" in needs[one]:
                    self.replicates[one] = replace(self.replicates[one], leave_one_out=statistic.leave_one_out())

    @contextmanager
    def _failing(self, estimator: Estimator) -> Iterator[None]:
        """What fails here fails this estimator, and no other."""
        try:
            with failing():
                yield
        except TightropeError as error:
            self.failures[estimator] = error

    def _resample(self, drawn: list[Estimator], needs: dict[Estimator, set[str]]) -> None:
        if not drawn:
            return
        settings = self.settings
        rank(1 - settings.confidence, settings.n_resamples)  # refuse too few before the work, not after it
        if isinstance(settings.resampling, ModelBootstrap):
            self._simulate(drawn)
            return
        try:
            with failing():
                self._replicate(drawn, needs)
        except TightropeError:  # one of them: each by itself gives the same bits, and shows which
            for one in drawn:
                with self._failing(one):
                    self._replicate([one], needs)

    def _replicate(self, drawn: list[Estimator], needs: dict[Estimator, set[str]]) -> None:
        settings = self.settings
        values = replicate(
            [self.statistics[one] for one in drawn],
            scheme(settings.resampling),
            n_resamples=settings.n_resamples,
            seed=settings.seed,
            precision=settings.precision,
            standard_errors=["standard_errors" in needs[one] for one in drawn],
            progress=settings.progress,
        )
        self.replicates.update(zip(drawn, values, strict=True))

    def _simulate(self, drawn: list[Estimator]) -> None:
        """Replicates by the parametric bootstrap, for the estimators whose model can be simulated from."""
        for one in drawn:
            statistic = self.statistics[one]
            model = getattr(statistic, "model", None)
            if not isinstance(statistic, ModelStatistic) or not hasattr(model, "simulated_values"):
                self.failures[one] = BoundError(
                    'resampling="model" simulates from a fitted tabular model; of the estimators only mb rests on one'
                )
                continue
            with self._failing(one):
                values = statistic.model.simulated_values(  # type: ignore[attr-defined]
                    self.settings.n_resamples, seed=self.settings.seed
                )
                self.replicates[one] = Replicates(statistic.n_trajectories, statistic.estimate, values)

    def bound(self, estimator: Estimator, method: Method) -> Bound:
        """The bound of one pair; raises where there is none."""
        if isinstance(method, ProcessBound):
            return self._robust(estimator, method)
        if is_exact(method):
            return self._exact(estimator, method)  # type: ignore[arg-type]
        if estimator in self.failures:
            raise self.failures[estimator]
        return self._approximate(estimator, method)  # type: ignore[arg-type]

    def _approximate(self, estimator: Estimator, method: BootstrapBound) -> Bound:
        settings, replicates = self.settings, self.replicates[estimator]
        lower = self.side == "lower"
        value, told = method.lower(replicates if lower else replicates.reflected(), delta=1 - settings.confidence)
        value = value if lower else -value
        influence = self.statistics[estimator].influence()
        second_order = method.second_order and scheme(settings.resampling).second_order
        drawn = "values" in method.needs
        undefined = replicates.n_undefined if drawn else 0
        estimated = self.problem.behavior if getattr(estimator, "uses_ratios", True) else None
        warnings = [
            *self.problem.dataset.notes,
            *self._overlap_warnings(estimator),
            *self._model_warnings(estimator),
            *self._sharp_warning(estimator, method),
            *self._simulation_warning(estimator, replicates, standard_error(influence)),
            *spread_warning(influence, replicates.estimate, self.side, settings.confidence, second_order=second_order),
            *self._out_of_range(estimator, replicates.estimate, value),
        ]
        if undefined:
            text = (
                f"in {undefined} of {len(replicates.values)} replicates the estimator had no weight to divide by; they "
                "count as the worst value"
            )
            warnings.append(caution("undefined", text, undefined=undefined, replicates=len(replicates.values)))
        return Bound(
            value=value,
            side=self.side,
            confidence=settings.confidence,
            estimate=replicates.estimate,
            estimator=estimator.name,
            method=method.name,
            guarantee="approximate",
            standard_error=standard_error(influence),
            warnings=(*warnings, *told),
            n_trajectories=replicates.n_trajectories,
            n_resamples=settings.n_resamples if drawn else None,
            n_undefined=undefined,
            seed=settings.seed if drawn else None,
            behavior=None if estimated is None else estimated.name,
            about=subject(estimator),
        )

    def _exact(self, estimator: Estimator, method: ExactBound) -> Bound:
        data, settings = self.problem.dataset, self.settings
        if self.problem.behavior is not None:
            raise BoundError(
                f"{method.name} is exact only with the true behaviour probabilities; with an estimate of them "
                f"(behavior={self.problem.behavior.name!r}) nothing is. Log them, or use a bootstrap method"
            )
        anchored = self.anchored(estimator)
        if not isinstance(anchored, IndependentEstimator):
            independent = ", ".join(name for name, cls in ESTIMATORS.items() if hasattr(cls, "trajectory_values"))
            raise BoundError(
                f"{method.name} needs one independent value per trajectory; {estimator.name} is no mean of such values "
                "(it divides by a sum over trajectories or fits a model), so the pair has no guarantee. Use "
                f"{independent}, or a bootstrap method"
            )
        if data.n_dropped:
            raise BoundError(
                "nothing exact can be said when episodes were left out for being cut off: which ones were may "
                "depend on how they went. Declare a shorter horizon, or use a bootstrap method"
            )
        sample: SequentialValues
        if learns(method) and isinstance(anchored, SequentialEstimator):
            sample = anchored.sequential_values(self.problem)
            bound = method.lower(sample, delta=1 - settings.confidence, seed=settings.seed)
        else:
            sample = anchored.trajectory_values(self.problem, max_ratio=settings.max_ratio)
            bound = method.lower(sample, delta=1 - settings.confidence, seed=settings.seed)
        value = float(sample.origin + sample.sign * max(0.0, bound))
        low, high = possible_range(estimator, data)
        value = max(value, low) if self.side == "lower" else min(value, high)  # what is declared is known as it is
        wrong = coded(self.found.warnings, "mean-ratio")
        return Bound(
            value=value,
            side=self.side,
            confidence=settings.confidence,
            estimate=sample.estimate,
            estimator=estimator.name,
            method=method.name,
            guarantee="exact",
            standard_error=standard_error(sample.values - sample.values.mean()),
            warnings=(*data.notes, *wrong, *self._out_of_range(estimator, sample.estimate, value)),
            n_trajectories=len(sample.values),
            seed=settings.seed if method.name in ("cut", "betting") else None,
            about=subject(estimator),
        )

    def _robust(self, estimator: Estimator, method: ProcessBound) -> Bound:
        if not is_valid(estimator, method):
            raise BoundError(f"{method.name} is a bound of {method.of}; got {estimator.name}")
        settings = self.settings
        found = method.bound(
            self.problem, confidence=settings.confidence, side=self.side, seed=settings.seed, about=subject(estimator)
        )
        alone = not getattr(estimator, "uses_ratios", True)
        told = self.check(estimator).warnings if alone else ()
        against = coded(told, "model-contradicted")
        return replace(
            found, warnings=(*found.warnings, *against, *self._out_of_range(estimator, found.estimate, found.value))
        )

    def _overlap_warnings(self, estimator: Estimator) -> tuple[Caution, ...]:
        """What speaks against the ratios concerns whoever uses them; a model alone fears only what was never logged."""
        if getattr(estimator, "uses_ratios", True):
            return (*self.found.warnings, *(self.behavior.warnings if self.behavior else ()))
        return coded(self.found.warnings, "unlogged-actions")

    def _model_warnings(self, estimator: Estimator) -> tuple[Caution, ...]:
        """What speaks against the model concerns who relies on it alone; who corrects it needs something to correct."""
        if not self.check_models or not hasattr(estimator, "model"):
            return ()
        if not getattr(estimator, "uses_ratios", True):
            return self.check(estimator).warnings
        if getattr(estimator, "fit", "cross") != "cross" and self.check(estimator).residue_free:
            text = (
                "fitted to the data it corrects, the model leaves no error at all, so nothing is corrected and its "
                'guess for unseen pairs stands; use fit="cross"'
            )
            return (caution("no-correction", text),)
        return ()

    def _simulation_warning(self, estimator: Estimator, replicates: Replicates, error: float) -> list[Caution]:
        """Noise of roll-outs that is not small against what resampling varies moves the bound unseen."""
        model = getattr(self.statistics[estimator], "model", None)
        if not isinstance(model, SimulatedModel):
            return []
        defined = replicates.values[np.isfinite(replicates.values)]
        spread = float(defined.std(ddof=1)) if len(defined) > 1 else error
        noise = model.simulation_error()
        if not noise > NOISY * spread:
            return []
        text = (
            f"the roll-outs have a standard error of {noise:.3g} where the bootstrap has {spread:.3g}, which does not "
            "allow for theirs; give the model more point_rollouts and replicate_rollouts"
        )
        return [caution("simulation-noise", text, noise=noise, spread=spread)]

    def _sharp_warning(self, estimator: Estimator, method: BootstrapBound) -> tuple[Caution, ...]:
        """Whether corrections come as rare jumps, as where moves are deterministic and a cross-fitted model is exact
        but for what it has not seen: standard errors then say little, and what builds on them errs more often.
        """
        corrects = hasattr(estimator, "model") and getattr(estimator, "uses_ratios", True)
        if not (self.check_models and corrects and has_tabular(self.problem)) or method.name == "percentile":
            return ()
        if estimator.model == "none" or not self.check(estimator).residue_free:  # type: ignore[attr-defined]
            return ()
        text = (
            "nothing happens by chance in these logs, so corrections of the model are rare jumps; studentized and bca "
            "then err up to twice as often as percentile"
        )
        return (caution("sharp", text),)

    def check(self, estimator: Estimator) -> ModelCheck:
        """How the estimator's model fares on the logs."""
        chosen: str | Model = estimator.model  # type: ignore[attr-defined]
        if chosen not in self.checks:
            self.checks[chosen] = check_model(
                self.problem,
                chosen,
                "low" if self.side == "lower" else "high",
                effective=self.found.effective_sample_size[-1],
            )
        return self.checks[chosen]

    def _out_of_range(self, estimator: Estimator, estimate: float, value: float) -> list[Caution]:
        """An estimate or bound beyond what was declared possible says so itself."""
        low, high = possible_range(estimator, self.problem.dataset)
        warnings = []
        if not low <= estimate <= high:
            text = (
                f"{estimate:.4g} lies outside the possible {low:.4g} to {high:.4g}, as unweighted importance sampling "
                "can"
            )
            warnings.append(caution("impossible-estimate", text, estimate=estimate, lowest=low, highest=high))
        if (value <= low) if self.side == "lower" else (value >= high):
            end = "lowest" if self.side == "lower" else "highest"
            warnings.append(caution("vacuous", f"the bound does not improve on the {end} possible value"))
        return warnings
