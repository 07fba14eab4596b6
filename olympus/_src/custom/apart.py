"""Outputs of functions with rules vary along the mesh axes along which their arguments vary."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..base.typing import Array
from ..core.context import ctx
from ..core.ir import OlympusprEqn
from ..core.tags import pvary
from ..core.trace import typeof
from ..types.avals import Aval, ShapedArray


class Apart:
    """The mesh axes along which outputs vary; `Batched` is the same for mapped axes.

    They are the arguments' axes, except for axes along which an operation (a sum over devices) that
    is recorded from now on makes a value equal. Otherwise the cotangent of an output that depends
    on no argument would be summed over devices before the rule gets it.
    """

    __slots__ = ("vma", "eqns", "start")

    def __init__(self, args: Sequence[object]) -> None:
        self.vma = frozenset().union(*[_varies(typeof(x)) for x in args])
        trace: Any = ctx.trace
        while trace.parent is not None:
            trace = trace.parent
        self.eqns: list[OlympusprEqn] = getattr(trace, "eqns", [])
        self.start = len(self.eqns)

    def varying(self, outs: list[Array]) -> list[Array]:
        """The outputs, cast to vary along these axes."""
        if not self.vma or all(self.vma <= _varies(typeof(x)) for x in outs):
            return outs
        reduced_axes: set[Any] = set()
        for eqn in self.eqns[self.start:]:
            operand_axes = frozenset().union(*[_varies(v.aval) for v in eqn.invars])
            reduced_axes |= operand_axes.difference(*[_varies(v.aval) for v in eqn.outvars])
        return [pvary(x, self.vma - reduced_axes) for x in outs]


def _varies(aval: Aval) -> frozenset[Hashable]:
    """The axes along which a value of this type varies."""
    return aval.vma if type(aval) is ShapedArray else frozenset()
