"""Advice follows the measured quantities; the warnings that steer it fire where they should."""

from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tests.answers import answers
from tightrope.base.records import Bound, Overlap
from tightrope.base.warnings import caution
from tightrope.domains import small
from tightrope.evaluation.advice import advise as full_advice
from tightrope.evaluation.advice import spread_warning

GOOD = Overlap((80.0,), (0.02,), 0.0, 0.2, 1.0, 0.05, 0.0, None, False)
STEPS = {"offsets": [0, 1, 2], "rewards": [0.0, 1.0], "terminated": [True, True], "horizon": 2}
PLAIN = tightrope.TrajectoryDataset(**STEPS)


def bound(estimator, method, value, error, *warnings, guarantee="approximate", side="lower"):
    told = tuple(caution(code, "why") for code in warnings)
    return Bound(value, side, 0.95, value + 1, estimator, method, guarantee, error, told, 100)


def advise(bounds, side="lower", dataset=PLAIN):
    return full_advice(answers(bounds), GOOD, side, dataset)


def test_a_fixed_order_wins_not_the_tightest_bound_nor_the_smallest_error():
    bounds = [
        bound("is", "studentized", 5.0, 0.1),
        bound("wis", "bca", 2.0, 0.2),
        bound("pdwis", "studentized", 1.0, 1.0),
    ]
    text, index = advise(bounds)
    assert index == 2
    assert "Use PDWIS with studentized: value ≥ 1 (0.95, approximate). " in text


def test_skew_in_one_self_normalised_bound_speaks_against_all_of_them():
    bounds = [
        bound("pdwis", "percentile", 2.0, 0.2, "skew"),
        bound("wis", "studentized", 2.0, 0.2),
        bound("is", "studentized", 0.0, 1.0),
        bound("pdis", "studentized", 1.0, 1.0),
    ]
    assert advise(bounds)[1] == 3
    assert advise(bounds, dataset=tightrope.TrajectoryDataset(**STEPS, return_range=(0, 1)))[1] == 2


def test_methods_come_in_order_of_measured_error_rates():
    bounds = [bound("wis", method, 1.0, 1.0) for method in ("basic", "percentile", "bca", "studentized", "t")]
    assert advise(bounds)[1] == 3


def test_a_warning_moves_the_advice_to_a_sound_bound_and_then_to_an_exact_one():
    shaky = bound("pdwis", "studentized", 1.0, 1.0, "skew")
    sound = bound("is", "studentized", 0.0, 3.0)
    exact = bound("is", "betting", -1.0, 3.0, guarantee="exact")
    assert advise([shaky, sound, exact])[1] == 1
    text, index = advise([shaky, exact])
    assert index == 1
    assert "skew" in text
    vacuous = bound("is", "betting", -9.0, 3.0, "vacuous", guarantee="exact")
    text, index = advise([shaky, vacuous])
    assert index is None
    assert "cannot answer" in text


@pytest.mark.parametrize(
    "code", ["low-overlap", "one-episode", "heavy-tail", "infinite-variance", "undefined", "no-spread", "vacuous"]
)
def test_what_breaks_the_bootstrap_leaves_only_exact_bounds(code):
    bounds = [bound("wis", "bca", 1.0, 1.0, code), bound("is", "cut", 0.0, 2.0, guarantee="exact")]
    assert advise(bounds)[1] == 1
    assert advise(bounds[:1])[1] is None


def test_an_exact_bound_that_is_no_looser_is_preferred():
    bounds = [bound("wis", "t", 1.0, 1.0), bound("pdis", "betting", 1.5, 2.0, guarantee="exact")]
    assert advise(bounds)[1] == 1
    upper = [
        bound("wis", "t", 1.0, 1.0, side="upper"),
        bound("pdis", "betting", 1.5, 2.0, guarantee="exact", side="upper"),
    ]
    assert advise(upper, "upper")[1] == 0


def test_which_exact_bound_is_named_does_not_depend_on_the_data():
    """PDIS before IS unless a range of the return is declared; betting before the others; no other is tried."""
    exact = [
        bound(estimator, method, value, error, guarantee="exact")
        for estimator, method, value, error in [
            ("is", "cut", 3.0, 0.1),
            ("is", "betting", 2.0, 0.1),
            ("pdis", "betting", 1.0, 9.0),
        ]
    ]
    assert advise(exact)[1] == 2
    assert advise(exact, dataset=tightrope.TrajectoryDataset(**STEPS, return_range=(0, 1)))[1] == 1
    hopeless = [*exact[:2], bound("pdis", "betting", 0.0, 9.0, "vacuous", guarantee="exact")]
    assert advise(hopeless)[1] is None


def test_wrong_probabilities_leave_nothing():
    bounds = [
        bound("is", "betting", 0.0, 1.0, "mean-ratio", guarantee="exact"),
        bound("wis", "t", 0.0, 1.0, "mean-ratio"),
    ]
    text, index = advise(bounds)
    assert index is None
    assert "do not average to 1" in text


def test_the_remedy_names_what_is_missing():
    shaky = [bound("wis", "t", 0.0, 1.0, "low-overlap")]
    ranged = {**STEPS, "reward_range": (0, 1)}
    assert "a declared reward_range" in advise(shaky)[0]
    assert (
        "a declared horizon" in advise(shaky, dataset=tightrope.TrajectoryDataset(**ranged, horizon_declared=False))[0]
    )
    assert "an exact bound (betting)" in advise(shaky, dataset=tightrope.TrajectoryDataset(**ranged))[0]
    only = [bound("is", "hoeffding", 0.0, 1.0, "vacuous", guarantee="exact")]
    text = advise(only)[0]
    assert "bootstrap" not in text
    assert "no bound improves on what is possible anyway" in text


def test_each_side_gets_its_own_advice():
    bounds = [bound("wis", "t", 0.0, 1.0, "skew"), bound("wis", "t", 3.0, 1.0, side="upper")]
    assert advise(bounds)[1] is None
    assert advise(bounds, "upper")[1] == 1


def test_skew_warns_on_the_unsafe_side_only_and_less_as_n_grows():
    """Four values, one far below: skewness of (-3, 1, 1, 1) is (-27 + 3)/4 / 3^1.5 = -1.1547."""
    values = np.array([-3.0, 1.0, 1.0, 1.0])

    def warns(influence, side="lower", second_order=False):
        return spread_warning(influence, 1.0, side, 0.95, second_order=second_order)

    assert "-1.2" in warns(values)[0].text
    assert not warns(values, "upper")
    assert warns(-values, "upper")
    # Excess φ(z)(2z²+1)/6 · 1.1547/√n = 0.1268/√n; the line is 0.2 · 0.05 = 0.01, crossed at n = 161, and
    # 0.4 · 0.05 = 0.02, crossed at n = 40, for methods that correct for skew themselves.
    for copies, second_order, expected in [(40, False, True), (41, False, False), (10, True, True), (11, True, False)]:
        assert bool(warns(np.tile(values, copies), second_order=second_order)) == expected


@pytest.mark.parametrize("method", ["percentile", "bca", "basic", "studentized", "t"])
def test_twenty_equal_rewards_are_no_certainty(method):
    """All rewards 1: a true value of 0.9 shows this one time in eight; no bootstrap bound may be believed."""
    data = tightrope.TrajectoryDataset(
        offsets=np.arange(21),
        rewards=np.ones(20),
        terminated=np.ones(20, bool),
        horizon=1,
        reward_range=(0, 1),
        behavior_log_probs=np.log(np.full(20, 0.5)),
        eval_log_probs=np.log(np.full(20, 0.5)),
    )
    result = tightrope.evaluate(data, methods=[method, "betting"])
    assert all(any(one.code == "no-spread" for one in b.warnings) for b in result if b.method == method)
    assert [bound.method for bound in result.believed] == ["betting"]


def test_evaluate_warns_on_left_skewed_weighted_returns():
    problem = small("decline")
    data = problem.mdp.simulate(problem.behavior, 200, rng=np.random.default_rng(0))
    result = tightrope.evaluate(data, problem.candidate, methods=["percentile"])
    warned = {b.estimator: any(one.code == "skew" for one in b.warnings) for b in result}
    assert {name: warned[name] for name in ("is", "pdis", "wis", "pdwis")} == {
        "is": False,
        "pdis": False,
        "wis": True,
        "pdwis": True,
    }


def test_the_reasons_name_what_was_measured():
    problem = small("walker")
    data = problem.logs(300, rng=np.random.default_rng(1))
    advice = tightrope.advise(data, problem.candidate, seed=1)
    kinds = [reason.split(":")[0] for reason in advice.reasons]
    assert kinds == ["overlap", "support", "tabular model", "bias", "sensitivity"]
    assert "300 logged episodes carry as much information as" in advice.reasons[0]
    assert str(advice).startswith(advice.text)
    assert tightrope.Advice.from_json(advice.to_json()) == advice
    assert len(advice.believed) == 1


def test_one_step_logs_have_no_transitions_to_be_wrong_about():
    problem = small("clinic")
    result = tightrope.evaluate(problem.logs(300, rng=np.random.default_rng(1)), problem.candidate, estimators="mb")
    assert not any("transition" in reason for reason in result.reasons)


def test_the_bias_line_moves_mb_by_the_bias_bound():
    problem = small("walker")
    data = problem.logs(300, rng=np.random.default_rng(1))
    whole = tightrope.evaluate(data, problem.candidate, estimators="mb", methods="percentile", seed=1)
    assert any("more than the whole range of the return" in text for text in whole.reasons)
    result = tightrope.evaluate(replace(data, return_range=None), problem.candidate, side="both", seed=1)
    first = next(bound for bound in result if bound.estimator == "mb" and bound.side == "lower")
    (line,) = [text for text in result.reasons if text.startswith("bias")]
    assert f"{first.value - result.model_check.bias_bound:.4g} instead of {first.value:.4g}" in line


def test_determinism_of_either_policy_is_named():
    problem = small("walker")
    data = problem.logs(50, rng=np.random.default_rng(1))
    fixed = tightrope.advise(data, tightrope.DeterministicPolicy(lambda s, t: 0 * s, 2), methods="percentile")
    assert any(reason.startswith("determinism: the candidate is deterministic") for reason in fixed.reasons)
    sure = replace(data, behavior_log_probs=np.zeros(data.n_steps), behavior=None)
    logged = tightrope.advise(sure, problem.candidate, methods="percentile")
    assert any(reason.startswith("determinism: the behaviour policy") for reason in logged.reasons)


def test_an_exact_bound_is_called_no_looser_than_the_one_it_replaces():
    """It is compared with the approximate bound that would be named otherwise, and the words name that one."""
    exact = bound("is", "betting", 1.0, 1.0, guarantee="exact")
    chosen, tighter = bound("is", "studentized", 0.5, 1.0), bound("pdis", "studentized", 2.0, 1.0, "skew")
    text, index = advise([tighter, chosen, exact])
    assert index == 2
    assert "no looser than IS with studentized (value ≥ 0.5)" in text
