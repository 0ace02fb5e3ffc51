"""Laws of the model check: the correction is that of held-out models, and time explains what only looks like memory."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from tests.models import systems
from tightrope import TrajectoryDataset, evaluate
from tightrope.base.problem import Problem
from tightrope.domains import situations, small
from tightrope.estimators import WDR
from tightrope.estimators.doubly_robust import held_out_values
from tightrope.evaluation.model_check import _memory, check_model
from tightrope.models import LinearModel
from tightrope.models.likelihood import misfit
from tightrope.models.residuals import td_errors


@pytest.mark.parametrize("name", ["walker", "bonus", "decline", "cliff"])
def test_the_held_out_model_and_its_correction_are_wdr(name):
    """WDR is the mean of v̂_0 and the correction, both of models that have not seen the trajectory in question."""
    made = small(name)
    problem = Problem(made.logs(60, rng=np.random.default_rng(7)), made.candidate)
    check = check_model(problem, "auto", "low", effective=100.0)
    starts = held_out_values(problem, "auto", "low", 5)[1][problem.dataset.offsets[:-1]]
    assert check.correction == pytest.approx(WDR()(problem).estimate - starts.mean(), rel=1e-9, abs=1e-9)
    deltas = td_errors(problem.dataset, *held_out_values(problem, "auto", "low", 5))
    assert check.held_out_error == pytest.approx(np.sqrt(np.square(deltas).mean()))


def test_a_model_that_repeats_its_data_is_still_corrected():
    """Deterministic moves: fitted to all logs the model leaves no TD error at all, and would never be contradicted."""
    made = small("cliff")
    problem = Problem(made.logs(60, rng=np.random.default_rng(7)), made.candidate)
    check = check_model(problem, "auto", "low", effective=100.0)
    assert check.residue_free
    assert check.training_error < 1e-9 < check.held_out_error
    assert abs(check.correction) > 1e-3
    assert check.correction_error > 1e-3


def reached_twice(shares, rng, *, remembers=False):
    """Episodes that reach state 0 at time 1 or at time 2, from state 1 or 2; their errors there hang on the time alone.

    ``shares`` say how often it is state 1 at each of the two times. With ``remembers`` they hang on it too.
    """
    states, errors, lengths = [], [], []
    for time, share in zip((1, 2), shares, strict=True):
        for came_from in np.where(rng.random(150) < share, 1, 2):
            states += [3] * (time - 1) + [came_from, 0]
            errors += [0.0] * time + [(1.0 if time == 1 else -1.0) + remembers * (came_from - 1.5) + rng.normal()]
            lengths.append(time + 1)
    data = TrajectoryDataset(
        offsets=np.cumsum([0, *lengths]),
        rewards=np.zeros(len(states)),
        terminated=np.ones(len(lengths), dtype=bool),
        horizon=3,
        states=np.array(states),
        actions=np.zeros(len(states), dtype=int),
    )
    return data, np.array(errors)


def test_what_time_explains_is_no_memory():
    """At time 1 state 0 is reached from state 1, at time 2 from state 2, nine times of ten. What is earned there hangs
    on the time, as the value of a finite horizon does: over both times it looks as if it hung on the past.
    """
    tails = [_memory(*reached_twice((0.9, 0.1), np.random.default_rng(seed))) for seed in range(30)]
    assert sum(p < 0.05 for p in tails) <= 5  # 6 or more of 30 have probability 0.3 %
    assert min(tails) > 1e-3
    assert _memory(*reached_twice((0.9, 0.1), np.random.default_rng(0), remembers=True)) < 1e-3


def test_the_smallest_of_several_p_values_is_multiplied_by_their_number(monkeypatch):
    """A state of two numbers is two targets, and the smaller of two p-values is no p-value itself."""
    tails = iter([0.5, 0.03])
    monkeypatch.setattr(import_module(misfit.__module__), "score_test", lambda *_: next(tails))
    problem = Problem(systems.logs(30, seed=0), systems.CANDIDATE)
    assert misfit(LinearModel(reward=systems.linear_reward).prepare(problem, anchor="low")) == pytest.approx(2 * 0.03)


def test_pairs_that_one_trajectory_holds_by_hand():
    """Three episodes stay in state 0, one in state 1, on which a quarter of the candidate's steps fall: however often
    the one trajectory visits it, it alone holds that pair.
    """
    data = TrajectoryDataset(
        offsets=np.array([0, 2, 4, 6, 8]),
        rewards=np.zeros(8),
        terminated=np.zeros(4, dtype=bool),
        horizon=2,
        states=np.array([0, 0, 0, 0, 0, 0, 1, 1]),
        actions=np.zeros(8, dtype=int),
    )
    check = check_model(Problem(data, np.ones((2, 1))), "tabular", "low", effective=0.0)
    assert (check.unseen_mass, check.fragile_mass) == (0.0, 0.25)
    assert {"share": 0.25} in [one.numbers for one in check.warnings if one.code == "fragile-pairs"]
    twice = check_model(Problem(data.take([0, 1, 2, 3, 3]), np.ones((2, 1))), "tabular", "low", effective=0.0)
    assert twice.fragile_mass == 0.0  # a copy is another trajectory


def test_a_robust_bound_hears_that_its_model_is_contradicted():
    """Part of the state is hidden: the process is not Markov in what is logged, on which exactness rests."""
    made = next(one for one in situations() if one.observe is not None)
    data = made.logs(400, rng=np.random.default_rng(1))
    result = evaluate(data, made.candidate, estimators=["mb"], methods=["robust"], strict=True)
    assert any(one.code == "model-contradicted" for one in result.bounds[0].warnings)
    assert result.believed == ()
