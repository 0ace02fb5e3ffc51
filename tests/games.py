"""One order of the betting bound's game."""

from __future__ import annotations

import numpy as np

from tightrope.bounds.exact import betting


def played(sample, order, delta=0.05):
    """X, the planned bet, the largest stake and the tether of every episode in this order."""
    game = tuple(np.empty(len(order)) for _ in range(4))
    betting._play(sample, order, delta, game)
    return game
