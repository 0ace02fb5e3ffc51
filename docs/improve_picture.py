# ruff: noqa: E501
"""Draws docs/pictures/improve.svg: one part of the logs proposes, the other tests once."""

from __future__ import annotations

from pathlib import Path

STYLE = """text { font: 13px system-ui, "Segoe UI", Roboto, sans-serif; fill: #1b1f24; text-anchor: middle }
.soft { fill: #57606a; font-size: 12px } .name { font-weight: 650 }
rect { rx: 6; stroke: #d0d7de } .logs { fill: #f3f5f8 } .first { fill: #f3dfbd } .second { fill: #a9c7ea } .yes { fill: #cfe8d6 } .no { fill: #f3d4d1 }
path { fill: none; stroke: #57606a; stroke-width: 1.5; marker-end: url(#tip) }"""

BOXES = (
    ("logs", 10, 75, 120, 70, "the logs", "of today's policy"),
    ("first", 200, 15, 190, 70, "40 % propose", "19 policies, 19 promises"),
    ("second", 450, 15, 170, 70, "one policy", "the highest promise"),
    ("second", 450, 135, 170, 70, "60 % test it", "one bound, once"),
    ("yes", 690, 95, 160, 50, "passed", "written, with its bound"),
    ("no", 690, 160, 160, 50, "no solution found", "nothing is written"),
)
ARROWS = (
    "M130 95 L160 95 L160 50 L196 50",
    "M130 125 L160 125 L160 170 L446 170",
    "M390 50 L446 50",
    "M535 85 L535 131",
    "M620 160 L655 160 L655 120 L686 120",
    "M620 185 L686 185",
)


def drawing() -> str:
    """The picture as text."""
    parts = [
        f'<style>{STYLE}</style><defs><marker id="tip" markerWidth="8" markerHeight="8" refX="6" refY="4" orient="auto"><path d="M0 0L8 4L0 8" style="fill:#57606a;stroke:none;marker-end:none"/></marker></defs>'
    ]
    parts += [f'<path d="{line}"/>' for line in ARROWS]
    for kind, x, y, wide, high, name, about in BOXES:
        parts.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="{wide}" height="{high}"/>'
        )
        middle = x + wide / 2
        parts.append(
            f'<text class="name" x="{middle:g}" y="{y + high / 2 - 4:g}">{name}</text>'
        )
        parts.append(
            f'<text class="soft" x="{middle:g}" y="{y + high / 2 + 14:g}">{about}</text>'
        )
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 225" role="img"><title>One part of the logs proposes a policy, the other tests it once</title><rect width="860" height="225" style="fill:#fff;stroke:none"/>{"".join(parts)}</svg>\n'


def main() -> None:
    """Write the file."""
    (Path(__file__).parent / "pictures" / "improve.svg").write_text(
        drawing(), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
