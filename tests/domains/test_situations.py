"""The shipped situations: advice names the right kind of answer, and it holds about as often as it says."""

import numpy as np
import pytest

import tightrope
from tightrope.domains import situations, small
from tightrope.estimators import DR, MB, WDR
from tightrope.models import SimulatorModel, TabularModel

RIGHT = {
    "good model, poor overlap": {"mb"},
    "wrong model, good overlap": {"tdr"},
    "deterministic candidate": {"mb"},
    "no answer possible": {None},
}


@pytest.mark.parametrize("number", range(4))
def test_advice_is_right_in_each_situation(number):
    """Four data sets each: the kind of answer never wrong, the bound wrong at most once (5 % each: 98.6 %)."""
    problem = situations()[number]
    wrong, kinds = 0, []
    for seed in range(4):
        data = problem.logs(500, rng=np.random.default_rng([seed, number]))
        result = tightrope.evaluate(data, problem.candidate, true_value=problem.true_value)
        advised = list(result.believed)
        kinds.append(advised[0].estimator if advised else None)
        wrong += any(bound.value > problem.true_value for bound in advised)
    allowed = RIGHT[problem.name]
    assert set(kinds) - {None} <= allowed
    assert kinds.count(None) == 4 if allowed == {None} else kinds.count(None) <= 1
    assert wrong <= 1


def test_hidden_state_values_by_hand():
    """Up with probability 0.4 earns 1, down with 0.6 earns -1: -0.2; the behaviour policy's is +0.2."""
    problem = next(p for p in situations() if p.observe is not None)
    assert problem.true_value == pytest.approx(-0.2)
    data = problem.logs(5_000, rng=np.random.default_rng(0))
    assert set(data.states) == {0}
    assert data.returns.mean() == pytest.approx(0.2, abs=0.06)
    model = tightrope.lower_bound(data, problem.candidate, estimator="mb", method="t")
    # To the model both steps look alike: each earns the average 0.1, whatever was chosen before.
    assert model.estimate == pytest.approx(0.2, abs=0.1)
    assert any(one.code == "model-contradicted" for one in model.warnings)
    robust = tightrope.lower_bound(data, problem.candidate, estimator="wdr", method="t")
    assert robust.estimate == pytest.approx(-0.2, abs=0.1)


def test_cliff_values_agree_with_gymnasiums_table():
    """Known from exact dynamic programming over Gymnasium's own transition table, 60 steps, γ = 1."""
    problem = small("cliff")
    assert problem.true_value == pytest.approx(-83.3905969968225, abs=1e-9)
    assert problem.mdp.value(problem.behavior) == pytest.approx(-126.50437577446728, abs=1e-9)


def test_the_trap_and_the_way_out():
    """Deterministic moves: one shared model leaves nothing to correct; 0 for unseen pairs then makes the bound err."""
    problem = small("cliff")
    trap = TabularModel(unseen="self-loop", unseen_reward=0.0)
    errors = {"trap": 0, "default": 0}
    for seed in range(10):
        data = problem.logs(50, rng=np.random.default_rng(seed))
        for name, estimator in (("trap", WDR(trap, fit="shared")), ("default", WDR())):
            bound = tightrope.lower_bound(
                data, problem.candidate, estimator=estimator, method="percentile", n_resamples=200
            )
            errors[name] += bound.value > problem.true_value
            if name == "trap":
                assert any(one.code == "no-correction" for one in bound.warnings)
    assert errors["trap"] >= 8
    assert errors["default"] <= 2


@pytest.mark.parametrize("estimator", [MB(), DR(), WDR(), WDR(fit="shared")])
@pytest.mark.parametrize("method", ["percentile", "bca", "basic", "studentized", "t"])
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_every_interval_for_every_model_based_estimator(estimator, method, side):
    problem = small("bonus")
    data = problem.logs(150, rng=np.random.default_rng(2))
    call = tightrope.lower_bound if side == "lower" else tightrope.upper_bound
    bound = call(data, problem.candidate, estimator=estimator, method=method, n_resamples=400)
    assert np.isfinite(bound.value)
    assert (bound.value < bound.estimate) == (side == "lower")


def test_a_model_needs_no_behaviour_probabilities():
    """Logs without propensities: importance sampling is left out with its reason, the model answers."""
    problem = small("bonus")
    data = problem.logs(300, rng=np.random.default_rng(4))
    bare = tightrope.TrajectoryDataset(
        offsets=data.offsets,
        rewards=data.rewards,
        terminated=data.terminated,
        horizon=data.horizon,
        discount=data.discount,
        states=data.states,
        actions=data.actions,
        final_states=data.final_states,
        reward_range=data.reward_range,
    )
    result = tightrope.evaluate(bare, problem.candidate)
    assert {bound.estimator for bound in result} == {"mb"}
    assert {pair[0] for pair in result.skipped} >= {"is", "pdwis", "wdr"}
    assert all("no behaviour probabilities" in why for _, _, why in result.skipped)
    full = tightrope.evaluate(data, problem.candidate, estimators=["mb"])
    assert [bound.value for bound in result] == [bound.value for bound in full]


def test_the_robust_bound_holds_without_behaviour_probabilities():
    """Conservative: below the truth with room to spare, and tighter with more logs."""
    problem = small("bonus")
    few, many = (
        tightrope.lower_bound(
            problem.logs(n, rng=np.random.default_rng(0)), problem.candidate, estimator="mb", method="robust"
        )
        for n in (500, 20_000)
    )
    assert few.guarantee == "exact"
    assert few.value < many.value < problem.true_value
    data = problem.logs(50, rng=np.random.default_rng(0))
    with pytest.raises(tightrope.PolicyError, match="needs integer states and actions"):
        tightrope.lower_bound(data, lambda s, a, t: np.ones(len(s)), estimator="mb", method="robust")
    with pytest.raises(tightrope.BoundError, match="robust is a bound of mb; got pdwis"):
        tightrope.lower_bound(data, problem.candidate, estimator="pdwis", method="robust")


def test_evaluate_takes_the_robust_bound_among_its_methods():
    """Where nothing else exact is asked for and it says something, it is what a strict question gets."""
    problem = small("bonus")
    data = problem.logs(20_000, rng=np.random.default_rng(0))
    result = tightrope.evaluate(
        data, problem.candidate, estimators=["mb", "pdwis"], methods=["percentile", "robust"], strict=True
    )
    assert [bound.method for bound in result.believed] == ["robust"]
    assert {(one, how) for one, how, _ in result.skipped} == {("pdwis", "robust")}
    assert next(b for b in result if b.method == "robust").value < problem.true_value


def test_strict_believes_exact_bounds_alone():
    problem = small("walker")
    data = problem.logs(1000, rng=np.random.default_rng(0))
    loose, strict = (tightrope.evaluate(data, problem.candidate, strict=flag) for flag in (False, True))
    assert loose.believed[0].guarantee == "approximate"
    assert strict.believed[0].guarantee == "exact"
    assert loose.bounds[: len(strict.bounds)] == strict.bounds  # and the recommended one
    none = tightrope.evaluate(data, problem.candidate, strict=True, methods=["percentile"])
    assert none.believed == ()
    assert "no exact bound" in none.advice


def continuous_logs(n=60, horizon=5):
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(n, horizon)), rng.normal(size=(n, horizon))
    return tightrope.TrajectoryDataset(
        offsets=np.arange(n + 1) * horizon,
        rewards=-np.abs(states).reshape(-1),
        terminated=np.zeros(n, dtype=bool),
        horizon=horizon,
        states=states.reshape(-1, 1),
        actions=actions.reshape(-1, 1),
    )


def test_a_model_that_nothing_was_held_against_is_not_advised():
    policy = tightrope.GaussianPolicy(lambda states, t: 0 * states, [[0.5]])
    model = SimulatorModel(lambda states, actions, uniforms: (0.9 * states, -states[:, 0]))
    result = tightrope.evaluate(continuous_logs(), policy, model=model, methods="percentile", n_resamples=100)
    assert {bound.estimator for bound in result} == {"mb"}  # no propensities, but a model was asked for
    assert any(one.code == "model-unchecked" for one in result.bounds[0].warnings)
    assert result.believed == ()
    assert "not measured" in result.reasons[0]


def test_a_regression_of_the_wrong_shape_is_not_advised():
    """Rewards -|s| are no line in s; nothing but their residuals says so, for there are no propensities."""
    policy = tightrope.GaussianPolicy(lambda states, t: 0 * states, [[0.5]])
    result = tightrope.evaluate(continuous_logs(), policy, model="linear", methods="percentile", n_resamples=100)
    assert any("of another shape" in one.text for one in result.bounds[0].warnings)
    assert result.believed == ()
    assert "not measured" in result.reasons[0]


def test_an_unknown_model_is_refused_even_where_nobody_would_use_it():
    with pytest.raises(tightrope.TightropeError, match=r"model must be .*; got 'liner'"):
        tightrope.evaluate(continuous_logs(), tightrope.UniformPolicy(2), model="liner")
