"""The dataset: parts of it, padding, declared ranges, and refusals of arrays that do not fit together."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tightrope.base.dataset
from tests.logs import assert_same
from tightrope import DataError, TightropeError, TrajectoryDataset
from tightrope.base.warnings import caution

NOTE = caution("assumed", "a note")
LENGTHS = [2, 4, 1, 3]
REWARDS = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]


def made(**changes):
    """Four episodes of 2, 4, 1 and 3 steps; all but the second ended for good."""
    values = {
        "offsets": [0, 2, 6, 7, 10],
        "rewards": REWARDS,
        "terminated": [True, False, True, True],
        "horizon": 4,
        "discount": 0.5,
        "behavior_log_probs": -np.arange(10.0),
        "eval_log_probs": -2 * np.arange(10.0),
        "states": np.arange(20.0).reshape(10, 2),
        "actions": np.arange(10),
        "final_states": np.arange(8.0).reshape(4, 2),
        "episode_ids": ["a", "b", "c", "d"],
        "notes": (NOTE,),
    }
    return TrajectoryDataset(**(values | changes))


def test_sizes_times_and_returns():
    data = made()
    assert (data.n_trajectories, data.n_steps) == (4, 10)
    assert data.lengths.tolist() == LENGTHS
    assert data.times.tolist() == [0, 1, 0, 1, 2, 3, 0, 0, 1, 2]
    assert data.discounts.tolist() == [1, 0.5, 0.25, 0.125]
    # 1 + 2/2; 3 + 4/2 + 5/4 + 6/8; 7; 8 + 9/2 + 10/4
    assert data.returns.tolist() == [2.0, 7.0, 7.0, 15.0]


@pytest.mark.parametrize("discount", [0.0, 0.9, 1.0])
def test_returns_against_a_loop(discount):
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 30, size=200)
    offsets = np.r_[0, np.cumsum(lengths)]
    rewards = rng.normal(size=offsets[-1])
    data = TrajectoryDataset(
        offsets=offsets, rewards=rewards, terminated=np.ones(200, bool), horizon=30, discount=discount
    )
    for i, start in enumerate(offsets[:-1]):
        slow = math.fsum(discount**t * rewards[start + t] for t in range(lengths[i]))
        assert data.returns[i] == pytest.approx(slow, abs=1e-12)


def test_where():
    data = made()
    assert [data.where(step) for step in (0, 1, 2, 6, 9)] == [
        "episode a, step 0",
        "episode a, step 1",
        "episode b, step 0",
        "episode c, step 0",
        "episode d, step 2",
    ]
    assert made(episode_ids=None).where(9) == "episode 3, step 2"


# -- parts -----------------------------------------------------------------------------------------------------------


def test_take_repeats_and_reorders():
    part = made().take([3, 0, 3])
    rows = [7, 8, 9, 0, 1, 7, 8, 9]
    assert part.offsets.tolist() == [0, 3, 5, 8]
    assert part.rewards.tolist() == [REWARDS[row] for row in rows]
    assert part.actions.tolist() == rows
    assert part.states.tolist() == [[2 * row, 2 * row + 1] for row in rows]
    assert part.behavior_log_probs.tolist() == [-row for row in rows]
    assert part.eval_log_probs.tolist() == [-2 * row for row in rows]
    assert part.final_states.tolist() == [[6, 7], [0, 1], [6, 7]]
    assert part.episode_ids.tolist() == ["d", "a", "d"]
    assert part.terminated.tolist() == [True, True, True]
    assert (part.horizon, part.discount, part.notes) == (4, 0.5, (NOTE,))
    assert part.returns.tolist() == [15.0, 2.0, 15.0]


def test_take_by_mask_and_from_the_end():
    data = made()
    assert_same(data.take([False, True, False, True]), data.take([1, 3]))
    assert_same(data.take([-1, -3]), data.take([3, 1]))
    assert_same(data.take(range(4)), data)
    bare = made(**dict.fromkeys(["states", "actions", "final_states", "behavior_log_probs", "eval_log_probs"]))
    assert bare.take([1]).states is None


@pytest.mark.parametrize("episodes", [[4], [-5], [0.5], [True, False], ["a"]])
def test_take_what_is_not_there(episodes):
    with pytest.raises(DataError, match="episodes must be positions from 0 to 3"):
        made().take(episodes)


def test_take_nothing():
    with pytest.raises(DataError, match="the logs hold no episodes"):
        made().take(np.zeros(4, dtype=bool))


def test_pad_unequal_lengths():
    data = made()
    assert data.pad(data.rewards, 0, 4).tolist() == [[1, 2, 0, 0], [3, 4, 5, 6], [7, 0, 0, 0], [8, 9, 10, 0]]
    assert data.pad(data.rewards[data.steps(2, 4)], 2, 4).tolist() == [[7, 0, 0, 0], [8, 9, 10, 0]]
    assert data.steps(1, 3) == slice(2, 7)


def test_pad_equal_lengths_is_a_view():
    data = TrajectoryDataset(offsets=[0, 2, 4, 6], rewards=np.arange(6.0), terminated=[0, 0, 1], horizon=2)
    rows = data.pad(data.rewards, 0, 3)
    assert rows.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert np.shares_memory(rows, data.rewards)


@pytest.mark.parametrize(("size", "expected"), [(1, [1, 1, 1, 1]), (96, [3, 1]), (10**6, [4])])
def test_chunks_cover_everything_once(monkeypatch, size, expected):
    monkeypatch.setattr(tightrope.base.dataset, "CHUNK_BYTES", size)  # one padded row takes 4 * 8 bytes
    chunks = list(made().chunks())
    assert [stop - start for start, stop in chunks] == expected
    assert [i for start, stop in chunks for i in range(start, stop)] == [0, 1, 2, 3]


# -- declared ranges -------------------------------------------------------------------------------------------------

FULL = {"offsets": [0, 2, 4], "rewards": [1.0, 2.0, 1.0, 1.0], "horizon": 2, "discount": 0.5}


@pytest.mark.parametrize("terminated", [[False, False], [False, True]])
@pytest.mark.parametrize(
    ("declared", "step", "value"),
    [
        ((1, 3), (0, 3), (0, 4.5)),  # (1 + 1/2) times the ends; a step after an early end would earn 0
        ((None, 3), (-math.inf, 3), (-math.inf, 4.5)),
        ((1, None), (0, math.inf), (0, math.inf)),
        ((-2, 2), (-2, 2), (-3, 3)),
        (None, None, None),
    ],
)
def test_ranges(declared, terminated, step, value):
    """Widened to hold 0 whether or not an early end is in the sample."""
    data = TrajectoryDataset(**FULL, terminated=terminated, reward_range=declared)
    assert data.step_range == step
    assert data.value_range == value


def test_a_single_step_is_always_taken():
    data = TrajectoryDataset(offsets=[0, 1], rewards=[2.0], terminated=[True], horizon=1, reward_range=(1, 3))
    assert data.step_range == (1, 3)
    assert data.value_range == (1, 3)


def test_negative_rewards_widen_upwards():
    data = TrajectoryDataset(offsets=[0, 1], rewards=[-2.0], terminated=[True], horizon=3, reward_range=(-3, -1))
    assert data.step_range == (-3, 0)
    assert data.value_range == (-9, 0)


def test_declared_return_range_is_taken_as_it_is():
    data = TrajectoryDataset(**FULL, terminated=[True, True], reward_range=(0, 5), return_range=(1, 2))
    assert data.value_range == (1, 2)
    assert data.returns.tolist() == [2.0, 1.5]


# -- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"offsets": [0]}, "the logs hold no episodes"),
        ({"offsets": 0}, "the logs hold no episodes"),
        ({"offsets": [0, 2, 6, 7, 9]}, r"offsets must rise from 0 to the number of steps \(10\).* got 0 \.\. 9"),
        ({"offsets": [0, 2, 2, 7, 10]}, "each episode having at least one step"),
        ({"offsets": [0, 2.5, 6, 7, 10]}, "offsets must hold whole numbers"),
        ({"rewards": np.zeros((10, 1))}, r"rewards must hold one number per row; got shape \(10, 1\)"),
        ({"rewards": ["a"] * 10}, "rewards does not convert to an array of float64"),
        ({"rewards": [math.nan] + [0.0] * 9}, "rewards must be a finite number; got nan at episode a, step 0"),
        (
            {"states": np.full((10, 2), math.inf)},
            r"states must be a finite number; got \[inf inf\] at episode a, step 0",
        ),
        ({"states": np.zeros(9)}, r"states must have 10 rows; got shape \(9,\)"),
        ({"states": [[1], [1, 2]] * 5}, "states does not convert to an array of numbers or text"),
        ({"actions": [None] * 10}, "actions must hold integers, floats or text, .*; got mixed types"),
        ({"terminated": [True] * 3}, r"terminated must have 4 rows; got shape \(3,\)"),
        ({"terminated": [2, 0, 1, 1]}, "terminated must hold true or false"),
        ({"episode_ids": ["a"]}, r"episode_ids must have 4 rows; got shape \(1,\)"),
        (
            {"behavior_log_probs": [-1.0] * 9 + [-math.inf]},
            "behavior_log_probs must be finite, .*; got -inf at episode d, step 2",
        ),
        ({"eval_log_probs": [-1.0] * 9 + [0.1]}, "eval_log_probs must be at most 0, .*; got 0.1 at episode d, step 2"),
        ({"terminated": [True, False, False, True]}, "episode c stops after step 0 without being flagged"),
        ({"horizon": 3}, "episode b has 4 steps, more than horizon=3"),
    ],
)
def test_arrays_that_do_not_fit(changes, message):
    with pytest.raises(TightropeError, match=message):
        made(**changes)


def test_settings_become_plain_numbers():
    data = made(horizon=np.int32(4), discount=np.float32(0.5))
    assert type(data.horizon) is int
    assert type(data.discount) is float
    assert type(made(horizon=4.0).horizon) is int


@pytest.mark.parametrize("name", ["clusters", "strata"])
def test_clusters_and_strata_have_names(name):
    with pytest.raises(DataError, match=rf"{name} must be a finite number; got nan at the episode at place 1"):
        TrajectoryDataset(
            offsets=np.array([0, 1, 2]),
            rewards=np.ones(2),
            terminated=np.ones(2, bool),
            horizon=1,
            **{name: np.array([1.0, np.nan])},
        )
