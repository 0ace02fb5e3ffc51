"""Policies between the behaviour policy and what a model thinks is best, and which of them promises most."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tightrope.base.clusters import Clusters
from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.base.progress import tell
from tightrope.decisions.improvement.tables import Coded, TableModel

FOLDS = 3
SEEN = (20, 5, 1)  # visits of a pair below which the behaviour policy is kept there
STEPS = (0.1, 0.25, 0.5, 0.75, 1.0)  # of the way from the behaviour policy to the model's
WARMTH = (0.1, 0.3, 1.0, 3.0)  # of the spread of returns: how strongly a softened policy follows the model
LEAST = 1e-12


@dataclass(frozen=True)
class Recipe:
    """How to make a policy from a model; fitted to other logs, the same recipe makes another policy."""

    kind: Literal["step", "soft"]
    size: float  # of the step, or the warmth
    seen: int  # visits that a pair needs for the model to have a say about it

    def __str__(self) -> str:
        if self.kind == "soft":
            return f"the behaviour policy, leaning towards the model (warmth {self.size:g})"
        way = "all the way" if self.size == 1 else f"{100 * self.size:g} % of the way"
        return f"{way} from the behaviour policy to the model's best, where a pair has at least {self.seen} visits"


RECIPES = (
    *(Recipe("step", size, seen) for seen in SEEN for size in STEPS),
    *(Recipe("soft", warmth, SEEN[1]) for warmth in WARMTH),
)


def policies(model: TableModel) -> Iterator[tuple[Recipe, Array]]:
    """Every recipe with its table of probabilities, (S, A)."""
    logs = model.logs
    unit = max(float(logs.dataset.returns.std()), LEAST)
    best = {seen: _best(model, seen) for seen in SEEN}
    for recipe in RECIPES:
        values, policy = best[recipe.seen]
        if recipe.kind == "step":
            yield recipe, (1 - recipe.size) * logs.behavior + recipe.size * policy
            continue
        pull = (values - values.max(axis=1, keepdims=True)) / (recipe.size * unit)
        weights = logs.behavior * np.exp(np.maximum(pull, -300.0))
        yield recipe, weights / weights.sum(axis=1, keepdims=True)


def _best(model: TableModel, seen: int) -> tuple[Array, Array]:
    """Q and the model's best policy that leaves the behaviour policy as it is on pairs with fewer visits.

    Laroche, Trichelair and Tachet des Combes (2019), "Safe policy improvement with baseline bootstrapping" (SPIBB). The
    policy does not change with time: what an action is worth is averaged over the times at which its state was met.
    """
    logs = model.logs
    sure = model.counts >= seen
    total, ahead = np.zeros(logs.shape), np.zeros(logs.shape[0] + 1)
    for rows in reversed(_by_time(logs)):
        values = model.action_values(ahead)
        met = np.bincount(logs.place[rows], minlength=logs.shape[0])
        total += met[:, None] * values
        ahead[:-1] = (_pessimistic(values, sure, logs.behavior) * values).sum(axis=1)
    mean = total / np.maximum(np.bincount(logs.place, minlength=logs.shape[0]), 1)[:, None]
    return mean, _pessimistic(mean, sure, logs.behavior)


def _pessimistic(values: Array, sure: BoolArray, behavior: Array) -> Array:
    """The behaviour policy on pairs that are not sure, and the rest of its probability on the best that is."""
    kept = np.where(sure, 0.0, behavior)
    result = kept.copy()
    any_sure = sure.any(axis=1)
    best = np.where(sure, values, -np.inf).argmax(axis=1)
    rows = np.flatnonzero(any_sure)
    result[rows, best[rows]] += 1.0 - kept[rows].sum(axis=1)
    result[~any_sure] = behavior[~any_sure]
    return result


def _by_time(logs: Coded) -> list[IntArray]:
    """The steps of each time, from the first to the last."""
    times = logs.dataset.times
    order = np.argsort(times, kind="stable")
    return np.split(order, np.searchsorted(times[order], np.arange(1, logs.dataset.horizon)))


def values_of(policy: Array, model: TableModel, logs: Coded) -> Array:
    """Doubly robust values of episodes that the model was not fitted to, (n,): v̂(S_0) + Σ_t γ^t ρ_t δ_t."""
    data = logs.dataset
    assert data.behavior_log_probs is not None
    with np.errstate(divide="ignore"):
        steps = np.log(policy.reshape(-1)[logs.pairs]) - data.behavior_log_probs
    ratios = np.exp(np.concatenate([np.cumsum(part) for part in np.split(steps, data.offsets[1:-1])]))
    episode = np.repeat(np.arange(data.n_trajectories), data.lengths)
    result, ahead = np.zeros(data.n_trajectories), np.zeros(logs.shape[0] + 1)
    for t, rows in reversed(list(enumerate(_by_time(logs)))):
        values = model.action_values(ahead)
        later = np.where(logs.following[rows] >= 0, ahead[logs.following[rows]], 0.0)
        error = data.rewards[rows] + data.discount * later - values.reshape(-1)[logs.pairs[rows]]
        result += np.bincount(
            episode[rows], weights=data.discount**t * ratios[rows] * error, minlength=data.n_trajectories
        )
        ahead[:-1] = (policy * values).sum(axis=1)
    first: Array = result + ahead[logs.place[data.offsets[:-1]]]
    return first


def promises(
    train: Coded, folds: list[IntArray], reference: Callable[[Coded], Array], spread: float
) -> dict[Recipe, float]:
    """Of each recipe the lower bound that it promises: mean − spread · s, over episodes that it was not fitted to.

    Where episodes come in clusters, mean and s are those of the clusters' means.
    """
    gains: dict[Recipe, list[Array]] = {recipe: [] for recipe in RECIPES}
    for place, fold in enumerate(folds):
        tell("proposing", place / len(folds))
        others = np.setdiff1d(np.arange(train.dataset.n_trajectories), fold)
        model, held = TableModel(train.take(others)), train.take(fold)
        clusters = Clusters.of(held.dataset)
        for recipe, policy in policies(model):
            values = values_of(policy, model, held) - reference(held)
            gains[recipe].append(values if clusters is None else clusters.means(values))
    tell("proposing", 1.0)
    pooled = {recipe: np.concatenate(parts) for recipe, parts in gains.items()}
    return {recipe: float(values.mean() - spread * values.std(ddof=1)) for recipe, values in pooled.items()}
