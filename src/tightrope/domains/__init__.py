"""Benchmarks with known true values, one file each."""

from tightrope.domains.finite import FiniteMDP
from tightrope.domains.situations import situations
from tightrope.domains.small import SMALL, SmallProblem, small

__all__ = ["SMALL", "FiniteMDP", "SmallProblem", "situations", "small"]
