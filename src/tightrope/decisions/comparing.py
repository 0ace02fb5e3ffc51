"""Which of several policies: all on the same logs, with bounds that allow for choosing among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tightrope.base.blas import one_blas_thread
from tightrope.base.clusters import forgotten, n_clusters, n_independent
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import failing
from tightrope.base.names import suggests_keywords
from tightrope.base.records import Verdict
from tightrope.decisions import words
from tightrope.decisions.approximate import approximate, enough
from tightrope.decisions.comparison import Difference, Standing
from tightrope.decisions.contenders import Baseline, Contender, Source, candidates
from tightrope.decisions.exactly import exact
from tightrope.decisions.findings import Findings
from tightrope.decisions.shown import Comparison
from tightrope.evaluation.provenance import provenance
from tightrope.evaluation.settings import Settings
from tightrope.functional.engines import Progress
from tightrope.functional.resampling import Seed

RESAMPLES = 10_000  # at least: bounds that hold together lie further out than one alone


@suggests_keywords
@one_blas_thread
def compare(
    dataset: TrajectoryDataset,
    policies: Mapping[str, Any],
    *,
    baseline: Any = "behavior",
    strict: bool = False,
    confidence: float = 0.95,
    n_resamples: int | None = None,
    seed: Seed = 0,
    behavior: Any = "logged",
    max_step_ratio: float | None = None,
    progress: Progress | None = None,
    n_jobs: int | None = None,
) -> Comparison:
    """Which of several candidates is better than the baseline, and which may be the best of them.

    All bounds allow for the number of candidates: the lower bounds on their values hold together, so that of whichever
    is chosen holds too; so do those on their gains, those on the differences between them, and the answers "better".

    - ``dataset``: the logs, from ``read``.
    - ``policies``: names and policies, as ``evaluate`` takes them.
    - ``baseline``: "behavior", the policy that made the logs; a number; a policy; or the name of one of the policies.
    - ``strict``: exact bounds only. Otherwise they come from resamples that all candidates share.
    - ``confidence``: that all of one kind hold together.
    - ``n_resamples``: bootstrap replicates; None: 10,000, or as many as the number of candidates needs.

    The other keywords are those of ``lower_bound``. Where the logs say whose episodes they are (``read(cluster=...)``),
    resamples draw clusters whole, and exact bounds take one value for each.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> clinic = small("clinic")
    >>> logs = clinic.logs(600, rng=np.random.default_rng(0))
    >>> print(tightrope.compare(logs, {"new": clinic.candidate, "coin": tightrope.UniformPolicy(2)}).verdict.headline)
    Yes, at 95%: new is better than the policy that made the logs (approximate)
    """
    settings = Settings(
        confidence, RESAMPLES if n_resamples is None else n_resamples, seed, behavior=behavior, progress=progress,
        n_jobs=n_jobs,
    )  # fmt: skip
    with failing():
        source = Source(dataset, behavior, max_step_ratio, strict)
        contenders, known = candidates(source, policies, baseline)
        judged = [one for one in contenders if not one.why]
        if n_resamples is None:
            wanted = enough(len(judged), n_independent(dataset), settings)
            settings = replace(settings, n_resamples=max(RESAMPLES, wanted))
        findings = (exact if strict else approximate)(judged, known, settings) if judged else None
    return _assembled(contenders, judged, known, findings, settings, strict)


def _assembled(
    contenders: Sequence[Contender],
    judged: Sequence[Contender],
    baseline: Baseline,
    findings: Findings | None,
    settings: Settings,
    strict: bool,
) -> Comparison:
    """The record, in the words of its data."""
    standings = _standings(contenders, judged, findings)
    bounded = [one for one in standings if one.gain is not None]
    chosen = max(bounded, key=lambda one: (one.better, one.gain.value if one.gain else 0.0)).name if bounded else ""
    result = Comparison(
        verdict=Verdict("broken", "", ""),
        standings=standings,
        baseline=baseline.words,
        baseline_value=baseline.number,
        chosen=chosen,
        differences=_differences(judged, findings),
        confidence=settings.confidence,
        guarantee="exact" if strict else "approximate",
        how=findings.how if findings else "",
        n_trajectories=contenders[0].problem.dataset.n_trajectories,
        n_clusters=n_clusters(contenders[0].problem.dataset),
        notes=forgotten(contenders[0].problem.dataset),
        settings=settings.shown(contenders[0].problem.behavior),
        provenance=provenance(),
    )
    return replace(result, verdict=words.verdict(result, findings.tops if findings else []))


def _standings(
    contenders: Sequence[Contender], judged: Sequence[Contender], findings: Findings | None
) -> tuple[Standing, ...]:
    places = {one.name: place for place, one in enumerate(judged)}
    beaten = {pair.second for pair in findings.differences if pair.lower > 0} if findings else set()
    result = []
    for one in contenders:
        if findings is None or one.name not in places:
            result.append(Standing(one.name, None, None, False, True, one.why, one.warnings))
            continue
        place = places[one.name]
        result.append(
            Standing(
                one.name,
                findings.values[place],
                findings.gains[place],
                findings.better[place],
                place not in beaten,
                warnings=one.warnings,
            )
        )
    return tuple(result)


def _differences(judged: Sequence[Contender], findings: Findings | None) -> tuple[Difference, ...]:
    return tuple(
        Difference(judged[pair.first].name, judged[pair.second].name, pair.estimate, pair.lower)
        for pair in (findings.differences if findings else [])
    )
