"""Which column of the logs plays which role: our own names come first, then those that other tools write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.base.errors import DataError
from tightrope.base.names import did_you_mean, must_be_one_of

# Each role with its own name first, then the names that other tools give it. Add a new name here, and nowhere else.
ROLES: dict[str, tuple[str, ...]] = {
    "episode": ("episode", "eps_id", "episode_index", "episode_id", "trajectory_id"),  # RLlib, LeRobot
    "t": ("t", "frame_index", "timestep", "step"),  # LeRobot
    "reward": ("reward", "rewards", "next.reward", "click"),  # RLlib and D4RL, LeRobot, Open Bandit
    "state": ("state", "obs", "observation", "observations", "observation.state", "context"),  # ..., LeRobot, OBP
    "action": ("action", "actions", "item_id"),  # Open Bandit
    "next_state": ("next_state", "new_obs", "next_obs", "next_observation", "next_observations"),  # RLlib, D4RL
    "behavior_prob": ("behavior_prob", "action_prob", "pscore", "propensity_score", "infos/action_prob"),
    "behavior_log_prob": (
        "behavior_log_prob",
        "action_logp",  # RLlib
        "action_log_prob",  # TorchRL
        "sample_log_prob",
        "log_probs",  # Stable-Baselines3
        "infos/action_log_probs",  # D4RL
        "infos/action_log_prob",
        "infos/log_prob",
        "infos/logp",
    ),
    "eval_prob": ("eval_prob",),
    "eval_log_prob": ("eval_log_prob",),
    "terminated": ("terminated", "terminateds", "terminations", "terminals", "is_terminal", "next.terminated"),
    "truncated": ("truncated", "truncateds", "truncations", "timeouts", "next.truncated"),
    "done": ("done", "dones", "next.done"),  # ended, but for good or cut off is not said
    "last": ("is_last",),  # RLDS: this row holds the last observation and no step
}
ONE_STEP = frozenset({"pscore", "propensity_score", "click"})  # names that only one-step logs (bandits) use
COMPONENTS = {"state": "obs", "action": "action", "next_state": "next_obs"}  # obs_0, obs_1, ...: one column for each
EITHER = {"behavior_prob": "behavior_log_prob", "eval_prob": "eval_log_prob"}  # two ways of saying the same

_NOT_A_COMPONENT = re.compile(r"_(prob|logp|log_prob|mask|dist\w*)$")  # action_prob is no part of an action

ColumnMap = Mapping[str, str | Sequence[str] | None]


def assign(names: Sequence[str], given: ColumnMap | None = None) -> dict[str, tuple[str, ...]]:
    """The columns that play each role; several only for vectors, and for probabilities that must agree."""
    chosen = _checked(names, given or {})
    taken = {name for several in chosen.values() for name in several}
    free = [name for name in names if name not in taken]  # a column in the map plays no second role
    roles = {role: chosen[role] if role in chosen else _matching(role, free) for role in ROLES}
    for prob, log_prob in EITHER.items():
        own = [role for role in (prob, log_prob) if role in free and role not in chosen]
        for role in (prob, log_prob):  # where our own name is there, the other role's aliases do not count
            if own and role not in own and role not in chosen:
                roles[role] = ()
    return roles


def fix(role: str, name: str = "...") -> str:
    """How to say which column plays a role, in Python and on the command line."""
    return f'columns={{"{role}": "{name}"}} (--column {role}={name})'


def missing(roles: Sequence[str], names: Iterable[str]) -> DataError:
    """No columns for roles that must be there; all of them in one message."""
    names, listed = list(names), ", ".join(repr(role) for role in roles)
    text = f"the logs must have {'a column' if len(roles) == 1 else 'columns'} {listed}; they have: {', '.join(names)}."
    for role in roles:
        who = "" if len(roles) == 1 else f" for {role!r}"
        text += f"{did_you_mean(role, names).removeprefix('.')} These names are known too{who}: "
        text += f"{', '.join(ROLES[role][1:])}. If yours is another: {fix(role)}."
    return DataError(text.removesuffix("."))


def _checked(names: Sequence[str], given: ColumnMap) -> dict[str, tuple[str, ...]]:
    """The column map, checked: every role and column is known, and naming one of a pair rules the other out."""
    chosen: dict[str, tuple[str, ...]] = {}
    for role, value in given.items():
        if role not in ROLES:
            raise DataError(must_be_one_of("every key of columns", role, ROLES))
        wanted = () if value is None else (value,) if isinstance(value, str) else tuple(value)
        for name in wanted:
            if name not in names:
                raise DataError(must_be_one_of(f"columns[{role!r}]", name, names))
        if len(wanted) > 1 and role not in COMPONENTS:
            raise DataError(f"columns[{role!r}] must be one column; got {len(wanted)}")
        chosen[role] = wanted
    for prob, log_prob in EITHER.items():
        if chosen.get(prob) and chosen.get(log_prob):
            raise DataError(f"columns must name either {prob!r} or {log_prob!r}; got both")
        if prob in chosen or log_prob in chosen:
            chosen.setdefault(prob, ())
            chosen.setdefault(log_prob, ())
    return chosen


def _matching(role: str, names: Sequence[str]) -> tuple[str, ...]:
    own, *others = ROLES[role]
    components = _components(role, names)
    numbered = [name for name in components if re.search(r"_\d+$", name)]
    if own in names:
        if numbered and COMPONENTS.get(role) == own:  # a state with its features is common; two actions are a mix-up
            raise DataError(
                f"the logs must have either {own!r} or {', '.join(numbered)}; they have both. Say which to use: "
                f"{fix(role, own)}"
            )
        return (own,)
    matches = [name for name in others if name in names]
    if role in (*EITHER, *EITHER.values()):
        return tuple(matches)  # several are fine if their values agree, which is checked later
    if matches and numbered:
        matches.append(numbered[0])
    if len(matches) > 1:
        raise DataError(
            f"more than one column could be the {role}: {', '.join(repr(name) for name in matches)}. Say which to use: "
            f"{fix(role, matches[0])}"
        )
    return tuple(matches or components)


def _components(role: str, names: Sequence[str]) -> list[str]:
    if role not in COMPONENTS:
        return []
    pattern = re.compile(rf"{COMPONENTS[role]}_\w+")
    several = [name for name in names if pattern.fullmatch(name) and not _NOT_A_COMPONENT.search(name)]
    return sorted(several, key=_natural)


def _natural(name: str) -> tuple[Any, ...]:
    """Sort key by which obs_2 comes before obs_10."""
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", name))
