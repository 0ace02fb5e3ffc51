"""Actions by label: the column of a label is where the library put it, in whatever order that is."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.adapters.outputs import labelled

CHANCES = np.array([0.2, 0.5, 0.3])


@pytest.mark.parametrize("labels", [["stay", "left", "right"], [7, 2, 5], [2, 0, 1], [True, False]])
def test_labels_in_any_order(labels):
    chances = CHANCES if len(labels) == 3 else CHANCES[:2] / CHANCES[:2].sum()
    policy = labelled(lambda states, t: np.log(np.tile(chances, (len(states), 1))), labels)
    times, actions = np.zeros(len(labels), dtype=np.int64), np.array(labels)[::-1]
    found = policy.log_prob(np.zeros((len(labels), 1)), actions, times)
    np.testing.assert_allclose(np.exp(found), chances[::-1])
    drawn = policy.act(np.zeros((4000, 1)), np.zeros(4000, dtype=np.int64), np.random.default_rng(0).random((4000, 1)))
    for label, chance in zip(np.array(labels), chances, strict=True):
        assert np.mean(drawn == label) == pytest.approx(chance, abs=0.04)
