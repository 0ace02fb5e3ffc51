"""What an exact bound learns on the way it learns from earlier episodes: later ones change nothing, not by a bit."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from tests.games import played
from tests.laws.laws import logs
from tests.models import systems
from tests.oracle import Episode
from tightrope import GaussianPolicy, TabularPolicy
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.problem import Problem
from tightrope.bounds.exact import betting
from tightrope.bounds.exact.planning_kernels import share_of_goal
from tightrope.estimators import TDR
from tightrope.estimators.gain import gain
from tightrope.models import MODELS, GivenValues, TabularModel

HORIZON, STATES, ACTIONS, N = 4, 5, 2, 40
OLD = TabularPolicy(np.random.default_rng(0).dirichlet([3.0, 3.0], size=(HORIZON, STATES)))
NEW = TabularPolicy(np.random.default_rng(1).dirichlet([3.0, 3.0], size=(HORIZON, STATES)))
TETHERS = np.array([0.0, 0.5, 3.0, np.inf])

DECLARED = {
    "rewards": {"reward_range": (-9.0, 9.0)},
    "return": {"return_range": (-40.0, 40.0)},
    "both": {"reward_range": (-9.0, 9.0), "return_range": (-30.0, 30.0)},
}
LEARNING = {
    "tabular": TDR("tabular"),
    "self-loops": TDR(TabularModel(unseen="worst")),
    "smoothed": TDR(TabularModel(smoothing=1.0, n_states=STATES)),
    "none": TDR("none"),
    "given": TDR(GivenValues(np.random.default_rng(2).normal(size=(HORIZON, STATES, ACTIONS)))),
    "gain": gain(TDR("tabular")),
    "ratios": TDR("tabular"),  # without the behaviour policy: values of states, not of actions
}


def episode(rng, states, size) -> Episode:
    """One of no process at all, in these states, with rewards up to this size."""
    length = int(rng.integers(1, HORIZON + 1))
    visited = rng.choice(states, length).tolist()
    actions = [int(rng.choice(ACTIONS, p=OLD.table[t, s])) for t, s in enumerate(visited)]
    places = [(t, s, a) for t, (s, a) in enumerate(zip(visited, actions, strict=True))]
    probs = [[float(policy.table[place]) for place in places] for policy in (OLD, NEW)]
    return Episode(rng.uniform(-size, size, length).tolist(), *probs, True, visited, actions)


def problem_of(episodes, kind, *, known=True) -> Problem:
    data = logs(episodes, horizon=HORIZON, behavior=OLD if known else None, **DECLARED[kind])
    return Problem(data, NEW, max_step_ratio=None if known else 1e3)


def pair_of_logs(order, place: int) -> tuple[list[Episode], list[Episode]]:
    """Logs that differ from one place of an order on: there other states are visited, and rewards are larger."""
    rng = np.random.default_rng(5)
    one = [episode(rng, [0, 1, 2], 1.0) for _ in range(N)]
    other = list(one)
    for i in order[place:]:
        other[i] = episode(rng, [1, 2, 3, 4], 9.0)
    return one, other


def learned_models():
    """Every registered model that can be fitted to these logs and to earlier episodes alone."""
    for name in MODELS:
        with suppress(TightropeError):
            TDR(name).sequential_values(problem_of(pair_of_logs(np.arange(N), N)[0], "both"))
            yield name


LEARNING |= {name: TDR(name) for name in learned_models()}


@pytest.mark.parametrize("kind", DECLARED)
@pytest.mark.parametrize("anchor", ["low", "high"])
@pytest.mark.parametrize("name", LEARNING)
def test_later_episodes_change_nothing_earlier(name, anchor, kind):
    """Values before the change; and where it falls into a block, the bet, the tether and what is told of the others."""
    order, edges = np.random.default_rng(3).permutation(N), betting.block_edges(N)
    for start, stop in pairwise(edges[1:]):
        for place in {start, stop - 1}:
            games = [
                LEARNING[name].anchored(anchor).sequential_values(problem_of(episodes, kind, known=name != "ratios"))
                for episodes in pair_of_logs(order, place)
            ]
            one, other = (game.along(order, edges, TETHERS) for game in games)
            np.testing.assert_array_equal(one[:place], other[:place])
            assert (one[place:] != other[place:]).any()
            (_, bets, _, lengths), (_, again, _, others) = (played(game, order) for game in games)
            np.testing.assert_array_equal(bets[:stop], again[:stop])
            np.testing.assert_array_equal(lengths[:stop], others[:stop])


def test_something_is_learned_and_chosen():
    """The test above would hold of bets and tethers that are the same everywhere."""
    one, _ = pair_of_logs(np.arange(N), N)
    game = TDR("tabular").sequential_values(problem_of(one, "both"))
    order, edges = np.random.default_rng(3).permutation(N), betting.block_edges(N)
    _, bets, _, lengths = played(game, order)
    assert len(np.unique(bets[edges[1] :])) > 3
    assert lengths.max() > 0
    told = [game.learned([(order[:stop], order[30:])], TETHERS) for stop in (5, 10, 20, 30)]
    assert all((a != b).any() for a, b in pairwise(told))


def test_values_of_other_exact_bounds_are_told_by_the_other_half():
    """Which episodes are told is known beforehand; nothing about one of them changes another's value."""
    one, _ = pair_of_logs(np.arange(N), N)
    plain = TDR("tabular").trajectory_values(problem_of(one, "return"), max_ratio=None)
    assert len(plain.values) == len(plain.episodes) == N // 2
    changed = list(one)
    changed[plain.episodes[4]] = episode(np.random.default_rng(9), [3, 4], 9.0)
    again = TDR("tabular").trajectory_values(problem_of(changed, "return"), max_ratio=None)
    np.testing.assert_array_equal(plain.episodes, again.episodes)
    np.testing.assert_array_equal(np.delete(plain.values, 4), np.delete(again.values, 4))
    assert plain.values[4] != again.values[4]
    assert plain.origin == again.origin


def test_which_half_is_told_does_not_hang_on_how_episodes_went():
    """Sorted by value before they are split, the told half of some numbers of episodes would be the better one."""
    one, other = pair_of_logs(np.arange(N), 0)
    problems = [problem_of(each, "return") for each in (one, other)]
    halves = [TDR("none").trajectory_values(problem, max_ratio=None).episodes for problem in problems]
    np.testing.assert_array_equal(*halves)


@pytest.mark.parametrize("model", ["linear", "polynomial", TabularModel(smoothing=1.0)])
def test_models_that_look_at_all_logs_are_refused(model):
    """Roll-outs end where no logged state is near, smoothing spreads over all states in the logs."""
    normal = GaussianPolicy(lambda s, t: np.zeros((len(s), 1)), [[1.0]])
    data = systems.logs(30, reward_range=(-30.0, 30.0), behavior=normal)
    density = normal.log_prob(data.states, data.actions, data.times)
    problem = Problem(replace(data, behavior_log_probs=density), systems.CANDIDATE)
    if isinstance(model, TabularModel):
        problem = problem_of(pair_of_logs(np.arange(N), N)[0], "both")
    with pytest.raises(BoundError, match=r"fitted to earlier episodes and looks at no others.*model=\"tabular\""):
        TDR(model).sequential_values(problem)
    assert np.isfinite(TDR(model)(problem).estimate)  # where nothing is called exact, they serve


# -- a fair game, over all logs that there can be ------------------------------------------------------------------


def all_logs(n):
    """Every log of n episodes of one or two steps, with its probability, and the candidate's value."""
    old, new = np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([[0.2, 0.8], [0.9, 0.1]])
    # State 0: action 0 ends with reward 1, action 1 goes on to state 1 with reward 0; there action 0 pays 2, 1 pays -1.
    ways = [([0], [0], [1.0]), ([0, 1], [1, 0], [0.0, 2.0]), ([0, 1], [1, 1], [0.0, -1.0])]
    chances = [[float(np.prod(p[s, a])) for s, a, _ in ways] for p in (old, new)]
    value = sum(p * sum(way[2]) for p, way in zip(chances[1], ways, strict=True))
    episodes = [
        Episode(r, [float(p) for p in old[s, a]], [float(p) for p in new[s, a]], True, s, a) for s, a, r in ways
    ]
    for drawn in product(range(3), repeat=n):
        data = logs([episodes[k] for k in drawn], horizon=2, return_range=(-1.0, 2.0), behavior=TabularPolicy(old))
        yield float(np.prod([chances[0][k] for k in drawn])), Problem(data, TabularPolicy(new)), value


WILD = GivenValues(1e3 * np.random.default_rng(4).standard_cauchy((2, 2, 2)))


@pytest.mark.parametrize("anchor", ["low", "high"])
@pytest.mark.parametrize("model", ["tabular", "none", WILD], ids=["tabular", "none", "wild"])
def test_against_the_true_value_wealth_is_one_on_average(model, anchor):
    """Over all logs of four episodes, whatever is learned and chosen on the way, at one seed."""
    total = mass = 0.0
    lengths = set()
    for chance, problem, value in all_logs(4):
        game = TDR(model).anchored(anchor).sequential_values(problem)
        played = betting.games(game, 0.5, 0)
        mean = game.sign * (value - game.origin)
        shares = [share_of_goal(*order, mean, np.log(2)) for order in zip(*played, strict=True)]
        total += chance * np.mean(shares) * 4
        mass += chance
        lengths |= set(played[3].ravel().tolist())
    assert mass == pytest.approx(1.0)
    assert len(lengths) > 1 or model is WILD, "no tether is ever chosen: this would test nothing"
    assert total == pytest.approx(1.0, abs=1e-12)
