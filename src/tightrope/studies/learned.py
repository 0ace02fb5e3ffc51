"""What the results show and the paper does not say, with the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tightrope.studies.claims import CAR, CLIFF
from tightrope.studies.pages.labels import printed
from tightrope.studies.summary import Line

SHOWN = (8, 32, 128, 512)  # sizes in the comparison
REPAIRS = "cliff-world-repairs"

# What the paper used, and what was tried instead, by domain.
CHOICES: dict[str, tuple[tuple[str, ...], ...]] = {
    CAR: (
        ("wdr/percentile", "wdr-cross/percentile", "wdr-refit/percentile", "wdr-cross/studentized"),
        ("mb/percentile", "mb/bca", "mb-frozen/percentile", "mb-fresh/percentile"),
        ("wis/bca", "wis/percentile", "wis/studentized"),
        ("pdwis/bca", "pdwis/percentile", "pdwis/studentized"),
        ("is/bca", "is/percentile", "is/studentized", "is/betting", "is-raw/bca"),
    ),
    CLIFF: (
        ("wdr-lr/percentile", "wdr-lr/studentized", "wdr-lr-cross/percentile", "wdr-lr-cross/studentized"),
        ("wdr-pr/percentile", "wdr-pr/studentized", "wdr-pr-cross/percentile", "wdr-pr-cross/studentized"),
        ("pdwis/bca", "pdwis/percentile", "pdwis/studentized"),
        ("wis/bca", "wis/percentile", "wis/studentized"),
    ),
}

TEXT: dict[str, str] = {
    CAR: """\
- **Nothing was corrected.** Moves are deterministic, so one tabular model fitted on all the data leaves every
  observed TD error at 0 and WDR is the mean of v̂(S₀), with all of the model's pessimism about pairs never logged. Far
  too few errors, and a bound far too low. **Cross-fitting** repairs it: every episode is corrected by a model that
  has not seen it, the error rate comes to its nominal 5 % from n = 8 on, and the bound is the tightest of all from
  n = 128 on. **A model per resample** does not: on the resample its TD errors are 0 again, and WDR is MB.
- With cross-fitting, **percentile** holds its level better at small n than BCa or studentized do: corrections come as
  rare jumps, and standard errors say little about them. `evaluate` warns (`sharp`) and prefers percentile there.
- **MB is repaired by BCa**: it undoes the shift that resamples without some pairs have, and is tighter than percentile
  at every n with the error rate still below 5 %.
- **Simulating instead of solving** a tabular model widens the bound: 100 roll-outs a replicate cost several units at
  n = 512, whether the noise is frozen or fresh (paths of a discrete chain that part once seldom meet again).
- **WIS and PDWIS err too often with every interval**: no bootstrap sees the rare heavy episodes that a sample has
  missed. BCa is no less safe than percentile here, as had been reported; studentized helps a little. What does help is
  an exact bound, a model to correct, or normalised IS, which holds its level from n = 4 on.
- Averaging **valid bounds only** lowers the curve of a method that errs and hides how often it does. Neither average
  says much without the error rate beside it.
""",
    CLIFF: """\
- **The polynomial model's bias has no sign of its own**: with the platform centred at 0 MB^PR settles far above
  the truth and is wrong every time; moved to [2, 7]² it settles far below, as the paper reports. Which of the two a
  user gets depends on where they put the origin. The check of residuals (`misfit`) and the correction by weighted logs
  contradict the model in both.
- **BCa makes PDWIS less safe here**, percentile safer: the correction for skewness is made from a sample that has
  missed the episodes which would have shown it. In MountainCar the two differ little.
- **WDR^LR errs two to four times as often as it may up to n = 64** and holds its level from n = 128 on. What helps the
  small samples most is more roll-outs for q̂ and v̂ (ten instead of two a step: 10 instead of 19 % at n = 16), then
  cross-fitting; no interval does. What is left is that the correction rests on a handful of heavy episodes, of
  which `evaluate` warns (`low-overlap`). MB^LR, whose class is right, is much tighter.
- **Roll-outs must be surer than the bootstrap.** The spread of MB^LR over resamples is about 0.15 at n = 2048; a few
  thousand roll-outs of returns whose standard deviation is tens of units are far noisier. Here the estimate is made
  once with 100,000 roll-outs and replicates only add what refitting changes, with common random numbers.
- The truth is known to ± 0.016. Counted without the allowance of two standard errors, MB^LR errs 7 instead of 5 % at
  n = 2048; nothing else moves by more than a point.
""",
}


def learned(lines: Mapping[str, Sequence[Line]]) -> str:
    """The section of the page; empty if there is nothing to say."""
    by_domain = {rows[0].domain: rows for name, rows in lines.items() if rows and "repairs" not in name}
    parts = []
    for domain, text in TEXT.items():
        if domain in by_domain:
            parts += [f"### {domain}\n", text, _comparison(by_domain[domain], CHOICES[domain])]
    for name, rows in lines.items():
        if name.startswith(REPAIRS):
            parts += [f"On {rows[0].trials} data sets a size:\n", _table(rows, [one.method for one in rows])]
    return "\n".join(["## What the paper does not say\n", *parts]) if parts else ""


def _comparison(lines: Sequence[Line], choices: Sequence[Sequence[str]]) -> str:
    return _table(lines, [method for group in choices for method in group])


def _table(lines: Sequence[Line], methods: Sequence[str]) -> str:
    """Error rate with its interval, and the mean bound, at a few sizes."""
    by_size = {(line.method, line.n): line for line in lines}
    every = sorted({line.n for line in lines})
    sizes = every if len(every) <= len(SHOWN) else [n for n in every if n in SHOWN]
    rows = []
    for method in dict.fromkeys(methods):
        cells = [_cell(by_size[method, n]) if (method, n) in by_size else "" for n in sizes]
        rows.append(f"| {printed(method)} | {' | '.join(cells)} |")
    head = f"| wrong [95 % interval], mean bound | {' | '.join(f'n = {n}' for n in sizes)} |"
    return "\n".join([head, f"|---|{'---:|' * len(sizes)}", *rows, ""])


def _cell(line: Line) -> str:
    return f"{line.error_rate:.1%} [{line.error_low:.1%}, {line.error_high:.1%}], {line.finite.value:.1f}"
