"""Looking at programs, avals and the trace state from outside: what `core` and `extend.core` offer
to those who write interpreters of their own.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..base import errors
from ..base.typing import Array, DType, PyTree, T
from ..core.context import ROOT, Scope, ThreadState, ctx
from ..core.effects import Effect
from ..core.evaluate import eval_olympuspr
from ..core.ir import Atom, ClosedOlympuspr, OlympusprEqn, SourceInfo, Var
from ..core.primitive import Primitive
from ..core.trace import Trace, Tracer, _concrete, enter, leave
from ..types import dtypes
from ..types.avals import AbstractValue, ShapedArray
from ..types.shape import definitely_equal, maximum, minimum

Value = Any
ParamDict = dict[str, Any]
Effects = frozenset[Effect]

# Programs


def _as_fun(closed_olympuspr: ClosedOlympuspr, *args: PyTree) -> list[Array]:
    """A program as a function of flat arguments: `olympuspr_as_fun(closed)(*args)` -> outputs."""
    return eval_olympuspr(closed_olympuspr.olympuspr, closed_olympuspr.consts, *args)


olympuspr_as_fun: Callable[[ClosedOlympuspr], Callable[..., list[Any]]] = \
    functools.wraps(_as_fun)(functools.partial(functools.partial, _as_fun))


def new_olympuspr_eqn(invars: Sequence[Atom], outvars: Sequence[Var], primitive: Primitive,
                      params: ParamDict, effects: Effects, source_info: SourceInfo | None = None,
                      ctx: Scope | None = None) -> OlympusprEqn:
    """An equation; `source_info` and `ctx` come from another one, or are None.

    Args:
      invars: variables and literals that it reads.
      outvars: variables that it binds.
      primitive: the operation.
      params: the operation's parameters.
      effects: its effects.
      source_info: where it is from: the `source_info` of another equation, or None.
      ctx: the naming context of another equation, or None.

    >>> from olympus.extend.core import gensym, new_olympuspr_eqn, no_effects
    >>> var, aval = gensym(), olympus.typeof(1.0)
    >>> new_olympuspr_eqn([var(aval)], [var(aval)], olympus.lax.sin_p, {}, no_effects).primitive
    sin
    """
    line = None if source_info is None else source_info.traceback
    return OlympusprEqn(primitive, invars, outvars, params, frozenset(effects), line,
                        ROOT if ctx is None else ctx)


def gensym() -> type[Var]:
    """A maker of new variables.

    Returns: A function of an aval, whose results are told apart by identity.

    >>> gensym()(olympus.typeof(1.0)).aval
    ShapedArray(float32[], weak_type=True)
    """
    return Var


# Values and avals


# Types that operations take besides arrays of devices and Python's numbers.
array_types: frozenset[type] = frozenset((np.ndarray, *[d.type for d in dtypes.numeric_dtypes()]))


def concrete_or_error(force: Callable[[Any], T] | None, val: Any, context: str = "") -> T | Any:
    """`force(val)`; ConcretizationTypeError, with `context`, where the value is not known.

    Args:
      force: what makes the value, for example `int`; None for the value as it is.
      val: an array, a number, or a tracer whose value may be known.
      context: the error's advice.
    Returns: What `force` returns.

    >>> from olympus.extend.core import concrete_or_error
    >>> concrete_or_error(int, 3.0)
    3
    """
    if isinstance(val, Tracer):
        val = _concrete(val, errors.ConcretizationTypeError, "concrete_or_error",
                        context or "compute it outside the transformed function")
    return val if force is None else force(val)


def mapped_aval(size: int, axis: int | None, aval: AbstractValue) -> AbstractValue:
    """The aval of one element of an array mapped along `axis`, which has that size.

    Args:
      size: the size of the axis.
      axis: its position; None for a value that is not mapped.
      aval: the array's aval.

    >>> from olympus.extend.core import mapped_aval
    >>> mapped_aval(3, 1, olympus.core.ShapedArray((2, 3), "float32"))
    ShapedArray(float32[2])
    """
    if axis is None or not isinstance(aval, ShapedArray):
        return aval
    shape = aval.shape
    if not definitely_equal(shape[axis], size):
        raise ValueError(f"mapped_aval: {aval} and axis {axis} of size {size} given; that axis has "
                         f"size {shape[axis]}; pass the array's own.")
    return aval.update(shape=(*shape[:axis], *shape[axis + 1:]))


def unmapped_aval(size: int, axis: int | None, aval: AbstractValue,
                  explicit_mesh_axis: object = None) -> AbstractValue:
    """The aval of an array whose elements along a new axis have this aval.

    Args:
      size: the size of the new axis.
      axis: its position in the result; None for none.
      aval: the aval of one element.
      explicit_mesh_axis: accepted; the new axis is on no mesh axis.

    >>> from olympus.extend.core import unmapped_aval
    >>> unmapped_aval(3, 0, olympus.core.ShapedArray((2,), "float32"))
    ShapedArray(float32[3,2])
    """
    if axis is None or not isinstance(aval, ShapedArray):
        return aval
    shape = aval.shape
    return aval.update(shape=(*shape[:axis], size, *shape[axis:]))


def primal_dtype_to_tangent_dtype(primal_dtype: DType) -> DType:
    """The dtype of tangents: the same for floating and complex dtypes, else float0.

    Args: primal_dtype: the dtype of the values.

    >>> from olympus.extend.core import primal_dtype_to_tangent_dtype
    >>> primal_dtype_to_tangent_dtype(onp.dtype("float32"))
    dtype('float32')
    >>> primal_dtype_to_tangent_dtype(onp.dtype("int32"))
    dtype([('float0', 'V')])
    """
    return dtypes.tangent_dtype(primal_dtype)


def max_dim(d1: int, d2: int) -> int:
    """The larger of two dimensions.

    Args: d1, d2: ints, or symbolic dimensions.
    Returns: The one that is never smaller; a symbolic expression where neither is known to be.

    >>> olympus.core.max_dim(2, 3)
    3
    """
    return maximum(d1, d2)


def min_dim(d1: int, d2: int) -> int:
    """The smaller of two dimensions.

    Args: d1, d2: ints, or symbolic dimensions.
    Returns: The one that is never larger; a symbolic expression where neither is known to be.

    >>> olympus.core.min_dim(2, 3)
    2
    """
    return minimum(d1, d2)


# The trace


@contextmanager
def eval_context() -> Iterator[None]:
    """Context manager: operations inside run at once, even while a function is traced.

    >>> def f(x):
    ...     with olympus.core.eval_context():
    ...         n = int(onp.sum(onp.arange(3)))     # a number, though f is traced
    ...     return x * n
    >>> print(olympus.jit(f)(2))
    6
    """
    outer = enter(ThreadState.trace)
    try:
        yield
    finally:
        leave(outer)


class take_current_trace:
    """Context manager: gives the current trace; operations inside run at once.

    >>> import olympus, olympus.extend.core as core
    >>> def f(x):
    ...     with core.take_current_trace() as trace:
    ...         print(olympus.lax.add(1, 2))        # evaluated while f is traced
    ...         with core.set_current_trace(trace):
    ...             return x + 1
    >>> _ = olympus.eval_shape(f, 1)
    3
    """

    __slots__ = ("_outer",)

    def __enter__(self) -> Trace:
        current = ctx.trace
        self._outer = enter(ThreadState.trace)
        return current

    def __exit__(self, *exc_info: object) -> None:
        leave(self._outer)


class set_current_trace:
    """Context manager: operations inside are bound in `trace`.

    >>> import olympus, olympus.extend.core as core
    >>> with core.set_current_trace(core.find_top_trace(None)):     # the one that there is
    ...     print(olympus.lax.add(1, 2))
    3
    """

    __slots__ = ("trace", "check_leaks", "_outer")

    def __init__(self, trace: Trace, check_leaks: bool = False) -> None:
        self.trace, self.check_leaks = trace, check_leaks

    def __enter__(self) -> None:
        self._outer = enter(self.trace)

    def __exit__(self, *exc_info: object) -> None:
        leave(self._outer)


class TraceTag:
    """A mark of a library's traces; all tags are equal, since the trace itself is the mark.

    >>> TraceTag() == TraceTag()
    True
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TraceTag)

    def __hash__(self) -> int:
        return hash(TraceTag)


def _under(kind: str) -> bool:
    trace = ctx.trace       # by the name of its class: transformations' are in layers above
    while trace is not None:
        if type(trace).__name__ == kind:
            return True
        trace = trace.parent
    return False


def unsafe_am_i_under_a_jit() -> bool:
    """Whether operations are recorded in a program now.

    Returns:
      A bool; nothing outside the innermost `jit` is known inside it.

    >>> import olympus
    >>> olympus.jit(lambda: print(unsafe_am_i_under_a_jit()))()
    True
    """
    return _under("StagingTrace")


def unsafe_am_i_under_a_vmap() -> bool:
    """Whether operations are batched now.

    Returns:
      A bool; nothing outside the innermost `jit` is known inside it.

    >>> import olympus, olympus.numpy as onp
    >>> _ = olympus.vmap(lambda x: print(unsafe_am_i_under_a_vmap()) or x)(onp.ones(2))
    True
    """
    return _under("BatchTrace")


def unsafe_get_axis_names() -> list[Hashable]:
    """The named axes that collectives may name now.

    Returns:
      A list of names, outermost first.

    >>> import olympus, olympus.numpy as onp
    >>> _ = olympus.vmap(lambda x: print(unsafe_get_axis_names()) or x, axis_name="i")(onp.ones(2))
    ['i']
    """
    return list(ctx.axes)


def nonempty_axis_env() -> bool:
    """Whether there is a named axis.

    >>> nonempty_axis_env()
    False
    """
    return bool(ctx.axes)


def find_top_trace(_: object) -> Trace:
    """The current trace, whatever the values.

    Args: _: any values; accepted as libraries pass them.
    Returns: The trace that operations are bound in now.

    >>> from olympus.extend.core import find_top_trace
    >>> find_top_trace(()) is find_top_trace((1.0,))
    True
    """
    return ctx.trace


def get_opaque_trace_state(convention: object = None) -> Hashable:
    """A token of the current trace, equal to another exactly if both have the same trace.

    Args: convention: accepted; there is one convention.
    Returns: A hashable token, to be compared only.

    >>> from olympus.extend.core import get_opaque_trace_state as state
    >>> outside = state()
    >>> _ = olympus.jit(lambda x: print(state() == outside) or x)(1.0)
    False
    >>> state() == outside
    True
    """
    # Weak: a token that somebody keeps does not keep the trace, and its equations, alive.
    return weakref.ref(ctx.trace)
