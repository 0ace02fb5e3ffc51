"""Hooks into runs that the user has open; the doubles have the methods and signatures of the real ones."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from tests.reports import report_of
from tightrope import TightropeError


class Mlflow:
    """The module's fluent functions."""

    def __init__(self):
        self.metrics, self.tags, self.texts = {}, {}, {}

    def log_metrics(self, metrics, step=None, synchronous=None):
        self.metrics[step] = metrics

    def set_tags(self, tags):
        self.tags |= tags

    def log_text(self, text, artifact_file):
        self.texts[artifact_file] = text


class WandbRun:
    """What wandb.init returns."""

    def __init__(self):
        self.logged, self.summary = [], {}

    def log(self, data, step=None, commit=None):
        self.logged.append((step, data))


class Html:
    """wandb.Html."""

    def __init__(self, data, inject=True, data_is_not_path=False):
        self.html, self.inject = data, inject


class SummaryWriter:
    """TensorBoard's."""

    def __init__(self):
        self.scalars, self.texts = {}, {}

    def add_scalar(self, tag, scalar_value, global_step=None):
        self.scalars[tag] = (scalar_value, global_step)

    def add_text(self, tag, text_string, global_step=None):
        self.texts[tag] = text_string


def numbers_of(result):
    lower, upper = result.believed
    return {
        "tightrope/behavior_value": result.summary.return_mean,
        "tightrope/effective_sample_size": result.overlap.effective_sample_size[-1],
        "tightrope/answered": 1.0,
        "tightrope/lower_bound": lower.value,
        "tightrope/lower_estimate": lower.estimate,
        "tightrope/upper_bound": upper.value,
        "tightrope/upper_estimate": upper.estimate,
    }


def test_mlflow():
    result, run = report_of("clear yes"), Mlflow()
    result.log(run, step=3)
    assert run.metrics == {3: numbers_of(result)}
    assert run.tags == {"tightrope.evaluation.verdict": result.verdict.headline}
    assert run.texts == {"tightrope.html": result.to_html(), "tightrope.json": result.to_json()}


def test_wandb(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(Html=Html))
    result, run = report_of("clear yes"), WandbRun()
    result.log(run, step=3)
    ((step, data),) = run.logged
    page = data.pop("tightrope/report")
    assert (step, data) == (3, numbers_of(result))
    assert (page.html, page.inject) == (result.to_html(), False)
    assert run.summary == {"tightrope/verdict": result.verdict.headline}


def test_tensorboard():
    result, writer = report_of("clear yes"), SummaryWriter()
    result.log(writer, step=3)
    assert writer.scalars == {name: (value, 3) for name, value in numbers_of(result).items()}
    assert result.verdict.headline in writer.texts["tightrope/verdict"]
    assert result.advice in writer.texts["tightrope/verdict"]


def test_no_answer_logs_no_bound():
    writer = SummaryWriter()
    report_of("one heavy trajectory").log(writer)
    assert writer.scalars["tightrope/answered"] == (0.0, None)
    assert not any("bound" in name for name in writer.scalars)


def test_anything_else_is_refused():
    with pytest.raises(TightropeError, match=r"to must be the mlflow module, .*; got type dict"):
        report_of("clear yes").log({})
