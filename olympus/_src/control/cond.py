"""cond and switch: one primitive, `cond`, on an int32 index and a tuple of branches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from itertools import compress, repeat
from typing import Any

import numpy as np

from ..base.config import debug_key_reuse, jit_disabled
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, IrValue, Params, PyTree, R, Value
from ..base.util import merged
from ..core import reuse, tags
from ..core.effects import OrderedIOEffect, input_effects
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, Literal, OlympusprEqn, Var, derived
from ..core.primitive import Axis, Builder, Cotangent, Linear, Tangent, Zero, program_uses_axis
from ..core.reuse import Cells, Use
from ..core.staging import stage
from ..core.trace import Tracer, literal, typeof
from ..interpreters.batching import batch_flat, batch_program, to_axis
from ..interpreters.checks import Checks, as_branch
from ..interpreters.partial_eval import Residual, Split, TapeTrace
from ..interpreters.transpose import linear_flags, transpose_program
from ..lax.barriers import random_clone_p, stop_gradient
from ..lax.bits import bitwise_or
from ..lax.comparison import clamp, eq, ne, select_n
from ..lax.convert import convert_element_type
from ..lax.reduce import argmax, reduce_or
from ..lax.shape import broadcast_in_dim, zeros_of
from ..types import dtypes
from ..types.avals import Aval, ShapedArray, has_tangent
from ..types.tree import tree_unflatten
from ..types.tree_registry import PyTreeDef
from .bodies import (
    Body,
    Finish,
    aval_error,
    cast,
    check_aliases,
    check_callable,
    flatten,
    leaf_names,
    same_type,
    share_consts,
    stage_body,
    structure_error,
)
from .elements import check_elements, map_mapped, per_element, put_one, replaces_others
from .groups import Runs

INT32 = dtypes.as_dtype("int32")
_unset = object()


class Cond(Runs):
    """params: branches. Operands: an int32 index in range, then the operands of every branch."""

    body = "branches"
    programs = (body,)
    roles = 1, None, 0
    branches = True

    def cells(self, use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
        return use.branches(eqn.params["branches"], cells[1:])

    def lower(self, b: Builder, index: IrValue, *args: IrValue, branches: Sequence[ClosedOlympuspr]
              ) -> Sequence[IrValue]:
        types = [b.type(a) for a in b.avals_out]
        _, *avals = b.avals_in

        # Shardy takes operands that a branch only hands on for whole, unless told in the branch.
        def emit(i: int, body: ClosedOlympuspr) -> Sequence[IrValue]:
            here = list(map(b.spread, args, avals))
            if sum(body is other for other in branches) > 1:    # nested, written out, it is 2^n
                return b.call(body, here, "branch")
            return b.call_inline(body, here, f"cond/branch_{i}_fun")

        return b.case(index, [functools.partial(emit, *pair) for pair in enumerate(branches)],
                      types)

    def checked(self, checks: Checks, args: Sequence[Array], params: Params) -> list[Array] | None:
        found = {id(b): checks.body(b) for b in params["branches"]}
        if not any(found.values()):
            return None
        sites, places = [], {}      # a program that stands for several indices stays one
        for key, body in found.items():
            places[key] = len(sites)
            sites += body.sites if body else ()
        some = list(filter(None, found.values()))
        width = max(body.width for body in some)
        vma = frozenset().union(*(body.program.out_avals[0].vma for body in some))
        made = {id(b): as_branch(found[id(b)] or b, places[id(b)], width, vma)
                for b in params["branches"]}
        return checks.took(self.bind(*args, branches=tuple(
            [made[id(b)] for b in params["branches"]])), sites)

    def step_through(self, run: Callable[..., list[Array]], index: Array, *args: Array,
                     branches: Sequence[ClosedOlympuspr]) -> None:
        run(branches[int(index)], *args)

    def partial_eval(self, tape: TapeTrace, args: Sequence[ArrayLike], unknown: Sequence[bool], *,
                     branches: Sequence[ClosedOlympuspr]) -> Sequence[Array]:
        # Which branch is taken is not known: nothing can be computed now.
        if unknown[0]:
            return tape.record(self, args, {"branches": branches})
        #   known branch i    known                     ->  known outputs | slots
        #   unknown branch i  slots | passed | unknown  ->  unknown outputs
        # A branch puts the residuals that it computes into slots that fit, and zeros into the
        # others, which its unknown half does not read. `passed`: known operands that are residuals
        # of any.
        uk = unknown[1:]
        splits, flags = self.split({"branches": branches}, uk)
        index, known = args[0], [a for a, u in zip(args[1:], uk, strict=True) if not u]
        slots = _residual_slots(splits)
        known_bodies = tuple(_known_branch(s, slots) for s in splits)
        out = self.bind(index, *known, branches=known_bodies)
        num_known = len(flags) - sum(flags)
        # Which known operands the unknown halves read: those are passed on as they are.
        passed = sorted({r.index for s in splits for r in s.residuals if r.kind == "input"})
        unknown_bodies = tuple(_unknown_branch(s, slots, passed, known) for s in splits)
        found: list[Any] = []
        if any(flags):
            found = tape.record(
                self, [index, *out[num_known:], *[known[k] for k in passed],
                       *[a for a, u in zip(args[1:], uk, strict=True) if u]],
                {"branches": unknown_bodies})
        return merged(flags, found, out[:num_known])

    def transpose(self, cts: Sequence[Tangent], index: ArrayLike, *args: Array | Linear,
                  branches: Sequence[ClosedOlympuspr]) -> Sequence[Cotangent]:
        # The index is an integer, never linear. A cotangent that is zero in one branch is
        # instantiated (the default of transpose_program), as another branch may return one.
        linear = linear_flags(branches[0], args)
        nonzero = tuple(type(ct) is not Zero for ct in cts)
        bodies = tuple(transpose_program(b, linear, nonzero)[0] for b in branches)
        out = self.bind(index, *[a for a in args if type(a) is not Linear],
                        *compress(cts, nonzero), branches=bodies)
        return [None, *merged(linear, out, repeat(None))]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Any
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        # An index that all elements share keeps the choice; a mapped one makes all branches run.
        if dims[0] is None:
            return super().vmap(axis, args, dims, **params)
        # What all branches hand on needs no choice: it is mapped as the operand is.
        branches, (_, *operands), (_, *axes) = params["branches"], args, dims
        handed = _handed_on(branches)
        chosen = tuple([i for i, k in enumerate(handed) if k is None])
        if len(chosen) < len(handed):
            branches = tuple([b.rearranged(outputs=chosen) for b in branches])
        check_selectable(self.name, operands, branches[0].out_avals)
        index = to_axis(args[0], dims[0], 0, axis.size)
        found = iter(zip(*self._select(axis, index, operands, axes, branches), strict=True))
        pairs = [next(found) if k is None else (operands[k], axes[k]) for k in handed]
        return [x for x, _ in pairs], [d for _, d in pairs]

    def _select(self, axis: Axis, index: Array, args: Sequence[Array], dims: Sequence[int | None],
                branches: Sequence[ClosedOlympuspr]
                ) -> tuple[Sequence[Array], Sequence[int | None]]:
        """Elements differ in their branch: compute all branches and select.

        Branches with effects run for one element after the other, so that only those taken do.
        """
        if any(isinstance(e, OrderedIOEffect) for b in branches for e in b.effects):
            raise ValueError("cond: mapped over its predicate with an ordered io_callback in a "
                             "branch; elements have no order; use lax.map or lax.scan, or "
                             "ordered=False.")
        if any(input_effects(b.effects) for b in branches):
            raise ValueError("cond: mapped over its predicate with a branch that changes an "
                             "operand in place; all branches are computed then; use lax.map or "
                             "lax.scan over the elements.")
        if any(map(per_element, branches)):
            if axis.name is not None and self.uses_axis(axis.name, {"branches": branches}):
                raise ValueError(
                    "cond: mapped over its predicate with branches that have side effects and use "
                    f"the mapped axis {axis.name!r}; move one of them out of the branches.")
            outs = map_mapped(lambda *xs: self.bind(*xs, branches=branches), axis.size,
                              [index, *args], [0, *dims])
            return outs, [0] * len(outs)
        # A program that stands for several indices runs once, for the elements of all of them.
        taken = [eq(index, literal(i, INT32)) for i in range(len(branches))]

        def for_those(branch: ClosedOlympuspr) -> Sequence[Array]:
            heres = [here for here, b in zip(taken, branches, strict=True) if b is branch]
            here = functools.reduce(bitwise_or, heres)
            return self._for_those(axis, here, _own_keys(args, branch, branches), dims, branch)

        results = _once_each(for_those, branches)
        outs = []
        for picked, *column in zip(*results, strict=True):
            shape = typeof(picked).shape
            for here, x in zip(taken[1:], column, strict=True):
                picked = select_n(broadcast_in_dim(here, shape, (0,)), picked, x)
            outs.append(picked)
        return outs, [0] * len(outs)

    def _for_those(self, axis: Axis, here: Array, args: Sequence[ArrayLike],
                   dims: Sequence[int | None], branch: ClosedOlympuspr) -> list[Array]:
        """The branch for every element, with nothing lost or raised by those that are not `here`.

        Their derivatives may be infinite, and zero times infinity is not zero: it must not reach
        their operands. And a branch may not end on operands of theirs, or call the user with them.
        """
        active = [_has_tangent(x) for x in args]
        shared = any(t and d is None for t, d in zip(active, dims, strict=True))
        # Along a named axis elements see each other: there none may be replaced.
        if not axis.size or (axis.name is not None and program_uses_axis(branch, axis.name)):
            pass
        elif shared or particular(branch) or replaces_others():
            if replaces_others():
                check_elements(axis, here, args, dims, branch)
            # Others in the place of one that is here. What the elements share gets no derivative,
            # either, where none is here.
            one, some = argmax(here, 0, np.int32), reduce_or(here, (0,))
            args = [put_one(here, one, x, d) if d is not None else
                    select_n(some, stop_gradient(x), x) if t else x
                    for x, d, t in zip(args, dims, active, strict=True)]
            if replaces_others():       # and there are none where no element is here
                return self._if_any(axis, some, args, dims, branch)
        else:
            args = [select_n(broadcast_in_dim(here, typeof(x).shape, (d,)), stop_gradient(x), x)
                    if t and d is not None else x
                    for x, d, t in zip(args, dims, active, strict=True)]
        # In place: a staged body would be recorded again at every level of branches in branches.
        outs, found = batch_flat(lambda *xs: eval_closed(branch, *xs), axis, args, dims)
        return [to_axis(x, d, 0, axis.size) for x, d in zip(outs, found, strict=True)]

    def _if_any(self, axis: Axis, some: Array, args: Sequence[ArrayLike],
                dims: Sequence[int | None], branch: ClosedOlympuspr) -> list[Array]:
        """The branch for every element, or zeros that nobody reads."""
        body, _ = batch_program(branch, axis, dims, True, list(map(typeof, args)))
        return self.bind(convert_element_type(some, INT32), *args, branches=(_zeros(body), body))


@derived
def _zeros(body: ClosedOlympuspr) -> ClosedOlympuspr:
    """A program of the types of another one that returns zeros."""
    return stage(lambda *_: list(map(zeros_of, body.out_avals)), body.in_avals)


def check_selectable(name: str, args: Sequence[Value], outs: Sequence[Aval]) -> None:
    """NotImplementedError for values of users' types where elements run different branches."""
    for aval in (*map(typeof, args), *outs):
        if aval.is_high:
            raise NotImplementedError(
                f"vmap: {name}, whose elements run different branches, given values of type "
                f"{aval}; arrays are required, since nothing selects among such values; convert "
                "them to arrays around it, or use lax.map in place of vmap.")


def particular(program: ClosedOlympuspr) -> bool:
    """Whether a program minds which operands it is run on, though its results are not used."""
    pr = program.olympuspr if type(program) is ClosedOlympuspr else program
    found = pr.cache.get("particular")
    if found is None:
        found = pr.cache["particular"] = bool(pr.effects) or any(
            eqn.primitive.endless or eqn.primitive.foreign
            or any(map(particular, eqn.primitive.bodies(eqn.params))) for eqn in pr.eqns)
    return found


def _has_tangent(x: ArrayLike) -> bool:
    """Whether a traced value may have a derivative."""
    return isinstance(x, Tracer) and has_tangent(x.aval)


def _once_each(fun: Callable[[ClosedOlympuspr], Sequence[Array]], items: Sequence[ClosedOlympuspr]
               ) -> tuple[Sequence[Array], ...]:
    """`fun` of every item, called once for those that are one object: they stay one."""
    # Lowering and vmap know by identity that a program stands for several indices.
    made = {id(x): x for x in items}
    made = {key: fun(x) for key, x in made.items()}
    return tuple(made[id(x)] for x in items)


def _handed_on(branches: Sequence[ClosedOlympuspr]) -> list[int | None]:
    """Per result, which operand it is in all branches; None for a result that they compute."""
    columns = zip(*[b.olympuspr.outvars for b in branches], strict=True)
    places = [{v: i for i, v in enumerate(b.olympuspr.invars)} for b in branches]
    found = [{None if type(v) is Literal else place.get(v)
              for v, place in zip(column, places, strict=True)} for column in columns]
    return [one.pop() if len(one) == 1 else None for one in found]


def _residual_slots(splits: Sequence[Split]) -> list[ShapedArray]:
    """Avals of the residuals that branches share: each computes its own into slots that fit."""
    # For each type the largest count in a branch, not the sum over branches.
    slots: list[Any] = []
    for split in splits:
        counts: dict[Any, int] = {}
        for aval in _computed(split):
            counts[aval] = counts.get(aval, 0) + 1
        for aval, count in counts.items():
            slots += [aval] * (count - slots.count(aval))
    return slots


def _computed(split: Split) -> list[ShapedArray]:
    return split.known.out_avals[len(split.known.out_avals) - split.num_computed:]


def _assign(split: Split, slots: Sequence[ShapedArray]) -> list[int]:
    """The slot of each computed residual of a branch."""
    # Both halves of a branch find the same places: they depend on the order of residuals alone.
    free: list[Any] = list(slots)
    positions = []
    for aval in _computed(split):
        i = free.index(aval)
        free[i] = None
        positions.append(i)
    return positions


def _known_branch(split: Split, slots: Sequence[ShapedArray]) -> ClosedOlympuspr:
    """known operands -> known outputs, then the slots; other branches' are zeros."""
    return _filled(split.known, split.num_computed, tuple(_assign(split, slots)), tuple(slots))


@derived
def _filled(known: ClosedOlympuspr, num_computed: int, places: tuple[int, ...],
            slots: tuple[ShapedArray, ...]) -> ClosedOlympuspr:
    def body(*args: Array) -> list[ArrayLike]:
        out = eval_closed(known, *args)
        n = len(out) - num_computed
        filled = dict(zip(places, out[n:], strict=True))
        return [*out[:n], *(filled[i] if i in filled else zeros_of(a)
                            for i, a in enumerate(slots))]

    return stage(body, known.in_avals)


def _unknown_branch(split: Split, slots: Sequence[ShapedArray], passed: Sequence[int],
                    known: Sequence[ArrayLike]) -> ClosedOlympuspr:
    """slots, known operands that some branch reads, unknown operands -> unknown outputs."""
    avals = {k: typeof(known[k]) for k in passed}
    return _with_slots(split.unknown, split.residuals, tuple(_assign(split, slots)), tuple(slots),
                       tuple(avals.items()))


@derived
def _with_slots(unknown: ClosedOlympuspr, residuals: tuple[Residual, ...], places: tuple[int, ...],
                slots: tuple[ShapedArray, ...], passed: tuple[tuple[int, ShapedArray], ...]
                ) -> ClosedOlympuspr:
    pr = unknown.olympuspr
    # Where this branch reads an input, its own variable takes the place, so that the equations stay
    # as they are; the other inputs are fresh variables that nothing reads.
    slot_vars, known_vars = [Var(a) for a in slots], {k: Var(a) for k, a in passed}
    positions, n = iter(places), len(residuals)
    for var, r in zip(pr.invars[:n], residuals, strict=True):
        if r.kind == "computed":
            slot_vars[next(positions)] = var
        else:
            known_vars[r.index] = var
    return unknown.replace(olympuspr=pr.replace(
        invars=[*slot_vars, *known_vars.values(), *pr.invars[n:]]))


cond_p = Cond("cond")


def _own_keys(args: Sequence[ArrayLike], branch: ClosedOlympuspr,
              branches: Sequence[ClosedOlympuspr]) -> Sequence[ArrayLike]:
    """The operands of one branch, where all branches are computed and one counts.

    A key that several of them use is used once: it is another to all but the first of these.
    """
    if not debug_key_reuse.value:
        return args
    args = list(args)
    for i in reuse.inputs_used(branch):
        if next(b for b in branches if i in reuse.inputs_used(b)) is not branch:
            args[i] = random_clone_p.bind(args[i])
    return args


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

    Returns:
      What the chosen function returns; a Python number in it becomes an array.

    >>> print(olympus.lax.cond(True, lambda x: x + 1, lambda x: x - 1, 3.0))
    4.0
    """
    if len(operands) == 2 and not callable(true_fun) and callable(false_fun) and \
            callable(operands[1]):
        # The older spelling: cond(pred, true_operand, true_fun, false_operand, false_fun).
        on_true, on_false = false_fun, operands[1]
        return cond(pred, lambda x, _: on_true(x), lambda _, y: on_false(y), true_fun, operands[0])
    check_callable("lax.cond", true_fun=true_fun, false_fun=false_fun)
    operands = _operands("cond", operands, operand)
    aval = _scalar("cond: Pred type must be either boolean or number" if callable(pred) else
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

    Returns:
      What the chosen branch returns; a Python number in it becomes an array.

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
    operands = _operands("switch", operands, operand)
    aval = _scalar("switch: Index type must be an integer", index)
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


def _scalar(message: str, x: object, more: str = "") -> ShapedArray:
    """The aval of a value; TypeError with the message if it has none."""
    if x is None and message.startswith("cond"):
        raise TypeError("cond: cond predicate is None; an array or a Python number is required; "
                        "does the function that makes it return it?")
    try:
        return typeof(x)
    except TypeError:
        raise TypeError(f"{message}, got {x!s:.60}{more}. An array or a Python number is required."
                        ) from None


def _operands(what: str, operands: tuple, operand: object) -> tuple:
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
    wanted = _check_branches(what, bodies)
    # `_check_branches` refuses everything else.
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
        programs = [_varied(p, vma, list(map(typeof, operands))) for p in programs]
    out = cond_p.bind(index, *operands, branches=tuple(programs))
    return tree_unflatten(bodies[0].out_tree, out)


def _varied(program: ClosedOlympuspr, vma: frozenset[str], avals: Sequence[ShapedArray]
            ) -> ClosedOlympuspr:
    """The program of operands, and with results, that vary along `vma`, too."""
    return stage(lambda *xs: [tags.pvary(out, vma) for out in eval_closed(program, *xs)], avals,
                 program.olympuspr.debug_info)


def _check_branches(what: str, bodies: Sequence[Body]) -> Sequence[ShapedArray]:
    """The avals that all branches return: weak where the first (the false) branch's are."""
    if what == "cond":
        order: tuple[int, ...] = (1, 0)
        names = [f"the {kind} branch ({b.name})"
                 for kind, b in zip(("false", "true"), bodies, strict=True)]
        given = ["false_fun", "true_fun"]
    else:
        order = tuple(range(len(bodies)))
        names = [f"branch {i} ({b.name})" for i, b in enumerate(bodies)]
        given = [f"branches[{i}]" for i in order]
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
                             (f"the output of {given[order[0]]}, {{}}",
                              f"the output of {given[i]}, {{}}"))
    return bodies[0].out_avals
