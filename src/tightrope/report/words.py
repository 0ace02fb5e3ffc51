"""The words of a report about settings, assumptions and guarantees."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tightrope.base.clusters import counted, growth, unit
from tightrope.base.records import About, BehaviorCheck, Bound, Evaluation, ModelCheck, Summary
from tightrope.report.scale import give_or_take, percent, rounded, short

Line = tuple[str, str]
SHOWN = 10  # letters of a hash on the first screen
SAME = "come from the same process"


@dataclass(frozen=True)
class Labels:
    """What the reader calls the report and the return of an episode."""

    title: str = ""
    metric: str = "value"
    unit: str = ""


def subject(result: Evaluation) -> About:
    """What the first screen is about: the gain where there are bounds on it to believe, else the value."""
    return "gain" if result.believed_gains else "value"


def reading(result: Evaluation) -> str:
    """How to read the number line."""
    bounds = result.believed_gains or result.believed
    if not bounds:
        return "There is no bound to believe, so these logs do not say where the candidate lies."
    each = "each side " if len(bounds) == 2 else ""
    sure = level(bounds[0].confidence)
    return f"Blue: where the candidate’s {subject(result)} lies, {each}with {sure} confidence; rounded outwards."


def bound_number(bound: Bound, threshold: float | None) -> str:
    """A bound with as many digits as its uncertainty allows, on its own side of the threshold."""
    apart = threshold if threshold is not None and math.isfinite(threshold) else None
    return rounded(bound.value, _error(bound), bound.side, apart)


def estimate_number(bound: Bound) -> str:
    """An estimate with as many digits as its uncertainty allows."""
    return rounded(bound.estimate, _error(bound))


def _error(bound: Bound) -> float:
    """The estimate's standard error, or about that."""
    return abs(bound.estimate - bound.value) / 2 if bound.standard_error is None else bound.standard_error


def origin(result: Evaluation) -> list[str]:
    """When and from what the numbers come, in a line; hashes by their first letters."""
    summary, record = result.summary, result.provenance
    amount = f"{counted(summary.n_trajectories, summary.n_clusters)}, {summary.n_steps:,} steps"
    if record is None:
        return [amount]
    data = [f"{amount} of {record.source}" if record.source else amount, _short_hash("data", record.sha256)]
    return [part for part in (record.date, *data, _short_hash("candidate", record.policy_sha256)) if part]


def _short_hash(name: str, sha256: str) -> str:
    return f"{name} SHA-256 {sha256[:SHOWN]}…" if sha256 else ""


def sources(result: Evaluation) -> list[tuple[str, str, str]]:
    """What the numbers were computed from, with hashes: (name, text, SHA-256)."""
    record = result.provenance
    if record is None:
        return []
    lines = [
        ("Date", record.date, ""),
        ("Data", record.source, record.sha256),
        ("Candidate", record.policy, record.policy_sha256),
    ]
    return [line for line in lines if line[1]]


def level(confidence: float) -> str:
    """A confidence in percent."""
    return f"{100 * confidence:.6g}%"


def assumptions(result: Evaluation) -> list[Line]:
    """What was assumed, and whether it was declared or only seen."""
    summary = result.summary
    horizon = f"{summary.horizon} step{'s' if summary.horizon > 1 else ''}, " + (
        "declared" if summary.horizon_declared else "not declared: the longest episode seen"
    )
    lines = [
        ("Horizon", horizon),
        ("Discount", short(summary.discount, 6)),
        ("Reward of a step", _range(summary.reward_range, f"seen {_span(summary.reward_seen)}")),
        ("Return of an episode", _range(summary.return_range, "see the reward of a step")),
        (
            "Ends of episodes",
            f"{summary.terminated} of {summary.n_trajectories} episodes ended for good; after its end an episode earns "
            "0 until the horizon",
        ),
        _draws(summary),
        ("Behaviour policy", _behavior(result)),
        (
            "Candidate",
            "it was fixed beforehand; a candidate that was chosen with the help of these logs looks better than it is",
        ),
    ]
    if summary.reading:
        lines.append(("Columns of the logs", "; ".join(summary.reading)))
    return [*lines, *(("Note", str(note)) for note in summary.notes)]


def _draws(summary: Summary) -> Line:
    """What is taken for independent."""
    strata = "" if summary.n_strata is None else f" draws, a fixed number from each of {summary.n_strata} strata"
    if summary.n_clusters is None:
        return "Episodes", f"they are independent{strata}, all come from one behaviour policy, and future ones {SAME}"
    return (
        "Clusters",
        f"they are independent{strata}, while episodes of one may depend on each other; each counts once, and how many "
        f"episodes it has does not depend on the actions taken; all come from one behaviour policy, and future ones "
        f"{SAME}",
    )


def _behavior(result: Evaluation) -> str:
    mean = f"the mean importance ratio is {short(result.overlap.mean_ratio, 3)} and should be near 1"
    if result.behavior_check is not None:
        return (
            f"it was estimated from the same logs ({result.behavior_check.behavior}), again in every replicate; the "
            f"form of the estimate is assumed to be right, so no bound that uses it is exact; {mean}"
        )
    if math.isnan(result.overlap.mean_ratio):
        return "it does not matter here: no importance ratios were used"
    return f"its logged probabilities are right; {mean}"


def model_lines(check: ModelCheck, drawn: str) -> list[Line]:
    """What the check of the model against the logs shows."""
    likelihood = None
    if check.likelihood_held_out is not None:
        likelihood = give_or_take(check.likelihood_held_out, check.likelihood_error or 0.0)
    lines = [
        (
            "What the importance-weighted logs add to its value (an estimate of its bias)",
            give_or_take(check.correction, check.correction_error),
        ),
        ("One-step error on held-out episodes", short(check.held_out_error)),
        ("One-step error on the episodes it was fitted to", short(check.training_error)),
        ("Importance-weighted −log-likelihood of a held-out episode", likelihood),
        ("The same of an episode it was fitted to", _or_none(check.likelihood_training, short)),
        (
            "The most that errors in its transitions move its value, judging by that likelihood",
            _or_none(check.bias_bound, short),
        ),
        ("The candidate's steps on state-action pairs never logged", _or_none(check.unseen_mass, percent)),
        (f"The candidate's steps on pairs that only one {drawn} logged", _or_none(check.fragile_mass, percent)),
        ('p-value of "the logged state is complete" (small: it is not)', _or_none(check.memory, short)),
        ('p-value of "residuals do not depend on state and action" (small: they do)', _or_none(check.misfit, short)),
    ]
    return [(name, value) for name, value in lines if value is not None]


def behavior_lines(check: BehaviorCheck) -> list[Line]:
    """How well the estimated behaviour policy predicts episodes that it was not fitted to."""
    lines = [
        ("Mean log-probability of a logged action, held out", short(check.held_out_log_likelihood)),
        ("The same on the episodes it was fitted to", short(check.log_likelihood)),
        ("Steps whose action was never seen in that state by the other folds", percent(check.unseen_share)),
        ("Calibration error, held out", _or_none(check.calibration_error, short)),
        ("What a true policy would show", _or_none(check.calibration_noise, short)),
        ("Variance of standardised residuals, expected: 1", _or_none(check.residual_variance, short)),
        ("Smallest probability of a logged action", short(check.smallest_probs[0])),
    ]
    return [(name, value) for name, value in lines if value is not None]


def _or_none(value: float | None, words: Callable[[float], str]) -> str | None:
    return None if value is None else words(value)


def guarantees(result: Evaluation) -> list[Line]:
    """What the two kinds of bound promise; only those that occur."""
    kinds, drawn = {bound.guarantee for bound in result.bounds}, unit(result.summary.n_clusters)
    promises = {
        "exact": f"it is wrong at most as often as stated, at any number of {drawn}, if the declared ranges are true",
        "approximate": f"its error rate approaches the stated one as {growth(result.summary.n_clusters)}; at a given "
        "size nothing is promised",
    }
    return [(kind, text) for kind, text in promises.items() if kind in kinds]


def settings_line(result: Evaluation) -> str:
    """The settings that decide the numbers."""
    return "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in result.settings.items())


def _range(declared: tuple[float, float] | None, otherwise: str) -> str:
    return f"not declared; {otherwise}" if declared is None else f"{_span(declared)}, declared"


def _span(ends: tuple[float, float]) -> str:
    return f"{short(ends[0], 6)} to {short(ends[1], 6)}"
