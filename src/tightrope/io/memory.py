"""How much memory logs may take."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from tightrope.base.errors import DataError

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?B|)\s*", re.IGNORECASE)
_SHARE = 0.5  # of what is free: others need some too


def allowed(memory: int | str | None) -> int:
    """Bytes: as given ("1GB"), or half of what is free."""
    if memory is None:
        return int(_SHARE * _free())
    match = _AMOUNT.fullmatch(str(memory))
    if isinstance(memory, bool) or match is None or float(match[1]) <= 0:
        raise DataError(f"memory must be a number of bytes, or such as '800MB' or '16GB'; got {memory!r}")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _free() -> int:
    """What the machine, or the container, has left."""
    amounts = []
    with suppress(OSError, ValueError):
        limit, used = (Path("/sys/fs/cgroup", name).read_text() for name in ("memory.max", "memory.current"))
        amounts.append(int(limit) - int(used))
    with suppress(OSError, ValueError, IndexError):
        amounts.append(1024 * int(re.findall(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())[0]))
    if not amounts:
        amounts.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return max(min(amounts), 1)
