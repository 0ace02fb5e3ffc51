"""From files and frames to a dataset, and back. Every reader ends in the same long-format table."""

from tightrope.readers.read import read
from tightrope.readers.write import write

__all__ = ["read", "write"]
