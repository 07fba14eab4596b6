"""stack and unstack: arrays of one shape along a new axis, and back."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.typing import Array, ArrayLike, IrValue
from ..core import tags
from ..core.primitive import Axis, Builder, Cotangent, Linear, Primitive, Tangent, linear_jvp
from ..core.trace import typeof
from ..types.avals import ShapedArray, make_aval
from ..types.shape import canonical_axis, sequence, static_int
from .shape import align, expand_dims, inserted, instantiate, shifted
from .slicing import concatenate, index_in_dim


class Stack(Primitive):
    """Operands side by side along a new axis."""

    additive = True
    spread = staticmethod(tags.stack)
    makes_nan = False
    fusion = "moves"
    pace = 0.3

    def infer(self, *avals: ShapedArray, axis: int) -> ShapedArray:
        first = avals[0]
        if any(a.shape != first.shape or a.dtype != first.dtype for a in avals):
            raise TypeError(f"stack: operands {', '.join(map(str, avals))} given; one shape and "
                            "one dtype are required; broadcast or convert them.")
        return make_aval(inserted(first.shape, axis, len(avals)), first.dtype,
                         all(a.weak_type for a in avals))

    def lower(self, b: Builder, *xs: IrValue, axis: int) -> IrValue:
        return b.inline(lambda *ys: concatenate([expand_dims(y, (axis,)) for y in ys], axis), *xs)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, axis: int
            ) -> tuple[Array, Tangent]:
        return (self.bind(*primals, axis=axis),
                self.bind(*map(instantiate, tangents), axis=axis))

    def transpose(self, ct: Array, *xs: Linear, axis: int) -> list[Cotangent]:
        return [y if type(x) is Linear else None
                for x, y in zip(xs, unstack_p.bind(ct, axis=axis), strict=True)]

    def vmap(self, axis_: Axis, args: Sequence[Array], dims: Sequence[int], *, axis: int
             ) -> tuple[Array, int | None]:
        xs, _ = align(axis_, args, dims, 0)
        return self.bind(*xs, axis=axis + 1), 0

    def by_groups(self, groups: Sequence[Sequence[Array]], *, axis: int) -> Array:
        return concatenate([self.bind(*xs, axis=axis) for xs in groups], axis)


class Unstack(Primitive):
    """The slices along an axis, each without that axis."""

    additive = True
    spread = staticmethod(tags.unstack)
    multiple_results = True
    makes_nan = False
    fusion = "splits"
    along = "axis"
    pace = 0.3

    def infer(self, x: ShapedArray, *, axis: int) -> list[ShapedArray]:
        shape = (*x.shape[:axis], *x.shape[axis + 1:])
        count = static_int(x.shape[axis], "unstack", "size")
        return [make_aval(shape, x.dtype, x.weak_type)] * count

    def lower(self, b: Builder, x: IrValue, *, axis: int) -> list[IrValue]:
        return b.inline(lambda y: [index_in_dim(y, i, axis, False)
                                   for i in range(len(b.avals_out))], x)

    jvp = linear_jvp

    def transpose(self, cts: Sequence[Tangent], x: Linear, *, axis: int) -> list[Array | None]:
        return [stack_p.bind(*map(instantiate, cts), axis=axis)]

    def vmap(self, axis_: Axis, args: Sequence[Array], dims: Sequence[int], *, axis: int
             ) -> tuple[list[Array], list[int | None]]:
        dim = dims[0]
        moved, = shifted((axis,), dim)
        outs = self.bind(args[0], axis=moved)
        return outs, [dim - (dim > moved)] * len(outs)


stack_p = Stack("stack")
unstack_p = Unstack("unstack")


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Join arrays of one shape and dtype along a new axis.

    Args:
      operands: at least one array.
      axis: the new axis of the result.
    Returns: An array of one axis more.

    >>> print(lax.stack([onp.zeros(3), onp.ones(3)], axis=1))
    [[0. 1.]
     [0. 1.]
     [0. 1.]]
    """
    xs = sequence(operands, "stack", "operands")
    if not xs:
        raise ValueError("stack: no operands given; at least one array is required.")
    return stack_p.bind(*xs, axis=canonical_axis(axis, typeof(xs[0]).ndim + 1, "stack"))


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis, each without that axis.

    Args:
      x: array of rank at least 1.
      axis: the axis to take apart.
    Returns: A tuple of arrays, as many as the axis has entries.

    Raises ValueError for a scalar, or an axis out of bounds.

    >>> [int(row.sum()) for row in lax.unstack(onp.array([[1, 2], [3, 4]]))]
    [3, 7]
    """
    axis = canonical_axis(axis, typeof(x).ndim, "unstack")
    return tuple(unstack_p.bind(x, axis=axis)) if typeof(x).shape[axis] else ()
