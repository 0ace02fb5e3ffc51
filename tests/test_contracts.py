"""What is asked of estimators, bounds, models and statistics stands in their contracts: nobody feels around for it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import tightrope
from tightrope import TightropeError
from tightrope.base.behavior import BehaviorModel
from tightrope.base.problem import Problem
from tightrope.behaviors import BEHAVIORS
from tightrope.bounds import METHODS, PROCESS_METHODS, BootstrapBound, ExactBound, ProcessBound
from tightrope.domains import small
from tightrope.estimators import ESTIMATORS, WIS, Estimator, IndependentEstimator
from tightrope.estimators.base import LAST
from tightrope.estimators.gain import gain
from tightrope.evaluation.work import is_valid
from tightrope.models import MODELS, Model

SOURCES = Path(tightrope.__file__).parent
STEPS = {"offsets": [0, 1, 2], "rewards": [0.0, 1.0], "terminated": [True, True], "horizon": 2}
FEELERS = {"getattr", "hasattr"}

# Objects without a contract of ours: other people's, and our own records whose fields are gone through by name.
FOREIGN = {
    ("adapters/acting.py", "actor"): "somebody's policy",
    ("adapters/d3rlpy_algos.py", "algo"): "d3rlpy's algorithm",
    ("adapters/functions.py", "given"): "what somebody's function returned, perhaps a tensor",
    ("adapters/load.py", "imported"): "the module that --policy names",
    ("adapters/pickled.py", "library"): "Stable-Baselines3's classes by name",
    ("adapters/scikit_learn.py", "model"): "scikit-learn's classifier",
    ("adapters/stable_baselines.py", "model"): "Stable-Baselines3's model",
    ("adapters/stable_baselines.py", "policy"): "Stable-Baselines3's policy",
    ("adapters/table_files.py", "source"): "whatever was given as a policy",
    ("base/blas.py", "library"): "what threadpoolctl or numba may have",
    ("base/content.py", "module"): "a module, which may have no file",
    ("base/content.py", "sys.modules.get(module)"): "a module, which may have no file",
    ("base/content.py", "value"): "anything that a study holds",
    ("base/dataset.py", "self"): "fields of the record by name",
    ("behaviors/__init__.py", "chosen"): "perhaps somebody's classifier",
    ("behaviors/classifier.py", "frozen"): "somebody's classifier",
    ("behaviors/classifier.py", "self.classifier"): "somebody's classifier",
    ("domains/from_environment.py", "self"): "fields of the record by name",
    ("domains/gym_episodes.py", "env.spec"): "Gymnasium's specification, which an environment may not have",
    ("domains/gym_episodes.py", "environment"): "somebody's environment or the function that makes it",
    ("domains/gym_episodes.py", "layer"): "one of Gymnasium's wrappers",
    ("domains/gym_episodes.py", "mode"): "Gymnasium's autoreset mode",
    ("domains/gym_episodes.py", "space"): "Gymnasium's space",
    ("domains/gym_episodes.py", "specification"): "Gymnasium's specification, which an environment may not have",
    ("io/buffers.py", "episode"): "d3rlpy's episode",
    ("io/buffers.py", "held[0]"): "perhaps d3rlpy's episode",
    ("io/buffers.py", "source"): "whatever was given to read",
    ("io/minari.py", "episode"): "Minari's episode",
    ("io/minari.py", "source"): "whatever was given to read",
    ("io/tables.py", "frame"): "whatever was given to read",
    ("io/tables.py", "source"): "whatever was given to read",
    ("io/tables.py", "values"): "a column of whatever was given to read",
    ("models/learner.py", "learner"): "somebody's regressor",
    ("models/learner.py", "self.regressor"): "somebody's regressor",
    ("models/tabular/rows.py", "builder"): "LLVM's instructions by name",
    ("report/domains.py", "car"): "one of two policies by name",
    ("report/domains.py", "world"): "one of two policies by name",
    ("report/log.py", "to"): "an open run of some other tool",
    ("studies/problems.py", "whole"): "fields of the record by name",
    ("studies/identity.py", "domain"): "one of two policies by name",
    ("studies/identity.py", "self"): "one of two policies by name",
    ("studies/pages/figures.py", "line"): "one of two means by name",
    ("studies/runner.py", "row"): "fields of a row by name",
}


def felt(source):
    """What ``getattr`` and ``hasattr`` are called on."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FEELERS:
            yield ast.unparse(node.args[0])


def test_nobody_feels_around_for_what_a_contract_should_say():
    paths = SOURCES.rglob("*.py")
    found = {(path.relative_to(SOURCES).as_posix(), what) for path in paths for what in felt(path.read_text("utf-8"))}
    assert found == FOREIGN.keys()


@pytest.mark.parametrize("code", ['getattr(estimator, "uses_ratios", True)', 'if hasattr(method, "needs"): pass'])
def test_the_test_finds_what_is_felt_for(code):
    assert list(felt(code))


def test_everything_registered_keeps_its_contract():
    for name, make in ESTIMATORS.items():
        assert isinstance(make(), Estimator)
        assert make().name == name
    kinds = (BootstrapBound, ExactBound, ProcessBound)
    for name, method in {**METHODS, **PROCESS_METHODS}.items():
        assert sum(isinstance(method, kind) for kind in kinds) == 1, f"{name} is of one kind"
        assert method.name == name
    for name, make in MODELS.items():
        assert isinstance(make(), Model)
        assert make().name == name
    for name, make in BEHAVIORS.items():
        assert isinstance(make(), BehaviorModel)
        assert make().name == name


def test_places_in_the_order_of_advice_differ():
    """Two alike would leave the choice to the order in which somebody listed them."""
    for declared in ({}, {"return_range": (0.0, 9.0)}):
        data = tightrope.TrajectoryDataset(**STEPS, **declared)
        check_places([make().preference(data) for make in ESTIMATORS.values()])
    for kinds in ((BootstrapBound,), (ExactBound, ProcessBound)):
        check_places(
            [one.preference for one in (*METHODS.values(), *PROCESS_METHODS.values()) if isinstance(one, kinds)]
        )


def check_places(places):
    measured = [place for place in places if place < LAST]
    assert len(set(measured)) == len(measured)
    assert max(places) <= LAST


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_gain_is_what_its_estimator_is(name):
    made = ESTIMATORS[name]()
    gained, data = gain(made), tightrope.TrajectoryDataset(**STEPS)
    traits = ("name", "uses_ratios", "shares_weights", "model", "fitted_to_all", "without_model")
    for trait in (*traits, "rests_on_model", "corrects_model"):
        assert getattr(gained, trait) == getattr(made, trait), trait
    assert gained.preference(data) == made.preference(data)
    assert isinstance(gained, IndependentEstimator) == isinstance(made, IndependentEstimator)


@dataclass(frozen=True)
class Own(Estimator):
    """A model of one's own under a name that nobody knows."""

    name: ClassVar[str] = "own"
    uses_ratios: ClassVar[bool] = False
    model: str = "tabular"

    def __call__(self, problem):
        return ESTIMATORS["mb"](self.model)(problem)


def test_an_estimator_of_ones_own_is_judged_by_what_it_is_and_not_by_its_name():
    problem = small("walker")
    data = problem.logs(300, rng=np.random.default_rng(1))
    options = {"methods": ["percentile"], "n_resamples": 100, "side": "upper"}
    result = tightrope.evaluate(data, problem.candidate, estimators=[Own()], **options)
    named = tightrope.evaluate(data, problem.candidate, estimators=["mb"], **options)
    assert [bound.rests_on_model for bound in result] == [True]
    assert result.advice == named.advice.replace("MB with", "OWN with")
    assert "if you believe the model" in result.advice
    assert "rests on a model alone" in result.verdict.text
    assert not is_valid(Own(), PROCESS_METHODS["robust"])  # which bounds another's value


def test_what_keeps_no_contract_is_refused():
    problem = small("walker")
    data, policy = problem.logs(3, rng=np.random.default_rng(1)), problem.candidate
    for wrong in (3, object(), WIS()(Problem(data, policy))):
        with pytest.raises(TightropeError, match=r"estimator must be .*an estimator object; got"):
            tightrope.lower_bound(data, policy, estimator=wrong)
        with pytest.raises(TightropeError, match=r"method must be .*a bound object; got"):
            tightrope.lower_bound(data, policy, method=wrong)
