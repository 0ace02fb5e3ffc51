"""The problems of the conformance run, in plain files that any library can be given.

Each process is written in fractions, with dyadic probabilities under the behaviour policy: a data set in which every
possible episode is repeated in exact proportion *is* the distribution, and a consistent estimator returns the
candidate's value from it without any noise. States say the time, so that a stationary policy and a stationary value
function lose nothing, and all episodes end for good.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from pathlib import Path
from typing import Any

import numpy as np

END = None  # the state after an episode has ended
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
SETS, SIZE = 100, 200  # data sets for error rates, and episodes in each
LONG = (30, 300, 1200)  # horizons of the law of long horizons
SHIFT = 1.5  # added to every reward

Row = tuple[Fraction, ...]
Step = tuple[int, int, Fraction]  # state, action, reward


@dataclass(frozen=True)
class Process:
    """Outcomes of each (state, action): probability, next state or END, reward."""

    name: str
    about: str
    outcomes: Mapping[tuple[int, int], Sequence[tuple[Fraction, int | None, Fraction]]]
    behavior: tuple[Row, ...]
    candidate: tuple[Row, ...]
    horizon: int
    discount: Fraction = Fraction(1)
    start: Mapping[int, Fraction] = field(default_factory=lambda: {0: Fraction(1)})

    def value(self) -> Fraction:
        """The candidate's value, by recursion."""

        def ahead(state: int | None) -> Fraction:
            if state is END:
                return Fraction(0)
            return sum(
                (
                    chance * p * (reward + self.discount * ahead(after))
                    for action, chance in enumerate(self.candidate[state])
                    for p, after, reward in self.outcomes[state, action]
                ),
                Fraction(0),
            )

        return sum((p * ahead(state) for state, p in self.start.items()), Fraction(0))

    def episodes(self) -> Iterator[tuple[Fraction, list[Step]]]:
        """Every episode that the behaviour policy can make, with its probability."""

        def extend(p: Fraction, state: int | None, past: list[Step]) -> Iterator[tuple[Fraction, list[Step]]]:
            if state is END:
                yield p, past
                return
            for action, chance in enumerate(self.behavior[state]):
                for q, after, reward in self.outcomes[state, action]:
                    if chance * q > 0:
                        yield from extend(p * chance * q, after, [*past, (state, action, reward)])

        for state, p in self.start.items():
            yield from extend(p, state, [])

    def sampled(self, n: int, rng: np.random.Generator) -> list[list[Step]]:
        """n episodes of the behaviour policy, drawn."""
        probs, episodes = zip(*self.episodes(), strict=True)
        return [episodes[i] for i in rng.choice(len(episodes), size=n, p=np.array(probs, dtype=float))]


def row(*probs: int | str | Fraction) -> Row:
    """The probabilities of the actions."""
    return tuple(Fraction(p) for p in probs)


def coin() -> Process:
    """One decision between two actions."""
    return Process(
        "one step",
        "one decision; action 0 earns 1, action 1 loses 2",
        {(0, 0): [(Fraction(1), END, Fraction(1))], (0, 1): [(Fraction(1), END, Fraction(-2))]},
        (row("3/4", "1/4"),),
        (row("1/5", "4/5"),),
        horizon=1,
    )


def pair(candidate: tuple[Row, ...], name: str, discount: Fraction = Fraction(1)) -> Process:
    """Two decisions of two actions each, all episodes of the same length."""
    outcomes: dict[tuple[int, int], list[tuple[Fraction, int | None, Fraction]]] = {
        (0, 0): [(Fraction(1), 1, Fraction(-1))],
        (0, 1): [(Fraction(1), 2, Fraction(-3))],
        (1, 0): [(Fraction(1), END, Fraction(-2))],
        (1, 1): [(Fraction(1), END, Fraction(-5))],
        (2, 0): [(Fraction(1), END, Fraction(1))],
        (2, 1): [(Fraction(1), END, Fraction(-1))],
    }
    half = row("1/2", "1/2")
    return Process(
        name, "two decisions, all episodes of two steps", outcomes, (half, half, half), candidate, 2, discount
    )


def door(candidate: Row, name: str) -> Process:
    """Leave now, or stay and leave after the second step; each step costs 1."""
    return Process(
        name,
        "leave at once (action 0), or stay for a second step; every step costs 1",
        {
            (0, 0): [(Fraction(1), END, Fraction(-1))],
            (0, 1): [(Fraction(1), 1, Fraction(-1))],
            (1, 0): [(Fraction(1), END, Fraction(-1))],
            (1, 1): [(Fraction(1), END, Fraction(-1))],
        },
        (row("1/2", "1/2"), row(1, 0)),
        (candidate, row(1, 0)),
        horizon=2,
    )


def walk(candidate: tuple[Row, Row], name: str, *, ends: bool, discount: Fraction = Fraction(1)) -> Process:
    """Two places, three steps; with ``ends`` half of the moves by action 0 from place 0 end the episode."""
    outcomes: dict[tuple[int, int], list[tuple[Fraction, int | None, Fraction]]] = {}
    rewards = {(0, 0): -1, (0, 1): -2, (1, 0): 3, (1, 1): -4}
    for t in range(3):
        for place in range(2):
            for action in range(2):
                here = Fraction(rewards[place, action])
                after = [END if t == 2 else 2 * (t + 1) + other for other in (0, 1)]
                moves = [(HALF, after[0], here), (HALF, after[1], here - 1)]
                if (place, action) == (0, 1):
                    moves = [(Fraction(1), after[1], here)]
                if ends and (place, action) == (0, 0):
                    moves = [(HALF, END, here), (HALF, after[0], here - 1)]
                outcomes[2 * t + place, action] = moves
    half, skewed = row("1/2", "1/2"), row("1/4", "3/4")
    about = "two places, three steps" + (", half of the moves by action 0 from place 0 end the episode" if ends else "")
    return Process(name, about, outcomes, (half, skewed) * 3, candidate * 3, 3, discount)


STOCHASTIC = (row("4/5", "1/5"), row("3/5", "2/5"))
GREEDY = (row(0, 1), row(1, 0))


def processes() -> list[Process]:
    """From the smallest to the largest, so that the first failure is the smallest failing example."""
    discount = Fraction(4, 5)
    spread = (row("1/5", "4/5"), row("7/10", "3/10"), row("9/10", "1/10"))
    return [
        coin(),
        pair(spread, "two steps"),
        pair(spread, "two steps, discounted", HALF),
        pair((row(0, 1), row(1, 0), row(1, 0)), "two steps, greedy candidate"),
        door(row("1/4", "3/4"), "door"),
        door(row(0, 1), "door, greedy candidate"),
        walk(STOCHASTIC, "walk", ends=False),
        walk(STOCHASTIC, "walk, discounted", ends=False, discount=discount),
        walk(STOCHASTIC, "walk that may end early", ends=True),
        walk(STOCHASTIC, "walk that may end early, discounted", ends=True, discount=discount),
        walk(GREEDY, "walk, greedy candidate", ends=False, discount=discount),
        walk(GREEDY, "walk that may end early, greedy candidate", ends=True, discount=discount),
    ]


# -- as plain data -------------------------------------------------------------------------------------------------


def record(process: Process, episodes: Sequence[tuple[list[Step], int]], truth: float | None) -> dict[str, Any]:
    """A data set: episodes with how often each is repeated, both policies, and values that are right about nothing."""
    states = len(process.behavior)
    return {
        "about": process.about,
        "discount": float(process.discount),
        "horizon": process.horizon,
        "behavior": [[float(p) for p in each] for each in process.behavior],
        "candidate": [[float(p) for p in each] for each in process.candidate],
        "q_values": np.random.default_rng(11).integers(-6, 7, (states, 2)).astype(float).tolist(),
        "truth": truth,
        "episodes": [
            {"states": [s for s, _, _ in one], "actions": [a for _, a, _ in one],
             "rewards": [float(r) for _, _, r in one], "count": count}
            for one, count in episodes
        ],
    }  # fmt: skip


def enumerated(process: Process) -> dict[str, Any]:
    """Every episode, repeated in exact proportion to its probability under the behaviour policy."""
    weighed = list(process.episodes())
    whole = lcm(*(p.denominator for p, _ in weighed))
    return record(process, [(one, int(p * whole)) for p, one in weighed], float(process.value()))


def with_rewards(data: dict[str, Any], added: float) -> dict[str, Any]:
    """The same episodes with a constant added to every reward."""
    moved = [{**one, "rewards": [r + added for r in one["rewards"]]} for one in data["episodes"]]
    return {**data, "episodes": moved}


def with_padding(data: dict[str, Any]) -> dict[str, Any]:
    """The same episodes with the steps after their end written out: an absorbing state, one action, no reward."""
    absorbing, horizon = len(data["behavior"]), data["horizon"]

    def padded(one: dict[str, Any]) -> dict[str, Any]:
        more = horizon - len(one["states"])
        return {
            **one,
            "states": one["states"] + [absorbing] * more,
            "actions": one["actions"] + [0] * more,
            "rewards": one["rewards"] + [0.0] * more,
        }

    rows = {name: [*data[name], [1.0, 0.0]] for name in ("behavior", "candidate")}
    return {
        **data,
        **rows,
        "q_values": [*data["q_values"], [0.0, 0.0]],
        "episodes": [padded(o) for o in data["episodes"]],
    }


def on_policy(data: dict[str, Any]) -> dict[str, Any]:
    """The behaviour policy as candidate; the truth of this data set is its mean return."""
    total = sum(one["count"] for one in data["episodes"])
    returns = [
        one["count"] * sum(data["discount"] ** t * r for t, r in enumerate(one["rewards"])) for one in data["episodes"]
    ]
    return {**data, "candidate": data["behavior"], "truth": sum(returns) / total}


def long_horizon(horizon: int) -> dict[str, Any]:
    """Two episodes of the policy that is evaluated; every step earns 1, so the value is the horizon."""
    rng = np.random.default_rng(horizon)
    return {
        "about": f"two episodes of {horizon} steps, the candidate is the behaviour policy, every step earns 1",
        "discount": 1.0,
        "horizon": horizon,
        "behavior": [[0.5, 0.5]],
        "candidate": [[0.5, 0.5]],
        "q_values": [[0.0, 0.0]],
        "truth": float(horizon),
        "episodes": [
            {"states": [0] * horizon, "actions": rng.integers(2, size=horizon).tolist(), "rewards": [1.0] * horizon,
             "count": 1}
            for _ in range(2)
        ],
    }  # fmt: skip


REPEATS = (2, 1, 3, 1, 1, 2, 4, 1)


def small_samples() -> dict[str, dict[str, Any]]:
    """Eight drawn episodes of equal and of unequal length, and what the laws make of them."""
    data: dict[str, dict[str, Any]] = {}
    kinds = {
        "one step": clinic(),
        "equal length": walk(STOCHASTIC, "equal", ends=False, discount=Fraction(4, 5)),
        "unequal length": walk(STOCHASTIC, "unequal", ends=True, discount=Fraction(4, 5)),
    }
    for name, process in kinds.items():
        drawn = [(one, 1) for one in process.sampled(8, np.random.default_rng(5))]
        base = record(process, drawn, None)
        episodes = base["episodes"]
        data[f"eight of {name}"] = base
        data[f"eight of {name}, in another order"] = {**base, "episodes": [episodes[i] for i in ORDER]}
        data[f"eight of {name}, twice"] = {**base, "episodes": episodes * 2}
        data[f"eight of {name}, four times"] = {**base, "episodes": episodes * 4}
        data[f"eight of {name}, repeated"] = {
            **base, "episodes": [{**one, "count": k} for one, k in zip(episodes, REPEATS, strict=True)],
        }  # fmt: skip
        data[f"eight of {name}, on policy"] = on_policy(base)
    data["eight of unequal length, padded"] = with_padding(data["eight of unequal length"])
    for name in ("one step", "equal length"):
        base = data[f"eight of {name}"]
        alike = [{**one, "rewards": [-1.0] * len(one["rewards"])} for one in base["episodes"]]
        data[f"eight of {name}, rewards + 1.5"] = with_rewards(base, SHIFT)
        data[f"eight of {name}, all returns alike"] = {**base, "episodes": alike}
    return data


ORDER = (5, 2, 7, 0, 6, 1, 4, 3)


# -- samples for error rates and times ------------------------------------------------------------------------------


def clinic() -> Process:
    """One decision for a patient of one of four groups; cured or not."""
    cured = ((3, 6), (5, 4), (7, 4), (2, 5))
    outcomes = {
        (s, a): [(Fraction(cured[s][a], 10), END, Fraction(1)), (1 - Fraction(cured[s][a], 10), END, Fraction(0))]
        for s in range(4) for a in range(2)
    }  # fmt: skip
    candidate = (row("1/10", "9/10"), row("1/2", "1/2"), row("9/10", "1/10"), row("1/10", "9/10"))
    start = dict.fromkeys(range(4), QUARTER)
    return Process(
        "clinic", "one decision, cured or not", outcomes, (row("4/5", "1/5"),) * 4, candidate, 1, start=start
    )


def sample_processes() -> dict[str, Process]:
    """What error rates are counted on."""
    discount = Fraction(4, 5)
    return {
        "clinic": clinic(),
        "walk": walk(STOCHASTIC, "walk", ends=False, discount=discount),
    }


def samples() -> dict[str, dict[str, Any]]:
    """Which episode was drawn when: indices into the list of possible episodes, (sets, episodes)."""
    made = {}
    for number, (name, process) in enumerate(sample_processes().items()):
        probs, episodes = zip(*process.episodes(), strict=True)
        rng = np.random.default_rng([2017, number])
        drawn = rng.choice(len(episodes), size=(SETS, SIZE), p=np.array(probs, dtype=float))
        made[name] = {
            "data": record(process, [(one, 1) for one in episodes], float(process.value())),
            "drawn": drawn.tolist(),
        }
    return made


def speed() -> dict[str, Any]:
    """1,000 episodes of 20 steps."""
    n, horizon, rng = 1000, 20, np.random.default_rng(7)
    return {
        "about": "1,000 episodes of 20 steps, ten states",
        "discount": 0.99,
        "horizon": horizon,
        "behavior": [[0.5, 0.5]] * 10,
        "candidate": [[0.55, 0.45]] * 10,
        "q_values": [[0.0, 0.0]] * 10,
        "truth": None,
        "episodes": [
            {"states": rng.integers(10, size=horizon).tolist(), "actions": rng.integers(2, size=horizon).tolist(),
             "rewards": rng.random(horizon).round(3).tolist(), "count": 1}
            for _ in range(n)
        ],
    }  # fmt: skip


def problems() -> dict[str, Any]:
    """All of it."""
    data = {process.name: enumerated(process) for process in processes()}
    data |= small_samples()
    data |= {f"long, {horizon} steps": long_horizon(horizon) for horizon in LONG}
    return {"data": data, "repeats": REPEATS, "shift": SHIFT, "samples": samples(), "speed": speed()}


def write(path: Path) -> dict[str, Any]:
    """Write the file that every runner reads."""
    made = problems()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made), encoding="utf-8")
    return made
