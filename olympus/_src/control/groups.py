"""What is derived of a primitive with bodies from one description of its operands.

A primitive says which of its operands each of its programs takes (`applied`), and, if it is a loop,
which role these have (`Groups`). Everything that follows from that is here; a class keeps what is
its own.

                   once        loop
    read           all         the same in each run
    carry                      what a run returns, the next one takes
    each                       a row for each run
    own                        of the primitive, not of its body: a count, consts of a condition
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, NamedTuple

from ..base.util import cut, merged
from ..core.effects import input_effects, of_body
from ..core.ir import ClosedOlympuspr, OlympusprEqn
from ..core.primitive import Axis, Higher, Zero, spread_tangents
from ..core.reuse import Cells, Use
from ..core.trace import typeof
from ..interpreters.batching import batch_program, to_axis
from ..interpreters.dce import dce_closed
from ..interpreters.jvp import jvp_program
from ..interpreters.partial_eval import Split, depends, partial_eval_program
from ..lax.shape import instantiate

__all__ = ["Bodied", "Groups", "Loop", "at_front", "carry_fixpoint", "places", "woven"]


class Bodied(Higher, abstract=True):
    """A primitive that says by `applied` which operands each of its programs takes.

    Unless it says otherwise, its results are those of the last program, which it runs once.
    """

    def effects(self, avals: Sequence[Any], params: dict[str, Any]) -> frozenset[Any]:
        # An effect on an input names its place: each program is told where its inputs are among
        # ours.
        found = [of_body(body, its) for _, body, its in self.applied(params, range(len(avals)))]
        return found[0] if len(found) == 1 else frozenset().union(*found)

    def infer(self, *avals: Any, **params: Any) -> list[Any]:
        return self.applied(params, avals)[-1][1].out_avals

    def cells(self, use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
        (_, body, its), = self.applied(eqn.params, cells)
        return use.call(body, its)

    def depends(self, flags: Sequence[bool], eqn: OlympusprEqn) -> Sequence[bool]:
        (_, body, its), = self.applied(eqn.params, flags)
        return depends(body, its)

    def lower(self, b: Any, *args: Any, **params: Any) -> list[Any]:
        (_, body, its), = self.applied(params, args)
        return b.call_inline(body, its)

    def step_through(self, run: Callable[..., list[Any]], *args: Any, **params: Any) -> None:
        (_, body, its), = self.applied(params, args)
        run(body, *its)

    def vmap_named(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None],
                   **params: Any) -> Any:
        return self.vmap(axis, args, dims, **params)


class Groups(NamedTuple):
    """How many operands of a loop have each role, in the order in which they come.

    The body takes those that are not `own`; it returns the carry, then a row for each other result.
    """

    own: int
    read: int
    carry: int
    each: int


class Loop(Bodied, abstract=True):
    """A primitive whose `body` runs again and again."""

    body = "olympuspr"      # the param

    def groups(self, params: dict[str, Any], count: int) -> Groups:
        """The roles of `count` operands."""
        raise NotImplementedError

    def regrouped(self, params: dict[str, Any], body: ClosedOlympuspr, read: int,
                  carry: Sequence[Any], own: Sequence[int]) -> dict[str, Any]:
        """The params with another body, of so many consts.

        `carry` says of each of its carries which one of ours it is, or the aval of a new one;
        `own` the same of the operands that are not the body's.
        """
        raise NotImplementedError

    def deciding(self, params: dict[str, Any], groups: Groups) -> Sequence[bool]:
        """Of the operands that are not the body's, then of carries: what says how often it runs."""
        return (False,) * (groups.own + groups.carry)

    def runs_by(self, params: dict[str, Any], own: Sequence[bool], carry: Sequence[bool],
                ) -> bool:
        """Whether how often the body runs is read from what is flagged."""
        groups = Groups(len(own), 0, len(carry), 0)
        return any(map(operator.and_, self.deciding(params, groups), (*own, *carry)))

    def cut(self, params: dict[str, Any], xs: Sequence[Any]) -> list[list[Any]]:
        """One thing for each operand, by group."""
        return cut(xs, *self.groups(params, len(xs))[:3])

    def depends(self, flags: Sequence[bool], eqn: OlympusprEqn) -> Sequence[bool]:
        return self.reached(eqn.params, flags)

    def reached(self, params: dict[str, Any], flags: Sequence[bool]) -> list[bool]:
        """Which results are computed from what is flagged; a carry is, throughout."""
        own, read, start, each = self.cut(params, flags)

        def step(carry: tuple[bool, ...]) -> Any:
            found = depends(params[self.body], (*read, *carry, *each))
            return found, found[:len(carry)]

        found, carry = carry_fixpoint(tuple(start), step)
        if self.runs_by(params, own, carry):
            return [True] * len(found)
        return [*carry, *found[len(carry):]]

    def cells(self, use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
        own, read, start, _ = self.cut(eqn.params, cells)

        def step(i: int, carry: Sequence[Cells]) -> list[Cells]:
            return [use.call(body, its)
                    for _, body, its in self.applied(eqn.params, [*own, *read, *carry])][-1]

        return use.loop(step, start)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        own, *p = self.cut(params, primals)
        t = self.cut(params, tangents)[1:]
        closed, (nr, nk, _) = params[self.body], map(len, p)
        nz_read, nz_start, nz_each = [tuple([type(x) is not Zero for x in g]) for g in t]
        rest = (False,) * (len(closed.outvars) - nk)

        # A carry that gets a tangent in the body must come in with one: it is instantiated at the
        # start and in the result. Tangents of rows need no such agreement.
        def step(nz: tuple[bool, ...]) -> Any:
            found = jvp_program(closed, (*nz_read, *nz, *nz_each), (*nz, *rest))
            return found, found[1][:nk]

        (body, nz_out), nz = carry_fixpoint(nz_start, step)
        t[1] = [instantiate(x) if on else x for x, on in zip(t[1], nz, strict=True)]
        t = [[x for x in group if type(x) is not Zero] for group in t]
        #   jvp_program   r k e | dr dk de     ->  k y | dk dy      (read, carry, each, rows)
        #   the loop      r dr | k dk | e de   ->  k dk | y dy
        ins, outs = range(len(body.invars)), range(len(body.outvars))
        n, m = len(closed.invars), len(closed.outvars)
        body = body.rearranged(
            woven(cut(ins[:n], nr, nk), cut(ins[n:], len(t[0]), len(t[1]))),
            woven(cut(outs[:m], nk), cut(outs[m:], len(t[1]))))
        avals = [a.to_tangent_aval() for a in compress(closed.in_avals[nr:], nz)]
        found = self.bind(*own, *woven(p, t), **self.regrouped(
            params, body, nr + len(t[0]), [*range(nk), *avals], range(len(own))))
        carry, t_carry, ys, t_ys = cut(found, nk, len(avals), len(rest))
        found = [*carry, *ys]
        return found, spread_tangents(map(typeof, found), (*nz, *nz_out[nk:]),
                                      (*t_carry, *t_ys))

    def split(self, params: dict[str, Any], read: Sequence[bool], start: Sequence[bool],
              each: Sequence[bool] = ()) -> tuple[Split, tuple[bool, ...]]:
        """The body cut in two, given what is unknown, and which carries are.

        One that any iteration makes unknown is unknown from the start, in all of them.
        """
        closed = params[self.body]
        rest = (False,) * (len(closed.outvars) - len(start))

        def step(unknown: tuple[bool, ...]) -> tuple[Split, tuple[bool, ...]]:
            split = partial_eval_program(closed, (*read, *unknown, *each), (*unknown, *rest))
            return split, split.unknown_out[:len(unknown)]

        return carry_fixpoint(tuple(start), step)

    def known_loop(self, args: Sequence[Any], unknown: Sequence[bool], params: dict[str, Any]
                   ) -> tuple[functools.partial[list[Any]] | None, tuple[bool, ...]]:
        """The loop of the carries that are known, and which are not.

        None if it is not known how often that runs, or it changes an operand in place.
        """
        own, read, start, _ = self.cut(params, unknown)
        split, uk = self.split(params, read, start)
        if self.runs_by(params, own, uk) or input_effects(
                self.effects(list(map(typeof, args)), params)):
            return None, uk
        carry = places(uk, False)
        body, _ = dce_closed(split.known, [True] * len(carry) + [False] * split.num_computed)
        known = [a for a, u in zip(args, (*own, *read, *uk), strict=True) if not u]
        return functools.partial(self.bind, *known, **self.regrouped(
            params, body, read.count(False), carry, places(own, False))), uk

    def partial_eval(self, tape: Any, args: Sequence[Any], unknown: Sequence[bool], **params: Any
                     ) -> list[Any]:
        """Run what is known; the unknown part repeats the whole loop, which has no fixed length."""
        #   known loop      the known carries alone; no residuals: the number of rows is not known
        #   recorded loop   everything, since the unknown carries are computed from the known ones
        whole = tape.record(self, args, params)
        known, uk = self.known_loop(args, unknown, params)
        return whole if known is None else merged(uk, compress(whole, uk), known())

    def batched(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None],
                params: dict[str, Any],
                more: Callable[[tuple[bool, ...]], tuple[bool, ...]] = lambda mapped: mapped
                ) -> tuple[ClosedOlympuspr, list[Any], list[int | None]]:
        """The body mapped, its operands with the axis where it wants them, where results have it.

        Given which carries are mapped, `more` says which ones are for another reason, too.
        """
        own, read, carry, each = self.cut(params, args)
        _, d_read, d_start, d_each = self.cut(params, dims)
        closed, nk = params[self.body], len(carry)
        rest = (False,) * (len(closed.outvars) - nk)
        # The rows are axis 0 of what comes by rows, the mapped axis is axis 1: in the body axis 0.
        b_each = [None if d is None else 0 for d in d_each]

        def step(mapped: tuple[bool, ...]) -> Any:
            mapped = more(mapped)
            body, out = batch_program(closed, axis, [*d_read, *at_front(mapped), *b_each],
                                      (*mapped, *rest))
            return (body, out), tuple([d is not None for d in out[:nk]])

        (body, out), mapped = carry_fixpoint(tuple([d is not None for d in d_start]), step)
        carry = [to_axis(x, d, 0, axis.size) if m else x
                 for x, d, m in zip(carry, d_start, mapped, strict=True)]
        each = [x if d is None else to_axis(x, d, 1, axis.size)
                for x, d in zip(each, d_each, strict=True)]
        return body, [*own, *read, *carry, *each], [
            *at_front(mapped), *(None if d is None else d + 1 for d in out[nk:])]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], **params: Any
             ) -> Any:
        body, args, out = self.batched(axis, args, dims, params)
        own, read, carry, _ = self.groups(params, len(args))
        return self.bind(*args, **self.regrouped(
            params, body, read, range(carry), range(own))), out

    def dce(self, used: Sequence[bool], eqn: OlympusprEqn) -> OlympusprEqn:
        params = eqn.params
        groups = self.groups(params, len(eqn.invars))
        (no, nr, nk, _), rows = groups, tuple(used[groups.carry:])
        own, start = cut(self.deciding(params, groups), no)

        # A carry that nobody reads at the end may feed what is read, an iteration later.
        def step(carry: tuple[bool, ...]) -> Any:
            found = dce_closed(params[self.body], (*carry, *rows))
            return found, tuple(found[1][nr:nr + nk])

        start = tuple(map(operator.or_, used, start))
        (body, used_in), carry = carry_fixpoint(start, step)
        keep = [*used_in[:nr], *carry, *used_in[nr + nk:]]
        return eqn.replace(
            invars=[*compress(eqn.invars, (*own, *keep))],
            outvars=[*compress(eqn.outvars, (*carry, *rows))],
            params=self.regrouped(params, body.rearranged(places(keep)), sum(keep[:nr]),
                                  places(carry), places(own)))


def carry_fixpoint(start: tuple[bool, ...],
                   step: Callable[[tuple[bool, ...]], tuple[Any, tuple[bool, ...]]]
                   ) -> tuple[Any, tuple[bool, ...]]:
    """Iterate `step(flags in) -> (result, flags out)` until nothing is added.

    A property of carries ("has a tangent", "is mapped", "is unknown") spreads through the body:
    what goes out with it must come in with it. Flags only ever turn on, so at most as many rounds
    as there are carries. Returns the last result with the flags that hold for carries both going in
    and coming out.
    """
    # At the end what comes out is among what goes in, but may be less. A step that makes a body
    # therefore forces the flags it is given onto its outputs, so that the carry keeps its types.
    flags = start
    while True:
        result, out = step(flags)
        grown = tuple(a or b for a, b in zip(flags, out, strict=True))
        if grown == flags:
            return result, flags
        flags = grown


def woven(*rows: Sequence[Sequence[Any]]) -> list[Any]:
    """What several rows have of each group, group by group.

    >>> woven([[1], [2, 3]], [[10], [20]])
    [1, 10, 2, 3, 20]
    """
    return [x for groups in zip(*rows, strict=True) for group in groups for x in group]


def places(flags: Sequence[bool], wanted: bool = True) -> list[int]:
    """Where the flags are as wanted."""
    return [i for i, flag in enumerate(flags) if bool(flag) is wanted]


def at_front(mapped: Sequence[bool]) -> list[int | None]:
    """The mapped axes of values that have one in front, or none."""
    return [0 if m else None for m in mapped]
