"""Every guard speaks just beyond the threshold that the pages name, and not just before it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tightrope.base.records import BehaviorCheck, ModelCheck, Overlap
from tightrope.evaluation.advice import spread_warning
from tightrope.evaluation.behavior_check import _warnings as behavior_warnings
from tightrope.evaluation.model_check import _warnings as model_warnings
from tightrope.evaluation.overlap import _warnings as overlap_warnings
from tightrope.evaluation.overlap import evidence as log_evidence
from tightrope.evaluation.overlap import wagered

OVERLAP = Overlap(
    effective_sample_size=(80.0,),
    largest_share=(0.02,),
    zero_share=0.0,
    pareto_k=0.2,
    mean_ratio=1.0,
    mean_ratio_error=0.05,
    mean_ratio_evidence=0.0,
    unlogged_mass=0.0,
    infinite_variance=False,
)
MODEL = ModelCheck("tabular", 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.5, 0.5, 1.0, 1.0, 0.1, None, False)
BEHAVIOR = BehaviorCheck("tabular", -1.0, -1.0, 0.0, 0.0, 0.01, None, (0.1, 0.1, 0.1), 0.5)


def of_overlap(**changes):
    return overlap_warnings(replace(OVERLAP, **changes), 100)


def of_model(**changes):
    return model_warnings(replace(MODEL, **changes), 100.0)


def of_behavior(**changes):
    return behavior_warnings(replace(BEHAVIOR, **changes))


def codes(warnings):
    return [one.code for one in warnings]


@pytest.mark.parametrize("warn", [of_overlap, of_model, of_behavior])
def test_a_healthy_record_is_not_warned_of(warn):
    assert warn() == []


@pytest.mark.parametrize(
    ("warn", "code", "before", "beyond"),
    [
        (of_overlap, "low-overlap", {"effective_sample_size": (90.0, 10.0)}, {"effective_sample_size": (90.0, 9.9)}),
        (of_overlap, "one-episode", {"largest_share": (0.1, 0.5)}, {"largest_share": (0.1, 0.51)}),
        (of_overlap, "heavy-tail", {"pareto_k": 0.7}, {"pareto_k": 0.71}),
        (of_overlap, "mean-ratio", {"mean_ratio_evidence": 9.2}, {"mean_ratio_evidence": 9.3}),
        (of_overlap, "mean-ratio", {"mean_ratio": 0.76}, {"mean_ratio": 0.74}),
        (of_overlap, "unlogged-actions", {"unlogged_mass": 0.01}, {"unlogged_mass": 0.011}),
        (of_model, "model-contradicted", {"correction": 2.9}, {"correction": 3.1}),
        (of_model, "model-contradicted", {"correction": -2.9}, {"correction": -3.1}),
        (of_model, "model-contradicted", {"memory": 1.1e-4}, {"memory": 0.9e-4}),
        (of_model, "model-contradicted", {"misfit": 1.1e-4}, {"misfit": 0.9e-4}),
        (of_model, "unseen-pairs", {"unseen_mass": 0.01}, {"unseen_mass": 0.011}),
        (of_model, "fragile-pairs", {"fragile_mass": 0.01}, {"fragile_mass": 0.011}),
        (of_behavior, "behavior-unseen", {"unseen_share": 0.01}, {"unseen_share": 0.011}),
        (of_behavior, "behavior-miscalibrated", {"calibration_error": 0.06}, {"calibration_error": 0.061}),
        (of_behavior, "behavior-misfit", {"misfit": 1.1e-4}, {"misfit": 0.9e-4}),
    ],
)
def test_where_a_guard_speaks(warn, code, before, beyond):
    """The numbers are those of docs/guide/methods.md; a miscalibration counts beyond 0.03 and three times its noise, a
    mean ratio above 1 at an e-value of 10,000 = e^9.21, one below it at five standard errors.
    """
    assert warn(**before) == []
    assert codes(warn(**beyond)) == [code]


@pytest.mark.parametrize("second_order", [False, True])
def test_how_much_skew_is_told(second_order):
    """An excess of a fifth of the nominal error rate, two fifths for methods that correct for skew themselves.

    A share p of values at −(1 − p)/p · c and the others at c has the skewness (2p − 1)/√(p(1 − p)); the yardstick of
    the excess is φ(z)(2z² + 1)/6 · skewness/√n with φ(1.645) = 0.1031 and 2·1.645² + 1 = 6.411.
    """
    values = np.where(np.arange(100) < 4, -24.0, 1.0)  # mean 0, skewness −0.92/√0.0384 = −4.695
    copies = 0.1031 * 6.411 / 6 * 4.695 / ((0.4 if second_order else 0.2) * 0.05)
    fewest = copies**2 / 100  # hundreds of episodes at which the excess is just told
    told = [
        codes(spread_warning(np.tile(values, k), 1.0, "lower", 0.95, second_order=second_order))
        for k in (int(fewest), int(fewest) + 1)
    ]
    assert told == [["skew"], []]
    assert spread_warning(np.tile(values, int(fewest)), 1.0, "upper", 0.95, second_order=second_order) == []


def test_the_evidence_is_an_e_value():
    """Its mean is 1 where the ratios have mean 1: over all samples of four ratios that are 0 or 2, half of the time."""
    samples = np.array(list(product([0.0, 2.0], repeat=4)))
    with np.errstate(divide="ignore"):
        evidence = [log_evidence(wagered(np.log(ratios))) for ratios in samples]
    assert np.mean(np.exp(evidence)) == pytest.approx(1.0)
