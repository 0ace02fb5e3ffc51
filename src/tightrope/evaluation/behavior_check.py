"""How far to trust an estimated behaviour policy: its predictions on episodes that it was not fitted to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.base.behavior import DiscreteBehavior, FeaturedBehavior, GaussianBehavior
from tightrope.base.clusters import fold_of
from tightrope.base.dataset import Array, BoolArray
from tightrope.base.errors import DataError
from tightrope.base.problem import Problem
from tightrope.base.records import BehaviorCheck
from tightrope.base.warnings import Caution, caution
from tightrope.models.score_test import score_test, second_order

FOLDS = 5
BINS = 10
UNSEEN = 0.01  # of the steps
MISCALIBRATED = 0.03  # beyond noise
MISFIT = 1e-4  # a p-value
MOST_STEPS = 20_000  # that the test of fit looks at


def check_behavior(problem: Problem) -> BehaviorCheck | None:
    """Cross-fit the behaviour policy over episodes and compare it with what was done; None when it is as logged.

    In-sample numbers flatter: counts of states visited once are always right. So calibration is measured held out. For
    discrete actions it is the mean difference of predicted probabilities and actual frequencies over ten bins, all
    actions of all steps together; for continuous ones the largest difference between the distribution of standardised
    residuals and the normal one (Kolmogorov's distance).
    """
    if problem.behavior is None:
        return None
    try:
        log_probs = problem.ratios.dataset.behavior_log_probs
    except DataError:  # no overlap, or no fit: said where ratios are asked for
        return None
    assert log_probs is not None
    held_out, calibration = _held_out(problem)
    seen = np.isfinite(held_out)
    error, noise, variance = calibration
    lowest = np.quantile(log_probs, [0.0, 0.01, 0.05], method="lower")
    result = BehaviorCheck(
        behavior=problem.behavior.name,
        log_likelihood=float(log_probs.mean()),
        held_out_log_likelihood=float(held_out[seen].mean()) if seen.any() else float("nan"),
        unseen_share=float(1 - seen.mean()),
        calibration_error=error,
        calibration_noise=noise,
        residual_variance=variance,
        misfit=_misfit(problem),
        smallest_probs=(float(np.exp(lowest[0])), float(np.exp(lowest[1])), float(np.exp(lowest[2]))),
    )
    return replace(result, warnings=tuple(_warnings(result)))


def _misfit(problem: Problem) -> float | None:
    """Whether state and time, their squares and products, still explain the actions: a p-value.

    The smallest over the actions (or their components), times their number. A regression of the wrong shape can be
    calibrated, whatever it says of a single state. Only for regressions.
    """
    states, behavior = problem.dataset.states, problem.fits.behavior
    if not isinstance(behavior, FeaturedBehavior) or states is None or states.dtype.kind != "f":
        return None
    features = behavior.features
    parameters, steps = problem.fits(np.ones(problem.dataset.n_trajectories)), slice(0, MOST_STEPS)
    known = np.column_stack([states.reshape(len(states), -1), problem.dataset.times])
    more = second_order(known[steps].astype(np.float64))
    if isinstance(behavior, DiscreteBehavior):
        probs = behavior.probs(parameters)[steps]
        off = (behavior.choices[steps, None] == np.arange(probs.shape[1])) - probs
        tails = [
            score_test(features[steps], more, off[:, k], probs[:, k] * (1 - probs[:, k]))
            for k in range(int(probs.shape[1] == 2), probs.shape[1])  # of two actions one says it all
        ]
    elif isinstance(behavior, GaussianBehavior):
        tails = [score_test(features[steps], more, column) for column in behavior.residuals(parameters)[steps].T]
    else:
        return None
    p_values = [tail for tail in tails if tail is not None]
    return min(1.0, len(p_values) * min(p_values)) if p_values else None


Calibration = tuple[float | None, float | None, float | None]


def _held_out(problem: Problem) -> tuple[Array, Calibration]:
    """Log-probabilities of all steps under fits to the other folds, and how well those are calibrated."""
    data, fits = problem.dataset, problem.fits
    behavior, fold = fits.behavior, fold_of(data, FOLDS)
    of_step, log_probs = np.repeat(fold, data.lengths), np.full(data.n_steps, -np.inf)
    predicted: list[Array] = []
    taken: list[BoolArray] = []
    residuals: list[Array] = []
    for k in np.unique(fold):
        others = (fold != k).astype(np.float64)
        if not others.any():
            continue
        parameters, here = fits(others), of_step == k
        log_probs[here] = behavior.log_probs(parameters)[here]
        if isinstance(behavior, DiscreteBehavior):
            probs = behavior.probs(parameters)[here]
            known = np.isfinite(probs).all(axis=1)
            predicted.append(probs[known].ravel())
            taken.append((behavior.choices[here][known, None] == np.arange(probs.shape[1])).ravel())
        elif isinstance(behavior, GaussianBehavior):
            scaled = behavior.residuals(parameters)[here]
            residuals.append(scaled[np.isfinite(scaled).all(axis=1)])
    if sum(map(len, predicted)):
        return log_probs, (*_expected_error(np.concatenate(predicted), np.concatenate(taken)), None)
    if sum(map(len, residuals)):
        return log_probs, _distance(np.concatenate(residuals).ravel())
    return log_probs, (None, None, None)


def _expected_error(predicted: Array, taken: BoolArray) -> tuple[float, float]:
    """Σ_bins share · |mean predicted − frequency|, and what independent draws from the predictions would show."""
    place = np.minimum((predicted * BINS).astype(np.int64), BINS - 1)
    off = np.bincount(place, weights=predicted - taken, minlength=BINS)
    variance = np.bincount(place, weights=predicted * (1 - predicted), minlength=BINS)
    size = len(predicted)
    return float(np.abs(off).sum() / size), float(np.sqrt(2 / np.pi * variance).sum() / size)


def _distance(residuals: Array) -> tuple[float, float, float]:
    """Kolmogorov's distance to the standard normal, its mean under it (0.87/√N), and the mean square."""
    from scipy.special import ndtr

    ordered, size = ndtr(np.sort(residuals)), len(residuals)
    above, below = np.arange(1, size + 1) / size - ordered, ordered - np.arange(size) / size
    return float(max(above.max(), below.max())), 0.87 / np.sqrt(size), float(np.square(residuals).mean())


def _warnings(check: BehaviorCheck) -> list[Caution]:
    warnings = []
    if check.unseen_share > UNSEEN:
        text = (
            f"{check.unseen_share:.1%} of the logged actions were never taken in that state by other episodes, so "
            "their probability rests on themselves"
        )
        warnings.append(caution("behavior-unseen", text, share=check.unseen_share))
    error, noise = check.calibration_error, check.calibration_noise
    if error is not None and noise is not None and error > MISCALIBRATED + 3 * noise:
        text = (
            f"on episodes it was not fitted to, the {check.behavior} behaviour policy is off by {error:.2g} "
            f"(noise alone: {noise:.2g}); the ratios are wrong where it is"
        )
        warnings.append(caution("behavior-miscalibrated", text, error=error, noise=noise))
    if check.misfit is not None and check.misfit < MISFIT:
        text = (
            f"the {check.behavior} behaviour policy is of the wrong shape: squares and products of state and time "
            f"still explain the actions (p = {check.misfit:.1g}); give features, or a classifier that bends"
        )
        warnings.append(caution("behavior-misfit", text, p=check.misfit))
    return warnings
