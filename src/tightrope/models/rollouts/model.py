"""Monte Carlo evaluation in a fitted model: roll-outs of many replicates side by side, all with the same noise.

    V̂(w) = Σ_i w_i v̂_1(s_i) / Σ_i w_i  +  Σ_{i∈S} w_i [v̂_w(s_i) − v̂_1(s_i)] / Σ_{i∈S} w_i

with s_i the start of episode i and v̂_w a mean of returns simulated from it in the model fitted under w. The first
part, in the model of all logs, is simulated once and with many roll-outs. The second is what refitting changes: from
some starts only, with few roll-outs, the same under w and under weights of one. It is small, so its error is too. Where
S holds all episodes and the first part has no more roll-outs than the second, this is Σ w_i v̂_w(s_i) / Σ w_i.

The noise belongs to the episode (by its id), the roll-out and the absolute time, and to nothing else:
replicates differ by their fits alone, and neither order nor chunks matter. The episode ids choose S too. Every other
roll-out mirrors the noise of the one before (u to 1 − u). How far noise moves the estimate is no part of what the
bootstrap varies: ``diagnostics`` reports its standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self, cast

import numpy as np

from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.base.errors import DataError
from tightrope.base.policy import Actor, PreparedActor, as_actor
from tightrope.base.problem import Problem
from tightrope.base.progress import tell
from tightrope.models.rollouts.lanes import Anything, Bank, Starts, trajectory_key
from tightrope.models.rollouts.stepping import Anchor, Dynamics, Stepper
from tightrope.models.rollouts.transitions import Outcome, Transitions

FIT_ROWS = 256  # replicates fitted together
LANES = 16384  # roll-outs stepped together, replicates included: their arrays stay in cache
ROLLING = "asking the policy, step by step of the model"
BANK_BYTES = 16 << 20  # what the noise of one chunk of episodes may take
MOST_SIMULATED = 10**9  # steps of roll-outs from every logged step of logs in files: some minutes for each fit
REFITS = 32  # rows of weights from which diagnostics estimate how much a refit changes


@dataclass(frozen=True, kw_only=True)
class RolloutSettings:
    """The settings of every model that is evaluated by roll-outs.

    ``reward`` and ``terminated`` are known functions of (states, actions, next_states, t), one row per transition;
    where they are None the model learns them. A roll-out whose state goes further than ``blow_up`` times the logged
    range (of all logs, whatever their weights) is ended there, with the worst reward on every step to come (the best,
    for an upper bound), and counted.
    """

    reward: Outcome | None = None  # known, or learned
    terminated: Outcome | None = None  # known, or learned
    n_rollouts: int = 10  # from every start; even, since they come in mirrored pairs
    point_rollouts: int = 20_000  # of the estimate, in all, unless n_rollouts from every start are more
    replicate_rollouts: int = 400  # of each replicate, in all, at most; from one start at least
    seed: int = 0  # of the frozen noise
    blow_up: float = 1e3  # of the logged range: where a roll-out is ended

    def __post_init__(self) -> None:
        if not isinstance(self.n_rollouts, int) or self.n_rollouts < 2 or self.n_rollouts % 2:
            raise DataError(
                f"n_rollouts must be an even number, at least 2, because they come in pairs; got {self.n_rollouts!r}"
            )
        for name, value in (
            ("point_rollouts", self.point_rollouts),
            ("replicate_rollouts", self.replicate_rollouts),
        ):
            if not isinstance(value, int) or value < 0:
                raise DataError(f"{name} must be a whole number, 0 or more; got {value!r}")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**64:
            raise DataError(f"seed must be a whole number from 0 to 2**64 - 1; got {self.seed!r}")
        if not self.blow_up > 0:
            raise DataError(f"blow_up must be a positive number of ranges; got {self.blow_up!r}")


class TooManyStepsError(DataError):
    """Roll-outs from every logged step would take hours."""


class Point(NamedTuple):
    """The candidate's value from every start, in the model of all logs."""

    values: Array  # (n,): v̂_1 of all roll-outs
    few: Array  # (n,): v̂_1 of the roll-outs that replicates repeat
    standard_error: float  # of the mean of values


@dataclass(eq=False)
class RolloutModel:
    """A prepared model: refitted under every row of weights by ``fit``, evaluated by roll-outs."""

    transitions: Transitions
    actor: Actor
    settings: RolloutSettings
    anchor: Anchor
    noise_width: int  # how many numbers of noise a step of the model takes
    fit: Callable[[Array], Dynamics]  # (rows, n) weights
    normal: bool  # whether that noise is normal; else uniform
    fit_rows: int = FIT_ROWS  # how many rows to fit together, at most

    @classmethod
    def of(
        cls,
        problem: Problem,
        transitions: Transitions,
        settings: RolloutSettings,
        anchor: str,
        width: int,
        fit: Any,
        *,
        normal: bool,
    ) -> Self:
        """Check that the candidate can act, and that ``anchor`` says which side is the safe one."""
        if anchor not in ("low", "high"):
            raise DataError(f'anchor must be "low" (for a lower bound) or "high" (for an upper bound); got {anchor!r}')
        return cls(transitions, as_actor(problem.policy), settings, cast(Anchor, anchor), width, fit, normal)

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return self.transitions.data.n_trajectories

    @cached_property
    def stepper(self) -> Stepper:
        """The object that steps the roll-outs and counts them."""
        chosen = self.settings
        return Stepper(self.transitions, self.actor, chosen.reward, chosen.terminated, chosen.blow_up, self.anchor)

    def values(self, weights: Array) -> Array:
        """V̂ in the model fitted under each row, (rows, n) to (rows,); NaN where there is no fit."""
        weights = np.asarray(weights, dtype=np.float64)
        few = weights[:, self._some]
        with np.errstate(invalid="ignore"):
            values: Array = (weights * self.point.values).sum(axis=1) / weights.sum(axis=1)
        for rows, changes in self._changes(weights):
            total = few[rows].sum(axis=1)
            spread = np.where(total[:, None] > 0, few[rows], 1.0)  # none of them drawn: all count alike
            values[rows] += (spread * changes).sum(axis=1) / spread.sum(axis=1)
        return values

    def control_variates(self, weights: Array, wanted: BoolArray | None = None) -> tuple[Array, Array]:
        """q̂_t(S_t, A_t) and v̂_t(S_t) of every wanted step, (N,) each, by roll-outs over the steps left; else NaN.

        Both use the noise of the step's episode from its time on; v̂'s first action comes from the candidate, so that
        v̂ = E_a q̂ but for the Monte Carlo error, which the logged action knows nothing of.
        """
        data, actions = self.transitions.data, self.transitions.actions
        self._check_work()
        q, v = data.scratch.empty(data.n_steps), data.scratch.empty(data.n_steps)
        q[:], v[:] = np.nan, np.nan
        dynamics = self.fit(np.asarray(weights, dtype=np.float64)[None])
        if not dynamics.fitted[0]:
            return q, v
        every = np.arange(data.n_trajectories) if wanted is None else np.flatnonzero(wanted)
        for chunk in self._chunks(len(every), LANES // data.horizon):
            tell(ROLLING, chunk.start / len(every))
            episodes = every[chunk]
            bank, steps = self._bank(episodes, np.zeros(len(episodes), dtype=np.int64)), data.steps_of(episodes)
            times = steps - np.repeat(data.offsets[episodes], data.lengths[episodes])
            places = np.argsort(times, kind="stable")
            banks = np.repeat(np.arange(len(episodes)), data.lengths[episodes])[places]
            order = steps[places]
            start = Starts(self.transitions.states[order], times[places], banks)
            v[order] = self.stepper.returns(dynamics, bank, start)[0].mean(axis=1)
            start = Starts(start.states, start.times, banks, actions[order])
            q[order] = self.stepper.returns(dynamics, bank, start)[0].mean(axis=1)
        tell(ROLLING, 1.0)
        return q, v

    def _check_work(self) -> None:
        """Refuse logs larger than memory from each of whose steps it would take too long to simulate."""
        data = self.transitions.data
        left = float(np.sum(data.lengths * (data.horizon - (data.lengths - 1) / 2)))
        simulated = 2 * self.settings.n_rollouts * left
        if data.folder is not None and simulated > MOST_SIMULATED:
            raise TooManyStepsError(
                f"dr, wdr and the check of the model simulate {self.settings.n_rollouts} roll-outs twice from each of "
                f"the {data.n_steps:,} logged steps: {simulated:.1g} steps for each fit, at some 7 million a second. "
                "For logs larger than memory at most 1e+09 are simulated: take fewer episodes, or use mb"
            )

    def diagnostics(self) -> dict[str, float]:
        """How far the roll-outs are to be trusted.

        Besides ``point_diagnostics`` the Monte Carlo standard error of what refitting changes, a root mean square over
        some resamples. It comes from how the changes differ between starts: too large where all starts are used.
        """
        refit = self._refit_error  # first: its roll-outs count too
        return {**self.point_diagnostics(), "refit_standard_error": refit}

    @cached_property
    def _refit_error(self) -> float:
        """The Monte Carlo standard error of what a refit changes, over some resamples; NaN with a single start."""
        n, rng = self.n_trajectories, np.random.default_rng(self.settings.seed)
        if len(self._some) < 2:
            return float("nan")
        rows = rng.multinomial(n, np.full(n, 1 / n), size=REFITS).astype(np.float64)
        squares = np.concatenate([changes.var(axis=1, ddof=1) for _, changes in self._changes(rows)])
        few = rows[:, self._some]
        unequal = np.square(few).sum(axis=1) / np.square(np.maximum(few.sum(axis=1), 1.0))
        return float(np.sqrt(np.nanmean(squares * unequal)))

    def simulation_error(self) -> float:
        """The Monte Carlo standard error of a replicate: of the estimate, and of the change that its refit makes.

        With roll-outs from every start the latter is part of what resampling varies, and not counted.
        """
        refit = self._refit_error if len(self._some) < self.n_trajectories else 0.0
        return float(np.hypot(self.point.standard_error, np.nan_to_num(refit)))

    def point_diagnostics(self) -> dict[str, float]:
        """The Monte Carlo standard error of the estimate; how many roll-outs there were, and how many blew up."""
        return {
            "monte_carlo_standard_error": self.point.standard_error,
            "rollouts": self.stepper.n_rolled,
            "blown_up": self.stepper.n_blown_up,
        }

    @cached_property
    def point(self) -> Point:
        """Roll-outs from every start in the model of all logs: as many rounds of ``n_rollouts`` as asked for."""
        n, size = self.n_trajectories, self.settings.n_rollouts
        rounds = max(1, -(-self.settings.point_rollouts // (n * size)))
        episodes, first_pairs = np.tile(np.arange(n), rounds), np.repeat(np.arange(rounds) * (size // 2), n)
        dynamics = self.fit(np.ones((1, n)))
        parts = [returns[0] for _, _, returns in self.start_returns(dynamics, episodes, first_pairs)]
        pairs = np.concatenate(parts).reshape(rounds, n, size // 2, 2).mean(axis=3).transpose(1, 0, 2)
        count = rounds * size // 2
        # One pair per start says nothing about its own spread; that over starts, which is wider, stands in.
        spread = (
            pairs.reshape(n, -1).var(axis=1, ddof=1).mean() if count > 1 else pairs.var(ddof=1) if n > 1 else np.nan
        )
        error = float(np.sqrt(spread / (n * count)))
        if not dynamics.fitted[0]:
            pairs = np.full_like(pairs, np.nan)
        return Point(pairs.mean(axis=(1, 2)), pairs[:, 0].mean(axis=1), error)

    def _changes(self, weights: Array) -> Iterator[tuple[slice, Array]]:
        """(rows, v̂_w − v̂_1 of the starts in S), NaN where there is no fit, block by block."""
        episodes, size = self._some, min(FIT_ROWS, self.fit_rows)
        for first in range(0, len(weights), size):
            rows = slice(first, min(first + size, len(weights)))
            dynamics = self.fit(weights[rows])
            values = np.empty((rows.stop - rows.start, len(episodes)))
            for some, chunk, returns in self.start_returns(dynamics, episodes, np.zeros_like(episodes)):
                values[some, chunk] = returns.mean(axis=2)
            values[~dynamics.fitted] = np.nan
            yield rows, values - self.point.few[episodes]

    def start_returns(
        self, dynamics: Dynamics, episodes: IntArray, first_pairs: IntArray
    ) -> Iterator[tuple[slice, slice, Array]]:
        """(rows, which, returns (rows, m, n_rollouts)) from the starts of episodes, block by block."""
        data, n_rows = self.transitions.data, len(dynamics.fitted)
        for chunk in self._chunks(len(episodes), LANES):
            bank, m = self._bank(episodes[chunk], first_pairs[chunk]), chunk.stop - chunk.start
            states = self.transitions.states[data.offsets[episodes[chunk]]]
            starts = Starts(states, np.zeros(m, dtype=np.int64), np.arange(m))
            width = max(1, LANES // (m * bank.size))
            for first in range(0, n_rows, width):
                rows = slice(first, min(first + width, n_rows))
                yield rows, chunk, self.stepper.returns(dynamics.take(rows), bank, starts)

    def _chunks(self, count: int, lanes: int) -> Iterator[slice]:
        """Ranges of so many starts: at most ``lanes`` roll-outs and BANK_BYTES of noise each."""
        rollouts = self.settings.n_rollouts
        noise = 8 * self.transitions.data.horizon * rollouts * max(1, self.actor.noise_width + self.noise_width)
        size = max(1, min(lanes // rollouts, BANK_BYTES // noise))
        for first in range(0, count, size):
            yield slice(first, min(first + size, count))

    def _bank(self, episodes: IntArray, first_pairs: IntArray) -> Bank:
        """The noise of some pairs of roll-outs of each episode; the last one made is kept, for the next replicates."""
        request = (episodes.tobytes(), first_pairs.tobytes())
        if self._kept[0] != request:
            shape = (self.transitions.data.horizon, self.settings.n_rollouts, self.actor.noise_width, self.noise_width)
            act = self.actor.noise if isinstance(self.actor, PreparedActor) else None
            self._kept[:] = request, Bank.of(self._keys[episodes], first_pairs, shape, act, normal=self.normal)
        return cast(Bank, self._kept[1])

    @cached_property
    def _kept(self) -> list[Any]:
        return [None, None]

    @cached_property
    def _keys(self) -> Anything:
        """The key of each episode's noise, (n,)."""
        ids = self.transitions.data.episode_ids
        assert ids is not None
        return np.array([trajectory_key(episode, self.settings.seed) for episode in ids.tolist()], dtype=np.uint64)

    @cached_property
    def _some(self) -> IntArray:
        """S: the episodes with the smallest keys, copies together, at least one; all where they fit."""
        _, place, copies = np.unique(self._keys, return_inverse=True, return_counts=True)
        room = self.settings.replicate_rollouts // self.settings.n_rollouts
        last = max(1, int(np.searchsorted(np.cumsum(copies), room, side="right")))
        return np.flatnonzero(place < last)
