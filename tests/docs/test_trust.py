"""The dots are the numbers of the page of error rates, all of them, and the pictures are up to date."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_documentation import DOCS, load

trust = load(DOCS / "trust.py")
ADVICE = """
## The recommended bound

| problem | n | data sets | errors % | no answer | distance | of the best | best pair | exact: errors % | distance |
|---|---:|---:|---:|---:|---:|---:|---|---:|---:|
| walker | 50 | 500 | **9.0** [6.6, 11.9] | 0 | 3 | 1.10 | TDR percentile | 1.0 [0.3, 2.3] | 4 |
| walker | 200 | 500 | – | 500 | nan | – | – | 1.0 [0.3, 2.3] | 4 |

### The gain over the behaviour policy

| problem | n | data sets | errors % | no answer | distance | of the best | best pair | exact: errors % | distance |
|---|---:|---:|---:|---:|---:|---:|---|---:|---:|
| walker | 50 | 500 | 4.0 [2.5, 6.1] | 0 | 3 | 1.10 | TDR percentile | 1.0 [0.3, 2.3] | 4 |

### Errors by what was recommended, and by warnings

| recommended | cells | data sets | errors % |
|---|---:|---:|---:|
| TDR with percentile | 2 | 1000 | 6.0 [4.6, 7.7] |
"""


@pytest.fixture(scope="module")
def page():
    return trust.PAGE.read_text(encoding="utf-8")


def test_the_pictures_are_up_to_date(page):
    for name, text in trust.pictures(page).items():
        assert (trust.PICTURES / name).read_text(encoding="utf-8") == text, "run `python docs/trust.py`"


def test_no_cell_of_an_approximate_bound_is_left_out(page):
    rows = trust.approximate(page)
    lines = re.findall(r"^\| (\w+) \| ([\w-]+) \| (\d+) of (\d+) \| ([\d.]+)% \((.*)\) \|", page, re.MULTILINE)
    short = {f"{one[0].upper()} {one[1]}": one[2:] for one in reversed(lines)}  # the first table, of values, stays
    for name, cells in rows.items():
        over, count, worst, _ = short[name]
        assert len(cells) == int(count)
        assert sum(cell.bad for cell in cells) == int(over)
        assert max(cells).rate == float(worst)
    assert len(rows) == 20


def test_no_error_of_the_exact_bound_is_left_out(page):
    rows = trust.exact(page)
    errors = [int(count) for count in re.findall(r"(\d+) \([\d.]+ % at most\)", page)]
    sets = [
        int(count) for count in re.findall(r"^\| [\w, -]+ \| (?:value|gain) \| \d+ \| (\d+) \|", page, re.MULTILINE)
    ]
    shown = [cell for cells in rows.values() for cell in cells]
    assert len(errors) == 4 * len(sets)
    assert sum(cell.rate for cell in shown) / len(shown) == pytest.approx(100 * sum(errors) / (4 * sum(sets)))
    assert all(cell.low < cell.rate < cell.high for cell in shown)


def test_the_recommended_bound_is_drawn_where_it_was_measured():
    rows = trust.recommended(ADVICE)
    assert {name: [(cell.rate, cell.bad) for cell in cells] for name, cells in rows.items()} == {
        "walker": [(9.0, True)],
        "walker, gain": [(4.0, False)],
    }
    assert trust.recommended("# A page without it\n") == {}


def test_the_page_shows_the_recommended_bound_where_it_was_measured(page):
    text = trust.TRUST.read_text(encoding="utf-8")
    assert trust.with_recommended(text, page) == text, "run `python docs/trust.py`"
    assert "Of 2 cells, 1 lie above" in trust.with_recommended(text, ADVICE)
    assert "not been measured" in trust.with_recommended(text, "")


def test_numbers_of_other_pages_are_still_theirs():
    text = trust.TRUST.read_text(encoding="utf-8")
    quoted = [
        (number, page)
        for point in re.split(r"\n(?=- |\n)", text)
        for number in re.findall(r"\*\*([\d,]+)\*\*", point)
        for page in re.findall(r"\]\((\w+\.md)\)", point)
    ]
    assert len(quoted) == 3
    assert [one for one in quoted if one[0] not in (DOCS / one[1]).read_text(encoding="utf-8")] == []
