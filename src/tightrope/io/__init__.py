"""From files and frames to a dataset, and back. Every reader ends in the same long-format table."""

from tightrope.io.read import read
from tightrope.io.write import write

__all__ = ["read", "write"]
