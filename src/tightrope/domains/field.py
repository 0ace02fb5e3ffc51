"""Problems that the field compares estimators on, by name; each is a file of its own."""

from __future__ import annotations

from collections.abc import Callable

from tightrope.domains.catalogue import catalogue
from tightrope.domains.chain import chain
from tightrope.domains.graph import graph, graph_hidden
from tightrope.domains.lake import lake
from tightrope.domains.model_fail import model_fail
from tightrope.domains.model_win import model_win
from tightrope.domains.small import SmallProblem

FIELD: dict[str, Callable[[], SmallProblem]] = {
    "model-win": model_win,
    "model-fail": model_fail,
    "graph": graph,
    "graph-hidden": graph_hidden,
    "lake": lake,
    "chain": chain,
    "catalogue": catalogue,
}
