"""Whether XLA:CPU had better compile the loops of a program by its elemental emitter.

XLA:CPU has two emitters of loops. The newer one has two faults. Where a program is one operation,
as `x + y` is eagerly, it takes twice the time of the elemental one (of `rsqrt` nine times). And it
shares a loop among threads in equal pieces, and asks for each element whether it is still within
the array: where the pieces do not divide the first axis and the others are short, LLVM makes no
vectors of costly loops. So softplus of 1,000,001 numbers takes 17 ms, of 1,000,000 two, and of
100,001 x 3 seven in place of 0.4. The elemental emitter gives each thread its bounds.

Both compute the same bits, but for some last places, of the types below: of float16 and complex
numbers the newer one rounds less often, and some functions of float64 are faster by it. It keeps
all other programs. jaxlib 0.12 has the newer emitter only. `tools/kernel_table.py` measures both,
in the cases `single` and `unequal`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..base import lib
from ..core.ir import ClosedOlympuspr, Literal, Olympuspr, OlympusprEqn, derived
from ..types import dtypes
from ..types.shape import definitely_equal, prod

LEAST = 1024
_LEAST_SHARED = 4096    # smaller arrays are not shared among threads
_MOST_BESIDE = 8        # elements at an index of the first axis
_BY_ELEMENTS = {"fused", "long", "costly", "moves", "spreads"}
_DTYPES = frozenset(map(dtypes.as_dtype, (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bfloat16",
    "float32")))


@derived
def is_elemental(closed: ClosedOlympuspr) -> bool:
    """Whether the elemental emitter is the better one for a program of one CPU device."""
    if not any(getattr(aval, "size", 0) >= LEAST for aval in closed.out_avals):
        return False
    eqns = []
    for eqn in _equations(closed.olympuspr):
        prim = eqn.primitive
        if not (prim.elementwise or prim.fusion in _BY_ELEMENTS) or not prim.emitters_agree or any(
                getattr(v.aval, "dtype", None) not in _DTYPES for v in (*eqn.invars, *eqn.outvars)):
            return False
        eqns.append(eqn)
    return len(eqns) == 1 and _is_one_operation(eqns[0]) or any(map(_has_unequal_parts, eqns))


def _equations(pr: Olympuspr) -> Iterator[OlympusprEqn]:
    """The equations of a program, in place of calls the equations of what they call."""
    for eqn in pr.eqns:
        if eqn.primitive.fusion == "called":
            for _, body, _ in eqn.primitive.applied(eqn.params, eqn.invars):
                yield from _equations(body.olympuspr)
        else:
            yield eqn


def _is_one_operation(eqn: OlympusprEqn) -> bool:
    return eqn.primitive.elementwise and eqn.primitive.single and not any(
        type(x) is Literal for x in eqn.invars)


def _has_unequal_parts(eqn: OlympusprEqn) -> bool:
    """Whether threads that share an elementwise result get different numbers of elements."""
    shape = eqn.outvars[0].aval.shape
    first = next((n for n in shape if not definitely_equal(n, 1)), 1)
    beside, left_over = prod(shape) // max(first, 1), first % lib.cores()
    return (eqn.primitive.elementwise and prod(shape) >= _LEAST_SHARED
            and beside <= _MOST_BESIDE and left_over != 0)

