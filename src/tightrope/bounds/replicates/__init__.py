"""Bounds read from bootstrap replicates: approximate, right as logs grow."""
