"""The study that sets an estimated behaviour policy beside the true one: its trials, its counts, its page."""

import numpy as np
import pytest

from tightrope.studies import behavior_coverage
from tightrope.studies.behavior_coverage import ESTIMATORS, METHODS, accuracy, run
from tightrope.studies.coverage import Task, cells
from tightrope.studies.pages.behavior import Accuracy, render


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(behavior_coverage, "RESAMPLES", 40)
        yield run(Task("clinic", 20, range(3), METHODS, ESTIMATORS, "lower"))


def test_trials_do_not_depend_on_how_they_are_cut_up(found, monkeypatch):
    monkeypatch.setattr(behavior_coverage, "RESAMPLES", 40)
    pieces = [run(Task("clinic", 20, piece, METHODS, ESTIMATORS, "lower")) for piece in (range(1), range(1, 3))]
    assert found == {key: pieces[0][key] + pieces[1][key] for key in found}


def test_the_estimate_makes_a_difference(found):
    for estimator in ESTIMATORS:
        assert found[f"{estimator} true", "bca", "lower"] != found[f"{estimator} estimated", "bca", "lower"]


def test_accuracy_by_hand():
    row = Accuracy.of("p", 20, "is", np.array([3.0, -4.0]), np.array([1.0, -1.0]))
    assert row.true_rmse == pytest.approx(np.sqrt(12.5))
    assert (row.estimated_rmse, row.true_bias, row.estimated_bias) == (1.0, -0.5, 0.0)


def test_the_page_sets_them_side_by_side(found):
    bounds = {key: pairs for key, pairs in found.items() if key[1] in METHODS}
    page = render(
        cells("clinic", 20, bounds),
        accuracy("clinic", 20, found),
        abouts={"clinic": "treat or not"},
        nominal=0.05,
        trials=3,
        resamples=40,
    )
    assert "| WDR | bca |" in page
    assert "n = 20: error %, true | estimated | mean, true | estimated |" in page
    assert f"0 of {len(ESTIMATORS) * len(METHODS)} with the true policy" in page
