"""offline_rl_ope: its standard estimators, its doubly robust ones with values given, and its lower bounds."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from harness import ALPHA, Bounds, Data, Entry, Estimate, InapplicableError, main
from offline_rl_ope.api.StandardEstimators.DR import WDR, VanillaDR
from offline_rl_ope.api.StandardEstimators.IS import PDWIS, WIS, CumulativeVanillaPDWIS, VanillaISPDIS
from offline_rl_ope.components.ImportanceSampler import ISWeightOrchestrator
from offline_rl_ope.components.Policy import Policy
from offline_rl_ope.LowerBounds import HCOPE, Bootstrap
from offline_rl_ope.OPEEstimators import DirectMethodBase
from offline_rl_ope.types import TorchPolicyReturn


def policy(table: np.ndarray) -> Policy:
    """A policy by its table of probabilities; states are one-hot."""
    probs = torch.tensor(table, dtype=torch.float32)

    def chances(state: torch.Tensor, action: torch.Tensor) -> TorchPolicyReturn:
        rows = probs[state.argmax(dim=1)]
        return TorchPolicyReturn(actions=action, action_prs=rows.gather(1, action.long()))

    return Policy(policy_func=chances)


class GivenValues(DirectMethodBase):
    """Values that are right about nothing."""

    def __init__(self, data: Data) -> None:
        self.table = torch.tensor(data.table("q_values"), dtype=torch.float32)
        self.probs = torch.tensor(data.table("candidate"), dtype=torch.float32)

    def calculate_v(self, state: torch.Tensor) -> torch.Tensor:
        """Of the logged states."""
        return (self.table * self.probs).sum(dim=1)[state.argmax(dim=1)].reshape(-1, 1)

    def calculate_q(self, state: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        """Of the logged actions."""
        return self.table[state.argmax(dim=1)].gather(1, action.long())


def parts(data: Data, values: np.ndarray) -> list[torch.Tensor]:
    """One tensor an episode, (steps, features)."""
    return [torch.tensor(part, dtype=torch.float32) for part in np.split(values, np.cumsum(data.lengths)[:-1])]


def predicted(estimator: Any, weights: str, data: Data) -> float:
    """The call of the library's examples."""
    states, actions = parts(data, data.one_hot()), parts(data, data.actions[:, None])
    sampler = ISWeightOrchestrator("vanilla", "per_decision", behav_policy=policy(data.table("behavior")))
    sampler.update(states=states, actions=actions, eval_policy=policy(data.table("candidate")))
    return float(
        estimator.predict(
            rewards=parts(data, data.rewards[:, None]), states=states, actions=actions, discount=data.discount,
            weights=sampler[weights].traj_is_weights, is_msk=sampler.weight_msk,
        )
    )  # fmt: skip


def estimate(kind: type, weights: str) -> Estimate:
    """An estimator without a model."""
    return lambda data: predicted(kind(), weights, data)


def with_values(kind: type) -> Estimate:
    """An estimator with values given."""
    return lambda data: predicted(kind(dm_model=GivenValues(data)), "per_decision", data)


@lru_cache(maxsize=1)
def scores(weights: str, data: Data) -> np.ndarray:
    """The values of the episodes that the estimator keeps, (n,)."""
    estimator = VanillaISPDIS(cache_traj_rewards=True)
    predicted(estimator, weights, data)
    return estimator.traj_rewards_cache.squeeze().numpy().astype(float)


def lower(bound: Any, weights: str) -> Bounds:
    """A lower bound on the values of the episodes, as the library's examples call it."""

    def bounds(data: Data) -> tuple[float, float]:
        if data.n > 100 and data.horizon > 1:
            raise InapplicableError("error rates are counted on the one-step problem alone, for time")
        values = scores(weights, data).copy()  # the bound shuffles what it is given
        np.random.seed(0)  # noqa: NPY002 (what the library shuffles with)
        return float(bound.get_lower_bound(X=values, delta=ALPHA)), np.inf

    return bounds


CALL = '`offline_rl_ope.api.StandardEstimators.{}`, `predict(weights=sampler["{}"].traj_is_weights, ...)`'
GIVEN = "q̂ is given and wrong on purpose: it does not cancel in a sample"
DESIGN = "by its definition (Q^PDW, says its docstring) one denominator for all times: a reward per step"
PER_STEP = (
    "enumeration, equal lengths", "enumeration, discount", "enumeration, ends early", "enumeration, greedy candidate",
    "on policy", "padding", "long horizon",
)  # fmt: skip
FLOAT = 2e-4  # float32


def entry(call: Estimate, name: str, weights: str, **more: Any) -> Entry:
    """An estimator of float32."""
    timed = name in ("IS.VanillaISPDIS", "IS.PDWIS")  # the others are not, to save time
    return Entry(call, CALL.format(name, weights), tolerance=FLOAT, timed=timed, **more)


ENTRIES = {
    "VanillaISPDIS, vanilla": entry(
        estimate(VanillaISPDIS, "vanilla"), "IS.VanillaISPDIS", "vanilla",
        intervals={"HCOPE": lower(HCOPE, "vanilla"), "Bootstrap": lower(Bootstrap, "vanilla")},
    ),
    "VanillaISPDIS, per decision": entry(
        estimate(VanillaISPDIS, "per_decision"), "IS.VanillaISPDIS", "per_decision",
    ),
    "WIS": entry(estimate(WIS, "vanilla"), "IS.WIS", "vanilla", self_normalized=True),
    "PDWIS": entry(estimate(PDWIS, "per_decision"), "IS.PDWIS", "per_decision", self_normalized=True),
    "CumulativeVanillaPDWIS": entry(
        estimate(CumulativeVanillaPDWIS, "per_decision"), "IS.CumulativeVanillaPDWIS", "per_decision",
        exempt=dict.fromkeys(PER_STEP, DESIGN),
    ),
    "VanillaDR, values given": entry(
        with_values(VanillaDR), "DR.VanillaDR", "per_decision", exempt={"on policy": GIVEN},
    ),
    "WDR, values given": entry(
        with_values(WDR), "DR.WDR", "per_decision", self_normalized=True, exempt={"on policy": GIVEN},
    ),
}  # fmt: skip

if __name__ == "__main__":
    main("offline_rl_ope", ENTRIES, ("offline-rl-ope", "torch", "numpy", "d3rlpy"))
