"""The study of the bias bounds: what it counts, that it repeats, and the page it writes."""

from tightrope.bounds.model_bias.bias import BiasBound
from tightrope.studies import bias


def _case(error, uncapped):
    bound = BiasBound(min(uncapped, 10.0), uncapped, 10.0, "tight", 0.1)
    return bias.Case(error, dict.fromkeys(bias.ROWS, bound))


def test_shares_and_violations_are_counted():
    rows = bias.table([_case(0.5, 1.0), _case(1.5, 1.0), _case(0.1, 20.0), _case(0.1, 8.0)])
    # Uncapped 1, 1, 8, 20: the median is 4.5; three are below 10, two below 5; the second error exceeds its bound.
    assert rows[2] == "| printed | 4.5 | 0.45 | 75.0% | 50.0% | 1 of 4 |"
    assert len(rows) == 2 + len(bias.ROWS)


def test_cases_repeat_and_hold():
    first, second = (bias.study(10, 1.0, 1.0, 100, 5) for _ in range(2))
    assert first == second
    assert first != bias.study(10, 1.0, 1.0, 10, 5)
    for case in first:
        assert 0 < case.error <= case.bounds["per-step"].value < case.bounds["tight"].value
        assert case.bounds["printed"].trivial == 10.0


def test_the_page(tmp_path):
    out = tmp_path / "bias.md"
    bias.main(out, cases=2)
    page = out.read_text(encoding="utf-8")
    assert page.count("| printed |") == len(bias.SETTINGS) * len(bias.MODELS)
    assert "## L = 50, γ = 0.95: trivial range 18.5" in page
    assert page.count("| 0 of 2 |") == len(bias.SETTINGS) * len(bias.MODELS) * len(bias.ROWS)
