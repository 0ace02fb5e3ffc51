"""What was planted and who noticed, as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.mutants.planting import Mutant, Topic
from tests.mutants.running import Outcome

_ABOUT = """# Planted mistakes

Written by `make mutants`: {planted} mistakes that somebody could make, each planted by itself into a copy of the
package, and the test that notices it. {noticed} are noticed, {equivalent} {are} declared equivalent, with the reason,
and none survives. A mistake is a replacement in a named function, method or constant (`tests/mutants/planted/`), so
that moving code does not lose it; one that no longer fits is an error, which `make test` looks for. Tests that compare
a page with its own text do not count.
"""


def page(topics: Sequence[Topic], outcomes: Mapping[Mutant, Outcome]) -> str:
    """The whole page."""
    equivalent = sum(bool(mutant.equivalent) for mutant in outcomes)
    are, planted = "is" if equivalent == 1 else "are", len(outcomes)
    lines = [_ABOUT.format(planted=planted, noticed=planted - equivalent, equivalent=equivalent, are=are)]
    for topic in topics:
        lines += [f"## {topic.title}", "", "| mistake | where | noticed by |", "|---|---|---|"]
        lines += [row(mutant, outcomes[mutant].test) for mutant in topic.mutants]
        lines.append("")
    return "\n".join(lines)


def row(mutant: Mutant, node: str) -> str:
    """One line of the table."""
    test = node.partition("::")[2].partition("[")[0]
    by = f"equivalent: {mutant.equivalent}" if mutant.equivalent else f"`{test}`"
    return f"| {cell(mutant.mistake)} | `{mutant.where}` | {cell(by)} |"


def cell(text: str) -> str:
    """A text that stays in its cell."""
    return text.replace("|", "\\|").replace("\n", " ")
