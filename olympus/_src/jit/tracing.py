"""Looking at programs without running them: `make_olympuspr`, `eval_shape`; naming and escaping.

A scope's name travels in the naming context of the equations recorded under it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Literal, overload

from ..base import lib
from ..base.source import api_boundary, filter_traceback
from ..base.typing import Array, ArrayLike, Params, PyTree
from ..base.util import WithAux, name_of, wraps
from ..core.context import ThreadState, ctx
from ..core.ir import ClosedOlympuspr, DebugInfo
from ..core.primitive import Primitive
from ..core.staging import stage
from ..core.trace import Trace, Tracer, enter, leave
from ..types.avals import ShapedArray, ShapeDtypeStruct
from ..types.shape import entries, static_int
from ..types.tree import flatten_arguments, keystr, tree_flatten, tree_flatten_with_path
from ..types.tree_registry import PyTreeDef
from .arguments import abstract, argument_name, check_callable, check_results, too_large


def _trace(what: str, fun: Callable, args: Sequence[ArrayLike | ShapedArray],
           kwargs: dict[str, PyTree], statics: Sequence[int] = ()
           ) -> tuple[ClosedOlympuspr, PyTreeDef]:
    """(program, structure of the result) of a call; arguments need only shapes and dtypes."""
    dynamic = [a for i, a in enumerate(args) if i not in statics]
    positions: list[int | str] = [i for i in range(len(args)) if i not in statics]
    leaves, in_tree = flatten_arguments(what, (dynamic, kwargs))
    # Keywords as a tree has them: in the order of their names.
    named = zip([*positions, *sorted(kwargs)], [*dynamic, *[kwargs[k] for k in sorted(kwargs)]])
    names = tuple([argument_name(fun, where) + keystr(path) for where, tree in named
                   for path, _ in tree_flatten_with_path(tree)[0]])
    avals = []
    for name, leaf in zip(names, leaves):
        try:
            avals.append(abstract(leaf))
        except OverflowError:
            raise too_large(what, leaf, name) from None
        except TypeError:
            raise TypeError(f"{what}: Error interpreting argument to {name_of(fun)} as an abstract "
                            f"array. The problematic value is of type {type(leaf)} and was passed "
                            f"to the function at path {name}.\n  It is {leaf!r:.60}; an array, or "
                            "anything with shape and dtype, is required; bind other values with "
                            "functools.partial.") from None

    def flat(*xs: Array) -> tuple[list[Array], tuple[PyTreeDef, tuple[str, ...]]]:
        given, named = in_tree.unflatten(xs)
        rest = iter(given)
        full = [args[i] if i in statics else next(rest) for i in range(len(args))]
        out = fun(*full, **named)
        outs, out_tree = tree_flatten(out)
        check_results(what, fun, out, outs)
        paths = tuple([f"result{keystr(path)}" for path, _ in tree_flatten_with_path(out)[0]])
        return outs, (out_tree, paths)

    # Names of arguments are known before, for messages while tracing; names of results only after.
    with_aux = WithAux(flat)
    closed = stage(with_aux, avals, DebugInfo("jit", name_of(fun), names))
    out_tree, paths = with_aux.aux
    closed.olympuspr.debug_info = DebugInfo("jit", name_of(fun), names, paths)
    return closed, out_tree


def _structs(closed: ClosedOlympuspr, out_tree: PyTreeDef) -> PyTree:
    return out_tree.unflatten(list(map(ShapeDtypeStruct.of_type, closed.out_avals)))


@overload
def make_olympuspr(fun: Callable[..., PyTree], static_argnums: int | Sequence[int] = (),
                   axis_env: Sequence[tuple[Hashable, int]] | None = None,
                   return_shape: Literal[False] = False) -> Callable[..., ClosedOlympuspr]: ...


@overload
def make_olympuspr(fun: Callable[..., PyTree], static_argnums: int | Sequence[int] = (),
                   axis_env: Sequence[tuple[Hashable, int]] | None = None, *,
                   return_shape: Literal[True]
                   ) -> Callable[..., tuple[ClosedOlympuspr, PyTree]]: ...


def make_olympuspr(fun: Callable[..., PyTree], static_argnums: int | Sequence[int] = (),
                   axis_env: Sequence[tuple[Hashable, int]] | None = None,
                   return_shape: bool = False) -> Callable[..., PyTree]:
    """A function that returns the program of `fun` for given arguments.

    Args:
      fun: a function of pytrees of arrays.
      static_argnums: positional arguments that are Python values of the program.
      axis_env: pairs (name, size) of axes that collectives in the function may name.
      return_shape: return also the result's structure, with a `ShapeDtypeStruct` at each leaf.
    Returns: A function of the same arguments that returns a `ClosedOlympuspr`; arguments may be
      arrays, or anything with a shape and a dtype.

    >>> olympus.make_olympuspr(lambda x: 2.0 * x)(3.0)
    { lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) }
    """
    check_callable("make_olympuspr", fun)
    numbers = tuple([static_int(n, "make_olympuspr", "static_argnums")
                     for n in entries(static_argnums)])
    try:
        axes = dict(axis_env or ())
    except (TypeError, ValueError):
        raise TypeError(f"make_olympuspr: axis_env {axis_env!r} given; pairs (name, size) are "
                        "required.") from None
    axes = {name: static_int(size, "make_olympuspr", "the size of an axis of axis_env")
            for name, size in axes.items()}

    @wraps(fun)
    def make(*args: ArrayLike | ShapedArray, **kwargs: PyTree
             ) -> ClosedOlympuspr | tuple[ClosedOlympuspr, PyTree]:
        outer = ctx.axes
        try:
            if axes:
                ctx.axes = {**outer, **axes}
            # From the end: calls may have different numbers of arguments.
            statics = [i + len(args) if i < 0 else i for i in numbers]
            closed, out_tree = _trace("make_olympuspr", fun, args, kwargs, statics)
            return (closed, _structs(closed, out_tree)) if return_shape else closed
        except Exception as error:
            filter_traceback(error)
            raise
        finally:
            ctx.axes = outer

    name = name_of(fun)
    make.__name__ = f"make_olympuspr({name})"
    make.__qualname__ = f"make_olympuspr({getattr(fun, '__qualname__', name)})"
    make.__module__ = "olympus"
    return make


@api_boundary
def eval_shape(fun: Callable[..., PyTree], *args: PyTree, **kwargs: PyTree) -> PyTree:
    """The shapes and dtypes of a function's result, without computing it.

    Args:
      fun: a function of pytrees of arrays.
      *args, **kwargs: its arguments: arrays, or anything with a shape and a dtype.
    Returns: The result's pytree, with a `ShapeDtypeStruct` at each leaf.

    >>> olympus.eval_shape(onp.dot, onp.ones((2, 3)), onp.ones(3))
    ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    check_callable("eval_shape", fun)
    if type(fun) is lib.PjitFunction:       # it knows where its results are to be
        jitted: Any = fun
        return jitted.eval_shape(*args, **kwargs)
    return _structs(*_trace("eval_shape", fun, args, kwargs))


# Scopes -----------------------------------------------------------------------------------------

def named_scope(name: str) -> contextlib._GeneratorContextManager[None]:
    """Context manager and decorator: operations traced inside carry `name`, shown by profilers.

    Args: name: the scope's name; scopes nest.

    TypeError unless `name` is a string.

    >>> @olympus.jit
    ... def f(x):
    ...     with olympus.named_scope("double"):
    ...         return x + x
    >>> "double" in f.lower(1.0).as_text(debug_info=True)
    True
    """
    if not isinstance(name, str):
        raise TypeError("named_scope: named_scope name argument must be a string; "
                        f"{name!r} of type {type(name).__name__} given.")
    return _scope(name)     # apart, since the body of a generator runs only when it is entered


@contextlib.contextmanager
def _scope(name: str) -> Iterator[None]:
    outer = ctx.scope
    ctx.scope = outer.extend(name)
    try:
        yield
    finally:
        ctx.scope = outer


def named_call(fun: Callable, *, name: str | None = None) -> Callable:
    """Put a function's operations under a scope with its name, or with another one.

    Args:
      fun: the function.
      name: the scope's name; None is the function's.
    Returns: A function with the same arguments and result.

    >>> olympus.named_call(lambda x: x + 1, name="increment")(1)
    2
    """
    check_callable("named_call", fun)
    return wraps(fun)(named_scope(name_of(fun) if name is None else name)(fun))


@contextlib.contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Context manager and decorator: operations inside run at once, even while tracing.

    Calls that depend on traced values act as outside.

    >>> @olympus.jit
    ... def f(x):
    ...     with olympus.ensure_compile_time_eval():
    ...         n = int(onp.arange(4).sum())
    ...     return x * n
    >>> f(1)
    Array(6, dtype=int32, weak_type=True)
    """
    trace = ctx.trace       # outside of all others, operations run at once anyway
    outer = enter(trace if trace is ThreadState.trace else _FoldingTrace(trace))
    try:
        yield
    finally:
        leave(outer)


class _FoldingTrace(Trace):
    """Evaluates what depends on no traced value; passes the rest on to `parent`."""

    __slots__ = ()
    parent: Trace       # never None: it is made where something is traced

    def process(self, prim: Primitive, args: tuple, params: Params) -> Any:
        # An operation that names a mapped axis depends on its trace without an operand of it.
        traced = any(isinstance(a, Tracer) for a in args) or any(
            prim.uses_axis(name, params) for name in ctx.axes)
        trace = self.parent if traced else ThreadState.trace
        outer = enter(trace)
        try:
            return trace.process(prim, args, params)
        finally:
            leave(outer)

    def process_custom(self, prim: Primitive, fun: Callable, rules: object, args: tuple,
                       params: Params) -> object:
        if not any(isinstance(a, Tracer) for a in args):
            return fun(*args)       # it may close over traced values
        outer = enter(self.parent)
        try:
            return self.parent.process_custom(prim, fun, rules, args, params)
        finally:
            leave(outer)
