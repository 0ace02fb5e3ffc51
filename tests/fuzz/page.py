"""The counts of a run as a page of the documentation."""

from __future__ import annotations

from collections import Counter

from tests.fuzz.check import Outcome
from tests.fuzz.doors import DOORS

HEAD = """# Fuzzing with a value oracle

`make fuzz` makes random *valid* logs, puts them to the library in strange clothes, and compares every number. This
page is written by it (`python -m tests.fuzz --out docs/fuzzing.md`); `python -m tests.fuzz --seed N` repeats one
seed, `make test` a small sample.

A seed is a question: a random process (1 to 6 states, 1 to 4 actions, or vectors with softmax or Gaussian policies),
1 to 60 episodes of up to 6 steps with early ends or cut off, rewards of any sign and size, policies that may change
with time, leave actions out or leave nothing to chance, declared ranges or none, a side, a confidence, a resampling
scheme. It is put to the library in several forms; each is an *input*:

- plain, with every estimate, standard error, bound and count of undefined replicates (of the value, in a third of the
  questions of the gain too) held against slow loops over plain lists: the estimators from their definitions,
  derivatives by a complex step, bootstrap bounds from the weight rows that `draw_weights` gives, exact bounds by
  sums, rectangles and bisection. A bound that must be refused must be refused;
- in other clothes: every kind of table and file, types, names of columns and of episodes, labels, orders,
  probabilities or their logarithms, the candidate as logged or as any kind of object, other tools' shapes. The same
  bits are asked for, or equality with the oracle where the form itself rounds. A bootstrap weight belongs to a place
  in the order of the episodes' names, so names keep that order;
- changed so that every answer is known: rewards scaled, negated, shifted; states, actions and episodes
  relabelled; logs repeated;
- through other ways in: single calls, intervals, both sides at once, JSON, the command line.

A result is a span: where a bound hangs on the last digits (a tie, a replicate without spread) the oracle says between
what it lies. *Loose* counts the spans wider than a millionth of their size.
"""


def page(first: int, stop: int, outcome: Outcome) -> str:
    """The page for seeds first to stop."""
    counts = outcome.counts
    rows = [
        ("questions", f"{counts['questions']:,} (seeds {first} to {stop - 1})"),
        ("inputs", f"{counts['inputs']:,}"),
        ("refused", f"{counts['refused']:,} ({counts['refused'] / counts['inputs']:.1%})"),
        ("answered", f"{counts['answered']:,}"),
        ("bounds compared", f"{counts['compared']:,} ({counts['loose'] / counts['compared']:.2%} loose)"),
        ("**differing**", f"**{counts['differing']}**"),
        ("**crashed**", f"**{counts['crashed']}**"),
    ]
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    reasons = "\n".join(f"| {_plain(why)} | {count} |" for why, count in outcome.reasons.most_common())
    return f"""{HEAD}
| | |
|---|---|
{table}

Why inputs were refused, each as the oracle says it must be:

| reason | inputs |
|---|---|
{reasons}

What the inputs were made of:

| | inputs |
|---|---|
{_parts(outcome.parts)}
"""


def _parts(parts: Counter[str]) -> str:
    groups: dict[str, list[tuple[str, int]]] = {}
    for name, count in sorted(parts.items()):
        group, colon, rest = name.partition(": ")
        plain = "ways in" if name in DOORS else "tables, tools and changes"
        groups.setdefault(group if colon else plain, []).append((rest if colon else name, count))
    listed = {group: "; ".join(f"{_plain(name)} ({count:,})" for name, count in each) for group, each in groups.items()}
    return "\n".join(f"| {group} | {each} |" for group, each in listed.items())


def _plain(text: str) -> str:
    return text.replace("|", "\\|")
