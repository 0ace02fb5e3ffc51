"""Bounds by name. Each is one small file that knows nothing of the estimator it bounds.

Every one computes a *lower* bound; an upper bound is the lower bound of the reflected problem.
"""

from __future__ import annotations

from tightrope.base.errors import TightropeError
from tightrope.base.names import must_be_one_of
from tightrope.bounds.base import BootstrapBound, ExactBound, Method, ProcessBound
from tightrope.bounds.exact.anderson import Anderson
from tightrope.bounds.exact.betting import Betting
from tightrope.bounds.exact.betting_mixture import BettingMixture
from tightrope.bounds.exact.bottou import Bottou
from tightrope.bounds.exact.cut import CUT
from tightrope.bounds.exact.empirical_bernstein import EmpiricalBernstein
from tightrope.bounds.exact.hoeffding import Hoeffding
from tightrope.bounds.rehearsal.bound import Rehearsed
from tightrope.bounds.replicates.basic import Basic
from tightrope.bounds.replicates.bca import BCa
from tightrope.bounds.replicates.percentile import Percentile
from tightrope.bounds.replicates.student_t import StudentT
from tightrope.bounds.replicates.studentized import Studentized
from tightrope.bounds.robust import Robust

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
        BettingMixture(),
    )
}


PROCESS_METHODS: dict[str, ProcessBound] = {bound.name: bound for bound in (Robust(), Rehearsed(), Bottou())}


def method(chosen: str | Method) -> Method:
    """The ``chosen`` bound by name with its default settings, or as it is."""
    if isinstance(chosen, type):
        raise TightropeError(f"method is the class {chosen.__name__}; give an instance, {chosen.__name__}()")
    known: dict[str, Method] = {**METHODS, **PROCESS_METHODS}
    if isinstance(chosen, str) and chosen in known:
        return known[chosen]
    if isinstance(chosen, (BootstrapBound, ExactBound, ProcessBound)):
        return chosen
    raise TightropeError(must_be_one_of("method", chosen, known, "a bound object"))


__all__ = [
    "CUT",
    "METHODS",
    "PROCESS_METHODS",
    "Anderson",
    "BCa",
    "Basic",
    "Betting",
    "BettingMixture",
    "BootstrapBound",
    "Bottou",
    "EmpiricalBernstein",
    "ExactBound",
    "Hoeffding",
    "Method",
    "Percentile",
    "ProcessBound",
    "Rehearsed",
    "Robust",
    "StudentT",
    "Studentized",
    "method",
]
