"""What a monitor remembers, and its file: written whole or not at all, and read without running anything."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.base.plain import Record
from tightrope.decisions.monitoring.game import Game
from tightrope.decisions.monitoring.past import Hashes
from tightrope.estimators import Anchor
from tightrope.evaluation.overlap import BETS
from tightrope.io.write import replace_file

FORMAT = 1  # of the file
SIDES: dict[str, Anchor] = {"lower": "low", "upper": "high"}  # of a bound, and the end of the range it counts from
FIRST, GROWTH = 8, 1.3  # the first plan is made after so many episodes, the next after 1.3 times as many each time
_EPISODES = (  # what is kept of past episodes
    "offsets", "rewards", "terminated", "cut", "behavior_log_probs", "eval_log_probs", "states", "actions",
    "final_states", "episode_ids",
)  # fmt: skip
_GAME = ("logs", "live", "chosen", "bets", "stakes")


@dataclass(frozen=True)
class Look(Record):
    """What a monitor knew after some episodes.

    >>> import tightrope
    >>> print(tightrope.Look(40, -18.5, -7.25, "monday"))
    monday: 40 episodes, -18.5 ≤ value ≤ -7.25
    """

    episodes: int  # counted so far
    lower: float  # the lower bound
    upper: float  # the upper bound
    label: str = ""  # as ``update`` was given it

    def __str__(self) -> str:
        name = f"{self.label}: " if self.label else ""
        return f"{name}{self.episodes} episodes, {self.lower:.6g} ≤ value ≤ {self.upper:.6g}"


@dataclass(frozen=True)
class Terms(Record):
    """What is fixed when a monitor begins."""

    candidate: str  # a hash of the policy
    confidence: float  # of each bound
    horizon: int
    discount: float
    reward_range: tuple[float, float] | None
    return_range: tuple[float, float] | None
    model: str  # by name, or a hash
    max_step_ratio: float | None
    limited: bool  # whether a step's ratio has a limit
    version: str  # of the library that began it


@dataclass(eq=False)
class State:
    """All that the next bets need."""

    terms: Terms
    low: float  # of the return
    high: float
    games: dict[str, Game]  # by side
    tables: dict[str, Array]  # by side: values of the past under each tether
    edge: int  # when the next plan is due
    past: TrajectoryDataset | None = None  # a sample
    count: int = 0  # of episodes so far
    known: Hashes = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))  # of all episodes, sorted
    looks: list[Look] = field(default_factory=list)
    wagers: Array = field(default_factory=lambda: np.zeros(len(BETS)))  # log-wealth of bets on too high ratios
    evidence: float = 0.0  # the most that they showed at any look

    @classmethod
    def new(cls, terms: Terms, value_range: tuple[float, float]) -> State:
        """Before the first episode."""
        low, high = value_range
        games = {side: Game.new(high - low, 1 - terms.confidence, limited=terms.limited) for side in SIDES}
        tables = {side: np.zeros((0, len(game.tethers))) for side, game in games.items()}
        return cls(terms, low, high, games, tables, FIRST)


def write_state(state: State, path: Path) -> None:
    """Replace the file."""
    head = {
        "format": FORMAT, "terms": state.terms.to_dict(), "low": state.low, "high": state.high, "count": state.count,
        "edge": state.edge, "looks": [asdict(look) for look in state.looks], "evidence": state.evidence,
    }  # fmt: skip
    arrays: dict[str, Any] = {"head": np.array(json.dumps(head)), "known": state.known, "wagers": state.wagers}
    for side, game in state.games.items():
        arrays |= {f"{side}.{name}": vars(game)[name] for name in _GAME}
        arrays[f"{side}.table"] = state.tables[side]
    if state.past is not None:
        arrays |= {f"past.{name}": vars(state.past)[name] for name in _EPISODES if vars(state.past)[name] is not None}

    def make(temporary: str) -> None:
        with open(temporary, "wb") as file:
            np.savez_compressed(file, **arrays)

    replace_file(path, make)


def read_state(path: Path) -> State:
    """The state in a file; nothing in it is run."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        head = json.loads(str(arrays["head"]))
        if head["format"] != FORMAT:
            raise DataError(f"{path} holds a monitor of format {head['format']}; this version reads format {FORMAT}")
        return _state(head, arrays)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        other = isinstance(error, ValueError) and not zipfile.is_zipfile(path)
        why = "it is of another kind. The monitor's own file comes first, then the logs" if other else error
        raise DataError(f"{path} must be a file that a monitor wrote: {why}") from error


def _state(head: dict[str, Any], arrays: dict[str, Any]) -> State:
    terms = Terms.from_dict(head["terms"])
    state = State.new(terms, (head["low"], head["high"]))
    state.count, state.edge, state.known = head["count"], head["edge"], arrays["known"]
    state.looks = [Look(**look) for look in head["looks"]]
    state.wagers, state.evidence = arrays["wagers"], head["evidence"]
    for side, game in state.games.items():
        for name in _GAME:
            if vars(game)[name].shape != arrays[f"{side}.{name}"].shape:
                raise DataError(f"{side}.{name} has another shape")
            setattr(game, name, arrays[f"{side}.{name}"])
        state.tables[side] = arrays[f"{side}.table"]
    episodes = {name: arrays[f"past.{name}"] for name in _EPISODES if f"past.{name}" in arrays}
    if episodes:
        state.past = TrajectoryDataset(
            **episodes, horizon=terms.horizon, discount=terms.discount, reward_range=terms.reward_range,
            return_range=terms.return_range,
        )  # fmt: skip
    return state


def differences(one: Terms, other: Terms) -> list[str]:
    """What is not the same in both, in words; the version may differ."""
    return [
        f"{each.name} was {_shown(each.name, one)} and is {_shown(each.name, other)} now"
        for each in fields(Terms)
        if each.name not in ("version", "limited") and vars(one)[each.name] != vars(other)[each.name]
    ]


def _shown(name: str, terms: Terms) -> str:
    return f"{terms.candidate[:12]}… (a hash)" if name == "candidate" else f"{vars(terms)[name]}"
