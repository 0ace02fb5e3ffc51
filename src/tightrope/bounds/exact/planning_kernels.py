"""What the betting bound solves: the best bet on values already seen, and the largest mean that all bets refute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tightrope.base.compiled import compiled

CLOSE = 1e-10  # how close Newton's steps come
LEAST = 1e-30  # of the largest value: a bound below it is 0
GOAL = 2.0  # times 1/δ: where one order stops, so that half of the orders are enough
LOST = 1e-300  # of the goal: nothing is left to bet


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
    low, high, m, bet = -tether, mean, 0.5 * (mean - tether), 0.0
    if m + tether <= 0.0:  # all that was seen is the lowest possible, give or take a rounding
        return -tether, 0.0
    for _ in range(60):
        if m + tether <= 0.0:
            break
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
def share_of_goal(values: Any, bets: Any, stakes: Any, tethers: Any, m: Any, target: Any) -> Any:
    """The wealth of one order against a mean of m, as a share of ``GOAL`` · exp(target), where it stops.

    A planned bet is meant for a growth by ``target`` over all n values. It is multiplied by the root of what is still
    missing, log(1/share) a value left, over what was planned, target/n: who is behind bets more, who is nearly there
    less. No bet risks more than its stake of what it could lose.
    """
    n = len(values)
    share = math.exp(-target) / GOAL
    for i in range(n):
        if share >= 1.0 or share < LOST:
            break
        bet = bets[i] * math.sqrt(-math.log(share) / target * (n / (n - i)))
        bet = min(bet, stakes[i] / (m + tethers[i]))
        share *= max(0.0, 1.0 + bet * (values[i] - m))  # rounding alone could go below
    return share


@compiled
def evidence(values: Any, bets: Any, stakes: Any, tethers: Any, m: Any, target: Any) -> Any:
    """The wealth against a mean of m in multiples of exp(target): the largest of its averages over the first 1, 2, 4, …
    orders, of which none counts for more than ``GOAL``.
    """
    total, most = 0.0, 0.0
    for o in range(len(values)):
        total += min(1.0, share_of_goal(values[o], bets[o], stakes[o], tethers[o], m, target))
        if o & (o + 1) == 0:
            most = max(most, total / (o + 1))
    return GOAL * most


@compiled
def largest_mean(values: Any, bets: Any, stakes: Any, tethers: Any, target: Any) -> Any:
    """The largest m in (0, 1) against which the evidence is at least 1, from below, for values of at most 1; 0 if there
    is none above ``LEAST``. The evidence falls in m.
    """
    low, high = 0.25, 1.0
    while evidence(values, bets, stakes, tethers, low, target) < 1.0:
        high, low = low, 0.1 * low
        if high <= LEAST:
            return 0.0
    while high - low > CLOSE * low:
        m = 0.5 * (low + high)
        if evidence(values, bets, stakes, tethers, m, target) >= 1.0:
            low = m
        else:
            high = m
    return low
