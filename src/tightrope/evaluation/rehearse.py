"""How often each bound errs on logs like those at hand, simulated from a model of them. It informs; it never chooses.

Choosing the tightest bound among those that did well in rehearsal was measured to void the level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tightrope.base.beside import Rehearsal
from tightrope.base.errors import BoundError
from tightrope.base.problem import Problem
from tightrope.bounds.rehearsal.bound import stage_of
from tightrope.evaluation.case import Answer, Case, Pair
from tightrope.evaluation.overlap import overlap
from tightrope.evaluation.work import answers_of

FEW = 400  # resamples in each rehearsal: enough to count errors


def rehearse(cases: Sequence[Case], pairs: Sequence[Pair], count: int) -> tuple[Rehearsal, ...]:
    """Errors of every pair on ``count`` simulated logs; refuses where the logs cannot be simulated."""
    problem, settings = cases[0].problem, cases[0].settings
    if cases[0].clusters is not None:
        raise BoundError("rehearsals must be 0 with clusters or strata, because they simulate independent episodes")
    model = next((one.model for one, _ in pairs if one.model is not None), "auto")
    stage = stage_of(problem, "lower", model)
    world, policy = stage.worlds[0], stage.candidate
    truth, _ = stage.truth(world, "value")  # where roll-outs say it, enough of them to count errors
    slack = 1e-9 * max(1.0, abs(truth))
    errors = np.zeros((len(cases), len(pairs)), dtype=np.int64)
    trials = np.zeros_like(errors)
    for trial in range(count):
        data, weights = np.random.SeedSequence([settings.seed, trial]).spawn(2)
        logs = stage.logs(world, np.random.default_rng(data), problem.dataset)
        again = Problem(logs, policy, max_step_ratio=problem.max_step_ratio)
        own = replace(settings, seed=weights, n_resamples=min(FEW, settings.n_resamples), progress=None, max_ratio=None)
        overlaps = overlap(again)
        for row, case in enumerate(cases):
            sign = 1.0 if case.side == "lower" else -1.0
            rehearsed = Case(again, overlaps, case.side, own, check_models=False)
            for column, answer in enumerate(answers_of(rehearsed, pairs)):
                if isinstance(answer, Answer):
                    trials[row, column] += 1
                    errors[row, column] += bool(sign * (answer.bound.value - truth) > slack)
        if settings.progress is not None:
            settings.progress((trial + 1) / count)
    return tuple(
        Rehearsal(estimator.name, method.name, case.side, int(errors[row, column]), int(trials[row, column]))
        for row, case in enumerate(cases)
        for column, (estimator, method) in enumerate(pairs)
        if trials[row, column]
    )
