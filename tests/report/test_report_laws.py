"""Every number of a record stands beside its own name, and a bound is right on its own side of the truth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tightrope.base.records import BehaviorCheck, Bound, ModelCheck
from tightrope.report.scale import give_or_take, percent, short
from tightrope.report.table import holds
from tightrope.report.words import behavior_lines, model_lines

MODEL = ModelCheck("tabular", 1.1, 0.21, 1.3, 1.4, 0.15, 0.16, 0.17, 0.18, 1.9, 2.1, 0.22, 2.3, False)
BEHAVIOR = BehaviorCheck("tabular", -1.1, -1.2, 0.13, 0.14, 0.15, 1.6, (0.17, 0.18, 0.19), 0.21)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("an estimate of its bias", give_or_take(1.1, 0.21)),
        ("One-step error on held-out episodes", "1.4"),
        ("One-step error on the episodes it was fitted to", "1.3"),
        ("−log-likelihood of a held-out episode", give_or_take(2.1, 0.22)),
        ("The same of an episode it was fitted to", "1.9"),
        ("move its value, judging", "2.3"),
        ("pairs never logged", percent(0.15)),
        ("pairs that only one episode logged", percent(0.16)),
        ("the logged state is complete", "0.17"),
        ("residuals do not depend", "0.18"),
    ],
)
def test_a_models_numbers_have_their_names(words, told):
    assert [value for name, value in model_lines(MODEL, "episode") if words in name] == [told]
    assert len(model_lines(MODEL, "episode")) == 10


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("logged action, held out", short(-1.2)),
        ("on the episodes it was fitted to", short(-1.1)),
        ("never seen in that state", percent(0.13)),
        ("Calibration error", "0.14"),
        ("a true policy would show", "0.15"),
        ("standardised residuals", "1.6"),
        ("Smallest probability", "0.17"),
    ],
)
def test_a_behaviour_policys_numbers_have_their_names(words, told):
    assert [value for name, value in behavior_lines(BEHAVIOR) if words in name] == [told]


def test_what_was_not_measured_is_not_shown():
    nothing = {"unseen_mass": None, "fragile_mass": None, "memory": None, "misfit": None, "bias_bound": None}
    assert len(model_lines(replace(MODEL, **nothing), "episode")) == 5


@pytest.mark.parametrize(("value", "right"), [(0.9, True), (1.1, False)])
def test_a_bound_holds_on_its_side(value, right):
    lower = Bound(value, "lower", 0.95, 1.0, "is", "t", "approximate")
    assert holds(lower, 1.0) == right
    assert holds(replace(lower, side="upper"), 1.0) != right
    assert holds(replace(lower, value=1.0), 1.0)
    assert holds(replace(lower, value=1.0, side="upper"), 1.0)
