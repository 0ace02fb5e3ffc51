"""Sections of a page in Markdown that are written by runs of their own."""

from __future__ import annotations

from pathlib import Path

import typer

from tightrope.io.write import write_text


def with_section(page: str, title: str, text: str) -> str:
    """The page with the section of this title (``## ...``) replaced, or added at the end."""
    head = f"## {title}\n"
    section = f"{head}\n{text.strip()}\n"
    if head not in page:
        return f"{page.rstrip()}\n\n{section}".lstrip()
    before, _, rest = page.partition(head)
    _, mark, after = rest.partition("\n## ")
    return before + section + (f"{mark}{after}" if mark else "")


def write_section(out: Path, title: str, text: str, *, head: str = "") -> None:
    """Replace a section of a page, whole or not at all; a page that is not there yet begins with ``head``."""
    page = out.read_text(encoding="utf-8") if out.exists() else head
    write_text(out, with_section(page, title, text))
    typer.echo(f"wrote {out}")


def section_of(page: str, title: str) -> str | None:
    """The text of a section; None where the page has none of this title."""
    head = f"## {title}\n"
    if head not in page:
        return None
    return page.partition(head)[2].partition("\n## ")[0].strip()
