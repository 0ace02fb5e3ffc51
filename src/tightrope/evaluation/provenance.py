"""Where an evaluation comes from: versions, the command, and the content of the file it read."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tightrope.base.errors import visible
from tightrope.base.records import Provenance

PACKAGES = ("tightrope", "numpy", "scipy", "numba", "pyarrow")  # what the numbers may depend on


def provenance(command: str = "", source: Path | None = None) -> Provenance:
    """Versions as they are now; with a file, its name and the SHA-256 of its content."""
    versions = dict(_versions())
    if source is None or not source.is_file():
        return Provenance(versions, visible(command), visible(str(source or "")))
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Provenance(versions, visible(command), visible(source.name), digest)


@cache  # looking them up takes longer than many an evaluation
def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # used from its sources, without having been installed
            versions[name] = "not installed"
    return versions
