"""Horizon and discount as a file's own metadata tells them, where its format has a place for that (Parquet, Arrow).

Ranges are not among them: exact bounds rest on these, so whoever evaluates the logs declares them.
"""

from __future__ import annotations

import json
import zlib
from typing import Any, NamedTuple

from tightrope.base.checks import is_number, whole_horizon
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import DataError

KEY = b"tightrope"


class Declared(NamedTuple):
    """What the table says about itself; None where it does not say."""

    horizon: int | None = None
    discount: float | None = None


def stamped(table: Any, dataset: TrajectoryDataset) -> Any:
    """The table with the dataset's horizon, if it was declared, and its discount."""
    settings = Declared(dataset.horizon if dataset.horizon_declared else None, dataset.discount)
    text = json.dumps(settings._asdict())
    content = json.dumps({"declared": text, "crc32": zlib.crc32(text.encode())})
    return table.replace_schema_metadata({**(table.schema.metadata or {}), KEY: content.encode()})


def declared(table: Any) -> Declared:
    """What the metadata of a table says; refused where it is damaged."""
    content = (table.schema.metadata or {}).get(KEY)
    if content is None:
        return Declared()
    try:
        record = json.loads(content)
        if zlib.crc32(record["declared"].encode()) != record["crc32"]:
            raise ValueError("the checksum differs")
        horizon, discount = (json.loads(record["declared"])[name] for name in Declared._fields)
        if not is_number(discount):
            raise ValueError(f"discount {discount!r}")
        return Declared(None if horizon is None else whole_horizon(horizon), float(discount))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"the horizon and discount in the metadata of the logs (key {KEY.decode()!r}) are damaged: {error}. Write "
            "the logs again, or remove that key"
        ) from error
