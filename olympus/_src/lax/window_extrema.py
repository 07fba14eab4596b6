"""The extremum of every window, and moving values from and to the place where it is.

A window's extremum is at its first element (in row-major order) that attains it; NaN counts as
attaining it. Derivatives read the tangent at that place and add the cotangent to it. Places come
from one windowed reduction of pairs (value, flat index), so dilations and padding of every kind
work, and padding is chosen by no window that holds an element.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..base.typing import Array, ArrayLike, DType, IrValue, Params
from ..core import tags
from ..core.primitive import Axis, Builder, Cotangent, Linear, Primitive, Tangent, Zero
from ..core.staging import stage
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.mesh import NO_MESH, use_abstract_mesh
from ..types.shape import exceeds, is_static, prod
from .bits import bitwise_and, bitwise_not, bitwise_or
from .comparison import eq, ge_p, le_p, lt, ne, select_n
from .indexing import GatherDimensionNumbers, ScatterDimensionNumbers, gather, scatter_add
from .reduce import check_kind, highest, largest, lowest, smallest
from .shape import align, expand_dims, reshape, zeros_of
from .windows import Dims, Pairs, WindowReduction, emit_windows, windowed_shape, windows_on_axis

BOOL, FLOAT32, INT32, INT64 = map(dtypes.as_dtype, ("bool", "float32", "int32", "int64"))


class WindowExtremum(WindowReduction):
    """max or min of every window: NaN if any element is."""

    def __init__(self, name: str, select: Primitive) -> None:
        choose, identity = _CHOICES[select]
        super().__init__(name, choose, identity, "biufc")
        self.select = select

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], **params: Hashable
            ) -> tuple[Array, Tangent]:
        (x,), (t,) = primals, tangents
        return self.bind(x, **params), select_and_gather_add_p.bind(
            t, x, select_prim=self.select, **params)


class WindowPlace(Primitive):
    """The flat index of each window's extremum; past the end where the window is all padding."""

    # Lowering alone makes it; flat indices count all elements: the selections are mapped before.
    jvp = transpose = vmap = None

    def infer(self, x: ShapedArray, *, select_prim: Primitive, **params: Any) -> ShapedArray:
        return make_aval(windowed_shape(x.shape, **params), _place_dtype(x))

    def lower(self, b: Builder, x: IrValue, **params: Hashable) -> IrValue:
        return _emit_extrema(b, x, b.avals_in[0], b.avals_out[0].dtype, params)[1]


def _emit_extrema(b: Builder, x: IrValue, aval: ShapedArray, index: DType, params: Params,
                  *more: tuple[IrValue, ShapedArray]) -> list[IrValue]:
    """Emit each window's extremum, its flat index, and what further arrays have there."""
    (choose, identity), params = _CHOICES[params["select_prim"]], {
        name: value for name, value in params.items() if name != "select_prim"}
    others = [a for _, a in more]
    scalars = [make_aval((), d) for d in (aval.dtype, index, *[a.dtype for a in others])]

    def pick(*both: Array) -> list[Array]:
        one, other = both[:len(scalars)], both[len(scalars):]
        (x, i, *_), (y, j, *_) = one, other
        best = choose(x, y)
        at_x, at_y = [bitwise_or(eq(v, best), ne(v, v)) for v in (x, y)]
        first = bitwise_and(at_x, bitwise_or(bitwise_not(at_y), lt(i, j)))
        return [select_n(first, q, p) for p, q in zip(one, other, strict=True)]

    body = stage(pick, scalars * 2)
    flat = b.op("stablehlo.iota", [], {"iota_dimension": b.attr("0 : i64")},
                make_aval((prod(aval.shape),), index))
    numbered = aval.update(dtype=index)
    none = b.scalar(int(dtypes.iinfo(index).max), index)
    return emit_windows(
        b, [x, b.op("stablehlo.reshape", [flat], None, numbered), *[v for v, _ in more]],
        [b.scalar(identity(aval.dtype), aval.dtype), none, *[b.scalar(0, a.dtype) for a in others]],
        [aval, numbered, *others], lambda *args: b.call_inline(body, args), **params)


def _place_dtype(x: ShapedArray) -> DType:
    return INT64 if exceeds(prod(x.shape), 2**31 - 1) else INT32


class Selection(Primitive, abstract=True):
    """Linear in the first operand, piecewise constant in the second, which the places are from."""

    flat_in = (1,)
    spread = staticmethod(tags.elementwise)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> tuple[Array, Tangent]:
        (x, operand), (t, _) = primals, tangents
        out = self.bind(x, operand, **params)
        if type(t) is Zero:
            return out, Zero(typeof(out).to_tangent_aval())
        return out, self.bind(t, operand, **params)

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *,
             select_prim: Primitive, **params: Hashable) -> tuple[Array, int | None]:
        (x, operand), dim = align(axis, args, dims, 0)
        return self.bind(x, operand, select_prim=select_prim, **windows_on_axis(0, params)), dim

    def check(self, wanted: Sequence[int], x: ShapedArray, operand: ShapedArray) -> None:
        check_kind(self.name, operand, "biufc")
        if x.shape != tuple(wanted):
            raise TypeError(f"{self.name}: operands {x} and {operand} given; the first must have "
                            f"shape {tuple(wanted)} for these windows.")


class SelectAndGatherAdd(Selection):
    """tangents at the place of each window's extremum of the operand; 0 for windows of padding."""

    pace = 4.0

    def infer(self, tangents: ShapedArray, operand: ShapedArray, *, select_prim: Primitive,
              **params: Any) -> ShapedArray:
        self.check(operand.shape, tangents, operand)
        return make_aval(windowed_shape(operand.shape, **params), tangents.dtype,
                         tangents.weak_type)

    def lower(self, b: Builder, tangents: IrValue, operand: IrValue, **params: Hashable) -> IrValue:
        if (_is_partitioned(b) or b.platform == "tpu") and not _is_empty(b.avals_in[0]):
            return _read_in_windows(b, tangents, operand, params)
        return _untyped(b, _read_places, (tangents, operand), params)

    def transpose(self, ct: Array, tangents: Linear, operand: Array, **params: Hashable
                  ) -> list[Cotangent]:
        return [select_and_scatter_add_p.bind(ct, operand, **params), None]


class SelectAndScatterAdd(Selection):
    """Zeros like the operand, each window's source added at the place of its extremum."""

    def infer(self, source: ShapedArray, operand: ShapedArray, *, select_prim: Primitive,
              **params: Any) -> ShapedArray:
        self.check(windowed_shape(operand.shape, **params), source, operand)
        return make_aval(operand.shape, source.dtype, source.weak_type)

    def lower(self, b: Builder, source: IrValue, operand: IrValue, **params: Any) -> IrValue:
        if _is_undilated(*b.avals_in, **params):
            if _is_partitioned(b) and dtypes.scalar_kind(b.avals_in[1].dtype) != "c":
                return _select_in_parts(b, source, operand, **params)
            if b.platform == "tpu":
                return _select_and_scatter(b, source, operand, **params)
        return _untyped(b, _add_at_places, (source, operand), params)

    def transpose(self, ct: Array, source: Linear, operand: Array, **params: Hashable
                  ) -> list[Cotangent]:
        return [select_and_gather_add_p.bind(ct, operand, **params), None]


def _untyped(b: Builder, fun: Callable[..., ArrayLike], xs: Sequence[IrValue], params: Params
             ) -> IrValue:
    """The equation by a function of arrays, within which XLA chooses how they are cut."""
    with use_abstract_mesh(NO_MESH):
        return b.by_rule(functools.partial(fun, **params), xs,
                         [a.update(sharding=None) for a in b.avals_in])[0]


def _read_places(tangents: Array, operand: Array, **params: Hashable) -> ArrayLike:
    chosen = window_place_p.bind(operand, **params)
    aval = typeof(tangents)
    if not prod(aval.shape):
        return zeros_of(make_aval(typeof(chosen).shape, aval.dtype))
    flat = reshape(tangents, (prod(aval.shape),))
    return gather(flat, expand_dims(chosen, (-1,)), GatherDimensionNumbers((), (0,), (0,)), (1,),
                  mode="fill", fill_value=0)


def _add_at_places(source: Array, operand: Array, **params: Hashable) -> Array:
    chosen = window_place_p.bind(operand, **params)
    aval = typeof(operand)
    zeros = zeros_of(make_aval((prod(aval.shape),), typeof(source).dtype))
    if not prod(aval.shape):
        return reshape(zeros, aval.shape)
    flat = scatter_add(zeros, expand_dims(chosen, (-1,)), source,
                       ScatterDimensionNumbers((), (0,), (0,)), mode="drop")
    return reshape(flat, aval.shape)


# By XLA's own operations -------------------------------------------------------------------------

# They look at the windows, without a place to keep. On a TPU gathers and scatters of single
# elements are slow. Where XLA partitions a program, places in the flat array would be anywhere:
# each device would get the whole array, though windows seldom cross its parts.

def _is_partitioned(b: Builder) -> bool:
    devices = b.module.places
    return not devices.apart and max(len(devices.devices), devices.parts) > 1


def _read_in_windows(b: Builder, tangents: IrValue, operand: IrValue, params: Params) -> IrValue:
    t, x = b.avals_in
    return _emit_extrema(b, operand, x, _place_dtype(x), params, (tangents, t))[2]


def _is_empty(aval: ShapedArray) -> bool:
    return not (is_static(aval.shape) and prod(aval.shape))


def _is_undilated(source: ShapedArray, operand: ShapedArray, *, base_dilation: Dims,
                  window_dilation: Dims, padding: Pairs, **params: Hashable) -> bool:
    """Whether stablehlo.select_and_scatter has these windows: within the array and its padding."""
    return not (_is_empty(source) or _is_empty(operand)) and (
        set(base_dilation) == set(window_dilation) == {1} and all(map(is_static, padding))
        and min(pad for pair in padding for pad in pair) >= 0)


def _select_in_parts(b: Builder, source: IrValue, operand: IrValue, *, select_prim: Primitive,
                     **params: Any) -> IrValue:
    """The same where XLA partitions the program, which it does if only a comparison selects.

    So NaN is replaced by the infinity that every comparison prefers. Terms of 16 bits are added in
    32.
    """
    (t, x), out = b.avals_in, b.avals_out[0]
    if dtypes.scalar_kind(x.dtype) == "f":
        _, identity = _CHOICES[select_prim]
        most = b.full(x, -identity(x.dtype))
        nan = b.compare("NE", operand, operand, "FLOAT", x.update(dtype=BOOL))
        operand = b.op("stablehlo.select", [nan, most, operand], None, x)
    avals = [a.update(dtype=FLOAT32) if dtypes.scalar_kind(a.dtype) == "f" and (
        dtypes.itemsize_bits(a.dtype) < 32) else a for a in (t, x)]
    source, operand = [v if a.dtype == wide.dtype else b.convert(v, wide) for v, a, wide in zip(
        (source, operand), (t, x), avals, strict=True)]
    summed = _select_and_scatter(b, source, operand, select_prim=select_prim, plain=True,
                                 avals=avals, **params)
    return summed if out.dtype == avals[0].dtype else b.convert(summed, out)


def _select_and_scatter(b: Builder, source: IrValue, operand: IrValue, *, select_prim: Primitive,
                        window_dimensions: Dims, window_strides: Dims, padding: Pairs,
                        plain: bool = False, avals: Sequence[ShapedArray] = (),
                        **params: Hashable) -> IrValue:
    """Emit stablehlo.select_and_scatter; ties are the first's.

    A selected NaN is kept, unless only a comparison selects (`plain`). `avals` are the types of the
    operands before they were converted, if they were.
    """
    t, x = avals or b.avals_in
    out = result = b.avals_out[0].update(dtype=t.dtype)
    sizes, strides, pads = window_dimensions, window_strides, padding
    # The two axes that a TPU has tiles along can have no windows, if there are two.
    free = sum(pair == (1, 1) for pair in zip(sizes, strides, strict=True))
    ones = (1,) * max(2 - free, 0) if len(sizes) > 1 else ()
    t, x, out = [a.update(shape=a.shape + ones) for a in (t, x, out)]
    value, term = make_aval((), x.dtype), make_aval((), t.dtype)

    def selects(x: Array, y: Array) -> list[Array]:
        chosen = select_prim.bind(x, y)
        return [chosen if plain else bitwise_or(chosen, ne(x, x))]

    keeps = stage(selects, [value] * 2)
    if ones:
        operand, source = [b.op("stablehlo.reshape", [v], None, a)
                           for v, a in ((operand, x), (source, t))]
    op = b.ops("stablehlo.select_and_scatter", [operand, source, b.scalar(0, t.dtype)], {
        "window_dimensions": b.i64s(sizes + ones), "window_strides": b.i64s(strides + ones),
        "padding": b.pairs(pads + ((0, 0),) * len(ones))}, [b.type(out)], regions=2)
    b.region(op, 0, [b.type(value)] * 2, lambda *args: b.call_inline(keeps, args))
    b.region(op, 1, [b.type(term)] * 2, lambda x, y: [b.op("stablehlo.add", [x, y], None, term)])
    return b.op("stablehlo.reshape", [op.result], None, result) if ones else op.result


# How a comparison selects: its choice of two, and the value that it never prefers.
_CHOICES: dict[Any, Any] = {ge_p: (largest, lowest), le_p: (smallest, highest)}
window_place_p = WindowPlace("window_place")
select_and_gather_add_p = SelectAndGatherAdd("select_and_gather_add")
select_and_scatter_add_p = SelectAndScatterAdd("select_and_scatter_add")
reduce_window_max_p = WindowExtremum("reduce_window_max", ge_p)
reduce_window_min_p = WindowExtremum("reduce_window_min", le_p)
