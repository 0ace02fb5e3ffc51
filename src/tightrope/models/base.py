"""What a model is: settings that, prepared for some logs, can be fitted under any weights of the episodes.

A prepared model answers two questions as functions of weights, so that a refit for a replicate is just another row:
what the candidate is worth in the model (``values``), and what the model says of the logged states and actions
(``control_variates``), which DR and WDR correct.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.base.problem import Problem


@runtime_checkable
class Model(Protocol):
    """A frozen dataclass of settings."""

    @property
    def name(self) -> str:
        """The short name used in tables and on the command line."""
        ...

    def prepare(self, problem: Problem, *, anchor: str) -> PreparedModel:
        """The model for these logs and this candidate; ``anchor`` ("low", "high") is the side of the bound."""
        ...


@runtime_checkable
class PiecewiseModel(Protocol):
    """A model that looks at some episodes at a time: what it keeps in memory does not grow with the steps."""

    @property
    def in_pieces(self) -> bool:
        """Whether it does, for certain."""
        ...


class Evaluated(Protocol):
    """Anything that is fitted again under every row of weights, and then has a value."""

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        ...

    def values(self, weights: Array) -> Array:
        """The candidate's value in the model fitted under each row: (rows, n) to (rows,); NaN where there is no fit."""
        ...


class PreparedModel(Evaluated, Protocol):
    """A model that can be fitted under any weights."""

    def control_variates(self, weights: Array, wanted: BoolArray | None = None) -> tuple[Array, Array]:
        """q̂_t(S_t, A_t) and v̂_t(S_t) of every logged step, (N,) each, in the model fitted under weights (n,).

        Always with v̂_t(s) = E_{a ~ π_e} q̂_t(s, a), which keeps DR consistent however wrong the model is. Where only
        the episodes ``wanted`` (n,) matter, the steps of others may be left NaN.
        """
        ...


@runtime_checkable
class BatchedModel(Protocol):
    """A prepared model that corrects many refits at once, faster than by their control variates one by one."""

    def correction_sums(self, weights: Array, factors: Array) -> Array:
        """What DR and WDR sum under each row, in the model of that row: (rows, n) to (rows, 1 + horizon).

        First Σ_i w_i v̂_0(S_0), then for every time Σ_i w_i f_t δ_t with δ_t = r_t − q̂_t + γ v̂_{t+1}, v̂ = 0 after an
        episode's last step; factors f (N,).
        """
        ...


@runtime_checkable
class TracedModel(Protocol):
    """A prepared model whose q̂ and v̂ of many refits come at once, with the derivatives of whatever is made of them."""

    def step_values(self, weights: Array) -> tuple[Array, Array]:
        """q̂_t(S_t, A_t) and v̂_t(S_t) of every logged step in the model of each row: (rows, n) to (rows, N) each.

        As ``control_variates`` has them; (1, N) where no weights change them.
        """
        ...

    def pull_back(self, weights: Array, q_slopes: Array, state_slopes: Array) -> Array:
        """∂f/∂w_i through the model's values, (rows, n), of any f with these derivatives by them, (rows, N) each."""
        ...


@runtime_checkable
class AssignedModel(Protocol):
    """A prepared model that corrects episodes under many rows of weights at once, each episode under one of them."""

    def assigned_variates(self, weights: Array, rows: IntArray) -> tuple[Array, Array]:
        """``control_variates`` of every step, (N,) each: those of episode i under row rows[i] of weights (rows, n)."""
        ...


@runtime_checkable
class SmoothModel(Protocol):
    """A prepared model that also knows how each episode moves its value, to first order."""

    def influences(self, weights: Array) -> Array:
        """∂value/∂w_i under each row: (rows, n) to (rows, n); rows sum to zero against their weights."""
        ...


@runtime_checkable
class ParametricModel(Protocol):
    """A prepared model that data can be drawn from, for the parametric bootstrap."""

    def simulated_values(self, n_resamples: int, *, seed: int) -> Array:
        """Values of models fitted to data drawn from the model of all logs, (n_resamples,)."""
        ...


@runtime_checkable
class CountedModel(Protocol):
    """A prepared model that counts pairs of states and actions."""

    def weak_masses(self) -> tuple[float, float]:
        """The shares of the candidate's steps on pairs never logged, and on those of one episode (or cluster)."""
        ...


@runtime_checkable
class SimulatedModel(Protocol):
    """A prepared model whose values come from simulation."""

    def simulation_error(self) -> float:
        """The Monte Carlo standard error of the value under weights of one."""
        ...


@runtime_checkable
class ActionValuedModel(Protocol):
    """A prepared model that lists the values of all actions in the logged states, not only of the logged ones."""

    def action_values(self, weights: Array, wanted: Sequence[IntArray]) -> Iterator[tuple[int, slice, Array]]:
        """q̂_t(S_t, a) in the model of each row of weights (rows, n), for every action a and each step of the episodes
        wanted of that row, some of them at a time: (row, which of its episodes, (steps, actions)). What needs a fit is
        0 where nothing has weight.

        The model of a row is made of the episodes with weight alone: what others hold must not change a bit of it.
        """
        ...
