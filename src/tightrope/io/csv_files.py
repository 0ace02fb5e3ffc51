"""CSV files: what looks like a number is one, but labels stay text where numbers would merge them.

In a file of text ``007`` and ``7`` are two names, and a whole number of 21 digits is no double.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tightrope.base.errors import DataError
from tightrope.io.aliases import ROLES, ColumnMap

LABELS = ("episode", "action")  # may be text
NUMBERED = ("state", "next_state")  # may be text too, but one that looks like a number is one


def read_csv(opened: Callable[[], Any], path: str, given: ColumnMap, *, delimiter: str = ",") -> Any:
    """A pyarrow table of the file."""
    import pyarrow.csv

    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True)
    cells = pyarrow.csv.ParseOptions(delimiter=delimiter)
    table = pyarrow.csv.read_csv(opened(), convert_options=options, parse_options=cells)
    labels = [name for name in _names(LABELS, given) if _looks_whole(table, name)]
    big = [name for name in _names(NUMBERED, given) if _looks_whole(table, name, "double")]
    if not labels and not big:
        return table
    options.include_columns = [*labels, *big]
    options.column_types = dict.fromkeys(options.include_columns, pyarrow.string())
    texts = pyarrow.csv.read_csv(opened(), convert_options=options, parse_options=cells)
    spelled = _names(("episode",), given)
    for name in options.include_columns:
        if _is_faithful(texts[name], table[name], merges=name in labels, spelled=name in spelled):
            continue
        if name in big:
            raise DataError(f"{path}: column {name!r} must hold whole numbers of at most 64 bits; renumber them")
        table = table.set_column(table.column_names.index(name), name, texts[name])
    return table


def _names(roles: tuple[str, ...], given: ColumnMap) -> list[str]:
    """The columns that may play these roles, by the column map or by name."""
    names = []
    for role in roles:
        wanted = given.get(role, ROLES[role])
        names += [wanted] if isinstance(wanted, str) else list(wanted or ())
    return names


def _looks_whole(table: Any, name: str, *kinds: str) -> bool:
    """Whether a column was read as numbers, all of them whole."""
    if table.column_names.count(name) != 1 or str(table[name].type) not in (kinds or ("int64", "double")):
        return False
    values = table[name].drop_null().to_numpy()
    return bool((values == np.floor(values)).all())


def _is_faithful(texts: Any, numbers: Any, *, merges: bool, spelled: bool) -> bool:
    """Whether numbers are the whole numbers that are written and (``merges``) tell apart what is written differently.

    ``spelled`` asks for more: that they are written as the texts are, without leading zeros.
    """
    import pyarrow.compute as pc

    written = pc.utf8_trim_whitespace(texts.unique().drop_null())
    if str(numbers.type) == "double":
        if not pc.all(pc.match_substring_regex(written, r"^[+-]?\d+$")).as_py():
            return True  # quantities: 0.5 and 0.50 are one
        if any(int(text) != float(text) for text in written.to_pylist()):
            return False
    if spelled and str(numbers.type) == "int64":
        return bool(pc.all(pc.is_in(written, value_set=numbers.unique().cast("string"))).as_py())
    return not merges or len(written.unique()) == len(numbers.unique().drop_null())
