"""Everything that is missing is said in one message."""

from __future__ import annotations

import pytest

import tightrope
from tests.logs import POLICY, columns, refused


@pytest.mark.parametrize(
    ("left_out", "listed"),
    [
        (("reward", "t"), "'t', 'reward'"),
        (("episode", "reward"), "'episode', 'reward'"),
        (("episode", "t", "reward"), "'episode', 't', 'reward'"),
    ],
)
def test_all_columns_that_are_missing_are_named_at_once(left_out, listed):
    refused(columns(**dict.fromkeys(left_out)), f"the logs must have columns {listed}; they have: ")
    for role in left_out:
        refused(columns(**dict.fromkeys(left_out)), rf"known too for '{role}': .*--column {role}=")


def test_a_typo_among_several_is_answered():
    refused(columns(reward=None, t=None, rewrad=[0.0] * 9), r"'t', 'reward'; they have: .*Did you mean \"rewrad\"\?")


def test_rows_without_episode_and_time_may_be_one_step_logs():
    refused(columns(episode=None, t=None), r"'episode', 't'; .*one_step=True \(--one-step\)")


def test_a_policy_needs_states_and_actions_both():
    logs = tightrope.read(columns(state=None, action=None))
    with pytest.raises(tightrope.PolicyError, match=r"a column state \(or obs_\*\) and a column action \(or action"):
        tightrope.estimate(logs, POLICY)
    bare = tightrope.read(columns(state=None, behavior_prob=None))
    with pytest.raises(tightrope.DataError, match=r"no behaviour probabilities.* also lack a column state \(or obs_"):
        tightrope.estimate(bare, POLICY)
