"""Domains and the studies on them: processes, what they say about their overlap, who wins where."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Domains and the map of the field",
    "test_field_domains test_domains test_field_studies",
    (
        Mutant(
            "the largest ratio goes by ways that nobody can go",
            "largest_ratio",
            "np.where(possible, ahead, 0.0).max(axis=2)",
            "ahead.max()",
            "test_largest_ratios_by_hand",
        ),
        Mutant(
            "the effective share is made from ratios of the candidate's own episodes",
            "effective_share",
            "candidate.table ** 2 / behavior.table",
            "candidate.table ** 3 / behavior.table ** 2",
            "test_overlap_agrees_with_enumeration",
        ),
        Mutant(
            "logs of hidden states name a policy over states that nobody sees",
            "SmallProblem.logs",
            "replace(data, states=seen, final_states=None, behavior=self.behavior)",
            "replace(data, states=seen, final_states=None)",
            "test_what_is_hidden_is_not_logged_and_misleads_models",
        ),
        Mutant(
            "the last column of the graph pays nothing on the way out",
            "graph",
            "1.0 if state % 2 else -1.0",
            "0.0",
            "test_values_by_hand",
        ),
        Mutant(
            "ice slips backwards as well",
            "lake",
            "(-1, 0, 1)",
            "(-1, 0, 2)",
            "test_the_lake_is_gymnasiums",
        ),
        Mutant(
            "the hidden part forgets at once",
            "_with_hidden_part",
            "(1 - CHANGES) * stays + CHANGES * stays[rank[state, action]]",
            "np.full((values, values), 1 / values)",
            "test_what_is_hidden_misleads_models_up_and_down",
        ),
        Mutant(
            "the overlap of a drawn problem is measured as if all states were seen alike",
            "_tilted",
            "TabularPolicy(tilted(strength)[seen])",
            "TabularPolicy(tilted(strength)[0 * seen])",
            "test_a_drawn_problem_has_the_overlap_that_was_ordered",
        ),
        Mutant(
            "the spread of a return forgets what chance adds later",
            "FiniteMDP.spread",
            "self.rewards ** 2 + 2 * self.rewards * self.discount * mean + self.discount ** 2 * square",
            "self.rewards ** 2 + 2 * self.rewards * self.discount * mean + self.discount ** 2 * mean ** 2",
            "test_the_spread_by_hand",
        ),
        Mutant(
            "the winner of a cell is reported on the data that chose it",
            "studies/pages/field_map.py:cell",
            "~chooses",
            "chooses",
            "test_one_half_chooses_and_the_other_reports",
        ),
        Mutant(
            "whoever errs too often may win a cell",
            "studies/pages/field_map.py:cell",
            "[one for one in tallies if one.holds(chooses)]",
            "list(tallies)",
            "test_what_errs_too_often_cannot_win",
        ),
        Mutant(
            "errors in one problem are made up for by the others",
            "Tally.holds",
            "[where, *(where & (self.problem == one) for one in np.unique(self.problem))]",
            "[where]",
            "test_what_errs_too_often_in_one_problem_cannot_win",
        ),
        Mutant(
            "a missing bound is left out of the mean distance",
            "_tally",
            "np.fmax(values, one.span[0])",
            "np.fmax(values, truth)",
            "test_a_missing_bound_is_the_lowest_possible_and_a_missing_estimate_the_worst",
        ),
        Mutant(
            "distances of upper bounds have the sign of lower ones",
            "studies/pages/field.py:_cell",
            "1 if line.side == 'lower' else -1",
            "1",
            "test_rates_and_distances_by_hand",
        ),
    ),
)
