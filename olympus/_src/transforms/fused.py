"""`fused`: a library function of several operations as one compiled program when called eagerly.

    evaluating      one C++ call of the compiled function
    staging         the body runs inline, operation by operation
    other traces    bind `call` with the body staged once per type, so that eager grad and vmap run
                    few executables and not one per primitive
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..backend.array import literal_array
from ..backend.dispatch import check_deleted
from ..core.ir import Literal
from ..core.staging import StagingTrace
from ..core.trace import Context, ctx
from .jit import make_jit

__all__ = ["fused"]


def fused(fun: Callable[..., Any] | None = None, *, static: tuple[str, ...] = ()) -> Any:
    """Decorator for composite library functions; `static` names the arguments that are not arrays.

    Static arguments that are not hashable (an axis given as a list) make the call run operation by
    operation instead.
    """
    if fun is None:
        return lambda f: fused(f, static=static)
    compiled = make_jit(fun, {"static_argnames": static}, library=True)

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if ctx.trace is not Context.trace and type(ctx.trace) is StagingTrace:
            return fun(*args, **kwargs)
        for a in args:
            if type(a) is Literal:      # C++ passes on arrays and numbers only
                args = tuple([literal_array(x) if type(x) is Literal else x for x in args])
                break
        try:
            return compiled(*args, **kwargs)
        except ValueError as error:
            check_deleted(fun.__name__, args)
            if "hashable" not in str(error):
                raise
            return fun(*args, **kwargs)

    return call
