"""What a report says in words about settings, assumptions and guarantees."""

from __future__ import annotations

from tightrope.records import Evaluation
from tightrope.report.scale import short

Line = tuple[str, str]


def level(confidence: float) -> str:
    """A confidence in percent."""
    return f"{100 * confidence:.6g}%"


def assumptions(result: Evaluation) -> list[Line]:
    """What was taken for granted, and whether it was declared or only seen."""
    summary = result.summary
    horizon = f"{summary.horizon} steps, " + (
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
            "0 up to the horizon",
        ),
        (
            "Episodes",
            "independent of one another and all from one behaviour policy; the next ones come from the same process",
        ),
        ("Behaviour policy", _behavior(result)),
        ("Candidate", "fixed beforehand: one chosen with the help of these very logs looks better than it is"),
    ]
    return [*lines, *(("Note", note) for note in summary.notes)]


def guarantees(result: Evaluation) -> list[Line]:
    """What the two kinds of bound promise; only those that occur."""
    kinds = {bound.guarantee for bound in result.bounds}
    promises = {
        "exact": "errs at most as often as stated, at any number of trajectories, if the declared ranges are true",
        "approximate": "its error rate tends to the stated one as the logs grow; no promise at any size",
    }
    return [(kind, text) for kind, text in promises.items() if kind in kinds]


def settings_line(result: Evaluation) -> str:
    """The settings that decide the numbers."""
    return "; ".join(f"{name.replace('_', ' ')} {value}" for name, value in result.settings.items())


def _behavior(result: Evaluation) -> str:
    mean, check = short(result.overlap.mean_ratio, 3), result.behavior_check
    if check is None:
        return (
            "its probabilities of the logged actions are right as given; the mean importance ratio, "
            f"{mean}, should be near 1"
        )
    return (
        f"not logged but estimated from the same logs ({check.behavior}), anew in every replicate; that this form fits "
        f"it is taken for granted, so no bound that uses it is exact; the mean importance ratio, {mean}, should be near "
        "1"
    )


def _range(declared: tuple[float, float] | None, otherwise: str) -> str:
    return f"not declared; {otherwise}" if declared is None else f"{_span(declared)}, declared"


def _span(ends: tuple[float, float]) -> str:
    return f"{short(ends[0], 6)} to {short(ends[1], 6)}"
