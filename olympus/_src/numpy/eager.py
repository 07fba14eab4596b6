"""Elementwise functions called eagerly: one C++ call after as little Python as possible.

`eager_unary` and `eager_binary` decorate functions that are one operation after promotion. While
anything traces they are the function itself. Evaluating, arrays and NumPy arrays go to a C++ pjit
object of the function; Python numbers are put on the device once per dtype. Operands of all other
types meet the function itself, whose messages name them. `eager_sequence` is the same for functions
of a sequence of arrays.
"""
# What `functools.wraps` made has attributes that checkers do not know of, and operands are tried
# for an aval rather than asked: it is faster.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from ..base import lib
from ..base.config import default_device, enable_x64, numpy_dtype_promotion
from ..base.typing import Array, ArrayLike, F, R
from ..core import templates
from ..core.trace import ctx
from ..jit.fused import begin_with, fused
from ..jit.jit import JitOptions, make_jit
from ..lax import slicing
from ..runtime.eager import BASE, FAILURES, MANY, check_deleted, in_groups, scalar, scalars
from ..types import dtypes
from ..types.avals import ShapedArray, scalar_aval
from .options import with_options
from .promote import scalar_plan

if TYPE_CHECKING:   # for type checkers, the signature of functions made by `ufunc_table`
    from .ufunc import ufunc

ArrayImpl = lib.ArrayImpl
_SEQUENCES = frozenset((list, tuple))
_ARRAYS = frozenset((ArrayImpl,))
_ABSENT: Any = object()


def as_ufunc(fun: Callable[..., R]) -> ufunc[R]:
    """The function itself, to type checkers a ufunc."""
    return cast("ufunc[R]", fun)


@overload
def eager_unary(fun: Callable[..., R], /) -> ufunc[R]: ...


@overload
def eager_unary(*, composite: bool = False) -> Callable[[Callable[..., R]], ufunc[R]]: ...


def eager_unary(fun: Callable[..., Any] | None = None, *, composite: bool = False) -> Any:
    """Decorator for a function of one array; `composite` as for `eager_binary`."""
    if fun is None:
        return functools.partial(eager_unary, composite=composite)
    plain, name = fun, fun.__name__
    compiled = make_jit(plain, JitOptions(), library=True)

    def at_once(x: ArrayLike, /) -> object:
        trace = ctx.trace
        if trace.recorded:
            return templates.call(trace, plain, (x,), {})
        return compiled(x) if type(x) is float or _passes(x, trace is not BASE) else plain(x)

    otherwise = at_once if composite else plain

    @functools.wraps(plain)
    def call(x: ArrayLike, /, *rest: object, **options: object) -> object:
        try:
            if type(x) is ArrayImpl and ctx.trace is BASE and not (rest or options):
                try:
                    return compiled(x)
                except FAILURES:
                    check_deleted(name, (x,))
                    raise
            return with_options(call, (x, *rest), options) if rest or options else otherwise(x)
        except FAILURES as error:
            begin_with(call, error)
            raise

    return call


@overload
def eager_binary(fun: Callable[..., R], /) -> ufunc[R]: ...


@overload
def eager_binary(*, composite: bool = False, wraps: bool = True
                 ) -> Callable[[Callable[..., R]], ufunc[R]]: ...


def eager_binary(fun: Callable[..., Any] | None = None, *, composite: bool = False,
                 wraps: bool = True) -> Any:
    """Decorator for a function of two arrays.

    A `composite` is several operations: vmap and grad see it as one call, as for `fused`. Python
    ints beyond the dtype of the other operand wrap, or do not where it becomes a floating one: what
    does neither (`wraps` is False) sees them itself.
    """
    if fun is None:
        return functools.partial(eager_binary, composite=composite, wraps=wraps)
    plain, name = fun, fun.__name__
    compiled = make_jit(plain, JitOptions(), library=True)

    @functools.wraps(plain)
    def call(x: ArrayLike, y: ArrayLike, /, *rest: object, **options: object) -> object:
        trace = ctx.trace
        try:
            if rest or options:
                return with_options(call, (x, y, *rest), options)
            if trace is BASE:
                if type(x) is not ArrayImpl or type(y) is not ArrayImpl:
                    pair = _operands_for_cpp(x, y, wraps)
                    if pair is None:
                        return plain(x, y)
                    x, y = pair
                try:
                    return compiled(x, y)
                except FAILURES:
                    check_deleted(name, (x, y))
                    raise
            if composite:
                if trace.recorded:
                    return templates.call(trace, plain, (x, y), {})
                pair = _operands_for_cpp(x, y, wraps, traced=True)
                if pair is not None:
                    return compiled(*pair)
            return plain(x, y)
        except FAILURES as error:
            begin_with(call, error)
            raise

    call.compiled, call.wraps = compiled, wraps
    call.while_tracing = call if composite else plain
    return call


def eager_named(fun: Callable[..., R]) -> ufunc[R]:
    """Decorator for an elementwise function whose operands have names, or no common dtype."""
    compiled = fused(fun)
    names = fun.__code__.co_varnames[:fun.__code__.co_argcount]
    two, at_once = len(names) == 2, compiled.compiled

    @functools.wraps(fun)
    def call(*args: ArrayLike, **options: Any) -> Any:
        if two and ctx.trace is BASE and not options and len(args) == 2:
            x, y = args
            if type(x) is ArrayImpl and type(y) is ArrayImpl:
                try:
                    return at_once(x, y)
                except FAILURES:    # which the call below makes plain
                    pass
        try:
            if options:
                args += tuple([options.pop(n) for n in names[len(args):] if n in options])
            if options or len(args) != len(names):
                return with_options(call, args, options)
            return compiled(*args)
        except FAILURES as error:
            begin_with(call, error)
            raise

    return as_ufunc(call)


def eager_sequence(along: Callable[..., int]) -> Callable[[F], F]:
    """Decorator for a function that joins a sequence of arrays; its other arguments are no arrays.

    `along`, which gets the same arguments, says along which axis of the result it joins them.
    """
    return functools.partial(_eager_sequence, along)


def _eager_sequence(along: Callable[..., int], fun: F) -> F:
    code = fun.__code__
    options = code.co_varnames[1:code.co_argcount + code.co_kwonlyargcount]
    static = JitOptions(static_argnums=tuple(range(1, code.co_argcount)), static_argnames=options)
    compiled, name = make_jit(fun, static, library=True), fun.__name__

    @functools.wraps(fun)
    def call(arrays: Any = _ABSENT, /, *rest: Any, **kwargs: Any) -> Any:
        try:
            if (type(arrays) in _SEQUENCES and ctx.trace is BASE
                    and _ARRAYS.issuperset(map(type, arrays))
                    and (len(arrays) <= MANY or len({x.aval for x in arrays}) == 1)):
                try:
                    if len(arrays) > MANY:
                        parts = [compiled(few, *rest, **kwargs) for few in in_groups(arrays)]
                        return slicing.concatenate(parts, along(arrays, *rest, **kwargs))
                    return compiled(arrays, *rest, **kwargs) if rest or kwargs else compiled(arrays)
                except FAILURES as error:
                    check_deleted(name, arrays)
                    if isinstance(error, lib.XlaRuntimeError):
                        raise
            args = () if arrays is _ABSENT else (arrays, *rest)
            return fun(*args, **kwargs)     # also names the fault
        except (*FAILURES, IndexError) as error:
            begin_with(call, error)
            raise

    return cast("F", call)


def array_operator(ufunc: Any, otherwise: Callable[[Array, ArrayLike], object], swapped: bool
                   ) -> Callable[[Array, ArrayLike], object]:
    """The operator of arrays (not of tracers) that `ufunc` is: in one frame for array operands.

    `otherwise` is the method for all other operands; `swapped` says that self is the second one.
    """
    compiled, name, wraps = ufunc.compiled, ufunc.__name__, ufunc.wraps

    def method(self: Array, other: ArrayLike) -> object:
        kind = type(other)
        try:
            if ctx.trace is BASE:
                if kind is float or kind is int:
                    number = _number_beside(self, other, wraps)
                    if number is not None:
                        other, kind = number, ArrayImpl
                if kind is ArrayImpl:
                    try:
                        return compiled(other, self) if swapped else compiled(self, other)
                    except FAILURES:
                        check_deleted(name, (other, self) if swapped else (self, other))
                        raise
            return otherwise(self, other)
        except FAILURES as error:
            begin_with(ufunc, error)
            raise

    return method


def _operands_for_cpp(x: ArrayLike, y: ArrayLike, wraps: bool, traced: bool = False
                      ) -> tuple[ArrayLike, ArrayLike] | None:
    """Operands as a compiled call takes them; None where the function has to see them itself."""
    if type(y) is int or type(y) is float:
        number = _number_beside(x, y, wraps) if _passes(x, traced) else None
        return None if number is None else (x, number)
    if type(x) is int or type(x) is float:
        number = _number_beside(y, x, wraps) if _passes(y, traced) else None
        return None if number is None else (number, y)
    return (x, y) if _passes(x, traced) and _passes(y, traced) else None


def _passes(x: object, traced: bool) -> bool:
    """Whether C++ takes an operand just as promotion would."""
    if type(x) is ArrayImpl:
        return True
    if type(x) is not np.ndarray and not isinstance(x, np.generic):
        return traced and hasattr(type(x), "_trace")
    # Integers that x64 narrows keep their values where the other operand is a float.
    # Extended precision (g, G) is refused in the function's words.
    return (x.dtype.kind in "bfc" and x.dtype.char not in "gG") or (
        x.dtype.kind in "iu" and dtypes.canonical_dtype(x.dtype) == x.dtype)


def _number_beside(x: ArrayLike, number: ArrayLike, wraps: bool) -> Array | None:
    """A Python int or float on the device as promotion beside `x` leaves it.

    None where `x` has to change too, or the function itself has to see the number.
    """
    try:
        aval = x.aval
    except AttributeError:
        return None
    known = scalars.get((aval, type(number), number or repr(number), default_device.value))
    return _placed(aval, number, wraps) if known is None else known


def _placed(aval: ShapedArray, number: ArrayLike, wraps: bool) -> Array | None:
    if scalar_plan(aval, type(number), enable_x64.value, numpy_dtype_promotion.value)[0] is None:
        return None     # `x` changes its dtype
    if (type(number) is not int or not dtypes.is_integer(aval.dtype)
            or dtypes.fits(number, aval.dtype)):
        return scalar(aval, number)
    # It wraps if the function computes in the dtype of `x`, and does not in a floating one.
    own = scalar_aval(int)
    return scalar(own, number) if wraps and dtypes.fits(number, own.dtype) else None
