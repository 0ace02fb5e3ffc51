"""A model's error on logs, and the finite-sample bias bound: by hand, by loops, and in simulation."""

from __future__ import annotations

from dataclasses import replace
from math import log, prod, sqrt

import numpy as np
import pytest

from tests.random_mdps import blurred, random_mdp, random_policy
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import BoundError, DataError
from tightrope.base.policy import TabularPolicy
from tightrope.base.ratios import ratios
from tightrope.bounds import Betting
from tightrope.bounds.model_bias.bias import bias_bound, step_cross_entropies, step_kls
from tightrope.bounds.model_bias.error import Likelihoods, finite_sample_bias_bound, model_error, tabular_likelihoods
from tightrope.bounds.model_bias.finite_model import Counts, FiniteModel, count, next_states, smooth, smoothed_model
from tightrope.domains import FiniteMDP


def _logs(**changes):
    """Two episodes of horizon 3, two states and two actions: one of full length, one ended after a step."""
    fields = {
        "offsets": [0, 3, 4],
        "rewards": [1.0, 0.0, 1.0, 0.5],
        "terminated": [False, True],
        "horizon": 3,
        "behavior_log_probs": np.log([0.5, 0.5, 0.5, 0.25]),
        "eval_log_probs": np.log([0.75, 0.25, 0.5, 0.5]),
        "states": [0, 1, 1, 0],
        "actions": [0, 1, 0, 1],
        "final_states": [0, -1],
        "reward_range": (0.0, 1.0),
    }
    return TrajectoryDataset(**(fields | changes))


MODEL = FiniteModel(
    np.array([[[0.2, 0.7, 0.1], [0.3, 0.3, 0.4]], [[0.6, 0.3, 0.1], [0.25, 0.5, 0.25]]]), np.array([0.8, 0.2])
)


def _errors(data, model, **settings):
    return model_error(ratios(data), tabular_likelihoods(data, model), **settings)


def test_errors_by_hand():
    """Ratios 1.5, 0.75, 0.75 and 2, 2, 2. The first episode goes 0 → 1 → 1 → 0, the second 0 → end."""
    data = _logs()
    plain = _errors(data, MODEL)
    start, first, second = -log(0.8), (1.5 * -log(0.7) + 2 * -log(0.4)) / 2, 0.75 * -log(0.5) / 2
    assert plain.kind == "bound"
    assert plain.steps == pytest.approx([start, start + first, start + first + second])
    assert plain.total == plain.steps[-1]
    # The start is the same in both; the episodes' totals differ by 1.5 ln(1/0.7) + 0.75 ln 2 − 2 ln(1/0.4).
    apart = 1.5 * -log(0.7) + 0.75 * log(2) - 2 * -log(0.4)
    assert plain.standard_errors == pytest.approx([0.0, abs(apart - 0.75 * log(2)) / 2, abs(apart) / 2])
    weighted = _errors(data, MODEL, self_normalised=True)
    one, two = first * 2 / 3.5, second * 2 / 2.75  # the ratios of both episodes in the denominator
    assert weighted.steps == pytest.approx([start, start + one, start + one + two])
    outcome = _errors(data, MODEL, outcome_rewards=True)
    third = 0.75 * -log(0.6) / 2
    assert outcome.steps == pytest.approx([start + first, start + first + second, start + first + second + third])


def test_errors_against_a_loop():
    rng = np.random.default_rng(4)
    mdp = random_mdp(rng, horizon=5)
    model = blurred(mdp, rng, 0.5)
    candidate, behavior = (TabularPolicy(random_policy(rng, 5, 3, 2)) for _ in range(2))
    data = mdp.simulate(behavior, 40, rng=rng, candidate=candidate)
    totals = []
    for i in range(40):
        first, stop = data.offsets[i], data.offsets[i + 1]
        total = -log(model.start_probs[data.states[first]])
        for step in range(first, min(stop, first + 4)):
            after = data.states[step + 1] if step + 1 < stop else 3
            ratio = prod(np.exp(data.eval_log_probs[k] - data.behavior_log_probs[k]) for k in range(first, step + 1))
            total -= ratio * log(model.transition_probs[data.states[step], data.actions[step], after])
        totals.append(total)
    found = _errors(data, model)
    assert found.total == pytest.approx(np.mean(totals))
    assert found.standard_error == pytest.approx(np.std(totals, ddof=1) / sqrt(40))


@pytest.mark.parametrize("self_normalised", [False, True])
@pytest.mark.parametrize("outcome_rewards", [False, True])
def test_errors_converge_to_the_population_with_honest_standard_errors(self_normalised, outcome_rewards):
    rng = np.random.default_rng(11)
    mdp = random_mdp(rng, horizon=4)
    model = blurred(mdp, rng, 0.6)
    candidate, behavior = (random_policy(rng, 4, 3, 2) for _ in range(2))
    truth = step_cross_entropies(mdp, model, candidate, behavior=behavior, outcome_rewards=outcome_rewards)
    logs = mdp.simulate(TabularPolicy(behavior), 60_000, rng=rng, candidate=TabularPolicy(candidate))
    settings = {"self_normalised": self_normalised, "outcome_rewards": outcome_rewards}
    whole = _errors(logs, model, **settings)
    assert (np.abs(whole.steps - truth) < 4 * whole.standard_errors).all()
    assert (whole.standard_errors < 0.02 * truth).all()
    parts = [_errors(logs.take(np.arange(i, i + 300)), model, **settings) for i in range(0, 60_000, 300)]
    scores = np.array([(part.steps - truth) / part.standard_errors for part in parts])
    assert (np.abs(scores.std(axis=0) - 1) < 0.2).all()  # 200 scores: 1 ± 0.05


def test_estimates_give_a_bound_above_the_divergence():
    rng = np.random.default_rng(5)
    mdp = random_mdp(rng, horizon=4)
    model = blurred(mdp, rng, 0.6)
    policy = random_policy(rng, 4, 3, 2)
    logs = mdp.simulate(TabularPolicy(policy), 2000, rng=rng, candidate=TabularPolicy(policy))
    error = _errors(logs, model)
    kls = step_kls(mdp, model, policy)
    assert (error.steps > kls).all()
    for form in ("per-step", "tight"):
        estimated = error.bias_bound(reward_range=(-1, 1), form=form)
        assert bias_bound(kls, reward_range=(-1, 1), form=form).value < estimated.value < estimated.trivial
        assert estimated.confidence is None


def test_a_transition_the_model_rules_out():
    """Infinite where the candidate may do it; nothing where the candidate would not have acted so."""
    broken = FiniteModel(np.array([[[0.3, 0.7, 0.0], [1.0, 0.0, 0.0]], MODEL.transition_probs[1]]), MODEL.start_probs)
    found = _errors(_logs(), broken)
    assert found.steps[1:].tolist() == [np.inf, np.inf]
    assert np.isinf(found.standard_errors[1:]).all()
    assert found.bias_bound(reward_range=(0, 1), form="tight").value == 3.0
    never = _logs(eval_log_probs=np.log([0.75, 0.25, 0.5, 1e-320]) * [1, 1, 1, np.inf])
    assert _errors(never, broken).total == pytest.approx(-log(0.8) + 1.5 * -log(0.7) / 2 + 0.75 * log(2) / 2)


def test_densities_are_a_diagnostic():
    """Negative errors are fine, differences of models are paired, and no bound follows."""
    data = _logs()
    rng = np.random.default_rng(0)
    one, two = (Likelihoods(rng.normal(3, 1, 4), rng.normal(3, 1, 2), discrete=False) for _ in range(2))
    first, second = (model_error(ratios(data), each) for each in (one, two))
    assert first.kind == "diagnostic"
    assert first.total < 0
    paired = model_error(ratios(data), Likelihoods(one.steps - two.steps, one.starts - two.starts, discrete=False))
    assert paired.total == pytest.approx(first.total - second.total)
    with pytest.raises(BoundError, match="compares models on the same episodes and bounds nothing"):
        first.bias_bound(reward_range=(0, 1))
    with pytest.raises(BoundError, match="log-densities bound nothing"):
        finite_sample_bias_bound(ratios(data), one, max_ratio=2.0)


def test_held_out_error_exceeds_training_error():
    rng = np.random.default_rng(6)
    mdp = random_mdp(rng, n_states=6, horizon=6)
    policy = TabularPolicy(random_policy(rng, 6, 6, 2))
    logs = mdp.simulate(policy, 120, rng=rng, candidate=policy)
    training, held_out = logs.take(range(20)), logs.take(range(20, 120))
    model = smoothed_model(count(training, 6, 2), pseudo_count=0.1)
    gap, error = _errors(held_out, model).gap(_errors(training, model))
    assert gap > 2 * error > 0


# -- finite samples --------------------------------------------------------------------------------------------------


def _coin(horizon, p=0.5, q=0.02):
    """One pair of states as a coin thrown at each step; the model thinks that heads come with probability q."""
    heads = np.array([0.0, 1.0])[:, None, None] * np.ones((2, 1, 3))
    true, model = (FiniteMDP(np.tile([1 - x, x, 0.0], (2, 1, 1)), heads, np.array([1 - x, x]), horizon) for x in (p, q))
    return true, FiniteModel(model.transition_probs, model.start_probs)


def test_finite_sample_step_errs_rarely_and_the_printed_range_half_the_time():
    """Upper bounds on the cross-entropy of 12 throws from m = 40 episodes, 500 times, α = 5 %."""
    true, model = _coin(12)
    policy = np.ones((12, 2, 1))
    truth = step_cross_entropies(true, model, policy)[-1]
    only = TabularPolicy(policy[0])
    logs = true.simulate(only, 500 * 40, rng=np.random.default_rng(1), candidate=only)
    allowed = np.tile([True, True, False], (2, 1, 1))
    failures = dict.fromkeys(("printed range", "hoeffding", "betting"), 0)
    for i in range(500):
        part = logs.take(np.arange(40 * i, 40 * i + 40))
        said = tabular_likelihoods(part, model, possible=allowed, training_ids=())
        mean = model_error(ratios(part), said).total
        failures["printed range"] += mean + 1.0 * sqrt(log(1 / 0.05) / (2 * 40)) < truth
        for name, method in (("hoeffding", None), ("betting", Betting())):
            found = finite_sample_bias_bound(ratios(part), said, max_ratio=1.0, form="tight", method=method)
            failures[name] += found.divergence < truth
    assert failures["printed range"] > 200
    assert failures["hoeffding"] <= 25
    assert failures["betting"] <= 25


def test_finite_sample_bound_by_hand():
    """One step to go: X = −ln d̂_0 − ρ_0 ln P̂, range −ln 0.2 − ρ̄ ln 0.1 and Hoeffding's margin at α / L per step."""
    data = replace(_logs(), horizon=3)
    said = tabular_likelihoods(data, MODEL, training_ids=())
    assert (said.smallest_prob, said.smallest_start_prob) == (0.1, 0.2)
    tight = finite_sample_bias_bound(ratios(data), said, max_ratio=2.0, confidence=0.5, form="tight")
    with pytest.raises(BoundError, match="must get independent episodes, one a cluster; got 1 clusters, 2 episodes"):
        finite_sample_bias_bound(ratios(replace(data, clusters=np.zeros(2, int))), said, max_ratio=2.0)
    mean = model_error(ratios(data), said).total
    margin = (-log(0.2) - 2 * 2.0 * log(0.1)) * sqrt(log(2) / 4)
    assert tight.divergence == pytest.approx(mean + margin)
    assert (tight.confidence, tight.trivial, tight.form) == (0.5, 3.0, "tight")
    steps = finite_sample_bias_bound(ratios(data), said, max_ratio=2.0, confidence=0.5)
    means = model_error(ratios(data), said).steps
    ceilings = -log(0.2) - 2.0 * np.arange(3) * log(0.1)
    uppers = np.minimum(means + ceilings * sqrt(log(6) / 4), ceilings)
    assert steps.value == pytest.approx(bias_bound(uppers, reward_range=(0, 1)).value)


def test_finite_sample_bound_holds_off_policy():
    """Never below the true gap, and useful with many episodes of a nearly deterministic process well modelled."""
    rng = np.random.default_rng(9)
    sure = np.zeros((2, 2, 3))
    sure[0, :, 1] = sure[1, :, 0] = 0.999
    sure[..., 2] = 0.001
    true = FiniteMDP(sure, np.array([0.0, 1.0])[:, None, None] * np.ones((2, 2, 3)), np.array([1.0, 0.0]), 3)
    behavior, candidate = TabularPolicy([[0.5, 0.5]] * 2), TabularPolicy([[0.6, 0.4]] * 2)
    logs = true.simulate(behavior, 20_000, rng=rng, candidate=candidate)
    allowed = true.transition_probs > 0
    training, held_out = logs.take(range(2000)), logs.take(range(2000, 20_000))
    starts = np.array([True, False])
    model = smoothed_model(count(training, 2, 2), possible=allowed, possible_starts=starts)
    said = tabular_likelihoods(
        held_out, model, possible=allowed, possible_starts=starts, training_ids=training.episode_ids
    )
    found = finite_sample_bias_bound(ratios(held_out), said, max_ratio=1.2**3)
    value = FiniteMDP(model.transition_probs, true.rewards, model.start_probs, 3).value(candidate)
    assert found.trivial == 3.0  # the declared reward range, not the return range: the model may leave that
    assert abs(value - true.value(candidate)) <= found.value < 1.0


def _said(**changes):
    return replace(tabular_likelihoods(_logs(), MODEL, training_ids=()), **changes)


@pytest.mark.parametrize(
    ("logs", "said", "options", "message"),
    [
        ({}, {}, {"max_ratio": None}, "needs max_ratio, which no cumulative importance ratio can exceed, declared"),
        ({}, {}, {"max_ratio": -1.0}, "max_ratio is -1.0; it must be positive"),
        ({}, {}, {"max_ratio": 1.9}, "max_ratio is 1.9, but the logs hold a cumulative importance ratio of 2:"),
        ({}, {}, {"confidence": 1.0}, "confidence is 1.0; it must lie between 0 and 1"),
        ({}, {}, {"form": "loose"}, "form must be .*; got 'loose'"),
        ({}, {"smallest_prob": 0.0}, {}, "smallest_prob is 0: .* is infinite and has no range; smooth the model"),
        ({}, {"smallest_start_prob": 0.0}, {}, "smallest_start_prob is 0"),
        ({}, {"smallest_prob": 0.45}, {}, "smallest_prob is 0.45, but the model gives a logged outcome 0.4"),
        ({}, {"training_ids": None}, {}, "say which episodes the model was fitted on"),
        ({}, {"training_ids": [1, 7]}, {}, r"fitted on 1 of these 2 episodes \(1 first\); .* fit on one part"),
        ({"reward_range": None}, {}, {}, "needs a declared reward_range with two finite ends"),
        ({"reward_range": (0, None)}, {}, {}, "needs a declared reward_range with two finite ends"),
        ({"horizon_declared": False}, {}, {}, "needs a declared horizon"),
        ({"n_dropped": 3}, {}, {}, "episodes were dropped"),
    ],
)
def test_finite_sample_refusals(logs, said, options, message):
    with pytest.raises(BoundError, match=message):
        finite_sample_bias_bound(ratios(_logs(**logs)), _said(**said), **({"max_ratio": 2.0} | options))


@pytest.mark.parametrize(
    ("said", "options", "message"),
    [
        ({"steps": np.zeros(3)}, {}, r"log-likelihoods of steps have shape \(3,\); \(4,\) expected"),
        ({"starts": np.zeros(3)}, {}, r"log-likelihoods of starts have shape \(3,\); \(2,\) expected"),
        ({"steps": np.array([-1.0, np.nan, -1.0, -1.0])}, {}, "log-likelihood is nan at episode 0, step 1; it must be"),
        ({"steps": np.array([-1.0, -1.0, np.nan, -1.0])}, {"outcome_rewards": True}, "must hold the last one"),
        ({"starts": np.array([-1.0, np.nan])}, {}, "log-likelihood of a start is NaN or inf"),
        ({"steps": np.array([0.1, -1.0, -1.0, -1.0])}, {}, "a probability above 1; densities are discrete=False"),
    ],
)
def test_likelihood_refusals(said, options, message):
    with pytest.raises(DataError, match=message):
        model_error(ratios(_logs()), _said(**said), **options)


def test_ratios_too_large_for_a_plain_mean():
    data = _logs(behavior_log_probs=np.array([-700.0, 0.0, 0.0, -1.0]))
    with pytest.raises(BoundError, match="self_normalised=True"):
        model_error(ratios(data), _said())
    assert model_error(ratios(data), _said(), self_normalised=True).total == pytest.approx(
        -log(0.8) - log(0.7) + log(2)
    )


# -- counts and smoothing --------------------------------------------------------------------------------------------


def test_counts_by_hand():
    counts = count(_logs(), 2, 2)
    assert np.argwhere(counts.transitions).tolist() == [[0, 0, 1], [0, 1, 2], [1, 0, 0], [1, 1, 1]]
    assert counts.transitions.sum() == 4
    assert counts.starts.tolist() == [2, 0]
    assert counts.visits.tolist() == [[1, 1], [1, 1]]
    assert counts.reward_sums.tolist() == [[1.0, 0.5], [1.0, 0.0]]


def test_what_follows_the_horizon_is_known_for_all_or_for_none():
    """Two episodes reach the horizon of 2, one of them ending there; to count that end alone would be biased."""
    fields = {
        "offsets": [0, 2, 4, 5],
        "rewards": np.zeros(5),
        "terminated": [False, True, True],
        "horizon": 2,
        "states": [0, 1, 0, 1, 1],
        "actions": np.zeros(5, int),
    }
    assert next_states(TrajectoryDataset(**fields), 2).tolist() == [1, -1, 1, -1, 2]
    assert next_states(TrajectoryDataset(**fields, final_states=[0, -1, -1]), 2).tolist() == [1, 0, 1, 2, 2]
    assert next_states(TrajectoryDataset(**fields, final_states=[-1, -1, -1]), 2).tolist() == [1, -1, 1, -1, 2]
    ended = TrajectoryDataset(**(fields | {"terminated": [True, True, True]}))
    assert next_states(ended, 2).tolist() == [1, -1, 1, -1, 2]
    with pytest.raises(DataError, match=r"the final state 2 after episode 0, step 1 is not among 0..1"):
        next_states(TrajectoryDataset(**fields, final_states=[2, -1, -1]), 2)


def test_smoothing_by_hand():
    assert smooth([3, 0, 1]) == pytest.approx(np.array([4, 1, 2]) / 7)
    assert smooth([3, 0, 1], pseudo_count=0.5) == pytest.approx(np.array([3.5, 0.5, 1.5]) / 5.5)
    narrow = smooth([[3, 0, 0], [0, 0, 0]], possible=np.array([True, True, False]))
    assert narrow.tolist() == [[0.8, 0.2, 0], [0.5, 0.5, 0]]
    counts = Counts(np.zeros((2, 1, 3)), np.array([1.0, 0.0]), np.zeros((2, 1)), np.zeros((2, 1)))
    model = smoothed_model(counts, possible_starts=np.array([True, False]))
    assert model.start_probs.tolist() == [1.0, 0.0]
    assert model.transition_probs == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: smooth([1, 0], pseudo_count=0), "pseudo_count is 0; it must be above 0"),
        (lambda: smooth([1, 2], possible=np.array([True, False])), r"hold outcome \(1,\), which is not among those"),
        (lambda: smooth([[0, 0]], possible=np.array([False, False])), r"no outcome is declared possible in row \(0,\)"),
        (lambda: count(_logs(), 1, 2), "state 1 at episode 0, step 1 is not among 0..0"),
        (lambda: count(_logs(), 2, 1), "action 1 at episode 0, step 1 is not among 0..0"),
        (
            lambda: count(_logs(states=[0.0, 1.0, 1.0, 0.0]), 2, 2),
            "one integer state per step; the logs hold float64",
        ),
        (
            lambda: count(_logs(actions=None), 2, 2),
            "one integer action per step; the logs hold none",
        ),
    ],
)
def test_count_refusals(call, message):
    with pytest.raises(DataError, match=message):
        call()
