"""What the betting bound solves: the best bet on values already seen, and the largest mean that all bets refute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tightrope.base.compiled import compiled

CLOSE = 1e-10  # how close Newton's steps come
LEAST = 1e-30  # of the largest value: a bound below it is 0


@compiled
def best_bet(values: Any, pseudo: Any, floor: Any, m: Any, most: Any, guess: Any) -> Any:
    """The λ in [0, most] that maximises the mean of log(1 + λ(x − m)), with one more value at the floor of weight
    ``pseudo``; that mean, and minus its derivative by m, where most is a share of 1/(m − floor).
    """
    total, drift = len(values) + pseudo, pseudo * (floor - m)
    for x in values:
        drift += x - m
    if drift <= 0.0:
        return 0.0, 0.0, 0.0
    low, high, bet = 0.0, most, min(guess, most)
    for _ in range(60):
        part = (floor - m) / (1.0 + bet * (floor - m))
        slope, bend = pseudo * part, pseudo * part * part
        for x in values:
            part = (x - m) / (1.0 + bet * (x - m))
            slope += part
            bend += part * part
        if slope > 0.0:
            low = bet
        else:
            high = bet
        step = bet + slope / bend
        if step <= low or step >= high:
            step = most if slope > 0.0 and step >= most and high == most else 0.5 * (low + high)
        if abs(step - bet) <= CLOSE * most:
            break
        bet = step
    capped = bet >= most * (1.0 - CLOSE)  # then the bet itself falls with m
    growth, fall = pseudo * math.log(1.0 + bet * (floor - m)), 0.0 if capped else pseudo / (1.0 + bet * (floor - m))
    for x in values:
        growth += math.log(1.0 + bet * (x - m))
        fall += ((x - floor) / (m - floor) if capped else 1.0) / (1.0 + bet * (x - m))
    return bet, growth / total, bet * fall / total


@compiled
def plan(values: Any, pseudo: Any, tether: Any, target: Any, stake: Any) -> Any:
    """The largest m above −tether at which the best bet grows by ``target`` a value, and that bet."""
    mean = -pseudo * tether
    for x in values:
        mean += x
    mean /= len(values) + pseudo
    if mean <= -tether:
        return -tether, 0.0
    low, high, m, bet = -tether, mean, 0.5 * (mean - tether), 0.0
    for _ in range(60):
        most = stake / (m + tether)
        bet, growth, fall = best_bet(values, pseudo, -tether, m, most, bet if bet > 0.0 else 0.3 * most)
        if growth >= target:
            low = m
        else:
            high = m
        step = m + (growth - target) / fall if fall > 0.0 else low
        if step <= low or step >= high:
            step = 0.5 * (low + high)
        if abs(step - m) <= CLOSE * (m + tether):
            break
        m = step
    return m, bet


@compiled
def plans(columns: Any, tethers: Any, target: Any, pseudo: Any, stake: Any) -> Any:
    """The bound that each tether promises and its bet, (tethers,) each, from values (tethers, past)."""
    reached, bets = np.empty(len(tethers)), np.empty(len(tethers))
    for k in range(len(tethers)):
        reached[k], bets[k] = plan(columns[k], pseudo, tethers[k], target, stake)
    return reached, bets


@compiled
def log_wealth(values: Any, bets: Any, stakes: Any, tethers: Any, m: Any) -> Any:
    """log of the wealth averaged over orders against a mean of m, and minus its derivative by m."""
    orders, n = values.shape
    logs, falls = np.zeros(orders), np.zeros(orders)
    for o in range(orders):
        for i in range(n):
            reach = m + tethers[o, i]
            if bets[o, i] * reach <= stakes[o, i]:
                factor = 1.0 + bets[o, i] * (values[o, i] - m)
                fall = bets[o, i]
            else:
                factor = 1.0 + stakes[o, i] * (values[o, i] - m) / reach
                fall = stakes[o, i] * (values[o, i] + tethers[o, i]) / (reach * reach)
            factor = max(factor, 1e-300)  # rounding alone could go below
            logs[o] += math.log(factor)
            falls[o] += fall / factor
    top = logs.max()
    shares = np.exp(logs - top)
    return top + math.log(shares.sum() / orders), (shares * falls).sum() / shares.sum()


@compiled
def largest_mean(values: Any, bets: Any, stakes: Any, tethers: Any, target: Any) -> Any:
    """The largest m in (0, 1) whose wealth is at least exp(target), from below, for values of at most 1; 0 if there is
    none above ``LEAST``.
    """
    low, high, m = 0.0, 1.0, 0.25
    nudge = CLOSE
    for _ in range(200):
        wealth, fall = log_wealth(values, bets, stakes, tethers, m)
        if wealth >= target:
            low = m
        else:
            high = m
        step = m + (wealth - target) / fall if fall > 0.0 else low
        if step <= low or step >= high:
            step = 0.5 * (low + high) if low > 0.0 else 0.1 * high
        if abs(step - m) <= CLOSE * m:
            if wealth >= target:
                break
            step, nudge = m * (1.0 - nudge), 2.0 * nudge  # Newton's steps came from above: the bound must lie below
        if high <= LEAST:
            break
        m = step
    return low
