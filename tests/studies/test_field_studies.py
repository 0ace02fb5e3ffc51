"""The studies behind the page of the field, tiny: what they count, and the sections they write."""

from __future__ import annotations

import numpy as np

from tightrope.domains import small
from tightrope.studies import limited
from tightrope.studies.pages.limited import TITLE, is_wrong


def test_bounds_on_limited_ratios_lie_on_their_sides_and_in_range():
    result = limited.trial("clinic", 20, 3)
    low, high = 0.0, 1.0
    assert {key.count("/") for key in result} == {3}
    for key, value in result.items():
        least = low - high if "/gain/" in key else low
        assert least <= value <= high
        if key.endswith("lower"):
            assert value <= result[key.replace("lower", "upper")]
    assert result["pdis/betting/value/lower"] <= small("clinic").true_value


def test_wrong_is_beyond_the_truth():
    values = np.array([0.1, 0.5, 0.9])
    assert is_wrong(values, "x/y/value/lower", 0.5).tolist() == [False, False, True]
    assert is_wrong(values, "x/y/value/upper", 0.5).tolist() == [True, False, False]


def test_the_section_of_limited_ratios(tmp_path, monkeypatch):
    monkeypatch.setattr(limited, "CORE", ("clinic",))
    page = tmp_path / "field.md"
    limited.main(out=page, results=tmp_path / "cells", trials=2)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# The field")
    assert f"## {TITLE}" in text
    assert "| clipped, betting |" in text
    assert "| clinic | 200 | 0.5713 |" in text
