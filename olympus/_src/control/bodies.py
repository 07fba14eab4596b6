"""Bodies of control flow: the user's function as a program of flat arguments.

Every value that the function closes over becomes a leading operand, so that programs hold no
tracers, one program serves all values of an array, and transformations see all there is.

A function is staged once per types of its arguments and context, as a jitted function is: what else
it reads is read then.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from ..base.config import trace_key
from ..base.util import Memo
from ..core.ir import ClosedOlympuspr, DebugInfo, Var
from ..core.staging import all_consts_as_inputs, stage
from ..core.trace import Tracer, ctx, typeof
from ..lax.convert import convert_element_type_p
from ..types import dtypes
from ..types.tree import keystr, tree_flatten, tree_flatten_with_path, tree_leaves_with_path
from ..types.tree_paths import explain_mismatch

__all__ = ["Body", "Derived", "cast", "check_callable", "flatten", "share_consts"]


class Body:
    """A staged function: the program takes `consts`, then the flat arguments."""

    __slots__ = ("program", "consts", "out_tree", "name")

    def __init__(self, program: ClosedOlympuspr, consts: Sequence[Any], out_tree: Any,
                 name: str) -> None:
        self.program, self.consts, self.out_tree, self.name = program, list(consts), out_tree, name

    @property
    def out_avals(self) -> list[Any]:
        return self.program.out_avals


class Derived:
    """A function made of a user's function alone (and of `key`): staged once for all that are."""

    __slots__ = ("fun", "of", "key", "__name__")

    def __init__(self, fun: Callable[..., Any], of: Callable[..., Any], key: Any) -> None:
        self.fun, self.of, self.key, self.__name__ = fun, of, key, fun.__name__

    def __call__(self, *args: Any) -> Any:
        return self.fun(*args)


# Bodies by function; they hold no function, so they go when it goes.
_bodies: weakref.WeakKeyDictionary[Any, Memo] = weakref.WeakKeyDictionary()


def stage_body(fun: Callable[..., Any], in_tree: Any, in_avals: Sequence[Any],
               finish: Callable[[list[Any]], list[Any]] | None = None,
               finish_key: Any = None) -> Body:
    """Stage `fun(*args)` for the flattened tuple `args`; `finish` maps the flat results.

    `finish_key`, hashable, says all about `finish`; without it the body is staged anew.
    """
    of, own = (fun.of, fun.key) if isinstance(fun, Derived) else (fun, None)
    # Other callables may have state, and be equal to others.
    if type(of) is not FunctionType or (finish is not None and finish_key is None):
        return _stage_body(fun, in_tree, in_avals, finish)
    memo = _bodies.get(of)
    if memo is None:
        memo = _bodies[of] = Memo(64)
    key = (own, finish_key, in_tree, tuple(in_avals), trace_key(), tuple(ctx.axes.items()), ctx.eqn)
    found = memo.get(key)
    if found is None:
        found = _stage_body(fun, in_tree, in_avals, finish)
        if not any(isinstance(c, Tracer) for c in found.consts):
            memo[key] = found
    return found


def _stage_body(fun: Callable[..., Any], in_tree: Any, in_avals: Sequence[Any],
                finish: Callable[[list[Any]], list[Any]] | None) -> Body:
    name = name_of(fun)
    out_tree: Any = None

    def flat(*leaves: Any) -> list[Any]:
        nonlocal out_tree
        out, out_tree = tree_flatten(fun(*in_tree.unflatten(leaves)))
        return out if finish is None else finish(out)

    closed, consts = all_consts_as_inputs(stage(flat, in_avals, DebugInfo(name)))
    return Body(closed, consts, out_tree, name)


def name_of(fun: Any) -> str:
    """What a function is called in messages."""
    return getattr(fun, "__name__", type(fun).__name__)


def check_callable(what: str, **functions: Any) -> None:
    """TypeError unless every one is callable."""
    for name, fun in functions.items():
        if not callable(fun):
            raise TypeError(f"{what}: {name} is {fun!r}; a callable is required; pass the function "
                            "itself.")


def flatten(what: str, tree: Any) -> tuple[list[Any], list[Any], Any]:
    """Leaves, their avals and the structure; TypeError naming the path of what is no array."""
    leaves, structure = tree_flatten(tree)
    try:
        return leaves, list(map(typeof, leaves)), structure
    except TypeError:
        for path, leaf in tree_flatten_with_path(tree)[0]:
            try:
                typeof(leaf)
            except TypeError as error:
                where = f" at {keystr(path)}" if path else ""
                raise TypeError(f"{what}: {leaf!r} of type {type(leaf).__name__} given{where}; an "
                                "array is required; close over it instead.") from error
        raise


def cast(x: Any, aval: Any) -> Any:
    """`x` with the dtype and weak type of `aval`."""
    have = typeof(x)
    if have.dtype == aval.dtype and have.weak_type == aval.weak_type:
        return x
    return convert_element_type_p.bind(x, new_dtype=aval.dtype, weak_type=aval.weak_type,
                                       sharding=None)


def share_consts(bodies: Sequence[Body]) -> tuple[list[ClosedOlympuspr], list[Any]]:
    """Programs that all take the same leading operands, and those: the union of their consts."""
    union = {id(c): c for body in bodies for c in body.consts}
    if not union:
        return [body.program for body in bodies], []
    programs = []
    for body in bodies:
        pr = body.program.olympuspr
        n = len(body.consts)
        own = {id(c): v for c, v in zip(body.consts, pr.invars)}
        lead = [own[key] if key in own else Var(typeof(c)) for key, c in union.items()]
        programs.append(body.program.replace(
            olympuspr=pr.replace(invars=[*lead, *pr.invars[n:]])))
    return programs, list(union.values())


def leaf_names(tree: Any, root: str) -> list[str]:
    """What each leaf of a structure is called, from the name of the whole."""
    dummy = tree.unflatten(range(tree.num_leaves))
    return [root + keystr(path) for path, _ in tree_leaves_with_path(dummy)]


class array:
    """Stands for an array in a structure that is shown."""


_LEAF = array()


def structure_error(what: str, required: Any, found: Any, meaning: str) -> TypeError:
    """The error for results whose pytree structures must agree and do not."""
    want = required.unflatten([_LEAF] * required.num_leaves)
    have = found.unflatten([_LEAF] * found.num_leaves)
    places = "; ".join(explain_mismatch(want, have)[:4])
    return TypeError(f"{what}: {meaning}; {places}; return the same structure.")


def aval_error(what: str, names: Sequence[str], required: Sequence[Any], found: Sequence[Any],
               meaning: str) -> TypeError:
    """The error for results whose types must agree and do not."""
    places = "; ".join(
        f"{name} is {have}, required {want}" for name, want, have in zip(names, required, found)
        if not same_type(want, have))
    return TypeError(f"{what}: {meaning}: {places}; convert with astype or make the shapes equal.")


def same_type(x: Any, y: Any) -> bool:
    """Whether shapes and dtypes are equal; weak types may differ."""
    return x is y or (getattr(x, "shape", None) == getattr(y, "shape", 0)
                      and x.dtype == y.dtype)


def grow(have: Any, found: Any) -> Any:
    """The carry aval after seeing what the body returns: a weak one gives way."""
    if not have.weak_type or have.shape != found.shape:
        return have
    dtype, weak = dtypes.promote_types(have.dtype, found.dtype, True, found.weak_type)
    return have.update(dtype=dtype, weak_type=weak)
