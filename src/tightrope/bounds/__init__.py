"""Bounds by name. Each is one small file that knows nothing of the estimator it bounds.

Every one computes a *lower* bound; an upper bound is the lower bound of the reflected problem.
"""

from __future__ import annotations

from tightrope.bounds.anderson import Anderson
from tightrope.bounds.base import BootstrapBound, ExactBound, Method, ProcessBound
from tightrope.bounds.basic import Basic
from tightrope.bounds.bca import BCa
from tightrope.bounds.betting import Betting
from tightrope.bounds.cut import CUT
from tightrope.bounds.empirical_bernstein import EmpiricalBernstein
from tightrope.bounds.hoeffding import Hoeffding
from tightrope.bounds.percentile import Percentile
from tightrope.bounds.robust import Robust
from tightrope.bounds.student_t import StudentT
from tightrope.bounds.studentized import Studentized
from tightrope.errors import TightropeError

METHODS: dict[str, Method] = {
    bound.name: bound
    for bound in (
        Percentile(),
        BCa(),
        Basic(),
        Studentized(),
        StudentT(),
        Hoeffding(),
        EmpiricalBernstein(),
        Anderson(),
        CUT(),
        Betting(),
    )
}


PROCESS_METHODS: dict[str, ProcessBound] = {Robust.name: Robust()}


def method(chosen: str | Method) -> Method:
    """A bound by name with its default settings, or as it is."""
    if isinstance(chosen, type):
        raise TightropeError(f"method is the class {chosen.__name__}; give an instance, {chosen.__name__}()")
    known: dict[str, Method] = {**METHODS, **PROCESS_METHODS}
    if isinstance(chosen, str) and chosen in known:
        return known[chosen]
    if isinstance(chosen, str) or not (hasattr(chosen, "lower") or isinstance(chosen, ProcessBound)):
        raise TightropeError(f"method is {chosen!r}; known: {', '.join(known)}")
    return chosen


__all__ = [
    "CUT",
    "METHODS",
    "PROCESS_METHODS",
    "Anderson",
    "BCa",
    "Basic",
    "Betting",
    "BootstrapBound",
    "EmpiricalBernstein",
    "ExactBound",
    "Hoeffding",
    "Method",
    "Percentile",
    "ProcessBound",
    "Robust",
    "StudentT",
    "Studentized",
    "method",
]
