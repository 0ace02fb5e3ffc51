"""Draws docs/pictures/tails.svg: the exact band around a whole distribution."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tightrope
from tightrope.domains import small


def main() -> None:
    """A thousand episodes of the walker, as in the demo."""
    walker = small("walker")
    logs = walker.logs(1000, rng=np.random.default_rng(0))
    shape = tightrope.distribution(logs, walker.candidate, points=20, strict=True)
    shape.to_svg(Path(__file__).parent / "pictures" / "tails.svg")


if __name__ == "__main__":
    main()
