"""The studies behind the page of the field, tiny: what they count, and the sections they write."""

from __future__ import annotations

import numpy as np

import tightrope
from tightrope.base.problem import Problem
from tightrope.bounds import Percentile
from tightrope.domains import small
from tightrope.estimators import Slope
from tightrope.studies import choosing, limited
from tightrope.studies.counts import generator
from tightrope.studies.pages.choosing import MEMBERS, WAYS
from tightrope.studies.pages.choosing import TITLE as CHOOSING
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


def test_the_best_of_all_is_beyond_each_and_naive_is_a_member():
    result = choosing.trial("walker", 20, 1)
    lows, highs = ([result[f"{name}/{side}"] for name in MEMBERS] for side in ("lower", "upper"))
    assert result["the best of all/lower"] == max(lows)
    assert result["the best of all/upper"] == min(highs)
    assert result["slope, naive/lower"] == lows[int(result["choice"])]
    assert 0 <= result["moves"] <= 1


def test_bounds_with_the_choice_are_those_of_the_package():
    """SLOPE's percentile bound as ``lower_bound`` computes it, on the same weights."""
    made = small("decline")
    logs = made.logs(20, rng=generator("decline", 20, 4))
    result = choosing.trial("decline", 20, 4)
    bound = tightrope.lower_bound(
        logs, made.candidate, estimator=choosing.SLOPE, method=Percentile(), n_resamples=choosing.RESAMPLES, seed=4
    )
    assert bound.value == result["slope/lower"]
    made_again = Slope(choices=MEMBERS)(Problem(logs, made.candidate)).model
    assert made_again.n_trajectories == 20


def test_the_section_on_choosing(tmp_path, monkeypatch):
    monkeypatch.setattr(choosing, "PROBLEMS", ("clinic",))
    page = tmp_path / "field.md"
    choosing.main(out=page, results=tmp_path / "cells", trials=3)
    text = page.read_text(encoding="utf-8")
    assert f"## {CHOOSING}" in text
    assert "| OPERA, with the choice |" in text
    assert text.count("| clinic | 20 |") == 3
    assert len(WAYS) == 5
