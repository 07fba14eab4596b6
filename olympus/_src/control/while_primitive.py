"""The primitive under `while_loop`: a loop whose number of iterations may depend on data."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.util import cut
from ..core import tags
from ..core.effects import input_effects, of_body
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, OlympusprEqn
from ..core.primitive import Axis, Higher, Zero, spread_tangents
from ..core.reuse import Cells, Use
from ..core.staging import stage
from ..core.trace import literal, typeof
from ..interpreters.batching import batch_program, to_axis
from ..interpreters.dce import dce_closed
from ..interpreters.jvp import jvp_program
from ..interpreters.partial_eval import depends
from ..lax.bits import bitwise_and
from ..lax.comparison import select_n
from ..lax.convert import convert_element_type
from ..lax.reduce import argmax, reduce_or
from ..lax.shape import broadcast_in_dim, instantiate
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.tree import tree_flatten, tree_unflatten
from .bodies import cast, flatten, stage_body, stage_loop_body, with_leading
from .cond import cond_p, put_one
from .elements import per_element
from .fixpoint import carry_fixpoint, split_body

__all__ = ["While", "loop", "while_p"]

BOOL, INT32 = dtypes.as_dtype(bool), dtypes.as_dtype("int32")


class While(Higher):
    """params: cond_nconsts, cond_olympuspr, body_nconsts, body_olympuspr.

    Operands: consts of cond, consts of body, the carry.
    """

    programs = ("cond_olympuspr", "body_olympuspr")
    endless = True

    def infer(self, *avals: Any, body_olympuspr: ClosedOlympuspr, **params: Any) -> list[Any]:
        return body_olympuspr.out_avals

    def effects(self, avals: Sequence[Any], params: dict[str, Any]) -> frozenset[Any]:
        # An effect on an input names its place: each program is told where its inputs are among
        # ours.
        nc, nb, n = params["cond_nconsts"], params["body_nconsts"], len(avals)
        return (of_body(params["cond_olympuspr"], [*range(nc), *range(nc + nb, n)])
                | of_body(params["body_olympuspr"], range(nc, n)))

    def applied(self, params: dict[str, Any], avals: Sequence[Any]) -> Any:
        c_consts, b_consts, carry = cut(avals, params["cond_nconsts"], params["body_nconsts"])
        return [("the condition", params["cond_olympuspr"], [*c_consts, *carry]),
                ("the body", params["body_olympuspr"], [*b_consts, *carry])]

    def cells(self, use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
        params = eqn.params
        c_consts, b_consts, carry = cut(cells, params["cond_nconsts"], params["body_nconsts"])

        def step(i: int, carry: Sequence[Cells]) -> list[Cells]:
            use.call(params["cond_olympuspr"], [*c_consts, *carry])
            return use.call(params["body_olympuspr"], [*b_consts, *carry])

        found = use.loop(step, carry)
        use.call(params["cond_olympuspr"], [*c_consts, *found])     # which says that it is over
        return found

    def depends(self, flags: Sequence[bool], eqn: OlympusprEqn) -> Sequence[bool]:
        nc, nb = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
        c_consts, consts, start = map(tuple, cut(flags, nc, nb))

        def step(carry: tuple[bool, ...]) -> Any:
            if any(depends(eqn.params["cond_olympuspr"], (*c_consts, *carry))):
                return None, (True,) * len(carry)
            return None, depends(eqn.params["body_olympuspr"], (*consts, *carry))

        return carry_fixpoint(start, step)[1]

    def lower(self, b: Any, *args: Any, cond_nconsts: int, cond_olympuspr: ClosedOlympuspr,
              body_nconsts: int, body_olympuspr: ClosedOlympuspr, **params: Any) -> list[Any]:
        c_consts, b_consts, carry = cut(args, cond_nconsts, body_nconsts)

        def test(*xs: Any) -> Any:
            carry, c_consts = cut(xs[:n + cond_nconsts], n)
            return b.call_inline(cond_olympuspr, [*c_consts, *carry], "while/cond")[0]

        def step(*xs: Any) -> list[Any]:
            carry, _, b_consts = cut(xs, n, cond_nconsts)
            carry = list(map(b.spread, carry, avals[-n:]))
            return b.call_inline(body_olympuspr, [*b_consts, *carry], "while/body")

        # A carry has at least one value. One that never changes is still constrained in each
        # iteration: see `Builder.while_loop`.
        n, avals = len(carry), b.avals_in
        consts, const_avals = args[:-n], avals[:-n]
        if not any(e.ordered for e in cond_olympuspr.effects):
            return b.while_loop(carry, test, step, consts, const_avals)
        # A condition passes no token on: it is evaluated in front of the loop and in the body.

        def step_and_test(_: Any, *xs: Any) -> list[Any]:
            new = step(*xs)
            return [test(*new, *xs[n:]), *new]

        return b.while_loop([test(*carry, *consts), *carry], lambda going, *_: going, step_and_test,
                            consts, const_avals)[1:]

    def step_through(self, run: Callable[..., list[Any]], *args: Any, cond_nconsts: int,
                     cond_olympuspr: ClosedOlympuspr, body_nconsts: int,
                     body_olympuspr: ClosedOlympuspr) -> None:
        c_consts, b_consts, carry = cut(args, cond_nconsts, body_nconsts)
        while run(cond_olympuspr, *c_consts, *carry)[0]:
            carry = run(body_olympuspr, *b_consts, *carry)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, cond_nconsts: int,
            cond_olympuspr: ClosedOlympuspr, body_nconsts: int, body_olympuspr: ClosedOlympuspr,
            **params: Any) -> Any:
        nc, nb = cond_nconsts, body_nconsts
        c_consts, b_consts, carry = cut(primals, nc, nb)
        _, t_consts, t_carry = cut(tangents, nc, nb)
        # The condition is a bool: tangents of its consts do not matter.
        nz_consts = tuple(type(t) is not Zero for t in t_consts)

        def step(nz_carry: tuple[bool, ...]) -> Any:
            found = jvp_program(body_olympuspr, (*nz_consts, *nz_carry), nz_carry)
            return found, found[1]

        (body, _), nz = carry_fixpoint(tuple(type(t) is not Zero for t in t_carry), step)
        t_consts = [t for t in t_consts if type(t) is not Zero]
        t_carry = [instantiate(t) for t, on in zip(t_carry, nz, strict=True) if on]
        # The body takes consts, carry, tangents of consts, of carry: bring all consts in front.
        #   jvp_program   c k | dc dk   ->   while   c dc | k dk
        n = nb + len(carry)
        consts, values, consts_dot, carry_dot = cut(
            range(len(body.invars)), nb, len(carry), len(t_consts))
        t_avals = [body.invars[i].aval for i in carry_dot]
        body = body.rearranged([*consts, *consts_dot, *values, *carry_dot])
        # Condition and body share one carry: the condition takes the tangents, and reads none.
        cond = with_leading(cond_olympuspr, k := len(cond_olympuspr.invars), [*range(k), *t_avals])
        out = self.bind(*c_consts, *b_consts, *t_consts, *carry, *t_carry, cond_nconsts=nc,
                        cond_olympuspr=cond, body_nconsts=nb + len(t_consts), body_olympuspr=body,
                        **params)
        k = n - nb
        return out[:k], spread_tangents(map(typeof, out[:k]), nz, out[k:])

    def partial_eval(self, tape: Any, args: Sequence[Any], unknown: Sequence[bool], **params: Any
                     ) -> list[Any]:
        """Run what is known; the unknown part repeats the whole loop, which has no fixed length."""
        #   known loop      the known carries alone; no residuals: the number of rows is not known
        #   recorded loop   everything, since the unknown carries are computed from the known ones
        whole = tape.record(self, args, params)
        known, uk = self.known_loop(args, unknown, **params)
        if known is None or input_effects(self.effects([typeof(a) for a in args], params)):
            return whole    # what it changes is changed once
        out = iter(known())
        return [w if u else next(out) for w, u in zip(whole, uk, strict=True)]

    def known_loop(self, args: Sequence[Any], unknown: Sequence[bool], *, cond_nconsts: int,
                   cond_olympuspr: ClosedOlympuspr, body_nconsts: int,
                   body_olympuspr: ClosedOlympuspr, **params: Any
                   ) -> tuple[functools.partial[list[Any]] | None, tuple[bool, ...]]:
        """The loop of the carries that are known, and which are not.

        None if its condition is not known.
        """
        uk_cond, uk_body, uk_start = map(tuple, cut(unknown, cond_nconsts, body_nconsts))
        split, uk = split_body(body_olympuspr, uk_body, uk_start)
        # An unknown that the condition does not read does not matter: the loop ends without it.
        used = dce_closed(cond_olympuspr, (True,))[1]
        if any(u and r for u, r in zip((*uk_cond, *uk), used, strict=True)):
            return None, uk
        num_known = len(uk) - sum(uk)
        body, _ = dce_closed(split.known, [True] * num_known + [False] * split.num_computed)
        cond = cond_olympuspr.rearranged([i for i, u in enumerate((*uk_cond, *uk)) if not u])
        known = [a for a, u in zip(args, (*uk_cond, *uk_body, *uk), strict=True) if not u]
        return functools.partial(
            self.bind, *known, cond_nconsts=cond_nconsts - sum(uk_cond), cond_olympuspr=cond,
            body_nconsts=body_nconsts - sum(uk_body), body_olympuspr=body, **params), uk

    def transpose(self, cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
        raise ValueError(
            "while_loop: Reverse-mode differentiation does not work for lax.while_loop or "
            "lax.fori_loop with dynamic start/stop values, because every iteration's values must "
            "be kept; give checkpoints=K to while_loop, or use lax.scan, lax.fori_loop with Python "
            "ints as bounds, or forward mode (jvp, jacfwd).")

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             cond_nconsts: int, cond_olympuspr: ClosedOlympuspr, body_nconsts: int,
             body_olympuspr: ClosedOlympuspr, **params: Any) -> Any:
        nc, nb, size = cond_nconsts, body_nconsts, axis.size
        c_consts, b_consts, carry = cut(args, nc, nb)
        c_dims, b_dims, k_dims = cut(dims, nc, nb)

        def at_zero(mapped: Sequence[bool]) -> list[int | None]:
            return [0 if m else None for m in mapped]

        # If the condition is mapped, so is every carry: each element keeps what it ended with.
        def step(mapped: tuple[bool, ...]) -> Any:
            cond, (cond_dim,) = batch_program(cond_olympuspr, axis, [*c_dims, *at_zero(mapped)])
            if cond_dim is not None:
                mapped = (True,) * len(mapped)  # elements stop at different times
            body, out = batch_program(body_olympuspr, axis, [*b_dims, *at_zero(mapped)], mapped)
            return (cond_dim, body), tuple(
                m or d is not None for m, d in zip(mapped, out, strict=True))

        (cond_dim, body), mapped = carry_fixpoint(tuple(d is not None for d in k_dims), step)
        k_dims_new = at_zero(mapped)
        # Once more, with the carry's final flags, and mapped if it was mapped in any round.
        cond = batch_program(cond_olympuspr, axis, [*c_dims, *k_dims_new], cond_dim is not None)[0]
        carry = [to_axis(x, d, 0, size) if m else x
                 for x, d, m in zip(carry, k_dims, mapped, strict=True)]
        if cond_dim is None:
            out = self.bind(*c_consts, *b_consts, *carry, cond_nconsts=nc, cond_olympuspr=cond,
                            body_nconsts=nb, body_olympuspr=body, **params)
            return out, k_dims_new
        if input_effects(cond_olympuspr.effects | body_olympuspr.effects):
            raise ValueError("while_loop: mapped with a condition that differs by element, and a "
                             "body that changes an operand in place; elements that have stopped "
                             "would change it; use lax.map or lax.scan over the elements.")
        #   body  c_consts, b_consts | going, carry  ->  going, carry     condition   any of `going`
        # Which elements go on is carried: the condition is evaluated once for each value.
        going = eval_closed(cond, *c_consts, *carry)
        # Effects of elements that have stopped must not happen: each runs under a `cond` of its
        # own. If elements see each other along this axis they cannot be run apart.
        if any(map(per_element, (cond_olympuspr, body_olympuspr))) and not (
                axis.name is not None and self.uses_axis(axis.name, {
                    "cond_olympuspr": cond_olympuspr, "body_olympuspr": body_olympuspr})):
            guarded = body_olympuspr.derived(
                ("guarded", cond_olympuspr, nc, nb),
                lambda: _guard(cond_olympuspr, body_olympuspr, nc, nb))
            frozen, _ = batch_program(guarded, axis, [*c_dims, *b_dims, 0, *k_dims_new],
                                      [True] * (1 + len(carry)))
        else:
            frozen = body.derived(("frozen", cond, nc, *b_dims),
                                  lambda: _freeze(cond, body, nc, b_dims))
        test = frozen.derived(("any", nc + nb), lambda: stage(
            lambda going, *_: [reduce_or(going, (0,))], frozen.in_avals[nc + nb:]))
        out = self.bind(*c_consts, *b_consts, *going, *carry, cond_nconsts=0,
                        cond_olympuspr=test, body_nconsts=nc + nb, body_olympuspr=frozen, **params)
        return out[1:], k_dims_new

    vmap_named = vmap


def _freeze(cond: ClosedOlympuspr, body: ClosedOlympuspr, nc: int, b_dims: Sequence[int | None]
            ) -> ClosedOlympuspr:
    """The batched body, in which elements that do not go on keep their carry.

    Instead of them the body sees one that goes on: where its own values might make it divide by
    zero, or a callback raise, nothing happens.
    """
    nb = len(b_dims)

    def step(*args: Any) -> list[Any]:
        c_consts, b_consts, (going,), carry = cut(args, nc, nb, 1)
        # With no elements there is none to stand in.
        if not typeof(going).shape[0]:
            return [going, *carry]
        one = argmax(going, 0, np.int32)
        safe = [x if d is None else put_one(going, one, x, d)
                for x, d in zip((*b_consts, *carry), (*b_dims, *[0] * len(carry)), strict=True)]
        new = [select_n(broadcast_in_dim(going, typeof(x).shape, (0,)), x, y)
               for x, y in zip(carry, eval_closed(body, *safe), strict=True)]
        return [bitwise_and(going, eval_closed(cond, *c_consts, *new)[0]), *new]

    return stage(step, [*cond.in_avals[:nc], *body.in_avals[:nb], cond.out_avals[0],
                        *body.in_avals[nb:]])


def _guard(cond: ClosedOlympuspr, body: ClosedOlympuspr, nc: int, nb: int) -> ClosedOlympuspr:
    """Body, then condition, of one element that goes on, so that their effects end with it."""
    avals = [*cond.in_avals[:nc], *body.in_avals]

    def forward(*args: Any) -> list[Any]:
        new = eval_closed(body, *args[nc:])
        return [*eval_closed(cond, *args[:nc], *new), *new]

    branches = (stage(lambda *xs: [literal(False, BOOL), *xs[nc + nb:]], avals),
                stage(forward, avals))

    def step(*args: Any) -> list[Any]:
        consts, (going,), carry = cut(args, nc + nb, 1)
        return cond_p.bind(convert_element_type(going, INT32), *consts, *carry, branches=branches)

    return stage(step, [*avals[:nc + nb], cond.out_avals[0], *avals[nc + nb:]])


while_p = While("while")


def loop(bind: Callable[..., list[Any]], cond_fun: Callable[[Any], Any],
         body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """Stage condition and body on pytrees and apply `bind`, that of a while primitive."""
    leaves, avals, tree = flatten("while_loop: init_val", init_val)
    in_tree = tree_flatten((init_val,))[1]
    # The body first: it settles the carry's weak types, which the condition is then staged for.
    body, avals = stage_loop_body("while_loop", body_fun, in_tree, tree, avals)
    cond = stage_body(cond_fun, in_tree, avals)
    out = cond.out_avals
    if len(out) != 1 or out[0].shape != () or out[0].dtype != BOOL or cond.out_tree.num_nodes != 1:
        shown = (f"pytree {cond.out_tree}" if cond.out_tree.num_nodes != 1 else
                 f"output type(s) {out}")
        raise TypeError(f"while_loop: cond_fun must return a boolean scalar, but got {shown} from "
                        f"{cond.name}; reduce with olympus.numpy.all or any.")
    # Devices that leave the loop at different times have different values then.
    vma = out[0].vma
    if any(isinstance(a, ShapedArray) and not vma <= a.vma for a in avals):
        varied = [tags.pvary(x, vma) for x in leaves]
        return loop(bind, cond_fun, body_fun, tree_unflatten(tree, varied))
    leaves = [cast(x, a) for x, a in zip(leaves, avals, strict=True)]
    result = bind(*cond.consts, *body.consts, *leaves, cond_nconsts=len(cond.consts),
                  cond_olympuspr=cond.program, body_nconsts=len(body.consts),
                  body_olympuspr=body.program)
    return tree_unflatten(tree, result)

