"""Exact values against a plain recursion; simulation against exact values."""

import numpy as np
import pytest

from tightrope.base.errors import TightropeError
from tightrope.domains import SMALL, FiniteMDP, domain, small
from tightrope.studies.counts import return_distribution


def slow_value(mdp, table, state, t):
    """Σ_a π(a|s) Σ_s' P(s'|s,a) (r + γ v(s')), by plain recursion."""
    n_states = len(mdp.start_probs)
    if t == mdp.horizon or state == n_states:
        return 0.0
    return sum(
        table[state, a]
        * mdp.transition_probs[state, a, s]
        * (mdp.rewards[state, a, s] + mdp.discount * slow_value(mdp, table, s, t + 1))
        for a in range(table.shape[1])
        for s in range(n_states + 1)
        if mdp.transition_probs[state, a, s] > 0
    )


def test_value_by_hand():
    """Stay (reward 1) with probability 1/2 or end: 1 + γ/2 + γ²/4 over three steps, γ = 0.9: 1.6525."""
    mdp = FiniteMDP(np.array([[[0.5, 0.5]]]), np.ones((1, 1, 2)), np.ones(1), horizon=3, discount=0.9)
    assert mdp.value(small("clinic").candidate.__class__([[1.0]])) == pytest.approx(1.6525, abs=1e-15)
    assert mdp.return_range == (1.0, pytest.approx(2.71))
    assert mdp.reward_range == (0.0, 1.0)


@pytest.mark.parametrize("name", ["bonus", "decline", "clinic"])
def test_values_agree_with_recursion(name):
    problem = small(name)
    starts = enumerate(problem.mdp.start_probs)
    slow = sum(p * slow_value(problem.mdp, problem.candidate.table, s, 0) for s, p in starts if p > 0)
    assert problem.true_value == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("name", list(SMALL))
def test_simulation_agrees_with_the_value_and_the_ranges(name):
    problem = small(name)
    data = problem.mdp.simulate(problem.behavior, 40_000, rng=np.random.default_rng(1), candidate=problem.candidate)
    error = data.returns.std() / np.sqrt(data.n_trajectories)
    assert data.returns.mean() == pytest.approx(problem.mdp.value(problem.behavior), abs=4 * error)
    low, high = problem.mdp.return_range
    assert low - 1e-9 <= data.returns.min() <= data.returns.max() <= high + 1e-9
    ratio = np.exp(data.eval_log_probs - data.behavior_log_probs)
    products = np.multiply.reduceat(ratio, data.offsets[:-1])
    assert products.max() <= problem.max_ratio * (1 + 1e-9)
    assert products.mean() == pytest.approx(1, abs=4 * products.std() / 200)


@pytest.mark.parametrize("name", ["bonus", "clinic", "model-win", "graph"])
def test_the_spread_agrees_with_all_returns(name):
    """Every return and its probability, enumerated; discounted ones too."""
    problem = domain(name)
    values, probs = return_distribution(problem)
    variance = probs @ values**2 - (probs @ values) ** 2
    assert problem.mdp.spread(problem.candidate) == pytest.approx(np.sqrt(variance), abs=1e-6)


def test_the_spread_by_hand():
    """1, then 1 more with probability 1/2: a variance of 1/4, discounted by γ²."""
    mdp = FiniteMDP(np.array([[[0.5, 0.5]]]), np.ones((1, 1, 2)), np.ones(1), horizon=2, discount=0.8)
    assert mdp.spread(small("clinic").candidate.__class__([[1.0]])) == pytest.approx(0.4, abs=1e-12)


def test_one_seed_gives_the_same_logs():
    problem = small("walker")
    first, second = (problem.mdp.simulate(problem.behavior, 50, rng=np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.rewards, second.rewards)
    np.testing.assert_array_equal(first.states, second.states)


def test_unknown_problems_and_wrong_shapes_are_refused():
    with pytest.raises(TightropeError, match='problem must be "walker", "bonus"'):
        small("magic")
    with pytest.raises(TightropeError, match=r"\(S, A, S\+1\)"):
        FiniteMDP(np.ones((2, 1, 2)) / 2, np.ones((2, 1, 2)), np.ones(2) / 2, horizon=1)
