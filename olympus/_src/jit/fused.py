"""`fused`: a library function of several operations as one compiled program when called eagerly.

    evaluating              one C++ call of the compiled function
    while recording         the operations themselves, from a template where there is one
    eager grad and vmap     bind `call` with the body staged once per type, so that they run few
                            executables and not one per primitive; with `inline`, the operations
"""
# What `functools.wraps` made has attributes that checkers do not know of.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Container
from typing import Any, cast, overload

from ..base import lib, source
from ..base.config import numpy_dtype_promotion, numpy_rank_promotion
from ..base.messages import in_lines
from ..base.spelling import array_method
from ..base.typing import ArrayLike, F, PyTree
from ..core import templates
from ..core.ir import Literal
from ..core.trace import SCALAR_TYPES, Tracer, ctx
from ..devices.array import WRAPPERS
from ..runtime.eager import BASE, FAILURES, check_deleted, number_array, placed
from ..types import dtypes
from ..types.tree import tree_leaves
from .jit import JitOptions, make_jit

_PYTHON_NUMBERS = frozenset((int, float))
_PASSED_ON = frozenset((lib.ArrayImpl, tuple, bool, str, type(None)))      # as C++ takes them
_ARRAYS = frozenset((lib.ArrayImpl,))
_ABSENT: Any = object()
_PROMOTION = "dtype promotion"
_GENERAL = frozenset(("an operation", _PROMOTION))      # how messages of no function begin
ArrayImpl = lib.ArrayImpl


def begin_with(fun: Callable[..., PyTree], error: Exception) -> None:
    """Let a message begin with the public function that was called, not with one that it calls.

    The error comes without our frames.
    """
    source.filter_traceback(error)
    text = error.args[0] if len(error.args) == 1 else None
    # Users do not call helpers: the public function around this one puts its own name there.
    if not isinstance(text, str) or "_src" in fun.__module__:
        return
    # Only what looks like a function's name, as messages begin, is replaced by another one.
    first, colon, rest = text.partition(": ")
    if (not colon or first.endswith(fun.__name__)
            or not (first in _GENERAL or re.fullmatch(r"[\w./\[\]]+(\(\))?", first))):
        return
    # The name of an argument stays: it says which one is wrong.
    code = inspect.unwrap(fun).__code__
    arguments = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    text = in_lines(
        f"{fun.__name__}: {text if first == _PROMOTION or first in arguments else rest}")
    error.args = (text,)
    if hasattr(error, "_msg"):      # what NumPy's AxisError shows
        error._msg = text


def unasked(fun: F, static: tuple[str, ...] = ()) -> F:
    """Decorator for library functions: the user's strict options do not speak inside.

    The options refuse that a user mixes dtypes or ranks. Where the operands of a call have one
    dtype, or one rank, that did not happen, and the body may mix dtypes as it needs.
    """
    names = fun.__code__.co_varnames[:fun.__code__.co_argcount]

    @functools.wraps(fun)
    def run(*args: PyTree, **kwargs: PyTree) -> PyTree:
        if numpy_dtype_promotion.value == "standard" and numpy_rank_promotion.value == "allow":
            return fun(*args, **kwargs)     # as nearly always: no look at the operands
        given = [*[x for n, x in zip(names, args) if n not in static], *args[len(names):],
                 *[x for n, x in kwargs.items() if n not in static]]
        with _body_options(given):
            return fun(*args, **kwargs)

    return cast("F", run)


def _body_options(given: object) -> contextlib.ExitStack:
    """The options as they are in the body of a function that was given these arguments."""
    operands, modes = [x for x in tree_leaves(given) if _is_operand(x)], contextlib.ExitStack()
    if _of_one_dtype(operands):
        modes.enter_context(numpy_dtype_promotion("standard"))
    if len({x.ndim for x in operands if getattr(x, "ndim", 0)}) < 2:
        modes.enter_context(numpy_rank_promotion("allow"))
    return modes


def _is_operand(x: Any) -> bool:
    """Whether an argument is a number or an array of numbers; flags are neither, nor are keys."""
    kind = type(x)
    return (kind in SCALAR_TYPES and kind is not bool) or (
        hasattr(kind, "dtype") and dtypes.is_numeric(x.dtype))


def _of_one_dtype(operands: list[ArrayLike]) -> bool:
    try:
        dtypes.result_type(*operands or (0,))
    except ValueError:
        return False
    return True


def named(fun: F) -> F:
    """Decorator for library functions that call others: their messages begin with its name.

    The user's strict options do not speak inside (`unasked`).
    """
    inside = unasked(fun)

    @functools.wraps(fun)
    def call(*args: PyTree, **kwargs: PyTree) -> PyTree:
        trace = ctx.trace
        chosen = (fun if numpy_dtype_promotion.value == "standard"
                  and numpy_rank_promotion.value == "allow" else inside)
        try:
            return (templates.call(trace, chosen, args, kwargs)
                    if trace.recorded else chosen(*args, **kwargs))
        except (*FAILURES, IndexError) as error:
            begin_with(call, error)
            raise

    return cast("F", call)


@overload
def fused(fun: F, *, static: tuple[str, ...] = (), inline: bool = False,
          seen: tuple[str, ...] = (), asking: bool = False, anew: bool = False) -> F: ...


@overload
def fused(*, static: tuple[str, ...] = (), inline: bool = False,
          seen: tuple[str, ...] = (), asking: bool = False, anew: bool = False
          ) -> Callable[[F], F]: ...


def fused(fun: Callable[..., PyTree] | None = None, *, static: tuple[str, ...] = (),
          inline: bool = False, seen: tuple[str, ...] = (), asking: bool = False,
          anew: bool = False) -> Callable[..., PyTree]:
    """Decorator for library functions.

    Args:
      static: the arguments that are not arrays. Where one is not hashable (an axis given as a
        list), or an array argument is no array, the call runs operation by operation instead.
      inline: whether other traces than the evaluating one see the operations themselves: for
        functions that are one operation after checks and promotion.
      seen: arguments behind the third whose values the function looks at: a call that gives one
        runs the function itself.
      asking: whether the body holds the user's strict options against its operands although they
        have one dtype and rank: of axes that broadcast besides some that do not.
      anew: whether the body runs each time that it is recorded: where that takes no longer than to
        look for its template.

    Python numbers among the positional arguments that are not static are put on the device once,
    and not by C++ in each call.
    """
    if fun is None:
        return lambda f: fused(f, static=static, inline=inline, seen=seen, asking=asking,
                               anew=anew)
    fun = fun if asking else unasked(fun, static)
    code = inspect.unwrap(fun).__code__
    names = code.co_varnames[:code.co_argcount]
    fixed = tuple([i for i, n in enumerate(names) if n in static])
    compiled = make_jit(
        fun, JitOptions(static_argnums=fixed, static_argnames=static), library=True)
    # Types of `y` and of `z` that are put on the device.
    of_y, of_z = ({Literal} if i in fixed else _PYTHON_NUMBERS | {Literal} for i in (1, 2))
    rest_static = fixed == tuple(range(1, len(names)))
    first_seen = min([names.index(n) for n in seen], default=len(names))

    @functools.wraps(fun)
    def call(x: PyTree = _ABSENT, y: PyTree = _ABSENT, z: PyTree = _ABSENT, /, *rest: PyTree,
             **kwargs: PyTree) -> PyTree:
        trace = ctx.trace
        if (trace is BASE and (type(x) is ArrayImpl or type(x) in WRAPPERS)
                and (not rest or rest_static or _ARRAYS.issuperset(map(type, rest)))
                and not (seen and kwargs and not kwargs.keys().isdisjoint(seen))):
            # Hot. Passing on *args and **kwargs would cost 0.5 us, a twentieth of the whole call.
            if type(y) in of_y:
                y = placed(y) if type(y) is Literal else number_array(y)
            try:
                if z is not _ABSENT:
                    if type(z) in of_z:
                        z = placed(z) if type(z) is Literal else number_array(z)
                    return (compiled(x, y, z, *rest, **kwargs) if rest or kwargs else
                            compiled(x, y, z))
                if kwargs:
                    return compiled(x, **kwargs) if y is _ABSENT else compiled(x, y, **kwargs)
                return compiled(x) if y is _ABSENT else compiled(x, y)
            except FAILURES as error:
                failures: list[Exception] = [error]
            # Outside of the handler: else the second error would have the first as its context.
            try:
                return _otherwise(fun, failures, (x, y, z, *rest), kwargs)
            except FAILURES as error:
                begin_with(call, error)
                raise
        args = ((x, y, z, *rest) if z is not _ABSENT else () if x is _ABSENT else
                (x,) if y is _ABSENT else (x, y))
        recorded = trace.recorded
        try:
            if not (recorded or (inline and trace is not BASE)):
                return general(trace, args, kwargs)
            return (fun(*args, **kwargs) if anew or not recorded else
                    templates.call(trace, fun, args, kwargs))
        except FAILURES as error:
            begin_with(call, error)
            raise

    def general(trace: object, args: tuple, kwargs: dict[str, PyTree]) -> object:
        if seen and (len(args) > first_seen or not kwargs.keys().isdisjoint(seen)):
            return fun(*args, **kwargs)
        args = _operands_for_cpp(args, fixed if trace is BASE else range(len(args)))
        try:
            return compiled(*args, **kwargs)
        except FAILURES as error:
            failures: list[Exception] = [error]
        return _otherwise(fun, failures, args, kwargs)

    call.compiled = compiled        # for functions of NumPy's whose operands need no look
    return call


def _otherwise(fun: Callable[..., PyTree], failures: list[Exception], args: tuple,
               kwargs: dict[str, PyTree]) -> PyTree:
    """The result where the compiled call failed: operation by operation, or the right error."""
    args = tuple([a for a in args if a is not _ABSENT])
    check_deleted(fun.__name__, args)
    if isinstance(failures[0], lib.XlaRuntimeError):    # it has run, and would fail again
        raise failures.pop()    # a frame that kept it would keep the arrays of all callers
    failures.clear()
    return fun(*args, **kwargs)     # runs operation by operation, or names the accepted types


def _operands_for_cpp(args: tuple, fixed: Container[int]) -> tuple:
    """Arguments as C++ takes them, numbers on the device except for the `fixed` ones."""
    operands = list(args)
    for i, a in enumerate(args):
        kind = type(a)
        if kind in _PASSED_ON:
            continue
        if kind is Literal:
            operands[i] = placed(a)
        elif kind in _PYTHON_NUMBERS:
            if i not in fixed:
                operands[i] = number_array(a)
        elif not isinstance(a, Tracer) and (given := array_method(a)) is not None:
            operands[i] = given()
    return tuple(operands)
