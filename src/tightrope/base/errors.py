"""What tightrope raises on purpose. Every message names the argument, the value received and the fix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from numpy.linalg import LinAlgError

# What moves a cursor, sets a colour, turns text around or is half a character; but line ends and tabs.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """Text that may come from somebody else's file, its control characters as escapes: no terminal obeys them."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class TightropeError(ValueError):
    """The parent of all errors below: catch this one to catch them all."""

    def __init__(self, message: object = ""):
        super().__init__(visible(str(message)))


class DataError(TightropeError):
    """The logs are not what was declared, or not complete enough to be used."""


class NoOverlapError(DataError):
    """The candidate could not have produced any of the logs: by importance sampling they say nothing about it."""


class PolicyError(TightropeError):
    """A policy cannot answer what is asked of it, or answers nonsense."""

    def __init__(self, message: str, *, row: int | None = None):
        super().__init__(message)
        self.row = row  # which of the states it was asked about, so that a caller can name the step


class BoundError(TightropeError):
    """This bound cannot be computed: an invalid pair, a missing declaration, or data that contradict one."""


class StudyError(TightropeError):
    """A study cannot be run or resumed: another configuration's folder, a full disk, a process that keeps dying."""


@contextmanager
def failing() -> Iterator[None]:
    """Lack of memory and failing numerics become a reason of ours, so that they cost one bound and not all of them."""
    try:
        yield
    except MemoryError as error:
        raise BoundError(f"there is not enough memory for it: {str(error) or 'no more is to be had'}") from error
    except (LinAlgError, ArithmeticError) as error:
        raise BoundError(f"its numbers cannot be computed on these logs: {type(error).__name__}: {error}") from error
