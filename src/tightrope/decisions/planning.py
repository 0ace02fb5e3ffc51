"""How much more data: from what the logs at hand say to the number of episodes that would settle the question."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from tightrope.api import evaluate, problem_of
from tightrope.base.blas import one_blas_thread
from tightrope.base.checks import is_number
from tightrope.base.clusters import forgotten, n_clusters
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import BoundError, TightropeError, failing
from tightrope.base.names import must_be_one_of, suggests_keywords
from tightrope.base.problem import Problem
from tightrope.base.records import About, Bound, Evaluation, Side
from tightrope.base.warnings import Caution
from tightrope.decisions.mixtures import loggings
from tightrope.decisions.plans import Step
from tightrope.decisions.shown import Plan
from tightrope.decisions.words import plan_words
from tightrope.estimators import estimator as find_estimator
from tightrope.estimators.clustered import by_cluster
from tightrope.estimators.gain import gain
from tightrope.evaluation.needed import CHANCE, LEVEL, Needed, Prospect, prospect
from tightrope.evaluation.provenance import provenance
from tightrope.evaluation.settings import Settings
from tightrope.functional.engines import Progress
from tightrope.functional.resampling import Multinomial, Seed, draw_weights
from tightrope.functional.standard_errors import row_errors
from tightrope.functional.strata import strata_of, within_strata

TIMES = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)  # as many episodes as now
SPREADS = 1000  # resamples that show how well the spread of the values is known


@suggests_keywords
@one_blas_thread
def plan(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    better_than: Literal["behavior"] | float = "behavior",
    effect: float | None = None,
    chance: float = CHANCE,
    risk: float | None = None,
    strict: bool = False,
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: Seed = 0,
    behavior: Any = "logged",
    max_step_ratio: float | None = None,
    progress: Progress | None = None,
    n_jobs: int | None = None,
) -> Plan:
    """How many episodes would show whether the candidate is better, and which logs would show it soonest.

    - ``dataset``: the logs at hand, from ``read``; also a small pilot.
    - ``policy``: the candidate; None uses the ``eval_prob`` column of the logs.
    - ``better_than``: "behavior", the policy that made the logs, or a number that its value must exceed.
    - ``effect``: plan for a candidate that is better by this much, the least that would be worth having. None plans for
      the candidate as it looks in these logs, which small logs know badly: then the range is wide.
    - ``chance``: of the answer at the planned number.
    - ``risk``: the most that an episode of new logs may lose against today's policy, for the table of mixtures.
    - ``strict``: plan for exact bounds.

    The other keywords are those of ``lower_bound``.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> clinic = small("clinic")
    >>> logs = clinic.logs(150, rng=np.random.default_rng(1))
    >>> tightrope.plan(logs, clinic.candidate, effect=0.05).kind
    'yes'
    """
    _check(better_than, effect, chance, risk)
    number = None if better_than == "behavior" else float(better_than)
    keywords: dict[str, Any] = {"strict": strict, "confidence": confidence, "n_resamples": n_resamples, "seed": seed}
    keywords |= {"behavior": behavior, "max_step_ratio": max_step_ratio, "n_jobs": n_jobs}
    question: dict[str, Any] = {"baseline": "behavior"} if number is None else {"threshold": number}
    result = evaluate(dataset, policy, **question, **keywords, progress=progress)
    settings = Settings(confidence, n_resamples, seed, behavior=behavior, n_jobs=n_jobs)
    with failing():
        problem = problem_of(dataset, policy, behavior, max_step_ratio)
        known = _planned(result, problem, number or 0.0, effect, chance, settings)
        if known.bound is None or known.kind == "settled":
            return plan_words(known)
        view = _view(known.bound, known.threshold, effect)
        assert view is not None
        try:
            table = loggings(problem, view, known.about, chance, risk, settings) if view.distance > 0 else ()
            why = "" if table else "the estimate is on the other side of the threshold"
        except TightropeError as error:
            table, why = (), str(error)
    return plan_words(replace(known, logging=table, no_logging=why, risk=risk))


def _check(better_than: Any, effect: Any, chance: Any, risk: Any) -> None:
    if isinstance(better_than, str) and better_than != "behavior":
        raise BoundError(must_be_one_of("better_than", better_than, ("behavior",), "a number"))
    if not isinstance(better_than, str) and not is_number(better_than):
        raise BoundError(f'better_than must be "behavior" or a finite number; got {better_than!r}')
    if effect is not None and not (is_number(effect) and effect > 0):
        raise BoundError(f"effect must be a positive number or None; got {effect!r}")
    if not (is_number(chance) and 0.5 <= chance < 1):
        raise BoundError(f"chance must lie between 0.5 and 1, such as 0.8; got {chance!r}")
    if risk is not None and not (is_number(risk) and risk >= 0):
        raise BoundError(f"risk must be a number of at least 0, or None; got {risk!r}")


def _planned(
    result: Evaluation, problem: Problem, threshold: float, effect: float | None, chance: float, settings: Settings
) -> Plan:
    """The plan without its words and without other logs."""
    assert result.verdict is not None
    about: About = result.verdict.about
    believed = result.believed_gains if about == "gain" else result.believed
    yes = effect is not None or (bool(believed) and believed[0].estimate > threshold)
    bound = next((one for one in believed if one.side == ("lower" if yes else "upper")), None)
    view = None if bound is None else _view(bound, threshold, effect)
    empty = Plan(
        kind="broken", headline="", text="", episodes=math.inf, least=math.inf, most=math.inf, chance=chance,
        n_trajectories=problem.dataset.n_trajectories, n_clusters=n_clusters(problem.dataset), about=about,
        notes=_notes(result, bound, problem), threshold=threshold, effect=effect,
        verdict=result.verdict, bound=bound if view is not None else None,
        settings=settings.shown(problem.behavior), provenance=provenance(),
    )  # fmt: skip
    if bound is None or view is None:
        return empty
    need = view.needed(chance) if effect is None else by_effect(view, chance, bound, problem)
    settled = result.verdict.kind in ("yes", "no") and effect is None
    return replace(
        empty,
        kind="settled" if settled else "yes" if yes else "no",
        episodes=need.total,
        least=need.least,
        most=need.most,
        steps=_steps(view, _view(bound, threshold, None) or view, need.total, threshold, bound.side),
    )


def _notes(result: Evaluation, bound: Bound | None, problem: Problem) -> tuple[Caution, ...]:
    """What says that the bound planned from is not what it seems: about the logs, the ratios and itself."""
    own = () if bound is None else bound.warnings
    return tuple(dict.fromkeys((*forgotten(problem.dataset), *result.overlap.warnings, *own)))


def _view(bound: Bound, threshold: float, effect: float | None) -> Prospect | None:
    view = prospect(bound, threshold)
    return view if view is None or effect is None else replace(view, distance=effect)


def by_effect(view: Prospect, chance: float, bound: Bound, problem: Problem) -> Needed:
    """The number for a declared distance: only the spread of the values is uncertain, and resampling shows how much.

    With clusters the spread is that of clusters, within strata where there are some, of which each counts once, and
    clusters are resampled: the number is of episodes in clusters of the sizes that these have.
    """
    clusters = problem.clusters
    estimator = find_estimator(bound.estimator.partition("+")[0]).anchored("low")
    statistic = (gain(estimator) if bound.about == "gain" else estimator)(problem)
    influence = by_cluster(statistic, clusters).influence()
    n, drawing = len(influence), within_strata(Multinomial(), clusters)
    weights = np.vstack([np.ones(n), draw_weights(n, SPREADS, seed=0, resampling=drawing)])
    now, *spreads = np.square(row_errors(weights, influence, strata_of(drawing, n)))
    ends = np.quantile(spreads, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) / now
    total = view.total(view.distance, chance)
    return Needed(total, total * float(ends[0]), total * float(ends[1]))


def _steps(view: Prospect, seen: Prospect, total: float, threshold: float, side: Side) -> tuple[Step, ...]:
    """What several numbers of episodes are expected to give, the planned one among them."""
    sign = 1.0 if side == "lower" else -1.0
    sizes = sorted({*(round(view.n * times) for times in TIMES), *([round(total)] if total < math.inf else [])})
    return tuple(
        Step(
            float(size),
            threshold + sign * (view.distance - view.width * math.sqrt(view.n / size)),
            view.chance(size),
            seen.chance_at_all(size),
        )
        for size in sizes
        if size >= view.n or size == round(total)
    )
