"""The primitive under `scan`: a loop with a carry, per-iteration inputs and outputs.

Operands are consts, then the initial carry, then xs (stacked along axis 0); results are the final
carry, then ys (stacked). The body takes consts, carry and one slice of each x.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import compress, repeat, zip_longest
from typing import Any

from ..base.typing import Array, ArrayLike, IrValue, Params, T
from ..base.util import cut, lazy_imports, merged
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, Literal, OlympusprEqn, derived, variables
from ..core.primitive import Builder, Cotangent, Linear, Tangent, Transposed, Zero, not_linear
from ..core.reuse import Cells, Use
from ..core.staging import stage
from ..interpreters.dce import dce_closed
from ..interpreters.partial_eval import Residual, TapeTrace
from ..interpreters.transpose import linear_flags, transpose_program
from ..lax.convert import in_dtype
from ..lax.families import add
from ..lax.shape import instantiate
from ..lax.slicing import index_in_dim
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.shape import bound_or, definitely_equal, maximum
from .groups import AgreeingRuns, woven

with lazy_imports(__name__):       # where there are references
    from ..interpreters import discharge as _refs

_BFLOAT16, _UINT16 = map(dtypes.as_dtype, ("bfloat16", "uint16"))


class Scan(AgreeingRuns):
    """params: olympuspr, length, reverse, unroll, num_consts, num_carry."""

    roles = 0, "num_consts", "num_carry"
    rows = 1
    repeats = True

    def times(self, params: Params) -> int:
        return params["length"]

    def given(self, params: Params, xs: Sequence[T]) -> Sequence[T]:
        unroll = params["unroll"]       # a symbolic length always makes a loop
        return super().given(params, xs) if bound_or(params["length"], unroll + 1) > unroll else xs

    def infer(self, *avals: ShapedArray, olympuspr: ClosedOlympuspr, length: int, num_carry: int,
              **params: Hashable) -> list[ShapedArray]:
        outs = olympuspr.out_avals
        return [*outs[:num_carry],
                *(a.with_axis(a.leading_axis_spec(), length) for a in outs[num_carry:])]

    def cells(self, use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
        body, length, reverse, nc, nk = (eqn.params[name] for name in (
            "olympuspr", "length", "reverse", "num_consts", "num_carry"))
        consts, carry, xs = cut(cells, nc, nk)
        ys: list[Cells] = [None] * (len(eqn.outvars) - nk)
        rest: list[Any] = [x if x is None else x[::-1] if reverse else x for x in xs]

        def step(i: int, carry: Sequence[Cells]) -> list[Cells]:
            out = use.call(body, [*consts, *carry, *(x if x is None else x[0, ...] for x in rest)])
            rest[:] = [x if x is None else x[1:] for x in rest]
            ys[:] = [use.rows(y, v.aval.shape)
                     for y, v in zip(out[nk:], eqn.outvars[nk:], strict=True)]
            return out[:nk]

        carry = use.loop(step, carry, length)
        use.rest(body, rest, nc + nk)
        return [*carry, *ys]

    def lower(self, b: Builder, *args: IrValue, olympuspr: ClosedOlympuspr, length: int,
              reverse: bool, unroll: int, num_consts: int, num_carry: int) -> list[IrValue]:
        # The compiled loop carries the ys as whole arrays, and each iteration writes its row. With
        # `reverse` the first iteration has the last row. All are constrained to their types'
        # shardings: Shardy takes an unannotated value for unsharded, and would sum written rows.
        consts, carry, xs = cut(args, num_consts, num_carry)
        const_avals, carry_avals, x_avals = cut(b.avals_in, num_consts, num_carry)
        x_rows = olympuspr.in_avals[num_consts + num_carry:]
        y_rows = olympuspr.out_avals[num_carry:]
        rows = length if type(length) is int else maximum(length, 1)
        if not definitely_equal(rows, length):
            # The length may be 0: XLA compiles the body all the same, which reads and writes a row.
            xs = [b.spread(b.resized(x, a, length, rows), r.with_axis(0, rows))
                  for x, a, r in zip(xs, x_avals, x_rows, strict=True)]
        # To write one row of bfloat16, XLA:CPU of jaxlib 0.10 converts all rows: write the bits.
        as_bits = [b.module.takes_kernels and a.dtype == _BFLOAT16 for a in y_rows]
        y_rows = [a.update(dtype=_UINT16) if bits else a
                  for a, bits in zip(y_rows, as_bits, strict=True)]
        y_avals = [a.with_axis(0, rows) for a in y_rows]
        ys = [b.spread(b.full(a, 0), a) for a in y_avals]

        def body(index: IrValue, values: Sequence[IrValue], *read: IrValue) -> list[IrValue]:
            values = list(map(b.spread, values, [*carry_avals, *y_avals]))
            carry, ys = cut(values, num_carry)
            consts, xs = cut(read, num_consts)
            where = b.reverse_index(index, length) if reverse else index
            slices = [b.slice_at(x, where, a) for x, a in zip(xs, x_rows, strict=True)]
            out = b.call_inline(olympuspr, [*consts, *carry, *slices], "while/body")
            new = [b.op("stablehlo.bitcast_convert", [v], {}, a) if bits else v
                   for v, a, bits in zip(out[num_carry:], y_rows, as_bits, strict=True)]
            return [*out[:num_carry], *[b.update_at(y, where, v, a)
                                        for y, v, a in zip(ys, new, y_rows, strict=True)]]

        outs = b.counted_loop(length, [*self.apart_at_first(b, carry), *ys], body, unroll,
                              [*consts, *xs], [*const_avals, *x_avals])
        outs[num_carry:] = [
            b.op("stablehlo.bitcast_convert", [y], {}, a.update(dtype=_BFLOAT16)) if bits else y
            for y, a, bits in zip(outs[num_carry:], y_avals, as_bits, strict=True)]
        if definitely_equal(rows, length):
            return outs
        return [*outs[:num_carry], *[b.resized(y, a, rows, length) for y, a in zip(
            outs[num_carry:], b.avals_out[num_carry:], strict=True)]]

    def step_through(self, run: Callable[..., list[Array]], *args: Array,
                     olympuspr: ClosedOlympuspr, length: int, reverse: bool, num_consts: int,
                     num_carry: int, **params: Hashable) -> None:
        consts, carry, xs = cut(args, num_consts, num_carry)
        for i in range(length)[::-1 if reverse else 1]:
            rows = [index_in_dim(x, i, keepdims=False) for x in xs]
            carry = run(olympuspr, *consts, *carry, *rows)[:num_carry]

    def partial_eval(self, tape: TapeTrace, args: Sequence[ArrayLike], unknown: Sequence[bool],
                     **params: Hashable) -> Sequence[Array]:
        u_read, u_start, u_each = self.cut(params, unknown)[1:]
        # All operations on a const that the unknown half changes in place must be in that half. The
        # const is unknown then, and so may be more carries: split again.
        while True:
            (split,), u_out = self.split(params, u_read, u_start, u_each)
            u_carry = u_out[:len(u_start)]
            uk = (*u_read, *u_carry, *u_each)
            touched = [i for i in split.touched(uk) if i < len(u_read)]
            if not touched:
                break
            u_read = [u or i in touched for i, u in enumerate(u_read)]
        #   known loop      read | carry | each  ->  carry | rows, residuals of kind "row"
        #   unknown loop    residuals, read | carry | residuals, each  ->  carry | rows
        known, rest = [[a for a, u in zip(args, uk, strict=True) if u is which]
                       for which in (False, True)]
        nr, nk = u_read.count(False), u_carry.count(False)
        body, residuals, once = _residuals_of_loop(
            split.known, split.num_computed, split.residuals, nr, nk)
        read, _, each = cut(known, nr, nk)
        invariant = eval_closed(once, *read)
        # TapeTrace runs this rule in its parent: `bind` evaluates or stages the known half.
        outs = self.bind(*known, **self.regrouped(params, [body], nr, range(nk)))
        known_out, rows = cut(outs, u_out.count(False))
        by_kind = {"read": read, "once": invariant, "each": each, "row": rows}
        values = [by_kind[r.kind][r.index] for r in residuals]
        n, shared = len(values), [r.kind in ("read", "once") for r in residuals]
        mr, mk = sum(u_read), sum(u_carry)

        # The split's unknown half takes all residuals first; a loop takes each in its group.
        def grouped(first: Sequence[T], others: Sequence[T]) -> list[T]:
            apart = [x for x, s in zip(first, shared, strict=True) if not s]
            return woven([[*compress(first, shared)], [], apart], cut(others, mr, mk))

        body = split.unknown.rearranged(grouped(range(n), range(n, n + len(rest))))
        later = tape.record(self, grouped(values, rest), self.regrouped(
            params, [body], sum(shared) + mr, range(mk)))
        return merged(u_out, later, known_out)

    def transpose(self, cts: Sequence[Tangent], *args: Transposed, **params: Any
                  ) -> list[Cotangent]:
        #   forwards    residuals, lin | carry       | residuals, lin   ->  carry | rows
        #   backwards   residuals      | acc, ct_k   | ct_y, residuals  ->  acc, ct_k | d_each
        # Iterations run in the other order on the same rows. All of them read a const, so its
        # cotangent is a sum over iterations, carried in `acc`. The body has the sum as a reference,
        # so that the cotangent of a part is added in place, without an array of zeros.
        closed = params["olympuspr"]
        flags = list(linear_flags(closed, args))
        _, read, carry, each = self.cut(params, args)
        # A carry is linear in all iterations if it is in one; an initial value that is not is the
        # zero tangent of a constant.
        if not all(self.reached(
                params, [flag is not False for flag in flags])[:len(carry)]):
            raise not_linear("scan", "a carry", "compute it (a counter) outside, as xs")
        l_read = [a for a in read if type(a) is Linear]
        r_read, r_each = [[a for a in g if type(a) is not Linear] for g in (read, each)]
        flags[len(read):len(read) + len(carry)] = [True] * len(carry)
        placed = [type(a) is Linear and _sums_in_place(a.aval.to_cotangent_aval()) for a in read]
        back, _ = transpose_program(closed, [
            None if p else flag for p, flag in zip_longest(placed, flags)], (True,) * len(cts))
        nl, nr, nk = len(l_read), len(r_read), len(carry)
        # Narrow floats are summed in float32: the sum is rounded once.
        ct_avals = [a.aval.to_cotangent_aval() for a in l_read]
        acc_avals = tuple(map(wide_aval, ct_avals))

        # `back` takes its references among the residuals, in the order of `read`.
        known = tuple([p for p, a in zip(placed, read, strict=True) if p or type(a) is not Linear])
        where = tuple([p for p, a in zip(placed, read, strict=True) if type(a) is Linear])
        # Neither a carry nor stacked rows can be a symbolic `Zero`.
        ct_k, ct_y = cut(list(map(instantiate, cts)), nk)
        zeros = [instantiate(Zero(a)) for a in acc_avals]
        params = {**params, "reverse": not params["reverse"]}
        out = self.bind(*r_read, *zeros, *ct_k, *ct_y, *r_each, **self.regrouped(
            params, [_summing(back, acc_avals, known, where, len(r_each), nk)], nr, range(nl + nk)))
        out[:nl] = [in_dtype(ct, a.dtype) if a.is_array else ct
                    for ct, a in zip(out[:nl], ct_avals, strict=True)]
        # The initial value of a linear carry may be no `Linear`: it gets no cotangent.
        return [ct if type(a) is Linear else None
                for a, ct in zip(args, merged(flags, out, repeat(None)), strict=True)]


@derived
def _summing(back: ClosedOlympuspr, acc_avals: tuple[ShapedArray, ...], known: tuple[bool, ...],
             where: tuple[bool, ...], num_each: int, num_carry: int) -> ClosedOlympuspr:
    """The transposed body, with the sums of the consts' cotangents as carries.

    known: per first input, whether it is a reference to a sum.
    where: per sum, whether a reference has it.
    """
    which = [*known, *[False] * (len(back.in_avals) - len(known))]
    own, rows, ct_k, ct_y = cut(back.in_avals, len(known), num_each, num_carry)
    res = [a for a, p in zip(own, known, strict=True) if not p]

    def body(*values: Array) -> list[Array]:
        residuals, acc, ks, ys, each = cut(values, len(res), len(acc_avals), num_carry, len(ct_y))
        rest, sums = iter(residuals), compress(acc, where)
        pure = _refs.discharge(back, which, which) if any(which) else back
        out = eval_closed(pure, *[next(sums) if p else next(rest) for p in known],
                          *each, *ks, *ys)
        n = len(back.outvars)
        terms, new = iter(out[:n]), iter(out[n:])
        return [*[next(new) if p else added(aval, total, next(terms))
                  for p, aval, total in zip(where, acc_avals, acc, strict=True)], *terms]

    return stage(body, [*res, *acc_avals, *ct_k, *ct_y, *rows])


def _sums_in_place(aval: ShapedArray) -> bool:
    """Whether cotangents of this type are summed at their own dtype."""
    return aval.is_array and wide_aval(aval) is aval


def wide_aval(aval: ShapedArray) -> ShapedArray:
    """The type in which many values of a type are summed: float32 for narrower floats."""
    return aval.update(dtype=dtypes.wide_dtype(aval.dtype)) if aval.is_array else aval


def added(aval: ShapedArray, total: Array, term: Array) -> Array:
    """`total`, of type `aval`, plus a term."""
    return add(total, in_dtype(term, aval.dtype)) if aval.is_array else aval.vspace_add(
        total, term)


@derived
def _residuals_of_loop(known: ClosedOlympuspr, num_computed: int, residuals: tuple[Residual, ...],
                       num_read: int, num_carry: int
                       ) -> tuple[ClosedOlympuspr, list[Residual], ClosedOlympuspr]:
    """The known body that returns residuals as rows, the residuals, and the program of those that
    are the same in each iteration.

    read    a const of the known loop               passed on
    once    computed, the same in each iteration    a result of the program: a const
    each    an operand by rows                      passed on
    row     computed, or a carry                    a row of the known loop
    """
    pr = known.olympuspr
    first = len(pr.outvars) - num_computed
    # One pass suffices, because equations come after their operands. Equations with effects stay in
    # the loop, since the number of their runs matters.
    invariant = {*pr.constvars, *pr.invars[:num_read]}
    for eqn in pr.eqns:
        if not eqn.effects and invariant.issuperset(variables(eqn.invars)):
            invariant.update(eqn.outvars)
    new_residuals: list[Residual] = []
    by_kind: dict[str, list[Any]] = {"once": [], "row": []}
    for r in residuals:
        is_input, i = r.kind == "input", r.index - num_read - num_carry
        if is_input and (r.index < num_read or i >= 0):
            new_residuals.append(Residual("each", i) if i >= 0 else Residual("read", r.index))
        else:
            v = pr.invars[r.index] if is_input else pr.outvars[first + r.index]
            kind = "once" if type(v) is Literal or v in invariant else "row"
            new_residuals.append(Residual(kind, len(by_kind[kind])))
            by_kind[kind].append(v)
    once = pr.replace(invars=pr.invars[:num_read], outvars=by_kind["once"],
                      eqns=[e for e in pr.eqns
                            if not e.effects and all(v in invariant for v in e.outvars)])
    once_closed, _ = dce_closed(known.replace(olympuspr=once), (True,) * len(by_kind["once"]))
    pr = pr.replace(outvars=[*pr.outvars[:first], *by_kind["row"]])
    return known.replace(olympuspr=pr), new_residuals, once_closed


scan_p = Scan("scan")
