"""Double reinforcement learning: its variance with true nuisances, and what may be wrong without harm."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tests.laws import laws
from tests.laws.laws import same
from tests.laws.test_models import (
    DATA,
    EPISODES,
    HORIZON,
    POLICY,
    REPEATS,
    STATES,
    TABLE,
    distorted,
    on,
    policy_of,
    true_values,
    wrong_values,
)
from tests.model_oracle import truth, values
from tests.oracle import END, Mdp, mdps
from tightrope.base.errors import DataError, NoOverlapError, TightropeError
from tightrope.base.problem import Problem
from tightrope.behaviors import TabularBehavior
from tightrope.domains import small
from tightrope.estimators import DR, DRL, MB, MIS
from tightrope.estimators.mis import Places
from tightrope.models import GivenValues, TabularModel

ENUMERATED = pytest.mark.parametrize("mdp", mdps(), ids=lambda mdp: mdp.name.replace(" ", "-"))


def visited(mdp, policy):
    """The chance of each state at each time, by recursion."""
    chances = [dict(mdp.start)]
    for t in range(mdp.horizon - 1):
        following = defaultdict(float)
        for state, chance in chances[-1].items():
            for action, p in enumerate(policy(state, t)):
                for q, after, _ in mdp.outcomes[state, action]:
                    if after is not END:
                        following[after] += chance * p * q
        chances.append(following)
    return chances


def true_visits(mdp):
    """w_t(s), (times, states); 0 where the logs never are, since nobody will ask."""
    table = np.zeros((mdp.horizon, 2))
    for t, (over, under) in enumerate(zip(visited(mdp, mdp.candidate), visited(mdp, mdp.behavior), strict=True)):
        for state, chance in under.items():
            table[t, state] = over.get(state, 0.0) / chance
    return table


def wrong_visits(mdp):
    return np.random.default_rng(4).uniform(0.0, 3.0, (mdp.horizon, 2))


def efficient_variance(mdp):
    """Var v_0(S_0) + Σ_t γ^{2t} E_b[μ_t² Var(r_t + γ v_{t+1} | s, a)]: the bound of Kallus and Uehara (2020)."""
    _, _, v = values(truth(mdp), mdp.candidate, mdp.horizon, mdp.discount)
    value = mdp.value(mdp.candidate)
    total = sum(p * (v(s, 0) - value) ** 2 for s, p in mdp.start.items())
    ratios = true_visits(mdp)
    for t, chances in enumerate(visited(mdp, mdp.behavior)):
        for state, chance in chances.items():
            over, under = mdp.candidate(state, t), mdp.behavior(state, t)
            for action in range(2):
                later = [(p, r + mdp.discount * v(after, t + 1)) for p, after, r in mdp.outcomes[state, action]]
                mean = sum(p * x for p, x in later)
                noise = sum(p * (x - mean) ** 2 for p, x in later)
                ratio = ratios[t, state] * over[action] / under[action]
                total += mdp.discount ** (2 * t) * chance * under[action] * ratio**2 * noise
    return total


def variance(statistic, probs):
    """Of one episode's value, each weighed by its probability: exact."""
    x = statistic(np.eye(len(probs)))
    return probs @ (x - probs @ x) ** 2


@ENUMERATED
def test_with_true_model_and_visits_the_variance_is_the_efficient_one(mdp):
    data, probs = laws.enumerated(mdp)
    problem = Problem(data, policy_of(mdp))
    statistic = DRL(true_values(mdp), visit_ratios=true_visits(mdp))(problem)
    same(statistic(probs), mdp.value(mdp.candidate))
    same(variance(statistic, probs), efficient_variance(mdp), 1e-10)
    # The products of all ratios cost variance, even with the true model; a wrong model costs more.
    assert variance(DR(true_values(mdp))(problem), probs) > 1.01 * efficient_variance(mdp)
    wrong = DRL(wrong_values(mdp), visit_ratios=true_visits(mdp))(problem)
    assert variance(wrong, probs) > 1.01 * efficient_variance(mdp)


@ENUMERATED
def test_enumeration_with_a_wrong_model(mdp):
    laws.law_enumeration(on(DRL(wrong_values(mdp), visit_ratios=true_visits(mdp)), policy_of(mdp)), mdp)


@ENUMERATED
def test_enumeration_with_wrong_visits_and_ratios(mdp):
    def make(model):
        estimator = DRL(model, visit_ratios=wrong_visits(mdp))
        return lambda problem: estimator(Problem(distorted(problem.dataset), policy_of(mdp)))

    laws.law_enumeration(make(true_values(mdp)), mdp)
    with pytest.raises(AssertionError):  # both wrong
        laws.law_enumeration(make(wrong_values(mdp)), mdp)


EVEN = Mdp(
    "every chance is one half",
    outcomes={
        (0, 0): [(0.5, 1, 1.0), (0.5, END, -2.0)],
        (0, 1): [(0.5, 0, 0.5), (0.5, 1, 0.0)],
        (1, 0): [(0.5, 0, 2.0), (0.5, 0, 3.0)],
        (1, 1): [(0.5, 1, -1.0), (0.5, END, 4.0)],
    },
    start={0: 0.5, 1: 0.5},
    horizon=3,
    discount=0.8,
    behavior=lambda s, t: [0.5, 0.5],
    candidate=lambda s, t: [0.9, 0.1] if s == t % 2 else [0.3, 0.7],
)


def test_enumeration_cross_fitted():
    """Each fold holds every way through the process as often as its probability says."""
    folds, (data, probs) = 3, laws.enumerated(EVEN)
    often = np.rint(probs * 2**7).astype(int)
    same(often, probs * 2**7)
    whole = np.repeat(np.arange(len(probs)), often)
    copies = data.take(np.tile(whole, folds))
    ids = np.arange(len(whole))
    copies = replace(copies, episode_ids=np.concatenate([ids * folds + k for k in range(folds)]))
    problem, value = Problem(copies, policy_of(EVEN)), EVEN.value(EVEN.candidate)
    assert DRL(TabularModel(), folds=folds)(problem).estimate == pytest.approx(value, abs=1e-12)
    # With a wrong model the visits alone bring it there.
    assert DRL(wrong_values(EVEN), folds=folds)(problem).estimate == pytest.approx(value, abs=1e-12)


def test_visits_are_those_of_mis():
    """Without a model and with an episode's own visits among them, the mean of Σ γ^t w_t ρ_t r_t is MIS."""
    problem, zero = Problem(DATA, POLICY), GivenValues(np.zeros((HORIZON, STATES, 2)))
    same(DRL(zero, visit_ratios=mis_visits(problem))(problem).estimate, MIS()(problem).estimate)
    assert abs(DRL(zero)(problem).estimate - MIS()(problem).estimate) > 1e-2


def mis_visits(problem):
    """d_t(s) of MIS over the share of the logs at s, as a table."""
    data = problem.dataset
    places = Places.of(data, data.states)
    ratios = np.exp(problem.eval_log_probs - data.behavior_log_probs)
    table = np.zeros((data.horizon, int(data.states.max()) + 1))
    table[data.times, data.states] = places.visit_ratios(np.ones(data.n_trajectories), ratios)
    return table


def test_integer_weights_with_model_and_visits_given():
    visits = np.random.default_rng(6).uniform(0.2, 2.0, (HORIZON, STATES + 1))
    laws.law_integer_weights(on(DRL(GivenValues(TABLE), visit_ratios=visits)), DATA, REPEATS)


def test_without_visits_the_model_alone_is_left():
    nothing = DRL(GivenValues(TABLE), visit_ratios=np.zeros((HORIZON, STATES)))(Problem(DATA, POLICY))
    weights = np.array(REPEATS, dtype=float)
    same(nothing(weights), MB(GivenValues(TABLE))(Problem(DATA, POLICY))(weights))


def test_too_little_to_cross_fit():
    """One episode, once or repeated: model and visits of all logs, since there are no others."""
    once, thrice = (DRL()(Problem(DATA.take(which), POLICY)).estimate for which in ([0], [0, 0, 0]))
    same(once, thrice)


def test_an_estimated_behaviour_policy_is_fitted_once():
    behavior = TabularBehavior(timed=True)
    statistic = DRL(TabularModel(unseen_reward=0.0))(Problem(DATA, POLICY, behavior=behavior))
    problem = Problem(DATA, POLICY, behavior=behavior)
    fitted = problem.fits.behavior.log_probs(problem.fits(np.ones(len(EPISODES))))
    logged = replace(DATA, behavior_log_probs=fitted)
    weights = np.array(REPEATS, dtype=float)
    same(statistic(weights), DRL(TabularModel(unseen_reward=0.0))(Problem(logged, POLICY))(weights))


def test_bad_settings():
    with pytest.raises(TightropeError, match="folds is 1; cross-fitting needs at least 2"):
        DRL(folds=1)
    for table in ([1.0, 2.0], [[-1.0]], [[np.nan]]):
        with pytest.raises(DataError, match=r"visit_ratios must be finite numbers ≥ 0 of shape \(times, states\)"):
            DRL(visit_ratios=table)
    with pytest.raises(DataError, match=r"visit_ratios must cover horizon 6 and states up to 2.*got shape \(2, 3\)"):
        DRL(GivenValues(TABLE), visit_ratios=np.ones((2, 3)))(Problem(DATA, POLICY))
    assert hash(DRL(visit_ratios=np.ones((2, 2)))) == hash(DRL(visit_ratios=[[1, 1], [1, 1]]))


def test_states_that_cannot_be_counted():
    data = replace(DATA, states=DATA.states[:, None] * 1.5, final_states=None)
    with pytest.raises(DataError, match=r"drl counts how often each state is visited.*or give visit_ratios"):
        DRL()(Problem(data))


def test_no_way_through_the_logs():
    never = replace(DATA, eval_log_probs=np.where(DATA.times == 1, -np.inf, DATA.eval_log_probs))
    never = never.take(np.flatnonzero(DATA.lengths > 1))
    with pytest.raises(NoOverlapError, match="drl finds no way through the logs"):
        DRL()(Problem(never))


@pytest.mark.parametrize("method", ["percentile", "bca", "studentized", "t"])
def test_bounds(method):
    walker = small("walker")
    data = walker.logs(60, rng=np.random.default_rng(3))
    settings = {"estimator": "drl", "method": method, "n_resamples": 200, "seed": 1}
    low = tightrope.lower_bound(data, walker.candidate, **settings)
    high = tightrope.upper_bound(data, walker.candidate, **settings)
    assert low.value < low.estimate < high.value
