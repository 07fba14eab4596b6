"""Kernels in place of rules: an equation on one CPU is lowered by a faster formula.

The formulas are in `lax/kernels/`. Types and params choose one, in programs for one CPU and in the
bodies of `shard_map`. Other programs over several CPUs have the plain form, because XLA decides
after lowering which axes it cuts; and so have other platforms, symbolic sizes, and exports.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from ..base.typing import IrValue, Params
from ..base.util import Memo
from ..core.kernels import Kernel, Taken
from ..core.primitive import Builder, Primitive

# The kernels that apply to the types and params of an equation.
_applying: Memo = Memo(4096)


def with_kernels(prim: Primitive) -> Callable[..., IrValue | Sequence[IrValue]]:
    """The rule of a primitive that takes a kernel where one applies."""
    plain, least = prim.lower, prim.kernels_from

    def lower(b: Builder, *xs: IrValue, **params: Hashable) -> IrValue | Sequence[IrValue]:
        avals = b.avals_in
        # First by size, so that small programs do not import the formulas.
        if b.block.sizes is None and max(avals[0].size, avals[-1].size) >= least:
            key = (prim, *avals, *b.avals_out, *params, *params.values())
            applying = _applying.get(key)
            if applying is None:
                applying = _applying[key] = _which_apply(prim, b, xs, params)
            for kernel in applying:
                if kernel.suits is None or kernel.suits(b, *xs, **params):
                    taken = b.module.taken
                    taken.append(Taken(kernel, b.eqn, avals, params, b.source))
                    count = len(taken)
                    found = kernel.emit(b, *xs, **params)
                    del taken[count:]       # kernels inside of the formula are not reported
                    return found
        return plain(b, *xs, **params)

    return lower


def _which_apply(prim: Primitive, b: Builder, xs: Sequence[IrValue], params: Params
                 ) -> list[Kernel]:
    return [k for k in prim.kernels.KERNELS[prim] if k.applies(b, *xs, **params)]
