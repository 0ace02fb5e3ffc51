"""The GPU engine without a GPU: what it refuses, and that its chunks add up to the sums of the CPU.

That a GPU makes the same weights is seen on a machine that has one: ``benchmarks/cuda.py``.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import tightrope
from tightrope.base import kernels
from tightrope.base.poisson import CDF
from tightrope.base.problem import Problem
from tightrope.cli import app
from tightrope.domains import small
from tightrope.estimators import MB, PDWIS, WDR
from tightrope.functional.engines import cuda, replicate
from tightrope.functional.resampling import Multinomial, Poisson, scheme

WALKER = small("walker")
DATA = WALKER.logs(2600, rng=np.random.default_rng(0))  # two full blocks and one that is not
STATISTICS = [statistic(Problem(DATA, WALKER.candidate)) for statistic in (PDWIS(), WDR(), MB())]


def on_the_cpu():
    """Kernels of the same names that fill a tensor by the CPU's own."""

    def key(seed):
        return np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32)

    def fill_multinomial(weights, draws, first_block, first_replicate, seed):
        shares = draws.numpy()[:, first_block : first_block - (-weights.shape[1] // 1024)].astype(np.int64)
        out = np.empty(weights.shape)
        kernels.fill_multinomial(out, shares, first_block, first_replicate, *key(seed))
        weights.copy_(torch.from_numpy(out))

    def fill_poisson(weights, first_episode, first_replicate, seed):
        out = np.empty(weights.shape)
        kernels.fill_poisson(out, first_episode, first_replicate, CDF, *key(seed))
        weights.copy_(torch.from_numpy(out))

    def block_draws(whole, n, rows, seed):
        counts = np.empty((len(rows), -(-n // 1024)), dtype=np.int32)
        kernels.block_draws(counts, whole, n, 0, rows.start, *key(seed))
        return torch.from_numpy(counts)

    return SimpleNamespace(fill_multinomial=fill_multinomial, fill_poisson=fill_poisson, block_draws=block_draws)


@pytest.fixture
def _without_a_gpu(monkeypatch):
    monkeypatch.setattr(cuda, "DEVICE", "cpu")
    monkeypatch.setattr(cuda, "_kernels", lambda: on_the_cpu())


@pytest.mark.usefixtures("_without_a_gpu")
@pytest.mark.parametrize("resampling", [Multinomial(), Multinomial(700), Multinomial(40), Poisson()])
@pytest.mark.parametrize(("rows", "size"), [(16_384, 5 << 30), (64, 1), (100, 100 * 2048 * 8)])
def test_chunks_add_up_to_the_same_bits(resampling, rows, size, monkeypatch):
    """In any number of chunks of replicates and of episodes; what is no sum is computed as ever."""
    monkeypatch.setattr(cuda, "ROWS", rows)
    monkeypatch.setattr(cuda, "WEIGHT_BYTES", size)
    options = {"n_resamples": 300, "seed": 11, "standard_errors": True}
    local = replicate(STATISTICS, resampling, **options)
    for one, other in zip(local, replicate(STATISTICS, resampling, engine="cuda", **options), strict=True):
        np.testing.assert_array_equal(other.values, one.values)
        np.testing.assert_array_equal(other.standard_errors, one.standard_errors)


@pytest.mark.usefixtures("_without_a_gpu")
def test_single_precision_loses_little():
    options = {"n_resamples": 100, "seed": 11}
    (double,) = replicate(STATISTICS[:1], scheme("multinomial"), **options)
    (single,) = replicate(STATISTICS[:1], scheme("multinomial"), engine="cuda", precision="float32", **options)
    assert np.abs(single.values - double.values).max() < 1e-4 * double.values.std()


def test_block_draws_are_those_of_the_weights():
    draws = np.empty((30, 3), dtype=np.int32)
    kernels.block_draws(draws, 2600, 2600, 0, 5, np.uint32(3), np.uint32(0))
    weights = tightrope.draw_weights(2600, 30, seed=3, first=5)
    np.testing.assert_array_equal(
        draws, [[row[:1024].sum(), row[1024:2048].sum(), row[2048:].sum()] for row in weights]
    )


def test_without_a_gpu_it_says_so_before_anything_is_computed(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(tightrope.BoundError, match=r'engine="cuda" needs an NVIDIA GPU, and torch sees none; use'):
        tightrope.lower_bound(DATA, WALKER.candidate, engine="cuda")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        tightrope.BoundError, match=r'needs torch: pip install "tightrope\[torch\]"; or use engine="local"'
    ):
        tightrope.lower_bound(DATA, WALKER.candidate, engine="cuda")


def test_without_triton_it_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(tightrope.BoundError, match="needs triton: pip install triton"):
        tightrope.lower_bound(DATA, WALKER.candidate, engine="cuda")


def test_weights_that_are_no_counts_are_refused(monkeypatch):
    monkeypatch.setattr(cuda, "check_available", lambda: None)
    with pytest.raises(tightrope.BoundError, match='must be "multinomial" or "poisson"; got Bayesian'):
        tightrope.lower_bound(DATA, WALKER.candidate, engine="cuda", resampling="bayesian")


def test_an_unknown_engine_is_refused():
    with pytest.raises(tightrope.BoundError, match='engine must be "local", "cuda" or a dask client or address; got'):
        tightrope.lower_bound(DATA, WALKER.candidate, engine="cuda0")


def test_the_command_says_so_too(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    tightrope.write(WALKER.logs(20, rng=np.random.default_rng(0)), tmp_path / "logs.parquet")
    done = CliRunner().invoke(app, ["evaluate", str(tmp_path / "logs.parquet"), "--engine", "cuda"])
    assert done.exit_code == 2
    assert "needs an NVIDIA GPU" in done.stderr
