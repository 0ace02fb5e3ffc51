"""Hashes of content: of files, of sources, and of objects by the numbers and the code that they hold.

Two objects that print alike need not be alike: long arrays are shortened in print, and a function's name says nothing
of its code. What cannot be looked into (compiled objects of other libraries) counts by its type and how it prints.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Mapping, Set
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tightrope.base.errors import TightropeError

OURS = "tightrope"  # its sources count together, see package_digest
_DIGITS = 32  # hexadecimal ones of a SHA-256 that are kept: 128 bits
_IMPORTED: WeakKeyDictionary[ModuleType, str] = WeakKeyDictionary()  # sources when they were first asked for
_ATOMS = (type(None), bool, int, float, complex, str, bytes, np.generic)


def text_without_addresses(value: Any) -> str:
    """The repr without addresses, which differ from run to run."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def digest(*values: Any) -> str:
    """A hash of what the values hold."""
    walk = _Walk()
    walk.feed(values)
    return walk.hash.hexdigest()[:_DIGITS]


def files_digest(paths: Iterable[Path]) -> str:
    """A hash of the files' bytes, in order."""
    total = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()[:_DIGITS]


def package_digest() -> str:
    """A hash of all of this library's sources, because the version number does not change with every edit."""
    return files_digest(sorted(Path(__file__).parent.rglob("*.py")))


def source_digest(module: str) -> str:
    """A hash of an imported module's source and of all that it imports from the same folder, however deep."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not file.endswith(".py"):
        return ""
    return files_digest([Path(file), *sorted(_neighbours(module, Path(file)))])


def imported_digest(module: str) -> str:
    """The same of what this process runs: refused where the source was changed after it was imported."""
    now = source_digest(module)
    if _IMPORTED.setdefault(sys.modules[module], now) != now:
        raise TightropeError(f"the source of {module} changed after it was imported here; start Python again")
    return now


def _neighbours(module: str, file: Path) -> set[Path]:
    """The files of the modules that it imports from the folder it was found in, unless that is full of libraries."""
    from modulefinder import ModuleFinder
    from sysconfig import get_path

    root = file.parents[module.count(".") + (file.name == "__init__.py")]
    if any(root.is_relative_to(get_path(library)) for library in ("stdlib", "purelib", "platlib")):
        return set()
    finder = ModuleFinder(path=[str(root)])
    try:
        finder.import_hook(module)
    except ImportError:  # a script, or a package without an __init__
        return set()
    files = (getattr(module, "__file__", None) for module in finder.modules.values())
    return {Path(file) for file in files if file is not None and file.endswith(".py")}


class _Walk:
    """Feeds a value's type, what it is by itself, and its parts; a thing met again counts by its number."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.met: dict[int, tuple[int, Any]] = {}  # things by id, kept alive so that ids stay theirs

    def feed(self, value: Any) -> None:
        """The value and all that it holds."""
        self.hash.update(f"{type(value).__module__}.{type(value).__qualname__}(".encode())
        if id(value) in self.met and not isinstance(value, _ATOMS):
            self.hash.update(b"%d" % self.met[id(value)][0])
        else:
            self.met.setdefault(id(value), (len(self.met), value))
            itself, parts = _taken_apart(value)
            self.hash.update(itself)
            for part in parts:
                self.feed(part)
        self.hash.update(b")")


def _taken_apart(value: Any) -> tuple[bytes, Iterable[Any]]:
    """What a value is by itself, and the parts it is made of."""
    if isinstance(value, _ATOMS):
        return repr(value).encode(), ()
    if isinstance(value, np.ndarray):
        head = f"{value.dtype.str}{value.shape}".encode()
        return (head, value.tolist()) if value.dtype.hasobject else (head + value.tobytes(), ())
    if isinstance(value, Mapping):
        return b"", value.items()
    if isinstance(value, Set):
        return b"", sorted(digest(part) for part in value)
    if isinstance(value, (list, tuple)):
        return b"", value
    if isinstance(value, FunctionType):
        closed = [cell.cell_contents for cell in value.__closure__ or ()]
        return value.__qualname__.encode() + _source(value), [value.__defaults__, value.__kwdefaults__, closed]
    if isinstance(value, MethodType):
        return b"", [value.__func__, value.__self__]
    if isinstance(value, partial):
        return b"", [value.func, value.args, value.keywords]
    if isinstance(value, type):
        return value.__qualname__.encode() + _source(value), ()
    if isinstance(value, ModuleType):
        return value.__name__.encode() + source_digest(value.__name__).encode(), ()
    return _object(value)


def _object(value: Any) -> tuple[bytes, Iterable[Any]]:
    """An object by its class's source and its attributes; one of the standard library, or compiled, as it prints."""
    if is_dataclass(value):
        return _source(type(value)), [(field.name, getattr(value, field.name)) for field in fields(value)]
    if hasattr(value, "state_dict"):  # a torch module
        return text_without_addresses(value).encode(), value.state_dict().items()
    if hasattr(value, "detach"):  # a torch tensor
        return b"", [value.detach().cpu().double().numpy()]
    if hasattr(value, "__dict__") and type(value).__module__.partition(".")[0] not in sys.stdlib_module_names:
        return _source(type(value)), vars(value).items()
    return text_without_addresses(value).encode(), ()


def _source(thing: Any) -> bytes:
    """Where a function or class comes from, and the source there; ours is counted once for all."""
    module = str(thing.__module__).replace("__mp_main__", "__main__")  # as other processes call the script
    return f"{module}:{'' if module.partition('.')[0] == OURS else source_digest(module)}".encode()
