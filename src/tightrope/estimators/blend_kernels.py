"""MAGIC under rows of weights, compiled: returns, covariance, biases, shares, and derivatives of the blend.

``logs`` is what all rows share (``magic.Logs``), ``out`` what is computed under one of them (``magic.Returns``). q̂, v̂
and ratios come once for all rows, or once for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.base.compiled import compiled
from tightrope.estimators.simplex import nearest_to_zero, plane_factor, plane_solution


@compiled
def blends(logs: Any, weights: Any, q: Any, v: Any, ratios: Any, out: Any, values: Any) -> None:
    """Σ x_j g_j under each row of weights (rows, n), to values (rows,); NaN where it is undefined."""
    for row in range(len(weights)):
        values[row] = np.nan
        if blend(logs, weights[row], _of(q, row), _of(v, row), _of(ratios, row), out):
            values[row] = (out.shares * out.values).sum()


@compiled
def blend_slopes(
    logs: Any, weights: Any, q: Any, v: Any, ratios: Any, out: Any, slopes: Any, q_slopes: Any, v_slopes: Any
) -> None:
    """The derivatives of each row's blend by its weights (rows, n), by q̂ and by v̂ (rows, N); NaN if undefined."""
    for row in range(len(weights)):
        slopes[row], q_slopes[row], v_slopes[row] = np.nan, 0.0, 0.0
        if blend(logs, weights[row], _of(q, row), _of(v, row), _of(ratios, row), out):
            slopes[row] = 0.0
            _slopes(logs, out, slopes[row], q_slopes[row], v_slopes[row])
            slopes[row] /= weights[row].sum()


@compiled
def _of(rows: Any, row: Any) -> Any:
    """What belongs to a row, where there is one for each; else the only one."""
    return rows[min(row, len(rows) - 1)]


@compiled
def blend(logs: Any, weights: Any, q: Any, v: Any, ratios: Any, out: Any) -> Any:
    """Fill ``out`` under one row of weights; whether it is defined.

    Weights matter by their proportions, so they do not say how many episodes there are: Ω is that of the mean of as
    many as were logged.
    """
    if not _returns(logs, weights, q, v, ratios, out):
        return False
    covariance, together, last = out.covariance, unit_means(logs, out.weights, out.moved), len(out.values) - 1
    covariance[:] = 0.0
    for i in range(len(weights)):
        if out.weights[i] == 0.0:
            continue  # about a third of a bootstrap's episodes
        for j in range(last + 1):
            part = out.weights[i] * together[i, j]
            for k in range(j + 1):
                covariance[j, k] += part * together[i, k]
    for j in range(last + 1):
        for k in range(j + 1):
            covariance[j, k] /= logs.freedom
            covariance[k, j] = covariance[j, k]
    half = logs.reach * np.sqrt(covariance[last, last])
    for j in range(last + 1):
        out.biases[j] = max(abs(out.values[j] - out.values[last]) - half, 0.0)
    out.shares[:] = nearest_to_zero(squared_errors(out))
    return True


@compiled
def squared_errors(out: Any) -> Any:
    """Ω + b bᵀ, (J, J)."""
    return out.covariance + out.biases.reshape(-1, 1) * out.biases


@compiled
def _returns(logs: Any, weights: Any, q: Any, v: Any, ratios: Any, out: Any) -> Any:
    """Shares of the episodes, every g_j, and what each episode does to it; whether all is defined."""
    (n, count), total = ratios.shape, weights.sum()
    mean = origin = v[0]  # counted from one of them: where all start alike, rounding must not tell them apart
    if not total > 0.0:
        return False
    below, means = np.zeros(count), np.zeros(count)
    for i in range(n):
        first, length = logs.offsets[i], logs.offsets[i + 1] - logs.offsets[i]
        share = weights[i] / total
        out.weights[i] = share
        mean += share * (v[first] - origin)
        for t in range(count):
            error = 0.0
            if t < length:
                after = v[first + t + 1] if t + 1 < length else 0.0
                error = logs.rewards[first + t] - q[first + t] + logs.discount * after
            out.steps[i, t] = error
            below[t] += share * ratios[i, t]
            means[t] += share * ratios[i, t] * error
    for t in range(count):
        if not below[t] > 0.0:  # NaN too: the behaviour policy has no fit
            return False
        below[t] = 1.0 / below[t]
        means[t] *= below[t]
    for i in range(n):
        for t in range(count):
            out.ratios[i, t] = ratios[i, t] * below[t]
            out.steps[i, t] = logs.discounts[t] * out.ratios[i, t] * (out.steps[i, t] - means[t])
        _add_up(logs.lengths, v[logs.offsets[i]] - mean, out.steps[i], out.moved[i])
    _add_up(logs.lengths, mean, logs.discounts * means, out.values)
    return True


@compiled
def _add_up(lengths: Any, start: Any, steps: Any, out: Any) -> None:
    """The start and as many steps as each length says, (J,)."""
    total, t = start, 0
    for j in range(len(lengths)):
        while t < lengths[j]:
            total += steps[t]
            t += 1
        out[j] = total


@compiled
def unit_means(logs: Any, shares: Any, values: Any) -> Any:
    """Values (n, ...) as they are, or the weighted mean of each episode's cluster: what is drawn together."""
    units = logs.units
    if len(units) == 0:
        return values
    totals, sums, result = np.zeros(units.max() + 1), np.zeros((units.max() + 1, values.shape[1])), values.copy()
    for i in range(len(units)):
        totals[units[i]] += shares[i]
        for j in range(values.shape[1]):
            sums[units[i], j] += shares[i] * values[i, j]
    for i in range(len(units)):
        total = totals[units[i]]
        for j in range(values.shape[1]):
            result[i, j] = sums[units[i], j] / total if total > 0.0 else 0.0
    return result


@compiled
def _slopes(logs: Any, out: Any, slopes: Any, q_slopes: Any, v_slopes: Any) -> None:
    """Σw ∂V̂/∂w_i (n,), with q̂ and v̂ fixed, and ∂V̂/∂q̂ and ∂V̂/∂v̂ (N,), while the same returns have a share.

    Shares x solve Qx = λ1 on their support, Q = Ω + b bᵀ, so that Σ g_j dx_j = −aᵀ dQ x with Qa = g − μ1, Σ a = 0.
    What a bias adds, db_j (a_j b·x + x_j b·a), goes to the g_j and to the width of the interval.
    """
    last, error = len(out.values) - 1, np.sqrt(out.covariance[-1, -1])
    turn, by_return, wider = _turn(out), out.shares.copy(), 0.0
    ours, theirs = (out.biases * out.shares).sum(), (out.biases * turn).sum()
    for j in range(last + 1):
        if out.biases[j] > 0.0:
            pull = turn[j] * ours + out.shares[j] * theirs
            signed = pull * np.sign(out.values[j] - out.values[last])
            by_return[j] -= signed
            by_return[last] += signed
            wider += logs.reach * pull
    n, count = out.steps.shape
    by_error, by_start = np.zeros((n, count)), out.weights * by_return.sum()
    ahead = _still_to_come(logs.lengths, by_return, count)
    for i in range(n):
        for j in range(last + 1):
            slopes[i] += out.moved[i, j] * by_return[j]
        for t in range(count):
            by_error[i, t] = out.weights[i] * out.ratios[i, t] * ahead[t + 1]
    _add_covariance(logs, out, turn, out.shares, -1.0, slopes, by_error, by_start)
    if wider != 0.0 and error > 0.0:
        end = np.zeros(last + 1)
        end[last] = 1.0
        _add_covariance(logs, out, end, end, wider / (2.0 * error), slopes, by_error, by_start)
    _by_values(logs, by_error, by_start, q_slopes, v_slopes)


@compiled
def _turn(out: Any) -> Any:
    """How shares turn: a (J,) with Qa = g − μ1 and Σ a = 0 on the support; 0 where a single return has all."""
    used = out.shares > 0.0
    if used.sum() > 1:
        factor, spans = plane_factor(squared_errors(out), used)
        if spans:
            level = plane_solution(factor, used, used.astype(np.float64))
            turn = plane_solution(factor, used, out.values - out.values[-1])
            return turn - level * (turn.sum() / level.sum())
    return np.zeros(len(out.shares))


@compiled
def _still_to_come(lengths: Any, values: Any, count: Any) -> Any:
    """Σ over the returns that hold the start, and over those that hold each time, (1 + K,)."""
    result = np.zeros(count + 1)
    result[0] = values.sum()
    for j in range(len(lengths)):
        for t in range(lengths[j]):
            result[t + 1] += values[j]
    return result


@compiled
def _add_covariance(
    logs: Any, out: Any, left: Any, right: Any, factor: Any, slopes: Any, by_error: Any, by_start: Any
) -> None:
    """Add a factor times the derivatives of aᵀΩx, for fixed a and x: by weights (n,), TD errors (n, K), starts (n,)."""
    (n, count), scale = out.steps.shape, factor / logs.freedom
    plain = np.zeros((n, 2))
    for i in range(n):
        for j in range(len(left)):
            plain[i, 0] += out.moved[i, j] * left[j]
            plain[i, 1] += out.moved[i, j] * right[j]
    both = unit_means(logs, out.weights, plain)
    lefts, rights = _still_to_come(logs.lengths, left, count), _still_to_come(logs.lengths, right, count)
    level, moved, weighed = 0.0, np.zeros(count), np.zeros(count)
    for i in range(n):
        direct = plain[i, 0] * both[i, 1] + both[i, 0] * plain[i, 1] - both[i, 0] * both[i, 1]
        slopes[i] += scale * direct
        if out.weights[i] == 0.0:
            continue
        level += out.weights[i] * direct
        by_start[i] += scale * out.weights[i] * (both[i, 1] * lefts[0] + both[i, 0] * rights[0])
        for t in range(count):
            use = out.weights[i] * (both[i, 1] * lefts[t + 1] + both[i, 0] * rights[t + 1])
            moved[t] += use * out.steps[i, t]
            weighed[t] += use * out.ratios[i, t]
            by_error[i, t] += scale * use * out.ratios[i, t]
    for i in range(n):
        slopes[i] -= scale * level
        for t in range(count):
            slopes[i] -= scale * ((out.ratios[i, t] - 1.0) * moved[t] + out.steps[i, t] * weighed[t])
            by_error[i, t] -= scale * out.weights[i] * out.ratios[i, t] * weighed[t]


@compiled
def _by_values(logs: Any, by_error: Any, by_start: Any, q_slopes: Any, v_slopes: Any) -> None:
    """∂V̂/∂q̂ and ∂V̂/∂v̂ of every step (N,), from those by γ^−t δ_t and by v̂_0."""
    for i in range(len(by_start)):
        first, length = logs.offsets[i], logs.offsets[i + 1] - logs.offsets[i]
        v_slopes[first] += by_start[i]
        for t in range(min(length, by_error.shape[1])):
            slope = logs.discounts[t] * by_error[i, t]
            q_slopes[first + t] -= slope
            if t + 1 < length:
                v_slopes[first + t + 1] += logs.discount * slope
