"""The values of a domain's policies, computed again: exactly where possible, and otherwise by roll-outs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.base.errors import TightropeError
from tightrope.domains.base import Domain, Process
from tightrope.domains.episodes import Progress, mean_return


@dataclass(frozen=True)
class Truth:
    """Values with their standard errors, 0 where exact."""

    candidate: tuple[float, float]
    behavior: tuple[float, float]
    rollouts: int | None  # of each policy; None where the values are exact


def truth(domain: Domain, *, rollouts: int, seed: int, progress: Progress | None = None) -> Truth:
    """The values of both policies; ``rollouts`` and ``seed`` matter only where there is no exact value."""
    if domain.true_value_error == 0 and domain.behavior_value_error == 0:
        return Truth((domain.true_value, 0.0), (domain.behavior_value, 0.0), None)
    if not isinstance(domain, Process):
        raise TightropeError(f"{domain.name} must have start(n, rng) and step(...) to be rolled out; it has not")
    rng, report = np.random.default_rng(seed), progress or (lambda share: None)
    candidate = mean_return(domain, domain.candidate, rollouts, rng=rng, progress=lambda share: report(share / 2))
    behavior = mean_return(domain, domain.behavior, rollouts, rng=rng, progress=lambda share: report((1 + share) / 2))
    return Truth(candidate, behavior, rollouts)
