"""The same logs in the shapes of other tools, or made by hand: other ways in than a table with names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import tightrope
from tests.fuzz.candidates import plain
from tests.fuzz.clothes import Dress, declared, plain_dress, rows
from tests.fuzz.questions import Question, Rng


def random_tool(rng: Rng, question: Question, folder: Path) -> Dress | None:
    """One of the shapes, where the logs can have it."""
    return TOOLS[str(rng.choice(list(TOOLS)))](rng, question, folder)


def _dress(question: Question, source: Any, name: str, **options: Any) -> Dress:
    policy = plain(question, question.candidate)
    return Dress(source, declared(question) | options, policy, modelled=policy is not None, parts=[name])


def _flat(rng: Rng, question: Question, folder: Path) -> Dress | None:
    """D4RL's arrays: no names, cut after every flagged end."""
    made = rows(question)
    source = {
        "observations": made["state"],
        "actions": made["action"],
        "rewards": made["reward"],
        "terminals": made["terminated"],
        "timeouts": made["truncated"],
        "infos/action_log_probs": np.log(made["behavior_prob"]),
        "eval_prob": made["eval_prob"],
    }
    return None if question.finals else _dress(question, source, "flat arrays")


def _bandit(rng: Rng, question: Question, folder: Path) -> Dress | None:
    """Open Bandit's feedback, or its columns, or rows said to be episodes."""
    one = question.horizon == 1 and all(e.terminated for e in question.episodes)
    if not one or not question.horizon_declared or question.finals:
        return None
    made = rows(question)
    names = {"context": "state", "action": "action", "reward": "reward", "pscore": "behavior_prob"}
    source: dict[str, Any] = {name: made[role] for name, role in names.items()} | {"eval_prob": made["eval_prob"]}
    kind = int(rng.integers(3))
    if kind == 0:
        return _dress(question, source | {"n_rounds": question.n, "n_actions": 4}, "a bandit's feedback")
    if kind == 1:
        return _dress(question, source, "a bandit's columns")
    return _dress(question, made, "rows as episodes", one_step=True)


def _scope(rng: Rng, question: Question, folder: Path) -> Dress | None:
    """SCOPE-RL: trajectories of one length, rows after an end left over."""
    full = max(len(e.rewards) for e in question.episodes)
    told = all(e.terminated == (len(e.rewards) < full) for e in question.episodes)  # it knows no other ends
    if question.finals or not told:
        return None
    made, columns = rows(question), {}
    mask = np.concatenate([np.arange(full) < len(e.rewards) for e in question.episodes])
    for name, role in {"state": "state", "action": "action", "reward": "reward", "pscore": "behavior_prob"}.items():
        padded = np.zeros((len(mask), *made[role].shape[1:]), dtype=made[role].dtype)
        padded[mask] = made[role]
        columns[name] = padded
    done = np.zeros(len(mask), dtype=bool)
    done[mask] = made["terminated"]
    done[full - 1 :: full] = True
    source = {"n_trajectories": question.n, "step_per_trajectory": full, "done": done, **columns}
    dress = _dress(question, source, "SCOPE-RL's dictionary")
    return dress if dress.policy is not None else None


def _rlds(rng: Rng, question: Question, folder: Path) -> Dress | None:
    """A row more for each episode, with its last observation and no step."""
    if not question.finals:
        return None
    made: dict[str, list[Any]] = {name: [] for name in (*rows(question), "is_last")}
    del made["next_state"], made["truncated"]
    for i, e in enumerate(question.episodes):
        length = len(e.rewards)
        after = 0 if e.final is None else e.final
        made["episode"] += [i] * (length + 1)
        made["t"] += range(length + 1)
        made["reward"] += [*e.rewards, 0.0]
        made["state"] += [*e.states, after]
        made["action"] += [*e.actions, 0]
        made["behavior_prob"] += [*e.behavior, 1.0]
        made["eval_prob"] += [*e.candidate, 1.0]
        made["terminated"] += [False] * length + [e.terminated]
        made["is_last"] += [False] * length + [True]
    order = rng.permutation(len(made["t"]))
    source = {name: np.array(values)[order] for name, values in made.items()}
    source["is_terminal"] = source.pop("terminated")
    return _dress(question, source, "RLDS rows")


def _episodes(rng: Rng, question: Question, folder: Path) -> Dress | None:
    """d3rlpy's episodes: no probabilities, so the behaviour policy is handed over."""
    if question.finals or question.kind != "finite":
        return None
    episodes = [
        SimpleNamespace(
            observations=np.array(e.states),
            actions=np.array(e.actions)[:, None],
            rewards=np.array(e.rewards)[:, None],
            terminated=e.terminated,
        )
        for e in question.episodes
    ]
    source = episodes if rng.random() < 0.5 else SimpleNamespace(episodes=episodes)
    return _dress(question, source, "d3rlpy's episodes", behavior=question.behavior)


def _by_hand(rng: Rng, question: Question, folder: Path) -> Dress:
    """A dataset from lists."""
    made = rows(question)
    lengths = [len(e.rewards) for e in question.episodes]
    with np.errstate(divide="ignore"):
        logs = [np.log(made[name]).tolist() for name in ("behavior_prob", "eval_prob")]
    finals = made["next_state"][np.cumsum(lengths) - 1].tolist() if question.finals else None
    names = [f"{i:03d}" for i in range(question.n)] if rng.random() < 0.5 else None
    order = str(rng.choice(["<", ">"]))  # of bytes
    data = tightrope.TrajectoryDataset(
        offsets=np.cumsum([0, *lengths]).astype(f"{order}i8"),
        rewards=made["reward"].tolist(),
        terminated=[e.terminated or question.is_cut(e) for e in question.episodes],
        cut=[question.is_cut(e) for e in question.episodes],
        horizon=question.horizon,
        horizon_declared=question.horizon_declared,
        discount=question.discount,
        behavior_log_probs=logs[0],
        eval_log_probs=logs[1],
        states=made["state"].astype(made["state"].dtype.newbyteorder(order)),
        actions=made["action"].tolist(),
        final_states=finals,
        episode_ids=names,
        reward_range=question.reward_range,
        return_range=question.return_range,
    )
    return _dress(question, data, "a dataset by hand")


def _written(rng: Rng, question: Question, folder: Path) -> Dress:
    """Read, written to a file, and read again."""
    path = folder / str(rng.choice(["again.csv", "again.parquet"]))
    dress = plain_dress(question)
    tightrope.write(tightrope.read(dress.source, **dress.options), path)
    return _dress(question, path, f"written {path.suffix}")


TOOLS: dict[str, Callable[[Rng, Question, Path], Dress | None]] = {
    "flat": _flat,
    "bandit": _bandit,
    "scope": _scope,
    "rlds": _rlds,
    "episodes": _episodes,
    "by hand": _by_hand,
    "written": _written,
}
