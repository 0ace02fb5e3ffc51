"""The map shows the table of the page, every row of it, and nothing in it is cut."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_documentation import DOCS, load

field_map = load(DOCS / "field_map_picture.py")
ROWS = """
| state | steps | overlap | n | best bound | errors % | distance | as good | best estimate | its error |
|---|---:|---:|---:|---|---:|---:|---|---|---:|
| all seen | 5 | 50 % | 40 | MB bca | 4.2 [0.1, 21.1] | 0.275 | – | WDR | 0.1 |
| all seen | 5 | 10 % | 40 | TDR betting | **12.0** [8.0, 17.0] | 1.21 | IS bca, DR bca and 2 more | MB | 0.2 |
| a part hidden | 5 | 50 % | 40 | PDWIS studentized | 0.0 [0.0, 3.0] | 0.7 | – | IS | 0.3 |
| a part hidden | 5 | 10 % | 40 | none | – | nan | – | MB | 0.4 |

| estimator | percentile | bca | no bound | won |
|---|---:|---:|---:|---:|
| MB | 0 (4%) | 0 (5%) | 0 | 1 |
"""


def test_the_picture_is_up_to_date():
    picture = field_map.draw(field_map.tiles(field_map.PAGE.read_text(encoding="utf-8")))
    assert field_map.PICTURE.read_text(encoding="utf-8") == picture, "run `python docs/field_map_picture.py`"


def test_every_row_of_the_table_is_a_tile():
    text = field_map.PAGE.read_text(encoding="utf-8")
    assert (
        len(field_map.tiles(text))
        == len(re.findall(r"^\| (?:all seen|models too simple|a part hidden) \|", text, re.MULTILINE))
        == 54
    )


def test_rows_are_read():
    one, two, three, four = field_map.tiles(ROWS)
    assert (one.steps, one.overlap, one.n, one.errors, one.distance, one.estimate) == (
        5,
        "50 %",
        40,
        "4.2",
        "0.275",
        "WDR",
    )
    assert [tile.kind for tile in (one, two, three, four)] == ["model", "both", "ratios", "none"]
    assert [tile.over for tile in (one, two, three, four)] == [False, True, False, False]
    assert (two.bound, three.bound, four.bound) == ("betting, exact", "studentized", "")
    picture = field_map.draw([one, two, three, four])
    assert picture.count('class="both over"') == 1
    assert "1.2 off, 12 %" in picture
    assert "All of the state is logged, 40 episodes" in picture


@pytest.mark.parametrize("words", ["betting, exact", "estimate: CLIPPED", "0.31 off, 12 %"])
def test_words_fit_into_a_tile(words):
    assert 7.2 * len(words) < field_map.TILE + 8  # pixels a letter of this size takes at most, on average
