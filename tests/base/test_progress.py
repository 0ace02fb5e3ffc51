"""Long work tells how far it has come, and parts of it count as parts."""

from __future__ import annotations

import numpy as np

import tightrope
from tightrope.base.progress import part, tell, watched
from tightrope.domains import CliffWorld


def test_parts_are_shares_of_the_whole():
    heard = []
    tell("unheard", 0.5)
    with watched(lambda what, share: heard.append((what, share))):
        tell("work", 0.25)
        with part(1, 2):
            tell("work", 0.0)
            with part(1, 4):
                tell("work", 0.5)
    tell("unheard", 1.0)
    assert heard == [("work", 0.25), ("work", 0.5), ("work", 0.6875)]


def test_a_model_that_is_rolled_out_tells_from_its_first_steps_on():
    world = CliffWorld()
    logs = world.logs(12, rng=np.random.default_rng(0))
    heard = []
    with watched(lambda what, share: heard.append(share)):
        tightrope.estimate(logs, world.candidate, estimator="wdr", model="linear")
    assert heard[0] == 0
    assert (np.diff(heard) > -1e-12).all()
    assert len(heard) >= 10  # the beginning and the end of each of five folds
    assert np.isclose(heard[-1], 1)
