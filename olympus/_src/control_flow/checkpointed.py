"""Reverse mode through `while_loop(..., checkpoints=K)`: K carries are stored, the rest recomputed.

Linearised, the loop becomes `counted_while`, which knows its number of iterations. Its transpose
goes back one iteration at a time from the nearest stored carry, and stores more on the way, where
the binomial schedule of Griewank & Walther (2000, "Algorithm 799: revolve") wants them: for n
iterations, K carries and the least r with n <= C(K + r, K), no iteration runs forward more than
r times again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from itertools import compress, repeat
from typing import Any

import numpy as np

from ..base.typing import Array, ArrayLike, IrValue, PyTree
from ..base.util import cut, merged
from ..control.bodies import bind_while
from ..control.groups import Loop
from ..control.while_primitive import While, while_p
from ..core import tags
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, derived
from ..core.primitive import Axis, Builder, Cotangent, Higher, Linear, Tangent, Transposed
from ..core.staging import stage
from ..core.trace import literal, typeof
from ..interpreters.batching import batch_flat
from ..interpreters.dce import dce_closed
from ..interpreters.partial_eval import TapeTrace
from ..interpreters.transpose import transpose_program
from ..lax import arithmetic
from ..lax.arithmetic import div, mul, sub
from ..lax.comparison import clamp, eq, ge, gt, lt, select
from ..lax.convert import convert_element_type
from ..lax.families import add
from ..lax.shape import broadcast, instantiate, zeros_of
from ..lax.slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from ..types.avals import Aval, make_aval
from .branches import cond

INT = np.dtype(np.int32)
Values = Sequence[Array]


def _int(value: int) -> Array:
    return literal(value, INT, False)


class CheckpointedWhile(While):
    """params: while's, and checkpoints: the number of carries that reverse mode stores."""

    def partial_eval(self, tape: TapeTrace, args: Sequence[ArrayLike], unknown: Sequence[bool],
                     **params: Any) -> Sequence[Array]:
        # Where the condition reads an unknown, or an operand is changed in place, the loop cannot
        # be counted first: it stays one loop, which has no transpose.
        known, uk = self.known_loop(args, unknown, params)
        if known is None:
            return tape.record(self, args, params)
        count, *out = self._counting(*known.args, **known.keywords)
        # From the start again, without the condition: the count stands for it.
        whole = tape.record(counted_while_p, [count, *args[params["cond_nconsts"]:]], {
            "olympuspr": params["body_olympuspr"], "num_consts": params["body_nconsts"],
            "checkpoints": params["checkpoints"]})
        return merged(uk, compress(whole, uk), out)

    def transpose(self, cts: Sequence[Tangent], *args: Transposed, **params: Hashable
                  ) -> Sequence[Cotangent]:
        raise ValueError(
            "while_loop: transposed with a condition that reads its linear operands; a number of "
            "iterations that does not depend on them is required; use vjp instead.")

    def _counting(self, *args: ArrayLike, cond_nconsts: int, cond_olympuspr: ClosedOlympuspr,
                  body_nconsts: int, body_olympuspr: ClosedOlympuspr, **params: Hashable
                  ) -> list[Array]:
        """Run the loop with the number of iterations as an additional first carry.

        It varies along the axes of a mesh along which the condition does.
        """
        nc, nb = cond_nconsts, body_nconsts
        start = tags.pvary(_int(0), cond_olympuspr.out_avals[0].vma)
        return self.bind(
            *args[:nc + nb], start, *args[nc + nb:], cond_nconsts=nc, body_nconsts=nb,
            cond_olympuspr=_with_count(cond_olympuspr, nc, typeof(start), False),
            body_olympuspr=_with_count(body_olympuspr, nb, typeof(start), True), **params)


@derived
def _with_count(program: ClosedOlympuspr, consts: int, count: Aval, counts: bool
                ) -> ClosedOlympuspr:
    """A condition or a body, behind whose constants is the number of iterations; a body counts it.
    """
    def run(*xs: Array) -> list[Array]:
        counted = [add(xs[consts], _int(1))] if counts else []
        return [*counted, *eval_closed(program, *xs[:consts], *xs[consts + 1:])]

    avals = program.in_avals
    return stage(run, [*avals[:consts], count, *avals[consts:]])


@derived
def _below_count(body: ClosedOlympuspr, consts: int, count: Aval) -> ClosedOlympuspr:
    """The condition i < n on (n, i, the carry of a body)."""
    return stage(lambda n, i, *carry: [lt(i, n)], [count, count, *body.in_avals[consts:]])


class CountedWhile(Loop):
    """params: olympuspr, num_consts, checkpoints. Operands: iterations, consts, the carry."""

    roles = 1, "num_consts", None
    endless = True
    # It is made on tapes, where nothing reads its known results. A nest of them has unread results
    # at each level: to look for their operands would enter all levels from each.
    depends, dce = Higher.depends, Higher.dce

    def _as_while(self, n: Array, *args: ArrayLike, olympuspr: ClosedOlympuspr, num_consts: int,
                  checkpoints: int) -> list[Array]:
        count = typeof(n)
        return while_p.bind(
            n, *args[:num_consts], tags.pvary(_int(0), count.vma), *args[num_consts:],
            cond_nconsts=1, cond_olympuspr=_below_count(olympuspr, num_consts, count),
            body_nconsts=num_consts,
            body_olympuspr=_with_count(olympuspr, num_consts, count, True))[1:]

    def step_through(self, run: Callable[..., list[Array]], n: Array, *args: Array,
                     olympuspr: ClosedOlympuspr, num_consts: int, **params: Hashable) -> None:
        consts, carry = cut(args, num_consts)
        for _ in range(int(n)):
            carry = run(olympuspr, *consts, *carry)

    def lower(self, b: Builder, *args: IrValue, **params: Hashable) -> Sequence[IrValue]:
        return b.traced(functools.partial(self._as_while, **params), args, b.avals_in)

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        # Elements differ in their number of iterations: that takes a while loop.
        if dims[0] is not None:
            return batch_flat(functools.partial(self._as_while, **params), axis, args, dims)
        return super().vmap(axis, args, dims, **params)

    def transpose(self, cts: Sequence[Tangent], n: Array, *args: Array | Linear,
                  olympuspr: ClosedOlympuspr, num_consts: int, checkpoints: int) -> list[Cotangent]:
        linear = tuple(type(a) is Linear for a in args)
        back, lin_carry = _walk_back_program(
            olympuspr, typeof(n), linear, num_consts, checkpoints)
        # A carry may start as known zeros and become linear in the body: the program counts it
        # among the linear ones, but its operand wants no cotangent.
        lin = (*linear[:num_consts], *lin_carry)
        known = [a for a, on in zip(args, lin, strict=True) if not on]
        ct = [instantiate(c) for c, on in zip(cts, lin_carry, strict=True) if on]
        cotangents = merged(lin, eval_closed(back, n, *known, *ct), repeat(None))
        return [None, *(d if on else None for d, on in zip(cotangents, linear, strict=True))]


checkpointed_while_p = CheckpointedWhile("checkpointed_while")
counted_while_p = CountedWhile("counted_while")


@derived
def _walk_back_program(olympuspr: ClosedOlympuspr, count: Aval, linear: tuple[bool, ...],
                       num_consts: int, checkpoints: int
                       ) -> tuple[ClosedOlympuspr, tuple[bool, ...]]:
    """iterations, known consts, known carry, cotangents -> cotangents of the linear ones.

    And which carries are linear.
    """
    lin_consts = tuple(linear[:num_consts])
    (split,), lin_carry = counted_while_p.split(
        {"olympuspr": olympuspr, "num_consts": num_consts}, lin_consts, linear[num_consts:])
    num_known, num_state = lin_consts.count(False), lin_carry.count(False)
    num_res, num_linear = len(split.residuals), sum(lin_consts) + sum(lin_carry)
    back, _ = transpose_program(split.unknown, [False] * num_res + [True] * num_linear,
                                [True] * sum(lin_carry))
    # `forward` steps the known state, `split.known` gives residuals, too: an iteration's are
    # computed when it is undone, and never kept.
    forward, _ = dce_closed(split.known, [True] * num_state + [False] * split.num_computed)
    avals = list(zip(olympuspr.in_avals, (*lin_consts, *lin_carry), strict=True))
    acc_avals = [a.to_cotangent_aval() for a, on in avals[:num_consts] if on]

    def whole(n: Array, *values: Array) -> Sequence[Array]:
        consts, state, ct = cut(values, num_known, num_state)

        def advance(state: Sequence[Array]) -> Sequence[Array]:
            return eval_closed(forward, *consts, *state)

        def take_back(state: Sequence[Array], acc: Sequence[Array], ct: Sequence[Array]
                      ) -> tuple[list[Array], list[Array]]:
            known = [*consts, *state]
            computed = eval_closed(split.known, *known)[num_state:]
            out = eval_closed(back, *split.residual_values(known, computed), *ct)
            d_consts, d_carry = cut(out, sum(lin_consts))
            return [*map(add, acc, d_consts)], d_carry

        acc, ct = walk_back(n, state, list(map(zeros_of, acc_avals)), ct, advance, take_back,
                            checkpoints)
        return [*acc, *ct]

    ct_avals = [a.to_cotangent_aval() for a, on in avals[num_consts:] if on]
    return stage(whole, [count, *(a for a, on in avals if not on), *ct_avals]), lin_carry


def walk_back(n: ArrayLike, start: Sequence[Array], acc: Sequence[ArrayLike], ct: Values,
              advance: Callable[[Values], Values],
              take_back: Callable[[Values, Values, Values], tuple[Values, Values]],
              checkpoints: int) -> tuple[list[Array], list[Array]]:
    """Undo iterations n - 1, …, 0 with `take_back(state before it, acc, ct) -> acc, ct`.

    The stored states are a stack: `where` holds the iterations that they precede.
    """
    # Its own loops can be differentiated, in the same way: second derivatives store K values of
    # each that the first one stores.
    while_loop = functools.partial(bind_while, functools.partial(
        checkpointed_while_p.bind, checkpoints=checkpoints))
    # No known state: an iteration is undone without knowing where it was.
    if not start:
        def undo(loop: tuple[Array, Values, Values]) -> object:
            t, acc, ct = loop
            return (sub(t, _int(1)), *take_back([], acc, ct))

        return while_loop(lambda loop: gt(loop[0], _int(0)), undo, (n, acc, ct))[1:]
    stored = [broadcast(x, (checkpoints,)) for x in start]
    # Devices that ran different numbers of iterations have different stacks.
    zero, where = [tags.pvary(x, typeof(n).vma) for x in (
        _int(0), zeros_of(make_aval((checkpoints,), INT)))]

    #   iterations  0 ──────── begin ──── begin + steps ──── last │ undone
    #   stack       where[0] … where[top]
    # A state is the one before its iteration. Each round runs forward from the topmost. It gets to
    # `last`, which is then undone, or part of the way, where it leaves another state. A state that
    # was at `last` already is used up: it is popped. The state before iteration 0 stays to the end.
    def round_(loop: PyTree) -> PyTree:
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

        def arrived() -> PyTree:
            used_up = convert_element_type(eq(steps, _int(0)), INT)
            return (sub(last, _int(1)), sub(top, used_up), where, stored,
                    *take_back(state, acc, ct))

        def store() -> PyTree:
            up = add(top, _int(1))
            return (last, up, dynamic_update_index_in_dim(where, add(begin, steps), up, 0),
                    [dynamic_update_index_in_dim(x, s, up, 0)
                     for x, s in zip(stored, state, strict=True)],
                    acc, ct)

        return cond(eq(steps, distance), arrived, store)

    init = (sub(n, _int(1)), zero, where, stored, acc, ct)
    return while_loop(lambda loop: ge(loop[0], _int(0)), round_, init)[4:]


def stride(distance: Array, free: Array) -> Array:
    """How many iterations ahead the next state is stored, with `free` places for states left.

    With c = free + 1 stored states, one at the start, C(c + r, c) iterations can be undone if none
    runs forward more than r times. The part before the new state has all c, the part behind it c -
    1; with the least r that does, the parts are made as long as they may be. Without a free place
    the whole distance is run.
    """
    # Binomials outgrow int32. Where float32 rounds them the stride is not the best, but the clamp
    # keeps it between one step and the whole distance: all that correctness asks for.
    real = np.dtype(np.float32)

    def number(x: float) -> Array:
        return tags.pvary(literal(x, real, False), typeof(free).vma)

    c = convert_element_type(add(free, _int(1)), real)
    length = convert_element_type(add(distance, _int(1)), real)

    #   reach   C(c + r, c): the most that r does       before   C(c + r - 1, c): the same of r - 1
    #   behind  C(c + r - 2, c - 1): the least that is left for the part behind the new state
    def grow(loop: Sequence[Array]) -> tuple[Array, Array, Array]:
        r, reach, _ = loop
        r = add(r, number(1.0))
        return r, div(mul(reach, add(c, r)), r), reach

    # Without a free place nothing is asked for: the loop would take as many rounds as iterations.
    asked = select(gt(free, _int(0)), length, number(0.0))
    r, _, before = bind_while(while_p.bind, lambda loop: lt(loop[1], asked), grow,
                              (number(0.0), number(1.0), number(1.0)))
    behind = div(mul(before, c), arithmetic.max(sub(add(c, r), number(1.0)), number(1.0)))
    steps = convert_element_type(arithmetic.round(arithmetic.min(before, sub(length, behind))), INT)
    steps = clamp(_int(1), steps, distance)
    return select(gt(free, _int(0)), steps, distance)
