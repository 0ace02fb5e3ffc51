"""What "Bootstrapping with Models" claims about its experiments, and whether our results agree.

The paper's figures are lost and it has no tables: what can be reproduced is what its text says. Each claim is a
sentence and a function that looks at summary lines and answers *came out*, *partly* or *did not*, with numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tightrope.studies.pages.labels import printed
from tightrope.studies.summary import Line

Verdict = Literal["came out", "partly", "did not"]
Lines = Mapping[tuple[str, str, int], Line]  # (study, method, n)

CAR, CLIFF, SHIFTED = "mountain-car", "cliff-world", "cliff-world-shifted"
SAMPLING = ("is/bca", "pdis/bca", "wis/bca", "pdwis/bca")  # as the paper paired them
CAR_MODELS = ("mb/percentile", "wdr/percentile")
CLIFF_MODELS = ("mb-lr/percentile", "wdr-lr/percentile")
LEVEL = 0.05
MANY = 512  # episodes, for claims about growing n


@dataclass(frozen=True)
class Finding:
    """A claim, and whether it holds."""

    number: int
    text: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, in our words, and how to judge it."""

    number: int
    text: str
    studies: tuple[str, ...]
    judge: Callable[[Lines], tuple[Verdict, str]]


def findings(lines: Sequence[Line]) -> list[Finding]:
    """Every claim whose studies are among the lines (their domain stands for the study)."""
    cells: Lines = {(line.domain, line.method, line.n): line for line in lines}
    there = {line.domain for line in lines}
    return [
        Finding(claim.number, claim.text, *claim.judge(cells)) for claim in CLAIMS if there.issuperset(claim.studies)
    ]


# -- looking things up ------------------------------------------------------------------------------------------------


def sizes(lines: Lines, study: str) -> list[int]:
    """All n of a study, rising."""
    return sorted({n for name, _, n in lines if name == study})


def valid(lines: Lines, study: str, method: str, n: int) -> float:
    """The mean over valid bounds, as the paper plots it; −∞ where none is finite."""
    line = lines[study, method, n]
    return line.valid.value if line.valid.count else -np.inf


def _rates(lines: Lines, study: str, methods: Sequence[str], least: int = 0) -> list[Line]:
    return [lines[study, method, n] for n in sizes(lines, study) if n >= least for method in methods]


def _rate(line: Line) -> str:
    return f"{printed(line.method)} {line.error_rate:.1%} at n = {line.n}"


def _graded(good: Sequence[bool]) -> Verdict:
    return "came out" if all(good) else "partly" if any(good) else "did not"


def _holds(line: Line) -> bool:
    """Neither significantly above the level nor twice it: a hundred data sets hardly tell 5 from 9 %."""
    return line.error_low <= LEVEL and line.error_rate <= 2 * LEVEL


def _worst(lines: Sequence[Line]) -> Line:
    return max(lines, key=lambda line: line.error_rate)


# -- the claims ---------------------------------------------------------------------------------------------------


def _models_win(lines: Lines) -> tuple[Verdict, str]:
    last = [n for n in sizes(lines, CAR) if n >= MANY] or sizes(lines, CAR)[-1:]
    rival = {n: max(SAMPLING, key=lambda m: valid(lines, CAR, m, n)) for n in last}
    good = [valid(lines, CAR, model, n) > valid(lines, CAR, rival[n], n) for n in last for model in CAR_MODELS]
    parts = [
        f"n = {n}: MB {valid(lines, CAR, CAR_MODELS[0], n):.2f}, WDR {valid(lines, CAR, CAR_MODELS[1], n):.2f}, best "
        f"of the others {printed(rival[n])} {valid(lines, CAR, rival[n], n):.2f}"
        for n in last
    ]
    return _graded(good), "; ".join(parts)


def _overtaken(lines: Lines) -> tuple[Verdict, str]:
    every = sizes(lines, CAR)
    ahead = [
        n for n in every if valid(lines, CAR, "pdwis/bca", n) > max(valid(lines, CAR, model, n) for model in CAR_MODELS)
    ]
    behind = [
        n for n in every if valid(lines, CAR, "pdwis/bca", n) < min(valid(lines, CAR, model, n) for model in CAR_MODELS)
    ]
    good = [bool(ahead) and min(ahead) <= every[len(every) // 2], bool(behind) and max(behind) == every[-1]]
    return _graded(good), f"PDWIS/bca is ahead of both at n = {_listed(ahead)} and behind both at n = {_listed(behind)}"


def _alike(lines: Lines) -> tuple[Verdict, str]:
    every = [n for n in sizes(lines, CAR) if n >= 8]
    gaps = [abs(valid(lines, CAR, CAR_MODELS[0], n) - valid(lines, CAR, CAR_MODELS[1], n)) for n in every]
    room = [lines[CAR, CAR_MODELS[0], n].true_value - valid(lines, CAR, CAR_MODELS[0], n) for n in every]
    shares = [gap / far for gap, far in zip(gaps, room, strict=True)]
    good = [share < 0.25 for share in shares]
    parts = ", ".join(f"{gap:.2f} ({share:.0%}) at {n}" for n, gap, share in zip(every, gaps, shares, strict=True))
    return _graded(good), f"difference of the mean bounds, and as a share of MB's distance to the truth: {parts}"


def _far_below(lines: Lines) -> tuple[Verdict, str]:
    cells = _rates(lines, CAR, CAR_MODELS, least=8)
    worst = _worst(cells)
    return _graded([line.error_rate <= LEVEL / 2 for line in cells]), (
        f"from n = 8 on at most {_rate(worst)}; {sum(line.errors == 0 for line in cells)} of {len(cells)} cells "
        "without any error"
    )


def _sparse(lines: Lines) -> tuple[Verdict, str]:
    cells = [lines[CAR, method, 2] for method in (*SAMPLING, *CAR_MODELS)]
    parts = ", ".join(f"{printed(line.method)} {line.error_rate:.1%}" for line in cells)
    return _graded([line.error_rate > LEVEL for line in cells]), f"at n = 2: {parts}"


def _too_loose(lines: Lines) -> tuple[Verdict, str]:
    """Whether it settles, and below the truth, at both origins."""
    parts, good = [], []
    for study, words in ((CLIFF, "centred"), (SHIFTED, "platform at [2, 7]²")):
        every = sizes(lines, study)
        first, last = lines[study, "mb-pr/percentile", every[-3]], lines[study, "mb-pr/percentile", every[-1]]
        settled = abs(last.mean.value - first.mean.value) < 0.2 * abs(last.mean.value - last.true_value)
        low = last.mean.value < last.true_value
        good.append(bool(settled and low))
        parts.append(
            f"{words}: mean bound {first.mean.value:.1f} at n = {first.n}, {last.mean.value:.1f} at {last.n} for a "
            f"truth of {last.true_value:.1f}, error rate {last.error_rate:.0%} "
            f"({'settles' if settled else 'has not settled'}, {'too loose' if low else 'too high: unsafe'})"
        )
    return _graded(good), "; ".join(parts)


def _starts_tight(lines: Lines) -> tuple[Verdict, str]:
    every = [n for n in sizes(lines, CLIFF) if n >= 4]
    means = [valid(lines, CLIFF, "wdr-lr/percentile", n) for n in every]
    first, rival = means[0], valid(lines, CLIFF, "pdwis/bca", every[0])
    rising = float(np.mean(np.diff(means) > 0))
    return _graded([first > rival, rising >= 0.8]), (
        f"{first:.1f} at n = {every[0]} (PDWIS/bca {rival:.1f}), {means[-1]:.1f} at n = {every[-1]}; it rises in "
        f"{rising:.0%} of the steps"
    )


def _below_pdwis(lines: Lines) -> tuple[Verdict, str]:
    parts, good = [], []
    for study, words in ((CLIFF, "centred"), (SHIFTED, "platform at [2, 7]²")):
        every = sizes(lines, study)
        below = [n for n in every if valid(lines, study, "wdr-pr/percentile", n) < valid(lines, study, "pdwis/bca", n)]
        above = [n for n in every if n not in below]
        good.append(bool(below) and bool(above) and max(below) < max(above))
        parts.append(f"{words}: below at n = {_listed(below)}, above at n = {_listed(above)}")
    return _graded(good), "; ".join(parts)


def _best_of_family(lines: Lines) -> tuple[Verdict, str]:
    every = [n for n in sizes(lines, CLIFF) if n >= 16]
    best = [max(SAMPLING, key=lambda m: valid(lines, CLIFF, m, n)) == "pdwis/bca" for n in every]
    beaten = [
        valid(lines, CLIFF, model, n) > valid(lines, CLIFF, "pdwis/bca", n) for n in every for model in CLIFF_MODELS
    ]
    middle = every[len(every) // 2]
    parts = ", ".join(f"{printed(m)} {valid(lines, CLIFF, m, middle):.1f}" for m in (*SAMPLING, *CLIFF_MODELS))
    return _graded([all(best), all(beaten)]), (
        f"PDWIS is the best of its family at {sum(best)} of {len(best)} sizes from 16 on; MB-lr and WDR-lr beat it in "
        f"{sum(beaten)} of {len(beaten)} comparisons; at n = {middle}: {parts}"
    )


def _hold_level(lines: Lines) -> tuple[Verdict, str]:
    cells = _rates(lines, CLIFF, CLIFF_MODELS, least=8) + _rates(lines, CAR, CAR_MODELS, least=8)
    over = [line for line in cells if line.error_low > LEVEL]
    parts = f"; significantly above it: {', '.join(_rate(line) for line in over)}" if over else ""
    return _graded([_holds(line) for line in cells]), (
        f"of {len(cells)} cells from n = 8 on, {len(over)} err significantly more often than 5 % (Clopper–Pearson); "
        f"the worst: {_rate(_worst(cells))}{parts}"
    )


def _all_hold(lines: Lines) -> tuple[Verdict, str]:
    cells = _rates(lines, CAR, (*SAMPLING, *CAR_MODELS)) + _rates(
        lines, CLIFF, (*SAMPLING, *CLIFF_MODELS, "mb-pr/percentile", "wdr-pr/percentile")
    )
    over = [line for line in cells if line.error_low > LEVEL]
    names = sorted({f"{line.domain} {printed(line.method)}" for line in over})
    return _graded([_holds(line) for line in cells]), (
        f"{len(over)} of {len(cells)} cells err significantly more often than 5 %: {', '.join(names) or 'none'}; the "
        f"worst: {_worst(cells).domain} {_rate(_worst(cells))}"
    )


def _raw(lines: Lines) -> tuple[Verdict, str]:
    every = sizes(lines, CAR)
    raw = [lines[CAR, "is-raw/bca", n] for n in every]
    plain = [lines[CAR, "is/bca", n] for n in every]
    parts = ", ".join(f"{r.error_rate:.0%} / {p.error_rate:.0%} at {r.n}" for r, p in zip(raw, plain, strict=True))
    return _graded([any(line.error_low > LEVEL for line in raw), _worst(raw).error_rate > _worst(plain).error_rate]), (
        f"error rates of IS/bca without and with normalisation: {parts}"
    )


def _listed(values: Sequence[int]) -> str:
    return ", ".join(map(str, values)) or "none"


BOTH = (CLIFF, SHIFTED)
CLAIMS: tuple[Claim, ...] = (
    Claim(1, "MountainCar: MB and WDR beat every importance-sampling method as n grows", (CAR,), _models_win),
    Claim(2, "MountainCar: PDWIS is tighter for small n and is overtaken", (CAR,), _overtaken),
    Claim(3, "MountainCar: MB and WDR give about the same bound", (CAR,), _alike),
    Claim(4, "MountainCar: the error rates of MB and WDR are far below 5 %", (CAR,), _far_below),
    Claim(5, "MountainCar: with two episodes all methods can exceed 5 %", (CAR,), _sparse),
    Claim(6, "CliffWorld: MB with a polynomial model converges quickly to a bound that is too loose", BOTH, _too_loose),
    Claim(7, "CliffWorld: WDR with a linear model starts tight and rises", (CLIFF,), _starts_tight),
    Claim(8, "CliffWorld: WDR with a polynomial model is below PDWIS until larger n", BOTH, _below_pdwis),
    Claim(
        9,
        "CliffWorld: PDWIS is the best of the importance-sampling family, and MB and WDR with a linear model beat it",
        (CLIFF,),
        _best_of_family,
    ),
    Claim(10, "MB and WDR (in CliffWorld with a linear model) hold about 5 %", (CAR, CLIFF), _hold_level),
    Claim(11, "Captions: all methods correctly approximate the allowable 5 %", (CAR, CLIFF), _all_hold),
    Claim(12, "Importance sampling without normalisation is over-confident", (CAR,), _raw),
)
