"""Weight rows: the right distribution, and the same rows however they are asked for. All seeds are fixed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tightrope.base import kernels
from tightrope.base.errors import TightropeError
from tightrope.functional.engines.sums import Walk
from tightrope.functional.engines.threads import Meter
from tightrope.functional.resampling import (
    BLOCK,
    Bayesian,
    Multinomial,
    Poisson,
    draw_weights,
    leave_one_out_weights,
    seed_of,
)

SCHEMES = [Multinomial(), Multinomial(size=300), Multinomial(size=5000), Poisson(), Bayesian()]
TINY = 1e-4  # a p-value under this fails; seeds are fixed, so nothing here is left to luck


def ids(scheme):
    return str(scheme)


# -- the generator ------------------------------------------------------------------------------------------------

# Known answers of philox4x32-10 from the Random123 distribution (kat_vectors).
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_known_answers(counter, key, answer):
    words = [np.uint32(int(word, 16)) for word in f"{counter} {key}".split()]

    from numba import njit  # philox is inlined into the kernels; called by itself it needs a wrapper to compile

    made = njit(lambda a, b, c, d, e, f: kernels.philox(a, b, c, d, e, f))(*words)
    assert [f"{int(word):08x}" for word in made] == answer.split()


# -- distributions ------------------------------------------------------------------------------------------------


def chi_square(counts, probs, total):
    """The p-value of observed category counts; rare categories pooled."""
    expected = np.asarray(probs) * total
    order = np.argsort(expected)
    pooled = np.cumsum(expected[order]) < 8
    rare = order[pooled]
    keep = np.setdiff1d(np.arange(len(expected)), rare)
    seen = [*np.asarray(counts)[keep], np.asarray(counts)[rare].sum()]
    want = [*expected[keep], expected[rare].sum()]
    if want[-1] < 1e-9:
        seen, want = seen[:-1], want[:-1]
    statistic = sum((s - w) ** 2 / w for s, w in zip(seen, want, strict=True))
    return stats.chi2.sf(statistic, len(want) - 1)


@pytest.mark.parametrize("n", [5, 1024, 1025, 3000])
@pytest.mark.parametrize("share", [None, 0.4, 2.0])
def test_multinomial(n, share):
    draws = n if share is None else int(share * n)
    rows = draw_weights(n, 4000, seed=n, resampling=Multinomial(size=None if share is None else draws))
    assert (rows.sum(axis=1) == draws).all()
    assert (rows >= 0).all()
    assert (rows == np.rint(rows)).all()
    # Each weight is Binomial(draws, 1/n): first, middle and last trajectory, and the first of the last block.
    reach = np.arange(draws + 1)
    for i in {0, n // 2, n - 1, (n - 1) // BLOCK * BLOCK}:
        counts = np.bincount(rows[:, i].astype(int), minlength=draws + 1)
        assert chi_square(counts, stats.binom.pmf(reach, draws, 1 / n), len(rows)) > TINY, i
    # No trajectory is favoured: column means are draws/n with the multinomial's variance.
    z = (rows.mean(axis=0) - draws / n) / np.sqrt(draws / n * (1 - 1 / n) / len(rows))
    assert stats.chi2.sf((z**2).sum() * (n - 1) / n, n - 1) > TINY
    assert stats.chi2.cdf((z**2).sum() * (n - 1) / n, n - 1) > TINY
    # Covariance of two weights: -draws/n², within a block and across blocks.
    for i, j in [(0, 1), (0, n - 1)]:
        product = (rows[:, i] - draws / n) * (rows[:, j] - draws / n)
        assert abs(product.mean() + draws / n**2) < 5 * product.std() / np.sqrt(len(rows))


@pytest.mark.parametrize("n", [1025, 3000, 40_000])
def test_block_totals_are_binomial(n):
    """The first block's total is Binomial(n, 1024/n), by inversion and by rejection alike; so is the last's."""
    rows = draw_weights(n, 1000 if n > 10_000 else 4000, seed=77)
    for block in (slice(0, BLOCK), slice((n - 1) // BLOCK * BLOCK, n)):
        width = len(range(n)[block])
        totals = rows[:, block].sum(axis=1).astype(int)
        counts = np.bincount(totals, minlength=n + 1)
        assert chi_square(counts, stats.binom.pmf(np.arange(n + 1), n, width / n), len(rows)) > TINY


@pytest.mark.parametrize(("n", "p"), [(3, 0.3), (50, 0.05), (50, 0.4), (1000, 0.7), (100_000, 0.02), (10**7, 0.5)])
def test_binomial(n, p):
    from numba import njit

    @njit
    def draw(out, n, p):
        for i in range(len(out)):
            out[i] = kernels.binomial(n, p, np.uint32(0), np.uint32(i), np.uint32(9), np.uint32(4))

    out = np.empty(20_000, dtype=np.int64)
    draw(out, n, p)
    assert 0 <= out.min() <= out.max() <= n
    # Through the exact distribution function, jittered within each atom, the draws must be uniform.
    jitter = np.random.default_rng(0).random(len(out))
    uniform = stats.binom.cdf(out - 1, n, p) + jitter * stats.binom.pmf(out, n, p)
    assert stats.kstest(uniform, "uniform").pvalue > TINY


def test_poisson():
    rows = draw_weights(500, 2000, seed=1, resampling="poisson")
    counts = np.bincount(rows.astype(int).ravel(), minlength=14)
    assert chi_square(counts, stats.poisson.pmf(np.arange(len(counts)), 1), rows.size) > TINY
    assert abs(rows.mean() - 1) < 5 / np.sqrt(rows.size)
    assert abs(rows.var() - 1) < 5 * np.sqrt(3 / rows.size)  # Var (x-1)² = 3 for Poisson(1)
    _uncorrelated(rows)


def test_exponential():
    rows = draw_weights(500, 2000, seed=1, resampling="bayesian")
    assert stats.kstest(rows.ravel(), "expon").pvalue > TINY
    assert rows.min() > 0
    _uncorrelated(rows)


def _uncorrelated(rows):
    """Neighbouring trajectories, and neighbouring replicates (which share a Philox call), are independent."""
    centered = rows - rows.mean()
    for left, right in [(centered[:, 1:], centered[:, :-1]), (centered[1:], centered[:-1])]:
        assert abs((left * right).mean()) < 5 * rows.var() / np.sqrt(left.size)


def test_replicates_are_independent():
    rows = draw_weights(200, 4000, seed=1) - 1.0
    product = (rows[1:] * rows[:-1]).sum(axis=1)
    assert abs(product.mean()) < 5 * product.std() / np.sqrt(len(product))


def test_leave_one_out_rows():
    np.testing.assert_array_equal(leave_one_out_weights(3), [[0, 1, 1], [1, 0, 1], [1, 1, 0]])


# -- the same rows, however asked for --------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES, ids=ids)
@pytest.mark.parametrize("n", [5, 1024, 2500])
def test_tiles_and_rows_agree(scheme, n, monkeypatch):
    """Any tiling, and any replicates asked for by themselves, are parts of one fixed matrix."""
    whole = draw_weights(n, 50, seed=3, resampling=scheme)
    np.testing.assert_array_equal(draw_weights(n, 20, seed=3, resampling=scheme), whole[:20])
    for first in (1, 2, 3, 30):  # not only multiples of the four replicates that share a Philox call
        np.testing.assert_array_equal(draw_weights(n, 11, seed=3, resampling=scheme, first=first), whole[first:][:11])
    for tile in (7, 256, 1):
        monkeypatch.setattr("tightrope.functional.engines.sums.TILE_ROWS", tile)
        walk = Walk(scheme, n, 3, Meter(1.0, None))
        for slab in (range(50), range(13, 40)):
            made = np.full((len(slab), n), np.nan)
            for start, rows, weights in walk.tiles(slab, walk.blocks):
                made[rows, start : start + weights.shape[1]] = weights
            np.testing.assert_array_equal(made, whole[slab.start : slab.stop])


@pytest.mark.parametrize("scheme", SCHEMES, ids=ids)
@pytest.mark.parametrize("n", [3000, 5 * BLOCK, 6 * BLOCK + 1])
def test_partitions_need_none_of_the_others(scheme, n):
    """Blocks that are asked for by themselves have the weights that they have among all."""
    whole = draw_weights(n, 9, seed=5, resampling=scheme)
    for first, last in ((0, 1), (1, 2), (2, 3), (1, 3), (0, -(-n // BLOCK)), (-(-n // BLOCK) - 1, -(-n // BLOCK))):
        blocks, columns = range(first, last), slice(first * BLOCK, min(last * BLOCK, n))
        out = np.empty((4, columns.stop - columns.start))
        scheme.fill(out, scheme.shares(n, blocks, range(5, 9), seed=5), seed=5, block=first, replicate=5)
        np.testing.assert_array_equal(out, whole[5:, columns])


def test_shares_of_blocks_follow_the_multinomial():
    """Means, variances and covariances of the draws of five blocks, one of them short, and the total."""
    n, rows = 4 * BLOCK + 300, 20_000
    shares = Multinomial().shares(n, range(5), range(rows), seed=8)
    share = np.array([BLOCK] * 4 + [300]) / n
    np.testing.assert_array_equal(shares.sum(axis=1), n)
    np.testing.assert_allclose(shares.mean(axis=0), n * share, rtol=5 / np.sqrt(rows * 300))
    expected = n * (np.diag(share) - np.outer(share, share))
    np.testing.assert_allclose(np.cov(shares.T), expected, atol=5 * expected.max() * np.sqrt(2 / rows))


@pytest.mark.parametrize("scheme", SCHEMES, ids=ids)
def test_seeds(scheme):
    """Both halves of the 64-bit seed count; streams of different schemes differ too."""
    rows = [draw_weights(64, 8, seed=seed, resampling=scheme) for seed in (0, 1, 2**32, 2**63)]
    for i, left in enumerate(rows):
        for right in rows[:i]:
            assert (left != right).mean() > 0.3


def test_seed_of():
    assert seed_of(12) == 12
    assert seed_of(np.random.default_rng(1)) == seed_of(np.random.default_rng(1))
    assert seed_of(np.random.SeedSequence(1)) != seed_of(np.random.SeedSequence(2))
    generator = np.random.default_rng(1)
    assert seed_of(generator) != seed_of(generator)


@pytest.mark.parametrize("bad", [-1, 2**64, True, 1.5, "seed", None])
def test_bad_seeds(bad):
    with pytest.raises(TightropeError, match="seed must be"):
        seed_of(bad)


def test_bad_schemes():
    with pytest.raises(TightropeError, match='must be "multinomial", "bayesian", "poisson"'):
        draw_weights(3, 2, seed=0, resampling="jackknife")
    with pytest.raises(TightropeError, match="size must be a whole number of episodes"):
        Multinomial(size=0)
