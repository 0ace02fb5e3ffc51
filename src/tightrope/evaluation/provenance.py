"""Where an evaluation comes from: versions, the command, and the content of the file it read."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tightrope.base.errors import visible
from tightrope.base.records import Provenance

PACKAGES = ("tightrope", "numpy", "scipy", "numba", "pyarrow")  # what the numbers may depend on


def with_origin(record: Provenance, command: str, source: Path) -> Provenance:
    """With what only a command knows: how it was typed, the name of the file that it read, the content's SHA-256."""
    if not source.is_file():
        return replace(record, command=visible(command), source=visible(str(source)))
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return replace(record, command=visible(command), source=visible(source.name), sha256=digest)


def provenance() -> Provenance:
    """Versions as they are now."""
    return Provenance(dict(_versions()))


@cache  # looking them up takes longer than many an evaluation
def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # used from its sources, without having been installed
            versions[name] = "not installed"
    return versions
