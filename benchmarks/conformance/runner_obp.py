"""Open Bandit Pipeline: one decision an episode."""

from __future__ import annotations

from typing import Any

from harness import ALPHA, RESAMPLES, Bounds, Data, Entry, Estimate, InapplicableError, main
from obp.ope import (
    DoublyRobust,
    InverseProbabilityWeighting,
    SelfNormalizedDoublyRobust,
    SelfNormalizedInverseProbabilityWeighting,
)

ONE_STEP = "its data are rounds of one decision; there are no episodes of several steps"


def inputs(data: Data) -> dict[str, Any]:
    """The arguments of an estimator; distributions have shape (n_rounds, n_actions, len_list)."""
    if data.horizon > 1:
        raise InapplicableError(ONE_STEP)
    return {
        "reward": data.rewards,
        "action": data.actions,
        "pscore": data.logged("behavior"),
        "action_dist": data.rows("candidate")[:, :, None],
        "estimated_rewards_by_reg_model": data.rows("q_values")[:, :, None],
    }


def estimate(kind: type) -> Estimate:
    """Its ``estimate_policy_value``."""
    return lambda data: kind().estimate_policy_value(**inputs(data))


def interval(kind: type) -> Bounds:
    """Its ``estimate_interval``."""

    def bounds(data: Data) -> tuple[float, float]:
        given = inputs(data)
        answer = kind().estimate_interval(**given, alpha=ALPHA, n_bootstrap_samples=RESAMPLES, random_state=12345)
        low, high = (value for name, value in answer.items() if "CI" in name)
        return low, high

    return bounds


GIVEN = "q̂ is given and wrong on purpose: it does not cancel in a sample"


def entry(kind: type, *, self_normalized: bool = False, **exempt: str) -> Entry:
    """An estimator with its bootstrap interval."""
    return Entry(
        estimate(kind),
        reading=f"`obp.ope.{kind.__name__}().estimate_policy_value` and `.estimate_interval(alpha=0.05)`, arguments as "
        "their docstrings say, `len_list` of 1",
        self_normalized=self_normalized,
        exempt={"padding": ONE_STEP, "long horizon": ONE_STEP}
        | {k.replace("_", " "): why for k, why in exempt.items()},
        intervals={"bootstrap": interval(kind)},
    )


ENTRIES = {
    "IPW": entry(InverseProbabilityWeighting),
    "SNIPW": entry(SelfNormalizedInverseProbabilityWeighting, self_normalized=True),
    "DR": entry(DoublyRobust, on_policy=GIVEN),
    "SNDR": entry(SelfNormalizedDoublyRobust, self_normalized=True, on_policy=GIVEN, like_returns=GIVEN),
}

if __name__ == "__main__":
    main("Open Bandit Pipeline", ENTRIES, ("obp", "torch", "numpy", "scikit-learn", "scipy", "pandas"))
