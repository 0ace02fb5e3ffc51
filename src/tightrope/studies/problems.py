"""Problems of the studies by name, each with a known value: the domains, and what may be missing from their logs."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from tightrope.base.dataset import TrajectoryDataset
from tightrope.domains import Domain, SmallProblem, domain, situations, small
from tightrope.domains.random_process import random_problem
from tightrope.domains.small import SWAPPED

CORE = ("walker", "bonus", "decline", "clinic")
BOTH_WAYS = tuple(f"{name}{end}" for end in ("", SWAPPED) for name in CORE)  # gains of either sign


@dataclass(frozen=True, eq=False)
class ProbabilitiesOnly(SmallProblem):
    """A problem whose logs hold rewards and the probabilities of both policies, and nothing else."""

    def logs(self, n: int, *, rng: np.random.Generator) -> TrajectoryDataset:
        """The same episodes, less what is not logged."""
        data = super().logs(n, rng=rng)
        return replace(data, states=None, actions=None, final_states=None, behavior=None)


def problem(name: str) -> Domain:
    """A problem of this study by its name."""
    if name.startswith("random-"):
        return random_problem(int(name.removeprefix("random-")))
    if name == "hidden":
        return replace(next(one for one in situations() if one.observe is not None), name=name)
    if name == "state not logged":  # the policies do not look at it, so that nothing shows what is missing
        whole = small("decline")
        seen = (0,) * len(whole.mdp.start_probs)
        return replace(whole, name=name, about="decline, but all states are logged as one", observe=seen)
    if name == "probabilities only":
        whole = small("decline")
        parts = {field.name: getattr(whole, field.name) for field in fields(whole)}
        about = "decline, but only rewards and the probabilities of both policies are logged"
        return ProbabilitiesOnly(**{**parts, "name": name, "about": about})
    return small(name) if name.removesuffix(SWAPPED) in CORE else domain(name)


@dataclass(frozen=True)
class Named:
    """A problem by its name, so that every process makes its own."""

    name: str

    def load(self) -> Domain:
        """The problem."""
        return problem(self.name)

    def content(self) -> dict[str, str]:
        """Nothing outside the package."""
        return {}
