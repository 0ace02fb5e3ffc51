"""Advice follows the measured quantities; the warnings that steer it fire where they should."""

import numpy as np
import pytest

import tightrope
from tightrope.advice import advise, skew_warning
from tightrope.records import Bound, Overlap

GOOD = Overlap((80.0,), (0.02,), 0.0, 0.2, 1.0, 0.05, None, False)


def bound(estimator, method, value, error, *warnings, guarantee="approximate", side="lower"):
    told = tuple(f"{code}: why" for code in warnings)
    return Bound(value, side, 0.95, value + 1, estimator, method, guarantee, error, told, 100)


def test_smallest_standard_error_wins_not_the_tightest_bound():
    bounds = [bound("is", "studentized", 5.0, 2.0), bound("pdwis", "studentized", 1.0, 1.0)]
    text, index = advise(bounds, GOOD, "lower")
    assert index == 1
    assert "Believe pdwis with studentized" in text


def test_methods_come_in_order_of_measured_error_rates():
    bounds = [bound("wis", method, 1.0, 1.0) for method in ("basic", "percentile", "bca", "studentized", "t")]
    assert advise(bounds, GOOD, "lower")[1] == 3


def test_a_warning_moves_the_advice_to_a_sound_bound_and_then_to_an_exact_one():
    shaky = bound("pdwis", "studentized", 1.0, 1.0, "skew")
    sound = bound("is", "studentized", 0.0, 3.0)
    exact = bound("is", "betting", -1.0, 3.0, guarantee="exact")
    assert advise([shaky, sound, exact], GOOD, "lower")[1] == 1
    text, index = advise([shaky, exact], GOOD, "lower")
    assert index == 1
    assert "skew" in text
    vacuous = bound("is", "betting", -9.0, 3.0, "vacuous", guarantee="exact")
    text, index = advise([shaky, vacuous], GOOD, "lower")
    assert index is None
    assert "cannot answer" in text


@pytest.mark.parametrize("code", ["low-overlap", "one-trajectory", "heavy-tail", "infinite-variance", "undefined"])
def test_what_breaks_the_bootstrap_leaves_only_exact_bounds(code):
    bounds = [bound("wis", "bca", 1.0, 1.0, code), bound("is", "cut", 0.0, 2.0, guarantee="exact")]
    assert advise(bounds, GOOD, "lower")[1] == 1
    assert advise(bounds[:1], GOOD, "lower")[1] is None


def test_wrong_probabilities_leave_nothing():
    bounds = [
        bound("is", "betting", 0.0, 1.0, "mean-ratio", guarantee="exact"),
        bound("wis", "t", 0.0, 1.0, "mean-ratio"),
    ]
    text, index = advise(bounds, GOOD, "lower")
    assert index is None
    assert "do not average to 1" in text


def test_each_side_gets_its_own_advice():
    bounds = [bound("wis", "t", 0.0, 1.0, "skew"), bound("wis", "t", 3.0, 1.0, side="upper")]
    assert advise(bounds, GOOD, "lower")[1] is None
    assert advise(bounds, GOOD, "upper")[1] == 1


def test_skew_warns_on_the_unsafe_side_only_and_less_as_n_grows():
    """Four values, one far below: skewness of (-3, 1, 1, 1) is (-27 + 3)/4 / 3^1.5 = -1.1547."""
    values = np.array([-3.0, 1.0, 1.0, 1.0])
    assert skew_warning(values, "lower", 0.95, second_order=False)
    assert "-1.2" in skew_warning(values, "lower", 0.95, second_order=False)[0]
    assert not skew_warning(values, "upper", 0.95, second_order=False)
    assert skew_warning(-values, "upper", 0.95, second_order=False)
    # Excess φ(z)(2z²+1)/6 · 1.1547/√n = 0.1268/√n; the line is 0.2 · 0.05 = 0.01, crossed at n = 161, and
    # 0.4 · 0.05 = 0.02, crossed at n = 40, for methods that correct for skew themselves.
    for copies, second_order, warns in [(40, False, True), (41, False, False), (10, True, True), (11, True, False)]:
        assert bool(skew_warning(np.tile(values, copies), "lower", 0.95, second_order=second_order)) == warns
    assert skew_warning(np.zeros(5), "lower", 0.95, second_order=False) == []


def test_evaluate_warns_on_left_skewed_weighted_returns():
    from tightrope.domains import small

    problem = small("decline")
    data = problem.mdp.simulate(problem.behavior, 200, rng=np.random.default_rng(0))
    result = tightrope.evaluate(data, problem.candidate, methods=["percentile"])
    warned = {b.estimator: any(text.startswith("skew") for text in b.warnings) for b in result}
    assert warned == {"is": False, "pdis": False, "wis": True, "pdwis": True}
