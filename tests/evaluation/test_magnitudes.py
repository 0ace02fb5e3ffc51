"""Numbers of any size: the unit of the rewards changes nothing, and what no arithmetic carries is refused."""

from __future__ import annotations

import io
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console

import tightrope
from tests.logs import POLICY, columns, dataset
from tests.models import systems
from tightrope import DataError
from tightrope.base.warnings import codes_of
from tightrope.domains import small
from tightrope.evaluation.details import _histogram
from tightrope.report.scale import Scale, around, tick_words

METHODS = ["percentile", "bca", "basic", "studentized", "t", "betting", "anderson", "cut"]
ANY = settings(deadline=None, derandomize=True, database=None, max_examples=200)


@pytest.fixture(scope="module")
def problem():
    chosen = small("walker")
    return chosen.logs(80, rng=np.random.default_rng(0)), chosen.candidate


def in_unit(problem, unit):
    data, candidate = problem
    data = replace(data, rewards=data.rewards * unit, reward_range=(-32 * unit, 0.0), return_range=None)
    return tightrope.evaluate(data, candidate, methods=METHODS, side="both", baseline="behavior", n_resamples=60)


@pytest.mark.parametrize("power", [-330, -200, -60, -3, 5, 100, 250, 327])
def test_bounds_follow_the_unit_of_the_rewards(problem, power):
    """The law: rewards times 2^k give bounds times 2^k, the same warnings and the same advice."""
    unit = 2.0**power
    found, expected = in_unit(problem, unit), in_unit(problem, 1.0)
    for one, other in zip(found.bounds, expected.bounds, strict=True):
        assert (one.estimator, one.method, one.side) == (other.estimator, other.method, other.side)
        np.testing.assert_allclose(
            np.array([one.value, one.estimate, one.standard_error]) / unit,
            [other.value, other.estimate, other.standard_error],
            rtol=1e-9,
        )
        assert codes_of(one.warnings) == codes_of(other.warnings)
    names = [[(bound.estimator, bound.method, bound.side) for bound in one.believed] for one in (found, expected)]
    assert names[0] == names[1]
    assert found.verdict.kind == expected.verdict.kind
    assert found.model_check.memory == pytest.approx(expected.model_check.memory, rel=1e-6)


@pytest.mark.parametrize("size", [1e101, 1e150, 1e154, 1e200, 1e300, 1e308])
def test_rewards_whose_squares_overflow_are_refused(size):
    rewards = columns()["reward"].copy()
    rewards[4] = -size
    data = tightrope.read(columns(reward=rewards))
    for call in (tightrope.evaluate, tightrope.lower_bound, tightrope.estimate, tightrope.statistic):
        with pytest.raises(DataError, match=r"reward must lie within ±1e\+100, .*; got .* at episode 11, step 1"):
            call(data, POLICY)


@pytest.mark.parametrize("size", [5e-324, 1e-320, 1e-308, 1e-200, 1e-101])
def test_rewards_whose_squares_vanish_are_refused(size):
    data = tightrope.read(columns(reward=columns()["reward"] * size))
    with pytest.raises(DataError, match=r"reward must reach 1e-100 somewhere, .* Multiply"):
        tightrope.evaluate(data, POLICY)


def test_rewards_of_nothing_are_fine():
    data = tightrope.read(columns(reward=np.zeros(9)))
    assert tightrope.evaluate(data, POLICY).bounds[0].estimate == 0.0


@pytest.mark.parametrize("name", ["reward_range", "return_range"])
def test_ranges_that_say_nothing(name):
    with pytest.raises(DataError, match=rf"{name} must lie within ±1e\+100, .*; got \(-1e\+300, 5\)"):
        dataset(**{name: (-1e300, 5)})


@pytest.mark.parametrize("size", [1e120, 1e300])
def test_states_whose_squares_overflow(size):
    data = systems.walks(12, 3)
    far = replace(data, states=np.where(np.arange(data.n_steps) == 4, size, data.states))
    with pytest.raises(DataError, match=r"state must lie within .* squares overflow"):
        tightrope.evaluate(far, systems.UP, behavior="auto")
    with pytest.raises(DataError, match=r"state must lie within .* squares overflow"):
        tightrope.estimate(far, systems.UP, estimator="mb", model="linear")


# -- figures -----------------------------------------------------------------------------------------------------------

numbers = st.floats(allow_nan=False, allow_infinity=False)


@ANY
@given(numbers, numbers)
@example(0.0, 0.0)
@example(1.0, 1.0)
@example(0.0, 5e-324)
@example(-1.7e308, 1.7e308)
@example(1e300, np.nextafter(1e300, math.inf))
def test_ticks_of_any_axis(one, other):
    axis = Scale(min(one, other), max(one, other))
    ticks = axis.ticks()
    assert len(ticks) <= 6
    assert len(tick_words(ticks)) == len(ticks)
    slack = 1e-6 * (axis.high - axis.low)
    assert all(axis.low - slack <= tick <= axis.high + slack for tick in ticks)
    assert 0.0 <= axis.at(one) <= 1.0


@ANY
@given(st.lists(numbers, max_size=4), st.lists(numbers, max_size=4))
def test_an_axis_around_any_numbers(core, others):
    axis = around(core, others)
    assert axis.low < axis.high
    tick_words(axis.ticks())


@ANY
@given(st.lists(st.one_of(numbers, st.floats(-1e-300, 1e-300)), max_size=50))
@example([0.0, 5e-324])
@example([0.0, 1e-322, 3e-322])
@example([-1.7e308, 1.7e308, 0.0])
def test_histogram_of_any_values(values):
    edges, counts, beyond = _histogram(np.array(values, dtype=float))
    if counts:
        assert sum(counts) + beyond == len(values)
        assert len(edges) == len(counts) + 1
        assert all(low < high for low, high in itertools.pairwise(edges))


@pytest.mark.parametrize("unit", [1e-99, 1e-30, 1e30, 1e97])
def test_a_report_in_any_unit(problem, unit):
    result = in_unit(problem, unit)
    assert "<html" in result.to_html()
    Console(file=io.StringIO()).print(result)
    for kind in ("forest", "overlap", "bootstrap"):
        result.figure(kind).savefig(io.BytesIO(), format="svg")
