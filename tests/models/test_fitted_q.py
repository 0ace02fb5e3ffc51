"""Fitted Q evaluation: equal to the tabular model on pairs, to loops of least squares elsewhere, and by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

import tightrope
from tests.laws.test_models import DATA, FEW, POLICY, STATES
from tests.models import systems
from tests.models.systems import CANDIDATE, DISCOUNT, GAIN, UP, walks
from tightrope import DeterministicControl, GaussianPolicy, SoftmaxPolicy, TabularPolicy
from tightrope.base.errors import DataError, PolicyError, TightropeError
from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.estimators import DR, MB, WDR, estimator
from tightrope.estimators.fitted_q import FQE
from tightrope.functional.standard_errors import standard_error
from tightrope.models import FittedQ, LinearModel, TabularModel
from tightrope.models.fitted import steps, sums


def rows_of(n, seed=0):
    """Weights of one, of resamples (which lose pairs), of any size, and few."""
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(n, np.full(n, 1 / n), size=12)
    return np.vstack([np.ones(n), drawn, rng.exponential(size=(4, n)), rng.random((1, n)) < 0.3]).astype(float)


# -- pairs: the tabular model --------------------------------------------------------------------------------------


def tabular_questions():
    yield "timed", Problem(DATA, POLICY), np.vstack([rows_of(14), FEW])
    yield "no finals", Problem(replace(DATA, final_states=None), POLICY), np.vstack([rows_of(14), FEW])
    ended = replace(DATA, final_states=None, terminated=np.ones(14, dtype=bool))
    yield "all ended, no finals", Problem(ended, POLICY), np.vstack([rows_of(14), FEW])
    yield "declared", Problem(replace(DATA, reward_range=(-4.0, 5.0)), POLICY), np.vstack([rows_of(14), FEW])
    for name in ("walker", "bonus", "decline"):
        domain = small(name)
        yield name, Problem(domain.logs(30, rng=np.random.default_rng(3)), domain.candidate), rows_of(30)


@pytest.mark.parametrize("anchor", ["low", "high"])
@pytest.mark.parametrize(("problem", "weights"), [pytest.param(*rest, id=name) for name, *rest in tabular_questions()])
def test_pairs_are_the_tabular_model(problem, weights, anchor):
    """Values, derivatives and control variates, under every row, whatever pairs it lacks."""
    ours, theirs = (model.prepare(problem, anchor=anchor) for model in (FittedQ(), TabularModel()))
    size = 1 + np.abs(theirs.values(weights)).max()
    np.testing.assert_allclose(ours.values(weights), theirs.values(weights), rtol=0, atol=1e-10 * size)
    np.testing.assert_allclose(ours.influences(weights), theirs.influences(weights), rtol=0, atol=1e-10 * size)
    for row in weights[[0, 1, -1]]:
        for one, two in zip(ours.control_variates(row), theirs.control_variates(row), strict=True):
            np.testing.assert_allclose(one, two, rtol=0, atol=1e-10 * size)


def test_rows_lack_pairs():
    """Else the test above would not see what a pair without weight is worth."""
    held = np.zeros((14, STATES * 2))
    np.add.at(held, (np.repeat(np.arange(14), DATA.lengths), DATA.states * 2 + DATA.actions), 1.0)
    assert (FEW @ held == 0).any()


@pytest.mark.parametrize("cls", [DR, WDR])
@pytest.mark.parametrize("fit", ["shared", "refit", "cross"])
def test_corrected(cls, fit):
    """DR and WDR of fitted Q on pairs are those of the tabular model."""
    problem = Problem(DATA, POLICY)
    ours, theirs = (cls(model, fit=fit)(problem) for model in (FittedQ(), TabularModel()))
    weights = rows_of(14)
    np.testing.assert_allclose(ours(weights), theirs(weights), rtol=1e-10)


@pytest.mark.parametrize("kind", ["far", "text"])
def test_states_are_labels(kind):
    """What states are called changes nothing: numbers with gaps, or texts."""
    walker = small("walker")
    data = replace(walker.logs(30, rng=np.random.default_rng(3)), behavior=None)
    count = 1 + max(data.states.max(), data.final_states.max())
    labels = 10**12 + 7 * np.arange(count) if kind == "far" else np.array([f"place {k:03}" for k in range(count)])
    called = replace(data, states=labels[data.states], final_states=labels[data.final_states])
    table = walker.candidate.table
    named = TabularPolicy(table, labels[: table.shape[-2]])
    plain, other = (FQE()(Problem(*each)) for each in ((data, walker.candidate), (called, named)))
    np.testing.assert_allclose(other(rows_of(30)), plain(rows_of(30)), rtol=1e-12)


# -- features: least squares in loops ------------------------------------------------------------------------------


def slow_linear(data, features, policy_points, weights, horizon):
    """β_t by least squares on r + γ v̂_{t+1}, one time and one step after the other; all next states are known.

    ``policy_points(state, t)`` are the (probability, action) of the candidate.
    """

    def phi(state, action):
        return np.asarray(features(np.array([state]), np.array([action])), dtype=float)[0]

    steps_left, episode = [], np.repeat(np.arange(data.n_trajectories), data.lengths)
    for k in range(data.n_steps):
        last = k + 1 == data.offsets[episode[k] + 1]
        ended = last and data.terminated[episode[k]]
        after = None if ended else data.final_states[episode[k]] if last else data.states[k + 1]
        steps_left.append((weights[episode[k]], phi(data.states[k], data.actions[k]), data.rewards[k], after))
    root = np.sqrt([w for w, *_ in steps_left])
    design = np.array([x for _, x, *_ in steps_left])
    beta = None
    for t in reversed(range(horizon)):
        targets = []
        for _, _, reward, after in steps_left:
            ahead = 0.0
            if after is not None and t + 1 < horizon:
                ahead = sum(p * phi(after, a) @ beta for p, a in policy_points(after, t + 1))
            targets.append(reward + data.discount * ahead)
        beta = np.linalg.lstsq(root[:, None] * design, root * np.array(targets), rcond=None)[0]
    starts = [
        sum(p * phi(data.states[i], a) @ beta for p, a in policy_points(data.states[i], 0)) for i in data.offsets[:-1]
    ]
    return float(np.average(starts, weights=weights))


def softmax_points(policy):
    return lambda s, t: list(zip(policy.probs(np.array([s]), np.array([t]))[0], (0, 1), strict=True))


def plain_features(s, a):
    """1 and s for each action."""
    block = np.stack([np.ones(len(s)), s], axis=1)
    return np.hstack([block * (a == 0)[:, None], block * (a == 1)[:, None]])


def curved(s, a):
    return np.column_stack([np.ones(len(s)), s, s**2 / 7.0, 1000.0 + a, a * s])


def crossed(s, a):
    return np.column_stack([np.ones(len(s)), s, s**2 / 7.0, a, a * s])


TURNING = SoftmaxPolicy(lambda s, t: np.stack([0.4 * t, 0.5 - 0.3 * s], axis=1))  # changes with time


@pytest.mark.parametrize("policy", [UP, TURNING], ids=["still", "turning"])
@pytest.mark.parametrize("features", [None, curved], ids=["linear", "given"])
def test_least_squares_in_loops(policy, features):
    data = walks(18, 5, seed=4)
    prepared = FittedQ(features=features).prepare(Problem(data, policy), anchor="low")
    for weights in (np.ones(18), rows_of(18)[-2]):
        expected = slow_linear(data, features or plain_features, softmax_points(policy), weights, 5)
        assert prepared.values(weights[None])[0] == pytest.approx(expected, abs=1e-9)


def test_linear_dynamics_by_their_means():
    """With 1, s and a it is the value in the linear model of s' and r, whose noise drops out of the means."""
    data = systems.logs(25, 6, seed=7)
    x = np.column_stack([np.ones(data.n_steps), data.states, data.actions])
    following = np.roll(data.states, -1, axis=0)
    following[data.offsets[1:] - 1] = data.final_states
    coefficients = np.linalg.lstsq(x, np.column_stack([following, data.rewards]), rcond=None)[0]

    def value(state):
        total = 0.0
        for t in range(6):
            made = np.concatenate([[1.0], state, [state @ GAIN[:, 0] + 0.1]]) @ coefficients
            total, state = total + DISCOUNT**t * made[2], made[:2]
        return total

    expected = np.mean([value(data.states[i]) for i in data.offsets[:-1]])
    for policy in (CANDIDATE, DeterministicControl(lambda s, t: s @ GAIN + 0.1)):
        prepared = FittedQ().prepare(Problem(data, policy), anchor="low")
        assert prepared.values(np.ones((1, 25)))[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("policy", [UP, TURNING], ids=["still", "turning"])
def test_influence_is_the_derivative(policy):
    data = walks(18, 5, seed=4, final=False)  # some steps lead nobody knows where: two normal matrices
    prepared = FittedQ().prepare(Problem(data, policy), anchor="low")
    assert prepared.sums.led is not None
    row, step = np.random.default_rng(1).exponential(size=18), 1e-5 * np.eye(18)
    slopes = (prepared.values(row + step) - prepared.values(row - step)) / 2e-5
    np.testing.assert_allclose(prepared.influences(row[None])[0], slopes, atol=1e-6 * np.abs(slopes).max())


def test_steps_that_lead_nobody_knows_where():
    """They teach rewards; what follows is learned from the others, ended ones of the last time left out too."""
    data = walks(12, 3, seed=2, final=False)
    assert (data.terminated & (data.lengths == 3)).any()
    prepared = FittedQ().prepare(Problem(data, UP), anchor="low")
    known = prepared.steps.known
    np.testing.assert_array_equal(known, data.times < 2)
    phi = plain_features(data.states, data.actions)
    reward = np.linalg.lstsq(phi, data.rewards, rcond=None)[0]
    probs = UP.probs(data.states, data.times)
    expected = plain_features(data.states, np.zeros(data.n_steps)) * probs[:, :1]
    expected += plain_features(data.states, np.ones(data.n_steps)) * probs[:, 1:]
    nexts = np.roll(expected, -1, axis=0)
    nexts[data.offsets[1:] - 1] = 0.0
    moves = np.linalg.lstsq(phi[known], nexts[known], rcond=None)[0]
    later = [reward]
    for _ in range(2):
        later.insert(0, reward + DISCOUNT * moves @ later[0])
    value = (expected[data.offsets[:-1]] @ later[0]).mean()
    assert prepared.values(np.ones((1, 12)))[0] == pytest.approx(value, abs=1e-10)
    q, v = prepared.control_variates(np.ones(12))
    np.testing.assert_allclose(q, (phi * np.array(later)[data.times]).sum(axis=1), atol=1e-10)
    np.testing.assert_allclose(v, (expected * np.array(later)[data.times]).sum(axis=1), atol=1e-10)


def test_expected_values_of_actions_that_are_drawn():
    """v̂ = E_a q̂ with many draws of a candidate over quantities; mirrored draws make a linear q̂ exact."""
    data, s = systems.logs(20, 4, seed=1), np.array([0.3, -0.4])
    square = FittedQ(features=lambda s, a: np.column_stack([np.ones(len(s)), s, a, a**2]), draws=4000)
    where = replace_first_state(data, s)
    prepared = square.prepare(Problem(where, CANDIDATE), anchor="low")
    mean = s @ GAIN[:, 0] + 0.1
    got = prepared.steps.expected(np.array([0]), np.array([0]))[0]
    np.testing.assert_allclose(got[:4], [1.0, *s, mean], atol=1e-12)
    assert got[4] == pytest.approx(mean**2 + 0.25, abs=0.02)


def replace_first_state(data, state):
    states = data.states.copy()
    states[0] = state
    return replace(data, states=states)


# -- weights that determine nothing, and chunks --------------------------------------------------------------------


def test_weights_that_do_not_determine_the_coefficients_are_undefined():
    data = walks(18, 5, seed=4)
    prepared = FittedQ().prepare(Problem(data, UP), anchor="low")
    alone = np.zeros((2, 18))
    some = np.argsort(data.lengths)[:3]
    some = some[np.cumsum(data.lengths[some]) < 4]  # fewer steps than features; their matrix is singular up to rounding
    alone[0, some] = np.random.default_rng(0).exponential(size=len(some))
    assert np.isnan(prepared.values(alone)).all()
    assert np.isnan(prepared.influences(alone)).all()
    q, v = prepared.control_variates(alone[0])
    assert np.isnan(q).all()
    assert np.isnan(v).all()


def test_only_wanted_episodes():
    data = walks(18, 5, seed=4)
    prepared = FittedQ().prepare(Problem(data, UP), anchor="low")
    wanted = np.arange(18) % 3 == 0
    every, some = prepared.control_variates(np.ones(18)), prepared.control_variates(np.ones(18), wanted)
    inside = np.repeat(wanted, data.lengths)
    for all_of_them, few in zip(every, some, strict=True):
        np.testing.assert_allclose(few[inside], all_of_them[inside], rtol=1e-12)
        assert np.isnan(few[~inside]).all()


@pytest.mark.parametrize(("module", "name"), [(steps, "CHUNK_BYTES"), (sums, "BLOCK_BYTES")])
def test_chunks_change_nothing(module, name, monkeypatch):
    data, weights = walks(18, 5, seed=4), rows_of(18)
    whole = FittedQ().prepare(Problem(data, TURNING), anchor="low")
    plain = [whole.values(weights), *whole.control_variates(weights[1]), whole.influences(weights[:3])]
    monkeypatch.setattr(module, name, 600)
    cut = FittedQ().prepare(Problem(data, TURNING), anchor="low")
    pieces = [cut.values(weights), *cut.control_variates(weights[1]), cut.influences(weights[:3])]
    for one, two in zip(plain, pieces, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-12)


def test_a_candidate_declared_stationary_is_asked_once():
    asked = []

    def preferences(s, t):
        asked.extend(t.tolist())
        return np.stack([0.0 * s, 0.5 - 0.3 * s], axis=1)

    data, weights = walks(18, 5, seed=4), rows_of(18)
    declared = FittedQ(stationary=True).prepare(Problem(data, SoftmaxPolicy(preferences)), anchor="low")
    few = len(asked)
    other = FittedQ().prepare(Problem(data, SoftmaxPolicy(preferences)), anchor="low")
    np.testing.assert_allclose(declared.values(weights), other.values(weights), rtol=1e-12)
    assert len(declared.sums.moves) == len(other.sums.moves) == 1
    assert few < len(asked) - few


# -- the estimator, bounds, and what is refused --------------------------------------------------------------------


@pytest.mark.parametrize("method", ["percentile", "bca", "studentized"])
def test_bounds(method):
    settings = {"estimator": "fqe", "method": method, "n_resamples": 200, "seed": 1}
    walker = small("walker")
    data = walker.logs(60, rng=np.random.default_rng(1))
    for logs, policy in ((data, walker.candidate), (systems.logs(40, 4, seed=2), CANDIDATE)):
        low = tightrope.lower_bound(logs, policy, **settings)
        high = tightrope.upper_bound(logs, policy, **settings)
        assert low.value < low.estimate < high.value
        assert low.standard_error > 0


def test_the_estimator_is_mb_with_fitted_q():
    problem = Problem(walks(18, 5, seed=4), UP)
    weights = rows_of(18)[:3]
    np.testing.assert_array_equal(FQE()(problem)(weights), MB(FittedQ())(problem)(weights))
    assert estimator("fqe") == estimator("fqe", model="auto") == FQE() == FQE("auto")
    assert FQE().model == "fitted-q"
    assert FQE().rests_on_model
    assert FQE(FittedQ(features=curved)).model == FittedQ(features=curved)
    for wrong in ("tabular", LinearModel()):
        with pytest.raises(TightropeError, match='model must be "auto", "fitted-q" or FittedQ'):
            FQE(wrong)


def test_standard_errors_hold_what_resampling_shows():
    """Of independent data sets: the spread of the estimates is what each says of itself."""
    estimates, errors = [], []
    for seed in range(150):
        data = walks(60, 5, seed=seed)
        statistic = FQE()(Problem(data, UP))
        estimates.append(statistic.estimate)
        errors.append(standard_error(statistic.influence()))
    assert np.std(estimates, ddof=1) == pytest.approx(np.mean(errors), rel=0.2)


def test_logs_that_do_not_determine_the_features():
    data = walks(18, 5, seed=4)

    def refused(match, features=None, data=data, policy=UP, error=DataError):
        with pytest.raises(error, match=match):
            FittedQ(features=features).prepare(Problem(data, policy), anchor="low")

    refused("'feature 2' is constant or a combination", lambda s, a: np.column_stack([np.ones(len(s)), s, 2 * s + 3]))
    refused("cannot determine 200 features", lambda s, a: np.ones((len(s), 200)))
    refused(r"features must return shape \(", lambda s, a: np.ones((len(s) + 1, 2)))
    refused("features must be finite numbers", lambda s, a: np.full((len(s), 1), np.nan))
    three = SoftmaxPolicy(lambda s, t: np.zeros((len(s), 3)))
    refused("among the logged ones", policy=three)
    refused("the policy itself", data=replace(DATA, final_states=None), policy=None, error=PolicyError)
    refused("policy must be the policy itself", policy=None, error=PolicyError)
    refused("must have states", data=replace(data, states=None), policy=UP)
    with pytest.raises(DataError, match="draws must be an even number"):
        FittedQ(draws=3)
    with pytest.raises(DataError, match="unseen_reward must be a finite number"):
        FittedQ(unseen_reward=np.inf)
    wide = GaussianPolicy(lambda s, t: np.zeros((len(s), 2)), np.eye(2))
    refused("the policy's actions must have shape", data=systems.logs(20, 4), policy=wide)


def test_entries_keep_what_is_not_zero():
    pattern = np.array([[True, True, False], [True, True, False], [False, False, True]])
    kept = sums.Entries.of(pattern, symmetric=True)
    matrices = np.array([[[1.0, 2.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 4.0]]])
    np.testing.assert_array_equal(kept.pick(matrices), [[1.0, 2.0, 3.0, 4.0]])
    np.testing.assert_array_equal(kept.fill(kept.pick(matrices), 3), matrices)
    np.testing.assert_array_equal(kept.slopes(np.arange(9.0).reshape(1, 3, 3)), [[0.0, 1.0 + 3.0, 4.0, 8.0]])


# -- regressors ----------------------------------------------------------------------------------------------------


def test_a_linear_regressor_is_the_linear_sums():
    """Every step's next state is logged, so that both learn from the same steps."""
    data, weights = walks(18, 5, seed=4), rows_of(18)[[0, -2]]
    for policy in (UP, TURNING):
        problem = Problem(data, policy)
        sums = FittedQ(features=crossed).prepare(problem, anchor="low")
        fits = FittedQ(features=crossed, regressor=LinearRegression(fit_intercept=False)).prepare(problem, anchor="low")
        np.testing.assert_allclose(fits.values(weights), sums.values(weights), rtol=1e-8)
        for one, two in zip(fits.control_variates(weights[1]), sums.control_variates(weights[1]), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-7, atol=1e-9)


def test_a_regressor_on_pairs_is_the_tabular_model():
    problem, weights = Problem(DATA, POLICY), rows_of(14)[[0, -2]]
    tree = FittedQ(regressor=DecisionTreeRegressor()).prepare(problem, anchor="low")  # one leaf for each pair
    np.testing.assert_allclose(
        tree.values(weights), TabularModel().prepare(problem, anchor="low").values(weights), rtol=1e-10
    )


def test_a_regressor_of_quantities_gets_states_and_actions():
    data = walks(30, 4, seed=4)
    prepared = FittedQ(regressor=LinearRegression()).prepare(Problem(data, UP), anchor="low")
    assert prepared.steps.basis.names == ["state 0", "action = 0", "action = 1"]
    shared = FittedQ(features=lambda s, a: np.column_stack([np.ones(len(s)), s, a])).prepare(
        Problem(data, UP), anchor="low"
    )
    ones = np.ones((1, 30))
    np.testing.assert_allclose(prepared.values(ones), shared.values(ones), rtol=1e-9)
    continuous = FittedQ(regressor=LinearRegression()).prepare(Problem(systems.logs(20, 4), CANDIDATE), anchor="low")
    same_sums = FittedQ().prepare(Problem(systems.logs(20, 4), CANDIDATE), anchor="low")
    np.testing.assert_allclose(continuous.values(np.ones((1, 20))), same_sums.values(np.ones((1, 20))), rtol=1e-9)


def test_whole_number_weights_are_repeats_for_a_regressor():
    data = walks(18, 4, seed=4)
    weights = np.array([2, 0, 1] * 6)
    model = FittedQ(regressor=LinearRegression())
    repeated = data.take(np.repeat(np.arange(18), weights))
    one = model.prepare(Problem(data, UP), anchor="low").values(weights[None])
    other = model.prepare(Problem(repeated, UP), anchor="low").values(np.ones((1, repeated.n_trajectories)))
    np.testing.assert_allclose(one, other, rtol=1e-10)


def test_a_regressor_learns_what_follows_from_steps_that_know_it():
    data = walks(12, 3, seed=2, final=False)
    prepared = FittedQ(regressor=LinearRegression()).prepare(Problem(data, UP), anchor="low")
    seen = []
    learner = prepared.learner
    learn = type(learner).learn

    def watched(self, inputs, targets, weights):
        seen.append(weights > 0)
        return learn(self, inputs, targets, weights)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(learner), "learn", watched)
        assert np.isfinite(prepared.values(np.ones((1, 12)))).all()
    assert [one.sum() for one in seen] == [data.n_steps, (data.times < 2).sum(), (data.times < 2).sum()]
    assert np.isnan(prepared.values(np.zeros((1, 12)))).all()


def test_seeds_of_regressors_are_frozen():
    problem = Problem(walks(18, 3, seed=4), UP)
    forest = FittedQ(regressor=RandomForestRegressor(3), seed=5)
    one, two = (forest.prepare(problem, anchor="low").values(np.ones((1, 18))) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_a_network_of_torch():
    """As the guide shows it: the fence is no example that runs there, since not everybody has torch."""
    pytest.importorskip("torch")
    page = (Path(__file__).parents[2] / "docs" / "guide" / "models.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```{code-block} python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    names = {"WDR": WDR, "FittedQ": FittedQ, "my_features": lambda s, a: np.column_stack([s, a])}
    exec(code, names)
    data = walks(12, 2, seed=4)
    model = FittedQ(regressor=names["Network"](steps=20))
    one, two = (model.prepare(Problem(data, UP), anchor="low").values(rows_of(12)[:2]) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert np.isfinite(one).all()
    assert one[0] != one[1]


def test_what_is_no_regressor():
    with pytest.raises(DataError, match=r"regressor must have fit\(\)"):
        FittedQ(regressor=3).prepare(Problem(walks(18, 3), UP), anchor="low")


@pytest.mark.parametrize("cls", [DR, WDR])
def test_corrected_regressors(cls):
    problem = Problem(DATA, POLICY)
    model = FittedQ(regressor=DecisionTreeRegressor(max_depth=2))
    assert np.isfinite(cls(model)(problem).estimate)
    wanted = np.arange(14) % 2 == 0
    q, v = model.prepare(problem, anchor="low").control_variates(np.ones(14), wanted)
    np.testing.assert_array_equal(np.isfinite(q), np.repeat(wanted, DATA.lengths))
    np.testing.assert_array_equal(np.isfinite(v), np.repeat(wanted, DATA.lengths))


def test_one_step_needs_nothing_to_follow():
    """Features of one step: least squares on the rewards, whatever ended."""
    rng = np.random.default_rng(0)
    states, actions = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    rows = {"reward": rng.normal(size=60) + states[:, 0] * actions, "pscore": np.full(60, 0.5), "action": actions}
    logs = tightrope.read({**rows, "obs_0": states[:, 0], "obs_1": states[:, 1]})
    policy = tightrope.TabularPolicy(np.array([[0.3, 0.7]]))

    class Same:
        def probs(self, some, t):
            return np.tile(policy.table, (len(some), 1))

        def log_prob(self, some, taken, t):
            return np.log(self.probs(some, t)[np.arange(len(taken)), taken])

    design = np.column_stack([np.ones(60), states])
    fits = [np.linalg.lstsq(design[actions == a], logs.rewards[actions == a], rcond=None)[0] for a in (0, 1)]
    expected = (0.3 * design @ fits[0] + 0.7 * design @ fits[1]).mean()
    for ended in (True, False):
        some = replace(logs, terminated=np.full(60, ended))
        assert tightrope.estimate(some, Same(), estimator="fqe") == pytest.approx(expected, rel=1e-10)
