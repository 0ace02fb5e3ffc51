"""Records: JSON and back without loss, in JSON that any parser reads."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tests.logs import POLICY, dataset
from tightrope import Bound, Evaluation, Interval, TightropeError
from tightrope.base.beside import Influence
from tightrope.base.records import Overlap, Summary
from tightrope.base.warnings import Caution, caution

inf, nan = math.inf, math.nan
BOUND = Bound(
    value=-1.25,
    side="lower",
    confidence=0.95,
    estimate=0.1 + 0.2,
    estimator="pdwis",
    method="bca",
    guarantee="approximate",
    warnings=(
        caution("low-overlap", '3 are worth 1.0; "quoted" and ≥ ünicode', episodes=3, worth=1.0),
        caution("skew", "left", skewness=-inf),
    ),
    n_trajectories=3,
    n_resamples=2000,
    n_undefined=7,
    seed=2**64 - 1,
)
SUMMARY = Summary(
    n_trajectories=3,
    n_steps=9,
    shortest=3,
    longest=3,
    horizon=3,
    horizon_declared=True,
    discount=1.0,
    terminated=0,
    reward_seen=(-1.0, 2.0),
    reward_range=(-inf, 2.0),
    return_range=None,
    return_mean=1.25,
    return_error=inf,
    actions="2 values",
    states="none",
    notes=(caution("assumed", "a note"),),
)
OVERLAP = Overlap(
    effective_sample_size=(3.0, 1.5),
    largest_share=(0.4, 0.9),
    zero_share=0.0,
    pareto_k=None,
    mean_ratio=inf,
    mean_ratio_error=inf,
    mean_ratio_evidence=inf,
    unlogged_mass=None,
    infinite_variance=True,
    warnings=(caution("one-episode", "90%"),),
)
EVALUATION = Evaluation(
    bounds=(BOUND, replace(BOUND, value=-inf, warnings=())),
    skipped=(("wis", "betting", "no guarantee"),),
    summary=SUMMARY,
    overlap=OVERLAP,
    advice="Believe nothing.",
    true_value=0.5,
    settings={"confidence": 0.95, "max_ratio": inf, "seed": 0, "max": None},
)
RECORDS = [
    BOUND,
    replace(BOUND, value=-inf, n_resamples=None, seed=None, warnings=()),
    replace(BOUND, value=inf, side="upper", guarantee="exact"),
    replace(BOUND, standard_error=inf),
    Interval(BOUND, replace(BOUND, side="upper", value=inf), 0.9),
    SUMMARY,
    OVERLAP,
    replace(OVERLAP, pareto_k=0.3, unlogged_mass=0.0),
    EVALUATION,
    replace(
        EVALUATION, bounds=(), skipped=(), believed=(BOUND, replace(BOUND, value=-inf)), true_value=None, settings={}
    ),
    Caution("mine", "of a bound of one's own", "bound", {"a": 0.5}),
    Influence("nan", None, inf, 0.5, -inf),  # an episode may have such a name
]


def strict(text):
    def refuse(token):
        raise AssertionError(f"{token} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
@pytest.mark.parametrize("indent", [None, 2])
def test_round_trip(record, indent):
    text = record.to_json(indent=indent)
    assert strict(text) == record.to_dict()
    back = type(record).from_json(text)
    assert back == record
    assert type(record).from_dict(record.to_dict()) == record


def test_nan_comes_back():
    text = replace(BOUND, estimate=nan).to_json()
    assert strict(text)["estimate"] == "nan"
    back = Bound.from_json(text)
    assert math.isnan(back.estimate)
    assert replace(back, estimate=0.0) == replace(BOUND, estimate=0.0)


def test_what_json_lacks_is_written_as_text():
    written = strict(EVALUATION.to_json())
    assert written["bounds"][1]["value"] == "-inf"
    assert written["summary"]["reward_range"] == ["-inf", 2.0]
    assert written["overlap"]["pareto_k"] is None
    assert written["skipped"] == [["wis", "betting", "no guarantee"]]


def test_numpy_scalars_are_written_as_numbers():
    record = replace(BOUND, value=np.float32(0.5), n_trajectories=np.int64(3), estimate=np.float64(-inf))
    assert strict(record.to_json())["value"] == 0.5
    assert Bound.from_json(record.to_json()) == replace(BOUND, value=0.5, estimate=-inf)


def test_real_results_round_trip():
    data = dataset(reward_range=(-1, 2), horizon=3, discount=np.float32(1.0))
    options = {"n_resamples": 50, "seed": 1}
    found = tightrope.evaluate(data, POLICY, side="both", **options)
    assert Evaluation.from_json(found.to_json()).to_json() == found.to_json()
    assert [bound.value for bound in found] == [bound.value for bound in found.bounds]
    both = tightrope.interval(data, POLICY, method="percentile", n_resamples=200)
    assert Interval.from_json(both.to_json()) == both
    low, high = both
    assert (low, high) == (both.lower.value, both.upper.value)


def test_a_bound_in_words():
    assert str(BOUND).splitlines() == [
        "value ≥ -1.25 with confidence 0.95 (approximate; PDWIS, bca; estimate 0.3)",
        '  ! low-overlap: 3 are worth 1.0; "quoted" and ≥ ünicode',
        "  ! skew: left",
    ]
    assert str(replace(BOUND, side="upper", warnings=())).startswith("value ≤ -1.25")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "{}", '{"value": 1}', '{"bounds": [{}]}', '{"lower": 1, "upper": 2}']
)
@pytest.mark.parametrize("record", [Bound, Interval, Evaluation])
def test_not_a_record(record, text):
    with pytest.raises(TightropeError, match=f"the text must be JSON as {record.__name__}"):
        record.from_json(text)
