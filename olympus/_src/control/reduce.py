"""Reductions by any associative function, whose scalar program is the primitive's body.

XLA reduces. For derivatives and mapped initial values, a tree of halves combines values with their
tangents in log2(n) vectorised steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.lib import mlir
from ..base.typing import Array, ArrayLike, IrValue
from ..base.util import lazy_imports
from ..core import tags
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, derived
from ..core.primitive import Axis, Builder, Primitive, Tangent, programs_within, spread_tangents
from ..core.trace import typeof
from ..interpreters.batching import batch_flat, to_axis
from ..interpreters.jvp import jvp_program
from ..lax.arithmetic import max_p, min_p
from ..lax.reduce import highest, lowest
from ..lax.shape import broadcast_in_dim, instantiate, reshape, shifted, transpose
from ..lax.slicing import concatenate, slice_in_dim
from ..lowering.builder import MOST_AXES
from ..lowering.linking import operations
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import SymbolicDim, prod

with lazy_imports(__name__):
    from ..lowering import module as _lowering

Dims = tuple[int, ...]


# Scalar programs --------------------------------------------------------------------------------


def elementwise(program: ClosedOlympuspr, args: Sequence[ArrayLike]) -> list[Array]:
    """A program of scalars, applied to the elements of arrays of equal shapes."""
    # vmap of the scalar program over one flat axis gives the operation on whole arrays.
    shape = typeof(args[0]).shape
    size = prod(shape)
    flat = [reshape(x, (size,)) for x in args]
    outs, dims = batch_flat(lambda *xs: eval_closed(program, *xs), Axis(size), flat,
                            [0] * len(flat))
    return [reshape(to_axis(x, d, 0, size), shape) for x, d in zip(outs, dims, strict=True)]


def with_tangents(program: ClosedOlympuspr, n: int) -> tuple[ClosedOlympuspr, tuple[bool, ...]]:
    """The jvp program of a monoid on states of n values, and flags of the values with tangents."""
    # Tangents are instantiated: a state has the same components before and after a step.
    active = tuple([dtypes.is_inexact(a.dtype) for a in program.in_avals[:n]])
    return jvp_program(program, active * 2, active)[0], active


def combined_by(b: Builder, program: ClosedOlympuspr) -> Callable[..., Sequence[IrValue]]:
    """The region of a reduction that combines scalars by a program.

    If the program has an extremum, it ends in a `clamp` that changes nothing, for the reason given
    in `combining`; not for several devices, because XLA's partitioner does not know that form.
    """
    def body(*pq: IrValue) -> Sequence[IrValue]:
        outs = b.call_inline(program, pq)
        if len(outs) != 1 or b.module.platform != "cpu" or not b.module.keeps_calls:
            return outs
        aval = program.out_avals[0]
        if dtypes.scalar_kind(aval.dtype) != "f" or not _extrema(program):
            return outs
        bounds = [b.scalar(bound(aval.dtype), aval.dtype) for bound in (lowest, highest)]
        return [b.op("stablehlo.clamp", [bounds[0], *outs, bounds[1]], None, aval)]

    return body


def is_kernel(b: Builder, program: ClosedOlympuspr) -> bool:
    """Whether XLA makes a kernel of a reduction or scatter that combines scalars by a program.

    XLA:CPU of jaxlib 0.10.2 ends the process at most programs that have other operations than
    scalar ones: loops, sorts, calls, operations on vectors. jaxlib 0.12.0.1 does not.
    """
    if _has_scalars_alone(program) or b.platform != "cpu":
        return True
    if any(isinstance(n, SymbolicDim) for aval in b.avals_in for n in aval.shape):
        raise NotImplementedError(
            f"{b.eqn.primitive.name}: a computation with a loop, a sort, a call or vectors given, "
            "and arrays of symbolic sizes; operations on scalars are required for these; write it "
            "without, or export it for sizes that are numbers.")
    return False


@derived
def _has_scalars_alone(program: ClosedOlympuspr) -> bool:
    """Whether the lowered program has nothing but operations on scalars."""
    context = _lowering.ModuleContext("cpu", "computation")
    context.combining = True
    with _lowering.module_context():
        context.symbols.module = module = mlir.ir.Module.create()
        _lowering.emit_function(context, program, "computation", "private", "")
        return not any(op.name in _NOT_IN_KERNELS or any(
            getattr(x.type, "rank", 0) for x in op.results) for op in operations(module))


_NOT_IN_KERNELS = frozenset(("stablehlo.custom_call", "stablehlo.sort", "stablehlo.while"))


@derived
def _extrema(program: ClosedOlympuspr) -> bool:
    """Whether the program has a maximum or minimum."""
    return any(not pr.primitives.isdisjoint((max_p, min_p))
               for pr in programs_within(program.olympuspr))


# The primitive ----------------------------------------------------------------------------------


class Reduce(Primitive):
    """n operands and n initial values, combined along `dimensions` by the program `olympuspr`.

    The program takes n combined values, then an element of each operand.
    """

    spread = staticmethod(tags.reduce)
    multiple_results = True
    programs = ("olympuspr",)
    transpose = None

    result_avals = Primitive.inferred   # not memoised: the key would keep programs alive

    def infer(self, *avals: ShapedArray, olympuspr: ClosedOlympuspr, dimensions: Dims
              ) -> list[ShapedArray]:
        xs = avals[:len(avals) // 2]
        if any(x.shape != xs[0].shape for x in xs):
            raise TypeError(f"reduce: operands {', '.join(map(str, xs))} given; equal shapes are "
                            "required; broadcast them.")
        shape = tuple([n for d, n in enumerate(xs[0].shape) if d not in dimensions])
        return [make_aval(shape, x.dtype, x.weak_type and init.weak_type)
                for x, init in zip(xs, avals[len(xs):], strict=True)]

    def lower(self, b: Builder, *args: IrValue, olympuspr: ClosedOlympuspr, dimensions: Dims
              ) -> list[IrValue]:
        n, axes, shape = len(args) // 2, [*dimensions], b.avals_in[0].shape
        many = len(shape) > MOST_AXES and b.platform == "cpu" and b.block.sizes is None
        operands = args
        if many:
            merged = [b.merged_axes(x, a.dtype, dimensions)
                      for x, a in zip(args[:n], b.avals_in[:n], strict=True)]
            _, shape, axes = merged[0]
            operands = (*[x for x, _, _ in merged], *args[n:])
        if len(shape) > MOST_AXES and many or not is_kernel(b, olympuspr):
            return b.traced(lambda *xs: tree_reduce(olympuspr, xs[:n], xs[n:], dimensions, n),
                            args, b.avals_in)
        left = tuple([size for d, size in enumerate(shape) if d not in axes])
        op = b.ops("stablehlo.reduce", operands, {"dimensions": b.i64s(axes)}, regions=1,
                   avals=[out.update(shape=left) for out in b.avals_out])
        scalars = [b.type(make_aval((), a.dtype)) for a in b.avals_in[:n]]
        b.region(op, 0, scalars * 2, combined_by(b, olympuspr))
        return [b.op("stablehlo.reshape", [x], None, out) if many else x
                for x, out in zip(op.results, b.avals_out, strict=True)]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *,
            olympuspr: ClosedOlympuspr, dimensions: Dims
            ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        # A state is (values, tangents). A reduction of states by XLA could not be transposed; the
        # tree consists of operations that can.
        n = len(primals) // 2
        program, active = with_tangents(olympuspr, n)
        tangents = [instantiate(t) for t, a in zip(tangents, active * 2, strict=True) if a]
        k = len(tangents) // 2
        outs = tree_reduce(program, [*primals[:n], *tangents[:k]], [*primals[n:], *tangents[k:]],
                           dimensions, n)
        return outs[:n], spread_tangents(map(typeof, outs[:n]), active, outs[n:])

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             olympuspr: ClosedOlympuspr, dimensions: Dims
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        n = len(args) // 2
        xs = [to_axis(x, d, 0, axis.size) for x, d in zip(args[:n], dims[:n], strict=True)]
        if all(d is None for d in dims[n:]):
            outs = self.bind(*xs, *args[n:], olympuspr=olympuspr, dimensions=shifted(dimensions))
        else:       # XLA takes one initial value for all elements
            inits = [to_axis(x, d, 0, axis.size) for x, d in zip(args[n:], dims[n:], strict=True)]
            outs = tree_reduce(olympuspr, xs, inits, shifted(dimensions), n)
        return outs, [0] * n


def tree_reduce(program: ClosedOlympuspr, xs: Sequence[ArrayLike], inits: Sequence[ArrayLike],
                dimensions: Dims, values: int) -> list[Array]:
    """Reduce by combining neighbours elementwise, then the initial values on the left.

    Args:
      program: combines two states of `len(xs)` scalars: `values` values, then their tangents. It
        takes both states' values before both states' tangents.
      xs: the states of all elements, as arrays of equal shapes.
      inits: the initial state, of rank 0 or of leading axes of the result.
      dimensions: the axes to reduce over.
    """
    shape = typeof(xs[0]).shape
    other_axes = tuple([d for d in range(len(shape)) if d not in dimensions])
    rest = tuple([shape[d] for d in other_axes])
    count = prod([shape[d] for d in dimensions])
    state = [reshape(transpose(x, (*dimensions, *other_axes)), (count, *rest)) for x in xs]

    def combine(p: Sequence[Array], q: Sequence[Array]) -> list[Array]:
        k = values
        return elementwise(program, [*p[:k], *q[:k], *p[k:], *q[k:]])

    start = [broadcast_in_dim(i, rest, tuple(range(typeof(i).ndim))) for i in inits]
    while count > 1:
        # Neighbours, to keep the order; an odd element stays last.
        first, second, odd = [[slice_in_dim(x, *cut) for x in state] for cut in (
            (0, count - 1, 2), (1, count, 2), (count - count % 2, count))]
        state = [concatenate([x, y], 0) for x, y in zip(combine(first, second), odd, strict=True)]
        count -= count // 2
    return combine(start, [reshape(x, rest) for x in state]) if count else start


reduce_p = Reduce("reduce")
