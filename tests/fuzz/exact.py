"""What every exact bound must be, from independent values ≥ 0 and what was declared of them."""

from __future__ import annotations

from math import inf, isfinite, sqrt

import numpy as np

from tests import bound_oracle, planning_oracle
from tests.bound_oracle import Number, Span
from tests.fuzz.terms import Bounds, Expected, Key, Logs, Refused

MOST_PLANNED = 20  # values that bets are planned on here: it takes seconds


def exact(logs: Logs, key: Key) -> Expected:
    """The bound, or that there is none."""
    low, high = logs.value_range
    other = high if key.side == "lower" else low
    refused = _refused(logs, key) or ("other end" if key.what == "gain" and not isfinite(other) else None)
    if refused:
        return Refused(refused)
    values, errors, origin = _independent(logs, key)
    top = _top(logs, key)
    if key.what == "gain":
        sign = 1.0 if key.side == "lower" else -1.0
        values = np.maximum(values + sign * (other - _furthest(logs, key.side)), 0.0)
        errors = errors + 1e-13 * (abs(other) + np.abs(logs.returns))
        origin, top = origin - other, None if top is None else top + (high - low)
        low, high = low - high, high - low
    if key.method in ("hoeffding", "empirical-bernstein") and top is None:
        return Refused("no ceiling")
    if key.method == "cut" and not bound_oracle.enough_for_cut(len(values)):
        return Refused("too few to cut")
    if key.method == "betting" and len(values) > MOST_PLANNED:
        return None
    least, most = (max(0.0, b) for b in _lower(logs, key.method, values, errors, top))
    slack = float(errors.max()) + 1e-13 * abs(origin)
    sign = 1.0 if key.side == "lower" else -1.0
    ends = sorted((origin + sign * least, origin + sign * most))
    clip = (lambda v: max(v, low)) if key.side == "lower" else (lambda v: min(v, high))
    span = (clip(ends[0] - slack), clip(ends[1] + slack))
    plain = _plain(logs, key)
    spread = float(np.std(plain, ddof=1)) / sqrt(len(plain)) if len(plain) > 1 else inf
    mean = logs.possible(key.what, Number(float(plain.mean()), 10 * slack))
    return Bounds(span, mean, Number(spread, 10 * slack))


def _refused(logs: Logs, key: Key) -> str | None:
    if logs.question.estimated:
        return "an estimated behaviour policy"
    if key.estimator not in ("is", "pdis"):
        return "no independent values"
    if not isfinite(logs.end(key.estimator, key.side)):
        return "no end declared"
    ended = all(e.terminated for e in logs.episodes) and not any(logs.cut)
    known = key.estimator == "is" and logs.question.return_range is not None and ended
    return None if logs.question.horizon_declared or known else "no horizon declared"


def _independent(logs: Logs, key: Key) -> tuple[np.ndarray, np.ndarray, float]:
    """Values ≥ 0 with V = origin ± their mean, and what rounding can do to each."""
    end, sign = logs.end(key.estimator, key.side), 1.0 if key.side == "lower" else -1.0
    steps = np.abs(logs.rewards)
    if key.estimator == "is":
        each = zip(logs.episodes, logs.returns, logs.cut, strict=True)
        found = [0.0 if c else e.ratio(logs.horizon - 1) * (g - end) for e, g, c in each]
        sizes = logs.ratios[:, -1] * ((steps * logs.discounts).sum(axis=1) + abs(end))
        return np.maximum(sign * np.array(found), 0.0), 1e-12 * sizes, end
    found = []
    for e, c in zip(logs.episodes, logs.cut, strict=True):
        times = range(len(e.rewards) if c else logs.horizon)  # what nobody saw adds nothing
        found.append(sum(logs.discount**t * e.ratio(t) * (e.reward(t) - end) for t in times))
    sizes = (logs.ratios * logs.discounts * (steps + abs(end))).sum(axis=1)
    return np.maximum(sign * np.array(found), 0.0), 1e-12 * sizes, end * logs.total


def _plain(logs: Logs, key: Key) -> np.ndarray:
    """What the estimate that is shown averages: ratios times returns or rewards, counted from nowhere."""
    found = []
    for e, g in zip(logs.episodes, logs.returns, strict=True):
        if key.estimator == "is":
            value = e.ratio(logs.horizon - 1) * g
        else:
            value = sum(logs.discount**t * e.ratio(t) * e.reward(t) for t in range(logs.horizon))
        found.append(value - (g if key.what == "gain" else 0.0))
    return np.array(found)


def _furthest(logs: Logs, side: str) -> np.ndarray:
    """The logs' returns; of what was cut off, the best (for a lower bound on the gain) that it can have become."""
    (low, high), best = logs.value_range, []
    step = logs.step_range[1] if side == "lower" else logs.step_range[0]
    for e, g, c in zip(logs.episodes, logs.returns, logs.cut, strict=True):
        left = sum(logs.discount**t for t in range(len(e.rewards), logs.horizon))
        reach = g + left * step if isfinite(step) else step
        best.append((min(reach, high) if side == "lower" else max(reach, low)) if c else g)
    return np.array(best)


def _top(logs: Logs, key: Key) -> float | None:
    low, high = logs.step_range if key.estimator == "pdis" else logs.value_range
    if logs.question.max_ratio is None or not isfinite(high - low):
        return None
    return logs.question.max_ratio * (high - low) * (logs.total if key.estimator == "pdis" else 1.0)


def _lower(logs: Logs, method: str, values: np.ndarray, errors: np.ndarray, top: float | None) -> Span:
    n, most = len(values), float(errors.max())
    plain = [float(v) for v in values]
    if top == inf and method in ("hoeffding", "empirical-bernstein"):  # a ceiling that says nothing
        return -inf, -inf
    if method == "hoeffding":
        assert top is not None
        found = bound_oracle.hoeffding(plain, top, logs.delta)
        return found - most - 1e-12 * top, found + most + 1e-12 * top
    if method == "empirical-bernstein":
        assert top is not None
        found = bound_oracle.bernstein(plain, top, logs.delta, n)
        slack = 10 * most + 1e-12 * top
        return (found, found) if isinstance(found, float) and found == -inf else (found - slack, found + slack)
    if method == "cut":
        shuffled = np.random.default_rng(logs.question.seed).permutation(values)
        found_span = bound_oracle.cut([float(v) for v in shuffled], logs.delta)
        return found_span[0] - 100 * most, found_span[1] + 100 * most
    if method == "betting":
        return _planned(logs, plain, errors)
    slow = bound_oracle.anderson if method == "anderson" else bound_oracle.betting_mixture
    low, high = (slow([max(0.0, float(v)) for v in values + s * errors], logs.delta) for s in (-1, 1))
    return low * (1 - 1e-9), high * (1 + 1e-9)


def _planned(logs: Logs, values: list[float], errors: np.ndarray) -> Span:
    """Planned bets; what rounding does to values moves them as little."""
    found = planning_oracle.planned(values, logs.delta, logs.question.seed)
    slack = 3e-7 * found + 100 * float(errors.max())
    return found - slack, found + slack
