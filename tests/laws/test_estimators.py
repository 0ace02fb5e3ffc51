"""Every registered estimator through every law, and its numbers against slow definitions and hand-worked ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tightrope
from tests.laws import laws
from tests.laws.laws import SAMPLING as ESTIMATORS
from tests.laws.laws import logs, same
from tests.oracle import SLOW, Episode, mdps, random_episodes
from tightrope.base.problem import Problem
from tightrope.functional.centered import centered
from tightrope.functional.resampling import Bayesian, Poisson, leave_one_out_weights

RANGE = (-5.0, 6.0)  # holds every reward used here
SHIFTED = {"is", "pdis"}  # the estimators that a declared range changes

# Each estimator as registered, with and without a declared range, anchored low and high.
CASES = [(name, None, "low") for name in ESTIMATORS]
CASES += [(name, RANGE, anchor) for name in ESTIMATORS for anchor in ("low", "high")]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{'range' if case[1] else 'plain'}-{case[2]}")
def case(request):
    name, reward_range, anchor = request.param
    return ESTIMATORS[name]().anchored(anchor), reward_range


@pytest.fixture
def make(case):
    return case[0]


@pytest.fixture(params=[0, 1, 2], ids=["mild", "zeros", "wild"])
def data(request, case):
    choice = request.param
    episodes = random_episodes(14, 6, seed=choice, zeros=[0.0, 0.15, 0.0][choice], spread=[0.3, 0.5, 2.0][choice])
    return logs(episodes, horizon=6, discount=[1.0, 0.9, 0.7][choice], reward_range=case[1])


def test_weights_of_one(make, data):
    laws.law_ones(make, data)


def test_integer_weights(make, data):
    laws.law_integer_weights(make, data, [1, 0, 2, 0, 5, 1, 0, 1, 3, 0, 0, 1, 0, 2])


def test_order_and_duplication(make, data):
    laws.law_order(make, data, np.random.default_rng(3).permutation(data.n_trajectories))
    laws.law_duplication(make, data)


def test_batches(make, data):
    rows = np.random.default_rng(4).integers(0, 3, size=(2, 5, data.n_trajectories)).astype(float)
    laws.law_batch(make, data, rows)


@pytest.mark.parametrize("mdp", mdps(), ids=lambda mdp: mdp.name.replace(" ", "-"))
def test_enumeration(case, mdp):
    make, reward_range = case
    laws.law_enumeration(make, mdp, reward_range=reward_range)


def test_on_policy(make, data):
    laws.law_on_policy(make, data)


def test_padding(make, data):
    laws.law_padding(make, data)


def test_shift(case, data):
    make, reward_range = case
    if reward_range is None and make.name in SHIFTED:
        pytest.skip(laws.UNSHIFTED)
    laws.law_shift(make, data)


@pytest.mark.parametrize("scheme", [None, Poisson(), Bayesian()], ids=["multinomial", "poisson", "bayesian"])
def test_partition(case, scheme, monkeypatch):
    make, reward_range = case
    episodes = random_episodes(1100, 5, seed=9, zeros=0.05)  # more than one block of 1024
    laws.law_partition(make, logs(episodes, horizon=5, reward_range=reward_range), monkeypatch, scheme)


@pytest.mark.parametrize("name", ["is", "pdis"])
def test_what_is_counted_from_does_not_depend_on_the_sample(name):
    """Rewards of 1 to 2 and one episode that ends early: without it the same process still can end early."""
    full = [Episode([1.0, 2.0], [0.5, 0.5], [q, 0.5], False) for q in (0.25, 0.5, 1.0)]
    data = logs([*full, Episode([1.5], [0.5], [0.4], True)], horizon=2, reward_range=(1.0, 2.0))
    laws.law_integer_weights(ESTIMATORS[name](), data, [1, 2, 1, 0])


@st.composite
def datasets(draw):
    """Small logs of any shape; the first episode always keeps its weight."""
    horizon, n = draw(st.integers(1, 4)), draw(st.integers(2, 6))
    probability, reward = st.floats(0.05, 1.0), st.floats(-5.0, 6.0)
    episodes = []
    for i in range(n):
        length = draw(st.integers(1, horizon))
        column = {"min_size": length, "max_size": length}
        never = st.nothing() if i == 0 else st.just(0.0)
        episodes.append(
            Episode(
                draw(st.lists(reward, **column)),
                draw(st.lists(probability, **column)),
                draw(st.lists(probability | never, **column)),
                length < horizon or draw(st.booleans()),
            )
        )
    discount = draw(st.sampled_from([1.0, 0.9, 0.0]))
    reward_range = draw(st.sampled_from([None, RANGE, (-7.0, None)]))
    weights = [1 + draw(st.integers(0, 2)), *(draw(st.integers(0, 3)) for _ in range(n - 1))]
    return logs(episodes, horizon=horizon, discount=discount, reward_range=reward_range), episodes, weights


@pytest.mark.parametrize("name", ESTIMATORS)
@given(drawn=datasets(), data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_small_dataset(name, drawn, data):
    logged, episodes, weights = drawn
    make = ESTIMATORS[name]()
    laws.law_ones(make, logged)
    laws.law_integer_weights(make, logged, weights)
    laws.law_order(make, logged, data.draw(st.permutations(range(len(weights)))))
    laws.law_duplication(make, logged)
    laws.law_batch(make, logged, np.array([weights, np.ones(len(weights))]))
    shift = {"shift": _shift(name, logged)} if name in SHIFTED else {}
    expected = SLOW[name](episodes, logged.discount, logged.horizon, weights, **shift)
    same(make(Problem(logged))(np.array(weights)), expected, 1e-10)


def _shift(name, logged):
    """What is counted from the floor: each reward for pdis, the return for is."""
    if logged.reward_range is None:
        return 0.0
    low = min(logged.reward_range[0], 0.0) if logged.horizon > 1 else logged.reward_range[0]
    return low if name == "pdis" else low * sum(logged.discount**t for t in range(logged.horizon))


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(("n", "horizon", "zeros"), [(30, 8, 0.0), (200, 20, 0.05), (7, 1, 0.0)])
def test_slow_definition(name, n, horizon, zeros):
    episodes = random_episodes(n, horizon, seed=n, zeros=zeros)
    plain = logs(episodes, horizon=horizon, discount=0.95)
    same(tightrope.estimate(plain, estimator=name), SLOW[name](episodes, 0.95, horizon))
    weights = np.random.default_rng(n).exponential(size=n)
    same(tightrope.statistic(plain, estimator=name)(weights), SLOW[name](episodes, 0.95, horizon, weights.tolist()))
    if name in SHIFTED:
        declared = logs(episodes, horizon=horizon, discount=0.95, reward_range=RANGE)
        length = sum(0.95**t for t in range(horizon))
        for anchor, end in (("low", RANGE[0]), ("high", RANGE[1])):
            shift = end * (length if name == "is" else 1.0)
            value = ESTIMATORS[name](anchor=anchor)(Problem(declared)).estimate
            same(value, SLOW[name](episodes, 0.95, horizon, shift=shift))


# Two episodes, horizon 2, discount 1/2. The first: step ratios 2 and 1/2, rewards 1 and 4. The second ends after one
# step of ratio 1/2 with reward 6. So ρ_0 = 2, 1/2; ρ_1 = 1, 1/2; returns 1 + 4/2 = 3 and 6; H = 1 + 1/2.
#   is     (1·3 + ½·6)/2                        = 3
#   pdis   (2·1 + ½·1·4 + ½·6)/2                = 7/2
#   wis    (1·3 + ½·6)/(1 + ½)                  = 4
#   pdwis  (2·1 + ½·6)/(2 + ½) + ½·(1·4)/(1+½)  = 2 + 4/3
# With rewards declared in (-2, 6), low: returns count from -2·3/2 = -3, rewards from -2:
#   is     -3 + (1·6 + ½·9)/2                   = 9/4
#   pdis   -3 + (2·3 + ½·1·6 + ½·8 + ½·½·2)/2   = 15/4
# and high, from 9 and from 6:
#   is      9 + (1·(-6) + ½·(-3))/2             = 21/4
#   pdis    9 + (2·(-5) + ½·(-2) + 0 + ½·½·(-6))/2 = 11/4
GOLDEN_EPISODES = [
    Episode([1.0, 4.0], [0.25, 0.5], [0.5, 0.25], False),
    Episode([6.0], [0.5], [0.25], True),
]
GOLDEN = {
    ("is", None): 3.0,
    ("pdis", None): 3.5,
    ("wis", None): 4.0,
    ("pdwis", None): 2 + 4 / 3,
    ("is", "low"): 2.25,
    ("pdis", "low"): 3.75,
    ("wis", "low"): 4.0,
    ("pdwis", "low"): 2 + 4 / 3,
    ("is", "high"): 5.25,
    ("pdis", "high"): 2.75,
    ("wis", "high"): 4.0,
    ("pdwis", "high"): 2 + 4 / 3,
}


@pytest.mark.parametrize(("name", "anchor"), GOLDEN)
def test_golden(name, anchor):
    declared = None if anchor is None else (-2.0, 6.0)
    data = logs(GOLDEN_EPISODES, horizon=2, discount=0.5, reward_range=declared)
    assert ESTIMATORS[name]().anchored(anchor or "low")(Problem(data)).estimate == pytest.approx(
        GOLDEN[name, anchor], abs=1e-14
    )


def test_every_estimator_has_a_golden_number():
    assert {name for name, _ in GOLDEN} == set(ESTIMATORS) == set(SLOW)


@pytest.mark.parametrize("form", [lambda s: s, centered], ids=["plain", "centered"])
def test_gradient(make, data, form):
    statistic = form(make(Problem(data)))
    weights = np.linspace(0.5, 2.0, data.n_trajectories)
    sums = sum(weights[a:b] @ columns for a, b, columns in statistic.chunks())
    gradient = statistic.combine.gradient(sums)
    for k in range(statistic.n_columns):
        step = 1e-6 * max(1.0, abs(sums[k]))
        up, down = sums.copy(), sums.copy()
        up[k] += step
        down[k] -= step
        slope = (statistic.combine(up) - statistic.combine(down)) / (2 * step)
        assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_influence(make, data):
    """It sums to zero, and is the derivative by the trajectory's own weight."""
    statistic = make(Problem(data))
    influence = statistic.influence()
    n = data.n_trajectories
    assert abs(influence.sum()) < 1e-9 * np.abs(influence).sum()
    step = 1e-6 * np.eye(n)
    slope = (statistic(1 + step) - statistic(1 - step)) / 2e-6
    np.testing.assert_allclose(influence / n, slope, rtol=1e-4, atol=1e-7)


def test_leave_one_out(make, data):
    statistic = make(Problem(data))
    same(statistic.leave_one_out(), statistic(leave_one_out_weights(data.n_trajectories)), 1e-10)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("small", [1e-13, 1e-6, 0.5])
def test_leave_the_heavy_one_out(name, small):
    """One trajectory has all but ``small`` of the weight: taking it off must not leave only rounding errors."""
    light = [Episode([r], [1.0], [small / 9 * k], True) for k, r in enumerate([1.0, 2.0, 4.0, 1.5, 2.5], start=1)]
    episodes = [*light, Episode([3.0], [0.5], [0.5], True)]
    without = SLOW[name](light, 1.0, 1)
    value = tightrope.statistic(logs(episodes, horizon=1), estimator=name).leave_one_out()[-1]
    assert value == pytest.approx(without, rel=1e-9)


@pytest.mark.parametrize("name", ["wis", "pdwis"])
def test_no_weight_is_undefined(name):
    """Weights only on trajectories the candidate would never have taken: 0/0, never a uniform average."""
    episodes = [Episode([1.0], [0.5], [0.5], True), Episode([2.0], [0.5], [0.0], True)]
    statistic = tightrope.statistic(logs(episodes, horizon=1), estimator=name)
    assert np.isnan(statistic([0.0, 3.0]))
    assert statistic([1.0, 3.0]) == 1.0


@pytest.mark.parametrize("bad", [[1.0], [1.0, -1.0], [1.0, np.nan], [1.0, np.inf]])
def test_bad_weights_are_refused(bad):
    statistic = tightrope.statistic(logs(GOLDEN_EPISODES, horizon=2), estimator="wis")
    with pytest.raises(tightrope.TightropeError, match="weight"):
        statistic(bad)
