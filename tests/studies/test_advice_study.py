"""The studies of the recommended and of the exact bound, tiny: what they count, and the sections they write."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope
from tightrope.domains import small
from tightrope.domains.random_process import REWARDS, random_problem
from tightrope.studies import advice, exact
from tightrope.studies.pages import advice as advice_page
from tightrope.studies.pages.exact import render as render_exact
from tightrope.studies.pages.sections import section_of, with_section
from tightrope.studies.problems import BOTH_WAYS, problem
from tightrope.studies.runner import run_study
from tightrope.studies.summary import Results, read_results, summarize_results


def results(rows, truth=1.0) -> Results:
    """Rows of (method, trial, value, warnings, pair)."""
    names = ("method", "trial", "value", "warnings", "pair")
    columns = {name: np.array([row[k] for row in rows], dtype=object) for k, name in enumerate(names)}
    columns["value"] = columns["value"].astype(float)
    columns["n"] = np.full(len(rows), 20)
    domain = {"name": "toy", "true_value": truth, "true_value_error": 0.0}
    return Results(columns, {"domain": domain, "about": "value", "sizes": [20]})


def test_a_cell_counts_errors_silence_and_conditions():
    rows = []
    for trial in range(100):
        value = 1.5 if trial < 4 else -np.inf if trial < 6 else 0.5
        rows.append(("advice/believed", trial, value, "skew" if trial % 2 else "", "tdr/percentile"))
        rows.append(("advice/exact", trial, 0.2, "", "tdr/betting"))
        rows.append(("is/t", trial, 0.6, "", ""))  # holds its level, twice as near as what was recommended
        rows.append(("wis/t", trial, 1.1 if trial < 30 else 0.9, "", ""))  # nearer, but errs in 30 of 100
    cell = advice_page.cell(results(rows), 20)
    assert (cell.believed.errors, cell.believed.trials, cell.silent) == (4, 100, 2)
    assert not cell.believed.over
    assert (cell.exact.errors, cell.exact.trials) == (0, 100)
    assert cell.best == "is/t"
    own = [1 - 1.5] * 4 + [0.5] * 94  # where something was recommended
    assert cell.ratio == pytest.approx(np.mean(own) / 0.4)
    spoke, silent = cell.by_warning["skew"]
    assert (spoke.errors, spoke.trials, silent.errors, silent.trials) == (2, 50, 2, 50)
    page = advice_page.render([cell], advice.CORE, advice.FRESH)
    assert "| toy | 20 | 100 | 4.0 [1.1, 9.9] | 2 |" in page
    assert "| IS t |" in page
    assert "TDR with percentile" in page


def test_a_cell_above_nominal_beyond_noise_is_bold():
    rows = [("advice/believed", trial, 1.5 if trial < 12 else 0.5, "", "a/b") for trial in range(100)]
    rows += [("advice/exact", trial, 0.0, "", "a/c") for trial in range(100)]
    cell = advice_page.cell(results(rows), 20)
    assert cell.believed.over
    page = advice_page.render([cell], advice.CORE, advice.FRESH)
    assert "**12.0** [6.4, 20.0]" in page
    assert "Cells above 5 % beyond noise: toy (value, n = 20), of 1." in page


def test_every_problem_of_the_study_can_be_asked():
    for name in (*advice.PROBLEMS, *BOTH_WAYS):
        if name == "mountain-car":  # its truth takes roll-outs
            continue
        made = problem(name)
        logs = made.logs(5, rng=np.random.default_rng(0))
        assert made.name == name
        assert logs.value_range[0] <= made.true_value <= logs.value_range[1]
        assert np.isfinite(tightrope.estimate(logs, None if logs.states is None else made.candidate, estimator="is"))
    assert problem("probabilities only").logs(3, rng=np.random.default_rng(0)).states is None


def test_a_tiny_study_of_the_recommended_bound(tmp_path):
    (study,) = advice.studies(["clinic"], [20], "gain", 3)
    found = read_results(run_study(study, tmp_path, workers=1))
    assert found.true_value == pytest.approx(small("clinic").true_value - small("clinic").behavior_value)
    cell = advice_page.cell(found, 20)
    assert (cell.about, cell.believed.trials, set(cell.by_pair)) == ("gain", 3, {"tdr/percentile at 0.99"})


def test_a_tiny_study_of_the_exact_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(exact, "TRIALS", 2)
    monkeypatch.setattr(exact, "SIZES", (10,))
    study = next(one for one in exact.error_studies() if one.id == "exact-gain-clinic, swapped")
    lines = [("gain", line) for line in summarize_results(read_results(run_study(study, tmp_path, workers=1)))]
    assert {(line.side, line.method) for _, line in lines} == {
        (side, f"{name}/betting") for side in ("lower", "upper") for name in ("tdr", "tdr-wild")
    }
    page = render_exact(lines, [])
    assert "How often it errs: 2 data sets" in page
    assert "| clinic, swapped | gain | 10 | 2 |" in page
    assert sum(one.trials * len(one.sizes) for one in exact.error_studies()) == 8 * 2 * 2  # problems, questions, trials


def test_the_exact_study_has_twenty_thousand_data_sets():
    assert sum(one.trials * len(one.sizes) for one in exact.error_studies()) >= 20_000


def test_random_problems_are_processes_of_every_kind():
    made = [random_problem(seed) for seed in range(40)]
    assert {kind for one in made for kind in REWARDS if one.about.endswith(kind)} == set(REWARDS)
    for one in made:
        low, high = one.mdp.return_range
        assert low <= one.true_value <= high
        assert (one.behavior.table > 0).all()
        largest = (one.candidate.table / one.behavior.table).max() ** one.mdp.horizon
        assert one.max_ratio == pytest.approx(largest)
    assert random_problem(3).configuration() == random_problem(3).configuration()
    assert (
        random_problem(9101).logs(5, rng=np.random.default_rng(0)).reward_range[1] > 0
    )  # its first rewards were all 0


def test_a_section_is_replaced_alone():
    page = with_section("# Page\n\n## A\n\nold a\n", "B", "old b")
    page = with_section(page, "A", "new a")
    assert page == "# Page\n\n## A\n\nnew a\n\n## B\n\nold b\n"
    assert section_of(page, "A") == "new a"
    assert section_of(page, "B") == "old b"
    assert section_of(page, "C") is None
