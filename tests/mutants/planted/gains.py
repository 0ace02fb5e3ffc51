"""The gain on the behaviour policy."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Gains",
    "test_gain test_verdict test_report",
    (
        Mutant(
            "the gain's sums forget what the value was counted from",
            "_sums",
            "RatioSum(np.append(combine.coefficients, -1.0), combine.constant)",
            "RatioSum(np.append(combine.coefficients, -1.0))",
            "test_exact_values_are_never_negative_and_average_to_the_gain",
        ),
        Mutant(
            "the behaviour policy's value is added",
            "_sums",
            "-1.0",
            "1.0",
            "test_it_is_the_difference_under_every_weight",
        ),
        Mutant(
            "the behaviour policy's value is not resampled along",
            "GainStatistic.__call__",
            "self.value(rows) - rows @ self.returns / rows.sum(axis=-1)",
            "self.value(rows) - self.returns.mean()",
            "test_it_is_the_difference_under_every_weight",
        ),
        Mutant(
            "the gain's influences leave out the returns",
            "GainStatistic.influence",
            "self.value.influence() - (self.returns - self.returns.mean())",
            "self.value.influence()",
            "test_it_is_the_difference_under_every_weight",
        ),
        Mutant(
            "the mean of the other returns divides by n",
            "GainStatistic.leave_one_out",
            "(self.returns.sum() - self.returns) / (self.n_trajectories - 1)",
            "(self.returns.sum() - self.returns) / self.n_trajectories",
            "test_it_is_the_difference_under_every_weight",
        ),
        Mutant(
            "exact bounds on the gain count from the wrong end of the return",
            "IndependentGain.trajectory_values",
            "high if sample.sign > 0 else low",
            "low if sample.sign > 0 else high",
            "test_exact_values_are_never_negative_and_average_to_the_gain",
        ),
        Mutant(
            "exact bounds on the gain forget what the returns were counted from",
            "IndependentGain.trajectory_values",
            "sample.origin - end",
            "sample.origin",
            "test_exact_values_are_never_negative_and_average_to_the_gain",
        ),
        Mutant(
            "the ceiling of the gain's values leaves out the ratios",
            "IndependentGain.trajectory_values",
            "sample.ceiling + (high - low)",
            "high - low",
            "test_exact_values_are_never_negative_and_average_to_the_gain",
        ),
        Mutant(
            "what is possible for a gain is taken from the value's range",
            "possible_range",
            "(low - high, high - low) if isinstance(estimator, Gain) else (low, high)",
            "(low, high)",
            "test_what_is_possible_for_a_gain test_a_loss_is_a_possible_gain",
        ),
        Mutant(
            "strict holds for values and not for gains",
            "evaluate",
            "_believe(gained, found, sides, dataset, strict)",
            "_believe(gained, found, sides, dataset, False)",
            "test_strict_holds_for_gains_too",
        ),
        Mutant(
            "the verdict on the gain looks at the value's bounds",
            "evaluate",
            "[gained[index] for index in improved] if baseline else [bounds[index] for index in believe]",
            "[bounds[index] for index in believe]",
            "test_the_verdict_is_about_the_gain",
        ),
        Mutant(
            "the gain keeps the lower bound's side for an upper bound",
            "Gain.anchored",
            "type(self)(self.of.anchored(anchor))",
            "self",
            "test_exact_values_are_never_negative_and_average_to_the_gain",
        ),
    ),
)
