"""Benchmarks with known true values, one file each."""

from collections.abc import Callable

from tightrope.base.errors import TightropeError
from tightrope.base.names import must_be_one_of
from tightrope.domains.base import Domain, Process
from tightrope.domains.cliff_world import CliffWorld
from tightrope.domains.drawn_process import drawn_problem
from tightrope.domains.episodes import mean_return, simulate
from tightrope.domains.field import FIELD
from tightrope.domains.finite import FiniteMDP
from tightrope.domains.mountain_car import MountainCar
from tightrope.domains.situations import situations
from tightrope.domains.small import SMALL, SmallProblem, small


def _shifted() -> CliffWorld:
    """The same platform at [2, 7]²: far from 0, where squares and cubes look nearly linear."""
    return CliffWorld(name="cliff-world-shifted", origin=(2.0, 2.0))


DOMAINS: dict[str, Callable[[], Domain]] = {
    **SMALL,
    **FIELD,
    "mountain-car": MountainCar,
    "cliff-world": CliffWorld,
    "cliff-world-shifted": _shifted,
}


def domain(name: str) -> Domain:
    """A domain by name."""
    if name not in DOMAINS:
        raise TightropeError(must_be_one_of("domain", name, DOMAINS))
    return DOMAINS[name]()


__all__ = [
    "DOMAINS",
    "FIELD",
    "SMALL",
    "CliffWorld",
    "Domain",
    "FiniteMDP",
    "MountainCar",
    "Process",
    "SmallProblem",
    "domain",
    "drawn_problem",
    "mean_return",
    "simulate",
    "situations",
    "small",
]
