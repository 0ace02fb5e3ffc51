"""Policies and domains."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Policies and domains",
    "test_policy test_functions test_soften test_domains test_measure",
    (
        Mutant(
            "a table over time answers for its first step",
            "TabularPolicy.probs",
            "self.table[t, rows]",
            "self.table[0 * t, rows]",
            "test_log_prob",
        ),
        Mutant(
            "temperature multiplies",
            "SoftmaxPolicy._log_probs",
            "numbers('preferences', self.preferences(states, t)) / self.temperature",
            "numbers('preferences', self.preferences(states, t)) * self.temperature",
            "test_log_prob test_probs_list_all_actions",
        ),
        Mutant(
            "the covariance is taken for its root",
            "GaussianPolicy.log_prob",
            "np.linalg.solve(self._factor, (given - center).T)",
            "np.linalg.solve(self.covariance, (given - center).T)",
            "test_gaussian_against_scipy",
        ),
        Mutant(
            "a mixture forgets its weights",
            "MixturePolicy.log_prob",
            "np.log(weight) + policy.log_prob(lent(states), lent(actions), lent(t))",
            "policy.log_prob(lent(states), lent(actions), lent(t))",
            "test_gaussian_mixture_density test_log_prob",
        ),
        Mutant(
            "ε and 1 − ε change places",
            "epsilon_softened",
            "(1.0 - epsilon, epsilon)",
            "(epsilon, 1.0 - epsilon)",
            "test_log_prob",
        ),
        Mutant(
            "probabilities of another library's policy are taken for logits",
            "as_logits",
            "np.log(table)",
            "table",
            "test_all_forms_mean_the_same",
        ),
        Mutant(
            "labels are looked up in sorted order",
            "LabelledPolicy._place",
            "order[np.searchsorted(self.labels, actions, sorter=order).clip(max=len(order) - 1)]",
            "np.searchsorted(self.labels[order], actions).clip(max=len(order) - 1)",
            "test_labels_in_any_order",
        ),
        Mutant(
            "sigma is taken for a variance",
            "_with_sigma",
            "np.square(np.broadcast_to(deviations, policy.width))",
            "np.broadcast_to(deviations, policy.width)",
            "test_continuous",
        ),
        Mutant(
            "SAC's density forgets the scale of the actions",
            "_squashed",
            "np.log((high - low) / 2.0)",
            "0.0",
            "test_sac_density_integrates_to_one_over_the_environments_actions",
        ),
        Mutant(
            "rows of probabilities need not sum to one",
            "check_probs",
            "np.abs(sums - 1.0) > SUM_TOLERANCE",
            "np.abs(sums - 1.0) > 1.0",
            "test_refused test_table",
        ),
        Mutant(
            "the true value of a domain is the best policy's",
            "FiniteMDP.value",
            'np.einsum("sa,sa->s", probs, action_values)',
            "action_values.max(axis=1)",
            "test_values_agree_with_recursion",
        ),
        Mutant(
            "the true value of a domain is not discounted",
            "FiniteMDP.value",
            "mean_rewards + self.discount * self.transition_probs @ ahead",
            "mean_rewards + self.transition_probs @ ahead",
            "test_values_agree_with_recursion",
        ),
        Mutant(
            "the standard error of a simulated truth is the spread of returns",
            "EnvironmentDomain._mean_return",
            "float(returns.std(ddof=1) / np.sqrt(len(returns)))",
            "float(returns.std(ddof=1))",
            "test_the_true_value_by_rollouts_agrees_with_the_exact_one",
        ),
        Mutant(
            "both policies of an environment are rolled out with the same policy",
            "EnvironmentDomain._behavior_truth",
            "self.behavior",
            "self.candidate",
            "test_the_true_value_by_rollouts_agrees_with_the_exact_one",
        ),
    ),
)
