"""From raw results to one line per domain, size and method: error rates with their intervals, and means.

Everything is counted over data sets. A bound is wrong where it lies beyond the true value by more than two standard
errors of the latter, which are 0 where it is known exactly. ``valid`` bounds are those that are not wrong; their mean,
which the paper plots, flatters a bound that often errs, since its worst moments are left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.dataset import Array
from tightrope.base.errors import StudyError
from tightrope.base.records import Side
from tightrope.base.warnings import CODES

AGAINST = frozenset(code for code, one in CODES.items() if one.against is not None)  # codes of warnings
KEY = b"tightrope"  # of the configuration in the metadata of a table of results
_TWO_SIDED = 1.959963984540054  # 97.5 % point of the normal distribution


@dataclass(frozen=True)
class Results:
    """The raw table as arrays by column, and the configuration that made it."""

    columns: Mapping[str, npt.NDArray[Any]]
    configuration: Mapping[str, Any]

    @property
    def true_value(self) -> float:
        """The candidate's value in the domain."""
        return float(self.configuration["domain"]["true_value"])

    @property
    def true_value_error(self) -> float:
        """Its standard error; 0 where it is exact."""
        return float(self.configuration["domain"]["true_value_error"])


@dataclass(frozen=True)
class Mean:
    """A mean and the half-width of its 95 % interval, 1.96 s / √count; NaN where there is nothing to average."""

    value: float
    error: float
    count: int


@dataclass(frozen=True)
class Line:
    """One method at one size."""

    domain: str
    n: int
    method: str
    side: Side
    true_value: float
    trials: int  # data sets on which it was run
    failed: int  # of them, on which there was no bound: not counted below
    infinite: int  # bounds of −∞ (+∞ for an upper bound): never wrong, never of use
    warned: int  # bounds with a warning that speaks against them
    errors: int
    error_rate: float  # of the bounds there are
    error_low: float  # Clopper and Pearson's 95 % interval
    error_high: float
    mean: Mean  # of all bounds; infinite if one of them is
    finite: Mean  # of those that are finite
    valid: Mean  # of those that are finite and not wrong
    median: float  # of all bounds
    reason: str = ""  # why it failed where it first did

    @property
    def label(self) -> str:
        """Of the method: an estimator, with its settings where there are several."""
        return self.method.rpartition("/")[0]

    @property
    def bound(self) -> str:
        """The name of the bound."""
        return self.method.rpartition("/")[2]

    @property
    def count(self) -> int:
        """On how many data sets there was a bound."""
        return self.trials - self.failed

    @property
    def valid_share(self) -> float:
        """How many bounds are not wrong."""
        return 1.0 - self.error_rate


def read_results(path: str | os.PathLike[str]) -> Results:
    """What ``run_study`` wrote."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise StudyError(f"{path} cannot be read as a table of results: {error}") from error
    if KEY not in (table.schema.metadata or {}):
        raise StudyError(f"{path} must be a table of a study's results; its metadata lack the configuration")
    columns = {name: table[name].to_numpy() for name in table.column_names}
    return Results(columns, json.loads(table.schema.metadata[KEY]))


def summarize_results(results: Results) -> list[Line]:
    """One line per size, method and side, in the order of the table."""
    columns = results.columns
    groups: dict[tuple[int, str, Side], list[int]] = {}
    keys = zip(columns["n"].tolist(), columns["method"], columns["side"], strict=True)
    for row, key in enumerate(keys):
        groups.setdefault(key, []).append(row)
    name, truth = results.configuration["domain"]["name"], (results.true_value, results.true_value_error)
    return [
        replace(
            line(name, *key, columns["value"][rows], columns["warnings"][rows].tolist(), *truth),
            reason=next((why for why in columns["error"][rows] if why), ""),
        )
        for key, rows in groups.items()
    ]


def line(
    domain: str,
    n: int,
    method: str,
    side: Side,
    values: Array,  # (trials,): NaN where there is no bound
    warnings: Sequence[str],  # (trials,): codes separated by spaces
    true_value: float,
    true_value_error: float = 0.0,
) -> Line:
    """Count and average the bounds of one method over data sets."""
    there = ~np.isnan(values)
    bounds = values[there]
    wrong = is_wrong(bounds, side, true_value, true_value_error)
    finite = np.isfinite(bounds)
    errors, count = int(wrong.sum()), len(bounds)
    low, high = clopper_pearson(errors, count) if count else (0.0, 1.0)
    return Line(
        domain=domain,
        n=n,
        method=method,
        side=side,
        true_value=true_value,
        trials=len(values),
        failed=len(values) - count,
        infinite=int((~finite).sum()),
        warned=sum(not AGAINST.isdisjoint(codes.split()) for codes, had in zip(warnings, there, strict=True) if had),
        errors=errors,
        error_rate=errors / count if count else np.nan,
        error_low=low,
        error_high=high,
        mean=average(bounds),
        finite=average(bounds[finite]),
        valid=average(bounds[finite & ~wrong]),
        median=float(np.median(bounds)) if count else np.nan,
    )


def is_wrong(bounds: Array, side: Side, true_value: float, true_value_error: float = 0.0) -> npt.NDArray[np.bool_]:
    """Which bounds lie beyond the true value by more than its two standard errors and rounding."""
    slack = 2 * true_value_error + 1e-9 * max(1.0, abs(true_value))
    wrong: npt.NDArray[np.bool_] = bounds > true_value + slack if side == "lower" else bounds < true_value - slack
    return wrong


def average(values: Array) -> Mean:
    """The mean with its 95 % error."""
    if not len(values):
        return Mean(np.nan, np.nan, 0)
    if not np.isfinite(values).all():
        return Mean(float(values.mean()), np.nan, len(values))
    error = _TWO_SIDED * float(values.std(ddof=1)) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return Mean(float(values.mean()), float(error), len(values))


def clopper_pearson(errors: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact two-sided interval for a proportion (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = 0.0 if errors == 0 else float(betaincinv(errors, trials - errors + 1, tail))
    high = 1.0 if errors == trials else float(betaincinv(errors + 1, trials - errors, 1 - tail))
    return low, high
