"""MAGIC."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Blends of a model and importance sampling",
    "test_magic test_field",
    (
        Mutant(
            "the covariance of single episodes is taken for that of their mean",
            "Blend.returns",
            "(shares[:, None] * together).T @ together / self._freedom",
            "(shares[:, None] * together).T @ together",
            "test_a_blend_by_hand test_the_interval_and_the_covariance_are_those_of_a_bootstrap_of_episodes",
        ),
        Mutant(
            "the covariance leaves out that weights are divided by their sum",
            "Blend.returns",
            "self._discounts * ratios * (errors - means)",
            "self._discounts * ratios * errors",
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
            "Returns.errors",
            "self.biases[:, None] * self.biases",
            "np.diag(self.biases**2)",
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
            "episodes of one cluster count as independent in a blend",
            "Blend._by_unit",
            "code is None",
            "True",
            "test_the_covariance_of_clusters_is_that_of_their_sums",
        ),
        Mutant(
            "the derivative of a blend holds its shares fixed",
            "SmoothBlend._slopes",
            "len(used) == 1",
            "True",
            "test_influence_is_the_derivative",
        ),
        Mutant(
            "the derivative of a blend's covariance leaves out its denominators",
            "SmoothBlend._covariance_slopes",
            "(ratios - 1.0) @ (use * steps).sum(axis=0) + steps @ (use * ratios).sum(axis=0)",
            "steps @ (use * ratios).sum(axis=0)",
            "test_influence_is_the_derivative",
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
