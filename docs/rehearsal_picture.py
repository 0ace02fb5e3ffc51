"""Draws docs/rehearsal.svg: how often each bound errs on simulated logs."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

import tightrope
from tightrope.domains import small

if __name__ == "__main__":
    problem = small("decline")
    logs = problem.logs(50, rng=np.random.default_rng(1))
    estimators = ["is", "wis", "pdwis", "mb", "wdr", "tdr"]
    methods = ["percentile", "studentized", "betting"]
    result = tightrope.evaluate(
        logs,
        problem.candidate,
        estimators=estimators,
        methods=methods,
        rehearsals=300,
    )
    mpl.rcParams["svg.hashsalt"] = "tightrope"  # the same file every time
    mpl.rcParams["svg.fonttype"] = "none"
    target = Path(__file__).with_name("rehearsal.svg")
    result.figure("rehearsal").savefig(target, metadata={"Date": None})
