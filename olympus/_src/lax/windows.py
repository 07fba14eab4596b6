"""Reductions over sliding windows: geometry, emission and the sum; `window_extrema` has the others.

The operand is spread out by base_dilation and padded with the identity; a window of
window_dimensions places, window_dilation apart, moves over it in steps of window_strides. The
transpose of a windowed sum is one again, with base dilation and strides exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import index
from typing import Any

from ..base.typing import Array, IrValue
from ..core import tags
from ..core.facts import Shapes
from ..core.primitive import Axis, Builder, Linear, Primitive, linear_jvp
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import (
    SymbolicDim, canonical_shape, extent, is_static, less, maximum, prod, sequence, strided_size,
)
from .families import Combine, Identity, add
from .reduce import check_kind, combining
from .shape import inserted

Dims = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]
Params = dict[str, Any]


def dilated(size: int, dilation: int) -> int:
    """The size of an axis whose elements are moved `dilation` apart."""
    return 0 if size == 0 else 1 + dilation * (size - 1)


def padtype_to_pads(in_shape: Sequence[int], window_shape: Sequence[int],
                    window_strides: Sequence[int], padding: str) -> list[tuple[int, int]]:
    """The pads (low, high) per axis that a name of padding stands for.

    Args:
      in_shape, window_shape, window_strides: one int per axis, dilated already.
      padding: "VALID" is no padding; "SAME" makes the number of windows ceil(size / stride),
        an odd pad being larger at the end; "SAME_LOWER" is that with the larger pad at the front.

    Raises ValueError for another name, TypeError for anything but a name.

    >>> lax.padtype_to_pads((5, 6), (3, 2), (2, 1), "SAME")
    [(1, 1), (0, 1)]
    """
    if not isinstance(padding, str):
        raise TypeError(f"padtype_to_pads: padding {padding!r} given; a name is required; pairs of "
                        "ints need no conversion.")
    kind = padding.upper()
    if kind not in ("VALID", "SAME", "SAME_LOWER"):
        raise ValueError(f"padtype_to_pads: padding {padding!r} given; 'VALID', 'SAME', "
                         "'SAME_LOWER' or pairs of ints are required.")
    in_shape, window_shape, window_strides = [
        canonical_shape(sizes, "padtype_to_pads")
        for sizes in (in_shape, window_shape, window_strides)]
    if any(s < 1 for s in window_strides):
        raise ValueError(f"padtype_to_pads: window_strides {window_strides} given; positive ints "
                         "are required.")
    if not len(in_shape) == len(window_shape) == len(window_strides):
        raise ValueError(f"padtype_to_pads: in_shape {in_shape}, window_shape {window_shape}, "
                         f"window_strides {window_strides} given; one entry per axis is required.")
    pairs = []
    for size, window, stride in zip(in_shape, window_shape, window_strides, strict=True):
        total = (0 if kind == "VALID" else
                 maximum((-(-size // stride) - 1) * stride + window - size, 0))
        small, large = total // 2, total - total // 2
        pairs.append((small, large) if kind == "SAME" else (large, small))
    return pairs


def window_params(name: str, shape: Dims, window_dimensions: Sequence[int],
                  window_strides: Sequence[int] | None, padding: str | Sequence[Sequence[int]],
                  base_dilation: Sequence[int] | None, window_dilation: Sequence[int] | None
                  ) -> Params:
    """The canonical params of windows on an array of `shape`; errors named after `name`."""
    def per_axis(what: str, values: Sequence[int] | None) -> Dims:
        ints = (1,) * len(shape) if values is None else canonical_shape(values, f"{name}: {what}")
        if len(ints) != len(shape):
            raise TypeError(f"{name}: {what} {ints} given for an operand of shape {shape}; one "
                            "entry per axis is required.")
        if any(v < 1 for v in ints):
            raise ValueError(f"{name}: {what} {ints} given; positive entries are required.")
        return ints

    window = per_axis("window_dimensions", window_dimensions)
    strides = per_axis("window_strides", window_strides)
    base = per_axis("base_dilation", base_dilation)
    dilations = per_axis("window_dilation", window_dilation)
    if isinstance(padding, str):
        padding = padtype_to_pads(shape, [*map(dilated, window, dilations)], strides, padding)
    return {"window_dimensions": window, "window_strides": strides,
            "padding": canonical_pads(name, padding, shape), "base_dilation": base,
            "window_dilation": dilations}


def _amount(value: int) -> int:
    return value if isinstance(value, SymbolicDim) else index(value)


def canonical_pads(name: str, padding: Sequence[Sequence[int]], shape: Sequence[int]) -> Pairs:
    """Pairs of ints, one per axis."""
    try:
        pads = tuple([(_amount(low), _amount(high)) for low, high in padding])
    except (TypeError, ValueError):
        raise TypeError(f"{name}: padding {padding!r} given; a name or pairs of ints (low, high) "
                        "are required.") from None
    if len(pads) != len(shape):
        raise TypeError(f"{name}: padding {pads} given for {len(shape)} axes; one pair per axis is "
                        "required.")
    return pads


def windowed_shape(shape: Sequence[int], *, window_dimensions: Dims, window_strides: Dims,
                   padding: Pairs, base_dilation: Dims, window_dilation: Dims) -> Dims:
    """How many windows fit along each axis."""
    sizes = []
    for n, w, s, (low, high), base, apart in zip(shape, window_dimensions, window_strides, padding,
                                                    base_dilation, window_dilation, strict=True):
        room = dilated(n, base) + low + high - dilated(w, apart)
        sizes.append(strided_size(0, room + 1, s))
    return tuple(sizes)


def windows_on_axis(dim: int, params: Params) -> Params:
    """The params after an axis that windows do not reach along is inserted at `dim`."""
    fill = {name: (0, 0) if name == "padding" else 1 for name in params}
    return {name: inserted(values, dim, fill[name]) for name, values in params.items()}


def emit_windows(b: Builder, xs: Sequence[IrValue], inits: Sequence[IrValue],
                 avals: Sequence[ShapedArray], combine: Callable[..., Sequence[IrValue]], *,
                 window_dimensions: Dims, window_strides: Dims, padding: Pairs, base_dilation: Dims,
                 window_dilation: Dims) -> list[IrValue]:
    """Emit stablehlo.reduce_window of several operands.

    Args:
      b: the builder.
      xs, inits: MLIR values: arrays of one shape, and what each window starts from.
      avals: the types of `xs`.
      combine: (accumulated..., new...) -> MLIR values, on rank-0 values.
    """
    shape = windowed_shape(
        avals[0].shape, window_dimensions=window_dimensions, window_strides=window_strides,
        padding=padding, base_dilation=base_dilation, window_dilation=window_dilation)
    outs = [make_aval(shape, a.dtype) for a in avals]
    params = window_dimensions, window_strides, base_dilation, window_dilation
    if not all(map(is_static, params)):
        return b.symbolic_windows(xs, inits, outs, combine, params, padding)
    if not all(map(is_static, padding)):
        xs, aval = _padded(b, xs, inits, avals, padding, base_dilation)
        return emit_windows(b, xs, inits, [aval.update(dtype=a.dtype) for a in avals], combine,
                            window_dimensions=window_dimensions, window_strides=window_strides,
                            padding=((0, 0),) * aval.ndim, base_dilation=(1,) * aval.ndim,
                            window_dilation=window_dilation)
    apart = tuple([base if size == 1 else 1 for base, size in zip(
        base_dilation, window_dimensions, strict=True)])
    if b.module.platform in (None, "cpu") and max(apart, default=1) > 1:
        # XLA:CPU hands long sums to a library, which is not given the dilation of these axes.
        xs, aval = _padded(b, xs, inits, avals, ((0, 0),) * len(apart), apart)
        # Without a barrier the elements between become dilation again.
        xs = b.ops("stablehlo.optimization_barrier", xs, None, [x.type for x in xs]).results
        return emit_windows(b, xs, inits, [aval.update(dtype=a.dtype) for a in avals], combine,
                            window_dimensions=window_dimensions, window_strides=window_strides,
                            padding=padding, window_dilation=window_dilation,
                            base_dilation=tuple([base // spread for base, spread in zip(
                                base_dilation, apart, strict=True)]))
    # Cutting into dilated elements may leave some of the room between two.
    cuts = [[max(-(pad // base), 0) for pad in pair]
            for pair, base in zip(padding, base_dilation, strict=True)]
    if 0 in shape or any(not less(low + high, n)
                         for n, (low, high) in zip(avals[0].shape, cuts, strict=True)):
        return [b.broadcast(init, out, ()) for init, out in zip(inits, outs, strict=True)]
    if any(map(any, cuts)):
        xs = _cropped(b, xs, avals, cuts)
        padding = tuple([(low + cut[0] * base, high + cut[1] * base)
                         for (low, high), cut, base in zip(padding, cuts, base_dilation,
                                                           strict=True)])
    op = b.ops("stablehlo.reduce_window", [*xs, *inits], {
        "window_dimensions": b.i64s(window_dimensions), "window_strides": b.i64s(window_strides),
        "base_dilations": b.i64s(base_dilation), "window_dilations": b.i64s(window_dilation),
        "padding": b.pairs(padding)}, [b.type(out) for out in outs], regions=1)
    b.region(op, 0, [b.type(make_aval((), a.dtype)) for a in avals] * 2, combine)
    return list(op.results)


def sum_windows(b: Builder, x: IrValue, params: Params) -> IrValue:
    """Emit the sum of every window; 16-bit floats are summed in float32, and rounded once."""
    aval, out = b.avals_in[0], b.avals_out[0]
    wide = aval.update(dtype=dtypes.wide_dtype(aval.dtype))
    scalar, narrow = make_aval((), wide.dtype), wide.dtype != aval.dtype
    sums = emit_windows(
        b, [b.convert(x, wide) if narrow else x], [b.scalar(0, wide.dtype)], [wide],
        lambda p, q: [b.op("stablehlo.add", [p, q], None, scalar)], **params)[0]
    return b.convert(sums, out) if narrow else sums


def _padded(b: Builder, xs: Sequence[IrValue], inits: Sequence[IrValue],
            avals: Sequence[ShapedArray], padding: Pairs, dilation: Dims
            ) -> tuple[list[IrValue], ShapedArray]:
    """Operands with their padding and what dilation puts between elements; the aval of one."""
    sizes = tuple([dilated(n, base) + low + high for n, base, (low, high) in zip(
        avals[0].shape, dilation, padding, strict=True)])
    attributes = {"edge_padding_low": b.i64s([low for low, _ in padding]),
                  "edge_padding_high": b.i64s([high for _, high in padding]),
                  "interior_padding": b.i64s([base - 1 for base in dilation])}
    aval = avals[0].update(shape=sizes)
    return [b.op("stablehlo.pad", [x, init], attributes, aval.update(dtype=a.dtype))
            for x, init, a in zip(xs, inits, avals, strict=True)], aval


def _cropped(b: Builder, xs: Sequence[IrValue], avals: Sequence[ShapedArray],
             cuts: Sequence[Sequence[int]]) -> list[IrValue]:
    """Operands without so many elements (low, high) per axis, which negative padding cuts off.

    XLA's simplifier (jaxlib 0.10.2) aborts the process on some windows with negative padding.
    """
    limits = [n - high for n, (_, high) in zip(avals[0].shape, cuts, strict=True)]
    sizes = tuple([limit - low for limit, (low, _) in zip(limits, cuts, strict=True)])
    attributes = {"start_indices": b.i64s([low for low, _ in cuts]),
                  "limit_indices": b.i64s(limits), "strides": b.i64s([1] * len(sizes))}
    return [b.op("stablehlo.slice", [x], attributes, make_aval(sizes, a.dtype))
            for x, a in zip(xs, avals, strict=True)]


class WindowReduction(Primitive, abstract=True):
    """Every window combined by one monoid, from its identity."""

    spread = staticmethod(tags.as_first)
    transpose: Any = None

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        return prod(outs[0]) * prod(params["window_dimensions"])

    def remedy(self, avals: Sequence[ShapedArray], params: Params) -> str:
        return "a window over several axes: one axis after the other, as max and sum allow"

    def __init__(self, name: str, combine: Combine, identity: Identity, kinds: str) -> None:
        super().__init__(name)
        self.combine, self.identity, self.kinds = combine, identity, kinds

    def infer(self, x: ShapedArray, **params: Any) -> ShapedArray:
        check_kind(self.name, x, self.kinds)
        return make_aval(windowed_shape(x.shape, **params), x.dtype)

    def lower(self, b: Builder, x: IrValue, **params: Any) -> IrValue:
        aval = b.avals_in[0]
        _, body = combining(b, self.combine, make_aval((), aval.dtype))
        init = b.scalar(self.identity(aval.dtype), aval.dtype)
        return emit_windows(b, [x], [init], [aval], body, **params)[0]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], **params: Hashable
             ) -> tuple[Array, int | None]:
        return self.bind(args[0], **windows_on_axis(dims[0], params)), dims[0]


class ReduceWindowSum(WindowReduction):
    """The sum of every window: linear."""

    adds_up = True
    jvp = linear_jvp

    def lower(self, b: Builder, x: IrValue, **params: Any) -> IrValue:
        return sum_windows(b, x, params)

    def transpose(self, ct: Array, x: Linear, *, window_dimensions: Dims, window_strides: Dims,
                  padding: Pairs, base_dilation: Dims, window_dilation: Dims) -> list[Array | None]:
        pads = []
        for n, out, w, s, (low, _), base, dilation in zip(
                x.aval.shape, typeof(ct).shape, window_dimensions, window_strides, padding,
                base_dilation, window_dilation, strict=True):
            reach = dilated(w, dilation) - 1
            pads.append((reach - low, dilated(n, base) + low - dilated(out, s)))
        return [self.bind(ct, window_dimensions=window_dimensions, window_strides=base_dilation,
                          padding=tuple(pads), base_dilation=window_strides,
                          window_dilation=window_dilation)]


reduce_window_sum_p = ReduceWindowSum("reduce_window_sum", add, lambda dtype: 0, "iufc")


def reduce_window_shape_tuple(operand_shape: Sequence[int], window_dimensions: Sequence[int],
                              window_strides: Sequence[int],
                              padding: str | Sequence[tuple[int, int]],
                              base_dilation: Sequence[int] | None = None,
                              window_dilation: Sequence[int] | None = None) -> Dims:
    """The shape of a windowed reduction, for the arguments of `reduce_window`.

    A negative size, as -1 for one that is not known, counts as 0.

    Args:
      operand_shape, window_dimensions, window_strides: one int per axis.
      padding: a name, or pairs (low, high).
      base_dilation, window_dilation: one int per axis; None is 1 everywhere.

    >>> lax.reduce_window_shape_tuple((5, 6), (2, 2), (1, 2), "VALID")
    (4, 3)
    """
    name = "reduce_window_shape_tuple"
    shape = tuple([maximum(extent(n, name, "dimension"), 0)
                   for n in sequence(operand_shape, name, "operand_shape")])
    return windowed_shape(shape, **window_params(
        name, shape, window_dimensions, window_strides, padding,
        base_dilation, window_dilation))

