"""Diagnostics: by hand, against plain loops, on tails of known weight; warnings that fire, and that keep quiet."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import tightrope
from tests.logs import POLICY, columns
from tightrope import GaussianPolicy, TabularPolicy, TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.base.warnings import coded
from tightrope.evaluation.overlap import infinite_variance, overlap, unlogged_mass
from tightrope.evaluation.ratio_tail import pareto_k
from tightrope.evaluation.summary import summarize


def with_ratios(step_ratios, **changes):
    """Logs whose step ratios are these, (n, horizon); float actions, so that any density will do."""
    ratios = np.atleast_2d(np.asarray(step_ratios, dtype=float))
    n, horizon = ratios.shape
    with np.errstate(divide="ignore"):
        logs = np.log(ratios.ravel())
    return TrajectoryDataset(
        offsets=np.arange(0, n * horizon + 1, horizon),
        rewards=np.zeros(n * horizon),
        terminated=np.zeros(n, bool),
        horizon=horizon,
        behavior_log_probs=np.zeros(n * horizon),
        eval_log_probs=logs,
        actions=np.zeros(n * horizon),
        **changes,
    )


def codes(data, policy=None):
    return {warning.code for warning in overlap(Problem(data, policy)).warnings}


def test_overlap_by_hand():
    found = overlap(Problem(with_ratios([[1, 2], [1, 0], [2, 2], [4, 0.5]])))
    # cumulative ratios: first step 1, 1, 2, 4; second 2, 0, 4, 2
    np.testing.assert_allclose(found.effective_sample_size, [8**2 / 22, 8**2 / 24])
    np.testing.assert_allclose(found.largest_share, [4 / 8, 4 / 8])
    assert found.zero_share == 0.25
    assert found.mean_ratio == pytest.approx(2)
    assert found.mean_ratio_error == pytest.approx(math.sqrt((0 + 4 + 4 + 0) / 3 / 4))
    assert found.pareto_k is None
    assert found.unlogged_mass is None
    assert found.infinite_variance is False


@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e250])
def test_overlap_does_not_depend_on_scale_and_never_overflows(scale):
    ratios = np.array([[1.0, 3.0], [2.0, 1.0], [0.0, 1.0]])
    found = overlap(Problem(with_ratios(ratios * [scale, 1.0])))
    np.testing.assert_allclose(found.effective_sample_size, [9 / 5, 25 / 13])
    assert found.mean_ratio == pytest.approx(scale * 5 / 3)
    assert found.mean_ratio_error == pytest.approx(scale * math.sqrt(7 / 3 / 3))  # 3, 2, 0 around 5/3
    beyond = overlap(Problem(with_ratios(np.full((2, 3), 1e250))))
    assert beyond.mean_ratio == math.inf
    assert beyond.effective_sample_size == (2.0, 2.0, 2.0)


def test_one_episode_has_no_standard_error():
    found = overlap(Problem(with_ratios([[2.0]])))
    assert found.mean_ratio_error == math.inf
    assert {warning.code for warning in found.warnings} == {"low-overlap"}


# -- tails -----------------------------------------------------------------------------------------------------------


def shape_of(logs):
    return pareto_k(np.sort(logs))


def slow_pareto_k(ratios):
    """Zhang and Stephens (2009) with the weak prior of Vehtari et al. (2024), step by step."""
    n = len(ratios)
    size = math.ceil(min(0.2 * n, 3 * math.sqrt(n)))
    ordered = sorted(ratios)
    tail = [x - ordered[n - size - 1] for x in ordered[n - size :]]
    m = 30 + math.floor(math.sqrt(size))
    quartile = tail[math.floor(size / 4 + 0.5) - 1]
    thetas, scores = [], []
    for j in range(1, m + 1):
        theta = 1 / tail[-1] + (1 - math.sqrt(m / (j - 0.5))) / (3 * quartile)
        k = sum(math.log1p(-theta * x) for x in tail) / size
        thetas.append(theta)
        scores.append(size * (math.log(-theta / k) - k - 1))
    weights = [math.exp(score - max(scores)) for score in scores]
    theta = sum(t * w for t, w in zip(thetas, weights, strict=True)) / sum(weights)
    k = sum(math.log1p(-theta * x) for x in tail) / size
    return (size * k + 10 * 0.5) / (size + 10)


@pytest.mark.parametrize("n", [25, 100, 1000])
def test_pareto_k_against_a_loop(n):
    logs = np.random.default_rng(n).normal(size=n)
    assert shape_of(logs) == pytest.approx(slow_pareto_k(np.exp(logs).tolist()), rel=1e-9)
    assert shape_of(logs + 900) == pytest.approx(shape_of(logs), rel=1e-9)  # the scale does not matter


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0])
def test_pareto_k_of_a_known_tail(shape):
    n = 200_000
    draws = np.random.default_rng(6).random(n)
    ratios = (draws**-shape - 1) / shape  # generalised Pareto: so is every exceedance, with the same shape
    size = 3 * math.sqrt(n)
    allowed = 4 * (1 + shape) / math.sqrt(size) + 10 * abs(0.5 - shape) / size
    assert shape_of(np.log(ratios)) == pytest.approx(shape, abs=allowed)


def test_pareto_k_where_there_is_no_tail():
    assert shape_of(np.zeros(20)) is None  # too few
    assert shape_of(np.zeros(1000)) is None  # all alike
    assert shape_of(np.r_[np.zeros(997), [-np.inf] * 3]) is None


def test_pareto_k_of_ratios_too_far_apart_for_a_float():
    assert shape_of(np.linspace(-3000, 0, 500)) > 1
    tiny, rest = np.linspace(-740, -715, 10), np.linspace(-10, 0, 10)  # e^-740 has lost its digits: it counts as 0
    found = shape_of(np.r_[np.full(80, -2000.0), tiny, rest])
    assert found == pytest.approx(shape_of(np.r_[np.full(90, -math.inf), rest]))


# -- support ---------------------------------------------------------------------------------------------------------

ONE_STEP = {"t": np.zeros(9, int), "episode": np.arange(9)}


def test_unlogged_mass_by_hand():
    states = np.array([0] * 6 + [1] * 3)
    actions = np.array([0] * 6 + [1, 1, 1])  # action 1 never in state 0, action 0 never in state 1
    data = tightrope.read(columns(state=states, action=actions, **ONE_STEP))
    expected = (6 * 0.3 + 3 * 0.4) / 9
    for policy in (POLICY, TabularPolicy(POLICY), TabularPolicy(np.stack([POLICY, POLICY[::-1]]))):
        assert unlogged_mass(Problem(data, policy)) == pytest.approx(expected)
    assert "unlogged-actions" in codes(data, POLICY)
    assert unlogged_mass(Problem(data, np.eye(2))) == 0
    assert unlogged_mass(Problem(data, lambda s, a, t: np.full(9, 0.5))) is None
    softened = tightrope.softened(lambda s, a, t: np.full(len(s), 0.5), epsilon=0.5, n_actions=2)
    assert unlogged_mass(Problem(data, softened)) is None
    assert overlap(Problem(data, softened)).unlogged_mass is None


def test_all_pairs_logged():
    data = tightrope.read(columns(**ONE_STEP))
    assert unlogged_mass(Problem(data, POLICY)) == 0
    assert "unlogged-actions" not in codes(data, POLICY)


def test_unlogged_mass_of_a_time_dependent_policy():
    table = np.array([[[0.5, 0.2, 0.3]], [[0.5, 0.4, 0.1]], [[1.0, 0.0, 0.0]]])
    data = tightrope.read(columns(state=np.zeros(9, int), action=np.zeros(9, int)))
    assert unlogged_mass(Problem(data, table)) == pytest.approx((0.5 + 0.5 + 0.0) / 3)


# -- infinite variance -----------------------------------------------------------------------------------------------

COVARIANCE = np.array([[0.9, 0.3], [0.3, 0.4]])
EDGE = np.linalg.cholesky(COVARIANCE) @ [0.6, 0.8]  # Σ + vvᵀ doubles the variance in one direction exactly


def gaussian_logs(known, actions):
    density = multivariate_normal(np.zeros(2), COVARIANCE).logpdf(actions)
    return TrajectoryDataset(
        offsets=np.arange(len(actions) + 1),
        rewards=np.zeros(len(actions)),
        terminated=np.zeros(len(actions), bool),
        horizon=1,
        states=np.zeros(len(actions), int),
        actions=actions,
        behavior_log_probs=density,
        behavior=GaussianPolicy(lambda s, t: np.zeros((len(s), 2)), COVARIANCE) if known else None,
    )


def candidate(covariance):
    return GaussianPolicy(lambda s, t: np.zeros((len(s), 2)), covariance)


AROUND = np.array([[0.0, 0.0], [0.5, 0.1], [-1.0, 0.4]])


@pytest.mark.parametrize(
    ("covariance", "infinite"),
    [
        (COVARIANCE, False),
        (1.999 * COVARIANCE, False),
        (2 * COVARIANCE, True),
        (3 * COVARIANCE, True),
        (COVARIANCE + np.outer(EDGE, EDGE), True),
        (COVARIANCE + 0.999 * np.outer(EDGE, EDGE), False),
    ],
)
def test_infinite_variance_with_a_known_behaviour(covariance, infinite):
    data = gaussian_logs(True, AROUND)
    assert infinite_variance(Problem(data, candidate(covariance))) is infinite
    assert ("infinite-variance" in codes(data, candidate(covariance))) is infinite


@pytest.mark.parametrize("times", [1.0, 2.0, 3.0])
def test_logged_densities_alone_prove_no_infinite_variance(times):
    assert infinite_variance(Problem(gaussian_logs(False, AROUND), candidate(times * COVARIANCE))) is False


def test_a_uniform_logging_policy_with_bounded_ratios_is_not_refused():
    """Uniform on [-1, 1] with density 1/2; a normal candidate of deviation 0.5 has ratios below 1.6."""
    rng = np.random.default_rng(3)
    actions = rng.uniform(-1, 1, (500, 1))
    data = TrajectoryDataset(
        offsets=np.arange(501),
        rewards=1 - actions[:, 0] ** 2,
        terminated=np.ones(500, bool),
        horizon=1,
        states=np.zeros(500, int),
        actions=actions,
        behavior_log_probs=np.full(500, np.log(0.5)),
    )
    policy = GaussianPolicy(lambda s, t: np.zeros((len(s), 1)), 0.3**2 * np.eye(1))
    assert codes(data, policy) == set()


def test_infinite_variance_is_about_gaussians():
    assert infinite_variance(Problem(with_ratios([[1.0], [2.0]]))) is False


# -- warnings --------------------------------------------------------------------------------------------------------


def logged(real, said, n=400):
    """One-step logs of a policy that takes action 1 with probability ``real`` and logs ``said``."""
    actions = (np.random.default_rng(9).random(n) < real).astype(int)
    probs = np.where(actions == 1, said, 1 - said)
    made = {"episode": np.arange(n), "t": np.zeros(n, int), "state": np.zeros(n, int), "action": actions}
    return tightrope.read({**made, "reward": actions, "behavior_prob": probs})


def test_wrong_propensities_are_noticed():
    policy = np.array([[0.2, 0.8]])
    assert codes(logged(0.6, 0.6), policy) == set()
    assert codes(logged(0.8, 0.5), policy) == {"mean-ratio"}  # 0.8 * 1.6 + 0.2 * 0.4 = 1.36 on average
    found = overlap(Problem(logged(0.8, 0.5), policy))
    assert found.mean_ratio == pytest.approx(1.36, abs=0.1)
    bound = tightrope.lower_bound(logged(0.8, 0.5), policy, method="percentile", n_resamples=40)
    assert any(str(warning).startswith("mean-ratio: the importance ratios average") for warning in bound.warnings)


def test_exact_bounds_say_that_the_ratios_are_wrong():
    """Exact means: if what was logged is true. It is not, and nobody is to believe the bound."""
    policy, data = np.array([[0.2, 0.8]]), replace(logged(0.8, 0.5), reward_range=(0.0, 1.0), horizon_declared=True)
    for method in ("betting", "anderson"):
        bound = tightrope.lower_bound(data, policy, estimator="is", method=method)
        assert bound.guarantee == "exact"
        assert coded(bound.warnings, "mean-ratio")
    assert tightrope.evaluate(data, policy, estimators=["is"], methods=["betting"], strict=True).believed == ()


def test_same_policy_is_healthy():
    assert codes(with_ratios(np.ones((50, 4)))) == set()


def test_low_overlap_and_one_trajectory():
    ratios = np.full((100, 1), 0.01)
    ratios[7] = 99.0  # mean 1 to within a percent
    assert codes(with_ratios(ratios)) == {"low-overlap", "one-episode"}
    spread = np.full((100, 1), 0.5)
    spread[:10] = 5.5
    assert codes(with_ratios(spread)) == set()  # worth 100² / (10 · 5.5² + 90 · .25) = 31
    few = np.full((100, 1), 0.001)
    few[:4] = 25
    assert codes(with_ratios(few)) == {"low-overlap"}


def test_heavy_tail():
    draws = np.random.default_rng(1).random((5000, 1))
    heavy, light = draws**-0.9 * 0.1, draws**-0.2 * 0.8  # tail index .9 and .2; both average 1
    assert "heavy-tail" in codes(with_ratios(heavy))
    assert codes(with_ratios(light)) == set()


# -- summary ---------------------------------------------------------------------------------------------------------


def test_summary_by_hand():
    data = tightrope.read(columns(), discount=0.5, reward_range=(-1, None))
    found = summarize(data)
    returns = [0 + 0.5 + 0.125, -1 + 0 + 0.5, 0.25 + 0 + 0.25]
    mean = sum(returns) / 3
    assert (found.n_trajectories, found.n_steps, found.shortest, found.longest) == (3, 9, 3, 3)
    assert found.reward_seen == (-1.0, 2.0)
    assert found.reward_range == (-1.0, math.inf)
    assert found.return_mean == pytest.approx(mean)
    assert found.return_error == pytest.approx(math.sqrt(sum((x - mean) ** 2 for x in returns) / 2 / 3))
    assert (found.actions, found.states, found.terminated, found.horizon_declared) == ("2 values", "2 values", 0, False)
    assert summarize(data.take([0])).return_error == math.inf


def test_actions_that_decide_how_many_episodes_a_cluster_has_are_seen():
    """A patient comes back once after action 0, which the candidate prefers: ρ is (.8, .2) over .5, counted by hand.

    By episode the ratios average to 1. Of a patient's mean, action 0 first (1.6) brings the mean of 1.6 and another
    ratio of mean 1, so 1.3; action 1 first brings 0.4: on average (1.3 + 0.4) / 2 = 0.85.
    """
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 3000)
    again = np.flatnonzero(first == 0)
    actions = np.concatenate([first, rng.integers(0, 2, len(again))])
    data = tightrope.TrajectoryDataset(
        offsets=np.arange(len(actions) + 1), rewards=np.full(len(actions), 0.5), horizon=1,
        terminated=np.ones(len(actions), dtype=bool), behavior_log_probs=np.full(len(actions), np.log(0.5)),
        eval_log_probs=np.log(np.where(actions == 0, 0.8, 0.2)), reward_range=(0.0, 1.0),
        clusters=np.concatenate([np.arange(3000), again]),
    )  # fmt: skip
    by_patient, by_episode = (overlap(Problem(one)) for one in (data, replace(data, clusters=None)))
    assert by_episode.mean_ratio == pytest.approx(1.0, abs=0.03)
    assert by_patient.mean_ratio == pytest.approx(0.85, abs=0.03)
    assert "mean-ratio" in {caution.code for caution in by_patient.warnings}
