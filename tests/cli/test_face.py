"""What a terminal shows in six situations, at two widths and in a pipe: kept as text, and nothing of it cut.

After a change that is meant, ``python -m tests.cli.test_face`` writes the texts anew: read them before you keep them.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from tests.reports import report_of
from tightrope.base.rounding import outward
from tightrope.report.table import evaluation_table

SITUATIONS = {
    "yes": "clear yes",
    "no": "clear no",
    "cannot tell": "cannot tell",
    "broken": "broken overlap",
    "one step": "one step",
    "no propensities": "no propensities",
}
WIDTHS = {"80": 80, "120": 120, "piped": None}
SNAPSHOTS = Path(__file__).parent / "snapshots"
CASES = [(name, width) for name in SITUATIONS for width in WIDTHS]


def shown(name, width, **options):
    """The text of an evaluation in a terminal of so many columns; without a width as into a pipe."""
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=False, _environ={})
    console.print(evaluation_table(report_of(SITUATIONS.get(name, name)), **options))
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def path(name, width):
    return SNAPSHOTS / f"{name.replace(' ', '-')}-{width}.txt"


@pytest.mark.parametrize(("name", "width"), CASES)
def test_the_text_is_as_it_was(name, width):
    assert shown(name, WIDTHS[width]) == path(name, width).read_text(encoding="utf-8")


def numbers(result):
    """Every number of the bounds that a short table lists, as it prints them."""
    answering = result.believed_gains if result.verdict.about == "gain" else result.believed
    return {f"{outward(bound.value, bound.side, 5):#.5g}" for bound in answering} | {
        f"{bound.estimate:#.5g}" for bound in answering
    }


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("name", SITUATIONS)
@pytest.mark.parametrize("everything", [False, True])
def test_nothing_is_cut(name, width, everything):
    result = report_of(SITUATIONS[name])
    text = shown(name, width, everything=everything)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    for number in numbers(result):
        assert re.search(rf"(?<![\d.]){re.escape(number)}(?![\d])", text), number


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_answer_comes_first(name):
    """The verdict is the first line, and the number line stands above all other words."""
    result = report_of(SITUATIONS[name])
    lines = shown(name, 120).splitlines()
    assert lines[0] == result.verdict.headline
    axis = next(number for number, line in enumerate(lines) if "───" in line)
    assert axis < next(number for number, line in enumerate(lines) if line.startswith("Logs:")) <= 14


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_is_recommended_has_a_sign_of_its_own(name):
    result = report_of(SITUATIONS[name])
    marked = [line.split()[1:3] for line in shown(name, 120).splitlines() if line.startswith(" ▶")]
    answering = result.believed_gains if result.verdict.about == "gain" else result.believed
    assert marked == [[one.estimator.upper(), one.method] for one in {b.method: b for b in answering}.values()]


@pytest.mark.parametrize("name", SITUATIONS)
def test_every_mark_is_explained(name):
    text = shown(name, 120)
    header, *rows = re.findall(r"^.*(?:marks|approx\.|exact  ).*$", text, re.MULTILINE)
    used = set("".join(row.split()[-1] for row in rows if header.endswith("marks") and row.split()[-1].isalpha()))
    explained = set(re.findall(r"^([a-zA-Z]) [a-z-]+: ", text, re.MULTILINE))
    assert used - {"."} == explained


def main():
    SNAPSHOTS.mkdir(exist_ok=True)
    for name, width in CASES:
        path(name, width).write_text(shown(name, WIDTHS[width]), encoding="utf-8")


if __name__ == "__main__":
    main()
