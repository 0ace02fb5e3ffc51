"""Estimators that weigh steps by the candidate's visits: MIS, DRL, DICE."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Marginal ratios",
    "test_field test_mis",
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
    ),
)
