"""A better policy, with confidence: proposed on one part of the logs, tested once on the other.

After Thomas, Theocharous and Ghavamzadeh (2015), "High confidence policy improvement". Whatever the first part says,
the policy that it proposes is fixed before the second part is looked at; the second part is independent of it, so one
bound at level 1 − δ on that policy's gain is wrong with probability at most δ, and so is a policy that is returned.

Where episodes come in clusters (a patient's), the parts are of whole clusters. With episodes of one patient on both
sides the second part would not be independent of the first: whatever the first part learned by chance about that
patient is confirmed by the second. Clusters are independent of each other, so parts of whole clusters are; the test
then is a bound by cluster, as ``evaluate`` computes it.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from tightrope.base.blas import one_blas_thread
from tightrope.base.checks import check_size, is_number
from tightrope.base.clusters import Clusters, by_arrival, extent, forgotten, n_clusters, n_independent
from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import BoundError, DataError, failing
from tightrope.base.names import suggests_keywords
from tightrope.base.policy import Policy
from tightrope.base.problem import Problem, check_dataset
from tightrope.base.records import About, Bound
from tightrope.base.rounding import outward
from tightrope.decisions.belief import believed
from tightrope.decisions.improvement.proposals import FOLDS, Recipe, policies, promises
from tightrope.decisions.improvement.record import Improvement, Rows, policy_of
from tightrope.decisions.improvement.tables import Coded, TableModel
from tightrope.evaluation.settings import Settings
from tightrope.functional.engines import Progress
from tightrope.functional.resampling import Seed

PROPOSING = 0.4  # share of the episodes, or clusters of them, that a policy is proposed on
FEWEST = 20  # episodes, or clusters of them
ALIKE = 1e-9  # probabilities that differ by less are the same
NOTHING = "No solution found: nothing that was proposed promises more than the behaviour policy itself."

Baseline = float | Literal["behavior"]


@suggests_keywords
@one_blas_thread
def improve(
    dataset: TrajectoryDataset,
    *,
    baseline: Baseline = "behavior",
    strict: bool = False,
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> Improvement:
    """A policy that is better than the one that made the logs, with the given confidence; or none.

    Candidates lie between the behaviour policy and what a tabular model of the logs thinks is best. One part of the
    episodes, drawn at random, says which of them promises the highest lower bound; that one alone is then tested, once,
    on the other part. A policy that fails its test is not returned, and nothing else is tried: a second test on the
    same episodes would not be one. Where the logs say whose episodes they are (``read(cluster=...)``), all of a cluster
    lie in one part, and the test goes by clusters.

    - ``dataset``: the logs, from ``read``: states and actions that are whole numbers or text, and probabilities.
    - ``baseline``: "behavior", or a number that the policy's value must exceed.
    - ``strict``: test by an exact bound. The behaviour policy must then be known: given to ``read``, or with all its
      actions logged in every state.
    - ``confidence``: between 0.5 and 1; a policy that is no better is returned with probability at most the rest.
    - ``n_resamples``: bootstrap replicates of the test.
    - ``seed``: a whole number or a numpy Generator, of the split and of the test.
    - ``progress``: a function that is called with the share of the test's resamples done, from 0 to 1.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> clinic = small("clinic")
    >>> result = tightrope.improve(clinic.logs(1000, rng=np.random.default_rng(0)), strict=True)
    >>> print(result.bound)
    gain ≥ 0.00426684 with confidence 0.95 (exact; TDR, betting; estimate 0.014537)
    """
    settings = Settings(confidence=confidence, n_resamples=n_resamples, seed=seed, progress=progress)
    _check(dataset, baseline)
    with failing():
        coded = Coded.of(dataset)
        if strict and not coded.known:
            raise BoundError(
                "an exact test needs the behaviour policy in every state: the logged probabilities change with time, "
                "or some actions were never logged. Give it: read(..., behavior=policy), --behavior-policy"
            )
        if coded.known:  # the tethered test needs it
            dataset = replace(dataset, behavior=policy_of(named(coded, coded.behavior)))
        proposing, testing = parts(dataset, settings.seed)
        test = dataset.take(testing)
        table, scores = propose(coded.take(proposing), baseline, settings, n_independent(test), strict=strict)
        best = max(scores, key=lambda recipe: scores[recipe])
        rows = named(coded, table)
        same = baseline == "behavior" and coded.known and bool(np.allclose(table, coded.behavior, rtol=0, atol=ALIKE))
        bound = None if same else tested(test, policy_of(rows), baseline, settings, strict=strict)
        if same and progress is not None:
            progress(1.0)
    success = passes(bound, baseline)
    return Improvement(
        success=success,
        baseline=str(baseline),
        recipe=str(best),
        bound=bound,
        why=NOTHING if same else _why(bound, baseline, success),
        n_proposed=len(proposing),
        n_tested=len(testing),
        promises=tuple((str(recipe), score) for recipe, score in scores.items()),
        rows=rows if success else (),
        seed=settings.seed,
        n_clusters=n_clusters(dataset),
        n_clusters_tested=n_clusters(test),
        notes=forgotten(dataset),
    )


def parts(data: TrajectoryDataset, seed: int) -> tuple[IntArray, IntArray]:
    """The episodes that propose and those that test, drawn at random; all of a cluster are on one side."""
    clusters = Clusters.of(data)
    came, n = by_arrival(data, clusters), n_independent(data)
    chosen = came[np.random.default_rng([seed, n]).permutation(n)[: round(PROPOSING * n)]]
    proposes = np.isin(np.arange(n) if clusters is None else clusters.code, chosen)
    return np.flatnonzero(proposes), np.flatnonzero(~proposes)


def propose(
    train: Coded, baseline: Baseline, settings: Settings, n_test: int, *, strict: bool
) -> tuple[Array, dict[Recipe, float]]:
    """The policy that promises most, (S, A), and what every recipe promises for a test on so many episodes or clusters.

    Folds are of whole clusters too, and what a recipe promises is made of their means, as its test will be.
    """
    clusters, n = Clusters.of(train.dataset), n_independent(train.dataset)
    delta = 1 - settings.confidence
    folds = np.array_split(np.random.default_rng([settings.seed, n, 1]).permutation(n), FOLDS)
    if clusters is not None:
        folds = [clusters.episodes(fold) for fold in folds]
    width = np.sqrt(2 * np.log(1 / delta)) if strict else -NormalDist().inv_cdf(delta)  # exact bounds are wider

    def reference(held: Coded) -> Array:
        return held.dataset.returns if baseline == "behavior" else np.full(held.dataset.n_trajectories, float(baseline))

    scores = promises(train, folds, reference, float(width) / np.sqrt(n_test))
    best = max(scores, key=lambda recipe: scores[recipe])
    return dict(policies(TableModel(train)))[best], scores


def tested(
    test: TrajectoryDataset, policy: Policy, baseline: Baseline, settings: Settings, *, strict: bool
) -> Bound | None:
    """The one bound that decides; None without one to believe."""
    about: About = "gain" if baseline == "behavior" else "value"
    return believed(Problem(test, policy), "lower", about, settings, strict=strict)


def passes(bound: Bound | None, baseline: Baseline) -> bool:
    """Whether the test is passed: never by a model alone."""
    return bound is not None and bound.value > (0.0 if baseline == "behavior" else float(baseline))


def named(coded: Coded, table: Array) -> Rows:
    """A table by the names of its states and actions."""
    states, actions = coded.states.tolist(), coded.actions.tolist()
    return tuple((s, a, float(table[i, j])) for i, s in enumerate(states) for j, a in enumerate(actions))


def _check(dataset: TrajectoryDataset, baseline: Baseline) -> None:
    check_dataset(dataset)
    if baseline != "behavior" and not is_number(baseline):
        raise BoundError(f'baseline must be "behavior" or a finite number; got {baseline!r}')
    if n_independent(dataset) < FEWEST:
        kind = "episodes" if dataset.clusters is None else "clusters"
        raise DataError(
            f"the logs must hold at least {FEWEST} {kind}, because one part proposes and the other tests; they hold "
            f"{dataset.n_trajectories if dataset.clusters is None else extent(dataset)}"
        )
    check_size("reward", dataset.rewards, dataset.where)
    if dataset.strata is not None:
        raise BoundError(
            "improve splits the logs at random, which does not keep the numbers that strata fix; got logs with strata. "
            "Leave strata out: the test then counts as chance what differs between them, and is only more careful"
        )


def _why(bound: Bound | None, baseline: Baseline, success: bool) -> str:
    """The outcome in a sentence."""
    over = "the behaviour policy's" if baseline == "behavior" else f"{baseline:g}"
    if bound is None:
        return f"No solution found: the episodes kept for the test say nothing about a policy better than {over}."
    least = outward(bound.value, "lower")
    if not success:
        return (
            f"No solution found: the policy that promised most is not better than {over} with confidence "
            f"{bound.confidence:g} (its {bound.about} is at least {least:g})."
        )
    return f"Found a policy whose {bound.about} is at least {least:g} with confidence {bound.confidence:g}."
