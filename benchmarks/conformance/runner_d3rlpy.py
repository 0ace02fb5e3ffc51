"""d3rlpy's fitted Q evaluation of a greedy policy."""

from __future__ import annotations

import d3rlpy
import numpy as np
from harness import Data, Entry, InapplicableError, main

STEPS = 1500
SMALL = ("one step", "two steps", "door", "two steps, greedy candidate", "door, greedy candidate")


def replay(data: Data, actions: np.ndarray) -> d3rlpy.dataset.MDPDataset:
    """All steps, with the ends of episodes."""
    return d3rlpy.dataset.MDPDataset(
        observations=data.one_hot(),
        actions=actions[:, None],
        rewards=data.rewards[:, None].astype(np.float32),
        terminals=data.last.astype(np.float32),
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=2,
    )


def imitator(data: Data) -> d3rlpy.algos.DiscreteBC:
    """A policy of d3rlpy that does what the candidate does."""
    table = data.table("candidate")
    if not np.isin(table, (0.0, 1.0)).all():
        raise InapplicableError("it evaluates what `predict` of an algorithm does, a deterministic policy")
    greedy = table.argmax(axis=1)
    algo = d3rlpy.algos.DiscreteBCConfig(learning_rate=1e-2, batch_size=32).create(device=False)
    algo.fit(replay(data, greedy[data.states]), n_steps=300, n_steps_per_epoch=300, **QUIET)
    if (algo.predict(data.one_hot()) != greedy[data.states]).any():
        raise RuntimeError("the imitator does not do what the candidate does")
    return algo


QUIET = {"show_progress": False, "experiment_name": None, "logger_adapter": d3rlpy.logging.NoopAdapterFactory()}


def estimate(data: Data) -> float:
    """The mean of Q(s, π(s)) at the starts of episodes."""
    d3rlpy.seed(0)
    algo, buffer = imitator(data), replay(data, data.actions)
    config = d3rlpy.ope.FQEConfig(learning_rate=1e-3, gamma=data.discount, batch_size=32, target_update_interval=100)
    fqe = d3rlpy.ope.DiscreteFQE(algo=algo, config=config, device=False)
    fqe.fit(buffer, n_steps=STEPS, n_steps_per_epoch=STEPS, **QUIET)
    return d3rlpy.metrics.InitialStateValueEstimationEvaluator()(fqe, buffer)


TRAINED = "a network trained by a seed: equal up to its training error only, which the law of enumeration measures"
ENTRIES = {
    "DiscreteFQE": Entry(
        estimate,
        reading="`d3rlpy.ope.DiscreteFQE(algo, FQEConfig(gamma=..., learning_rate=0.001, batch_size=32, "
        f"target_update_interval=100)).fit(dataset, n_steps={STEPS})`, then `InitialStateValueEstimationEvaluator`; "
        "the policy is a `DiscreteBC` trained to do what the candidate does",
        tolerance=0.05,
        exempt=dict.fromkeys(("order", "duplication", "on policy", "padding", "long horizon"), TRAINED),
        timed=False,
        only=SMALL,
    )
}

if __name__ == "__main__":
    main("d3rlpy", ENTRIES, ("d3rlpy", "torch", "numpy", "gymnasium"))
