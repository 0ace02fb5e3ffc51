"""Where an evaluation comes from: versions, the command, and the content of the file it read."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tightrope.base.beside import Provenance
from tightrope.base.errors import visible

PACKAGES = ("tightrope", "numpy", "scipy", "numba", "pyarrow")  # what the numbers may depend on


def with_origin(record: Provenance, command: str, sources: Sequence[str], date: str) -> Provenance:
    """With what only a command knows: how it was typed, the files that it read, the content's SHA-256, the day.

    Several files have the hash that ``sha256sum FILES | sha256sum`` prints. A folder has none: it may be too large to
    be read once more.
    """
    known = replace(record, command=visible(command), date=date, source=visible(", ".join(sources)))
    if not all(Path(one).is_file() for one in sources):
        return known
    if len(sources) == 1:
        return replace(known, source=visible(Path(sources[0]).name), sha256=sha256_of(Path(sources[0])))
    lines = "".join(f"{sha256_of(Path(one))}  {one}\n" for one in sources)
    return replace(known, sha256=hashlib.sha256(lines.encode()).hexdigest())


def sha256_of(path: Path) -> str:
    """The hash of a file's content, as ``sha256sum`` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
