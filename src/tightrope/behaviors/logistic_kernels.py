"""The likelihood of a multinomial logistic regression with its derivatives, in one pass over the steps, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.base.compiled import compiled


@compiled
def likelihood(
    features: Any, choices: Any, weights: Any, coefficients: Any, ridge: Any, slope: Any, hessian: Any
) -> Any:
    """Σ w (log p − ridge/2 |logits|²), its derivative (k, p) and minus its second derivative (k, p, k, p).

    The logits are those of actions 1..k; action 0 has logit 0. ``coefficients`` are (k, p).
    """
    k, p = coefficients.shape
    logits, probs, objective = np.empty(k), np.empty(k), 0.0
    slope[:], hessian[:] = 0.0, 0.0
    for step in range(len(weights)):
        weight, row, choice = weights[step], features[step], choices[step]
        if weight == 0.0:
            continue
        top = 0.0
        for a in range(k):
            logits[a] = 0.0
            for j in range(p):
                logits[a] += coefficients[a, j] * row[j]
            top = max(top, logits[a])
        total = np.exp(-top)
        for a in range(k):
            probs[a] = np.exp(logits[a] - top)
            total += probs[a]
        objective -= weight * (top + np.log(total))
        for a in range(k):
            probs[a] /= total
            taken = 1.0 if choice == a + 1 else 0.0
            objective += weight * (taken * logits[a] - 0.5 * ridge * logits[a] ** 2)
            off = weight * (taken - probs[a] - ridge * logits[a])
            for j in range(p):
                slope[a, j] += off * row[j]
        for a in range(k):
            for b in range(a + 1):
                curvature = ridge + probs[a] * (1.0 - probs[a]) if a == b else -probs[a] * probs[b]
                for j in range(p):
                    if row[j] != 0.0:
                        scaled = weight * curvature * row[j]
                        for m in range(p):
                            hessian[a, j, b, m] += scaled * row[m]
    for a in range(k):
        for b in range(a):
            for j in range(p):
                for m in range(p):
                    hessian[b, m, a, j] = hessian[a, j, b, m]
    return objective
