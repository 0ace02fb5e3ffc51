"""Log a result to a run that the user has open: MLflow, Weights & Biases or TensorBoard.

Their methods show which one it is, so that none of them is imported here.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

from tightrope.base.errors import TightropeError
from tightrope.base.records import Evaluation
from tightrope.report.html import page


def log(result: Evaluation, to: Any, *, step: int | None = None) -> None:
    """Log numbers and the report to ``to``: the mlflow module, a wandb run, or a TensorBoard SummaryWriter."""
    numbers = metrics(result)
    if hasattr(to, "add_scalar") and hasattr(to, "add_text"):
        for name, value in numbers.items():
            to.add_scalar(name, value, step)
        to.add_text("tightrope/verdict", _words(result), step)
    elif hasattr(to, "log_metrics") and hasattr(to, "log_text"):
        to.log_metrics(numbers, step=step)
        to.set_tags({"tightrope.evaluation.verdict": _headline(result)})
        to.log_text(page(result), "tightrope.html")
        to.log_text(result.to_json(), "tightrope.json")
    elif hasattr(to, "log") and hasattr(to, "summary"):
        report = importlib.import_module("wandb").Html(page(result), inject=False)
        to.log({**numbers, "tightrope/report": report}, step=step)
        to.summary["tightrope/verdict"] = _headline(result)
    else:
        raise TightropeError(
            "to must be the mlflow module, a wandb run (wandb.init()) or a TensorBoard SummaryWriter; got type "
            f"{type(to).__name__}"
        )


def metrics(result: Evaluation) -> dict[str, float]:
    """The few numbers worth following over time; a bound only where it is believed and finite."""
    numbers = {
        "tightrope/behavior_value": result.summary.return_mean,
        "tightrope/effective_sample_size": result.overlap.effective_sample_size[-1],
        "tightrope/answered": float(bool(result.believed)),
    }
    for bound in result.believed:
        numbers[f"tightrope/{bound.side}_bound"] = bound.value
        numbers[f"tightrope/{bound.side}_estimate"] = bound.estimate
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def _headline(result: Evaluation) -> str:
    return result.verdict.headline if result.verdict else result.advice


def _words(result: Evaluation) -> str:
    """The verdict in markdown."""
    verdict = result.verdict
    return result.advice if verdict is None else f"**{verdict.headline}**\n\n{verdict.text}\n\n{result.advice}"
