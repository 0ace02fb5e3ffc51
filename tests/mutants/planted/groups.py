"""Decisions on logs whose episodes come in clusters."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Decisions by cluster",
    "test_by_cluster test_cluster_options",
    (
        Mutant(
            "a comparison resamples episodes though clusters are named",
            "decisions/approximate.py:_resampled",
            "contenders[0].problem.clusters",
            "None",
            "test_copies_of_an_episode_in_its_cluster_add_nothing_to_a_comparison "
            "test_bounds_of_a_comparison_are_those_of_clusters_drawn_whole",
        ),
        Mutant(
            "a family of few clusters is taken for one of many episodes",
            "decisions/approximate.py:approximate",
            "n_independent(data)",
            "data.n_trajectories",
            "test_few_clusters_use_a_share_of_the_error_however_many_episodes_they_hold",
        ),
        Mutant(
            "exact comparisons take one value for each episode",
            "decisions/exactly.py:_values",
            "learned_values(problem, anchored)",
            "anchored.sequential_values(problem)",
            "test_exact_values_of_a_comparison_are_one_for_each_cluster",
        ),
        Mutant(
            "exact bounds shuffle ranks of names",
            "independent_values",
            "sample.scratch.taken(values, came)",
            "values",
            "test_names_have_no_say_in_exact_bounds",
        ),
        Mutant(
            "exact bounds that learn shuffle ranks of names",
            "learned_values",
            "by_arrival(problem.dataset, clusters)",
            "np.arange(problem.dataset.n_trajectories if clusters is None else clusters.n)",
            "test_names_have_no_say_in_exact_bounds",
        ),
        Mutant(
            "the half that tdr learns from is drawn by ranks of names",
            "TDR.trajectory_values",
            "by_arrival(problem.dataset, None)[np.random.default_rng(n).permutation(n)]",
            "np.random.default_rng(n).permutation(n)",
            "test_names_have_no_say_in_exact_bounds",
        ),
        Mutant(
            "improve splits a cluster",
            "decisions/improve.py:parts",
            "Clusters.of(data)",
            "None",
            "test_a_cluster_is_never_in_both_parts test_episodes_of_one_patient_tell_nothing_of_another",
        ),
        Mutant(
            "improve splits by ranks of names",
            "decisions/improve.py:parts",
            "by_arrival(data, clusters)",
            "np.arange(n_independent(data))",
            "test_a_split_goes_by_arrival_and_not_by_name",
        ),
        Mutant(
            "two clusters are resampled and believed",
            "FEWEST_RESAMPLED",
            "10",
            "2",
            "test_few_clusters_are_no_sample",
        ),
        Mutant(
            "ratios are averaged by episode where clusters are drawn",
            "_measured",
            "final if problem.clusters is None else problem.clusters.log_means(final)",
            "final",
            "test_actions_that_decide_how_many_episodes_a_cluster_has_are_seen",
        ),
        Mutant(
            "what a policy promises is as sure as if episodes were independent",
            "promises",
            "values if clusters is None else clusters.means(values)",
            "values",
            "test_promises_are_made_of_means_of_clusters",
        ),
        Mutant(
            "tails take every episode for an independent draw",
            "Outcomes.of",
            "problem.clusters",
            "None",
            "test_copies_of_an_episode_in_its_cluster_add_nothing_to_a_distribution "
            "test_replicates_of_a_distribution_draw_clusters_whole",
        ),
        Mutant(
            "a large cluster counts more than a small one in a distribution",
            "Outcomes.mass",
            "self.ratios if self.clusters is None else self.ratios / self.clusters.sizes[self.clusters.code]",
            "self.ratios",
            "test_a_cluster_counts_once_in_a_distribution_by_hand "
            "test_replicates_of_a_distribution_draw_clusters_whole",
        ),
        Mutant(
            "one more cluster is as heavy as the heaviest episode",
            "Outcomes.heaviest",
            "self.ratios if self.clusters is None else self.clusters.means(self.ratios)",
            "self.ratios",
            "test_replicates_of_a_distribution_draw_clusters_whole",
        ),
        Mutant(
            "a tail is as thick as it has episodes, however few patients they are of",
            "Outcomes.effective",
            "mass if self.clusters is None else self.clusters.means(mass)",
            "mass",
            "test_a_tail_in_few_clusters_is_thin_however_many_episodes_it_holds",
        ),
        Mutant(
            "a plan for an effect counts on the spread of single episodes",
            "by_effect",
            "by_cluster(statistic, clusters).influence()",
            "statistic.influence()",
            "test_a_plan_for_an_effect_counts_clusters",
        ),
    ),
)
