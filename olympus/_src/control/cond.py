"""The primitive of `cond` and `switch`: an int32 index and a tuple of branches."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import compress, repeat
from typing import Any

import numpy as np

from ..base.config import debug_key_reuse
from ..base.typing import Array, ArrayLike, IrValue, Params, Value
from ..base.util import merged
from ..core import reuse
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
from ..lax.comparison import eq, select_n
from ..lax.convert import convert_element_type
from ..lax.reduce import argmax, reduce_or
from ..lax.shape import broadcast_in_dim, zeros_of
from ..types import dtypes
from ..types.avals import Aval, ShapedArray, has_tangent
from .elements import check_elements, map_mapped, per_element, put_one, replaces_others
from .groups import AgreeingRuns
from .returned import KNOWN, apart, handed_through, returned_by_all

INT32 = dtypes.as_dtype("int32")


class Cond(AgreeingRuns):
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

        origins = returned_by_all(b.eqn.params, range(len(args)))
        through = [*zip(*map(handed_through, branches), strict=True)]
        returned = {i: args[x[0]] for i, x in enumerate(through)
                    if x[0] is not None and len({*x}) == 1}
        flags = [x not in (None, KNOWN) and i not in returned for i, x in enumerate(origins)]

        # Shardy takes operands that a branch only returns for unsharded: constrain them inside.
        def emit(i: int, body: ClosedOlympuspr) -> Sequence[IrValue]:
            here = list(map(b.spread, args, avals))
            if sum(body is other for other in branches) > 1:    # inlined in n levels: 2^n copies
                outs = b.call(body, here, "branch")
            else:
                outs = b.call_inline(body, here, f"cond/branch_{i}_fun")
            return outs if i else apart(b, outs, flags, b.avals_out)

        outs = b.case(index, [functools.partial(emit, *pair) for pair in enumerate(branches)],
                      types)
        return [returned.get(i, out) for i, out in enumerate(outs)]

    def checked(self, checks: Checks, args: Sequence[Array], params: Params) -> list[Array] | None:
        checked_bodies = {id(b): checks.body(b) for b in params["branches"]}
        if not any(checked_bodies.values()):
            return None
        sites, index_of = [], {}      # one entry for a program that stands for several indices
        for key, body in checked_bodies.items():
            index_of[key] = len(sites)
            sites += body.sites if body else ()
        failing = list(filter(None, checked_bodies.values()))
        width = max(body.width for body in failing)
        vma = frozenset().union(*(body.program.out_avals[0].vma for body in failing))
        new_branches = {id(b): as_branch(checked_bodies[id(b)] or b, index_of[id(b)], width, vma)
                        for b in params["branches"]}
        return checks.took(self.bind(*args, branches=tuple(
            [new_branches[id(b)] for b in params["branches"]])), sites)

    def step_through(self, run: Callable[..., list[Array]], index: Array, *args: Array,
                     branches: Sequence[ClosedOlympuspr]) -> None:
        run(branches[int(index)], *args)

    def partial_eval(self, tape: TapeTrace, args: Sequence[ArrayLike], unknown: Sequence[bool], *,
                     branches: Sequence[ClosedOlympuspr]) -> Sequence[Array]:
        # The branch is unknown: nothing can be computed now.
        if unknown[0]:
            return tape.record(self, args, {"branches": branches})
        #   known branch i    known                     ->  known outputs | slots
        #   unknown branch i  slots | passed | unknown  ->  unknown outputs
        # A branch puts its computed residuals into slots of their types, and zeros into the other
        # slots, which its unknown half does not read. `passed`: known operands that are residuals
        # of any branch.
        uk = unknown[1:]
        splits, flags = self.split({"branches": branches}, uk)
        index, known = args[0], [a for a, u in zip(args[1:], uk, strict=True) if not u]
        slots = _residual_slots(splits)
        known_bodies = tuple(_known_branch(s, slots) for s in splits)
        out = self.bind(index, *known, branches=known_bodies)
        num_known = len(flags) - sum(flags)
        # The indices of the known operands that unknown halves read.
        passed = sorted({r.index for s in splits for r in s.residuals if r.kind == "input"})
        unknown_bodies = tuple(_unknown_branch(s, slots, passed, known) for s in splits)
        unknown_out: list[Any] = []
        if any(flags):
            unknown_out = tape.record(
                self, [index, *out[num_known:], *[known[k] for k in passed],
                       *[a for a, u in zip(args[1:], uk, strict=True) if u]],
                {"branches": unknown_bodies})
        return merged(flags, unknown_out, out[:num_known])

    def transpose(self, cts: Sequence[Tangent], index: ArrayLike, *args: Array | Linear,
                  branches: Sequence[ClosedOlympuspr]) -> Sequence[Cotangent]:
        # The index is an integer, never linear. Zero cotangents are instantiated (the default of
        # transpose_program), because another branch may return another one.
        linear = linear_flags(branches[0], args)
        nonzero = tuple(type(ct) is not Zero for ct in cts)
        bodies = tuple(transpose_program(b, linear, nonzero)[0] for b in branches)
        out = self.bind(index, *[a for a in args if type(a) is not Linear],
                        *compress(cts, nonzero), branches=bodies)
        return [None, *merged(linear, out, repeat(None))]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Any
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        # With an index that all elements share, one branch runs; with a mapped one all branches do.
        if dims[0] is None:
            return super().vmap(axis, args, dims, **params)
        # A result that is the same operand in all branches needs no selection.
        branches, (_, *operands), (_, *axes) = params["branches"], args, dims
        operand_of = _handed_on(branches)
        computed = tuple([i for i, k in enumerate(operand_of) if k is None])
        if len(computed) < len(operand_of):
            branches = tuple([b.rearranged(outputs=computed) for b in branches])
        check_selectable(self.name, operands, branches[0].out_avals)
        index = to_axis(args[0], dims[0], 0, axis.size)
        selected = iter(zip(*self._select(axis, index, operands, axes, branches), strict=True))
        pairs = [next(selected) if k is None else (operands[k], axes[k]) for k in operand_of]
        return [x for x, _ in pairs], [d for _, d in pairs]

    def _select(self, axis: Axis, index: Array, args: Sequence[Array], dims: Sequence[int | None],
                branches: Sequence[ClosedOlympuspr]
                ) -> tuple[Sequence[Array], Sequence[int | None]]:
        """Compute all branches, and select each element's results.

        Branches with effects run for one element after the other, so that only taken ones run.
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
        """The branch for every element, safe for the elements that do not take it (not `here`).

        Their derivatives may be infinite, and zero times infinity is NaN, so no cotangent may reach
        their operands. On their operands a branch may run for ever, or call the user: it gets
        others.
        """
        active = [_has_tangent(x) for x in args]
        shared = any(t and d is None for t, d in zip(active, dims, strict=True))
        # If the branch communicates along the mapped axis, no element may be replaced.
        if not axis.size or (axis.name is not None and program_uses_axis(branch, axis.name)):
            pass
        elif shared or particular(branch) or replaces_others():
            if replaces_others():
                check_elements(axis, here, args, dims, branch)
            # Elements that are not here get the operands of one that is. If none is, operands that
            # elements share get no derivative.
            one, some = argmax(here, 0, np.int32), reduce_or(here, (0,))
            args = [put_one(here, one, x, d) if d is not None else
                    select_n(some, stop_gradient(x), x) if t else x
                    for x, d, t in zip(args, dims, active, strict=True)]
            if replaces_others():       # if no element is here, the branch does not run
                return self._if_any(axis, some, args, dims, branch)
        else:
            args = [select_n(broadcast_in_dim(here, typeof(x).shape, (d,)), stop_gradient(x), x)
                    if t and d is not None else x
                    for x, d, t in zip(args, dims, active, strict=True)]
        # Not staged: a body would be recorded again at every level of nested branches.
        outs, out_dims = batch_flat(lambda *xs: eval_closed(branch, *xs), axis, args, dims)
        return [to_axis(x, d, 0, axis.size) for x, d in zip(outs, out_dims, strict=True)]

    def _if_any(self, axis: Axis, some: Array, args: Sequence[ArrayLike],
                dims: Sequence[int | None], branch: ClosedOlympuspr) -> list[Array]:
        """The branch for every element, if some element takes it; zeros otherwise."""
        body, _ = batch_program(branch, axis, dims, True, list(map(typeof, args)))
        return self.bind(convert_element_type(some, INT32), *args, branches=(_zeros(body), body))


@derived
def _zeros(body: ClosedOlympuspr) -> ClosedOlympuspr:
    """A program with the types of `body` that returns zeros."""
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
    """Whether a program may not run on arbitrary operands, even if nobody reads its results: it has
    effects, may run for ever, or calls users' functions."""
    pr = program.olympuspr if type(program) is ClosedOlympuspr else program
    flag = pr.cache.get("particular")
    if flag is None:
        flag = pr.cache["particular"] = bool(pr.effects) or any(
            eqn.primitive.endless or eqn.primitive.foreign
            or any(map(particular, eqn.primitive.bodies(eqn.params))) for eqn in pr.eqns)
    return flag


def _has_tangent(x: ArrayLike) -> bool:
    """Whether a traced value may have a derivative."""
    return isinstance(x, Tracer) and has_tangent(x.aval)


def _once_each(fun: Callable[[ClosedOlympuspr], Sequence[Array]], items: Sequence[ClosedOlympuspr]
               ) -> tuple[Sequence[Array], ...]:
    """`fun` of every item, called once for each object, so that equal items stay one object."""
    # Lowering and vmap know by identity that a program stands for several indices.
    results = {id(x): x for x in items}
    results = {key: fun(x) for key, x in results.items()}
    return tuple(results[id(x)] for x in items)


def _handed_on(branches: Sequence[ClosedOlympuspr]) -> list[int | None]:
    """Per result, the index of the operand that it is in all branches; None for other results."""
    columns = zip(*[b.olympuspr.outvars for b in branches], strict=True)
    index_of = [{v: i for i, v in enumerate(b.olympuspr.invars)} for b in branches]
    operands = [{None if type(v) is Literal else place.get(v)
                 for v, place in zip(column, index_of, strict=True)} for column in columns]
    return [one.pop() if len(one) == 1 else None for one in operands]


def _residual_slots(splits: Sequence[Split]) -> list[ShapedArray]:
    """The types of the slots for residuals, which branches share."""
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
    # Both halves of a branch get the same slots, which depend on the order of residuals alone.
    unassigned: list[Any] = list(slots)
    positions = []
    for aval in _computed(split):
        i = unassigned.index(aval)
        unassigned[i] = None
        positions.append(i)
    return positions


def _known_branch(split: Split, slots: Sequence[ShapedArray]) -> ClosedOlympuspr:
    """The program known operands -> known outputs, then slots; zeros in other branches' slots."""
    return _filled(split.known, split.num_computed, tuple(_assign(split, slots)), tuple(slots))


@derived
def _filled(known: ClosedOlympuspr, num_computed: int, positions: tuple[int, ...],
            slots: tuple[ShapedArray, ...]) -> ClosedOlympuspr:
    def body(*args: Array) -> list[ArrayLike]:
        out = eval_closed(known, *args)
        n = len(out) - num_computed
        filled = dict(zip(positions, out[n:], strict=True))
        return [*out[:n], *(filled[i] if i in filled else zeros_of(a)
                            for i, a in enumerate(slots))]

    return stage(body, known.in_avals)


def _unknown_branch(split: Split, slots: Sequence[ShapedArray], passed: Sequence[int],
                    known: Sequence[ArrayLike]) -> ClosedOlympuspr:
    """The program slots, known operands that any branch reads, unknown operands -> unknown outputs.
    """
    avals = {k: typeof(known[k]) for k in passed}
    return _with_slots(split.unknown, split.residuals, tuple(_assign(split, slots)), tuple(slots),
                       tuple(avals.items()))


@derived
def _with_slots(unknown: ClosedOlympuspr, residuals: tuple[Residual, ...], at: tuple[int, ...],
                slots: tuple[ShapedArray, ...], passed: tuple[tuple[int, ShapedArray], ...]
                ) -> ClosedOlympuspr:
    pr = unknown.olympuspr
    # The inputs that this branch reads are its own variables, so that its equations stay unchanged;
    # the other inputs are fresh variables that nothing reads.
    slot_vars, known_vars = [Var(a) for a in slots], {k: Var(a) for k, a in passed}
    positions, n = iter(at), len(residuals)
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
    """The operands of one branch, where all branches are computed and one is selected.

    For the key-reuse check, all branches but the first get clones of keys that several use.
    """
    if not debug_key_reuse.value:
        return args
    args = list(args)
    for i in reuse.inputs_used(branch):
        if next(b for b in branches if i in reuse.inputs_used(b)) is not branch:
            args[i] = random_clone_p.bind(args[i])
    return args
