"""The answers of decisions in words: each claims no more than its bounds do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from tightrope.base.clusters import counted, growth, unit
from tightrope.base.records import Verdict
from tightrope.base.rounding import outward
from tightrope.decisions.comparison import Comparison, Standing
from tightrope.decisions.plans import Plan
from tightrope.evaluation.needed import MOST, NORMAL, between, many, part, prospect
from tightrope.evaluation.verdict import more_logs, number

Planned = TypeVar("Planned", bound=Plan)

MORE = "More logs, or logs of a policy closer to the candidates, would narrow the bounds."


def verdict(result: Comparison, tops: Sequence[float]) -> Verdict:
    """Whether some candidate is better than the baseline; ``tops`` are upper bounds on the gains of those judged.

    "Yes" rests on answers that hold for all candidates together. "No" says that none is better: that is wrong only if
    one is, and its own upper bound would have to err, so each upper bound has the whole level. Each of the two answers
    is wrong with probability at most 1 − confidence.
    """
    judged = [one for one in result.standings if one.gain is not None]
    if not judged:
        reasons = "; ".join(f"{one.name}: {one.why}" for one in result.standings)
        return Verdict("broken", "These logs cannot answer", f"No candidate can be judged. {reasons}.", 0.0, "gain")
    better = [one for one in judged if one.better]
    level = f"{100 * result.confidence:.6g}%"
    if better:
        chosen = next((one for one in better if one.name == result.chosen), better[0])
        head = f"Yes, at {level}: {chosen.name} is better than {result.baseline} ({result.guarantee})"
        return Verdict("yes", head, f"{_chosen(result, chosen)} {_rest(result, better, chosen)}", 0.0, "gain")
    count = len(result.standings)
    which = f"{judged[0].name}" if count == 1 else f"any of the {count} candidates"
    if len(judged) == count and all(top <= 0 for top in tops):
        none = f"{judged[0].name} is not" if count == 1 else f"none of the {count} candidates is"
        head = f"No, at {level}: {none} better than {result.baseline} ({result.guarantee})"
        return Verdict("no", head, _rest(result, better, None), 0.0, "gain")
    chosen = next(one for one in judged if one.name == result.chosen)
    head = f"Cannot tell whether {which} is better than {result.baseline}"
    text = f"{_chosen(result, chosen)} {_rest(result, better, chosen)}"
    return Verdict("cannot tell", head, text, 0.0, "gain", _more(judged))


def _more(judged: Sequence[Standing]) -> str:
    """How many new episodes would show the candidate better that needs the fewest."""
    needs = {}
    for one in judged:
        view = prospect(one.gain, 0.0) if one.gain is not None else None
        if view is not None and view.distance > 0 and one.gain is not None:
            needs[one.name] = (view.needed().total, one.gain)
    if not needs:
        return MORE
    name = min(needs, key=lambda name: needs[name][0])
    return f"Soonest for {name}: {more_logs([needs[name][1]], 0.0, ways=MORE)}"


def _chosen(result: Comparison, one: Standing) -> str:
    """What the bounds say of the candidate that stands first, and that choosing it is allowed for."""
    assert one.value is not None
    assert one.gain is not None
    many = len(result.standings) > 1
    who = f"The value of {one.name}, chosen among {len(result.standings)}," if many else f"The value of {one.name}"
    allowed = " That allows for the choice." if many else ""
    over = (
        "" if result.baseline_value is not None else f"; its gain over {result.baseline} is at least {number(one.gain)}"
    )
    return f"{who} is at least {number(one.value)}{over}.{allowed}"


def _rest(result: Comparison, better: Sequence[Standing], chosen: Standing | None) -> str:
    """Who else is better, who may be the best, and who cannot be judged."""
    also = [one.name for one in better if one is not chosen]
    sentences = [f"Also better: {', '.join(also)}."] if also else []
    best = [one.name for one in result.standings if one.may_be_best and not one.why]
    if len(result.standings) > 1:
        if len(best) == 1:
            whom = "of those that can be judged" if any(one.why for one in result.standings) else "of them"
            sentences.append(f"The best {whom} is {best[0]}.")
        else:
            sentences.append(f"May still be the best: {', '.join(best)}.")
    unknown = [one.name for one in result.standings if one.why]
    if unknown:
        sentences.append(f"Cannot be judged on these logs: {', '.join(unknown)}.")
    return " ".join([*sentences, _promise(result)])


def _promise(result: Comparison) -> str:
    error = f"{1 - result.confidence:.4g}"
    if result.guarantee == "exact":
        return (
            f"Each kind of answer is exact: it is wrong with probability at most {error} at any number of "
            f"{unit(result.n_clusters)}, if what was declared is true."
        )
    return (
        f"Each kind of answer is approximate: its error rate tends to {error} as {growth(result.n_clusters)}, with no "
        f"promise at {counted(result.n_trajectories, result.n_clusters)}."
    )


def plan_words(plan: Planned) -> Planned:
    """The plan with its answer in words."""
    if plan.kind == "broken":
        text = plan.verdict.text if plan.verdict is not None else ""
        return replace(plan, headline=f"These logs cannot say how many {unit(plan.n_clusters)} are needed", text=text)
    if plan.kind == "settled":
        assert plan.verdict is not None
        alone = plan.bound is not None and plan.bound.hangs_on_model
        already = "These logs settle it only if the model is right" if alone else "These logs settle it already"
        return replace(plan, headline=f"{already}. {plan.verdict.headline}", text=plan.verdict.text)
    text = " ".join(part for part in (_range(plan), _soonest(plan), _look(plan)) if part)
    return replace(plan, headline=_headline(plan), text=text)


def _look(plan: Plan) -> str:
    """When to look, and how often."""
    at_hand = plan.n_trajectories
    fewer = ""
    if at_hand < plan.episodes < MOST:
        fewer = f", which would take {_many(plan, plan.episodes - at_hand, 'more')}"
    return (
        "Decide on the number beforehand, and judge the new ones alone, once. Judging again and again while they "
        "arrive, until the answer is yes, errs more often than it says. So does a second look at these together with "
        f"new ones{fewer}: twice as often. To look as often as you like: tightrope monitor."
    )


def _headline(plan: Plan) -> str:
    whose = "its gain over the policy that made the logs" if plan.about == "gain" else "its value"
    if plan.effect is not None:
        more = f" by {plan.effect:.4g}" if plan.about == "gain" else f" than {plan.threshold:.5g} by {plan.effect:.4g}"
        return (
            f"About {_many(plan, plan.episodes)} ({_between(plan)}) would show a candidate that is better"
            f"{more}, at a chance of {plan.chance:.0%}"
        )
    if plan.kind == "no":
        return (
            f"As it looks now, no number of {unit(plan.n_clusters)} would show that the candidate is better: {whose} "
            f"is estimated at {plan.bound.estimate if plan.bound else math.nan:.4g}, not above {plan.threshold:.5g}"
        )
    return (
        f"About {_many(plan, plan.episodes)} like these ({_between(plan)}) would settle it with a yes, at a "
        f"chance of {plan.chance:.0%}"
    )


def _between(plan: Plan) -> str:
    return between(plan.least, plan.most, lambda episodes: part(episodes, plan.n_trajectories, plan.n_clusters))


def _many(plan: Plan, episodes: float, kind: str = "new") -> str:
    return many(episodes, kind, plan.n_trajectories, plan.n_clusters)


def _range(plan: Plan) -> str:
    """Where the range comes from, and how likely the candidate is better at all."""
    bound = plan.bound
    assert bound is not None
    if plan.effect is not None:
        return (
            f"The range is that of how much the values of {unit(plan.n_clusters)} spread, as far as these logs show it "
            "(80%)."
        )
    assert bound.standard_error is not None
    better = NORMAL.cdf((bound.estimate - plan.threshold) / bound.standard_error)
    odds = f"Judging by these logs alone, the chance that the candidate is better at all is {better:.0%}."
    if plan.kind == "no":
        count = _many(plan, plan.episodes)
        return f"About {count} like these ({_between(plan)}) would settle it with a no. {odds}"
    return (
        f"That is for the candidate as it looks now; the range (80%) is for what else it may be, judging by "
        f"{counted(plan.n_trajectories, plan.n_clusters)}. {odds} To plan for the least gain worth having, say it: "
        "effect."
    )


def _soonest(plan: Plan) -> str:
    """Which new logs would settle it with the fewest episodes."""
    best, today = plan.soonest, next((one for one in plan.logging if one.share == 0), None)
    if best is None or today is None or best.episodes is None or today.episodes is None:
        return f"Of other logs nothing is known: {plan.no_logging}." if plan.no_logging else ""
    within = "" if plan.risk is None else f" within a risk of {plan.risk:.4g} an episode"
    if best.share == 0:
        return f"No mixture with the candidate settles it sooner{within}."
    price = "gains" if best.loss < 0 else "loses"
    limit = (
        f"gains at least {outward(-best.most_loss, 'lower', 3):.3g}"
        if best.most_loss < 0
        else f"loses at most {outward(best.most_loss, 'upper', 3):.3g}"
    )
    return (
        f"Soonest{within}: new logs in which the candidate acts in {best.share:.0%} of the steps, about "
        f"{part(best.episodes)} episodes instead of {part(today.episodes)} new ones like these. An episode of them "
        f"{price} about {abs(best.loss):.3g} against today's policy, and {limit}."
    )
