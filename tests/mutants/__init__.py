"""Planted mistakes: each must be noticed by a test. ``make mutants`` plants them all, ``make test`` a few."""
