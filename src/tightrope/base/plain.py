"""Records to plain JSON and back, by the types of their fields. Infinities and NaN become strings: JSON lacks them."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Self, Union, get_args, get_origin, get_type_hints

import numpy as np

from tightrope.base.errors import TightropeError


class Record:
    """A frozen dataclass that can be written as JSON and read again."""

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, lists, numbers and strings."""
        return _plain(asdict(self))  # type: ignore[call-overload, no-any-return]

    def to_json(self, *, indent: int | None = None) -> str:
        """A JSON text that any parser reads."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The record that ``to_json`` wrote."""
        try:
            return cls.from_dict(json.loads(text))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise TightropeError(f"the text must be JSON as {cls.__name__}.to_json() writes it: {error}") from error

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The record that ``to_dict`` made."""
        kinds = _kinds(cls)  # type: ignore[arg-type]  # a class is hashable
        return cls(**{name: _read(kinds.get(name, Any), value) for name, value in data.items()})


@cache
def _kinds(cls: type[Record]) -> dict[str, Any]:
    """The types of a record's fields by name."""
    return get_type_hints(cls)


_NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _read(kind: Any, value: Any) -> Any:
    """A plain value as the type of its field asks for it."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):  # of a type and None
        (kind,) = [part for part in parts if part is not NoneType]
        return None if value is None else _read(kind, value)
    if isinstance(kind, type) and issubclass(kind, Record):
        return kind.from_dict(value)
    if origin is tuple and isinstance(value, list):
        inner = [parts[0]] * len(value) if parts[-1] is Ellipsis else parts
        return tuple(_read(part, item) for part, item in zip(inner, value, strict=True))
    if origin is dict and isinstance(value, dict):
        return {name: _read(parts[1], item) for name, item in value.items()}
    if isinstance(value, list):
        return tuple(_read(Any, item) for item in value)
    text_stays = kind is str or origin is Literal  # an episode may be called "nan"
    return _NUMBERS.get(value, value) if isinstance(value, str) and not text_stays else value
