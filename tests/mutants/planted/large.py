"""Models of logs that do not fit into memory."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Models of large logs",
    "test_large_models test_large",
    (
        Mutant(
            "a value that two parts share counts twice",
            "_sorted_distinct",
            "count and fresh[0] == copy[count - 1]",
            "False",
            "test_distinct_values",
        ),
        Mutant(
            "the file of an array stays when nobody uses it any more",
            "Folder.empty",
            "weakref.finalize(array._mmap, path.unlink, missing_ok=True)",
            "pass",
            "test_files_of_arrays_go_away_with_them",
        ),
        Mutant(
            "steps of some episodes are sorted by time as if no others came before",
            "Timeline._sorted",
            "reached += counts",
            "pass",
            "test_the_size_of_parts_changes_nothing",
        ),
        Mutant(
            "episodes that met a kind are those of one part",
            "Stretch.whose",
            "np.arange(self.first, self.first + len(self.offsets) - 1)",
            "np.arange(len(self.offsets) - 1)",
            "test_the_size_of_parts_changes_nothing",
        ),
        Mutant(
            "times count on from one episode of a part to the next",
            "Stretch.times",
            "np.repeat(self.offsets[:-1], self.lengths)",
            "self.offsets[0]",
            "test_tabular",
        ),
        Mutant(
            "kinds are counted by the edges of the first ones",
            "models/tabular/tile_kernels.py:fit",
            "logs.step_edges[first : stop + 1]",
            "logs.step_edges[: stop - first + 1]",
            "test_more_kinds_than_are_counted_together",
        ),
        Mutant(
            "every so many known steps begin anew with every part",
            "every",
            "-count % stride",
            "0",
            "test_every_so_many_known_steps",
        ),
        Mutant(
            "cross-fitted values come from one part of the episodes",
            "copy_steps",
            "wanted[start:stop]",
            "wanted[: stop - start]",
            "test_cross_fitted_values_of_small_parts",
        ),
        Mutant(
            "TD errors are kept in memory",
            "td_errors",
            "deltas = data.per_step()",
            "deltas = np.empty(data.n_steps)",
            "test_memory_does_not_grow_with_the_steps",
        ),
        Mutant(
            "control variates of tabular models are kept in memory",
            "PreparedTabular.control_variates",
            "data.scratch.empty(len(data.kinds))",
            "np.empty(len(data.kinds))",
            "test_memory_does_not_grow_with_the_steps",
        ),
        Mutant(
            "models whose memory nobody knows are prepared for logs in files",
            "models/__init__.py:prepared_model",
            "problem.check_memory(f'the {settings.name} model')",
            "pass",
            "test_what_needs_all_steps_says_how_much_memory_that_takes",
        ),
        Mutant(
            "roll-outs from every step of large logs are begun",
            "RolloutModel._check_work",
            "data.folder is not None and simulated > MOST_SIMULATED",
            "False",
            "test_roll_outs_from_every_step_of_large_logs_are_refused",
        ),
    ),
)
