"""What the model check measures: the correction, unseen pairs, and whether the logged state is all there is."""

import numpy as np
import pytest

from tightrope import TrajectoryDataset
from tightrope.domains import situations, small
from tightrope.estimators.check import _memory, check_model
from tightrope.problem import Problem


def check(problem, data, effective=100.0):
    return check_model(Problem(data, problem.candidate), "auto", "low", effective=effective)


def chain(errors):
    """Three steps each of one pair (0, 0), led to by (1, 0) or (2, 0): δ of the last step is given, by episode."""
    n = len(errors)
    states = np.stack([1 + np.arange(n) % 2, np.zeros(n, int)], axis=1).reshape(-1)
    data = TrajectoryDataset(
        offsets=np.arange(0, 2 * n + 1, 2),
        rewards=np.zeros(2 * n),
        terminated=np.ones(n, dtype=bool),
        horizon=2,
        states=states,
        actions=np.zeros(2 * n, dtype=int),
    )
    return data, np.stack([np.zeros(n), errors], axis=1).reshape(-1)


def test_memory_by_hand():
    """Errors of +1 after one predecessor and -1 after the other: all 40 of the sum of squares lies between them.

    Under permutation that sum is about chi-square with one degree of freedom: P(> 40) is 2.5e-10. Errors that alternate
    within both predecessors leave nothing between them.
    """
    assert _memory(*chain(np.tile([1.0, -1.0], 20))) < 1e-7
    assert _memory(*chain(np.repeat(np.tile([1.0, -1.0], 10), 2))) > 0.5
    assert _memory(*chain(np.zeros(40))) is None


def test_memory_is_not_fooled_by_unequal_spread_or_rare_slips():
    """A predecessor with few visits and a wide spread, or errors that are nearly always 0, look like memory to a plain
    analysis of variance; exchanging errors within their pair and time does not fall for it.
    """
    rng = np.random.default_rng(0)
    slips = [_memory(*chain(np.where(rng.random(60) < 0.02, -50.0, 1.0))) for _ in range(60)]
    found = [p for p in slips if p is not None]
    assert sum(p < 1e-4 for p in found) == 0
    assert np.mean([p < 0.05 for p in found]) < 0.15


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
