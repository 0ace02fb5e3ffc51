"""The orders in which bounds are believed, pair by pair, as docs/guide/methods.md names them; and who hears what."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import tightrope
from tests.answers import answers
from tightrope.base.records import Bound, Overlap
from tightrope.base.warnings import caution
from tightrope.domains import situations
from tightrope.evaluation.advice import advise

OVERLAP = Overlap(
    effective_sample_size=(80.0,),
    largest_share=(0.02,),
    zero_share=0.0,
    pareto_k=0.2,
    mean_ratio=1.0,
    mean_ratio_error=0.05,
    mean_ratio_evidence=0.0,
    unlogged_mass=None,
    infinite_variance=False,
)
STEPS = {"offsets": [0, 1, 2], "rewards": [0.0, 1.0], "terminated": [True, True], "horizon": 2}
PLAIN = tightrope.TrajectoryDataset(**STEPS)
RETURNS = tightrope.TrajectoryDataset(**STEPS, return_range=(0.0, 9.0))

EXACT = ("betting", "cut", "anderson", "robust", "empirical-bernstein", "hoeffding")
APPROXIMATE = ("studentized", "bca", "percentile", "t", "basic")
ESTIMATORS = ("wdr", "pdwis", "dr", "wis", "pdis", "is")


def bound(estimator, method, value, guarantee="approximate", side="lower"):
    return Bound(value, side, 0.95, value, estimator, method, guarantee, 1.0, (), 100)


def believed(bounds, side="lower", data=PLAIN, **options):
    index = advise(answers(bounds), OVERLAP, side, data, **options)[1]
    return None if index is None else bounds[index]


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize(("first", "second"), list(combinations(EXACT, 2)))
def test_exact_bounds_have_their_order(first, second, side):
    """Whichever is tighter or listed first: what is chosen by its value has not the level of either."""
    for values in ((1.0, 2.0), (2.0, 1.0)):
        pair = [bound("is", how, value, "exact", side) for how, value in zip((first, second), values, strict=True)]
        for bounds in (pair, pair[::-1]):
            assert believed(bounds, side, strict=True).method == first
            assert believed(bounds, side).method == first


@pytest.mark.parametrize(("first", "second"), list(combinations(APPROXIMATE, 2)))
def test_methods_have_their_order(first, second):
    for values in ((1.0, 2.0), (2.0, 1.0)):
        pair = [bound("wis", how, value) for how, value in zip((first, second), values, strict=True)]
        assert believed(pair).method == believed(pair[::-1]).method == first


@pytest.mark.parametrize(("first", "second"), list(combinations(ESTIMATORS, 2)))
def test_estimators_have_their_order(first, second):
    """Also before any method; only a declared range of the return puts IS before PDIS."""
    for values in ((1.0, 2.0), (2.0, 1.0)):
        pair = [bound(name, how, value) for name, how, value in zip((first, second), ("t", "bca"), values, strict=True)]
        assert believed(pair).estimator == believed(pair[::-1]).estimator == first
        turned = second if (first, second) == ("pdis", "is") else first
        assert believed(pair, data=RETURNS).estimator == turned


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_an_exact_bound_must_be_no_looser_to_come_first(side):
    """For a lower bound that is higher, for an upper one lower."""
    sign = 1.0 if side == "lower" else -1.0
    loose, tight = -sign, sign
    for exact, guarantee in ((tight, "exact"), (loose, "approximate")):
        bounds = [bound("wis", "t", 0.0, side=side), bound("is", "betting", exact, "exact", side)]
        assert believed(bounds, side).guarantee == guarantee


@pytest.mark.parametrize(("side", "infinite"), [("lower", -np.inf), ("upper", np.inf)])
def test_an_infinite_bound_is_not_believed(side, infinite):
    nothing, something = bound("wdr", "studentized", infinite, side=side), bound("is", "basic", 0.0, side=side)
    assert believed([nothing], side) is None
    assert believed([nothing, something], side) == something


def test_a_contradicted_process_is_not_believed_exactly():
    told = replace(bound("mb", "robust", 1.0, "exact"), warnings=(caution("model-contradicted", "it remembers"),))
    assert believed([told]) is None
    assert believed([told], strict=True) is None
    assert believed([replace(told, warnings=())]) is not None


def test_a_model_alone_hears_what_was_never_logged_and_nothing_else_of_the_ratios():
    """The candidate acts mostly as nobody did: a model must guess what follows; how ratios spread is not its affair."""
    made = situations()[3]
    data = made.logs(50, rng=np.random.default_rng(4))
    result = tightrope.evaluate(data, made.candidate, estimators=["mb", "wis"], methods=["percentile"], n_resamples=100)
    told = {one.estimator: {warning.code for warning in one.warnings} for one in result}
    assert "unlogged-actions" in told["mb"] & told["wis"]
    ratios = {one.code for one in result.overlap.warnings} - {"unlogged-actions"}
    assert ratios
    assert ratios <= told["wis"]
    assert not ratios & told["mb"]
