"""Regressions, simulators and their roll-outs."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Regressions and roll-outs",
    "test_regression test_rollouts test_simulator",
    (
        Mutant(
            "residual noise is dropped from roll-outs",
            "RegressionDynamics.step",
            "following += (self.factor @ noise).transpose(1, 0, 2)",
            "pass",
            "test_noise_by_hand test_value_against_plain_simulation_of_the_fit",
        ),
        Mutant(
            "learned rewards leave the declared range",
            "RegressionDynamics.step",
            "np.clip(mean[d], *self.reward_range)",
            "mean[d]",
            "test_learned_rewards_stay_in_the_declared_range",
        ),
        Mutant(
            "the noise is as large as the targets",
            "Gram.fit",
            "inner - solved.transpose(0, 2, 1) @ products",
            "inner + 0 * (solved.transpose(0, 2, 1) @ products)",
            "test_noise_by_hand",
        ),
        Mutant(
            "roll-outs from a later step are discounted from the first",
            "Stepper.returns",
            "t - begun[lanes.place]",
            "t + 0 * begun[lanes.place]",
            "test_the_discount_and_horizon_count_from_the_step",
        ),
        Mutant(
            "roll-outs never end",
            "Stepper._advance",
            "lanes.share *= 1.0 - np.clip(ends, 0.0, 1.0)",
            "pass",
            "test_known_ends test_learned_ends_are_a_share_of_the_steps",
        ),
        Mutant(
            "roll-outs that blow up earn the safe end of the range",
            "Stepper._rest",
            '0 if self.anchor == "low" else 1',
            '1 if self.anchor == "low" else 0',
            "test_blow_ups_end_with_the_unsafe_reward_and_are_counted",
        ),
        Mutant(
            "moves into an end are learned as if episodes went on from it",
            "_prepare",
            "learn_end and settings.reward is None",
            "False",
            "test_where_ends_are_learned_the_state_they_ended_in_is_not_gone_on_from",
        ),
        Mutant(
            "replicates of a roll-out model do not see their refit",
            "RolloutModel.values",
            "values[rows] += (spread * changes).sum(axis=1) / spread.sum(axis=1)",
            "pass",
            "test_the_value_by_its_definition",
        ),
        Mutant(
            "q̂ of a logged step begins with the candidate's own action",
            "RolloutModel.control_variates",
            "Starts(start.states, start.times, banks, actions[order])",
            "Starts(start.states, start.times, banks)",
            "test_where_all_is_linear_control_variates_are_exact",
        ),
        Mutant(
            "frozen noise ignores its seed",
            "trajectory_key",
            'f"{seed}:{episode}"',
            'f"{episode}"',
            "test_another_seed_is_other_noise",
        ),
        Mutant(
            "noise of roll-outs is told beyond twenty bootstraps", "NOISY", "", "20.0", "test_simulation_noise_is_told"
        ),
        Mutant(
            "the standard error of the simulation forgets how many roll-outs there were",
            "RolloutModel.point",
            "np.sqrt(spread / (n * count))",
            "np.sqrt(spread)",
            "test_the_standard_error_is_the_spread_over_seeds",
        ),
        Mutant(
            "regressors are fitted without weights",
            "Learner.learn",
            "learner.fit(inputs[used], targets, sample_weight=weights[used])",
            "learner.fit(inputs[used], targets)",
            "test_a_linear_regressor_is_the_linear_model",
        ),
        Mutant(
            "a simulator's starts are not weighted",
            "SimulatorValues.values",
            "weights @ self.start_values / weights.sum(axis=1)",
            "np.full(len(weights), self.start_values.mean())",
            "test_a_simulator_by_hand",
        ),
        Mutant(
            "cubes of the polynomial model are squares again",
            "_cubic",
            "squares * states",
            "squares * np.abs(states)",
            "test_polynomial_features_by_hand",
        ),
        Mutant(
            "the transition into the unknown is learned as one to 0",
            "_following",
            "known[last] = np.isfinite(final).all(axis=1)",
            "known[last] = True",
            "test_refits_are_weighted_least_squares",
        ),
    ),
)
