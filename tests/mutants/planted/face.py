"""The answer, its words and its drawing."""

from __future__ import annotations

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "The answer, its words and its drawing",
    "test_sentences test_verdict test_face test_ruler",
    (
        Mutant(
            "the estimate shown counts from the floor",
            "_Mean.textbook",
            'replace(self, anchor="low", normalize=False)',
            'replace(self, anchor="low")',
            "test_the_estimate_shown_is_the_textbook_one",
        ),
        Mutant(
            "the two sides show two estimates",
            "Case.point",
            "estimator.textbook(self.problem.dataset)",
            "estimator.anchored(self.anchor)",
            "test_one_estimate_is_shown",
        ),
        Mutant(
            "an estimate is shown though it is impossible",
            "_with_estimate",
            "min(max(point.value, low), high)",
            "point.value",
            "test_an_estimate_beyond_the_range_is_told",
        ),
        Mutant(
            "a bound that says nothing is recommended",
            "flaw",
            '"vacuous" if coded(bound.warnings, "vacuous") else None',
            "None",
            "test_what_is_believed_or_called_exact_says_something",
        ),
        Mutant(
            "wrong ratios do not count against a bound",
            "flaw",
            'coded(bound.warnings, "mean-ratio")',
            "False",
            "test_what_is_believed_or_called_exact_says_something",
        ),
        Mutant(
            "where the probabilities are wrong, more logs are advised",
            "no_answer",
            "LOGGED if estimated else CHECK",
            "CLOSER",
            "test_wrong_probabilities_are_named_and_nothing_else_is_advised",
        ),
        Mutant(
            "a bound from a model is not said to rest on it",
            "_doubts",
            "bound.hangs_on_model",
            "False",
            "test_the_words_agree_with_the_data",
        ),
        Mutant(
            "episodes are promised to settle what they would not",
            "Prospect.total",
            "self.n * ((self.width + NORMAL.inv_cdf(chance) * self.error) / distance) ** 2",
            "self.n * ((self.width + NORMAL.inv_cdf(chance) * self.error) / distance)",
            "test_more_episodes_shrink_the_gap_with_their_root",
        ),
        Mutant(
            "the marks of a number line are mirrored",
            "ruler",
            "scale.at(mark.value) * (width - 1)",
            "(1 - scale.at(mark.value)) * (width - 1)",
            "test_marks_lie_where_their_numbers_are",
        ),
        Mutant(
            "numbers are cut where a table is too wide",
            "Rows.__rich_console__",
            "Measurement.get(console, options.update(width=WIDE), table).maximum <= options.max_width",
            "True",
            "test_nothing_is_cut",
        ),
        Mutant(
            "what is recommended has no sign",
            "_rows",
            '"▶" if any(bound in use for bound in bounds) else ""',
            '""',
            "test_what_is_recommended_has_a_sign_of_its_own",
        ),
    ),
)
