"""A small study in a module of its own, so that other processes can import it; run as a script, it runs the study."""

import sys
from pathlib import Path

import numpy as np

from tightrope.base.errors import BoundError
from tightrope.estimators import IS, PDWIS, Estimator
from tightrope.studies.runner import run_study
from tightrope.studies.study import Method, Study


def methods(domain):
    return (
        Method("is", IS(), ("betting", "percentile")),
        Method("pdwis", PDWIS(), ("bca", "studentized"), largest=20),
        Method("rare", PDWIS(), ("percentile",), smallest=20, trials=3),
    )


def clinic(**changes):
    settings = {"sizes": (2, 20, 40), "trials": 120, "n_resamples": 100, "methods": methods} | changes
    return Study("clinic-test", "clinic", **settings)


class Fails(Estimator):
    """An estimator that cannot be computed; with a crash where it is not one of our own errors."""

    name = "fails"

    def __init__(self, error):
        self.error = error

    def __call__(self, problem):
        raise self.error


def failing(domain):
    return (
        Method("refuses", Fails(BoundError("no such luck")), ("percentile",)),
        Method("crashes", Fails(np.linalg.LinAlgError("singular")), ("percentile", "bca")),
        Method("pdwis", PDWIS(), ("percentile",)),
    )


if __name__ == "__main__":
    run_study(clinic(trials=60), Path(sys.argv[1]), workers=int(sys.argv[2]))
