"""The same logs in strange clothes: other types, names, labels, orders, tables, and the shapes of other tools.

What stays is the identity of the trajectories. A bootstrap weight belongs to a place in the order of the episodes'
names (as numbers or as text, rising), or in the order of the rows where there are no names. So names are given here in
the order of the trajectories, and every dress must give the same bits, unless it says that it rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.candidates import plain, random_form
from tests.fuzz.questions import Question, Rng
from tests.fuzz.tables import Columns, as_table, retyped
from tests.oracle import END
from tightrope.io.aliases import ROLES

TABULAR = ["mapping", "lists", "series", "pandas", "polars", "pyarrow", "parquet", "feather", "csv"]


@dataclass
class Dress:
    """What is handed to the library."""

    source: Any
    options: dict[str, Any]  # of read
    policy: Any
    exact: bool = True  # whether the same bits are expected; otherwise equality up to rounding
    modelled: bool = True  # whether the candidate is one that can be put into a model
    parts: list[str] = field(default_factory=list)  # what it is made of, to be counted


def rows(question: Question) -> Columns:
    """Every column that the logs could have, in order."""
    episodes = question.episodes
    lengths = [len(e.rewards) for e in episodes]
    last = [t == length - 1 for length in lengths for t in range(length)]
    ended = np.repeat([e.terminated for e in episodes], lengths) & last
    made: Columns = {
        "episode": np.repeat(np.arange(len(episodes)), lengths),
        "t": np.concatenate([np.arange(length) for length in lengths]),
        "reward": np.concatenate([e.rewards for e in episodes]),
        "state": np.concatenate([e.states for e in episodes]),
        "action": np.concatenate([e.actions for e in episodes]),
        "behavior_prob": np.concatenate([e.behavior for e in episodes]),
        "eval_prob": np.concatenate([e.candidate for e in episodes]),
        "terminated": ended,
        "truncated": np.array(last) & ~ended,
    }
    if question.finals:
        after = [[*e.states[1:], 0 if e.final is END else e.final] for e in episodes]
        made["next_state"] = np.concatenate(after)
    return made


def declared(question: Question) -> dict[str, Any]:
    """What read is told."""
    return {
        "discount": question.discount,
        "horizon": question.horizon if question.horizon_declared else None,
        "reward_range": question.reward_range,
        "return_range": question.return_range,
        "incomplete": "terminate" if question.any_cut else "error",
    }


def plain_dress(question: Question) -> Dress:
    """Our own names, a mapping of plain arrays."""
    return Dress(rows(question), declared(question), plain(question, question.candidate), parts=["plain"])


def random_dress(rng: Rng, question: Question, folder: Path) -> Dress:
    """A table of some kind with everything about it changed that means nothing."""
    dress = Dress(None, declared(question), None)
    kind = TABULAR[int(rng.integers(len(TABULAR)))]
    columns = rows(question)
    _candidate(rng, question, columns, dress)
    _behavior(rng, question, columns, dress)
    asked = dress.policy is not None or "behavior" in dress.options  # objects know the actions by number
    if not asked and question.kind != "gaussian" and rng.random() < 0.4:
        columns["action"] = _labels(rng, columns["action"], kind)
        dress.exact &= not question.estimated  # actions are counted in the order of their names
        dress.parts.append(f"actions: {'text' if columns['action'].dtype.kind == 'U' else 'other numbers'}")
        dress.modelled = False
    columns["episode"] = _names(rng, question.n, kind, dress)[columns["episode"]]
    _flags(rng, columns, dress)
    in_order = _drop_times(rng, columns, dress)
    columns = _vectors(rng, question, columns, kind)
    columns = {name: retyped(rng, values, _kinds(name, values)) for name, values in columns.items()}
    if kind in ("csv", "polars", "series"):  # these have no half floats
        columns = {n: v.astype(np.float32) if v.dtype == np.float16 else v for n, v in columns.items()}
    columns = _renamed(rng, columns, dress)
    columns |= _extras(rng, question.steps, kind)
    order = np.arange(question.steps) if in_order else rng.permutation(question.steps)
    columns = {name: columns[name][order] for name in rng.permutation(list(columns))}
    dress.source = as_table(rng, kind, columns, folder)
    dress.parts.append(kind)
    return dress


# -- who acts ----------------------------------------------------------------------------------------------------------


def _candidate(rng: Rng, question: Question, columns: Columns, dress: Dress) -> None:
    """The candidate as logged, in one way or another, or as an object."""
    kind = int(rng.integers(6))
    probs = columns.pop("eval_prob")
    with np.errstate(divide="ignore"):
        logs = np.log(probs)
    if kind >= 3:
        name, dress.policy, dress.exact, dress.modelled = random_form(rng, question, question.candidate)
        dress.parts.append(f"candidate: {name}")
        if rng.random() < 0.3:
            columns["eval_prob"] = probs
        return
    dress.modelled = False
    if kind < 2:
        columns[("eval_prob", "eval_log_prob")[kind]] = (probs, logs)[kind]
    else:
        name = str(rng.choice(["pi_e", "Kandidat ü", "new_logp", "log_new"]))
        columns[name] = logs if "log" in name else probs
        dress.options["eval_column"] = name
    dress.parts.append(f"candidate: {('logged', 'logged as a logarithm', 'a column of its own')[kind]}")


def _behavior(rng: Rng, question: Question, columns: Columns, dress: Dress) -> None:
    kind = int(rng.integers(4))
    if kind == 1 or (kind == 2 and rng.random() < 0.5):
        columns["behavior_log_prob"] = np.log(columns["behavior_prob"])
    if kind == 1:
        del columns["behavior_prob"]
    elif kind == 3:
        name, form, exact, _ = random_form(rng, question, question.behavior)
        dress.options["behavior"] = form
        dress.exact &= exact
        del columns["behavior_prob"]
        dress.parts.append(f"behaviour: {name}")


# -- names and labels --------------------------------------------------------------------------------------------------


def _labels(rng: Rng, actions: np.ndarray, kind: str) -> np.ndarray:
    """Other names for the actions; what looks like a number in a CSV file is one."""
    chosen = int(rng.integers(2 if kind == "csv" else 3))
    if chosen == 0:
        return actions + int(rng.choice([-7, 100, 2**40]))
    words = ["left", "rechts, ü", "日本", "a b", "-"] if chosen == 1 else ["01", "02", "1e5", "-3", "7.0"]
    return np.array(words)[actions]


def _names(rng: Rng, n: int, kind: str, dress: Dress) -> np.ndarray:
    """Names of the episodes, in the order in which they are sorted."""
    place = np.sort(rng.choice(10 * n + 5, size=n, replace=False))
    forms = {
        "0, 1, 2": np.arange(n),
        "sparse": place,
        "negative": place - 10**6,
        "huge": 2**63 - 1 - 11 * n - 5 + place,
        "unsigned": np.uint64(2**64 - 1 - 11 * n - 5) + place.astype(np.uint64),
        "text": np.array([f"run {k:06d}" for k in place]),
        "unicode": np.array([f"Läufe «{k:06d}» 試" for k in place]),
        "leading zeros": np.array([f"{k:06d}" for k in place]),
        "floats": place * 0.5,
        "dates": np.datetime64("2024-02-28") + place,
        "times": np.datetime64("2024-02-28T23:59:59") + place,
    }
    if kind in ("polars", "series", "lists"):  # dates have other types there
        del forms["dates"], forms["times"]
    if kind == "csv":
        del forms["unsigned"]  # beyond 64 bits signed CSV knows only floats
    chosen = str(rng.choice(list(forms)))
    dress.parts.append(f"ids: {chosen}")
    return forms[chosen]


def _flags(rng: Rng, columns: Columns, dress: Dress) -> None:
    """How ends are told."""
    kind = int(rng.integers(4))
    if kind == 0:
        del columns["truncated"]
    elif kind == 1:
        columns["done"] = columns.pop("terminated") | columns["truncated"]
    elif kind == 2:
        columns["done"] = columns["terminated"] | columns["truncated"]
    elif not columns["terminated"].any():
        del columns["terminated"]
    told = ("terminated", "done and truncated", "terminated, truncated and done", "terminated and truncated")[kind]
    dress.parts.append(f"ends: {told}")


def _drop_times(rng: Rng, columns: Columns, dress: Dress) -> bool:
    """Sometimes no step counter: rows are in order."""
    if rng.random() < 0.1:
        del columns["t"]
        dress.options["columns"] = {"t": None}
        dress.parts.append("no t")
        return True
    return False


def _vectors(rng: Rng, question: Question, columns: Columns, kind: str) -> Columns:
    """States and actions of several numbers: one column each, or one column of lists."""
    made: Columns = {}
    for name, values in columns.items():
        if values.ndim == 1:
            made[name] = values
        elif kind in ("csv", "series") or rng.random() < 0.5:
            part = {"state": "obs", "action": "action"}[name]
            made |= {f"{part}_{i}": values[:, i] for i in range(values.shape[1])}
        else:
            made[name] = values
    return made


def _renamed(rng: Rng, columns: Columns, dress: Dress) -> Columns:
    """Names that other tools use, or any names with a map."""
    kind = int(rng.integers(3))
    given: dict[str, Any] = dict(dress.options.get("columns", {}))
    made: Columns = {}
    if kind == 2 and {"behavior_prob", "behavior_log_prob"} <= columns.keys():  # a map names one of the two
        del columns["behavior_log_prob"]
    for place, (name, values) in enumerate(columns.items()):
        known = ROLES.get(name, ())
        if kind == 0 or not known:
            made[name] = values
        elif kind == 1:
            made[str(rng.choice(known))] = values
        else:
            odd = f"Spalte {place} ä"
            made[odd] = values
            given[name] = odd
    for role in ("state", "action") if kind == 2 else ():  # whole vectors by the list of their columns
        parts = [n for n in made if n.startswith({"state": "obs_", "action": "action_"}[role])]
        if parts:
            given[role] = parts
    if given:
        dress.options["columns"] = given
    dress.parts.append(f"names: {['ours', 'aliases', 'mapped'][kind]}")
    return made


def _kinds(name: str, values: np.ndarray) -> str:
    """The types in which a column still means the same: floats are quantities, whole numbers labels."""
    if name in ("t", "episode", "reward", "terminated", "truncated", "done"):
        return "biuf" if name != "t" else "iuf"
    if "prob" in name or "log" in name or name in ("pi_e", "Kandidat ü"):
        return "iuf"
    return "f" if values.dtype.kind == "f" else "biu"


def _extras(rng: Rng, count: int, kind: str) -> Columns:
    """Columns that mean nothing."""
    made: Columns = {}
    if rng.random() < 0.3:
        made["note"] = np.array([f'text, with "quotes" {k}' for k in range(count)])
    if rng.random() < 0.3:
        made["gap"] = np.where(rng.random(count) < 0.5, np.nan, 1.5)
    if rng.random() < 0.3:
        made["Unnamed: 0"] = np.arange(count)
    if rng.random() < 0.2 and kind in ("mapping", "pyarrow", "parquet"):
        made["image"] = rng.integers(0, 9, size=(count, 3))
    return made
