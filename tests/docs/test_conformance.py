"""The conformance run without other libraries: our own estimators obey its laws, and its laws notice mistakes."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "conformance"


def load(name):
    """A module of the run, which is made of scripts in one folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        return import_module(name)


harness, laws, page, problems, runner_tightrope, libraries = map(
    load, ("harness", "laws", "page", "problems", "runner_tightrope", "libraries")
)
LIBRARIES = libraries.LIBRARIES


@pytest.fixture(scope="module")
def asked():
    """The problems as a runner reads them, without the samples for error rates."""
    return json.loads(json.dumps(problems.problems())) | {"samples": {}}


def measured(entry, asked, **changes):
    return json.loads(json.dumps(harness.measured(replace(entry, timed=False, **changes), asked)))


@pytest.fixture(scope="module")
def ours(asked):
    return {name: measured(one, asked, intervals={}) for name, one in runner_tightrope.ENTRIES.items()}


# -- the problems ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("process", problems.processes(), ids=lambda process: process.name)
def test_the_data_are_the_distribution(process):
    weighed = list(process.episodes())
    assert sum(p for p, _ in weighed) == 1
    counts = [one["count"] for one in problems.enumerated(process)["episodes"]]
    assert [Fraction(count, sum(counts)) for count in counts] == [p for p, _ in weighed]
    assert all(len(one) <= process.horizon for _, one in weighed)


def test_truths_by_hand():
    named = {process.name: process.value() for process in problems.processes()}
    assert named["one step"] == Fraction(-7, 5)  # 1/5 · 1 − 4/5 · 2
    assert named["door"] == Fraction(-7, 4)  # 1/4 · (−1) + 3/4 · (−2)
    assert named["two steps, greedy candidate"] == -2  # −3, then 1
    # 1/5 · (−1 + 7/10 · (−2) + 3/10 · (−5)) + 4/5 · (−3 + 9/10 · 1 − 1/10 · 1)
    assert named["two steps"] == Fraction(-254, 100)


def test_unequal_lengths_are_unequal():
    (walk,) = [one for one in problems.processes() if one.name == "walk that may end early"]
    assert {len(one) for _, one in walk.episodes()} == {1, 2, 3}


# -- our own ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", laws.LAWS)
def test_our_estimators_obey(asked, ours, law):
    verdicts = {name: laws.judge(asked, one, law) for name, one in ours.items()}
    assert {name: v.example for name, v in verdicts.items() if v.state == laws.FAIL} == {}
    assert laws.PASS in {v.state for v in verdicts.values()}


@pytest.mark.parametrize("law", laws.INTERVAL_LAWS)
def test_our_intervals_obey(asked, law):
    eight = {"data": {name: one for name, one in asked["data"].items() if "eight of equal length" in name}}
    one = measured(runner_tightrope.ENTRIES["PDWIS"], asked | eight, weighted=None)
    for method in one["intervals"]:
        assert laws.judge_interval(one, method, law).state == laws.PASS, method


# -- mistakes ----------------------------------------------------------------------------------------------------------


def ratios(data):
    """Products of probabilities, as some write them: (n, horizon), NaN after an episode's end."""
    grids = {name: np.full((data.n, data.horizon), np.nan) for name in ("behavior", "candidate", "reward")}
    for name in ("behavior", "candidate"):
        grids[name][data.episode, data.t] = data.logged(name)
    grids["reward"][data.episode, data.t] = data.rewards
    with np.errstate(invalid="ignore"):
        return np.cumprod(grids["candidate"], axis=1) / np.cumprod(grids["behavior"], axis=1), grids["reward"]


def finished_leave(data):
    """PDWIS whose denominators forget the episodes that have ended."""
    ratio, reward = ratios(data)
    with np.errstate(invalid="ignore"):
        steps = np.nansum(ratio * reward, axis=0) / np.nansum(ratio, axis=0)
    return float(steps @ data.discount ** np.arange(data.horizon))


def test_a_mistake_breaks_a_law(asked):
    wrong = measured(harness.Entry(finished_leave, "", self_normalized=True), asked)
    broken = {law: laws.judge(asked, wrong, law) for law in laws.LAWS}
    states = {law: verdict.state for law, verdict in broken.items()}
    assert states["enumeration, equal lengths"] == states["order"] == states["shift"] == laws.PASS
    assert states["enumeration, ends early"] == states["padding"] == states["long horizon"] == laws.FAIL
    assert states["weights"] == laws.NONE
    assert broken["enumeration, ends early"].example["returned"] == "-2"
    assert broken["enumeration, ends early"].example["expected"] == "-1.75"
    assert broken["long horizon"].example["returned"] == "nan"


def frozen(data):
    """A bootstrap of scores whose normaliser is not drawn anew."""
    ratio, reward = ratios(data)
    scores = np.nansum(ratio / np.nanmean(ratio, axis=0) * reward, axis=1)
    draws = np.random.default_rng(0).choice(scores, (200, data.n)).mean(axis=1)
    return tuple(np.quantile(draws, [0.025, 0.975]))


def grows(data):
    """Hoeffding's inequality with n on the wrong side, and the range from the sample."""
    ratio, reward = ratios(data)
    scores = np.nansum(ratio * reward, axis=1)
    half = scores.max() * np.sqrt(np.log(40) / 2 * data.n)
    return scores.mean() - half, scores.mean() + half


def test_wrong_intervals_break_laws(asked):
    entry = harness.Entry(finished_leave, "", self_normalized=True, intervals={"frozen": frozen, "grows": grows})
    one = measured(entry, asked)
    assert laws.judge_interval(one, "frozen", "follows").state == laws.FAIL
    assert laws.judge_interval(one, "frozen", "narrows").state == laws.PASS
    assert laws.judge_interval(one, "grows", "narrows").state == laws.FAIL
    assert laws.judge_interval(one, "grows", "sides").state == laws.FAIL


def test_errors_are_results(asked):
    def refuses(data):
        raise ValueError("no such data")

    one = measured(harness.Entry(refuses, ""), asked)
    assert one["values"]["door"] == {"error": "ValueError: no such data"}
    assert laws.judge(asked, one, "enumeration, ends early").state == laws.FAIL


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_page_shows_the_smallest_failing_example(asked, ours):
    wrong = measured(harness.Entry(finished_leave, "called so", self_normalized=True), asked)
    answers = {
        "tightrope": {"versions": {"python": "3"}, "repeated": True, "estimators": ours},
        "rllib": {"versions": {"python": "3"}, "repeated": True, "estimators": {"WeightedImportanceSampling": wrong}},
        "obp": {"failed": "pip says no"},
    }
    sampled = asked | {"samples": {"clinic": {"drawn": [[0]], "data": {"truth": 1.0}}}}
    results = [(one, answers[one.key]) for one in LIBRARIES if one.key in answers]
    text = page.rendered(sampled, results)
    row = next(line for line in text.splitlines() if "| RLlib | WeightedImportanceSampling | ends early |" in line)
    assert "1 × (s0 a1 r-1 b0.5 c0.75) (s1 a0 r-1 b1 c1)" in row
    assert row.endswith("| -1.75 (the exact value) | **-2** | -1.75 (PDWIS) |")
    assert "| Open Bandit Pipeline | not run | `pip says no` |" in text
    assert "identical to the last digit" in text
    assert "1 estimators of 1 libraries" in text


def test_rates_are_bold_where_they_are_too_high():
    assert page.bold(3, 100, 0.025) == "3%"
    assert page.bold(8, 100, 0.025) == "**8%**"


def test_the_page_in_the_documentation_is_of_these_libraries():
    text = (FOLDER.parents[1] / "docs" / "conformance.md").read_text(encoding="utf-8")
    for library in LIBRARIES:
        assert f"| {library.name} |" in text
    for name in runner_tightrope.ENTRIES:
        assert f"| tightrope | {name} |" in text
