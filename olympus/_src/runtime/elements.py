"""The emitter and the width of vectors by which XLA:CPU compiles the loops of a program best.

XLA:CPU has two emitters of loops. The newer one has two faults. A program of one operation, such as
an eager `x + y`, takes twice the time of the elemental one (`rsqrt` nine times). And it
shares a loop among threads in equal pieces, and tests for each element whether it is still within
the array: where the pieces do not divide the first axis and the others are short, LLVM does not
vectorize costly loops. So softplus of 1,000,001 numbers takes 17 ms, of 1,000,000 two, and of
100,001 x 3 seven in place of 0.4. The elemental emitter gives each thread its bounds. It also
compiles in half the time, 11 ms for `x + y`, which is all that counts for a few elements.

For the types below both compute the same bits, but for some last places. For float16 and complex
numbers the newer one rounds less often, and some functions of float64 take a third of the time by
it (`_NEWER`): it keeps these programs, all programs with other operations, and those whose
arguments are donated: LLVM does not vectorize the elemental one's loops where results take the
place of operands (exp of 10⁶ takes 2 ms in place of 0.35). Other functions of float64 take a
sixth to two thirds of the time by the elemental one, in vectors of odd size (`cosh`, `clip`,
`x + y * z`). jaxlib 0.12 has the newer emitter only.
`tools/kernel_table.py` measures both, in the cases `single` and `unequal`.

XLA makes vectors of 256 bits of costly functions of float32, where newer processors have 512: by
these, exp, tanh, gelu, expm1, and functions of float64 take half the time (exp of 10⁶: 226 | 121
us). Elements stay, but for some last places of `rsqrt` in vectors of odd size. Programs of
elementwise operations alone get them, since sums would be made in another order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..base import lib
from ..base.lib.executables import CompilerOptions
from ..core.ir import ClosedOlympuspr, Literal, Olympuspr, OlympusprEqn, derived
from ..lax.arithmetic import abs_p, neg_p, square_p
from ..lax.barriers import stop_gradient_p
from ..lax.convert import bitcast_convert_type_p, convert_element_type_p
from ..lax.families import Elementwise
from ..lowering.context import ModuleContext
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.shape import definitely_equal

LEAST = 1024
_LEAST_SHARED = 4096    # smaller arrays are not shared among threads
_MOST_BESIDE = 8        # elements at an index of the first axis
_COSTLY = {"costly", "long"}
_MOVES = {"moves", "spreads"}
_BY_ELEMENTS = _COSTLY | _MOVES | {"fused"}
# Primitives that are lowered to one operation for real operands, though not for all dtypes.
_OF_ONE = {abs_p, convert_element_type_p, neg_p, square_p}
_OTHERS = {bitcast_convert_type_p, stop_gradient_p}
_FLOAT64 = dtypes.as_dtype("float64")
# Functions of float64 that it computes faster.
_NEWER = {"acos", "acosh", "asin", "asinh", "atanh", "cbrt", "gammaln", "log10", "log1p", "log2"}
_HALVES = _, _BFLOAT16 = dtypes.as_dtype("float16"), dtypes.as_dtype("bfloat16")
_DTYPES = frozenset(map(dtypes.as_dtype, (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bfloat16",
    "float32", "float64")))


def chosen(context: ModuleContext, options: CompilerOptions | None
           ) -> tuple[bool, CompilerOptions | None]:
    """Whether the elemental emitter compiles a program, and its options."""
    closed = context.alone if context.takes_kernels else None
    if closed is None:
        return False, options
    if is_elementwise(closed) and lib.has_long_vectors() and (
            _WIDTH not in os.environ.get("XLA_FLAGS", "")):
        options = {_WIDTH: 512, **(options or {})}
    return not context.donated and is_elemental(closed), options


_WIDTH = "xla_cpu_prefer_vector_width"


@derived
def is_elementwise(closed: ClosedOlympuspr) -> bool:
    """Whether a program has elementwise operations only, a costly one of many elements among them,
    and no floats of 16 bits, which gain nothing by longer vectors.
    """
    costly = False
    for eqn in _equations(closed.olympuspr):
        prim = eqn.primitive
        if not (prim.elementwise or prim.fusion in _BY_ELEMENTS or prim in _OTHERS):
            return False
        aval = eqn.outvars[0].aval
        if type(aval) is not ShapedArray or aval.dtype in _HALVES:
            return False
        costly |= (prim.fusion in _COSTLY or prim.pace > 1) and aval.size >= _LEAST_SHARED
    return costly


@derived
def is_elemental(closed: ClosedOlympuspr) -> bool:
    """Whether the elemental emitter is the better one for a program of one CPU device."""
    eqns = []
    for eqn in _equations(closed.olympuspr):
        if not _is_compiled_alike(eqn):
            return False
        eqns.append(eqn)
    if len(eqns) == 1 and _is_one_operation(eqns[0]) or eqns and all(map(_is_brief, eqns)):
        return True
    # The newer emitter adds cheap terms of a vector as fast, and counts faster.
    adds_vectors = any(eqn.primitive.fusion == "reduces" and eqn.invars[0].aval.ndim == 1
                       for eqn in eqns)
    kinds = _COSTLY if adds_vectors else _COSTLY | {"fused"}
    return any(eqn.primitive.fusion in kinds and _parts_are_unequal(eqn.outvars[0].aval)
               for eqn in eqns)


def _equations(pr: Olympuspr) -> Iterator[OlympusprEqn]:
    """The equations of a program; a call is replaced by the equations of its program."""
    for eqn in pr.eqns:
        if eqn.primitive.fusion == "called":
            for _, body, _ in eqn.primitive.applied(eqn.params, eqn.invars):
                yield from _equations(body.olympuspr)
        else:
            yield eqn


def _is_compiled_alike(eqn: OlympusprEqn) -> bool:
    """Whether the elemental emitter computes an equation as well as the newer one."""
    prim, avals = eqn.primitive, [v.aval for v in (*eqn.invars, *eqn.outvars)]
    if not all(type(a) is ShapedArray and (a.dtype in _DTYPES or dtypes.is_key(a.dtype))
               for a in avals):
        return False
    if prim.name in _NEWER and avals[-1].dtype == _FLOAT64:
        return False
    if prim is convert_element_type_p and dtypes.is_integer(avals[-1].dtype):
        # LLVM vectorizes fewer of these in the elemental one's loops.
        return avals[-1].dtype.itemsize < 8 and avals[0].dtype != _BFLOAT16
    if prim.fusion == "reduces":    # the newer emitter sums rows faster
        return avals[0].size < _LEAST_SHARED or _parts_are_unequal(avals[0])
    if prim.elementwise or prim.fusion in _BY_ELEMENTS or prim in _OTHERS:
        return prim.emitters_agree or dtypes.scalar_kind(avals[-1].dtype) != "f"
    small = all(a.size < LEAST for a in avals)      # such as keys from a seed
    return small and not eqn.effects and not prim.applied(eqn.params, eqn.invars)


def _is_one_operation(eqn: OlympusprEqn) -> bool:
    """Whether an equation is lowered to one operation of StableHLO, on all its operands."""
    prim = eqn.primitive
    is_one = prim in _OF_ONE or (
        isinstance(prim, Elementwise) and prim.single and prim.op.startswith("stablehlo."))
    return (is_one and eqn.outvars[0].aval.size >= LEAST
            and not any(type(x) is Literal for x in eqn.invars))


def _is_brief(eqn: OlympusprEqn) -> bool:
    """Whether an equation computes few elements, each by a cheap operation, or moves them."""
    prim = eqn.primitive
    is_cheap = prim.fusion in _MOVES or prim.fusion == "fused" and prim.pace <= 1
    return is_cheap and all(v.aval.size < LEAST for v in (*eqn.invars, *eqn.outvars))


def _parts_are_unequal(aval: ShapedArray) -> bool:
    """Whether threads that share an array get different numbers of elements."""
    size, first = aval.size, next((n for n in aval.shape if not definitely_equal(n, 1)), 1)
    beside, left_over = size // max(first, 1), first % lib.cores()
    return size >= _LEAST_SHARED and beside <= _MOST_BESIDE and left_over != 0
