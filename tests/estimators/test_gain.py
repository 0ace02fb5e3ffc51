"""The candidate's gain over the behaviour policy, bounded as one difference."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope
from tightrope import BoundError
from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.estimators import ESTIMATORS, estimator
from tightrope.estimators.gain import gain


@pytest.fixture(scope="module")
def problem():
    made = small("bonus")
    return Problem(made.logs(150, rng=np.random.default_rng(4)), made.candidate)


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_it_is_the_difference_under_every_weight(problem, name):
    data, rng = problem.dataset, np.random.default_rng(0)
    value, difference = estimator(name)(problem), gain(estimator(name))(problem)
    weights = np.vstack([np.ones(150), rng.integers(1, 4, (6, 150))])
    np.testing.assert_allclose(
        difference(weights), value(weights) - weights @ data.returns / weights.sum(axis=1), rtol=1e-12, atol=1e-12
    )
    assert difference.estimate == pytest.approx(value.estimate - data.returns.mean(), abs=1e-12)
    without = np.array([difference(np.where(np.arange(150) == i, 0.0, 1.0)) for i in range(5)])
    np.testing.assert_allclose(difference.leave_one_out()[:5], without, rtol=1e-9)
    nudged = np.ones(150)
    nudged[3] += 1e-6
    assert difference.influence()[3] / 150 == pytest.approx(
        (float(difference(nudged)) - difference.estimate) / 1e-6, rel=1e-3, abs=1e-6
    )


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_weights_of_nothing_are_undefined_without_a_word(problem, name):
    """A row of Poisson counts can be all zeros; few episodes are enough to meet one."""
    assert np.isnan(gain(estimator(name))(problem)(np.zeros((2, 150)))).all()


@pytest.mark.parametrize("name", ["is", "pdis", "wis", "pdwis", "dr", "wdr"])
def test_a_candidate_that_is_the_behaviour_policy_gains_nothing(name):
    made = small("bonus")
    data = made.logs(60, rng=np.random.default_rng(1))
    difference = gain(estimator(name))(Problem(data, made.behavior))
    weights = tightrope.draw_weights(60, 20, seed=0)
    if name in ("dr", "wdr"):  # the model's part has mean zero over all, not in every replicate
        assert abs(difference.estimate) < 0.2
    else:
        np.testing.assert_allclose(difference(weights), 0.0, atol=1e-12)


@pytest.mark.parametrize("side", ["low", "high"])
@pytest.mark.parametrize("name", ["is", "pdis"])
def test_exact_values_are_never_negative_and_average_to_the_gain(problem, name, side):
    anchored = gain(estimator(name)).anchored(side)
    sample = anchored.trajectory_values(problem, max_ratio=1e3)
    assert (sample.values >= 0).all()
    assert sample.sign == (1.0 if side == "low" else -1.0)
    assert sample.estimate == pytest.approx(anchored(problem).estimate, rel=1e-9)
    low, high = problem.dataset.value_range
    if name == "is":  # pdis counts from the range of the rewards, which may be wider
        assert sample.origin == pytest.approx(low - high if side == "low" else high - low)
    assert sample.ceiling >= sample.values.max()


def test_exact_bounds_on_the_gain_need_both_ends():
    columns = {
        "episode": [0, 1, 2],
        "t": [0, 0, 0],
        "action": [1, 0, 0],
        "reward": [1.0, 2.0, 3.0],
        "behavior_prob": [0.5] * 3,
        "eval_prob": [0.6, 0.4, 0.4],
    }
    data = tightrope.read(columns, reward_range=(0.0, np.inf), horizon=1)
    with pytest.raises(BoundError, match="both ends of the return"):
        gain(estimator("is")).trajectory_values(Problem(data), max_ratio=None)


def test_bounds_are_those_of_the_same_resamples():
    made = small("clinic")
    data = made.logs(300, rng=np.random.default_rng(2))
    result = tightrope.evaluate(
        data, made.candidate, estimators=["wis"], methods=["percentile"], n_resamples=400, baseline="behavior"
    )
    ratios = np.exp(data.eval_log_probs - data.behavior_log_probs)
    weights = tightrope.draw_weights(300, 400, seed=0)
    values = weights @ (ratios * data.returns) / (weights @ ratios) - weights @ data.returns / 300
    lower, upper = result.gains
    assert lower.about == upper.about == "gain"
    assert str(lower).startswith("gain ≥")
    assert lower.value == pytest.approx(np.sort(values)[19], rel=1e-9)  # the 20th of 400
    assert upper.value == pytest.approx(np.sort(values)[-20], rel=1e-9)
    apart = result.bounds[0].value - data.returns.mean()  # as if the behaviour policy's value were known
    assert lower.value > apart


def test_the_verdict_is_about_the_gain():
    made = small("clinic")
    data = made.logs(1000, rng=np.random.default_rng(0))
    better = tightrope.evaluate(data, made.candidate, baseline="behavior")
    assert better.verdict.headline == (
        "Yes, at 95%: the candidate's gain over the behaviour policy is above 0 (approximate)"
    )
    assert better.verdict.threshold == 0.0
    much = tightrope.evaluate(data, made.candidate, baseline="behavior", threshold=0.3)
    assert much.verdict.kind == "no"
    assert "not above 0.3" in much.verdict.headline
    same = tightrope.evaluate(data, made.behavior, baseline="behavior", estimators=["wdr"])
    assert same.verdict.kind in ("cannot tell", "broken")
    plain = tightrope.evaluate(data, made.candidate, threshold=0.3)
    assert plain.gains == ()
    assert [bound.value for bound in plain.bounds] == [bound.value for bound in better.bounds]
    assert tightrope.Evaluation.from_json(better.to_json()) == better


def test_an_unknown_baseline_is_refused():
    made = small("clinic")
    with pytest.raises(BoundError, match=r"baseline must be .*; got 'zero'"):
        tightrope.evaluate(made.logs(10, rng=np.random.default_rng(0)), made.candidate, baseline="zero")
