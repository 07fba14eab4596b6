"""Structural primitives: those that the interpreters themselves call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.primitive import Axis, Primitive, Zero
from ..core.trace import literal, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import canonical_shape, prod

__all__ = ["broadcast_axis", "broadcast_in_dim", "move_axis", "reshape", "transpose", "zeros_of"]


class Structural(Primitive, abstract=True):
    """Linear operations on one operand that only move elements: the tangent moves likewise."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(*primals, **params), self.bind(*tangents, **params)


class BroadcastInDim(Structural):
    """Put operand axis i at result axis broadcast_dimensions[i]; repeat along the others."""

    def infer(self, x: ShapedArray, *, shape: tuple[int, ...],
              broadcast_dimensions: tuple[int, ...], sharding: Any) -> ShapedArray:
        dims = broadcast_dimensions
        ok = (len(dims) == x.ndim and all(0 <= d < len(shape) for d in dims)
              and all(d < e for d, e in zip(dims, dims[1:])))
        if not ok or any(n not in (1, shape[d]) for n, d in zip(x.shape, dims)):
            raise TypeError(f"broadcast_in_dim: operand {x}, shape {shape}, broadcast_dimensions "
                            f"{dims} given; one increasing result axis per operand axis is "
                            "required, each of size 1 or the result's size.")
        return make_aval(shape, x.dtype, x.weak_type)

    def lower(self, b: Any, x: Any, *, shape: tuple[int, ...],
              broadcast_dimensions: tuple[int, ...], sharding: Any) -> Any:
        return b.broadcast(x, b.avals_out[0], broadcast_dimensions)

    def transpose(self, ct: Any, x: Any, *, shape: tuple[int, ...],
                  broadcast_dimensions: tuple[int, ...], sharding: Any) -> list[Any]:
        dims = broadcast_dimensions
        ones = [i for i, (n, d) in enumerate(zip(x.aval.shape, dims)) if n != shape[d]]
        repeated = [d for d in range(len(shape)) if d not in dims]
        ct = reduce_sum_p.bind(ct, axes=tuple(sorted([*repeated, *(dims[i] for i in ones)])),
                               out_sharding=None)
        return [reshape_p.bind(ct, new_sizes=x.aval.shape, dimensions=None, sharding=None)
                if ones else ct]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             shape: tuple[int, ...], broadcast_dimensions: tuple[int, ...], sharding: Any) -> Any:
        x = move_axis(args[0], dims[0], 0)
        return self.bind(x, shape=(axis.size, *shape), sharding=None,
                         broadcast_dimensions=(0, *(d + 1 for d in broadcast_dimensions))), 0


class Transpose(Structural):
    """Permute axes: result axis i is operand axis permutation[i]."""

    def infer(self, x: ShapedArray, *, permutation: tuple[int, ...]) -> ShapedArray:
        if sorted(permutation) != list(range(x.ndim)):
            raise TypeError(f"transpose: operand {x}, permutation {permutation} given; a "
                            f"permutation of range({x.ndim}) is required.")
        return make_aval(tuple([x.shape[p] for p in permutation]), x.dtype, x.weak_type)

    def lower(self, b: Any, x: Any, *, permutation: tuple[int, ...]) -> Any:
        return b.op("stablehlo.transpose", [x], {"permutation": b.i64s(permutation)})

    def transpose(self, ct: Any, x: Any, *, permutation: tuple[int, ...]) -> list[Any]:
        return [self.bind(ct, permutation=_inverse(permutation))]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             permutation: tuple[int, ...]) -> Any:
        x = move_axis(args[0], dims[0], 0)
        return self.bind(x, permutation=(0, *(p + 1 for p in permutation))), 0


class Reshape(Structural):
    """The same elements in row-major order under another shape."""

    def infer(self, x: ShapedArray, *, new_sizes: tuple[int, ...], dimensions: None,
              sharding: Any) -> ShapedArray:
        if prod(new_sizes) != x.size or any(n < 0 for n in new_sizes):
            raise TypeError(f"reshape: {x} given, of {x.size} elements; the new shape {new_sizes} "
                            f"has {prod(new_sizes)}; the numbers must be equal.")
        return make_aval(new_sizes, x.dtype, x.weak_type)

    def lower(self, b: Any, x: Any, **params: Any) -> Any:
        return b.op("stablehlo.reshape", [x])

    def transpose(self, ct: Any, x: Any, **params: Any) -> list[Any]:
        return [self.bind(ct, new_sizes=x.aval.shape, dimensions=None, sharding=None)]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             new_sizes: tuple[int, ...], dimensions: None, sharding: Any) -> Any:
        x = move_axis(args[0], dims[0], 0)
        return self.bind(x, new_sizes=(axis.size, *new_sizes), dimensions=None, sharding=None), 0


class ReduceSum(Structural):
    """Sum over axes."""

    def infer(self, x: ShapedArray, *, axes: tuple[int, ...], out_sharding: Any) -> ShapedArray:
        if dtypes.scalar_kind(x.dtype) not in "iufc":
            raise TypeError(f"reduce_sum: operand {x} given; a numeric dtype is required; convert "
                            "it with astype.")
        return make_aval(tuple([n for i, n in enumerate(x.shape) if i not in axes]), x.dtype,
                         x.weak_type)

    def lower(self, b: Any, x: Any, *, axes: tuple[int, ...], out_sharding: Any) -> Any:
        return b.reduce("stablehlo.add", x, 0, axes)

    def transpose(self, ct: Any, x: Any, *, axes: tuple[int, ...], out_sharding: Any) -> list[Any]:
        kept = tuple(i for i in range(x.aval.ndim) if i not in axes)
        return [broadcast_in_dim(ct, x.aval.shape, kept)]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             axes: tuple[int, ...], out_sharding: Any) -> Any:
        x = move_axis(args[0], dims[0], 0)
        return self.bind(x, axes=tuple(a + 1 for a in axes), out_sharding=None), 0


broadcast_in_dim_p = BroadcastInDim("broadcast_in_dim")
transpose_p = Transpose("transpose")
reshape_p = Reshape("reshape")
reduce_sum_p = ReduceSum("reduce_sum")


def _inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    inverse = [0] * len(permutation)
    for i, p in enumerate(permutation):
        inverse[p] = i
    return tuple(inverse)


def broadcast_in_dim(operand: Any, shape: Any, broadcast_dimensions: Sequence[int], *,
                     out_sharding: Any = None) -> Any:
    """Broadcast to `shape`, operand axis i becoming result axis `broadcast_dimensions[i]`."""
    shape = canonical_shape(shape)
    dims = tuple(broadcast_dimensions)
    if typeof(operand).shape == shape and dims == tuple(range(len(shape))):
        return operand
    return broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=dims,
                                   sharding=out_sharding)


def reshape(operand: Any, new_sizes: Any) -> Any:
    """The same elements in row-major order under the shape `new_sizes`."""
    shape = canonical_shape(new_sizes)
    if typeof(operand).shape == shape:
        return operand
    return reshape_p.bind(operand, new_sizes=shape, dimensions=None, sharding=None)


def transpose(operand: Any, permutation: Sequence[int]) -> Any:
    """Permute axes."""
    permutation = tuple(permutation)
    if permutation == tuple(range(len(permutation))):
        return operand
    return transpose_p.bind(operand, permutation=permutation)


def reduce_sum(operand: Any, axes: Sequence[int]) -> Any:
    """Sum over `axes`."""
    axes = tuple(axes)
    return reduce_sum_p.bind(operand, axes=axes, out_sharding=None) if axes else operand


def broadcast_axis(x: Any, size: int, dim: int) -> Any:
    """`x` repeated `size` times along a new axis at `dim`."""
    shape = typeof(x).shape
    kept = tuple(i for i in range(len(shape) + 1) if i != dim)
    return broadcast_in_dim_p.bind(x, shape=(*shape[:dim], size, *shape[dim:]), sharding=None,
                                   broadcast_dimensions=kept)


def move_axis(x: Any, src: int, dst: int) -> Any:
    """`x` with axis `src` at `dst`, the others in order."""
    if src == dst:
        return x
    permutation = [i for i in range(typeof(x).ndim) if i != src]
    permutation.insert(dst, src)
    return transpose_p.bind(x, permutation=tuple(permutation))


def zeros_of(aval: ShapedArray) -> Any:
    """An array of zeros with this aval."""
    return broadcast_in_dim_p.bind(literal(0, aval.dtype, aval.weak_type), shape=aval.shape,
                                   broadcast_dimensions=(), sharding=None)
