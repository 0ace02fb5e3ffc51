"""Every mistake that is kept, by topic."""

from tests.mutants.planted import (
    behaviors,
    bounds,
    data,
    estimators,
    exact,
    face,
    gains,
    guards,
    models,
    monitors,
    policies,
    readers,
    regressions,
    results,
    studies,
    tabular,
    tethers,
    weights,
)
from tests.mutants.planting import Topic

TOPICS: tuple[Topic, ...] = (
    data.TOPIC,
    estimators.TOPIC,
    gains.TOPIC,
    weights.TOPIC,
    bounds.TOPIC,
    exact.TOPIC,
    tethers.TOPIC,
    monitors.TOPIC,
    models.TOPIC,
    tabular.TOPIC,
    regressions.TOPIC,
    behaviors.TOPIC,
    guards.TOPIC,
    readers.TOPIC,
    policies.TOPIC,
    studies.TOPIC,
    results.TOPIC,
    face.TOPIC,
)
