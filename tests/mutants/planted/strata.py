"""Clusters and strata in estimates, standard errors and what is said of them."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Standard errors by cluster and within strata",
    "test_strata_errors test_clustered test_choosing test_evaluation_by_cluster",
    (
        Mutant(
            "values are levelled without the step from n to n − 1 of each stratum",
            "levelled",
            "counts * (n - 1) / ((counts - 1) * n)",
            "np.ones(n)",
            "test_levelled_by_hand",
        ),
        Mutant(
            "a printed standard error takes what differs between strata for chance",
            "Case.point",
            "levelled_by(self.clusters, alone.influence())",
            "alone.influence()",
            "test_the_standard_error_is_that_of_resamples_within_strata",
        ),
        Mutant(
            "replicates' standard errors take what differs between strata for chance",
            "drawn_errors",
            "np.maximum(squares - np.square(sums) / counts, 0.0)",
            "squares",
            "test_every_replicate_has_the_standard_error_of_its_own_draws test_replicates_of_a_model_have_it_too",
        ),
        Mutant(
            "studentized bounds scale by a standard error that their replicates do not have",
            "_Sums.result",
            "levelled(self.original.influence(), strata_of(scheme, n))",
            "self.original.influence()",
            "test_every_replicate_has_the_standard_error_of_its_own_draws",
        ),
        Mutant(
            "the jackknife sees differences between strata",
            "_drawn",
            "levelled_by(case.clusters, statistic.leave_one_out())",
            "statistic.leave_one_out()",
            "test_student_takes_out_what_differs_between_strata",
        ),
        Mutant(
            "strata that differ are called skew",
            "of_bootstrap",
            "levelled_by(case.clusters, drawn.statistic.influence())",
            "drawn.statistic.influence()",
            "test_what_differs_between_strata_is_no_skew",
        ),
        Mutant(
            "the mean ratio is as unsure as if strata were drawn",
            "_mean_ratio",
            "levelled_by(clusters, relative)",
            "relative",
            "test_the_logs_own_mean_and_the_mean_ratio",
        ),
        Mutant(
            "a model is contradicted by episodes of one patient as if they were of many",
            "_correction",
            "by_cluster(PDWIS()(Problem(data, problem.policy)), problem.clusters)",
            "PDWIS()(Problem(data, problem.policy))",
            "test_the_correction_of_a_model_is_as_sure_as_its_clusters_are",
        ),
        Mutant(
            "a comparison's standard errors ignore strata",
            "decisions/approximate.py:_bounds",
            "levelled_by(clusters, end.influence)",
            "end.influence",
            "test_a_comparison_has_standard_errors_within_strata",
        ),
        Mutant(
            "a plan takes what differs between strata for spread",
            "by_effect",
            "strata_of(drawing, n)",
            "(n,)",
            "test_a_plan_knows_the_spread_within_strata",
        ),
        Mutant(
            "SLOPE and OPERA take every episode of a patient for an independent draw",
            "Among.together",
            "values if self.clusters is None else self.clusters.together(values, weights)",
            "values",
            "test_covariances_of_clusters_in_loops test_copies_in_a_cluster_make_no_member_surer",
        ),
        Mutant(
            "SLOPE and OPERA count episodes where clusters are drawn",
            "Among.draws",
            "self.n_trajectories if self.clusters is None else self.clusters.n",
            "self.n_trajectories",
            "test_covariances_of_clusters_in_loops test_copies_in_a_cluster_make_no_member_surer",
        ),
        Mutant(
            "OPERA's derivative moves a cluster as if each of its episodes were one",
            "Opera.picked_slopes",
            "ours * their_mean + our_mean * theirs - both",
            "ours * theirs",
            "test_influences_are_derivatives_where_clusters_are_drawn",
        ),
    ),
)
