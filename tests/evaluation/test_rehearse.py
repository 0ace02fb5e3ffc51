"""Rehearsals: simulated logs are logs of the world they come from, and bounds that err there are counted."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.policy import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.bounds.rehearsal.tabular import TabularStage
from tightrope.domains import FiniteMDP, small

DECLINE = small("decline")
LOGS = DECLINE.logs(60, rng=np.random.default_rng(3))


def as_process(stage: TabularStage) -> FiniteMDP:
    """The first world as a process, by counting: one visit for each logged step, one for the state's whole pool."""
    steps = stage.steps
    shape = (steps.n_states, steps.n_actions, steps.n_states + 1)
    chances, rewards = np.zeros(shape), np.zeros(shape)
    everywhere = list(zip(steps.states, steps.actions, steps.rewards, steps.following, strict=True))
    seen = [step for step in everywhere if step[3] >= 0]  # what follows the last step of a full episode nobody saw
    for state in range(shape[0]):
        pool = [step for step in seen if step[0] == state] or seen
        for action in range(shape[1]):
            own = [step for step in seen if step[:2] == (state, action)]
            parts = [(1.0, step) for step in own] + [(1.0 / len(pool), step) for step in pool]
            for weight, (_, _, reward, after) in parts:
                share = weight / (len(own) + 1.0)
                chances[state, action, after] += share
                rewards[state, action, after] += share * reward
    mean = np.divide(rewards, chances, out=np.zeros(shape), where=chances > 0)
    starts = np.bincount(steps.states[steps.first], minlength=shape[0]) / len(steps.first)
    return FiniteMDP(chances, mean, starts, steps.horizon, stage.discount)


def test_the_value_in_a_world_is_that_of_the_process_it_simulates():
    stage = TabularStage.of(Problem(LOGS, DECLINE.candidate), "lower")
    process = as_process(stage)
    world = stage.worlds[0]
    for table in (stage.policy, stage.behavior):
        assert stage.value(world, table) == pytest.approx(process.value(TabularPolicy(table)), abs=1e-10)


def test_simulated_logs_are_logs_of_that_world():
    stage = TabularStage.of(Problem(LOGS, DECLINE.candidate), "lower")
    world = stage.worlds[0]
    rng = np.random.default_rng(0)
    returns = np.concatenate([stage.logs(world, rng, LOGS).returns for _ in range(300)])
    error = returns.std() / np.sqrt(len(returns))
    assert returns.mean() == pytest.approx(stage.value(world, stage.behavior), abs=4 * error)


def test_estimates_on_simulated_logs_average_to_their_truth():
    """Ratios, policies and the end of episodes go along: importance sampling is unbiased there too."""
    stage = TabularStage.of(Problem(LOGS, DECLINE.candidate), "lower")
    world = stage.worlds[0]
    rng, policy = np.random.default_rng(1), TabularPolicy(stage.policy)
    logs = [stage.logs(world, rng, LOGS) for _ in range(300)]
    estimates = np.array([tightrope.estimate(one, policy, estimator="pdis") for one in logs])
    error = estimates.std() / np.sqrt(len(estimates))
    assert estimates.mean() == pytest.approx(stage.value(world, stage.policy), abs=4 * error)


def test_many_episodes_are_rehearsed_with_fewer_and_no_less_than_a_normal_quantile(monkeypatch):
    """A bias to the safe side, which larger logs do not have, must not bring the bound nearer to the estimate."""
    monkeypatch.setattr("tightrope.bounds.rehearsal.tabular.MOST_EPISODES", 40)
    problem = Problem(LOGS, DECLINE.candidate)
    stage = TabularStage.of(problem, "lower")
    assert stage.n_rehearsed == 40
    few = TabularStage.of(Problem(LOGS.take(np.arange(30)), DECLINE.candidate), "lower")
    assert few.n_rehearsed == 30
    sizes = []
    monkeypatch.setattr("tightrope.bounds.rehearsal.kernels.rehearse", lambda *args: sizes.append(args[1]))
    stage.pivots(stage.worlds[0], 1, 0, "value")
    assert sizes == [40]
    monkeypatch.setattr(TabularStage, "pivots", lambda self, world, count, seed, about: np.full(count, -1.0))
    ask = {"estimator": "wdr", "method": "rehearsed", "confidence": 0.9}
    estimate, error = stage.wdr("value")
    far = tightrope.lower_bound(LOGS, DECLINE.candidate, **ask).value
    assert far == pytest.approx(estimate - 1.2815515655446004 * error)
    estimate, error = few.wdr("value")
    near = tightrope.lower_bound(LOGS.take(np.arange(30)), DECLINE.candidate, **ask).value
    assert near == pytest.approx(estimate + error)


def test_bounds_that_err_are_counted_and_shown():
    result = tightrope.evaluate(
        LOGS, DECLINE.candidate, estimators=["wis", "tdr"], methods=["percentile", "betting"], rehearsals=40
    )
    rates = {(one.estimator, one.method): one.errors / one.trials for one in result.rehearsal}
    assert set(rates) == {("wis", "percentile"), ("tdr", "percentile"), ("tdr", "betting")}
    assert all(one.trials == 40 for one in result.rehearsal)
    assert rates["wis", "percentile"] > 0.1  # as on the problem itself (docs/coverage.md)
    assert rates["tdr", "betting"] <= 0.1
    again = tightrope.evaluate(
        LOGS, DECLINE.candidate, estimators=["wis", "tdr"], methods=["percentile", "betting"], rehearsals=40
    )
    assert again.rehearsal == result.rehearsal
    axes = result.figure("rehearsal").axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["WIS percentile", "TDR percentile", "TDR betting"]


def test_what_cannot_be_rehearsed_is_refused():
    with pytest.raises(BoundError, match="rehearsals must be a whole number from 0"):
        tightrope.evaluate(LOGS, DECLINE.candidate, rehearsals=-1)
    with pytest.raises(TightropeError, match=r"nothing was rehearsed: evaluate\(\.\.\., rehearsals=200\)"):
        tightrope.evaluate(LOGS, DECLINE.candidate, estimators="is", methods="t").figure("rehearsal")
