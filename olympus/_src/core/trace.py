"""The tracing machine: the current trace, tracers, and the one dispatch rule.

A primitive is bound in the current trace and nowhere else:

    prim.bind(*args, **params)  ->  ctx.trace.process(prim, args, params)

Transformations put their own trace into `ctx.trace` while they run the user's function and put the
outer one back after. The base trace, which evaluates, is installed by `runtime.eager`.
"""

from __future__ import annotations

import functools
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, starmap
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, TypeGuard

import numpy as np

from ..base import errors, lib, source, spelling
from ..base.depth import GIVEN, make_room
from ..base.spelling import array_method
from ..base.typing import Array, ArrayLike, ArrayToCheckers, DTypeLike, Params, StaticScalar, T
from ..base.util import clipped, lazy_imports
from ..types import dtypes
from ..types.avals import (
    ShapedArray, check_index, check_scalar, check_truth, make_aval, scalar_aval,
)
from ..types.mesh import mesh_of_types
from ..types.shape import SymbolicDim
from .context import ThreadState, ctx
from .ir import Literal

if TYPE_CHECKING:
    from .linear_util import WrappedFun  # which few programs load
else:
    WrappedFun = Any


class Trace:
    """The meaning of binding a primitive. Ours have a final subclass per transformation.

    A subclass of one's own, an interpreter of functions while they run, has `process_primitive`.

    >>> import olympus
    >>> class Shout(olympus.core.Trace):
    ...     def process_primitive(self, prim, args, params):
    ...         print(prim)
    ...         return prim.bind(*args, **params)      # operations run at once here
    >>> with olympus.extend.core.set_current_trace(Shout()):
    ...     x = olympus.lax.sin(0.0)
    sin
    """

    # alive: until the transformation ends. A tracer whose trace is not alive, or belongs to another
    #   thread, has leaked (`check_usable`).
    # recorded: whether operations end in a program, in place of values.
    # watched: whether an option looks at each operation and at its source line.
    __slots__ = ("alive", "thread", "parent", "recorded", "watched", "__weakref__")
    # The primitive and params of a call with a derivative rule, while the rule runs below. The rule
    # may read nothing of this trace but the call's operands.
    waits_for: Any = None
    evaluates = False       # whether operations run at once
    compiled: Callable[..., Callable[[list[Array]], list[Array]]]   # where they do: runs a program
    as_arrays: Callable[[Sequence[object]], list[Any]]      # where they do: of literals

    def __init__(self, parent: Trace | None = None) -> None:
        self.alive, self.thread, self.parent = True, threading.get_ident(), parent
        self.recorded = parent is not None and parent.recorded
        self.watched = parent is not None and parent.watched

    @property
    def main(self) -> Trace:
        """The trace itself; libraries compare traces by this attribute."""
        return self

    # Traces form a chain by `parent`. `process` is called on the current trace only. It makes its
    # parent current before it calls the parent's `process` or a rule. For vmap inside grad:
    #
    #     bind ──► BatchTrace ──► JVPTrace ──► TapeTrace ──► EvalTrace
    #     ctx.trace moves along, and back in a `finally` of each
    #
    # So a rule binds outside of the transformation that runs it, and an exception leaves
    # `ctx.trace` unchanged.
    def process(self, prim: Any, args: tuple, params: Params) -> Any:
        """The result (or list of results) of binding `prim` under this trace."""
        respelt = spelling.foreign_params
        outer = enter(ThreadState.trace)
        try:
            return self.process_primitive(prim, ThreadState.trace.as_arrays(args),
                                          params if respelt is None else respelt(prim, params))
        finally:
            leave(outer)

    def process_custom(self, prim: Any, fun: Callable[..., Sequence[ArrayLike]], rules: Any,
                       args: tuple[ArrayLike, ...], params: Params) -> list[Array]:
        """Call `fun(*args)`, a flat Python function with derivative rules of its own."""
        return prim.in_users_trace(self, fun, rules, args, params)

    # What users' subclasses have in place of the two.
    def process_primitive(self, primitive: Any, tracers: Sequence[Any], params: Params) -> object:
        """The result (or list of results) of the operation; the current trace evaluates."""
        if type(self).process is Trace.process:
            raise self._missing("process_primitive")
        outer = enter(self)
        try:
            return self.process(primitive, tuple(tracers), params)
        finally:
            leave(outer)

    def process_custom_jvp_call(self, primitive: Any, fun: WrappedFun, jvp: WrappedFun,
                                tracers: Sequence[ArrayLike], *, symbolic_zeros: bool
                                ) -> Sequence[ArrayLike]:
        """The results of a call of a `custom_jvp` function: `fun` and `jvp` are `WrappedFun`s of
        flat values, `jvp(*primals, *tangents)`.
        """
        raise self._missing("process_custom_jvp_call")

    def process_custom_vjp_call(self, primitive: Any, fun: WrappedFun, fwd: WrappedFun,
                                bwd: WrappedFun, tracers: Sequence[ArrayLike], *,
                                out_trees: Callable[[], tuple[object, ...]], symbolic_zeros: bool
                                ) -> Sequence[ArrayLike]:
        """The results of a call of a `custom_vjp` function, by `WrappedFun`s of flat values.

        `fwd` takes each value and whether a cotangent of it is wanted, in turns, and returns
        residuals, then results; `bwd` takes residuals, then cotangents. `out_trees()` gives, after
        `fwd`, the trees of results and of residuals, and None for each residual.
        """
        raise self._missing("process_custom_vjp_call")

    def _missing(self, method: str) -> NotImplementedError:
        return NotImplementedError(
            f"{type(self).__name__}: an operation is bound in a trace whose class has no method "
            f"{method!r}; one is required to handle it; define it in the subclass of Trace.")

    # For interpreters, which call these of any value and trace.
    def full_raise(self, x: T) -> T:
        """The value itself."""
        return x

    def invalidate(self) -> None:
        """End the trace: a tracer of it that is used later has leaked."""
        self.alive = False

    def is_valid(self) -> bool:
        """Whether the trace has not ended."""
        return self.alive


# Part of the key of C++'s calls: a jitted function that is called while another function is traced
# must enter Python, even if its arguments are arrays. `enter` sets it.
TRACING = lib.Config("olympus_tracing", False, include_in_jit_key=True)


def install_base_trace(trace: Trace) -> None:
    """Make `trace` the one that every thread starts with. Called once, by `runtime.eager`."""
    ThreadState.trace = trace


def enter(trace: object) -> Iterator[object]:
    """Make `trace` the current one while a user's function runs; give the result to `leave`."""
    depth = ctx.depth
    if depth >= GIVEN:
        make_room(depth + 1)    # may raise: nothing is entered yet
    # `leave` restores the flag: a rule runs in the parent's trace, but the user's function is still
    # being traced. At depth 0 the flag is unset, whatever an interrupt has left in it.
    tracing = (depth > 0 and TRACING.value) or lib.config_unset
    outer = chain(
        starmap(setattr, ((ctx, "trace", ctx.trace), (ctx, "depth", depth),
                          (ctx, "scope", ctx.scope), (ctx, "axes", ctx.axes))),
        map(TRACING.set_local, (tracing,)),
        map(mesh_of_types.set_local, (mesh_of_types.get_local(),)))
    try:
        # The class attribute is the base trace, under which C++ may run jitted functions by itself.
        TRACING.set_local(trace is not ThreadState.trace or lib.config_unset)
        ctx.trace, ctx.depth = trace, depth + 1
    except BaseException:
        leave(outer)
        raise
    return outer


# Undoes `enter`, and restores the scope, the axes and the mesh; call it in a `finally`. It is one
# call of C code, which an interrupt cannot split.
leave: Callable[[Iterator[object]], object] = functools.partial(deque, maxlen=0)


class ArrayBase(ArrayToCheckers):
    """The base of arrays and tracers. Operators are installed by `numpy.array_methods`."""

    __slots__ = ()


class Tracer(ArrayBase):
    """A stand-in for an array while a function is transformed.

    Each trace has a final subclass, named for its work.

    >>> import olympus
    >>> _ = olympus.jit(lambda x: print(isinstance(x, olympus.core.Tracer)) or x)(1.0)
    True
    """

    __slots__ = ("_trace", "aval", "__weakref__")
    _known = True   # whether its value exists when the user's function runs
    # NumPy's operators give way to ours: `ndarray + tracer` is the tracer's `__radd__`.
    __array_priority__ = 1000
    # `==` is elementwise, so tracers cannot be keys: tables have their `id` as key, and keep the
    # tracer alive as long as the entry.
    __hash__ = None

    def __init__(self, trace: Trace, aval: ShapedArray) -> None:
        self._trace: Any = trace
        self.aval: ShapedArray = aval

    def _is_traced_array(self) -> bool:
        """Whether this is an instance of `olympus.Array`; jaxlib's metaclass asks."""
        return isinstance(self.aval, ShapedArray)

    def _origin(self) -> str:
        """The value's origin as a sentence of an error message."""
        return ""

    def _unknown_because(self) -> str:
        """The arguments or lines that the value depends on, as a sentence of a message, or ""."""
        return ""

    def _setting(self) -> str:
        """The traced function and the transformation, as a clause of a message, or ""."""
        return ""

    def _may_be_static(self) -> bool:
        """Whether the transformation takes static arguments, so that this value could be one."""
        return False

    def _known_value(self) -> Array | None:
        """The value where the trace knows it (grad, jvp); None otherwise."""
        return None

    def _differentiated(self) -> bool:
        """Whether it has a tangent, which would be lost in a Python number."""
        return False

    shape = property(attrgetter("aval.shape"), doc="Tuple of axis sizes.")
    dtype = property(attrgetter("aval.dtype"), doc="Element type.")
    ndim = property(attrgetter("aval.ndim"), doc="Number of axes.")
    size = property(attrgetter("aval.size"), doc="Number of elements.")
    weak_type = property(attrgetter("aval.weak_type"), doc="Whether the dtype is weak.")
    itemsize = property(attrgetter("aval.dtype.itemsize"), doc="Bytes of one element.")
    nbytes = property(lambda self: self.size * self.itemsize, doc="Bytes of all elements.")

    def __len__(self) -> int:
        return len(self.aval)

    def __bool__(self) -> bool:
        check_truth(self.aval)
        return bool(_concrete(self, errors.TracerBoolConversionError, "bool", BOOL_REMEDY))

    def __int__(self) -> int:
        check_scalar("int", self.aval)
        return int(_concrete(self, errors.ConcretizationTypeError, "int", INT_REMEDY))

    def __float__(self) -> float:
        check_scalar("float", self.aval)
        return float(_constant(self, "float", CAST_REMEDY.format("float")))

    def __complex__(self) -> complex:
        check_scalar("complex", self.aval)
        return complex(_constant(self, "complex", CAST_REMEDY.format("complex")))

    def __index__(self) -> int:
        check_index(self.aval)
        value = _concrete(self, errors.TracerIntegerConversionError, "__index__", INDEX_REMEDY)
        return value.__index__()

    def item(self, *args: int) -> StaticScalar:
        """The element as a Python number, where the trace knows it: a constant to derivatives."""
        return _concrete(self, errors.ConcretizationTypeError, "item", VALUE_REMEDY).item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists, where the trace knows them and no derivative is lost."""
        return _constant(self, "tolist").tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """The elements as bytes, where the trace knows them and no derivative is lost."""
        return _constant(self, "tobytes").tobytes(order)

    def __format__(self, spec: str) -> str:
        if not spec:
            return repr(self)
        return format(_constant(self, "format", PRINT_REMEDY), spec)

    def __getattr__(self, name: str) -> Any:
        """Raise for an attribute that arrays have and tracers cannot; the message says why."""
        # Python calls this only after the usual look-up has failed: names that exist cost nothing.
        if name.startswith("_"):    # libraries probe for protocols: no message is formatted
            raise AttributeError(name)
        if not self.aval.is_array:
            return self.aval.attribute_of(self, name)
        if not hasattr(lib.ArrayImpl, name):
            raise AttributeError(f"{printed_name(self)!r} object has no attribute {name!r}")
        raise AttributeError(
            f"{name}: {describe(self)} given; a concrete array is required: a value that is being "
            "traced is on no device yet; use it outside the transformed function.")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise errors.ConcretizationTypeError(
            f"pickle: {describe(self)} given; a concrete array is required: a traced value has no "
            "data; pickle what the transformed function returns.")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        raise errors.TracerArrayConversionError(
            "numpy.asarray: The numpy.ndarray conversion method __array__() was called on\n"
            f"  {describe(self)}\n  at {source.summarize(source.user_frame())};\n"
            "  a concrete array is required, because NumPy needs the values now;\n"
            "  use the olympus.numpy function of the same name, or keep NumPy out of the "
            "transformed function.")

    def __repr__(self) -> str:
        weak = "~" if getattr(self.aval, "weak_type", False) else ""
        return f"{type(self).__name__}({weak}{self.aval})"

with lazy_imports(__name__):       # for messages
    from ..base import rewriting as _rewriting

BOOL_REMEDY = "use olympus.numpy.where, olympus.lax.cond or olympus.lax.while_loop"
INT_REMEDY = "compute it with NumPy; to convert the dtype, try using `x.astype(int)`"
INDEX_REMEDY = ("loop by olympus.lax.fori_loop in place of range, index an array of olympus.numpy "
                "in place of a list")
STATIC_REMEDY = ", or mark the argument static (static_argnums, static_argnames)"
VALUE_REMEDY = "keep the computation in olympus.numpy, or do this outside the transformed function"
CAST_REMEDY = "try using `x.astype({})`, or do this outside the transformed function"
PRINT_REMEDY = "print it with olympus.debug.print, whose format is filled in when the program runs"

# The beginning of `_unknown_because` where a static argument would help.
DEPENDS = "This concrete value was not available in Python because it depends on the value"

# Python's requests, in JAX's words, which users search for.
ATTEMPTED = "Abstract tracer value encountered where concrete value is expected:"
_REWRITTEN = {"bool": "instead_of_branching", "float": "instead_of_math"}
ATTEMPTS = {"bool": "Attempted boolean conversion of",
            "__index__": "The __index__() method was called on"}

lib.set_tracer_class(Tracer)


def printed_name(tracer: Tracer) -> str:
    """The kind of a tracer, as `print` names it."""
    return repr(tracer).partition("(")[0]


def describe(tracer: Tracer, here: str = "") -> str:
    """`a traced value float32[3] (class, origin; setting)`: a tracer in messages.

    The origin leaves out the line `here`, which the message names elsewhere.
    """
    origin = tracer._origin().removesuffix(f" at {here}")
    origins = ", ".join(filter(None, [printed_name(tracer), origin]))
    return f"a traced value {tracer.aval} ({'; '.join(filter(None, [origins, tracer._setting()]))})"


def _concrete(tracer: Tracer, error: type, what: str, remedy: str) -> Array:
    value = tracer._known_value()
    if value is not None:
        return value
    why = tracer._unknown_because()
    if what in ATTEMPTS and tracer._may_be_static() and (not why or why.startswith(DEPENDS)):
        remedy += STATIC_REMEDY
    frame = source.user_frame()
    place = source.summarize(frame)
    raise error(f"{what}(): {ATTEMPTS.get(what, ATTEMPTED)} traced array with shape "
                f"{tracer.aval}.\n  {why}It is {describe(tracer, place)}\n  given at {place};\n"
                "  a concrete value is required, because Python needs it while the program is "
                f"still being traced;\n  {_rewritten(what, frame)}{remedy}.")


def _constant(tracer: Tracer, what: str, remedy: str = VALUE_REMEDY) -> Array:
    """The value of a tracer; an error if it is differentiated, since the tangent would be lost."""
    if tracer._differentiated():
        frame = source.user_frame()
        raise errors.ConcretizationTypeError(
            f"{what}(): {ATTEMPTED} {describe(tracer)} at {source.summarize(frame)}; a value that "
            "is not being differentiated is required, because the derivative of a Python number "
            f"is zero; {_rewritten(what, frame)}keep the computation in olympus.numpy, or take "
            "olympus.lax.stop_gradient of it first.")
    return _concrete(tracer, errors.ConcretizationTypeError, what, remedy)


def _rewritten(what: str, frame: source.Source | None) -> str:
    """The user's code with functions of arrays, as a line of a message; '' if unknown."""
    if frame is None or what not in _REWRITTEN:
        return ""
    instead = getattr(_rewriting, _REWRITTEN[what])(source.location(frame))
    return f"{instead}\n  " if instead else ""


def check_usable(tracer: Tracer) -> None:
    """Raise UnexpectedTracerError if the tracer cannot be used here and now.

    Its trace has ended, belongs to another thread, or waits for a function with a derivative rule.
    """
    trace = tracer._trace
    # The thread first: the trace's own thread may change all other attributes meanwhile.
    if trace.thread != threading.get_ident():
        raise _leaked(tracer, "in another thread than the one that traces it; a trace belongs to "
                      "one thread; pass concrete arrays between threads, or start the "
                      "transformation inside the thread.")
    if not trace.alive:
        raise _leaked(tracer, "after its transformation ended; a traced value may not outlive the "
                      "function it belongs to; return it from the function instead of storing it "
                      "in a global, an attribute or a closure.")
    if trace.waits_for is not None:
        prim, params = trace.waits_for
        here = source.summarize(source.user_frame())
        raise errors.UnexpectedTracerError(
            f"{prim.what} {params['name']}: Encountered an unexpected tracer: {describe(tracer)} "
            f"that the function or its rule closes over is used at {here}; derivative "
            "rules know nothing but arguments; make it an argument of the function, or close over "
            "lax.stop_gradient of it.")


def _leaked(tracer: Tracer, why: str) -> errors.UnexpectedTracerError:
    here, text = source.summarize(source.user_frame()), describe(tracer)
    if not re.search("made by|argument|traced in", text):      # values on the device have no line
        why += "\n  To see the line that made it, call it under olympus.check_tracer_leaks()."
    return errors.UnexpectedTracerError(
        f"leaked tracer: Encountered an unexpected tracer:\n  {text}\n  is used at {here}\n  {why}")


def _foreign_aval(x: Any) -> ShapedArray:
    """The aval of a value that has no `aval` attribute."""
    # The exact type first, which is one look-up; base classes last.
    kind = type(x)
    if kind in SCALAR_TYPES:
        aval = scalar_aval(kind)
        bits = 8 * aval.dtype.itemsize - 1
        if kind is int and not -1 << bits <= x < 1 << bits:
            raise OverflowError(f"typeof: the Python int {x} given;\n  it does not fit "
                                f"{aval.dtype}, the dtype of ints; use a float, a NumPy array of a "
                                "wider dtype, or enable x64.")
        return aval
    lookup = FOREIGN_AVALS.get(kind)
    if lookup is not None:
        return lookup(x)
    if isinstance(x, (np.ndarray, np.generic)):
        if hasattr(x, "mask"):
            raise ValueError("typeof: a masked array given; numpy masked arrays are not supported, "
                             "since the mask would be lost; use x.filled(value), or x.data.")
        return make_aval(x.shape, dtypes.canonical_dtype(x.dtype))
    for base in kind.__mro__:
        if base in FOREIGN_AVALS:
            return FOREIGN_AVALS[base](x)
        if base in SCALAR_TYPES:
            return scalar_aval(base)
    if (as_array := array_method(x)) is not None:
        return typeof(as_array())
    raise TypeError(f"typeof: a value of type {kind.__module__}.{kind.__qualname__} given: "
                    f"{clipped(x)};\n  an array, a NumPy array or a Python number is required;\n  "
                    "convert it with olympus.numpy.asarray, or mark the argument static.")


SCALAR_TYPES = frozenset((bool, int, float, complex))
# A symbolic dimension is a value, too: a literal whose number is known later.
FOREIGN_AVALS: dict[type, Callable[[Any], Any]] = {SymbolicDim: lambda _: scalar_aval(int)}


#: The class of references, which `core/cells.py` adds when it is imported.
REFERENCES: set[type] = set()


def typeof(x: object) -> ShapedArray:
    """The aval of any value that operations take.

    Args: x: array, traced value, NumPy array or Python number.
    Returns: A `ShapedArray`: shape, dtype, weak type, and how it is cut where types say so.

    >>> olympus.typeof(1.0)
    ShapedArray(float32[], weak_type=True)
    """
    # Nearly all operands are arrays and tracers, which have one: `try` is faster than `hasattr`.
    try:
        return x.aval  # pyright: ignore[reportAttributeAccessIssue]
    except AttributeError:
        pass        # leave the handler: this error is no context of the next
    return _foreign_aval(x)


def is_literal(x: object) -> bool:
    """Whether `x` is a rank-0 constant, which programs contain as a literal."""
    kind = type(x)
    return kind is Literal or kind in SCALAR_TYPES or isinstance(x, (np.generic, SymbolicDim))


def valid_olympustype(x: object) -> bool:
    """Whether operations take `x`: an array, a tracer, a NumPy array or a Python number.

    Args: x: any object.

    >>> from olympus.extend.core import valid_olympustype
    >>> valid_olympustype(1.0), valid_olympustype([1.0])
    (True, False)
    """
    try:
        typeof(x)
    except TypeError:
        return False
    return True


def is_array(x: ArrayLike) -> TypeGuard[Array]:
    """Whether `x` is an array or tracer: an operation that changes nothing may return it."""
    return hasattr(x, "aval") and type(x) is not Literal


def literal(value: ArrayLike | SymbolicDim, dtype: np.dtype, weak_type: bool = False
            ) -> Literal:
    """The Literal of a Python or NumPy scalar, in the given dtype."""
    return Literal(value, make_aval((), dtype, weak_type))
