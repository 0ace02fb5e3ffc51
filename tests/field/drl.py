"""Double reinforcement learning: models and visits of the other folds, in dictionaries."""

from __future__ import annotations

from tests.field import Entry, Question
from tests.field.mis import visits
from tests.model_oracle import counted, values
from tightrope.models import TabularModel

FOLDS = 5


def slow(question: Question) -> float:
    """Σ_i w_i [v_0 + Σ_t γ^t w_t(s) ρ_t (r_t − q_t + γ v_{t+1})] / Σ w."""
    episodes, horizon, discount = question.episodes, question.horizon, question.discount
    total = 0.0
    for i, (weight, e) in enumerate(zip(question.weights, episodes, strict=True)):
        others = [float(k % FOLDS != i % FOLDS) for k in range(len(episodes))]
        model = counted(episodes, horizon, others, finals=True)
        _, q, v = values(model, question.candidate, horizon, discount, "terminate", 0.0)
        reached = visits(episodes, others, horizon)
        value = v(e.states[0], 0)
        for t, (s, a, r) in enumerate(zip(e.states, e.actions, e.rewards, strict=True)):
            here = sum(w for w, other in zip(others, episodes, strict=True) if other.states[t : t + 1] == [s])
            visit_ratio = reached[t][s] / (here / sum(others)) if here > 0 else 0.0
            ahead = v(e.states[t + 1], t + 1) if t + 1 < len(e.states) else 0.0
            error = r - q(s, a, t) + discount * ahead
            value += discount**t * visit_ratio * e.candidate[t] / e.behavior[t] * error
        total += weight * value
    return total / sum(question.weights)


# Each is corrected by what the other teaches; a pair that was never logged earns 0, and ends the episode.
# The second's model: q_0(0, 1) = 6 and nothing else, so v_0(0) = 6/2 = 3. It is in state 0 at time 0 as the candidate
# is, w_0(0) = 1, and never in state 1. So the first has 3 + 1 · 2 · (1 − 0 + 0) + 0 = 5.
# The first's model: q_1(1, 0) = 4, v_1(1) = 4/4 = 1, q_0(0, 0) = 1 + 1/2 · 1 = 3/2, q_0(0, 1) = 0, v_0(0) = 3/4. So the
# second has 3/4 + 1 · 1/2 · (6 − 0) = 15/4. The mean is 35/8.
GOLDEN = 4.375

ENTRY = Entry(
    slow,
    GOLDEN,
    settings={"model": TabularModel(unseen="terminate", unseen_reward=0.0), "folds": FOLDS},
    exempt={
        "integer weights": "models and visits of folds stay as they are under weights; with both given the law holds",
        "enumeration": "weights do not reach the folds: a full copy of the enumeration in each fold is needed",
        "on policy": "q̂ and v̂ of logged actions do not cancel in a sample",
    },
)
