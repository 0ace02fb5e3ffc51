"""RLlib's offline estimators of the old API stack, on episodes in a SampleBatch."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from harness import Data, Entry, Estimate, main
from ray.rllib.models.torch.torch_action_dist import TorchCategorical
from ray.rllib.offline.estimators import (
    DirectMethod,
    DoublyRobust,
    ImportanceSampling,
    WeightedImportanceSampling,
)
from ray.rllib.policy import Policy
from ray.rllib.policy.sample_batch import SampleBatch

TRAINING = {"n_iters": 400, "lr": 0.02, "polyak_coef": 0.1}
SMALL = ("one step", "two steps", "two steps, discounted", "two steps, greedy candidate", "door")


class Table(Policy):
    """A policy by its table of probabilities; observations are one-hot states."""

    def __init__(self, table: np.ndarray) -> None:
        states, actions = table.shape
        space = gym.spaces.Box(0.0, 1.0, (states,), np.float32)
        super().__init__(space, gym.spaces.Discrete(actions), {"framework": "torch"})
        with np.errstate(divide="ignore"):
            self.log_probs = np.log(table)
        self.device = torch.device("cpu")
        self.model = None

    def compute_actions(self, *values: Any, **more: Any) -> Any:
        """No estimator asks for actions."""
        raise NotImplementedError

    def compute_log_likelihoods(self, actions: Any, obs_batch: Any, *values: Any, **more: Any) -> np.ndarray:
        """Of the logged actions."""
        return self.log_probs[np.asarray(obs_batch).argmax(axis=1), np.asarray(actions).astype(int)]

    def action_distribution_fn(self, model: Any, *, obs_batch: Any, **more: Any) -> tuple[Any, Any, list[Any]]:
        """For FQE: logits of all actions."""
        logits = torch.tensor(self.log_probs)[obs_batch["obs"].argmax(dim=1)]
        return logits.clamp(min=-1e9), TorchCategorical, []


class GivenValues:
    """A model of one's own, as ``q_model_config`` allows it: values that are right about nothing."""

    def __init__(self, policy: Table, gamma: float, table: np.ndarray) -> None:
        self.table, self.probs = table, np.exp(policy.log_probs)

    def estimate_q(self, batch: SampleBatch) -> np.ndarray:
        """Of the logged actions."""
        return self.table[batch["obs"].argmax(axis=1), batch["actions"]]

    def estimate_v(self, batch: SampleBatch) -> np.ndarray:
        """Of the logged states."""
        return (self.table * self.probs).sum(axis=1)[batch["obs"].argmax(axis=1)]


def batch(data: Data) -> SampleBatch:
    """All episodes, one after the other, with RLlib's column names."""
    following = np.where(data.last, data.states, np.append(data.states[1:], 0))
    return SampleBatch(
        {
            "obs": data.one_hot(),
            "new_obs": data.one_hot(following),
            "actions": data.actions,
            "rewards": data.rewards,
            "action_prob": data.logged("behavior"),
            "eps_id": data.episode,
            "t": data.t,
            "terminateds": data.last,
            "truncateds": np.zeros(len(data.last), dtype=bool),
        }
    )


def value(estimator: Any, data: Data) -> float:
    """``estimate`` by episode."""
    return estimator.estimate(batch(data), split_batch_by_episode=True)["v_target"]


def sampling(kind: type) -> Estimate:
    """An estimator without a model."""
    return lambda data: value(kind(Table(data.table("candidate")), gamma=data.discount), data)


def given(data: Data) -> float:
    """DR with a model of one's own."""
    config = {"type": GivenValues, "table": data.table("q_values")}
    policy = Table(data.table("candidate"))
    return value(DoublyRobust(policy, gamma=data.discount, normalize_weights=False, q_model_config=config), data)


def fitted(kind: type) -> Estimate:
    """An estimator whose network is trained on the same batch."""

    def estimate(data: Data) -> float:
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002 (what the library shuffles with)
        estimator = kind(Table(data.table("candidate")), gamma=data.discount, q_model_config=dict(TRAINING))
        estimator.train(batch(data))
        return value(estimator, data)

    return estimate


CALL = '`ray.rllib.offline.estimators.{}(policy, gamma).estimate(batch)["v_target"]`, episodes told apart by `eps_id`'
GIVEN = "q̂ is given and wrong on purpose: it does not cancel in a sample"
TRAINED = "a network trained by a seed: equal up to its training error only, which the law of enumeration measures"
FLOAT = 1e-5  # a SampleBatch holds float32
LEARNED = dict.fromkeys(("order", "duplication", "on policy", "padding", "long horizon"), TRAINED)
ENTRIES = {
    "ImportanceSampling": Entry(
        sampling(ImportanceSampling), CALL.format("ImportanceSampling") + "; per-decision, says its docstring",
        tolerance=FLOAT,
    ),
    "WeightedImportanceSampling": Entry(
        sampling(WeightedImportanceSampling),
        CALL.format("WeightedImportanceSampling") + "; its docstring divides by the mean ratio over all episodes, |D|",
        self_normalized=True, tolerance=FLOAT,
    ),
    "DoublyRobust, values given": Entry(
        given, CALL.format("DoublyRobust") + ', `q_model_config={"type": ...}` with a model of our own',
        exempt={"on policy": GIVEN}, tolerance=FLOAT,
    ),
    "DirectMethod, FQE": Entry(
        fitted(DirectMethod), CALL.format("DirectMethod") + f" after `.train(batch)`, `q_model_config={TRAINING}`",
        tolerance=0.05, exempt=LEARNED, timed=False, only=SMALL,
    ),
    "DoublyRobust, FQE": Entry(
        fitted(DoublyRobust), CALL.format("DoublyRobust") + f" after `.train(batch)`, `q_model_config={TRAINING}`",
        tolerance=1e-4, exempt=LEARNED, timed=False, only=SMALL,
    ),
}  # fmt: skip

if __name__ == "__main__":
    main("RLlib", ENTRIES, ("ray", "torch", "numpy", "gymnasium"))
