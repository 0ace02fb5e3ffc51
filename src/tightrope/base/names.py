"""Names that users type: a wrong one is answered by the right one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

NEAR = 0.65  # how alike a name must be to be proposed: "patient" is no "action"


def must_be_one_of(argument: str, given: Any, known: Iterable[str], *otherwise: str) -> str:
    """The message for an unknown name: what it must be, what was given, and the known name nearest to that.

    ``otherwise`` lists what may be given instead of a name, such as "an estimator object".
    """
    names = list(known)
    choices = [*(f'"{name}"' for name in names), *otherwise]
    listed = " or ".join([", ".join(choices[:-1]), choices[-1]] if len(choices) > 1 else choices)
    return f"{argument} must be {listed}; got {given!r}{did_you_mean(given, names)}"


def did_you_mean(given: Any, known: Iterable[str]) -> str:
    """The question that ends a message, or nothing where no known name is near."""
    names = {name.lower(): name for name in known}
    near = get_close_matches(given.lower(), names, n=1, cutoff=NEAR) if isinstance(given, str) else []
    return f'. Did you mean "{names[near[0]]}"?' if near else ""


def suggests_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Answer a keyword that the function does not have by the one that was probably meant."""
    known = list(inspect.signature(function).parameters)

    @wraps(function)
    def call(*values: P.args, **keywords: P.kwargs) -> R:
        for name in keywords:
            if name not in known:
                hint = did_you_mean(name, known) or f"; it takes {', '.join(known)}"
                raise TypeError(f"{function.__name__}() has no keyword {name!r}{hint}")
        return function(*values, **keywords)

    return call
