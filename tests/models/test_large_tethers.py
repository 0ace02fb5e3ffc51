"""Tethered values of logs that do not fit into memory: the same bits, and memory that does not grow with the steps."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import tightrope
from tests.models.test_large_models import GIVEN, LOGS, STATES, WALKER, in_files, peak, walks
from tightrope.base import dataset, folder, ratios
from tightrope.base.policy import GaussianPolicy, TabularPolicy
from tightrope.base.problem import Problem
from tightrope.estimators import TDR
from tightrope.functional import statistic

LISTED = dataclasses.replace(LOGS, behavior=WALKER.behavior)
PROBS_ONLY = dataclasses.replace(LOGS, behavior=None)


def both_bounds(data, policy, **options):
    """The exact and the approximate bound, counted from either end."""
    return [
        bound(data, policy, estimator="tdr", method=method, n_resamples=60, seed=1, **options)
        for method in ("betting", "percentile", "studentized")
        for bound in (tightrope.lower_bound, tightrope.upper_bound)
    ]


def numbers_of(bounds):
    return [(bound.value, bound.estimate) for bound in bounds]


@pytest.mark.parametrize("size", [1 << 18, 50])
@pytest.mark.parametrize(
    ("data", "options"),
    [
        (LISTED, {"model": "tabular"}),
        (LISTED, {"model": GIVEN}),
        (LISTED, {"model": "none"}),
        (PROBS_ONLY, {"max_step_ratio": 4.0, "model": "none"}),
    ],
    ids=["tabular", "given", "none", "declared"],
)
def test_files_give_the_same_bits(data, options, size, monkeypatch):
    monkeypatch.setattr(folder, "PART", size)
    one, other = (numbers_of(both_bounds(logs, WALKER.candidate, **options)) for logs in (data, in_files(data)))
    assert one == other


@pytest.mark.parametrize("model", ["tabular", "none", GIVEN], ids=["tabular", "none", "given"])
def test_the_size_of_parts_changes_nothing(model, monkeypatch):
    """A tabular model tells horizon · states steps at a time at least, so a long tail of small parts is its own."""
    results = []
    for size in (1 << 18, 50, 7):
        monkeypatch.setattr(folder, "PART", size)
        results.append(numbers_of(both_bounds(LISTED, WALKER.candidate, model=model)))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("size", [1 << 18, 11])
def test_normal_policies_in_files(size, monkeypatch):
    monkeypatch.setattr(folder, "PART", size)
    rng = np.random.default_rng(2)
    n, steps = 60, 4
    wide, narrow = (
        GaussianPolicy(lambda states, t: 0.5 * states[:, :1], 1.0),
        GaussianPolicy(lambda states, t: 0.6 * states[:, :1], 0.5),
    )
    states = rng.normal(size=(n * steps, 2))
    actions = 0.5 * states[:, :1] + rng.normal(size=(n * steps, 1))
    data = tightrope.TrajectoryDataset(
        offsets=np.arange(n + 1) * steps,
        rewards=np.clip(states[:, 0] + actions[:, 0], -1, 1),
        terminated=np.ones(n, dtype=bool),
        horizon=steps,
        states=states,
        actions=actions,
        behavior_log_probs=wide.log_prob(states, actions, np.tile(np.arange(steps), n)),
        behavior=wide,
        reward_range=(-1.0, 1.0),
    )
    one, other = (numbers_of(both_bounds(logs, narrow, model="none")) for logs in (data, in_files(data)))
    assert one == other


def test_contradictions_are_named_in_whatever_part_they_are(monkeypatch):
    monkeypatch.setattr(folder, "PART", 50)
    log_probs = LISTED.behavior_log_probs.copy()
    log_probs[333] -= 0.01
    wrong = in_files(dataclasses.replace(LISTED, behavior_log_probs=log_probs))
    with pytest.raises(tightrope.BoundError, match=f"{LISTED.where(333)} has an importance ratio of"):
        both_bounds(wrong, WALKER.candidate)
    over = np.exp(Problem(LISTED, WALKER.candidate).eval_log_probs - LISTED.behavior_log_probs) > 1.0001
    first = LISTED.where(int(np.argmax(over)))
    with pytest.raises(tightrope.BoundError, match=f"{first} has .* above 1.0001: max_step_ratio is exceeded"):
        both_bounds(in_files(PROBS_ONLY), WALKER.candidate, max_step_ratio=1.0001, model="none")


@pytest.mark.parametrize("model", ["tabular", "none"])
def test_memory_does_not_grow_with_the_steps(model, monkeypatch):
    """420,000 more steps may take some numbers for each of their 4,200 episodes, not one for each of them."""
    for module, name in ((folder, "PART"), (folder, "FEW"), (ratios, "ASKED")):
        monkeypatch.setattr(module, name, 1 << 13)
    monkeypatch.setattr(statistic, "KEPT_BYTES", 0)
    monkeypatch.setattr(statistic, "COLUMN_BYTES", 1 << 16)
    monkeypatch.setattr(dataset, "CHUNK_BYTES", 1 << 16)
    probs = 0.5 + np.random.default_rng(1).uniform(-0.02, 0.02, STATES)
    policy = TabularPolicy(np.stack([probs, 1 - probs], axis=1))
    half = TabularPolicy(np.full((STATES, 2), 0.5))
    few, many = (
        dataclasses.replace(walks(n, np.random.default_rng(n)), behavior=half, return_range=(-200.0, 200.0))
        for n in (1400, 5600)
    )

    def work(data):
        problem = Problem(data, policy)
        TDR(model)(problem)(np.ones((1, data.n_trajectories)))
        TDR(model).sequential_values(problem).along(
            np.random.default_rng(0).permutation(data.n_trajectories), [0, 200, 900, data.n_trajectories], np.ones(3)
        )

    work(few)  # compiles
    less, more = (peak(lambda data=data: work(data)) for data in (few, many))
    per_episode = (more - less) / 4200
    assert per_episode < 8 * 60  # of which a step would be a hundredth: 100 steps at 8 bytes are 800
