"""What the model check measures: the correction, unseen pairs, and whether the logged state is all there is."""

import numpy as np
import pytest

from tightrope import TrajectoryDataset
from tightrope.domains import situations, small
from tightrope.estimators.check import _memory, check_model
from tightrope.problem import Problem


def check(problem, data, effective=100.0):
    return check_model(Problem(data, problem.candidate), "auto", "low", effective=effective)


def test_memory_by_hand():
    """One pair, twenty visits after each of two predecessors (the start, itself), δ = +1 and -1: all between groups.

    The pair's variance is 1 and its mean 0, so chi-square is 20 + 20 = 40 with one degree of freedom: p = 2.5e-10.
    """
    data = TrajectoryDataset(
        offsets=np.arange(0, 41, 2),
        rewards=np.zeros(40),
        terminated=np.ones(20, dtype=bool),
        horizon=2,
        states=np.zeros(40, dtype=int),
        actions=np.zeros(40, dtype=int),
    )
    assert _memory(data, np.tile([1.0, -1.0], 20)) == pytest.approx(2.5396e-10, rel=1e-3)
    assert _memory(data, np.repeat([1.0, -1.0], 20)) == pytest.approx(1.0)  # the same within both groups
    assert _memory(data, np.zeros(40)) is None


@pytest.mark.parametrize("name", ["walker", "bonus", "decline"])
def test_a_markov_process_seldom_looks_as_if_it_remembered(name):
    """Forty data sets: p-values below 0.05 at most as often as 5 % allow (7 or more has probability 0.4 %)."""
    problem = small(name)
    found = [check(problem, problem.logs(200, rng=np.random.default_rng([5, s]))).memory for s in range(40)]
    assert sum(p < 0.05 for p in found) <= 6
    assert min(found) > 1e-4


def test_a_hidden_state_is_noticed_without_any_overlap():
    problem = next(p for p in situations() if p.observe is not None)
    found = check(problem, problem.logs(60, rng=np.random.default_rng(1)), effective=0.0)
    assert found.memory < 1e-4
    assert any("depends on what came before" in text for text in found.warnings)


def test_the_correction_is_the_models_bias():
    """To the model both steps look alike and earn 0.1 under the behaviour policy's mix: V̂ = 0.2, the truth is -0.2."""
    problem = next(p for p in situations() if p.observe is not None)
    found = check(problem, problem.logs(4000, rng=np.random.default_rng(2)))
    assert found.correction == pytest.approx(-0.4, abs=4 * found.correction_error)
    assert found.correction_error < 0.05


def test_deterministic_moves_leave_no_residue_and_stochastic_ones_do():
    cliff, walker = small("cliff"), small("walker")
    assert check(cliff, cliff.logs(50, rng=np.random.default_rng(3))).residue_free
    assert not check(walker, walker.logs(50, rng=np.random.default_rng(3))).residue_free


def test_unseen_pairs_are_warned_of():
    problem = situations()[3]
    found = check(problem, problem.logs(50, rng=np.random.default_rng(4)))
    assert found.unseen_mass == pytest.approx(0.8)
    assert any(text.startswith("unseen-pairs: 80.0%") for text in found.warnings)
