"""Eight replicates side by side: a row of LANES float64 as one vector value inside compiled kernels.

numba leaves loops over a few lanes scalar: those of constant length are unrolled before LLVM's loop vectoriser sees
them, and its other vectoriser is off. So rows are vectors from the start: ``load``, ``store``, ``splat``, ``is_zero``
and + − × ÷ become one instruction each where the machine has AVX-512, a few where it has less.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from tightrope.models.tabular.blocks import LANES

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_FLAGS = ("contract", "nsz")  # multiply-adds may be fused


class RowType(types.Type):  # type: ignore[misc]
    """A row, as numba sees it."""

    def __init__(self) -> None:
        super().__init__(name=f"Row({LANES})")


_ROW = RowType()


@register_model(RowType)
class _RowModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Where row ``index`` of an array (count, LANES) begins."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(builder.bitcast(data, _VECTOR.as_pointer()), [index])


def _check(array: Any) -> None:
    if array != types.Array(types.float64, 2, "C"):
        raise TypingError(f"rows live in contiguous float64 arrays (count, LANES), not in {array}")


@intrinsic
def load(_typing: Any, array: Any, index: Any) -> Any:
    """Row ``index`` of an array (count, LANES)."""
    _check(array)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_place(context, builder, signature.args[0], args[0], args[1]), align=8)

    return _ROW(array, types.int64), generate


@intrinsic
def store(_typing: Any, array: Any, index: Any, row: Any) -> Any:
    """Write a row to an array (count, LANES)."""
    _check(array)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _place(context, builder, signature.args[0], args[0], args[1]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, _ROW), generate


def _spread(builder: Any, number: Any) -> Any:
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    index = ir.IntType(32)
    first = builder.insert_element(nothing, number, ir.Constant(index, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(index, LANES), [0] * LANES))


@intrinsic
def splat(_typing: Any, number: Any) -> Any:
    """The same number in every lane."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return _spread(builder, args[0])

    return _ROW(types.float64), generate


@intrinsic
def is_zero(_typing: Any, row: Any) -> Any:
    """1 in the lanes that are 0, else 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        return builder.uitofp(builder.fcmp_ordered("==", args[0], zero), _VECTOR)

    return _ROW(_ROW), generate


def _operation(symbol: Callable[[Any, Any], Any], instruction: str) -> None:
    """Teach numba one operation between two rows, or a row and a number."""

    @type_callable(symbol)
    def type_operation(_context: Any) -> Any:
        def typer(left: Any, right: Any) -> Any:
            fits = all(isinstance(side, RowType | types.Float) for side in (left, right))
            return _ROW if fits and isinstance(left, RowType) | isinstance(right, RowType) else None

        return typer

    def generate(_context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows = [
            arg if isinstance(kind, RowType) else _spread(builder, arg)
            for kind, arg in zip(signature.args, args, strict=True)
        ]
        return getattr(builder, instruction)(*rows, flags=_FLAGS)

    for kinds in ((RowType, RowType), (RowType, types.Float), (types.Float, RowType)):
        lower_builtin(symbol, *kinds)(generate)


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _operation(_symbol, _instruction)
