"""Probability columns as log-probabilities: read as what their names say, refused where the values say otherwise."""

from __future__ import annotations

import re

import numpy as np

from tightrope.base.checks import ROUNDING, check_finite, check_log_probs
from tightrope.base.dataset import Array
from tightrope.base.errors import DataError
from tightrope.io.aliases import fix
from tightrope.io.columns import Columns, quoted

AGREE = 1e-5  # relative: a probability and the exponential of its logarithm, both in float32
SMALLEST = 1e-37  # below it float32 has no digits left

_LOGARITHM = re.compile(r"(^|_)log(_|p|$)")  # eval_log_prob, logp_new; but not catalog_prob


def log_probs(columns: Columns, who: str, discrete: bool | None, *, zero: bool) -> Array | None:
    """Log-probabilities of the logged actions from whichever columns are there; several must agree."""
    probs, logs = columns.roles[f"{who}_prob"], columns.roles[f"{who}_log_prob"]
    names = [*logs, *probs]
    if not names:
        return None
    result = _as_log(columns, names[0], bool(logs), discrete, zero)
    for other in names[1:]:
        _check_agreement(columns, who, names[0], result, other)
    same = f"; so say{'s' if len(names) == 2 else ''} {quoted(names[1:])}" if len(names) > 1 else ""
    columns.say(f"{who}: {names[0]!r}, read as a {'logarithm' if logs else 'probability'}{same}")
    return result


def eval_log_probs(columns: Columns, column: str | None, discrete: bool | None) -> Array | None:
    """The candidate's, from the standard columns or the one named."""
    if column is None:
        return log_probs(columns, "eval", discrete, zero=True)
    if column not in columns.names:
        raise DataError(f"the candidate's column {column!r} is not in the logs; they have: {', '.join(columns.names)}")
    log = bool(_LOGARITHM.search(column))
    columns.say(f"eval: {column!r}, read as a {'logarithm' if log else 'probability'}")
    return _as_log(columns, column, log, discrete, zero=True)


def _check_agreement(columns: Columns, who: str, name: str, logs: Array, other: str) -> None:
    is_log = {each: each in columns.roles[f"{who}_log_prob"] for each in (name, other)}
    values, probs = columns.numbers(other, "iuf"), np.exp(np.minimum(logs, 700.0))
    values = np.exp(np.minimum(values, 700.0)) if is_log[other] else values
    apart = ~(np.abs(values - probs) <= AGREE * np.maximum(probs, values) + SMALLEST)
    if apart.any():
        row = int(np.argmax(apart))
        ways = [fix(f"{who}_log_prob" if log else f"{who}_prob", each) for each, log in is_log.items()]
        raise DataError(
            f"the logs have both {other!r} and {name!r}; keep one of them, or say which holds the {who} policy's "
            f"probabilities, for they disagree ({values[row]:.6g} and {probs[row]:.6g} at {columns.where(row)}): "
            f"{' or '.join(ways)}"
        )


def _as_log(columns: Columns, name: str, log: bool, discrete: bool | None, zero: bool) -> Array:
    values = columns.numbers(name, "iuf")
    who, where = "eval" if zero else "behavior", columns.where
    if log:
        if discrete is not False and values.min() >= 0 and values.max() > ROUNDING:
            raise DataError(
                f"column {name!r} is read as logarithms, but is {values.max():g} at {where(int(values.argmax()))} and "
                "never negative: a probability above 1. Are these probabilities? Then say so: "
                f"{fix(f'{who}_prob', name)}"
            )
        check_log_probs(f"column {name!r}", values, discrete, where, zero=zero)
        return values
    check_finite(f"column {name!r}", values, where)
    low = values < 0 if zero else values <= 0
    if low.any():
        row = int(np.argmax(low))
        hint = f"; are these logarithms? Then say so: {fix(f'{who}_log_prob', name)}" if values.min() < 0 else ""
        need = "≥ 0" if zero else "> 0: the behaviour policy took this action"
        raise DataError(f"column {name!r} is {values[row]:g} at {where(row)}; a probability must be {need}{hint}")
    if discrete is not False and values.max() > 1 + ROUNDING:
        row = int(np.argmax(values > 1 + ROUNDING))
        why = "actions are discrete" if discrete else "the logs hold no action column, so they count as discrete"
        raise DataError(
            f"column {name!r} is {values[row]:g} > 1 at {where(row)}; {why}, and only a density may exceed 1"
        )
    with np.errstate(divide="ignore"):
        return np.log(values)
