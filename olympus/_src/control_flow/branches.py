"""cond and switch: branches of a program."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from ..base.config import jit_disabled
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, PyTree, R
from ..control.bodies import (
    Body, Finish, aval_error, cast, check_aliases, check_callable, flatten, leaf_names, same_type,
    share_consts, stage_body, structure_error, varied_program,
)
from ..control.cond import cond_p
from ..core import tags
from ..core.trace import Tracer, literal, typeof
from ..lax.comparison import clamp, ne
from ..lax.convert import convert_element_type
from ..types import dtypes
from ..types.avals import Aval, ShapedArray
from ..types.tree import tree_unflatten
from ..types.tree_registry import PyTreeDef

INT32 = dtypes.as_dtype("int32")
_unset = object()


@api_boundary
def cond(pred: ArrayLike, true_fun: Callable[..., R], false_fun: Callable[..., R],
         *operands: PyTree, operand: PyTree = _unset) -> R:
    """`true_fun(*operands)` if `pred` holds, else `false_fun(*operands)`; only one of them runs.

    Under vmap with a mapped `pred` both run and the results are selected.

    Args:
      pred: a boolean (or numeric, then compared with zero) scalar.
      true_fun, false_fun: functions whose results have the same structure, shapes and dtypes.
      *operands: pytrees passed to the function.
      operand: the same for one operand, by keyword.
    Returns: The chosen function's result; a Python number in it becomes an array.

    >>> print(olympus.lax.cond(True, lambda x: x + 1, lambda x: x - 1, 3.0))
    4.0
    """
    if len(operands) == 2 and not callable(true_fun) and callable(false_fun) and \
            callable(operands[1]):
        # The older spelling: cond(pred, true_operand, true_fun, false_operand, false_fun).
        on_true, on_false = false_fun, operands[1]
        return cond(pred, lambda x, _: on_true(x), lambda _, y: on_false(y), true_fun, operands[0])
    check_callable("lax.cond", true_fun=true_fun, false_fun=false_fun)
    operands = _operands_of_call("cond", operands, operand)
    aval = _aval_of_scalar("cond: Pred type must be either boolean or number" if callable(pred) else
                           "cond: Pred must be a scalar", pred, f" of type {type(pred)}")
    if aval.shape != ():
        raise TypeError(f"cond: Pred must be a scalar, got {pred!s:.60} of shape {aval.shape}; use "
                        "olympus.numpy.where to choose by element.")
    kind = dtypes.scalar_kind(aval.dtype)
    if kind not in "biuf":
        raise TypeError(f"cond: Pred type must be either boolean or number, got {aval}; a boolean "
                        "or a real number is required.")
    if jit_disabled.value and (known := _known(pred)) is not None:
        return true_fun(*operands) if bool(known) else false_fun(*operands)
    if kind != "b":
        pred = ne(pred, literal(0, aval.dtype))
    return _branch("cond", convert_element_type(pred, INT32), (false_fun, true_fun), operands)


@api_boundary
def switch(index: ArrayLike, branches: Sequence[Callable[..., R]], *operands: PyTree,
           operand: PyTree = _unset) -> R:
    """`branches[index](*operands)`, the index clamped into range; only one of them runs.

    Args:
      index: an integer scalar.
      branches: functions whose results have the same structure, shapes and dtypes.
      *operands: pytrees passed to the function.
      operand: the same for one operand, by keyword.
    Returns: The chosen branch's result; a Python number in it becomes an array.

    >>> print(olympus.lax.switch(2, [lambda x: x, lambda x: 2 * x, lambda x: 3 * x], 5.0))
    15.0
    """
    if not hasattr(branches, "__iter__"):
        raise TypeError("lax.switch: branches argument should be a sequence of callables; "
                        f"{branches!r} given.")
    branches = tuple(branches)
    for i, branch in enumerate(branches):
        if not callable(branch):
            raise TypeError("lax.switch: branches argument should be a sequence of callables; "
                            f"branches[{i}] is {branch!r}.")
    operands = _operands_of_call("switch", operands, operand)
    aval = _aval_of_scalar("switch: Index type must be an integer", index)
    if aval.shape != ():
        raise TypeError(f"switch: Branch index must be scalar, got {index!s:.60} of shape "
                        f"{aval.shape}.")
    if dtypes.scalar_kind(aval.dtype) not in "iu":
        raise TypeError(f"switch: Index type must be an integer, got {index!r:.60} as "
                        f"{aval.dtype}.")
    if not branches:
        raise ValueError("switch: Empty branch sequence; at least one function is required; "
                         "pass one.")
    if len(branches) == 1:
        return branches[0](*operands)
    last = len(branches) - 1
    if jit_disabled.value and (known := _known(index)) is not None:
        return branches[min(max(int(np.asarray(known)), 0), last)](*operands)
    index = convert_element_type(index, INT32)
    index = clamp(literal(0, INT32), index, literal(last, INT32))
    return _branch("switch", index, branches, operands)


def _known(x: ArrayLike) -> ArrayLike | None:
    """The value itself; None where it is traced and not known yet."""
    return x._known_value() if isinstance(x, Tracer) else x


def _aval_of_scalar(message: str, x: object, more: str = "") -> ShapedArray:
    """The aval of a value; TypeError with the message if it has none."""
    if x is None and message.startswith("cond"):
        raise TypeError("cond: cond predicate is None; an array or a Python number is required; "
                        "does the function that makes it return it?")
    try:
        return typeof(x)
    except TypeError:
        raise TypeError(f"{message}, got {x!s:.60}{more}. An array or a Python number is required."
                        ) from None


def _operands_of_call(what: str, operands: tuple, operand: object) -> tuple:
    if operand is _unset:
        return operands
    if operands:
        raise TypeError(f"{what}: operands given both by position and as operand=; one way is "
                        "required.")
    return (operand,)


def _bodies(what: str, functions: Sequence[Callable[..., PyTree]], in_tree: PyTreeDef,
            in_avals: Sequence[Aval], finish: Finish | None = None, finish_key: Hashable = None
            ) -> list[Body]:
    """The body of each branch; a function of several branches is staged once."""
    staged = {id(f): stage_body(f, in_tree, in_avals, finish, finish_key, what)
              for f in {id(f): f for f in functions}.values()}
    return [staged[id(f)] for f in functions]


def _branch(what: str, index: Array, functions: Sequence[Callable[..., PyTree]], operands: tuple
            ) -> PyTree:
    leaves, avals, tree = flatten(f"{what}: operands", operands)
    check_aliases(what, functions[-1], (), leaves, tree)
    bodies = _bodies(what, functions, tree, avals)
    wanted = check_branches(what, bodies)
    # `check_branches` refuses everything else.
    if any(a.weak_type != b.weak_type for body in bodies
           for a, b in zip(body.out_avals, wanted, strict=True)):
        bodies = _bodies(what, functions, tree, avals, lambda out: list(map(cast, out, wanted)),
                         tuple(wanted))
    programs, consts = share_consts(bodies)
    check_aliases(what, functions[-1], consts, leaves, tree)
    operands = (*consts, *leaves)
    # Devices that take different branches have different results, and their own share in the
    # cotangents of operands.
    if vma := typeof(index).vma:
        operands = tuple([tags.pvary(x, vma) for x in operands])
        programs = [varied_program(p, vma, tuple(map(typeof, operands))) for p in programs]
    out = cond_p.bind(index, *operands, branches=tuple(programs))
    return tree_unflatten(bodies[0].out_tree, out)


def check_branches(what: str, bodies: Sequence[Body]) -> Sequence[ShapedArray]:
    """The avals that all branches return: weak where the first (the false) branch's are."""
    if what == "cond":
        order: tuple[int, ...] = (1, 0)
        names = [f"the {kind} branch ({b.name})"
                 for kind, b in zip(("false", "true"), bodies, strict=True)]
        paths = ["false_fun", "true_fun"]
    else:
        order = tuple(range(len(bodies)))
        names = [f"branch {i} ({b.name})" for i, b in enumerate(bodies)]
        paths = [f"branches[{i}]" for i in order]
    first = bodies[order[0]]
    for i in order[1:]:
        meaning = f"but they differ: {names[i]} returns something else than {names[order[0]]}"
        if bodies[i].out_tree != first.out_tree:
            raise structure_error(what, first.out_tree, bodies[i].out_tree, f"{what} branch "
                                  f"outputs must have the same pytree structure, {meaning}")
        if not all(map(same_type, first.out_avals, bodies[i].out_avals)):
            raise aval_error(what, leaf_names(first.out_tree, "the result"), first.out_avals,
                             bodies[i].out_avals,
                             f"{what} branches must have equal output types {meaning}",
                             (f"the output of {paths[order[0]]}, {{}}",
                              f"the output of {paths[i]}, {{}}"))
    return bodies[0].out_avals
