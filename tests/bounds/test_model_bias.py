"""Bias bounds for known dynamics: by hand, by enumeration, and never violated."""

from __future__ import annotations

import itertools
from math import exp, log, sqrt

import numpy as np
import pytest

from tests.random_mdps import blurred, random_mdp, random_policy
from tightrope.base.errors import BoundError
from tightrope.base.policy import TabularPolicy
from tightrope.bounds.model_bias.bias import bias_bound, step_cross_entropies, step_kls, total_variation
from tightrope.bounds.model_bias.finite_model import FiniteModel
from tightrope.domains import FiniteMDP

# Two states, one action, no end. State 0 stays with probability 1/2 (the model says 1/4), state 1 for good.
TRUE = FiniteModel(np.array([[[0.5, 0.5, 0.0]], [[0.0, 1.0, 0.0]]]), np.array([1.0, 0.0]))
MODEL = FiniteModel(np.array([[[0.25, 0.75, 0.0]], [[0.0, 1.0, 0.0]]]), np.array([1.0, 0.0]))
ONLY = np.ones((3, 2, 1))
EPSILON = 0.5 * log(4 / 3)  # 1/2 ln(2) + 1/2 ln(2/3)


def test_divergences_by_hand():
    """Step 1 is reached through state 0; step 2 through state 0 once more with probability 1/2."""
    assert step_kls(TRUE, MODEL, ONLY) == pytest.approx([0.0, EPSILON, 1.5 * EPSILON])
    assert step_kls(TRUE, MODEL, ONLY, outcome_rewards=True) == pytest.approx([EPSILON, 1.5 * EPSILON, 1.75 * EPSILON])
    cross = -0.5 * log(0.25) - 0.5 * log(0.75)
    assert step_cross_entropies(TRUE, MODEL, ONLY) == pytest.approx([0.0, cross, 1.5 * cross])


def test_bounds_by_hand():
    kls = step_kls(TRUE, MODEL, ONLY)
    found = {
        form: bias_bound(kls, reward_range=(0, 1), discount=0.5, form=form) for form in ("printed", "tight", "per-step")
    }
    assert all(bound.trivial == 1.75 and bound.divergence == pytest.approx(0.2157615543) for bound in found.values())
    assert found["printed"].uncapped == pytest.approx(3.9414, abs=1e-4)  # 2 √2 · 3 · √0.21576
    assert found["printed"].value == 1.75
    assert found["tight"].value == found["tight"].uncapped == pytest.approx(0.574791, abs=1e-6)  # 1.75 √0.10788
    assert found["per-step"].value == pytest.approx(0.216203, abs=1e-6)  # √0.07192 / 2 + √0.10788 / 4
    # Paid 1 in state 1, the values are 0.4375 and 0.609375, 0.171875 apart.
    rewards = np.array([0.0, 1.0])[:, None, None] * np.ones((2, 1, 3))
    values = [
        FiniteMDP(one.transition_probs, rewards, one.start_probs, 3, 0.5).value(TabularPolicy(np.ones((2, 1))))
        for one in (TRUE, MODEL)
    ]
    assert values == pytest.approx([0.4375, 0.609375])


def test_total_variation_takes_the_better_inequality():
    assert total_variation(0.5) == pytest.approx(0.5)  # Pinsker
    assert total_variation(4.0) == pytest.approx(sqrt(1 - exp(-4)))  # Bretagnolle and Huber; Pinsker gives 1.41
    assert total_variation([0.0, np.inf]) == pytest.approx([0.0, 1.0])
    rng = np.random.default_rng(3)
    for _ in range(200):
        p, q = rng.dirichlet(np.full(4, 0.4), size=2)
        assert 0.5 * np.abs(p - q).sum() <= total_variation(float((p * np.log(p / q)).sum())) + 1e-12


def test_ranges():
    kls = [0.1, 0.2]
    # Rewards in [1, 2] of episodes that may end: the absorbing 0 widens the range to [0, 2].
    assert bias_bound(kls, reward_range=(1, 2)).trivial == 4.0
    assert bias_bound(kls, reward_range=(1, 2), ends_early=False).trivial == 2.0
    assert bias_bound([0.1], reward_range=(1, 2)).trivial == 1.0  # a single step is always paid
    assert bias_bound(kls, reward_range=(1, 2), return_range=(0, 1), form="tight").value == pytest.approx(sqrt(0.1))
    printed = bias_bound(kls, reward_range=(-3, 1), form="printed")
    assert printed.uncapped == pytest.approx(2 * sqrt(2) * 2 * 3 * sqrt(0.2))


def _trajectories(mdp, policy):
    """Every trajectory as (states visited, actions), the end being state S: L states and L actions at most."""
    n_states, n_actions, _ = mdp.transition_probs.shape
    for states in itertools.product(range(n_states + 1), repeat=mdp.horizon):
        if states[0] == n_states or any(a == n_states and b != n_states for a, b in itertools.pairwise(states)):
            continue
        alive = sum(state < n_states for state in states)
        for actions in itertools.product(range(n_actions), repeat=alive):
            yield states, actions


def _probability(dynamics, policy, states, actions):
    p = dynamics.start_probs[states[0]]
    for t, action in enumerate(actions):
        p *= policy[t, states[t], action]
        if t + 1 < len(states):
            p *= dynamics.transition_probs[states[t], action, states[t + 1]]
    return p


def test_the_chain_rule_against_every_trajectory():
    """Σ_h p_e log(p_e / p̂_e), directly and importance-sampled with the ratios of whole trajectories."""
    rng = np.random.default_rng(8)
    for _ in range(5):
        mdp = random_mdp(rng, n_states=2, horizon=4)
        model = blurred(mdp, rng, 0.7)
        candidate, behavior = (random_policy(rng, 4, 2, 2) for _ in range(2))
        direct = sampled = 0.0
        for states, actions in _trajectories(mdp, candidate):
            p = _probability(mdp, candidate, states, actions)
            b = _probability(mdp, behavior, states, actions)
            ratio = np.prod([candidate[t, states[t], a] / behavior[t, states[t], a] for t, a in enumerate(actions)])
            term = log(p / _probability(model, candidate, states, actions))
            direct += p * term
            sampled += b * ratio * term
        kl = step_kls(mdp, model, candidate, behavior=behavior)[-1]
        assert kl == pytest.approx(direct, abs=1e-12)
        assert kl == pytest.approx(sampled, abs=1e-12)


def _case(rng):
    """A process, a model of it, a candidate; the rewards' sign, ends, discount and the model's quality vary."""
    low, high = [(0.0, 1.0), (-1.0, 0.0), (-1.0, 1.0), (0.5, 2.0)][rng.integers(4)]
    ends, outcome = bool(rng.integers(2)), bool(rng.integers(2))
    n_states, n_actions, horizon = int(rng.integers(2, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 13))
    mdp = random_mdp(
        rng,
        n_states=n_states,
        n_actions=n_actions,
        horizon=horizon,
        discount=float(rng.choice([1.0, 0.95, 0.5])),
        ends=ends,
        outcome_rewards=outcome,
        low=low,
        high=high,
    )
    model = blurred(mdp, rng, float(rng.choice([0.01, 0.1, 0.5, 1.0])))
    policy = random_policy(rng, horizon, n_states, n_actions)
    gap = abs(mdp.value(TabularPolicy(policy)) - model.value(TabularPolicy(policy)))
    return mdp, model, policy, gap, (low, high), ends, outcome


def test_never_violated_and_ordered_on_a_thousand_random_processes():
    rng = np.random.default_rng(2017)
    useful = dict.fromkeys(("printed", "tight", "per-step"), 0)
    for _ in range(1000):
        mdp, model, policy, gap, reward_range, ends, outcome = _case(rng)
        kls = step_kls(mdp, model, policy, outcome_rewards=outcome)
        assert (np.diff(kls) >= 0).all()
        assert (step_cross_entropies(mdp, model, policy, outcome_rewards=outcome) >= kls - 1e-12).all()
        settings = {"reward_range": reward_range, "discount": mdp.discount, "ends_early": ends}
        found = {form: bias_bound(kls, form=form, **settings) for form in useful}
        for form, bound in found.items():
            assert gap <= bound.value + 1e-12, form
            assert bound.value <= bound.trivial
            useful[form] += bound.value < 0.5 * bound.trivial
        assert found["per-step"].uncapped <= found["tight"].uncapped + 1e-12
        assert 2 * found["tight"].uncapped <= found["printed"].uncapped + 1e-12
        if reward_range[0] >= 0:
            assert 4 * found["tight"].uncapped <= found["printed"].uncapped + 1e-12
    assert 0 < useful["printed"] < useful["tight"] < useful["per-step"]


def test_a_reward_paid_on_arrival_needs_its_own_transition():
    """One step from state 0, 1 paid for staying: values 1/2 and 1/4; the L − 1 = 0 transitions see nothing."""
    first = ONLY[:1]
    assert bias_bound(step_kls(TRUE, MODEL, first), reward_range=(0, 1)).value == 0.0
    counted = bias_bound(step_kls(TRUE, MODEL, first, outcome_rewards=True), reward_range=(0, 1))
    assert 0.25 <= counted.value == pytest.approx(sqrt(EPSILON / 2))


def test_a_model_that_rules_out_what_happens_gives_the_trivial_range():
    model = FiniteModel(np.array([[[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]]), np.array([1.0, 0.0]))
    kls = step_kls(TRUE, model, ONLY)
    assert kls.tolist() == [0.0, np.inf, np.inf]
    assert step_cross_entropies(TRUE, model, ONLY).tolist() == [0.0, np.inf, np.inf]
    for form in ("printed", "tight"):
        assert bias_bound(kls, reward_range=(0, 1), form=form).value == 3.0
    assert bias_bound(kls, reward_range=(0, 1), form="printed").uncapped == np.inf
    assert bias_bound(kls, reward_range=(0, 1)).value == 2.0  # the first step is still known
    # An impossible transition of a state that is never reached costs nothing.
    unreached = FiniteModel(np.array([[[0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0]]]), np.array([1.0, 0.0]))
    staying = FiniteModel(np.array([[[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]]), np.array([1.0, 0.0]))
    assert step_kls(staying, unreached, ONLY) == pytest.approx([0.0, log(2), 2 * log(2)])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bias_bound([0.1], reward_range=(0, 1), form="loose"), "form must be .*; got 'loose'"),
        (lambda: bias_bound([0.1, -0.2], reward_range=(0, 1)), "step_divergences is -0.2 at step 1; a divergence"),
        (lambda: bias_bound([np.nan], reward_range=(0, 1)), "step_divergences is nan at step 0"),
        (lambda: bias_bound([], reward_range=(0, 1)), r"step_divergences has shape \(0,\); one number per step"),
        (lambda: bias_bound([0.1], reward_range=(0, np.inf)), r"reward_range is \(0, inf\); .* two finite ends"),
        (lambda: bias_bound([0.1], reward_range=(0, 1), return_range=(1, 0)), r"return_range is \(1, 0\)"),
        (lambda: step_kls(TRUE, MODEL, np.ones((2, 1))), r"policy has shape \(2, 1\); a table \(horizon, 2, 1\)"),
        (lambda: step_kls(TRUE, MODEL, ONLY, behavior=ONLY[:2]), r"behavior has shape \(2, 2, 1\)"),
        (lambda: step_kls(TRUE, FiniteModel(TRUE.transition_probs, np.ones(1)), ONLY), "start_probs of the model has"),
        (
            lambda: step_kls(TRUE, MODEL, ONLY, behavior=np.array([[[1], [1]], [[1], [0]], [[1], [1]]])),
            "may take action 0 in state 1 at step 1 and the behaviour policy never does",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(BoundError, match=message):
        call()
