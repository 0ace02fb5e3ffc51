"""The tables that other tools write, by their own names, checked against the numbers they were built from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import tightrope
from tests.logs import POLICY, columns, refused
from tightrope.cli import app

N = 9
PROBS = columns()["behavior_prob"]
VECTORS = np.arange(2.0 * N).reshape(N, 2) / 7
FLAGS = np.isin(np.arange(N), [2, 5])


def parquet(path, **made):
    """A Parquet file with lists for arrays of two dimensions, as other tools write it."""
    table = {
        name: pa.array(values.tolist(), pa.list_(pa.float32())) if np.ndim(values) == 2 else pa.array(values)
        for name, values in made.items()
    }
    pa.parquet.write_table(pa.table(table), path)
    return path


def said(data, start):
    (line,) = (line for line in data.reading if line.startswith(start))
    return line


def rllib(**changes):
    made = {
        "eps_id": np.repeat([990_123_456_789, 17, 42], 3),
        "t": np.tile([0, 1, 2], 3),
        "obs": VECTORS,
        "new_obs": VECTORS + 1,
        "actions": columns()["action"],
        "rewards": columns()["reward"],
        "action_prob": PROBS.astype(np.float32),
        "action_logp": np.log(PROBS).astype(np.float32),
        "action_dist_inputs": VECTORS,
        "terminateds": FLAGS,
        "truncateds": np.arange(N) == 8,
        "unroll_id": np.zeros(N, dtype=int),
    }
    return {name: values for name, values in (made | changes).items() if values is not None}


def test_rllib(tmp_path):
    data = tightrope.read(parquet(tmp_path / "rllib.parquet", **rllib()))
    order = np.r_[3:6, 6:9, 0:3]  # by episode: 17, 42, the long one
    assert data.episode_ids.tolist() == [17, 42, 990_123_456_789]
    assert data.rewards.tolist() == columns()["reward"][order].tolist()
    assert data.actions.tolist() == columns()["action"][order].tolist()
    assert data.terminated.tolist() == [True, False, True]
    np.testing.assert_allclose(data.states, VECTORS[order], rtol=1e-6)
    np.testing.assert_allclose(data.final_states, VECTORS[[5, 8, 2]] + 1, rtol=1e-6)
    np.testing.assert_allclose(data.behavior_log_probs, np.log(PROBS[order]), rtol=1e-6, atol=1e-7)
    assert said(data, "behavior") == "behavior: 'action_logp', read as a logarithm; 'action_prob' agrees"
    assert said(data, "episode") == "episode: 'eps_id'"
    assert said(data, "not used") == "not used: 'action_dist_inputs', 'unroll_id'"


@pytest.mark.parametrize("name", ["action_prob", "pscore", "propensity_score", "infos/action_prob"])
def test_names_of_probabilities(name):
    data = tightrope.read(columns(behavior_prob=None, **{name: PROBS}))
    np.testing.assert_allclose(data.behavior_log_probs, np.log(PROBS), rtol=1e-15)
    assert said(data, "behavior") == f"behavior: {name!r}, read as a probability"


@pytest.mark.parametrize("name", ["action_logp", "action_log_prob", "infos/action_log_probs", "log_probs"])
def test_names_of_logarithms(name):
    data = tightrope.read(columns(behavior_prob=None, **{name: np.log(PROBS)}))
    np.testing.assert_array_equal(data.behavior_log_probs, np.log(PROBS))
    assert said(data, "behavior") == f"behavior: {name!r}, read as a logarithm"


def test_lerobot(tmp_path):
    path = parquet(
        tmp_path / "lerobot.parquet",
        **{
            "observation.state": VECTORS,
            "action": VECTORS[:, ::-1],
            "episode_index": np.repeat([0, 1, 2], 3),
            "frame_index": np.tile([0, 1, 2], 3),
            "timestamp": np.tile([0, 0.1, 0.2], 3),
            "next.reward": columns()["reward"],
            "next.done": np.tile([False, False, True], 3),
            "index": np.arange(N),
            "log": np.linspace(-3, 2, N),
        },
    )
    data = tightrope.read(path, columns={"behavior_log_prob": "log"})
    np.testing.assert_allclose(data.states, VECTORS, rtol=1e-6)
    np.testing.assert_allclose(data.actions, VECTORS[:, ::-1], rtol=1e-6)
    assert data.rewards.tolist() == columns()["reward"].tolist()
    assert data.behavior_log_probs.tolist() == np.linspace(-3, 2, N).tolist()
    assert data.terminated.tolist() == [False] * 3  # nobody said so, and three steps are the horizon
    message = "episode 0 stops before the horizon, and 'next.done' does not say .*--column terminated=next.done"
    refused(path, message, horizon=5)
    told = tightrope.read(path, horizon=5, columns={"terminated": "next.done"})
    assert told.terminated.all()
    assert told.behavior_log_probs is None
    assert said(told, "behavior: no").endswith(
        "yours: " + 'columns={"behavior_prob": "..."} (--column behavior_prob=...)'
    )
    assert tightrope.read(path, horizon=5, incomplete="terminate").notes[0].numbers == {"episodes": 3, "of": 3}


def test_done_beside_truncated_tells_both():
    cut = np.arange(N) == 5
    data = tightrope.read(columns(done=np.tile([False, False, True], 3), truncated=cut))
    assert data.terminated.tolist() == [True, False, True]


def d4rl(**changes):
    made = {
        "observations": VECTORS,
        "next_observations": VECTORS + 1,
        "actions": VECTORS[:, ::-1],
        "rewards": columns()["reward"].astype(np.float32),
        "terminals": np.isin(np.arange(N), [1, 4]),
        "timeouts": np.arange(N) == 7,
        "infos/action_log_probs": np.linspace(-3, 2, N).astype(np.float32),
        "infos/qpos": np.ones((N, 3)),
        "metadata/policy/fc0/weight": np.ones((256, 11)),
        "metadata/algorithm": "SAC",
    }
    return {name: values for name, values in (made | changes).items() if values is not None}


def test_d4rl():
    data = tightrope.read(d4rl(), horizon=3, incomplete="drop")
    assert data.lengths.tolist() == [2, 3, 3]  # cut after rows 1, 4 and 7; row 8 begins what was never finished
    assert data.terminated.tolist() == [True, True, False]
    assert data.rewards.tolist() == columns()["reward"][:8].tolist()
    np.testing.assert_array_equal(data.states, VECTORS[:8])
    np.testing.assert_array_equal(data.actions, VECTORS[:8, ::-1])
    np.testing.assert_array_equal(data.final_states, VECTORS[[1, 4, 7]] + 1)
    np.testing.assert_allclose(data.behavior_log_probs, np.linspace(-3, 2, N)[:8], rtol=1e-6)
    assert str(data.notes[0]).startswith("dropped: 1 of 4")
    assert "a new one after each flagged end" in said(data, "episode")
    refused(d4rl(), "episode 3 stops after step 0 without being flagged", horizon=3)


def test_flags_that_may_miss_an_end_do_not_cut():
    refused(
        d4rl(timeouts=None), "the logs must have a column 'episode'.*'terminals' alone may not mark.*--column episode="
    )
    asked = tightrope.read(d4rl(timeouts=None), columns={"episode": None}, incomplete="terminate")
    assert asked.lengths.tolist() == [2, 3, 4]


def rlds(**changes):
    """Two episodes of two steps; each ends with a row that holds only its last observation."""
    made = {
        "observation": VECTORS[:6],
        "action": np.array([0, 1, 0, 1, 0, 0]),
        "reward": np.array([1.0, 2.0, 0.0, 3.0, 4.0, 0.0]),
        "is_first": np.array([1, 0, 0, 1, 0, 0], dtype=bool),
        "is_last": np.array([0, 0, 1, 0, 0, 1], dtype=bool),
        "is_terminal": np.array([0, 0, 1, 0, 0, 0], dtype=bool),
    }
    return {name: values for name, values in (made | changes).items() if values is not None}


@pytest.mark.parametrize("named", [False, True])
def test_rlds(named):
    source = rlds(episode_id=[5, 5, 5, 4, 4, 4], t=[0, 1, 2, 0, 1, 2]) if named else rlds()
    data = tightrope.read(source)
    first, second = ([3.0, 4.0], [1.0, 2.0]) if named else ([1.0, 2.0], [3.0, 4.0])
    assert data.rewards.tolist() == first + second
    assert data.lengths.tolist() == [2, 2]
    assert data.terminated.tolist() == ([False, True] if named else [True, False])
    np.testing.assert_array_equal(data.final_states, VECTORS[[5, 2]] if named else VECTORS[[2, 5]])
    assert "2 rows hold an episode's last observation" in said(data, "last")


def test_rlds_with_a_reward_on_the_last_row():
    paid = rlds(reward=np.array([1.0, 2.0, 9.0, 3.0, 4.0, 0.0]))
    refused(paid, "'reward' must be 0 where 'is_last' is set.*not at episode 0, step 2.*--column done=is_last")
    data = tightrope.read(paid, columns={"done": "is_last"})
    assert data.returns.tolist() == [12.0, 7.0]
    assert data.terminated.tolist() == [True, False]
    refused(rlds(is_last=[1, 0, 1, 0, 0, 1], reward=np.zeros(6)), "holds a last observation only")
    early = rlds(episode=[0, 0, 0, 1, 1, 1], t=[0, 1, 2, 0, 1, 2], is_last=[0, 1, 0, 0, 0, 1])
    refused(early, "'is_last' must be set on the last row .*episode 0, step 1, and the episode goes on")


# -- one step ----------------------------------------------------------------------------------------------------------


def open_bandit(**changes):
    made = {
        "timestamp": pd.date_range("2019-11-24", periods=N),
        "item_id": np.arange(N) % 4,
        "position": np.arange(N) % 3 + 1,
        "click": np.arange(N) % 2,
        "propensity_score": PROBS,
        "user_feature_0": ["hash"] * N,
    }
    return {name: values for name, values in (made | changes).items() if values is not None}


def test_open_bandit(tmp_path):
    path = tmp_path / "obd.parquet"
    pd.DataFrame(open_bandit()).to_parquet(path)
    data = tightrope.read(path)
    assert data.horizon == 1
    assert data.terminated.all()
    assert data.actions.tolist() == (np.arange(N) % 4).tolist()
    assert data.rewards.tolist() == (np.arange(N) % 2).tolist()
    np.testing.assert_allclose(data.behavior_log_probs, np.log(PROBS), rtol=1e-15)
    assert said(data, "every row") == "every row is an episode of one step, which then ended for good"
    assert tightrope.read(path, columns={"state": "position"}).states.tolist() == (np.arange(N) % 3 + 1).tolist()


def test_obp_feedback():
    """The dictionary with its settings and tables, some of them None, beside the rounds."""
    feedback = {
        "n_rounds": N,
        "n_actions": 4,
        "context": VECTORS,
        "action_context": np.eye(4),
        "action": np.arange(N) % 4,
        "position": None,
        "reward": np.arange(N) / 3,
        "expected_reward": np.ones((N, 4)),
        "pi_b": np.ones((N, 4, 1)) / 4,
        "pscore": PROBS,
    }
    data = tightrope.read(feedback, reward_range=(0, 4))
    np.testing.assert_array_equal(data.states, VECTORS)
    assert data.rewards.tolist() == (np.arange(N) / 3).tolist()
    np.testing.assert_allclose(data.behavior_log_probs, np.log(PROBS), rtol=1e-15)
    assert data.value_range == (0, 4)
    unknown = tightrope.read(feedback | {"pscore": None})
    assert unknown.behavior_log_probs is None
    assert unknown.lengths.tolist() == [1] * N


def test_one_step_only_when_nothing_suggests_otherwise():
    plain = {"action": columns()["action"], "reward": columns()["reward"], "behavior_prob": PROBS}
    refused(plain, "the logs must have columns 'episode', 't';.*one_step=True")
    assert tightrope.read(plain, one_step=True).lengths.tolist() == [1] * N
    refused(open_bandit(t=np.arange(N)), "the logs must have a column 'episode'")
    refused(open_bandit(), "the logs must have columns 'episode', 't'", one_step=False)


@pytest.mark.parametrize(("source", "asked"), [(open_bandit(), None), (columns(), True)], ids=["by its names", "asked"])
def test_one_step_logs_have_a_declared_horizon_of_one(source, asked):
    source = source | {"eval_prob": np.full(N, 0.25)}
    data = tightrope.read(source, one_step=asked, reward_range=(-1, 2))
    assert data.horizon == 1
    assert data.horizon_declared
    for estimator in ("is", "pdis"):
        assert tightrope.lower_bound(data, estimator=estimator, method="betting").guarantee == "exact"
    longer = tightrope.read(source, one_step=asked, reward_range=(-1, 2), horizon=3)  # what is asked for is kept
    assert longer.horizon == 3


def test_episodes_of_one_row_need_a_declared_horizon():
    """That each episode of these logs has one row does not say that none could have more."""
    data = tightrope.read(columns(episode=np.arange(N), t=np.zeros(N, dtype=int)), reward_range=(-1, 2))
    assert not data.horizon_declared
    with pytest.raises(tightrope.BoundError, match="missing: horizon"):
        tightrope.lower_bound(data, POLICY, estimator="is", method="betting")


# -- SCOPE-RL ----------------------------------------------------------------------------------------------------------


def scope(**changes):
    done = np.array([0, 0, 1, 0, 1, 1, 0, 0, 1], dtype=float)
    made = {
        "size": N,
        "n_trajectories": 3,
        "step_per_trajectory": 3,
        "action_type": "discrete",
        "n_actions": 2,
        "action_keys": None,
        "state": VECTORS,
        "action": columns()["action"],
        "reward": columns()["reward"],
        "done": done,
        "terminal": np.tile([0.0, 0.0, 1.0], 3),
        "info": {},
        "pscore": PROBS,
        "behavior_policy": "eps_greedy",
    }
    return made | changes


def test_scope_rl():
    data = tightrope.read(scope())
    kept = [0, 1, 2, 3, 4, 6, 7, 8]  # the second trajectory ended at its second step
    assert data.lengths.tolist() == [3, 2, 3]
    assert data.terminated.tolist() == [False, True, False]
    assert data.rewards.tolist() == columns()["reward"][kept].tolist()
    np.testing.assert_array_equal(data.states, VECTORS[kept])
    np.testing.assert_allclose(data.behavior_log_probs, np.log(PROBS[kept]), rtol=1e-15)
    assert data.reading[0] == "episodes, as SCOPE-RL holds them; 1 rows after an episode's end were left out"
    refused(scope(n_trajectories=4), "done must have n_trajectories=4 times")
    refused(scope(reward=np.zeros(3)), r"reward must have 9 rows; got shape \(3,\)")
    refused(scope(pscore=np.ones((N, 2))), "pscore must be the density of the whole action")
    refused(scope(n_trajectories="three"), "must be as SCOPE-RL writes them")


# -- the column map ----------------------------------------------------------------------------------------------------

OWN = {
    "who": columns()["episode"],
    "when": columns()["t"],
    "age": np.arange(9.0),
    "doses": VECTORS,
    "drug": columns()["action"],
    "gain": columns()["reward"],
    "p": PROBS,
}
MAP = {
    "episode": "who",
    "t": "when",
    "state": ["age", "doses"],
    "action": "drug",
    "reward": "gain",
    "behavior_prob": "p",
}


def test_column_map():
    data = tightrope.read(OWN, columns=MAP)
    np.testing.assert_array_equal(data.states, np.column_stack([np.arange(9.0), VECTORS]))
    assert data.actions.tolist() == columns()["action"].tolist()
    np.testing.assert_allclose(data.behavior_log_probs, np.log(PROBS), rtol=1e-15)
    assert said(data, "state") == "state: 'age', 'doses', 3 components"
    one = tightrope.read(OWN, columns=MAP | {"state": ["age"], "behavior_prob": None})
    assert one.states.shape == (9, 1)
    assert one.behavior_log_probs is None
    in_order = {name: values for name, values in OWN.items() if name != "when"}
    shuffled = tightrope.read(in_order, columns=MAP | {"t": None})
    assert shuffled.rewards.tolist() == data.rewards.tolist()
    assert said(shuffled, "t:") == "t: the order of the rows"


def test_map_outranks_names():
    data = tightrope.read(
        columns(behavior_log_prob=np.full(9, -1.0)), columns={"behavior_log_prob": "behavior_log_prob"}
    )
    assert data.behavior_log_probs.tolist() == [-1.0] * 9


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"propensity": "p"}, "every key of columns must be .*; got 'propensity'"),
        ({"behavior_prob": "q"}, r"columns\['behavior_prob'\] must be .*; got 'q'"),
        ({"reward": ["reward", "t"]}, r"columns\['reward'\] must be one column; got 2"),
        ({"behavior_prob": "reward", "behavior_log_prob": "t"}, "columns must name either 'behavior_prob' or"),
    ],
)
def test_bad_map(given, message):
    refused(columns(), message, columns=given)


# -- names that do not settle it ---------------------------------------------------------------------------------------


def test_two_candidates_for_one_role():
    source = rllib(episode_index=np.zeros(N, dtype=int))
    refused(
        source,
        r"more than one column could be the episode: .*. Say which to use: .*--column episode=eps_id",
    )
    assert tightrope.read(source, columns={"episode": "eps_id"}).n_trajectories == 3
    refused(
        rllib(actions=None, item_id=np.zeros(N), action_0=np.zeros(N)), "could be the action: 'item_id', 'action_0'"
    )


def test_two_probabilities_that_disagree():
    wrong = np.log(PROBS)
    wrong[4] -= 0.01
    source = rllib(action_logp=wrong)
    message = (
        r"columns 'action_prob' and 'action_logp' must agree, .*; got 0.5 and 0.495025 at episode 17, step 1.*--column "
    )
    refused(source, message + r"behavior_log_prob=action_logp.* or .*--column behavior_prob=action_prob")
    data = tightrope.read(source, columns={"behavior_prob": "action_prob"})
    np.testing.assert_allclose(data.behavior_log_probs[1], np.log(0.5), rtol=1e-7)


def test_our_own_name_outranks_the_others():
    data = tightrope.read(columns(action_logp=np.zeros(9), eps_id=np.arange(9)))
    np.testing.assert_allclose(data.behavior_log_probs, np.log(PROBS), rtol=1e-15)
    assert data.n_trajectories == 3


def test_logarithms_given_as_probabilities_and_back():
    logs = np.log(PROBS)
    refused(
        columns(behavior_prob=logs),
        r"'behavior_prob' must be a probability .*; got -0.69.*If these are logarithms.*_log_prob=behavior_prob",
    )
    same = tightrope.read(columns(behavior_prob=logs), columns={"behavior_log_prob": "behavior_prob"})
    assert same.behavior_log_probs.tolist() == logs.tolist()
    refused(
        columns(behavior_prob=None, action_logp=PROBS),
        r"'action_logp' must hold logarithms .*; got 1 at episode 12, step 1, and none is negative.*prob=action_logp",
    )
    back = tightrope.read(columns(behavior_prob=None, action_logp=PROBS), columns={"behavior_prob": "action_logp"})
    np.testing.assert_allclose(back.behavior_log_probs, logs, rtol=1e-15)


def test_missing_column_says_what_was_looked_for():
    refused(columns(reward=None), "column 'reward'; they have: episode, .* known too: rewards, next.reward.*reward=")
    data = tightrope.read(columns(behavior_prob=None, p=PROBS))
    with pytest.raises(tightrope.DataError, match=r"no behaviour probabilities.*--column behavior_prob="):
        tightrope.lower_bound(data, POLICY)


# -- the command line --------------------------------------------------------------------------------------------------


def test_commands_say_what_was_read(tmp_path):
    path = parquet(tmp_path / "own.parquet", **OWN, q=PROBS)
    given = [f"--column={role}={name if isinstance(name, str) else ','.join(name)}" for role, name in MAP.items()]
    seen = CliRunner().invoke(app, ["inspect", str(path), *given])
    assert seen.exit_code == 0, seen.output
    assert "behavior: 'p', read as a probability" in seen.output
    assert "state: 'age', 'doses', 3 components" in seen.output
    judged = CliRunner().invoke(app, ["evaluate", str(path), "--policy", "q", *given, "--json"])
    assert "eval: 'q', read as a probability" in judged.stderr
    assert "not used" not in judged.stderr
    assert "not used: 'q'" in seen.output
    twice = CliRunner().invoke(app, ["inspect", str(path), "--column", "t=when", "--column", "t=who"])
    assert twice.exit_code == 2
    assert "--column must be ROLE=NAME, each role once" in twice.stderr


def test_one_step_command(tmp_path):
    path = parquet(tmp_path / "bandit.parquet", reward=columns()["reward"], behavior_prob=PROBS)
    seen = CliRunner().invoke(app, ["inspect", str(path), "--one-step", "--column", "behavior_prob="])
    assert seen.exit_code == 0, seen.output
    assert "every row is an episode of one step" in seen.output
    assert "behavior: no probabilities" in seen.output
