"""How low can the candidate's return fall, and how often: its distribution with a band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tightrope.base.blas import one_blas_thread
from tightrope.base.checks import check_size, is_number
from tightrope.base.clusters import n_clusters, unit
from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.errors import BoundError, failing
from tightrope.base.names import suggests_keywords
from tightrope.base.problem import Problem
from tightrope.base.warnings import Caution, caution, coded
from tightrope.decisions.tails.bootstrap import ReplicatedTails, bootstrap_tails
from tightrope.decisions.tails.exact import Points, exact_tails
from tightrope.decisions.tails.outcomes import Outcomes, tail_mean
from tightrope.decisions.tails.record import Distribution, Kind, Tail, check_share
from tightrope.evaluation.overlap import overlap
from tightrope.evaluation.settings import Settings
from tightrope.functional.engines import Progress
from tightrope.functional.resampling import Seed

MOST_STEPS = 500  # of the estimate and of an approximate band, in the record
MOST_POINTS = 1000  # key points of an exact band
# Effective episodes in a tail: a bootstrap of fewer resamples almost the same few, and errs two or three times as often
# as it says. A single point needs fewer than a mean of the lowest returns, or than a band, whose ends are tails.
ENOUGH = {"below": 10.0, "quantile": 10.0, "cvar": 50.0, "band": 50.0}
END = 0.1  # share of the returns that is an end of the band

CROSSED = caution(
    "crossed",
    "exact bounds contradict each other: the logged probabilities are wrong, or episodes are not independent, or these "
    "logs are among the few for which bounds err. Believe none of them",
)

Asked = dict[str, tuple[float, ...]]
NOTHING: Asked = {"levels": (), "quantiles": (), "shares": ()}


@suggests_keywords
@one_blas_thread
def distribution(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    levels: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    shares: Sequence[float] = (),
    points: int = 10,
    strict: bool = False,
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> Distribution:
    """The distribution of the candidate's return, not only its mean: how low can it fall, and how often?

    Where the logs say whose episodes they are (``read(cluster=...)``), it is that of a random episode of a random
    cluster; exact bounds take one value for each cluster, and resamples draw clusters whole.

    - ``dataset``: the logs, from ``read``, with behaviour probabilities.
    - ``policy``: the candidate; None uses the ``eval_prob`` column of the logs.
    - ``levels``: returns, fixed before anybody looked at the logs; each gets bounds of its own on the probability to
      fall below it.
    - ``quantiles``: shares whose quantile gets bounds of its own, such as 0.05.
    - ``shares``: of the lowest returns, whose mean (CVaR) gets a lower bound of its own, such as 0.1.
    - ``points``: key points of an exact band. With 0 only what is named above is bounded, and more tightly.
    - ``strict``: exact bounds; they need the range of the return to be declared for CVaR, and nothing for the rest.
    - ``confidence``: between 0.5 and 1; of all exact bounds together, or of the band and of each interval.
    - ``n_resamples``: bootstrap replicates of an approximate answer.
    - ``seed``: a whole number or a numpy Generator. The same number gives the same result, bit for bit.
    - ``progress``: a function that is called with the share done, from 0 to 1.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(200, rng=np.random.default_rng(0))
    >>> shape = tightrope.distribution(logs, walker.candidate, levels=[-20], shares=[0.1], points=0, strict=True)
    >>> print(shape.below(-20))
    below -20: 0.1381 (from 0.06845 to 0.289)
    """
    settings = Settings(confidence=confidence, n_resamples=n_resamples, seed=seed)
    _check_asked(levels, quantiles, shares, points)
    with failing():
        problem = Problem(dataset, policy)
        check_size("reward", dataset.rewards, dataset.where)
        outcomes = Outcomes.of(problem, exact=strict)
        warnings = overlap(problem).warnings
        ask: Asked = {"levels": tuple(levels), "quantiles": tuple(quantiles), "shares": tuple(shares)}
        values, heights = _thinned(*outcomes.steps())
        shape = Distribution(
            steps=_pairs(values, heights),
            lower=(),
            upper=(),
            tails=(),
            confidence=settings.confidence,
            guarantee="exact" if strict else "approximate",
            value_range=(outcomes.low, outcomes.high),
            n_trajectories=dataset.n_trajectories,
            n_resamples=None if strict else settings.n_resamples,
            seed=settings.seed,
            n_clusters=n_clusters(dataset),
            warnings=(*dataset.notes, *(coded(warnings, "mean-ratio") if strict else warnings)),
        )
        if strict:
            return _together(shape, outcomes, ask, points, settings.seed)
        return _by_bootstrap(shape, problem, ask, points, progress)


def _together(shape: Distribution, outcomes: Outcomes, ask: Asked, points: int, seed: int) -> Distribution:
    """The record with exact bounds, which hold together."""
    bounds = exact_tails(outcomes, **ask, points=points, delta=1 - shape.confidence, seed=seed)
    band = replace(shape, lower=bounds.lower, upper=bounds.upper)
    own = [(-np.inf, np.inf) for _ in ask["levels"]]  # the band has key points there
    own += [*bounds.quantiles, *bounds.means]
    tails = []
    for tail, (least, most) in zip(_estimates(outcomes, ask), own, strict=True):
        known = {"below": band.below, "quantile": band.quantile, "cvar": band.cvar}[tail.kind](tail.at)
        tails.append(replace(tail, lower=max(known.lower, least), upper=min(known.upper, most)))
    return _crossed(replace(band, tails=tuple(tails)))


def _crossed(shape: Distribution) -> Distribution:
    """With a warning, once, where bounds contradict each other."""
    fresh = shape.crosses and CROSSED not in shape.warnings
    return replace(shape, warnings=(*shape.warnings, CROSSED)) if fresh else shape


def _by_bootstrap(
    shape: Distribution, problem: Problem, ask: Asked, points: int, progress: Progress | None
) -> Distribution:
    """The record with bounds by bootstrap; where a tail is thin, with the exact bounds of that tail alone."""
    assert shape.n_resamples is not None
    outcomes = Outcomes.of(problem, exact=False)
    bounds = bootstrap_tails(
        outcomes,
        **ask,
        delta=1 - shape.confidence,
        n_resamples=shape.n_resamples,
        seed=shape.seed,
        progress=progress,
    )
    ends, exact = (*bounds.levels, *bounds.quantiles, *bounds.means), _exact_outcomes(problem)
    thin: dict[str, float] = {}
    tails = []
    for tail, (least, most) in zip(_estimates(outcomes, ask), ends, strict=True):
        effective = _effective(outcomes, tail)
        if effective < ENOUGH[tail.kind]:
            tails.append(_stand_in(shape, exact, tail))
            thin[tail.kind] = min(effective, thin.get(tail.kind, effective))
        else:
            tails.append(replace(tail, lower=least, upper=most, guarantee="approximate"))
    rarest = min(_effective(outcomes, Tail("quantile", end, 0.0, 0.0, 0.0)) for end in (END, 1 - END))
    if rarest < ENOUGH["band"]:
        shape = _exact_band(shape, exact, points)
        thin |= {"band": rarest} if points else {}
    else:
        shape = _resampled_band(shape, bounds)
    warnings = tuple(_thin(kind, effective, unit(shape.n_clusters)) for kind, effective in thin.items())
    return _crossed(replace(shape, tails=tuple(tails), warnings=(*shape.warnings, *warnings)))


def _resampled_band(shape: Distribution, bounds: ReplicatedTails) -> Distribution:
    before = np.append(0.0, bounds.heights[:-1])  # P(G < x) at each return
    lower = _thinned(bounds.values, np.maximum(bounds.heights - bounds.below, 0.0))
    upper = _thinned(bounds.values, np.minimum(before + bounds.above, 1.0))
    return replace(shape, lower=_pairs(*lower), upper=_pairs(*upper))


def _exact_outcomes(problem: Problem) -> Outcomes | None:
    """None where nothing exact can be said."""
    try:
        return Outcomes.of(problem, exact=True)
    except BoundError:
        return None


def _exact_band(shape: Distribution, outcomes: Outcomes | None, points: int) -> Distribution:
    """The record with an exact band; without one where nothing exact can be said, or too little was logged for it."""
    if outcomes is None or not points:
        return shape
    try:
        return _together(shape, outcomes, NOTHING, points, shape.seed)
    except BoundError:
        return shape


def _thin(kind: str, effective: float, those: str) -> Caution:
    where = {
        "below": "the tail below a level",
        "quantile": "the tail beyond a quantile",
        "cvar": "the tail of the lowest returns",
        "band": "an end of the band",
    }[kind]
    text = f"{where} holds fewer than {ENOUGH[kind]:g} effective {those} ({effective:.2g}): exact bounds stand in"
    return caution("thin-tail", text, effective=effective)


def _effective(outcomes: Outcomes, tail: Tail) -> float:
    """How many effective episodes tell of a tail: those in it and, but for the mean of the lowest, those beyond it."""
    if tail.kind == "below":
        inside = outcomes.returns < tail.at
        return min(outcomes.effective(inside), outcomes.effective(~inside))
    end = outcomes.quantiles(np.array([tail.at]))[0]
    low, high = outcomes.effective(outcomes.returns <= end), outcomes.effective(outcomes.returns >= end)
    return low if tail.kind == "cvar" else min(low, high)


def _stand_in(shape: Distribution, outcomes: Outcomes | None, tail: Tail) -> Tail:
    """The exact bounds of one tail; what is possible, where nothing exact can be said."""
    names = {"below": "levels", "quantile": "quantiles", "cvar": "shares"}
    ask: Asked = {**NOTHING, names[tail.kind]: (tail.at,)}
    if outcomes is None:
        low, high = (0.0, 1.0) if tail.kind == "below" else shape.value_range
        return replace(tail, lower=low, upper=high)
    (own,) = _together(shape, outcomes, ask, points=0, seed=shape.seed).tails
    return replace(own, estimate=tail.estimate)


def _estimates(outcomes: Outcomes, ask: Asked) -> list[Tail]:
    """What was named, estimated from all episodes, without bounds yet."""
    values, heights = outcomes.steps()
    below = np.append(0.0, heights)[np.searchsorted(values, np.asarray(ask["levels"], dtype=np.float64))]
    kinds: dict[Kind, tuple[str, Any]] = {
        "below": ("levels", below),
        "quantile": ("quantiles", outcomes.quantiles(np.asarray(ask["quantiles"], dtype=np.float64))),
        "cvar": ("shares", [tail_mean(values, heights, share) for share in ask["shares"]]),
    }
    return [
        Tail(kind, float(at), float(number), -np.inf, np.inf)
        for kind, (name, numbers) in kinds.items()
        for at, number in zip(ask[name], numbers, strict=True)
    ]


def _thinned(values: Array, heights: Array) -> tuple[Array, Array]:
    """At most MOST_STEPS of the steps: those that are left say less, and nothing wrong."""
    if len(values) <= MOST_STEPS:
        return values, heights
    chosen = np.linspace(0, len(values) - 1, MOST_STEPS).astype(np.int64)
    return values[chosen], heights[chosen]


def _pairs(values: Array, heights: Array) -> Points:
    return tuple(zip(values.tolist(), heights.tolist(), strict=True))


def _check_asked(levels: Sequence[float], quantiles: Sequence[float], shares: Sequence[float], points: int) -> None:
    """Refuse what cannot be asked."""
    for level in levels:
        if not is_number(level):
            raise BoundError(f"levels must be finite numbers; got {level!r}")
    for name, given in (("quantiles (--quantile)", quantiles), ("shares (--cvar)", shares)):
        for value in given:
            check_share(name, value)
    if not (isinstance(points, int) and 0 <= points <= MOST_POINTS):
        raise BoundError(f"points must be a whole number from 0 to {MOST_POINTS}; got {points!r}")
    if points == 0 and not (levels or quantiles or shares):
        raise BoundError("points must be at least 1 where no levels, quantiles or shares are named; got 0")
