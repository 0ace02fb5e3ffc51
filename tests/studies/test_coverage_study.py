"""The error-rate study: counting, intervals, the same trials whatever the tasks, and the page it writes."""

import numpy as np
import pytest
from scipy.stats import binom

from tightrope.domains import small
from tightrope.studies import coverage
from tightrope.studies.pages.coverage import COMPARED, Cell, clopper_pearson, render, render_gains
from tightrope.studies.pages.labels import printed


def test_clopper_pearson_by_its_definition():
    """5 errors in 100 is [1.6 %, 11.3 %]; the ends make the observed count just that unlikely."""
    low, high = clopper_pearson(5, 100)
    assert (round(low, 3), round(high, 3)) == (0.016, 0.113)
    assert binom.sf(4, 100, low) == pytest.approx(0.025)
    assert binom.cdf(5, 100, high) == pytest.approx(0.025)
    assert clopper_pearson(0, 50)[0] == 0.0
    assert clopper_pearson(50, 50)[1] == 1.0


def test_errors_are_counted_on_the_right_side():
    results = [(0.5, True), (1.5, False), (1.0, False), (-np.inf, True)]
    lower = Cell.count("p", 20, "is", "t", "lower", 1.0, results)
    assert (lower.errors, lower.warned, lower.infinite, lower.mean) == (1, 2, 1, 1.0)
    assert Cell.count("p", 20, "is", "t", "upper", 1.0, results).errors == 2


def test_trials_do_not_depend_on_how_they_are_cut_up():
    whole = coverage.run(coverage.Task("clinic", 20, range(4), ("percentile", "cut")))
    pieces = [
        coverage.run(coverage.Task("clinic", 20, piece, ("percentile", "cut"))) for piece in (range(1), range(1, 4))
    ]
    assert whole == {key: pieces[0][key] + pieces[1][key] for key in whole}
    assert len(whole["wis", "percentile", "upper"]) == 4


def test_a_small_study_renders_every_pair():
    results = {n: coverage.run(coverage.Task("clinic", n, range(3), ("t", "betting"))) for n in (20, 40)}
    cells = [cell for n, found in results.items() for cell in coverage.cells("clinic", n, found)]
    compared = coverage.run(coverage.Task("clinic", 30, range(3), COMPARED, ("is",), "lower"))
    page = render(
        cells,
        coverage.efficiency("clinic", 30, compared),
        abouts={"clinic": "treat or not"},
        nominal=0.05,
        trials=(3, 3),
    )
    assert "| PDWIS | t |" in page
    assert "| IS | betting |" in page
    assert "| clinic | 0.571 | IS | 30 |" in page


def test_gains_are_held_against_the_true_gain():
    """Swapping the policies swaps the sign of the truth; both sides have their rows."""
    name = "clinic, swapped"
    assert small(name).true_value == small("clinic").behavior_value
    results = {n: coverage.run(coverage.Task(name, n, range(3), ("t", "betting"), about="gain")) for n in (20, 40)}
    cells = [cell for n, found in results.items() for cell in coverage.cells(name, n, found, "gain")]
    assert all(cell.true_value == pytest.approx(0.4859 - 0.57125) for cell in cells)
    assert {(cell.estimator, cell.method, cell.side) for cell in cells} >= {
        ("is", "betting", "lower"),
        ("wdr", "t", "upper"),
    }
    page = render_gains(cells, abouts={name: "the other way round"}, nominal=0.05, trials=3)
    assert "True gain -0.0854" in page


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("is", "IS"),
        ("wdr, cross-fitted", "WDR, cross-fitted"),
        ("mb-lr/percentile", "MB-lr/percentile"),
        ("tdr+wdr", "TDR+WDR"),
        ("advice", "advice"),
    ],
)
def test_estimators_print_in_capitals(label, words):
    assert printed(label) == words
