"""Importance sampling with an estimated behaviour policy through the laws, against slow definitions and by hand.

The estimate is part of the statistic: integer weights equal a rebuild that counts or fits anew on the repeats.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.tree import DecisionTreeClassifier

from tests.laws import laws
from tests.laws.laws import SAMPLING, logs, same
from tests.laws.test_models import DATA, DISCOUNT, EPISODES, HORIZON, POLICY, REPEATS, law_padding, law_shift
from tests.oracle import SLOW, Episode, counted_behavior, mdps
from tightrope import GaussianPolicy, SoftmaxPolicy, TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.behaviors import ClassifierBehavior, GaussianRegression, LogisticBehavior, TabularBehavior
from tightrope.estimators import DR, WDR
from tightrope.functional.resampling import leave_one_out_weights
from tightrope.models import GivenValues, TabularModel

TABLE = np.random.default_rng(11).uniform(-3.0, 4.0, (HORIZON, 4, 2))  # q̂, right about nothing
TABLE[:, 3] = 0.0  # where the steps of finished episodes are written out
COUNTED = {name: make() for name, make in SAMPLING.items()}
COUNTED |= {f"{cls.name}-given": cls(GivenValues(TABLE), fit="shared") for cls in (DR, WDR)}


def on(estimator, behavior, policy=POLICY):
    """What the laws call: the estimator with the candidate and this estimate of the behaviour policy."""
    return lambda problem: estimator(Problem(problem.dataset, policy, behavior))


# -- by hand -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "value"), [("is", 51 / 16), ("pdis", 3.0), ("wis", 3.4), ("pdwis", 3.7)])
def test_two_episodes_by_hand(name, value):
    """One state; actions 0, 1 and 0: π̂_b = (2/3, 1/3). Against (1/2, 1/2) the ratios are 3/4, 9/8 and 3/4."""
    episodes = [
        Episode([1.0, 2.0], [1.0, 1.0], [0.5, 0.5], True, [0, 0], [0, 1]),
        Episode([4.0], [1.0], [0.5], True, [0], [0]),
    ]
    make = on(COUNTED[name], TabularBehavior(), policy=None)
    same(make(Problem(logs(episodes, horizon=2))).estimate, value)
    if name == "pdwis":  # the first episode twice: π̂_b = (3/5, 2/5), ratios 5/6, 25/24 and 5/6
        same(make(Problem(logs(episodes, horizon=2)))([2, 1]), 24 / 7)


# -- against a slow definition -------------------------------------------------------------------------------------


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("name", SAMPLING)
@pytest.mark.parametrize("weights", [[1] * 14, REPEATS, [0.5, 2.5] * 7], ids=["ones", "repeats", "fractions"])
def test_slow_definition(name, timed, weights):
    make = on(COUNTED[name], TabularBehavior(timed=timed))
    expected = SLOW[name](counted_behavior(EPISODES, weights, timed=timed), DISCOUNT, HORIZON, weights)
    same(make(Problem(DATA))(np.array(weights)), expected)


# -- laws ----------------------------------------------------------------------------------------------------------

LAWS = {
    "ones": lambda make: laws.law_ones(make, DATA),
    "integer weights": lambda make: laws.law_integer_weights(make, DATA, REPEATS),
    "order": lambda make: laws.law_order(make, DATA, np.random.default_rng(3).permutation(len(EPISODES))),
    "duplication": lambda make: laws.law_duplication(make, DATA),
    "batch": lambda make: laws.law_batch(make, DATA, np.array([REPEATS * 2, range(28)], float).reshape(2, 2, 14)),
    "padding": lambda make: law_padding(make, DATA),
    "shift": lambda make: law_shift(make, DATA),
}
UNSHIFTED = {("shift", name): laws.UNSHIFTED for name in ("is", "pdis", "dr-given")}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mode", COUNTED)
@pytest.mark.parametrize("timed", [False, True])
def test_law(law, mode, timed):
    if (law, mode) in UNSHIFTED:
        pytest.skip(f"{law}, {mode}: {UNSHIFTED[law, mode]}")
    LAWS[law](on(COUNTED[mode], TabularBehavior(timed=timed)))


def test_same_bits_however_the_work_is_cut(monkeypatch):
    laws.law_partition(on(COUNTED["pdwis"], TabularBehavior()), DATA, monkeypatch)


@pytest.mark.parametrize("mdp", mdps(), ids=lambda mdp: mdp.name.replace(" ", "-"))
@pytest.mark.parametrize("name", SAMPLING)
def test_enumeration(name, mdp):
    """All trajectories, weighted by their probability, hold the behaviour policy itself."""

    def make(problem):
        return COUNTED[name](Problem(problem.dataset, problem.policy, TabularBehavior(timed=True)))

    laws.law_enumeration(make, mdp)
    blind = replace(laws.enumerated(mdp)[0], behavior_log_probs=None)
    same(make(Problem(blind))(laws.enumerated(mdp)[1]), mdp.value(mdp.candidate))


@pytest.mark.parametrize("cls", [DR, WDR])
def test_enumeration_with_a_wrong_model(cls):
    early = mdps()[0]
    table = np.random.default_rng(1).normal(size=(early.horizon, 2, 2))
    data, probs = laws.enumerated(early)
    policy = [[early.candidate(s, t) for s in (0, 1)] for t in range(early.horizon)]
    statistic = cls(GivenValues(table), fit="shared")(Problem(data, np.array(policy), TabularBehavior()))
    same(statistic(probs), early.value(early.candidate))


def test_a_model_and_a_behaviour_policy_per_resample():
    """Both refitted: a rebuild on the repeats gives the same."""
    laws.law_integer_weights(on(WDR(TabularModel(unseen_reward=-1.0), fit="refit"), TabularBehavior()), DATA, REPEATS)


# -- mutants -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frozen:
    """The mistake of fitting the behaviour policy once, on all the data, and resampling around it."""

    name = "frozen"

    def prepare(self, dataset):
        real = TabularBehavior().prepare(dataset)
        once = real.fit(np.ones(dataset.n_trajectories))
        return replace_fit(real, lambda weights: once)


def replace_fit(real, fit):
    mutant = object.__new__(type("Mutant", (type(real),), {"fit": lambda self, weights: fit(weights)}))
    mutant.__dict__.update(real.__dict__)
    return mutant


@pytest.mark.parametrize("name", SAMPLING)
def test_a_behaviour_policy_that_is_not_refitted_breaks_a_law(name):
    with pytest.raises(AssertionError):
        laws.law_integer_weights(on(COUNTED[name], Frozen()), DATA, REPEATS)


# -- states that do not recur --------------------------------------------------------------------------------------


def wandering(n, horizon, *, discrete, seed=5):
    """Logs over two-dimensional states, and a candidate."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, horizon + 1, n)
    lengths[0] = horizon
    states = rng.normal([3.0, -1.0], [1.0, 10.0], (lengths.sum(), 2))
    slopes = np.array([[0.0, 0.4, -0.3], [0.0, 0.02, 0.05]])
    if discrete:
        chances = np.exp(states @ slopes)
        chances = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
        actions = np.array(["go", "stay", "turn"])[(rng.random((len(states), 1)) > chances).sum(axis=1)]
        policy = None
    else:
        actions = states @ slopes[:, 1:] + rng.normal(size=(len(states), 2)) @ np.array([[1.0, 0.4], [0.0, 0.7]])
        policy = GaussianPolicy(lambda s, t: s @ slopes[:, 1:] + 0.1, [[0.8, 0.1], [0.1, 0.6]])
    data = TrajectoryDataset(
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        rewards=rng.normal(size=len(states)),
        terminated=np.ones(n, dtype=bool),
        horizon=horizon,
        discount=0.9,
        states=states,
        actions=actions,
        eval_log_probs=np.log(rng.uniform(0.2, 0.5, len(states))) if discrete else None,
    )
    return data, policy


FITTED = {"logistic": (LogisticBehavior(), True), "gaussian": (GaussianRegression(), False)}
SMOOTH = {"tabular": TabularBehavior(), **{name: behavior for name, (behavior, _) in FITTED.items()}}


def problem_of(name):
    if name == "tabular":
        return Problem(DATA, POLICY, TabularBehavior())
    behavior, discrete = FITTED[name]
    data, policy = wandering(30, 4, discrete=discrete)
    return Problem(data, policy, behavior)


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize("estimator", ["is", "pdwis"])
def test_laws_of_regressions(name, estimator):
    behavior, discrete = FITTED[name]
    data, policy = wandering(30, 4, discrete=discrete)
    make = on(COUNTED[estimator], behavior, policy)
    weights = np.random.default_rng(1).integers(0, 4, 30)
    laws.law_ones(make, data)
    laws.law_order(make, data, np.random.default_rng(3).permutation(30))
    laws.law_duplication(make, data)
    laws.law_batch(make, data, np.stack([weights, weights[::-1] + 1]).astype(float))
    laws.law_integer_weights(make, data, weights)


def test_gaussian_fit_by_least_squares():
    """Repeats of the rows, NumPy's least squares and SciPy's density."""
    data, _ = wandering(30, 4, discrete=False)
    weights = np.random.default_rng(1).integers(1, 4, 30)
    fitted = GaussianRegression().prepare(data)
    found = fitted.log_probs(fitted.fit(weights.astype(float)))
    repeats = np.repeat(weights, data.lengths)
    x = np.column_stack([np.ones(data.n_steps), data.states])
    rows, targets = np.repeat(x, repeats, axis=0), np.repeat(data.actions, repeats, axis=0)
    slopes, *_ = np.linalg.lstsq(rows, targets, rcond=None)
    errors = targets - rows @ slopes
    covariance = errors.T @ errors / len(errors)
    expected = [multivariate_normal(m, covariance).logpdf(a) for m, a in zip(x @ slopes, data.actions, strict=True)]
    same(found, expected, 1e-9)


@pytest.mark.parametrize(
    ("behavior", "tolerance"),
    [(LogisticBehavior(), 1e-6), (ClassifierBehavior(DecisionTreeClassifier()), 1e-12)],
    ids=["logistic", "tree"],
)
@pytest.mark.parametrize("weights", [[1] * 14, REPEATS], ids=["ones", "repeats"])
def test_saturated_fits_are_counts(behavior, tolerance, weights):
    """With a column for each state, a logistic regression and a full tree can only repeat the shares."""
    expected = on(COUNTED["pdwis"], TabularBehavior())(Problem(DATA))(np.array(weights))
    same(on(COUNTED["pdwis"], behavior)(Problem(DATA))(np.array(weights)), expected, tolerance)


def test_features_may_be_given():
    def with_time(states, t):
        return np.column_stack([np.ones(len(t)), states == 1, states == 2, t])

    statistic = on(COUNTED["wis"], LogisticBehavior(with_time))(Problem(DATA))
    assert abs(statistic.estimate - on(COUNTED["wis"], LogisticBehavior())(Problem(DATA)).estimate) > 1e-3


def test_separated_actions_stay_finite():
    """Action 1 exactly where the state is above 0: the likelihood has no maximum; probabilities near one are right."""
    states = np.linspace(-2, 2, 40)
    data = TrajectoryDataset(
        offsets=np.arange(41),
        rewards=np.ones(40),
        terminated=np.ones(40, dtype=bool),
        horizon=1,
        states=states,
        actions=(states > 0).astype(int),
    )
    policy = SoftmaxPolicy(lambda s, t: np.column_stack([-s, s]))
    statistic = COUNTED["wis"](Problem(data, policy, LogisticBehavior()))
    assert np.isfinite(statistic(np.random.default_rng(0).integers(0, 3, (5, 40)))).all()
    fitted = statistic.model.problem.fits
    assert fitted.behavior.log_probs(fitted(np.ones(40))).min() > -0.02


# -- derivatives and the jackknife ---------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", SAMPLING)
@pytest.mark.parametrize("name", SMOOTH)
def test_influence_is_the_derivative(name, estimator):
    """Through the ratios and through the fit, at weights that are not all alike."""
    problem = problem_of(name)
    statistic, n = COUNTED[estimator](problem), problem.dataset.n_trajectories
    weights = 1.0 + np.arange(n) % 3
    slopes = statistic.model.influences(weights[None])[0]
    h = 1e-4
    for i in range(0, n, 5):
        up, down = (weights + sign * h * (np.arange(n) == i) for sign in (1, -1))
        assert abs((statistic(up) - statistic(down)) / (2 * h) - slopes[i]) < 1e-6 * np.abs(slopes).max()
    assert abs(slopes @ weights) < 1e-9 * np.abs(slopes * weights).sum()  # only proportions matter


@pytest.mark.parametrize("name", SMOOTH)
def test_leaving_one_out_is_a_refit(name):
    problem = problem_of(name)
    n = problem.dataset.n_trajectories
    statistic = COUNTED["wis"](problem)
    rebuilt = [
        COUNTED["wis"](replace(problem, dataset=problem.dataset.take(np.arange(n) != i))).estimate for i in range(n)
    ]
    same(statistic.leave_one_out(), rebuilt, 1e-10)
    same(statistic(leave_one_out_weights(n)), rebuilt, 1e-10)


def test_a_classifier_has_no_derivative():
    statistic = on(COUNTED["wis"], ClassifierBehavior(DecisionTreeClassifier()))(Problem(DATA))
    assert statistic.standard_errors(np.ones((1, 14)), (14,)) is None
    same(statistic.leave_one_out(), on(COUNTED["wis"], TabularBehavior())(Problem(DATA)).leave_one_out())


def test_a_resample_without_a_fit_is_undefined():
    """Two episodes of one step cannot determine three coefficients and a covariance."""
    data, policy = wandering(30, 4, discrete=False)
    weights = np.zeros(30)
    weights[np.flatnonzero(data.lengths == 1)[:2]] = 1.0
    assert np.isnan(on(COUNTED["wis"], GaussianRegression(), policy)(Problem(data))(weights))
