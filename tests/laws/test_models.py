"""MB, DR and WDR in every mode through the laws, against slow definitions, and what their models must not do to them.

A mode is an estimator and where its model comes from: given, one from all logs, one per resample, or cross-fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import tightrope
from tests.laws import laws
from tests.laws.laws import logs, same
from tests.model_oracle import arbitrary, as_table, counted, from_table, sampled, slow_dr, slow_wdr, truth, values
from tests.oracle import END, Episode, Mdp, mdps
from tightrope import TabularPolicy
from tightrope.base.clusters import fold_of
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.problem import Problem
from tightrope.bounds import METHODS
from tightrope.bounds.base import is_exact
from tightrope.domains.finite import FiniteMDP
from tightrope.estimators import DR, ESTIMATORS, MB, PDIS, PDWIS, USUAL, WDR
from tightrope.functional.resampling import Multinomial, Poisson, leave_one_out_weights
from tightrope.functional.standard_errors import standard_error
from tightrope.models import GivenValues, TabularModel
from tightrope.models.residuals import td_errors

# -- modes ---------------------------------------------------------------------------------------------------------

HORIZON, DISCOUNT, STATES, FOLDS = 6, 0.9, 3, 5
ABSORBING = STATES  # where the steps of finished episodes are written out
UNSEEN, UNSEEN_REWARD = "worst", -1.7


def candidate(state, t):
    if state == ABSORBING:
        return [1.0, 0.0]
    p = [0.2, 0.9, 0.5, 0.7][(state + t) % 4]
    return [p, 1 - p]


POLICY = TabularPolicy([[candidate(s, t) for s in range(STATES + 1)] for t in range(HORIZON)])
TABLE = np.random.default_rng(11).uniform(-3.0, 4.0, (HORIZON, STATES + 1, 2))  # right about nothing
TABLE[:, ABSORBING] = 0.0
TABULAR = TabularModel(unseen=UNSEEN, unseen_reward=UNSEEN_REWARD)

MODES = {"mb-tabular": MB(TABULAR), "mb-given": MB(GivenValues(TABLE))}
for _cls in (DR, WDR):
    MODES[f"{_cls.name}-given"] = _cls(GivenValues(TABLE), fit="shared")
    for _fit in ("shared", "refit", "cross"):
        MODES[f"{_cls.name}-{_fit}"] = _cls(TABULAR, fit=_fit, folds=FOLDS)

_FROZEN = "one model from all logs stays as it is under weights; with its q̂ given the law holds"
_FOLDS = "models of folds stay as they are under weights; with their q̂ given the law holds"
_COPIES = "weights do not reach the models of folds: a full copy of the enumeration in each fold is needed"
_CORRECTED = "q̂ and v̂ of logged actions do not cancel in a sample, nor does a model repeat its returns"

# Which law a mode cannot obey, and why; the tests skip with this reason, so `pytest -rs` lists them. Another test sees
# to it that each of them is needed.
EXEMPT = {
    **{("integer weights", f"{name}-shared"): _FROZEN for name in ("dr", "wdr")},
    **{("integer weights", f"{name}-cross"): _FOLDS for name in ("dr", "wdr")},
    **{("enumeration", f"{name}-cross"): _COPIES for name in ("dr", "wdr")},
    **{("on policy", mode): _CORRECTED for mode in MODES},
    ("shift", "dr-given"): "q̂ is not shifted along, and ratios do not average to exactly one",
    ("shift", "mb-given"): "a value that was given does not follow the rewards",
    ("enumeration", "mb-given"): "a wrong model is wrong: nothing corrects MB",
    ("same bits", "wdr-refit"): "denominators of rows by themselves are summed in chunks",
}

EPISODES = arbitrary(14, HORIZON, STATES, candidate, seed=2)
REPEATS = [1, 0, 2, 0, 5, 1, 0, 1, 3, 0, 0, 1, 0, 2]
FEW = [2 * (len(e.rewards) <= 2) for e in EPISODES]  # the short episodes: two pairs in six are unseen


def with_finals(episodes, **more):
    return logs(episodes, final_states=[-1 if e.final is END else e.final for e in episodes], **more)


DATA = with_finals(EPISODES, horizon=HORIZON, discount=DISCOUNT)


def on(estimator, policy=POLICY):
    """What the laws call: the estimator with the candidate itself, whatever the problem says."""
    return lambda problem: estimator(Problem(problem.dataset, policy))


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture
def make(mode):
    return on(MODES[mode])


def written_out(data, c=0.0):
    """The same logs with the steps of finished episodes written out in the absorbing state, and c added to rewards."""
    bare = laws.padded(replace(data, states=None, actions=None, final_states=None), c)
    going = (np.arange(data.horizon) < data.lengths[:, None]).ravel()
    states, actions = np.full(len(going), ABSORBING), np.zeros(len(going), dtype=int)
    states[going], actions[going] = data.states, data.actions
    final = np.where(data.terminated, ABSORBING, data.final_states)
    return replace(bare, states=states, actions=actions, final_states=final)


def law_padding(make, data):
    assert (data.lengths < data.horizon).any()
    weights = np.arange(1.0, data.n_trajectories + 1)
    same(make(Problem(written_out(data)))(weights), make(Problem(data))(weights))


def law_shift(make, data, c=1.7):
    length = sum(data.discount**t for t in range(data.horizon))
    same(make(Problem(written_out(data, c))).estimate, make(Problem(data)).estimate + c * length)


LAWS = {
    "ones": lambda make: laws.law_ones(make, DATA),
    "integer weights": lambda make: laws.law_integer_weights(make, DATA, REPEATS),
    "order": lambda make: laws.law_order(make, DATA, np.random.default_rng(3).permutation(len(EPISODES))),
    "duplication": lambda make: laws.law_duplication(make, DATA),
    "batch": lambda make: laws.law_batch(make, DATA, np.array([REPEATS * 2, range(28)], float).reshape(2, 2, 14)),
    "on policy": lambda make: laws.law_on_policy(make, DATA),
    "padding": lambda make: law_padding(make, DATA),
    "shift": lambda make: law_shift(make, DATA),
}


@pytest.mark.parametrize("law", LAWS)
def test_law(law, mode, make):
    if (law, mode) in EXEMPT:
        pytest.skip(f"{law}, {mode}: {EXEMPT[law, mode]}")
    LAWS[law](make)


@pytest.mark.parametrize(("law", "mode"), [pair for pair in EXEMPT if pair[0] in LAWS])
def test_exemption_is_needed(law, mode):
    with pytest.raises(AssertionError):
        LAWS[law](on(MODES[mode]))


def test_every_registered_model_based_estimator_has_modes():
    assert {name for name in USUAL if ESTIMATORS[name]().model is not None} == {
        *(estimator.name for estimator in MODES.values()),
        "tdr",  # which needs a declared range and the behaviour policy itself: test_tethered.py
    }


@pytest.mark.parametrize("unseen", ["worst", "self-loop", "terminate"])
@pytest.mark.parametrize("anchor", ["low", "high"])
@pytest.mark.parametrize("mode", ["mb-tabular", "dr-refit", "wdr-refit"])
def test_integer_weights_include_the_refit(mode, anchor, unseen):
    """Whatever a pair that the resample lacks is worth, by the declared range."""
    estimator = replace(MODES[mode], model=TabularModel(unseen=unseen)).anchored(anchor)
    data = replace(DATA, reward_range=(-4.0, 5.0))
    for weights in (REPEATS, FEW):
        laws.law_integer_weights(on(estimator), data, weights)
    value, low = (float(on(each)(Problem(data))(FEW)) for each in (estimator, estimator.anchored("low")))
    assert (value != low) == (anchor == "high"), "these weights leave no pair unseen"


@pytest.mark.parametrize("mode", ["mb-tabular", "dr-refit", "wdr-refit"])
def test_integer_weights_need_a_declared_reward(mode):
    """Undeclared, the reward of an unseen pair is the sample's lowest: a rebuild without it has another one."""
    undeclared = on(replace(MODES[mode], model=TabularModel(unseen="worst")))
    assert DATA.rewards.min() not in DATA.take(np.flatnonzero(FEW)).rewards
    with pytest.raises(AssertionError):
        laws.law_integer_weights(undeclared, DATA, FEW)


# -- slow definitions ----------------------------------------------------------------------------------------------

SLOW = {"dr": slow_dr, "wdr": slow_wdr}


def slow_values(mode, episodes, weights):
    """(q̂, v̂) of each episode by the slow model that the mode asks for."""

    def fit(model_weights):
        model = counted(episodes, HORIZON, model_weights, finals=True)
        return values(model, candidate, HORIZON, DISCOUNT, UNSEEN, UNSEEN_REWARD)[1:]

    n = len(episodes)
    if mode == "given":
        return [from_table(TABLE, candidate)] * n
    if mode == "shared":
        return [fit([1.0] * n)] * n
    if mode == "refit":
        return [fit(weights)] * n
    models = [fit([float(i % FOLDS != k) for i in range(n)]) for k in range(FOLDS)]
    return [models[i % FOLDS] for i in range(n)]


def slow(mode, episodes, weights):
    name, source = mode.split("-")
    if mode == "mb-tabular":
        model = counted(episodes, HORIZON, weights, finals=True)
        return values(model, candidate, HORIZON, DISCOUNT, UNSEEN, UNSEEN_REWARD)[0]
    if mode == "mb-given":
        _, v = from_table(TABLE, candidate)
        return sum(w * v(e.states[0], 0) for w, e in zip(weights, episodes, strict=True)) / sum(weights)
    return SLOW[name](episodes, DISCOUNT, HORIZON, slow_values(source, episodes, weights), weights)


@pytest.mark.parametrize("seed", range(5))
def test_slow_definition(mode, make, seed):
    episodes = arbitrary(9 + seed, HORIZON, STATES, candidate, seed=20 + seed)
    data = with_finals(episodes, horizon=HORIZON, discount=DISCOUNT)
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=len(episodes)) * (rng.random(len(episodes)) < 0.7)
    weights[0] = 0.8
    statistic = make(Problem(data))
    same(statistic.estimate, slow(mode, episodes, [1.0] * len(episodes)), 1e-11)
    same(statistic(weights), slow(mode, episodes, weights.tolist()), 1e-11)


# Two episodes, horizon 2, discount 1/2; the candidate takes both actions alike in state 0, action 0 with 1/4 in 1.
# The first: (0, 0) with ratio 2, reward 1, then (1, 0) with ratio 1/2, reward 4. The second: (0, 1) with ratio 1/2,
# reward 6, and ends. q̂(0, ·) = 2, 4 and q̂(1, ·) = 2, 8, so v̂(0) = 3 and v̂(1) = 13/2. TD errors 1 - 2 + 13/4 = 9/4
# and 4 - 2 = 2; 6 - 4 = 2.
#   mb   3
#   dr   ((3 + 2·9/4 + ½·1·2) + (3 + ½·2))/2                    = 25/4
#   wdr  3 + (2·9/4 + ½·2)/(2 + ½) + ½(1·2 + ½·0)/(1 + ½)       = 3 + 11/5 + 2/3
GOLDEN_EPISODES = [
    Episode([1.0, 4.0], [0.25, 0.5], [0.5, 0.25], False, [0, 1], [0, 0], 0),
    Episode([6.0], [1.0], [0.5], True, [0], [1]),
]
GOLDEN = {"mb": 3.0, "dr": 25 / 4, "wdr": 3 + 11 / 5 + 2 / 3}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name):
    data = logs(GOLDEN_EPISODES, horizon=2, discount=0.5)
    policy, given = TabularPolicy([[0.5, 0.5], [0.25, 0.75]]), GivenValues([[2.0, 4.0], [2.0, 8.0]])
    assert ESTIMATORS[name](given)(Problem(data, policy)).estimate == pytest.approx(GOLDEN[name], abs=1e-14)


def test_every_mode_has_a_slow_definition():
    assert set(GOLDEN) == {mode.split("-")[0] for mode in MODES}


@pytest.mark.parametrize("cls", [DR, WDR])
def test_where_a_given_model_comes_from_does_not_matter(cls):
    weights = np.arange(14.0)
    expected = slow(f"{cls.name}-given", EPISODES, weights.tolist())
    for fit in ("shared", "refit", "cross"):
        same(on(cls(GivenValues(TABLE), fit=fit))(Problem(DATA))(weights), expected)


# -- law 2 with the model frozen -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Frozen:
    """q̂ and v̂ as they were once found for each episode, by its identity."""

    name = "frozen"
    found: dict

    def prepare(self, problem, *, anchor):
        data = problem.dataset
        parts = [
            self.found[i][:, : e - s] for i, s, e in zip(data.episode_ids, data.offsets, data.offsets[1:], strict=False)
        ]
        return FrozenValues(len(parts), np.concatenate(parts, axis=1))


@dataclass(frozen=True)
class FrozenValues:
    n_trajectories: int
    both: np.ndarray

    def control_variates(self, weights):
        return self.both[0], self.both[1]


def frozen(source):
    ones = [1.0] * len(EPISODES)
    found = {}
    for i, (e, (q, v)) in enumerate(zip(EPISODES, slow_values(source, EPISODES, ones), strict=True)):
        steps = [(s, a, t) for t, (s, a) in enumerate(zip(e.states, e.actions, strict=True))]
        found[i] = np.array([[q(*step) for step in steps], [v(s, t) for s, _, t in steps]])
    return Frozen(found)


@pytest.mark.parametrize("source", ["shared", "cross"])
@pytest.mark.parametrize("cls", [DR, WDR])
def test_integer_weights_with_the_model_frozen(cls, source):
    make = on(cls(frozen(source), fit="shared"))
    weights = np.array(REPEATS, dtype=float)
    same(on(MODES[f"{cls.name}-{source}"])(Problem(DATA))(weights), make(Problem(DATA))(weights))
    laws.law_integer_weights(make, DATA, REPEATS)


@pytest.mark.parametrize("cls", [DR, WDR])
def test_integer_weights_with_the_shared_q_given(cls):
    q, _ = slow_values("shared", EPISODES, None)[0]
    make = on(cls(GivenValues(as_table(q, HORIZON, STATES + 1, 2))))
    weights = np.array(REPEATS, dtype=float)
    same(on(MODES[f"{cls.name}-shared"])(Problem(DATA))(weights), make(Problem(DATA))(weights))
    laws.law_integer_weights(make, DATA, REPEATS)


# -- enumeration ---------------------------------------------------------------------------------------------------


def policy_of(mdp):
    return TabularPolicy([[mdp.candidate(s, t) for s in range(2)] for t in range(mdp.horizon)])


def wrong_values(mdp, seed=7):
    """A model that is deliberately wrong: random tables."""
    return GivenValues(np.random.default_rng(seed).uniform(-9.0, 9.0, (mdp.horizon, 2, 2)))


def true_values(mdp):
    _, q, _ = values(truth(mdp), mdp.candidate, mdp.horizon, mdp.discount)
    return GivenValues(as_table(q, mdp.horizon, 2, 2))


def distorted(data):
    """Behaviour probabilities wrong by factors that depend on state, action and time."""
    factor = np.random.default_rng(9).uniform(0.3, 1.0, (data.horizon, 2, 2))
    wrong = np.log(factor[data.times, data.states, data.actions])
    return replace(data, behavior_log_probs=data.behavior_log_probs + wrong)


ENUMERATED = pytest.mark.parametrize("mdp", mdps(), ids=lambda mdp: mdp.name.replace(" ", "-"))


def test_the_slow_recursion_agrees_with_the_oracle():
    for mdp in mdps():
        same(values(truth(mdp), mdp.candidate, mdp.horizon, mdp.discount)[0], mdp.value(mdp.candidate), 1e-14)


@ENUMERATED
@pytest.mark.parametrize("cls", [DR, WDR])
def test_enumeration_with_a_wrong_model(cls, mdp):
    laws.law_enumeration(on(cls(wrong_values(mdp)), policy_of(mdp)), mdp)


@ENUMERATED
@pytest.mark.parametrize("fit", ["shared", "refit"])
@pytest.mark.parametrize("cls", [DR, WDR])
def test_enumeration_with_a_fitted_model(cls, fit, mdp):
    """Fitted to the trajectories without their probabilities (shared), or with them (refit)."""
    laws.law_enumeration(on(cls(TABULAR, fit=fit), policy_of(mdp)), mdp)


@ENUMERATED
@pytest.mark.parametrize("cls", [DR, WDR])
def test_enumeration_with_true_values_and_wrong_ratios(cls, mdp):
    def make(model):
        return lambda problem: cls(model)(Problem(distorted(problem.dataset), policy_of(mdp)))

    laws.law_enumeration(make(true_values(mdp)), mdp)
    with pytest.raises(AssertionError):  # both wrong
        laws.law_enumeration(make(wrong_values(mdp)), mdp)


@ENUMERATED
@pytest.mark.parametrize("finals", [False, True])
def test_enumeration_of_the_model(mdp, finals):
    more = {}
    if finals:
        more["final_states"] = [-1 if e.final is END else e.final for _, e in mdp.trajectories()]
    laws.law_enumeration(on(MB(TabularModel()), policy_of(mdp)), mdp, **more)


@ENUMERATED
@pytest.mark.parametrize("cls", [DR, WDR])
def test_enumeration_cross_fitted(cls, mdp):
    """Each fold holds every trajectory once; identities are numbered so that a copy falls into its fold."""
    folds, (data, probs) = 3, laws.enumerated(mdp)
    n = len(probs)
    copies = data.take(np.tile(np.arange(n), folds))
    copies = replace(copies, episode_ids=np.concatenate([np.arange(n) * folds + k for k in range(folds)]))
    estimator = cls(TABULAR, fit="cross", folds=folds)
    value = float(estimator(Problem(copies, policy_of(mdp)))(np.tile(probs, folds)))
    assert value == pytest.approx(mdp.value(mdp.candidate), abs=1e-12)
    with pytest.raises(AssertionError):  # one copy in all: the exemption is needed
        laws.law_enumeration(on(estimator, policy_of(mdp)), mdp)


@ENUMERATED
def test_nothing_corrects_a_wrong_model_alone(mdp):
    with pytest.raises(AssertionError):
        laws.law_enumeration(on(MB(wrong_values(mdp)), policy_of(mdp)), mdp)


def test_every_exemption_from_enumeration_is_tested():
    assert {mode for law, mode in EXEMPT if law == "enumeration"} == {"dr-cross", "wdr-cross", "mb-given"}


# -- folds ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [np.arange(14), np.array([f"episode {3 * i % 14}" for i in range(14)])])
def test_folds_follow_identity(ids):
    data = replace(DATA, episode_ids=ids)
    fold = fold_of(data, 4)
    assert sorted(np.bincount(fold).tolist()) == [3, 3, 4, 4]
    assert fold.tolist() == [sorted(ids.tolist()).index(i) % 4 for i in ids.tolist()]
    order = np.random.default_rng(1).permutation(14)
    assert fold_of(data.take(order), 4).tolist() == fold[order].tolist()
    repeated = np.repeat(np.arange(14), [1, 2, 3, 1, 1, 4, 1, 1, 1, 2, 1, 1, 1, 5])
    assert fold_of(data.take(repeated), 4).tolist() == fold[repeated].tolist()


@pytest.mark.parametrize("cls", [DR, WDR])
def test_too_little_to_cross_fit(cls):
    """One episode, once or repeated: the model of all logs, since there is no other."""
    one = DATA.take([0])
    expected = on(cls(TABULAR, fit="shared"))(Problem(one)).estimate
    for data in (one, DATA.take([0, 0, 0])):
        same(on(cls(TABULAR, fit="cross"))(Problem(data)).estimate, expected)


@pytest.mark.parametrize("cls", [DR, WDR])
def test_bad_settings(cls):
    with pytest.raises(TightropeError, match='fit must be "cross", "shared" or "refit"; got \'both\''):
        cls(fit="both")
    with pytest.raises(TightropeError, match="folds is 1; cross-fitting needs at least 2"):
        cls(folds=1)


# -- what q̂ must not change ----------------------------------------------------------------------------------------


def test_constants_per_time_step_leave_wdr_unchanged():
    """q̂_t and v̂_t moved by c_t at every step up to the horizon, those after an early end included."""
    full, weights = written_out(DATA), np.array(REPEATS, dtype=float)
    constants = np.random.default_rng(5).uniform(-20.0, 20.0, HORIZON)
    shifted = GivenValues(TABLE + constants[:, None, None])
    plain = on(WDR(GivenValues(TABLE)))(Problem(full))
    moved = on(WDR(shifted))(Problem(full))
    same(moved.estimate, plain.estimate)
    same(moved(weights), plain(weights))
    same(plain(weights), slow("wdr-given", EPISODES, REPEATS))
    # Without the steps after the end the constants do not cancel, and in DR they never do in a sample.
    assert abs(on(WDR(shifted))(Problem(DATA)).estimate - plain.estimate) > 0.1
    assert abs(on(DR(shifted))(Problem(full)).estimate - on(DR(GivenValues(TABLE)))(Problem(full)).estimate) > 0.1


@pytest.mark.parametrize(("with_model", "without"), [(DR, PDIS), (WDR, PDWIS)])
def test_no_model_is_importance_sampling(with_model, without):
    """q̂ = 0: the unshifted PDIS, and PDWIS."""
    nothing = on(with_model(GivenValues(np.zeros((STATES, 2)))))(Problem(DATA))
    weights = np.array(REPEATS, dtype=float)
    same(nothing(weights), without()(Problem(DATA))(weights))
    same(nothing.influence(), without()(Problem(DATA)).influence())


# -- how the work is cut up, and derivatives -----------------------------------------------------------------------

EARLY, TIMED, DISCOUNTED = mdps()
MANY = with_finals(arbitrary(1100, 4, STATES, candidate, seed=3), horizon=4)  # more than one block of 1024


def to_rounding(scheme):
    """The same weights, of which the law asks no more than equality up to rounding."""
    return type("ToRounding", (type(scheme),), {"integer": False})()


@pytest.mark.parametrize("scheme", [Multinomial(), Poisson()], ids=["multinomial", "poisson"])
def test_partition(mode, scheme, monkeypatch):
    if ("same bits", mode) in EXEMPT:
        scheme = to_rounding(scheme)
    laws.law_partition(on(MODES[mode]), MANY, monkeypatch, scheme)


def test_influence_is_the_derivative(mode, make):
    statistic, n = make(Problem(DATA)), DATA.n_trajectories
    influence = statistic.influence()
    assert abs(influence.sum()) < 1e-9 * np.abs(influence).sum()
    if mode.endswith("refit"):  # by leaving each out
        others = np.array([slow(mode, EPISODES, (1.0 - np.eye(n)[i]).tolist()) for i in range(n)])
        same(influence, (n - 1) * (others.mean() - others), 1e-9)
        return
    step = 1e-6 * np.eye(n)
    slope = (statistic(1 + step) - statistic(1 - step)) / 2e-6
    np.testing.assert_allclose(influence / n, slope, rtol=1e-4, atol=1e-7)


def test_leave_one_out(make):
    statistic = make(Problem(DATA))
    same(statistic.leave_one_out(), statistic(leave_one_out_weights(DATA.n_trajectories)), 1e-10)


def test_standard_errors_of_the_model():
    """Under each row the delta method's √(Σ w ψ²·m/(m−1)), ψ by central differences."""
    statistic, n = on(MODES["mb-tabular"])(Problem(DATA)), DATA.n_trajectories
    rows, step = np.array([np.ones(n), np.arange(1.0, n + 1), np.array(REPEATS) + 1.0]), 1e-6 * np.eye(n)
    slopes = np.array([(statistic(row + step) - statistic(row - step)) / 2e-6 for row in rows])
    expected = np.sqrt((rows * slopes**2).sum(axis=1) * n / (n - 1))
    np.testing.assert_allclose(statistic.standard_errors(rows, (n,)), expected, rtol=1e-5)


# -- bounds --------------------------------------------------------------------------------------------------------

FORTY = logs(sampled(EARLY, 40, seed=8), horizon=EARLY.horizon, reward_range=(-4.0, 0.0))
APPROXIMATE = [name for name, method in METHODS.items() if not is_exact(method)]


@pytest.mark.parametrize("method", APPROXIMATE)
def test_bounds(mode, method):
    """Every pair gives a finite bound on either side, but for the one that cannot be."""
    settings = {"estimator": MODES[mode], "method": method, "n_resamples": 200, "seed": 1}
    if method == "studentized" and mode.endswith("refit"):
        with pytest.raises(BoundError, match=r"standard error of every replicate.*refitted per replicate"):
            tightrope.lower_bound(FORTY, policy_of(EARLY), **settings)
        return
    low = tightrope.lower_bound(FORTY, policy_of(EARLY), **settings)
    high = tightrope.upper_bound(FORTY, policy_of(EARLY), **settings)
    assert np.isfinite([low.value, high.value]).all()
    assert low.value < low.estimate < high.value
    assert low.standard_error > 0


@pytest.mark.parametrize("method", ["percentile", "studentized"])
@pytest.mark.parametrize("mode", ["mb-tabular", "mb-given", "wdr-cross"])
def test_resamples_of_nothing_count_as_the_worst(mode, method):
    """A Poisson row of three episodes is empty one time in twenty: counted, never a number and never a warning."""
    settings = {"resampling": "poisson", "n_resamples": 400, "confidence": 0.6}
    three = FORTY.take([0, 1, 2])
    bound = tightrope.lower_bound(three, policy_of(EARLY), estimator=MODES[mode], method=method, **settings)
    assert 5 < bound.n_undefined < 60
    assert np.isfinite(bound.value)


# -- the trap ------------------------------------------------------------------------------------------------------


def corridor(n):
    """Deterministic: action 0 walks on for -1 and ends after the third; action 1, once, jumps out for -10."""
    walk = Episode([-1.0] * 3, [0.9] * 3, [0.5] * 3, True, [0, 1, 2], [0, 0, 0])
    jump = Episode([-1.0, -10.0], [0.9, 0.1], [0.5, 0.5], True, [0, 1], [0, 1])
    return [walk] * (n - 1) + [jump]


@pytest.mark.parametrize("unseen", ["worst", "self-loop", "terminate"])
def test_the_trap(unseen):
    """With deterministic dynamics one model of all logs explains every step: TD errors of exactly 0, no correction.

    DR and WDR then are MB, guess for unseen pairs included. Models of other folds have not seen the jump.
    """
    problem = Problem(logs(corridor(10), horizon=5, reward_range=(-10.0, 0.0)), TabularPolicy([[0.5, 0.5]] * 3))
    model = TabularModel(unseen=unseen, unseen_reward=0.0)
    # By hand, unseen pairs earning 0 and γ = 1. q(2, 0) = -1 and q(1, 1) = -10. After an unseen pair nothing more is
    # earned, unless the state stays: then v_t(2) = (-1 + v_{t+1}(2))/2, and v_t(0) has such a term too.
    stays = unseen == "self-loop"
    v = {(s, 5): 0.0 for s in range(3)}
    for t in reversed(range(5)):
        v[2, t] = -0.5 + 0.5 * stays * v[2, t + 1]
        v[1, t] = 0.5 * (-1 + v[2, t + 1]) + 0.5 * -10
        v[0, t] = 0.5 * (-1 + v[1, t + 1]) + 0.5 * stays * v[0, t + 1]
    value = {name: cls(model, **fit)(problem).estimate for name, cls, fit in _trap_modes()}
    assert value["mb"] == v[0, 0]
    assert value["dr-shared"] == value["wdr-shared"] == value["mb"]
    assert value["dr-refit"] == value["wdr-refit"] == value["mb"]
    made = model.prepare(problem, anchor="low")
    assert not td_errors(problem.dataset, *made.control_variates(np.ones(10))).any()
    cross = [value[name] for name in ("mb", "dr-cross", "wdr-cross")]
    assert min(abs(a - b) for i, a in enumerate(cross) for b in cross[:i]) > 0.01, cross


def _trap_modes():
    yield "mb", MB, {}
    for cls in (DR, WDR):
        for fit in ("shared", "refit", "cross"):
            yield f"{cls.name}-{fit}", cls, {"fit": fit}


# -- double robustness ---------------------------------------------------------------------------------------------


def finite(mdp: Mdp) -> FiniteMDP:
    """An oracle's process in the form that simulates fast."""
    transition, rewards = np.zeros((2, 2, 3)), np.zeros((2, 2, 3))
    for (s, a), row in mdp.outcomes.items():
        for p, after, reward in row:
            transition[s, a, 2 if after is END else after] = p
            rewards[s, a, 2 if after is END else after] = reward
    start = np.array([mdp.start.get(s, 0.0) for s in range(2)])
    return FiniteMDP(transition, rewards, start, mdp.horizon, mdp.discount)


@pytest.mark.parametrize("factor", [0.5, 1.5])
def test_double_robustness(factor):
    """Episodes of unequal length, q̂ half or one and a half times the truth: WDR still converges to it."""
    behavior = TabularPolicy([[EARLY.behavior(s, t) for s in range(2)] for t in range(EARLY.horizon)])
    data = finite(EARLY).simulate(behavior, 100_000, rng=np.random.default_rng(12))
    assert len(np.unique(data.lengths)) == EARLY.horizon
    problem, expected = Problem(data, policy_of(EARLY)), EARLY.value(EARLY.candidate)
    scaled = GivenValues(factor * true_values(EARLY).q_values)
    statistic = WDR(scaled)(problem)
    error = standard_error(statistic.influence())
    assert 0 < error < 0.02
    assert abs(statistic.estimate - expected) < 4 * error
    assert abs(MB(scaled)(problem).estimate - expected) > 40 * error, "the model alone must be wrong"
