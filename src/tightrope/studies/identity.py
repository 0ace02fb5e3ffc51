"""Check that a study has not changed: what its domain does, and what the names of its parts stand for.

A file or a module keeps its name when its content changes. So a study's configuration holds hashes of the content and
of what the domain does in a few episodes, and each process that loads the domain anew checks it against a witness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tightrope.base.content import digest, package_digest
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import StudyError, TightropeError
from tightrope.base.policy import Policy, as_actor, resolved
from tightrope.domains import Domain

Anything = npt.NDArray[Any]
EPISODES = 64  # of a sample
_RELATIVE, _ABSOLUTE = 1e-3, 1e-5  # by how much answers may differ where a process merely rounds differently


@runtime_checkable
class Words(Protocol):
    """A domain by the words that name its parts, where it cannot be sent to another process itself."""

    def load(self) -> Domain:
        """The domain, as what the words stand for now."""
        ...

    def content(self) -> Mapping[str, str]:
        """Hashes of what the words stand for now."""
        ...


@dataclass(frozen=True, eq=False)
class Witness:
    """What a domain did when its study began; a process that loads it later must find the same."""

    package: str
    content: Mapping[str, str]
    logs: TrajectoryDataset
    behavior: Anything
    candidate: Anything

    def check(self, words: Words, domain: Domain) -> None:
        """Refuse a domain that has changed."""
        content = dict(words.content())
        changed = [name for name in self.content if content.get(name) != self.content[name]]
        for name in ("behavior", "candidate"):
            policy, answers = getattr(domain, name), getattr(self, name)
            if not np.allclose(_answers(policy, self.logs), answers, _RELATIVE, _ABSOLUTE, equal_nan=True):
                changed.append(name)
        changed += ["tightrope's own sources"] * (package_digest() != self.package)
        if changed:
            raise StudyError(
                f"{', '.join(dict.fromkeys(changed))} changed while the study ran. The finished trials belong to the "
                "earlier state: restore it and go on, or start in another folder"
            )


def witness(words: Words, domain: Domain) -> Witness:
    """What the domain does now."""
    logs = _sample(domain)
    answers = [_answers(policy, logs) for policy in (domain.behavior, domain.candidate)]
    return Witness(package_digest(), dict(words.content()), logs, *answers)


def sample_digest(domain: Domain) -> str:
    """A hash of what the domain and its candidate do in a few episodes: whatever changes its numbers shows here."""
    logs = _sample(domain)
    return digest(logs, _answers(domain.candidate, logs))


def _sample(domain: Domain) -> TrajectoryDataset:
    return replace(domain.logs(EPISODES, rng=np.random.default_rng(0)), behavior=None)


def _answers(policy: Policy, logs: TrajectoryDataset) -> Anything:
    """The policy's log-probabilities of logged actions, or its actions without a density; nothing without states."""
    states, actions, times = logs.states, logs.actions, logs.times
    if states is None or actions is None:
        return np.zeros(0)
    known = resolved(policy, states, times)
    try:
        return np.asarray(known.log_prob(states, actions, times))
    except TightropeError:
        actor = as_actor(known)
        return np.asarray(actor.act(states, times, np.full((len(times), actor.noise_width), 0.5)))
