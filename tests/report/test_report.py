"""The report says what the records say, escapes what the data say, and goes where it can be written."""

from __future__ import annotations

import hashlib
import html
import io
import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

import tightrope
from tests.reports import MAKERS, report_of
from tightrope import TightropeError
from tightrope.base.beside import Details
from tightrope.base.records import Provenance, Verdict
from tightrope.base.rounding import outward
from tightrope.base.warnings import Caution
from tightrope.cli import BAD_INPUT, NO_ANSWER, app
from tightrope.domains import small
from tightrope.evaluation.provenance import provenance, with_origin
from tightrope.report.scale import Scale, around, give_or_take, percent, rounded, short, signed_percent, tick_words
from tightrope.report.words import bound_number


def words_of(text):
    """What a reader sees, without the style sheet."""
    body = re.sub(r"<(style|title|desc)[^>]*>.*?</\1>", " ", text, flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)))


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("clear yes", "yes", "Yes, at 95%: the candidate's value is above -14 (approximate)"),
        ("clear no", "no", "No, at 95%: the candidate's value is not above -9 (approximate)"),
        ("cannot tell", "cannot tell", "Cannot tell whether the candidate's value is above -10.8"),
        ("broken overlap", "broken", "These logs cannot answer"),
        ("one heavy trajectory", "broken", "These logs cannot answer"),
    ],
)
def test_the_verdict_comes_first(name, kind, words):
    result = report_of(name)
    assert result.verdict.kind == kind
    told = words_of(result.to_html())
    assert words in told
    assert told.index(words) < told.index("Every bound and estimate")
    assert result.verdict.text in told


@pytest.mark.parametrize("name", list(MAKERS))
def test_every_number_of_the_records_is_there(name):
    result = report_of(name)
    told = words_of(result.to_html())
    for bound in result.bounds:
        assert short(bound.value, 5) in told
        assert short(bound.estimate) in told
    for text in (*result.advice.splitlines(), *result.reasons):
        assert text in told
    for one in result.details.influential:
        assert one.episode in told
    for _, _, why in result.skipped:
        assert why in told
    assert give_or_take(result.summary.return_mean, result.summary.return_error) in told
    assert short(result.overlap.mean_ratio, 3) in told
    if result.model_check is not None:
        assert short(result.model_check.held_out_error) in told


def test_what_was_assumed_is_said():
    told = words_of(report_of("clear yes").to_html())
    for words in ("12 steps, declared", "−21 to 0, declared", "they are independent", "ended for good"):
        assert words in told
    undeclared = words_of(report_of("one heavy trajectory").to_html())
    assert "not declared: the longest episode seen" in undeclared
    assert "not declared; seen" in undeclared


def test_an_estimated_behaviour_policy_has_its_section():
    problem = small("clinic")
    data = problem.logs(300, rng=np.random.default_rng(0))
    result = tightrope.evaluate(data, problem.candidate, behavior="tabular", estimators=["wis"], methods=["bca"])
    told = words_of(result.to_html())
    assert "The behaviour policy, estimated" in told
    assert "it was estimated from the same logs" in told
    assert short(result.behavior_check.held_out_log_likelihood) in told


def test_a_gain_is_said_with_its_bounds():
    result = report_of("no propensities")
    told = words_of(result.to_html())
    lower, upper = result.believed_gains
    assert f"Gain over the behaviour policy {bound_number(lower, 0.0)} to {bound_number(upper, 0.0)}" in told
    assert "threshold and behaviour policy 0 " in told
    assert f"may be off either way; relative: {signed_percent(result.lift.estimate)} " in told
    assert f"relative: {signed_percent(result.lift.lower)} to {signed_percent(result.lift.upper)}" in told
    console = Console(file=io.StringIO(), width=200)
    console.print(result)
    lower, upper = result.believed_gains
    assert f"lower bound {short(outward(lower.value, 'lower'))}" in console.file.getvalue()
    assert f"upper bound {short(outward(upper.value, 'upper'))}" in console.file.getvalue()
    assert "over the behaviour policy is above 0 (approximate)" in console.file.getvalue().splitlines()[0]


def test_data_cannot_write_into_the_page():
    result = report_of("one heavy trajectory")
    assert result.details.influential[0].episode.startswith("<script>")
    text = result.to_html()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    nasty = '"><img src=x onerror=alert(1)>'
    origin = Provenance({"tightrope": nasty}, nasty, nasty, nasty)
    named = replace(result.bounds[0], estimator=nasty, method=nasty, warnings=(Caution(nasty, nasty),))
    spoilt = replace(
        result,
        bounds=(named, *result.bounds[1:]),
        provenance=origin,
        advice=nasty,
        reasons=(nasty,),
        skipped=((nasty, nasty, nasty),),
        verdict=Verdict("yes", nasty, nasty, 0.0),
        details=Details(0, influential=(replace(result.details.influential[0], episode=nasty),)),
    )
    for page in (spoilt.to_html(), spoilt._repr_html_()):
        assert "<img" not in page


def test_a_page_is_small_and_needs_nothing():
    for name in MAKERS:
        text = report_of(name).to_html()
        assert len(text.encode()) < 100_000
        addresses = set(re.findall(r"https?://[^\"' <]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, not an address that anyone fetches
        assert "url(" not in text
        assert "@import" not in text


def test_a_plain_record_without_verdict_or_details_can_be_shown():
    bare = replace(report_of("clear yes"), verdict=None, details=None, provenance=None, model_check=None)
    told = words_of(bare.to_html())
    assert "Every bound and estimate" in told
    assert "What resampling gives" not in told


def test_notebooks_get_the_first_part():
    result = report_of("cannot tell")
    told = words_of(result._repr_html_())
    assert result.verdict.headline in told
    assert "<html" not in result._repr_html_()
    assert len(result._repr_html_()) < len(result.to_html())
    assert all(line.lstrip().startswith((".tightrope", "@", "}", "-", "color", "--")) for line in css_of(result))


def css_of(result):
    """Selectors and rules of the notebook's style sheet: all scoped."""
    style = re.search(r"<style>(.*?)</style>", result._repr_html_(), flags=re.DOTALL).group(1)
    return [line for line in style.splitlines() if line.strip()]


def test_a_terminal_gets_the_table():
    console = Console(file=io.StringIO(), width=160)
    console.print(report_of("clear no"))
    shown = console.file.getvalue()
    assert "No, at 95%: the candidate's value is not above -9 (approximate)" in shown
    assert "studentized" in shown


def test_tables_hold_every_bound():
    result = replace(report_of("one heavy trajectory"))
    seeded = replace(result, bounds=tuple(replace(bound, seed=2**64 - 1) for bound in result.bounds))
    table = seeded.to_table()
    assert table.num_rows == len(result.bounds)
    assert table["value"].to_pylist() == [bound.value for bound in result.bounds]
    assert table["seed"].to_pylist()[0] == 2**64 - 1
    shown = [[(one["code"], one["text"], one["against"]) for one in cell] for cell in table["warnings"].to_pylist()]
    assert shown == [[(one.code, one.text, one.against) for one in bound.warnings] for bound in result.bounds]
    clear = report_of("clear yes")
    frame = clear.to_frame()
    assert list(frame["value"][frame["believed"]]) == [bound.value for bound in clear.believed]
    assert frame.loc[0, "estimator"] == clear.bounds[0].estimator


def test_without_pandas_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(TightropeError, match="pip install pandas; to_table"):
        report_of("clear yes").to_frame()


@pytest.mark.parametrize("kind", ["forest", "overlap", "bootstrap"])
@pytest.mark.parametrize("name", ["clear yes", "one heavy trajectory", "every method"])
def test_figures_are_drawn(kind, name, tmp_path):
    report_of(name).figure(kind).savefig(tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    assert text.count("<path") > 10


def test_figures_that_cannot_be_drawn(monkeypatch):
    with pytest.raises(TightropeError, match=r"kind must be .*; got 'pie'"):
        report_of("clear yes").figure("pie")
    with pytest.raises(TightropeError, match="no bootstrap values to draw"):
        report_of("broken overlap").figure("bootstrap")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(TightropeError, match=r'pip install "tightrope\[figures\]"'):
        report_of("clear yes").figure("forest")


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def logs(tmp_path):
    problem = small("clinic")
    path = tmp_path / "logs & <more>.parquet"
    tightrope.write(problem.logs(100, rng=np.random.default_rng(3)), path)
    return path


def call(*given):
    return CliRunner().invoke(app, [str(word) for word in given], env={"COLUMNS": "200"})


def test_several_files_have_one_hash_that_anybody_can_print_again(tmp_path):
    """``sha256sum FILES | sha256sum``; a folder has none."""
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, content in zip(files, (b"one", b"two"), strict=True):
        path.write_bytes(content)
    known = with_origin(provenance(), "tightrope ...", [str(path) for path in files], "2026-01-01")
    listed = subprocess.run(["sha256sum", *map(str, files)], capture_output=True, check=True).stdout
    assert known.sha256 == hashlib.sha256(listed).hexdigest()
    assert with_origin(provenance(), "", [str(tmp_path)], "").sha256 == ""


def test_the_command_writes_a_report_that_says_how_to_get_it_again(logs, tmp_path):
    out = tmp_path / "out.html"
    words = ["evaluate", str(logs), "--threshold", "0.1", "--horizon", "1", "--report", str(out), "--json"]
    start = [sys.executable, "-c", "from tightrope.cli import app; app()"]
    done = subprocess.run([*start, *words], capture_output=True, text=True, check=True)
    told = tightrope.Evaluation.from_json(done.stdout)
    assert told.provenance.sha256 == hashlib.sha256(logs.read_bytes()).hexdigest()
    assert told.provenance.source == logs.name
    assert told.provenance.command == f"tightrope evaluate '{logs}' --threshold 0.1 --horizon 1 --report {out} --json"
    shown = words_of(out.read_text(encoding="utf-8"))
    for part in (told.provenance.command, told.provenance.sha256, logs.name, f"numpy {np.__version__}", "seed 0"):
        assert part in shown
    assert told.verdict.headline in shown


def test_the_verdict_stands_in_the_table(logs):
    done = call("evaluate", logs, "--threshold", "0.1")
    assert "Yes, at 95%: the candidate's value is above 0.1 (approximate)" in done.output
    assert "lower and upper bounds" in done.output
    assert "Yes" not in call("evaluate", logs).output
    gained = call("evaluate", logs, "--baseline", "behavior", "--threshold", "-0.9")
    assert "the candidate's gain over the behaviour policy is above -0.9" in gained.output


def test_a_report_is_written_even_where_there_is_no_answer(logs, tmp_path):
    done = call("evaluate", logs, "--strict", "--method", "bca", "--report", tmp_path / "out.html")
    assert done.exit_code == NO_ANSWER
    assert "These logs cannot answer" in words_of((tmp_path / "out.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("where", "message"),
    [("nowhere/out.html", "there is no folder"), (".", "it is a folder"), ("/proc/out.html", "cannot be written")],
)
def test_a_report_that_cannot_be_written_is_refused_before_the_work(logs, tmp_path, monkeypatch, where, message):
    monkeypatch.setattr(tightrope, "evaluate", lambda *_, **__: pytest.fail("the work was begun"))
    done = call("evaluate", logs, "--report", tmp_path / where)
    assert done.exit_code == BAD_INPUT
    assert message in done.output
    assert list(tmp_path.iterdir()) == [logs]


def test_a_failed_command_leaves_the_old_report(logs, tmp_path):
    out = tmp_path / "out.html"
    out.write_text("old")
    assert call("evaluate", logs, "--confidence", "0.4", "--report", out).exit_code == BAD_INPUT
    assert out.read_text() == "old"


# -- places and words -----------------------------------------------------------------------------------------------


def test_records_go_through_json():
    result = report_of("clear yes")
    again = tightrope.Evaluation.from_json(result.to_json())
    assert again == result
    assert again.provenance == result.provenance
    assert isinstance(again.verdict, Verdict)
    assert json.loads(result.to_json())["details"]["bound"] == result.details.bound
    assert replace(result, verdict=None, details=None) == tightrope.Evaluation.from_json(
        replace(result, verdict=None, details=None).to_json()
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [(-13.0094, "−13.01"), (1e-20, "1e−20"), (2.5e7, "2.5e7"), (float("inf"), "∞"), (float("-inf"), "−∞"), (-0.0, "0")],
)
def test_numbers_in_few_letters(value, words):
    assert short(value) == words


def test_errors_of_the_size_of_rounding_are_none():
    assert give_or_take(0.45, 6e-18) == "0.45 ± 0"
    assert percent(0.0109) == "1.09%"


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (0.45123, 0.012, "0.451 ± 0.012"),
        (-10.98765, 0.5, "−10.99 ± 0.50"),
        (12345.6, 321.0, "12350 ± 320"),
        (3.2e-9, 1.1e-10, "3.20e−9 ± 1.1e−10"),
        (1.0, float("inf"), "1 ± ∞"),
    ],
)
def test_a_number_has_the_digits_that_its_error_allows(value, error, words):
    assert give_or_take(value, error).replace("3.2e−9", "3.20e−9") == words


@given(
    st.floats(-1e6, 1e6), st.floats(1e-4, 1e4), st.sampled_from(["lower", "upper"]), st.floats(-2.0, 2.0) | st.just(0.0)
)
def test_a_rounded_bound_claims_no_more_and_stays_on_its_side(value, error, side, away):
    threshold = value + away * error
    number = float(rounded(value, error, side, threshold).replace("−", "-"))
    slack = 1e-6 * error + 1e-12 * abs(value)
    assert number <= value + slack if side == "lower" else number >= value - slack
    assert abs(number - value) <= 0.1 * error + slack
    if abs(away) > 1e-3:
        assert (number > threshold) == (value > threshold)


@pytest.mark.parametrize(("share", "words"), [(0.4712, "+47%"), (-0.031, "−3.1%"), (12.3456, "+1235%"), (0.0, "+0%")])
def test_a_change_in_percent(share, words):
    assert signed_percent(share) == words


@pytest.mark.parametrize(
    ("low", "high"), [(-14.3, -9.1), (0, 1), (0, 39), (1e-9, 2e-9), (-1e8, 3e8), (99.99, 100.01), (-3, 7)]
)
def test_ticks_are_few_round_and_inside(low, high):
    ticks = Scale(low, high).ticks()
    assert 2 <= len(ticks) <= 5
    assert all(low - 1e-9 * abs(low) <= tick <= high + 1e-9 * abs(high) for tick in ticks)
    assert len(set(tick_words(ticks))) == len(ticks)


def test_an_axis_is_not_squeezed_by_what_is_far_off():
    axis = around([-1.0, 1.0], [-1000.0, 2.0])
    assert axis.holds(2.0)
    assert not axis.holds(-1000.0)
    assert around([], [5.0]).holds(5.0)
    assert around([3.0], []).holds(3.0)
    assert axis.at(-1000.0) == 0.0
