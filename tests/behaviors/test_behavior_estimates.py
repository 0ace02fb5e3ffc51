"""A behaviour policy that nobody logged: what results say of it, what is refused, and what its check sees."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from typer.testing import CliRunner

import tightrope
from tests.answers import answers
from tests.laws.test_behaviors import wandering
from tightrope import DataError, Evaluation, TightropeError, TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.base.records import BehaviorCheck, Bound
from tightrope.base.warnings import caution
from tightrope.behaviors import (
    ClassifierBehavior,
    GaussianRegression,
    LogisticBehavior,
    TabularBehavior,
    behavior,
)
from tightrope.cli import BAD_INPUT, app
from tightrope.domains import small
from tightrope.evaluation.advice import advise as choose
from tightrope.evaluation.behavior_check import check_behavior
from tightrope.report.table import evaluation_table
from tightrope.report.words import assumptions

BONUS = small("bonus")


def blind_logs(n=300, *, seed=3, problem=BONUS):
    """Logs that carry the candidate's probabilities but not the behaviour policy's."""
    return replace(problem.logs(n, rng=np.random.default_rng(seed)), behavior_log_probs=None, behavior=None)


# -- results -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result():
    return tightrope.evaluate(blind_logs(), BONUS.candidate, behavior="auto", n_resamples=200)


def test_every_bound_that_rests_on_the_estimate_is_marked(result):
    assert {bound.behavior for bound in result.bounds if bound.estimator != "mb"} == {"tabular"}
    assert {bound.behavior for bound in result.bounds if bound.estimator == "mb"} == {None}
    assert result.settings["behavior"] == "tabular"
    assert "behaviour policy estimated (tabular)" in str(result.bounds[0])
    assert all(bound.guarantee == "approximate" for bound in result.bounds)


def test_table_and_advice_say_so(result):
    from rich.console import Console

    console = Console(width=200)
    with console.capture() as printed:
        console.print(evaluation_table(result, everything=True))
    assert "Behaviour policy estimated (tabular)." in " ".join(printed.get().split())
    assert "calibration error" in printed.get()
    assert "the behaviour probabilities are estimated" in result.advice
    assert any(line.startswith("behaviour policy estimated (tabular)") for line in result.reasons)
    assert "exact" not in result.advice


def test_json_round_trip(result):
    told = Evaluation.from_json(result.to_json())
    assert told == result
    assert isinstance(told.behavior_check, BehaviorCheck)
    assert told.behavior_check.behavior == "tabular"
    assert Bound.from_json(result.bounds[0].to_json()).behavior == "tabular"
    assert BehaviorCheck.from_json(result.behavior_check.to_json()) == result.behavior_check


def test_results_with_logged_probabilities_are_not_marked():
    logs = BONUS.logs(50, rng=np.random.default_rng(0))
    result = tightrope.evaluate(logs, BONUS.candidate, estimators=["wis"], methods=["bca"], n_resamples=100)
    assert result.behavior_check is None
    assert result.bounds[0].behavior is None
    assert "estimated" not in str(result.bounds[0])


def test_the_estimate_is_used_even_where_probabilities_are_logged():
    logs = BONUS.logs(80, rng=np.random.default_rng(0))
    wrong = replace(logs, behavior_log_probs=logs.behavior_log_probs - 1.0)
    same = [tightrope.estimate(data, BONUS.candidate, behavior="tabular", estimator="is") for data in (logs, wrong)]
    assert same[0] == same[1] != tightrope.estimate(logs, BONUS.candidate, estimator="is")


def test_a_logged_candidate_needs_no_policy():
    """Only the probabilities of logged actions enter."""
    data = blind_logs()
    for estimator in ("is", "pdwis"):
        logged = tightrope.lower_bound(data, estimator=estimator, behavior="auto", n_resamples=100)
        given = tightrope.lower_bound(data, BONUS.candidate, estimator=estimator, behavior="auto", n_resamples=100)
        assert logged.value == pytest.approx(given.value, rel=1e-12)


@pytest.mark.parametrize("method", ["percentile", "bca", "basic", "studentized", "t"])
def test_every_bootstrap_bound(method):
    data = blind_logs(200)
    low, high = tightrope.interval(
        data, BONUS.candidate, estimator="wis", method=method, behavior="auto", n_resamples=400
    )
    assert low < tightrope.estimate(data, BONUS.candidate, estimator="wis", behavior="auto") < high
    assert low < BONUS.true_value < high


def test_same_seed_same_bits():
    values = [
        tightrope.lower_bound(blind_logs(60), BONUS.candidate, behavior="auto", n_resamples=100, seed=5).value
        for _ in range(2)
    ]
    assert values[0] == values[1]


@pytest.mark.parametrize("code", ["behavior-miscalibrated", "behavior-unseen"])
def test_what_speaks_against_the_estimate_speaks_against_its_bounds(result, code):
    bounds = [bound for bound in result.bounds if bound.estimator == "wdr"]
    assert choose(answers(bounds), result.overlap, "lower", blind_logs())[1] is not None
    doubted = [replace(bound, warnings=(caution(code, "so it is"),)) for bound in bounds]
    text, index = choose(answers(doubted), result.overlap, "lower", blind_logs())
    assert index is None
    assert code in text


def test_the_report_says_what_is_taken_for_granted(result):
    assert "estimated from the same logs (tabular)" in dict(assumptions(result))["Behaviour policy"]


# -- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["betting", "anderson", "cut", "hoeffding", "empirical-bernstein"])
def test_exact_bounds_are_refused(method):
    with pytest.raises(tightrope.BoundError, match="exact only with the true behaviour probabilities"):
        tightrope.lower_bound(
            blind_logs(50), BONUS.candidate, estimator="is", method=method, behavior="auto", max_ratio=1e6
        )


def test_exact_bounds_asked_for_are_listed_as_left_out():
    result = tightrope.evaluate(
        blind_logs(50), BONUS.candidate, estimators=["is"], methods=["bca", "betting"], behavior="auto", n_resamples=100
    )
    assert [skipped[:2] for skipped in result.skipped] == [("is", "betting")]


def test_the_error_without_probabilities_names_the_fix():
    with pytest.raises(DataError, match='behavior="auto"'):
        tightrope.lower_bound(blind_logs(10))


def simple(**changes):
    columns = {
        "offsets": [0, 2, 4, 6],
        "rewards": np.ones(6),
        "terminated": [True] * 3,
        "horizon": 2,
        "states": np.array([0, 1, 0, 0, 1, 1]),
        "actions": np.array([0, 1, 1, 0, 1, 0]),
        "eval_log_probs": np.log(np.full(6, 0.5)),
    }
    return TrajectoryDataset(**(columns | changes))


FLOATS = np.array([0.1, 0.4, 0.2, 0.9, 0.6, 0.3])


@pytest.mark.parametrize(
    ("data", "chosen", "message"),
    [
        (simple(states=None), "auto", "must have a state column"),
        (simple(actions=None), "auto", "must have an action column"),
        (simple(states=FLOATS), "tabular", 'use behavior="logistic"'),
        (simple(actions=FLOATS), "tabular", 'use behavior="gaussian"'),
        (simple(actions=FLOATS), "logistic", 'use behavior="gaussian"'),
        (simple(), "gaussian", '"tabular" or "logistic"'),
        (simple(actions=np.zeros(6, dtype=int)), "logistic", "one action only"),
        (simple(actions=np.array([0.0, 1.0, 0.0, 0.0, 1.0, 1.0])), "gaussian", "without noise"),
        (simple(), "guess", '"logged", "auto", "tabular", "logistic", "gaussian"'),
        (simple(), 3, "behavior must be a name"),
        (simple(), RidgeClassifier(), "must have predict_proba"),
        (simple(), KNeighborsClassifier(), "no sample_weight"),
        (simple(), LogisticBehavior(lambda states, t: states), r"features returned shape \(6,\)"),
        (simple(), LogisticBehavior(lambda states, t: "words"), "features must give numbers; got <U5"),
    ],
)
def test_what_cannot_be_estimated_says_why(data, chosen, message):
    with pytest.raises(TightropeError, match=message):
        tightrope.estimate(data, behavior=chosen)


def test_too_many_states_for_a_column_each():
    n = 500
    data = simple(
        offsets=np.arange(n + 1),
        rewards=np.ones(n),
        terminated=[True] * n,
        horizon=1,
        states=np.arange(n),
        actions=np.arange(n) % 2,
        eval_log_probs=np.zeros(n),
    )
    with pytest.raises(DataError, match=r'500 distinct states .* behavior="tabular"'):
        tightrope.estimate(data, behavior="logistic")


def test_a_classifier_that_rules_out_what_was_done():
    class Sure(RidgeClassifier):
        def predict_proba(self, rows):
            return np.tile([1.0, 0.0], (len(rows), 1))

    with pytest.raises(DataError, match="episode 0, step 1 probability 0"):
        tightrope.estimate(simple(), behavior=Sure())


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (simple(), TabularBehavior),
        (simple(states=FLOATS), LogisticBehavior),
        (simple(states=np.stack([FLOATS, FLOATS**2], axis=1)), LogisticBehavior),
        (simple(actions=FLOATS), GaussianRegression),
    ],
)
def test_auto_suits_the_logs(data, kind):
    assert isinstance(behavior("auto", data), kind)
    assert behavior("logged", data) is None
    assert isinstance(behavior(LogisticRegression(), data), ClassifierBehavior)


def test_text_states_and_actions_are_counted():
    words = simple(states=np.array(list("abaabb")), actions=np.array(list("xyyxyx")))
    assert tightrope.estimate(words, behavior="auto") == tightrope.estimate(simple(), behavior="auto")


def test_a_forest_is_frozen_and_refitted():
    """The same bits twice, although its random_state was left open; studentized is refused."""
    data, _ = wandering(20, 3, discrete=True)
    forest = RandomForestClassifier(n_estimators=3, min_samples_leaf=12)
    settings = {"estimator": "wis", "behavior": forest, "n_resamples": 20, "confidence": 0.9}
    bounds = [tightrope.lower_bound(data, method="percentile", **settings) for _ in range(2)]
    assert bounds[0] == bounds[1]
    assert bounds[0].behavior == "classifier"
    assert bounds[0].value < bounds[0].estimate
    with pytest.raises(tightrope.BoundError, match="use percentile or bca"):
        tightrope.lower_bound(data, method="studentized", **settings)


# -- the check on held-out trajectories ----------------------------------------------------------------------------


def check_of(data, chosen, policy=None):
    return check_behavior(Problem(data, policy, chosen))


def test_a_true_policy_passes():
    found = check_of(blind_logs(400), TabularBehavior(), BONUS.candidate)
    assert found.warnings == ()
    assert found.unseen_share == 0.0
    assert found.held_out_log_likelihood < found.log_likelihood < 0
    assert found.calibration_error < 5 * found.calibration_noise
    assert 0.3 < found.smallest_probs[0] <= found.smallest_probs[1] <= found.smallest_probs[2] < 0.5


def test_states_seen_once_are_caught():
    """Every state its own: each logged action looks certain, though it was a coin flip."""
    data = blind_logs(60)
    found = check_of(replace(data, states=np.arange(data.n_steps)), TabularBehavior())
    assert found.log_likelihood == 0.0
    assert found.unseen_share == 1.0
    assert found.warnings[0].code == "behavior-unseen"


def curved(n=400):
    """One step each; the chance of action 1 rises with the square of the state."""
    rng = np.random.default_rng(2)
    states = rng.normal(size=n)
    actions = (rng.random(n) < 1 / (1 + np.exp(3 - 3 * states**2))).astype(int)
    return simple(
        offsets=np.arange(n + 1),
        rewards=states,
        terminated=[True] * n,
        horizon=1,
        states=states,
        actions=actions,
        eval_log_probs=np.log(np.full(n, 0.5)),
    )


def test_likelihood_shows_a_better_form():
    """A line cannot follow the square: held out it is less likely than the right features."""
    line = check_of(curved(), LogisticBehavior())
    square = check_of(curved(), LogisticBehavior(lambda s, t: np.column_stack([np.ones(len(s)), s, s**2])))
    assert square.held_out_log_likelihood > line.held_out_log_likelihood + 0.1


def test_an_overfitted_classifier_is_miscalibrated_and_not_advised():
    found = tightrope.evaluate(
        curved(),
        estimators=["wis"],
        methods=["percentile"],
        behavior=DecisionTreeClassifier(),
        n_resamples=20,
        confidence=0.9,
    )
    assert any(one.code == "behavior-miscalibrated" for one in found.bounds[0].warnings)
    assert found.believed == ()
    assert "logs with the probabilities of their actions" in found.advice


def test_gaussian_residuals():
    """Kolmogorov's distance as SciPy has it; uniform noise is no normal noise."""
    data, policy = wandering(150, 6, discrete=False)
    found = check_of(data, GaussianRegression(), policy)
    assert found.warnings == ()
    assert 0.8 < found.residual_variance < 1.3
    skewed = replace(data, actions=np.random.default_rng(0).exponential(size=(data.n_steps, 2)))
    assert check_of(skewed, GaussianRegression(), policy).warnings[0].code == "behavior-miscalibrated"
    prepared = GaussianRegression().prepare(skewed)
    whole = prepared.residuals(prepared.fit(np.ones(150)))
    distance = kstest(whole.ravel(), "norm").statistic
    assert check_of(skewed, GaussianRegression(), policy).calibration_error == pytest.approx(distance, abs=0.02)


def test_calibration_by_hand():
    """Predicted 0.25 four times with one hit, 0.75 four times with two: bins off by 0 and by 1 in 8."""
    from tightrope.evaluation.behavior_check import _expected_error

    predicted = np.array([0.25] * 4 + [0.75] * 4)
    taken = np.array([True, False, False, False, True, True, False, False])
    error, noise = _expected_error(predicted, taken)
    assert error == pytest.approx(1 / 8)
    assert noise == pytest.approx(2 * np.sqrt(2 / np.pi * 4 * 0.25 * 0.75) / 8)


# -- the command line ----------------------------------------------------------------------------------------------


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


COMMON = ("--horizon", 8, "--discount", 0.95, "--reward-range", 0, 1, "--n-resamples", 200)


@pytest.fixture
def path(tmp_path):
    tightrope.write(blind_logs(), tmp_path / "logs.parquet")
    return tmp_path / "logs.parquet"


def test_command_line(path):
    done = call("evaluate", path, *COMMON, "--behavior", "auto", "--estimator", "pdwis", "--json")
    assert done.exit_code in (0, 3), done.output
    told = json.loads(done.stdout)
    assert {bound["behavior"] for bound in told["bounds"]} == {"tabular"}
    data = tightrope.read(path, horizon=8, discount=0.95, reward_range=(0, 1))
    again = tightrope.evaluate(data, estimators=["pdwis"], behavior="auto", n_resamples=200)
    assert Evaluation.from_json(done.stdout) == again


def test_inspect_checks_the_estimate(path):
    done = call("inspect", path, *COMMON[:7], "--behavior", "tabular")
    assert "estimated (tabular): log-likelihood" in done.output.replace("\n", " ")
    told = json.loads(call("inspect", path, *COMMON[:7], "--behavior", "tabular", "--json").stdout)
    assert BehaviorCheck.from_dict(told["behavior_check"]).behavior == "tabular"


def test_command_line_names_the_fix_and_takes_a_module(path, tmp_path, monkeypatch):
    done = call("evaluate", path, *COMMON)
    assert done.exit_code == BAD_INPUT
    assert "--behavior auto" in done.output
    (tmp_path / "my_behavior.py").write_text(
        "from tightrope.behaviors import TabularBehavior\nchosen = TabularBehavior(timed=True)\n"
    )
    monkeypatch.chdir(tmp_path)
    words = ("--behavior", "my_behavior:chosen", "--estimator", "wis", "--method", "percentile")
    done = call("evaluate", path, *COMMON, *words)
    assert "Behaviour policy estimated (tabular)" in " ".join(done.output.split())


def test_misfit_tells_a_policy_of_the_wrong_shape_and_leaves_the_right_one_alone():
    """Actions by a logistic policy in s: forty data sets, p < 0.05 at most as often as 5 % allow; in |s|: always."""
    tails = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        state = rng.normal(size=600)
        for logit, right in ((0.8 * state - 0.2, True), (2 * np.abs(state) - 1.5, False)):
            act = (rng.random(600) < 1 / (1 + np.exp(-logit))).astype(int)
            logs = tightrope.read({"obs_0": state, "action": act, "reward": act * 1.0}, one_step=True)
            policy = tightrope.CallablePolicy(lambda s, a, t: np.full(len(a), 0.5))
            found = check_of(logs, LogisticBehavior(), policy)
            if right:
                tails.append(found.misfit)
            else:
                assert found.misfit < 1e-4
                assert any(one.code == "behavior-misfit" for one in found.warnings)
    assert sum(p < 0.05 for p in tails) <= 6


def test_a_logging_policy_that_changed_with_time_is_of_the_wrong_shape():
    """Action 1 four times in five at first and once in five then: over both steps a fair coin, and calibrated."""
    rng, n = np.random.default_rng(4), 300
    actions = (rng.random((n, 2)) < [0.8, 0.2]).astype(int).ravel()
    data = simple(
        offsets=2 * np.arange(n + 1),
        rewards=actions.astype(float),
        terminated=[True] * n,
        horizon=2,
        states=rng.normal(size=2 * n),
        actions=actions,
        eval_log_probs=np.log(np.full(2 * n, 0.5)),
    )
    assert [one.code for one in check_of(data, LogisticBehavior()).warnings] == ["behavior-misfit"]
    timed = LogisticBehavior(lambda s, t: np.column_stack([np.ones(len(s)), s, t]))
    assert check_of(data, timed).misfit > 1e-3


def test_misfit_of_a_gaussian_regression():
    rng = np.random.default_rng(1)
    state = rng.normal(size=800)
    for mean, bent in ((0.5 * state, False), (state**2, True)):
        action = mean + rng.normal(size=800)
        logs = tightrope.read({"obs_0": state, "action_0": action, "reward": action}, one_step=True)
        policy = tightrope.GaussianPolicy(lambda s, t: 0 * s, [[0.5]])
        found = check_of(logs, GaussianRegression(), policy).misfit
        assert (found < 1e-4) == bent
