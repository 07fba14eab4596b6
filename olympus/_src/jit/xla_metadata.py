"""Metadata of operations for XLA: attributes of its frontends."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, overload

from ..base.lib import mlir
from ..base.typing import Array, ArrayLike, IrValue, P, Params, PyTree, R
from ..base.util import member, wraps
from ..control.call import Call
from ..core import tags
from ..core.context import ROOT, Metadata, Scope, ctx, outermost
from ..core.effects import Effect
from ..core.ir import ClosedOlympuspr
from ..core.primitive import Axis, Builder, Cotangent, Linear, Primitive, Tangent
from ..lax.queries import KEEP
from ..lax.sharding import move
from ..types.avals import ShapedArray
from ..types.memory import Space
from ..types.shape import sequence
from ..types.tree import flatten_axes, tree_flatten, tree_map, tree_unflatten
from .arguments import check_callable
from .jit import JitFunction, JitOptions


class MetadataCall(Call):
    """Apply `olympuspr` to the operands. The other params are what XLA is told of the call."""

    called = False
    fusion = ""

    def lower(self, b: Builder, *args: IrValue, olympuspr: ClosedOlympuspr, **meta: str
              ) -> list[IrValue]:
        return b.call_marked(olympuspr, args, "xla_metadata_call", meta)


class MetadataValue(Primitive):
    """The operand; XLA is told `metadata` of the operation that makes it."""

    spread = staticmethod(tags.same)

    def infer(self, x: ShapedArray, *, metadata: tuple[tuple[str, str], ...]) -> ShapedArray:
        return x

    def lower(self, b: Builder, x: Any, *, metadata: tuple[tuple[str, str], ...]) -> IrValue:
        ir, key = mlir.ir, "mhlo.frontend_attributes"
        if isinstance(x.owner, ir.Block):       # an argument
            return x
        attributes = x.owner.attributes
        # An operation keeps the attributes that it has.
        entries = {k: ir.StringAttr.get(v) for k, v in metadata}
        if key in attributes:
            entries |= {a.name: a.attr for a in attributes[key]}
        attributes[key] = ir.DictAttr.get(entries)
        return x

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], **params: Hashable
            ) -> tuple[Array, Tangent]:
        # An operation's attributes are not its derivative's.
        return self.bind(*primals, **params), tangents[0]

    def transpose(self, ct: Array, x: Linear, **params: Hashable) -> list[Cotangent]:
        return [ct if type(x) is Linear else None]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], **params: Hashable
             ) -> tuple[Array, int | None]:
        return self.bind(*args, **params), dims[0]


xla_metadata_call_p = MetadataCall("xla_metadata_call")
xla_metadata_value_p = MetadataValue("xla_metadata_value")


def _attribute_text(value: object) -> str | None:
    if value is None:
        return None
    # The spelling of booleans in XLA.
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Within:
    """A context manager and decorator: operations within have metadata."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.outer: list[tuple[Scope, Any]] = []    # a stack: functions call themselves

    def __enter__(self) -> None:
        # A program that begins within depends on it as well, so it is a part of C++'s key.
        inner = (outermost.value or ROOT).extend(self.metadata)
        self.outer.append((ctx.scope, outermost.swap_local(inner)))
        ctx.scope = ctx.scope.extend(self.metadata)

    def __exit__(self, *exc_info: object) -> None:
        ctx.scope, around = self.outer.pop()
        outermost.set_local(around)

    def __call__(self, f: Callable[P, R]) -> Callable[P, R]:
        return wraps(f)(_Decorated(f, self))


class _Decorated:
    """A function, and what else it can do (`lower`, …), within metadata."""

    def __init__(self, f: Callable[..., PyTree], within: _Within) -> None:
        self._f, self._within = f, within

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        with self._within:
            return self._f(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._f, name)
        return self._within(found) if callable(found) else found


def set_xla_metadata(x: PyTree = None, **kwargs: PyTree) -> Any:
    """Tell XLA more of operations: attributes that its passes and tools read.

    Args:
      x: a pytree of arrays, to tell it of the operations that make them; if None, of those that are
        traced within a `with` block or a decorated function.
      **kwargs: values by name: strings, numbers or booleans; None takes back an enclosing block's
        value.
    Returns: A context manager that is a decorator, too; for arrays the same ones.

    >>> from olympus.experimental.xla_metadata import set_xla_metadata
    >>> @olympus.jit
    ... def f(x):
    ...     with set_xla_metadata(origin="loss"):
    ...         return x * 2
    >>> 'mhlo.frontend_attributes = {origin = "loss"}' in f.lower(1.0).as_text()
    True
    """
    # Sorted: the order in which they are written makes no other program.
    items = tuple(sorted((k, _attribute_text(v)) for k, v in kwargs.items()))
    if x is None:
        return _Within(Metadata(items))
    # None takes back a block's value; a single value has nothing to take back.
    given = tuple([item for item in items if item[1] is not None])
    return tree_map(lambda leaf: xla_metadata_value_p.bind(leaf, metadata=given), x)


@overload
def xla_metadata_call(f: Callable[P, R], **meta: str) -> Callable[P, R]: ...


@overload
def xla_metadata_call(f: None = None, **meta: str
                      ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def xla_metadata_call(f: Callable[..., PyTree] | None = None, **meta: str
                      ) -> Callable[..., PyTree]:
    """`f`, called as one function with notes for XLA; a decorator if `f` is left out.

    Args:
      f: a function of pytrees of arrays.
      **meta: strings by name, such as `inlineable="false"`.
    Returns: A function of the same arguments. TypeError for values that are no strings.

    >>> from olympus.experimental.scheduling_groups import xla_metadata_call
    >>> f = xla_metadata_call(lambda x: x * 2, inlineable="false")
    >>> 'inlineable = "false"' in olympus.jit(f).lower(1.0).as_text(), f(2.0)
    (True, Array(4., dtype=float32, weak_type=True))
    """
    for key, value in meta.items():
        if not isinstance(value, str):
            raise TypeError(f"xla_metadata_call: {key}={value!r} of type {type(value).__name__} "
                            "given; a string is required.")
    if f is None:
        return functools.partial(xla_metadata_call, **meta)
    info = JitFunction(f, JitOptions())     # it keeps its programs: one for calls of equal types

    @wraps(f)
    def marked(*args: Array, **kwargs: PyTree) -> object:
        arguments = info.signature.arguments(args, kwargs)
        program = info.program(arguments)
        outs = xla_metadata_call_p.bind(*program.lead, *arguments.leaves,
                                        olympuspr=program.closed, **meta)
        return tree_unflatten(program.out_tree, outs)

    return marked


def fused(*, out_spaces: PyTree) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: the function is called as one, which XLA does not take apart.

    Args: out_spaces: the memory spaces of the results: an `olympus.memory.Space`, or a prefix of
        the structure of the results.

    >>> from olympus.experimental.fused import fused
    >>> f = fused(out_spaces=olympus.memory.Space.Device)(lambda x: x * 2)
    >>> 'inlineable = "false"' in olympus.jit(f).lower(1.0).as_text(), f(2.0)
    (True, Array(4., dtype=float32, weak_type=True))
    """
    def decorate(f: Callable[P, R]) -> Callable[P, R]:
        check_callable("fused", f)
        called = xla_metadata_call(f, inlineable="false")

        @wraps(f)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            # The call itself leaves its results where they are.
            leaves, tree = tree_flatten(called(*args, **kwargs))
            spaces = flatten_axes("fused out_spaces", tree, out_spaces)
            return tree_unflatten(tree, [move(x, member(Space, space, "fused: out_spaces"))
                                         for x, space in zip(leaves, spaces, strict=True)])
        return run
    return decorate


def scheduling_group(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: operations of the function are scheduled by XLA as one group of this name.

    Args: name: the name of the group; "group:part" is a group within another.

    >>> from olympus.experimental.scheduling_groups import scheduling_group
    >>> f = scheduling_group("first")(lambda x: x * 2)
    >>> 'scheduling_group = "first"' in olympus.jit(f).lower(1.0).as_text()
    True
    """
    return xla_metadata_call(scheduling_group=name)


class ControlDep(Primitive):
    """XLA computes the first operand before the second one. No results."""

    multiple_results = True
    transpose = None

    def infer(self, src: ShapedArray, dst: ShapedArray) -> list[ShapedArray]:
        return []

    def effects(self, avals: Sequence[ShapedArray], params: Params) -> frozenset[Effect]:
        return KEEP     # without results it were dead code

    def lower(self, b: Builder, src: IrValue, dst: IrValue) -> list[IrValue]:
        manual = b.module.places.manual
        if manual is None or manual.all_manual:
            op = b.ops("stablehlo.custom_call", [src, dst], {
                "call_target_name": mlir.ir.StringAttr.get("control_dep"),
                "has_side_effect": b.attr("true"), "api_version": b.attr("4 : i32")}, [])
            if manual is None:      # for several devices it is taken out: XLA knows it of one only
                b.module.hints.append(op)
        return []

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], **params: Hashable
            ) -> tuple[list[Array], list[Tangent]]:
        return self.bind(*primals), []

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], **params: Hashable
             ) -> tuple[list[Array], list[int | None]]:
        return self.bind(*args), []


control_dep_p = ControlDep("control_dep")


def control_dep(src: ArrayLike, dst: ArrayLike) -> None:
    """Have XLA compute one value of a program before another, which does not depend on it.

    Args:
      src: an array; what makes it runs first.
      dst: an array that something else makes.
    Returns: None. A program that XLA divides over several devices is scheduled without it.

    >>> from olympus.experimental.control_deps import control_dep
    >>> @olympus.jit
    ... def f(x):
    ...     a, b = onp.sin(x), onp.cos(x)
    ...     control_dep(b, a)
    ...     return a + b
    >>> f.lower(1.0).as_text().count("@control_dep")
    1
    """
    control_dep_p.bind(src, dst)


def schedule(ops: Sequence[ArrayLike]) -> None:
    """Have XLA compute values of a program in the order given: `control_dep` of neighbours.

    Args: ops: arrays.

    >>> from olympus.experimental.control_deps import schedule
    >>> @olympus.jit
    ... def f(x):
    ...     a, b, c = onp.sin(x), onp.cos(x), onp.tan(x)
    ...     schedule([c, a, b])
    ...     return a + b + c
    >>> f.lower(1.0).as_text().count("@control_dep")
    2
    """
    for src, dst in itertools.pairwise(sequence(ops, "schedule", "ops")):
        control_dep_p.bind(src, dst)
