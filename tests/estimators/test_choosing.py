"""Estimators that choose among others: by hand, against each member, and the choice made anew under every row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tests.field import Question
from tests.field.slope import covariance, pdis, pdwis, wis
from tests.laws.laws import logs, same
from tests.oracle import random_episodes
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.problem import Problem
from tightrope.base.warnings import coded
from tightrope.domains import small
from tightrope.estimators import DR, IS, MB, PDIS, PDWIS, WDR, WIS, Opera, Slope
from tightrope.estimators.choosing import covariances
from tightrope.estimators.clustered import by_cluster
from tightrope.estimators.gain import gain
from tightrope.functional.resampling import draw_weights
from tightrope.functional.standard_errors import standard_error
from tightrope.models import TabularModel
from tightrope.studies.problems import problem as studied

BOTH = pytest.mark.parametrize("cls", [Slope, Opera])
RANGE = (-5.0, 6.0)


def walker(n=12, seed=5):
    made = small("walker")
    return Problem(made.logs(n, rng=np.random.default_rng(seed)), made.candidate)


# -- members -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("member", [PDIS(), WIS(), PDWIS(), WDR(), DR(fit="shared"), MB()], ids=lambda one: one.name)
def test_parts_are_the_members_own(member):
    """Values and standard errors as the members have them by themselves."""
    problem = walker()
    values, slopes = Slope(choices=(IS(), member))(problem).model.parts(np.ones((1, 12)))
    alone = member(problem)
    same(values[0, 1], alone.estimate)
    same(12 * slopes[0, 1], alone.influence(), 1e-9)
    errors = np.sqrt(covariances(slopes, np.ones((1, 12)), 12)[0].diagonal())
    same(errors[1], standard_error(alone.influence()), 1e-9)


def test_slopes_under_weights_are_derivatives():
    """By a small change of each weight, under weights that are not alike."""
    problem = walker(8)
    weights, step = np.array([1.0, 0.5, 2.0, 1.0, 3.0, 0.2, 1.0, 1.0]), 1e-6
    model = Slope(choices=("pdis", "wis", "pdwis", "mb"))(problem).model
    _, slopes = model.parts(weights[None])
    for i in range(8):
        more, less = weights + step * (np.arange(8) == i), weights - step * (np.arange(8) == i)
        change = (model.parts(more[None])[0] - model.parts(less[None])[0])[0] / (2 * step)
        same(slopes[0, :, i], change, 1e-4)


@pytest.mark.parametrize(
    "chosen", [Slope(("pdis", "wis", "mb"), width=0.1), Opera(("pdis", "pdwis", "mb")), Opera(("wis", "pdwis", "wdr"))]
)
def test_influences_are_derivatives_of_what_is_picked(chosen):
    """By a small change of each weight: OPERA's shares change too."""
    statistic = chosen(walker(15))
    weights, step = np.array([1.0, 0.5, 2.0, 1.0, 3.0] * 3), 1e-5
    slopes = statistic.model.influences(weights[None])[0]
    for i in range(15):
        change = step * (np.arange(15) == i)
        same(slopes[i], float(statistic(weights + change) - statistic(weights - change)) / (2 * step), 1e-4)
    assert abs(weights @ slopes) < 1e-5 * np.abs(slopes).max()


def test_covariances_do_not_hang_on_the_scale_of_weights():
    rng = np.random.default_rng(0)
    slopes, weights = rng.normal(size=(1, 3, 7)), rng.exponential(size=(1, 7))
    same(covariances(slopes, weights, 7), covariances(slopes / 9, 9 * weights, 7))


def test_covariances_in_loops():
    data = logs(random_episodes(9, 6, seed=2), horizon=6, reward_range=RANGE)
    weights = [0.5, 1.0, 2.0, 0.1, 1.0, 1.0, 3.0, 0.7, 1.0]
    question = Question(random_episodes(9, 6, seed=2), None, 6, 1.0, weights, RANGE)
    slow = [member(question)[1] for member in (pdis, wis, pdwis)]
    _, slopes = Slope(choices=("pdis", "wis", "pdwis"))(Problem(data)).model.parts(np.array([weights]))
    expected = [[covariance(question, one, other) for other in slow] for one in slow]
    same(covariances(slopes, np.array([weights]), 9)[0], expected, 1e-10)


WHOSE = np.array([0, 2, 1, 2, 0, 2, 1, 3, 4, 4, 2, 0, 5, 6, 6])  # whose episode each of fifteen is
WEIGHTS = np.array([1.0, 0.5, 2.0, 1.0, 3.0] * 3)


def by_patient(n=15):
    problem = walker(n)
    return Problem(replace(problem.dataset, clusters=WHOSE[:n]), problem.policy)


def test_covariances_of_clusters_in_loops():
    """Σ_c (Σ_i w_i s_i)(Σ_i w_i s_i)ᵀ / Σ_i w_i over the episodes i of each of seven clusters, times Σw / 6."""
    model = Opera(choices=("pdis", "wis", "pdwis"))(by_patient()).model
    for weights in (np.ones(15), WEIGHTS, np.where(WHOSE == 2, 0.0, WEIGHTS)):
        _, slopes = model.parts(weights[None])
        expected = np.zeros((3, 3))
        for c in range(7):
            moved, mass = np.zeros(3), 0.0
            for i in np.flatnonzero(c == WHOSE):
                moved, mass = moved + weights[i] * slopes[0, :, i], mass + weights[i]
            expected += np.outer(moved, moved) / mass if mass else 0.0
        same(model.covariances(weights[None])[0], expected * weights.sum() / 6, 1e-10)


def test_copies_in_a_cluster_make_no_member_surer():
    """Two copies of each episode: without their clusters intervals would be 1/√2 as wide."""
    problem = walker(40)
    copies = np.repeat(np.arange(40), 2)
    many = replace(problem.dataset.take(copies), episode_ids=np.arange(80), clusters=copies)
    estimator = Slope(choices=("pdis", "wis", "pdwis", "mb"))
    model = estimator(Problem(many, problem.policy)).model
    same(model.covariances(np.full((1, 80), 0.5)), estimator(problem).model.covariances(np.ones((1, 40))), 1e-9)
    blind = estimator(Problem(replace(many, clusters=None), problem.policy)).model
    ratio = blind.covariances(np.ones((1, 80))) / model.covariances(np.ones((1, 80)))
    same(ratio, np.full((1, 4, 4), 39 / 79), 1e-9)


def test_influences_are_derivatives_where_clusters_are_drawn():
    """By a small change of each episode's weight, and of each cluster's; OPERA's shares go by clusters."""
    problem, step = by_patient(), 1e-5
    statistic = Opera(("pdis", "pdwis", "mb"))(problem)
    slopes = statistic.model.influences(WEIGHTS[None])[0]
    for i in range(15):
        change = step * (np.arange(15) == i)
        same(slopes[i], float(statistic(WEIGHTS + change) - statistic(WEIGHTS - change)) / (2 * step), 1e-4)
    whole = by_cluster(statistic, problem.clusters)
    weights = np.array([1.0, 2.0, 0.5, 3.0, 1.0, 0.0, 1.0])
    slopes = whole.model.influences(weights[None])[0]
    for c in np.flatnonzero(weights):
        change = step * (np.arange(7) == c)
        same(slopes[c], float(whole(weights + change) - whole(weights - change)) / (2 * step), 1e-4)


# -- the choice ----------------------------------------------------------------------------------------------------


def places(values, errors, width=0.5):
    """The choice among members with these standard errors: reach is 2 · ½ standard errors, one of each."""
    errors = np.asarray(errors, dtype=float)
    slopes = errors[:, None] * np.array([1.0, -1.0]) / 2  # of two episodes: covariance (s² + s²) · 2 / 1 = error²
    squared = covariances(slopes[None], np.ones((1, 2)), 2)
    return int(Slope(width=width).places(np.array([values], dtype=float), squared)[0])


@pytest.mark.parametrize(
    ("values", "errors", "expected"),
    [
        ([0.0, 1.0, 2.0], [3.0, 2.0, 1.0], 2),  # −3 to 3, −1 to 3, 1 to 3: all meet
        ([0.0, 1.0, 5.0], [3.0, 2.0, 1.0], 1),  # 4 to 6 meets none
        ([0.0, 4.0, 0.0], [1.0, 1.0, 1.0], 0),  # the second does not meet the first: the third is out too
        ([0.0, 3.0, -3.0], [2.0, 1.0, 1.0], 1),  # each meets the first, but not each other
        ([0.0, 2.0, 2.0], [1.0, 1.0, 0.0], 1),  # touching is meeting, and 2 is not in −1 to 1
        ([0.0, np.nan, 1.0], [2.0, 1.0, 1.0], 2),  # an undefined one excludes nothing
        ([0.0, 1.0, np.nan], [2.0, 1.0, 1.0], 1),  # and is not chosen
        ([np.nan, 1.0, 9.0], [2.0, 1.0, 1.0], 1),
    ],
)
def test_lepskis_choice_by_hand(values, errors, expected):
    assert places(values, errors) == expected


def test_a_wide_interval_chooses_the_last_and_a_narrow_one_the_first():
    problem = walker(40)
    first, last = (Slope(width=width)(problem).estimate for width in (1e-6, 1e6))
    same(first, PDIS()(problem).estimate)
    same(last, MB()(problem).estimate)


def test_shares_by_hand():
    """Independent members with variances 1, 2 and 4: shares of 4/7, 2/7 and 1/7, up to the ridge."""
    n = 6
    slopes = np.zeros((1, 3, n))
    for k, variance in enumerate((1.0, 2.0, 4.0)):
        slopes[0, k, 2 * k : 2 * k + 2] = np.sqrt(variance * (n - 1) / (2 * n)) * np.array([1.0, -1.0])
    np.testing.assert_allclose(
        Opera().shares(covariances(slopes, np.ones((1, n)), n))[0], [4 / 7, 2 / 7, 1 / 7], atol=1e-5
    )


@pytest.mark.parametrize("kind", ["alike", "still", "undefined"])
def test_shares_where_nothing_tells_members_apart(kind):
    slopes = {"alike": np.ones((1, 3, 4)), "still": np.zeros((1, 3, 4)), "undefined": np.full((1, 3, 4), np.nan)}[kind]
    np.testing.assert_allclose(Opera().shares(covariances(slopes, np.ones((1, 4)), 4))[0], [1 / 3] * 3)


def test_no_other_blend_has_less_variance():
    problem = walker(30)
    squared = Opera()(problem).model.covariances(np.ones((1, 30)))
    errors, shares = squared[0], Opera().shares(squared)[0]
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = shares + 0.1 * rng.normal(size=4)
        other /= other.sum()
        assert shares @ errors @ shares <= other @ errors @ other * (1 + 1e-4)


@BOTH
def test_the_choice_is_made_anew_under_every_row(cls):
    """Each row equals the choice on a data set in which episodes are repeated as often (as many as there were)."""
    made = small("walker")
    data = made.logs(15, rng=np.random.default_rng(1))
    chosen = cls(choices=("pdis", "pdwis", "mb"), **({"width": 0.2} if cls is Slope else {}))
    rows = draw_weights(15, 40, seed=2)
    values = chosen(Problem(data, made.candidate))(rows)
    again = [
        chosen(Problem(data.take(np.repeat(np.arange(15), row)), made.candidate)).estimate for row in rows.astype(int)
    ]
    same(values, again, 1e-8)
    if cls is Slope:
        members = np.stack([one(Problem(data, made.candidate))(rows) for one in (PDIS(), PDWIS(), MB())], axis=1)
        assert len(set(np.argmin(np.abs(members - values[:, None]), axis=1))) > 1, "one choice: this would test nothing"


def test_no_weight_is_undefined():
    assert np.isnan(Slope(choices=("pdis", "wis"))(walker())(np.zeros(12)))
    assert np.isnan(Opera(choices=("pdis", "wis"))(walker())(np.zeros(12)))


# -- what others are told ------------------------------------------------------------------------------------------


@BOTH
def test_traits_are_those_of_the_members(cls):
    assert cls().model == "auto"
    assert cls().chooses
    assert cls().rests_on_model  # mb may be the one
    assert gain(cls()).rests_on_model
    assert gain(cls()).chooses
    assert cls().shares_weights
    plain = cls(choices=("is", "pdis"))
    assert (plain.model, plain.rests_on_model, plain.shares_weights, plain.uses_ratios) == (None, False, False, True)
    assert not cls(choices=("mb", MB(TabularModel()))).uses_ratios
    assert cls(choices=("pdis", WDR(fit="shared"))).fitted_to_all
    assert cls(model=TabularModel(unseen="worst")).members[3] == MB(TabularModel(unseen="worst"))
    assert [one.anchor for one in cls(choices=("pdis", "mb")).anchored("high").members] == ["high", "high"]
    assert not WIS().chooses


@BOTH
def test_a_bound_says_that_the_choice_is_on_the_same_data(cls):
    made = small("clinic")
    data = made.logs(60, rng=np.random.default_rng(0))
    bound = tightrope.lower_bound(data, made.candidate, estimator=cls.name, method="percentile", n_resamples=200)
    (told,) = coded(bound.warnings, "chosen")
    assert told.against == "resampling"
    assert f"{cls.name.upper()} chooses among estimators by these very logs" in str(bound)
    assert bound.value <= bound.estimate
    plain = tightrope.lower_bound(data, made.candidate, estimator="wis", method="percentile", n_resamples=200)
    assert not coded(plain.warnings, "chosen")


def test_slope_never_rests_on_less_than_it_could():
    """Where the model is wrong and n is large the intervals part, and SLOPE stays with WDR."""
    process = studied("hidden")
    problem = Problem(process.logs(4000, rng=np.random.default_rng(0)), process.candidate)
    same(Slope()(problem).estimate, WDR()(problem).estimate)


@BOTH
def test_refusals(cls):
    with pytest.raises(
        TightropeError, match=r'choices must be "is".* or an estimator object; got .wdrr.. Did you mean "wdr"'
    ):
        cls(choices=("pdis", "wdrr"))
    with pytest.raises(TightropeError, match="choices must be two estimators at least"):
        cls(choices=("pdis",))
    with pytest.raises(TightropeError, match="two estimators at least, as a tuple; got 'pdis'"):
        cls(choices="pdis")


@BOTH
def test_a_member_without_standard_errors_is_refused(cls):
    """WDR with a model per resample: nobody knows its derivative."""
    rigid = WDR(fit="refit")
    with pytest.raises(BoundError, match=rf"{cls.name} compares standard errors, and wdr has none on these logs"):
        tightrope.estimate(walker().dataset, walker().policy, estimator=cls(choices=("pdis", rigid)))


@pytest.mark.parametrize("width", [0, -1, np.nan, "wide"])
def test_a_width_is_a_number_above_0(width):
    with pytest.raises(TightropeError, match="width must be a number above 0; got"):
        Slope(width=width)
