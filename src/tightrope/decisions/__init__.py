"""Decisions: which of several, how much more data, whether by now, in the tail, and a better policy."""
