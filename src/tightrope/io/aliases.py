"""Which column of the logs is taken for what: our own names first, then those that other tools write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tightrope.base.errors import DataError

# Each role with its own name first, then the names other tools give it. The one place to add a name to.
ROLES: dict[str, tuple[str, ...]] = {
    "episode": ("episode", "eps_id", "episode_index", "episode_id", "trajectory_id"),  # RLlib, LeRobot
    "t": ("t", "frame_index", "timestep"),  # LeRobot
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
    """The columns taken for each role; several only for vectors and for probabilities that must agree."""
    chosen = _checked(names, given or {})
    taken = {name for several in chosen.values() for name in several}
    free = [name for name in names if name not in taken]  # what the map takes for one thing is not taken for another
    roles = {role: chosen[role] if role in chosen else _found(role, free) for role in ROLES}
    for prob, log_prob in EITHER.items():
        own = [role for role in (prob, log_prob) if role in free and role not in chosen]
        for role in (prob, log_prob):  # our own name outranks the aliases of the other
            if own and role not in own and role not in chosen:
                roles[role] = ()
    return roles


def fix(role: str, name: str = "...") -> str:
    """How to say which column plays a role, in Python and on the command line."""
    return f'columns={{"{role}": "{name}"}} (--column {role}={name})'


def missing(role: str, names: Iterable[str]) -> DataError:
    """No column for a role that must be there."""
    others = ", ".join(ROLES[role][1:])
    return DataError(
        f"column {role!r} is missing; the logs have: {', '.join(names)}. Other names that are known: {others}. If "
        f"yours is another: {fix(role)}"
    )


def _checked(names: Sequence[str], given: ColumnMap) -> dict[str, tuple[str, ...]]:
    """The column map, with every role and column in it known; half of a pair rules the other half out."""
    chosen: dict[str, tuple[str, ...]] = {}
    for role, value in given.items():
        if role not in ROLES:
            raise DataError(f"columns names the role {role!r}; the roles are: {', '.join(ROLES)}")
        wanted = () if value is None else (value,) if isinstance(value, str) else tuple(value)
        for name in wanted:
            if name not in names:
                raise DataError(f"columns takes {name!r} for {role!r}, but the logs have: {', '.join(names)}")
        if len(wanted) > 1 and role not in COMPONENTS:
            raise DataError(f"columns takes {len(wanted)} columns for {role!r}; give one")
        chosen[role] = wanted
    for prob, log_prob in EITHER.items():
        if chosen.get(prob) and chosen.get(log_prob):
            raise DataError(f"columns names both {prob!r} and {log_prob!r}; give one of them")
        if prob in chosen or log_prob in chosen:
            chosen.setdefault(prob, ())
            chosen.setdefault(log_prob, ())
    return chosen


def _found(role: str, names: Sequence[str]) -> tuple[str, ...]:
    own, *others = ROLES[role]
    components = _components(role, names)
    numbered = [name for name in components if re.search(r"_\d+$", name)]
    if own in names:
        if numbered and COMPONENTS.get(role) == own:  # a state with its features is common; two actions are a mix-up
            raise DataError(
                f"the logs have both {own!r} and {', '.join(numbered)}; keep one or the other, or say which: "
                f"{fix(role, own)}"
            )
        return (own,)
    found = [name for name in others if name in names]
    if role in (*EITHER, *EITHER.values()):
        return tuple(found)  # they must agree, which only their values show
    if found and numbered:
        found.append(numbered[0])
    if len(found) > 1:
        raise DataError(
            f"more than one column could be the {role}: {', '.join(repr(name) for name in found)}; say which: "
            f"{fix(role, found[0])}"
        )
    return tuple(found or components)


def _components(role: str, names: Sequence[str]) -> list[str]:
    if role not in COMPONENTS:
        return []
    pattern = re.compile(rf"{COMPONENTS[role]}_\w+")
    several = [name for name in names if pattern.fullmatch(name) and not _NOT_A_COMPONENT.search(name)]
    return sorted(several, key=_natural)


def _natural(name: str) -> tuple[Any, ...]:
    """Sort key by which obs_2 comes before obs_10."""
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", name))
