"""Estimators that nobody gets unless they ask: what each must be held to, one small file each, named as it is.

``tests/laws/test_field.py`` takes every registered estimator that is not a usual one through the laws; what it needs to
know of it stands in ``tests/field/<name>.py`` as ``ENTRY``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from tests.oracle import Episode
from tightrope.estimators import ESTIMATORS, USUAL

FIELD = [name for name in ESTIMATORS if name not in USUAL]

Chances = Callable[[int, int], Sequence[float]]  # the candidate's probabilities in a state at a time


@dataclass(frozen=True)
class Question:
    """What a slow definition is asked: nothing in it comes from the package."""

    episodes: Sequence[Episode]
    candidate: Chances
    horizon: int
    discount: float
    weights: Sequence[float]
    reward_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Entry:
    """What an estimator is held to."""

    slow: Callable[[Question], float]  # its definition, in loops
    golden: float  # its value of ``GOLDEN_EPISODES`` in tests/laws/test_field.py, worked by hand in a comment
    settings: Mapping[str, Any] = field(default_factory=dict)  # with which it goes through the laws
    reward_range: tuple[float, float] | None = None  # declared, where it needs one
    logged_policy: bool = False  # whether it does without the candidate itself, so that law 6 can give it the loggers'
    exempt: Mapping[str, str] = field(default_factory=dict)  # the laws that it cannot obey, each with the reason


def entry(name: str) -> Entry:
    """What this estimator is held to."""
    found: Entry = import_module(f"tests.field.{name}").ENTRY
    return found
