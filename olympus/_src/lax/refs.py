"""The primitives of references: made, read, written, added to, and ended.

    new_ref      a:Ref{f32[3]} = new_ref b        empty_ref    a place whose content is not given
    get          c:f32[] <- a[0]                  swap         a[0] <- d, or  c, a[0] <- a[0], d
    addupdate    a[0] += d                        freeze       the content, and the end of the place
    free_ref     the end of the place

Where in the content an operation reads or writes is said by a *view*, a lens: pure functions of the
content and of the view's own operands (the values of an index). So vmap, discharge and kernels are
written once, and not for each kind of index.

In a program that is recorded these are equations, with `InputEffect`s. For all other traces a
reference is a cell (`core/cells.py`), and the same functions run on its content.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from ..base import source
from ..base.source import Source
from ..base.typing import Array, ArrayLike, MappedAxis, Params, Reference
from ..base.util import ByKey
from ..core import templates
from ..core.cells import (
    Ref, after_end, at_hand, check_value, identity_of, lock, made_above, outer_reference,
)
from ..core.effects import Effect, InputEffect, input_effects
from ..core.ir import OlympusprEqn, Var
from ..core.primitive import Axis, Higher, Linear, Primitive, Tangent, Zero
from ..core.staging import JitTracer, StagingTrace
from ..core.tags import by_body
from ..core.trace import ThreadState, Tracer, ctx, enter, leave, typeof
from ..types.avals import Aval, ShapedArray, matches
from ..types.memory import Space
from ..types.refs import RefAval, inner, ref_aval
from ..types.shape import less, maximum
from .arithmetic import sub
from .convert import convert_element_type_p
from .creation import full
from .families import add
from .indexing import gather_p
from .shape import as_array, broadcast_axis, instantiate, move_axis
from .sharding import move
from .slicing import dynamic_slice_p, dynamic_update_slice, slice_p


class View(ByKey):
    """A part of an array, as a lens. The base class is the whole array.

    `ops` are its operands, the same for all functions. Views are hashable and compared by value,
    since they are params.
    """

    __slots__ = ()
    is_value = True     # see `core.identity`

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        templates.by_identity(cls)      # equal ones are the same argument of `applied`

    def _key(self) -> tuple[Reference, ...]:
        return ()

    def aval(self, inner: ShapedArray, *ops: ShapedArray) -> ShapedArray:
        """The type of the part."""
        return inner

    def check_inside(self, inner: ShapedArray, *ops: Reference) -> None:
        """ValueError for a part that is known to leave the array: a part may, only masked reads and
        writes of it are meant so."""

    def read(self, x: Array, *ops: ArrayLike) -> Array:
        """The part."""
        return x

    def write(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        """The array with another part."""
        return as_array(v)

    def add(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        """The array with the part increased."""
        aval: Any = typeof(x)
        return aval.vspace_add(x, v) if aval.is_high else add(x, v)

    def shown(self, inner: ShapedArray, ops: Sequence[str]) -> str:
        """The text behind the reference's name in a program."""
        return "[...]"


WHOLE = View()


# The functions of views as functions of the library, whose recordings are kept by types.
def _read(view: View, x: Array, *ops: ArrayLike) -> Array:
    return view.read(x, *ops)


def _write(view: View, x: Array, v: Array, *ops: ArrayLike) -> Array:
    return view.write(x, v, *ops)


def _add(view: View, x: Array, v: Array, *ops: ArrayLike) -> Array:
    return view.add(x, v, *ops)


def applied(fun: Callable[..., Array], view: View, *args: Reference) -> Array:
    """The result of a function of a view, by its template where it is recorded."""
    trace = ctx.trace
    if view is WHOLE or type(trace) is not StagingTrace:
        return fun(view, *args)
    return templates.call(trace, fun, (view, *args), {})


class Viewed(View):
    """Several views, each into the part that the last one selects; `counts` of their operands."""

    __slots__ = ("views", "counts")

    def __init__(self, views: Sequence[View], counts: Sequence[int]) -> None:
        self.views, self.counts = tuple(views), tuple(counts)

    def _key(self) -> tuple[Reference, ...]:
        return self.views, self.counts

    def _parts(self, ops: Sequence[Reference]) -> list[tuple[View, Sequence[Reference]]]:
        parts, start = [], 0
        for view, count in zip(self.views, self.counts, strict=True):
            parts.append((view, ops[start:start + count]))
            start += count
        return parts

    def aval(self, inner: ShapedArray, *ops: ShapedArray) -> ShapedArray:
        for view, its in self._parts(ops):
            inner = view.aval(inner, *its)
        return inner

    def check_inside(self, inner: ShapedArray, *ops: Reference) -> None:
        for view, its in self._parts(ops):
            view.check_inside(inner, *its)
            inner = view.aval(inner, *map(typeof, its))

    def read(self, x: Array, *ops: ArrayLike) -> Array:
        for view, its in self._parts(ops):
            x = view.read(x, *its)
        return x

    def write(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return self._changed(x, v, ops, "write")

    def add(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return self._changed(x, v, ops, "add")

    def _changed(self, x: Array, v: Array, ops: Sequence[ArrayLike], how: str) -> Array:
        # Inwards each view reads the part that the next one selects from; outwards they are put
        # back.
        *outer, (last, its) = self._parts(ops)
        parts = [x]
        for view, others in outer:
            parts.append(view.read(parts[-1], *others))
        v = getattr(last, how)(parts.pop(), v, *its)
        for view, others in reversed(outer):
            v = view.write(parts.pop(), v, *others)
        return v

    def shown(self, inner: ShapedArray, ops: Sequence[str]) -> str:
        text, start = "", 0
        for view, count in zip(self.views, self.counts, strict=True):
            text += view.shown(inner, ops[start:start + count])
            start += count
        return text


class Mapped(View):
    """A view of each element of a mapped reference, or by mapped operands: the view, batched.

    The mapped axis of the part is in front. `dim` and `dims` are the mapped axes of the reference
    and of the operands, or None.
    """

    __slots__ = ("view", "axis", "dim", "dims")

    def __init__(self, view: View, axis: Axis, dim: int | None, dims: Sequence[int | None]) -> None:
        self.view, self.axis, self.dim, self.dims = view, axis, dim, tuple(dims)

    def _key(self) -> tuple[Reference, ...]:
        return self.view, self.axis, self.dim, self.dims

    def _run(self, fun: Callable[..., Array], xs: Sequence[ArrayLike], dims: Sequence[int | None],
             dst: int | None) -> Array:
        (out,), (dim,) = self.axis.batched(lambda *args: [fun(*args)], xs, dims)
        if dst is None:     # the reference is not mapped: all elements read one part
            return out
        return broadcast_axis(out, self.axis.size, dst) if dim is None else move_axis(out, dim, dst)

    def aval(self, inner: ShapedArray, *ops: ShapedArray) -> ShapedArray:
        one = inner if self.dim is None else inner.without_axis(self.dim)
        ops = tuple([a if d is None else a.without_axis(d)
                     for a, d in zip(ops, self.dims, strict=True)])
        return self.view.aval(one, *ops).with_axis(0, self.axis.size, self.axis.mesh_axis)

    def read(self, x: Array, *ops: ArrayLike) -> Array:
        return self._run(self.view.read, [x, *ops], [self.dim, *self.dims], 0)

    def write(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return self._run(self.view.write, [x, v, *ops], [self.dim, 0, *self.dims], self.dim)

    def add(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return self._run(self.view.add, [x, v, *ops], [self.dim, 0, *self.dims], self.dim)

    def shown(self, inner: ShapedArray, ops: Sequence[str]) -> str:
        text = self.view.shown(inner, ops)
        if self.dim is None:
            return text
        return f"{{mapped {self.dim}}}{text}"


# Views of what primitives read: their transposes add there.

class Sliced(View):
    """The part that `slice` reads."""

    __slots__ = ("start", "limit", "strides")

    def __init__(self, start: Sequence[int], limit: Sequence[int], strides: Sequence[int] | None
                 ) -> None:
        self.start, self.limit, self.strides = start, limit, strides

    def _key(self) -> tuple[object, ...]:
        return self.start, self.limit, self.strides

    def aval(self, inner: ShapedArray, *ops: ShapedArray) -> ShapedArray:
        return slice_p.result_avals((inner,), self._params())

    def _params(self) -> Params:
        return {"start_indices": self.start, "limit_indices": self.limit, "strides": self.strides}

    def read(self, x: Array, *ops: ArrayLike) -> Array:
        return slice_p.bind(x, **self._params())

    def write(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        if self.strides is None:
            return dynamic_update_slice(x, v, self.start)
        change: Any = slice_p.transpose(sub(v, self.read(x)), Linear(typeof(x)), **self._params())
        return add(x, change[0])

    def add(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return self.write(x, add(self.read(x), v))

    def shown(self, inner: ShapedArray, ops: Sequence[str]) -> str:
        steps = self.strides or (1,) * len(self.start)
        return "[" + ",".join([f"{a}:{b}" + (f":{c}" if c != 1 else "") for a, b, c in zip(
            self.start, self.limit, steps, strict=True)]) + "]"


class Window(View):
    """The part that `dynamic_slice` reads; the starts are operands."""

    __slots__ = ("params",)

    def __init__(self, params: Params) -> None:
        self.params = tuple(sorted(params.items()))

    def _key(self) -> tuple[object, ...]:
        return self.params

    @property
    def sizes(self) -> tuple[int, ...]:
        """The window's shape."""
        return dict(self.params)["slice_sizes"]

    def aval(self, inner: ShapedArray, *ops: ShapedArray) -> ShapedArray:
        # A window that leaves its array has a type, too, and one whose place varies otherwise.
        vma = inner.vma.union(*[op.vma for op in ops])
        room = inner.update(shape=tuple(map(maximum, inner.shape, self.sizes)), vma=vma)
        return dynamic_slice_p.result_avals((room, *[op.update(vma=vma) for op in ops]),
                                            dict(self.params))

    def check_inside(self, inner: ShapedArray, *ops: Reference) -> None:
        for axis, (start, size, n) in enumerate(zip(ops, self.sizes, inner.shape, strict=True)):
            first = 0 if isinstance(start, Tracer) else int(start)
            if less(n, first + size):
                raise ValueError(
                    f"ds: Out of bound slice: elements {first} to {first + size - 1} of axis {axis}"
                    f" of {inner} given; they must be within; take fewer, or read and write them "
                    "under a mask: load and store of pallas.triton.")

    def read(self, x: Array, *ops: ArrayLike) -> Array:
        return dynamic_slice_p.bind(x, *ops, **dict(self.params))

    def write(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return dynamic_update_slice(x, v, ops, allow_negative_indices=False)

    def add(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return self.write(x, add(self.read(x, *ops), v), *ops)

    def shown(self, inner: ShapedArray, ops: Sequence[str]) -> str:
        return "[" + ",".join([f"{o}:{o}+{n}" for o, n in zip(
            ops, dict(self.params)["slice_sizes"], strict=True)]) + "]"


class Gathered(View):
    """The part that `gather` reads; the indices are an operand. It is only added to."""

    __slots__ = ("params",)

    def __init__(self, params: Params) -> None:
        self.params = tuple(sorted(params.items()))

    def _key(self) -> tuple[object, ...]:
        return self.params

    def aval(self, inner: ShapedArray, *ops: ShapedArray) -> ShapedArray:
        return gather_p.result_avals((inner, *ops), dict(self.params))

    def read(self, x: Array, *ops: ArrayLike) -> Array:
        return gather_p.bind(x, *ops, **dict(self.params))

    def add(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return gather_p.grown(x, v, *ops, **dict(self.params))

    def shown(self, inner: ShapedArray, ops: Sequence[str]) -> str:
        return f"[{ops[0]}]"


def part_read(prim: Primitive, params: Params) -> View | None:
    """The view of the part that an operation reads of its first operand, if that is all."""
    if prim is slice_p:
        return Sliced(params["start_indices"], params["limit_indices"], params["strides"])
    return Window(params) if prim is dynamic_slice_p else (
        Gathered(params) if prim is gather_p else None)


# Primitives --------------------------------------------------------------------------------------

def made_ref(x: Array) -> Ref:
    """A cell with a value of the current trace, which nobody else has."""
    trace = ctx.trace
    line = getattr(trace, "source", None) or source.user_frame()    # of the equation discharged
    return Ref(x, None if trace is ThreadState.trace else trace, line)


class NewRef(Primitive):
    """params: memory_space, kind, pin."""

    spread = staticmethod(by_body)
    lower = jvp = transpose = vmap = None

    def bind(self, x: Reference, **params: object) -> Reference:
        # Only recording traces know references; for the others this is a cell.
        if type(ctx.trace) is StagingTrace:
            return super().bind(x, **params)
        return self.on_cells([x], params)

    def infer(self, x: ShapedArray, *, memory_space: Space | None, kind: Hashable, pin: bool
              ) -> RefAval:
        return ref_aval(_content_aval(x, memory_space))

    def on_cells(self, ins: Sequence[Reference], params: Params) -> Ref:
        """The cell that it makes where no program is recorded, or where one is discharged."""
        x, = ins
        return made_ref(_typed(x, _content_aval(typeof(x), params["memory_space"])))

    def shown(self, eqn: OlympusprEqn) -> Params:
        return {k: v for k, v in eqn.params.items() if k != "pin" or v}


def _content_aval(aval: ShapedArray, space: Space | None) -> ShapedArray:
    aval = aval.strong()
    return aval if space is None else aval.update(memory_space=space)


def _typed(x: Reference, aval: ShapedArray) -> Reference:
    """A value at the type of a content: weak types are none of places."""
    if typeof(x).weak_type:
        x = convert_element_type_p.bind(x, new_dtype=aval.dtype, weak_type=False, sharding=None)
    return move(as_array(x), aval.memory_space)


class EmptyRef(Primitive):
    """params: ty, memory_space, pin. The content is zeros, or has parts of zeros, until it is
    written.
    """

    lower = jvp = transpose = vmap = None

    def bind(self, **params: object) -> Reference:
        if type(ctx.trace) is StagingTrace:
            return super().bind(**params)
        return self.on_cells([], params)

    def infer(self, *, ty: ShapedArray, memory_space: Space | None, pin: bool) -> RefAval:
        return ref_aval(_content_aval(ty, memory_space))

    def on_cells(self, ins: Sequence[Reference], params: Params) -> Ref:
        aval: Any = _content_aval(params["ty"], params["memory_space"])
        if aval.is_high:
            return made_ref(_of_zeros(aval))
        return made_ref(move(full(aval.shape, 0, aval.dtype), aval.memory_space))


def _of_zeros(aval: Aval) -> Reference:
    """A value of a user's type whose parts are zeros."""
    # Where programs have values of the type, one of traced parts is none: it is a constant.
    trace = ctx.trace
    of_parts = isinstance(trace, StagingTrace) and type(trace) is not StagingTrace
    outer = enter(trace if of_parts else ThreadState.trace)
    try:
        parts: list[Any] = aval.lo_ty()
        return aval.raise_val(*[full(a.shape, 0, a.dtype) for a in parts])
    finally:
        leave(outer)


class OnRef(Primitive, abstract=True):
    """An operation on a reference, the first operand.

    on_cell(ref, *args, **params) its effect on a cell, by pure functions of the content
    """

    takes_refs = True
    spread = staticmethod(by_body)      # a part is cut as its view says
    effect = "read"
    lower = transpose = None
    on_cell: Any

    def bind(self, ref: Reference, *args: Reference, **params: object) -> Reference:
        if at_hand(ref):
            for x in args if self.effect != "read" else ():     # else a value is made of them
                check_value(self.name, ref, x)
            return self.on_cell(ref, *args, **params)
        if ENDED:
            check_there(ref)
        return super().bind(ref, *args, **params)

    def on_cells(self, ins: Sequence[Reference], params: Params) -> Reference:
        return self.on_cell(*ins, **params)

    def effects(self, avals: Sequence[Reference], params: Params) -> frozenset[Effect]:
        return _EFFECTS[self.effect]

    def check(self, ref: Reference) -> ShapedArray:
        """The content's aval; TypeError for anything but a reference."""
        if type(ref) is not RefAval:
            raise TypeError(f"{self.name}: {ref} given; a reference is required, which new_ref "
                            "makes.")
        return ref.inner

    def check_operand(self, x: ShapedArray, wanted: ShapedArray, ref: RefAval) -> None:
        """TypeError for a value that is not of the type of the part that it takes the place of."""
        if not matches(x, wanted):
            raise TypeError(f"{self.name}: {x} given for a part {wanted} of {ref}; the type of the "
                            "part is required; broadcast and convert it.")


_EFFECTS = {kind: frozenset([InputEffect(kind, 0)]) for kind in InputEffect.KINDS}


class Get(OnRef):
    """params: view. Operands: the reference, the view's."""

    def infer(self, ref: RefAval, *ops: ShapedArray, view: View) -> ShapedArray:
        return view.aval(self.check(ref), *ops)

    def on_cell(self, ref: Ref, *ops: ArrayLike, view: View) -> Array:
        with ref._held():
            content = ref._value
            part = applied(_read, view, content, *ops)
            if part is content:
                ref._lent = True
        return part

    def jvp(self, primals: Sequence[Reference], tangents: Sequence[Tangent], *, view: View
            ) -> tuple[Array, Tangent]:
        out = self.bind(*primals, view=view)
        if type(tangents[0]) is Zero:
            return out, Zero(typeof(out).to_tangent_aval())
        return out, self.bind(tangents[0], *primals[1:], view=view)

    def vmap(self, axis: Axis, args: Sequence[Reference], dims: Sequence[int | None], *, view: View
             ) -> tuple[Array, MappedAxis]:
        if inner(typeof(args[0])).is_high:       # which is read as a whole
            return self.bind(*args, view=view), dims[0]
        return self.bind(*args, view=Mapped(view, axis, dims[0], dims[1:])), 0

    def text(self, eqn: OlympusprEqn, outs: str, ins: Sequence[str]) -> str:
        """The equation in a printed program."""
        return f"{outs} <- {_place(eqn, ins, 1)}"


def _place(eqn: OlympusprEqn, ins: Sequence[str], first: int) -> str:
    inner = eqn.invars[0].aval
    return ins[0] + eqn.params["view"].shown(getattr(inner, "inner", inner), ins[first:])


class _Writes(OnRef, abstract=True):
    """Operands: the reference, a value, the view's."""

    def vmap(self, axis: Axis, args: Sequence[Reference], dims: Sequence[int | None], *, view: View
             ) -> tuple[Reference, Reference]:
        ref, v, *ops = args
        if dims[0] is None:
            raise outer_reference(self.name, typeof(ref), False)
        if inner(typeof(ref)).is_high:
            return self._vmap_whole(ref, v, dims, view)
        v = broadcast_axis(v, axis.size, 0) if dims[1] is None else move_axis(v, dims[1], 0)
        out = self.bind(ref, v, *ops, view=Mapped(view, axis, dims[0], dims[2:]))
        return (out, [] if self.multiple_results else 0)

    def _vmap_whole(self, ref: Reference, v: Reference, dims: Sequence[MappedAxis], view: View
                    ) -> tuple[Reference, Reference]:
        if dims[1] != dims[0]:
            raise TypeError(f"{self.name}: {typeof(v)} given, mapped by {dims[1]}, for a reference "
                            f"{typeof(ref)} that is mapped by {dims[0]}; values mapped alike are "
                            "required.")
        out = self.bind(ref, v, view=view)
        return (out, [] if self.multiple_results else dims[0])


class Swap(_Writes):
    """params: view. The result is the old content."""

    effect = "write"

    def infer(self, ref: RefAval, v: ShapedArray, *ops: ShapedArray, view: View) -> ShapedArray:
        part = view.aval(self.check(ref), *ops)
        self.check_operand(v, part, ref)
        return part

    def on_cell(self, ref: Ref, v: Array, *ops: ArrayLike, view: View) -> Array:
        with ref._held():
            old = applied(_read, view, ref._value, *ops)
            self.on_set(ref, v, *ops, view=view)
        return old

    def on_set(self, ref: Ref, v: Array, *ops: ArrayLike, view: View) -> None:
        """Write, and read nothing."""
        with ref._held():
            new = applied(_write, view, ref._value, v, *ops)
            ref._value, ref._lent = new, new is v

    def jvp(self, primals: Sequence[Reference], tangents: Sequence[Tangent], *, view: View
            ) -> tuple[Array, Tangent]:
        out = self.bind(*primals, view=view)
        if type(tangents[0]) is Zero:
            if type(tangents[1]) is not Zero:
                raise outer_reference(self.name, typeof(primals[0]), True)
            return out, Zero(typeof(out).to_tangent_aval())
        return out, self.bind(tangents[0], instantiate(tangents[1]), *primals[2:], view=view)

    def text(self, eqn: OlympusprEqn, outs: str, ins: Sequence[str]) -> str:
        """The equation in a printed program."""
        place = _place(eqn, ins, 2)
        if outs.startswith("_"):
            return f"{place} <- {ins[1]}"
        return f"{outs}, {place} <- {place}, {ins[1]}"


class AddUpdate(_Writes):
    """params: view. No result."""

    effect = "add"
    multiple_results = True

    def infer(self, ref: RefAval, v: ShapedArray, *ops: ShapedArray, view: View
              ) -> list[ShapedArray]:
        self.check_operand(v, view.aval(self.check(ref), *ops), ref)
        return []

    def on_cell(self, ref: Ref, v: Array, *ops: ArrayLike, view: View) -> list[Array]:
        with ref._held():
            ref._value, ref._lent = applied(_add, view, ref._value, v, *ops), False
        return []

    def jvp(self, primals: Sequence[Reference], tangents: Sequence[Tangent], *, view: View
            ) -> tuple[list[Array], list[Tangent]]:
        self.bind(*primals, view=view)
        if type(tangents[1]) is not Zero:
            if type(tangents[0]) is Zero:
                raise outer_reference(self.name, typeof(primals[0]), True)
            self.bind(tangents[0], tangents[1], *primals[2:], view=view)
        return [], []

    def text(self, eqn: OlympusprEqn, outs: str, ins: Sequence[str]) -> str:
        """The equation in a printed program."""
        return f"{_place(eqn, ins, 2)} += {ins[1]}"


class _Ends(OnRef, abstract=True):
    """Ends the reference: nothing is read or written there afterwards."""

    def bind(self, ref: Reference, *args: Reference, **params: object) -> Reference:
        out = super().bind(ref, *args, **params)
        if isinstance(ref, JitTracer):
            ENDED[ref._bound] = self.name, source.user_frame()
        return out


class Freeze(_Ends):
    """The content of a reference that ends."""

    def infer(self, ref: RefAval) -> ShapedArray:
        return self.check(ref)

    def on_cell(self, ref: Ref) -> Array:
        content = ref._content()
        ref._end(self.name)
        return content

    def jvp(self, primals: Sequence[Reference], tangents: Sequence[Tangent]
            ) -> tuple[Array, Tangent]:
        out = self.bind(*primals)
        if type(tangents[0]) is Zero:
            return out, Zero(typeof(out).to_tangent_aval())
        return out, self.bind(tangents[0])

    def vmap(self, axis: Axis, args: Sequence[Reference], dims: Sequence[int | None]
             ) -> tuple[Array, int | None]:
        return self.bind(*args), dims[0]


class FreeRef(_Ends):
    """The end of a reference, and of its content."""

    effect = "write"
    multiple_results = True

    def infer(self, ref: RefAval) -> list[ShapedArray]:
        self.check(ref)
        return []

    def on_cell(self, ref: Ref) -> list[Array]:
        ref._content()
        ref._end(self.name)
        return []

    def jvp(self, primals: Sequence[Reference], tangents: Sequence[Tangent]
            ) -> tuple[list[Array], list[Tangent]]:
        self.bind(*primals)
        if type(tangents[0]) is not Zero:
            self.bind(tangents[0])
        return [], []

    def vmap(self, axis: Axis, args: Sequence[Reference], dims: Sequence[int | None]
             ) -> tuple[list[Array], list[int | None]]:
        return self.bind(*args), []


#: By the variable of a recorded reference that was ended: by what, and where.
ENDED: weakref.WeakKeyDictionary[Var, Any] = weakref.WeakKeyDictionary()


def check_there(ref: Reference) -> None:
    """ValueError for a recorded reference that was ended."""
    end = ENDED.get(ref._bound) if isinstance(ref, JitTracer) else None
    if end is not None:
        raise after_end(ref.aval, None, *end)


def on_references(prim: Higher, args: Sequence[Reference], params: Params) -> Reference:
    """The results of a primitive with a body that touches references; None if it touches none here.

    Where values are known, the body runs on contents: as `get`, the body without references,
    `swap`. So transformations see no references but those that it hands on.
    """
    trace = ctx.trace
    if type(trace) is StagingTrace and not any(map(made_above, args)):
        for x in args if ENDED else ():
            check_there(x)
        return None
    if trace.evaluates:
        with lock:
            return prim.discharged(list(args), params)
    kinds: dict[int, set[str]] = {}
    for e in input_effects(prim.effects(tuple(map(typeof, args)), params)):
        kinds.setdefault(e.index, set()).add(e.kind)
    if not kinds:
        return None
    # A loop's condition and body may have one reference, which is one cell. One that was made in
    # this trace ends with it: a later pass can have no more than its content.
    cells: dict[int, Ref] = {}
    for ref in [args[i] for i in kinds]:
        if identity_of(ref) not in cells:
            cells[identity_of(ref)] = Ref(get_p.bind(ref, view=WHOLE), trace, stands_for=None if (
                type(ref) is Ref and ref._trace is trace) else ref)
    ins = [cells[identity_of(x)] if i in kinds else x for i, x in enumerate(args)]
    outs = prim.discharged(ins, params)
    for i, uses in kinds.items():
        if uses != {"read"}:
            ref, new = args[i], ins[i]._value
            if at_hand(ref):
                check_value("ref[...] = x", ref, new, partial(
                    _line_of_write, prim, params, i, len(args)))
            swap_p.bind(ref, new, view=WHOLE)
    return outs


def _line_of_write(prim: Reference, params: Params, place: int, count: int) -> Source | None:
    """Where a body of the primitive writes the reference that is this operand."""
    for _, body, its in prim.applied(params, range(count)):
        inputs = {v for v, i in zip(body.olympuspr.invars, its, strict=True) if i == place}
        for eqn in body.eqns:
            effects = eqn.primitive.effects(tuple([v.aval for v in eqn.invars]), eqn.params)
            for e in input_effects(effects):
                if e.kind != "read" and eqn.invars[e.index] in inputs:
                    return _line_of_write(eqn.primitive, eqn.params, e.index, len(
                        eqn.invars)) if eqn.primitive.programs != () else eqn.source
    return None


Higher.on_references = staticmethod(on_references)
new_ref_p, empty_ref_p = NewRef("new_ref"), EmptyRef("empty_ref")
get_p, swap_p, addupdate_p = Get("get"), Swap("swap"), AddUpdate("addupdate")
freeze_p, free_ref_p = Freeze("freeze"), FreeRef("free_ref")
