"""Fitted Q evaluation."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Fitted Q evaluation",
    "test_fitted_q test_field",
    (
        Mutant(
            "the regressions backwards forget γ",
            "LinearQ._backwards",
            "solved.rewards + discount * ahead",
            "solved.rewards + ahead",
            "test_pairs_are_the_tabular_model test_least_squares_in_loops",
        ),
        Mutant(
            "refits at once forget γ",
            "models/fitted/kernels.py:values",
            "load(earned, i) + total * splat(discount)",
            "load(earned, i) + total",
            "test_least_squares_in_loops",
        ),
        Mutant(
            "the next state's value is that of the time before",
            "LinearQ._backwards",
            "solved.moves[kinds[t + 1]]",
            "solved.moves[kinds[t]]",
            "test_pairs_are_the_tabular_model test_least_squares_in_loops",
        ),
        Mutant(
            "ends at the horizon count where nobody logged what follows it",
            "following_places",
            "data.final_states is None",
            "False",
            "test_pairs_are_the_tabular_model",
        ),
        Mutant(
            "an ended episode goes on where the next one starts",
            "following_places",
            "following[last] = END",
            "pass",
            "test_pairs_are_the_tabular_model",
        ),
        Mutant(
            "ends at the horizon count and going on does not",
            "following_places",
            "following[last[data.lengths == data.horizon]] = UNKNOWN",
            "following[last[going_on]] = UNKNOWN",
            "test_steps_that_lead_nobody_knows_where test_pairs_are_the_tabular_model",
        ),
        Mutant(
            "steps that lead nobody knows where count as ends",
            "Steps.known",
            "self.following != UNKNOWN",
            "self.following != UNKNOWN - 1",
            "test_steps_that_lead_nobody_knows_where",
        ),
        Mutant(
            "a pair without weight is worth nothing",
            "LinearQ._solve",
            "rewards[by_reward.missing] = self.unseen.reward",
            "pass",
            "test_pairs_are_the_tabular_model",
        ),
        Mutant(
            "weights that determine no coefficients give some anyway",
            "models/fitted/kernels.py:values",
            "not pivots[i, lane] > floor * scale",
            "False",
            "test_weights_that_do_not_determine_the_coefficients_are_undefined",
        ),
        Mutant(
            "the derivative of a refit leaves out the normal matrix",
            "LinearQ._gradient",
            "-earned[:, :, None] * rewards[:, None]",
            "0 * earned[:, :, None] * rewards[:, None]",
            "test_influence_is_the_derivative test_pairs_are_the_tabular_model",
        ),
        Mutant(
            "fqe takes the tabular model where none is named",
            "FQE.__post_init__",
            'object.__setattr__(self, "model", "fitted-q")',
            'object.__setattr__(self, "model", "tabular")',
            "test_the_estimator_is_mb_with_fitted_q",
        ),
    ),
)
