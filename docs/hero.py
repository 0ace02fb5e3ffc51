"""Draw the question: logs go in, a bound comes out.

``python docs/hero.py`` writes ``docs/pictures/hero.svg`` from the logs of
``tightrope demo``, where the true value is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import tightrope
from tightrope import TrajectoryDataset
from tightrope.base.rounding import outward
from tightrope.domains import small

PICTURE = Path(__file__).parent / "pictures" / "hero.svg"
WIDTH, HEIGHT = 940, 336
LEFT, RIGHT, ROPE = 426, 900, 206  # the rope
LOW, HIGH = -13.2, -9.8

STYLE = """
  svg { --page: #fbfaf7; --box: #ffffff; --edge: #c4cad2; --text: #1d232b;
        --soft: #55606d; --rope: #8a6d3b; --bound: #1f63b5; --exact: #15703c;
        --truth: #b4530a; }
  @media (prefers-color-scheme: dark) {
    svg { --page: #15191f; --box: #20262e; --edge: #46515e; --text: #e8ebef;
          --soft: #a5b0bd; --rope: #c9a566; --bound: #85b7f7; --exact: #6fce93;
          --truth: #f3a55b; } }
  text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
         font-size: 14px; fill: var(--soft); }
  .page { fill: var(--page); }
  .box { fill: var(--box); stroke: var(--edge); stroke-width: 1.2; }
  .head { font-size: 16px; font-weight: 650; fill: var(--text); }
  .cell { font-size: 13px; text-anchor: end; font-variant-numeric: tabular-nums; }
  .column { font-weight: 650; }
  .rope { stroke: var(--rope); stroke-width: 5; stroke-linecap: round; fill: none; }
  .post { stroke: var(--rope); stroke-width: 7; stroke-linecap: round; }
  .tick { stroke: var(--soft); stroke-width: 1.4; }
  .value { font-size: 13px; text-anchor: middle; }
  .bound { stroke: var(--bound); fill: var(--bound); }
  .exact { stroke: var(--exact); fill: var(--exact); }
  .truth { stroke: var(--truth); fill: none; stroke-width: 3; stroke-linecap: round; }
  .safe { stroke-width: 3; fill: none; }
  .word { stroke: none; font-weight: 650; font-size: 15px; }
  .known { fill: var(--truth); }
  .middle { text-anchor: middle; }
  .arrow { stroke: var(--soft); stroke-width: 2.4; fill: none; }
"""


def x_of(value: float) -> float:
    """Where a value stands on the rope."""
    return LEFT + (RIGHT - LEFT) * (value - LOW) / (HIGH - LOW)


def draw(
    logs: TrajectoryDataset, recommended: float, exact: float, truth: float
) -> str:
    """The picture."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
            f' width="{WIDTH}" height="{HEIGHT}" role="img">',
            "<title>Logs of today's policy go in; a bound on the candidate's value"
            " comes out</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="10"/>',
            *_table(logs),
            '<path class="arrow" d="M356 176h30m-9-8 9 8-9 8"/>',
            *_rope(),
            *_bound(recommended, "bound", ROPE + 64, "approximate"),
            *_bound(exact, "exact", ROPE + 108, "exact"),
            *_walker(truth),
            "</svg>",
            "",
        ]
    )


def _table(logs: TrajectoryDataset) -> Iterator[str]:
    """The first rows of the logs."""
    yield '<text class="head" x="24" y="36">Logs of the policy that runs today</text>'
    yield '<rect class="box" x="20" y="52" width="318" height="208" rx="8"/>'
    columns = (
        ("episode", 84, np.repeat(np.arange(logs.n_trajectories), logs.lengths)),
        ("t", 106, np.concatenate([np.arange(length) for length in logs.lengths])),
        ("state", 154, logs.states),
        ("action", 212, logs.actions),
        ("reward", 272, logs.rewards),
        ("prob", 324, np.exp(np.asarray(logs.behavior_log_probs))),
    )
    for name, x, values in columns:
        assert values is not None
        yield f'<text class="cell column" x="{x}" y="78">{name}</text>'
        for row in range(6):
            text = f"{values[row]:.2f}" if name == "prob" else f"{values[row]:g}"
            y = 102 + 22 * row
            yield f'<text class="cell" x="{x}" y="{y}">{text.replace("-", "−")}</text>'
    rest = f"… {logs.n_trajectories:,} episodes, {logs.n_steps:,} rows"
    yield f'<text x="36" y="{102 + 22 * 6 + 6}">{rest}</text>'
    yield '<text x="24" y="290">and a candidate that has never run</text>'


def _rope() -> Iterator[str]:
    head = "The candidate's value, at worst"
    yield f'<text class="head" x="{LEFT - 16}" y="36">{head}</text>'
    for x in (LEFT - 12, RIGHT + 12):
        yield f'<path class="post" d="M{x} {ROPE - 12}V{HEIGHT - 8}"/>'
    yield f'<path class="rope" d="M{LEFT - 12} {ROPE}H{RIGHT + 12}"/>'
    for tick in range(int(np.ceil(LOW)), int(np.floor(HIGH)) + 1):
        x = x_of(tick)
        yield f'<path class="tick" d="M{x:.1f} {ROPE + 3}v9"/>'
        yield (
            f'<text class="value" x="{x:.1f}" y="{ROPE + 27}">'
            f"{str(tick).replace('-', '−')}</text>"
        )


def _bound(value: float, kind: str, y: float, words: str) -> Iterator[str]:
    x = x_of(value)
    number = f"at least {outward(value, 'lower'):.2f}".replace("-", "−")
    yield (
        f'<path class="safe {kind}" d="M{x:.1f} {y - 9:g}v18M{x:.1f} {y:g}'
        f'H{RIGHT - 8}m-8-6 8 6-8 6" style="fill: none"/>'
    )
    yield (
        f'<text class="word {kind}" x="{x + 10:.1f}" y="{y - 9:g}">{number}'
        f'<tspan style="font-weight: 400">, {words}</tspan></text>'
    )


def _walker(truth: float) -> Iterator[str]:
    """Somebody on the rope, where the candidate's value really is."""
    x, y = x_of(truth), ROPE - 3
    yield (
        f'<path class="truth" d="M{x:.1f} {y - 62}v30l-8 32m8-32 9 32'
        f'M{x - 46:.1f} {y - 40}q46-14 92 0"/>'
    )
    yield f'<circle cx="{x:.1f}" cy="{y - 72}" r="9" style="fill: var(--truth)"/>'
    words = f"true value {truth:.2f}".replace("-", "−")
    yield f'<text class="word known middle" x="{x:.1f}" y="{y - 110}">{words}</text>'
    yield (
        f'<text class="middle" x="{x:.1f}" y="{y - 91}">'
        "known in this demo, and nowhere else</text>"
    )


def main() -> None:
    """The logs of the demo."""
    walker = small("walker")
    logs = walker.logs(1000, rng=np.random.default_rng(0))
    recommended = tightrope.lower_bound(logs, walker.candidate).value
    exact = tightrope.lower_bound(
        logs, walker.candidate, estimator="tdr", method="betting"
    ).value
    text = draw(logs, recommended, exact, walker.true_value)
    PICTURE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
