"""Limited ratios, the two-part interval, and estimators that choose among others."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Limited ratios, and choosing among estimators",
    "test_clipped test_bottou test_field",
    (
        Mutant(
            "ratios are clipped from below instead of from above",
            "Clipped.limited",
            "np.minimum(logs, np.log(largest))",
            "np.maximum(logs, np.log(largest))",
            "test_limited_ratios_by_hand test_golden",
        ),
        Mutant(
            "shrinkage peaks at c instead of 2c",
            "Shrunk.limited",
            "np.log(2.0 * largest)",
            "np.log(largest)",
            "test_limited_ratios_by_hand test_slow_definition",
        ),
        Mutant(
            "the limit of clipped ratios is n instead of its root",
            "_Limited._largest",
            "float(np.sqrt(data.n_trajectories))",
            "float(data.n_trajectories)",
            "test_the_limit_is_the_root_of_the_number_of_episodes",
        ),
        Mutant(
            "the ceiling of limited values takes the largest value of the sample",
            "_Limited.trajectory_values",
            "most * (high - low) * float(data.discounts.sum())",
            "float(values.max())",
            "test_values_are_the_estimate_taken_apart_and_stay_below_their_ceiling",
        ),
        Mutant(
            "limited ratios count from the wrong end: lower bounds lie above the value",
            "_Limited._weighing",
            'low if self.anchor == "low" else high',
            'high if self.anchor == "low" else low',
            "test_enumeration_gives_at_most_the_value_and_from_above_at_least",
        ),
        Mutant(
            "exact values of limited ratios take what was cut off to have earned 0",
            "_Limited.trajectory_values",
            "as_seen(data, self._weighing(data))",
            "self._weighing(data)",
            "test_episodes_that_were_cut_off_by_hand",
        ),
        Mutant(
            "limited ratios without a declared floor count from 0",
            "_Limited._weighing",
            "not np.isfinite(end)",
            "False",
            "test_the_end_to_count_from_must_be_declared",
        ),
        Mutant(
            "both parts of the two-part interval get the whole of δ",
            "Parts.upper",
            "float(bernstein(top - self.rewards, top, delta / 2, n))",
            "float(bernstein(top - self.rewards, top, delta, n))",
            "test_both_ends_by_hand",
        ),
        Mutant(
            "the two-part interval forgets the missing mass",
            "Parts.upper",
            "self.low * self.total + earned + width * (self.total - mass)",
            "self.low * self.total + earned",
            "test_both_ends_by_hand test_one_mean_is_never_wider_than_two",
        ),
        Mutant(
            "the mass of steps that were cut off counts as seen",
            "Bottou.parts",
            "used[data.unknown_steps(start, stop)] = 0.0",
            "pass",
            "test_what_was_cut_off_adds_to_neither_part",
        ),
        Mutant(
            "the two-part interval takes an estimated behaviour policy for the true one",
            "bounds/exact/bottou.py:_check",
            "problem.behavior is not None",
            "False",
            "test_refusals",
        ),
    ),
)
