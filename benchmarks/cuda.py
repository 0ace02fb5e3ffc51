"""Sums of replicates on a GPU: speed, and the same bits as on the CPU.

    python benchmarks/cuda.py --reference build/cuda.npz --make    # where numba is: what the CPU says
    python benchmarks/cuda.py --reference build/cuda.npz           # where a GPU is: compares, and times

The two may run on different machines.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from pathlib import Path

import numpy as np

from tightrope.functional.resampling import Multinomial, Poisson

SEED = 7
SMALL = {"n": 5 * 1024 + 389, "rows": 96}  # with a last block that is not full
LARGE = {"n": 1_000_000, "rows": 10_000, "columns": 400}


class Columns:
    """Columns that were made beforehand, as an engine asks for them."""

    def __init__(self, columns):
        self.columns, self.n_columns, self.statistic = columns, columns.shape[1], self

    def chunks(self, start, stop):
        yield start, stop, self.columns[start:stop]

    def prepared(self, columns):
        return columns


def gridded(n, columns, whole):
    """Random columns on a grid so coarse that every sum of ``whole`` of them is exact."""
    raw = np.random.default_rng(SEED).normal(size=(n, columns))
    grid = 2.0 ** (np.ceil(np.log2(whole * np.abs(raw).max())) - 52)
    return np.round(raw / grid) * grid


def make(path: Path) -> None:
    """What the CPU says: weights, block draws and sums."""
    from tightrope.base import kernels
    from tightrope.functional.resampling import draw_weights

    n, rows = SMALL["n"], SMALL["rows"]
    found = {
        name: draw_weights(n, rows, seed=SEED, resampling=scheme).astype(np.int16)
        for name, scheme in (("multinomial", Multinomial()), ("poisson", Poisson()), ("half", Multinomial(n // 2)))
    }
    columns = gridded(n, 12, 13 * n)
    sums = {f"{name}_sums": weights.astype(float) @ columns for name, weights in found.items()}
    draws = np.empty((LARGE["rows"], -(-LARGE["n"] // 1024)), dtype=np.int32)
    kernels.block_draws(draws, LARGE["n"], LARGE["n"], 0, 0, np.uint32(SEED), np.uint32(0))
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = np.frombuffer(hashlib.sha256(draws.tobytes()).digest(), np.uint8)
    np.savez_compressed(path, draws=digest, **found, **sums)


def compare(path: Path) -> None:
    """Every weight, every sum, and the ten million binomials of a large problem."""
    import torch

    from tightrope.functional.engines import cuda, cuda_kernels

    with np.load(path) as file:
        known = dict(file)
    n, rows = SMALL["n"], range(SMALL["rows"])
    columns = gridded(n, 12, 13 * n)
    schemes = {"multinomial": Multinomial(), "poisson": Poisson(), "half": Multinomial(n // 2)}
    for name, scheme in schemes.items():
        parts = [weights.cpu().numpy() for _, weights in cuda._weights(scheme, n, rows, SEED, torch.float64)]
        (sums,) = cuda.totals([Columns(columns)], scheme, n=n, rows=rows, seed=SEED)
        same = np.array_equal(np.hstack(parts), known[name])
        print(f"{name}: weights {'the same' if same else 'DIFFER'}, "
              f"sums {'the same' if np.array_equal(sums, known[f'{name}_sums']) else 'DIFFER'}")  # fmt: skip
    draws = cuda_kernels.block_draws(LARGE["n"], LARGE["n"], range(LARGE["rows"]), SEED).cpu().numpy()
    same = hashlib.sha256(draws.tobytes()).digest() == known["draws"].tobytes()
    print(f"{draws.size:,} binomials: {'the same' if same else 'DIFFER'}")


def measure() -> None:
    """n = 1e6, B = 10,000, 400 columns: 8 TFLOP."""
    import torch

    from tightrope.functional.engines import cuda

    n, rows, width = LARGE["n"], range(LARGE["rows"]), LARGE["columns"]
    print(torch.cuda.get_device_name(), f"torch {torch.__version__}")
    columns = torch.randn((n, width), dtype=torch.float64, device="cuda")
    host = columns[: 1 << 18].cpu().numpy()
    cases = {
        "float64, columns on the GPU": (columns, False),
        "tf32, columns on the GPU": (columns.to(torch.float32), True),
    }
    for name, (table, single) in cases.items():
        times = []
        for _ in range(4):
            torch.cuda.synchronize()
            started = time.perf_counter()
            cuda.totals([Columns(table)], Multinomial(), n=n, rows=rows, seed=SEED, single=single)
            times.append(time.perf_counter() - started)
        print(f"{name}: {min(times[1:]):.3f} s (the first time {times[0]:.2f} s)")
    weights = torch.ones((10_000, 61 * 1024), dtype=torch.float64, device="cuda")
    part = columns[: 61 * 1024]
    for _ in range(2):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(16):
            weights @ part
        torch.cuda.synchronize()
        bare = time.perf_counter() - started
    print(f"the bare float64 product: {bare:.3f} s")
    started = time.perf_counter()
    torch.as_tensor(host, device="cuda")
    torch.cuda.synchronize()
    print(f"copying the columns there: {(time.perf_counter() - started) * n / len(host):.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--make", action="store_true")
    asked = parser.parse_args()
    if asked.make:
        make(asked.reference)
    else:
        compare(asked.reference)
        measure()
