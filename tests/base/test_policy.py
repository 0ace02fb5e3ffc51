"""Policies: log-probabilities against hand formulas, samples against frequencies, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2, multivariate_normal

import tightrope
from tests.logs import POLICY, columns
from tightrope import (
    CallablePolicy,
    DeterministicPolicy,
    GaussianPolicy,
    MixturePolicy,
    PolicyError,
    SoftmaxPolicy,
    TabularPolicy,
    UniformPolicy,
    softened,
)
from tightrope.base.policy import DiscretePolicy, Policy, as_actor, as_policy

STATES = np.array([0, 1, 2, 0, 2, 1])
ACTIONS = np.array([1, 0, 1, 0, 0, 1])
TIMES = np.array([0, 1, 2, 1, 0, 2])
TABLE = [[0.25, 0.75], [1.0, 0.0], [0.4, 0.6]]
BY_TIME = [TABLE, [[0.5, 0.5], [0.1, 0.9], [0.0, 1.0]], [[0.2, 0.8], [0.3, 0.7], [0.9, 0.1]]]
LIKES = [[0.0, 1.0], [2.0, -1.0], [-700.0, 700.0]]


def log(probability):
    return math.log(probability) if probability > 0 else -math.inf


def log_softmax(state, action, temperature=1.0):
    ahead = (LIKES[state][1 - action] - LIKES[state][action]) / temperature
    return -math.log1p(math.exp(ahead)) if ahead < 700 else -ahead


def soft(temperature=1.0):
    return SoftmaxPolicy(lambda s, t: np.array(LIKES)[s], temperature)


def last(s, t):
    """Action 1 in state 2, else 0."""
    return (s == 2).astype(int)


DISCRETE = {
    "tabular": (TabularPolicy(TABLE), lambda s, a, t: TABLE[s][a]),
    "array": (as_policy(np.array(TABLE)), lambda s, a, t: TABLE[s][a]),
    "by-time": (TabularPolicy(BY_TIME), lambda s, a, t: BY_TIME[t][s][a]),
    "softmax": (soft(3.0), lambda s, a, t: math.exp(log_softmax(s, a, 3.0))),
    "deterministic": (DeterministicPolicy(last, 2), lambda s, a, t: float(a == (s == 2))),
    "uniform": (UniformPolicy(2), lambda s, a, t: 0.5),
    "softened": (
        softened(DeterministicPolicy(last, 2), epsilon=0.1, n_actions=2),
        lambda s, a, t: 0.9 * (a == (s == 2)) + 0.1 / 2,
    ),
    "mixture": (
        MixturePolicy((TabularPolicy(TABLE), UniformPolicy(2), TabularPolicy(BY_TIME)), (0.5, 0.0, 0.5)),
        lambda s, a, t: 0.5 * TABLE[s][a] + 0.5 * BY_TIME[t][s][a],
    ),
    "mixture of anything": (
        MixturePolicy((np.array(TABLE), lambda s, a, t: np.full(len(s), 0.3)), (0.2, 0.8)),
        lambda s, a, t: 0.2 * TABLE[s][a] + 0.8 * 0.3,
    ),
    "callable": (
        CallablePolicy(lambda s, a, t: np.array(BY_TIME)[t, s, a]),
        lambda s, a, t: BY_TIME[t][s][a],
    ),
    "log callable": (CallablePolicy(lambda s, a, t: -1.0 * t - s, log=True), lambda s, a, t: math.exp(-t - s)),
    "bare callable": (as_policy(lambda s, a, t: 1 / (1.0 + s + a + t)), lambda s, a, t: 1 / (1 + s + a + t)),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_log_prob(name):
    policy, formula = DISCRETE[name]
    assert isinstance(policy, Policy)
    expected = [log(formula(*(int(x) for x in row))) for row in zip(STATES, ACTIONS, TIMES, strict=True)]
    np.testing.assert_allclose(policy.log_prob(STATES, ACTIONS, TIMES), expected, rtol=1e-12, atol=1e-12)


def test_softmax_of_an_action_too_unlikely_for_a_float():
    found = soft().log_prob(np.array([2, 2, 0]), np.array([0, 1, 1]), np.zeros(3, int))
    np.testing.assert_allclose(found, [-1400, 0, log_softmax(0, 1)], rtol=1e-14)
    ruled_out = SoftmaxPolicy(lambda s, t: np.array([[0.0, -math.inf]]))
    assert ruled_out.log_prob(np.zeros(1), np.ones(1, int), np.zeros(1, int)).tolist() == [-math.inf]


LISTING = ["tabular", "by-time", "softmax", "deterministic", "uniform", "softened", "mixture"]


@pytest.mark.parametrize("name", LISTING)
def test_probs_list_all_actions(name):
    policy, formula = DISCRETE[name]
    assert isinstance(policy, DiscretePolicy)
    probs = policy.probs(STATES, TIMES)
    expected = [[formula(int(s), a, int(t)) for a in (0, 1)] for s, t in zip(STATES, TIMES, strict=True)]
    np.testing.assert_allclose(probs, expected, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(probs.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("name", ["tabular", "by-time", "softmax", "deterministic", "uniform"])
def test_sample_frequencies(name):
    policy, formula = DISCRETE[name]
    n = 20_000
    rng = np.random.default_rng(2)
    for state, t in ((0, 0), (1, 1), (2, 2)):
        drawn = policy.sample(np.full(n, state), np.full(n, t), rng=rng)
        chance = formula(state, 1, t)
        assert abs(drawn.mean() - chance) <= 5 * math.sqrt(chance * (1 - chance) / n)


def test_three_actions_are_sampled_in_proportion():
    chances = np.array([0.2, 0.0, 0.5, 0.3])
    drawn = TabularPolicy([chances]).sample(np.zeros(30_000, int), np.zeros(30_000, int), rng=np.random.default_rng(0))
    counts = np.bincount(drawn, minlength=4)
    assert counts[1] == 0
    seen, wanted = counts[[0, 2, 3]], 30_000 * chances[[0, 2, 3]]
    assert np.sum((seen - wanted) ** 2 / wanted) < chi2.ppf(1 - 1e-6, 2)


# -- Gaussian --------------------------------------------------------------------------------------------------------

COVARIANCE = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])


def center(s, t):
    return np.stack([s, s**2, t + 0.0 * s], axis=1)


def test_gaussian_against_scipy():
    rng = np.random.default_rng(8)
    states, times, actions = rng.normal(size=50), np.arange(50), rng.normal(size=(50, 3)) * 5
    policy = GaussianPolicy(center, COVARIANCE)
    expected = [
        multivariate_normal(mean, COVARIANCE).logpdf(action)
        for mean, action in zip(center(states, times), actions, strict=True)
    ]
    np.testing.assert_allclose(policy.log_prob(states, actions, times), expected, rtol=1e-10)
    assert policy.max_log_density == pytest.approx(multivariate_normal(np.zeros(3), COVARIANCE).logpdf(np.zeros(3)))


def test_gaussian_in_one_dimension():
    policy = GaussianPolicy(lambda s, t: 2 * s, 0.25)
    states, actions = np.array([0.0, 1.0]), np.array([0.5, 2.0])
    expected = [
        -0.5 * (0.5 / 0.5) ** 2 - math.log(0.5 * math.sqrt(2 * math.pi)),
        -math.log(0.5 * math.sqrt(2 * math.pi)),
    ]
    np.testing.assert_allclose(policy.log_prob(states, actions, np.zeros(2, int)), expected, rtol=1e-12)
    np.testing.assert_allclose(policy.log_prob(states, actions[:, None], np.zeros(2, int)), expected, rtol=1e-12)


def test_gaussian_samples():
    n = 100_000
    policy = GaussianPolicy(lambda s, t: np.tile([1.0, -2.0, 0.0], (len(s), 1)), COVARIANCE)
    drawn = policy.sample(np.zeros(n), np.zeros(n, int), rng=np.random.default_rng(4))
    np.testing.assert_allclose(drawn.mean(axis=0), [1, -2, 0], atol=5 * math.sqrt(2 / n))
    np.testing.assert_allclose(np.cov(drawn.T), COVARIANCE, atol=5 * 2 * math.sqrt(2 / n))  # sd of s_ij ≤ s² √(2/n)


def test_gaussian_mixture_density():
    parts = [GaussianPolicy(lambda s, t: s, 1.0), GaussianPolicy(lambda s, t: s + 1, 4.0)]
    states, actions = np.zeros(3), np.array([0.0, 1.0, -2.0])
    expected = [
        math.log(
            0.3 * math.exp(-(a**2) / 2) / math.sqrt(2 * math.pi)
            + 0.7 * math.exp(-((a - 1) ** 2) / 8) / math.sqrt(8 * math.pi)
        )
        for a in actions
    ]
    found = MixturePolicy(parts, (0.3, 0.7)).log_prob(states, actions, np.zeros(3, int))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# -- refusals --------------------------------------------------------------------------------------------------------

ZERO = np.zeros(2, int)
ASKED = (ZERO, ZERO, ZERO)


def ask(policy):
    return lambda: policy.log_prob(*ASKED)


REFUSED = [
    (lambda: SoftmaxPolicy(last, 0.0), "temperature must be positive; got 0.0"),
    (
        ask(SoftmaxPolicy(lambda s, t: np.zeros(2))),
        r"preferences must return shape \(N, actions\) with N=2; got shape \(2,\)",
    ),
    (
        ask(SoftmaxPolicy(lambda s, t: np.array([[0, 1], [math.nan, 1]]))),
        r"preferences must be numbers, .*; got \[nan  1.\]",
    ),
    (
        ask(SoftmaxPolicy(lambda s, t: np.array([[0, 1], [math.inf, 1]]))),
        r"preferences must be numbers, .*; got \[inf  1.\]",
    ),
    (ask(SoftmaxPolicy(lambda s, t: np.full((2, 2), -math.inf))), "at least one of them above -inf"),
    (ask(SoftmaxPolicy(lambda s, t: [["a", "b"]] * 2)), "preferences must give numbers"),
    (
        ask(DeterministicPolicy(lambda s, t: np.array([0, 2]), 2)),
        r"action must lie between 0 and 1, because the policy has 2 actions; got 2",
    ),
    (ask(DeterministicPolicy(lambda s, t: np.array([0.0, 1.0]), 2)), "one integer per step .*; got float64"),
    (
        ask(DeterministicPolicy(lambda s, t: np.array([0]), 2)),
        r"choose must return one action per state, .*; got shape \(1,\)",
    ),
    (lambda: UniformPolicy(0), "n_actions must be a whole number, at least 1; got 0"),
    (lambda: DeterministicPolicy(last, 1.5), "n_actions must be .*; got 1.5"),
    (lambda: MixturePolicy((UniformPolicy(2),), (0.5, 0.5)), "1 policies and 2 weights"),
    (lambda: MixturePolicy((), ()), "one weight for each policy, .*; got 0 policies and 0 weights"),
    (lambda: MixturePolicy((UniformPolicy(2),), (0.9,)), r"weights must sum to 1; got 0.9"),
    (lambda: MixturePolicy((3,), (1.0,)), "policy must be an object with log_prob.*; got type int"),
    (lambda: softened(UniformPolicy(2), epsilon=1.1, n_actions=2), "epsilon must lie between 0 and 1; got 1.1"),
    (
        lambda: MixturePolicy((lambda s, a, t: s,), (1.0,)).probs(ZERO, ZERO),
        r"must have probs\(states, t\) .*; CallablePolicy has none",
    ),
    (
        lambda: GaussianPolicy(last, [[1.0, 2.0], [0.0, 1.0]]),
        r"covariance must be a symmetric .* matrix; got shape \(2, 2\)",
    ),
    (lambda: GaussianPolicy(last, [[1.0, 2.0], [2.0, 1.0]]), "covariance must be positive definite"),
    (lambda: GaussianPolicy(last, 0.0), "must be positive definite: a policy without noise has no density"),
    (lambda: GaussianPolicy(last, np.ones(2)), r"covariance must be .*; got shape \(1, 2\)"),
    (lambda: GaussianPolicy(last, [[math.nan]]), "covariance"),
    (ask(GaussianPolicy(last, 1.0)), "actions must be floats for a GaussianPolicy; the logs hold int64"),
    (
        lambda: GaussianPolicy(lambda s, t: s, np.eye(2)).log_prob(ZERO, np.ones((2, 2)), ZERO),
        r"mean must return shape \(2, 2\), as the covariance has it; got \(2,\)",
    ),
    (
        lambda: GaussianPolicy(lambda s, t: s, 1.0).log_prob(ZERO, np.ones((2, 2)), ZERO),
        r"actions must have the shape of the policy's mean, \(2, 1\); the logs hold \(2, 2\)",
    ),
    (ask(CallablePolicy(lambda s, a, t: ["a", "b"])), "the policy function must give numbers"),
    (ask(CallablePolicy(lambda s, a, t: np.array([0.5, -1.0]))), "must return probabilities ≥ 0; got -1"),
    (lambda: as_policy({0.5, 0.6}), "policy must be .*; got type set"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refused(call, message):
    with pytest.raises(PolicyError, match=message):
        call()


def test_errors_of_a_row_name_its_step():
    broken = SoftmaxPolicy(lambda s, t: np.where((np.arange(9) == 4)[:, None], math.nan, np.zeros((9, 2))))
    with pytest.raises(
        PolicyError, match=r"preferences must be numbers, .*; got \[nan nan\].*\(at episode 11, step 1\)"
    ):
        tightrope.estimate(tightrope.read(columns()), broken)


def test_all_forms_of_a_table_estimate_alike():
    data = tightrope.read(columns())
    forms = [POLICY, TabularPolicy(POLICY), lambda s, a, t: POLICY[s, a], TabularPolicy(np.stack([POLICY] * 3))]
    found = [tightrope.estimate(data, form, estimator="is") for form in forms]
    np.testing.assert_allclose(found, found[0], rtol=1e-14)


def test_acting_with_given_noise_is_an_inverse_distribution_function():
    states, t = np.zeros(4, int), np.zeros(4, int)
    uniforms = np.array([[0.1], [0.3], [0.5], [0.999]])
    assert TabularPolicy([[0.25, 0.0, 0.25, 0.5]]).act(states, t, uniforms).tolist() == [0, 2, 3, 3]
    policy = GaussianPolicy(lambda s, t: np.ones((len(s), 2)), [[4.0, 2.0], [2.0, 2.0]])  # factor [[2, 0], [1, 1]]
    z = 1.2815515655446004  # the normal's 90 % point
    np.testing.assert_allclose(policy.act(states[:1], t[:1], np.array([[0.9, 0.1]])), [[1 + 2 * z, 1.0]], rtol=1e-12)
    assert policy.noise_width == 2


def test_a_mixture_acts_by_the_part_its_first_uniform_picks():
    ones = DeterministicPolicy(lambda s, t: np.ones(len(s), int), 2)
    mixture = softened(ones, epsilon=0.4, n_actions=2)  # the first uniform below 0.6: action 1; else the second decides
    uniforms = np.array([[0.59, 0.1], [0.61, 0.49], [0.61, 0.51], [0.1, 0.9]])
    assert mixture.noise_width == 2
    assert mixture.act(np.zeros(4, int), np.zeros(4, int), uniforms).tolist() == [1, 0, 1, 1]
    drawn = mixture.sample(np.zeros(20_000, int), np.zeros(20_000, int), rng=np.random.default_rng(0))
    assert abs(drawn.mean() - 0.8) < 0.012  # 4 standard errors


def test_a_policy_with_only_probs_can_act():
    class Theirs:
        def log_prob(self, states, actions, t):
            raise AssertionError("not asked")

        def probs(self, states, t):
            return np.tile([0.5, 0.5], (len(states), 1))

    acting = as_actor(Theirs())
    assert acting.act(np.zeros(2), np.zeros(2, int), np.array([[0.4], [0.6]])).tolist() == [0, 1]


def test_policies_that_cannot_act_say_what_is_missing():
    with pytest.raises(PolicyError, match=r"policy must be the policy itself here, not None"):
        as_actor(None)
    with pytest.raises(
        PolicyError,
        match=r"policy must be able to act, and CallablePolicy only says.*act\(states, t, uniforms\) and noise_width",
    ):
        as_actor(CallablePolicy(lambda s, a, t: np.ones(len(s))))
