"""Every registered estimator that is not a usual one through the laws, against its slow definition and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.field import FIELD, Question, entry
from tests.laws import laws
from tests.laws.laws import logs, same
from tests.laws.test_models import (
    DISCOUNT,
    EPISODES,
    HORIZON,
    POLICY,
    REPEATS,
    STATES,
    candidate,
    law_padding,
    law_shift,
    on,
    policy_of,
    with_finals,
)
from tests.model_oracle import arbitrary
from tests.oracle import Episode, mdps
from tightrope import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.estimators import ESTIMATORS
from tightrope.functional.resampling import leave_one_out_weights


def make_of(name, policy=POLICY, law=""):
    chosen = ESTIMATORS[name](**entry(name).settings)
    if law == "on policy" and entry(name).logged_policy:
        return chosen  # asked about the logged column, which is what this law changes
    return on(chosen, policy)


def data_of(name, episodes=EPISODES):
    return with_finals(episodes, horizon=HORIZON, discount=DISCOUNT, reward_range=entry(name).reward_range)


LAWS = {
    "ones": lambda make, data: laws.law_ones(make, data),
    "integer weights": lambda make, data: laws.law_integer_weights(make, data, REPEATS),
    "order": lambda make, data: laws.law_order(make, data, np.random.default_rng(3).permutation(len(EPISODES))),
    "duplication": lambda make, data: laws.law_duplication(make, data),
    "batch": lambda make, data: laws.law_batch(make, data, np.array([REPEATS * 2, range(28)], float).reshape(2, 2, 14)),
    "on policy": lambda make, data: laws.law_on_policy(make, data),
    "padding": law_padding,
    "shift": law_shift,
    "enumeration": None,  # below, on every small process
}


@pytest.mark.parametrize("law", [law for law in LAWS if law != "enumeration"])
@pytest.mark.parametrize("name", FIELD)
def test_law(name, law):
    if law in entry(name).exempt:
        with pytest.raises(AssertionError):  # an exemption that is not needed is no exemption
            LAWS[law](make_of(name, law=law), data_of(name))
        pytest.skip(f"{law}, {name}: {entry(name).exempt[law]}")
    LAWS[law](make_of(name, law=law), data_of(name))


@pytest.mark.parametrize("mdp", mdps(), ids=lambda mdp: mdp.name.replace(" ", "-"))
@pytest.mark.parametrize("name", FIELD)
def test_enumeration(name, mdp):
    if "enumeration" in entry(name).exempt:
        pytest.skip(f"enumeration, {name}: {entry(name).exempt['enumeration']}")
    law_enumeration(name, [mdp])


def law_enumeration(name, processes):
    for mdp in processes:
        laws.law_enumeration(make_of(name, policy_of(mdp)), mdp, reward_range=entry(name).reward_range)


@pytest.mark.parametrize("name", FIELD)
def test_exemption_from_enumeration_is_needed(name):
    if "enumeration" in entry(name).exempt:
        with pytest.raises(AssertionError):
            law_enumeration(name, mdps())


@pytest.mark.parametrize("name", FIELD)
def test_exemptions_name_laws(name):
    assert set(entry(name).exempt) <= set(LAWS)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", FIELD)
def test_slow_definition(name, seed):
    episodes = arbitrary(9 + seed, HORIZON, STATES, candidate, seed=20 + seed)
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=len(episodes)) * (rng.random(len(episodes)) < 0.7)
    weights[0] = 0.8
    statistic = make_of(name)(Problem(data_of(name, episodes)))

    def slow(row):
        return entry(name).slow(Question(episodes, candidate, HORIZON, DISCOUNT, row, entry(name).reward_range))

    same(statistic.estimate, slow([1.0] * len(episodes)), 1e-10)
    same(statistic(weights), slow(weights.tolist()), 1e-10)


# Horizon 2, discount 1/2; the candidate takes both actions alike in state 0, action 0 with 1/4 in state 1. The first:
# (0, 0) with ratio 2, reward 1, then (1, 0) with ratio 1/2, reward 4, and the horizon cuts it off. The second: (0, 1)
# with ratio 1/2, reward 6, and ends.
GOLDEN_EPISODES = [
    Episode([1.0, 4.0], [0.25, 0.5], [0.5, 0.25], False, [0, 1], [0, 0], 0),
    Episode([6.0], [1.0], [0.5], True, [0], [1]),
]


@pytest.mark.parametrize("name", FIELD)
def test_golden(name):
    held = entry(name)
    data = logs(GOLDEN_EPISODES, horizon=2, discount=0.5, reward_range=held.reward_range)
    policy = TabularPolicy([[0.5, 0.5], [0.25, 0.75]])
    assert ESTIMATORS[name](**held.settings)(Problem(data, policy)).estimate == pytest.approx(held.golden, abs=1e-12)


@pytest.mark.parametrize("name", FIELD)
def test_influence_is_the_derivative_and_leaving_out_is_leaving_out(name):
    """By leaving each episode out, and by a small change of its weight."""
    walker = small("walker")
    data = walker.logs(12, rng=np.random.default_rng(5))
    statistic = ESTIMATORS[name](**entry(name).settings)(Problem(data, walker.candidate))
    same(statistic.leave_one_out(), statistic(leave_one_out_weights(12)), 1e-9)
    influence = statistic.influence()
    assert influence.shape == (12,)
    assert abs(influence.sum()) < 1e-6 * (1 + np.abs(influence).max())
