"""vmap: carry the mapped axis through every operation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..base.config import check_tracer_leaks
from ..base.typing import Array, ArrayLike, DimSize, MappedAxis, Params, Value
from ..base.util import WithAux
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, derived
from ..core.leaks import Noting, check_leaks, note_origins
from ..core.primitive import Axis, Higher, Primitive, missing_rule, pair
from ..core.staging import stage
from ..core.trace import Trace, Tracer, check_usable, ctx, enter, leave, typeof
from ..lax.shape import broadcast_axis, move_axis, zeros_of
from ..types.avals import Aval, ShapedArray, is_float0
from ..types.shape import definitely_equal
from .compiled_rules import vmap_at_once


class BatchTracer(Tracer):
    """One element of a mapped array: `_val` holds all of them along axis `_dim`."""

    # _val   float32[3,8,4]    the value in the parent trace
    # _dim           1         the index of its mapped axis
    # aval   float32[3,4]      the user's view: one element
    __slots__ = ("_val", "_dim")

    def __init__(self, trace: BatchTrace, val: ArrayLike, dim: int, aval: ShapedArray | None = None
                 ) -> None:
        self._trace = trace
        self.aval = typeof(val).without_axis(dim, trace.axis.size) if aval is None else aval
        self._val, self._dim = val, dim

    def __repr__(self) -> str:
        return f"VmapTracer(aval={self.aval}, batched={typeof(self._val)})"

    def _origin(self) -> str:
        made = f", {self._val._origin()}" if isinstance(self._val, Tracer) else ""
        return f"one of {self._trace.axis.size} mapped elements{made}"

    def _unknown_because(self) -> str:
        return self._val._unknown_because() if isinstance(self._val, Tracer) else ""

    def _setting(self) -> str:
        return self._val._setting() if isinstance(self._val, Tracer) else ""


class BatchTrace(Trace):
    """Applies `prim.vmap` where an operand is mapped."""

    __slots__ = ("axis",)
    parent: Trace

    def __init__(self, parent: Trace, axis: Axis) -> None:
        super().__init__(parent)
        self.axis = axis

    def split(self, args: Sequence[Array]) -> tuple[list[Array], list[int | None], bool]:
        """(values, mapped axes or None, whether any is mapped)."""
        vals, dims, active = [], [], False
        for a in args:
            if type(a) is BatchTracer and a._trace is self:
                vals.append(a._val)
                dims.append(a._dim)
                active = True
            else:
                if isinstance(a, Tracer):
                    check_usable(a)
                vals.append(a)
                dims.append(None)
        return vals, dims, active

    def wrap(self, val: ArrayLike, dim: int | None, aval: ShapedArray | None = None) -> Array:
        # A value that all elements share needs no tracer: the parent applies its operations once.
        return val if dim is None else BatchTracer(self, val, dim, aval)

    def process(self, prim: Primitive, args: tuple, params: Params) -> Array | list[Array]:
        # The hot path: `split` written out, and `wrap` for one result.
        vals, dims, active = [], [], False
        for a in args:
            if type(a) is BatchTracer and a._trace is self:
                vals.append(a._val)
                dims.append(a._dim)
                active = True
            else:
                if isinstance(a, Tracer):
                    check_usable(a)
                vals.append(a)
                dims.append(None)
        parent = self.parent
        # Rules bind in the parent, whose values they take and return. A collective along this axis
        # needs its rule even if no operand is mapped: the sum of a constant counts the elements.
        ctx.trace = parent
        try:
            if self.axis.name is not None and prim.uses_axis(self.axis.name, params):
                results = prim.vmap_named(self.axis, vals, dims, **params)
            elif not active:
                return parent.process(prim, tuple(vals), params)
            else:
                if parent.evaluates and not (prim.foreign or isinstance(prim, Higher)):
                    results_at_once = vmap_at_once(parent, prim, self.axis, vals, dims, params)
                    if results_at_once is not None:
                        outs = list(map(self.wrap, *results_at_once))
                        return outs if prim.multiple_results else outs[0]
                if prim.vmap is None:
                    raise missing_rule(prim, f"Batching rule for {prim.name!r} not implemented; "
                                       "it has no vmap rule; use olympus.lax.map instead of vmap "
                                       "here.")
                results = prim.vmap(self.axis, vals, dims, **params)
        finally:
            ctx.trace = self
        if prim.multiple_results:
            return list(map(self.wrap, *pair(prim, "vmap", "mapped axes", results, args, params)))
        if type(results) is not tuple or len(results) != 2:
            results = pair(prim, "vmap", "mapped axis", results)
        val, dim = results
        return val if dim is None else BatchTracer(self, val, dim)

    def process_custom(self, prim: Primitive, fun: Callable, rules: object, args: tuple,
                       params: Params) -> list[Array]:
        vals, dims, _ = self.split(args)    # `fun` may close over mapped values, so go on anyway
        ctx.trace = self.parent
        try:
            results = prim.vmap(self, fun, rules, vals, dims, **params)
        finally:
            ctx.trace = self
        return list(map(self.wrap, *pair(prim, "vmap", "mapped axes", results)))


class _NotingBatchTrace(Noting, BatchTrace):
    __slots__ = ("notes",)


def to_axis(x: ArrayLike, src: int | None, dst: int, size: int) -> Any:
    """`x` with its mapped axis at `dst`; repeated along a new axis if it is not mapped."""
    aval = typeof(x)
    if aval.is_high:
        return _mapped_as(aval, x, src, dst)
    if is_float0(aval):     # no device has float0 arrays: make another one
        shape = [n for i, n in enumerate(aval.shape) if i != src]
        return zeros_of(aval.update(shape=(*shape[:dst], size, *shape[dst:])))
    return broadcast_axis(x, size, dst) if src is None else move_axis(x, src, dst)


def axis_of_tangents(aval: ShapedArray, dim: MappedAxis, size: int, kind: str = "to_tangent_aval"
                     ) -> MappedAxis:
    """Where a tangent, or what `kind` says, is mapped if the value of this type is mapped so.

    A user's type does not say it of tangents that are arrays: their type with another number of
    elements has another size along that axis.
    """
    if dim is None or type(dim) is int:
        return dim
    whole = getattr(aval, kind)()
    if whole.is_high:
        return dim
    one = aval.dec_rank(size, dim)
    sizes: list[Any] = list(getattr(one, kind)().shape)
    other = 1 + max([n for n in (*whole.shape, *sizes) if type(n) is int], default=0)
    shape = getattr(one.inc_rank(other, dim), kind)().shape
    axes = [i for i, n in enumerate(shape) if definitely_equal(n, other)]
    if len(axes) != 1 or [n for i, n in enumerate(shape) if i not in axes] != sizes:
        raise NotImplementedError(
            f"vmap: a rule of custom_jvp or custom_vjp takes values of type {aval}, mapped as "
            f"{dim}, which have tangents {whole}, and those of one element are {list(sizes)}: "
            "tangents with one axis more are required; define the function as an "
            "olympus.experimental.hiolympus.HiPrim with a `batch` rule.")
    return axes[0]


def _mapped_as(aval: Aval, x: Value, src: MappedAxis, dst: MappedAxis) -> Value:
    """A value of a user's type; ValueError unless it is mapped as required, since no rule can
    change that."""
    if src is None or (type(dst) is not int and src != dst):
        how = "all elements share it" if src is None else f"it is mapped as {src}"
        raise ValueError(f"vmap: a value of type {aval} given, and {how}; one that is mapped "
                         f"{'' if type(dst) is int else f'as {dst} '}is required, since each "
                         "element has a carry or result of its own; make it by an "
                         "operation whose `batch` rule maps it.")
    return x


def batch_flat(fun: Callable[..., Sequence[Array]], axis: Axis, vals: Sequence[ArrayLike],
               dims: Sequence[int | None]) -> tuple[list[Array], list[int | None]]:
    """The outputs of a flat function of mapped values, and their mapped axes, in the current trace.
    """
    parent = ctx.trace
    trace = (_NotingBatchTrace if check_tracer_leaks.value else BatchTrace)(parent, axis)
    outer = enter(trace)
    try:
        if axis.name is not None:
            # A new dict, because `current_context` compares the dicts by identity.
            ctx.axes = {**ctx.axes, axis.name: axis.size}
        outs = fun(*map(trace.wrap, vals, dims))
        out_vals, out_dims, _ = trace.split(outs)
    finally:
        leave(outer)
        trace.alive = False
    origins = note_origins(trace)
    # References of this frame are no leaks: drop them first.
    if origins is not None:
        outs = []
        check_leaks(trace, origins)
    return out_vals, out_dims


def _batched(axis: Axis, fun: Callable[..., Sequence[Array]], vals: Sequence[ArrayLike],
             dims: Sequence[int | None]) -> tuple[list[Array], list[int | None]]:
    return batch_flat(fun, axis, vals, dims)


Axis.batched = _batched     # for rules below: see "Inversion points" in docs/architecture.md


def batch_program(closed: ClosedOlympuspr, axis: Axis, dims: Sequence[int | None],
                  force: bool | Sequence[bool] = False,
                  avals: Sequence[ShapedArray] | None = None
                  ) -> tuple[ClosedOlympuspr, tuple[int | None, ...]]:
    """The program on mapped inputs, and the mapped axis of each output; cached on the program.

    Args:
      closed: a program without tracers among its constants.
      axis: size and name of the mapped axis.
      dims: per input, its mapped axis or None.
      force: per output, whether it must be mapped (along axis 0) even if it need not be.
      avals: types of the mapped inputs; None: the program's with the axis added.
    """
    if isinstance(force, bool):
        force = (force,) * len(closed.outvars)
    # A tuple of the axis's parts is a key that Python compares without calls.
    return _batch_program(closed, (axis.size, axis.name, axis.mesh_axis), tuple(dims),
                          tuple(force), avals and tuple(avals))


@derived
def _batch_program(closed: ClosedOlympuspr, parts: tuple[DimSize, Hashable, Hashable],
                   dims: tuple[int | None, ...], force: tuple[bool, ...],
                   avals: Sequence[ShapedArray] | None
                   ) -> tuple[ClosedOlympuspr, tuple[int | None, ...]]:
    axis = Axis(*parts)

    # Tracing finds the mapped outputs, which `body` returns as second result.
    def body(*args: Array) -> tuple[list[Array], tuple[int | None, ...]]:
        outs, out_dims = batch_flat(lambda *xs: eval_closed(closed, *xs), axis, args, dims)
        outs = [to_axis(x, d, 0, axis.size) if f else x
                for x, d, f in zip(outs, out_dims, force, strict=True)]
        return outs, tuple([0 if f and not typeof(x).is_high else d
                            for x, d, f in zip(outs, out_dims, force, strict=True)])

    if avals is None:
        avals = [v.aval if d is None else v.aval.with_axis(d, axis.size, axis.mesh_axis)
                 for v, d in zip(closed.olympuspr.invars, dims, strict=True)]
    with_aux = WithAux(body)
    return stage(with_aux, avals, closed.olympuspr.debug_info), with_aux.aux
