"""What the model check measures: the correction, unseen pairs, and whether the logged state is all there is."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import tightrope
from tests.models import systems
from tightrope import TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.domains import situations, small
from tightrope.evaluation.model_check import _memory, check_model
from tightrope.models import LinearModel, PolynomialModel
from tightrope.models import model as find_model
from tightrope.models.likelihood import log_likelihoods, misfit
from tightrope.models.score_test import score_test


def check(problem, data, effective=100.0):
    return check_model(Problem(data, problem.candidate), "auto", "low", effective=effective)


def chain(errors):
    """Three steps each of one pair (0, 0), led to by (1, 0) or (2, 0): δ of the last step is given, by episode."""
    n = len(errors)
    states = np.stack([1 + np.arange(n) % 2, np.zeros(n, int)], axis=1).reshape(-1)
    data = TrajectoryDataset(
        offsets=np.arange(0, 2 * n + 1, 2),
        rewards=np.zeros(2 * n),
        terminated=np.ones(n, dtype=bool),
        horizon=2,
        states=states,
        actions=np.zeros(2 * n, dtype=int),
    )
    return data, np.stack([np.zeros(n), errors], axis=1).reshape(-1)


def test_memory_by_hand():
    """Errors of +1 after one predecessor and -1 after the other: all 40 of the sum of squares lies between them.

    Under permutation that sum is about chi-square with one degree of freedom: P(> 40) is 2.5e-10. Errors that alternate
    within both predecessors leave nothing between them.
    """
    assert _memory(*chain(np.tile([1.0, -1.0], 20))) < 1e-7
    assert _memory(*chain(np.repeat(np.tile([1.0, -1.0], 10), 2))) > 0.5
    assert _memory(*chain(np.zeros(40))) is None


def test_memory_is_not_fooled_by_unequal_spread_or_rare_slips():
    """A predecessor with few visits and a wide spread, or errors that are nearly always 0, look like memory to a plain
    analysis of variance; exchanging errors within their pair and time does not fall for it.
    """
    rng = np.random.default_rng(0)
    slips = [_memory(*chain(np.where(rng.random(60) < 0.02, -50.0, 1.0))) for _ in range(60)]
    found = [p for p in slips if p is not None]
    assert sum(p < 1e-4 for p in found) == 0
    assert np.mean([p < 0.05 for p in found]) < 0.15


@pytest.mark.parametrize("name", ["walker", "bonus", "decline"])
def test_a_markov_process_seldom_looks_as_if_it_remembered(name):
    """Forty data sets: p-values below 0.05 at most as often as 5 % allow (7 or more has probability 0.4 %)."""
    problem = small(name)
    found = [check(problem, problem.logs(200, rng=np.random.default_rng([5, s]))).memory for s in range(40)]
    assert sum(p < 0.05 for p in found) <= 6
    assert min(found) > 1e-4


def test_a_hidden_state_is_noticed_without_any_overlap():
    problem = next(p for p in situations() if p.observe is not None)
    found = check(problem, problem.logs(60, rng=np.random.default_rng(1)), effective=0.0)
    assert found.memory < 1e-4
    assert any("depends on what came before" in one.text for one in found.warnings)


def test_the_correction_is_the_models_bias():
    """To the model both steps look alike and earn 0.1 under the behaviour policy's mix: V̂ = 0.2, the truth is -0.2."""
    problem = next(p for p in situations() if p.observe is not None)
    found = check(problem, problem.logs(4000, rng=np.random.default_rng(2)))
    assert found.correction == pytest.approx(-0.4, abs=4 * found.correction_error)
    assert found.correction_error < 0.05


def test_deterministic_moves_leave_no_residue_and_stochastic_ones_do():
    cliff, walker = small("cliff"), small("walker")
    assert check(cliff, cliff.logs(50, rng=np.random.default_rng(3))).residue_free
    assert not check(walker, walker.logs(50, rng=np.random.default_rng(3))).residue_free


def test_unseen_pairs_are_warned_of():
    problem = situations()[3]
    found = check(problem, problem.logs(50, rng=np.random.default_rng(4)))
    assert found.unseen_mass == pytest.approx(0.8)
    assert any(str(one).startswith("unseen-pairs: 80.0%") for one in found.warnings)


def test_smoothed_log_likelihoods_by_hand():
    """Two states, one action, two episodes of one step: 0 → 1 twice; one pseudo-visit spread over 3 outcomes."""
    data = TrajectoryDataset(
        offsets=np.array([0, 2, 4]),
        rewards=np.zeros(4),
        terminated=np.zeros(2, dtype=bool),
        horizon=2,
        states=np.array([0, 1, 0, 1]),
        actions=np.zeros(4, dtype=int),
    )
    problem = Problem(data, np.ones((2, 1)))
    prepared = find_model("tabular", problem).prepare(problem, anchor="low")
    steps, starts = log_likelihoods(prepared, np.array([1.0, 0.0]))
    assert steps[[0, 2]] == pytest.approx(np.log((1 + 1 / 3) / 2))
    assert np.isnan(steps[[1, 3]]).all()  # what follows the horizon was not logged
    assert starts == pytest.approx(np.log((1 + 1 / 2) / 2))


def test_gaussian_log_likelihoods_agree_with_scipy():
    data = systems.logs(200, seed=1)
    prepared = LinearModel(reward=systems.linear_reward).prepare(Problem(data, systems.CANDIDATE), anchor="low")
    steps, _ = log_likelihoods(prepared, np.ones(200))
    design = np.hstack([np.ones((data.n_steps, 1)), data.states, data.actions])
    following = np.concatenate([data.states.reshape(200, 8, 2)[:, 1:], data.final_states[:, None]], axis=1).reshape(
        -1, 2
    )
    left = following - design @ np.linalg.lstsq(design, following, rcond=None)[0]
    expected = multivariate_normal(np.zeros(2), left.T @ left / len(left)).logpdf(left)
    assert steps == pytest.approx(expected, rel=1e-6)


def test_misfit_tells_a_wrong_class_and_leaves_the_right_one_alone():
    """Forty linear data sets: under a linear model p < 0.05 at most as often as 5 % allow; under a cubic one always."""
    tails = []
    for seed in range(40):
        problem = Problem(systems.logs(60, seed=seed), systems.CANDIDATE)
        tails.append(misfit(LinearModel(reward=systems.linear_reward).prepare(problem, anchor="low")))
        assert misfit(PolynomialModel(reward=systems.linear_reward).prepare(problem, anchor="low")) < 1e-6
    assert sum(p < 0.05 for p in tails) <= 6
    few = Problem(systems.logs(3, seed=0), systems.CANDIDATE)
    assert misfit(LinearModel(reward=systems.linear_reward).prepare(few, anchor="low")) is None


def test_the_held_out_likelihood_exceeds_the_fitted_one_and_bounds_the_bias():
    problem = small("bonus")
    found = check(problem, problem.logs(100, rng=np.random.default_rng(0)))
    assert found.likelihood_held_out > found.likelihood_training > 0
    low, high = problem.mdp.reward_range
    assert 0 < found.bias_bound <= (high - low) * np.power(problem.mdp.discount, np.arange(8)).sum()
    estimate = tightrope.estimate(problem.logs(100, rng=np.random.default_rng(0)), problem.candidate, estimator="mb")
    assert abs(estimate - problem.true_value) < found.bias_bound


def test_few_effective_trajectories_bound_no_bias():
    """Judged by a handful of weighted episodes, a likelihood says nothing of what the candidate would meet."""
    problem = small("bonus")
    data = problem.logs(100, rng=np.random.default_rng(0))
    assert check(problem, data, effective=9.9).bias_bound is None
    assert check(problem, data, effective=10.0).bias_bound is not None


def test_the_bias_line_says_nothing_of_rewards():
    """One state, one step: the transitions cannot be wrong, yet the model's value is off by a quarter."""
    actions = np.repeat([0, 1], [80, 20])
    data = TrajectoryDataset(
        offsets=np.arange(101),
        rewards=np.repeat([0.5, 0.0, 1.0], [80, 15, 5]),  # action 1 truly earns 1/2
        terminated=np.ones(100, dtype=bool),
        horizon=1,
        states=np.zeros(100, dtype=int),
        actions=actions,
        behavior_log_probs=np.log(np.where(actions == 1, 0.2, 0.8)),
        reward_range=(0.0, 1.0),
    )
    found = tightrope.evaluate(data, np.array([[0.0, 1.0]]), estimators=["mb"], methods=["percentile"])
    assert found.model_check.bias_bound == 0
    assert found.bounds[0].estimate == pytest.approx(0.25)
    assert not any(text.startswith("bias") for text in found.reasons)  # a line on transitions would reassure wrongly


def test_a_repeated_column_is_no_degree_of_freedom():
    rng = np.random.default_rng(0)
    own, more, residual = np.ones((200, 1)), rng.normal(size=(200, 2)), rng.normal(size=200)
    residual -= residual.mean()
    twice = np.hstack([more, more[:, :1] + more[:, 1:]])
    assert score_test(own, twice, residual) == pytest.approx(score_test(own, more, residual))


def test_where_nothing_happens_by_chance_percentile_is_preferred_for_corrected_models():
    cliff, walker = small("cliff"), small("walker")
    for problem, warned in ((cliff, True), (walker, False)):
        data = problem.logs(60, rng=np.random.default_rng(3))
        result = tightrope.evaluate(
            data, problem.candidate, estimators=["wdr"], methods=["percentile", "bca", "studentized"], n_resamples=200
        )
        found = {bound.method: any(one.code == "sharp" for one in bound.warnings) for bound in result}
        assert found == {"percentile": False, "bca": warned, "studentized": warned}
