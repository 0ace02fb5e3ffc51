"""Our own estimators, under the same laws and on the same data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from harness import ALPHA, RESAMPLES, Bounds, Data, Entry, InapplicableError, main

import tightrope
from tightrope.base.problem import Problem
from tightrope.estimators import DR, IS, MB, PDIS, PDWIS, WDR, WIS
from tightrope.models import GivenValues


def logs(data: Data) -> tightrope.TrajectoryDataset:
    """The data set as ``read`` makes it from columns."""
    columns = {
        "episode": data.episode,
        "t": data.t,
        "state": data.states,
        "action": data.actions,
        "reward": data.rewards,
        "behavior_prob": data.logged("behavior"),
        "terminated": data.last,
    }
    return tightrope.read(columns, horizon=data.horizon, discount=data.discount)


def problem(data: Data) -> Problem:
    """The logs and the candidate."""
    return Problem(logs(data), tightrope.TabularPolicy(data.table("candidate")))


def values(data: Data) -> GivenValues:
    """Values that are right about nothing, for every time alike."""
    return GivenValues(np.tile(data.table("q_values"), (data.horizon, 1, 1)))


def entry(make: Callable[[Data], Any], label: str, methods: tuple[str, ...] = (), **more: Any) -> Entry:
    """An estimator with its intervals."""

    def bounds(method: str) -> Bounds:
        def both(data: Data) -> tuple[float, float]:
            low, high = tightrope.interval(
                logs(data), tightrope.TabularPolicy(data.table("candidate")), estimator=make(data), method=method,
                confidence=1 - ALPHA, n_resamples=RESAMPLES, seed=0,
            )  # fmt: skip
            return low, high

        return both

    return Entry(
        estimate=lambda data: make(data)(problem(data)).estimate,
        weighted=lambda data, weights: float(make(data)(problem(data))(weights)),
        reading=f"`{label}` on `tightrope.read(columns)`; intervals: `tightrope.interval(..., method=...)`",
        intervals={method: bounds(method) for method in methods},
        **more,
    )


GIVEN = "q̂ is given and wrong on purpose: it does not cancel in a sample"
MODEL = "the value in a model of the logs does not repeat the returns of the sample"


def long_enough(data: Data) -> Any:
    """MB, where the states say the time."""
    if data.horizon > 20:
        raise InapplicableError("a tabular model that knows no time cannot tell the steps of a long episode apart")
    return MB()


BOTH = ("percentile", "studentized")
ENTRIES = {
    "IS": entry(lambda data: IS(), "IS()", BOTH),
    "PDIS": entry(lambda data: PDIS(), "PDIS()"),
    "WIS": entry(lambda data: WIS(), "WIS()", self_normalized=True),
    "PDWIS": entry(lambda data: PDWIS(), "PDWIS()", BOTH, self_normalized=True),
    "DR, values given": entry(
        lambda data: DR(values(data), fit="shared"), 'DR(GivenValues(table), fit="shared")', exempt={"on policy": GIVEN}
    ),
    "WDR, values given": entry(
        lambda data: WDR(values(data), fit="shared"),
        'WDR(GivenValues(table), fit="shared")',
        self_normalized=True,
        exempt={"on policy": GIVEN, "like returns": GIVEN},
    ),
    "MB, tabular": entry(long_enough, "MB()", exempt={"on policy": MODEL}),
}

if __name__ == "__main__":
    main("tightrope", ENTRIES, ("tightrope", "numpy", "scipy", "numba"))
