"""The blend of WIS and PDWIS with the least variance."""

from __future__ import annotations

from tests.field import Entry, Question
from tests.field.slope import covariance, pdwis, wis

RIDGE = 1e-6


def slow(question: Question) -> float:
    """Two members: the share of the first is (v_2 − c) / (v_1 + v_2 − 2c)."""
    (first, slopes), (second, others) = wis(question), pdwis(question)
    v1, v2 = covariance(question, slopes, slopes), covariance(question, others, others)
    v1, v2, c = (1 + RIDGE) * v1, (1 + RIDGE) * v2, covariance(question, slopes, others)
    share = (v2 - c) / (v1 + v2 - 2 * c)
    return share * first + (1 - share) * second


# WIS is 4 with derivatives ∓2/3, PDWIS 10/3 with ∓16/45 (see slope.py). Variances 2·(4/9 + 4/9) = 16/9 = 3600/2025 and
# 4·(16/45)² = 1024/2025, each a ridge larger, covariance 4·2/3·16/45 = 128/135 = 1920/2025: the share of WIS is about
# (1024 − 1920) / (3600 + 1024 − 2·1920) = −8/7.
SHARE = (1024 * (1 + RIDGE) - 1920) / (4624 * (1 + RIDGE) - 3840)
ENTRY = Entry(
    slow,
    golden=SHARE * 4 + (1 - SHARE) * 10 / 3,
    settings={"choices": ("wis", "pdwis")},
)
