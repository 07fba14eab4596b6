"""Bodies of control flow: the user's function as a program of flat arguments.

Every value that the function closes over becomes a leading operand, so that programs hold no
tracers, one program serves all values of an array, and transformations see all there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.ir import ClosedOlympuspr, DebugInfo, Var
from ..core.staging import all_consts_as_inputs, stage
from ..core.trace import typeof
from ..lax.convert import convert_element_type_p
from ..types import dtypes
from ..types.tree import keystr, tree_flatten, tree_flatten_with_path, tree_leaves_with_path
from ..types.tree_paths import explain_mismatch

__all__ = ["Body", "cast", "check_callable", "flatten", "share_consts"]


class Body:
    """A staged function: the program takes `consts`, then the flat arguments."""

    __slots__ = ("program", "consts", "out_tree", "name")

    def __init__(self, program: ClosedOlympuspr, consts: Sequence[Any], out_tree: Any,
                 name: str) -> None:
        self.program, self.consts, self.out_tree, self.name = program, list(consts), out_tree, name

    @property
    def out_avals(self) -> list[Any]:
        return self.program.out_avals


def stage_body(fun: Callable[..., Any], in_tree: Any, in_avals: Sequence[Any],
               finish: Callable[[list[Any]], list[Any]] | None = None) -> Body:
    """Stage `fun(*args)` for the flattened tuple `args`; `finish` maps the flat results."""
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
