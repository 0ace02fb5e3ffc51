"""The laws every estimator obeys, as functions that raise AssertionError: run on the registry and on mutants alike.

``make`` is anything that turns a Problem into a statistic: a registered estimator or a mutant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from tests.oracle import Episode, Mdp
from tightrope import TabularPolicy, TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.estimators import ESTIMATORS, USUAL
from tightrope.functional.engines import replicate
from tightrope.functional.resampling import Multinomial, WeightScheme

Make = Callable[[Problem], Any]

# Those that need nothing but logged probabilities; the others need states and a policy, and have laws of their own.
SAMPLING = {name: ESTIMATORS[name] for name in USUAL if ESTIMATORS[name]().model is None}

# Which law a textbook form cannot obey, and why; the tests skip with this reason, so `pytest -rs` lists them.
UNSHIFTED = "without a declared range IS and PDIS are not shifted: their ratios do not average to exactly one"


def logs(
    episodes: Sequence[Episode], *, horizon: int, discount: float = 1.0, reward_range: Any = None, **more: Any
) -> TrajectoryDataset:
    """A dataset of the given episodes."""
    with np.errstate(divide="ignore"):
        return TrajectoryDataset(
            offsets=np.cumsum([0, *(len(e.rewards) for e in episodes)]),
            rewards=np.concatenate([e.rewards for e in episodes]),
            terminated=np.array([e.terminated for e in episodes]),
            horizon=horizon,
            discount=discount,
            behavior_log_probs=np.log(np.concatenate([e.behavior for e in episodes])),
            eval_log_probs=np.log(np.concatenate([e.candidate for e in episodes])),
            states=None if episodes[0].states is None else np.concatenate([e.states for e in episodes]),
            actions=None if episodes[0].actions is None else np.concatenate([e.actions for e in episodes]),
            reward_range=reward_range,
            **more,
        )


def same(left: Any, right: Any, tolerance: float = 1e-12) -> None:
    """Equal up to rounding, relative to the size of the numbers."""
    np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)


# -- 1 to 4: a functional of weights ------------------------------------------------------------------------------


def law_ones(make: Make, data: TrajectoryDataset) -> None:
    """1. Weights of one give the point estimate, and only their proportions matter."""
    statistic = make(Problem(data))
    n = data.n_trajectories
    same(statistic(np.ones(n)), statistic.estimate)
    same(statistic(np.full(n, 1 / n)), statistic.estimate)


def law_integer_weights(make: Make, data: TrajectoryDataset, weights: Sequence[int]) -> None:
    """2. Integer weights equal a rebuild on the repeated trajectories."""
    rebuilt = data.take(np.repeat(np.arange(data.n_trajectories), weights))
    same(make(Problem(data))(np.asarray(weights)), make(Problem(rebuilt)).estimate)


def law_order(make: Make, data: TrajectoryDataset, order: Sequence[int]) -> None:
    """3. Trajectory order does not matter."""
    same(make(Problem(data.take(order))).estimate, make(Problem(data)).estimate)
    weights = np.arange(1.0, data.n_trajectories + 1)
    same(make(Problem(data.take(order)))(weights[np.asarray(order)]), make(Problem(data))(weights))


def law_duplication(make: Make, data: TrajectoryDataset) -> None:
    """3. Duplicating the whole dataset changes nothing."""
    twice = data.take(np.tile(np.arange(data.n_trajectories), 2))
    same(make(Problem(twice)).estimate, make(Problem(data)).estimate)


def law_batch(make: Make, data: TrajectoryDataset, rows: np.ndarray) -> None:
    """4. A batch of weight rows equals its rows, whatever its shape."""
    statistic = make(Problem(data))
    together = statistic(rows)
    assert together.shape == rows.shape[:-1]
    for index in np.ndindex(*rows.shape[:-1]):
        same(together[index], statistic(rows[index]))


# -- 5: enumeration -----------------------------------------------------------------------------------------------


def enumerated(mdp: Mdp, **more: Any) -> tuple[TrajectoryDataset, np.ndarray]:
    """Every possible trajectory once, and its probability under the behaviour policy."""
    probs, episodes = zip(*mdp.trajectories(), strict=True)
    return logs(episodes, horizon=mdp.horizon, discount=mdp.discount, **more), np.array(probs)


def law_enumeration(make: Make, mdp: Mdp, **more: Any) -> None:
    """5. Weighted by their probabilities under the behaviour policy, all trajectories give the candidate's value."""
    data, probs = enumerated(mdp, **more)
    states = sorted({s for s, _ in mdp.outcomes})
    table = [[mdp.candidate(s, t) for s in states] for t in range(mdp.horizon)]
    for policy in (None, TabularPolicy(table)):  # from the logged column, and asked for each (state, time)
        value = float(make(Problem(data, policy))(probs))
        assert abs(value - mdp.value(mdp.candidate)) < 1e-12, f"{value} is not {mdp.value(mdp.candidate)}: {mdp.name}"


# -- 6: what importance sampling must not change ------------------------------------------------------------------


def law_on_policy(make: Make, data: TrajectoryDataset) -> None:
    """6. A candidate equal to the behaviour policy gives the on-policy mean."""
    mine = replace(data, eval_log_probs=data.behavior_log_probs)
    mean = np.mean(
        [sum(data.discount**t * r for t, r in enumerate(part)) for part in np.split(data.rewards, data.offsets[1:-1])]
    )
    same(make(Problem(mine)).estimate, mean)


def padded(data: TrajectoryDataset, c: float = 0.0) -> TrajectoryDataset:
    """The same logs with absorbing steps written out up to the horizon, and c added to every reward."""
    n, horizon = data.n_trajectories, data.horizon
    full = np.arange(horizon) < data.lengths[:, None]

    def fill(values: Any) -> np.ndarray:
        rows = np.zeros((n, horizon))
        rows[full] = values
        return rows.ravel()

    low_high = data.reward_range
    return replace(
        data,
        offsets=np.arange(n + 1) * horizon,
        rewards=fill(data.rewards) + c,
        behavior_log_probs=fill(data.behavior_log_probs),
        eval_log_probs=fill(data.eval_log_probs),
        # A declared range moves with the rewards, as its owner would move it.
        reward_range=None if low_high is None else (low_high[0] + c, low_high[1] + c),
        # With c added nothing is absorbing any more: these are full-length episodes with a reward at each step.
        terminated=data.terminated if c == 0 else np.zeros(n, dtype=bool),
    )


def law_padding(make: Make, data: TrajectoryDataset) -> None:
    """6. Writing out the absorbing steps of finished episodes changes nothing."""
    assert (data.lengths < data.horizon).any(), "no episode to pad: this law would test nothing"
    weights = np.arange(1.0, data.n_trajectories + 1)
    same(make(Problem(padded(data)))(weights), make(Problem(data))(weights))


def law_shift(make: Make, data: TrajectoryDataset, c: float = 1.7) -> None:
    """6. Adding c to the reward of all horizon steps shifts the estimate by c Σ γ^t."""
    length = sum(data.discount**t for t in range(data.horizon))
    same(make(Problem(padded(data, c))).estimate, make(Problem(data)).estimate + c * length)


# -- 7: how the work is cut up ------------------------------------------------------------------------------------

CUTS = [("tightrope.functional.engines.sums", "TILE_ROWS", 7), ("tightrope.functional.engines.sums", "SLAB_BYTES", 1)]
CUTS += [("tightrope.functional.statistic", "COLUMN_BYTES", 4096), ("tightrope.base.dataset", "CHUNK_BYTES", 512)]


def law_partition(make: Make, data: TrajectoryDataset, monkeypatch: Any, scheme: WeightScheme | None = None) -> None:
    """7. Other tiles, slabs and chunks give the same bits; more replicates extend the earlier ones."""
    scheme = scheme or Multinomial()

    def run(n_resamples: int) -> np.ndarray:
        # Problem and statistic are made anew: both keep what they computed.
        (result,) = replicate([make(Problem(data))], scheme, n_resamples=n_resamples, seed=5)
        return result.values

    # Sums under whole-number weights are exact, so bits can be asked for; under others the order rounds.
    check = np.testing.assert_array_equal if scheme.integer else same
    plain = run(300)
    assert np.unique(plain).size > 100, "all replicates alike: this law would test nothing"
    check(run(20), plain[:20])
    for module, name, size in CUTS:
        with monkeypatch.context() as patch:
            patch.setattr(import_module(module), name, size)
            check(run(300), plain)


def law_spread(bootstrap: Callable[[np.ndarray], np.ndarray], n: int = 120) -> None:
    """Replicates of a mean spread like the mean itself: sd/√n. Resamples of another size than n do not."""
    values = np.random.default_rng(8).exponential(size=n)
    replicates = bootstrap(values)
    expected = np.std(values) / np.sqrt(n)
    noise = 5 / np.sqrt(2 * len(replicates))  # five standard errors of a standard deviation
    assert abs(np.std(replicates) / expected - 1) < noise, f"{np.std(replicates):.4f} is not {expected:.4f}"
