"""Which warnings concern a bound: those of the ratios, of the model, of the replicates, of the declared range."""

from __future__ import annotations

import numpy as np

from tightrope.base.clusters import unit
from tightrope.base.warnings import Caution, caution, coded
from tightrope.bounds.base import BootstrapBound
from tightrope.estimators import Estimator
from tightrope.estimators.gain import fitted_model, possible_range
from tightrope.evaluation.advice import spread_warning
from tightrope.evaluation.case import Case, Drawn
from tightrope.evaluation.model_check import REMEMBERS
from tightrope.functional.resampling import scheme
from tightrope.functional.standard_errors import standard_error
from tightrope.functional.strata import levelled_by
from tightrope.models import SimulatedModel, has_tabular

NOISY = 0.2  # of the bootstrap's standard error: simulation noise above this is told


def of_bootstrap(case: Case, estimator: Estimator, method: BootstrapBound, drawn: Drawn) -> list[Caution]:
    """All that concern an approximate bound, but for what the method itself has to say."""
    settings, influence = case.settings, levelled_by(case.clusters, drawn.statistic.influence())
    second_order = method.second_order and scheme(settings.resampling).second_order
    return [
        *case.problem.dataset.notes,
        *_of_ratios(case, estimator),
        *_of_model(case, estimator),
        *_of_states(case, estimator),
        *_of_jumps(case, estimator, method),
        *_of_choice(estimator),
        *_of_simulation(drawn, standard_error(influence)),
        *spread_warning(
            influence,
            drawn.replicates.estimate,
            case.side,
            settings.confidence,
            second_order=second_order,
            drawn=unit(case.overlap.n_clusters),
        ),
    ]


def of_process(case: Case, estimator: Estimator) -> tuple[Caution, ...]:
    """What contradicts the model concerns whoever rests on it alone, exactly or not."""
    if estimator.model is None or not estimator.rests_on_model:
        return ()
    return coded(case.model_check(estimator.model).warnings, "model-contradicted")


def of_undefined(undefined: int, replicates: int) -> list[Caution]:
    """Replicates that had nothing to divide by."""
    if not undefined:
        return []
    text = (
        f"in {undefined} of {replicates} replicates the estimator had no weight to divide by; they count as the worst "
        "value"
    )
    return [caution("undefined", text, undefined=undefined, replicates=replicates)]


def of_range(case: Case, estimator: Estimator, estimate: float, value: float) -> list[Caution]:
    """An estimate or bound beyond what was declared possible says so itself."""
    low, high = possible_range(estimator, case.problem.dataset)
    warnings = []
    if not low <= estimate <= high:
        text = (
            f"{estimator.name.upper()} gives {estimate:.4g}, outside the possible {low:.4g} to {high:.4g}, as "
            "unweighted importance sampling can; the estimate shown is the nearest possible value"
        )
        warnings.append(caution("impossible-estimate", text, estimate=estimate, lowest=low, highest=high))
    if (value <= low) if case.side == "lower" else (value >= high):
        end = "lowest" if case.side == "lower" else "highest"
        warnings.append(caution("vacuous", f"the bound does not improve on the {end} possible value"))
    return warnings


def _of_ratios(case: Case, estimator: Estimator) -> tuple[Caution, ...]:
    """What speaks against the ratios concerns whoever uses them; a model alone fears only what was never logged."""
    if estimator.uses_ratios:
        return (*case.overlap.warnings, *(case.behavior.warnings if case.behavior else ()))
    return coded(case.overlap.warnings, "unlogged-actions")


def _of_model(case: Case, estimator: Estimator) -> tuple[Caution, ...]:
    """What speaks against the model concerns who relies on it alone; who corrects it needs something to correct."""
    if not case.check_models or estimator.model is None:
        return ()
    if estimator.rests_on_model:
        return case.model_check(estimator.model).warnings
    if estimator.fitted_to_all and case.model_check(estimator.model).residue_free:
        text = (
            "fitted to the data it corrects, the model leaves no error at all, so nothing is corrected and its guess "
            'for unseen pairs stands; use fit="cross"'
        )
        return (caution("no-correction", text),)
    return ()


def _of_states(case: Case, estimator: Estimator) -> tuple[Caution, ...]:
    """Whether what follows a state depends on its past, which concerns who forgets that past and corrects nothing."""
    if not (case.check_models and estimator.trusts_states and has_tabular(case.problem)):
        return ()
    memory = case.model_check("tabular" if estimator.model is None else estimator.model).memory
    if memory is None or memory >= REMEMBERS:
        return ()
    text = (
        f"what follows a logged state depends on what came before it (p = {memory:.1g}), and "
        f"{estimator.name.upper()} forgets what came before: its value is of another process"
    )
    return (caution("model-contradicted", text, p=memory),)


def _of_jumps(case: Case, estimator: Estimator, method: BootstrapBound) -> tuple[Caution, ...]:
    """Whether corrections come as rare jumps, as where moves are deterministic and a cross-fitted model is exact but
    for what it has not seen: standard errors then say little, and what builds on them errs more often.
    """
    if not (case.check_models and has_tabular(case.problem) and method.expects_smooth):
        return ()
    if estimator.model is None or not estimator.corrects_model or not case.model_check(estimator.model).residue_free:
        return ()
    text = (
        "nothing happens by chance in these logs, so corrections of the model are rare jumps; studentized and bca then "
        "err up to twice as often as percentile"
    )
    return (caution("sharp", text),)


def _of_choice(estimator: Estimator) -> tuple[Caution, ...]:
    """What is chosen by the logs it is bounded with was not fixed beforehand."""
    if not estimator.chooses:
        return ()
    text = (
        f"{estimator.name.upper()} chooses among estimators by these very logs. Every replicate chooses anew, which "
        "shows how the choice varies, not what bias it accepts: error rates lie above the nominal one. A bound of the "
        "chosen estimator, as if it had been fixed beforehand, would be void"
    )
    return (caution("chosen", text),)


def _of_simulation(drawn: Drawn, error: float) -> list[Caution]:
    """Noise of roll-outs that is not small against what resampling varies moves the bound unseen."""
    model = fitted_model(drawn.statistic)
    if not isinstance(model, SimulatedModel):
        return []
    values = drawn.replicates.values
    defined = values[np.isfinite(values)]
    spread = float(defined.std(ddof=1)) if len(defined) > 1 else error
    noise = model.simulation_error()
    if not noise > NOISY * spread:
        return []
    text = (
        f"the roll-outs have a standard error of {noise:.3g} where the bootstrap has {spread:.3g}, which does not "
        "allow for theirs; give the model more point_rollouts and replicate_rollouts"
    )
    return [caution("simulation-noise", text, noise=noise, spread=spread)]
