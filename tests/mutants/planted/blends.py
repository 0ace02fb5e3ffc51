"""MAGIC."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Blends of a model and importance sampling",
    "test_magic test_field",
    (
        Mutant(
            "the covariance of single episodes is taken for that of their mean",
            "Blend.returns",
            "(shares[:, None] * moved).T @ moved / max(data.n_trajectories - 1, 1)",
            "(shares[:, None] * moved).T @ moved",
            "test_a_blend_by_hand test_the_interval_and_the_covariance_are_those_of_a_bootstrap_of_episodes",
        ),
        Mutant(
            "the covariance leaves out that weights are divided by their sum",
            "Blend.returns",
            "self._discounts * ratios * (errors - means) / below",
            "self._discounts * ratios * errors / below",
            "test_a_blend_by_hand test_the_interval_and_the_covariance_are_those_of_a_bootstrap_of_episodes",
        ),
        Mutant(
            "biases count from WDR itself, not from the interval around it",
            "Blend.returns",
            "np.maximum(np.abs(values - values[-1]) - half, 0.0)",
            "np.abs(values - values[-1])",
            "test_a_blend_by_hand",
        ),
        Mutant(
            "biases are squared one by one, as if they could not add up",
            "Blend.returns",
            "biases[:, None] * biases",
            "np.diag(biases**2)",
            "test_a_blend_by_hand test_slow_definition_with_given_values",
        ),
        Mutant(
            "returns take one step of importance sampling too many",
            "Blend.returns",
            "np.append(mean, mean + np.cumsum(self._discounts * means))[lengths]",
            "(mean + np.cumsum(self._discounts * means))[np.minimum(lengths, len(means) - 1)]",
            "test_a_blend_by_hand",
        ),
        Mutant(
            "returns forget γ",
            "Blend.returns",
            "mean + np.cumsum(self._discounts * means)",
            "mean + np.cumsum(means)",
            "test_a_blend_by_hand test_slow_definition_with_given_values",
        ),
        Mutant(
            "the blend keeps the shares of all logs under other weights",
            "Blend.values",
            "[self.returns(row) for row in weights]",
            "[(lambda now, every: now and now._replace(shares=every.shares))"
            "(self.returns(row), self.returns(np.ones(len(row)))) for row in weights]",
            "test_whole_number_weights_that_add_up_to_the_number_of_episodes",
        ),
        Mutant(
            "an estimated behaviour policy stays as it is under weights",
            "Blend._estimated",
            "problem.fits(weights)",
            "problem.fits(np.ones_like(weights))",
            "test_weights_with_an_estimated_behaviour_policy",
        ),
        Mutant(
            "shares below zero are cut off instead of solved without",
            "_within",
            "if not falling:\n    return target",
            "if True:\n    return np.maximum(target, 0) / np.maximum(target, 0).sum()",
            "test_the_least_over_the_simplex",
        ),
        Mutant(
            "the search for shares stops at the first corner that is better",
            "nearest_to_zero",
            "slopes[best] > shares @ slopes - TOLERANCE or best in used",
            "len(used) > 1",
            "test_the_least_over_the_simplex",
        ),
    ),
)
