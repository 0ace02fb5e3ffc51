"""How much the logs say about the candidate: overlap, tails, support."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.base.checks import lent, numbers
from tightrope.base.clusters import Clusters, n_clusters, n_independent, unit
from tightrope.base.dataset import Array
from tightrope.base.errors import DataError, PolicyError
from tightrope.base.folder import distinct, parts, summed, wide_parts
from tightrope.base.policy import DiscretePolicy, GaussianPolicy
from tightrope.base.problem import Problem
from tightrope.base.ratios import Ratios
from tightrope.base.records import Overlap
from tightrope.base.threads import passed
from tightrope.base.warnings import Caution, caution
from tightrope.evaluation.ratio_tail import pareto_k, sorted_logs, survival
from tightrope.functional.strata import levelled_by

FEW_EFFECTIVE = 10.0  # below this many effective episodes, or clusters, a bootstrap resamples almost the same few
HEAVY_SHARE = 0.5
HEAVY_TAIL = 0.7  # Vehtari et al.: above it, averages of the ratios are unreliable at any practical n
LARGEST_LOG = 700.0  # a ratio beyond this does not fit a float64
UNLOGGED = 0.01  # of the candidate's choices in logged states
MOST_ROWS = 10_000  # logged states in which a policy is checked for being deterministic
MOST_NUMBERS = 1 << 22  # probabilities computed at once
MOST_PAIRS = 200_000_000  # pairs of states and actions for which a flag "was logged" is kept
OFF_MEAN = 5.0  # standard errors by which the mean ratio may lie below 1
FALSE_ALARM = 1e-4  # how often at most true propensities are called too low
BETS = np.array([0.001, 0.004, 0.016, 0.06, 0.25, 0.5, 0.8, 0.99])


def overlap(problem: Problem) -> Overlap:
    """Effective sample size and heaviest share per step, tail index, support, and warnings.

    Where there are no ratios at all (no behaviour probabilities, no common support) the record says so: a model may
    still answer. It is measured once, however many bounds ask.
    """
    return problem.once("overlap", lambda: _measured(problem))


def _measured(problem: Problem) -> Overlap:
    data = problem.dataset
    try:
        ratios = problem.ratios
    except DataError as error:
        return _no_overlap(problem, error)
    sums, squares, heaviest, final = _sums(ratios, None if data.clusters is None else problem.clusters)
    drawn = final if problem.clusters is None else problem.clusters.log_means(final)
    rising = sorted_logs(drawn, data.scratch)
    mean, mean_error = _mean_ratio(drawn, problem.clusters)
    result = Overlap(
        effective_sample_size=_floats(sums**2 / squares),
        largest_share=_floats(heaviest / sums),
        zero_share=summed(final, np.isneginf) / len(final),
        pareto_k=pareto_k(rising),
        mean_ratio=mean,
        mean_ratio_error=mean_error,
        mean_ratio_evidence=evidence(wagered(drawn)),
        unlogged_mass=unlogged_mass(problem),
        infinite_variance=infinite_variance(problem),
        deterministic=tuple(_deterministic(problem)),
        tail=survival(rising),
        n_clusters=n_clusters(data),
    )
    return replace(result, warnings=tuple(_warnings(result, n_independent(data))))


def _sums(ratios: Ratios, clusters: Clusters | None) -> tuple[Array, Array, Array, Array]:
    """Σρ, Σρ² and the largest ρ at each step, by the largest of any episode, and the last log ρ of each.

    ρ is that of an episode or, with clusters, the mean of one: what resampling draws.
    """
    data, largest = ratios.dataset, ratios.log_max
    sums, squares = np.zeros(data.horizon), np.zeros(data.horizon)
    final: Array = data.scratch.empty(data.n_trajectories)
    table, chunks = data.scratch.full((0 if clusters is None else clusters.n, data.horizon), 0.0), list(data.chunks())

    def part(chunk: tuple[int, int]) -> list[Array]:
        logs = ratios.log(*chunk)
        last, relative = logs[:, -1].copy(), np.exp(logs - largest)
        if clusters is not None:
            return [last, relative]
        return [last, relative.sum(axis=0), np.square(relative).sum(axis=0)]

    for chunk, (last, *added) in zip(chunks, passed(part, chunks), strict=True):
        final[slice(*chunk)] = last
        if clusters is None:
            sums += added[0]
            squares += added[1]
        else:
            whose = clusters.code[slice(*chunk)]
            np.add.at(table, whose, added[0] / clusters.sizes[whose, None])
    if clusters is None:
        return sums, squares, np.ones(data.horizon), final
    squares = sum((np.square(table[rows]).sum(axis=0) for rows in wide_parts(len(table))), squares)
    return table.sum(axis=0), squares, table.max(axis=0), final


def _no_overlap(problem: Problem, error: DataError) -> Overlap:
    if problem.policy is None:  # neither ratios nor a policy to put into a model: nothing can answer
        raise error
    horizon, none = problem.dataset.horizon, float("nan")
    mass = unlogged_mass(problem)
    warnings = (caution("no-overlap", str(error)),)
    certain = tuple(_deterministic(problem))
    return Overlap(
        (0.0,) * horizon, (none,) * horizon, 1.0, None, none, none, 0.0, mass, False, certain, warnings,
        n_clusters=n_clusters(problem.dataset),
    )  # fmt: skip


def _deterministic(problem: Problem) -> list[str]:
    """Which of the two policies is deterministic in the logged states, and what follows from it."""
    data, lines = problem.dataset, []
    first = _probs(problem, slice(0, 1))
    if first is not None:
        some = _probs(problem, slice(0, min(MOST_ROWS, max(1, MOST_NUMBERS // max(1, first.size)))))
        if some is not None and (some.max(axis=1) == 1.0).all():
            lines.append(
                "the candidate is deterministic: importance sampling can use only the episodes that agree with it at "
                "every step, and with continuous actions none"
            )
    if data.behavior_log_probs is not None and not data.behavior_log_probs.any():
        lines.append(
            "the behaviour policy is deterministic: the logs never tried what else the candidate does, and only a "
            "model can say what would follow"
        )
    return lines


def _warnings(record: Overlap, n: int) -> list[Caution]:
    effective, share = record.effective_sample_size[-1], record.largest_share[-1]
    warnings, drawn = [], unit(record.n_clusters)
    if effective < FEW_EFFECTIVE:
        text = (
            f"{n} logged {drawn} carry only as much information as {effective:.1f} of the candidate's; a bootstrap "
            "cannot see what is missing"
        )
        warnings.append(caution("low-overlap", text, **{drawn: n}, worth=effective))
    if share > HEAVY_SHARE and n > 1:
        text = f"a single {drawn[:-1]} carries {share:.0%} of the weight"
        warnings.append(caution("one-episode", text, share=share))
    if record.pareto_k is not None and record.pareto_k > HEAVY_TAIL:
        whose = "" if record.n_clusters is None else " of clusters"
        text = f"the importance ratios{whose} have tail index {record.pareto_k:.2f} > {HEAVY_TAIL}"
        warnings.append(caution("heavy-tail", text, tail_index=record.pareto_k))
    if record.infinite_variance:
        text = (
            "the candidate's variance is at least twice the behaviour policy's in some direction, so the ratios have "
            "no finite variance and no bootstrap holds"
        )
        warnings.append(caution("infinite-variance", text))
    too_high = record.mean_ratio_evidence > -np.log(FALSE_ALARM)
    if too_high or 1 - record.mean_ratio > OFF_MEAN * record.mean_ratio_error + 1e-9:
        average = f"{record.mean_ratio:.3g} ± {record.mean_ratio_error:.2g}"
        average = average if np.isfinite(record.mean_ratio) else "more than a float can hold"
        text = (
            f"the importance ratios average {average} instead of 1: the behaviour probabilities are wrong, or the "
            "episodes that matter are missing"
        )
        numbers = {"mean_ratio": record.mean_ratio, "error": record.mean_ratio_error}
        warnings.append(caution("mean-ratio", text, **numbers))
    if record.unlogged_mass is not None and record.unlogged_mass > UNLOGGED:
        text = f"{record.unlogged_mass:.1%} of the candidate's choices in logged states were never logged"
        warnings.append(caution("unlogged-actions", text, share=record.unlogged_mass))
    return warnings


def _floats(values: Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def _mean_ratio(final: Array, clusters: Clusters | None = None) -> tuple[float, float]:
    """The mean of exp(final) and its standard error, without overflow (infinite when it does not fit)."""
    top, n = float(final.max()), len(final)
    if top > LARGEST_LOG:
        return np.inf, np.inf
    scale = float(np.exp(top))
    if clusters is not None:
        relative = np.exp(final - top)
        mean, spread = float(relative.mean()), float(levelled_by(clusters, relative).std(ddof=1)) if n > 1 else np.inf
        return scale * mean, scale * float(spread / np.sqrt(n))
    mean = summed(final, lambda some: np.exp(some - top)) / n
    squares = summed(final, lambda some: np.square(np.exp(some - top) - mean))
    return scale * mean, scale * float(np.sqrt(squares / (n - 1)) / np.sqrt(n)) if n > 1 else np.inf


def wagered(final: Array) -> Array:
    """The log-wealth log Π_i (1 + c_j (ρ_i − 1)) of each bet c_j that the ratios ρ = exp(final) average above 1."""
    stay, stake = np.log1p(-BETS), np.log(BETS)
    wealth = np.zeros(len(BETS))
    for part in parts(len(final)):
        wealth += [float(np.logaddexp(a, b + final[part]).sum()) for a, b in zip(stay, stake, strict=True)]
    return wealth


def evidence(wealth: Array) -> float:
    """The log of an e-value against the claim that the ratios have mean 1 at most, as true ones do.

    The mean of Π_i (1 + c_j (ρ_i − 1)) over all bets is 1 at most under the claim, so it reaches 1/α with probability
    α at most (Markov's inequality), and so it does at any time while episodes arrive (Ville's). It rises with every
    ratio: whatever is noticed at some size of ratios is noticed at any greater one. A standard error has none of these
    virtues.
    """
    return float(np.logaddexp.reduce(wealth) - np.log(len(BETS)))


def unlogged_mass(problem: Problem) -> float | None:
    """The candidate's average probability, in logged states, of actions never logged there; None when not countable."""
    problem = problem.coded
    data, policy = problem.dataset, problem.policy
    states, actions = data.states, data.actions
    if not isinstance(policy, DiscretePolicy) or states is None or actions is None:
        return None
    if states.ndim != 1 or states.dtype.kind not in "iu" or actions.dtype.kind not in "iub":
        return None
    known = distinct(states)
    first = _probs(problem, slice(0, 1))
    width = 0 if first is None else first.size
    if not width or width * len(known) > MOST_PAIRS:
        return None
    seen = np.zeros((len(known), width), dtype=bool)
    for some in parts(data.n_steps):
        listed = (actions[some] >= 0) & (actions[some] < width)  # of others the candidate's probability is 0
        seen[np.searchsorted(known, states[some][listed]), actions[some][listed].astype(np.int64)] = True
    total = 0.0
    for some in parts(data.n_steps, max(1, MOST_NUMBERS // width)):
        probs = _probs(problem, some)
        if probs is None:
            return None
        total += float(probs[~seen[np.searchsorted(known, states[some])]].sum())
    return total / data.n_steps


def _probs(problem: Problem, steps: slice) -> Array | None:
    """The candidate's probabilities of all actions in some logged states, (N, k); None where it cannot list them."""
    data, policy = problem.dataset, problem.policy
    if not isinstance(policy, DiscretePolicy) or data.states is None:
        return None
    try:
        return numbers("probs", policy.probs(lent(data.states[steps]), lent(data.times_at(steps))))
    except (PolicyError, MemoryError):  # a mixture with a part that cannot; more actions than fit into memory
        return None


def infinite_variance(problem: Problem) -> bool:
    """Whether E[ρ²] is surely infinite: both policies are known to be Gaussian and 2Σ_b − Σ_e is not positive definite.

    Logged densities alone prove nothing of the kind: those of a uniform policy can be as high, and its ratios bounded.
    """
    policy, behavior = problem.policy, problem.dataset.behavior
    if problem.behavior is not None or not (
        isinstance(policy, GaussianPolicy) and isinstance(behavior, GaussianPolicy)
    ):
        return False
    if behavior.covariance.shape != policy.covariance.shape:
        return False
    room = float(np.linalg.eigvalsh(2 * behavior.covariance - policy.covariance).min())
    return room <= 1e-12 * float(np.abs(policy.covariance).max())  # rounding must not hide equality
