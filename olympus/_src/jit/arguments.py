"""Arguments of the user's verbs: their numbers, their names, and checks of leaves.

Checks run over leaves without building any text; names and paths are worked out once a check has
failed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from ..base import lib
from ..base.typing import ArrayLike, PyTree
from ..base.util import clipped, lazy_imports, name_of
from ..core.context import ThreadState, ctx
from ..core.trace import REFERENCES, Tracer, typeof, valid_olympustype
from ..runtime.eager import argument_array
from ..types import dtypes
from ..types.avals import MUTABLE, AbstractValue, ShapedArray, make_aval
from ..types.tree import keystr, tree_flatten_with_path
from ..types.tree_registry import PyTreeDef, registering

with lazy_imports(__name__):       # where there are references
    from ..core import cells as _cells

_ARRAY_TYPES = (Tracer, lib.ArrayImpl)      # as nearly all leaves are
_WRAPPERS = 8       # around a function; one may be around itself


def check_callable(what: str, fun: object) -> None:
    """TypeError unless `fun` can be called."""
    if not callable(fun):
        raise TypeError(f"{what}: Expected a callable value, got {clipped(fun)} of type "
                        f"{type(fun).__name__}; write {what}(f), not {what}(f(x)).")


# Argument numbers -------------------------------------------------------------------------------

def check_argnums(what: str, argnums: int | Sequence[int]) -> int | tuple[int, ...]:
    """An int, or a tuple of ints."""
    given: Any = argnums
    try:        # by `__index__`, which NumPy's integers have as well
        if isinstance(argnums, (tuple, list)):
            return tuple([i.__index__() for i in argnums])
        return given.__index__()
    except (AttributeError, TypeError):
        raise TypeError(f"{what}: argnums={argnums!r} given; an int or a tuple of ints is "
                        "required.") from None


def resolve_argnums(what: str, fun: object, argnums: int | tuple[int, ...], count: int
                    ) -> tuple[int, ...]:
    """Argument numbers counted from the front; TypeError if a call has too few arguments."""
    wanted = argnums if isinstance(argnums, tuple) else (argnums,)
    for i in wanted:
        if not -count <= i < count:
            # The classes differ as in JAX.
            raise (ValueError if i < 0 else TypeError)(
                f"{what}: differentiating {name_of(fun)} with respect to argnums={argnums} "
                f"requires at least {i + 1 if i >= 0 else -i} positional arguments to be passed by "
                f"the caller, but got only {count} positional arguments; keyword arguments are "
                "never differentiated; pass it by position.")
    numbers = tuple([i + count if i < 0 else i for i in wanted])
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"{what}: argnums={argnums} names an argument twice; list each once.")
    return numbers


def select(what: str, fun: object, argnums: int | tuple[int, ...], args: tuple
           ) -> tuple[tuple[int, ...], PyTree]:
    """Positions of the chosen arguments, and those: one value for an int, a tuple for a tuple."""
    if type(argnums) is int and 0 <= argnums < len(args):
        return (argnums,), args[argnums]
    positions = resolve_argnums(what, fun, argnums, len(args))
    chosen = tuple([args[i] for i in positions])
    return positions, chosen if isinstance(argnums, tuple) else chosen[0]


def substitute(args: tuple, positions: tuple[int, ...], argnums: int | Sequence[int],
               chosen: PyTree) -> list[PyTree]:
    """`args` with the chosen ones replaced."""
    new = list(args)
    if type(argnums) is int:
        new[positions[0]] = chosen
    else:
        for i, value in zip(positions, chosen):
            new[i] = value
    return new


# Names for messages -----------------------------------------------------------------------------

def argument_name(fun: Callable[..., PyTree], position: int | str) -> str:
    """The parameter's name where the signature tells, else `args[position]`."""
    return name_in_code(fun, position) or parameter_name(parameters_of(fun), position)


def name_in_code(fun: object, position: int | str) -> str:
    """`parameter_name` for most functions, without the 20 us of `inspect.signature`.

    Empty where `inspect` has to be asked.
    """
    for _ in range(_WRAPPERS):
        # `inspect` asks for `__signature__` before `__wrapped__`, and before the code.
        if type(fun) is not FunctionType or "__signature__" in fun.__dict__:
            return ""
        if "__wrapped__" not in fun.__dict__:
            code = fun.__code__
            return (code.co_varnames[position] if type(position) is int
                    and position < code.co_argcount else "")
        fun = fun.__dict__["__wrapped__"]
    return ""


def parameters_of(fun: Callable[..., PyTree]) -> list[inspect.Parameter] | None:
    """The parameters of a function; None where Python cannot tell."""
    try:
        return list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return None


def parameter_name(parameters: Sequence[inspect.Parameter] | None, position: int | str) -> str:
    """The name of an argument, given by position or keyword; `args[position]`, or the
    keyword, where they do not tell.
    """
    if isinstance(position, str):
        last = parameters[-1] if parameters else None
        if last is None or last.kind is not last.VAR_KEYWORD or position in [
                p.name for p in parameters or () if p is not last]:
            return position
        return f"{last.name}[{position!r}]"
    for i, p in enumerate(parameters or ()):
        if p.kind is p.VAR_POSITIONAL:
            return f"{p.name}[{position - i}]"
        if p.kind is p.KEYWORD_ONLY or p.kind is p.VAR_KEYWORD:
            break       # the call has more positional arguments than there are parameters
        if i == position:
            return p.name
    return f"args[{position}]"


def leaf_name(fun: Callable[..., PyTree], positions: Sequence[int | str],
              trees: Sequence[PyTree], index: int) -> str:
    """`x['k'][0]`: the name of leaf number `index` of the trees at these positions."""
    for position, tree in zip(positions, trees):
        leaves = tree_flatten_with_path(tree)[0]
        if index < len(leaves):
            return argument_name(fun, position) + keystr(leaves[index][0])
        index -= len(leaves)
    return f"leaf {index}"


def leaf_path(tree: PyTree, index: int) -> str:
    """The key path of leaf number `index`."""
    return keystr(tree_flatten_with_path(tree)[0][index][0])


def structure_path(treedef: PyTreeDef, index: int) -> str:
    """The key path of leaf number `index` of a structure."""
    return leaf_path(treedef.unflatten(range(treedef.num_leaves)), index)


# Leaves -----------------------------------------------------------------------------------------

def evaluating() -> bool:
    """Whether operations in the current trace run at once, below any vmap, jvp or grad."""
    trace = ctx.trace
    base = ThreadState.trace
    while trace is not base:
        trace = trace.parent
        if trace is None:       # it records, and passes nothing on
            return False
    return True


def as_arrays(leaves: list[ArrayLike]) -> list[ArrayLike]:
    """Python numbers and NumPy arrays put on the device once, if operations run at once."""
    for x in leaves:
        if not isinstance(x, _ARRAY_TYPES):
            if evaluating():
                return [x if isinstance(x, _ARRAY_TYPES) or type(x) in REFERENCES else
                        argument_array(x) for x in leaves]
            break
    return leaves


def check_arrays(what: str, fun: Callable[..., PyTree], leaves: Sequence[ArrayLike],
                 positions: Sequence[int | str], trees: Sequence[PyTree]) -> list[ShapedArray]:
    """The avals of leaves of arguments; TypeError naming the one that is no array."""
    try:
        avals = [typeof(x) for x in leaves]
        for i, aval in enumerate(avals if MUTABLE and what != "jvp" else ()):
            if aval.mutable:
                raise TypeError(
                    f"{what}: argument {leaf_name(fun, positions, trees, i)} of {name_of(fun)} is "
                    f"a reference {aval}; an array is required; pass ref[...], its content, or "
                    "close over the reference, if its derivative is not wanted.")
        return avals
    except TypeError:
        for i, x in enumerate(leaves):
            if not valid_olympustype(x):
                raise TypeError(
                    f"{what}: argument {leaf_name(fun, positions, trees, i)} of {name_of(fun)}: "
                    f"{clipped(x)} of type {type(x)} is not a valid Olympus type; an array or a "
                    f"Python number is required; {registering(x)}bind other arguments with "
                    "functools.partial or a closure.") from None
        raise


def check_results(what: str, fun: object, out: object, leaves: Sequence[ArrayLike]) -> None:
    """TypeError naming the leaf of a result that is no array; ValueError if it is a reference."""
    for i, x in enumerate(leaves):
        if MUTABLE and type(getattr(x, "aval", None)) in MUTABLE:
            raise _cells.returned_reference(what, name_of(fun), x, leaf_path(out, i))
        if not isinstance(x, _ARRAY_TYPES) and not valid_olympustype(x):
            raise TypeError(
                f"{what}: {name_of(fun)} returned a value of type {type(x)} at "
                f"result{leaf_path(out, i)}, which is not a valid Olympus type: {clipped(x)}; "
                f"arrays and Python numbers are required; {registering(x)}return only those, or "
                "None.")


def too_large(what: str, x: int, path: str) -> OverflowError:
    """The error for a Python int, at a path of a call's arguments, that its dtype cannot hold."""
    return OverflowError(f"{what}: An overflow was encountered while parsing an argument to a "
                         f"jitted computation, whose argument path is {path}. Got {type(x)} "
                         f"with value {x}, which {dtypes.default_int()} does not hold; use a "
                         "float, a NumPy array of a wider dtype, or enable x64.")


def abstract(x: Any) -> ShapedArray:
    """The aval of an argument: of a value, or of anything with a shape and a dtype."""
    # Nearly all leaves have an aval: trying is quicker than a test.
    try:
        return x.aval
    except AttributeError:
        pass
    if isinstance(x, AbstractValue):
        aval: Any = x
        return aval
    try:
        return typeof(x)
    except TypeError:
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise
    # Another library's struct: a ShapeDtypeStruct has an aval.
    return make_aval(tuple(x.shape), dtypes.canonical_dtype(x.dtype))
