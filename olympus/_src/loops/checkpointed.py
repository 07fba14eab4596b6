"""Reverse mode through `while_loop(..., checkpoints=K)`: K carries are stored, the rest recomputed.

Linearised, the loop becomes `counted_while`, which knows its number of iterations. Its transpose
goes back one iteration at a time from the nearest stored carry, and stores more on the way, where
the binomial schedule of Griewank & Walther (2000, "Algorithm 799: revolve") wants them: for n
iterations, K carries and the least r with n <= C(K + r, K), no iteration runs forward more than
r times again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.util import cut
from ..control.cond import cond
from ..control.fixpoint import carry_fixpoint, split_body
from ..control.while_primitive import While, loop, while_p
from ..core.effects import input_effects, of_body
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, OlympusprEqn
from ..core.primitive import Axis, Higher, Linear, Zero, spread_tangents
from ..core.reuse import Cells, Use
from ..core.staging import stage
from ..core.trace import literal, typeof
from ..interpreters.batching import batch_flat, batch_program, to_axis
from ..interpreters.dce import dce_closed
from ..interpreters.jvp import jvp_program
from ..interpreters.transpose import transpose_program
from ..lax import arithmetic
from ..lax.arithmetic import div, mul, sub
from ..lax.comparison import clamp, eq, ge, gt, lt, select
from ..lax.convert import convert_element_type
from ..lax.families import add
from ..lax.shape import broadcast, instantiate, zeros_of
from ..lax.slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from ..types.avals import make_aval

__all__ = ["checkpointed_while_p", "counted_while_p"]

INT = np.dtype(np.int32)
INDEX = make_aval((), INT)


def _int(value: int) -> Any:
    return literal(value, INT, False)


class CheckpointedWhile(While):
    """params: those of while, and checkpoints: how many carries reverse mode stores."""

    def partial_eval(self, tape: Any, args: Sequence[Any], unknown: Sequence[bool], *,
                     checkpoints: int, **params: Any) -> list[Any]:
        # Where the condition reads an unknown, or an operand is changed in place, the loop cannot
        # be counted first: it stays one loop, which has no transpose.
        known, uk = self.known_loop(args, unknown, checkpoints=checkpoints, **params)
        if known is None or input_effects(self.effects([typeof(a) for a in args], params)):
            return tape.record(self, args, {**params, "checkpoints": checkpoints})
        count, *out = self._counting(*known.args, **known.keywords)
        nc = params["cond_nconsts"]
        # From the start again, without the condition: the count stands for it.
        whole = tape.record(counted_while_p, [count, *args[nc:]], {
            "olympuspr": params["body_olympuspr"], "num_consts": params["body_nconsts"],
            "checkpoints": checkpoints})
        rest = iter(out)
        return [w if u else next(rest) for w, u in zip(whole, uk, strict=True)]

    def transpose(self, cts: Sequence[Any], *args: Any, **params: Any) -> list[Any]:
        raise ValueError(
            "while_loop: transposed with a condition that reads what it is linear in; a number of "
            "iterations that does not depend on that is required; use vjp instead.")

    def _counting(self, *args: Any, cond_nconsts: int, cond_olympuspr: ClosedOlympuspr,
                  body_nconsts: int, body_olympuspr: ClosedOlympuspr, **params: Any) -> list[Any]:
        """Run the loop with the number of iterations as one carry more, in front."""
        nc, nb = cond_nconsts, body_nconsts

        def cond_body(*xs: Any) -> list[Any]:
            return eval_closed(cond_olympuspr, *xs[:nc], *xs[nc + 1:])

        def step(*xs: Any) -> list[Any]:
            return [add(xs[nb], _int(1)), *eval_closed(body_olympuspr, *xs[:nb], *xs[nb + 1:])]

        c_avals, b_avals = cond_olympuspr.in_avals, body_olympuspr.in_avals
        return self.bind(
            *args[:nc + nb], _int(0), *args[nc + nb:], cond_nconsts=nc, body_nconsts=nb,
            cond_olympuspr=cond_olympuspr.derived(("counting", nc), lambda: stage(
                cond_body, [*c_avals[:nc], INDEX, *c_avals[nc:]])),
            body_olympuspr=body_olympuspr.derived(("counting", nb), lambda: stage(
                step, [*b_avals[:nb], INDEX, *b_avals[nb:]])), **params)


class CountedWhile(Higher):
    """params: olympuspr, num_consts, checkpoints. Operands: iterations, consts, the carry."""

    programs = ("olympuspr",)
    endless = True

    def infer(self, *avals: Any, olympuspr: ClosedOlympuspr, **params: Any) -> list[Any]:
        return olympuspr.out_avals

    def effects(self, avals: Sequence[Any], params: dict[str, Any]) -> frozenset[Any]:
        return of_body(params["olympuspr"], range(1, len(avals)))

    def cells(self, use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
        consts, carry = cut(cells[1:], eqn.params["num_consts"])
        return use.loop(lambda i, carry: use.call(eqn.params["olympuspr"], [*consts, *carry]),
                        carry)

    def _as_while(self, n: Any, *args: Any, olympuspr: ClosedOlympuspr, num_consts: int,
                  checkpoints: int) -> list[Any]:
        avals = [INDEX, *olympuspr.in_avals[num_consts:]]
        test = olympuspr.derived(("below", num_consts), lambda: stage(
            lambda n, i, *carry: [lt(i, n)], [INDEX, *avals]))

        def step(*xs: Any) -> list[Any]:
            consts, (i,), carry = cut(xs, num_consts, 1)
            return [add(i, _int(1)), *eval_closed(olympuspr, *consts, *carry)]

        body = olympuspr.derived(("counted", num_consts), lambda: stage(
            step, [*olympuspr.in_avals[:num_consts], *avals]))
        return while_p.bind(n, *args[:num_consts], _int(0), *args[num_consts:], cond_nconsts=1,
                            cond_olympuspr=test, body_nconsts=num_consts, body_olympuspr=body)[1:]

    def step_through(self, run: Callable[..., list[Any]], n: Any, *args: Any,
                     olympuspr: ClosedOlympuspr, num_consts: int, **params: Any) -> None:
        consts, carry = cut(args, num_consts)
        for _ in range(int(n)):
            carry = run(olympuspr, *consts, *carry)

    def lower(self, b: Any, *args: Any, **params: Any) -> list[Any]:
        return b.traced(functools.partial(self._as_while, **params), args, b.avals_in)

    # The count is an integer: it has no tangent.
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, olympuspr: ClosedOlympuspr,
            num_consts: int, checkpoints: int) -> Any:
        (count, *primals), tangents = primals, tangents[1:]
        nz_consts, nz_start = map(tuple, cut([type(t) is not Zero for t in tangents], num_consts))

        def step(nz: tuple[bool, ...]) -> Any:
            return jvp_program(olympuspr, (*nz_consts, *nz), nz)

        body, nz = carry_fixpoint(nz_start, step)
        t_consts = [t for t in tangents[:num_consts] if type(t) is not Zero]
        t_carry = [instantiate(t) for t, on in zip(tangents[num_consts:], nz, strict=True) if on]
        n, k = len(primals), len(t_consts)
        #   jvp_program   c k | dc dk   ->   this loop   c dc | k dk
        body = body.rearranged([*range(num_consts), *range(n, n + k), *range(num_consts, n),
                                *range(n + k, n + k + len(t_carry))])
        out = self.bind(count, *primals[:num_consts], *t_consts, *primals[num_consts:], *t_carry,
                        olympuspr=body, num_consts=num_consts + k, checkpoints=checkpoints)
        n = len(nz)
        return out[:n], spread_tangents(map(typeof, out[:n]), nz, out[n:])

    def partial_eval(self, tape: Any, args: Sequence[Any], unknown: Sequence[bool], **params: Any
                     ) -> list[Any]:
        """Run what is known; the unknown part repeats the whole loop: it keeps nothing of it."""
        whole = tape.record(self, args, params)
        if unknown[0] or input_effects(self.effects([typeof(a) for a in args], params)):
            return whole
        num_consts, closed = params["num_consts"], params["olympuspr"]
        uk_consts, uk_start = map(tuple, cut(unknown[1:], num_consts))
        split, uk = split_body(closed, uk_consts, uk_start)
        body, _ = dce_closed(split.known, [True] * uk.count(False) + [False] * split.num_computed)
        known = [a for a, u in zip(args, (False, *uk_consts, *uk), strict=True) if not u]
        out = iter(self.bind(*known, **{**params, "olympuspr": body,
                                        "num_consts": uk_consts.count(False)}))
        return [w if u else next(out) for w, u in zip(whole, uk, strict=True)]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             olympuspr: ClosedOlympuspr, num_consts: int, checkpoints: int) -> Any:
        params = {"num_consts": num_consts, "checkpoints": checkpoints}
        # Elements differ in their number of iterations: that takes a while loop.
        if dims[0] is not None:
            return batch_flat(lambda *xs: self._as_while(*xs, olympuspr=olympuspr, **params),
                              axis, args, dims)
        c_dims, k_dims = dims[1:num_consts + 1], dims[num_consts + 1:]

        def step(mapped: tuple[bool, ...]) -> Any:
            body, out = batch_program(
                olympuspr, axis, [*c_dims, *(0 if m else None for m in mapped)], mapped)
            return body, tuple(d is not None for d in out)

        body, mapped = carry_fixpoint(tuple(d is not None for d in k_dims), step)
        carry = [to_axis(x, d, 0, axis.size) if m else x
                 for x, d, m in zip(args[num_consts + 1:], k_dims, mapped, strict=True)]
        out = self.bind(*args[:num_consts + 1], *carry, olympuspr=body, **params)
        return out, [0 if m else None for m in mapped]

    vmap_named = vmap

    def transpose(self, cts: Sequence[Any], n: Any, *args: Any, olympuspr: ClosedOlympuspr,
                  num_consts: int, checkpoints: int) -> list[Any]:
        linear = tuple(type(a) is Linear for a in args)
        back, lin_carry = olympuspr.derived(
            ("walk back", linear, num_consts, checkpoints),
            lambda: _walk_back_program(olympuspr, linear, num_consts, checkpoints))
        # A carry may start as known zeros and become linear in the body: the program counts it
        # among the linear ones, but its operand wants no cotangent.
        lin = (*linear[:num_consts], *lin_carry)
        known = [a for a, on in zip(args, lin, strict=True) if not on]
        ct = [instantiate(c) for c, on in zip(cts, lin_carry, strict=True) if on]
        out = iter(eval_closed(back, n, *known, *ct))
        found = [next(out) if on else None for on in lin]
        return [None, *(d if on else None for d, on in zip(found, linear, strict=True))]


def _walk_back_program(olympuspr: ClosedOlympuspr, linear: Sequence[bool], num_consts: int,
                       checkpoints: int) -> tuple[ClosedOlympuspr, tuple[bool, ...]]:
    """iterations, known consts, known carry, cotangents -> cotangents of linear consts and carry.

    And which carries are linear.
    """
    lin_consts = tuple(linear[:num_consts])
    split, lin_carry = split_body(olympuspr, lin_consts, tuple(linear[num_consts:]))
    num_known, num_state = lin_consts.count(False), lin_carry.count(False)
    num_res, num_linear = len(split.residuals), sum(lin_consts) + sum(lin_carry)
    back, _ = transpose_program(split.unknown, [False] * num_res + [True] * num_linear,
                                [True] * sum(lin_carry))
    # `forward` steps the known state, `split.known` gives residuals, too: those of one iteration
    # are computed when it is undone, and never kept.
    forward, _ = dce_closed(split.known, [True] * num_state + [False] * split.num_computed)
    avals = list(zip(olympuspr.in_avals, (*lin_consts, *lin_carry), strict=True))
    acc_avals = [a.to_cotangent_aval() for a, on in avals[:num_consts] if on]

    def whole(n: Any, *values: Any) -> list[Any]:
        consts, state, ct = cut(values, num_known, num_state)

        def advance(state: Sequence[Any]) -> list[Any]:
            return eval_closed(forward, *consts, *state)

        def take_back(state: Sequence[Any], acc: Sequence[Any], ct: Sequence[Any]) -> Any:
            known = [*consts, *state]
            computed = eval_closed(split.known, *known)[num_state:]
            out = eval_closed(back, *split.residual_values(known, computed), *ct)
            d_consts, d_carry = cut(out, sum(lin_consts))
            return [*map(add, acc, d_consts)], d_carry

        acc, ct = walk_back(n, state, list(map(zeros_of, acc_avals)), ct, advance, take_back,
                            checkpoints)
        return [*acc, *ct]

    ct_avals = [a.to_cotangent_aval() for a, on in avals[num_consts:] if on]
    return stage(whole, [INDEX, *(a for a, on in avals if not on), *ct_avals]), lin_carry


checkpointed_while_p = CheckpointedWhile("checkpointed_while")
counted_while_p = CountedWhile("counted_while")


def walk_back(n: Any, start: Sequence[Any], acc: Any, ct: Any,
              advance: Callable[[Any], Any], take_back: Callable[[Any, Any, Any], Any],
              checkpoints: int) -> tuple[Any, Any]:
    """Undo iterations n - 1, …, 0 with `take_back(state before it, acc, ct) -> acc, ct`.

    The stored states are a stack: `where` holds the iterations that they precede.
    """
    # Its own loops can be differentiated, in the same way: second derivatives store K values of
    # what the first one stores.
    while_loop = functools.partial(loop, functools.partial(
        checkpointed_while_p.bind, checkpoints=checkpoints))
    # No known state: an iteration is undone without knowing where it was.
    if not start:
        def undo(loop: Any) -> Any:
            t, acc, ct = loop
            return (sub(t, _int(1)), *take_back([], acc, ct))

        return while_loop(lambda loop: gt(loop[0], _int(0)), undo, (n, acc, ct))[1:]
    stored = [broadcast(x, (checkpoints,)) for x in start]
    where = zeros_of(make_aval((checkpoints,), INT))

    #   iterations  0 ──────── begin ──── begin + steps ──── last │ undone
    #   stack       where[0] … where[top]
    # A state is the one before its iteration. Each round runs forward from the topmost. It gets to
    # `last`, which is then undone, or part of the way, where it leaves another state. A state that
    # was at `last` already is used up: it is popped. The state before iteration 0 stays to the end.
    def round_(loop: Any) -> Any:
        last, top, where, stored, acc, ct = loop
        begin = dynamic_index_in_dim(where, top, keepdims=False)
        state = [dynamic_index_in_dim(x, top, keepdims=False) for x in stored]
        distance = sub(last, begin)
        free = sub(_int(checkpoints - 1), top)
        # With one place, every iteration is reached from the start.
        steps = stride(distance, free) if checkpoints > 1 else distance
        _, state = while_loop(lambda loop: lt(loop[0], steps),
                              lambda loop: (add(loop[0], _int(1)), advance(loop[1])),
                              (_int(0), state))

        def arrived() -> Any:
            used_up = convert_element_type(eq(steps, _int(0)), INT)
            return (sub(last, _int(1)), sub(top, used_up), where, stored,
                    *take_back(state, acc, ct))

        def store() -> Any:
            up = add(top, _int(1))
            return (last, up, dynamic_update_index_in_dim(where, add(begin, steps), up, 0),
                    [dynamic_update_index_in_dim(x, s, up, 0)
                     for x, s in zip(stored, state, strict=True)],
                    acc, ct)

        return cond(eq(steps, distance), arrived, store)

    init = (sub(n, _int(1)), _int(0), where, stored, acc, ct)
    return while_loop(lambda loop: ge(loop[0], _int(0)), round_, init)[4:]


def stride(distance: Any, free: Any) -> Any:
    """How many iterations ahead the next state is stored, with `free` places for states left.

    With c = free + 1 stored states, of which one is at the start, C(c + r, c) iterations can be
    undone if none runs forward more than r times. The part before the new state has all c, the part
    behind it c - 1; with the least r that does, the parts are made as long as they may be. Without
    a free place the whole distance is run.
    """
    # Binomials outgrow int32. Where float32 rounds them the stride is not the best, but the clamp
    # keeps it between one step and the whole distance: all that correctness asks for.
    real = np.dtype(np.float32)

    def number(x: float) -> Any:
        return literal(x, real, False)

    c = convert_element_type(add(free, _int(1)), real)
    length = convert_element_type(add(distance, _int(1)), real)

    #   reach   C(c + r, c): the most that r does       before   C(c + r - 1, c): the same of r - 1
    #   behind  C(c + r - 2, c - 1): the least that is left for the part behind the new state
    def grow(loop: Any) -> Any:
        r, reach, _ = loop
        r = add(r, number(1.0))
        return r, div(mul(reach, add(c, r)), r), reach

    # Without a free place nothing is asked for: the loop would take as many rounds as iterations.
    asked = select(gt(free, _int(0)), length, number(0.0))
    r, _, before = loop(while_p.bind, lambda loop: lt(loop[1], asked), grow,
                              (number(0.0), number(1.0), number(1.0)))
    behind = div(mul(before, c), arithmetic.max(sub(add(c, r), number(1.0)), number(1.0)))
    steps = convert_element_type(arithmetic.round(arithmetic.min(before, sub(length, behind))), INT)
    steps = clamp(_int(1), steps, distance)
    return select(gt(free, _int(0)), steps, distance)
