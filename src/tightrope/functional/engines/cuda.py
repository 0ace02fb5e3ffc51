"""The sums of replicates on a GPU, with the bits of the CPU: the same keyed weights, and columns on the same grid.

Every sum of whole-number weights times gridded columns is exact in float64, so a GPU's order of adding changes nothing.
With ``precision="float32"`` products run in TF32 on centred columns: faster, and off by far less than a standard error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tightrope.base.dataset import Array
from tightrope.base.errors import BoundError
from tightrope.functional.engines.sums import Job
from tightrope.functional.resampling import BLOCK, Multinomial, Poisson, WeightScheme, blocks_of

DEVICE = "cuda"
ROWS = 16_384  # replicates at a time
WEIGHT_BYTES = 5 << 30  # what the weights of one chunk may take: enough to keep the GPU busy
DENSE = 64  # draws a block: below this a GPU's draws might round otherwise, and the CPU makes them


def check_available() -> None:
    """Refuse with the reason where there is no GPU to use."""
    try:
        import torch
    except ImportError as error:
        raise BoundError('engine="cuda" needs torch: pip install "tightrope[torch]"; or use engine="local"') from error
    if not torch.cuda.is_available():
        raise BoundError('engine="cuda" needs an NVIDIA GPU, and torch sees none; use engine="local"')
    try:
        import triton  # type: ignore[import-not-found]  # noqa: F401  # comes with torch's builds for GPUs
    except ImportError as error:
        raise BoundError('engine="cuda" needs triton: pip install triton; or use engine="local"') from error


def check_scheme(scheme: WeightScheme) -> None:
    """Refuse weights that a GPU would not make bit for bit."""
    if not isinstance(scheme, (Multinomial, Poisson)):
        raise BoundError(
            'engine="cuda" draws whole-number weights: resampling must be "multinomial" or "poisson"; got '
            f'{type(scheme).__name__}. Use engine="local"'
        )


def totals(
    jobs: Sequence[Job], scheme: WeightScheme, *, n: int, rows: range, seed: int, single: bool = False
) -> list[Array]:
    """Weighted sums of every job's columns under these replicates, (replicates, columns) each."""
    parts = [
        _totals(jobs, scheme, n, range(first, min(first + ROWS, rows.stop)), seed, single)
        for first in range(rows.start, rows.stop, ROWS)
    ]
    return [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]


def _totals(jobs: Sequence[Job], scheme: WeightScheme, n: int, rows: range, seed: int, single: bool) -> list[Array]:
    import torch

    kind = torch.float32 if single else torch.float64
    sums = [torch.zeros((len(rows), job.statistic.n_columns), dtype=torch.float64, device=DEVICE) for job in jobs]
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = single
    try:
        for start, weights in _weights(scheme, n, rows, seed, kind):
            for job, total in zip(jobs, sums, strict=True):
                for first, last, columns in job.statistic.chunks(start, start + weights.shape[1]):
                    block = torch.as_tensor(job.prepared(columns), device=DEVICE)
                    part = weights[:, first - start : last - start]
                    if single:
                        total += part @ block
                    else:
                        torch.addmm(total, part, block, out=total)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    return [total.cpu().numpy() for total in sums]


def _weights(scheme: WeightScheme, n: int, rows: range, seed: int, kind: Any) -> Iterator[tuple[int, Any]]:
    """(first episode, weights of a chunk of episodes on the GPU); overwritten by the next chunk."""
    import torch

    kernels = _kernels()
    blocks = max(1, min(-(-n // BLOCK), WEIGHT_BYTES // (len(rows) * BLOCK * kind.itemsize)))
    buffer = torch.empty(len(rows) * min(blocks * BLOCK, n), dtype=kind, device=DEVICE)
    draws = None
    if isinstance(scheme, Multinomial):
        draws = _draws(scheme, n, rows, seed)
    for start in range(0, n, blocks * BLOCK):
        width = min(blocks * BLOCK, n - start)
        weights = buffer[: len(rows) * width].view(len(rows), width)
        if draws is None:
            kernels.fill_poisson(weights, start, rows.start, seed)
        else:
            kernels.fill_multinomial(weights, draws, start // BLOCK, rows.start, seed)
        yield start, weights


def _kernels() -> Any:
    """What only a machine with a GPU can import."""
    from tightrope.functional.engines import cuda_kernels

    return cuda_kernels


def _draws(scheme: Multinomial, n: int, rows: range, seed: int) -> Any:
    """How many of each replicate's draws fall into each block, (replicates, blocks) on the GPU."""
    whole = scheme.draws(n)
    if whole * BLOCK >= DENSE * n and n > BLOCK:
        return _kernels().block_draws(whole, n, rows, seed)
    import torch

    return torch.from_numpy(scheme.shares(n, blocks_of(n), rows, seed=seed).astype(np.int32)).to(DEVICE)
