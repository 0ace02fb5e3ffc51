"""Engines for tests."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from tightrope.base.cluster import _packed, _unpacked
from tightrope.functional.engines.base import tree_sum


@dataclass
class Pieces:
    """Takes the job apart into so many parts, and does them one after the other."""

    parts: int

    def add(self, call, ranges):
        return tree_sum([call(one) for one in ranges])

    def map(self, call, ranges):
        return iter([call(one) for one in ranges])


class Everywhere:
    """Packs each call as for another machine, and each result on the way back."""

    parts, largest = 3, 0

    def _sent(self, call):
        packed = _packed(call)
        self.largest = max(self.largest, len(packed))
        _unpacked.cache_clear()
        return lambda one: pickle.loads(pickle.dumps(_unpacked(packed)(one)))

    def add(self, call, ranges):
        return tree_sum(list(map(self._sent(call), ranges)))

    def map(self, call, ranges):
        return map(self._sent(call), ranges)
