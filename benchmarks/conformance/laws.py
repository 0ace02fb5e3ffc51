"""The laws, judged on numbers alone: the same for every library, ours included.

Each law is a list of cases. A case names the data sets whose values it compares and says what the value should be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PASS, FAIL, NONE = "pass", "FAIL", "n/a"
KINDS = ("one step", "equal length", "unequal length")
WIDTH = 0.75  # four times the data must shrink an interval to this share of its width; in theory to a half


@dataclass(frozen=True)
class Case:
    """One comparison."""

    data: str  # the data set whose value is judged
    expected: Callable[[Mapping[str, Any], Mapping[str, Any]], Any]  # from the problems and the estimator's results
    because: str  # what is expected, in words


@dataclass(frozen=True)
class Verdict:
    """Whether a law holds, and the smallest example where it does not."""

    state: str
    why: str = ""
    example: Mapping[str, Any] | None = None


def truth(data: str, because: str = "the exact value") -> Case:
    """The value must be the truth of the data set."""
    return Case(data, lambda problems, results: problems["data"][data]["truth"], because)


def same(data: str, other: str, because: str) -> Case:
    """Two data sets must have the same value."""
    return Case(data, lambda problems, results: results["values"].get(other), because)


def shifted(kind: str) -> Case:
    """A constant on every reward moves the value by the constant times Σ γ^t."""

    def expected(problems: Mapping[str, Any], results: Mapping[str, Any]) -> Any:
        base, record = results["values"].get(f"eight of {kind}"), problems["data"][f"eight of {kind}"]
        if not isinstance(base, float):
            return base
        return base + problems["shift"] * sum(record["discount"] ** t for t in range(record["horizon"]))

    return Case(f"eight of {kind}, rewards + 1.5", expected, "the value without it, plus 1.5 times Σ γ^t")


LAWS: dict[str, tuple[Case, ...]] = {
    "enumeration, equal lengths": tuple(map(truth, ("one step", "two steps", "walk"))),
    "enumeration, discount": tuple(map(truth, ("two steps, discounted", "walk, discounted"))),
    "enumeration, ends early": tuple(
        map(truth, ("door", "walk that may end early", "walk that may end early, discounted"))
    ),
    "enumeration, greedy candidate": tuple(
        map(truth, ("two steps, greedy candidate", "door, greedy candidate", "walk, greedy candidate",
                    "walk that may end early, greedy candidate"))
    ),
    "order": tuple(
        same(f"eight of {kind}, in another order", f"eight of {kind}", "the value in the first order") for kind in KINDS
    ),
    "duplication": tuple(
        same(f"eight of {kind}, twice", f"eight of {kind}", "the value of the data once") for kind in KINDS
    ),
    "weights": (),  # whole-number weights; see ``weights`` below
    "on policy": tuple(truth(f"eight of {kind}, on policy", "the mean return") for kind in KINDS),
    "padding": (same("eight of unequal length, padded", "eight of unequal length", "the value without padding"),),
    "shift": tuple(map(shifted, ("one step", "equal length"))),
    "long horizon": tuple(truth(f"long, {steps} steps", "every step earns 1") for steps in (30, 300, 1200)),
}  # fmt: skip

ABOUT = {
    "enumeration, equal lengths": "every possible episode in exact proportion gives the candidate's exact value",
    "enumeration, discount": "the same with a discount below one",
    "enumeration, ends early": "the same where episodes end early, so that lengths differ",
    "enumeration, greedy candidate": "the same for a deterministic candidate, whose ratios may be zero",
    "order": "the order of the episodes does not matter",
    "duplication": "all episodes twice give the same value",
    "weights": "an episode of weight k counts like k copies of it",
    "on policy": "a candidate that is the behaviour policy gets the mean return",
    "padding": "writing out the steps after an episode's end (one action, no reward) changes nothing",
    "shift": "a constant on every reward moves a self-normalised estimate by that constant times Σ γ^t",
    "long horizon": "30, 300 and 1,200 steps with candidate = behaviour policy and a reward of 1 give 30, 300, 1,200",
}


def judge(problems: Mapping[str, Any], results: Mapping[str, Any], law: str) -> Verdict:
    """One estimator under one law."""
    if law in results["exempt"]:
        return Verdict(NONE, results["exempt"][law])
    if law == "shift" and not results["self_normalized"]:
        return Verdict(NONE, "a law of self-normalised estimates: other ratios do not average to exactly one")
    if law == "weights":
        return weights(results)
    skipped = []
    for case in LAWS[law]:
        value = results["values"].get(case.data, {"skipped": "not run: it trains a network for each data set"})
        expected = case.expected(problems, results)
        if isinstance(value, Mapping) and "skipped" in value:
            skipped.append(value["skipped"])
        elif not close(value, expected, results["tolerance"]):
            return Verdict(FAIL, example=example(problems, case.data, value, expected, case.because))
    return Verdict(NONE, skipped[0]) if len(skipped) == len(LAWS[law]) else Verdict(PASS)


def weights(results: Mapping[str, Any]) -> Verdict:
    """Whole-number weights against repeats, for a library that takes weights."""
    if results["weighted"] is None:
        return Verdict(NONE, "takes no weights of episodes")
    for kind in KINDS:
        value, expected = results["weighted"][f"eight of {kind}"], results["values"][f"eight of {kind}, repeated"]
        if not close(value, expected, results["tolerance"]):
            return Verdict(FAIL, example={"data": f"eight of {kind}", "returned": value, "expected": expected,
                                          "because": "the value of the repeated data", "logs": ""})  # fmt: skip
    return Verdict(PASS)


def close(value: Any, expected: Any, tolerance: float) -> bool:
    """Equal up to the tolerance, relative to the size of the numbers."""
    if not (isinstance(value, (int, float)) and isinstance(expected, (int, float))):
        return False
    return abs(value - expected) <= tolerance * max(1.0, abs(expected))


def example(problems: Mapping[str, Any], data: str, value: Any, expected: Any, because: str) -> dict[str, Any]:
    """A failing case with its logs, in words."""
    return {
        "data": data,
        "logs": described(problems["data"][data]),
        "returned": shown(value),
        "expected": shown(expected),
        "because": because,
    }


def described(record: Mapping[str, Any]) -> str:
    """A data set in a line or two: the episodes where they are few."""
    episodes = record["episodes"]
    total = sum(one["count"] for one in episodes)
    if len(episodes) > 8 or max(len(one["states"]) for one in episodes) > 6:
        return f"{total} episodes: {record['about']}; discount {record['discount']:g}"
    listed = "; ".join(
        f"{one['count']} × " + " ".join(
            f"(s{s} a{a} r{r:g} b{record['behavior'][s][a]:g} c{record['candidate'][s][a]:g})"
            for s, a, r in zip(one["states"], one["actions"], one["rewards"], strict=True)
        )
        for one in episodes
    )  # fmt: skip
    return f"{total} episodes, discount {record['discount']:g}: {listed}"


def shown(value: Any) -> str:
    """A number, or what was raised instead."""
    if isinstance(value, Mapping):
        return value.get("error", value.get("skipped", ""))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# -- intervals -----------------------------------------------------------------------------------------------------

INTERVAL_LAWS = {
    "sides": "the lower end is not above the estimate, the upper end not below it, also where all rewards are negative",
    "narrows": f"the same episodes four times over make the interval narrower (to {WIDTH} of its width or less)",
    "follows": "where all returns are alike, a self-normalised estimate is that return whatever the resample: width 0",
}


def judge_interval(results: Mapping[str, Any], method: str, law: str) -> Verdict:
    """One interval of one estimator under one law."""
    ends, values = results["intervals"][method]["data"], results["values"]
    if law == "follows" and not results["self_normalized"]:
        return Verdict(NONE, "not self-normalised")
    if law == "follows" and "like returns" in results["exempt"]:
        return Verdict(NONE, results["exempt"]["like returns"])
    if law == "follows" and method in ("Hoeffding", "Bernstein"):
        return Verdict(NONE, "an inequality, which may be wide")
    tested, refused = 0, ""
    for kind in KINDS:
        for name in TESTED[law]:
            data = f"eight of {kind}{name}"
            low_high, value = ends.get(data), values.get(data)
            if not usable(low_high, value):
                refused = refused or (low_high if isinstance(low_high, Mapping) else {}).get("error", "")
                continue
            tested += 1
            problem = CHECKS[law](low_high, value, ends.get(f"eight of {kind}, four times"), results["tolerance"])
            if problem:
                return Verdict(FAIL, example={"data": data, "returned": problem})
    return Verdict(PASS) if tested else Verdict(NONE, refused or "no interval on these data")


TESTED = {"sides": ("", ", all returns alike"), "narrows": ("",), "follows": (", all returns alike",)}


def usable(ends: Any, value: Any) -> bool:
    """Whether there is an interval and an estimate."""
    return isinstance(ends, Sequence) and not isinstance(ends, str) and isinstance(value, (int, float))


def number(value: Any) -> float:
    """A number that JSON may hold as text."""
    return float(value)


def sides(ends: Sequence[Any], value: float, more: Any, tolerance: float) -> str:
    low, high = map(number, ends)
    if math.isnan(low) or math.isnan(high):
        return f"[{low:.4g}, {high:.4g}]"
    slack = tolerance * max(1.0, abs(value))
    return "" if low <= value + slack and value <= high + slack else f"[{low:.4g}, {high:.4g}] around {value:.4g}"


def narrows(ends: Sequence[Any], value: float, more: Any, tolerance: float) -> str:
    if not usable(more, value):
        return ""
    before, after = (value - number(low) if number(high) == math.inf else number(high) - number(low)
                     for low, high in (ends, more))  # fmt: skip
    if math.isnan(before) or math.isnan(after):
        return f"widths {before:.4g} and {after:.4g}"
    return "" if abs(after) <= WIDTH * abs(before) + 1e-9 else f"width {before:.4g} of 8 episodes, {after:.4g} of 32"


def follows(ends: Sequence[Any], value: float, more: Any, tolerance: float) -> str:
    low, high = map(number, ends)
    return "" if high - low <= 1e-6 else f"[{low:.4g}, {high:.4g}] where every resample's estimate is {value:.4g}"


CHECKS: dict[str, Callable[[Sequence[Any], float, Any, float], str]] = {
    "sides": sides, "narrows": narrows, "follows": follows,
}  # fmt: skip


@dataclass(frozen=True)
class Rates:
    """How often an interval missed the truth."""

    sets: int
    below: int  # the truth is below the lower end
    above: int  # the truth is above the upper end
    undefined: int
    width: float  # the median, of those that are defined


def error_rates(problems: Mapping[str, Any], results: Mapping[str, Any], method: str, sample: str) -> Rates | None:
    """On a sample; None where the library gives no interval there."""
    exact, ends = problems["samples"][sample]["data"]["truth"], results["intervals"][method]["samples"][sample]
    pairs = [tuple(map(number, one)) for one in ends if isinstance(one, Sequence)]
    if not pairs:
        return None
    good = [(low, high) for low, high in pairs if not (math.isnan(low) or math.isnan(high))]
    widths = sorted((high if high < math.inf else exact) - low for low, high in good)
    return Rates(
        sets=len(ends),
        below=sum(exact < low for low, _ in good),
        above=sum(exact > high for _, high in good),
        undefined=len(ends) - len(good),
        width=widths[len(widths) // 2] if widths else math.nan,
    )
