"""The errors that tightrope raises. Every message names the argument, what it must be, and what was given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numpy.linalg import LinAlgError

# Characters that move a cursor, set a colour, turn text around or are half a character; line ends and tabs are kept.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with its control characters as escapes: it may come from a stranger's file, and terminals obey them."""
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


class TightropeError(ValueError):
    """The parent of all errors of tightrope: catch this one to catch them all.

    >>> import tightrope
    >>> try:
    ...     tightrope.read({"t": [0, 1]})
    ... except tightrope.TightropeError as error:
    ...     print(type(error).__name__)
    DataError
    """

    def __init__(self, message: object = ""):
        super().__init__(visible(str(message)))


class DataError(TightropeError):
    """The logs are not what was declared, or not complete enough to be used.

    >>> import tightrope
    >>> try:
    ...     tightrope.read({"reward": [1.0, float("nan")], "t": [0, 1], "episode": [0, 0]})
    ... except tightrope.DataError as error:
    ...     print(error)
    column 'reward' must be a finite number; got nan at episode 0, step 1
    """


class NoOverlapError(DataError):
    """The candidate could not have produced any of the logs, so importance sampling learns nothing about it.

    >>> import tightrope
    >>> columns = {"reward": [1.0], "state": [0], "action": [0], "pscore": [0.5]}
    >>> never = tightrope.TabularPolicy([[0.0, 1.0]])
    >>> try:
    ...     tightrope.estimate(tightrope.read(columns), never)
    ... except tightrope.NoOverlapError as error:
    ...     print(str(error).split(":")[0])
    all importance weights are zero at step 0
    """


class PolicyError(TightropeError):
    """A policy cannot give the probabilities or actions that are needed, or gives impossible ones.

    >>> import tightrope
    >>> try:
    ...     tightrope.TabularPolicy([[0.7, 0.7]])
    ... except tightrope.PolicyError as error:
    ...     print(error)
    row [0] of probs must sum to 1; got 1.4
    """

    def __init__(self, message: str, *, row: int | None = None):
        super().__init__(message)
        self.row = row  # the row of the states that it failed on, so that the caller can name the step


def policy_failed(states: Any, error: Exception) -> PolicyError:
    """What is raised where a user's own policy fails."""
    return PolicyError(
        f"the policy failed on states of shape {states.shape} ({states.dtype}): {type(error).__name__}: {error}"
    )


class BoundError(TightropeError):
    """This bound cannot be computed: the pair is not valid, a declaration is missing, or the data contradict one.

    >>> import tightrope
    >>> logs = tightrope.read({"reward": [1.0, 0.0], "pscore": [0.5, 0.5], "eval_prob": [0.7, 0.3]})
    >>> try:
    ...     tightrope.lower_bound(logs, confidence=95)
    ... except tightrope.BoundError as error:
    ...     print(error)
    confidence must lie between 0.5 and 1, such as 0.95; got 95
    """


class CannotSendError(BoundError):
    """What would have to travel to the workers of a cluster is too large for that, or cannot be packed."""


class MissingBoundError(TightropeError, KeyError):
    """An evaluation holds no bound of that name.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(200, rng=np.random.default_rng(0))
    >>> try:
    ...     tightrope.evaluate(logs, walker.candidate, estimators=["dr", "wdr"], methods="bca")["wrd", "bca"]
    ... except tightrope.MissingBoundError as error:
    ...     print(error)
    estimator must be "dr" or "wdr"; got 'wrd'. Did you mean "wdr"?
    """

    __str__ = Exception.__str__  # a KeyError would put the message between quotes


class StudyError(TightropeError):
    """A study cannot run or go on: the folder belongs to another study, the disk is full, or a process keeps dying.

    >>> import pathlib, tightrope
    >>> from tightrope.studies.reproduce import reproduce
    >>> try:
    ...     reproduce("mountain-cat", pathlib.Path("out"))
    ... except tightrope.StudyError as error:
    ...     print(error)
    study must be "mountain-car", "cliff-world" or "all"; got 'mountain-cat'. Did you mean "mountain-car"?
    """


@contextmanager
def failing() -> Iterator[None]:
    """Turn a lack of memory and failed arithmetic into our own error, so that they cost one bound and not all."""
    try:
        yield
    except MemoryError as error:
        raise BoundError(f"there is not enough memory for it: {str(error) or 'none is left'}") from error
    except (LinAlgError, ArithmeticError) as error:
        raise BoundError(f"its numbers cannot be computed on these logs: {type(error).__name__}: {error}") from error
