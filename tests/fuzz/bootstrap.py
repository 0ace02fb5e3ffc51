"""What every bootstrap bound must be: replicates, standard errors and jackknife from the slow definitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import ceil, inf, isfinite, log2, sqrt
from typing import Any

import numpy as np

from tests.bound_oracle import BOOTSTRAP, Number, Resampled
from tests.fuzz.terms import Bounds, Expected, Key, Logs, Refused
from tests.model_oracle import counted, slow_dr, slow_wdr, values
from tests.oracle import SLOW, Episode, counted_behavior

FOLDS = 5
BOOK = "book"  # the side of an estimate that counts from nowhere
SLACK = 1e-11  # of the numbers that go into a sum; sums are rounded to 2^-52 of the largest, times their number
RESOLVED = 1e-6  # a denominator known less exactly than this leaves its replicate undefined
STEP = 1e-30  # of the complex step: derivatives without cancellation
FEW = 8  # trajectories up to which a model is differentiated, one fit for each


class Bootstrap:
    """The bootstrap bounds of one question; ``weights`` (B, n) are the rows that were drawn."""

    def __init__(self, logs: Logs, weights: np.ndarray):
        self.logs, self.weights, self.estimated = logs, weights, logs.question.estimated
        self.kept: dict[tuple[str, str, str], Resampled] = {}

    def expected(self, key: Key) -> Expected:
        """The bound, or that there is none."""
        if self.logs.n < 2:
            return Refused("one episode")
        if key.method == "studentized" and key.what == "gain" and (key.estimator == "mb" or self.estimated):
            return Refused("no derivative")
        if key.method == "studentized" and key.estimator == "mb" and self.logs.n > FEW:
            return None
        seen = self._resampled(key)
        low, high = BOOTSTRAP[key.method](seen if key.side == "lower" else seen.reflected(), self.logs.delta)
        drawn = key.method != "t"
        surely = sum(v.defined is False for v in seen.values) if drawn else 0
        perhaps = sum(v.defined is not True for v in seen.values) if drawn else 0
        value = (low, high) if key.side == "lower" else (-high, -low)
        shown = self._resampled(key._replace(side=BOOK if key.estimator in ("is", "pdis") else "lower"))
        estimate = self.logs.possible(key.what, shown.estimate)
        return Bounds(value, estimate, shown.error if shown.error.defined else None, (surely, perhaps))

    def _resampled(self, key: Key) -> Resampled:
        name = (key.what, key.side, key.estimator)
        if name not in self.kept:
            make = self._fitted if key.estimator == "mb" else self._summed
            self.kept[name] = make(key)
        return self.kept[name]

    def _summed(self, key: Key) -> Resampled:
        """Replicates, standard errors and jackknife of a functional of weights."""
        n, value, methods = self.logs.n, self._functional(key), self.logs.question.methods
        ones, others = np.ones((1, n)), 1 - np.eye(n)
        estimate = self._numbers(key, value, ones, grid=False)[0]
        grid = self.logs.question.resampling != "bayesian" and not self.estimated
        raw = self._numbers(key, value, self.weights, grid=grid)
        errors = self._errors(key, value, self.weights, raw) if "studentized" in methods else []
        scale = sqrt(self._draws / n)
        return Resampled(
            estimate,
            [_drawn_in(v, estimate, scale) for v in raw],
            [replace(e, value=scale * e.value, error=scale * e.error) for e in errors],
            self._errors(key, value, ones, [estimate])[0],
            self._numbers(key, value, others, grid=False) if {"t", "bca"} & set(methods) else [],
        )

    @property
    def _draws(self) -> int:
        size = self.logs.question.resampling
        return size if isinstance(size, int) else self.logs.n

    def _functional(self, key: Key) -> Callable[[list[Any]], Any]:
        """The estimator's value under weights, one array of them for each trajectory."""
        estimate = self._estimator(key.estimator, key.side)
        if key.what == "value":
            return estimate

        def gain(w: list[Any]) -> Any:
            return estimate(w) - sum(wi * g for wi, g in zip(w, self.logs.returns, strict=True)) / sum(w)

        return gain

    def _estimator(self, name: str, side: str) -> Callable[[list[Any]], Any]:
        logs = (self.logs.discount, self.logs.horizon)
        if name in SLOW:
            end = inf if side == BOOK else self.logs.end(name, side)
            shift = {"shift": end if isfinite(end) else 0.0} if name in ("is", "pdis") else {}
            return lambda w: SLOW[name](self._episodes(w), *logs, w, **shift)
        each = self._cross_fitted(side)
        return lambda w: (slow_dr if name == "dr" else slow_wdr)(self.logs.episodes, *logs, each, w)

    def _episodes(self, weights: list[Any]) -> list[Episode]:
        """The episodes, with the behaviour policy counted under the weights where it is not taken as logged."""
        return counted_behavior(self.logs.episodes, weights) if self.estimated else self.logs.episodes

    def _ratios(self, rows: np.ndarray) -> np.ndarray:
        """ρ_t under each row of weights, (rows or 1, n, horizon)."""
        if not self.estimated:
            return self.logs.ratios[None]
        each = [[e.ratio(t) for t in range(self.logs.horizon)] for e in self._episodes(list(rows.T))]
        return np.moveaxis(np.array([[np.broadcast_to(r, len(rows)) for r in one] for one in each]), -1, 0)

    def _numbers(self, key: Key, value: Any, rows: np.ndarray, *, grid: bool) -> list[Number]:
        with np.errstate(all="ignore"):
            found = np.asarray(value(list(rows.T)), dtype=float)
        sizes, defined = self._sizes(key, rows, grid)
        return [
            Number(float(v), SLACK * float(size), False if not isfinite(v) else known)
            for v, size, known in zip(found, sizes, defined, strict=True)
        ]

    def _errors(self, key: Key, value: Any, rows: np.ndarray, numbers: list[Number]) -> list[Number]:
        """√(Σ w_i ψ_i² m/(m−1)), with ψ_i the derivative by the i-th weight, by a complex step."""
        n, draws = rows.shape[1], self._draws if rows is self.weights else rows.shape[1]
        steps, slopes = 1j * STEP * np.eye(n), np.empty(rows.shape)
        for some in (slice(start, start + 64) for start in range(0, n, 64)):
            stepped = [rows[:, i, None] + steps[i, some] for i in range(n)]  # (B, 64): the j-th moves in column j
            with np.errstate(all="ignore"):
                slopes[:, some] = np.asarray(value(stepped)).imag / STEP
        with np.errstate(all="ignore"):
            # An episode that was not drawn may hold a pair that nobody else holds, and have no slope at all.
            squares = np.where(rows > 0, rows * slopes**2, 0.0).sum(axis=1) * draws / max(draws - 1, 1)
        sizes, _ = self._sizes(key, rows, grid=False)
        return [
            Number(sqrt(s) if isfinite(s) else 0.0, (40 if self.estimated else 4) * SLACK * size, v.defined)
            for s, size, v in zip(squares, sizes, numbers, strict=True)
        ]

    def _sizes(self, key: Key, rows: np.ndarray, grid: bool) -> tuple[np.ndarray, list[bool | None]]:
        """How large the numbers are that add up to each replicate, and whether its denominators can be resolved."""
        n, totals = self.logs.n, rows.sum(axis=1)
        weighed, divided, constant = self._parts(key, self._ratios(rows))
        with np.errstate(all="ignore"):
            below = totals[:, None] if divided is None else (rows[:, :, None] * divided).sum(axis=1)
            top = np.ones((1, 1)) if divided is None else divided.max(axis=1)
            quotients = (rows[:, :, None] * weighed).sum(axis=1) / below  # what an error of the denominator multiplies
            sizes = constant + (n * (weighed.max(axis=1) + quotients * top) / below).sum(axis=1)
            if key.what == "gain":
                sizes = sizes + n * np.abs(self.logs.returns).max() / totals
            relative = (below / top).min(axis=1)
        unit = 2.0 ** (ceil(log2(self._most)) - 52) if grid else 0.0
        needed = sqrt(n) * unit / RESOLVED
        defined = [None if abs(r - needed) <= 1e-3 * needed and r > 0 else bool(r > needed) for r in relative]
        return np.where(np.isfinite(sizes), sizes, 0.0), [
            d if t > 0 else False for d, t in zip(defined, totals, strict=True)
        ]

    @property
    def _most(self) -> int:
        """The largest total that a row of whole weights can have."""
        return 13 * self.logs.n if self.logs.question.resampling == "poisson" else max(self._draws, 2)

    def _parts(self, key: Key, ratios: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, float]:
        """|what is summed| (rows, n, K), the ratios that are divided by where it is not the weights, and a constant."""
        name, discounts = key.estimator, self.logs.discounts
        end = inf if key.side == BOOK else self.logs.end(name, key.side)
        last, many = ratios[..., -1:], int(np.count_nonzero(discounts))
        shift = abs(end) if isfinite(end) else 0.0
        steps = np.abs(self.logs.rewards)
        returns = (steps * discounts).sum(axis=1, keepdims=True)
        if name == "is":
            return last * (returns + shift), None, shift
        if name == "pdis":
            return (ratios * discounts * (steps + shift)).sum(axis=-1, keepdims=True), None, shift * self.logs.total
        if name == "wis":
            return last * returns, last, 0.0
        used, steps = ratios[..., :many], steps[:, :many]
        if name == "pdwis":
            return used * discounts[:many] * steps, used, 0.0
        model = self._largest_model_value(key.side)
        summed = used * discounts[:many] * (steps + 2 * model)
        if name == "dr":
            return summed.sum(axis=-1, keepdims=True) + model, None, model
        return summed, used, model * 60

    # -- models --------------------------------------------------------------------------------------------------------

    @cached_property
    def _chances(self) -> Callable[[int, int], Any]:
        table = self.logs.question.candidate
        assert isinstance(table, np.ndarray)
        return lambda s, t: table[t, s]

    def _model(self, weights: Any, side: str) -> tuple[Any, Any, Any]:
        """A counted model under weights: the candidate's value in it, q and v."""
        low, high = self.logs.step_range
        end, seen = (low, min) if side == "lower" else (high, max)
        reward = end if isfinite(end) else seen(r for e in self.logs.episodes for r in e.rewards)
        model = counted(self.logs.episodes, self.logs.horizon, weights, finals=self._finals)
        return values(model, self._chances, self.logs.horizon, self.logs.discount, "self-loop", reward)

    @property
    def _finals(self) -> bool:
        return self.logs.question.finals

    def _cross_fitted(self, side: str) -> list[tuple[Any, Any]]:
        """For each trajectory the q and v of the model of the other folds; a trajectory's place decides its fold."""
        n = self.logs.n
        models = []
        for fold in range(min(FOLDS, n)):
            others = [float(i % FOLDS != fold) for i in range(n)]
            models.append(self._model(others if any(others) else [1.0] * n, side)[1:])
        return [models[i % FOLDS] for i in range(n)]

    def _largest_model_value(self, side: str) -> float:
        """No value in any model exceeds the largest reward times the horizon."""
        low, high = self.logs.step_range
        end = low if side == "lower" else high
        most = max(abs(r) for e in self.logs.episodes for r in e.rewards)
        return max(most, abs(end) if isfinite(end) else 0.0) * self.logs.total

    def _fitted(self, key: Key) -> Resampled:
        """The same for the candidate's value in a model, a fit for each row."""
        n, slack = self.logs.n, SLACK * self.logs.n * self._largest_model_value(key.side)

        def value(row: Any) -> Any:
            found = self._model(list(row), key.side)[0]
            return found - (np.asarray(row) @ self.logs.returns / np.asarray(row).sum() if key.what == "gain" else 0.0)

        def number(row: Any) -> Number:
            return Number(float(value(row)), slack) if any(row) else Number(0.0, 0.0, False)

        def error(row: Any, draws: int) -> Number:
            if not any(row) or n > FEW:
                return Number(0.0, 0.0, False)
            slopes = [value(row + 1j * STEP * np.eye(n)[i]).imag / STEP if row[i] else 0.0 for i in range(n)]
            return Number(sqrt(sum(row * np.square(slopes)) * draws / max(draws - 1, 1)), 4 * slack)

        estimate, scale = number(np.ones(n)), sqrt(self._draws / n)
        errors = (
            [error(row, self._draws) for row in self.weights] if "studentized" in self.logs.question.methods else []
        )
        return Resampled(
            estimate,
            [_drawn_in(number(row), estimate, scale) for row in self.weights],
            [replace(e, value=scale * e.value, error=scale * e.error) for e in errors],
            error(np.ones(n), n),
            [number(row) for row in 1 - np.eye(n)],
        )


def _drawn_in(value: Number, estimate: Number, scale: float) -> Number:
    """Replicates of m draws out of n spread √(n/m) too far."""
    if scale == 1.0 or value.defined is False:
        return value
    moved = estimate.value + scale * (value.value - estimate.value)
    return replace(value, value=moved, error=scale * value.error + (1 + scale) * estimate.error)
