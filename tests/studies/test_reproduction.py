"""The claims judge what they say; the page, its figures and its summaries come out of a tiny run."""

import re
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from tightrope.domains import MountainCar
from tightrope.studies import claims, reproduce
from tightrope.studies.claims import CAR, CLAIMS, CLIFF, SHIFTED, findings
from tightrope.studies.learned import learned
from tightrope.studies.paper import PAPER, Normalized, quick
from tightrope.studies.study import prepared
from tightrope.studies.summary import Mean, line

TRUTH = {CAR: -35.0, CLIFF: -250.0, SHIFTED: -250.0}
SIZES = (2, 8, 32, 128, 512)


def made(domain, method, values):
    """Lines whose mean bounds over n = 2, 8, ... are given; 100 data sets, none wrong unless above the truth."""
    return [
        replace(line(domain, n, method, "lower", np.full(100, value), [""] * 100, TRUTH[domain]))
        for n, value in zip(SIZES, values, strict=True)
    ]


def car(**changes):
    means = {
        "mb/percentile": (-90, -60, -45, -38, -36),
        "wdr/percentile": (-88, -59, -44, -38.2, -36.1),
        "pdwis/bca": (-70, -55, -43, -40, -38),
        "is/bca": (-99, -90, -70, -60, -50),
        "is-raw/bca": (-99, -20, -20, -60, -50),
        "pdis/bca": (-99, -90, -70, -60, -50),
        "wis/bca": (-80, -70, -60, -50, -40),
    }
    return [one for method, values in (means | changes).items() for one in made(CAR, method, values)]


def verdicts(lines):
    return {finding.number: finding.verdict for finding in findings(lines)}


def test_the_car_claims_on_made_up_results():
    """Models win in the end, PDWIS early; nothing ever wrong, so that two trajectories harm nobody."""
    assert verdicts(car()) == {1: "came out", 2: "came out", 3: "came out", 4: "came out", 5: "did not", 12: "came out"}


@pytest.mark.parametrize(
    ("changes", "number", "verdict"),
    [
        ({"mb/percentile": (-90, -60, -45, -44, -43)}, 1, "partly"),
        ({"pdwis/bca": (-70, -55, -43, -36, -35.5)}, 2, "partly"),
        ({"pdwis/bca": (-95, -75, -63, -60, -55)}, 2, "partly"),
        ({"wdr/percentile": (-88, -40, -37, -36, -35.1)}, 3, "did not"),
        ({"mb/percentile": (-90, -30, -30, -30, -30)}, 4, "partly"),
        ({"is-raw/bca": (-99, -90, -70, -60, -50)}, 12, "did not"),
    ],
)
def test_a_claim_fails_where_it_should(changes, number, verdict):
    assert verdicts(car(**changes))[number] == verdict


def cliff(domain=CLIFF, **changes):
    means = {
        "mb-lr/percentile": (-270, -258, -254, -252, -251),
        "wdr-lr/percentile": (-280, -262, -256, -253, -251.5),
        "mb-pr/percentile": (-300, -295, -290, -290, -290),
        "wdr-pr/percentile": (-400, -300, -270, -260, -252),
        "pdwis/bca": (-330, -290, -268, -261, -255),
        "wis/bca": (-340, -300, -280, -270, -260),
        "is/bca": (-800, -700, -600, -500, -400),
        "pdis/bca": (-800, -700, -600, -500, -400),
    }
    return [one for method, values in (means | changes).items() for one in made(domain, method, values)]


def test_the_cliff_claims_on_made_up_results():
    lines = cliff() + cliff(SHIFTED)
    assert verdicts(lines) == {6: "came out", 7: "came out", 8: "came out", 9: "came out"}
    unsafe = cliff(**{"mb-pr/percentile": (-120,) * 5}) + cliff(SHIFTED)
    assert verdicts(unsafe)[6] == "partly"
    assert "too high: unsafe" in next(f.evidence for f in findings(unsafe) if f.number == 6)
    assert verdicts(cliff() + car())[10] == "came out"
    assert verdicts(cliff(**{"mb-lr/percentile": (-249,) * 5}) + car())[10] == "partly"
    assert verdicts(cliff(**{"mb-pr/percentile": (-120,) * 5}) + car())[11] == "partly"


def test_every_claim_of_the_text_is_there():
    """Thirteen: twelve from the tables and the models' errors."""
    assert [claim.number for claim in CLAIMS] == list(range(1, 13))


def test_means_over_valid_bounds_ignore_what_is_wrong():
    wrong = line(CAR, 2, "x/y", "lower", np.array([-40.0, -30.0]), ["", ""], -35.0)
    assert claims.valid({(CAR, "x/y", 2): wrong}, CAR, "x/y", 2) == -40.0
    none = replace(wrong, valid=Mean(np.nan, np.nan, 0))
    assert claims.valid({(CAR, "x/y", 2): none}, CAR, "x/y", 2) == -np.inf


@pytest.mark.parametrize("name", list(PAPER))
def test_the_studies_are_as_the_paper_says(name):
    study = PAPER[name]
    _, methods = prepared(study)
    assert study.n_resamples == 2000
    assert study.confidence == 0.95
    if "repairs" not in name:
        assert study.sizes == tuple(2**k for k in range(1, 12, 2 if name == SHIFTED else 1))
        assert study.trials == (400 if name == CAR else 100)
        drawn = {f"{one.label}/{bound}" for one in methods for bound in one.bounds}
        assert drawn >= set(reproduce.PAPER_CURVES[study.domain].values())
    else:
        assert study.trials == 400
    assert set(quick(study).sizes) <= set(study.sizes)


def test_normalized_importance_sampling_counts_from_the_given_floor():
    """By hand: mean of ρ (g − floor) + floor, on cliff-world logs that declare no floor."""
    from tightrope.base.problem import Problem
    from tightrope.estimators import IS

    domain, _ = prepared(PAPER[CLIFF])
    problem = Problem(domain.logs(50, rng=np.random.default_rng(0)), domain.candidate)
    ratio = np.exp(problem.ratios.log(0, 50)[:, -1])
    returns = problem.dataset.returns
    found = Normalized(IS(), (-2000.0, 0.0)).anchored("low")(problem).estimate
    assert found == pytest.approx(np.mean(ratio * (returns + 2000)) - 2000, rel=1e-9)


def test_a_shared_tabular_model_of_the_mountain_car_leaves_nothing_to_correct():
    assert reproduce._nothing_to_correct(MountainCar(), n=16).verdict == "came out"


def test_a_tiny_run_writes_page_figures_and_summaries(tmp_path, monkeypatch):
    tiny = replace(PAPER[CAR], sizes=(2, 4, 8), trials=3, n_resamples=40)
    monkeypatch.setitem(reproduce.PAPER, CAR, tiny)
    done = reproduce.reproduce(CAR, tmp_path / "out", page_path=tmp_path / "page.md", workers=1)
    text = done.page.read_text(encoding="utf-8")
    assert [finding.number for finding in done.findings] == [1, 2, 3, 4, 5, 12, 14]
    links = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert len(links) == 4
    assert all((tmp_path / link).read_bytes().startswith(b"\x89PNG") for link in links)
    assert "position_cells = 32" in text
    assert "| PDWIS/bca |" in text
    summary = pq.read_table(tmp_path / "out" / "mountain-car.parquet").to_pandas()
    raw = pq.read_table(tmp_path / "out" / "raw" / CAR / "results.parquet").to_pandas()
    mine = summary[(summary.method == "wis/bca") & (summary.n == 8)].iloc[0]
    values = raw[(raw.method == "wis/bca") & (raw.n == 8)]["value"].to_numpy()
    assert mine.errors == (values > MountainCar().true_value).sum()
    assert mine.finite_value == pytest.approx(values[np.isfinite(values)].mean())


def test_what_was_learned_names_the_numbers():
    section = learned({CAR: car()})
    row = next(text for text in section.splitlines() if text.startswith("| PDWIS/bca |"))
    assert "| 0.0% [0.0%, 3.6%], -55.0 |" in row  # none wrong of 100: Clopper and Pearson give 1 - 0.025^(1/100)
    assert learned({"other": []}) == ""
