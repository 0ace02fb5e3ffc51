"""Records, details, reports and the command line."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Records and reports",
    "test_records test_details test_report test_report_log test_cli",
    (
        Mutant(
            "infinities are written as JSON does not know them",
            "_plain",
            "not math.isfinite(value)",
            "False",
            "test_what_json_lacks_is_written_as_text",
        ),
        Mutant("infinities come back as text", "_read", "_NUMBERS.get(value, value)", "value", "test_round_trip"),
        Mutant(
            "an upper bound is printed as a lower one",
            "Bound.__str__",
            "'≥' if self.side == 'lower' else '≤'",
            "'≥'",
            "test_a_bound_in_words",
        ),
        Mutant(
            "control characters of the logs reach the terminal",
            "visible",
            "",
            "return text",
            "test_results_show_no_control_characters_wherever_they_are_printed",
        ),
        Mutant(
            "replicates far out are not counted",
            "_histogram",
            "len(values) - len(near)",
            "0",
            "test_replicates_far_out_are_counted_instead_of_drawn",
        ),
        Mutant(
            "influential episodes are the least influential",
            "evaluation/details.py:_largest",
            "-np.round(size(places) / most, 12)",
            "np.round(size(places) / most, 12)",
            "test_the_influential_are_those_whose_absence_matters",
        ),
        Mutant(
            "an episode's influence is n times too large",
            "_influential",
            "float(influence[one] / n)",
            "float(influence[one])",
            "test_the_influential_are_those_whose_absence_matters",
        ),
        Mutant(
            "shares of the weight are those of the first step",
            "_shares",
            "ratios.log(*chunk)[:, -1]",
            "ratios.log(*chunk)[:, 0]",
            "test_the_influential_are_those_whose_absence_matters",
        ),
        Mutant(
            "the demonstration calls wrong upper bounds right",
            "holds",
            "bound.value <= true_value if bound.side == 'lower' else bound.value >= true_value",
            "bound.value <= true_value",
            "test_a_bound_holds_on_its_side",
        ),
        Mutant(
            "shares are printed a hundred times too small",
            "percent",
            "100 * share",
            "share",
            "test_errors_of_the_size_of_rounding_are_none",
        ),
        Mutant(
            "the forest plot runs from right to left",
            "Scale.at",
            "(place - low) / (high - low)",
            "(high - place) / (high - low)",
            "test_an_axis_is_not_squeezed_by_what_is_far_off",
        ),
        Mutant(
            "the estimate is logged as the bound",
            "metrics",
            'numbers[f"tightrope/{bound.side}_bound"] = bound.value',
            'numbers[f"tightrope/{bound.side}_bound"] = bound.estimate',
            "test_mlflow",
        ),
        Mutant(
            "every bound is listed as believed",
            "bounds_table",
            "bound in result.believed",
            "True",
            "test_tables_hold_every_bound",
        ),
        Mutant(
            "the report's estimate of the model's bias is the one-step error",
            "model_lines",
            "give_or_take(check.correction, check.correction_error)",
            "give_or_take(check.held_out_error, check.correction_error)",
            "test_a_models_numbers_have_their_names",
        ),
        Mutant(
            "no answer leaves with the code of an answer",
            "leave",
            "not result.believed",
            "False",
            "test_no_answer_has_its_own_exit_code",
        ),
        Mutant(
            "the command line forgets its seed", "cli/logs.py:evaluate", "seed", "0", "test_an_option_reaches_its_call"
        ),
        Mutant(
            "the command line forgets the confidence",
            "cli/logs.py:evaluate",
            "confidence",
            "0.95",
            "test_an_option_reaches_its_call",
        ),
        Mutant(
            "a gate lets pass what it cannot tell",
            "VERDICTS",
            "5",
            "0",
            "test_the_exit_code_is_the_verdict test_only_a_yes_passes_and_no_code_is_that_of_a_failed_program",
        ),
        Mutant(
            "the command line forgets the discount",
            "cli/reading.py:load",
            "discount",
            "1.0",
            "test_an_option_reaches_its_call",
        ),
    ),
)
