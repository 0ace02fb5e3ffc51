"""Figures of a study: mean bounds and error rates against n. Reads summary lines, computes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from tightrope.base.extras import load_extra
from tightrope.io.write import replace_file

Which = Literal["valid", "finite"]
# Told apart in grey by marker and dash as well as by shade; the colours are safe for the colour-blind (Okabe and Ito).
STYLES: tuple[tuple[str, str, str], ...] = (
    ("#000000", "o", "-"),
    ("#D55E00", "s", "-"),
    ("#0072B2", "^", "--"),
    ("#009E73", "D", "--"),
    ("#CC79A7", "v", ":"),
    ("#E69F00", "P", ":"),
    ("#56B4E9", "X", "-."),
    ("#666666", "*", "-."),
)


class Averaged(Protocol):
    """A mean with its error."""

    @property
    def value(self) -> float:
        """The mean."""
        ...

    @property
    def error(self) -> float:
        """Half the width of its 95 % interval."""
        ...


class Summarized(Protocol):
    """What a figure needs of one method at one size."""

    @property
    def n(self) -> int:
        """Episodes."""
        ...

    @property
    def true_value(self) -> float:
        """The candidate's value."""
        ...

    @property
    def valid(self) -> Averaged:
        """Over the bounds that are not wrong."""
        ...

    @property
    def finite(self) -> Averaged:
        """Over all that are finite."""
        ...

    @property
    def error_rate(self) -> float:
        """How often it was wrong."""
        ...

    @property
    def error_low(self) -> float:
        """Clopper and Pearson's interval."""
        ...

    @property
    def error_high(self) -> float:
        """Clopper and Pearson's interval."""
        ...


Curves = Mapping[str, Sequence[Summarized]]  # by label, n rising


def bounds_figure(curves: Curves, path: Path, *, title: str, which: Which, floor: float) -> Path:
    """Mean lower bound against n with 95 % error bars and the true value as a line.

    ``which`` averages the valid bounds alone, as the paper does, or all that are finite. What lies below ``floor`` is
    cut off, and said to be.
    """
    figure, axes = _axes(title)
    ceiling = floor
    for (label, lines), (colour, marker, dash) in zip(curves.items(), STYLES, strict=False):
        means = np.array([getattr(line, which).value for line in lines])
        errors = np.nan_to_num([getattr(line, which).error for line in lines])
        sizes = [line.n for line in lines]
        style = {"color": colour, "marker": marker, "linestyle": dash, "markersize": 4.5, "linewidth": 1.3}
        axes.errorbar(sizes, means, yerr=errors, label=label, capsize=2, elinewidth=0.8, **style)
        ceiling = max(ceiling, float(np.nanmax(np.where(np.isfinite(means), means, floor))))
    truth = next(iter(curves.values()))[0].true_value
    axes.axhline(truth, color="black", linewidth=0.8, linestyle=(0, (6, 2)))
    axes.annotate(r"$V(\pi_e)$", (1.005, truth), xycoords=("axes fraction", "data"), va="center", fontsize=9)
    axes.set_ylim(floor, max(ceiling, truth) + 0.06 * (max(ceiling, truth) - floor))
    axes.set_ylabel(f"mean 95 % lower bound ({'valid ones' if which == 'valid' else 'all finite ones'})")
    return _save(figure, axes, path)


def errors_figure(curves: Curves, path: Path, *, title: str, level: float = 0.05) -> Path:
    """Error rate against n, with Clopper and Pearson's 95 % bars and the allowed rate as a line."""
    figure, axes = _axes(title)
    for place, ((label, lines), (colour, marker, dash)) in enumerate(zip(curves.items(), STYLES, strict=False)):
        rates = np.array([line.error_rate for line in lines])
        bars = np.abs(np.array([[line.error_low, line.error_high] for line in lines]).T - rates)
        apart = 2.0 ** (0.09 * (place - (len(curves) - 1) / 2))  # side by side, so that bars do not hide each other
        sizes = np.array([line.n for line in lines]) * apart
        style = {"color": colour, "marker": marker, "linestyle": dash, "markersize": 4.5, "linewidth": 1.3}
        axes.errorbar(sizes, rates, yerr=bars, label=label, capsize=1.5, elinewidth=0.6, **style)
    axes.axhline(level, color="black", linewidth=0.8, linestyle=(0, (6, 2)))
    axes.annotate("5 %", (1.005, level), xycoords=("axes fraction", "data"), va="center", fontsize=9)
    axes.set_ylim(bottom=-0.01)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_ylabel("error rate")
    return _save(figure, axes, path)


def _axes(title: str) -> tuple[Any, Any]:
    module = load_extra("matplotlib.figure", "figures", "a figure")
    figure = module.Figure(figsize=(7.0, 4.2), layout="constrained", dpi=160)
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=10)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("episodes n")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(visible=True, linewidth=0.4, color="0.85")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Any, axes: Any, path: Path) -> Path:
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize=8, frameon=False)
    kind = path.suffix.removeprefix(".")
    replace_file(path, lambda temporary: figure.savefig(temporary, format=kind))
    return path
