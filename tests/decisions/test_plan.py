"""How many episodes: numbers worked by hand, against simulation, and in agreement with the verdict."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tightrope import BoundError
from tightrope.base.problem import Problem
from tightrope.base.records import Bound
from tightrope.decisions.mixtures import Mixture
from tightrope.decisions.words import plan_words
from tightrope.domains import small
from tightrope.estimators import TDR
from tightrope.evaluation.needed import Prospect, prospect

CLINIC, BONUS = small("clinic"), small("bonus")


def clinic(n, seed=1):
    return CLINIC.logs(n, rng=np.random.default_rng(seed))


@pytest.fixture(scope="module")
def plan():
    return tightrope.plan(clinic(150), CLINIC.candidate, n_resamples=500)


def test_the_number_by_hand():
    """A width of 1.645 and an error of 1 at 100 episodes, half an error away: ((1.645 + 0.8416) / 0.5)² is 24.73."""
    view = Prospect(distance=0.5, error=1.0, width=1.645, n=100)
    need = view.needed(0.8, level=0.8)
    assert need.total == pytest.approx(2473, abs=1)
    assert need.least == pytest.approx(100 * (2.4866 / 1.7816) ** 2, abs=1)
    assert need.most == math.inf  # 0.5 less 1.28 errors lies on the other side
    assert view.chance(need.total) == pytest.approx(0.8)
    assert view.chance(100) == pytest.approx(0.126, abs=0.001)
    assert Prospect(-0.1, 1.0, 1.645, 100).needed().total == math.inf


def test_the_chance_at_all_tends_to_the_chance_that_it_is_better():
    view = Prospect(distance=0.5, error=1.0, width=1.645, n=100)
    assert view.chance_at_all(1e12) == pytest.approx(0.6915, abs=1e-3)  # of a normal above −0.5
    rng = np.random.default_rng(0)
    fresh = rng.normal(rng.normal(0.5, 1.0, 200_000), np.sqrt(100 / 900))  # 900 new ones, whatever the truth may be
    assert view.chance_at_all(900) == pytest.approx(np.mean(fresh > 1.645 / 3), abs=0.005)


def test_few_episodes_do_not_make_the_plan_pay_for_their_own_width():
    bound = Bound(-9.0, "lower", 0.95, 1.0, "tdr", "percentile at 0.99", "approximate", 1.0, n_trajectories=40)
    assert prospect(bound, 0.0).width == pytest.approx(1.645, abs=0.001)
    assert prospect(replace(bound, n_trajectories=50), 0.0).width == 10.0
    assert prospect(replace(bound, guarantee="exact"), 0.0).width == 10.0
    assert prospect(replace(bound, standard_error=None), 0.0) is None
    assert prospect(replace(bound, value=-math.inf), 0.0) is None


def test_the_plan_and_the_verdict_name_the_same_numbers(plan):
    verdict = tightrope.evaluate(clinic(150), CLINIC.candidate, baseline="behavior", n_resamples=500).verdict
    numbers = [re.findall(r"[\d,]*\d", text)[:2] for text in (verdict.change, plan.headline)]
    assert len(numbers[0]) == 2
    assert numbers[0] == numbers[1]
    assert plan.verdict == verdict


def test_a_second_look_has_its_price_and_its_number(plan):
    """The number is of new episodes; with those at hand it takes so many fewer, and errs more often."""
    more = re.search(r"together with new ones, which would take ([\d,]+) more episodes", plan.text)
    assert float(more[1].replace(",", "")) == pytest.approx(plan.episodes - 150, rel=0.05)
    assert plan.headline.startswith(f"About {float(f'{plan.episodes:.2g}'):,.0f} new episodes like these (")


def test_a_plan_says_what_speaks_against_its_bound():
    """Little overlap makes the plan's bound what it is: the plan shows the warnings that the evaluation has."""
    far = tightrope.TabularPolicy([[0.001, 0.999]] * 5)
    plan = tightrope.plan(clinic(30), far, effect=0.1, n_resamples=300)
    overlap = tightrope.evaluate(clinic(30), far, baseline="behavior", n_resamples=300).overlap
    assert overlap.warnings
    assert set(overlap.warnings) <= set(plan.notes)
    assert str(overlap.warnings[0]) in plan.to_html().replace("&#39;", "'")


def test_what_only_the_model_settles_is_said_so(plan):
    bound = replace(plan.bound, estimator="mb", guarantee="approximate", rests_on_model=True)
    words = plan_words(replace(plan, kind="settled", bound=bound)).headline
    assert words.startswith("These logs settle it only if the model is right. ")


def test_a_plan_has_its_steps_and_its_number_among_them(plan):
    assert plan.kind == "yes"
    (planned,) = [step for step in plan.steps if step.episodes == round(plan.episodes)]
    assert planned.chance == pytest.approx(0.8, abs=0.001)
    chances = [step.chance for step in plan.steps]
    assert chances == sorted(chances)
    assert tightrope.Plan.from_json(plan.to_json()) == plan


def test_with_a_declared_effect_the_number_is_right():
    """At the planned number the bound lies above the threshold in about 80 % of new logs."""
    logs, threshold = clinic(400, 3), CLINIC.true_value - 0.1
    plan = tightrope.plan(logs, CLINIC.candidate, better_than=threshold, effect=0.1, n_resamples=500)
    assert plan.least < plan.episodes < plan.most < 2 * plan.episodes
    options = {"estimator": "tdr", "method": "percentile", "n_resamples": 300}
    yes = [
        tightrope.lower_bound(clinic(round(plan.episodes), k), CLINIC.candidate, **options).value > threshold
        for k in range(100, 200)
    ]
    assert 0.65 < np.mean(yes) < 0.95
    more = tightrope.plan(logs, CLINIC.candidate, better_than=threshold, effect=0.05, n_resamples=500)
    assert more.episodes == pytest.approx(4 * plan.episodes)


def test_a_candidate_that_looks_worse_gets_no_promise():
    plan = tightrope.plan(clinic(150, 3), CLINIC.candidate, better_than=0.55, n_resamples=500)
    assert plan.kind == "no"
    assert plan.headline.startswith("As it looks now, no number of episodes would show that the candidate is better")
    assert "the chance that the candidate is better at all is" in plan.text


def test_what_is_settled_needs_no_plan():
    plan = tightrope.plan(BONUS.logs(300, rng=np.random.default_rng(0)), BONUS.candidate, n_resamples=500)
    assert plan.kind == "settled"
    assert plan.headline.startswith("These logs settle it already. Yes, at 95%")
    assert plan.logging == ()


@pytest.mark.parametrize("share", [0.0, 0.25, 0.75])
def test_the_spread_under_a_mixture_is_that_of_its_own_logs(share):
    """Estimated from logs of today's policy, and measured in logs of the mixture."""
    problem = Problem(clinic(8000), CLINIC.candidate)
    guess = Mixture(problem, share).deviation("value")
    mixed = tightrope.TabularPolicy((1 - share) * CLINIC.behavior.table + share * CLINIC.candidate.table)
    logs = CLINIC.mdp.simulate(mixed, 8000, rng=np.random.default_rng(9))
    measured = TDR()(Problem(logs, CLINIC.candidate)).influence().std()
    assert guess == pytest.approx(measured, rel=0.05)


def test_weights_of_a_mixture_average_to_one():
    mixture = Mixture(Problem(BONUS.logs(3000, rng=np.random.default_rng(0)), BONUS.candidate), 0.5)
    assert mixture.weights.mean() == pytest.approx(1.0, abs=0.05)
    assert mixture.weights.std() > 0.1


def test_the_cost_of_logging_is_bounded_and_the_risk_kept():
    options = {"n_resamples": 500, "effect": 0.1}
    free = tightrope.plan(clinic(300), CLINIC.behavior, better_than=0.5, **options)
    assert [one.share for one in free.logging] == [0.0, 0.1, 0.25, 0.5, 0.75, 1.0]
    assert all(abs(one.loss) < 0.02 for one in free.logging)  # the candidate is today's policy
    worse = tightrope.TabularPolicy([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9], [0.9, 0.1], [0.5, 0.5]])
    bold = tightrope.plan(clinic(300), worse, better_than=0.2, **options)
    shy = tightrope.plan(clinic(300), worse, better_than=0.2, risk=0.0, **options)
    losses = [one.most_loss for one in bold.logging]
    assert all(one.most_loss >= one.loss for one in bold.logging)
    assert losses == sorted(losses)
    assert [one.allowed for one in shy.logging] == [one.most_loss <= 0 for one in bold.logging]
    assert shy.soonest.share == 0.0


def test_only_probabilities_in_the_logs_are_enough():
    plan = tightrope.plan(replace(clinic(300), behavior=None), effect=0.05, n_resamples=500)
    assert plan.logging
    bare = replace(clinic(300), reward_range=None, return_range=None)
    without = tightrope.plan(bare, CLINIC.candidate, effect=0.05, n_resamples=500)
    assert without.logging == ()
    assert "must be declared" in without.no_logging


def test_logs_that_say_nothing_give_no_number():
    plan = tightrope.plan(
        replace(clinic(30), reward_range=None, return_range=None), CLINIC.candidate, strict=True, n_resamples=500
    )
    assert plan.kind == "broken"
    assert plan.headline == "These logs cannot say how many episodes are needed"
    assert "cannot say" in plan.to_html()


def test_the_page_has_a_curve(plan):
    page = plan.to_html(title="<how many>")
    assert "&lt;how many&gt;" in page
    assert 'class="curve"' in page


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"better_than": "behaviour"}, 'better_than must be "behavior" or a number; got'),
        ({"better_than": float("nan")}, "better_than must be"),
        ({"effect": 0}, "effect must be a positive number or None; got 0"),
        ({"chance": 1.0}, "chance must lie between 0.5 and 1"),
        ({"risk": -1}, "risk must be a number of at least 0"),
    ],
)
def test_what_is_asked_wrongly_is_refused(keywords, message):
    with pytest.raises(BoundError, match=re.escape(message)):
        tightrope.plan(clinic(60), CLINIC.candidate, **keywords)
