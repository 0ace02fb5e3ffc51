"""Fitted Q evaluation with a feature for every pair: a regression on such features is a mean per pair."""

from __future__ import annotations

from tests.field import Entry, Question
from tests.oracle import END
from tightrope.models import FittedQ

UNSEEN = 2.0  # what a pair without weight earns, at every step: its state stays


def slow(question: Question) -> float:
    """q̂_t of a pair is the weighted mean of r + γ v̂_{t+1}(s') over all steps that took it, whatever their time."""
    steps = [
        (w, s, a, r, e.states[k + 1] if k + 1 < len(e.rewards) else END if e.terminated else e.final)
        for w, e in zip(question.weights, question.episodes, strict=True)
        for k, (s, a, r) in enumerate(zip(e.states, e.actions, e.rewards, strict=True))
    ]
    ahead = {}  # v̂ of the time after

    for t in reversed(range(question.horizon)):
        now = {}
        for state in {s for _, s, *_ in steps} | {after for *_, after in steps if after is not END}:
            value = 0.0
            for action, chance in enumerate(question.candidate(state, t)):
                above = below = 0.0
                for w, s, a, r, after in steps:
                    if (s, a) == (state, action):
                        above += w * (r + question.discount * ahead.get(after, 0.0))
                        below += w
                q = above / below if below > 0 else UNSEEN + question.discount * ahead.get(state, 0.0)
                value += chance * q
            now[state] = value
        ahead = now
    starts = [ahead[e.states[0]] for e in question.episodes]
    return sum(w * v for w, v in zip(question.weights, starts, strict=True)) / sum(question.weights)


# Nobody logged what follows (1, 0) at the horizon, so at time 0 it earns 4 and its state stays; nobody asks. At time 1
# q̂(0, ·) = 1, 6 and q̂(1, ·) = 4, 2, the last one without weight, so v̂(1) = ¼·4 + ¾·2 = 5/2. At time 0
# q̂(0, ·) = 1 + ½·5/2, 6, so that v̂(0) = (9/4 + 6)/2 = 33/8, where both episodes start.
ENTRY = Entry(
    slow=slow,
    golden=33 / 8,
    settings={"model": FittedQ(unseen_reward=UNSEEN)},
    exempt={"on policy": "means per pair do not repeat the returns of a sample, not even of the candidate's own"},
)
