"""docs/conformance.md, from the answers of the libraries. Nothing stands on the page that the run did not show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import comb
from typing import Any

from libraries import Library

from laws import (
    ABOUT,
    FAIL,
    INTERVAL_LAWS,
    LAWS,
    PASS,
    Rates,
    Verdict,
    error_rates,
    judge,
    judge_interval,
    shown,
)

Results = Sequence[tuple[Library, Mapping[str, Any]]]
SIGNS = {PASS: "✓", FAIL: "**✗**"}
HEADS = {
    "enumeration, equal lengths": "equal lengths",
    "enumeration, discount": "discount",
    "enumeration, ends early": "ends early",
    "enumeration, greedy candidate": "greedy",
    "duplication": "twice",
    "long horizon": "1,200 steps",
}
# The estimator of ours that has the same definition, to stand beside a failure.
FAMILIES = {
    "IS": ("TIS", "VanillaISPDIS, vanilla", "IPW"),
    "PDIS": ("PDIS", "VanillaISPDIS, per decision", "ImportanceSampling"),
    "WIS": ("SNTIS", "WIS", "SNIPW"),
    "PDWIS": ("SNPDIS", "PDWIS", "WeightedImportanceSampling"),
    "DR, values given": ("DR", "VanillaDR, values given", "DoublyRobust, values given", "DoublyRobust, FQE"),
    "WDR, values given": ("SNDR", "WDR, values given"),
    "MB, tabular": ("DiscreteFQE", "DirectMethod, FQE"),
}
RARE = 0.01  # a count of misses this unlikely at the nominal level is printed bold

TOP = """# Our laws on other libraries

{summary}

This page is written by `make conformance`: each library is installed in an environment of its own and asked about the
same small problems, whose answers are known exactly. {repeated} What stands here holds for these versions and these
calls; [how each was called](#how-each-was-called) is listed below. A law that an estimator breaks here may not matter
to you: equal lengths need no care for early ends. For what each library is good at, and how to
bring its data here: [comparison](comparison.md).

Reproduce it with `make conformance` (the first time it installs the libraries, several GB).
"""


def rendered(problems: Mapping[str, Any], results: Results) -> str:
    """The whole page."""
    working = [(library, result) for library, result in results if "failed" not in result]
    verdicts = {
        (library.name, name): {law: judge(problems, one, law) for law in LAWS}
        for library, result in working
        for name, one in result["estimators"].items()
    }
    sections = [
        top(working, verdicts),
        versions(results),
        matrix(verdicts),
        failures(problems, working, verdicts),
        intervals(working),
        rates(problems, working),
        times(problems, working),
        beyond(results),
        inapplicable(verdicts),
        readings(working),
    ]
    return "\n\n".join(section.strip() for section in sections) + "\n"


def top(working: Results, verdicts: Mapping[tuple[str, str], Mapping[str, Verdict]]) -> str:
    """What came out, in numbers."""
    others = [laws for (library, _), laws in verdicts.items() if library != "tightrope"]
    clean = sum(all(verdict.state != FAIL for verdict in laws.values()) for laws in others)
    states = [verdict.state for laws in others for verdict in laws.values()]
    ours = [v.state for (library, _), laws in verdicts.items() if library == "tightrope" for v in laws.values()]
    libraries = len({library for library, _ in verdicts} - {"tightrope"})
    summary = (
        f"**{len(others)} estimators of {libraries} libraries under {len(LAWS)} laws: {clean} obey every law "
        "that applies to them.** "
        f"Of {states.count(PASS) + states.count(FAIL)} pairs of estimator and law, {states.count(FAIL)} fail; of ours, "
        f"{ours.count(FAIL)} of {ours.count(PASS) + ours.count(FAIL)}."
    )
    repeated = [result["repeated"] for _, result in working]
    twice = (
        "Every library was asked twice, in two processes; apart from times, both answers were identical to the last "
        "digit."
        if all(repeated)
        else "Every library was asked twice, in two processes. Both answers were identical, apart from times, for all "
        "but: "
        + ", ".join(library.name for library, result in working if not result["repeated"]) + "."
    )  # fmt: skip
    return TOP.format(summary=summary, repeated=twice)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def versions(results: Results) -> str:
    """What was installed, and what was not."""
    rows = []
    for library, result in results:
        if "failed" in result:
            rows.append([library.name, "not run", f"`{result['failed']}`"])
            continue
        listed = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
        rows.append([library.name, listed, library.note])
    return "## Versions\n\n" + table(["library", "versions", "installation"], rows)


def matrix(verdicts: Mapping[tuple[str, str], Mapping[str, Verdict]]) -> str:
    """Estimators by laws."""
    rows = [
        [library, name, *(SIGNS.get(laws[law].state, "–") for law in LAWS)]
        for (library, name), laws in verdicts.items()
    ]
    explained = "\n".join(f"- **{HEADS.get(law, law)}**: {about}" for law, about in ABOUT.items())
    return (
        "## Laws\n\n✓ holds, **✗** does not, – does not apply ([why](#what-does-not-apply)).\n\n"
        + table(["library", "estimator", *(HEADS.get(law, law) for law in LAWS)], rows)
        + "\n\n" + explained
    )  # fmt: skip


def failures(problems: Mapping[str, Any], working: Results, verdicts: Mapping[Any, Any]) -> str:
    """The smallest failing example of each failure, with what ours returns beside it."""
    ours = next((result["estimators"] for library, result in working if library.key == "tightrope"), {})
    rows = []
    for (library, name), laws in verdicts.items():
        for law, verdict in laws.items():
            if verdict.state == FAIL:
                one, family = verdict.example, family_of(name)
                beside = ours.get(family, {"values": {}})["values"].get(one["data"])
                mine = f"{shown(beside)} ({family})" if isinstance(beside, float) else "–"
                expected = f"{one['expected']} ({one['because']})"
                rows.append([library, name, HEADS.get(law, law), one["logs"], expected, f"**{one['returned']}**", mine])
    if not rows:
        return "## Smallest failing examples\n\nNone."
    head = ["library", "estimator", "law", "logs", "expected", "returned", "tightrope returns"]
    return (
        "## Smallest failing examples\n\nA step is written (s0 a1 r-1 b0.5 c0.75): state, action, reward, and the "
        "probability of the action under the behaviour policy and under the candidate. The problems are ordered by "
        "size, and the first one that fails stands here.\n\n" + table(head, rows)
    )


def family_of(name: str) -> str:
    """The estimator of ours with the same definition."""
    return next((family for family, names in FAMILIES.items() if name in names), "")


def each_interval(working: Results) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Library, estimator, method and results."""
    for library, result in working:
        for name, one in result["estimators"].items():
            for method in one["intervals"]:
                yield library.name, name, method, one


def intervals(working: Results) -> str:
    """Laws of intervals."""
    rows = []
    for library, name, method, one in each_interval(working):
        judged = {law: judge_interval(one, method, law) for law in INTERVAL_LAWS}
        broken = "; ".join(f"{v.example['data']}: {v.example['returned']}" for v in judged.values() if v.state == FAIL)
        if judged["sides"].state not in SIGNS:
            why = judged["sides"].why.replace("`", "'")
            broken = f"eight episodes are too few: raised `{why}`"
        rows.append([library, name, method, *(SIGNS.get(v.state, "–") for v in judged.values()), broken])
    explained = "\n".join(f"- **{law}**: {about}" for law, about in INTERVAL_LAWS.items())
    return (
        "## Laws of intervals\n\nAll at 95 %, two-sided; a lower bound where the library has only those. Data: eight "
        "drawn episodes of each kind.\n\n"
        + table(["library", "estimator", "interval", *INTERVAL_LAWS, "smallest failing example"], rows)
        + "\n\n" + explained
    )  # fmt: skip


def rates(problems: Mapping[str, Any], working: Results) -> str:
    """How often intervals missed the truth."""
    rows = []
    for sample in problems["samples"]:
        for library, name, method, one in each_interval(working):
            counted = error_rates(problems, one, method, sample)
            if counted is not None:
                sided = library == "offline_rl_ope"  # a lower bound has the whole error on one side
                rows.append([sample, library, name, method, *counts(counted, 0.05 if sided else 0.025, sided)])
    first = next(iter(problems["samples"].values()))
    return (
        f"## Error rates\n\n{len(first['drawn'])} data sets of {len(first['drawn'][0])} episodes each, drawn from "
        "a process whose value is known. A two-sided interval of 95 % may miss on each side in 2.5 % of the data sets, "
        "a lower bound of 95 % in 5 %. **Bold**: so many misses have a "
        f"probability below {RARE:g} at the nominal level, so that about one cell in a hundred is bold by chance.\n\n"
        + table(
            ["problem", "library", "estimator", "interval", "truth below it", "truth above it", "median width"], rows
        )
    )


def counts(one: Rates, nominal: float, one_sided: bool) -> list[str]:
    """The cells of a row of rates."""
    cells = [bold(one.below, one.sets, nominal), "–" if one_sided else bold(one.above, one.sets, nominal)]
    undefined = f" ({one.undefined} undefined)" if one.undefined else ""
    return [*cells, f"{one.width:.3g}" + (" (below the truth)" if one_sided else "") + undefined]


def bold(misses: int, sets: int, nominal: float) -> str:
    """A rate, bold where it is too high to be chance."""
    tail = sum(comb(sets, k) * nominal**k * (1 - nominal) ** (sets - k) for k in range(misses, sets + 1))
    return f"**{misses / sets:.0%}**" if tail < RARE else f"{misses / sets:.0%}"


def times(problems: Mapping[str, Any], working: Results) -> str:
    """On the same data, in the same run."""
    rows = []
    for library, result in working:
        for name, one in result["estimators"].items():
            clocked = {what: taken for what, taken in one["times"].items() if taken is not None}
            if clocked:
                estimate = f"{1000 * clocked.pop('estimate'):.3g}" if "estimate" in clocked else "–"
                rows.append(
                    [library.name, name, estimate, ", ".join(f"{m} {1000 * t:.3g}" for m, t in clocked.items())]
                )
    return (
        f"## Times\n\nMilliseconds, {problems['speed']['about']}, one thread, median of three, from arrays of steps "
        "to the number; on a machine that does other work too, so that only large differences mean "
        "something. Intervals by resampling have 500 resamples. "
        "Each library does its own checks: not all of this time is arithmetic.\n\n"
        + table(["library", "estimator", "estimate", "interval"], rows)
    )


def beyond(results: Results) -> str:
    """What others do that tightrope does not."""
    parts = [f"- **{library.name}**: {'; '.join(library.beyond)}." for library, _ in results if library.beyond]
    return "## What they do that tightrope does not\n\nFrom their documentation and public names.\n\n" + "\n".join(
        parts
    )


def inapplicable(verdicts: Mapping[tuple[str, str], Mapping[str, Verdict]]) -> str:
    """Reasons, each once."""
    reasons: dict[tuple[str, str], dict[str, list[str]]] = {}
    for (library, name), laws in verdicts.items():
        for law, verdict in laws.items():
            if verdict.state not in SIGNS:
                reasons.setdefault((library, verdict.why), {}).setdefault(name, []).append(HEADS.get(law, law))
    rows = []
    for (library, why), names in reasons.items():
        groups: dict[str, list[str]] = {}
        for name, laws in names.items():
            groups.setdefault(", ".join(laws), []).append(name)
        rows += [[library, "; ".join(several), listed, why] for listed, several in groups.items()]
    return "## What does not apply\n\n" + table(["library", "estimator", "laws", "why"], rows)


def readings(working: Results) -> str:
    """How each estimator was called."""
    rows = [[library.name, name, one["reading"], f"{one['tolerance']:g}"] for library, result in working
            for name, one in result["estimators"].items()]  # fmt: skip
    return (
        "## How each was called\n\nThe tolerance is relative; float32 and trained networks get a larger one.\n\n"
        + table(["library", "estimator", "call", "tolerance"], rows)
    )
