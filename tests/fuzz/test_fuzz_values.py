"""A small sample of the fuzzing run: valid logs in strange clothes, every number against the oracle.

``make fuzz`` is the long run.
"""

from __future__ import annotations

import numpy as np
import pytest

import tightrope
from tests.fuzz import runner
from tests.fuzz.check import Outcome, run
from tests.fuzz.page import page
from tightrope.bounds import Anderson
from tightrope.io.columns import Columns

SAMPLE = range(30)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    total = Outcome()
    for seed in SAMPLE:
        total.add(run(seed, tmp_path_factory.getbasetemp()))
    return total


def test_nothing_differs_and_nothing_crashes(sample):
    assert sample.failures == []
    assert sample.counts["differing"] == sample.counts["crashed"] == 0


def test_the_sample_says_something(sample):
    """Nearly all of it is answered, and nearly every comparison is sharp."""
    counts = sample.counts
    assert counts["questions"] == len(SAMPLE)
    assert counts["inputs"] == counts["answered"] + counts["refused"] > 4 * len(SAMPLE)
    assert counts["refused"] < 0.05 * counts["inputs"]
    assert counts["loose"] < 0.05 * counts["compared"]
    assert counts["compared"] > 30 * counts["questions"]
    assert len(sample.parts) > 50


# -- mistakes planted in the library: each must be found, or the silence above would say nothing -----------------------


def next_replicate(delta, n_resamples):
    return int(delta * n_resamples + 1e-9) + 1


def a_thousandth_more(self, sample, *, delta, seed, real=Anderson.lower):
    return 1.001 * real(self, sample, delta=delta, seed=seed)


def range_of_the_value(estimator, dataset):
    return dataset.value_range or (-np.inf, np.inf)


def rewards_as_they_came(self, real=Columns.rewards):
    rewards = real(self)
    return rewards if self.order is None else rewards[np.argsort(self.order)]


def whole_error_on_each_side(*args, real=tightrope.interval, **options):
    return real(*args, **options | {"confidence": 2 * options["confidence"] - 1})


def no_such_key(delta, n_resamples):
    raise KeyError(delta)


PLANTED = [
    ("value", "tightrope.bounds.replicates.percentile.rank", next_replicate),
    ("value", "tightrope.bounds.exact.anderson.Anderson.lower", a_thousandth_more),
    ("value", "tightrope.evaluation.work.possible_range", range_of_the_value),
    ("clothes", "tightrope.io.columns.Columns.rewards", rewards_as_they_came),
    ("door", "tightrope.interval", whole_error_on_each_side),
    ("crash", "tightrope.bounds.replicates.percentile.rank", no_such_key),
]


@pytest.mark.parametrize(("kind", "place", "mistake"), PLANTED, ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_mistake_is_found(kind, place, mistake, tmp_path, monkeypatch):
    monkeypatch.setattr(place, mistake)
    assert any(kind in {failure[0] for failure in run(seed, tmp_path).failures} for seed in SAMPLE)


# -- the run itself ----------------------------------------------------------------------------------------------------


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    """Finished chunks of the same code are not run again, half a line is passed over, other code counts for nothing."""
    asked = []

    def pretend(job, tasks, workers):
        asked.append(len(tasks))
        for place, task in enumerate(tasks):
            made = Outcome(failures=[("value", task.first, 100 - task.first, "wrong")])
            made.counts["questions"] += task.stop - task.first
            yield place, made

    monkeypatch.setattr(runner, "run_all", pretend)
    journal = tmp_path / "new" / "fuzz.jsonl"
    first = runner.run_seeds(0, 100, 2, journal)
    with journal.open("a") as file:
        file.write('["torn')
    again = runner.run_seeds(0, 150, 2, journal)
    assert asked == [2, 1]
    assert (first.counts["questions"], again.counts["questions"]) == (100, 150)
    assert runner.smallest(again.failures) == [("value", 100, 0, "wrong")]
    monkeypatch.setattr(runner, "code_digest", lambda: "other")
    runner.run_seeds(0, 150, 2, journal)
    assert asked == [2, 1, 3]


def test_the_page_holds_the_counts(sample):
    text = page(SAMPLE.start, SAMPLE.stop, sample)
    for word in (
        f"| inputs | {sample.counts['inputs']} |",
        "| **differing** | **0** |",
        "seeds 0 to 29",
        "| ways in |",
    ):
        assert word in text
