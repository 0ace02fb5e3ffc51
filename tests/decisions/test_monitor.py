"""A monitor's promises: wealth of mean one, bets from the past alone, every episode once, terms that stay."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tightrope import BoundError, DataError, Monitor, TabularPolicy
from tightrope.decisions.monitoring import game as games
from tightrope.decisions.monitoring import state as states
from tightrope.decisions.monitoring.game import Game
from tightrope.decisions.monitoring.past import capacity, sampled
from tightrope.domains import small

WALKER, CLINIC = small("walker"), small("clinic")
CHANCES = np.array([0.2, 0.6])  # of a reward of 1, by action
NEW = TabularPolicy([[0.3, 0.7]])
TRUTH = 0.48  # 0.3 · 0.2 + 0.7 · 0.6
KINDS = tuple(itertools.product((0, 1), (0.0, 1.0)))  # (action, reward)


def bandit(kinds, old, first=0):
    """Episodes of one step, logged by a policy that takes action 1 with probability ``old``."""
    behavior = TabularPolicy([[1 - old, old]])
    actions, rewards = np.array([a for a, _ in kinds]), np.array([r for _, r in kinds])
    n = len(kinds)
    return tightrope.TrajectoryDataset(
        offsets=np.arange(n + 1), rewards=rewards, terminated=np.ones(n, bool), horizon=1, states=np.zeros(n, int),
        actions=actions, behavior=behavior, behavior_log_probs=np.log(np.where(actions == 1, old, 1 - old)),
        reward_range=(0.0, 1.0), episode_ids=np.arange(first, first + n),
    )  # fmt: skip


def chance(kinds, old):
    acts = [old if action else 1 - old for action, _ in kinds]
    wins = [CHANCES[action] if reward else 1 - CHANCES[action] for action, reward in kinds]
    return float(np.prod(acts) * np.prod(wins))


def day(number, n=40):
    logs = WALKER.logs(n, rng=np.random.default_rng(number))
    return replace(logs, episode_ids=np.arange(number * n, number * n + n))


def wealth(monitor, side, place):
    logs = monitor._state.games[side].logs[:, place]
    return float(np.exp(logs).mean())


def same(one, other):
    """Whether two monitors remember the same, bit for bit."""
    for name, value in vars(one._state).items():
        twin = vars(other._state)[name]
        if name == "games":
            for side in value:
                for part, array in vars(value[side]).items():
                    np.testing.assert_array_equal(array, vars(twin[side])[part])
        elif name == "tables":
            for side in value:
                np.testing.assert_array_equal(value[side], twin[side])
        elif name == "past":
            for part in ("offsets", "rewards", "actions", "states", "behavior_log_probs", "episode_ids"):
                np.testing.assert_array_equal(vars(value)[part].astype(str), vars(twin)[part].astype(str))
        else:
            np.testing.assert_array_equal(np.asarray(value, dtype=object), np.asarray(twin, dtype=object))


def test_against_the_true_mean_wealth_is_one_on_average(monkeypatch):
    """All streams of four episodes, with plans after the second and third, and a logging policy that adapts."""
    monkeypatch.setattr(games, "POINTS", 100)
    monkeypatch.setattr(states, "FIRST", 2)
    places, odds, wealths = {"lower": 47, "upper": 51}, [], []  # the mean 0.48 from below, 0.52 from above
    for first in itertools.product(KINDS, repeat=2):
        begun = Monitor(NEW)
        begun.update(bandit(first, 0.4))
        assert begun._state.edge == 3
        adapted = 0.3 if sum(reward for _, reward in first) > 0 else 0.6
        for second in itertools.product(KINDS, repeat=2):
            monitor = Monitor(NEW)
            monitor._state = begun._state
            monitor.update(bandit(second, adapted, first=2))
            odds.append(chance(first, 0.4) * chance(second, adapted))
            wealths.append([wealth(monitor, side, place) for side, place in places.items()])
    assert sum(odds) == pytest.approx(1.0)
    np.testing.assert_allclose(np.array(odds) @ np.array(wealths), 1.0, atol=1e-9)
    assert (np.max(wealths, axis=0) > 1.02).all()  # somebody bet something


@pytest.mark.parametrize("jump", [1.0, 1e120])
def test_bets_are_what_slow_loops_find(jump):
    """Also where single values are so large that products of wealth would not fit a float64."""
    rng = np.random.default_rng(5)
    game = Game.new(2.0, 0.05, limited=True)
    game.chosen[:], game.bets[:], game.stakes[:] = [0, 3, 5], [0.8, np.inf, 0.3], [0.5, 0.95, 0.9]
    table = rng.gamma(2.0, 0.6, size=(60, len(game.tethers))) - game.tethers * rng.random((60, 1)) * 0.1
    table[[30, 31, 40, 55]] *= jump
    ends = np.array([7, 20, 21, 60])
    reached = game.bet(table, ends)
    means, target = [2.0 * (k + 1) / games.POINTS for k in range(games.POINTS)], np.log(1 / 0.05)
    best, expected = 0, []
    logs = np.zeros((3, games.POINTS))
    for start, stop in zip([0, *ends[:-1]], ends, strict=True):
        for j in range(3):
            tether = game.tethers[game.chosen[j]]
            bet = np.minimum(game.bets[j], game.stakes[j] / (np.array(means) + tether))
            for x in table[start:stop, game.chosen[j]]:
                logs[j] += np.log(1 + bet * (x - np.array(means)))
        enough = np.flatnonzero(np.logaddexp.reduce(logs, axis=0) - np.log(3) >= target)
        best = max(best, int(enough.max()) + 1 if len(enough) else 0)
        expected.append(best)
    assert reached.tolist() == expected
    assert 0 < expected[0] < expected[-1] <= games.POINTS
    assert (expected[-1] == games.POINTS) == (jump > 1)
    alive = slice(*game.live)
    np.testing.assert_allclose(game.logs[:, alive], logs[:, alive], atol=1e-9)


def test_means_that_are_given_up_were_lost():
    game = Game.new(1.0, 0.05, limited=False)
    game.bets[:], game.stakes[:] = 0.8, 0.95
    game.bet(np.full((2000, 1), 0.5), np.array([2000]))
    low, high = game.live
    assert game.refuted(low) == pytest.approx(0.5, abs=0.02)
    assert game.refuted(high) == pytest.approx(0.561, abs=0.001)  # 2000 log(1 + 0.8 (0.5 − m)) = −100
    assert np.log(np.exp(game.logs[:, high - 1]).mean()) >= -100


def test_what_comes_later_changes_nothing_earlier():
    whole, part = Monitor(WALKER.candidate), Monitor(WALKER.candidate)
    logs = day(0, 200)
    whole.update(logs, every=10)
    part.update(logs.take(np.arange(70)), every=10)
    assert whole.looks[:7] == part.looks


def test_a_look_is_what_the_last_bound_was():
    """Bounds only get better: each mean that was refuted once stays refuted."""
    monitor = Monitor(WALKER.candidate)
    monitor.update(day(0, 300), every=20)
    lower, upper = ([getattr(look, side) for look in monitor.looks] for side in ("lower", "upper"))
    assert [look.episodes for look in monitor.looks] == list(range(20, 301, 20))
    assert lower == sorted(lower)
    assert upper == sorted(upper, reverse=True)
    assert lower[0] < lower[-1] < WALKER.true_value < upper[-1] < upper[0]


def test_episodes_count_in_the_order_of_their_first_rows():
    logs = day(0, 60)
    order = np.random.default_rng(0).permutation(60)
    shuffled = replace(logs.take(order), arrival=order)
    one, other = Monitor(WALKER.candidate), Monitor(WALKER.candidate)
    assert one.update(logs) == other.update(shuffled)
    backwards = replace(logs, arrival=np.arange(60)[::-1])
    assert Monitor(WALKER.candidate).update(backwards) != one.looks[-1]


def test_a_file_between_two_batches_changes_no_bit(tmp_path):
    path, straight = tmp_path / "state.npz", Monitor(WALKER.candidate)
    for number in range(4):
        straight.update(day(number), label=f"day {number}")
        paused = Monitor(WALKER.candidate) if number == 0 else Monitor.load(path, WALKER.candidate)
        paused.update(day(number), label=f"day {number}")
        paused.save(path)
    same(straight, Monitor.load(path, WALKER.candidate))
    assert straight.looks == paused.looks


def test_probabilities_that_cannot_be_true_are_noticed_across_batches(tmp_path):
    """Probabilities that are too low by 30 %: no day shows it by itself; ten days do, through files between them."""
    wrong, right, alone = Monitor(CLINIC.candidate), Monitor(CLINIC.candidate), []
    for number in range(10):
        logs = CLINIC.logs(60, rng=np.random.default_rng(number))
        logs = replace(logs, episode_ids=np.arange(60) + 60 * number)
        assert logs.behavior_log_probs is not None
        lowered = replace(logs, behavior_log_probs=logs.behavior_log_probs + np.log(0.7), behavior=None)
        right.update(logs)
        wrong.update(lowered)
        wrong.save(tmp_path / "state.npz")
        wrong = Monitor.load(tmp_path / "state.npz", CLINIC.candidate)
        fresh = Monitor(CLINIC.candidate)
        fresh.update(lowered)
        alone.append(fresh.warnings)
    assert [one.code for one in wrong.warnings] == ["mean-ratio"]
    assert right.warnings == ()
    assert alone == [()] * 10


def test_the_same_episode_twice_is_noticed():
    monitor = Monitor(WALKER.candidate)
    monitor.update(day(0))
    mixed = replace(day(1), episode_ids=np.concatenate([np.arange(500, 539), [17]]))
    before = monitor.looks
    with pytest.raises(DataError, match=r"episode 17 was counted before, and so were 1 of these 40"):
        monitor.update(mixed)
    assert monitor.looks == before
    assert monitor.episodes == 40
    monitor.update(mixed, skip_known=True)
    assert monitor.episodes == 79
    assert monitor.update(mixed, skip_known=True) == monitor.looks[-1]
    assert monitor.episodes == 79


def test_episodes_without_names_are_known_by_the_logs_they_stand_in():
    rows = {"reward": [1.0, 0.0, 1.0, 1.0], "pscore": [0.5] * 4, "eval_prob": [0.7, 0.3, 0.7, 0.3]}
    first = tightrope.read(rows, reward_range=(0, 1))
    monitor = Monitor(max_step_ratio=2.0)
    monitor.update(first)
    with pytest.raises(DataError, match="counted before"):
        monitor.update(first)
    monitor.update(tightrope.read({**rows, "reward": [1.0, 1.0, 1.0, 1.0]}, reward_range=(0, 1)))
    assert monitor.episodes == 8


def test_logs_that_the_candidate_could_not_have_made_count_too():
    sure = TabularPolicy([[0.0, 1.0]])
    monitor = Monitor(sure)
    monitor.update(bandit([(0, 1.0)] * 30, 0.5))
    assert monitor.episodes == 30
    assert monitor.looks[-1].lower == 0.0


def test_without_a_limit_of_the_step_ratio_it_is_importance_sampling():
    logs = replace(day(0, 200), behavior=None)
    plain, tethered = Monitor(WALKER.candidate), Monitor(WALKER.candidate)
    plain.update(logs)
    tethered.update(day(0, 200))
    assert not plain.terms.limited
    assert logs.value_range[0] < plain.looks[-1].lower < tethered.looks[-1].lower
    assert Monitor(WALKER.candidate, max_step_ratio=50.0).update(logs).lower > plain.looks[-1].lower


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reward_range": None, "return_range": None}, "missing: reward_range or return_range"),
        ({"reward_range": None, "return_range": (-32.0, np.inf)}, "missing: reward_range or return_range"),
        ({"horizon_declared": False}, "missing: horizon"),
        ({"behavior_log_probs": None}, "true probabilities"),
        ({"n_dropped": 1}, "must count all episodes"),
        ({"clusters": np.arange(40) // 2}, "got 20 clusters, 40 episodes"),
    ],
)
def test_what_it_refuses(changes, words):
    with pytest.raises((BoundError, DataError), match=words):
        Monitor(WALKER.candidate).update(replace(day(0), **changes))


def test_terms_stay(tmp_path):
    monitor = Monitor(WALKER.candidate)
    monitor.update(day(0))
    monitor.save(tmp_path / "state.npz")
    with pytest.raises(DataError, match=r"return_range was \(-32.0, .*\) and is \(-40.0, 0.0\) now"):
        monitor.update(replace(day(1), return_range=(-40.0, 0.0)))
    with pytest.raises(DataError, match=r"candidate was .* another one for others"):
        Monitor.load(tmp_path / "state.npz", WALKER.behavior).update(day(1))
    assert monitor.episodes == 40
    with pytest.raises(BoundError, match="confidence"):
        Monitor(WALKER.candidate, confidence=0.3)
    with pytest.raises(DataError, match="every"):
        monitor.update(day(1), every=0)


def test_files_that_no_monitor_wrote(tmp_path):
    monitor = Monitor(WALKER.candidate)
    with pytest.raises(DataError, match="before it is saved"):
        monitor.save(tmp_path / "state.npz")
    monitor.update(day(0))
    path = tmp_path / "state.npz"
    monitor.save(path)
    whole = path.read_bytes()
    for content in (b"", b"nothing", whole[: len(whole) // 2], whole[:-40]):
        path.write_bytes(content)
        with pytest.raises(DataError, match="must be a file that a monitor wrote"):
            Monitor.load(path, WALKER.candidate)
    with pytest.raises(DataError, match="must be a file that a monitor wrote"):
        Monitor.load(tmp_path / "none.npz", WALKER.candidate)


def test_the_sample_of_the_past_is_even_and_bounded():
    kept = np.zeros(0, dtype=np.int64)
    for start in range(0, 200, 7):
        arrived = np.arange(start, min(start + 7, 200))
        kept = sampled(kept, arrived, start, 10)
        assert len(set(kept.tolist())) == len(kept) == min(10, start + len(arrived))
    many = sampled(np.arange(1000), np.arange(1000, 20_000), 1000, 1000)
    shares = np.histogram(many, bins=4, range=(0, 20_000))[0] / 1000
    np.testing.assert_allclose(shares, 0.25, atol=0.06)
    assert (capacity(1), capacity(1000), capacity(10**6)) == (2000, 400, 50)


def test_names_of_states_and_actions_are_as_good_as_numbers(tmp_path):
    """Batches hold different names, so that the numbers of names differ from batch to batch."""
    names, acts = np.array(["f", "c", "e", "a", "d", "b"]), np.array(["walk", "run"])
    policies = {}
    for word, policy in (("new", WALKER.candidate), ("old", WALKER.behavior)):
        rows = [f"{names[s]},{acts[a]},{float(policy.table[s, a])!r}" for s in range(6) for a in range(2)]
        (tmp_path / f"{word}.csv").write_text("\n".join(["state,action,prob", *rows]))
        policies[word] = tightrope.adapters.load_policy(str(tmp_path / f"{word}.csv"))
    numbered, named = Monitor(WALKER.candidate), Monitor(policies["new"])
    for number in range(3):
        logs = replace(day(number, 30), final_states=None)
        if number == 1:
            logs = logs.take(logs.lengths <= 3)  # few of the names
            assert len(set(logs.states)) < 5
        words = replace(logs, states=names[logs.states], actions=acts[logs.actions], behavior=policies["old"])
        one, other = numbered.update(logs), named.update(words)
        assert (one.lower, one.upper) == pytest.approx((other.lower, other.upper), rel=1e-6)
