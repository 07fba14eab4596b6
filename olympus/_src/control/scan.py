"""scan: a loop with a carry, per-iteration inputs and per-iteration outputs.

Operands are consts, then the initial carry, then xs (stacked along axis 0); results are the final
carry, then ys (stacked). The body takes consts, carry and one slice of each x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.config import jit_disabled
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, Literal, OlympusprEqn
from ..core.primitive import Axis, Higher, Linear, Zero
from ..core.staging import stage
from ..core.trace import typeof
from ..interpreters.batching import batch_program, to_axis
from ..interpreters.dce import dce_closed
from ..interpreters.jvp import instantiate, jvp_program
from ..interpreters.partial_eval import partial_eval_program
from ..interpreters.transpose import transpose_program
from ..lax.elementwise import add
from ..lax.shape import expand_dims
from ..lax.slicing import concatenate, index_in_dim
from ..types import dtypes
from ..types.tree import tree_flatten, tree_unflatten
from .bodies import (
    Body,
    aval_error,
    cast,
    check_callable,
    flatten,
    leaf_names,
    same_type,
    stage_body,
    structure_error,
)
from .call import program_uses_axis
from .fixpoint import carry_fixpoint

__all__ = ["Scan", "grow", "scan", "scan_p"]


def _split(xs: Sequence[Any], *sizes: int) -> list[list[Any]]:
    """Cut a list into pieces of the given sizes; the rest is the last piece."""
    out, start = [], 0
    for size in sizes:
        out.append(list(xs[start:start + size]))
        start += size
    return [*out, list(xs[start:])]


def depends(closed: ClosedOlympuspr, flags: Sequence[bool]) -> list[bool]:
    """Which outputs are computed from any of the flagged inputs."""
    pr = closed.olympuspr
    found = {v for v, flag in zip(pr.invars, flags) if flag}
    for eqn in pr.eqns:
        if any(type(v) is not Literal and v in found for v in eqn.invars):
            found.update(eqn.outvars)
    return [type(v) is not Literal and v in found for v in pr.outvars]


def permute_inputs(closed: ClosedOlympuspr, order: Sequence[int]) -> ClosedOlympuspr:
    """The program with invars in another order: new input i is old input order[i]."""
    pr = closed.olympuspr
    return closed.replace(olympuspr=pr.replace(invars=[pr.invars[i] for i in order]))


def permute_outputs(closed: ClosedOlympuspr, order: Sequence[int]) -> ClosedOlympuspr:
    """The program with outvars picked and ordered: new output i is old output order[i]."""
    pr = closed.olympuspr
    return closed.replace(olympuspr=pr.replace(outvars=[pr.outvars[i] for i in order]))


class Scan(Higher):
    """params: olympuspr, length, reverse, unroll, num_consts, num_carry."""

    def infer(self, *avals: Any, olympuspr: ClosedOlympuspr, length: int, num_carry: int,
              **params: Any) -> list[Any]:
        outs = olympuspr.out_avals
        return [*outs[:num_carry],
                *(a.update(shape=(length, *a.shape)) for a in outs[num_carry:])]

    def effects(self, *, olympuspr: ClosedOlympuspr, **params: Any) -> frozenset[Any]:
        return olympuspr.effects

    def lower(self, b: Any, *args: Any, olympuspr: ClosedOlympuspr, length: int, reverse: bool,
              unroll: int, num_consts: int, num_carry: int) -> list[Any]:
        consts, carry, xs = _split(args, num_consts, num_carry)
        y_avals = b.avals_out[num_carry:]
        ys = [b.full(a, 0) for a in y_avals]

        def body(index: Any, values: Sequence[Any]) -> list[Any]:
            carry, ys = _split(values, num_carry)
            where = b.reverse_index(index, length) if reverse else index
            slices = [b.slice_at(x, where) for x in xs]
            out = b.call_inline(olympuspr, [*consts, *carry, *slices])
            new_ys = [b.update_at(y, where, v) for y, v in zip(ys, out[num_carry:])]
            return [*out[:num_carry], *new_ys]

        return b.counted_loop(length, [*carry, *ys], body, unroll)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, olympuspr: ClosedOlympuspr,
            num_consts: int, num_carry: int, **params: Any) -> Any:
        nc, nk = num_consts, num_carry
        nonzero = tuple(type(t) is not Zero for t in tangents)
        nz_consts, nz_start, nz_xs = map(tuple, _split(nonzero, nc, nk))
        num_ys = len(olympuspr.out_avals) - nk

        def step(nz_carry: tuple[bool, ...]) -> Any:
            found = jvp_program(olympuspr, (*nz_consts, *nz_carry, *nz_xs),
                                (*nz_carry, *(False,) * num_ys))
            return found, found[1][:nk]

        (body, nz_out), nz_carry = carry_fixpoint(nz_start, step)
        p, t = _split(primals, nc, nk), _split(tangents, nc, nk)
        t[1] = [instantiate(x) if nz else x for x, nz in zip(t[1], nz_carry)]
        t = [[x for x in group if type(x) is not Zero] for group in t]
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
        body = permute_outputs(permute_inputs(body, order), out_order)
        outs = self.bind(*p[0], *t[0], *p[1], *t[1], *p[2], *t[2], olympuspr=body,
                         num_consts=nc + sizes[0], num_carry=nk + num_t_carry, **params)
        carry, t_carry, ys, t_ys = _split(outs, nk, num_t_carry, num_ys)
        avals = [typeof(x).to_tangent_aval() for x in (*carry, *ys)]
        rest = iter((*t_carry, *t_ys))
        flags = (*nz_carry, *nz_out[nk:])
        return [*carry, *ys], [next(rest) if nz else Zero(a) for nz, a in zip(flags, avals)]

    def partial_eval(self, tape: Any, args: Sequence[Any], unknown: Sequence[bool], *,
                     olympuspr: ClosedOlympuspr, num_consts: int, num_carry: int,
                     **params: Any) -> list[Any]:
        nc, nk = num_consts, num_carry
        uk_consts, uk_start, uk_xs = map(tuple, _split(unknown, nc, nk))
        num_ys = len(olympuspr.out_avals) - nk

        def step(uk_carry: tuple[bool, ...]) -> Any:
            split = partial_eval_program(olympuspr, (*uk_consts, *uk_carry, *uk_xs),
                                         (*uk_carry, *(False,) * num_ys))
            return split, split.unknown_out[:nk]

        split, uk_carry = carry_fixpoint(uk_start, step)
        uk = (*uk_consts, *uk_carry, *uk_xs)
        known = [a for a, u in zip(args, uk) if not u]
        kc, kk = nc - sum(uk_consts), nk - sum(uk_carry)
        known_body, res_kinds = _scan_residuals(split, kc, kk)
        num_known_ys = sum(not u for u in split.unknown_out[nk:])
        # TapeTrace runs this rule with its parent current: this evaluates or stages the known half.
        known_out = self.bind(*known, olympuspr=known_body, num_consts=kc, num_carry=kk, **params)
        carry_out, ys_out, stacked = _split(known_out, kk, num_known_ys)
        outs_known = iter((*carry_out, *ys_out))

        res_consts, res_xs, rest = [], [], iter(stacked)
        for kind in res_kinds:
            if kind is None:
                res_xs.append(next(rest))
            elif kind < kc:
                res_consts.append(known[kind])
            else:
                res_xs.append(known[kind])
        groups = _split([a for a, u in zip(args, uk) if u], sum(uk_consts), sum(uk_carry))
        is_const = [kind is not None and kind < kc for kind in res_kinds]
        n_res = len(res_kinds)
        order = [*(i for i in range(n_res) if is_const[i]),
                 *range(n_res, n_res + sum(uk_consts) + sum(uk_carry)),
                 *(i for i in range(n_res) if not is_const[i]),
                 *range(n_res + sum(uk_consts) + sum(uk_carry), n_res + sum(uk))]
        body = permute_inputs(split.unknown, order)
        unknown_out = tape.record(
            self, [*res_consts, *groups[0], *groups[1], *res_xs, *groups[2]],
            {**params, "olympuspr": body, "num_carry": sum(uk_carry),
             "num_consts": len(res_consts) + sum(uk_consts)})
        outs_unknown = iter(unknown_out)
        return [next(outs_unknown) if u else next(outs_known) for u in split.unknown_out]

    def _linear_inputs(self, olympuspr: ClosedOlympuspr, args: Sequence[Any], num_consts: int,
                       num_carry: int) -> list[bool]:
        """Which inputs of the body are linear; a carry that starts as known zeros may be, too."""
        consts, start, xs = _split([type(a) is Linear for a in args], num_consts, num_carry)

        def step(flags: tuple[bool, ...]) -> Any:
            out = depends(olympuspr, [*consts, *flags, *xs])
            return None, tuple(out[:num_carry])

        _, carry = carry_fixpoint(tuple(start), step)
        if not all(carry):
            raise NotImplementedError(
                "scan: transposed with a carry that is not linear; every carry of a linear loop "
                "must be linear; compute the others (a counter) outside, as xs.")
        return [*consts, *carry, *xs]

    def transpose(self, cts: Sequence[Any], *args: Any, olympuspr: ClosedOlympuspr,
                  num_consts: int, num_carry: int, reverse: bool, **params: Any) -> list[Any]:
        consts, carry, xs = _split(args, num_consts, num_carry)
        linear = self._linear_inputs(olympuspr, args, num_consts, num_carry)
        ct_carry, ct_ys = _split(cts, num_carry)
        ct_carry, ct_ys = list(map(instantiate, ct_carry)), list(map(instantiate, ct_ys))
        lin_consts = [a for a in consts if type(a) is Linear]
        res_consts = [a for a in consts if type(a) is not Linear]
        res_xs = [a for a in xs if type(a) is not Linear]
        back, _ = transpose_program(olympuspr, linear, (True,) * len(cts))
        nl, nr, nk = len(lin_consts), len(res_consts), num_carry

        def body(*values: Any) -> list[Any]:
            res_c, acc, ct_k, ct_y, res_x = _split(values, nr, nl, nk, len(ct_ys))
            out = eval_closed(back, *res_c, *res_x, *ct_k, *ct_y)
            d_consts, d_carry, d_xs = _split(out, nl, nk)
            return [*map(add, acc, d_consts), *d_carry, *d_xs]

        acc_avals = [a.aval.to_tangent_aval() for a in lin_consts]
        slices = [a.update(shape=a.shape[1:]) for a in map(typeof, (*ct_ys, *res_xs))]
        program = stage(body, [*map(typeof, res_consts), *acc_avals,
                               *map(typeof, ct_carry), *slices])
        zeros = [instantiate(Zero(a)) for a in acc_avals]
        out = self.bind(*res_consts, *zeros, *ct_carry, *ct_ys, *res_xs, olympuspr=program,
                        num_consts=nr, num_carry=nl + nk, reverse=not reverse, **params)
        rest = iter(out)
        found = [next(rest) if lin else None for lin in linear]
        return [ct if type(a) is Linear else None for a, ct in zip(args, found)]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             olympuspr: ClosedOlympuspr, num_consts: int, num_carry: int, **params: Any) -> Any:
        nc, nk = num_consts, num_carry
        consts, carry, xs = _split(args, nc, nk)
        d_consts, d_carry, d_xs = _split(dims, nc, nk)
        num_ys = len(olympuspr.out_avals) - nk
        b_xs = [None if d is None else 0 for d in d_xs]

        def step(mapped: tuple[bool, ...]) -> Any:
            in_dims = [*d_consts, *(0 if m else None for m in mapped), *b_xs]
            body, out_dims = batch_program(olympuspr, axis, in_dims,
                                           (*mapped, *(False,) * num_ys))
            return (body, out_dims), tuple(d is not None for d in out_dims[:nk])

        (body, out_dims), mapped = carry_fixpoint(tuple(d is not None for d in d_carry), step)
        carry = [to_axis(x, d, 0, axis.size) if m else x
                 for x, d, m in zip(carry, d_carry, mapped)]
        xs = [x if d is None else to_axis(x, d, 1, axis.size) for x, d in zip(xs, d_xs)]
        out = self.bind(*consts, *carry, *xs, olympuspr=body, num_consts=nc, num_carry=nk, **params)
        return out, [*(0 if m else None for m in mapped),
                     *(None if d is None else d + 1 for d in out_dims[nk:])]

    vmap_named = vmap

    def uses_axis(self, name: Any, params: dict[str, Any]) -> bool:
        return program_uses_axis(params["olympuspr"], name)

    def dce(self, used: Sequence[bool], eqn: OlympusprEqn) -> OlympusprEqn:
        params = eqn.params
        nc, nk = params["num_consts"], params["num_carry"]
        used_ys = tuple(used[nk:])

        def step(used_carry: tuple[bool, ...]) -> Any:
            found = dce_closed(params["olympuspr"], (*used_carry, *used_ys))
            return found, tuple(found[1][nc:nc + nk])

        (body, used_in), used_carry = carry_fixpoint(tuple(used[:nk]), step)
        keep = [*used_in[:nc], *used_carry, *used_in[nc + nk:]]
        pr = body.olympuspr
        pr = pr.replace(invars=[v for v, k in zip(pr.invars, keep) if k])
        outs = [*used_carry, *used_ys]
        return eqn.replace(
            invars=[v for v, k in zip(eqn.invars, keep) if k],
            outvars=[v for v, u in zip(eqn.outvars, outs) if u],
            params={**params, "olympuspr": ClosedOlympuspr(pr, body.consts),
                    "num_consts": sum(used_in[:nc]), "num_carry": sum(used_carry)},
            effects=pr.effects)


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


scan_p = Scan("scan")


def scan(f: Callable[..., Any], init: Any, xs: Any = None, length: int | None = None,
         reverse: bool = False, unroll: int | bool = 1, _split_transpose: bool = False
         ) -> tuple[Any, Any]:
    """Loop with a carry over the leading axis of `xs`, compiled once whatever the length.

    Args:
      f: `(carry, x) -> (carry, y)`, where `x` is a slice of `xs`; the carry keeps its structure,
        shapes and dtypes.
      init: the first carry, a pytree.
      xs: pytree of arrays of one leading size, or None.
      length: number of iterations; required if `xs` has no leaves.
      reverse: iterate, and store the ys, from the last index to the first.
      unroll: how many iterations one round of the compiled loop does; True: all of them.

    Returns:
      The last carry, and the ys stacked along a new leading axis.

    >>> import olympus
    >>> total, sums = olympus.lax.scan(lambda c, x: (c + x, c + x), 0., olympus.numpy.arange(4.))
    >>> print(total, sums)
    6.0 [0. 1. 3. 6.]
    """
    check_callable("scan", f=f)
    x_leaves, x_avals, x_tree = flatten("scan: xs", xs)
    n = _length(x_avals, x_tree, length)
    leaves, avals, tree = flatten("scan: init", init)
    if jit_disabled.value and n:
        return _loop(f, init, x_leaves, x_tree, n, reverse)
    slices = [a.update(shape=a.shape[1:]) for a in x_avals]
    body, avals = stage_loop_body("scan", f, tree, avals, x_tree, slices)
    leaves = [cast(x, a) for x, a in zip(leaves, avals)]
    out = scan_p.bind(*body.consts, *leaves, *x_leaves, olympuspr=body.program, length=n,
                      reverse=bool(reverse), unroll=_unroll(unroll, n),
                      num_consts=len(body.consts), num_carry=len(leaves))
    return tree_unflatten(body.out_tree, out)


def _length(avals: Sequence[Any], tree: Any, length: int | None) -> int:
    names = leaf_names(tree, "xs")
    for name, aval in zip(names, avals):
        if not aval.shape:
            raise ValueError(f"scan: {name} is {aval}; a leading axis to scan over is required; "
                             "close over it, or put it into the carry.")
    sizes = {name: aval.shape[0] for name, aval in zip(names, avals)}
    if length is not None:
        if isinstance(length, bool) or not hasattr(length, "__index__"):
            raise TypeError(f"scan: length is {length!r}; an int is required.")
        sizes = {"length": length.__index__(), **sizes}
    if not sizes:
        raise ValueError("scan: neither xs with leaves nor length given; one is required.")
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name}: {size}" for name, size in sizes.items())
        raise ValueError(f"scan: leading sizes differ ({shown}); they must be equal.")
    size = next(iter(sizes.values()))
    if size < 0:
        raise ValueError(f"scan: length is {size}; a non-negative int is required.")
    return size


def _unroll(unroll: int | bool, length: int) -> int:
    if unroll is True:
        return max(length, 1)
    if unroll is not False and unroll < 1:
        raise ValueError(f"scan: unroll is {unroll}; a positive int or a bool is required.")
    return max(int(unroll), 1)


def stage_loop_body(what: str, f: Callable[..., Any], tree: Any, avals: list[Any], x_tree: Any,
                    x_avals: Sequence[Any]) -> tuple[Body, list[Any]]:
    """The body `f(carry, x) -> (carry, y)`, and the carry's avals.

    Weakly typed carries take the type that the body gives them.
    """
    in_tree = tree_flatten((tree.unflatten(avals), x_tree.unflatten(x_avals)))[1]
    for _ in range(2 + len(avals)):
        wanted = list(avals)

        def finish(out: list[Any]) -> list[Any]:
            k = len(wanted)     # noqa: B023 (called at once)
            return [*(cast(x, a) if same_type(typeof(x), a) and not a.weak_type else x
                      for x, a in zip(out[:k], wanted)), *out[k:]]  # noqa: B023

        body = stage_body(f, in_tree, [*avals, *x_avals], finish)
        found = _carry_avals(what, tree, body)
        if all(map(_equal, avals, found)):
            return body, avals
        grown = [grow(a, b) for a, b in zip(avals, found)]
        if grown == avals:
            raise aval_error(what, leaf_names(tree, "carry"), avals, found,
                             f"the carry that {body.name} returns differs in type from its input")
        avals = grown
    raise AssertionError("weak types only ever turn strong")


def _equal(x: Any, y: Any) -> bool:
    return same_type(x, y) and x.weak_type == y.weak_type


def grow(have: Any, found: Any) -> Any:
    """The carry aval after seeing what the body returns: a weak one gives way."""
    if not have.weak_type or have.shape != found.shape:
        return have
    dtype, weak = dtypes.promote_types(have.dtype, found.dtype, True, found.weak_type)
    return have.update(dtype=dtype, weak_type=weak)


def _carry_avals(what: str, tree: Any, body: Body) -> list[Any]:
    """The avals of the carry among the body's outputs, its structure checked."""
    out = body.out_tree.unflatten(range(body.out_tree.num_leaves))
    if not isinstance(out, (tuple, list)) or len(out) != 2:
        raise TypeError(f"{what}: {body.name} returned {type(out).__name__}; a pair (carry, y) is "
                        "required; return None as y if there is none.")
    found = tree_flatten(out[0])[1]
    if found != tree:
        raise structure_error(what, tree, found,
                              f"the carry that {body.name} returns differs in structure from its "
                              "input")
    return body.out_avals[:tree.num_leaves]


def _loop(f: Callable[..., Any], carry: Any, x_leaves: Sequence[Any], x_tree: Any, length: int,
          reverse: bool) -> tuple[Any, Any]:
    """The scan as a Python loop, for `disable_jit`."""
    ys = []
    for i in reversed(range(length)) if reverse else range(length):
        x = x_tree.unflatten([index_in_dim(x, i, keepdims=False) for x in x_leaves])
        carry, y = f(carry, x)
        ys.append(y)
    if reverse:
        ys.reverse()
    columns = zip(*[tree_flatten(y)[0] for y in ys])
    stacked = [concatenate([expand_dims(y, (0,)) for y in column], 0) for column in columns]
    return carry, tree_unflatten(tree_flatten(ys[0])[1], stacked)
