"""How tables print what they count: names of estimators in capitals."""

from __future__ import annotations

import re

from tightrope.estimators import ESTIMATORS


def printed(label: str) -> str:
    """A label of a table with its estimators in capitals: "mb-lr/percentile" is "MB-lr/percentile", "advice" stays."""
    return re.sub(r"^[a-z]+|(?<=\+)[a-z]+", lambda name: name[0].upper() if name[0] in ESTIMATORS else name[0], label)
