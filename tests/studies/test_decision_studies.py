"""The studies of comparisons and of plans, tiny: what they count, and the sections they write."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tightrope.domains import small
from tightrope.evaluation.needed import Needed
from tightrope.studies import by_patient, clustering, comparing, planning
from tightrope.studies.counts import counted
from tightrope.studies.pages.by_patient import WAYS
from tightrope.studies.pages.by_patient import render as render_decisions
from tightrope.studies.pages.comparing import render as render_counts
from tightrope.studies.pages.planning import render as render_plans


def test_candidates_have_exactly_the_value_of_the_behaviour_policy_and_differ():
    problem = small("bonus")
    policies = comparing.equals(problem, 6, 0)
    assert [problem.mdp.value(one) for one in policies] == pytest.approx([problem.behavior_value] * 6, abs=1e-12)
    tables = np.array([one.table for one in policies])
    assert np.ptp(tables, axis=0).max() > 0.1


def test_errors_of_a_data_set_are_consistent():
    """What is called better together is called better alone; a winner's bound falls when choosing is allowed for."""
    problem = small("clinic")
    policies = comparing.equals(problem, 20, 0)
    errors = [comparing.errors_of(problem, policies, 100, seed) for seed in range(12)]
    assert any(one["any"] for one in errors)
    for one in errors:
        assert one["any"] >= one["best"]
        assert one["any"] >= one["ours"]


def test_the_mean_return_is_that_of_the_same_resamples():
    from tightrope.functional.resampling import draw_weights

    returns = np.array([1.0, 5.0, 2.0])
    weights = draw_weights(3, comparing.RESAMPLES, seed=4)
    assert comparing._mean_returns(returns, 4)[:5] == pytest.approx((weights @ returns / 3)[:5])


def test_a_stopped_study_goes_on_after_the_last_cell(tmp_path):
    calls = []

    def family(name, n, trials):
        calls.append(name)
        count = comparing.Count(name, n)
        for error in (True, False, True, True)[:trials]:
            count.add(any=error)
        return count

    first = comparing.counted(family, ("clinic", 50), 4, tmp_path)
    assert comparing.counted(family, ("clinic", 50), 4, tmp_path) == first
    assert calls == ["clinic"]
    assert (first.trials, first.wrong) == (4, {"any": 3})


def test_the_section_has_rates_and_intervals():
    keys = ("any", "best", "ours", "winner", "corrected")
    count = comparing.Count("clinic", 50, 200, dict.fromkeys(keys, 10))
    parts = {f"{kind} {what}": 0 for kind in ("shared", "exact") for what in ("better", "value", "best")}
    exact = comparing.Count("walker", 30, 100, {"first": 1, "second": 0})
    text = render_counts([count], [comparing.Count("bonus", 100, 60, parts)], [exact])
    assert "| walker | 30 | 100 | 1.0 % (0.0–5.4) | 0.0 % (0.0–3.6) |" in text
    assert "| clinic | 50 | 200 | 5.0 % (2.4–9.0) |" in text
    assert "| bonus | 100 | 60 | 0.0 % (0.0–6.0) |" in text


def test_exact_differences_are_bounded_both_ways_round():
    count = comparing.pair("clinic", 30, 3)
    assert count.trials == 3
    assert set(count.wrong) == {"first", "second"}


def test_the_needed_number_is_where_yes_comes_as_often_as_promised():
    """Normal scores rise with the root: the answer is that of the formula for a known spread."""
    case, problem = planning.Case("clinic", 0.2), small("clinic")
    needed = planning.needed_in_truth(case, problem, 110.0, 60)
    assert 60 < needed < 200
    result = planning.planned(case, 12, 20)
    assert len(result.as_it_looks) == len(result.by_effect) == len(result.unsettled) == 12
    assert 0.5 < np.median([one.total for one in result.by_effect]) / needed < 2


def test_the_section_counts_what_is_near_and_what_is_held():
    result = planning.Planned(
        planning.Case("clinic", 0.1),
        400.0,
        [Needed(500.0, 300.0, math.inf), Needed(900.0, 700.0, 2000.0)],
        [Needed(400.0, 350.0, 450.0), Needed(700.0, 600.0, 800.0)],
        [True, False],
    )
    text = render_plans([result])
    assert "| clinic | TDR, percentile | 0.1 | 2 | 400 | 550 | 50 % | 50 % (1–99) | 700 | 50 % | 50 % (1–99) |" in text
    assert "| 50 % (1–99) | 100 % (" in text  # of the one unsettled pilot


def test_a_second_look_is_counted_among_the_planned_pilots_alone():
    result = planning.second_looks("bonus", 25)
    assert result.pilots == 25
    assert 0 < result.planned <= 25 - result.yes
    assert max(result.together, result.alone) <= result.planned
    text = render_plans([], [planning.Looks("bonus", 100, 5, 40, 4, 2)])
    assert "| bonus | 100 | 5.0 % (1.6–11.3) | 40 | 10.0 % (2.8–23.7) | 5.0 % (0.6–16.9) |" in text


def test_strata_are_compared_on_the_same_logs():
    bounds = [clustering.site_trial(("clinic", 40, number)) for number in range(2)]
    assert all(one["is", "studentized", True] != one["is", "studentized", False] for one in bounds)
    data = clustering.sites(small("clinic"), 40, np.random.default_rng(0))
    assert np.bincount(data.strata).tolist() == [20, 20]
    assert (data.returns[data.strata == 0] == 0).all()
    text = clustering.render_sites({("clinic", 40): bounds})
    assert "| clinic | 40 | 2 | " in text


def test_patients_differ_in_what_an_action_earns_and_policies_keep_their_values():
    problem = small("bonus")
    data = by_patient.responses(problem, 2000, np.random.default_rng(0))
    assert data.clusters is not None
    owner = np.repeat(data.clusters, data.lengths)
    earned = {(c, a): set() for c in range(50) for a in range(2)}
    for c, a, r in zip(owner, data.actions, data.rewards, strict=True):
        if c < 50 and r:
            earned[c, a].add(True)
    assert 20 < sum(map(bool, earned.values())) < 80  # about half of patients and actions earn nothing, ever
    whole = np.bincount(data.clusters, data.returns) / np.bincount(data.clusters)
    error = whole.std() / np.sqrt(len(whole))
    assert whole.mean() == pytest.approx(problem.behavior_value, abs=4 * error)
    assert data.return_range == (0.0, 2 * problem.logs(1, rng=np.random.default_rng(0)).value_range[1])


def test_the_true_tail_has_the_true_value_for_its_mean():
    for name in ("walker", "decline"):
        problem, values, heights = by_patient.truth(name)
        assert np.diff(np.append(0.0, heights)) @ values == pytest.approx(problem.true_value, abs=1e-6)
        assert heights[-1] == pytest.approx(1.0)


def test_decisions_by_patient_are_counted_and_shown():
    cells = {}
    for part, (trial, names, _) in by_patient.PARTS.items():
        rows = [trial(names[0], 30, seed) for seed in range(2)]
        cells[part] = {(names[0], 30): {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}}
    text = render_decisions(cells)
    assert all(f"| {name} | 30 | 2 | {way} | " in text for name in ("clinic", "alike", "walker") for way in WAYS)


def test_without_the_patients_improving_confirms_what_it_saw_in_them():
    """Data sets without any better policy: by patient nothing is returned, and by episode something is."""
    results = [by_patient.proposed("alike", 60, seed) for seed in (1, 3, 7, 28)]
    assert not any(one["by patient wrong"] or one["exact, by patient wrong"] for one in results)
    assert sum(one["ignoring patients wrong"] for one in results) == 4


def test_a_cell_is_extended_and_what_was_counted_stays(tmp_path):
    seeds = []

    def trial(seed):
        seeds.append(seed)
        return {"wrong": seed % 3}

    for trials in (4, 6, 5, 6, 9):
        cell = counted(tmp_path, "clinic-50", trials, trial)
        assert cell["wrong"].tolist() == [seed % 3 for seed in range(trials)]
    assert seeds == list(range(9))
    counted(tmp_path, "clinic", 2, trial)  # another cell, whose name begins alike
    assert seeds[9:] == [0, 1]
