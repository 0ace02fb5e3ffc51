"""Several demands at once: a candidate must be good enough, and must not do too much harm.

Each outcome (a reward, a cost, a harm) has its own column in the logs and its own bound. The answer is

- **yes** if every demand is met by its own bound at the full level δ. If some demand does not hold, a yes needs that
  demand's own bound to be wrong, which has probability at most δ: there is nothing to share out (the
  intersection–union test; Berger 1982). No independence between the outcomes is used.
- **no** if some demand is refuted by a bound on its other side at δ/k, for k demands. If all demands hold, a no needs
  one of these k bounds to be wrong, which has probability at most k · δ/k.

Whatever the truth is, only one of the two can be wrong, so the answer errs with probability at most δ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tightrope.base.blas import one_blas_thread
from tightrope.base.checks import check_size
from tightrope.base.clusters import forgotten
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import BoundError, DataError, failing
from tightrope.base.names import suggests_keywords
from tightrope.base.plain import Record
from tightrope.base.problem import Problem
from tightrope.base.records import About, Bound, Side
from tightrope.base.rounding import outward
from tightrope.base.warnings import Caution
from tightrope.decisions.belief import believed
from tightrope.evaluation.overlap import overlap
from tightrope.evaluation.settings import Settings
from tightrope.functional.engines import Progress
from tightrope.functional.resampling import Seed

Answer = Literal["yes", "no", "cannot tell"]
BEHAVIOR = ("behavior", "behaviour")
_DEMAND = re.compile(r"\s*(<=|>=)\s*(\S+)\s*")


@dataclass(frozen=True)
class Demand(Record):
    """What one outcome must be, and what the logs say about it.

    >>> import tightrope
    >>> tightrope.Demand("harm", "<=", 0.1, "value").side
    'upper'
    """

    outcome: str  # its name
    sign: Literal["<=", ">="]  # the value must be at most, or at least, the limit
    limit: float  # of the value, or (0) of the gain over the behaviour policy
    about: About  # "value", or "gain": compared with the behaviour policy
    answer: Answer = "cannot tell"  # of this demand, in the verdict on all of them
    bound: Bound | None = None  # that meets it, or would have to
    against: Bound | None = None  # on the other side, at its part of the error rate

    @property
    def side(self) -> Side:
        """The side of the bound that can meet it."""
        return "lower" if self.sign == ">=" else "upper"

    @property
    def decided(self) -> Bound | None:
        """The bound that its answer rests on: of a no, the one that refutes it."""
        return self.against if self.answer == "no" else self.bound

    def __str__(self) -> str:
        limit = "the behaviour policy's" if self.about == "gain" else f"{self.limit:g}"
        known, bound = "no bound to believe", self.decided
        if bound is not None:
            sign = "≥" if bound.side == "lower" else "≤"
            known = f"{self.about} {sign} {outward(bound.value, bound.side):g} ({bound.guarantee})"
        return f"{self.outcome} {self.sign} {limit}: {self.answer} ({known})"


@dataclass(frozen=True)
class Constrained(Record):
    """The verdict on all demands together.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> clinic = small("clinic")
    >>> logs = clinic.logs(500, rng=np.random.default_rng(0))
    >>> result = tightrope.constrained({"cured": (logs, ">= 0.4")}, clinic.candidate, strict=True)
    >>> print(result)
    Yes: all demands are met, with confidence 0.95 (exact)
    - cured >= 0.4: yes (value ≥ 0.5379 (exact))
    """

    kind: Answer  # "yes": all are met; "no": one is not; else "cannot tell"
    demands: tuple[Demand, ...]
    confidence: float  # of the answer as a whole
    warnings: tuple[Caution, ...] = ()  # what to keep in mind: of the logs, and of the bounds that it rests on

    @property
    def silent(self) -> tuple[str, ...]:
        """The outcomes that these logs say nothing about: neither side has a bound to believe."""
        return tuple(one.outcome for one in self.demands if one.bound is None and one.against is None)

    @property
    def headline(self) -> str:
        """The answer in one line."""
        those = [demand for demand in self.demands if demand.answer == self.kind]
        exact = all(demand.decided is not None and demand.decided.guarantee == "exact" for demand in those)
        sure = f"with confidence {self.confidence:g} ({'exact' if exact else 'approximate'})"
        if self.kind == "yes":
            return f"Yes: all demands are met, {sure}"
        names = [demand.outcome for demand in those]
        if self.kind == "no":
            return f"No: not met is {', '.join(names)}, {sure}"
        nothing = f". These logs say nothing about {', '.join(self.silent)}" if self.silent else ""
        return f"Cannot tell: open is {', '.join(names)}, at confidence {self.confidence:g}{nothing}"

    def __str__(self) -> str:
        lines = [self.headline, *(f"- {demand}" for demand in self.demands), *(f"! {one}" for one in self.warnings)]
        return "\n".join(lines)


@suggests_keywords
@one_blas_thread
def constrained(
    demands: Mapping[str, tuple[TrajectoryDataset, str]],
    policy: Any = None,
    *,
    strict: bool = False,
    confidence: float = 0.95,
    n_resamples: int = 2000,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> Constrained:
    """Whether a candidate meets all demands at once: enough of the good, not too much of the bad.

    - ``demands``: by the name of an outcome, the logs with that outcome for a reward (``read(..., columns={"reward":
      "harm"})``, with its own range) and what it must be: "<= 0.1", ">= 20", or ">= behavior" for at least what the
      behaviour policy has.
    - ``policy``: the candidate; None uses the ``eval_prob`` column of the logs.
    - ``strict``: exact bounds only.
    - ``confidence``: between 0.5 and 1, of the answer as a whole, whatever the number of demands.
    - ``n_resamples``, ``seed``: as for ``lower_bound``.
    - ``progress``: a function that is called with the share done, from 0 to 1.

    >>> import numpy as np, tightrope
    >>> from dataclasses import replace
    >>> from tightrope.domains import small
    >>> clinic = small("clinic")
    >>> logs = clinic.logs(500, rng=np.random.default_rng(0))
    >>> harms = replace(logs, rewards=0.1 * (logs.actions == 1))
    >>> asked = {"cured": (logs, ">= behavior"), "harm": (harms, "<= 0.1")}
    >>> tightrope.constrained(asked, clinic.candidate, strict=True).kind
    'yes'
    """
    settings = Settings(confidence=confidence, n_resamples=n_resamples, seed=seed)
    named = [(_parsed(name, text), data) for name, (data, text) in _checked(demands).items()]
    other = replace(settings, confidence=1 - (1 - settings.confidence) / len(named))
    results, problems = [], []
    with failing():
        for place, (demand, data) in enumerate(named):
            check_size("reward", data.rewards, data.where)
            problem = Problem(data, policy)
            problems.append(problem)
            away: Side = "upper" if demand.side == "lower" else "lower"
            first, second = (_with_part(progress, 2 * place + k, 2 * len(named)) for k in range(2))
            bound = believed(problem, demand.side, demand.about, replace(settings, progress=first), strict=strict)
            against = believed(problem, away, demand.about, replace(other, progress=second), strict=strict)
            results.append(_answered(replace(demand, bound=bound, against=against)))
    answers = [demand.answer for demand in results]
    kind: Answer = "no" if "no" in answers else "yes" if set(answers) == {"yes"} else "cannot tell"
    return Constrained(kind, tuple(results), settings.confidence, _warnings(problems[0], results))


def _warnings(problem: Problem, demands: Sequence[Demand]) -> tuple[Caution, ...]:
    """Each once; how far the logs overlap with the candidate does not depend on the outcome."""
    bounds = [demand.decided for demand in demands if demand.decided is not None]
    of_bounds = [caution for bound in bounds for caution in bound.warnings]
    return tuple(dict.fromkeys([*overlap(problem).warnings, *forgotten(problem.dataset), *of_bounds]))


def _with_part(progress: Progress | None, place: int, count: int) -> Progress | None:
    """Progress of one of so many parts."""
    return None if progress is None else lambda share: progress((place + share) / count)


def _answered(demand: Demand) -> Demand:
    """Met, refuted, or neither; two bounds that contradict each other settle nothing."""
    sign = 1.0 if demand.side == "lower" else -1.0
    met = demand.bound is not None and sign * (demand.bound.value - demand.limit) >= 0
    refuted = demand.against is not None and sign * (demand.against.value - demand.limit) < 0
    if met == refuted:
        return demand
    return replace(demand, answer="yes" if met else "no")


def _parsed(name: str, text: str) -> Demand:
    match = _DEMAND.fullmatch(text) if isinstance(text, str) else None
    try:
        if match is not None and match[2] not in BEHAVIOR and not np.isfinite(float(match[2])):
            match = None
    except ValueError:
        match = None
    if match is None:
        raise BoundError(f'demands must be like ">= 20", "<= 0.1" or ">= behavior"; got {text!r} for {name!r}')
    compared = match[2] in BEHAVIOR
    sign: Literal["<=", ">="] = "<=" if match[1] == "<=" else ">="
    return Demand(name, sign, 0.0 if compared else float(match[2]), "gain" if compared else "value")


def _checked(demands: Any) -> Mapping[str, tuple[TrajectoryDataset, str]]:
    """The demands, if they are about the same episodes."""
    if not isinstance(demands, Mapping) or not demands:
        raise BoundError('demands must name at least one outcome: {"harm": (logs, "<= 0.1")}')
    logs = [pair[0] for pair in demands.values()]
    for data in logs:
        if not isinstance(data, TrajectoryDataset):
            raise DataError(f"demands must hold logs, as tightrope.read(...) makes them; got {type(data).__name__}")
        if not np.array_equal(data.offsets, logs[0].offsets):
            raise DataError(
                f"all outcomes must come from the same episodes; got {logs[0].n_trajectories} and "
                f"{data.n_trajectories} episodes, or other lengths"
            )
    return demands
