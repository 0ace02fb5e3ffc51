"""The first screen of a report: the verdict, one number line, at most four numbers, and where they come from."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from typer.testing import CliRunner

import tightrope
from tests.answers import answers
from tests.report.test_report import words_of
from tests.reports import MAKERS, ORIGIN, SITUATIONS, report_of
from tightrope.base.beside import Lift
from tightrope.base.records import Bound, Verdict
from tightrope.base.warnings import caution
from tightrope.cli import BAD_INPUT, app
from tightrope.domains import small
from tightrope.evaluation.advice import exact_of
from tightrope.evaluation.beside import lift
from tightrope.report.cards import cards
from tightrope.report.line import marks_of
from tightrope.report.words import Labels, bound_number


def first_screen(page):
    """What a reader sees before any fold."""
    return words_of(page.split('<div class="folds">')[0])


def names_of(result):
    return {mark.name: mark.value for mark in marks_of(result)}


@pytest.mark.parametrize("name", list(MAKERS))
def test_there_are_at_most_four_numbers(name):
    shown = cards(report_of(name), Labels())
    assert 2 <= len(shown) <= 4
    told = first_screen(report_of(name).to_html())
    for card in shown:
        assert f"{card.name} {card.number} {card.note}" in told
    assert len(re.findall('class="big"', report_of(name).to_html())) == len(shown)


def test_the_line_has_every_mark():
    result = report_of("cannot tell")
    lower, upper = result.believed
    exact = {bound.side: bound.value for bound in result.exact}
    assert names_of(result) == {
        "threshold": -10.8,
        "behaviour policy": result.summary.return_mean,
        "lower bound": lower.value,
        "upper bound": upper.value,
        "exact lower bound": exact["lower"],
        "exact upper bound": exact["upper"],
        "estimate": lower.estimate,
    }
    assert exact["lower"] < lower.value < lower.estimate < upper.value < exact["upper"]


def test_the_line_of_a_gain_counts_from_the_behaviour_policy():
    result = report_of("no propensities")
    lower, upper = result.believed_gains
    assert names_of(result) == {
        "threshold and behaviour policy": 0.0,
        "lower bound": lower.value,
        "upper bound": upper.value,
        "estimate": lower.estimate,
    }


def test_the_line_without_a_bound_says_so():
    result = report_of("broken overlap")
    assert names_of(result) == {"threshold": 2.0, "behaviour policy": result.summary.return_mean}
    assert "no bound to believe" in first_screen(result.to_html())
    nothing = replace(report_of("no propensities"), believed_gains=(), believed=(), lift=None)
    assert list(names_of(nothing)) == ["behaviour policy"]  # a threshold of the gain has no place beside values


def test_an_exact_bound_that_is_believed_is_drawn_once():
    result = report_of("clear yes")
    believed = replace(result, believed=result.exact)
    assert [name for name in names_of(believed) if "bound" in name] == ["lower bound", "upper bound"]


def test_a_bound_is_shown_on_its_side_of_the_threshold():
    bound = Bound(-13.99999, "lower", 0.95, -10.0, "wis", "bca", "approximate", standard_error=1.5)
    result = replace(report_of("clear yes"), believed=(bound,), verdict=Verdict("yes", "Yes", "", -14.0))
    assert bound_number(bound, None) == "−14.0"
    assert bound_number(bound, -14.0) == "−13.99999"
    assert "≥ −13.99999" in first_screen(result.to_html())


# -- what stands beside the believed bounds ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def walker():
    problem = small("walker")
    data = problem.logs(200, rng=np.random.default_rng(0))
    return tightrope.base.problem.Problem(data, problem.candidate)


def exact(estimator, value, *warnings, guarantee="exact"):
    return Bound(value, "lower", 0.95, -10.0, estimator, "betting", guarantee, warnings=warnings)


def test_the_exact_bound_is_the_first_of_a_fixed_order_and_not_the_tightest(walker):
    bounds = [exact("pdis", -12.0), exact("is", -13.0)]
    assert exact_of(answers(bounds), "lower", walker.dataset) == 1
    assert exact_of(answers(bounds[:1]), "lower", walker.dataset) == 0
    assert exact_of(answers(bounds), "upper", walker.dataset) is None


@pytest.mark.parametrize(
    "bound",
    [
        exact("is", -32.0, caution("vacuous", "no")),
        exact("is", -14.0, caution("mean-ratio", "no", mean_ratio=2.0, error=0.1)),
        exact("is", -14.0, guarantee="approximate"),
    ],
)
def test_an_exact_bound_that_says_nothing_is_left_out(walker, bound):
    assert exact_of(answers([bound]), "lower", walker.dataset) is None


def test_a_lift_needs_a_mean_that_is_clearly_not_zero():
    summary = replace(report_of("clear yes").summary, return_mean=-2.0, return_error=0.39)
    gains = tuple(
        Bound(value, side, 0.95, 0.5, "wdr", "bca", "approximate", about="gain")
        for value, side in ((0.1, "lower"), (1.0, "upper"))
    )
    assert lift(gains, summary) == Lift(0.25, 0.05, 0.5)
    assert lift(gains[:1], summary) == Lift(0.25, 0.05, None)
    assert lift((), summary) is None
    assert lift(gains, replace(summary, return_error=0.41)) is None
    assert lift(gains, replace(summary, return_error=float("inf"))) is None
    assert lift(gains, replace(summary, return_mean=0.0, return_error=0.0)) is None


# -- names, date, hashes ----------------------------------------------------------------------------------------------


def test_the_reader_names_report_and_metric():
    result = report_of("clear yes")
    page = result.to_html(title="Ranking <b>7", metric="clicks per visit", unit="clicks")
    told = first_screen(page)
    assert "<b>7" not in page
    assert "<title>Ranking &lt;b&gt;7: Yes, at 95%" in page
    assert told.lstrip().startswith("Ranking <b>7")
    low, high = (bound_number(bound, -14.0) for bound in result.believed)
    assert f"Candidate’s clicks per visit {low} to {high} clicks" in told
    assert "Behaviour policy’s own clicks per visit" in told
    assert "clicks per visit (clicks)" in told
    gained = first_screen(report_of("no propensities").to_html(metric="reward"))
    assert "gain in reward over the behaviour policy" in gained
    assert "\x1b" not in result.to_html(title="\x1b]0;owned", metric="\x1b", unit="\x1b")


def test_date_and_hashes_stand_on_the_first_screen():
    told = first_screen(report_of("one step").to_html())
    for words in ("2026-01-31", "400 episodes, 400 steps of visits.parquet", "0123456789…", "fedcba9876…"):
        assert words in told
    whole = words_of(report_of("one step").to_html())
    assert ORIGIN.sha256 in whole
    assert ORIGIN.policy_sha256 in whole


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_same_record_gives_the_same_bytes(name):
    assert report_of(name).to_html() == report_of(name).to_html()


@pytest.fixture
def files(tmp_path):
    problem = small("clinic")
    logs, policy = tmp_path / "logs.parquet", tmp_path / "policy.npy"
    data = problem.logs(100, rng=np.random.default_rng(3))
    tightrope.write(data, logs)
    np.save(policy, problem.candidate.table)
    return logs, policy


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


def test_the_command_passes_the_names_on(files, tmp_path):
    logs, policy = files
    out = tmp_path / "out.html"
    names = ["--title", "Spring ward", "--metric", "recovery", "--unit", "patients"]
    done = call("evaluate", logs, "--policy", policy, "--report", out, "--n-resamples", 50, "--json", *names)
    assert done.exit_code == 0, done.output
    record = tightrope.Evaluation.from_json(done.stdout[done.stdout.index("{") :]).provenance
    assert record.date == date.today().isoformat()
    assert record.policy_sha256 == hashlib.sha256(policy.read_bytes()).hexdigest()
    told = first_screen(out.read_text(encoding="utf-8"))
    for words in ("Spring ward", "recovery (patients)", record.date, record.policy_sha256[:10], record.sha256[:10]):
        assert words in told


def test_names_for_no_report_are_refused(files):
    done = call("evaluate", files[0], "--title", "x", "--unit", "y")
    assert done.exit_code == BAD_INPUT
    assert "--title, --unit must come with --report" in done.output
