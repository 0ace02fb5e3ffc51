"""Summaries of raw results, worked by hand."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.studies.studies import clinic, failing
from tightrope import StudyError
from tightrope.domains import small
from tightrope.studies.runner import run_study
from tightrope.studies.summary import Mean, average, is_wrong, line, read_results, summarize_results
from tightrope.studies.table import study_table

CODES = ["", "skew", "unlogged-actions", "vacuous bca-clipped", "skew"]


def test_counts_and_means_by_hand():
    """Bounds 1, 2, 6 and one that failed, one warned; the truth is 4: one of four bounds errs."""
    found = line("d", 20, "wis/bca", "lower", np.array([1.0, 2.0, 6.0, 3.0, np.nan]), CODES, 4.0)
    assert (found.trials, found.failed, found.infinite, found.errors, found.warned) == (5, 1, 0, 1, 2)
    assert (found.error_rate, found.valid_share, found.median) == (0.25, 0.75, 2.5)
    # One in four: the ends solve (1 - p)^4 = 0.975 and P(at most one of four) = 0.025.
    assert found.error_low == pytest.approx(1 - 0.975**0.25)
    p = found.error_high
    assert (1 - p) ** 4 + 4 * p * (1 - p) ** 3 == pytest.approx(0.025)
    # Deviations from 3 are -2, -1, 3, 0: s² = 14/3, over the root of 4.
    assert found.mean == Mean(3.0, pytest.approx(1.959964 * np.sqrt(14 / 3) / 2), 4)
    # Of the valid 1, 2, 3: s = 1.
    assert found.valid == Mean(2.0, pytest.approx(1.959964 / np.sqrt(3)), 3)


def test_infinite_bounds_are_never_wrong_and_spoil_only_the_mean_of_all():
    found = line("d", 2, "is/bca", "lower", np.array([-np.inf, 1.0, 3.0, -np.inf, 9.0]), [""] * 5, 4.0)
    assert (found.infinite, found.errors, found.median) == (2, 1, 1.0)
    assert found.mean.value == -np.inf
    assert np.isnan(found.mean.error)
    assert (found.finite.value, found.finite.count) == (13 / 3, 3)
    assert (found.valid.value, found.valid.count) == (2.0, 2)
    upper = line("d", 2, "is/bca", "upper", np.array([np.inf, 3.0]), [""] * 2, 4.0)
    assert (upper.errors, upper.infinite, upper.mean.value) == (1, 1, np.inf)


def test_nothing_but_failures():
    found = line("d", 2, "is/bca", "lower", np.array([np.nan, np.nan]), ["", ""], 4.0)
    assert (found.trials, found.failed, found.errors, found.error_low, found.error_high) == (2, 2, 0, 0.0, 1.0)
    assert np.isnan([found.error_rate, found.mean.value, found.valid.value, found.median]).all()


def test_wrong_is_beyond_two_standard_errors_of_the_truth_and_rounding():
    bounds = np.array([4.0, 4.0 + 1e-12, 4.19, 4.21])
    assert is_wrong(bounds, "lower", 4.0).tolist() == [False, False, True, True]
    assert is_wrong(bounds, "lower", 4.0, 0.1).tolist() == [False, False, False, True]
    assert is_wrong(-bounds, "upper", -4.0, 0.1).tolist() == [False, False, False, True]


def test_a_single_value_has_no_error():
    assert average(np.array([2.0])).count == 1
    assert np.isnan(average(np.array([2.0])).error)


def test_from_the_table_of_a_study(tmp_path):
    results = read_results(run_study(clinic(sizes=(20, 2), trials=4, methods=failing), tmp_path, workers=1))
    lines = summarize_results(results)
    assert [(one.n, one.method) for one in lines] == [
        (n, name)
        for n in (20, 2)
        for name in ("refuses/percentile", "crashes/percentile", "crashes/bca", "pdwis/percentile")
    ]
    assert lines[0].reason == "no such luck"
    assert results.true_value == small("clinic").true_value
    values = results.columns["value"][(results.columns["n"] == 20) & (results.columns["label"] == "pdwis")]
    assert (lines[3].mean.value, lines[3].median) == (values.mean(), np.median(values))
    assert study_table(results, lines)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "x.parquet"
    with pytest.raises(StudyError, match="cannot be read as a table of results"):
        read_results(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(StudyError, match="lack the configuration"):
        read_results(path)
