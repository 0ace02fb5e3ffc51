"""The bounds as a table for other tools: one row each."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from tightrope.base.errors import TightropeError
from tightrope.base.records import Bound, Evaluation


def bounds_table(result: Evaluation) -> Any:
    """A pyarrow table of the bounds, with a column that says which are believed."""
    import pyarrow as pa

    warning = pa.struct([(name, pa.string()) for name in ("code", "text", "against")])
    types = {"seed": pa.uint64(), "warnings": pa.list_(warning), "standard_error": pa.float64()}
    rows = [asdict(bound) for bound in result.bounds]
    columns = {
        field.name: pa.array([row[field.name] for row in rows], types.get(field.name)) for field in fields(Bound)
    }
    columns["believed"] = pa.array([bound in result.believed for bound in result.bounds])
    return pa.table(columns)


def bounds_frame(result: Evaluation) -> Any:
    """The same as a pandas data frame."""
    try:
        import pandas  # noqa: F401  # what to_pandas needs
    except ImportError as error:
        raise TightropeError("to_frame needs pandas: pip install pandas; to_table() works without it") from error
    return bounds_table(result).to_pandas()
