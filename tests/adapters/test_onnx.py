"""ONNX files: exported from torch, and built by hand in the forms that scikit-learn's converter writes."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

import tightrope
from tests.adapters.foreign import inverse, logs
from tightrope import PolicyError, TightropeError
from tightrope.adapters import onnx_policy
from tightrope.base.policy import Actor, DiscretePolicy

STATES = np.random.default_rng(2).normal(size=(20, 3))
ACTIONS = np.arange(20) % 4
TIMES = np.arange(20) % 4
HEADS = {
    "logits": nn.Identity(),
    "probabilities": nn.Softmax(dim=1),
    "probs": nn.Softmax(dim=1),
    "log_probs": nn.LogSoftmax(dim=1),
}


def body():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))


def export(path, head="logits", name=None, **options):
    """The network with this head, its output called ``name``."""
    options = {"dynamic_axes": {"states": {0: "n"}, name or head: {0: "n"}}} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch's, of the exporter that needs no more packages
        torch.onnx.export(
            nn.Sequential(body(), HEADS[head]).eval(),
            (torch.zeros(1, 3),),
            str(path),
            input_names=["states"],
            output_names=[name or head],
            dynamo=False,
            **options,
        )
    return path


def own_log_probs():
    with torch.no_grad():
        return torch.log_softmax(body()(torch.as_tensor(STATES, dtype=torch.float32)), dim=1).numpy()


@pytest.mark.parametrize("head", HEADS)
def test_an_export_of_torch(tmp_path, head):
    policy = onnx_policy(export(tmp_path / "net.onnx", head))
    assert isinstance(policy, DiscretePolicy)
    assert isinstance(policy, Actor)
    own = own_log_probs()
    np.testing.assert_allclose(policy.log_prob(STATES, ACTIONS, TIMES), own[np.arange(20), ACTIONS], atol=1e-6)
    np.testing.assert_allclose(policy.probs(STATES, TIMES), np.exp(own), atol=1e-6)
    uniforms = np.random.default_rng(0).random((20, 1))
    expected = [inverse(np.exp(row), u) for row, u in zip(own, uniforms[:, 0], strict=True)]
    assert policy.act(STATES, TIMES, uniforms).tolist() == expected
    assert np.isfinite(tightrope.estimate(logs(STATES, ACTIONS), policy))


@pytest.mark.parametrize("output", ["logits", "scores:logits"])
def test_an_output_with_another_name_is_declared(tmp_path, output):
    policy = onnx_policy(export(tmp_path / "net.onnx", name="scores"), output=output)
    np.testing.assert_allclose(np.log(policy.probs(STATES, TIMES)), own_log_probs(), atol=1e-6)


def classifier(path, labels, *, zipmap, label="label"):
    """A linear classifier with softmax over two labels, as converters write it."""
    text = isinstance(labels[0], str)
    classes = {"classlabels_strings" if text else "classlabels_ints": labels}
    kind = TensorProto.STRING if text else TensorProto.INT64
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["X"],
            [label, "probabilities"],
            domain="ai.onnx.ml",
            coefficients=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
            intercepts=[0.0, 0.0],
            post_transform="SOFTMAX",
            **classes,
        )
    ]
    table = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, 2])
    if zipmap:
        keys = {"classlabels_strings" if text else "classlabels_int64s": labels}
        nodes.append(helper.make_node("ZipMap", ["probabilities"], ["output_probability"], domain="ai.onnx.ml", **keys))
        number = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
        rows = helper.make_sequence_type_proto(helper.make_map_type_proto(kind, number))
        table = helper.make_value_info("output_probability", rows)
    graph = helper.make_graph(
        nodes,
        "classifier",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, 3])],
        [helper.make_tensor_value_info(label, kind, [None]), table],
    )
    sets = [helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 1)]
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=8), path)
    return path


@pytest.mark.parametrize(
    ("labels", "zipmap"), [([4, 9], True), (["left", "right"], True), ([0, 1], True), ([0, 1], False)]
)
def test_classifiers_bring_their_labels(tmp_path, labels, zipmap):
    policy = onnx_policy(classifier(tmp_path / "model.onnx", labels, zipmap=zipmap))
    actions = np.array(labels)[np.arange(20) % 2]
    ahead = STATES[:, 0] - STATES[:, 1]
    expected = -np.log1p(np.exp(np.where(np.arange(20) % 2 == 0, -ahead, ahead)))
    np.testing.assert_allclose(policy.log_prob(STATES, actions, TIMES), expected, atol=1e-6)


def refused(message, path, **options):
    with pytest.raises(PolicyError, match=message):
        tightrope.estimate(logs(STATES, ACTIONS), onnx_policy(path, **options))


def test_columns_with_other_labels_and_no_names(tmp_path):
    path = classifier(tmp_path / "model.onnx", [4, 9], zipmap=False)
    refused("its label is not the number of the largest of its probabilities.*ZipMap", path)


def test_outputs_that_say_nothing(tmp_path):
    path = export(tmp_path / "net.onnx", name="q")
    refused(r"gives q: tensor\(float\)\['n', 4\]; none of them is named probabilities.*--onnx-output name:logits", path)
    refused("the ONNX output must name one of .*; got 'other:logits'", path, output="other:logits")
    refused("the ONNX output must be a kind .*; got 'odds'", path, output="odds")
    refused("policy's probabilities of one state are", path, output="probabilities")


def test_outputs_of_the_wrong_kind(tmp_path):
    refused(
        r"must give floats of shape \(N, actions\); it gives label: tensor\(int64\)\[None\], .*",
        classifier(tmp_path / "model.onnx", [0, 1], zipmap=False),
        output="label:logits",
    )


def test_a_batch_of_fixed_size(tmp_path):
    path = export(tmp_path / "net.onnx", dynamic_axes=None)
    refused(r"must take one input .*N left open .*; it takes states: tensor\(float\)\[1, 3\]", path)


def test_states_of_another_width(tmp_path):
    policy = onnx_policy(export(tmp_path / "net.onnx"))
    with pytest.raises(PolicyError, match=r"states must have 3 numbers each .*; the logs hold 2 \(shape \(20, 2\)\)"):
        tightrope.estimate(logs(STATES[:, :2], ACTIONS), policy)


def test_files_that_are_none(tmp_path):
    (tmp_path / "not.onnx").write_text("not onnx")
    refused("cannot be loaded as an ONNX file", tmp_path / "not.onnx")
    refused("cannot be loaded as an ONNX file", tmp_path / "nowhere.onnx")


def test_without_onnxruntime(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(TightropeError, match=r'needs onnxruntime.*: pip install "tightrope\[onnx\]"'):
        onnx_policy(export(tmp_path / "net.onnx"))
