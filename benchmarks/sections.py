"""Each benchmark owns one section of docs/benchmarks.md and replaces it alone."""

from __future__ import annotations

import re
from pathlib import Path


def publish(text: str, out: Path | None) -> None:
    """Print a section, and write it into its place where a file is given."""
    print(text)
    if out is not None:
        replace_section(out, text)


def replace_section(path: Path, text: str) -> None:
    """Put ``text`` where the section with the same heading (up to a colon) stands, or at the end."""
    heading = text.strip().splitlines()[0].split(":")[0]
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = [part.strip() for part in re.split(r"^(?=##? )", old, flags=re.MULTILINE) if part.strip()]
    same = [part.splitlines()[0].split(":")[0] == heading for part in parts]
    if any(same):
        parts[same.index(True)] = text.strip()
    else:
        parts.append(text.strip())
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
