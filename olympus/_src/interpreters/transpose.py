"""Reverse mode: walk a linear program backwards, from output cotangents to input cotangents.

A program may mix linear equations with equations that only compute coefficients; the latter run
forward first. Only equations that a cotangent reaches are transposed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

from ..base.source import user_frame
from ..base.typing import Array, ArrayLike, DType, Reference
from ..base.util import WithAux, lazy_imports
from ..core.context import Scope, ctx
from ..core.evaluate import eval_closed
from ..core.ir import Atom, ClosedOlympuspr, Olympuspr, OlympusprEqn, Var, derived, numbers, read
from ..core.primitive import Cotangent, Higher, Linear, Transposed, Zero, check_count, no_transpose
from ..core.staging import closure_convert, recorder, stage
from ..core.trace import typeof
from ..lax.convert import in_dtype
from ..lax.families import add
from ..lax.shape import as_array, instantiate
from ..lax.sharding import as_typed
from ..types import dtypes
from ..types.avals import MUTABLE, ShapedArray
from .partial_eval import reached, record_unknown

with lazy_imports(__name__):
    from ..lax import refs as _refs
    from ..types import refs as _ref_types  # where there are references
    from . import discharge as _discharge

Into = Mapping[Var, Reference]       # variable -> the reference to which its cotangents are added

Given = Sequence[ArrayLike | Zero | None]   # cotangents, which may be Python's numbers


def apply_transpose(pr: Olympuspr, consts: Sequence[ArrayLike], args: Sequence[Array | Linear],
                    cts: Given, name: str | None = None, into: Into | None = None
                    ) -> Sequence[Cotangent]:
    """`backward_pass` for any program that is linear in the `Linear` inputs.

    In a program from a tape all equations are linear. In others, a loop or call may return
    coefficients beside linear results: a tape computes these first.
    """
    # Reads of a reference depend on earlier writes, which operands do not show, so references of
    # the program itself are discharged. Those from outside stay: only rules get them.
    if MUTABLE:
        closed = _discharge.discharge(ClosedOlympuspr(pr, consts), [False] * len(pr.invars))
        pr, consts = closed.olympuspr, closed.consts
    with_bodies = [eqn for eqn in pr.eqns if isinstance(eqn.primitive, Higher)]
    reached_vars = reached(pr, [type(a) is Linear for a in args]) if with_bodies else set()
    if all(len({v in reached_vars for v in eqn.outvars}) < 2 for eqn in with_bodies):
        return backward_pass(pr, consts, args, cts, name, into)
    linear = [type(a) is Linear for a in args]
    linear_pr, _, unknown = record_unknown(
        lambda *xs: eval_closed(ClosedOlympuspr(pr, consts), *xs),
        [a.aval if u else a for a, u in zip(args, linear, strict=True)], linear)
    sums = [into.get(v) if into else None for v in compress(pr.invars, linear)]
    back = iter(backward_pass(
        linear_pr.olympuspr, linear_pr.consts, [Linear(v.aval) for v in linear_pr.invars],
        list(compress(cts, unknown)), name,
        {v: ref for v, ref in zip(linear_pr.invars, sums, strict=True) if ref is not None}))
    return [next(back) if type(a) is Linear else None for a in args]


def backward_pass(pr: Olympuspr, consts: Sequence[ArrayLike], args: Sequence[Array | Linear],
                  cts: Given, name: str | None = None,
                  into: Into | None = None) -> Sequence[Cotangent]:
    """Cotangents (maybe `Zero`) of the inputs given as `Linear`; None for the others.

    Args:
      pr: an open program, linear in the inputs whose entry of `args` is `Linear`.
      consts: values of its constvars.
      args: per input, `Linear(aval)` or the value.
      cts: per output, its cotangent or `Zero`.
      name: the transformation that names the operations' scope, inside the current scope.
      into: for some inputs, the references to which their cotangents are added: the result is
        `Zero` for those.
    """
    outer = ctx.scope
    try:
        inside = outer if name is None else outer.extend((name,))
        return _backward_pass(pr, consts, args, cts, _Scopes(inside), into or {})
    finally:
        ctx.scope = outer


class _Scopes(dict):
    """The scope of an equation -> the scope of the operations of its transpose."""

    def __init__(self, outer: Scope) -> None:
        super().__init__()
        self.outer = outer

    def __missing__(self, scope: Scope | None) -> Scope:
        extended = self[scope] = self.outer.extend(*scope.names) if scope else self.outer
        return extended


class _Sums:
    """The sums of the cotangents so far, by variable."""

    def __init__(self, into: Into) -> None:
        self.acc: dict[Any, Any] = {}
        self.into: Mapping[Any, Reference] = into
        # 16-bit cotangents are summed in float32 from the third term on. several: the variables
        # with more than one term; wide: the dtypes of the variables whose sums are in float32.
        self.several: set[Var] = set()
        self.wide: dict[Var, DType] = {}

    def add(self, variables: Sequence[Atom], values: Sequence[Transposed], cts: Given) -> None:
        acc: dict[Any, Any] = self.acc
        for var, x, ct in zip(variables, values, cts, strict=True):
            if ct is not None and type(x) is Linear and type(ct) is not Zero:
                if x.aval.tagged:
                    ct = as_typed(ct, x.aval.to_cotangent_aval())
                if var in self.into:
                    _refs.addupdate_p.bind(self.into[var], ct, view=_refs.WHOLE)
                    continue
                sum_so_far = acc.get(var)
                acc[var] = ct if sum_so_far is None else self.sum_of(var, x.aval, sum_so_far, ct)

    def grow(self, eqn: OlympusprEqn, ins: Sequence[Transposed], ct: ArrayLike | Zero) -> bool:
        """Add the cotangent of a part to the operand's sum in place, without an array of zeros.

        False if that is impossible: there is no sum yet, or its type is not the operand's.
        """
        var = eqn.invars[0]
        total = self.acc.get(var)
        if total is None or type(ct) is Zero or Linear in map(type, ins[1:]):
            return False
        if typeof(total).tagged and not var.aval.tagged:
            return False
        total, ct = self.terms(var, var.aval.dtype, total, ct)
        self.acc[var] = eqn.primitive.grown(total, ct, *ins[1:], **eqn.params)
        return True

    def sum_of(self, var: Var, aval: ShapedArray, x: Array, y: ArrayLike) -> Array:
        return aval.vspace_add(x, y) if aval.is_high else add(*self.terms(var, aval.dtype, x, y))

    def terms(self, var: Var, dtype: DType, x: Array, y: ArrayLike) -> tuple[Array, ArrayLike]:
        """The sum so far and a further term, as they are added."""
        if dtype.itemsize < 4 and (sum_dtype := dtypes.wide_dtype(dtype)) != dtype:
            if var in self.several:
                self.wide[var] = dtype
                x, y = in_dtype(x, sum_dtype), in_dtype(y, sum_dtype)
            self.several.add(var)
        return x, y


def _forward_pass(pr: Olympuspr, consts: Sequence[ArrayLike], args: Sequence[Transposed],
                  scopes: _Scopes) -> tuple[dict[Any, Any], list[OlympusprEqn]]:
    """Evaluate the coefficients; return all values by variable, and the linear equations.

    The value of a linear variable is `Linear`.
    """
    env: dict[Any, Any] = dict(zip(pr.constvars, consts, strict=True))
    env.update(zip(pr.invars, args, strict=True))
    pending = []
    for eqn in pr.eqns:
        ins = read(eqn.invars, env)
        if Linear in map(type, ins):
            pending.append(eqn)
            for out in eqn.outvars:
                env[out] = Linear(out.aval)
        else:
            ctx.scope = scopes[eqn.ctx]
            outs = eqn.primitive.bind(*ins, **eqn.params)
            env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs],
                           strict=True))
    return env, pending


def _backward_pass(pr: Olympuspr, consts: Sequence[ArrayLike], args: Sequence[Transposed],
                   cts: Given, scopes: _Scopes, into: Into
                   ) -> Sequence[Cotangent]:
    env, pending = _forward_pass(pr, consts, args, scopes)
    # Backward, with x linear:
    #
    #     program    a = f x        b = g a        c = h a b
    #
    #     ct x ◄── f ◄── ct a ◄─┬─ g ◄── ct b ◄─┬─ h ◄── ct c
    #                           └───────────────┘
    #
    # `acc` has the sums of the cotangents so far. All readers of an equation's results come before
    # the equation, so its sums are complete then. They are taken out, to free their memory once the
    # equation has used them.
    sums = _Sums(into)
    acc, wide = sums.acc, sums.wide
    sums.add(pr.outvars, read(pr.outvars, env), cts)
    # Operations of built-in rules get the line of the forward operation, if the tape has it, or the
    # user's line of the transposition, found once. Users' rules have lines of their own.
    record, transposed_before = recorder(ctx.trace), ctx.transposed
    previous, own_line = (record.source, record.source or user_frame()) if record else (None, None)
    try:
        for eqn in reversed(pending):
            prim = eqn.primitive
            for v in [v for v in eqn.outvars if v in wide] if wide else ():
                acc[v] = in_dtype(acc[v], wide.pop(v))
            if prim.multiple_results:
                out_cts: Any = [acc.pop(v, None) for v in eqn.outvars]
                if False not in [ct is None for ct in out_cts]:
                    continue
                out_cts = [Zero(v.aval.to_cotangent_aval()) if ct is None else ct
                           for v, ct in zip(eqn.outvars, out_cts, strict=True)]
            else:
                out_cts = acc.pop(eqn.outvars[0], None)
                # No cotangent reaches this equation: it needs no transpose rule.
                if out_cts is None:
                    continue
            ins = read(eqn.invars, env)
            ctx.scope = scopes[eqn.ctx]
            if into and (ins := _with_sums(eqn, ins, out_cts, into)) is None:
                continue
            if prim.transpose is None:
                raise no_transpose(prim)
            if prim.foreign:    # users' rules get arrays as cotangents, and numbers for literals
                out_cts = (list(map(as_array, out_cts)) if prim.multiple_results else
                           as_array(out_cts))
                ins = numbers(ins)
            if record is not None:
                own = not (prim.foreign or isinstance(prim, Higher))
                record.source = (not prim.foreign and eqn.source) or (own_line if own else previous)
            ctx.transposed = eqn
            if prim.grown is None or not sums.grow(eqn, ins, out_cts):
                in_cts = prim.transpose(out_cts, *ins, **eqn.params)
                if type(in_cts) is not list or len(in_cts) != len(ins):
                    check_count(prim, "transpose", "cotangents", in_cts, len(ins))
                sums.add(eqn.invars, ins, in_cts)
        for v, dtype in wide.items():
            acc[v] = in_dtype(acc[v], dtype)
    finally:
        ctx.transposed = transposed_before
        if record is not None:
            record.source = previous
    return [acc.get(v, Zero(v.aval.to_cotangent_aval())) if type(a) is Linear else None
            for v, a in zip(pr.invars, args, strict=True)]


def _with_sums(eqn: OlympusprEqn, ins: Sequence[Transposed], cts: Reference, into: Into
               ) -> list[Transposed] | None:
    """The operands, with references in place of `Linear` if the rule adds to them itself.

    None if the operation only reads a part of its operand: then its cotangent has been added.
    """
    prim, (first, *others) = eqn.primitive, eqn.invars
    view = _refs.part_read(prim, eqn.params) if first in into else None
    if view is not None and not any(v in into for v in others):
        if type(cts) is not Zero:
            _refs.addupdate_p.bind(into[first], cts, *ins[1:], view=view)
        return None
    operands = list(ins)
    if prim.adds is not None:
        passed = set()       # no reference is passed twice
        for i, (v, adds) in enumerate(zip(
                eqn.invars, prim.adds(eqn.params, len(operands)), strict=True)):
            if adds and v in into and v not in passed:
                passed.add(v)
                operands[i] = into[v]
    return operands


def linear_flags(closed: ClosedOlympuspr, args: Sequence[Transposed]) -> tuple[bool | None, ...]:
    """The argument `linear_in` of `transpose_program`, from the operands of a transpose rule."""
    return tuple([True if type(x) is Linear else
                  None if MUTABLE and typeof(x).mutable and not v.aval.mutable else False
                  for x, v in zip(args, closed.olympuspr.invars, strict=True)])


def transpose_program(closed: ClosedOlympuspr, linear_in: Sequence[bool | None],
                      nonzero_ct: Sequence[bool], instantiate_out: bool = True
                      ) -> tuple[ClosedOlympuspr, tuple[bool, ...]]:
    """The program (values of the other inputs, nonzero cotangents) -> cotangents of linear inputs.

    None in `linear_in` is a linear input whose cotangent is added to a reference, which is among
    the other inputs. Returns the program, and per linear input whether its cotangent is an output
    (all are if `instantiate_out`). Cached on the program.
    """
    return _transpose_program(closed, tuple(linear_in), tuple(nonzero_ct), instantiate_out)


@derived
def _transpose_program(closed: ClosedOlympuspr, linear_in: tuple[bool | None, ...],
                       nonzero_ct: tuple[bool, ...], instantiate_out: bool
                       ) -> tuple[ClosedOlympuspr, tuple[bool, ...]]:
    pr = closed.olympuspr
    num_known = len(linear_in) - linear_in.count(True)

    # Tracing finds the zero cotangents, which the second result of `body` flags.
    def body(*args: Array) -> tuple[list[Cotangent], tuple[bool, ...]]:
        known, cotangents = iter(args[:num_known]), iter(args[num_known:])
        ins: list[Any] = [Linear(v.aval) if lin else next(known)
                          for v, lin in zip(pr.invars, linear_in, strict=True)]
        into = {v: x for v, x, lin in zip(pr.invars, ins, linear_in, strict=True) if lin is None}
        if into:
            ins = [Linear(v.aval) if v in into else x
                   for v, x in zip(pr.invars, ins, strict=True)]
        cts = [next(cotangents) if nz else Zero(v.aval.to_cotangent_aval())
               for v, nz in zip(pr.outvars, nonzero_ct, strict=True)]
        out = apply_transpose(pr, closed.consts, ins, cts, into=into)
        out = [ct for ct, lin in zip(out, linear_in, strict=True) if lin]
        if instantiate_out:
            out = [instantiate(ct) for ct in out]
        return ([ct for ct in out if type(ct) is not Zero],
                tuple(type(ct) is not Zero for ct in out))

    known_avals: list[Any] = [
        v.aval if lin is False else _ref_types.ref_aval(v.aval.to_cotangent_aval())
        for v, lin in zip(pr.invars, linear_in, strict=True) if not lin]
    ct_avals = [v.aval.to_cotangent_aval()
                for v, nz in zip(pr.outvars, nonzero_ct, strict=True) if nz]
    with_aux = WithAux(body)
    program, tracers = closure_convert(stage(with_aux, [*known_avals, *ct_avals]))
    for x in tracers:
        if typeof(x).mutable:       # a user's rule may close over one
            raise ValueError(
                f"custom_vjp: a rule bwd closes over the reference {typeof(x)}, and runs in a body "
                "of jit,\n  a loop, a branch or checkpoint, which knows nothing of it;\n  pass it "
                "to the function as an argument, and from fwd to bwd as a residual.")
    assert not tracers, "a program carried by a primitive closes over no tracers"
    return program, with_aux.aux
