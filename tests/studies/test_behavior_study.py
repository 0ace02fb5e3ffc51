"""The study that sets an estimated behaviour policy beside the true one: its trials, its counts, its page."""

from dataclasses import replace

import numpy as np
import pytest

from tightrope.studies.behavior_coverage import BOUNDS, ESTIMATORS, KNOWN, accuracy, study
from tightrope.studies.pages.behavior import Accuracy, render
from tightrope.studies.runner import run_study
from tightrope.studies.summary import read_results, summarize_results


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    few = {known: replace(study("clinic", known, 3), sizes=(20,), n_resamples=40) for known in KNOWN}
    return {
        known: read_results(run_study(one, tmp_path_factory.mktemp(known), workers=1)) for known, one in few.items()
    }


def test_the_estimate_makes_a_difference_on_the_same_data(outcomes):
    true, estimated = (one.columns["value"] for one in outcomes.values())
    assert len(true) == len(ESTIMATORS) * len(BOUNDS) * 3
    assert np.isfinite(estimated).all()
    assert (true != estimated).all()
    assert outcomes["true"].configuration["behavior"] == "logged"
    assert outcomes["estimated"].configuration["behavior"] == "tabular"


def test_accuracy_by_hand():
    row = Accuracy.of("p", 20, "is", np.array([3.0, -4.0]), np.array([1.0, -1.0]))
    assert row.true_rmse == pytest.approx(np.sqrt(12.5))
    assert (row.estimated_rmse, row.true_bias, row.estimated_bias) == (1.0, -0.5, 0.0)


def test_the_page_sets_them_side_by_side(outcomes):
    page = render(
        [line for one in outcomes.values() for line in summarize_results(one)],
        accuracy("clinic", 20, outcomes),
        abouts={"clinic": "treat or not"},
        nominal=0.05,
        trials=3,
        resamples=40,
    )
    assert "| WDR | bca |" in page
    assert "n = 20: error %, true | estimated | mean, true | estimated |" in page
    assert f"0 of {len(ESTIMATORS) * len(BOUNDS)} with the true policy" in page
