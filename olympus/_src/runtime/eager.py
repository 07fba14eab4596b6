"""Eager evaluation: the parts that all operations share when they run at once.

    scalar                    Python numbers on the device: once per type, bits and device
    argument_array            any operand as an array
    FAILURES, check_deleted the errors of a compiled call, and their meaning
    run_program               an executable's results in the classes of their dtypes, checked
    EvalTrace                 the base trace: compiles each operation once, and runs it

An operation with given params has one C++ pjit object; it finds the executable for the operands'
types by itself, so an eager call costs one dict hit above C++.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import errors, lib, source
from ..base.config import default_device, enable_x64, no_execution, notes_failures
from ..base.spelling import array_method
from ..base.typing import Array, ArrayLike, Params, T, Value
from ..base.util import Memo, bit_key, lazy_imports
from ..core import reuse
from ..core.ir import ClosedOlympuspr, Literal, high_types
from ..core.primitive import Higher, Primitive, missing_rule, refuse_references
from ..core.staging import stage
from ..core.trace import (
    REFERENCES, SCALAR_TYPES, Trace, Tracer, check_usable, install_base_trace, typeof,
)
from ..devices.array import (
    WRAPPERS, array_from_numpy, numpy_value, placed_copy, put_array, put_numpy, stored,
)
from ..lax.convert import convert_element_type_p
from ..lax.creation import dim_as_value_p
from ..types import dtypes
from ..types.avals import HIGH, Aval, ShapedArray, make_aval
from ..types.shape import SymbolicDim
from ..types.sharding import NamedSharding, PartitionSpec, Sharding, demanded_memory
from ..types.tree_registry import dispatch_registry
from .compile import Executable, Missed, compile_program
from .nans import check_results, debugging
from .placement import layouts_of, placement_of, sharding_of

if TYPE_CHECKING:
    from .hosts import Watched

with lazy_imports(__name__):
    from . import failures as _failures, hosts as _hosts  # for who asks for them

ArrayImpl = lib.ArrayImpl
PjitFunction = lib.PjitFunction

# Errors of compiled calls that a library function may have to explain. The last two arise from a
# list that contains itself, which C++ follows to the end of the stack.
FAILURES = (ValueError, TypeError, OverflowError, lib.XlaRuntimeError, RecursionError, SystemError)

# Arrays of numbers on a device, by (aval with their dtype and weak type, type, value, default
# device), and over several devices, by (that key, sharding), once an array there needed them.
# The arrays are operands only: a user who got one could delete or donate it.
scalars: Memo = Memo(4096)
_WEAK = {(x64, kind): make_aval((), dtypes.as_dtype(f"{kind.__name__}{64 if x64 else 32}"), True)
         for x64 in (False, True) for kind in (int, float)}
_PYTHON_TYPES = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def scalar(aval: ShapedArray, number: Any) -> Array:
    """The rank-0 array of a number at the dtype and weak type of `aval`; it may be an operand only.

    C++ puts Python numbers on the device in each call (4 us); here the last few thousand are kept.
    """
    kind = type(number)
    # The key tells 0.0 from -0.0 and finds NaN; every look-up of numbers uses the same key.
    same = kind is int or (kind is float and (number == number or number is np.nan))
    key = aval, kind, (number or repr(number)) if same else bit_key(number), default_device.value
    array = scalars.get(key)
    if array is None:
        if kind is int and dtypes.is_integer(aval.dtype) and not dtypes.fits(number, aval.dtype):
            raise OverflowError(f"compile: the int {number} given for {aval}; one that the dtype "
                                "holds is required; use a wider dtype.")
        value = dtypes.converted(np.asarray(number), aval.dtype)
        array = scalars[key] = array_from_numpy(value, aval.weak_type, narrow=False)
        array._key = key
    return array


def placed(literal: T) -> T | Array:
    """A program's constant as an operand: its array. Anything else as it is."""
    if type(literal) is not Literal:
        return literal
    aval, number = literal.aval, literal.raw
    if type(number) is float or type(number) is int:
        array = scalars.get((aval, type(number), number or repr(number), default_device.value))
        if array is not None:
            return array
    kind = _PYTHON_TYPES.get(dtypes.scalar_kind(aval.dtype))
    return scalar(aval, number if kind is None or type(number) is kind else kind(number))


def result_array(x: T) -> T | Array:
    """A result for its user: a program's constant as an array of the user's own."""
    if type(x) is not Literal:
        return x
    if isinstance(x.raw, SymbolicDim):      # its size is known in runs only
        number = dim_as_value_p.bind(dim=x.raw)
        return (number if number.aval is x.aval else convert_element_type_p.bind(
            number, new_dtype=x.aval.dtype, weak_type=x.aval.weak_type, sharding=None))
    return array_from_numpy(x.value(), x.aval.weak_type)


def number_array(x: Any) -> Array | float:
    """The weakly typed array of a Python int or float, as an operand; itself if it does not fit."""
    aval = _WEAK[enable_x64.value, type(x)]
    array = scalars.get((aval, type(x), x or repr(x), default_device.value))
    if array is None:
        return scalar(aval, x) if type(x) is float or dtypes.fits(x, aval.dtype) else x
    return array


def argument_array(x: Any) -> Array:
    """Any value that operations take as a device array (or a key array, which holds one).

    Arrays of float0 stay NumPy arrays; compiled calls take bools in their place.
    """
    kind = type(x)
    if kind is ArrayImpl or kind in WRAPPERS:
        return x
    if kind is Literal:
        return placed(x)
    if isinstance(x, Tracer):
        check_usable(x)
        raise errors.UnexpectedTracerError(
            f"leaked tracer: {x!r} is used where its transformation is not the current one; a "
            "traced value may be used only by the function that is traced; return it instead.")
    aval = typeof(x)    # raises the teaching error for anything but an array
    if aval.is_high:
        return x
    if kind in SCALAR_TYPES:
        return array_from_numpy(np.asarray(x, aval.dtype), aval.weak_type)
    if kind is not np.ndarray and (as_array_method := array_method(x)) is not None:
        return argument_array(as_array_method())
    return array_from_numpy(np.asarray(x))


def shard_fallback(x: Any, sharding: Sharding | None = None, *_: object) -> object:
    """Called by C++ for an argument that it cannot place: the array where the program takes it.
    """
    if isinstance(x, np.ndarray) and not dtypes.is_float0(x.dtype):
        if type(sharding) is NamedSharding:
            return put_numpy(x, sharding)
        if type(sharding) is lib.SingleDeviceSharding and demanded_memory(sharding) is None:
            return placed_copy(x, sharding._device)
    key = getattr(x, "_key", None) if type(x) is ArrayImpl else None
    array = scalars.get((key, sharding))
    if array is not None:
        return array
    x = stored(argument_array(x))
    if sharding is None or (sharding.num_devices == 1 and demanded_memory(sharding) is None):
        return x
    if key is None:
        return put_array(x, sharding)
    array = scalars[key, sharding] = put_numpy(numpy_value(x), sharding, x.aval.weak_type)
    return array


def check_deleted(name: str, args: Iterable[object]) -> None:
    """Raise DonatedArgumentError if an operand is an array that was deleted or donated."""
    for i, x in enumerate(args):
        if type(x) is ArrayImpl and x.is_deleted():
            raise deleted_error(f"{name}: operand {i}", x.aval) from None


def deleted_error(what: str, aval: ShapedArray) -> errors.DonatedArgumentError:
    """The error for an operand whose value is gone."""
    return errors.DonatedArgumentError(
        f"{what}: Array has been deleted with shape={aval}. It was given up by delete() or as a "
        f"donated argument, and is used at {source.summarize(source.user_frame())}; use the result "
        "of the call that it was donated to, or do not donate it.")


def run_program(executable: Executable, args: Sequence[Array], name: str,
                closed: ClosedOlympuspr | None = None) -> list[Array]:
    """Results, as users have them, of an executable of flat device arrays.

    Where they are checked for NaN, `name` is the called function's, and `closed` the user's
    program.
    """
    if no_execution.value:
        raise RuntimeError(f"{name}: the option olympus_no_execution is set; programs are not run; "
                           "run it outside, or ask only for shapes (eval_shape) or code (lower).")
    outs = _wrapped(executable(args), executable.out_avals)
    if debugging():
        check_results(name, closed, _wrapped(args, executable.in_avals), outs)
    return outs


def _wrapped(arrays: Sequence[Array], avals: Sequence[Aval]) -> list[Array]:
    """Arrays of extended dtypes in the class of the dtype, of float0 as NumPy arrays."""
    return [_wrap(x, a.dtype) if hasattr(a, "dtype") else x
            for x, a in zip(arrays, avals, strict=True)]


def _wrap(x: Array, dtype: Any) -> Any:
    if dtypes.is_extended(dtype):
        return dtype.wrap(x)
    return np.zeros(x.shape, dtype) if dtypes.is_float0(dtype) else x


MANY = 64       # the most operands of one compiled program: XLA takes seconds for 2,000


def in_groups(xs: Sequence[T]) -> list[Sequence[T]]:
    """A sequence cut into sequences of `MANY` entries, of its type."""
    return [xs[i:i + MANY] for i in range(0, len(xs), MANY)]


# The base trace ----------------------------------------------------------------------------------

def operation_call(prim: Primitive, params: Params) -> PjitFunction:
    """The C++ callable of an operation with given params."""
    several = prim.multiple_results

    def program(*xs: Array) -> list[Array]:
        out = prim.bind(*xs, **params)
        return list(out) if several else [out]

    def staged(avals: Sequence[Aval]) -> ClosedOlympuspr:
        # `bind` inside `program` is recorded: `stage` has made its own trace the current one.
        closed = stage(program, avals)
        for eqn in closed.eqns:
            eqn.source = source.CALLERS
        return closed

    by_groups = prim.by_groups
    return _compiled_call(prim.name, staged, several, prim.programs != (),
                          None if by_groups is None else
                          lambda args: by_groups(in_groups(args), **params),
                          prim.specs_out(params) if isinstance(prim, Higher) else ())


def _compiled_call(name: str, program_for: Callable[[list[ShapedArray]], ClosedOlympuspr],
                   several: bool, users: bool,
                   by_groups: Callable[[Sequence[ArrayLike]], Array] | None = None,
                   specs: Sequence[PartitionSpec] = ()) -> PjitFunction:
    """The C++ callable of a program for operands of any types.

    Args:
      name: the called function's name.
      program_for: the program for operands of given avals.
      several: whether it has a list of results.
      users: whether it may hold code of the user's.
      by_groups: the function to call with many operands in place of one program, or None.
      specs: the user's specs of results over a mesh, for results with the same sharding; or ().
    """
    # C++'s object that Python is around, and how: once a program calls the host.
    behind: list[tuple[PjitFunction, Watched]] = []

    def run(*args: ArrayLike) -> Array | list[Array]:
        return miss(*args)[0]       # disable_jit concerns functions; operations are still compiled

    def miss(*args: ArrayLike) -> Missed:
        try:
            if behind:
                call, watched = behind[0]
                return watched(call, args, {}), None, False
            return first(*args)
        except BaseException:
            lib.forget_signatures(itself)
            raise

    def again(*args: ArrayLike) -> Missed:
        return first(*args, watched=behind[0][1])

    def first(*args: ArrayLike, watched: Watched | None = None) -> Missed:
        if len(args) > MANY and by_groups is not None:
            return by_groups(args), None, False
        values = list(map(argument_array, args))
        avals = [typeof(v) for v in values]
        placement = placement_of(list(map(sharding_of, values)), named=lambda i: (
            f"argument {i} of {name} with shape {avals[i].str_short()} and"))._replace(
                layouts=layouts_of(values))
        closed = program_for(avals)
        checked = _failures.checked(closed) if notes_failures() else None
        executable = compile_program(closed if checked is None else checked.program, name,
                                     placement, specs=specs if checked is None else ())
        leaves = list(map(stored, values))
        used = reuse.applied(name, closed, values, True)
        outs = run_program(executable, leaves, name, closed if users else None)
        if checked is not None:
            code, words, *outs = outs
            _failures.note(code, words, checked.sites, not users)
        reuse.with_cells(used, outs)
        result = outs if several else outs[0]
        if executable.watched and not behind:
            behind.append((lib.pjit(name, run, again, [], [], object(), dispatch_registry,
                                    shard_fallback), _hosts.Watched()))
        return result, None if checked is not None else executable.fastpath(
            dispatch_registry.flatten(result)[1], leaves, args, watched), False

    made = lib.pjit(name, run, miss, [], [], object(), dispatch_registry, shard_fallback)
    itself = weakref.ref(made)
    return made


_programs: Memo = Memo(16384)


class EvalTrace(Trace):
    """Compiles (on the first call) and runs."""

    __slots__ = ()
    evaluates = True

    def process(self, prim: Primitive, args: tuple, params: Params) -> Any:
        # Usually all are arrays, and nothing is built.
        for a in args:
            if type(a) is not ArrayImpl:
                try:
                    args = tuple(map(argument_array, args))
                except TypeError:
                    if all(type(x) not in REFERENCES for x in args):
                        raise
                    if isinstance(prim, Higher):    # its trace read no operand
                        return prim.on_references(prim, args, params)
                    if prim.takes_refs:     # inside of a function of the user's
                        args = tuple([x if type(x) in REFERENCES else argument_array(x)
                                      for x in args])
                        break
                    try:
                        refuse_references(prim, tuple(map(typeof, args)))
                    except TypeError as error:
                        raise error from None
                break
        if prim.impl is not None:
            return prim.impl(*args, **params)
        if params:
            # A call of a primitive with bodies is kept by its first body, and goes when the user's
            # program does; all others share one bounded table. Params of built-in primitives
            # compare by value; whether others' objects do is unknown, so their bits are the key.
            bodies = () if prim.programs == () else prim.bodies(params)
            cache = bodies[0].cache if bodies else _programs
            key = (prim, bit_key(tuple(params.items()))) if prim.open else (prim, *params.items())
        else:
            cache, key = _programs, prim
        try:
            call = cache.get(key)
        except TypeError:       # a param has no hash; this says which primitive's
            prim.result_avals(tuple(map(typeof, args)), params)
            raise
        if call is None:
            if prim.unshaped:
                raise missing_rule(prim, f"Evaluation rule for {prim.name!r} not implemented; give "
                                   f"one with {prim.name}_p.def_impl(rule).")
            call = (_evaluated(prim, params) if isinstance(prim, Higher) else None) or (
                operation_call(prim, params))
            cache[key] = call
        # Operands are checked after a call has failed: C++ refuses deleted ones, and a check
        # beforehand would cost each call.
        try:
            return call(*args)
        except (TypeError, ValueError, lib.XlaRuntimeError) as error:
            check_deleted(prim.name, args)
            source.filter_traceback(error)
            raise

    def as_arrays(self, args: Sequence[object]) -> list[Any]:
        """Operands for a user's trace: literals become arrays."""
        return list(map(result_array, args))

    def compiled(self, closed: ClosedOlympuspr, name: str) -> Callable[[list[Array]], list[Array]]:
        """A program as a function of a list of values."""
        call = _compiled_call(name, lambda avals: closed, True, False)

        def run(args: list[Array]) -> list[Array]:
            for a in args:
                if type(a) is not ArrayImpl:
                    args = list(map(argument_array, args))
                    break
            try:
                return call(*args)
            except (ValueError, lib.XlaRuntimeError):
                check_deleted(name, args)
                raise

        return run

    def process_custom(self, prim: Primitive, fun: Callable, rules: object, args: tuple,
                       params: Params) -> object:
        return fun(*args)


def _evaluated(prim: Higher, params: Params) -> Callable[..., list[Value]] | None:
    """How a primitive with bodies is evaluated, if not by compiling it as it is."""
    if HIGH and any(map(high_types, prim.bodies(params))):
        return lambda *args: prim.in_parts(args, params)
    return prim.evaluated(params)


def apply_primitive(prim: Primitive, *args: ArrayLike, **params: Any) -> Any:
    """Compile the operation and run it: `impl` of a primitive that has a lowering rule.

    Args:
      prim: the primitive.
      *args: arrays and numbers.
      **params: the primitive's parameters.
    Returns: The result; a list if the primitive has several.

    >>> print(xla.apply_primitive(olympus.lax.neg_p, 2.0))
    -2.0
    """
    key = prim, bit_key(tuple(params.items()))
    call = _programs.get(key)
    if call is None:
        call = _programs[key] = operation_call(prim, params)
    return call(*map(argument_array, args))


BASE = EvalTrace()
install_base_trace(BASE)
# The first call of any `pjit` imports C++'s scalar types, and would fail with an error of C++ if
# the arguments had just been refused. It takes 0.1 ms.
lib.pjit("first", abs, lambda x: (x, None, True), [], [], object(), dispatch_registry,
         shard_fallback)(0)
