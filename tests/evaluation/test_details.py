"""What a report shows of a bound, against the slow and obvious way."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope
from tightrope.domains import small


@pytest.fixture(scope="module")
def logs():
    return small("bonus").logs(200, rng=np.random.default_rng(5))


def final_ratios(data):
    steps = np.exp(data.eval_log_probs - data.behavior_log_probs)
    return np.array([steps[a:b].prod() for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)])


@pytest.mark.parametrize("estimator", ["is", "pdis", "wis", "pdwis"])
def test_the_influential_are_those_whose_absence_matters(logs, estimator):
    result = tightrope.evaluate(logs, estimators=[estimator], methods=["percentile"])
    ratios, everyone = final_ratios(logs), np.arange(200)
    changes = []
    for left_out in everyone:
        others = logs.take(everyone[everyone != left_out])
        changes.append(tightrope.estimate(others, estimator=estimator))
    order = np.argsort(-np.abs(result.bounds[0].estimate - np.array(changes)))
    found = result.details.influential
    assert len(found) == 5
    assert {one.episode for one in found} == {str(i) for i in order[:5]}
    for one in found:
        i = int(one.episode)
        assert one.without == pytest.approx(changes[i], rel=1e-9)
        assert one.share == pytest.approx(ratios[i] / ratios.sum(), rel=1e-9)
        assert one.episode_return == pytest.approx(logs.returns[i])
        assert one.influence == pytest.approx(result.bounds[0].estimate - changes[i], rel=0.25)  # to first order
    assert abs(found[0].influence) >= abs(found[-1].influence)


def test_a_model_weighs_all_episodes_alike(logs):
    result = tightrope.evaluate(logs, small("bonus").candidate, estimators=["mb"], methods=["percentile"])
    assert [one.share for one in result.details.influential] == [None] * 5


def test_the_histogram_holds_every_replicate(logs):
    result = tightrope.evaluate(logs, estimators=["wis"], methods=["percentile"], n_resamples=500)
    weights = tightrope.draw_weights(200, 500, seed=0)
    ratios = final_ratios(logs)
    values = weights @ (ratios * logs.returns) / (weights @ ratios)
    found = result.details
    assert sum(found.counts) + found.n_beyond + found.n_undefined == 500
    ends = (found.edges[0] - 1e-9, *found.edges[1:-1], found.edges[-1] + 1e-9)  # the extremes lie on the ends
    expected, _ = np.histogram(values, bins=ends)
    assert found.counts == tuple(expected)


def test_replicates_far_out_are_counted_instead_of_drawn():
    from tightrope.evaluation.details import _histogram

    edges, counts, beyond = _histogram(np.array([*np.linspace(0, 1, 100), 1e9]))
    assert (edges[0], edges[-1], sum(counts), beyond) == (0.0, 1.0, 100, 1)
    assert _histogram(np.full(9, 3.0)) == ((), (), 0)
    assert _histogram(np.empty(0)) == ((), (), 0)
    assert _histogram(3.0 + 4e-16 * np.arange(9)) == ((), (), 0)  # alike but for rounding: no bin has a width
    _, counts, beyond = _histogram(np.array([*np.zeros(99), 1.0]))  # more than half alike: no scale to be far by
    assert (sum(counts), beyond) == (100, 0)


def test_undefined_replicates_are_counted():
    """Three episodes, one of which the candidate could have made: (2/3)^3 of the resamples miss it."""
    columns = {
        "episode": [0, 1, 2],
        "t": [0, 0, 0],
        "action": [1, 0, 0],
        "reward": [1.0, 2.0, 3.0],
        "behavior_prob": [0.5] * 3,
        "eval_prob": [1.0, 0.0, 0.0],
    }
    result = tightrope.evaluate(tightrope.read(columns), estimators=["wis"], methods=["percentile"])
    assert result.details.n_undefined == result.bounds[0].n_undefined > 500
    assert result.details.counts == ()  # all others gave the same value


def test_the_believed_bound_is_looked_into(logs):
    result = tightrope.evaluate(logs)
    assert result.bounds[result.details.bound] is result.believed[0]
    none = tightrope.evaluate(logs, estimators=["is"], methods=["t", "bca"], strict=True)
    assert none.believed == ()
    assert none.bounds[none.details.bound].method == "bca"  # the first with replicates


def test_exact_bounds_alone_have_influence_but_no_replicates(logs):
    data = tightrope.read(
        {
            "episode": np.repeat(np.arange(200), logs.lengths),
            "t": logs.times,
            "reward": logs.rewards,
            "behavior_log_prob": logs.behavior_log_probs,
            "eval_log_prob": logs.eval_log_probs,
            "action": logs.actions,
        },
        reward_range=(0, 1),
        horizon=8,
        discount=0.95,
        incomplete="terminate",
    )
    result = tightrope.evaluate(data, estimators=["is"], methods=["betting"])
    assert result.details.counts == ()
    assert len(result.details.influential) == 5


def test_the_tail_is_the_survival_function(logs):
    result = tightrope.evaluate(logs, estimators=["wis"], methods=["percentile"])
    ratios = np.sort(final_ratios(logs))[::-1]
    assert len(result.overlap.tail) > 20
    for ratio, share in result.overlap.tail:
        rank = round(200 * share)
        assert ratio == pytest.approx(ratios[rank - 1], rel=1e-12)
    assert result.overlap.tail[0] == (pytest.approx(ratios[0]), 1 / 200)
    assert result.overlap.tail[-1][1] == 1.0
