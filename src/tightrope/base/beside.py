"""Records of what stands beside the bounds of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.base.plain import Record


@dataclass(frozen=True)
class Provenance(Record):
    """Where an evaluation comes from."""

    versions: dict[str, str]
    command: str = ""  # as typed; empty when called from Python
    source: str = ""  # the file's name
    sha256: str = ""  # of the file's content
    policy: str = ""  # which policy in which form, where a command named one
    policy_sha256: str = ""  # of the policy's file, or of the module that it comes from
    date: str = ""  # of the day, as 2026-01-31


@dataclass(frozen=True)
class Lift(Record):
    """The believed gain as a share of the behaviour policy's mean return."""

    estimate: float
    lower: float | None = None
    upper: float | None = None
