"""Whatever is called exact errs at most as often as it says: values and gains, both sides, each bound, any sign.

A bound is clipped to what was declared possible, counted from one end of it and reflected for the other side. Each of
these can put a bound on the wrong side only where the truth lies beyond the clip, so the processes here are chosen to
have values and gains of either sign with rewards of either sign.
"""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import stats

import tightrope
from tightrope.base.policy import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.bounds import METHODS
from tightrope.bounds.base import is_exact
from tightrope.domains import small
from tightrope.domains.finite import FiniteMDP
from tightrope.estimators import TDR
from tightrope.estimators.gain import gain
from tightrope.evaluation.verdict import verdict
from tightrope.models import GivenValues

EXACT = [name for name, method in METHODS.items() if is_exact(method)]
TRIALS = 30
MOST_ERRORS = 5  # of 30 at 5 % each: more have probability 0.3 %
WRONG = {"lower": lambda value, truth: value > truth + 1e-9, "upper": lambda value, truth: value < truth - 1e-9}


def bandit(win: tuple[float, float], behavior: float, candidate: float, *, negative: bool) -> tuple:
    """One step, two actions with these chances of the better outcome; rewards {0, 1}, or {-1, 0} if negative."""
    chances = np.array([win])  # (1, 2)
    transition = np.stack([1 - chances, chances], axis=-1)
    rewards = np.zeros((1, 2, 2))
    rewards[..., 0], rewards[..., 1] = (-1.0, 0.0) if negative else (0.0, 1.0)
    mdp = FiniteMDP(transition, rewards, np.ones(1), horizon=1)
    old, new = (TabularPolicy(np.array([[1 - p, p]])) for p in (behavior, candidate))
    return mdp, old, new


def parts(name: str) -> tuple:
    made = small(name)
    return made.mdp, made.behavior, made.candidate


PROBLEMS = {
    "worse, rewards 0 or 1": lambda: bandit((0.2, 0.6), behavior=0.9, candidate=0.1, negative=False),
    "slightly worse, rewards 0 or 1": lambda: bandit((0.2, 0.6), behavior=0.6, candidate=0.4, negative=False),
    "better, rewards 0 or 1": lambda: bandit((0.2, 0.6), behavior=0.1, candidate=0.9, negative=False),
    "worse, rewards -1 or 0": lambda: bandit((0.2, 0.6), behavior=0.9, candidate=0.1, negative=True),
    "better, rewards -1 or 0": lambda: bandit((0.2, 0.6), behavior=0.1, candidate=0.9, negative=True),
    "bonus": lambda: parts("bonus"),
    "bonus, swapped": lambda: parts("bonus, swapped"),
    "decline": lambda: parts("decline"),
    "decline, swapped": lambda: parts("decline, swapped"),
}


@cache
def outcomes(name: str) -> tuple[float, float, list]:
    """True value, true gain and the evaluations of all data sets."""
    mdp, behavior, candidate = PROBLEMS[name]()
    truth = mdp.value(candidate)
    ratio = float((candidate.table / behavior.table).max()) ** mdp.horizon
    results = [
        tightrope.evaluate(
            mdp.simulate(behavior, 60 if mdp.horizon > 1 else 300, rng=np.random.default_rng([seed, mdp.horizon])),
            candidate,
            estimators=["is", "pdis"],
            methods=EXACT,
            baseline="behavior",
            max_ratio=ratio,
            strict=True,
        )
        for seed in range(TRIALS)
    ]
    return truth, truth - mdp.value(behavior), results


@pytest.mark.parametrize(("name", "about", "side"), list(product(PROBLEMS, ["value", "gain"], ["lower", "upper"])))
def test_every_exact_bound_holds_its_level(name, about, side):
    value, gain, results = outcomes(name)
    truth = value if about == "value" else gain
    errors: dict[tuple[str, str], int] = {}
    for result in results:
        for bound in result.bounds if about == "value" else result.gains:
            if bound.side == side:
                pair = (bound.estimator, bound.method)
                errors[pair] = errors.get(pair, 0) + bool(WRONG[side](bound.value, truth))
    assert set(errors) == set(product(["is", "pdis"], EXACT))
    assert max(errors.values()) <= MOST_ERRORS, errors


@pytest.mark.parametrize("name", [name for name in PROBLEMS if "rewards" in name])
def test_strict_verdicts_on_the_gain_are_right(name):
    """A threshold just above the true gain must not be answered "yes", one just below it not "no".

    Two questions to the same bounds: the threshold enters the verdict alone.
    """
    mdp, behavior, candidate = PROBLEMS[name]()
    gain, slack = mdp.value(candidate) - mdp.value(behavior), 0.03 * max(1.0, abs(mdp.value(behavior)))
    kinds: dict[str, list[str]] = {"yes": [], "no": []}
    for seed in range(TRIALS):
        logs = mdp.simulate(behavior, 300, rng=np.random.default_rng([seed, 7]))
        options = {"estimators": ["is"], "methods": ["betting"], "baseline": "behavior", "strict": True}
        result = tightrope.evaluate(logs, candidate, threshold=gain + slack, **options)
        below = verdict(result.believed_gains, result.advice, threshold=gain - slack, about="gain")
        kinds["yes"].append(result.verdict.kind)
        kinds["no"].append(below.kind)
    for wrong, answers in kinds.items():
        assert answers.count(wrong) <= MOST_ERRORS, answers


LOGS = 30  # of each problem
ALLOWED = stats.binom.isf(1e-4, LOGS, 0.05)  # 7: more errors of 30 have a probability below one in ten thousand


@pytest.mark.parametrize("model", ["tabular", "wild", "none"])
@pytest.mark.parametrize(
    "name", ["slightly worse, rewards 0 or 1", "better, rewards -1 or 0", "bonus", "decline, swapped"]
)
def test_planned_bets_on_tethered_values_hold_their_level(name, model):
    """Twenty episodes, guesses that are learned or wild, values and gains, both sides."""
    mdp, behavior, candidate = PROBLEMS[name]()
    value = mdp.value(candidate)
    errors: dict[tuple[str, str], int] = {}
    for seed in range(LOGS):
        rng = np.random.default_rng([seed, 11])
        problem = Problem(mdp.simulate(behavior, 20, rng=rng), candidate)
        shape = (mdp.horizon, *candidate.table.shape[-2:])
        chosen = GivenValues(10.0 * rng.standard_cauchy(shape)) if model == "wild" else model
        for anchor, about in product(["low", "high"], ["value", "gain"]):
            estimator = TDR(chosen).anchored(anchor)
            truth = value if about == "value" else value - mdp.value(behavior)
            sample = (estimator if about == "value" else gain(estimator)).sequential_values(problem)
            bound = sample.origin + sample.sign * METHODS["betting"].lower(sample, delta=0.05, seed=seed)
            wrong = WRONG["lower" if anchor == "low" else "upper"](bound, truth)
            errors[anchor, about] = errors.get((anchor, about), 0) + bool(wrong)
    assert max(errors.values()) <= ALLOWED, errors
