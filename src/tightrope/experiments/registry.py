"""The studies that ship with the library, by id."""

from __future__ import annotations

from tightrope.domains import Domain
from tightrope.errors import StudyError
from tightrope.estimators import PDWIS, WIS
from tightrope.experiments.study import Method, Study


def walker_methods(domain: Domain) -> tuple[Method, ...]:
    """Two weighted estimators, enough to see a study run."""
    return tuple(Method(one.name, one, ("percentile", "bca", "studentized")) for one in (WIS(), PDWIS()))


STUDIES: dict[str, Study] = {
    study.id: study
    for study in (Study("walker", "walker", (20, 200), 200, walker_methods, about="a minute, to see a study run"),)
}


def find_study(name: str) -> Study:
    """A study by id."""
    if name not in STUDIES:
        raise StudyError(f"study is {name!r}; known: {', '.join(STUDIES)}")
    return STUDIES[name]
