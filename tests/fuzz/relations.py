"""Metamorphic relations: a change of the question whose effect on every bound is known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.fuzz.questions import Question, Rng
from tests.fuzz.terms import Key

SAMPLING = ("is", "pdis", "wis", "pdwis")
WEIGHTED = ("wis", "pdwis")
UNORDERED = ("t", "hoeffding", "empirical-bernstein", "anderson", "betting-mixture")  # bounds that draw nothing


@dataclass(frozen=True)
class Relation:
    """Bounds of another question in terms of the first one's."""

    name: str
    question: Question
    exact: Callable[[Key], bool] = lambda key: True  # whether bits are expected, or equality up to rounding
    holds: Callable[[Key], bool] = lambda key: True  # for which bounds
    estimates: Callable[[Key], bool] = lambda key: True  # for whose estimates
    flips: bool = False  # a lower bound becomes an upper one
    factor: float = 1.0
    shift: float = 0.0  # of values; gains do not shift

    def key(self, key: Key) -> Key:
        """The bound of the new question that corresponds to one of the old."""
        return key._replace(side={"lower": "upper", "upper": "lower"}[key.side]) if self.flips else key

    def moved(self, key: Key, value: float) -> float:
        """What the old number becomes."""
        return self.factor * value + (self.shift if key.what == "value" else 0.0)


def random_relation(rng: Rng, question: Question) -> Relation | None:
    """One of the relations, where the question can be changed so."""
    return RELATIONS[str(rng.choice(list(RELATIONS)))](rng, question)


def _rescaled(question: Question, factor: float, shift: float = 0.0) -> Question:
    """Every reward times a factor plus a shift, and what is declared of them likewise."""

    def moved(span: Any, shift: float) -> Any:
        if span is None:
            return None
        low, high = (None if end is None else factor * end + shift for end in span)
        return (low, high) if factor > 0 else (high, low)

    total = sum(question.discount**t for t in range(question.horizon))
    episodes = [replace(e, rewards=[factor * r + shift for r in e.rewards]) for e in question.episodes]
    return question.changed(
        episodes=episodes,
        reward_range=moved(question.reward_range, shift),
        return_range=moved(question.return_range, shift * total),
    )


def _powers_of_two(rng: Rng, question: Question) -> Relation:
    factor = 2.0 ** int(rng.integers(-30, 31))
    # A model's value at a tiny scale differs in the last digits; everything else scales bit by bit.
    exact = lambda key: key.estimator != "mb"  # noqa: E731
    return Relation("rewards times a power of two", _rescaled(question, factor), exact=exact, factor=factor)


def _any_factor(rng: Rng, question: Question) -> Relation:
    factor = float(rng.choice([0.01, 3.7, 100.0, 1e6]))
    return Relation("rewards times a factor", _rescaled(question, factor), exact=lambda key: False, factor=factor)


def _negated(rng: Rng, question: Question) -> Relation:
    sides = tuple({"lower": "upper", "upper": "lower"}[side] for side in question.sides)
    return Relation(
        "rewards negated",
        _rescaled(question, -1.0).changed(sides=sides),
        # A model adds up its rewards in their order, and the jackknife subtracts or adds up as the signs are.
        exact=lambda key: key.estimator in SAMPLING and key.method not in ("t", "bca"),
        # What a model guesses of unseen pairs is the lowest, and the highest when rewards are negated.
        estimates=lambda key: key.estimator in SAMPLING,
        factor=-1.0,
        flips=True,
    )


def _shifted(rng: Rng, question: Question) -> Relation | None:
    """A constant on every reward, where no episode ends early; IS follows only if it counts from a declared end."""
    if any(len(e.rewards) < question.horizon for e in question.episodes):
        return None
    c = float(rng.choice([1.0, -2.5, 10.0])) * (max(abs(r) for e in question.episodes for r in e.rewards) or 1.0)
    declared = question.return_range is not None and None not in question.return_range

    def follows(key: Key) -> bool:
        return key.estimator in WEIGHTED or (key.estimator == "is" and declared)

    return Relation(
        "a constant on every reward",
        _rescaled(question, 1.0, c),
        exact=lambda key: False,
        holds=follows,
        estimates=lambda key: key.estimator in WEIGHTED,
        shift=c * sum(question.discount**t for t in range(question.horizon)),
    )


def _relabelled(rng: Rng, question: Question) -> Relation | None:
    """States and actions by other numbers; a model sums over them in another order."""
    if question.kind != "finite":
        return None
    _, n_states, n_actions = question.candidate.shape  # type: ignore[union-attr]
    states, actions = rng.permutation(n_states), rng.permutation(n_actions)

    def moved(table: Any) -> Any:
        made = np.empty_like(table)
        made[:, states[:, None], actions] = table
        return made

    episodes = [
        replace(
            e,
            states=[int(states[s]) for s in e.states or []],
            actions=[int(actions[a]) for a in e.actions or []],
            final=None if e.final is None else int(states[e.final]),
        )
        for e in question.episodes
    ]
    behavior, candidate = moved(question.behavior), moved(question.candidate)
    return Relation(
        "states and actions relabelled",
        question.changed(episodes=episodes, behavior=behavior, candidate=candidate),
        exact=lambda key: key.estimator in SAMPLING and not question.estimated,
    )


def _permuted(rng: Rng, question: Question) -> Relation:
    """The trajectories in another order, under other names: weights and folds go by place, all else stays."""
    order = rng.permutation(question.n)
    return Relation(
        "episodes in another order",
        question.changed(episodes=[question.episodes[i] for i in order]),
        exact=lambda key: False,
        holds=lambda key: key.method in UNORDERED and key.estimator not in ("dr", "wdr"),
        estimates=lambda key: key.estimator not in ("dr", "wdr"),
    )


def _duplicated(rng: Rng, question: Question) -> Relation:
    times = int(rng.integers(2, 4))
    return Relation(
        "every episode more than once",
        question.changed(episodes=question.episodes * times),
        exact=lambda key: False,
        holds=lambda key: False,
        estimates=lambda key: key.estimator not in ("dr", "wdr"),
    )


def _longer(rng: Rng, question: Question) -> Relation | None:
    """A later horizon, where every episode has ended by itself: weighted estimators must not notice."""
    if not all(e.terminated for e in question.episodes) or not question.horizon_declared or question.kind == "finite":
        return None
    return Relation(
        "a later horizon",
        question.changed(horizon=question.horizon + int(rng.integers(1, 4))),
        exact=lambda key: False,
        holds=lambda key: key.estimator in WEIGHTED,
        estimates=lambda key: key.estimator in WEIGHTED,
    )


def _first_step(rng: Rng, question: Question) -> Relation | None:
    """With discount 0 only the first step counts."""
    if question.horizon == 1 or question.discount != 0 or question.estimated:
        return None
    if not any(e.ratio(question.horizon - 1) > 0 for e in question.episodes):
        return None  # refused: nobody went on as the candidate does, though what follows counts for nothing
    first = [
        replace(
            e,
            rewards=e.rewards[:1],
            behavior=e.behavior[:1],
            candidate=e.candidate[:1],
            states=(e.states or [])[:1],
            actions=(e.actions or [])[:1],
            terminated=True,
        )
        for e in question.episodes
    ]
    return Relation(
        "discount 0 is one step",
        question.changed(episodes=first, horizon=1, finals=False, return_range=None),
        exact=lambda key: False,
        holds=lambda key: key.estimator == "pdwis",
        estimates=lambda key: key.estimator == "pdwis",
    )


def _split(rng: Rng, question: Question) -> Relation | None:
    """Both policies choose one of two names for each action by a coin: ratios stay, probabilities halve."""
    if question.kind != "finite" or question.finals or question.estimated:
        return None
    episodes = [
        replace(e, behavior=[b / 2 for b in e.behavior], candidate=[p / 2 for p in e.candidate])
        for e in question.episodes
    ]
    half = [np.concatenate([table / 2, table / 2], axis=2) for table in (question.behavior, question.candidate)]  # type: ignore[operator]
    return Relation(
        "every action under two names",
        question.changed(episodes=episodes, behavior=half[0], candidate=half[1]),
        exact=lambda key: False,
        holds=lambda key: key.estimator in SAMPLING,
        estimates=lambda key: key.estimator in SAMPLING,
    )


RELATIONS: dict[str, Callable[[Rng, Question], Relation | None]] = {
    "two": _powers_of_two,
    "factor": _any_factor,
    "negated": _negated,
    "shifted": _shifted,
    "relabelled": _relabelled,
    "permuted": _permuted,
    "duplicated": _duplicated,
    "longer": _longer,
    "first": _first_step,
    "split": _split,
}
