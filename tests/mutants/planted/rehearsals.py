"""Rehearsal, mostly in linear worlds."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Rehearsal",
    "test_linear_rehearsal test_rehearse",
    (
        Mutant(
            "a bias that large logs do not have brings their bound nearer",
            "Rehearsed.bound",
            "max(worst, NormalDist().inv_cdf(confidence))",
            "worst",
            "test_many_episodes_are_rehearsed_with_fewer_and_no_less_than_a_normal_quantile",
        ),
        Mutant(
            "residuals of ended steps are given to steps that go on",
            "LinearWorld.step",
            "picked[ended] = self.ending.pick(keys[ended], uniforms[ended, 2:])",
            "pass",
            "test_worlds_are_their_slow_definition",
        ),
        Mutant(
            "the worst case is as likely where much was logged as where nothing was",
            "LinearWorld.step",
            "np.square(design @ self.half).sum(axis=1)",
            "np.ones(len(design))",
            "test_worlds_are_their_slow_definition",
        ),
        Mutant(
            "a world forgets what came before once an episode ends",
            "LinearWorld.play",
            "Past(places[stay], rewards[stay])",
            "Past(places[: stay.sum()], rewards[: stay.sum()])",
            "test_worlds_are_their_slow_definition",
        ),
        Mutant(
            "the Monte Carlo error of a simulated truth is taken to the unsafe side",
            "LinearStage.pivots",
            "value - SAFE * error",
            "value + SAFE * error",
            "test_pivots_are_those_of_each_log_by_itself",
        ),
        Mutant(
            "WDR of a simulated log learns from the other simulated logs",
            "LinearStage._cross_fitted",
            "(rows // FOLDS == number // FOLDS) & (rows != number)",
            "rows != number",
            "test_pivots_are_those_of_each_log_by_itself",
        ),
        Mutant(
            "simulated logs begin where the first episode did",
            "LinearStage._played",
            "starts[rng.integers(len(starts), size=n)]",
            "starts[np.zeros(n, dtype=np.int64)]",
            "test_the_truth_is_the_mean_return_of_the_candidate",
        ),
        Mutant(
            "the candidate's rewards in a world are not discounted",
            "LinearStage._value",
            "discount * moment.rewards",
            "moment.rewards",
            "test_without_residuals_the_truth_is_known test_the_truth_is_the_mean_return_of_the_candidate",
        ),
    ),
)
