# ruff: noqa: E501
"""Draws docs/tether.svg: one value per logged episode without a tether, on one, and on one that never ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.estimators import TDR

WIDTH, ROW, LEFT, TOP = 860, 112, 250, 46
LOW, HIGH = -70.0, 150.0  # of the axis


def x_of(value: float) -> float:
    """Where a value lies on the page, the axis cut at its ends."""
    return LEFT + (WIDTH - LEFT - 30) * (min(max(value, LOW), HIGH) - LOW) / (
        HIGH - LOW
    )


def row(
    index: int,
    name: str,
    about: str,
    values: np.ndarray,
    tether: float | None,
    truth: float,
) -> list[str]:
    """One kind of value: its dots, its mean and its tether."""
    middle, rng = TOP + ROW * index + 44, np.random.default_rng(index)
    parts = [
        f'<text class="name" x="16" y="{middle - 8}">{name}</text>',
        f'<text class="about" x="16" y="{middle + 12}">{about}</text>',
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - 30}" y1="{middle}" y2="{middle}"/>',
    ]
    for value in values:
        y = middle + rng.uniform(-24, 24)
        parts.append(
            f'<circle class="dot" cx="{x_of(value):.1f}" cy="{y:.1f}" r="2.4"/>'
        )
    mean = float(values.mean())
    x = x_of(mean)
    parts.append(f'<path class="mean" d="M{x:.1f} {middle - 32} V{middle + 32}"/>')
    parts.append(
        f'<text class="told" x="{x + 5:.1f}" y="{middle - 30}">mean {mean:.1f}, spread {values.std():.0f}</text>'
    )
    if tether is not None:
        end = x_of(-tether)
        parts.append(
            f'<path class="tether" d="M{end:.1f} {middle - 32} V{middle + 32}"/>'
        )
        parts.append(
            f'<text class="told" x="{end + 5:.1f}" y="{middle + 40}">no value below {"−" if tether else ""}{tether:.0f}</text>'
        )
    return parts


def main() -> None:
    """Two hundred episodes of the walker, as in the README's demo."""
    problem = small("walker")
    logs = problem.logs(200, rng=np.random.default_rng(1))
    question = Problem(logs, problem.candidate)
    floor = logs.value_range[0]
    unit = float((logs.returns - floor).mean())
    rows = []
    for index, (length, name, about) in enumerate(
        (
            (0.0, "C = 0", "importance sampling"),
            (2.0, "a tether", "TDR"),
            (float("inf"), "C = ∞", "doubly robust (DR)"),
        )
    ):
        values = TDR(tether=length)._tethered(question, exact=False).values
        tether = length * unit if np.isfinite(length) else None
        rows += row(index, name, about, values, tether, problem.true_value - floor)
    truth = x_of(problem.true_value - floor)
    height = TOP + 3 * ROW + 34
    style = """
    .page { fill: #fbfaf7 } text { font: 13px system-ui, sans-serif; fill: #333 } .name { font-weight: 600; font-size: 15px }
    .about, .told { fill: #666; font-size: 12px } .axis { stroke: #bbb } .dot { fill: #2a6fb0; fill-opacity: .45 }
    .mean { stroke: #333; stroke-width: 2 } .tether { stroke: #c2410c; stroke-width: 2; stroke-dasharray: 5 3 }
    .truth { stroke: #15803d; stroke-width: 1.5 }
    @media (prefers-color-scheme: dark) {
      .page { fill: #15191f } text { fill: #ddd } .about, .told { fill: #aaa } .axis { stroke: #555 } .dot { fill: #7db8ea }
      .mean { stroke: #eee } .tether { stroke: #fb923c } .truth { stroke: #4ade80 }
    }"""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="Values of 200 episodes without a tether, on one, and on an endless one">'
    )
    body = [
        head, f"<style>{style}</style>", f'<rect class="page" width="{WIDTH}" height="{height}" rx="10"/>',
        '<text class="name" x="16" y="26">One value per logged episode, counted from '
        "the lowest possible return</text>", *rows,
        f'<path class="truth" d="M{truth:.1f} {TOP} V{height - 30}"/>',
        f'<text class="told" x="{truth + 5:.1f}" y="{height - 14}">true value</text>', "</svg>",
    ]  # fmt: skip
    Path(__file__).with_name("tether.svg").write_text(
        "\n".join(body) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
