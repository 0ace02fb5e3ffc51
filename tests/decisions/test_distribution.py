"""The distribution of the candidate's return: numbers by hand, laws, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tightrope import BoundError, Distribution
from tightrope.bounds.exact.betting import Betting
from tightrope.bounds.exact.betting_mixture import BettingMixture
from tightrope.decisions import distribution as module
from tightrope.decisions.tails.exact import tail_mean_lower
from tightrope.decisions.tails.outcomes import Outcomes, tail_mean
from tightrope.decisions.tails.record import Tail
from tightrope.domains import small
from tightrope.functional.values import TrajectoryValues

WALKER = small("walker")


def walks(n=200, seed=0):
    return WALKER.logs(n, rng=np.random.default_rng(seed))


def bandit(rewards, ratios, **declared):
    """One step an episode, with the ratio of the candidate to the behaviour policy as given."""
    probs = np.full(len(rewards), 0.1)
    columns = {"reward": rewards, "pscore": probs, "eval_prob": probs * np.asarray(ratios)}
    return tightrope.read(columns, one_step=True, **declared)


def record(lower=(), upper=(), steps=((0.0, 1.0),), ends=(-10.0, 10.0), **fields):
    whole = {"tails": (), "confidence": 0.9, "guarantee": "exact", "n_trajectories": 1, **fields}
    return Distribution(steps=steps, lower=lower, upper=upper, value_range=ends, **whole)


# -- what a band says ----------------------------------------------------------------------------------------------

BAND = record(
    lower=((-4.0, 0.05), (2.0, 0.6)), upper=((-6.0, 0.1), (1.0, 0.5)), steps=((-5.0, 0.2), (0.0, 0.5), (3.0, 1.0))
)


def test_below_a_level_by_hand():
    assert (BAND.below(0.0).lower, BAND.below(0.0).upper) == (0.05, 0.5)
    assert (BAND.below(-4.0).lower, BAND.below(-4.0).upper) == (0.0, 0.5)  # up to −4 is not below −4
    assert (BAND.below(1.0).lower, BAND.below(1.0).upper) == (0.05, 0.5)
    assert (BAND.below(1.5).lower, BAND.below(1.5).upper) == (0.05, 1.0)
    assert (BAND.below(-10.0).lower, BAND.below(-10.0).upper) == (0.0, 0.0)
    assert [BAND.below(level).estimate for level in (-5.0, -4.9, 0.0, 9.0)] == [0.0, 0.2, 0.2, 1.0]


def test_bounds_that_contradict_each_other_are_left_apart_and_named():
    """At least 0.7 up to 0 and at most 0.5 below 1: no distribution does that, and no number stands for it."""
    torn = record(lower=((0.0, 0.7),), upper=((1.0, 0.5),))
    assert torn.crosses
    assert (torn.below(0.5).lower, torn.below(0.5).upper) == (0.7, 0.5)
    assert not BAND.crosses
    assert not record(lower=((0.0, 0.7),), upper=((0.0, 0.5),)).crosses  # below 0 at most 0.5, at 0 the rest
    level = Tail("below", 0.0, 0.5, 0.6, 0.4)
    assert record(tails=(level,)).crosses


@pytest.mark.parametrize("strict", [True, False])
def test_wrong_propensities_make_exact_bounds_contradict_each_other(strict):
    rewards = np.tile([0.0, 1.0], 300)
    torn = bandit(rewards, np.full(600, 2.0), reward_range=(0, 1))
    shape = tightrope.distribution(torn, levels=[0.5], quantiles=[0.001], points=3, strict=strict, n_resamples=200)
    assert [one.code for one in shape.warnings if one.code == "crossed"] == (["crossed"] if strict else [])
    fine = bandit(rewards, np.ones(600), reward_range=(0, 1))
    shape = tightrope.distribution(fine, levels=[0.5], points=3, strict=strict, n_resamples=200)
    assert not [one.code for one in shape.warnings if one.code == "crossed"]


def test_quantiles_by_hand():
    ends = {p: (BAND.quantile(p).lower, BAND.quantile(p).upper) for p in (0.05, 0.1, 0.3, 0.5, 0.55, 0.7)}
    assert ends == {
        0.05: (-10.0, -4.0),
        0.1: (-10.0, 2.0),  # at most 0.1 below −6 still allows the 10 % quantile to lie there
        0.3: (-6.0, 2.0),
        0.5: (-6.0, 2.0),
        0.55: (1.0, 2.0),
        0.7: (1.0, 10.0),
    }
    assert [BAND.quantile(p).estimate for p in (0.1, 0.2, 0.21, 0.5, 0.9)] == [-5.0, -5.0, 0.0, 0.0, 3.0]


def test_tail_means_by_hand():
    """The worst case has 0.1 at the floor, 0.4 just at −6 and the rest at 1; the best has 0.05 at −4, 0.55 at 2."""
    assert BAND.cvar(0.1).lower == pytest.approx(-10.0)
    assert BAND.cvar(0.5).lower == pytest.approx((0.1 * -10 + 0.4 * -6) / 0.5)
    assert BAND.cvar(0.8).lower == pytest.approx((0.1 * -10 + 0.4 * -6 + 0.3 * 1) / 0.8)
    assert BAND.cvar(0.05).upper == pytest.approx(-4.0)
    assert BAND.cvar(0.5).upper == pytest.approx((0.05 * -4 + 0.45 * 2) / 0.5)
    assert BAND.cvar(0.8).upper == pytest.approx((0.05 * -4 + 0.55 * 2 + 0.2 * 10) / 0.8)
    assert BAND.cvar(0.4).estimate == pytest.approx((0.2 * -5 + 0.2 * 0) / 0.4)


def test_without_a_declared_range_the_ends_are_infinite():
    wide = replace(BAND, value_range=(-np.inf, np.inf))
    assert wide.quantile(0.05).lower == -np.inf
    assert wide.cvar(0.8).lower == -np.inf
    assert wide.cvar(0.8).upper == np.inf
    assert wide.cvar(0.5).upper == BAND.cvar(0.5).upper
    assert Distribution.from_json(wide.to_json()) == wide


def test_a_band_that_is_not_monotone_counts_as_the_nearest_that_is():
    band = record(upper=((-6.0, 0.4), (1.0, 0.2)), lower=((-4.0, 0.3), (2.0, 0.1)))
    assert band.below(-6.0).upper == 0.2
    assert band.cvar(0.5).lower == pytest.approx((0.2 * -10 + 0.3 * 1) / 0.5)
    assert band.cvar(0.5).upper == pytest.approx((0.3 * -4 + 0.2 * 10) / 0.5)


# -- against slow oracles ------------------------------------------------------------------------------------------


def test_the_estimate_is_self_normalised_importance_sampling():
    logs = bandit([1.0, 3.0, 2.0, 3.0], [2.0, 0.5, 1.0, 0.5])
    shape = tightrope.distribution(logs, levels=[3.0], quantiles=[0.6], shares=[0.75], n_resamples=100)
    assert shape.steps == ((1.0, 0.5), (2.0, 0.75), (3.0, 1.0))
    assert [tail.estimate for tail in shape.tails] == pytest.approx([0.75, 2.0, (0.5 * 1 + 0.25 * 2) / 0.75])


def test_the_mean_of_a_tail_is_its_dual():
    """CVaR = max over c of c − E[(c − G)⁺] / share, the maximum at a return."""
    rng = np.random.default_rng(3)
    values = np.sort(rng.normal(size=30))
    probs = rng.dirichlet(np.ones(30))
    for share in (0.05, 0.3, 0.99):
        dual = max(c - probs @ np.maximum(c - values, 0) / share for c in values)
        assert tail_mean(values, np.cumsum(probs), share) == pytest.approx(dual)


def test_a_level_alone_has_two_exact_bounds_at_half_the_error_each():
    logs = walks()
    shape = tightrope.distribution(logs, WALKER.candidate, levels=[-12.0], points=0, strict=True, seed=5)
    ratios = np.exp([(logs.eval_log_probs - logs.behavior_log_probs)[logs.steps(i, i + 1)].sum() for i in range(200)])
    below = TrajectoryValues(ratios * (logs.returns < -12.0), 0.0, 1.0, None)
    above = TrajectoryValues(ratios * (logs.returns >= -12.0), 0.0, 1.0, None)
    tail = shape.below(-12.0)
    assert tail.lower == pytest.approx(Betting().lower(below, delta=0.025, seed=5))
    assert tail.upper == pytest.approx(1 - Betting().lower(above, delta=0.025, seed=5))


def test_replicates_are_whole_distributions(monkeypatch):
    monkeypatch.setattr(module, "ENOUGH", dict.fromkeys(module.ENOUGH, 0.0))
    logs, size, seed = walks(40), 200, 11
    shape = tightrope.distribution(
        logs, WALKER.candidate, levels=[-12.0], quantiles=[0.3], shares=[0.2], n_resamples=size, seed=seed
    )
    logs_of = logs.eval_log_probs - logs.behavior_log_probs
    ratios = np.exp([logs_of[logs.steps(i, i + 1)].sum() for i in range(40)])
    grid = np.unique(logs.returns)
    names = ("below", "quantile", "cvar", "up", "down")
    drawn = {(name, end): [] for name in names for end in ("lower", "upper")}
    whole = np.array([ratios[logs.returns <= x].sum() for x in grid]) / ratios.sum()
    for row in tightrope.draw_weights(40, size, seed=seed):
        plain = np.array([(row * ratios)[logs.returns <= x].sum() for x in grid]) / (row @ ratios)
        drawn["up", "upper"].append((plain - whole).max())
        drawn["down", "upper"].append((whole - plain).max())
        for one_more in ("lowest", "highest"):  # of the returns logged, as heavy as the heaviest, drawn once each time
            returns = np.append(logs.returns, grid[0 if one_more == "lowest" else -1])
            mass = np.append(row * ratios, ratios.max())
            mass /= mass.sum()
            heights = np.array([mass[returns <= x].sum() for x in grid])
            order = np.argsort(returns)
            left = np.clip(0.2 - np.append(0, np.cumsum(mass[order])[:-1]), 0, mass[order])
            drawn["below", "upper" if one_more == "lowest" else "lower"].append(mass[returns < -12.0].sum())
            end = "lower" if one_more == "lowest" else "upper"  # more low returns: a lower quantile and a lower mean
            drawn["quantile", end].append(grid[np.argmax(heights >= 0.3 - 1e-12)])
            drawn["cvar", end].append(left @ returns[order] / 0.2)
    ranked = {name: np.sort(values) for name, values in drawn.items()}
    for tail in shape.tails:
        assert tail.lower == pytest.approx(ranked[tail.kind, "lower"][4])  # ⌊0.025 · 200⌋ = 5, counted from one
        assert tail.upper == pytest.approx(ranked[tail.kind, "upper"][-5])
    assert [p for _, p in shape.lower] == pytest.approx(np.maximum(whole - ranked["up", "upper"][-5], 0))
    before = np.append(0, whole[:-1])
    assert [p for _, p in shape.upper] == pytest.approx(np.minimum(before + ranked["down", "upper"][-5], 1))


def test_where_a_tail_is_thin_its_exact_bounds_stand_in():
    logs = walks(100)
    asked = {"levels": [-12.0], "shares": [0.05]}
    shape = tightrope.distribution(logs, WALKER.candidate, quantiles=[0.5], **asked, n_resamples=200)
    assert [tail.guarantee for tail in shape.tails] == ["exact", "approximate", "exact"]
    texts = [warning.text for warning in shape.warnings if warning.code == "thin-tail"]
    assert [text.split(" holds fewer than ")[0] for text in texts] == [
        "the tail below a level",
        "the tail of the lowest returns",
        "an end of the band",
    ]
    for name, given in asked.items():
        (own,) = tightrope.distribution(logs, WALKER.candidate, **{name: given}, points=0, strict=True).tails
        (here,) = [tail for tail in shape.tails if tail.kind == own.kind]
        assert (here.lower, here.upper) == (own.lower, own.upper)
    dropped = tightrope.distribution(replace(logs, n_dropped=1), WALKER.candidate, **asked, n_resamples=200)
    assert [(tail.lower, tail.upper) for tail in dropped.tails] == [(0.0, 1.0), logs.value_range]
    assert dropped.lower == dropped.upper == ()  # nothing exact can be said, and nothing else is


def test_a_band_with_a_thin_end_is_the_exact_one():
    for n, exact in ((200, True), (4000, False)):
        logs = walks(n)
        shape = tightrope.distribution(logs, WALKER.candidate, n_resamples=200)
        strict = tightrope.distribution(logs, WALKER.candidate, strict=True)
        assert ((shape.lower, shape.upper) == (strict.lower, strict.upper)) == exact
        assert any("an end of the band" in warning.text for warning in shape.warnings) == exact


def test_how_many_episodes_tell_of_a_tail():
    outcomes = Outcomes(np.arange(4.0), np.array([3.0, 1.0, 1.0, 1.0]), np.zeros(4, bool), 0.0, 3.0)
    first = np.array([True, True, False, False])
    assert outcomes.effective(first) == pytest.approx(min(16 / 10, 36 / 12 * 4 / 6))
    assert outcomes.effective(~first) == pytest.approx(min(2.0, 36 / 12 * 2 / 6))
    assert outcomes.effective(np.zeros(4, bool)) == 0.0


# -- laws ----------------------------------------------------------------------------------------------------------


def test_the_bound_on_the_mean_of_the_worst_never_errs_more_often_than_it_may():
    """On 300 small data sets with a skewed tail; the study in docs/decisions.md has many more."""
    values, probs, ratio = np.array([0.0, 5.0, 6.0]), np.array([0.02, 0.08, 0.9]), np.array([0.5, 2.0, 0.95])
    behavior = probs / ratio / (probs / ratio).sum()
    truth = tail_mean(values, np.cumsum(probs), 0.1)
    exact = probs / behavior
    rng, errors, bounds = np.random.default_rng(8), 0, []
    for seed in range(300):
        drawn = rng.choice(3, 150, p=behavior)
        outcomes = Outcomes(values[drawn], exact[drawn], np.zeros(150, bool), 0.0, 6.0)
        bounds.append(tail_mean_lower(outcomes, 0.1, 0.1, seed))
        errors += bounds[-1] > truth
    assert errors <= 45  # 30 expected at most; 45 has probability 0.003
    assert np.mean(bounds) > 0.2 * truth  # and it says something


def test_a_better_tail_has_better_bounds_and_the_scale_does_not_matter():
    logs = walks()
    moved = replace(logs, rewards=2.0 * logs.rewards, reward_range=(-42.0, 0.0), return_range=(-64.0, 0.0))
    here = replace(logs, return_range=(-32.0, 0.0))
    options = {"policy": WALKER.candidate, "quantiles": [0.3], "shares": [0.5], "strict": True}
    one, two = (tightrope.distribution(data, **options) for data in (here, moved))
    for first, second in zip(one.tails, two.tails, strict=True):
        for name in ("estimate", "lower", "upper"):
            assert 2 * first.to_dict()[name] == pytest.approx(second.to_dict()[name], rel=1e-6)


def test_everything_exact_holds_together_so_more_questions_cost_width():
    logs = walks(1000)
    alone = tightrope.distribution(logs, WALKER.candidate, levels=[-12.0], points=0, strict=True)
    more = tightrope.distribution(logs, WALKER.candidate, levels=[-12.0, -9.0], shares=[0.1], points=0, strict=True)
    assert alone.below(-12.0).lower > more.below(-12.0).lower
    assert alone.below(-12.0).upper < more.below(-12.0).upper


def test_key_points_come_from_episodes_that_are_then_left_out(monkeypatch):
    from tightrope.decisions.tails import exact

    used = []
    real = exact._mean
    monkeypatch.setattr(exact, "_mean", lambda part, *rest: used.append(len(part)) or real(part, *rest))
    shape = tightrope.distribution(walks(100), WALKER.candidate, points=4, strict=True)
    assert set(used) == {80}
    assert len(used) == len(shape.lower) + len(shape.upper)


def test_a_quantile_is_found_by_trying_every_return():
    logs = walks(300)
    logs_of = logs.eval_log_probs - logs.behavior_log_probs
    ratios = np.exp([logs_of[logs.steps(i, i + 1)].sum() for i in range(300)])

    def bound(event):
        return BettingMixture().lower(TrajectoryValues(ratios * event, 0.0, 1.0, None), delta=0.025, seed=0)

    for p in (0.1, 0.5):
        tail = tightrope.distribution(logs, WALKER.candidate, quantiles=[p], points=0, strict=True).quantile(p)
        returns = np.unique(logs.returns)
        low = [x for x in returns if 1 - bound(logs.returns >= x) < p]
        high = [x for x in returns if bound(logs.returns <= x) > p]
        assert (tail.lower, tail.upper) == (max(low, default=-32.0), min(high))


def test_the_same_seed_gives_the_same_bits_and_another_one_other_key_points():
    logs = walks()
    first, again, other = (
        tightrope.distribution(logs, WALKER.candidate, shares=[0.1], strict=True, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again
    assert first.lower != other.lower


def test_an_episode_that_was_cut_off_makes_exact_bounds_wider_on_both_sides():
    logs = walks(60)
    short = np.flatnonzero(logs.lengths < logs.horizon)[:8]
    cut = np.zeros(60, bool)
    cut[short] = True
    options = {"policy": WALKER.candidate, "levels": [-12.0], "shares": [0.5], "points": 0, "strict": True}
    whole, part = (tightrope.distribution(data, **options) for data in (logs, replace(logs, cut=cut)))
    assert part.below(-12.0).lower <= whole.below(-12.0).lower
    assert part.below(-12.0).upper > whole.below(-12.0).upper
    assert part.cvar(0.5).lower <= whole.cvar(0.5).lower


# -- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": ["x"]}, "levels must be finite numbers; got 'x'"),
        ({"shares": [0.0]}, r"shares \(--cvar\) must be a number between 0 and 1, such as 0.1; got 0.0"),
        ({"quantiles": [5]}, r"quantiles \(--quantile\) must be a number between 0 and 1"),
        ({"points": -1}, "points must be a whole number from 0 to 1000; got -1"),
        ({"points": 0}, "points must be at least 1 where no levels, quantiles or shares are named"),
        ({"confidence": 95}, "confidence must lie between 0.5 and 1"),
        ({"n_resamples": 30}, "n_resamples is 30, too few for confidence 0.975"),
    ],
)
def test_what_cannot_be_asked_is_refused(options, message):
    with pytest.raises(BoundError, match=message):
        tightrope.distribution(walks(20), WALKER.candidate, **options)


def test_exact_bounds_refuse_what_would_not_be_exact():
    with pytest.raises(BoundError, match="at least 10; the logs hold 9"):
        tightrope.distribution(walks(9), WALKER.candidate, strict=True)
    with pytest.raises(BoundError, match="left out for being cut off"):
        tightrope.distribution(replace(walks(20), n_dropped=1), WALKER.candidate, strict=True)
    bonus = small("bonus")
    open_end = replace(bonus.logs(50, rng=np.random.default_rng(0)), horizon_declared=False)
    assert not open_end.terminated.all()
    with pytest.raises(BoundError, match="horizon"):
        tightrope.distribution(open_end, bonus.candidate, strict=True)


def test_a_range_of_steps_says_nothing_of_returns_where_the_horizon_is_only_the_longest_seen():
    logs = replace(walks(50), horizon_declared=False, return_range=None)
    assert tightrope.distribution(logs, WALKER.candidate, strict=True).value_range == (-np.inf, np.inf)
    assert tightrope.distribution(walks(50), WALKER.candidate, strict=True).value_range[0] == -32.0


def test_logs_without_a_range_still_have_levels_and_quantiles():
    logs = bandit(np.linspace(0, 1, 400), np.ones(400))
    shape = tightrope.distribution(logs, levels=[0.5], quantiles=[0.5], shares=[0.1], points=0, strict=True)
    assert 0 < shape.below(0.5).lower < 0.5 < shape.below(0.5).upper < 1
    assert np.isfinite([shape.quantile(0.5).lower, shape.quantile(0.5).upper]).all()
    assert shape.cvar(0.1).lower == -np.inf


def test_the_picture_is_a_file_of_its_own(tmp_path):
    shape = tightrope.distribution(walks(100), WALKER.candidate, strict=True)
    shape.to_svg(tmp_path / "walk.svg", name="crossing")
    text = (tmp_path / "walk.svg").read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert text.count("<path") == 2
    assert "crossing" in text
    assert json.loads(shape.to_json())["guarantee"] == "exact"
