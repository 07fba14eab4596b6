"""Bodies of control flow: the user's function as a program of flat arguments.

Every value that the function closes over becomes a leading operand. So programs contain no tracers,
one program serves all values of an array, and transformations see every operand.

Like a jitted function, a body is staged once per types of its arguments and Context. It is staged
again after anything that it reads has changed, and at each call if it reads a value that cannot be
compared (`core/captures.py`).
"""

from __future__ import annotations

import contextlib
import inspect
import operator
import weakref
from collections.abc import Callable, Hashable, Sequence
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from ..base import lib, source
from ..base.typing import Array, ArrayLike, PyTree
from ..base.util import Memo, Owned, WithAux, lazy_imports, name_of
from ..core import tags
from ..core.context import current_context
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, DebugInfo, Var, derived
from ..core.staging import all_consts_as_inputs, passing, stage
from ..core.trace import SCALAR_TYPES, literal, typeof, valid_olympustype
from ..lax.convert import convert_element_type_p
from ..lax.sharding import reshard_p
from ..types import dtypes
from ..types.avals import MUTABLE, Aval, ShapedArray, matches
from ..types.tree import (
    keystr, tree_flatten, tree_flatten_with_path, tree_leaves_with_path, tree_unflatten,
    treedef_children,
)
from ..types.tree_paths import explain_mismatch
from ..types.tree_registry import PyTreeDef

with lazy_imports(__name__):
    from ..core import captures as _captures, cells as _cells  # bodies; references

BOOL = dtypes.as_dtype(bool)
Finish = Callable[[list[ArrayLike]], list[ArrayLike]]      # converts a body's flat results


class Body:
    """A staged function: the program takes `consts`, then the flat arguments."""

    __slots__ = ("program", "consts", "out_tree", "name")

    def __init__(self, program: ClosedOlympuspr, consts: Sequence[ArrayLike], out_tree: PyTreeDef,
                 name: str) -> None:
        self.program, self.consts, self.out_tree, self.name = program, list(consts), out_tree, name

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.program.out_avals


class Derived:
    """A function that is determined by a user's function `of` and by `key`: equal ones share a
    body.

    key: its other values, which are hashed and compared; None if they cannot be.
    what: the operation that made it, for messages. That may add values to a carry, before the
      user's.
    """

    __slots__ = ("fun", "of", "key", "what", "__name__")

    def __init__(self, fun: Callable[..., PyTree], of: Callable[..., PyTree], key: Hashable,
                 what: str) -> None:
        self.fun, self.of, self.key, self.what = fun, of, key, what
        self.__name__ = name_of(of)

    def __call__(self, *args: PyTree) -> PyTree:
        return self.fun(*args)


#: (code of a function, code that it decorates) -> the number of such functions that were staged
_made: Memo = Memo(4096)


def stage_body(fun: Callable[..., PyTree], in_tree: PyTreeDef, in_avals: Sequence[Aval],
               finish: Finish | None = None, finish_key: Hashable = None,
               what: str = "a body") -> Body:
    """Stage `fun(*args)` for the flattened tuple `args`; `finish` converts the flat results.

    `finish_key` is hashable and identifies `finish`; without it the body is staged anew. `what` is
    the operation, for messages.
    """
    of, fun_key = (fun.of, fun.key) if isinstance(fun, Derived) else (fun, ())
    # The memo is on the plain function. A jitted wrapper is part of the key by a weak reference:
    # the memo must not keep it alive, and two wrappers share no body.
    jitted = None
    if type(of) is lib.PjitFunction:
        jitted = weakref.ref(of)
        of = vars(of)["__wrapped__"]
    # Other callables may have state, or define equality.
    if type(of) is not FunctionType or fun_key is None or (
            finish is not None and finish_key is None):
        return _stage_body(fun, in_tree, in_avals, finish, what)
    memo = Owned.memo(of, "bodies", 64)
    key = (fun_key, jitted, finish_key, in_tree, tuple(in_avals), current_context())
    if entry := memo.get(key):
        body, code, defaults, kwdefaults, watched = entry
        if (of.__code__ is code and of.__defaults__ is defaults
                and of.__kwdefaults__ is kwdefaults and watched.same()):
            return body
        memo.pop(key, None)
    elif key not in memo and not any(memo.values()):
        codes = _codes(of)
        if not memo:
            _made[codes] = _made.get(codes, 0) + 1
        if _made.get(codes, 1) > 1:      # made anew for each call: watch it from its second use on
            memo[key] = None
            return _stage_body(fun, in_tree, in_avals, finish, what)
    # Watched before and after staging: a body may change the values that it reads.
    code, defaults, kwdefaults = of.__code__, of.__defaults__, of.__kwdefaults__
    watched = _captures.watch(of)
    body = _stage_body(fun, in_tree, in_avals, finish, what)
    # Tracers belong to one call of one transformation: a body that closes over any is not kept.
    if watched is not None and not any(map(passing, body.consts)) and (
            watched.same()):
        memo[key] = body, code, defaults, kwdefaults, watched
    else:
        memo[key] = None    # its second use is not counted in `_made`
    return body


def _codes(fun: FunctionType) -> tuple[CodeType, CodeType | None]:
    """The code of a function, and of the function that it decorates: all wrappers share theirs."""
    decorated: object = None
    with contextlib.suppress(ValueError):   # a circle of `__wrapped__`
        decorated = inspect.unwrap(fun)
    return fun.__code__, decorated.__code__ if isinstance(decorated, FunctionType) else None


def _stage_body(fun: Callable[..., PyTree], in_tree: PyTreeDef, in_avals: Sequence[Aval],
                finish: Finish | None, what: str) -> Body:
    name = name_of(fun)

    def flat(*leaves: Array) -> tuple[list[ArrayLike], PyTreeDef]:
        out, tree = tree_flatten(fun(*in_tree.unflatten(leaves)))
        for i, x in enumerate(out if MUTABLE else ()):
            if type(getattr(x, "aval", None)) in MUTABLE:
                if isinstance(fun, Derived):    # the path in its results would tell users nothing
                    raise _cells.returned_reference(fun.what, name, x)
                raise _cells.returned_reference(what, name, x, keystr(
                    tree_leaves_with_path(tree.unflatten(range(len(out))))[i][0]))
        return out if finish is None else finish(out), tree

    with_aux = WithAux(flat)
    # Arrays become operands, too, not only tracers: one program serves all values.
    closed, consts = all_consts_as_inputs(stage(with_aux, in_avals, DebugInfo("body", name)))
    return Body(closed, consts, with_aux.aux, name)


def check_aliases(what: str, fun: Callable[..., PyTree], consts: Sequence[ArrayLike],
                  leaves: Sequence[object], tree: PyTreeDef, fixed: Sequence[int] = (),
                  keywords: Sequence[str] = ()) -> None:
    """ValueError if a leaf is the same reference as another leaf, or as a constant.

    `tree` is the structure of the function's arguments, without the positions in `fixed`; the last
    ones are the `keywords`.
    """
    if MUTABLE:
        _cells.check_aliases(what, name_of(fun), consts, leaves,
                             lambda i: _argument_names(fun, tree, fixed, keywords)[i])


def _argument_names(fun: Callable[..., PyTree], tree: PyTreeDef, fixed: Sequence[int],
                    keywords: Sequence[str]) -> list[str]:
    """The names of the arguments' leaves: the parameter, if the signature is known, and the path.
    """
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    try:
        names = [p.name for p in inspect.signature(fun).parameters.values() if p.kind in kinds]
    except (TypeError, ValueError):
        names = []
    trees = tree.children()
    count = len(trees) + len(fixed) - len(keywords)
    names += [f"arguments[{i}]" for i in range(len(names), count)]
    roots = [*[x for i, x in enumerate(names[:count]) if i not in fixed], *keywords]
    return [name for root, its in zip(roots, trees, strict=False)
            for name in leaf_names(its, root)]


def check_callable(what: str, **functions: object) -> None:
    """TypeError for the first value that is not callable."""
    for name, fun in functions.items():
        if not callable(fun):
            plural = "s" if len(functions) > 1 else ""
            raise TypeError(f"{what}: {name} is {fun!r}; pass the function itself. {what}: "
                            f"{' and '.join(functions)} argument{plural} should be callable.")


def flatten(what: str, tree: PyTree) -> tuple[list[ArrayLike], list[ShapedArray], PyTreeDef]:
    """Leaves, their avals, the structure; TypeError naming the path of a leaf that is no array."""
    leaves, structure = tree_flatten(tree)
    try:
        return leaves, list(map(typeof, leaves)), structure
    except TypeError as error:
        path, leaf = next((path, leaf) for path, leaf in tree_flatten_with_path(tree)[0]
                          if not valid_olympustype(leaf))
        where = f" at {keystr(path)}" if path else ""
        raise TypeError(f"{what}: {leaf!r} of type {type(leaf).__name__} given{where}; an "
                        "array is required; close over it instead.") from error


def cast(x: Any, aval: ShapedArray) -> ArrayLike:
    """`x` with the dtype and weak type of `aval`, and reduced along the same mesh axes."""
    have = typeof(x)
    if not have.is_array:
        return x
    if have.sums[1] != aval.sums[1]:
        x = reshard_p.bind(x, sharding=aval.sharding)
    if have.dtype == aval.dtype and have.weak_type == aval.weak_type:
        return x
    if type(x) in SCALAR_TYPES:
        value = dtypes.converted(np.asarray(x), aval.dtype)
        return literal(value[()], aval.dtype, aval.weak_type)
    return convert_element_type_p.bind(x, new_dtype=aval.dtype, weak_type=aval.weak_type,
                                       sharding=None)


def share_consts(bodies: Sequence[Body]) -> tuple[list[ClosedOlympuspr], list[ArrayLike]]:
    """Programs that take the same leading operands, and these operands: the union of the consts."""
    # A value that several bodies close over is one operand. Other bodies get an input of its type
    # that nothing reads.
    union = {id(c): c for body in bodies for c in body.consts}
    programs = []
    for body in bodies:
        index_of = {id(c): i for i, c in enumerate(body.consts)}
        lead = [index_of.get(key, typeof(c)) for key, c in union.items()]
        programs.append(with_leading(body.program, len(index_of), lead))
    return programs, list(union.values())


def with_leading(program: ClosedOlympuspr, count: int, lead: Sequence[Any]) -> ClosedOlympuspr:
    """The program with its first `count` inputs replaced; kept with the program.

    Each item of `lead` is the index of one of these inputs, or the aval of a new input.
    """
    if [*lead] == [*range(count)]:
        return program
    return _with_leading(program, count, tuple(lead))


@derived
def _with_leading(program: ClosedOlympuspr, count: int, lead: tuple[int | ShapedArray, ...]
                  ) -> ClosedOlympuspr:
    pr = program.olympuspr
    return program.replace(olympuspr=pr.replace(
        invars=[*(pr.invars[x] if isinstance(x, int) else Var(x) for x in lead),
                *pr.invars[count:]]))


def leaf_names(tree: PyTreeDef, root: str) -> list[str]:
    """The names of a structure's leaves: the name of the whole, and the path."""
    dummy = tree.unflatten(range(tree.num_leaves))
    return [root + keystr(path) for path, _ in tree_leaves_with_path(dummy)]


class array:
    """Stands for an array in a printed structure."""


_LEAF = array()


def structure_error(what: str, required: PyTreeDef, returned: PyTreeDef, meaning: str) -> TypeError:
    """The error for results whose pytree structures differ."""
    want = required.unflatten([_LEAF] * required.num_leaves)
    have = returned.unflatten([_LEAF] * returned.num_leaves)
    mismatches = "; ".join(explain_mismatch(want, have)[:4])
    return TypeError(f"{what}: {meaning}; {mismatches}; return the same structure.")


def aval_error(what: str, names: Sequence[str], required: Sequence[ShapedArray],
               returned: Sequence[ShapedArray], meaning: str, sides: tuple[str, str] = ("", "")
               ) -> TypeError:
    """The error for results whose types differ.

    `sides`: texts, with a place for a name, for the values of the required and of the found types,
    if these may be cast to vary along more mesh axes.
    """
    mismatches = "; ".join(
        f"{name} is {have}, required {want}"
        for name, want, have in zip(names, required, returned, strict=True)
        if not same_type(want, have))
    casts = _casts(names, required, returned, sides)
    if casts:
        advice = "".join([f"\n  * {text};" for text in casts]) if len(casts) > 1 else casts[0]
        return TypeError(f"{what}: {meaning}: {mismatches}. This might be fixed by"
                         f"{':' if len(casts) > 1 else ' '}{advice}")
    remedy = "convert with astype or make the shapes equal"
    if any(a.mutable for a in required):
        remedy = "close over the reference, which is never a result"
    elif all(matches(*pair) for pair in zip(required, returned, strict=True)):
        remedy = ("move one with device_put" if any(
            x.memory_space is not y.memory_space for x, y in zip(required, returned, strict=True))
                  else "use olympus.reshard, or make the first one with out_sharding"
                  if all(x.vma == y.vma for x, y in zip(required, returned, strict=True)) else
                  "cast with lax.pcast(…, to='varying') what varies along fewer axes")
    return TypeError(f"{what}: {meaning}: {mismatches}; {remedy}.")


def _casts(names: Sequence[str], required: Sequence[ShapedArray], returned: Sequence[ShapedArray],
           sides: tuple[str, str]) -> list[str]:
    """Advice to call pcast, for types that differ only in the axes along which they vary."""
    texts = []
    for name, want, have in zip(names, required, returned, strict=True):
        if same_type(want, have):
            continue
        if not matches(want, have) or want.vma == have.vma or not sides[0]:
            return []
        for side, axes in zip(sides, (have.vma - want.vma, want.vma - have.vma), strict=True):
            if side and axes:
                texts.append(f"applying `olympus.lax.pcast(..., {tuple(sorted(axes, key=str))}, "
                             f"to='varying')` to {side.format(name.removeprefix('the '))}")
    return texts


def same_type(x: Aval, y: Aval) -> bool:
    """Whether shapes, dtypes and shardings are equal; weak types may differ."""
    return x is y or (matches(x, y) and (
        not isinstance(x, ShapedArray) or not isinstance(y, ShapedArray) or x.agrees(y)))


def stage_loop_body(what: str, fun: Callable[..., PyTree], in_tree: PyTreeDef, tree: PyTreeDef,
                    avals: list[ShapedArray], x_avals: Sequence[ShapedArray] = (),
                    carry_of: Callable[[Body], PyTreeDef] = lambda body: body.out_tree
                    ) -> tuple[Body, list[ShapedArray]]:
    """The body of a loop, and the carry's avals: weak types give way to the body's result types.

    Args:
      what: the operation, for messages.
      fun: takes the carry, of structure `tree`, and the other arguments in `in_tree`, of `x_avals`.
      carry_of: body -> the structure of the carry, which comes first among its outputs.
    """
    # Each round makes at least one weak aval strong, or ends the search; `_grow` makes no strong
    # aval weak. Hence the bound.
    for _ in range(2 + len(avals)):
        carry_avals = tuple(avals)

        # Cast the results of strong carries that differ in weak type only, and results that vary
        # along fewer axes than the carry. Leave other results of weak carries, to see the types
        # that the body gives.
        def finish(out: list[ArrayLike], carry_avals: tuple = carry_avals) -> list[ArrayLike]:
            out = [*(tags.pvary(x, a.vma) if isinstance(a, ShapedArray) else x
                     for x, a in zip(out, carry_avals, strict=False)), *out[len(carry_avals):]]
            return [*(cast(x, a) if same_type(typeof(x), a) and not a.weak_type else x
                      for x, a in zip(out, carry_avals, strict=False)), *out[len(carry_avals):]]

        body = stage_body(fun, in_tree, [*avals, *x_avals], finish, carry_avals, what)
        if carry_of(body) != tree:
            raise _changed(what, fun, tree, carry_of(body), avals, ())
        results = body.out_avals[:len(avals)]
        if all(same_type(a, b) and a.weak_type == b.weak_type
               for a, b in zip(avals, results, strict=True)):
            return body, avals
        grown = [_grow(a, b) for a, b in zip(avals, results, strict=True)]
        if grown == avals:
            raise _changed(what, fun, tree, tree, avals, results)
        avals = grown
    raise AssertionError("weak types only ever turn strong")


def bind_while(bind: Callable[..., list[Array]], cond_fun: Callable[[PyTree], PyTree],
               body_fun: Callable[[PyTree], PyTree], init_val: PyTree) -> PyTree:
    """Stage condition and body on pytrees, and call the `bind` of a while primitive.

    TypeError unless the condition returns one boolean scalar.
    """
    leaves, avals, tree = flatten("while_loop: init_val", init_val)
    in_tree = tree_flatten((init_val,))[1]
    # The body first: it decides the carry's weak types, for which the condition is staged.
    body, avals = stage_loop_body("while_loop", body_fun, in_tree, tree, avals)
    cond = stage_body(cond_fun, in_tree, avals, what="while_loop")
    out = cond.out_avals
    if len(out) != 1 or out[0].shape != () or out[0].dtype != BOOL or cond.out_tree.num_nodes != 1:
        shown = (f"pytree {cond.out_tree}" if cond.out_tree.num_nodes != 1 else
                 f"output type(s) {out}")
        raise TypeError(f"while_loop: cond_fun must return a boolean scalar, but got {shown} from "
                        f"{cond.name}; reduce with olympus.numpy.all or any.")
    # If devices may leave the loop at different times, the carry differs between them.
    vma = out[0].vma
    if any(isinstance(a, ShapedArray) and not vma <= a.vma for a in avals):
        varied = [tags.pvary(x, vma) for x in leaves]
        return bind_while(bind, cond_fun, body_fun, tree_unflatten(tree, varied))
    leaves = [cast(x, a) for x, a in zip(leaves, avals, strict=True)]
    # The cotangents of the body's constants are sums over these devices, too.
    consts, program = [tags.pvary(x, vma) for x in body.consts], body.program
    if any(map(operator.is_not, consts, body.consts)):
        program = varied_program(program, vma, (*map(typeof, consts), *avals))
    result = bind(*cond.consts, *consts, *leaves, cond_nconsts=len(cond.consts),
                  cond_olympuspr=cond.program, body_nconsts=len(consts), body_olympuspr=program)
    return tree_unflatten(tree, result)


@derived
def varied_program(program: ClosedOlympuspr, vma: frozenset[str], avals: tuple[ShapedArray, ...]
                   ) -> ClosedOlympuspr:
    """The program on operands of types `avals`, with results that vary along `vma`, too."""
    return stage(lambda *xs: [tags.pvary(out, vma) for out in eval_closed(program, *xs)], avals,
                 program.olympuspr.debug_info)


def _changed(what: str, fun: Callable[..., PyTree], tree: PyTreeDef, found_tree: PyTreeDef,
             avals: Sequence[ShapedArray], returned: Sequence[ShapedArray]) -> TypeError:
    """The error for a carry whose structure or types the body changes."""
    noun, name = "carry" if what == "scan" else "value", described(fun)
    if isinstance(fun, Derived):
        what, tree, found_tree = fun.what, *(treedef_children(t)[-1] for t in (tree, found_tree))
        noun, avals, returned = "value", *(x[len(x) - tree.num_leaves:] for x in (avals, returned))
    if tree != found_tree:
        return structure_error(
            what, tree, found_tree,
            f"{what} body function carry input and carry output must have the same pytree "
            f"structure, but they differ: the {noun} that {name} returns differs from its input")
    names = leaf_names(tree, "carry" if noun == "carry" else "the value")
    return aval_error(what, names, avals, returned,
                      f"{what} body function carry input and carry output must have equal types, "
                      f"but they differ: the {noun} that {name} returns differs from its input",
                      ("the initial {}", ""))


def described(fun: Callable[..., PyTree]) -> str:
    """A user's function for messages: its name and its line."""
    fun = inspect.unwrap(fun.of if isinstance(fun, Derived) else fun)
    code = getattr(fun, "__code__", None)
    return name_of(fun) + (f" ({source.written_at(code)})" if code else "")


def _grow(have: ShapedArray, result: ShapedArray) -> ShapedArray:
    """The carry aval after the body's result: a weakly typed carry takes the body's type, and a
    carry with full cotangents one with partial cotangents.
    """
    if matches(have, result) and result.explicit and result.sums[1] and not any(have.sums):
        return have.update(sharding=result.sharding)
    if not have.weak_type or have.shape != result.shape:
        return have
    dtype, _ = dtypes.promote_types(have.dtype, result.dtype, True, result.weak_type)
    return have.update(dtype=dtype, weak_type=dtype == result.dtype == have.dtype
                       and result.weak_type)
