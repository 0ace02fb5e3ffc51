"""Inline SVG that stretches with its page: across in percent, down in pixels, so that letters keep their size.

Colours come from the page's style sheet by class, so that dark mode and print need no second drawing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from tightrope.report.scale import Scale, short, tick_words

LEFT, RIGHT = 15.0, 93.0  # percent: where the plot of a chart begins and ends
TOP, HEIGHT = 24, 120  # pixels


def element(tag: str, text: str = "", /, **attributes: object) -> str:
    """One element with escaped text; underscores in names become hyphens, ``cls`` is the class."""
    return group(tag, [escape(text)], **attributes)


def group(tag: str, children: Iterable[str], /, **attributes: object) -> str:
    """An element around others."""
    names = {"cls": "class"}
    given = "".join(
        f' {names.get(name, name.replace("_", "-"))}="{escape(str(value))}"' for name, value in attributes.items()
    )
    return f"<{tag}{given}>{''.join(children)}</{tag}>"


def image(key: str, title: str, description: str, height: float, children: Iterable[str], cls: str = "") -> str:
    """A figure as wide as its place, with its text alternative."""
    words = [element("title", title, id=f"{key}-title"), element("desc", description, id=f"{key}-desc")]
    return group(
        "svg",
        [*words, *children],
        cls=cls,
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        width="100%",
        height=f"{height:g}",
        xmlns="http://www.w3.org/2000/svg",
    )


def pct(value: float) -> str:
    """A place across."""
    return f"{value:.2f}%"


def line(x1: float, y1: float, x2: float, y2: float, cls: str) -> str:
    """A line; across in percent, down in pixels."""
    return element("line", x1=pct(x1), y1=f"{y1:g}", x2=pct(x2), y2=f"{y2:g}", cls=cls)


def label(x: float, y: float, words: str, anchor: str = "start", cls: str = "") -> str:
    """Words whose middle height is at y."""
    return element("text", words, x=pct(x), y=f"{y:g}", dy=".35em", text_anchor=anchor, cls=cls)


def chart(
    key: str,
    title: str,
    description: str,
    points: Sequence[tuple[float, float]],
    x: Scale,
    y: Scale,
    *,
    names: tuple[str, str],
    marks: Sequence[tuple[float, str]] = (),
    whole: bool = False,
) -> str:
    """A curve over axes; ``names`` are the axes' (across, up), ``marks`` are (height, class) lines across."""
    path = "M" + "L".join(f"{100 * x.at(a):.2f} {100 - 100 * y.at(b):.2f}" for a, b in points)
    curve = group(
        "svg",
        [element("path", d=path, cls="curve", vector_effect="non-scaling-stroke")],
        x=pct(LEFT),
        y=TOP,
        width=pct(RIGHT - LEFT),
        height=HEIGHT,
        viewBox="0 0 100 100",
        preserveAspectRatio="none",
    )
    lines = [line(LEFT, _down(y, height), RIGHT, _down(y, height), cls) for height, cls in marks if y.holds(height)]
    children = [*_up_axis(y, names[1]), *across_axis(x, names[0], TOP + HEIGHT, whole=whole), *lines, curve]
    return image(key, title, description, TOP + HEIGHT + 44, children)


def _down(y: Scale, value: float) -> float:
    return TOP + HEIGHT * (1 - y.at(value))


def _up_axis(y: Scale, name: str) -> list[str]:
    ticks = y.ticks()
    parts = [label(0, 8, name, cls="axis-name")]
    for tick, words in zip(ticks, tick_words(ticks), strict=True):
        down = _down(y, tick)
        parts += [line(LEFT, down, RIGHT, down, "grid"), label(LEFT - 1.5, down, words, "end")]
    return parts


def across_axis(
    x: Scale, name: str, bottom: float, *, left: float = LEFT, right: float = RIGHT, whole: bool = False
) -> list[str]:
    """Ticks and their words under a plot; the axis' name below them, if it has one."""
    ticks = [tick for tick in x.ticks() if not whole or tick == int(tick)]
    parts = [line(left, bottom, right, bottom, "axis")]
    for tick, words in zip(ticks, tick_words(ticks), strict=True):
        place = left + (right - left) * x.at(tick)
        parts += [line(place, bottom, place, bottom + 4, "axis"), label(place, bottom + 14, words, "middle")]
    return [*parts, label((left + right) / 2, bottom + 32, name, "middle", "axis-name")] if name else parts


def histogram(
    key: str,
    title: str,
    description: str,
    edges: Sequence[float],
    counts: Sequence[int],
    x: Scale,
    marks: Sequence[tuple[float, str]],
) -> str:
    """Bars over an axis, with (place, class) lines down; a mark beyond the axis is an arrow at its end."""
    y = Scale(0, max(counts))

    def across(value: float) -> float:
        return LEFT + (RIGHT - LEFT) * x.at(value)

    bars = [
        element(
            "rect",
            x=pct(across(low)),
            y=f"{_down(y, count):.1f}",
            width=pct(across(high) - across(low)),
            height=f"{HEIGHT * y.at(count):.1f}",
            cls="bar",
        )
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
        if count
    ]
    lines = []
    for value, cls in marks:
        if x.holds(value):
            lines.append(line(across(value), TOP, across(value), TOP + HEIGHT, cls))
        else:
            lines.append(arrow(across(value), TOP + HEIGHT / 2, "left" if value < x.low else "right", cls))
    children = [*_up_axis(y, "replicates"), *bars, *lines, *across_axis(x, "value of the replicate", TOP + HEIGHT)]
    return image(key, title, description, TOP + HEIGHT + 44, children)


def arrow(x: float, y: float, way: str, cls: str) -> str:
    """A small triangle at the end of an axis: what it stands for lies beyond."""
    tip, base = (-7, 0) if way == "left" else (7, 0)
    shape = element("path", d=f"M{tip} 0L{base} -5L{base} 5Z", cls=f"{cls} tip")
    return group("svg", [shape], x=pct(x), y=f"{y:g}", overflow="visible")


def say(value: float) -> str:
    """A number in a description."""
    return short(value, 5)
