"""`fused`: a library function of several operations as one compiled program when called eagerly.

    evaluating              one C++ call of the compiled function
    below a staging trace   the body runs inline, operation by operation
    eager grad and vmap     bind `call` with the body staged once per type, so that they run few
                            executables and not one per primitive; with `inline`, as when staging
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

from ..backend.array import HOLDERS
from ..backend.eager import BASE, FAILURES, check_deleted, number_array, placed
from ..base import lib
from ..base.typing import F
from ..core.ir import Literal
from ..core.staging import StagingTrace, is_recorded
from ..core.trace import ctx
from .jit import make_jit

__all__ = ["fused"]

_NUMBERS = frozenset((int, float))
_PASSED_ON = frozenset((lib.ArrayImpl, tuple, bool, str, type(None)))      # as C++ takes them
_ABSENT: Any = object()
ArrayImpl = lib.ArrayImpl


@overload
def fused(fun: F, *, static: tuple[str, ...] = (), inline: bool = False) -> F: ...


@overload
def fused(*, static: tuple[str, ...] = (), inline: bool = False) -> Callable[[F], F]: ...


def fused(fun: Callable[..., Any] | None = None, *, static: tuple[str, ...] = (),
          inline: bool = False) -> Any:
    """Decorator for library functions.

    Args:
      static: the arguments that are not arrays. Where one is not hashable (an axis given as a
        list), or an array argument is no array, the call runs operation by operation instead.
      inline: whether other traces than the evaluating one see the operations themselves: for what
        is one operation after checks and promotion.

    Python numbers among the positional arguments that are not static are put on the device once,
    and not by C++ in each call.
    """
    if fun is None:
        return lambda f: fused(f, static=static, inline=inline)
    compiled = make_jit(fun, {"static_argnames": static}, library=True)

    name = fun.__name__
    names = fun.__code__.co_varnames[:fun.__code__.co_argcount]
    fixed = tuple([i for i, n in enumerate(names) if n in static])
    ours = {Literal} if 1 in fixed else _NUMBERS | {Literal}    # types of `y` put on the device

    def otherwise(error: Exception, args: tuple, kwargs: dict[str, Any]) -> Any:
        check_deleted(name, args)
        if isinstance(error, lib.XlaRuntimeError):
            raise error
        return fun(*args, **kwargs)     # runs operation by operation, or says what it takes

    @functools.wraps(fun)
    def call(x: Any = _ABSENT, y: Any = _ABSENT, /, *rest: Any, **kwargs: Any) -> Any:
        trace = ctx.trace
        if (rest or trace is not BASE or type(y) in ours
                or (type(x) is not ArrayImpl and type(x) not in HOLDERS)):
            args = () if x is _ABSENT else (x,) if y is _ABSENT else (x, y, *rest)
            if type(trace) is StagingTrace or (
                    trace is not BASE and (inline or is_recorded(trace))):
                return fun(*args, **kwargs)
            return general(trace, args, kwargs)
        # Hot. Passing on *args and **kwargs would cost 0.5 us, a twentieth of the whole call.
        try:
            if kwargs:
                return compiled(x, **kwargs) if y is _ABSENT else compiled(x, y, **kwargs)
            return compiled(x) if y is _ABSENT else compiled(x, y)
        except FAILURES as error:
            failure = error
        return otherwise(failure, (x,) if y is _ABSENT else (x, y), kwargs)

    def general(trace: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        found = list(args)
        for i, a in enumerate(args):
            kind = type(a)
            if kind in _PASSED_ON:
                continue
            if kind is Literal:
                found[i] = placed(a)
            elif kind in _NUMBERS:
                if trace is BASE and i not in fixed:
                    found[i] = number_array(a)
            elif hasattr(kind, "__olympus_array__"):
                found[i] = a.__olympus_array__()
        args = tuple(found)
        try:
            return compiled(*args, **kwargs)
        except FAILURES as error:
            failure = error
        return otherwise(failure, args, kwargs)

    if inline:
        call.while_tracing = fun
    return call
