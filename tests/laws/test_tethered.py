"""TDR: unbiased with any guess, never below its tether, and between importance sampling and DR, which are its ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests import tether_oracle as oracle
from tests.laws import laws
from tests.laws.laws import logs, same
from tests.model_oracle import as_table, truth, values
from tests.oracle import Episode, Mdp, mdps
from tightrope import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.estimators import DR, IS, PDIS, TDR
from tightrope.estimators.gain import gain
from tightrope.models import GivenValues, TabularModel

TETHERS = np.array([0.0, 0.05, 0.5, 2.0, 10.0, 1e4, np.inf])
ANCHORS = pytest.mark.parametrize("anchor", ["low", "high"])
DECLARED = pytest.mark.parametrize("kind", ["rewards", "return", "both"])
ENUMERATED = pytest.mark.parametrize("mdp", mdps(), ids=lambda mdp: mdp.name.replace(" ", "-"))


def table_of(mdp: Mdp, policy) -> TabularPolicy:
    return TabularPolicy([[policy(s, t) for s in range(2)] for t in range(mdp.horizon)])


def ranges(mdp: Mdp, kind: str) -> dict:
    """What is declared of an oracle's process: of each reward, of the return (as tightly as can be), or of both."""
    rewards = [reward for row in mdp.outcomes.values() for _, _, reward in row]
    returns = [e.discounted_return(mdp.discount) for _, e in mdp.trajectories()]
    both = {"reward_range": (min(rewards), max(rewards)), "return_range": (min(returns), max(returns))}
    return {name: span for name, span in both.items() if kind == "both" or name.startswith(kind[:6])}


def enumerated(mdp: Mdp, kind: str) -> tuple[Problem, np.ndarray]:
    """Every trajectory of the process, with both policies known."""
    data, probs = laws.enumerated(mdp, behavior=table_of(mdp, mdp.behavior), **ranges(mdp, kind))
    return Problem(data, table_of(mdp, mdp.candidate)), probs


def tables(mdp: Mdp) -> dict[str, np.ndarray]:
    """q̂ that is right, wrong, and wild."""
    _, q, _ = values(truth(mdp), mdp.candidate, mdp.horizon, mdp.discount)
    rng, shape = np.random.default_rng(7), (mdp.horizon, 2, 2)
    return {
        "right": as_table(q, mdp.horizon, 2, 2),
        "wrong": rng.uniform(-9.0, 9.0, shape),
        "wild": 1e9 * rng.standard_cauchy(shape),
    }


def game_of(problem: Problem, model, anchor: str):
    return TDR(model).anchored(anchor).sequential_values(problem)


def told(game, tethers=TETHERS, taught=()) -> np.ndarray:
    """X of all episodes, told by the ones to learn from, (n, tethers)."""
    everyone = np.arange(game.data.n_trajectories)
    return game.learned([(np.asarray(taught, dtype=np.int64), everyone)], tethers)


def oracle_range(problem: Problem, anchor: str) -> oracle.Range:
    low, high = problem.dataset.value_range
    steps = problem.dataset.step_range or (-np.inf, np.inf)
    return oracle.Range(low, high, steps[0]) if anchor == "low" else oracle.Range(-high, -low, -steps[1])


# -- enumeration ---------------------------------------------------------------------------------------------------


def law_unbiased(game, probs: np.ndarray, value: float, taught=()) -> None:
    """E[X] is the value's distance from the end of the range, whatever the guess and however long the tether."""
    means = probs @ told(game, taught=taught)
    np.testing.assert_allclose(game.origin + game.sign * means, value, rtol=0, atol=1e-12 * max(1, abs(game.origin)))


@ENUMERATED
@ANCHORS
@DECLARED
@pytest.mark.parametrize("guess", ["right", "wrong", "wild"])
def test_enumeration(mdp, anchor, kind, guess):
    problem, probs = enumerated(mdp, kind)
    law_unbiased(game_of(problem, GivenValues(tables(mdp)[guess]), anchor), probs, mdp.value(mdp.candidate))


@ENUMERATED
@ANCHORS
@DECLARED
@pytest.mark.parametrize(
    "model",
    ["none", "tabular", TabularModel(smoothing=2.0, n_states=2, n_actions=5)],
    ids=["none", "tabular", "smoothed"],
)
def test_enumeration_with_guesses_that_were_learned(mdp, anchor, kind, model):
    """From a few of the trajectories, and from none."""
    problem, probs = enumerated(mdp, kind)
    game = game_of(problem, model, anchor)
    for taught in ([], [0], np.arange(0, len(probs), 5)):
        law_unbiased(game, probs, mdp.value(mdp.candidate), taught)


@ENUMERATED
@ANCHORS
def test_enumeration_with_logged_ratios_alone(mdp, anchor):
    """No policies and no states; the ceiling of a step's ratio is declared."""
    problem, probs = enumerated(mdp, "both")
    bare = replace(problem.dataset, states=None, actions=None, behavior=None)
    most = float(np.exp(bare.eval_log_probs - bare.behavior_log_probs).max())
    for ceiling in (most, 3 * most):
        game = game_of(Problem(bare, max_step_ratio=ceiling), "none", anchor)
        law_unbiased(game, probs, mdp.value(mdp.candidate), np.arange(0, len(probs), 3))


@ENUMERATED
@ANCHORS
@pytest.mark.parametrize("guess", ["right", "wrong", "wild"])
def test_enumeration_of_the_gain(mdp, anchor, guess):
    problem, probs = enumerated(mdp, "both")
    made = gain(TDR(GivenValues(tables(mdp)[guess]))).anchored(anchor).sequential_values(problem)
    n = len(probs)
    table = made.along(np.arange(n), [0, n // 3, n], TETHERS)
    expected = mdp.value(mdp.candidate) - mdp.value(mdp.behavior)
    np.testing.assert_allclose(made.origin + made.sign * (probs @ table), expected, rtol=0, atol=1e-11)
    assert (table >= -TETHERS).all()


def unsupported() -> list[Mdp]:
    """Processes whose candidate does what the behaviour policy never does."""
    early, timed, discounted = mdps()
    return [
        replace(early, behavior=lambda s, t: [1.0, 0.0] if s == 0 else [0.3, 0.7]),
        replace(timed, behavior=lambda s, t: [[0.5, 0.5], [0.0, 1.0], [0.9, 0.1], [1.0, 0.0]][t]),
        replace(discounted, behavior=lambda s, t: [1.0, 0.0] if t == 1 else [0.6, 0.4]),
    ]


@pytest.mark.parametrize("mdp", unsupported(), ids=lambda mdp: mdp.name.replace(" ", "-"))
@ANCHORS
@DECLARED
@pytest.mark.parametrize("guess", ["right", "wrong", "wild", "none", "tabular"])
def test_what_the_behavior_policy_never_does_only_lowers(mdp, anchor, kind, guess):
    """E[X] falls short of the value's distance, so that a lower bound stays one, and an upper one."""
    problem, probs = enumerated(mdp, kind)
    game = game_of(problem, guess if guess in ("none", "tabular") else GivenValues(tables(mdp)[guess]), anchor)
    short = game.sign * (mdp.value(mdp.candidate) - game.origin) - probs @ told(game, taught=[0, 1, 2])
    assert (short >= -1e-11).all()
    assert short.max() > 0.01, "everything is supported: this would test nothing"


# -- against the slow definition -----------------------------------------------------------------------------------


def random_problem(seed: int, n: int = 12, horizon: int = 5, n_states: int = 3, n_actions: int = 3):
    """Episodes of no process at all; policies with zeros, rewards of either sign, unequal lengths."""
    rng = np.random.default_rng(seed)
    old, new = (rng.dirichlet(np.ones(n_actions), size=(horizon, n_states)) for _ in range(2))
    new[rng.random(new.shape) < 0.2] = 0.0
    new[..., 0] = 1 - new[..., 1:].sum(axis=-1)
    old[0, 0] = [0.5, 0.5, 0.0]
    episodes = []
    for i in range(n):
        length = horizon if i == 0 else int(rng.integers(1, horizon + 1))
        states = rng.integers(0, n_states, length).tolist()
        actions = [int(rng.choice(n_actions, p=old[t, s])) for t, s in enumerate(states)]
        places = [(t, s, a) for t, (s, a) in enumerate(zip(states, actions, strict=True))]
        probs = [[float(table[place]) for place in places] for table in (old, new)]
        rewards = rng.uniform(-2.0, 3.0, length).tolist()
        episodes.append(Episode(rewards, *probs, length < horizon or bool(rng.random() < 0.5), states, actions))
    q = rng.uniform(-15.0, 15.0, (horizon, n_states, n_actions))
    declared = [{"reward_range": (-2.0, 3.0)}, {"return_range": (-11.0, 16.0)}][seed % 2]
    if seed % 3 == 0:
        declared = {"reward_range": (-2.0, 3.0), "return_range": (-9.9, 14.0)}
    data = logs(episodes, horizon=horizon, discount=[1.0, 0.9, 0.3][seed % 3], behavior=TabularPolicy(old), **declared)
    return episodes, old, new, q, data


@pytest.mark.parametrize("seed", range(12))
@ANCHORS
def test_slow_definition(seed, anchor):
    episodes, old, new, q, data = random_problem(seed)
    problem = Problem(data, TabularPolicy(new))
    if not np.isfinite(problem.ratios.log_max).all():
        pytest.skip("no overlap")
    sign = 1 if anchor == "low" else -1
    found, declared = told(game_of(problem, GivenValues(q), anchor)), oracle_range(problem, anchor)
    for e, row in zip(episodes, found, strict=True):
        turned = replace(e, rewards=[sign * r for r in e.rewards])
        for tether, x in zip(TETHERS, row, strict=True):
            expected, lowest = oracle.tethered(
                turned, lambda s, t: new[t, s], lambda s, t: old[t, s], lambda s, a, t: sign * q[t, s, a], declared,
                data.discount, data.horizon, tether,
            )  # fmt: skip
            assert x == pytest.approx(max(expected, -tether), rel=1e-12, abs=1e-11)
            assert lowest >= -tether - 1e-9
            assert expected >= -tether - 1e-9, "only rounding is clamped"


@ENUMERATED
@pytest.mark.parametrize("guess", ["right", "wrong", "wild"])
def test_no_trajectory_falls_below_the_tether_even_without_a_clamp(mdp, guess):
    q, problem = tables(mdp)[guess], enumerated(mdp, "both")[0]
    declared = oracle_range(problem, "low")
    short = []
    for _, e in mdp.trajectories():
        for tether in TETHERS[:-1]:
            x, lowest = oracle.tethered(
                e, mdp.candidate, mdp.behavior, lambda s, a, t: q[t, s, a], declared, mdp.discount, mdp.horizon, tether
            )
            assert min(x, lowest) >= -tether - 1e-9 * max(1, tether)
            short.append(x)
    assert min(short) < -0.01, "no episode comes near its tether: this would test nothing"


@pytest.mark.parametrize("seed", range(6))
@ANCHORS
def test_slow_definition_without_policies(seed, anchor):
    episodes, *_, data = random_problem(seed)
    bare, sign = replace(data, states=None, actions=None, behavior=None), 1 if anchor == "low" else -1
    most = float(np.exp(bare.eval_log_probs - bare.behavior_log_probs).max()) + 0.5
    if not np.isfinite(Problem(bare).ratios.log_max).all():
        pytest.skip("no overlap")
    taught = [0, 3, 4]

    def g(t):
        later = [sum(data.discount ** (k - t) * e.rewards[k] for k in range(t, len(e.rewards))) for e in
                 (episodes[i] for i in taught) if len(e.rewards) > t]  # fmt: skip
        return sign * sum(later) / len(later)

    problem = Problem(bare, max_step_ratio=most)
    found = told(game_of(problem, "none", anchor), TETHERS[:-1], taught)
    for e, row in zip(episodes, found, strict=True):
        turned = replace(e, rewards=[sign * r for r in e.rewards])
        for tether, x in zip(TETHERS[:-1], row, strict=True):
            declared = oracle_range(problem, anchor)
            expected = oracle.blind(turned, g, most, declared, data.discount, data.horizon, tether)
            assert x == pytest.approx(max(expected, -tether), rel=1e-12, abs=1e-11)


# -- both ends -----------------------------------------------------------------------------------------------------


@ENUMERATED
@DECLARED
@ANCHORS
def test_without_a_tether_it_is_importance_sampling_from_a_rising_floor(mdp, kind, anchor):
    problem, _ = enumerated(mdp, kind)
    found = told(game_of(problem, GivenValues(tables(mdp)["wild"]), anchor), np.zeros(1))[:, 0]
    declared, sign = oracle_range(problem, anchor), 1 if anchor == "low" else -1
    for (_, e), x in zip(mdp.trajectories(), found, strict=True):
        turned = replace(e, rewards=[sign * r for r in e.rewards])
        expected = oracle.rising_floor(turned, declared, mdp.discount, mdp.horizon)
        assert x == pytest.approx(max(0.0, expected), rel=1e-12, abs=1e-12)
    if kind != "both":  # of returns alone the floor never rises; of rewards alone it rises with every one of them
        plain = (IS if kind == "return" else PDIS)().anchored(anchor).trajectory_values(problem, max_ratio=None)
        same(found, plain.values, 1e-12)


@ENUMERATED
@ANCHORS
def test_on_an_endless_tether_it_is_dr(mdp, anchor):
    """With guesses that are possible: what is not is cut to what is."""
    model, (problem, _) = GivenValues(tables(mdp)["wrong"]), enumerated(mdp, "return")
    wide = Problem(replace(problem.dataset, return_range=(-500.0, 500.0)), problem.policy)
    each = np.eye(problem.dataset.n_trajectories)
    game = game_of(wide, model, anchor)
    expected = DR(model, fit="shared")(problem)(each)
    np.testing.assert_allclose(game.origin + game.sign * told(game, np.array([np.inf]))[:, 0], expected, atol=1e-9)
    same(TDR(model, tether=np.inf).anchored(anchor)(wide)(each), expected, 1e-9)
    impossible = game_of(problem, GivenValues(tables(mdp)["wild"]), anchor)
    assert np.abs(told(impossible, np.array([np.inf]))).max() < 1e4
