"""Bounds that hold at any number of episodes, from values of independent episodes and a declared range."""
