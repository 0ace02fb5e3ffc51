"""The error-rate study: counting, intervals, the same trials whatever the tasks, and the page it writes."""

from dataclasses import replace
from functools import partial

import pytest
from scipy.stats import binom

from tightrope.domains import small
from tightrope.estimators import USUAL
from tightrope.studies import coverage
from tightrope.studies.pages.coverage import render, render_gains
from tightrope.studies.pages.labels import printed
from tightrope.studies.summary import clopper_pearson


def test_clopper_pearson_by_its_definition():
    """5 errors in 100 is [1.6 %, 11.3 %]; the ends make the observed count just that unlikely."""
    low, high = clopper_pearson(5, 100)
    assert (round(low, 3), round(high, 3)) == (0.016, 0.113)
    assert binom.sf(4, 100, low) == pytest.approx(0.025)
    assert binom.cdf(5, 100, high) == pytest.approx(0.025)
    assert clopper_pearson(0, 50)[0] == 0.0
    assert clopper_pearson(50, 50)[1] == 1.0


def lines(tmp_path, part, methods, **settings):
    few = partial(coverage.measured, part, methods=methods, trials=3, results=tmp_path, workers=1)
    return few(**settings)


def test_a_small_study_renders_every_pair(tmp_path):
    cells = lines(tmp_path, "values", few_bounds, names=["clinic"], sizes=(20, 40), sides=coverage.BOTH)
    tight = lines(tmp_path, "compared", coverage.compared, names=["clinic"], sizes=(30,))
    page = render(cells, tight, abouts={"clinic": "treat or not"}, nominal=0.05, trials=(3, 3))
    assert "| PDWIS | t |" in page
    assert "| IS | betting |" in page
    assert "| clinic | 0.571 | IS | 30 |" in page
    assert "## Upper bounds" in page


def few_bounds(process):
    """One approximate bound of each of the page's first part, and an exact one."""
    return tuple(
        replace(one, bounds=("t", "betting") if one.label == "is" else ("t",)) for one in coverage.sampling(process)
    )


def test_every_part_names_its_methods():
    process = small("clinic")
    assert {one.label for one in coverage.sampling(process)} == {"is", "pdis", "wis", "pdwis"}
    assert {one.label for one in coverage.everything(process)} == set(USUAL)
    plain = next(one for one in coverage.sampling(process) if one.label == "wis").bounds
    assert "percentile" in plain
    assert "betting" not in plain  # no exact bound of an estimator that is no mean
    assert "rehearsed" not in plain
    assert not any("earn 0" in one.label for one in coverage.variants(process))
    assert any("earn 0" in one.label for one in coverage.variants(small("cliff")))


def test_gains_are_held_against_the_true_gain(tmp_path):
    """Swapping the policies swaps the sign of the truth; both sides have their rows."""
    name = "clinic, swapped"
    assert small(name).true_value == small("clinic").behavior_value
    cells = lines(tmp_path, "gains", coverage.compared, names=[name], sizes=(20, 40), sides=coverage.BOTH, about="gain")
    assert all(cell.true_value == pytest.approx(0.4859 - 0.57125) for cell in cells)
    assert {(cell.label, cell.bound, cell.side) for cell in cells} >= {
        ("is", "betting", "lower"),
        ("pdis", "cut", "upper"),
    }
    page = render_gains(cells, abouts={name: "the other way round"}, nominal=0.05, trials=3)
    assert "True gain -0.085" in page  # it is -0.08535, give or take a rounding


def test_what_other_runs_wrote_is_kept(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("# Old\n\n## The recommended bound\n\nas measured\n", encoding="utf-8")
    for part in ("render", "render_models", "render_gains"):
        monkeypatch.setattr(coverage, part, lambda *_, **__: "# New\n")
    monkeypatch.setattr(coverage, "measured", lambda *_, **__: [])
    coverage.main(out=page, results=tmp_path, trials=1, compared_trials=1, model_trials=1, gain_trials=1, workers=1)
    assert page.read_text(encoding="utf-8").endswith("## The recommended bound\n\nas measured\n")


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("is", "IS"),
        ("wdr, cross-fitted", "WDR, cross-fitted"),
        ("mb-lr/percentile", "MB-lr/percentile"),
        ("tdr+wdr", "TDR+WDR"),
        ("advice", "advice"),
    ],
)
def test_estimators_print_in_capitals(label, words):
    assert printed(label) == words
