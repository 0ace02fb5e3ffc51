"""Estimators that weigh steps by the candidate's visits: MIS, DRL, DICE."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Marginal ratios",
    "test_field test_mis test_drl",
    (
        Mutant(
            "MIS forgets the discount",
            "Places.of",
            "(data.rewards * data.discounts[data.times])[order]",
            "data.rewards[order]",
            "test_field",
        ),
        Mutant(
            "the last step of an episode leads to the first of the next",
            "Places.of",
            "following[data.offsets[1:] - 1] = len(distinct)",
            "pass",
            "test_field",
        ),
        Mutant(
            "a place is a state at any time",
            "Places.of",
            "data.times * (int(states.max()) + 1) + states",
            "states + 0 * data.times",
            "test_field",
        ),
        Mutant(
            "the slope of an episode leaves out its start",
            "look_back",
            "place < n_first",
            "place < 0",
            "test_influences_are_derivatives",
        ),
        Mutant(
            "a behaviour policy fitted again does not move the standard error",
            "SmoothReestimatedSteps._influence",
            "-self.weighing.ratio_slopes(weights, step_ratios)",
            "0.0 * self.weighing.ratio_slopes(weights, step_ratios)",
            "test_influences_are_derivatives",
        ),
        Mutant(
            "logs that the candidate cannot walk through give a value",
            "refuse_cut_paths",
            "mass == 0.0",
            "mass < 0.0",
            "test_no_way_through_the_logs",
        ),
        Mutant(
            "DRL corrects each fold by the visits of that fold",
            "held_out_visits",
            "fold != k",
            "fold == k",
            "test_field",
        ),
        Mutant(
            "DRL corrects each fold by the visits of all logs",
            "held_out_visits",
            "(fold != k).astype(np.float64)",
            "np.ones(len(fold))",
            "test_field",
        ),
        Mutant(
            "DRL weighs a step by the candidate's visits and not by its action",
            "DRL.__call__",
            "data.discounts[data.times] * visits * step_ratios",
            "data.discounts[data.times] * visits",
            "test_drl",
        ),
        Mutant(
            "visit ratios are the candidate's shares, not divided by those of the logs",
            "Places.visit_ratios",
            "visits[:, 0] / weights.sum()",
            "np.ones(len(visits))",
            "test_drl",
        ),
    ),
)
