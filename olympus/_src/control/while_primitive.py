"""The primitive under `while_loop`: a loop whose number of iterations may depend on data."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from ..base.source import summarize
from ..base.typing import Array, IrValue, Params, Reference, T, Value
from ..base.util import cut, lazy_imports
from ..core.effects import input_effects
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, OlympusprEqn, derived
from ..core.primitive import Axis, Builder, Cotangent, Tangent, Transposed
from ..core.reuse import Cells, Use
from ..core.staging import stage
from ..core.trace import ctx, literal, typeof
from ..interpreters.batching import batch_program
from ..interpreters.checks import Checks
from ..interpreters.dce import dce_closed
from ..lax.bits import bitwise_and
from ..lax.comparison import eq, select_n
from ..lax.convert import convert_element_type
from ..lax.reduce import argmax, reduce_or
from ..lax.shape import broadcast_in_dim
from ..types import dtypes
from ..types.avals import Aval, ShapedArray
from .bodies import with_leading
from .call import call_p
from .cond import check_selectable, cond_p
from .elements import check_elements, per_element, put_one
from .groups import Applied, Groups, Loop, at_front, front

with lazy_imports(__name__):
    from ..interpreters import discharge as _refs, parts as _parts  # references; users' types

BOOL, INT32 = dtypes.as_dtype(bool), dtypes.as_dtype("int32")


class While(Loop):
    """params: cond_nconsts, cond_olympuspr, body_nconsts, body_olympuspr.

    Operands: consts of cond, consts of body, the carry.
    """

    programs = ("cond_olympuspr", "body_olympuspr")
    body = "body_olympuspr"
    roles = "cond_nconsts", "body_nconsts", None
    endless = True

    def regrouped(self, params: Params, bodies: Sequence[ClosedOlympuspr], read: int,
                  carry: Sequence[int | ShapedArray], own: Sequence[int] = ()) -> Params:
        # Condition and body share the carry: the condition takes new carries, too, and reads none.
        cond, nc = params["cond_olympuspr"], params["cond_nconsts"]
        lead = [*own, *(nc + x if type(x) is int else x for x in carry)]
        cond = with_leading(cond, len(cond.invars), lead)
        return {**super().regrouped(params, bodies, read, carry, own), "cond_olympuspr": cond}

    def in_parts(self, args: Sequence[Value], params: Params) -> list[Value]:
        own, read, carry, _ = map(_parts.parts_of, self.cut(params, args))
        outs = self.bind(*own, *read, *carry, **{
            **params, "cond_nconsts": len(own), "body_nconsts": len(read),
            "cond_olympuspr": _parts.in_parts(params["cond_olympuspr"]),
            "body_olympuspr": _parts.in_parts(params["body_olympuspr"])})
        return _parts.raised(params[self.body].out_avals, outs)

    def deciding(self, params: Params, groups: Groups) -> Sequence[bool]:
        # Only the values that the condition reads decide.
        return dce_closed(params["cond_olympuspr"], (True,))[1]

    def applied(self, params: Params, xs: Sequence[T]) -> Applied[T]:
        c_consts, b_consts, carry = cut(xs, params["cond_nconsts"], params["body_nconsts"])
        return [("the condition", params["cond_olympuspr"], [*c_consts, *carry]),
                ("the body", params["body_olympuspr"], [*b_consts, *carry])]

    def cells(self, use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
        carried = super().cells(use, cells, eqn)
        # The condition runs once more than the body.
        rest = [*cells[:len(cells) - len(carried)], *carried]
        _, cond, its = self.applied(eqn.params, rest)[0]
        use.call(cond, its)
        return carried

    def lower(self, b: Builder, *args: IrValue, cond_nconsts: int, cond_olympuspr: ClosedOlympuspr,
              body_nconsts: int, body_olympuspr: ClosedOlympuspr, **params: Hashable
              ) -> Sequence[IrValue]:
        c_consts, b_consts, carry = cut(args, cond_nconsts, body_nconsts)

        def test(*xs: IrValue) -> IrValue:
            carry, c_consts = cut(xs[:n + cond_nconsts], n)
            return b.call_inline(cond_olympuspr, [*c_consts, *carry], "while/cond")[0]

        def step(*xs: IrValue) -> list[IrValue]:
            carry, _, b_consts = cut(xs, n, cond_nconsts)
            carry = list(map(b.spread, carry, avals[len(args) - n:]))
            return b.call_inline(body_olympuspr, [*b_consts, *carry], "while/body")

        # Carries that never change are constrained in each iteration, too: see
        # `Builder.while_loop`.
        n, avals, carry = len(carry), b.avals_in, self.apart_at_first(b, carry)
        consts, const_avals = args[:len(args) - n], avals[:len(args) - n]
        if not any(e.ordered for e in cond_olympuspr.effects):
            return b.while_loop(carry, test, step, consts, const_avals)
        # A condition's region returns no token: it is evaluated before the loop and in the body.

        def step_and_test(_: IrValue, *xs: IrValue) -> list[IrValue]:
            new = step(*xs)
            return [test(*new, *xs[n:]), *new]

        return b.while_loop([test(*carry, *consts), *carry], lambda going, *_: going, step_and_test,
                            consts, const_avals)[1:]

    # A reference that the condition reads and the body writes is a const of both, and becomes one
    # carry. Contents that are only read stay consts.
    def discharged(self, ins: Sequence[Reference], params: Params) -> list[Array]:
        ins, params = self.with_references(ins, params)
        nc, nb = params["cond_nconsts"], params["body_nconsts"]
        cond, body = params["cond_olympuspr"], params["body_olympuspr"]
        c_consts, b_consts, carry = cut(ins, nc, nb)
        in_cond, in_body = [[_refs.is_cell(x) for x in (*consts, *carry)]
                            for consts in (c_consts, b_consts)]
        if any(map(operator.and_, in_cond, _refs.written(cond))):
            lines = [summarize(e.source) for e in cond.eqns
                     if any(f.kind != "read" for f in input_effects(e.effects))]
            raise ValueError(
                "while_loop: cond_fun writes a reference"
                + "".join([f"\n  at {line}" for line in lines[:1]]) +
                ";\n  a condition that only reads is required, since it is asked once more than "
                "the body runs;\n  write it in body_fun.")
        written = [*compress(b_consts, map(operator.and_, in_body, _refs.written(body)))]
        index_of = {id(x): i for i, x in enumerate(written)}
        c_left, b_left = [[_refs.content(x) for x in consts if id(x) not in index_of]
                          for consts in (c_consts, b_consts)]
        values = [*map(_refs.content, written), *carry]
        test_body, step_body = [_on_contents(
            program, tuple(flags), returned, tuple([index_of.get(id(x)) for x in consts]),
            len(written), tuple(map(typeof, (*left, *values))), _refs.sources((*consts, *carry)))
            for program, flags, returned, consts, left in (
                (cond, in_cond, False, c_consts, c_left), (body, in_body, True, b_consts, b_left))]
        outs = self.bind(*c_left, *b_left, *values, **{
            **params, "cond_nconsts": len(c_left), "cond_olympuspr": test_body,
            "body_nconsts": len(b_left), "body_olympuspr": step_body})
        for x, out in zip(written, outs, strict=False):
            x._put(out)
        return outs[len(written):]

    # A loop ends at its first failure. A condition that may fail is evaluated before the loop and
    # in the body, and its result is carried.
    def checked(self, checks: Checks, args: Sequence[Array], params: Params) -> object:
        cond, nc = params["cond_olympuspr"], params["cond_nconsts"]
        test = checks.body(cond)
        if test is None:
            return super().checked(checks, args, params)
        c_consts, b_consts, carry = self.cut(params, args)[:3]
        going, = checks.took(call_p.bind(*c_consts, *carry, olympuspr=test.program,
                                         name="condition"), test.sites)
        body = params["body_olympuspr"]
        nb = len(b_consts)
        body_and_test = _ask(body, cond, nc, nb)
        go_on = _going(body_and_test, nc + nb)
        return super().checked(checks, [*c_consts, *b_consts, going, *carry], {
            **params, "cond_nconsts": 0, "cond_olympuspr": go_on, "body_nconsts": nc + nb,
            "body_olympuspr": body_and_test})[1:]

    def until_failure(self, params: Params) -> Params:
        # With a collective in the body, all devices must go on.
        if any(self.uses_axis(name, params) for name in ctx.axes):
            return params
        cond, nc = params["cond_olympuspr"], params["cond_nconsts"]
        return {**params, "cond_olympuspr": _until_failure(cond, nc)}

    def step_through(self, run: Callable[..., list[Array]], *args: Array, cond_nconsts: int,
                     cond_olympuspr: ClosedOlympuspr, body_nconsts: int,
                     body_olympuspr: ClosedOlympuspr) -> None:
        c_consts, b_consts, carry = cut(args, cond_nconsts, body_nconsts)
        while run(cond_olympuspr, *c_consts, *carry)[0]:
            carry = run(body_olympuspr, *b_consts, *carry)

    def transpose(self, cts: Sequence[Tangent], *args: Transposed, **params: Hashable
                  ) -> Sequence[Cotangent]:
        raise ValueError(
            "while_loop: Reverse-mode differentiation does not work for lax.while_loop or "
            "lax.fori_loop with dynamic start/stop values, because every iteration's values must "
            "be kept; give checkpoints=K to while_loop, or use lax.scan, lax.fori_loop with Python "
            "ints as bounds, or forward mode (jvp, jacfwd).")

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Any
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        nc, nb, *_ = self.groups(params, len(args))
        cond_olympuspr, body_olympuspr = params["cond_olympuspr"], params["body_olympuspr"]
        c_dims, b_dims, _ = cut(dims, nc, nb)

        def batched(k_dims: Sequence[int | None], force: bool = False
                    ) -> tuple[ClosedOlympuspr, tuple[int | None, ...]]:
            return batch_program(cond_olympuspr, axis, [*c_dims, *k_dims], force)

        # If the condition is mapped, every carry is: each element keeps its last value.
        def kept(mapped: tuple[bool, ...]) -> tuple[bool, ...]:
            return mapped if batched(at_front(mapped, fronts))[1] == (None,) else (
                (True,) * len(mapped))

        fronts = list(map(front, map(typeof, args[nc + nb:]), dims[nc + nb:]))

        new, args, k_dims = self.batched(axis, args, dims, params, kept)
        cond, (dim,) = batched(k_dims)
        if dim is None:
            return self.bind(*args, **{**new, "cond_olympuspr": cond}), k_dims
        check_selectable(self.name, args, ())
        body = new["body_olympuspr"]
        cond, _ = batched(k_dims, True)
        c_consts, b_consts, carry = cut(args, nc, nb)
        if input_effects(cond_olympuspr.effects | body_olympuspr.effects):
            raise ValueError("while_loop: mapped with a condition that differs by element, and a "
                             "body that changes an operand in place; elements that have stopped "
                             "would change it; use lax.map or lax.scan over the elements.")
        #   body  c_consts, b_consts | going, carry  ->  going, carry     condition   any of `going`
        # `going` flags the elements that go on, as a carry: the condition runs once per iteration.
        going = eval_closed(cond, *c_consts, *carry)
        # Elements that have stopped may have no effects: each runs under a `cond` of its own. That
        # is impossible if the body communicates along the mapped axis.
        if any(map(per_element, (cond_olympuspr, body_olympuspr))) and not (
                axis.name is not None and self.uses_axis(axis.name, params)):
            guarded = _guard(body_olympuspr, cond_olympuspr, nc, nb)
            freezing, _ = batch_program(guarded, axis, [*c_dims, *b_dims, 0, *k_dims],
                                        [True] * (1 + len(carry)))
        else:
            freezing = _freeze(body_olympuspr, body, cond, nc, tuple(b_dims), tuple(k_dims), axis)
        test = _any_going(freezing, nc + nb)
        out = self.bind(*c_consts, *b_consts, *going, *carry, **{
            **params, "cond_nconsts": 0, "cond_olympuspr": test, "body_nconsts": nc + nb,
            "body_olympuspr": freezing})
        return out[1:], k_dims


@derived
def _on_contents(program: ClosedOlympuspr, which: tuple[bool, ...], writes: bool,
                 written: tuple[int | None, ...], num_held: int, avals: tuple[Aval, ...],
                 sources: tuple[int | None, ...]) -> ClosedOlympuspr:
    """A condition, or a body (`writes`), on the contents of the references that `which` flags.

        discharged   consts | carry                ->  carry | written
        the loop     consts left | written, carry  ->  written, carry

    written: per const, its index among the written consts; None: it stays a const.
    """
    pure = _refs.discharge(program, which, _refs.written(program) if writes else (
        [False] * len(which)), sources)
    num_left, num_carry = written.count(None), len(which) - len(written)

    def run(*xs: Array) -> list[Array]:
        left, held, values = cut(xs, num_left, num_held)
        rest = iter(left)
        consts = [next(rest) if i is None else held[i] for i in written]
        outs = eval_closed(pure, *consts, *values)
        return [*outs[num_carry:], *outs[:num_carry]] if writes else outs

    return stage(run, avals)


@derived
def _going(asked: ClosedOlympuspr, consts: int) -> ClosedOlympuspr:
    """The condition on a carry that says, in front, whether it goes on."""
    return stage(lambda going, *_: [going], asked.in_avals[consts:])


@derived
def _any_going(frozen: ClosedOlympuspr, consts: int) -> ClosedOlympuspr:
    """The condition on a carry that begins with the flags of the elements that go on."""
    return stage(lambda going, *_: [reduce_or(going, (0,))], frozen.in_avals[consts:])


@derived
def _until_failure(cond: ClosedOlympuspr, nc: int) -> ClosedOlympuspr:
    """The condition of a loop that ends at a failure: its second carry is the failure's code."""
    return stage(
        lambda *xs: [bitwise_and(eq(xs[nc + 1], literal(0, INT32)), *eval_closed(cond, *xs))],
        cond.in_avals)


@derived
def _freeze(single: ClosedOlympuspr, body: ClosedOlympuspr, cond: ClosedOlympuspr, nc: int,
            b_dims: tuple[int | None, ...], k_dims: tuple[int | None, ...], axis: Axis
            ) -> ClosedOlympuspr:
    """The batched body, in which elements that have stopped keep their carry.

    In their place the body sees an element that goes on, since their own values might make it
    divide by zero, or make a callback raise. `single` is the body of one element.
    """
    nb = len(b_dims)

    def step(*args: Array) -> list[Array]:
        c_consts, b_consts, (going,), carry = cut(args, nc, nb, 1)
        # Without elements there is no stand-in.
        if not typeof(going).shape[0]:
            return [going, *carry]
        check_elements(axis, going, (*b_consts, *carry), (*b_dims, *k_dims), single)
        one = argmax(going, 0, np.int32)
        stood_in = [x if d is None else put_one(going, one, x, d)
                    for x, d in zip((*b_consts, *carry), (*b_dims, *[0] * len(carry)), strict=True)]
        new = [select_n(broadcast_in_dim(going, typeof(x).shape, (0,)), x, y)
               for x, y in zip(carry, eval_closed(body, *stood_in), strict=True)]
        return [bitwise_and(going, eval_closed(cond, *c_consts, *new)[0]), *new]

    return stage(step, [*cond.in_avals[:nc], *body.in_avals[:nb], cond.out_avals[0],
                        *body.in_avals[nb:]])


@derived
def _guard(body: ClosedOlympuspr, cond: ClosedOlympuspr, nc: int, nb: int) -> ClosedOlympuspr:
    """Body, then condition, of one element; nothing if it has stopped, so that it has no effects.
    """
    avals = [*cond.in_avals[:nc], *body.in_avals]

    def forward(*args: Array) -> list[Array]:
        new = eval_closed(body, *args[nc:])
        return [*eval_closed(cond, *args[:nc], *new), *new]

    branches = (stage(lambda *xs: [literal(False, BOOL), *xs[nc + nb:]], avals),
                stage(forward, avals))

    def step(*args: Array) -> list[Array]:
        consts, (going,), carry = cut(args, nc + nb, 1)
        return cond_p.bind(convert_element_type(going, INT32), *consts, *carry, branches=branches)

    return stage(step, [*avals[:nc + nb], cond.out_avals[0], *avals[nc + nb:]])


@derived
def _ask(body: ClosedOlympuspr, cond: ClosedOlympuspr, nc: int, nb: int) -> ClosedOlympuspr:
    """The program of body, then condition, on the consts of both, a flag (unread) and the carry."""
    def step(*args: Array) -> list[Array]:
        new = call_p.bind(*args[nc:nc + nb], *args[nc + nb + 1:], olympuspr=body, name="body")
        return [*call_p.bind(*args[:nc], *new, olympuspr=cond, name="condition"), *new]

    return stage(step, [*cond.in_avals[:nc], *body.in_avals[:nb], cond.out_avals[0],
                        *body.in_avals[nb:]])


while_p = While("while")
