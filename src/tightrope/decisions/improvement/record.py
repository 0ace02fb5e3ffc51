"""What came of looking for a better policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tightrope.adapters.table_files import from_rows
from tightrope.base.errors import PolicyError
from tightrope.base.plain import Record
from tightrope.base.policy import Policy
from tightrope.base.records import Bound
from tightrope.base.warnings import Caution
from tightrope.io.write import check_target, replace_file

Rows = tuple[tuple[Any, Any, float], ...]  # (state, action, probability)


@dataclass(frozen=True)
class Improvement(Record):
    """A policy that passed its one test, or none.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> clinic = small("clinic")
    >>> logs = clinic.logs(1000, rng=np.random.default_rng(0))
    >>> result = tightrope.improve(logs, strict=True)
    >>> result.success, clinic.mdp.value(result.policy) > clinic.behavior_value
    (True, True)
    """

    success: bool  # whether the policy passed
    baseline: str  # what it had to be better than: "behavior", or a number
    recipe: str  # how the policy that was tested was made
    bound: Bound | None  # the one test: a lower bound on the gain, or on the value; None: there was none to believe
    why: str  # in words
    n_proposed: int  # episodes that the policy was chosen on
    n_tested: int  # episodes that it was tested on
    promises: tuple[tuple[str, float], ...]  # each recipe, and the bound that it promised on the first part
    rows: Rows = ()  # (state, action, probability) of the policy; empty: none was found
    seed: int = 0  # of the split and of the test
    n_clusters: int | None = None  # of all episodes; None: every episode is an independent draw
    n_clusters_tested: int | None = None  # of those that it was tested on
    notes: tuple[Caution, ...] = ()  # what says that episodes depend on each other beyond the clusters that were named

    @property
    def policy(self) -> Policy:
        """The policy that passed; refuses where none did."""
        if not self.success:
            raise PolicyError(f"there is no policy to return: {self.why}")
        return policy_of(self.rows)

    def write(self, path: str | Path) -> None:
        """Write the policy as a table with columns state, action, prob (.csv or .parquet), which ``evaluate`` reads."""
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.parquet

        target = Path(path)
        check_target(target)
        if not self.success:
            raise PolicyError(f"there is no policy to write: {self.why}")
        writer = pyarrow.csv.write_csv if target.suffix == ".csv" else pyarrow.parquet.write_table
        table = pa.table(_columns(self.rows))
        replace_file(target, lambda temporary: writer(table, temporary))

    def __str__(self) -> str:
        return self.why


def policy_of(rows: Rows) -> Policy:
    """The policy of a table that names states and actions."""
    policy = from_rows(_columns(rows))
    assert policy is not None
    return policy


def _columns(rows: Rows) -> dict[str, list[Any]]:
    states, actions, probs = (list(column) for column in zip(*rows, strict=True))
    return {"state": states, "action": actions, "prob": probs}
