"""The blend of WIS and PDWIS with the least variance."""

from __future__ import annotations

from tests.field import Entry, Question
from tests.field.slope import covariance, pdwis, wis

RIDGE = 1e-6


def slow(question: Question) -> float:
    """Two members: the share of the first is (v_2 − c) / (v_1 + v_2 − 2c)."""
    (first, slopes), (second, others) = wis(question), pdwis(question)
    v1, v2 = covariance(question, slopes, slopes), covariance(question, others, others)
    c, size = covariance(question, slopes, others), (v1 + v2) / 2
    v1, v2, c = v1 / size + RIDGE, v2 / size + RIDGE, c / size
    share = (v2 - c) / (v1 + v2 - 2 * c)
    return share * first + (1 - share) * second


# WIS is 4 with derivatives ∓2/3, PDWIS 10/3 with ∓16/45 (see slope.py). Variances 2·(4/9 + 4/9) = 16/9 and
# 4·(16/45)² = 1024/2025, covariance 4·2/3·16/45 = 128/135; over their mean, 2312/2025: 3600/2312, 1024/2312 and
# 1920/2312. The share of WIS is (1024 − 1920)/2312 + ridge over (3600 + 1024 − 2·1920)/2312 + 2 ridges.
SHARE = (-896 / 2312 + RIDGE) / (784 / 2312 + 2 * RIDGE)
ENTRY = Entry(
    slow,
    golden=SHARE * 4 + (1 - SHARE) * 10 / 3,
    settings={"choices": ("wis", "pdwis")},
    logged_policy=True,
)
