"""Every product of ours runs with BLAS held to one thread, and gives the same bits whatever the number of threads."""

import ast
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl

import tightrope
from tests.models.systems import CANDIDATE, UP, logs, walks
from tightrope.base.blas import _libraries, one_blas_thread
from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.estimators.gain import gain
from tightrope.functional.engines import replicate
from tightrope.functional.resampling import Multinomial
from tightrope.models import LinearModel

SOURCE = Path(tightrope.__file__).parent
PRODUCTS = {"matmul", "dot", "einsum", "tensordot", "vecdot", "solve", "inv", "lstsq", "cholesky", "eigvalsh"}
# Of a row or a few numbers: nothing that BLAS would spread over cores, and called before anything is computed.
SMALL = {"base/policy/gaussian.py", "evaluation/overlap.py", "domains/finite.py"}
HOT = {
    "functional/engines/sums.py", "functional/statistic.py",
    "bounds/exact/betting_mixture.py",
    "models/gram.py", "models/regression.py",
    "models/likelihood.py", "behaviors/logistic.py", "behaviors/gaussian.py", "estimators/reestimate.py",
    "estimators/weighing.py", "estimators/gain.py", "estimators/refit.py",
}  # fmt: skip


def is_product(node: ast.AST) -> bool:
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        return isinstance(node.op, ast.MatMult)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PRODUCTS


def functions_with_products() -> Iterator[tuple[str, int]]:
    """(file, first line) of every function of ours that multiplies or solves, as code objects name it."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)) and any(map(is_product, ast.walk(node))):
                lines = [node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))]
                yield str(path), min(lines)


def threads() -> int:
    return max(library.num_threads for library in _libraries())


class Watch:
    """Notes with how many threads each function that multiplies is entered."""

    def __init__(self) -> None:
        self.watched = set(functions_with_products())
        self.found: dict[str, set[int]] = {}

    def __enter__(self) -> "Watch":
        self.limits = threadpoolctl.threadpool_limits(2, user_api="blas")  # as on any machine with two cores
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        self.limits.restore_original_limits()

    def _note(self, frame, event, argument) -> None:
        place = (frame.f_code.co_filename, frame.f_code.co_firstlineno)
        if event == "call" and place in self.watched:
            name = f"{Path(place[0]).relative_to(SOURCE).as_posix()}:{frame.f_code.co_name}"
            self.found.setdefault(name, set()).add(threads())


def by_hand(statistic) -> None:
    """What a user does with a statistic of his own."""
    n = statistic.n_trajectories
    statistic(np.ones((3, n)))
    statistic.influence()
    statistic.leave_one_out()


def everything() -> None:
    """Every estimator and bound, models and estimated behaviour policies of each kind, and statistics by hand."""
    clinic = small("clinic")
    data, policy = clinic.logs(40, rng=np.random.default_rng(0)), clinic.candidate
    few = {"n_resamples": 50, "seed": 0}
    tightrope.evaluate(data, policy, side="both", baseline="behavior", **few)
    tightrope.evaluate(data, policy, methods=["anderson", "betting-mixture", "robust", "percentile"], **few)
    tightrope.interval(data, policy, **few)
    tightrope.evaluate(data, policy, behavior="tabular", estimators=["wis"], baseline="behavior", **few)
    tightrope.evaluate(walks(), UP, behavior="logistic", estimators=["wis"], **few)
    smooth = logs(30, behavior_log_probs=np.zeros(30 * 8), actions=np.random.default_rng(0).normal(size=(240, 1)))
    model = LinearModel(n_rollouts=4, point_rollouts=100, replicate_rollouts=20)
    tightrope.evaluate(smooth, CANDIDATE, estimators=["mb", "wdr"], model=model, **few)
    tightrope.evaluate(smooth, CANDIDATE, estimators=["wis"], behavior="gaussian", **few)
    for name in ("is", "pdwis", "mb", "dr", tightrope.estimators.WDR(fit="refit")):
        by_hand(tightrope.statistic(data, policy, estimator=name))
    by_hand(tightrope.statistic(walks(), UP, estimator="pdwis", behavior="logistic"))
    by_hand(gain(tightrope.estimators.MB())(Problem(data, policy)))
    by_hand(tightrope.statistic(smooth, CANDIDATE, estimator="mb", model=model))
    replicate([tightrope.statistic(data, policy)], Multinomial(), n_resamples=50, seed=0, standard_errors=True)


def test_every_product_runs_with_one_thread():
    with Watch() as watch:
        everything()
        assert threads() == 2
    reached = {name.partition(":")[0] for name in watch.found}
    assert reached >= HOT, HOT - reached
    assert {name for name, numbers in watch.found.items() if numbers != {1}} <= {
        name for name in watch.found if name.partition(":")[0] in SMALL
    }


def rollouts():
    data = logs(300, behavior_log_probs=np.zeros(2400))
    model = LinearModel(n_rollouts=4, point_rollouts=2000, replicate_rollouts=100)
    return tightrope.evaluate(data, CANDIDATE, estimators=["mb", "wdr"], model=model, n_resamples=100, seed=0)


def weights_by_hand():
    rng = np.random.default_rng(0)
    steps = 5000 * 20
    data = tightrope.TrajectoryDataset(
        offsets=np.arange(5001) * 20,
        rewards=rng.normal(size=steps),
        terminated=np.zeros(5000, dtype=bool),
        horizon=20,
        behavior_log_probs=np.full(steps, -0.7),
        eval_log_probs=-rng.random(steps),
    )
    return tightrope.statistic(data)(tightrope.draw_weights(5000, 500, seed=0, resampling="bayesian"))


@pytest.mark.parametrize("compute", [rollouts, weights_by_hand])
def test_results_have_the_same_bits_for_any_number_of_threads(compute):
    """With two threads a product is cut up elsewhere, and rounds otherwise."""
    found = []
    for count in (1, 2, 4):
        with threadpoolctl.threadpool_limits(count, user_api="blas"):
            result = compute()
        found.append(result.tobytes() if isinstance(result, np.ndarray) else [bound.value for bound in result.bounds])
    assert found[0] == found[1] == found[2]


def test_what_was_set_before_is_set_again():
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        with one_blas_thread:
            with one_blas_thread:
                assert threads() == 1
            assert threads() == 1
        assert threads() == 2
        with pytest.raises(ZeroDivisionError), one_blas_thread:
            1 / 0  # noqa: B018
        assert threads() == 2


def test_callers_in_several_threads_do_not_leave_it_held():
    """One enters first and leaves first, while the other is inside."""
    inside, leave, done = (threading.Event() for _ in range(3))

    def other():
        with one_blas_thread:
            inside.set()
            leave.wait(10)
        done.set()

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        with one_blas_thread:
            threading.Thread(target=other).start()
            assert inside.wait(10)
        assert threads() == 1  # the other still multiplies
        leave.set()
        assert done.wait(10)
        assert threads() == 2
