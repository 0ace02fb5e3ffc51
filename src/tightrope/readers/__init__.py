"""From files and frames to a dataset. Every reader ends in the same long-format table."""

from tightrope.readers.read import read

__all__ = ["read"]
