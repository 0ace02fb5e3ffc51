"""SCOPE-RL's basic estimators for discrete actions, and their intervals."""

from __future__ import annotations

from typing import Any

from harness import ALPHA, RESAMPLES, Bounds, Data, Entry, Estimate, main
from scope_rl.ope.discrete import (
    DoublyRobust,
    PerDecisionImportanceSampling,
    SelfNormalizedDR,
    SelfNormalizedPDIS,
    SelfNormalizedTIS,
    TrajectoryWiseImportanceSampling,
)

KINDS = {"bootstrap": "bootstrap", "Hoeffding": "hoeffding", "Bernstein": "bernstein", "t": "ttest"}


def inputs(data: Data) -> dict[str, Any]:
    """The arguments of an estimator: flat arrays of n_trajectories times step_per_trajectory rows."""
    data = data.padded()
    return {
        "step_per_trajectory": data.horizon,
        "action": data.actions,
        "reward": data.rewards,
        "pscore": data.logged("behavior"),
        "evaluation_policy_action_dist": data.rows("candidate"),
        "state_action_value_prediction": data.rows("q_values"),
        "gamma": data.discount,
    }


def estimate(kind: type) -> Estimate:
    """Its ``estimate_policy_value``."""
    return lambda data: kind().estimate_policy_value(**inputs(data))


def interval(kind: type, method: str) -> Bounds:
    """Its ``estimate_interval``."""

    def bounds(data: Data) -> tuple[float, float]:
        answer = kind().estimate_interval(
            **inputs(data), alpha=ALPHA, ci=method, n_bootstrap_samples=RESAMPLES, random_state=12345
        )
        low, high = (value for name, value in answer.items() if "CI" in name)
        return low, high

    return bounds


def entry(kind: type, *, self_normalized: bool = False, **exempt: str) -> Entry:
    """An estimator with its four intervals."""
    return Entry(
        estimate(kind),
        reading=f"`scope_rl.ope.discrete.{kind.__name__}().estimate_policy_value` and `.estimate_interval(alpha=0.05, "
        "ci=...)`, arguments as their docstrings say. They ask for `n_trajectories * step_per_trajectory` rows, so the "
        "runner writes out the steps after an early end (ratio 1, reward 0)",
        self_normalized=self_normalized,
        exempt={"padding": PADDED} | {name.replace("_", " "): why for name, why in exempt.items()},
        intervals={label: interval(kind, method) for label, method in KINDS.items()},
    )


PADDED = "all episodes must have the same number of steps; the runner pads them for every law"
GIVEN = "q̂ is given and wrong on purpose: it does not cancel in a sample"
ENTRIES = {
    "TIS": entry(TrajectoryWiseImportanceSampling),
    "PDIS": entry(PerDecisionImportanceSampling),
    "SNTIS": entry(SelfNormalizedTIS, self_normalized=True),
    "SNPDIS": entry(SelfNormalizedPDIS, self_normalized=True),
    "DR": entry(DoublyRobust, on_policy=GIVEN),
    "SNDR": entry(SelfNormalizedDR, self_normalized=True, on_policy=GIVEN, like_returns=GIVEN),
}

if __name__ == "__main__":
    main("SCOPE-RL", ENTRIES, ("scope-rl", "torch", "numpy", "d3rlpy", "gym", "gymnasium"))
