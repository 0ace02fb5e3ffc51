"""The studies of the field, tiny: what they count, who wins a cell of the map, and the sections they write."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope
from tightrope.base.errors import StudyError
from tightrope.estimators import ESTIMATORS, USUAL
from tightrope.studies import field, field_map
from tightrope.studies.pages.field import render as render_rates
from tightrope.studies.pages.field_map import Place, Sample, cell, render, tallied
from tightrope.studies.summary import Results, line

TRUTH, SPREAD, SPAN = 1.0, 2.0, (-9.0, 11.0)
PLACE = Place(1, 20, 0.1)


def sample(n=40, trials=40, **values) -> Sample:
    """Results of one problem: for each method a list of (bound, estimate), repeated as often as needed."""
    rows = []
    for trial in range(trials):
        for name, given in values.items():
            bound, estimate = given(trial)
            rows.append((name.replace("_", "/"), trial, bound, estimate))
    names = ("method", "trial", "value", "estimate")
    columns = {name: np.array([row[k] for row in rows], dtype=object) for k, name in enumerate(names)}
    columns |= {name: columns[name].astype(float) for name in ("trial", "value", "estimate")}
    columns["n"] = np.full(len(rows), n)
    return Sample(
        Results(columns, {"domain": {"name": "toy", "true_value": TRUTH, "true_value_error": 0.0}}), SPREAD, SPAN
    )


def first(trial):
    return trial < 20


def test_one_half_chooses_and_the_other_reports():
    """IS is near where it is chosen and far where it is reported; WDR the other way round."""
    one = sample(
        is_t=lambda trial: (0.8 if first(trial) else -3.0, 1.0),
        wdr_t=lambda trial: (-3.0 if first(trial) else 0.8, 1.4),
    )
    won = cell(PLACE, 40, [one, one])
    assert won.winner == "is/t"
    assert won.distance == pytest.approx((1 + 3) / SPREAD)
    assert (won.errors.errors, won.errors.trials) == (0, 40)
    assert won.alike == ("wdr/t",)  # nearer on the half that reports


def test_what_errs_too_often_cannot_win():
    """Nearer on average, but wrong in a quarter of the data sets that choose."""
    one = sample(
        mb_t=lambda trial: (1.1 if trial % 4 == 0 else 0.95, 1.0),
        is_t=lambda trial: (0.0, 3.0),
    )
    won = cell(PLACE, 40, [one])
    assert (won.winner, won.distance) == ("is/t", pytest.approx(0.5))
    assert won.alike == ()
    assert (won.levels["mb/t"].errors, won.levels["mb/t"].trials) == (10, 40)
    assert (won.estimator, won.error) == ("mb", 0.0)  # its estimate is the best nevertheless
    nobody = cell(PLACE, 40, [sample(mb_t=lambda trial: (2.0, 5.0))])
    assert (nobody.winner, nobody.estimator, nobody.error) == ("", "mb", pytest.approx(2.0))
    assert "none" in nobody.line()


def test_what_errs_too_often_in_one_problem_cannot_win():
    """5 % in all: a fifth of one problem's data sets, none of the three others'."""
    bad = sample(mb_t=lambda trial: (1.1 if trial % 5 == 0 else 0.9, 1.0), is_t=lambda trial: (0.0, 1.0))
    good = sample(mb_t=lambda trial: (0.9, 1.0), is_t=lambda trial: (0.0, 1.0))
    assert cell(PLACE, 40, [good] * 4).winner == "mb/t"
    assert cell(PLACE, 40, [bad, good, good, good]).winner == "is/t"
    (mb, _), chooses = tallied(40, [bad, good, good, good])
    assert not mb.counted(chooses).over


def test_a_winner_that_errs_on_fresh_data_is_bold():
    one = sample(mb_t=lambda trial: (0.9 if first(trial) else 1.5, 1.0))
    won = cell(PLACE, 40, [one])
    assert won.errors.over
    page = render([won], seeds=(101, 102), trials=40, resamples=500)
    assert "| all seen | 20 | 10 % | 40 | MB t | **100.0** [83.2, 100.0] | -0.25 | – | MB | 0 |" in page
    assert "Winners that err more often than 5 % beyond noise on fresh data: 1 of 1." in page
    assert "the other half, 40 data sets" in page  # of two problems
    assert "| MB | 1 (50%) | 0 | 1 |" in page


def test_a_missing_bound_is_the_lowest_possible_and_a_missing_estimate_the_worst():
    one = sample(
        is_t=lambda trial: (-np.inf if trial % 2 else np.nan, np.nan),
        wdr_t=lambda trial: (-20.0, 1.0),
    )
    (absent, low), chooses = tallied(40, [one])
    assert (absent.absent, low.absent) == (40, 0)
    np.testing.assert_allclose(absent.distance, (TRUTH - SPAN[0]) / SPREAD)
    np.testing.assert_allclose(low.distance, (TRUTH - SPAN[0]) / SPREAD)
    np.testing.assert_allclose(absent.error, (SPAN[1] - SPAN[0]) / SPREAD)
    assert not absent.wrong.any()
    assert chooses.tolist() == [True] * 20 + [False] * 20


def test_problems_count_on_their_own_scale():
    """The same distance in units of each problem's spread."""
    narrow = sample(is_t=lambda trial: (0.0, 1.0))
    wide = Sample(narrow.results, 10.0, SPAN)
    (tally,), _ = tallied(40, [narrow, wide])
    assert sorted(set(tally.distance.tolist())) == [pytest.approx(0.1), pytest.approx(0.5)]


def test_every_registered_estimator_is_on_the_map():
    process = field_map.Drawn(PLACE, 7).load()
    methods = {one.label: one.bounds for one in field_map.contenders(tuple(ESTIMATORS), False, process)}
    assert set(methods) == set(ESTIMATORS)
    assert methods["is"] == ("percentile", "bca", "studentized", "betting")
    assert methods["wdr"] == ("percentile", "bca", "studentized")
    assert {place.state for place in field_map.PLACES} == {"all seen", "models too simple", "a part hidden"}
    assert len({seed % 2 for seed in field_map.SEEDS}) == 2  # what is hidden helps in some and harms in others


def test_models_that_are_too_simple_are_wrong_and_those_that_know_tables_alone_are_left_out():
    place = Place(1, 5, 0.1, simple=True)
    process = field_map.Drawn(place, 7).load()
    methods = {one.label: one for one in field_map.contenders(tuple(ESTIMATORS), True, process)}
    assert set(ESTIMATORS) - set(methods) == {"mb", "mis"}
    assert methods["is"].bounds == ("percentile", "bca", "studentized", "betting")
    assert methods["tdr"].bounds == ("percentile", "bca", "studentized")
    logs = process.logs(4000, rng=np.random.default_rng(5))
    estimates = {
        name: tightrope.estimate(logs, process.candidate, estimator=methods[name].estimator)
        for name in ("fqe", "dr", "pdis")
    }
    spread = process.mdp.spread(process.candidate)
    near = {name: abs(value - process.true_value) / spread < 0.1 for name, value in estimates.items()}
    assert near == {"fqe": False, "dr": True, "pdis": True}


def test_features_on_a_line_by_hand():
    np.testing.assert_array_equal(field_map.on_a_line(np.array([0, 5])), [[1, -1], [1, 1]])
    np.testing.assert_array_equal(
        field_map.a_line_for_each_action(np.array([0, 5]), np.array([0, 2])), [[1, -1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1]]
    )


def test_a_tiny_map(tmp_path, monkeypatch):
    monkeypatch.setattr(field_map, "PLACES", (PLACE,))
    monkeypatch.setattr(field_map, "SIZES", (10,))
    monkeypatch.setattr(field_map, "SEEDS", (7,))
    monkeypatch.setattr(field_map, "RESAMPLES", 100)
    page = tmp_path / "field.md"
    field_map.main(out=page, results=tmp_path / "raw", only=["is", "mb"], trials=2, workers=1)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# The field, measured\n")
    assert "## The map\n" in text
    assert "| all seen | 20 | 10 % | 10 | " in text
    assert "Of 2 estimators that took part: IS, MB." in text


# -- error rates ------------------------------------------------------------------------------------------------------


def test_the_others_are_what_is_not_usual(monkeypatch):
    assert field.others() == [name for name in ESTIMATORS if name not in USUAL]
    monkeypatch.setattr(field, "USUAL", ("wis", "mb"))
    assert field.others() == [name for name in ESTIMATORS if name not in ("wis", "mb")]
    (method,) = field.alone("is", None)
    assert set(method.bounds) >= {"percentile", "bca", "studentized", "betting", "hoeffding"}
    assert "t" not in method.bounds
    assert field.alone("wis", None)[0].bounds == ("percentile", "bca", "studentized")


def test_nothing_to_measure_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(field, "USUAL", tuple(ESTIMATORS))
    with pytest.raises(StudyError, match="every registered estimator is a usual one"):
        field.main(out=tmp_path / "page.md", results=tmp_path, only=None, trials=1, workers=1)


def test_a_tiny_study_of_error_rates(tmp_path, monkeypatch):
    monkeypatch.setattr(field, "PROBLEMS", ("model-fail",))
    monkeypatch.setattr(field, "MOST", {"wis": 2})
    page = tmp_path / "field.md"
    field.main(out=page, results=tmp_path / "raw", only=["wis"], trials=3, workers=1)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# The field, measured\n")
    assert "2 independent data sets a cell" in text
    assert "- **WIS**: " in text
    assert "### model-fail: two steps that look alike" in text
    assert "True value -0.7600." in text
    assert text.count("| WIS | percentile |") == 2


def test_rates_and_distances_by_hand():
    """Two of twenty wrong on the lower side; upper bounds lie 0.5 above; one pair gave nothing."""
    lower = np.array([1.5] * 2 + [0.5] * 17 + [-np.inf])
    cells = [
        line("toy", 20, "wis/t", "lower", lower, [""] * 20, 1.0),
        line("toy", 20, "wis/t", "upper", np.full(20, 1.5), [""] * 20, 1.0),
        line("toy", 20, "wis/bca", "lower", np.full(20, np.nan), [""] * 20, 1.0),
        line("toy", 20, "wis/bca", "upper", np.full(20, 0.5), [""] * 20, 1.0),
    ]
    text = render_rates(cells, abouts={"toy": "words"}, nominal=0.05)
    mean = (2 * 1.5 + 17 * 0.5) / 19
    assert f"| WIS | t | 10.0 [1.2, 31.7] | {1 - mean:.4g} (1 infinite) | 0.0 [0.0, 16.8] | 0.5 |" in text
    assert "| WIS | bca | no bound | – | **100.0** [83.2, 100.0] | -0.5 |" in text
    assert "| WIS | t | 0 of 2 | 10.0% (toy, lower, n = 20) | 0 |" in text
    assert "| WIS | bca | 1 of 2 | 100.0% (toy, upper, n = 20) | 20 |" in text
