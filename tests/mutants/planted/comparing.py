"""Which of several, and how much more data."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Comparisons and plans",
    "test_family test_compare test_differences test_plan",
    (
        Mutant(
            "every candidate gives up as many replicates as one alone",
            "_given_up",
            "int(np.searchsorted(taken, allowed, side='right'))",
            "allowed",
            "test_a_band_is_what_the_slow_one_is",
        ),
        Mutant(
            "undefined replicates of a family count as the highest",
            "_lowest_first",
            "-np.inf",
            "np.inf",
            "test_undefined_replicates_count_as_the_lowest",
        ),
        Mutant(
            "every candidate needs as much evidence as one alone",
            "surely_refuted",
            "np.arange(len(order), 0, -1) / delta",
            "np.ones(len(order)) / delta",
            "test_evidence_is_adjusted_in_steps",
        ),
        Mutant(
            "steps go on after one that falls short",
            "surely_refuted",
            "order[: len(order) if enough.all() else int(np.argmin(enough))]",
            "order[enough]",
            "test_evidence_is_adjusted_in_steps",
        ),
        Mutant(
            "an exact bound of a family has the whole error rate",
            "decisions/exactly.py:exact",
            '_bound(sample, "value", 0.0, floor, delta / count, settings, data)',
            '_bound(sample, "value", 0.0, floor, delta, settings, data)',
            "test_an_exact_bound_has_its_share_of_the_error",
        ),
        Mutant(
            "an exact difference has the whole error rate",
            "decisions/exactly.py:_differences",
            "delta / (count * (count - 1))",
            "delta",
            "test_exact_differences_have_their_share_of_the_error",
        ),
        Mutant(
            "both parts of a difference are counted from the floor",
            "Ends.above",
            "self.low.less(other.high, other.low.estimate)",
            "self.low.less(other.low, other.low.estimate)",
            "test_differences_count_the_one_from_below_and_the_other_from_above",
        ),
        Mutant(
            "each part of an exact difference has the whole tether",
            "DifferenceValues.along",
            "self.of.along(order, edges, tethers / 2)",
            "self.of.along(order, edges, tethers)",
            "test_the_two_parts_share_the_tether test_no_value_falls_below_its_tether",
        ),
        Mutant(
            "a family of few episodes has the whole error rate",
            "decisions/approximate.py:share",
            "min(alone, TOGETHER[about]) if n < FEWEST_TOGETHER and count > 1 else alone",
            "alone",
            "test_a_family_of_few_episodes_uses_a_share_of_the_error",
        ),
        Mutant(
            "a plan promises an answer half of the time",
            "Prospect.total",
            "NORMAL.inv_cdf(chance) * self.error",
            "0.0",
            "test_the_number_by_hand",
        ),
    ),
)
