"""The primitive under `scan`: a loop with a carry, per-iteration inputs and outputs.

Operands are consts, then the initial carry, then xs (stacked along axis 0); results are the final
carry, then ys (stacked). The body takes consts, carry and one slice of each x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.util import cut, merged
from ..core.effects import of_body
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, Literal, OlympusprEqn, variables
from ..core.primitive import Axis, Higher, Linear, Zero, not_linear, spread_tangents
from ..core.reuse import Cells, Use
from ..core.staging import stage
from ..core.trace import typeof
from ..interpreters.batching import batch_program, to_axis
from ..interpreters.dce import dce_closed
from ..interpreters.jvp import jvp_program
from ..interpreters.partial_eval import depends, partial_eval_program
from ..interpreters.transpose import transpose_program
from ..lax.families import add
from ..lax.shape import instantiate
from ..lax.slicing import index_in_dim
from ..types.shape import definitely_equal, maximum
from .fixpoint import carry_fixpoint

__all__ = ["Scan", "scan_p"]


class Scan(Higher):
    """params: olympuspr, length, reverse, unroll, num_consts, num_carry."""

    programs = ("olympuspr",)

    def infer(self, *avals: Any, olympuspr: ClosedOlympuspr, length: int, num_carry: int,
              **params: Any) -> list[Any]:
        outs = olympuspr.out_avals
        return [*outs[:num_carry],
                *(a.with_axis(0, length) for a in outs[num_carry:])]

    def effects(self, avals: Sequence[Any], params: dict[str, Any]) -> frozenset[Any]:
        return of_body(params["olympuspr"])

    def applied(self, params: dict[str, Any], avals: Sequence[Any]) -> Any:
        whole = params["num_consts"] + params["num_carry"]
        rows = [a.without_axis(0) for a in avals[whole:]]
        return [("the body", params["olympuspr"], [*avals[:whole], *rows])]

    def cells(self, use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
        body, length, reverse, nc, nk = (eqn.params[name] for name in (
            "olympuspr", "length", "reverse", "num_consts", "num_carry"))
        consts, carry, xs = cut(cells, nc, nk)
        ys: list[Cells] = [None] * (len(eqn.outvars) - nk)
        left: list[Any] = [x if x is None else x[::-1] if reverse else x for x in xs]

        def step(i: int, carry: Sequence[Cells]) -> list[Cells]:
            out = use.call(body, [*consts, *carry, *(x if x is None else x[0, ...] for x in left)])
            left[:] = [x if x is None else x[1:] for x in left]
            ys[:] = [use.rows(y, v.aval.shape)
                     for y, v in zip(out[nk:], eqn.outvars[nk:], strict=True)]
            return out[:nk]

        carry = use.loop(step, carry, length)
        use.rest(body, left, nc + nk)
        return [*carry, *ys]

    def lower(self, b: Any, *args: Any, olympuspr: ClosedOlympuspr, length: int, reverse: bool,
              unroll: int, num_consts: int, num_carry: int) -> list[Any]:
        # The compiled loop carries the ys as whole arrays; each iteration writes its row of them.
        # With `reverse` rows are read and written from the last on. All are cut as their types say:
        # Shardy takes what it is told nothing of for whole, and sums what is written there.
        consts, carry, xs = cut(args, num_consts, num_carry)
        const_avals, carry_avals, x_avals = cut(b.avals_in, num_consts, num_carry)
        x_rows = olympuspr.in_avals[num_consts + num_carry:]
        y_rows = olympuspr.out_avals[num_carry:]
        rows = length if type(length) is int else maximum(length, 1)
        if not definitely_equal(rows, length):
            # XLA compiles the body even if it never runs, and it reads and writes a row.
            xs = [b.spread(b.resized(x, a, length, rows), r.with_axis(0, rows))
                  for x, a, r in zip(xs, x_avals, x_rows, strict=True)]
        y_avals = [a.with_axis(0, rows) for a in y_rows]
        ys = [b.spread(b.full(a, 0), a) for a in y_avals]

        def body(index: Any, values: Sequence[Any], *read: Any) -> list[Any]:
            values = list(map(b.spread, values, [*carry_avals, *y_avals]))
            carry, ys = cut(values, num_carry)
            consts, xs = cut(read, num_consts)
            where = b.reverse_index(index, length) if reverse else index
            slices = [b.slice_at(x, where, a) for x, a in zip(xs, x_rows, strict=True)]
            out = b.call_inline(olympuspr, [*consts, *carry, *slices], "while/body")
            new_ys = [b.update_at(y, where, v, a)
                      for y, v, a in zip(ys, out[num_carry:], y_rows, strict=True)]
            return [*out[:num_carry], *new_ys]

        outs = b.counted_loop(length, [*carry, *ys], body, unroll, [*consts, *xs],
                              [*const_avals, *x_avals])
        if definitely_equal(rows, length):
            return outs
        return [*outs[:num_carry], *[b.resized(y, a, rows, length) for y, a in zip(
            outs[num_carry:], b.avals_out[num_carry:], strict=True)]]

    def depends(self, flags: Sequence[bool], eqn: OlympusprEqn) -> Sequence[bool]:
        nc, nk = eqn.params["num_consts"], eqn.params["num_carry"]
        consts, start, xs = cut(flags, nc, nk)
        return _depends(eqn.params["olympuspr"], consts, start, xs)

    def step_through(self, run: Callable[..., list[Any]], *args: Any, olympuspr: ClosedOlympuspr,
                     length: int, reverse: bool, num_consts: int, num_carry: int, **params: Any
                     ) -> None:
        consts, carry, xs = cut(args, num_consts, num_carry)
        for i in range(length)[::-1 if reverse else 1]:
            rows = [index_in_dim(x, i, keepdims=False) for x in xs]
            carry = run(olympuspr, *consts, *carry, *rows)[:num_carry]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, olympuspr: ClosedOlympuspr,
            num_consts: int, num_carry: int, **params: Any) -> Any:
        nc, nk = num_consts, num_carry
        nonzero = tuple(type(t) is not Zero for t in tangents)
        nz_consts, nz_start, nz_xs = map(tuple, cut(nonzero, nc, nk))
        num_ys = len(olympuspr.out_avals) - nk

        # A carry that gets a tangent in the body must come in with one: it is instantiated at the
        # start and in the result. Tangents of ys need no such agreement.
        def step(nz_carry: tuple[bool, ...]) -> Any:
            found = jvp_program(olympuspr, (*nz_consts, *nz_carry, *nz_xs),
                                (*nz_carry, *(False,) * num_ys))
            return found, found[1][:nk]

        (body, nz_out), nz_carry = carry_fixpoint(nz_start, step)
        p, t = cut(primals, nc, nk), cut(tangents, nc, nk)
        t[1] = [instantiate(x) if nz else x for x, nz in zip(t[1], nz_carry, strict=True)]
        t = [[x for x in group if type(x) is not Zero] for group in t]
        #   jvp_program   c k x | dc dk dx     ->  k y | dk dy      (consts, carry, xs, ys)
        #   scan          c dc | k dk | x dx   ->  k dk | y dy
        # The body takes all primals, then all tangents: interleave by consts, carry, xs.
        n, sizes = len(primals), [len(g) for g in t]
        start = [n, n + sizes[0], n + sizes[0] + sizes[1]]
        order = [*range(nc), *range(start[0], start[1]),
                 *range(nc, nc + nk), *range(start[1], start[2]),
                 *range(nc + nk, n), *range(start[2], start[2] + sizes[2])]
        num_t_carry = sum(nz_carry)
        n_out = nk + num_ys
        out_order = [*range(nk), *range(n_out, n_out + num_t_carry), *range(nk, n_out),
                     *range(n_out + num_t_carry, n_out + sum(nz_out))]
        body = body.rearranged(order, out_order)
        outs = self.bind(*p[0], *t[0], *p[1], *t[1], *p[2], *t[2], olympuspr=body,
                         num_consts=nc + sizes[0], num_carry=nk + num_t_carry, **params)
        carry, t_carry, ys, t_ys = cut(outs, nk, num_t_carry, num_ys)
        outs = [*carry, *ys]
        return outs, spread_tangents(map(typeof, outs), (*nz_carry, *nz_out[nk:]),
                                     (*t_carry, *t_ys))

    def partial_eval(self, tape: Any, args: Sequence[Any], unknown: Sequence[bool], *,
                     olympuspr: ClosedOlympuspr, num_consts: int, num_carry: int,
                     **params: Any) -> list[Any]:
        nc, nk = num_consts, num_carry
        uk_consts, uk_start, uk_xs = map(tuple, cut(unknown, nc, nk))
        num_ys = len(olympuspr.out_avals) - nk

        # The unknowns of the carry are forced: one that any iteration makes unknown is unknown from
        # the start, in all of them.
        def step(uk_carry: tuple[bool, ...]) -> Any:
            split = partial_eval_program(olympuspr, (*uk_consts, *uk_carry, *uk_xs),
                                         (*uk_carry, *(False,) * num_ys))
            return split, split.unknown_out[:nk]

        # A const that the unknown half touches in place has to be there altogether. That it is
        # unknown may make more carries unknown: the search begins again.
        while True:
            split, uk_carry = carry_fixpoint(uk_start, step)
            uk = (*uk_consts, *uk_carry, *uk_xs)
            touched = [i for i in split.touched(uk) if i < nc]
            if not touched:
                break
            uk_consts = tuple(u or i in touched for i, u in enumerate(uk_consts))
        known = [a for a, u in zip(args, uk, strict=True) if not u]
        #   known scan    c | k | x                              ->  k | y, residuals of kind None
        #   unknown scan  c-residuals, c | k | x-residuals, x    ->  k | y
        # Where a residual comes from decides what it is in the unknown scan (`res_kinds`):
        #   None     computed in each iteration, or its carry:  a y of the known scan, then an x
        #   < 0      computed, the same in each iteration:      once, by the program `once`; a const
        #   < kc     a known const:                             a const, as it is
        #   others   a known x:                                 an x, as it is
        kc, kk = nc - sum(uk_consts), nk - sum(uk_carry)
        known_body, res_kinds, once = split.known.derived(
            ("scan residuals", split.residuals, kc, kk),
            lambda: _hoist(*_scan_residuals(split, kc, kk), kc))
        # Reversed, so that kind -1 is the first of them, -2 the second.
        invariant = eval_closed(once, *known[:kc])[::-1]
        num_known_ys = sum(not u for u in split.unknown_out[nk:])
        # TapeTrace runs this rule with its parent current: this evaluates or stages the known half.
        known_out = self.bind(*known, olympuspr=known_body, num_consts=kc, num_carry=kk, **params)
        carry_out, ys_out, stacked = cut(known_out, kk, num_known_ys)

        res_consts, res_xs, rest = [], [], iter(stacked)
        for kind in res_kinds:
            if kind is None:
                res_xs.append(next(rest))
            elif kind < 0:
                res_consts.append(invariant[kind])
            elif kind < kc:
                res_consts.append(known[kind])
            else:
                res_xs.append(known[kind])
        # The split's unknown half takes all residuals in front; a scan wants each in its group.
        groups = cut([a for a, u in zip(args, uk, strict=True) if u], sum(uk_consts), sum(uk_carry))
        is_const = [kind is not None and kind < kc for kind in res_kinds]   # hoisted ones too
        n_res = len(res_kinds)
        order = [*(i for i in range(n_res) if is_const[i]),
                 *range(n_res, n_res + sum(uk_consts) + sum(uk_carry)),
                 *(i for i in range(n_res) if not is_const[i]),
                 *range(n_res + sum(uk_consts) + sum(uk_carry), n_res + sum(uk))]
        body = split.unknown.rearranged(order)
        found = tape.record(
            self, [*res_consts, *groups[0], *groups[1], *res_xs, *groups[2]],
            {**params, "olympuspr": body, "num_carry": sum(uk_carry),
             "num_consts": len(res_consts) + sum(uk_consts)})
        return merged(split.unknown_out, found, (*carry_out, *ys_out))

    def _linear_inputs(self, olympuspr: ClosedOlympuspr, args: Sequence[Any], num_consts: int,
                       num_carry: int) -> list[bool]:
        """Which inputs of the body are linear; a carry that starts as known zeros may be, too."""
        # The loop's carry has one type, so it is linear throughout if any iteration makes it of
        # linear values; an ordinary start is then the zero tangent of something constant.
        consts, start, xs = cut([type(a) is Linear for a in args], num_consts, num_carry)
        carry = _depends(olympuspr, consts, start, xs)[:num_carry]
        if not all(carry):
            raise not_linear("scan", "a carry", "compute it (a counter) outside, as xs")
        return [*consts, *carry, *xs]

    def transpose(self, cts: Sequence[Any], *args: Any, olympuspr: ClosedOlympuspr,
                  num_consts: int, num_carry: int, reverse: bool, **params: Any) -> list[Any]:
        #   forwards    c-residuals, lin | carry       | x-residuals, lin   ->  carry | y
        #   backwards   c-residuals      | acc, ct_k   | ct_y, x-residuals  ->  acc, ct_k | d_xs
        # Iterations run in the other order on the same rows. A const is read in all of them: its
        # cotangent is their sum, which is carried in `acc`.
        consts, carry, xs = cut(args, num_consts, num_carry)
        linear = self._linear_inputs(olympuspr, args, num_consts, num_carry)
        ct_carry, ct_ys = cut(cts, num_carry)
        # A carry has one type throughout, and ys are stacked: neither can be a symbolic `Zero`.
        ct_carry, ct_ys = list(map(instantiate, ct_carry)), list(map(instantiate, ct_ys))
        lin_consts = [a for a in consts if type(a) is Linear]
        res_consts = [a for a in consts if type(a) is not Linear]
        res_xs = [a for a in xs if type(a) is not Linear]
        back, _ = transpose_program(olympuspr, linear, (True,) * len(cts))
        nl, nr, nk = len(lin_consts), len(res_consts), num_carry
        acc_avals = [a.aval.to_cotangent_aval() for a in lin_consts]

        def body(*values: Any) -> list[Any]:
            res_c, acc, ct_k, ct_y, res_x = cut(values, nr, nl, nk, len(ct_ys))
            out = eval_closed(back, *res_c, *res_x, *ct_k, *ct_y)
            d_consts, d_carry, d_xs = cut(out, nl, nk)
            return [*map(add, acc, d_consts), *d_carry, *d_xs]

        def program() -> ClosedOlympuspr:
            avals = back.in_avals       # res_consts, res_xs, then cotangents
            res_c, res_x, ct_k, ct_y = cut(avals, nr, len(res_xs), nk)
            return stage(body, [*res_c, *acc_avals, *ct_k, *ct_y, *res_x])

        zeros = [instantiate(Zero(a)) for a in acc_avals]
        out = self.bind(*res_consts, *zeros, *ct_carry, *ct_ys, *res_xs,
                        olympuspr=back.derived(("scan", nr, nl, nk), program), num_consts=nr,
                        num_carry=nl + nk, reverse=not reverse, **params)
        rest = iter(out)
        # A carry with an ordinary start is linear in the body, but its operand wants no cotangent.
        found = [next(rest) if lin else None for lin in linear]
        return [ct if type(a) is Linear else None for a, ct in zip(args, found, strict=True)]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             olympuspr: ClosedOlympuspr, num_consts: int, num_carry: int, **params: Any) -> Any:
        nc, nk = num_consts, num_carry
        consts, carry, xs = cut(args, nc, nk)
        d_consts, d_carry, d_xs = cut(dims, nc, nk)
        num_ys = len(olympuspr.out_avals) - nk
        # The scanned axis is axis 0 of xs and ys, the mapped one axis 1; in the body it is axis 0.
        b_xs = [None if d is None else 0 for d in d_xs]

        def step(mapped: tuple[bool, ...]) -> Any:
            in_dims = [*d_consts, *(0 if m else None for m in mapped), *b_xs]
            body, out_dims = batch_program(olympuspr, axis, in_dims,
                                           (*mapped, *(False,) * num_ys))
            return (body, out_dims), tuple(d is not None for d in out_dims[:nk])

        (body, out_dims), mapped = carry_fixpoint(tuple(d is not None for d in d_carry), step)
        carry = [to_axis(x, d, 0, axis.size) if m else x
                 for x, d, m in zip(carry, d_carry, mapped, strict=True)]
        xs = [x if d is None else to_axis(x, d, 1, axis.size)
              for x, d in zip(xs, d_xs, strict=True)]
        out = self.bind(*consts, *carry, *xs, olympuspr=body, num_consts=nc, num_carry=nk, **params)
        return out, [*(0 if m else None for m in mapped),
                     *(None if d is None else d + 1 for d in out_dims[nk:])]

    vmap_named = vmap

    def dce(self, used: Sequence[bool], eqn: OlympusprEqn) -> OlympusprEqn:
        params = eqn.params
        nc, nk = params["num_consts"], params["num_carry"]
        used_ys = tuple(used[nk:])

        # A carry that nobody reads at the end may feed what is read, an iteration later.
        def step(used_carry: tuple[bool, ...]) -> Any:
            found = dce_closed(params["olympuspr"], (*used_carry, *used_ys))
            return found, tuple(found[1][nc:nc + nk])

        (body, used_in), used_carry = carry_fixpoint(tuple(used[:nk]), step)
        keep = [*used_in[:nc], *used_carry, *used_in[nc + nk:]]
        body = body.rearranged([i for i, k in enumerate(keep) if k])
        outs = [*used_carry, *used_ys]
        return eqn.replace(
            invars=[v for v, k in zip(eqn.invars, keep, strict=True) if k],
            outvars=[v for v, u in zip(eqn.outvars, outs, strict=True) if u],
            params={**params, "olympuspr": body,
                    "num_consts": sum(used_in[:nc]), "num_carry": sum(used_carry)})


def _depends(body: ClosedOlympuspr, consts: Sequence[bool], start: Sequence[bool],
             xs: Sequence[bool]) -> Sequence[bool]:
    """Which results of the loop are computed from what is flagged; a carry is, throughout."""
    def step(carry: tuple[bool, ...]) -> Any:
        found = depends(body, [*consts, *carry, *xs])
        return found, found[:len(carry)]

    found, carry = carry_fixpoint(tuple(start), step)
    return [*carry, *found[len(carry):]]


def _scan_residuals(split: Any, num_consts: int, num_carry: int
                    ) -> tuple[ClosedOlympuspr, list[int | None]]:
    """The known body with residuals that vary per iteration among its ys.

    A residual that is a const or an x of the known loop is passed on as such (its index is kept);
    one that is the carry of that iteration is not an input of the whole loop: it becomes a y.
    """
    pr = split.known.olympuspr
    first = len(pr.outvars) - split.num_computed
    computed = iter(pr.outvars[first:])
    extra, kinds = [], []
    for r in split.residuals:
        if r is None:
            extra.append(next(computed))
            kinds.append(None)
        elif num_consts <= r < num_consts + num_carry:
            extra.append(pr.invars[r])
            kinds.append(None)
        else:
            kinds.append(r)
    pr = pr.replace(outvars=[*pr.outvars[:first], *extra])
    return split.known.replace(olympuspr=pr), kinds


def _hoist(body: ClosedOlympuspr, kinds: Sequence[int | None], num_consts: int
           ) -> tuple[ClosedOlympuspr, list[int | None], ClosedOlympuspr]:
    """Residuals that are the same in each iteration, computed once instead of stacked.

    Returns the body without them, the kinds with -1, -2 … in their places, and the program that
    computes those of kind -1, -2 … from the consts.
    """
    pr = body.olympuspr
    first = len(pr.outvars) - sum(k is None for k in kinds)
    # One pass does: equations come after what they read. Those with effects stay in the loop, since
    # it matters how often they happen.
    fixed = {*pr.constvars, *pr.invars[:num_consts]}
    for eqn in pr.eqns:
        if not eqn.effects and fixed.issuperset(variables(eqn.invars)):
            fixed.update(eqn.outvars)
    stacked = iter(pr.outvars[first:])
    hoisted: list[Any] = []
    kept: list[Any] = []
    new_kinds: list[int | None] = []
    for kind in kinds:
        if kind is None:
            v = next(stacked)
            if type(v) is Literal or v in fixed:
                hoisted.append(v)
                kind = -len(hoisted)
            else:
                kept.append(v)
        new_kinds.append(kind)
    once = pr.replace(invars=pr.invars[:num_consts], outvars=hoisted,
                      eqns=[e for e in pr.eqns
                            if not e.effects and all(v in fixed for v in e.outvars)])
    once_closed, _ = dce_closed(body.replace(olympuspr=once), (True,) * len(hoisted))
    if hoisted:
        body = body.replace(olympuspr=pr.replace(outvars=[*pr.outvars[:first], *kept]))
    return body, new_kinds, once_closed


scan_p = Scan("scan")
