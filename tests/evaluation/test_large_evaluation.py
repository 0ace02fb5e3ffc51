"""An evaluation of logs in files: no more memory for more episodes, and the answer that logs in memory give."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope
from tests.models.test_large_models import in_files, peak
from tightrope.base import dataset, folder, ratios
from tightrope.bounds import Anderson
from tightrope.estimators import model_based
from tightrope.evaluation import model_check, overlap
from tightrope.functional import statistic
from tightrope.functional.engines import local, sums
from tightrope.functional.values import TrajectoryValues

STEPS, STATES = 3, 6
CANDIDATE = tightrope.TabularPolicy(np.tile([0.48, 0.52], (STATES, 1)))
BEHAVIOR = tightrope.TabularPolicy(np.tile([0.5, 0.5], (STATES, 1)))
GROUPS = {"alone": (), "by cluster": ("clusters",), "within strata": ("clusters", "strata")}
BYTES = {(): 4, ("clusters",): 20, ("clusters", "strata"): 44}  # what passes for each episode; 120 lie in its columns


def walks(n, groups=()):
    """Short episodes: what is kept for each of them is most of what is kept at all."""
    rng = np.random.default_rng(n)
    actions = rng.integers(0, 2, (n, STEPS))
    whose = np.arange(n) // 4
    named = {"clusters": whose, "strata": whose % 3}
    return tightrope.TrajectoryDataset(
        offsets=np.arange(n + 1) * STEPS,
        rewards=rng.integers(0, 10, n * STEPS) / 2,
        terminated=np.ones(n, dtype=bool),
        horizon=STEPS,
        states=(np.cumsum(actions, axis=1) % STATES).ravel(),
        actions=actions.ravel(),
        behavior_log_probs=np.full(n * STEPS, np.log(0.5)),
        behavior=BEHAVIOR,
        reward_range=(0, 5),
        **{name: named[name] for name in groups},
    )


@pytest.fixture
def _small_parts(monkeypatch):
    """What is looked at together is little, so that all of it shows."""
    for module, name in (
        (folder, "PART"),
        (folder, "WIDE"),
        (folder, "FEW"),
        (ratios, "ASKED"),
        (overlap, "MOST_NUMBERS"),
        (model_check, "MOST_STEPS"),
    ):
        monkeypatch.setattr(module, name, 1 << 9)
    for module, name in (
        (statistic, "KEPT_BYTES"),
        (statistic, "COLUMN_BYTES"),
        (dataset, "CHUNK_BYTES"),
        (local, "SLAB_BYTES"),
        (sums, "SLAB_BYTES"),
        (model_based, "ROW_BYTES"),
    ):
        monkeypatch.setattr(module, name, 1 << 12)


def evaluated(data):
    return tightrope.evaluate(data, CANDIDATE, n_resamples=24, n_jobs=1)


@pytest.mark.usefixtures("_small_parts")
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_memory_does_not_grow_with_the_episodes(groups):
    few, many = (in_files(walks(n, groups)) for n in (6000, 30_000))
    evaluated(few)  # compiles
    less, more = (peak(lambda data=data: evaluated(data)) for data in (few, many))
    assert more - less < BYTES[groups] * 24_000


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_what_is_looked_at_together_changes_nothing(groups, request):
    """Beyond the last digits of sums: bounds, what they warn of, and the episodes that carry them."""
    data = walks(3000, groups)
    together = evaluated(data)
    request.getfixturevalue("_small_parts")
    apart = evaluated(data)
    for one, other in zip(together.bounds, apart.bounds, strict=True):
        assert other.value == pytest.approx(one.value, rel=1e-9)
        assert other.standard_error == pytest.approx(one.standard_error, rel=1e-9)
        assert [each.code for each in other.warnings] == [each.code for each in one.warnings]
    assert together.details is not None
    assert apart.details is not None
    names = [[each.episode for each in result.details.influential] for result in (together, apart)]
    assert names[0] == names[1]


def test_anderson_in_parts(monkeypatch):
    values = TrajectoryValues(np.random.default_rng(0).pareto(1.5, 1000), 0.0, 1.0, None)
    whole = Anderson().lower(values, delta=0.05, seed=0)
    monkeypatch.setattr(folder, "PART", 64)
    assert Anderson().lower(values, delta=0.05, seed=0) == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_it_is_what_logs_in_memory_give(groups):
    data = walks(1500, groups)
    assert str(evaluated(in_files(data))) == str(evaluated(data))
