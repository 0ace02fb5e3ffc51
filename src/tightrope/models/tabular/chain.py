"""The part of a tabular model that does not depend on the weights: the states that the candidate can reach."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tightrope.base.dataset import Array, IntArray
from tightrope.models.tabular.sorting import Index


@dataclass(frozen=True, eq=False)
class Chain:
    """The candidate's Markov chain over the states it can reach, numbered anew: arcs merged over actions.

    States out of reach and arcs to the end do not move the value and are left out.
    """

    states: Index  # (R,): which state each is
    edges: Index  # (R+1,): the moves of each
    nexts: Index  # (M,): where a move leads, in the new numbers
    links: Index  # (J,): which move an arc is part of; -1 none
    runs: IntArray  # (runs, 2): first time and steps of equal policy tables, the last run first

    @classmethod
    def of(cls, probs: Array, arc_pair: Index, arc_next: Index, starts: Index) -> Chain:
        """The chain that the logged arcs and the policy allow."""
        _, n_states, n_actions = probs.shape
        taken = (probs > 0).any(axis=0).reshape(-1)
        arc_state = arc_pair // n_actions
        used = taken[arc_pair] & (arc_next < n_states)
        reached = np.zeros(n_states, dtype=np.bool_)
        reached[starts] = True
        before = -1
        while before < reached.sum():
            before = int(reached.sum())
            reached[arc_next[used & reached[arc_state]]] = True
        used &= reached[arc_state]
        number = np.cumsum(reached) - 1
        states = np.flatnonzero(reached)
        moves, part = np.unique(number[arc_state[used]] * len(states) + number[arc_next[used]], return_inverse=True)
        links = np.full(len(arc_state), -1)
        links[used] = part
        edges = np.searchsorted(moves // len(states), np.arange(len(states) + 1))
        return cls(_index(states), _index(edges), _index(moves % len(states)), _index(links), _runs(probs))


def _index(values: IntArray) -> Index:
    return values.astype(np.int32)


def _runs(probs: Array) -> IntArray:
    """Stretches of time in which the policy stays the same, the last one first."""
    changes = (probs[1:] != probs[:-1]).any(axis=(1, 2))
    edges = [0, *(np.flatnonzero(changes) + 1).tolist(), len(probs)]
    return np.array([(first, stop - first) for first, stop in pairwise(edges)][::-1])
