"""A user's simulator as a domain, and the coverage command."""

import pickle

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.studies.policies import bent, calm, coin, firm, pushes
from tightrope import TightropeError
from tightrope.cli import BAD_INPUT, app
from tightrope.domains.from_environment import EnvironmentDomain
from tightrope.estimators import USUAL, is_model_based
from tightrope.studies.measure import UserDomain, named_methods
from tightrope.studies.study import Study, prepared
from tightrope.studies.summary import read_results

HERE = "tests.studies.policies"


def switch(horizon=3, **settings):
    return EnvironmentDomain(f"{HERE}:Switch-v0", coin, bent, horizon, **settings)


def test_logs_are_whole_episodes_with_the_behaviour_policys_probabilities():
    data = switch().logs(70, rng=np.random.default_rng(0))
    assert data.n_trajectories == 70
    assert data.behavior_log_probs == pytest.approx(np.log(0.5))
    assert (data.lengths[~data.terminated] == 3).all()
    assert data.terminated.any()
    assert not data.terminated.all()
    last = data.offsets[1:] - 1
    assert (data.actions[last][data.terminated] == 1).all()  # only that ends an episode
    assert (data.rewards == data.actions).all()
    within = np.setdiff1d(np.arange(data.n_steps), last)
    assert (data.states[within + 1] == data.actions[within]).all()
    assert (data.states[data.offsets[:-1]] == 0).all()
    assert (data.final_states == data.actions[last]).all()


def test_logs_follow_the_seed_and_differ_between_batches():
    first, again, other = (switch().logs(70, rng=np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert (first.actions == again.actions).all()
    assert len(first.actions) != len(other.actions) or (first.actions != other.actions).any()
    assert (first.take(range(32)).lengths != first.take(range(32, 64)).lengths).any()


def test_the_true_value_by_rollouts_agrees_with_the_exact_one():
    """With p = 0.8 for action 1 an episode goes on with probability 0.6: 0.8 (1 + 0.6γ + 0.36γ²)."""
    domain = switch(discount=0.5, truth_rollouts=4000)
    exact = 0.8 * (1 + 0.3 + 0.09)
    assert abs(domain.true_value - exact) < 4 * domain.true_value_error
    assert 0 < domain.true_value_error < 0.02
    assert abs(domain.behavior_value - 0.5 * (1 + 0.375 + 0.375**2)) < 4 * domain.behavior_value_error
    assert domain.true_value == switch(discount=0.5, truth_rollouts=4000).true_value


def test_a_native_vector_environment():
    data = EnvironmentDomain("CartPole-v1", calm, firm, 10).logs(40, rng=np.random.default_rng(0))
    assert data.states.shape == (data.n_steps, 4)
    assert (data.rewards == 1.0).all()
    within = np.setdiff1d(np.arange(data.n_steps), data.offsets[1:] - 1)
    # x moves by 0.02 times the velocity: the rows of an episode do follow each other.
    assert data.states[within + 1, 0] == pytest.approx(data.states[within, 0] + 0.02 * data.states[within, 1], abs=1e-6)


def test_continuous_actions_are_clipped_for_the_environment_and_logged_as_drawn():
    data = EnvironmentDomain("Pendulum-v1", pushes, pushes, 5).logs(20, rng=np.random.default_rng(0))
    assert data.actions.shape == (100, 1)
    assert data.actions.max() > 2.0
    assert data.behavior_log_probs == pytest.approx(-0.5 * (data.actions[:, 0] - 2) ** 2 - 0.5 * np.log(2 * np.pi))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"environment": "NoSuch-v0"}, "environment 'NoSuch-v0' cannot be made: .*doesn't exist"),
        ({"environment": "nosuchmodule:X-v0"}, "environment 'nosuchmodule:X-v0' cannot be made: .*nosuchmodule"),
        ({"environment": f"{HERE}:Endless-v0"}, "horizon must be given .* does not say when an episode ends"),
        ({"environment": f"{HERE}:Endless-v0", "horizon": -1}, "horizon must be at least 1; got -1"),
        ({"horizon": 7}, "horizon must be at most 3, because .*Switch-v0 cuts episodes off there; got 7"),
        ({"truth_rollouts": 1}, "truth_rollouts must be at least 2, for a standard error; got 1"),
        ({"behavior": f"{HERE}:nothing"}, "has no 'nothing'"),
    ],
)
def test_bad_words_are_named(words, message):
    settings = {"environment": f"{HERE}:Switch-v0", "behavior": f"{HERE}:coin", "candidate": f"{HERE}:bent"} | words
    with pytest.raises(TightropeError, match=message):
        UserDomain(**settings).load()


def test_a_domain_travels_without_its_environments():
    domain = switch()
    logs = domain.logs(5, rng=np.random.default_rng(0))
    copy = pickle.loads(pickle.dumps(domain))
    assert (copy.logs(5, rng=np.random.default_rng(0)).actions == logs.actions).all()
    assert copy.configuration() == domain.configuration()


def test_an_early_cut_and_odd_observations_are_refused():
    with pytest.raises(TightropeError, match="cut an episode off after 3 steps, before the horizon of 5"):
        switch(5).logs(20, rng=np.random.default_rng(0))
    with pytest.raises(
        TightropeError, match=r"Blackjack-v1 must observe numbers .*; it observes tuple.*FlattenObservation"
    ):
        EnvironmentDomain("Blackjack-v1", coin, bent, 5).logs(2, rng=np.random.default_rng(0))


def test_unnamed_methods_are_all_that_mean_something():
    found = prepared(Study("x", "clinic", (2,), 1, named_methods((), ())))[1]
    assert {one.label: one.bounds for one in found}["is"] == ("percentile", "bca", "studentized", "betting")
    assert {one.label: one.bounds for one in found}["wdr"] == ("percentile", "bca", "studentized")
    words = UserDomain("CartPole-v1", f"{HERE}:calm", f"{HERE}:firm", 5)
    labels = [one.label for one in prepared(Study("x", words, (2,), 1, named_methods((), ("t",))))[1]]
    assert labels == [name for name in USUAL if not is_model_based(name)]
    assert labels[:4] == ["is", "pdis", "wis", "pdwis"]
    with pytest.raises(TightropeError, match=r"estimator must be .*; got 'magick'"):
        named_methods(("magick",), ())
    with pytest.raises(TightropeError, match=r"method must be .*; got 'magick'"):
        named_methods((), ("magick",))


def call(*words):
    return CliRunner().invoke(app, ["coverage", *(str(word) for word in words)], env={"COLUMNS": "200"})


USER = ("--env", f"{HERE}:Switch-v0", "--behavior", f"{HERE}:coin", "--candidate", f"{HERE}:bent")


def test_coverage_of_a_users_simulator(tmp_path):
    few = ("--n", 8, "--n", 4, "--trials", 5, "--estimator", "pdwis", "--method", "percentile", "--method", "betting")
    done = call(*USER, *few, "--truth-rollouts", 500, "--side", "both", "--workers", 1, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert "by 500 roll-outs" in done.output
    assert "pdwis/percentile" in done.output
    table = pq.read_table(tmp_path / "results.parquet").to_pylist()
    assert len(table) == 2 * 5 * 2 * 3  # betting means nothing for pdwis; the recommended and the exact bound join
    assert {row["side"] for row in table} == {"lower", "upper"}
    told = read_results(tmp_path / "results.parquet").configuration
    assert told["domain"]["candidate"] == f"{HERE}:bent"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("moon",), 'domain must be "walker"'),
        ((), "give either a domain (walker"),
        (("clinic", *USER), "give either a domain"),
        (("--env", "CartPole-v1"), "--env needs --behavior"),
        (("clinic", "--n", 0), "each at least 1; got (0,)"),
        (("clinic", "--trials", 0), "trials must be at least 1; got 0"),
        (
            ("clinic", "--estimator", "pdwis", "--method", "betting"),
            "none of these methods is valid for these estimators",
        ),
        (("clinic", "--confidence", 2), "such as 0.95; got 2.0"),
        (("clinic", "--n-resamples", 3), "n_resamples is 3, too few"),
        (("clinic", "--workers", 0), "workers must be at least 1; got 0"),
    ],
)
def test_bad_arguments_are_one_line_and_nothing_is_written(words, message, tmp_path):
    done = call(*words, "--out", tmp_path / "out")
    assert done.exit_code == BAD_INPUT, done.output
    assert message in done.output
    assert done.output.count("\n") == 1
    assert not (tmp_path / "out").exists()
