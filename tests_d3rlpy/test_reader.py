"""d3rlpy's own datasets, read and compared with the arrays they were made from."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from d3rlpy.dataset import Episode, MDPDataset, create_infinite_replay_buffer

import tightrope

LENGTHS = (4, 2, 3)
STARTS = np.concatenate([[0], np.cumsum(LENGTHS)])
N = int(STARTS[-1])


def arrays(discrete):
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 3, (N, 1)) if discrete else rng.normal(size=(N, 2)).astype(np.float32)
    return rng.normal(size=(N, 3)).astype(np.float32), actions, rng.normal(size=(N, 1)).astype(np.float32)


def made(kind, observations, actions, rewards):
    """The second episode terminated; the first and third were cut off, the first at the horizon."""
    if kind == "MDPDataset":
        ends = np.isin(np.arange(N), STARTS[1:] - 1)
        terminated = np.arange(N) == STARTS[2] - 1
        return MDPDataset(
            observations,
            actions,
            rewards,
            terminals=terminated.astype(float),
            timeouts=(ends & ~terminated).astype(float),
        )
    pieces = [slice(start, stop) for start, stop in itertools.pairwise(STARTS)]
    episodes = [
        Episode(observations[piece], actions[piece], rewards[piece], terminated=number == 1)
        for number, piece in enumerate(pieces)
    ]
    return episodes if kind == "episodes" else create_infinite_replay_buffer(episodes=episodes)


@pytest.mark.parametrize("discrete", [True, False])
@pytest.mark.parametrize("kind", ["MDPDataset", "episodes", "replay buffer"])
def test_values(kind, discrete):
    observations, actions, rewards = arrays(discrete)
    source = made(kind, observations, actions, rewards)
    data = tightrope.read(source, incomplete="terminate")
    assert data.lengths.tolist() == list(LENGTHS)
    np.testing.assert_array_equal(data.states, observations)
    np.testing.assert_array_equal(data.actions, actions[:, 0] if discrete else actions)
    np.testing.assert_array_equal(data.rewards, rewards[:, 0])
    assert data.behavior_log_probs is None
    assert tightrope.read(source, incomplete="drop").episode_ids.tolist() == [0, 1]
