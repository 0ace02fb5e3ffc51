"""TDR: numbers worked by hand, the laws of statistics, reflection, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tests.laws import laws
from tests.laws.laws import logs, same
from tests.oracle import Episode
from tightrope import TabularPolicy, TightropeError
from tightrope.base.errors import BoundError
from tightrope.base.problem import Problem
from tightrope.bounds import METHODS
from tightrope.bounds.base import is_exact
from tightrope.domains import small
from tightrope.estimators import TDR
from tightrope.models import GivenValues, TabularModel

# -- by hand -------------------------------------------------------------------------------------------------------

# Two episodes, horizon 2, discount 1/2, rewards in [0, 8]: returns in [0, 12], and the floor rises with what is earned.
# In state 0 the candidate takes both actions alike and the behaviour policy the first with 1/4: ratios 2 and 2/3. In
# state 1 the candidate takes the first with 1/4, the behaviour policy with 1/2: ratios 1/2 and 3/2.
# q̂(0, ·) = 2, 4 and q̂(1, ·) = 2, 8. The first episode: (0, 0) for 1, (1, 0) for 4, Z = 1 + 4/2 = 3. The second: (0, 1)
# for 6, and ends, Z = 6. With C = 1:
#   t = 0  ℓ = 0, K = 1, g = (2, 4), ḡ = 3, ρg = (4, 8/3), D = 1, θ = 1/2.
#          first:  x = 3/2 − 2·(1/2)2 = −1/2, W = 2.       second: x = 3/2 − (2/3)(1/2)4 = 1/6, X = 1/6 + (2/3)6 = 25/6.
#   t = 1  ℓ = 1, K = 1 − 1/2 + 2 = 5/2, g = q̂/2 = (1, 4), ḡ = 13/4, ρg = (1/2, 6), D = 11/4,
#          θ = (5/2)/(5/2 + 11/2) = 5/16, x = −1/2 + 2(1 + (5/16)(13/4)) − 1·(1 + 5/16) = 71/32, W = 1,
#          X = 71/32 + 3 = 167/32.
# C = 0: x = 2·1 − 1·1 = 1 and X = 4; X = (2/3)6 = 4.
# C = ∞ is DR: 3 + 2(1 − 2 + 13/4) + (4 − 2)/2 = 17/2; 3 + (2/3)2 = 13/3.
OLD, NEW = TabularPolicy([[0.25, 0.75], [0.5, 0.5]]), TabularPolicy([[0.5, 0.5], [0.25, 0.75]])
EPISODES = [
    Episode([1.0, 4.0], [0.25, 0.5], [0.5, 0.25], False, [0, 1], [0, 0], 0),
    Episode([6.0], [0.75], [0.5], True, [0], [1]),
]
GUESS = GivenValues([[2.0, 4.0], [2.0, 8.0]])
DECLARED = {"horizon": 2, "discount": 0.5, "reward_range": (0.0, 8.0)}
GOLDEN = {0.0: (4.0, 4.0), 1.0: (167 / 32, 25 / 6), np.inf: (17 / 2, 13 / 3)}


def golden(**more) -> Problem:
    return Problem(logs(EPISODES, behavior=OLD, **{**DECLARED, **more}), NEW)


def test_by_hand():
    game = TDR(GUESS).sequential_values(golden())
    found = game.learned([(np.arange(0), np.arange(2))], np.array(list(GOLDEN)))
    np.testing.assert_allclose(found.T, list(GOLDEN.values()), rtol=1e-15)
    for tether, expected in GOLDEN.items():  # as multiples of the mean return, 9/2
        assert TDR(GUESS, tether=tether / 4.5)(golden()).estimate == pytest.approx(np.mean(expected), rel=1e-14)


def test_the_floor_and_the_ceiling_are_where_it_counts_from():
    for anchor, origin, sign in (("low", 0.0, 1.0), ("high", 12.0, -1.0)):
        game = TDR(GUESS).anchored(anchor).sequential_values(golden())
        assert (game.origin, game.sign) == (origin, sign)
        assert game.estimate == pytest.approx(origin + sign * game.values.mean())


# -- the laws of statistics ----------------------------------------------------------------------------------------

WALKER = small("walker")
DATA = WALKER.logs(60, rng=np.random.default_rng(0))


def on_walker(**settings):
    return lambda problem: TDR(**settings)(Problem(problem.dataset, WALKER.candidate))


MAKE = {
    "tabular": on_walker(tether=0.5),
    "chosen": on_walker(),
    "none": on_walker(model="none", tether=1.0),
    "is": on_walker(tether=0.0),
    "dr": on_walker(tether=np.inf),
}


@pytest.mark.parametrize("name", MAKE)
def test_laws(name):
    make = MAKE[name]
    laws.law_ones(make, DATA)
    laws.law_order(make, DATA, np.random.default_rng(3).permutation(60))
    laws.law_batch(make, DATA, np.random.default_rng(4).integers(0, 3, size=(2, 5, 60)).astype(float))
    if name != "chosen":  # on twice as many episodes it may choose a longer tether
        laws.law_duplication(make, DATA)


@pytest.mark.parametrize("tether", [0.0, np.inf])
@pytest.mark.parametrize("anchor", ["low", "high"])
def test_integer_weights(tether, anchor):
    """With q̂ given and a tether that no mean decides."""
    q = np.random.default_rng(1).normal(size=(DATA.horizon, int(DATA.states.max()) + 1, 2))
    make = TDR(GivenValues(q), tether=tether).anchored(anchor)
    weights = np.random.default_rng(2).integers(0, 4, 60)
    laws.law_integer_weights(lambda problem: make(Problem(problem.dataset, WALKER.candidate)), DATA, weights)


@pytest.mark.parametrize("anchor", ["low", "high"])
def test_absorbing_steps_written_out_change_nothing(anchor):
    """The second episode stays in state 2, where there is one thing to do, for 0."""
    old, new = (TabularPolicy(np.vstack([policy.table, [1.0, 0.0]])) for policy in (OLD, NEW))
    second = {"rewards": [6.0, 0.0], "behavior": [0.75, 1.0], "candidate": [0.5, 1.0]}
    longer = replace(EPISODES[1], states=[0, 2], actions=[1, 0], **second)
    guess, tethers = GivenValues([[2.0, 4.0], [2.0, 8.0], [0.0, 0.0]]), np.array([0.0, 0.3, 1.0, 7.0, np.inf])
    tables = []
    for episodes in (EPISODES, [EPISODES[0], longer]):
        game = TDR(guess).anchored(anchor).sequential_values(Problem(logs(episodes, behavior=old, **DECLARED), new))
        tables.append(game.learned([(np.arange(0), np.arange(2))], tethers))
    same(*tables)


def negated(data):
    spans = {name: getattr(data, name) for name in ("reward_range", "return_range")}
    turned = {name: (-span[1], -span[0]) for name, span in spans.items() if span}
    return replace(data, rewards=-data.rewards, **turned)


@pytest.mark.parametrize("method", ["betting", "anderson", "percentile", "studentized"])
@pytest.mark.parametrize("domain", ["walker", "bonus"])
@pytest.mark.parametrize("model", ["tabular", "none"])
def test_an_upper_bound_is_a_lower_one_of_the_negated_problem(domain, method, model):
    problem = small(domain)
    data = problem.logs(50, rng=np.random.default_rng(1))
    options = {"estimator": TDR(model), "method": method, "seed": 4, "n_resamples": 300}
    upper = tightrope.upper_bound(data, problem.candidate, **options)
    lower = tightrope.lower_bound(negated(data), problem.candidate, **options)
    assert upper.value == pytest.approx(-lower.value, rel=1e-12)


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if not is_exact(method)])
def test_every_bootstrap_bound_takes_it(method):
    options = {"estimator": "tdr", "method": method, "n_resamples": 200, "seed": 1}
    low, high = (call(DATA, WALKER.candidate, **options) for call in (tightrope.lower_bound, tightrope.upper_bound))
    assert low.value < low.estimate
    assert high.value > high.estimate
    assert low.guarantee == "approximate"


@pytest.mark.parametrize("method", ["betting", "betting-mixture", "anderson", "cut"])
def test_every_exact_bound_that_needs_no_ceiling_takes_it(method):
    options = {"estimator": "tdr", "method": method, "seed": 1}
    low, high = (call(DATA, WALKER.candidate, **options) for call in (tightrope.lower_bound, tightrope.upper_bound))
    assert DATA.value_range[0] <= low.value < WALKER.true_value < high.value <= DATA.value_range[1]
    assert low.guarantee == "exact"
    with pytest.raises(BoundError, match="missing: a ceiling, which tethered values do not have"):
        tightrope.lower_bound(DATA, WALKER.candidate, estimator="tdr", method="hoeffding", max_ratio=1e9)


# -- what was cut off, and what is refused -------------------------------------------------------------------------


def test_what_was_cut_off_is_as_far_down_as_the_tether():
    cut = [EPISODES[0], replace(EPISODES[1], terminated=False)]
    data = logs([cut[0], replace(cut[1], terminated=True)], behavior=OLD, cut=[False, True], **DECLARED)
    tethers = np.array([0.0, 1.0, 6.0])
    game = TDR(GUESS).sequential_values(Problem(data, NEW))
    found = game.learned([(np.arange(0), np.arange(2))], tethers)
    np.testing.assert_array_equal(found[1], -tethers)
    assert found[0, 1] == pytest.approx(167 / 32)
    assert TDR(GUESS, tether=np.inf)(Problem(data, NEW)).estimate == pytest.approx((17 / 2 + 13 / 3) / 2)  # as if ended


def test_returns_of_what_was_cut_off_make_no_negative_tether():
    """Cut off after −6 though the return is never below −1: later rewards would have made up for it."""
    low = [Episode([-6.0], [0.25], [0.5], True, [0], [0])] * 3
    data = logs(low, horizon=2, return_range=(-1.0, 5.0), behavior=OLD, cut=[True] * 3)
    game = TDR(GUESS, tether=2.0).sequential_values(Problem(data, NEW))
    assert game.unit(np.arange(3)) == pytest.approx(0.02 * 6)  # a little of the range at least
    assert (game.values == -2.0 * game.unit(np.arange(3))).all()


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ({"reward_range": None}, "counts from the lowest possible return.*missing: reward_range or return_range"),
        ({"reward_range": (None, 8.0)}, "missing: reward_range or return_range"),
        ({"horizon_declared": False}, "missing: horizon"),
        ({"horizon_declared": False, "reward_range": None, "return_range": (0.0, 12.0)}, "missing: horizon"),
    ],
)
def test_what_must_be_declared(missing, words):
    ended = [replace(e, terminated=True) for e in EPISODES]
    data = logs(ended, behavior=OLD, **{**DECLARED, **missing})
    with pytest.raises(BoundError, match=words):
        tightrope.lower_bound(data, NEW, estimator=TDR(GUESS), method="betting")


def test_the_ceiling_must_be_declared_for_an_upper_bound():
    with pytest.raises(BoundError, match="highest possible return"):
        tightrope.upper_bound(golden(reward_range=(0.0, None)).dataset, NEW, estimator=TDR(GUESS), method="betting")
    with pytest.raises(BoundError, match=r"tdr counts from the ceiling of the return.*dr does without"):
        TDR(GUESS).anchored("high")(golden(reward_range=(0.0, None)))


def test_a_floor_that_the_logs_contradict_is_refused():
    with pytest.raises(TightropeError, match="outside the declared return_range"):
        golden(return_range=(3.5, 12.0))


def test_an_estimated_behavior_policy_is_refused():
    with pytest.raises(BoundError, match="true behaviour probabilities"):
        tightrope.estimate(DATA, WALKER.candidate, estimator="tdr", behavior="tabular")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tether": -0.1}, "tether is -0.1; give a number ≥ 0"),
        ({"tether": np.nan}, "tether is nan"),
        ({"folds": 1}, "folds is 1; cross-fitting needs at least 2"),
    ],
)
def test_bad_settings(settings, words):
    with pytest.raises(TightropeError, match=words):
        TDR(**settings)


def test_a_model_of_more_actions_than_there_are():
    """Columns that neither policy lists are no choices: they are left out, not read beyond the end."""
    plain, more = (TDR(TabularModel(n_actions=count), tether=1.0) for count in (None, 7))
    same(*(made(Problem(DATA, WALKER.candidate)).estimate for made in (plain, more)))
