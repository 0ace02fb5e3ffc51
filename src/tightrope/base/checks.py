"""Checks of arrays and files; each error names the first place where the check fails."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tightrope.base.errors import DataError, PolicyError, TightropeError
from tightrope.base.folder import distinct, parts
from tightrope.base.threads import passed

T = TypeVar("T", bound=np.generic)
Where = Callable[[int], str]  # names a row: "episode 3, step 7"

LARGEST = 1e100  # numbers that are squared, multiplied by ratios and summed up
LONGEST = 10_000_000  # steps of a horizon: estimators keep some numbers for each
ROUNDING = 1e-6  # probabilities up to 1 + ROUNDING are taken for 1: float32 logs overshoot by that much


def first_masked(values: Any) -> int | None:
    """The first row with a masked entry, which is a missing value; None where no entry is masked."""
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.atleast_1d(np.ma.getmaskarray(values))
        bad = hidden.reshape(len(hidden), -1).any(axis=1)
    elif isinstance(values, (list, tuple)):
        bad = np.array([first_masked(row) is not None for row in values], dtype=bool)
    else:
        return None
    return int(np.argmax(bad)) if bad.any() else None


def check_unmasked(name: str, values: Any, error: type[TightropeError] = DataError) -> None:
    """Refuse masked entries where a row cannot be named by its episode."""
    row = first_masked(values)
    if row is not None:
        raise error(f"{name} has no value (masked) in row {row}, counted from 0; every row needs one")


def numbers(name: str, values: Any, error: type[TightropeError] = PolicyError) -> npt.NDArray[np.float64]:
    """Numbers that the user's code gives, as floats; refuses values that floats cannot hold."""
    check_unmasked(name, values, error)
    try:
        given = np.asarray(values)
        if given.dtype.kind == "O":
            given = np.asarray(given.tolist())  # the type of its values, if they have one type
        if given.dtype.kind not in "iufbO":
            raise error(f"{name} must give {'real ' if given.dtype.kind == 'c' else ''}numbers; got {given.dtype}")
        return given.astype(np.float64, copy=False)
    except (TypeError, ValueError) as wrong:
        if isinstance(wrong, TightropeError):
            raise
        raise error(f"{name} must give numbers, all rows of one length: {wrong}") from wrong


def read_only(array: npt.NDArray[T]) -> npt.NDArray[T]:
    """A view of the array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


def lent(array: npt.NDArray[T]) -> npt.NDArray[T]:
    """The array for the user's code: read-only, or a copy where torch is loaded, whose tensors could write to it."""
    return array.copy(order="K") if "torch" in sys.modules else read_only(array)


def check_finite(name: str, values: npt.NDArray[Any] | None, where: Where) -> None:
    """Refuse NaN and infinity."""
    if values is None or values.dtype.kind != "f":
        return
    step = first_row(
        lambda part: ~np.isfinite(values[part]).reshape(part.stop - part.start, -1).all(axis=1), len(values)
    )
    if step is not None:
        raise DataError(f"{name} must be a finite number; got {values[step]} at {where(step)}")


def first_row(bad: Callable[[slice], npt.NDArray[np.bool_]], n: int) -> int | None:
    """The first of n rows that is bad, looked for some rows at a time by all cores, or the workers of a cluster."""

    def found(part: slice) -> int:
        rows = bad(part)
        return int(part.start) + int(np.argmax(rows)) if rows.any() else -1

    return next((row for row in passed(found, parts(n)) if row >= 0), None)


def check_size(name: str, values: npt.NDArray[Any], where: Where) -> None:
    """Refuse numbers that are so large, or all of them so small, that their squares overflow or vanish."""
    if values.dtype.kind != "f" or not values.size:
        return

    def most(part: slice) -> tuple[float, int]:
        sizes = np.abs(values[part]).reshape(part.stop - part.start, -1).max(axis=1)
        return float(sizes.max()), -(int(part.start) + int(np.argmax(sizes)))

    largest, step = max(passed(most, parts(len(values))))  # the first of equals
    step = -step
    if largest > LARGEST:
        raise DataError(
            f"{name} must lie within ±{LARGEST:g}, because larger squares overflow; got {values[step]} at "
            f"{where(step)}. Divide all of them by one number; the results are then in that unit"
        )
    if 0 < largest < 1 / LARGEST:
        raise DataError(
            f"{name} must reach {1 / LARGEST:g} somewhere, because smaller squares vanish; the largest is "
            f"{largest:g} at {where(step)}. Multiply all of them by one number; the results are then in that unit"
        )


def check_log_probs(
    name: str,
    values: npt.NDArray[np.float64] | None,
    discrete: bool | None,
    where: Where,
    *,
    zero: bool = False,
    error: type[TightropeError] = DataError,
) -> None:
    """Refuse NaN, +∞, positive log-probabilities of discrete actions and (unless ``zero``) −∞."""
    if values is None:
        return

    def impossible(part: slice) -> npt.NDArray[np.bool_]:
        some = values[part]
        return np.asarray(np.isnan(some) | (some == np.inf) | ((some == -np.inf) & (not zero)))

    step = first_row(impossible, len(values))
    if step is not None:
        need = "a number or -inf" if zero else "finite, because the behaviour policy took this action"
        raise error(f"{name} must be {need}; got {values[step]} at {where(step)}")
    step = None if discrete is False else first_row(lambda part: values[part] > ROUNDING, len(values))
    if step is not None:
        raise error(
            f"{name} must be at most 0, the logarithm of a probability; got {values[step]:g} at {where(step)}. Only a "
            f"density of continuous (float) actions may exceed 1{'' if discrete else '; these logs hold no actions'}"
        )


def check_labels(name: str, values: npt.NDArray[Any] | None, where: Where) -> None:
    """Refuse labels of which some are numbers and some are words; either is fine alone."""
    if values is None or values.dtype.kind != "U":
        return
    first = values.reshape(len(values), -1)[:, 0]
    labels = distinct(first)
    numeric = np.array([reads_as_number(label) for label in labels])
    if numeric.any() and not numeric.all():
        others = labels[numeric != reads_as_number(first[0])]
        places = (part.start + np.flatnonzero(np.isin(first[part], others)) for part in parts(len(values)))
        row = next(int(rows[0]) for rows in places if len(rows))
        raise DataError(
            f"{name} must hold either numbers or names, not both; got {str(values[0])!r} at {where(0)} and "
            f"{str(values[row])!r} at {where(row)}"
        )


def declared_range(name: str, value: Any) -> tuple[float, float]:
    """A pair (lowest, highest), infinite where an end is None."""
    try:
        low, high = value
        low = -np.inf if low is None else float(low)
        high = np.inf if high is None else float(high)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{name} must be a pair (lowest, highest), with None for an unknown end; got {value!r}"
        ) from error
    if not low < high:
        raise DataError(f"{name} must have its lowest number below its highest; got ({low:g}, {high:g})")
    if any(LARGEST < abs(end) < np.inf for end in (low, high)):
        raise DataError(f"{name} must lie within ±{LARGEST:g}, or have None for an end; got ({low:g}, {high:g})")
    return low, high


def whole_horizon(value: Any) -> int:
    """A number of steps."""
    if not is_number(value) or value < 1 or value % 1 != 0:
        raise DataError(f"horizon must be a whole number of steps, at least 1; got {value!r}")
    if value > LONGEST:
        raise DataError(
            f"horizon must be at most {LONGEST} steps; got {value!r}. Give the number of steps after which nothing "
            "more counts"
        )
    return int(value)


def accepted(function: Any) -> frozenset[str]:
    """The names of the arguments of a user's function; none if it is not a function."""
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return frozenset()


def is_number(value: Any) -> bool:
    """Whether a setting is one finite number, small enough for a float."""
    try:
        return isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value)
    except OverflowError:
        return False


def reads_as_number(text: str) -> bool:
    """Whether a text can be read as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
