"""Every data set of the error-rate tables is another one: a rate counted over copies would say nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tightrope.studies import behavior_coverage, coverage
from tightrope.studies.problems import Named
from tightrope.studies.study import Study
from tightrope.studies.trial import Trial, run_trial

SIZES = (20, 21)
STUDIES = {
    "values": Study("values", Named("bonus"), SIZES, 3, coverage.compared),
    "models": Study("models", Named("bonus"), SIZES, 3, coverage.variants, n_resamples=40),
    "gains": Study("gains", Named("bonus"), SIZES, 3, coverage.compared, about_what="gain"),
    "behavior": replace(behavior_coverage.study("bonus", "estimated", 3), sizes=SIZES, n_resamples=40),
}


@pytest.mark.parametrize("name", STUDIES)
def test_no_two_data_sets_are_alike(name):
    trials = [*(Trial(20, number) for number in range(3)), Trial(21, 0)]
    values = [run_trial(STUDIES[name], trial).rows[0].value for trial in trials]
    assert len(set(values)) == 4
    assert values[2] == run_trial(STUDIES[name], trials[2]).rows[0].value
