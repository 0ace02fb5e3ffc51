"""Pictures of the paper's domains, with matplotlib; legible in grey."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.errors import TightropeError
from tightrope.base.extras import load_extra
from tightrope.domains import CliffWorld, Domain, MountainCar, simulate
from tightrope.io.write import check_writable, replace_file

SHOWN = 4  # episodes of each policy
FORMATS = (".png", ".pdf", ".svg")
LINES = {
    "candidate": {"color": "black", "linestyle": "-", "linewidth": 1.2},
    "behavior": {"color": "0.45", "linestyle": (0, (3, 1.5)), "linewidth": 1.0},
}
NAMES = {"candidate": "candidate", "behavior": "behaviour policy"}


def draw(domain: Domain, axes: Any, *, rng: np.random.Generator) -> None:
    """Draw a domain, with a few episodes of both policies, on matplotlib axes."""
    artist = next((draws for kind, draws in _ARTISTS.items() if isinstance(domain, kind)), None)
    if artist is None:
        raise TightropeError(f"{domain.name} cannot be drawn; mountain-car and the cliff worlds can")
    artist(domain, axes, rng)


def save_drawing(domain: Domain, target: Path, *, seed: int = 0) -> None:
    """Draw a domain into a file."""
    drawing(domain, target, seed=seed)()


def drawing(domain: Domain, target: Path, *, seed: int = 0) -> Callable[[], None]:
    """Draw a domain; what is returned writes the file, which appears whole or not at all."""
    if target.suffix not in FORMATS:
        raise TightropeError(f"{target}: the name must end in {', '.join(FORMATS)}")
    figure = load_extra("matplotlib.figure", "figures", "drawing").Figure(figsize=(6.4, 5.0), layout="constrained")
    draw(domain, figure.add_subplot(), rng=np.random.default_rng(seed))
    check_writable(target)
    return lambda: replace_file(target, lambda path: figure.savefig(path, format=target.suffix[1:], dpi=200))


def _paths(logs: TrajectoryDataset, positions: Callable[[Any], Array]) -> list[Array]:
    """The points that each episode went through, the last one included."""
    assert logs.states is not None
    assert logs.final_states is not None
    parts = np.split(logs.states, logs.offsets[1:-1])
    ends = np.split(logs.final_states, len(parts))
    return [positions(np.concatenate(pair)) for pair in zip(parts, ends, strict=True)]


def _cliff_world(world: CliffWorld, axes: Any, rng: np.random.Generator) -> None:
    patches = load_extra("matplotlib.patches", "figures", "drawing")
    corner, size = np.array(world.origin), world.size

    def box(low: Any, high: Any, **style: Any) -> None:
        width, height = np.subtract(high, low)
        axes.add_patch(patches.Rectangle(np.add(corner, low), width, height, **style))

    box((0, 0), (size, size), facecolor="none", edgecolor="black", linewidth=1.5)
    cliff = {"facecolor": "0.85", "edgecolor": "0.35", "hatch": "///", "linewidth": 0.8}
    box((world.cliffs[0], 0), (world.cliffs[1], world.gap[0]), label="cliffs", **cliff)
    box((world.cliffs[0], world.gap[1]), (world.cliffs[1], size), **cliff)
    for where, reach in ((world.start_position, world.start_spread), (world.goal, world.goal_radius)):
        box(np.subtract(where, reach), np.add(where, reach), facecolor="white", edgecolor="black", zorder=3)
    axes.annotate("goal", np.add(corner, world.goal), ha="center", va="center", zorder=5)
    below = np.add(corner, world.start_position) - (0, world.start_spread)
    axes.annotate("start", below, (0, -3), textcoords="offset points", ha="center", va="top")
    for which in ("behavior", "candidate"):
        logs = simulate(world, getattr(world, which), SHOWN, rng=rng)
        for k, path in enumerate(_paths(logs, lambda states: states[:, :2])):
            axes.plot(*path.T, zorder=4, label=NAMES[which] if k == 0 else None, **LINES[which])
    axes.set(xlabel="x", ylabel="y", title=world.name, aspect="equal")
    axes.set_xlim(corner[0] - 0.25, corner[0] + size + 0.25)
    axes.set_ylim(corner[1] - 0.25, corner[1] + size + 0.25)
    axes.legend(loc="lower right", bbox_to_anchor=(0.95, 0.05))


def _mountain_car(car: MountainCar, axes: Any, rng: np.random.Generator) -> None:
    pushes = np.where(car.at_goal, np.nan, car.candidate.table @ [-1.0, 0.0, 1.0]).reshape(car.shape)
    positions, velocities = car.positions.reshape(car.shape)[:, 0], car.velocities[: car.shape[1]]
    reach = float(np.nanmax(np.abs(pushes)))
    # Twice the range upwards: the shades stay light enough for the lines.
    shades = axes.pcolormesh(positions, velocities, pushes.T, cmap="Greys", vmin=-reach, vmax=3 * reach)
    bar = axes.figure.colorbar(shades, ax=axes, label="mean push of the candidate (−1 left, +1 right)")
    bar.ax.set_ylim(-reach, reach)
    for which in ("behavior", "candidate"):
        logs = simulate(car, getattr(car, which), SHOWN, rng=rng)
        for k, path in enumerate(_paths(logs, lambda s: np.stack([car.positions[s], car.velocities[s]], axis=1))):
            axes.plot(*path.T, label=NAMES[which] if k == 0 else None, **LINES[which])
            axes.plot(*path[0], "o", color=LINES[which]["color"], markersize=4)
    axes.axvline(car.goal_position, color="black", linestyle=":", label="goal")
    axes.set(xlabel="position", ylabel="velocity", title=car.name)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, frameon=False)


_ARTISTS: dict[type, Callable[[Any, Any, np.random.Generator], None]] = {
    CliffWorld: _cliff_world,
    MountainCar: _mountain_car,
}
