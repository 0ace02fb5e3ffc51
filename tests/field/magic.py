"""MAGIC, with a tabular model per row of weights."""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import numpy as np
from scipy.stats import norm

from tests.field import Entry, Question
from tests.model_oracle import counted, values
from tightrope.models import TabularModel

UNSEEN = 2.0  # what a pair without weight earns, at every step: its state stays
INTERVAL = 0.1


def slow(question: Question) -> float:
    """The model counted in dictionaries, then ``blended``; every length of return, as the horizon is short."""
    model = counted(question.episodes, question.horizon, question.weights, finals=True)
    _, q, v = values(model, question.candidate, question.horizon, question.discount, "self-loop", UNSEEN)
    return blended(question.episodes, question.horizon, question.discount, question.weights, q, v)


def blended(episodes, horizon, discount, weights, q, v, interval=INTERVAL):
    """As printed: g^(j) with w_{-1} = 1/n, the bias by its distance from the interval, shares by all supports."""
    n, total = len(episodes), sum(weights)
    below = [sum(w * e.ratio(t) for w, e in zip(weights, episodes, strict=True)) for t in range(horizon)]

    def share(w, e, t):
        return w / total if t < 0 else w * e.ratio(t) / below[t]

    def parts(w, e, j):
        """What an episode adds to g^(j): rewards and control variates to time j, then the model."""
        value = 0.0
        for t in range(min(j + 1, len(e.rewards))):
            s, a, r = e.states[t], e.actions[t], e.rewards[t]
            value += discount**t * (share(w, e, t) * (r - q(s, a, t)) + share(w, e, t - 1) * v(s, t))
        if j + 1 < len(e.rewards):
            value += discount ** (j + 1) * share(w, e, j) * v(e.states[j + 1], j + 1)
        return value

    every = range(-1, horizon)
    g = [sum(parts(w, e, j) for w, e in zip(weights, episodes, strict=True)) for j in every]

    def influence(e, j):
        """total · ∂g^(j)/∂w of an episode, time by time: a mean of starts, and ratios of sums."""
        s0 = e.states[0]
        value = v(s0, 0) - g[0]
        for t in range(j + 1):

            def error(other, t=t):
                if t >= len(other.rewards):
                    return 0.0
                later = v(other.states[t + 1], t + 1) if t + 1 < len(other.rewards) else 0.0
                return other.rewards[t] - q(other.states[t], other.actions[t], t) + discount * later

            mean = sum(w * o.ratio(t) * error(o) for w, o in zip(weights, episodes, strict=True)) / below[t]
            value += total * discount**t * e.ratio(t) * (error(e) - mean) / below[t]
        return value

    moved = [[influence(e, j) for j in every] for e in episodes]
    count = len(g)
    omega = [
        [sum(w / total * m[j] * m[k] for w, m in zip(weights, moved, strict=True)) / (n - 1) for k in range(count)]
        for j in range(count)
    ]
    half = norm.ppf((1 + interval) / 2) * sqrt(omega[-1][-1])
    bias = [max(abs(each - g[-1]) - half, 0.0) for each in g]
    errors = np.array([[omega[j][k] + bias[j] * bias[k] for k in range(count)] for j in range(count)])
    return float(best_shares(errors) @ np.array(g))


def best_shares(errors):
    """Every set of returns, the least over the plane through it, and of those without negative shares the best."""
    least, shares = np.inf, None
    for size in range(1, len(errors) + 1):
        for chosen in combinations(range(len(errors)), size):
            part = errors[np.ix_(chosen, chosen)]
            system = np.block([[part, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            if np.linalg.cond(system) > 1e13:
                continue
            found = np.linalg.solve(system, np.append(np.zeros(size), 1.0))[:size]
            value = found @ part @ found
            if (found >= 0).all() and value < least:
                least, shares = value, np.zeros(len(errors))
                shares[list(chosen)] = found
    return shares


# Both episodes are all that the model knows, and the process is deterministic in them: every TD error is 0, all returns
# are the model's value, 33/8, as worked out in fqe.py. tests/estimators/test_magic.py has a blend by hand.
_HOW_MANY = "weights matter by their proportions, so Ω, the covariance of a mean, is that of as many episodes as logged"
ENTRY = Entry(
    slow=slow,
    golden=33 / 8,
    settings={"model": TabularModel(unseen_reward=UNSEEN), "fit": "refit"},
    exempt={
        "integer weights": f"{_HOW_MANY}; with weights that add up to their number the law holds",
        "duplication": f"{_HOW_MANY}: twice the logs halve Ω and leave the biases as they are",
        "on policy": "q̂ and v̂ of logged actions do not cancel in a sample, nor does a model repeat its returns",
    },
)
