"""Sums on other machines, and logs that do not fit into memory."""

from tests.mutants.planting import Mutant, Topic

TOPIC = Topic(
    "Engines and large logs",
    "test_engines test_large test_threads",
    (
        Mutant(
            "parts of a sum are added in the order they come in",
            "tree_sum",
            "waiting[-1][0] == waiting[-2][0]",
            "True",
            "test_the_tree_is_the_same_however_its_leaves_are_grouped",
        ),
        Mutant(
            "ranges of episodes are no subtrees",
            "group_ranges",
            "size *= 2",
            "size += 1",
            "test_ranges_are_subtrees",
        ),
        Mutant(
            "blocks of a partition are counted from its own beginning",
            "Walk.tiles",
            "start, columns = block * BLOCK, min(BLOCK, n - block * BLOCK)",
            "start, columns = (block - blocks.start) * BLOCK, min(BLOCK, n - block * BLOCK)",
            "test_threads_and_parts",
        ),
        Mutant(
            "arrays in files travel whole",
            "_packed",
            "file is not None and thing.flags.c_contiguous",
            "False",
            "test_logs_in_files_are_not_sent",
        ),
        Mutant(
            "what was computed on the way travels too",
            "SumStatistic.__getstate__",
            "name in kept",
            "True",
            "test_logs_in_files_are_not_sent",
        ),
        Mutant(
            "an episode is complete when its batch is",
            "Large._going_on",
            "pc.is_in(kept[name], value_set=pc.unique(batch[name])).to_numpy()",
            "np.zeros(kept.num_rows, dtype=bool)",
            "test_any_cut_gives_the_same_dataset",
        ),
        Mutant(
            "episodes keep the order they came in",
            "Growing.ordered",
            "(np.diff(order) > 0).all()",
            "True",
            "test_rows_in_no_order_within_and_between_neighbours",
        ),
        Mutant(
            "an episode whose rows lie apart counts twice",
            "Large.steps",
            "len(same)",
            "0",
            "test_the_same_episode_in_two_files",
        ),
        Mutant(
            "episodes without a name are numbered anew in each piece",
            "Large.steps",
            "piece.episode_ids + growing.count",
            "piece.episode_ids",
            "test_episodes_by_flags_and_one_in_each_row",
        ),
        Mutant(
            "a wider type that comes later is cut to the first one",
            "Column.append",
            "wide != self.dtype",
            "False",
            "test_text_states_and_actions_of_different_lengths",
        ),
        Mutant(
            "a model of logs in files takes what memory it likes",
            "Problem.check_memory",
            "folder is not None and need > folder.memory",
            "False",
            "test_what_needs_all_steps_says_how_much_memory_that_takes",
        ),
        Mutant(
            "folders that say something of their rows are not read",
            "partition_of",
            "key and equals",
            "False",
            "test_folders_that_say_something_of_all_their_rows",
        ),
    ),
)
