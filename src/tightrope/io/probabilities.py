"""Probability columns as log-probabilities: the name says which they hold, and the values must fit the name."""

from __future__ import annotations

import re

import numpy as np

from tightrope.base.checks import ROUNDING, check_finite, check_log_probs
from tightrope.base.dataset import Array
from tightrope.base.errors import DataError
from tightrope.base.names import must_be_one_of
from tightrope.io.aliases import fix
from tightrope.io.columns import Columns, quoted

AGREE = 1e-5  # relative: a probability and the exponential of its logarithm, both in float32
SMALLEST = 1e-37  # below it float32 has no digits left

_LOGARITHM = re.compile(r"(^|_)log(_|p|$)")  # eval_log_prob, logp_new; but not catalog_prob


def log_probs(columns: Columns, who: str, discrete: bool | None, *, zero: bool) -> Array | None:
    """Log-probabilities of the logged actions, from any columns that hold them; several must agree."""
    probs, logs = columns.roles[f"{who}_prob"], columns.roles[f"{who}_log_prob"]
    names = [*logs, *probs]
    if not names:
        return None
    result = _as_log(columns, names[0], bool(logs), discrete, zero)
    for other in names[1:]:
        _check_agreement(columns, who, names[0], result, other)
    same = f"; {quoted(names[1:])} agree{'s' if len(names) == 2 else ''}" if len(names) > 1 else ""
    columns.say(f"{who}: {names[0]!r}, read as a {'logarithm' if logs else 'probability'}{same}")
    return result


def eval_log_probs(columns: Columns, column: str | None, discrete: bool | None) -> Array | None:
    """The candidate's log-probabilities, from the standard columns or from the one that is named."""
    if column is None:
        return log_probs(columns, "eval", discrete, zero=True)
    if column not in columns.names:
        raise DataError(must_be_one_of("the candidate's column", column, columns.names))
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
        owner = "behaviour policy's" if who == "behavior" else "candidate's"
        ways = [fix(f"{who}_log_prob" if log else f"{who}_prob", each) for each, log in is_log.items()]
        raise DataError(
            f"columns {other!r} and {name!r} must agree, because both hold the {owner} probabilities; got "
            f"{values[row]:.6g} and {probs[row]:.6g} at {columns.where(row)}. Say which to use: {' or '.join(ways)}"
        )


def _as_log(columns: Columns, name: str, log: bool, discrete: bool | None, zero: bool) -> Array:
    values = columns.numbers(name, "iuf")
    who, where = "eval" if zero else "behavior", columns.where
    if log:
        if discrete is not False and values.min() >= 0 and values.max() > ROUNDING:
            raise DataError(
                f"column {name!r} must hold logarithms of probabilities, at most 0; got {values.max():g} at "
                f"{where(int(values.argmax()))}, and none is negative. If these are probabilities, say so: "
                f"{fix(f'{who}_prob', name)}"
            )
        check_log_probs(f"column {name!r}", values, discrete, where, zero=zero)
        return values
    check_finite(f"column {name!r}", values, where)
    low = values < 0 if zero else values <= 0
    if low.any():
        row = int(np.argmax(low))
        hint = f". If these are logarithms, say so: {fix(f'{who}_log_prob', name)}" if values.min() < 0 else ""
        need = "≥ 0" if zero else "> 0, because the behaviour policy took this action"
        raise DataError(f"column {name!r} must be a probability {need}; got {values[row]:g} at {where(row)}{hint}")
    if discrete is not False and values.max() > 1 + ROUNDING:
        row = int(np.argmax(values > 1 + ROUNDING))
        why = "actions are discrete" if discrete else "without an action column actions count as discrete"
        raise DataError(f"column {name!r} must be at most 1, because {why}; got {values[row]:g} at {where(row)}")
    with np.errstate(divide="ignore"):
        return np.log(values)
