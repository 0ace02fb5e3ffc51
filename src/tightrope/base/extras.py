"""Optional libraries: imported when they are used; an error says how to install a missing one."""

from __future__ import annotations

import importlib
from typing import Any

from tightrope.base.errors import TightropeError


def load_extra(module: str, extra: str, purpose: str) -> Any:
    """The module, or an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise TightropeError(
            f'{purpose} needs {module}, which cannot be imported ({error}): pip install "tightrope[{extra}]"'
        ) from error
