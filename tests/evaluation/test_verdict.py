"""The verdict says what its bounds carry and no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tightrope
from tests.logs import POLICY, dataset
from tightrope import Bound, BoundError
from tightrope.evaluation.verdict import verdict

LOWER = Bound(-1.0, "lower", 0.95, 0.5, "wdr", "studentized", "approximate", n_trajectories=40)
UPPER = Bound(2.0, "upper", 0.95, 0.5, "is", "betting", "exact", n_trajectories=40)


@pytest.mark.parametrize(
    ("believed", "threshold", "kind"),
    [
        ([LOWER, UPPER], -1.5, "yes"),
        ([LOWER, UPPER], 2.5, "no"),
        ([LOWER, UPPER], 0.0, "cannot tell"),
        ([LOWER, UPPER], -1.0, "cannot tell"),  # a bound that equals the threshold does not exceed it
        ([LOWER], -1.5, "yes"),
        ([LOWER], 5.0, "cannot tell"),  # a low lower bound is no evidence that the value is low
        ([UPPER], 5.0, "no"),
        ([UPPER], -5.0, "cannot tell"),
        ([], 0.0, "broken"),
        ([], None, "broken"),
        ([LOWER], None, "bound"),
        ([LOWER, UPPER], None, "bound"),
    ],
)
def test_kinds(believed, threshold, kind):
    told = verdict(believed, "Believe nothing.", threshold=threshold)
    assert told.kind == kind
    assert told.threshold == threshold


def test_bounds_that_contradict_each_other_settle_nothing():
    crossed = [Bound(3.0, "lower", 0.95, 0.5, "wdr", "bca", "approximate"), UPPER]
    told = verdict(crossed, "", threshold=2.5)
    assert told.kind == "cannot tell"
    assert "contradict" in told.text


def test_level_side_and_guarantee_are_said():
    yes = verdict([LOWER, UPPER], "", threshold=-1.5)
    assert yes.headline == "Yes, at 95%: the candidate's value is above -1.5 (approximate)"
    assert yes.text == (
        "The lower bound, -1, lies above -1.5 at 95% confidence, one-sided. The lower bound is approximate: the error "
        "rate tends to 0.05 as the logs grow, with no promise at 40 episodes."
    )
    no = verdict([LOWER, UPPER], "", threshold=2.5)
    assert no.headline == "No, at 95%: the candidate's value is not above 2.5 (exact)"
    assert "exact: the error rate is at most 0.05" in no.text
    assert "approximate" not in no.text
    neither = verdict([LOWER, UPPER], "", threshold=0.0)
    assert "The lower bound is approximate" in neither.text
    assert "The upper bound is exact" in neither.text


def test_at_the_threshold_itself_only_one_answer_is_wrong():
    """A value equal to the threshold is not above it: "no" is right there, so the two answers never err together."""
    told = verdict([UPPER], "", threshold=2.5, about="gain")
    assert told.headline == "No, at 95%: the candidate's gain over the behaviour policy is not above 2.5 (exact)"


def test_a_bound_that_rests_on_a_model_says_so():
    model = Bound(-1.0, "lower", 0.95, 0.5, "mb", "bca", "approximate", rests_on_model=True)
    told = verdict([model], "", threshold=-2.0)
    assert "The lower bound rests on a model alone." in told.text
    assert "tends to 0.05 as the logs grow if the model's form is right" in told.text  # a wrong one errs for ever
    robust = verdict([replace(model, method="robust", guarantee="exact")], "", threshold=-2.0)
    assert "model alone" not in robust.text  # it holds for every model that the logs leave possible


def test_an_estimated_behaviour_policy_is_said():
    told = verdict([replace(LOWER, behavior="tabular")], "", threshold=None)
    assert "The behaviour policy was estimated from the same logs (tabular)." in told.text
    assert "as the logs grow if the estimate of the behaviour policy has the right form" in told.text


def test_no_bound_gives_the_advice_instead():
    assert verdict([], "More logs.", threshold=None).text == "More logs."


def test_a_threshold_asks_for_both_sides():
    result = tightrope.evaluate(dataset(), POLICY, estimators=["wis"], methods=["percentile"], threshold=0.0)
    assert [bound.side for bound in result.bounds] == ["lower", "upper"]


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), "high"])
def test_a_threshold_is_a_number(threshold):
    with pytest.raises(BoundError, match=r"threshold must be a finite number or None; got"):
        tightrope.evaluate(dataset(), POLICY, threshold=threshold)


def test_more_episodes_shrink_the_gap_with_their_root():
    """100 episodes leave a gap of 0.4 and an error of 0.05; 80 % is 0.8416 errors above even odds.

    (0.4 + 0.0421) / 0.2 is 2.210, squared 4.886; the range is for distances of 0.2 ± 1.2816 · 0.05. With 0.04 instead
    of 0.2 it is 122, and the lower end (0.4421 / 0.1041)² is 18.0.
    """
    lower = Bound(0.1, "lower", 0.95, 0.5, "tdr", "percentile", "approximate", 0.05, n_trajectories=100)
    upper = replace(lower, side="upper", value=0.9)
    change = verdict([lower, upper], "", threshold=0.3).change
    assert change.startswith(
        "About 490 new episodes like these, judged alone (280 to 1,100), would settle it with a yes at a chance of"
    )
    below = verdict([lower, upper], "", threshold=0.7).change
    assert below.startswith("About 490 new episodes like these, judged alone (280 to 1,100), would settle it with a no")
    unsure = verdict([lower, upper], "", threshold=0.46).change
    assert unsure.startswith(
        "About 12,000 new episodes like these, judged alone (at least 1,800, and perhaps no number would do), would"
    )
