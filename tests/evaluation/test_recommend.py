"""The rule: fixed by what was declared and asked, blind to outcomes, its words generated from the same decision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tightrope.base.errors import BoundError
from tightrope.base.policy import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.base.rounding import outward
from tightrope.behaviors import behavior as find_behavior
from tightrope.domains import small
from tightrope.evaluation.overlap import overlap
from tightrope.evaluation.recommend import Question, rules
from tightrope.evaluation.sentences import flaw
from tightrope.evaluation.settings import Settings

BONUS = small("bonus")
FEW, MANY = (BONUS.logs(n, rng=np.random.default_rng(n)) for n in (49, 50))
OPEN = {"reward_range": None, "return_range": None}
BARE = {"states": None, "actions": None, "final_states": None, "behavior": None}
FAR = TabularPolicy(np.tile([0.001, 0.999], (3, 1)))  # nearly never what the logs did, nine times in a row


def question(data, policy=BONUS.candidate, *, behavior=None, **more) -> Question:
    problem = Problem(data, None if data.states is None else policy, find_behavior(behavior or "logged", data))
    return Question(problem, overlap(problem), None, Settings(n_resamples=200), **more)


def parts(asked: Question, side="lower"):
    """What the first rule that exists is made of."""
    first = rules(asked.problem, asked.overlap, side, strict=asked.strict)[0]
    return [(part.estimator, part.method, round(part.share, 3)) for part in first.parts], first.why


BRANCHES = {
    "declared, states, enough": (question(MANY), [("tdr", "percentile", 0.8), ("wdr", "rehearsed", 0.1)], ""),
    "declared, states, few": (question(FEW), [("tdr", "percentile", 0.6)], ""),
    "declared, no states": (question(replace(MANY, **BARE)), [("tdr", "percentile", 0.6)], ""),
    "declared, all states alike": (
        question(replace(MANY, states=np.ones_like(MANY.states), final_states=None, behavior=None)),
        [("tdr", "percentile", 0.6)], "",
    ),
    "declared, no states, few": (question(replace(FEW, **BARE)), [("tdr", "percentile", 0.6)], ""),
    "not declared": (question(replace(MANY, **OPEN)), [("wdr", "studentized", 1.0)], "lowest possible reward is not"),
    "not declared, no states": (
        question(replace(MANY, **OPEN, **BARE)), [("pdwis", "studentized", 1.0)], "lowest possible reward is not",
    ),
    "estimated behaviour": (question(MANY, behavior="tabular"), [("wdr", "studentized", 1.0)], "are estimated"),
    "not declared, hardly any overlap": (
        question(replace(MANY, **OPEN), FAR), [("mb", "percentile", 1.0)], "rests on the model alone",
    ),
    "strict": (question(MANY, strict=True), [("tdr", "betting", 1.0)], ""),
}  # fmt: skip


@pytest.mark.parametrize("name", BRANCHES)
def test_every_branch_of_the_rule(name):
    asked, expected, why = BRANCHES[name]
    found, reason = parts(asked)
    assert found == expected
    assert why in reason
    assert bool(why) == bool(reason)


def test_a_gain_judged_from_few_episodes_has_a_level_of_its_own():
    asked = question(FEW)
    (first, *_) = rules(asked.problem, asked.overlap, "lower", "gain", strict=False)
    assert [(part.estimator, part.method, part.share) for part in first.parts] == [("tdr", "percentile", 0.2)]
    (bound,) = asked.recommend("lower", "gain").parts
    assert (bound.about, round(bound.confidence, 4)) == ("gain", 0.99)


@pytest.mark.parametrize(
    ("differ", "expected"),
    [(0, ("tdr", "betting", 1.0)), (9, ("tdr", "betting", 1.0)), (10, ("tdr", "percentile", 0.2)),
     (49, ("tdr", "percentile", 0.2)), (50, ("tdr", "percentile", 0.6))],
)  # fmt: skip
@pytest.mark.parametrize("by_patient", [False, True])
def test_a_gain_is_told_by_episodes_in_which_the_policies_differ(differ, expected, by_patient):
    """Where they act alike a gain is noise; by patient, patients are counted, of which each has two episodes here."""
    data = BONUS.logs(200, rng=np.random.default_rng(3))
    whose = np.arange(200) // 2
    ratios = np.where((whose if by_patient else np.arange(200)) < differ, 0.9, 1.0)
    logged = data.behavior_log_probs + np.log(np.repeat(ratios, data.lengths))
    asked = question(replace(data, **BARE, eval_log_probs=logged, clusters=whose if by_patient else None))
    (first, *_) = rules(asked.problem, asked.overlap, "lower", "gain", strict=False)
    assert [(part.estimator, part.method, part.share) for part in first.parts] == [expected]
    (value, *_) = rules(asked.problem, asked.overlap, "lower", "value", strict=False)
    assert value.parts[0].method == "percentile"


def test_shares_of_the_error_rate_never_exceed_it():
    for asked, _, _ in BRANCHES.values():
        for rule in rules(asked.problem, asked.overlap, "lower", strict=asked.strict):
            assert sum(part.share for part in rule.parts) <= 1.0 + 1e-12


def test_without_a_floor_and_without_overlap_there_is_no_bound_and_the_words_say_so():
    data = replace(MANY, **OPEN, **BARE, eval_log_probs=np.log(FAR.table)[MANY.states, MANY.actions])
    asked = question(data)
    assert rules(asked.problem, asked.overlap, "lower", strict=False) == []
    with pytest.raises(BoundError, match=r"cannot answer: they carry as much information as \d.*reward_range"):
        tightrope.lower_bound(data)


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.parametrize("change", ["shuffled", "negated", "constant"])
def test_the_rule_never_looks_at_a_reward(name, change):
    """Other rewards on the same steps, with the same declarations: the same rules, in the same words."""
    asked, _, _ = BRANCHES[name]
    data = asked.problem.dataset
    rng = np.random.default_rng(0)
    rewards = {"shuffled": rng.permutation(data.rewards), "negated": 1.0 - data.rewards, "constant": 0 * data.rewards}
    other = Problem(
        replace(data, rewards=rewards[change], return_range=None), asked.problem.policy, asked.problem.behavior
    )
    same = Problem(replace(data, return_range=None), asked.problem.policy, asked.problem.behavior)
    for side in ("lower", "upper"):
        assert rules(other, overlap(other), side, strict=asked.strict) == rules(
            same, overlap(same), side, strict=asked.strict
        )


def test_the_better_part_is_used_and_both_are_named():
    asked = question(MANY)
    made = asked.recommend("lower")
    assert made.bound.value == max(part.value for part in made.parts)
    assert asked.recommend("upper").bound.value == min(part.value for part in asked.recommend("upper").parts)
    assert made.bound.confidence == 0.95
    assert [round(part.confidence, 4) for part in made.parts] == [0.96, 0.995]
    use = asked.use(bounds := [], ["lower"])
    text, (place,) = use.text, use.believe
    assert bounds[place] == made.bound
    assert "the better of TDR with percentile at 0.96 and WDR with rehearsed at 0.995" in text
    assert f"value ≥ {outward(made.bound.value, 'lower'):.4g} (0.95, approximate)" in text
    exact = asked.recommend("lower", strict=True).bound
    assert f"TDR with betting: value ≥ {outward(exact.value, 'lower'):.4g} (0.95, exact)" in text


def test_few_episodes_are_said_and_computed_at_a_higher_level():
    asked = question(FEW)
    use = asked.use(bounds := [], ["lower"])
    text, (place,) = use.text, use.believe
    own = tightrope.lower_bound(
        FEW, BONUS.candidate, estimator="tdr", method="percentile", confidence=0.97, n_resamples=200
    )
    assert bounds[place].value == own.value
    assert bounds[place].confidence == 0.95
    assert "computed at 0.97, since with fewer than 50 episodes" in text


def test_a_floor_that_dominates_the_width_is_named_with_what_another_would_give():
    """Nobody earned less than 0; a declared floor of −500 is what the bound is made of."""
    low = replace(FEW, reward_range=(-500.0, 1.0), return_range=None)
    text = question(low).use([], ["lower"]).text
    nearer = replace(low, return_range=(float(low.returns.min()), low.value_range[1]))
    (would,) = (part.value for part in question(nearer).recommend("lower").parts)
    assert f"The declared floor dominates the width: with {low.returns.min():.4g} instead of" in text
    assert f"this bound would be {would:.4g}" in text
    assert f"this bound would be {would:.4g}" in tightrope.evaluate(low, BONUS.candidate, n_resamples=200).advice
    assert "dominates" not in question(FEW).use([], ["lower"]).text


def test_few_episodes_never_rest_on_the_model_alone():
    """Where the weighted returns of a few episodes say nothing, that is chance, and the model's bound errs there."""
    clinic = small("clinic")
    silent = 0
    for seed in range(60):
        asked = question(clinic.logs(12, rng=np.random.default_rng(seed)), clinic.candidate)
        made = asked.answer("lower")
        assert made.bound.estimator == "tdr"
        silent += flaw(made.bound) is not None
    assert silent > 0, "every data set said something: this would test nothing"


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_returns_that_are_all_alike_have_a_bound(end):
    """Nothing lies between the returns and an end of their range: there is no nearer one to name."""
    data = replace(MANY, rewards=np.full(MANY.n_steps, end), return_range=None, reward_range=(0.0, 1.0))
    result = tightrope.evaluate(data, BONUS.candidate, n_resamples=200)
    assert "dominates" not in result.advice
