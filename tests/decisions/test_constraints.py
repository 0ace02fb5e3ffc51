"""Several demands at once: who decides, at which level, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import tightrope
from tightrope import BoundError, Constrained, DataError, Demand
from tightrope.base.warnings import caution
from tightrope.cli import app
from tightrope.decisions.constraints import _answered, _parsed
from tightrope.domains import small
from tightrope.evaluation.recommend import Question
from tightrope.evaluation.sentences import Recommendation

CLINIC = small("clinic")


def outcomes(n=400, seed=0):
    """Cures, and harm that the second action does: 0.3 a time."""
    logs = CLINIC.logs(n, rng=np.random.default_rng(seed))
    harm = (np.random.default_rng(seed + 1).random(n) < 0.3) & (logs.actions == 1)
    return logs, replace(logs, rewards=harm.astype(float))


def ask(cured, harm, **options):
    logs, harms = outcomes()
    return tightrope.constrained(
        {"cured": (logs, cured), "harm": (harms, harm)}, CLINIC.candidate, strict=True, **options
    )


def test_a_yes_needs_every_demand_and_a_no_needs_one():
    answers = {
        (cured, harm): ask(cured, harm).kind
        for cured in (">= 0.3", ">= 0.62", ">= 0.9")
        for harm in ("<= 0.5", "<= 0.15", "<= 0.01")
    }
    assert answers[">= 0.3", "<= 0.5"] == "yes"
    assert {answers[pair] for pair in answers if ">= 0.9" in pair or "<= 0.01" in pair} == {"no"}
    assert answers[">= 0.3", "<= 0.15"] == "cannot tell"
    assert answers[">= 0.62", "<= 0.5"] == "cannot tell"


def test_every_bound_of_a_yes_has_the_full_level_and_every_bound_of_a_no_its_part():
    result = ask(">= 0.3", "<= 0.5", confidence=0.9, seed=3)
    logs, _ = outcomes()
    options = {"estimator": "tdr", "method": "betting", "seed": 3}
    for demand in result.demands:
        assert demand.bound.confidence == 0.9
        assert demand.against.confidence == pytest.approx(0.95)  # half of the error each
        assert demand.bound.side == demand.side != demand.against.side
    lower = tightrope.lower_bound(logs, CLINIC.candidate, confidence=0.9, **options)
    upper = tightrope.upper_bound(logs, CLINIC.candidate, confidence=0.95, **options)
    assert result.demands[0].bound.value == lower.value
    assert result.demands[0].against.value == upper.value


def test_compared_with_the_behaviour_policy_it_is_the_gain():
    result = ask(">= behavior", "<= 0.9")
    assert (result.demands[0].about, result.demands[0].limit) == ("gain", 0.0)
    assert result.demands[0].bound.about == "gain"
    assert "cured >= the behaviour policy's" in str(result)


def test_a_model_alone_meets_no_demand(monkeypatch):
    """Nothing in the logs corrects it; an exact bound that uses one allows for its errors."""
    logs, _ = outcomes(30)
    bound = tightrope.Bound(0.9, "lower", 0.95, 0.95, "mb", "percentile", "approximate", rests_on_model=True)
    for given, kind in (
        (bound, "cannot tell"),
        (replace(bound, guarantee="exact"), "yes"),
        (replace(bound, rests_on_model=False), "yes"),
    ):
        chosen = Recommendation(given, (given,), "")
        monkeypatch.setattr(Question, "recommend", lambda self, side, about, one=chosen: one)
        assert tightrope.constrained({"cured": (logs, ">= 0.5")}, CLINIC.candidate).kind == kind


def bounds(low, high):
    bound = tightrope.Bound(low, "lower", 0.95, 0.0, "is", "betting", "exact")
    return bound, replace(bound, value=high, side="upper")


def test_bounds_that_contradict_each_other_settle_nothing():
    low, high = bounds(2.0, 1.0)
    demand = Demand("reward", ">=", 1.5, "value")
    assert _answered(replace(demand, bound=low, against=high)).answer == "cannot tell"
    assert _answered(replace(demand, bound=low)).answer == "yes"
    assert _answered(replace(demand, against=high)).answer == "no"
    assert _answered(demand).answer == "cannot tell"
    low, high = bounds(1.5, 1.5)
    assert _answered(replace(demand, bound=low, against=high)).answer == "yes"  # at least 1.5, and 1.5 is enough
    cost = Demand("cost", "<=", 1.5, "value")
    assert _answered(replace(cost, bound=high, against=low)).answer == "yes"
    assert _answered(replace(cost, bound=replace(high, value=1.6), against=replace(low, value=1.6))).answer == "no"


def test_the_record_goes_through_json_and_says_what_is_open():
    result = ask(">= 0.62", "<= 0.5")
    assert Constrained.from_json(result.to_json()) == result
    assert result.headline == "Cannot tell: open is cured, at confidence 0.95"


@pytest.mark.parametrize("text", ["< 0.1", "0.1", "<= x", ">= nan", "<= inf", 3, "=< 2"])
def test_a_demand_that_is_none_is_refused(text):
    with pytest.raises(BoundError, match=r'demands must be like ">= 20", "<= 0.1" or ">= behavior"'):
        _parsed("harm", text)


def test_outcomes_of_other_episodes_are_refused():
    logs, harms = outcomes()
    with pytest.raises(DataError, match="must come from the same episodes; got 400 and 10"):
        tightrope.constrained({"a": (logs, ">= 0"), "b": (harms.take(np.arange(10)), "<= 1")}, CLINIC.candidate)
    with pytest.raises(BoundError, match="at least one outcome"):
        tightrope.constrained({}, CLINIC.candidate)
    with pytest.raises(DataError, match="must hold logs"):
        tightrope.constrained({"a": ("logs.csv", ">= 0")}, CLINIC.candidate)


def write_logs(path, n=400):
    logs, harms = outcomes(n)
    rows = {"state": logs.states, "action": logs.actions, "cured": logs.rewards, "harm": harms.rewards}
    rows |= {"behavior_prob": np.exp(logs.behavior_log_probs), "eval_prob": np.exp(logs.eval_log_probs)}
    names = list(rows)
    lines = [",".join(names), *(",".join(str(rows[name][i]) for name in names) for i in range(n))]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def test_the_command_reads_each_outcome_from_its_own_column(tmp_path):
    path = write_logs(tmp_path / "logs.csv")
    ranges = ["--range", "cured=0,1", "--range", "harm=0,1", "--one-step", "--strict", "--exit-code"]

    def run(*demands):
        return CliRunner().invoke(app, ["constrain", path, *ranges, *(w for one in demands for w in ("--demand", one))])

    yes = run("cured>=0.3", "harm<=0.5")
    assert (yes.exit_code, yes.stdout.splitlines()[0]) == (0, "Yes: all demands are met, with confidence 0.95 (exact)")
    no = run("cured>=0.3", "harm <= 0.01")
    assert (no.exit_code, no.stdout.splitlines()[0]) == (4, "No: not met is harm, with confidence 0.95 (exact)")
    assert run("cured>=0.58", "harm<=0.5").exit_code == 5
    wrong = run("harm=0.1")
    assert wrong.exit_code == 2
    assert '--demand must be like "harm<=0.1"' in wrong.output
    twice = run("harm<=0.1", "harm>=0")
    assert "each column once" in twice.output


def test_logs_that_say_nothing_are_no_open_question(tmp_path):
    """Exit code 3, as of ``evaluate``: nothing speaks for or against, which more patience would not change."""
    rows = {"reward": [0.0, 1.0] * 3, "pscore": [0.5] * 6, "eval_prob": [0.4] * 6}
    few = tightrope.read(rows, one_step=True)  # nothing is exact without a range, and six episodes are not resampled
    result = tightrope.constrained({"reward": (few, ">= 0.3")})
    assert result.kind == "cannot tell"
    assert result.silent == ("reward",)
    assert result.headline.endswith("These logs say nothing about reward")
    tightrope.write(few, tmp_path / "logs.parquet")
    command = ["constrain", str(tmp_path / "logs.parquet"), "--demand", "reward>=0.3"]
    assert CliRunner().invoke(app, command).exit_code == 3
    assert ask(">= 0.62", "<= 0.9").silent == ()


def test_a_range_that_is_none_is_refused(tmp_path):
    path = write_logs(tmp_path / "logs.csv", 30)
    words = ["constrain", path, "--one-step", "--demand", "cured>=0.3", "--range", "cured"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "--range must be COLUMN=LOW,HIGH, such as harm=0,1; got 'cured'" in result.output


def test_progress_goes_over_all_demands_and_never_back():
    shares, (logs, harms) = [], outcomes()
    demands = {"cured": (logs, ">= 0.4"), "harm": (harms, "<= 0.2")}
    tightrope.constrained(demands, CLINIC.candidate, n_resamples=200, progress=shares.append)
    assert shares == sorted(shares)
    assert {round(4 * share) / 4 for share in shares} >= {0.25, 0.5, 0.75, 1.0}
    assert shares[-1] == 1.0


def test_a_no_shows_what_refutes_it_and_warnings_are_said():
    logs = CLINIC.logs(60, rng=np.random.default_rng(0))
    logs = replace(logs, notes=(caution("group-column", "a column ward is not used", columns=1),))
    result = tightrope.constrained({"cured": (logs, ">= 0.95"), "again": (logs, ">= 0")}, CLINIC.candidate)
    refuted = result.demands[0]
    assert refuted.answer == "no"
    assert refuted.decided is refuted.against
    assert "no (value ≤ " in str(refuted)
    assert "(approximate)" in result.headline
    assert result.warnings
    assert all(f"! {one}" in str(result) for one in result.warnings)
    assert Constrained.from_json(result.to_json()) == result
