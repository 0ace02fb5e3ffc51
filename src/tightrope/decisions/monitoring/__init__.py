"""Bounds that hold at every look, while data arrives."""

from tightrope.decisions.monitoring.monitor import Monitor
from tightrope.decisions.monitoring.state import Look

__all__ = ["Look", "Monitor"]
