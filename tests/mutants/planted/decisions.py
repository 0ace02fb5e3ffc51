"""Tails, demands and a better policy."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Tails, demands, a better policy",
    "test_distribution test_improve test_constraints",
    (
        Mutant(
            "every exact bound of a band has the whole error rate",
            "exact_tails",
            "delta / (len(floors) + len(ceilings) + 2 * len(quantiles) + 2 * len(shares))",
            "delta",
            "test_a_level_alone_has_two_exact_bounds_at_half_the_error_each",
        ),
        Mutant(
            "key points come from the episodes that bound them",
            "_parted",
            "outcomes.take(order[first:])",
            "outcomes",
            "test_key_points_come_from_episodes_that_are_then_left_out",
        ),
        Mutant(
            "an episode that was cut off counts as if it had ended",
            "Outcomes.weighed",
            "np.where(self.cut, 0.0, self.ratios * values)",
            "self.ratios * values",
            "test_an_episode_that_was_cut_off_makes_exact_bounds_wider_on_both_sides",
        ),
        Mutant(
            "the tether of the worst forgets how rare they are",
            "_play",
            "np.maximum(heights - low, 0.0) * (1 / share - 1)",
            "np.maximum(heights - low, 0.0)",
            "test_the_bound_on_the_mean_of_the_worst_never_errs_more_often_than_it_may",
        ),
        Mutant(
            "a thin tail is resampled all the same",
            "_by_bootstrap",
            "effective < ENOUGH[tail.kind]",
            "effective < 0",
            "test_where_a_tail_is_thin_its_exact_bounds_stand_in",
        ),
        Mutant(
            "a band with a thin end is resampled all the same",
            "_by_bootstrap",
            'rarest < ENOUGH["band"]',
            "rarest < 0",
            "test_a_band_with_a_thin_end_is_the_exact_one",
        ),
        Mutant(
            "the worst case of a band leaves out its floor",
            "_tail_of",
            "place = end",
            "place = points[0][0]",
            "test_tail_means_by_hand",
        ),
        Mutant(
            "a policy is tested on the episodes that proposed it",
            "improve",
            "dataset.take(testing)",
            "dataset.take(proposing)",
            "test_the_test_sees_episodes_that_the_proposal_did_not",
        ),
        Mutant(
            "the model's best, however few visits",
            "_best",
            "model.counts >= seen",
            "model.counts >= 0",
            "test_the_behaviour_policy_is_kept_where_few_episodes_tell",
        ),
        Mutant(
            "a policy that fails its test is returned",
            "passes",
            "bound.value > (0.0 if baseline == 'behavior' else float(baseline))",
            "True",
            "test_where_nothing_is_better_nothing_is_returned test_a_number_as_baseline_asks_for_the_value",
        ),
        Mutant(
            "a model alone decides",
            "believed",
            "bound.hangs_on_model",
            "False",
            "test_a_model_alone_meets_no_demand",
        ),
        Mutant(
            "each of several demands is refuted at the full error rate",
            "constrained",
            "1 - (1 - settings.confidence) / len(named)",
            "settings.confidence",
            "test_every_bound_of_a_yes_has_the_full_level_and_every_bound_of_a_no_its_part",
        ),
        Mutant(
            "one demand that is met is enough",
            "constrained",
            "set(answers) == {'yes'}",
            "'yes' in answers",
            "test_a_yes_needs_every_demand_and_a_no_needs_one",
        ),
    ),
)
