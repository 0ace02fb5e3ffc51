"""What the logs do not hold or say, what that rules out, and how to add it."""

from __future__ import annotations

from dataclasses import dataclass

from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.plain import Record
from tightrope.base.spelled import is_text


@dataclass(frozen=True)
class Gap(Record):
    """One thing that is missing."""

    what: str
    rules_out: str
    fix: str

    def __str__(self) -> str:
        return f"no {self.what}: rules out {self.rules_out}. {self.fix}"


def gaps(data: TrajectoryDataset, *, has_candidate: bool, estimated: bool = False) -> tuple[Gap, ...]:
    """What is missing, the most costly first."""
    missing = [*_of_policies(data, has_candidate, estimated), *_of_declarations(data), *_of_models(data)]
    return tuple(missing)


def _of_policies(data: TrajectoryDataset, has_candidate: bool, estimated: bool) -> list[Gap]:
    missing = []
    if not has_candidate:
        missing.append(Gap("candidate", "every estimate and bound", "Give --policy, or add a column eval_prob"))
    if data.states is None:
        missing.append(
            Gap("states", "a policy in a file or module, every model, and estimating the behaviour policy",
                "Add a column state (or obs_*)")
        )  # fmt: skip
    if data.actions is None:
        missing.append(
            Gap("actions", "a policy in a file or module, every model, and estimating the behaviour policy",
                "Add a column action (or action_*)")
        )  # fmt: skip
    if data.behavior_log_probs is None and not estimated:
        missing.append(
            Gap("behaviour probabilities", "all estimators but MB, and all exact bounds but robust",
                "Add a column behavior_prob, or estimate them: --behavior auto (then no exact bound)")
        )  # fmt: skip
    return missing


def _of_declarations(data: TrajectoryDataset) -> list[Gap]:
    missing = []
    if data.value_range is None:
        missing.append(
            Gap("declared range", "the exact bounds, rehearsed and robust",
                "Declare what is possible: --reward-range or --return-range")
        )  # fmt: skip
    if not data.horizon_declared:
        missing.append(
            Gap("declared horizon", "the exact bounds", "Say how many steps count: --horizon")
        )  # fmt: skip
    return missing


def _of_models(data: TrajectoryDataset) -> list[Gap]:
    missing = []
    quantities = [
        name
        for name, values in (("states", data.states), ("actions", data.actions))
        if values is not None and values.dtype.kind == "f"
    ]
    if quantities:
        ruled_out = "tabular models, robust and rehearsed" if "actions" in quantities else "tabular models and robust"
        missing.append(
            Gap(f"numbered or named {' and '.join(quantities)}", ruled_out,
                "Nothing to mend where they are quantities; linear and polynomial models take them")
        )  # fmt: skip
    if is_text(data.states) or is_text(data.actions):
        missing.append(
            Gap("numbers for names", "linear and polynomial models", "Nothing to mend; tabular models take names")
        )
    if data.states is not None and data.final_states is None and not data.terminated.all():
        missing.append(
            Gap("state after the last step", "counting the last step of each episode in a model",
                "Add a column next_state (or next_obs_*)")
        )  # fmt: skip
    return missing
