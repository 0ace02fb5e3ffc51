"""The public calls: estimate, statistic, lower_bound, upper_bound, interval, evaluate, advise."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, ParamSpec

from tightrope.base.blas import one_blas_thread
from tightrope.base.checks import check_size, is_number
from tightrope.base.clusters import Clusters
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import BoundError, TightropeError, failing
from tightrope.base.names import must_be_one_of, suggests_keywords
from tightrope.base.policy import DeterministicControl
from tightrope.base.problem import Problem
from tightrope.base.records import Advice, Bound, Interval, Side
from tightrope.base.threads import passes_by, threads
from tightrope.behaviors import behavior as find_behavior
from tightrope.bounds import Method
from tightrope.bounds import method as find_method
from tightrope.bounds.base import is_exact
from tightrope.estimators import USUAL, Estimator, is_model_based
from tightrope.estimators import estimator as find_estimator
from tightrope.estimators.clustered import by_cluster
from tightrope.estimators.gain import possible_range
from tightrope.evaluation.beside import lift
from tightrope.evaluation.case import Case, Pair
from tightrope.evaluation.compute import Computed, cases_of, compute
from tightrope.evaluation.details import details, subject
from tightrope.evaluation.judge import Judgement, judge
from tightrope.evaluation.provenance import provenance
from tightrope.evaluation.recommend import Question
from tightrope.evaluation.rehearse import rehearse
from tightrope.evaluation.settings import Settings
from tightrope.evaluation.work import answers_of, is_valid
from tightrope.functional.engines import Precision, Progress
from tightrope.functional.resampling import Seed, WeightScheme
from tightrope.functional.statistic import FittedStatistic
from tightrope.models import Model, has_tabular
from tightrope.models import model as find_model
from tightrope.report.evaluation import Evaluation

P = ParamSpec("P")

DEFAULT_ESTIMATOR = "pdwis"  # of a point estimate, or where only a method is asked for
DEFAULT_METHOD = "studentized"  # where only an estimator is asked for; the nearest to its nominal error rate
MOST_REHEARSALS = 100_000
DEFAULT_METHODS = ("percentile", "bca", "studentized", "betting")


@suggests_keywords
@one_blas_thread
def statistic(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator = DEFAULT_ESTIMATOR,
    model: str | Model = "auto",
    behavior: Any = "logged",
    max_step_ratio: float | None = None,
) -> FittedStatistic:
    """The estimator as a function of episode weights: an array of shape (..., n) gives one of shape (...,).

    Weights of one give the point estimate. The value is NaN where the estimator is undefined. Where the logs say whose
    episodes they are (``read(cluster=...)``), it is a function of cluster weights.

    - ``dataset``: the logs, from ``read``.
    - ``policy``: the candidate; None uses the ``eval_prob`` column of the logs.
    - ``estimator``: a name, or an object of ``tightrope.estimators``.
    - ``model``: of an estimator given by name: "auto", "tabular", "linear", "polynomial", "fitted-q" or an object.
    - ``behavior``: "logged", or how to estimate the behaviour policy, as for ``lower_bound``.
    - ``max_step_ratio``: a number that no action's ratio exceeds at any step; tdr uses it.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(200, rng=np.random.default_rng(0))
    >>> value = tightrope.statistic(logs, walker.candidate, estimator="wis")
    >>> bool(np.isclose(value(np.ones(200)), tightrope.estimate(logs, walker.candidate, estimator="wis")))
    True
    """
    with failing():
        whole = find_estimator(estimator, model=model)(problem_of(dataset, policy, behavior, max_step_ratio))
        return by_cluster(whole, Clusters.of(dataset))


@suggests_keywords
@one_blas_thread
def estimate(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator = DEFAULT_ESTIMATOR,
    model: str | Model = "auto",
    behavior: Any = "logged",
    max_step_ratio: float | None = None,
) -> float:
    """The point estimate of the candidate's value, without a bound: it may be far too high.

    It is the textbook estimate; one that lies outside what is possible becomes the nearest that is possible.

    - ``dataset``: the logs, from ``read``.
    - ``policy``: the candidate; None uses the ``eval_prob`` column of the logs.
    - ``estimator``: a name, or an object of ``tightrope.estimators``.
    - ``model``: of an estimator given by name: "auto", "tabular", "linear", "polynomial", "fitted-q" or an object.
    - ``behavior``: "logged", or how to estimate the behaviour policy, as for ``lower_bound``.
    - ``max_step_ratio``: a number that no action's ratio exceeds at any step; tdr uses it.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(200, rng=np.random.default_rng(0))
    >>> round(tightrope.estimate(logs, walker.candidate), 2)
    -10.8
    """
    with failing():
        book = find_estimator(estimator, model=model).textbook(dataset)
        low, high = possible_range(book, dataset)
        problem = problem_of(dataset, policy, behavior, max_step_ratio)
        return min(max(by_cluster(book(problem), Clusters.of(dataset)).estimate, low), high)


@suggests_keywords
def lower_bound(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator | None = None,
    method: str | Method | None = None,
    model: str | Model = "auto",
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: Seed = 0,
    resampling: str | WeightScheme = "multinomial",
    max_ratio: float | None = None,
    max_step_ratio: float | None = None,
    behavior: Any = "logged",
    precision: Precision = "float64",
    progress: Progress | None = None,
    engine: Any = "local",
    n_jobs: int | None = None,
) -> Bound:
    """A number that the candidate's true value exceeds with the given confidence.

    - ``dataset``: the logs, from ``read``.
    - ``policy``: the candidate; None uses the ``eval_prob`` column of the logs.
    - ``estimator``, ``method``: a name or an object; ``tightrope.estimators`` and ``tightrope.bounds`` list them.
      Without both it is the recommended bound, as ``evaluate`` has it.
    - ``model``: of estimators given by name: "auto", "tabular", "linear", "polynomial", "fitted-q" or an object.
    - ``confidence``: between 0.5 and 1.
    - ``n_resamples``: bootstrap replicates, the paper's B.
    - ``seed``: a whole number or a numpy Generator. The same number gives the same result, bit for bit.
    - ``resampling``: "multinomial", "bayesian", "poisson", "model" (MB with a tabular model), or an object such as
      ``Multinomial(size=m)``.
    - ``max_ratio``: a number that no cumulative importance ratio exceeds; hoeffding and empirical-bernstein need it.
    - ``max_step_ratio``: a number that no action's ratio exceeds at any step, logged or not; tdr's exact bounds need it
      where the behaviour policy itself is not known.
    - ``behavior``: "logged", or how to estimate the behaviour policy: "auto", "tabular", "logistic", "gaussian", an
      object of ``tightrope.behaviors``, or a classifier.
    - ``precision``: "float64", or "float32", which is faster on wide problems and loses under 1e-4 standard errors.
    - ``engine``: "local", "cuda" for sums on an NVIDIA GPU (needs torch), or a ``dask.distributed`` client; bit for bit
      the same.
    - ``n_jobs``: threads; None takes one for each core. Their number changes no bit of the result.
    - ``progress``: a function that is called with the share done, from 0 to 1.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(200, rng=np.random.default_rng(0))
    >>> print(tightrope.lower_bound(logs, walker.candidate, estimator="is", method="anderson"))
    value ≥ -18.3435 with confidence 0.95 (exact; IS, anderson; estimate -11.4968)
    """
    settings = Settings(
        confidence, n_resamples, seed, resampling, max_ratio, behavior, precision, progress, engine, n_jobs
    )
    return _one(dataset, policy, "lower", estimator, method, model, settings, max_step_ratio)


@suggests_keywords
def upper_bound(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator | None = None,
    method: str | Method | None = None,
    model: str | Model = "auto",
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: Seed = 0,
    resampling: str | WeightScheme = "multinomial",
    max_ratio: float | None = None,
    max_step_ratio: float | None = None,
    behavior: Any = "logged",
    precision: Precision = "float64",
    progress: Progress | None = None,
    engine: Any = "local",
    n_jobs: int | None = None,
) -> Bound:
    """A number that the candidate's true value stays below with the given confidence.

    It takes the same keywords as ``lower_bound``.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(200, rng=np.random.default_rng(0))
    >>> print(tightrope.upper_bound(logs, walker.candidate, estimator="is", method="anderson"))
    value ≤ -8.08933 with confidence 0.95 (exact; IS, anderson; estimate -11.4968)
    """
    settings = Settings(
        confidence, n_resamples, seed, resampling, max_ratio, behavior, precision, progress, engine, n_jobs
    )
    return _one(dataset, policy, "upper", estimator, method, model, settings, max_step_ratio)


@suggests_keywords
def interval(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator | None = None,
    method: str | Method | None = None,
    model: str | Model = "auto",
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: Seed = 0,
    resampling: str | WeightScheme = "multinomial",
    max_ratio: float | None = None,
    max_step_ratio: float | None = None,
    behavior: Any = "logged",
    precision: Precision = "float64",
    progress: Progress | None = None,
    engine: Any = "local",
    n_jobs: int | None = None,
) -> Interval:
    """A lower and an upper bound that hold together with the given confidence: each side gets half of the error.

    It takes the same keywords as ``lower_bound``.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(200, rng=np.random.default_rng(0))
    >>> lowest, highest = tightrope.interval(logs, walker.candidate, confidence=0.9)
    >>> lowest < walker.true_value < highest
    True
    """
    settings = Settings(
        confidence, n_resamples, seed, resampling, max_ratio, behavior, precision, progress, engine, n_jobs
    )
    one_sided = replace(settings, confidence=(1 + settings.confidence) / 2)
    low, high = (
        _one(dataset, policy, side, estimator, method, model, one_sided, max_step_ratio) for side in ("lower", "upper")
    )
    return Interval(low, high, settings.confidence)


@suggests_keywords
@one_blas_thread
def evaluate(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimators: str | Sequence[str | Estimator] | None = None,
    methods: str | Sequence[str | Method] | None = None,
    model: str | Model = "auto",
    side: Literal["lower", "upper", "both"] = "lower",
    strict: bool = False,
    threshold: float | None = None,
    baseline: Literal["behavior"] | None = None,
    true_value: float | None = None,
    rehearsals: int = 0,
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: Seed = 0,
    resampling: str | WeightScheme = "multinomial",
    max_ratio: float | None = None,
    max_step_ratio: float | None = None,
    behavior: Any = "logged",
    precision: Precision = "float64",
    progress: Progress | None = None,
    engine: Any = "local",
    n_jobs: int | None = None,
) -> Evaluation:
    """Compute every valid bound for every estimator on the same resamples, and say which bound to believe.

    - ``dataset``: the logs, from ``read``.
    - ``policy``: the candidate; None uses the ``eval_prob`` column of the logs.
    - ``estimators``, ``methods``: names or objects; None takes all estimators, and percentile, bca, studentized and
      betting. A pair that cannot be computed is listed in ``skipped`` with the reason.
    - ``model``: "auto" is tabular where states and actions are discrete.
    - ``side``: which bounds to compute. With "both", each bound has the given confidence on its own side.
    - ``strict``: believe exact bounds only. Where no exact bound says anything, the data cannot answer.
    - ``threshold``: the verdict says whether the value exceeds this number. Both sides are computed.
    - ``baseline="behavior"``: the verdict says whether the candidate is better than the policy that made the logs (by
      more than the threshold, if there is one), from bounds on the paired difference.
    - ``true_value``: the true value, where it is known; only the printed table uses it.
    - ``rehearsals``: how many logs like these to simulate from a model of them, and count how often each bound is
      wrong there; 200 give a fair picture. It is shown beside the bounds and never chooses among them.

    The other keywords are those of ``lower_bound``.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(200, rng=np.random.default_rng(0))
    >>> result = tightrope.evaluate(logs, walker.candidate, estimators=["is", "pdis"], methods="anderson")
    >>> result
    <Evaluation: 2 bounds from 200 episodes
    believed: value ≥ -18.3435 with confidence 0.95 (exact; IS, anderson; estimate -11.4968)
    result.advice says why, result.to_frame() lists all bounds>
    >>> print(result["pdis", "anderson"])
    value ≥ -32 with confidence 0.95 (exact; PDIS, anderson; estimate -11.3048)
      ! vacuous: the bound does not improve on the lowest possible value
    """
    if side not in ("lower", "upper", "both"):
        raise BoundError(must_be_one_of("side", side, ("lower", "upper", "both")))
    if threshold is not None and not (is_number(threshold) and abs(threshold) < math.inf):
        raise BoundError(f"threshold must be a finite number or None; got {threshold!r}")
    if baseline not in (None, "behavior"):
        raise BoundError(must_be_one_of("baseline", baseline, ("behavior",), "None"))
    if not (isinstance(rehearsals, int) and 0 <= rehearsals <= MOST_REHEARSALS):
        raise BoundError(f"rehearsals must be a whole number from 0 to {MOST_REHEARSALS:,}; got {rehearsals!r}")
    if baseline is not None and threshold is None:
        threshold = 0.0
    settings = Settings(
        confidence, n_resamples, seed, resampling, max_ratio, behavior, precision, progress, engine, n_jobs
    )
    sides: tuple[Side, ...] = ("lower", "upper") if side == "both" or threshold is not None else (side,)
    with threads(settings.n_jobs), passes_by(settings.workers(dataset)):
        with failing():
            problem = problem_of(dataset, policy, settings.behavior, max_step_ratio)
            cases = cases_of(problem, sides, settings)
        pairs = _pairs(problem, estimators, methods, model)
        computed = compute(cases, pairs, about="value" if baseline is None else "gain")
        # Unless bounds were asked for by name, a rule that was fixed before any reward was looked at says which to use.
        question = _question(cases, model, strict=strict) if estimators is None and methods is None else None
        judgement = judge(computed, question, threshold=threshold, strict=strict)
        rehearsal = rehearse(cases, pairs, rehearsals) if rehearsals else ()
        return replace(_assembled(computed, judgement, true_value), rehearsal=rehearsal)


def _question(cases: Sequence[Case], model: str | Model, *, strict: bool = False) -> Question:
    case = cases[0]
    return Question(case.problem, case.overlap, case.behavior, case.settings, model, strict=strict, cases=tuple(cases))


def _assembled(computed: Computed, judgement: Judgement, true_value: float | None) -> Evaluation:
    """The record of what was computed and how it was judged."""
    case, answers = computed.cases[-1], computed.values
    index = subject(judgement.bounds, judgement.believe)
    believed_gains = tuple(judgement.gains[i] for i in judgement.believe_gains)
    return Evaluation(
        bounds=judgement.bounds,
        skipped=tuple((*pair, str(why)) for pair, why in computed.skipped.items()),
        summary=judgement.summary,
        overlap=case.overlap,
        reasons=judgement.reasons,
        model_check=case.first_check,
        behavior_check=case.behavior,
        advice=judgement.advice,
        believed=tuple(judgement.bounds[i] for i in judgement.believe),
        true_value=true_value,
        settings=case.settings.shown(case.problem.behavior),
        gains=judgement.gains,
        believed_gains=believed_gains,
        exact=judgement.exact,
        lift=lift(believed_gains, judgement.summary),
        verdict=judgement.verdict,
        details=details(index, *answers[index if index < len(answers) else 0]),
        provenance=provenance(),
    )


def _pairs(
    problem: Problem,
    estimators: str | Sequence[str | Estimator] | None,
    methods: str | Sequence[str | Method] | None,
    model: str | Model,
) -> list[Pair]:
    """The pairs to compute: those that were named, or all that are valid and do not take long."""
    named = [estimators] if isinstance(estimators, str) else list(estimators or USUAL)
    methods = [methods] if isinstance(methods, str) else methods
    find_model(model, problem)  # an unknown name is an error even where no estimator would use it
    # A continuous model takes its time: only when asked for, or where nothing else can answer.
    needless = not has_tabular(problem) and not isinstance(problem.policy, DeterministicControl)
    if estimators is None and model == "auto" and needless:
        named = [name for name in USUAL if not is_model_based(name)]
    chosen = [find_estimator(item, model=model) for item in named]
    pairs = [(one, find_method(item)) for one in chosen for item in (methods or DEFAULT_METHODS)]
    if methods is None:  # nobody asked for the pairs that mean nothing
        return [pair for pair in pairs if is_valid(*pair) and not (problem.behavior and is_exact(pair[1]))]
    return pairs


def _advising(function: Callable[P, Evaluation]) -> Callable[P, Advice]:
    """A call that takes exactly what ``function`` takes and returns the advice alone."""

    def advise(*values: P.args, **keywords: P.kwargs) -> Advice:
        """Which bounds to believe, and why: the advice of ``evaluate``, without the rest.

        It takes the same keywords as ``evaluate``.

        >>> import numpy as np, tightrope
        >>> from tightrope.domains import small
        >>> walker = small("walker")
        >>> logs = walker.logs(200, rng=np.random.default_rng(0))
        >>> advice = tightrope.advise(logs, walker.candidate, estimators="is", methods="anderson")
        >>> print(advice.believed[0])
        value ≥ -18.3435 with confidence 0.95 (exact; IS, anderson; estimate -11.4968)
        """
        result = function(*values, **keywords)
        return Advice(result.advice, result.believed, result.reasons)

    signature = inspect.signature(function)
    advise.__signature__ = signature.replace(return_annotation=Advice)  # type: ignore[attr-defined]
    return suggests_keywords(advise)


advise = _advising(evaluate)


def problem_of(dataset: TrajectoryDataset, policy: Any, behavior: Any, max_step_ratio: float | None) -> Problem:
    """The problem to solve, with the logged behaviour policy or one that is estimated from the logs."""
    problem = Problem(dataset, policy, max_step_ratio=max_step_ratio)
    check_size("reward", dataset.rewards, dataset.where)
    chosen = find_behavior(behavior, dataset)
    if chosen is not None:
        problem = replace(problem, behavior=chosen)
        _ = problem.fits  # refuse logs that it cannot be fitted to now, and not later as a lack of overlap
    return problem


@one_blas_thread
def _one(
    dataset: TrajectoryDataset,
    policy: Any,
    side: Side,
    estimator: str | Estimator | None,
    method: str | Method | None,
    model: str | Model,
    settings: Settings,
    max_step_ratio: float | None,
) -> Bound:
    pair = (
        find_estimator(DEFAULT_ESTIMATOR if estimator is None else estimator, model=model),
        find_method(DEFAULT_METHOD if method is None else method),
    )
    with failing(), threads(settings.n_jobs), passes_by(settings.workers(dataset)):
        (case,) = cases_of(problem_of(dataset, policy, settings.behavior, max_step_ratio), [side], settings)
        if estimator is None and method is None:
            return _question([case], model).bound(side)
        (result,) = answers_of(case, [pair])
    if isinstance(result, TightropeError):
        raise result
    return result.bound
