"""True values of a domain as text and as plain data."""

from __future__ import annotations

import json
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from tightrope.domains import Domain
from tightrope.domains.truth import Truth

WIDEST = 60  # characters of a configured value that are printed; --json holds all


def truth_table(domain: Domain, truth: Truth) -> Group:
    """Both policies' values (± standard error) beside those on record, and every number of the domain."""
    values = Table(title=f"{domain.name}: {domain.about}", title_justify="left", box=SIMPLE_HEAD)
    values.add_column("policy")
    how = "exactly" if truth.rollouts is None else f"{truth.rollouts:,} roll-outs"
    for heading in (f"value, {how}", *(() if truth.rollouts is None else ("on record",))):
        values.add_column(heading, justify="right", no_wrap=True)
    for policy, computed, recorded in (
        ("candidate", truth.candidate, (domain.true_value, domain.true_value_error)),
        ("behaviour", truth.behavior, (domain.behavior_value, domain.behavior_value_error)),
    ):
        shown = (computed,) if truth.rollouts is None else (computed, recorded)
        values.add_row(policy, *(f"{value:.6f}" + (f" ± {error:.2g}" if error else "") for value, error in shown))
    numbers = Table(title="configuration", title_justify="left", box=None, show_header=False)
    for name, setting in domain.configuration().items():
        text = setting if isinstance(setting, str) else json.dumps(setting)
        numbers.add_row(name, text if len(text) <= WIDEST else text[: WIDEST - 2] + " …")
    return Group(values, numbers)


def truth_record(domain: Domain, truth: Truth) -> dict[str, Any]:
    """The same as JSON holds it."""
    return {
        "domain": domain.name,
        "exact": truth.rollouts is None,
        "rollouts": truth.rollouts,
        "candidate": {"value": truth.candidate[0], "standard_error": truth.candidate[1]},
        "behavior": {"value": truth.behavior[0], "standard_error": truth.behavior[1]},
        "configuration": domain.configuration(),
    }
