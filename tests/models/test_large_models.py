"""Models of logs that do not fit into memory: the same bits, and memory that does not grow with the steps."""

from __future__ import annotations

import dataclasses
import tracemalloc

import numpy as np
import pytest

import tightrope
from tests.models import systems
from tightrope.base import dataset, folder, ratios
from tightrope.base.folder import Folder, Scratch, distinct, mapping_of
from tightrope.base.policy import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.estimators import DR, MB, WDR
from tightrope.estimators.doubly_robust import cross_fitted
from tightrope.evaluation.model_check import check_model
from tightrope.functional import statistic
from tightrope.functional.engines import replicate
from tightrope.functional.resampling import Bayesian, Multinomial
from tightrope.models import GivenValues, LinearModel, PolynomialModel, TabularModel
from tightrope.models.gram import every
from tightrope.models.likelihood import log_likelihoods, misfit
from tightrope.models.rollouts import model as rollouts
from tightrope.models.tabular import fit
from tightrope.models.tabular.blocks import lanes

WALKER = small("walker")
LOGS = WALKER.logs(400, rng=np.random.default_rng(3))
RNG = np.random.default_rng(0)
NOISY = dataclasses.replace(  # as many kinds as steps
    LOGS, rewards=LOGS.rewards + RNG.normal(size=LOGS.n_steps), reward_range=None, return_range=None
)
GIVEN = GivenValues(RNG.normal(size=(int(LOGS.states.max()) + 1, 2)))


def in_files(data, place=None):
    """The same logs in a folder that allows no memory at all."""
    kept = Folder(place, memory=0)

    def moved(values):
        if values is None:
            return None
        array = kept.empty(values.shape, values.dtype)
        array[:] = values
        return array

    names = ("rewards", "behavior_log_probs", "eval_log_probs", "states", "actions")
    return dataclasses.replace(data, folder=kept, **{name: moved(getattr(data, name)) for name in names})


def all_fits(model):
    return [
        MB(model=model),
        *(kind(model=model, fit=fit) for kind in (DR, WDR) for fit in ("cross", "shared", "refit")),
    ]


def assert_same(data, policy, model, n_resamples=24):
    """Replicates, standard errors and the check of the model, with pieces of any size."""
    problems = [Problem(data, policy), Problem(in_files(data), policy)]
    for estimator in all_fits(model):
        for scheme in (Multinomial(), Bayesian()):
            one, other = (
                replicate([estimator(problem)], scheme, n_resamples=n_resamples, seed=1, standard_errors=True)[0]
                for problem in problems
            )
            assert one.estimate == other.estimate
            np.testing.assert_array_equal(one.values, other.values)
            assert (one.standard_errors is None) == (other.standard_errors is None)
            if one.standard_errors is not None:
                np.testing.assert_array_equal(one.standard_errors, other.standard_errors)
    one, other = (check_model(problem, model, "low", effective=100.0) for problem in problems)
    assert repr(one) == repr(other)


@pytest.fixture(params=[(1 << 18, 1 << 18), (50, 3)], ids=["large parts", "small parts"])
def _parts(request, monkeypatch):
    monkeypatch.setattr(folder, "PART", request.param[0])
    monkeypatch.setattr(folder, "FEW", request.param[1])


@pytest.mark.usefixtures("_parts")
@pytest.mark.parametrize("data", [LOGS, NOISY], ids=["few rewards", "many rewards"])
@pytest.mark.parametrize(
    "model", [TabularModel(), TabularModel(smoothing=0.5), GIVEN], ids=["tabular", "smoothed", "given"]
)
def test_files_give_the_same_bits(data, model):
    assert_same(data, WALKER.candidate, model)


FEW_ROLLOUTS = {"n_rollouts": 2, "point_rollouts": 60, "replicate_rollouts": 20}


@pytest.mark.usefixtures("_parts")
@pytest.mark.parametrize(
    "model", [LinearModel(**FEW_ROLLOUTS), PolynomialModel(**FEW_ROLLOUTS)], ids=["linear", "cubic"]
)
@pytest.mark.parametrize("ends", [False, True])
def test_regressions_in_files_give_the_same_bits(model, ends):
    data = systems.walks(60) if ends else systems.logs(40)
    data = dataclasses.replace(data, behavior_log_probs=np.full(data.n_steps, -1.0))
    assert_same(data, systems.UP if ends else systems.CANDIDATE, model, n_resamples=6)


def test_small_floats_in_files():
    data = systems.logs(40)
    data = dataclasses.replace(
        data, states=data.states.astype(np.float32), behavior_log_probs=np.full(data.n_steps, -1.0)
    )
    assert_same(data, systems.CANDIDATE, LinearModel(**FEW_ROLLOUTS), n_resamples=6)


@pytest.mark.parametrize(("stride", "most"), [(1, None), (3, None), (1, 10), (7, 4), (1000, None)])
def test_every_so_many_known_steps(monkeypatch, stride, most):
    monkeypatch.setattr(folder, "PART", 11)
    known = np.random.default_rng(stride).random(200) < 0.6
    np.testing.assert_array_equal(every(known, stride, most), np.flatnonzero(known)[::stride][:most])


def test_the_size_of_parts_changes_nothing(monkeypatch):
    """Sorting, numbering and counting some episodes at a time."""
    found = []
    for size, few in ((1 << 18, 1 << 18), (50, 1 << 18), (7, 2)):
        monkeypatch.setattr(folder, "PART", size)
        monkeypatch.setattr(folder, "FEW", few)
        problem = Problem(in_files(NOISY), WALKER.candidate)
        found.append([estimator(problem)(np.ones((1, 400)))[0] for estimator in all_fits(TabularModel())])
    assert found[0] == found[1] == found[2]


def test_names_in_files_have_the_same_numbers(monkeypatch):
    monkeypatch.setattr(folder, "PART", 50)
    names = np.array([f"s{k}" for k in range(int(LOGS.states.max()) + 1)])
    named = dataclasses.replace(LOGS, states=names[LOGS.states], final_states=None)
    one, other = (Problem(data).coded.dataset for data in (named, in_files(named)))
    np.testing.assert_array_equal(one.states, other.states)
    assert mapping_of(other.states) is not None
    np.testing.assert_array_equal(np.sort(names)[other.states], named.states)


def test_cross_fitted_values_of_small_parts(monkeypatch):
    """Each fold's steps, wherever the parts are cut."""
    values = []
    for size in (1 << 18, 20):
        monkeypatch.setattr(folder, "PART", size)
        values.append(cross_fitted(LOGS, TabularModel().prepare(Problem(LOGS, WALKER.candidate), anchor="low"), 5))
    np.testing.assert_array_equal(values[0], values[1])
    assert np.isfinite(values[0]).all()


def test_more_kinds_than_are_counted_together(monkeypatch):
    values = []
    for size in (1 << 16, 5):
        monkeypatch.setattr(fit, "KINDS", size)
        model = TabularModel().prepare(Problem(NOISY, WALKER.candidate), anchor="low")
        values.append(model.values(np.random.default_rng(1).uniform(size=(3, 400))))
    np.testing.assert_array_equal(values[0], values[1])


@pytest.mark.parametrize("few", [1, 10_000])
def test_distinct_values(monkeypatch, few):
    monkeypatch.setattr(folder, "FEW", few)
    monkeypatch.setattr(folder, "PART", 10)
    for values in (np.array([3, 1, 3, 2] * 17), np.arange(40.0)[::-1], np.zeros(25), np.zeros(0), np.array(["b", "a"])):
        for scratch in (None, Scratch(Folder())):
            np.testing.assert_array_equal(distinct(values, scratch), np.unique(values))


def test_files_of_arrays_go_away_with_them(tmp_path):
    place = Folder(tmp_path)
    array = place.empty((3, 2), np.int32)
    part = array[1:]
    del array
    part[:] = 7
    assert len(list(place.path.iterdir())) == 1
    del part
    assert not list(place.path.iterdir())


# -- memory ----------------------------------------------------------------------------------------------------

STEPS, STATES = 100, 30


def walks(n, rng):
    """Logs of n long episodes with continuous rewards, in files."""
    moves = rng.integers(0, 3, (n, STEPS))
    data = tightrope.TrajectoryDataset(
        offsets=np.arange(n + 1) * STEPS,
        rewards=rng.normal(size=n * STEPS),
        terminated=np.ones(n, dtype=bool),
        horizon=STEPS,
        states=(np.cumsum(moves, axis=1) % STATES).ravel(),
        actions=rng.integers(0, 2, n * STEPS),
        behavior_log_probs=np.full(n * STEPS, np.log(0.5)),
    )
    return in_files(data)


def peak(call):
    """The most bytes that a call held at a time; files do not count."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "estimator",
    [WDR(), DR(fit="shared"), WDR(fit="refit"), MB(), WDR(model=GivenValues(RNG.normal(size=(STATES, 2))))],
    ids=["wdr", "dr shared", "wdr refit", "mb", "wdr given"],
)
def test_memory_does_not_grow_with_the_steps(estimator, monkeypatch):
    """420,000 more steps may take some numbers for each of their 4,200 episodes, not one for each of them."""
    for module, name in ((folder, "PART"), (folder, "FEW"), (ratios, "ASKED")):
        monkeypatch.setattr(module, name, 1 << 14)
    monkeypatch.setattr(statistic, "KEPT_BYTES", 0)
    monkeypatch.setattr(statistic, "COLUMN_BYTES", 1 << 14)  # two columns of 1,024 episodes: less than the fewer logs
    monkeypatch.setattr(dataset, "CHUNK_BYTES", 1 << 16)  # of which several threads may hold one each
    probs = 0.5 + RNG.uniform(-0.02, 0.02, STATES)
    policy = TabularPolicy(np.stack([probs, 1 - probs], axis=1))
    few, many = (walks(n, np.random.default_rng(n)) for n in (1400, 5600))

    def work(data):
        problem = Problem(data, policy)
        replicate([estimator(problem)], Multinomial(), n_resamples=4, seed=0, standard_errors=True, n_jobs=1)
        check_model(problem, estimator.model, "low", effective=100.0)

    work(few)  # compiles
    less, more = (peak(lambda data=data: work(data)) for data in (few, many))
    assert more - less < 4 * 420_000
    assert more < 120 * many.n_steps / 2


def test_memory_of_a_regression_does_not_grow_with_the_steps(monkeypatch):
    """The same of MB with a linear model, of roll-outs from logged steps, and of the likelihood."""
    for module, name in ((folder, "PART"), (ratios, "ASKED")):
        monkeypatch.setattr(module, name, 1 << 12)
    monkeypatch.setattr(rollouts, "LANES", 400)
    model = LinearModel(n_rollouts=2, point_rollouts=60, replicate_rollouts=20)
    problems = []
    for n in (20, 500, 2000):
        data = systems.logs(n, 40)
        data = in_files(dataclasses.replace(data, behavior_log_probs=np.full(data.n_steps, -1.0)))
        problems.append(Problem(data, systems.CANDIDATE))

    def work(problem):
        MB(model=model)(problem)(np.ones((2, problem.dataset.n_trajectories)))

    def look(problem):
        prepared = model.prepare(problem, anchor="low")
        few = np.arange(problem.dataset.n_trajectories) < 10
        prepared.control_variates(np.ones(len(few)), few)
        log_likelihoods(prepared, np.ones(len(few)))
        misfit(prepared)

    for call in (work, look):
        _, less, more = (peak(lambda problem=problem, call=call: call(problem)) for problem in problems)
        assert more - less < 8 * 60_000


def test_roll_outs_from_every_step_of_large_logs_are_refused(monkeypatch):
    """Only for logs in files; mb does without, and its check looks at what is left."""
    monkeypatch.setattr(rollouts, "MOST_SIMULATED", 5000)
    data = systems.logs(40)
    data = dataclasses.replace(data, behavior_log_probs=np.full(data.n_steps, -1.0))
    model, options = LinearModel(**FEW_ROLLOUTS), {"method": "percentile", "n_resamples": 20}
    tightrope.lower_bound(data, systems.CANDIDATE, estimator="wdr", model=model, **options)
    kept = in_files(data)
    with pytest.raises(tightrope.DataError, match=r"2 roll-outs twice from each of the 320 logged steps: 6e\+03 steps"):
        tightrope.lower_bound(kept, systems.CANDIDATE, estimator="wdr", model=model, **options)
    bounds = [
        tightrope.lower_bound(logs, systems.CANDIDATE, estimator="mb", model=model, **options) for logs in (data, kept)
    ]
    assert bounds[0].value == bounds[1].value
    check = check_model(Problem(kept, systems.CANDIDATE), model, "low", effective=100.0)
    assert np.isnan([check.correction, check.training_error, check.held_out_error]).all()
    assert "too large to simulate from every step" in check.warnings[-1].text
    assert check.misfit is not None
    assert check.likelihood_held_out is not None


@pytest.mark.parametrize("scratch", [None, Scratch()], ids=["none", "in memory"])
def test_lanes_lie_in_cache_lines_of_their_own(scratch):
    for count in (3, folder.FEW + 1):
        assert lanes(count, scratch).ctypes.data % 64 == 0
