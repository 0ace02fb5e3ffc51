"""Every data set of the error-rate tables is another one: a rate counted over copies would say nothing."""

from __future__ import annotations

import pytest

from tightrope.studies import behavior_coverage, coverage, model_coverage

STUDIES = {
    "coverage": lambda trials, n: coverage.run(coverage.Task("bonus", n, trials, ("betting",), ("is",))),
    "behavior": lambda trials, n: behavior_coverage.run(coverage.Task("bonus", n, trials, ("t",), ("wis",), "lower")),
    "models": lambda trials, n: model_coverage.run(model_coverage.ModelTask("bonus", n, trials)),
}


@pytest.mark.parametrize("name", STUDIES)
def test_no_two_data_sets_are_alike(name, monkeypatch):
    monkeypatch.setattr(model_coverage, "METHODS", ("t",))  # each variant once: the data are in question, not it
    study = STUDIES[name]
    found = [*_values(study(range(3), 20)), *_values(study(range(1), 21))]
    assert len(set(found)) == len(found) == 4
    assert found[2] == _values(study(range(2, 3), 20))[0]


def _values(outcomes):
    """The first line's bounds, by trial."""
    return [value for value, _ in next(iter(outcomes.values()))]
