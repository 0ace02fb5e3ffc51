"""The logs as the options of a command describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from tightrope.cli.shared import reading_bar

if TYPE_CHECKING:
    from pathlib import Path

    from tightrope.base.dataset import TrajectoryDataset


def kept(logs: list[str], column: list[str] | None) -> Any:
    """The logs as they were named, or as a table where they can be read only once."""
    from tightrope.io.places import STDIN, read_places

    if STDIN in logs:
        return read_places(logs, column_map(column or []))
    return logs


def load(
    logs: Any,
    policy: str | None,
    discount: float | None,
    horizon: int | None,
    reward_range: tuple[float, float] | None,
    return_range: tuple[float, float] | None,
    incomplete: Literal["error", "terminate", "drop"],
    column: list[str] | None,
    one_step: bool,
    behavior_policy: str | None = None,
    cluster: str | None = None,
    strata: str | None = None,
    memory: str | None = None,
    scratch: Path | None = None,
    engine: str = "local",
) -> TrajectoryDataset:
    """The logs, with the candidate's probabilities where it is one of their columns."""
    from tightrope.adapters import load_policy
    from tightrope.adapters.load import is_column
    from tightrope.io import read

    with reading_bar() as progress:
        return read(
            logs[0] if isinstance(logs, list) and len(logs) == 1 else logs,
            discount=discount,
            horizon=horizon,
            reward_range=reward_range,
            return_range=return_range,
            incomplete=incomplete,
            eval_column=policy if policy is not None and is_column(policy) else None,
            columns=column_map(column or []),
            one_step=True if one_step else None,
            cluster=cluster,
            strata=strata,
            behavior=None if behavior_policy is None else load_policy(behavior_policy),
            memory=memory,
            scratch=scratch,
            progress=progress,
            engine=engine,
        )


def column_map(given: list[str]) -> dict[str, str | list[str] | None]:
    """The column map from ROLE=NAME pairs: several names with commas; no name if there is no such column."""
    from tightrope.base.errors import DataError

    result: dict[str, str | list[str] | None] = {}
    for text in given:
        role, equals, name = text.partition("=")
        if not equals or role in result:
            raise DataError(f"--column must be ROLE=NAME, each role once, such as behavior_prob=p; got {text!r}")
        result[role] = name.split(",") if "," in name else name or None
    return result
