"""MAGIC: its blend by hand, its ends, what it is made of against a real bootstrap, and the least over the simplex."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from scipy.optimize import minimize, nnls
from scipy.stats import norm

import tightrope
from tests.field.magic import best_shares, blended
from tests.laws import laws
from tests.laws.laws import logs, same
from tests.laws.test_field import GOLDEN_EPISODES
from tests.laws.test_models import DATA, DISCOUNT, EPISODES, HORIZON, POLICY, TABLE, candidate, on
from tests.model_oracle import arbitrary, from_table
from tightrope import TabularPolicy
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.problem import Problem
from tightrope.behaviors import BEHAVIORS
from tightrope.domains import small
from tightrope.estimators import MB, WDR
from tightrope.estimators.magic import MAGIC, MOST_LENGTHS
from tightrope.estimators.simplex import nearest_to_zero
from tightrope.functional.standard_errors import standard_error
from tightrope.models import FittedQ, GivenValues, TabularModel

GIVEN = MAGIC(GivenValues(TABLE), fit="shared")
SAME_TOTAL = [1, 0, 2, 0, 4, 1, 0, 1, 2, 0, 0, 1, 0, 2]  # as many as there are episodes


def blend_of(statistic, weights=None):
    weights = np.ones(statistic.n_trajectories) if weights is None else weights
    return statistic.model.returns(np.asarray(weights, dtype=float))


# -- by hand -------------------------------------------------------------------------------------------------------


def test_a_blend_by_hand():
    """The golden episodes with q̂(0, ·) = 2, 4 and q̂(1, ·) = 2, 8, so v̂(0) = 3 and v̂(1) = 13/2.

    TD errors 1 - 2 + 13/4 = 9/4 and 4 - 2 = 2; 6 - 4 = 2. Ratios 2 and 1/2 at time 0, 1 and 1/2 at time 1. Returns: 3;
    3 + (2·9/4 + ½·2)/(5/2) = 26/5; 26/5 + ½·(1·2)/(3/2) = 88/15. An episode moves the mean of two by
    2·2·(9/4 - 11/5)/(5/2) = 2/25 at time 0, by ½·2·1·(2 - 4/3)/(3/2) = 4/9 at time 1, the other by as much the other
    way: standard errors 0, 2/25 and 2/25 + 4/9 = 118/225, fully correlated. A 10% interval around WDR reaches
    z·118/225 to each side. So the errors to be blended are corners (se, bias) in the plane: (0, b0), (2/25, b1) and
    (118/225, 0), and the nearest point to 0 lies between the last two.
    """
    data = logs(GOLDEN_EPISODES, horizon=2, discount=0.5)
    problem = Problem(data, TabularPolicy([[0.5, 0.5], [0.25, 0.75]]))
    statistic = MAGIC(GivenValues([[2.0, 4.0], [2.0, 8.0]]), fit="shared")(problem)
    blend = blend_of(statistic)
    half = norm.ppf(0.55) * 118 / 225
    bias = np.array([88 / 15 - 3 - half, 88 / 15 - 26 / 5 - half, 0.0])
    error = np.array([0.0, 2 / 25, 118 / 225])
    share = (118 / 225) * (4 / 9) / ((4 / 9) ** 2 + bias[1] ** 2)
    same(blend.values, [3.0, 26 / 5, 88 / 15])
    same(blend.covariance, np.outer(error, error))
    same(blend.biases, bias)
    same(blend.shares, [0.0, share, 1 - share], 1e-10)
    assert statistic.estimate == pytest.approx(share * 26 / 5 + (1 - share) * 88 / 15, abs=1e-12)
    assert 0.3 < share < 0.5


@pytest.mark.parametrize("interval", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("seed", range(4))
def test_slow_definition_with_given_values(seed, interval):
    """A model that is right about nothing, so that blends are of many kinds."""
    episodes = arbitrary(8 + 9 * seed, HORIZON, 3, candidate, seed=seed)
    data = logs(episodes, horizon=HORIZON, discount=DISCOUNT)
    weights = np.random.default_rng(seed).exponential(size=len(episodes))
    statistic = replace(GIVEN, interval=interval)(Problem(data, POLICY))
    for row in (np.ones(len(episodes)), weights):
        expected = blended(episodes, HORIZON, DISCOUNT, row.tolist(), *from_table(TABLE, candidate), interval)
        same(statistic(row), expected, 1e-9)


# -- laws ----------------------------------------------------------------------------------------------------------

MODES = {
    "given": GIVEN,
    "refit": MAGIC(TabularModel(unseen="worst", unseen_reward=-1.7), fit="refit"),
}


@pytest.mark.parametrize("mode", MODES)
def test_whole_number_weights_that_add_up_to_the_number_of_episodes(mode):
    """As those of a bootstrap do."""
    assert sum(SAME_TOTAL) == len(EPISODES)
    laws.law_integer_weights(on(MODES[mode]), DATA, SAME_TOTAL)


@pytest.mark.parametrize("mode", MODES)
def test_laws_of_weights(mode):
    make = on(MODES[mode])
    laws.law_ones(make, DATA)
    laws.law_order(make, DATA, np.random.default_rng(3).permutation(14))
    laws.law_batch(make, DATA, np.array([SAME_TOTAL * 2, range(28)], float).reshape(2, 2, 14))


def test_weights_with_an_estimated_behaviour_policy():
    """Which is fitted under the same weights."""
    behavior = BEHAVIORS["tabular"]()

    def make(problem):
        return GIVEN(Problem(problem.dataset, POLICY, behavior=behavior))

    laws.law_integer_weights(make, DATA, SAME_TOTAL)
    laws.law_order(make, DATA, np.random.default_rng(3).permutation(14))
    assert abs(make(Problem(DATA)).estimate - on(GIVEN)(Problem(DATA)).estimate) > 1e-6


def test_without_weight_it_is_undefined():
    statistic = on(GIVEN)(Problem(DATA))
    assert np.isnan(statistic(np.zeros(14)))


# -- its ends ------------------------------------------------------------------------------------------------------


def walked(n, seed=1):
    walker = small("walker")
    return Problem(walker.logs(n, rng=np.random.default_rng(seed)), walker.candidate)


def true_table(domain):
    """q of the candidate, (times, states, actions)."""
    process, table = domain.mdp, domain.candidate.table
    horizon, n_states = process.horizon, len(process.start_probs)
    ahead, result = np.zeros(n_states + 1), []
    for t in reversed(range(horizon)):
        probs = table if table.ndim == 2 else table[t]
        q = (process.transition_probs * (process.rewards + process.discount * ahead)).sum(axis=2)
        result.append(q)
        ahead = np.append((probs * q).sum(axis=1), 0.0)
    return np.array(result[::-1])


def test_a_model_without_error_is_the_estimate():
    """Deterministic logs explained by one model: no TD errors, every return is the model's value, to the bit."""
    problem = Problem(logs(GOLDEN_EPISODES, horizon=2, discount=0.5), TabularPolicy([[0.5, 0.5], [0.25, 0.75]]))
    settings = {"model": TabularModel(unseen_reward=2.0)}
    assert MAGIC(**settings, fit="shared")(problem).estimate == MB(**settings)(problem).estimate == 33 / 8


def test_all_model_where_nothing_speaks_against_it():
    """One start, so that the model's value has no variance, inside of a wide interval: all shares are its."""
    problem = walked(200)
    assert len(np.unique(problem.dataset.states[problem.dataset.offsets[:-1]])) == 1
    right = GivenValues(true_table(small("walker")))
    statistic = MAGIC(right, fit="shared", interval=0.999)(problem)
    assert blend_of(statistic).shares[0] == 1.0
    assert statistic.estimate == MB(right)(problem).estimate == pytest.approx(small("walker").true_value)


def test_all_importance_sampling_where_the_model_is_wildly_wrong():
    """However small the share, a wrong model would show: the farther off it is, the nearer to WDR."""
    problem, apart = walked(2000), []
    for size in (1e2, 1e4, 1e6):
        start = np.zeros_like(true_table(small("walker")))
        start[0] = size  # only the start's value is wrong, so that WDR itself stays what it is
        wrong = GivenValues(start)
        magic, wdr = MAGIC(wrong, fit="shared")(problem), WDR(wrong, fit="shared")(problem)
        assert blend_of(magic).values[-1] == pytest.approx(wdr.estimate, abs=1e-13 * size + 1e-9)
        apart.append(float(blend_of(magic).shares[0]))
    assert apart[-1] <= apart[1] <= apart[0] < 1e-3
    assert apart[-1] < 1e-10


@pytest.mark.parametrize("factor", [0.5, 1.5])
def test_it_goes_to_wdr_with_n(factor):
    """A model that is wrong by half: with more logs its share, and the distance from WDR, vanish."""
    wrong = GivenValues(factor * true_table(small("walker")))
    shares, apart = [], []
    for n in (20, 200, 20_000):
        problem = walked(n)
        magic, wdr = MAGIC(wrong, fit="shared")(problem), WDR(wrong, fit="shared")(problem)
        shares.append(float(blend_of(magic).shares[:1].sum()))
        apart.append(abs(magic.estimate - wdr.estimate) / standard_error(wdr.influence()))
    assert shares[2] < 1e-3
    assert shares[2] <= shares[0]
    assert apart[2] < 0.5


def test_one_episode_is_wdr():
    one = DATA.take([0])
    same(on(GIVEN)(Problem(one)).estimate, on(WDR(GivenValues(TABLE), fit="shared"))(Problem(one)).estimate)


def test_better_than_both_ends_with_a_good_model():
    """Mean squared errors over data sets: with true values MAGIC beats WDR without a model's help (PDWIS)."""
    walker, right = small("walker"), GivenValues(true_table(small("walker")))
    errors = {"magic": [], "pdwis": []}
    for seed in range(100):
        problem = walked(20, seed=seed)
        errors["magic"].append(MAGIC(right, fit="shared")(problem).estimate - walker.true_value)
        errors["pdwis"].append(tightrope.estimators.PDWIS()(problem).estimate - walker.true_value)
    assert np.square(errors["magic"]).mean() < 0.5 * np.square(errors["pdwis"]).mean()


# -- against a real bootstrap of whole episodes --------------------------------------------------------------------


def test_the_interval_and_the_covariance_are_those_of_a_bootstrap_of_episodes():
    problem, rng, count = walked(400), np.random.default_rng(5), 4000
    wrong = GivenValues(0.8 * true_table(small("walker")))
    statistic = MAGIC(wrong, fit="shared", interval=0.8)(problem)
    blend = blend_of(statistic)
    rows = rng.multinomial(400, np.full(400, 1 / 400), size=count).astype(float)
    replicates = np.array([blend_of(statistic, row).values for row in rows])
    error = sqrt(blend.covariance[-1, -1])
    low, high = np.quantile(replicates[:, -1], [0.1, 0.9])
    half = norm.ppf(0.9) * error
    noise = 4 * sqrt(0.09 / count) / norm.pdf(norm.ppf(0.9))  # four standard errors of a quantile
    skew = 0.1  # of a standard error: what the normal interval leaves out at this n
    assert abs(low - (blend.values[-1] - half)) < (noise + skew) * error
    assert abs(high - (blend.values[-1] + half)) < (noise + skew) * error
    spread = np.sqrt(np.diag(blend.covariance))[1:]  # the model's value from one start does not move
    np.testing.assert_allclose(replicates.std(axis=0)[1:], spread, rtol=0.08)
    correlation = blend.covariance[1:, 1:] / np.outer(spread, spread)
    np.testing.assert_allclose(np.corrcoef(replicates[:, 1:].T), correlation, atol=0.06)


# -- lengths, settings, bounds -------------------------------------------------------------------------------------


def test_lengths_of_long_horizons():
    episodes = arbitrary(12, 40, 3, candidate, seed=1)
    policy = TabularPolicy(np.resize(POLICY.table, (40, 4, 2)))
    data = logs(episodes, horizon=40, discount=0.97)
    table = np.resize(TABLE, (40, 4, 2))
    statistic = MAGIC(GivenValues(table), fit="shared")(Problem(data, policy))
    blend, lengths = blend_of(statistic), statistic.model.logs.lengths
    assert len(blend.values) == len(lengths) <= MOST_LENGTHS + 1
    assert lengths[[0, 1, -1]].tolist() == [0, 1, 40]
    assert (np.diff(lengths) > 0).all()
    ends = WDR(GivenValues(table), fit="shared")(Problem(data, policy)).estimate
    same(blend.values[-1], ends, 1e-10)


def test_a_discount_of_zero_blends_the_first_step():
    data = replace(DATA, discount=0.0)
    assert on(GIVEN)(Problem(data)).model.logs.lengths.tolist() == [0, 1]


def test_settings():
    for wrong in (-0.1, 1.0):
        with pytest.raises(TightropeError, match="interval must be a coverage"):
            MAGIC(interval=wrong)
    with pytest.raises(TightropeError, match="fit must be"):
        MAGIC(fit="both")
    assert MAGIC().corrects_model
    assert MAGIC().without_model == "pdwis"
    assert MAGIC().fit == "auto"


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("fit", ["cross", "shared", "refit"])
def test_bounds(method, fit):
    problem = walked(40)
    settings = {"estimator": MAGIC(fit=fit), "method": method, "n_resamples": 100, "seed": 1}
    low = tightrope.lower_bound(problem.dataset, problem.policy, **settings)
    high = tightrope.upper_bound(problem.dataset, problem.policy, **settings)
    assert low.value < high.value
    assert low.standard_error > 0


def test_by_default_the_model_is_fitted_again_where_that_is_quick():
    """Tabular models are; those of fitted Q are cross-fitted, and so are given values, which stay what they are."""
    problem, row = walked(40), np.random.default_rng(1).exponential(size=40)
    given = GivenValues(true_table(small("walker")))
    for model, fit in ((TabularModel(), "refit"), (FittedQ(), "cross"), (given, "shared")):
        by_default, named = MAGIC(model)(problem), MAGIC(model, fit=fit)(problem)
        assert by_default.estimate == named.estimate
        assert by_default(row) == named(row)
    assert MAGIC(fit="cross")(problem)(row) != MAGIC()(problem)(row)


def test_studentized_needs_derivatives():
    problem = walked(40)
    settings = {"method": "studentized", "n_resamples": 100}
    for estimator in ("magic", MAGIC(fit="cross"), MAGIC(fit="refit")):
        bound = tightrope.lower_bound(problem.dataset, problem.policy, estimator=estimator, **settings)
        assert np.isfinite(bound.value)
    with pytest.raises(BoundError, match="standard error of every replicate"):
        tightrope.lower_bound(problem.dataset, problem.policy, estimator=MAGIC(FittedQ(), fit="refit"), **settings)


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("name", ["walker", "bonus", "decline"])
def test_influence_goes_through_the_model(name, clustered):
    """A model per row of weights: its values move too. By central differences, and row by row to the bit."""
    domain = small(name)
    data = replace(domain.logs(25, rng=np.random.default_rng(0)), clusters=np.arange(25) % 7 if clustered else None)
    statistic = MAGIC(fit="refit")(Problem(data, domain.candidate))
    rows, step = np.random.default_rng(0).exponential(size=(9, 25)) + 0.2, 1e-6 * np.eye(25)
    slopes = (statistic(rows[0] + step) - statistic(rows[0] - step)) / 2e-6
    got = statistic.model.influences(rows)
    np.testing.assert_allclose(got[0], slopes, rtol=1e-4, atol=1e-6 * np.abs(slopes).max())
    assert (np.abs((got * rows).sum(axis=1)) < 1e-9 * np.abs(got * rows).sum(axis=1)).all()
    for place, row in enumerate(rows):
        np.testing.assert_array_equal(got[place], statistic.model.influences(row[None])[0])
        assert statistic(rows)[place] == statistic(row)


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("interval", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_influence_is_the_derivative(seed, interval, clustered):
    """Of returns, covariance, biases and shares together, by central differences."""
    episodes = arbitrary(20, HORIZON, 3, candidate, seed=seed)
    clusters = np.arange(20) % 7 if clustered else None
    data = replace(logs(episodes, horizon=HORIZON, discount=DISCOUNT), clusters=clusters)
    statistic = replace(GIVEN, interval=interval)(Problem(data, POLICY))
    row, step = np.random.default_rng(seed).exponential(size=20) + 0.2, 1e-6 * np.eye(20)
    slopes = (statistic(row + step) - statistic(row - step)) / 2e-6
    blend = blend_of(statistic, row)
    assert (blend.shares > 0).sum() > 1, "one return alone: the shares would not move"
    got = statistic.model.influences(row[None])[0]
    np.testing.assert_allclose(got, slopes, rtol=1e-4, atol=1e-6 * np.abs(slopes).max())
    assert abs(got @ row) < 1e-9 * np.abs(got * row).sum()


def test_no_weight_no_influence():
    assert np.isnan(on(GIVEN)(Problem(DATA)).model.influences(np.zeros((1, 14)))).all()


def test_copies_in_a_cluster_add_nothing():
    """Each episode twice, as a cluster: the blend is that of the episodes alone, which without clusters it is not."""
    twice = DATA.take(np.repeat(np.arange(14), 2))
    clustered = replace(twice, clusters=np.repeat(np.arange(14), 2))
    alone = on(GIVEN)(Problem(DATA)).estimate
    same(on(GIVEN)(Problem(clustered)).estimate, alone, 1e-10)
    assert abs(on(GIVEN)(Problem(twice)).estimate - alone) > 1e-4


def test_the_covariance_of_clusters_is_that_of_their_sums():
    """Unlike episodes that are drawn together: a cluster moves the mean by what all of its episodes do."""
    whose = np.arange(14) % 5
    blend = blend_of(on(GIVEN)(Problem(replace(DATA, clusters=whose))), np.arange(1.0, 15.0))
    expected = np.zeros((len(blend.values),) * 2)
    for cluster in range(5):
        inside = np.flatnonzero(whose == cluster)
        moved = sum(blend.weights[i] * blend.moved[i] for i in inside) / sum(blend.weights[i] for i in inside)
        expected += sum(blend.weights[i] for i in inside) * np.outer(moved, moved) / 4
    same(blend.covariance, expected, 1e-12)


# -- the least over the simplex ------------------------------------------------------------------------------------


def matrices(seed):
    """Covariances of any rank, with a corner of no error in every third, plus a bias."""
    rng = np.random.default_rng(seed)
    count, rank = int(rng.integers(1, 9)), int(rng.integers(1, 10))
    factor = rng.normal(size=(rank, count)) + rng.normal()
    if seed % 3 == 0 and count > 1:
        factor[:, 0] = 0.0
    bias = np.maximum(rng.normal(size=count), 0.0)
    return factor.T @ factor * 10.0 ** rng.integers(-6, 7) + np.outer(bias, bias)


@pytest.mark.parametrize("seed", range(40))
def test_the_least_over_the_simplex(seed):
    """Not above what SLSQP, non-negative least squares and all supports reach; the same shares where they are sharp."""
    errors = matrices(seed)
    count, size = len(errors), np.diag(errors).max()
    shares = nearest_to_zero(errors)
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1.0, abs=1e-12)
    value = shares @ errors @ shares / size
    even = np.full(count, 1 / count)
    slsqp = minimize(
        lambda x: x @ errors @ x / size,
        even,
        jac=lambda x: 2 * errors @ x / size,
        bounds=[(0, 1)] * count,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(count)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    ).x
    assert value < slsqp @ errors @ slsqp / size + 1e-9
    roots, vectors = np.linalg.eigh(errors / size)
    root = np.sqrt(np.maximum(roots, 0.0))[:, None] * vectors.T
    strict = 1e3  # how hard the sum of one is held to
    other = nnls(np.vstack([root, np.full((1, count), strict)]), np.append(np.zeros(count), strict))[0]
    assert value < other @ errors @ other / size / other.sum() ** 2 + 1e-9
    slow = best_shares(errors)
    if slow is not None:
        assert value < slow @ errors @ slow / size + 1e-12
        if roots[0] > 1e-6:
            np.testing.assert_allclose(shares, slow, atol=1e-8)


def test_where_all_are_alike_the_last_one_wins():
    assert nearest_to_zero(np.zeros((3, 3))).tolist() == [0.0, 0.0, 1.0]
    assert nearest_to_zero(np.full((3, 3), 2.0)).tolist() == [0.0, 0.0, 1.0]
    assert nearest_to_zero(np.ones((1, 1))).tolist() == [1.0]
    assert nearest_to_zero(np.diag([0.0, 1.0, 1.0])).tolist() == [1.0, 0.0, 0.0]
