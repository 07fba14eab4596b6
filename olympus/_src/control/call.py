"""`jit`'s primitive: apply a closed olympuspr. Every rule transforms the body and calls the result.

Interpreters never name it: they read its rules like any other primitive's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.util import merged
from ..core import reuse
from ..core.effects import of_body
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, OlympusprEqn
from ..core.primitive import Axis, Higher, Linear, Zero, spread_tangents
from ..core.trace import ctx
from ..interpreters.batching import batch_program
from ..interpreters.dce import dce_closed
from ..interpreters.jvp import jvp_flat, jvp_program
from ..interpreters.partial_eval import Split, depends, partial_eval_program, split_program
from ..interpreters.transpose import transpose_program

__all__ = ["Defined", "call_p"]


class Call(Higher):
    """Apply `olympuspr` to the operands; `name` is what the program is called."""

    programs = ("olympuspr",)
    cells = staticmethod(reuse.body)
    called = True

    def infer(self, *avals: Any, olympuspr: ClosedOlympuspr, **params: Any) -> list[Any]:
        return olympuspr.out_avals

    def effects(self, avals: Sequence[Any], params: dict[str, Any]) -> frozenset[Any]:
        return of_body(params["olympuspr"])

    def applied(self, params: dict[str, Any], avals: Sequence[Any]) -> Any:
        return [("the program", params["olympuspr"], avals)]

    def depends(self, flags: Sequence[bool], eqn: OlympusprEqn) -> Sequence[bool]:
        return depends(eqn.params["olympuspr"], flags)

    def lower(self, b: Any, *args: Any, olympuspr: ClosedOlympuspr, name: str,
              **params: Any) -> list[Any]:
        return b.call(olympuspr, args, name)

    def step_through(self, run: Callable[..., list[Any]], *args: Any, olympuspr: ClosedOlympuspr,
                     **params: Any) -> None:
        run(olympuspr, *args)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, olympuspr: ClosedOlympuspr,
            **params: Any) -> Any:
        nonzero = tuple(type(t) is not Zero for t in tangents)
        body, nonzero_out = jvp_program(olympuspr, nonzero)
        given = [t for t in tangents if type(t) is not Zero]
        out = self.bind(*primals, *given, olympuspr=body, **params)
        n = len(olympuspr.out_avals)
        return out[:n], spread_tangents(olympuspr.out_avals, nonzero_out, out[n:])

    def linearize(self, tape: Any, primals: Sequence[Any], tangents: Sequence[Any], *,
                  olympuspr: ClosedOlympuspr, **params: Any) -> Any:
        """jvp and the cut in one pass over the body, unless tangents are partly known."""
        # One pass is right if the unknowns of the tape are just the tangents. It is not where a
        # primal is unknown, too, where some tangents are known, or where an operand has to wait for
        # what is recorded: then the jvp program is bound, and the tape cuts it by `partial_eval`.
        active = [t for t in tangents if type(t) is not Zero]
        if not all(map(tape.owns, active)) or any(map(tape.owns, primals)) or (
                tape.touched and tape.must_wait(self, primals, {"olympuspr": olympuspr, **params})):
            return self.jvp(primals, tangents, olympuspr=olympuspr, **params)
        nonzero = tuple([type(t) is not Zero for t in tangents])
        split, nonzero_out = linearize_program(olympuspr, nonzero)
        outs = _apply_split(self, tape, split, primals, active, params)
        count = len(nonzero_out)
        return outs[:count], spread_tangents(olympuspr.out_avals, nonzero_out, outs[count:])

    def partial_eval(self, tape: Any, args: Sequence[Any], unknown: Sequence[bool], *,
                     olympuspr: ClosedOlympuspr, **params: Any) -> list[Any]:
        split = partial_eval_program(olympuspr, unknown)
        known = [a for a, u in zip(args, unknown, strict=True) if not u]
        # As in `linearize`, where the tape is current: `_apply_split` goes to its parent by itself.
        ctx.trace = tape
        rest = [a for a, u in zip(args, unknown, strict=True) if u]
        return _apply_split(self, tape, split, known, rest, params)

    def transpose(self, cts: Sequence[Any], *args: Any, olympuspr: ClosedOlympuspr,
                  **params: Any) -> list[Any]:
        linear = tuple([type(a) is Linear for a in args])
        nonzero = tuple([type(ct) is not Zero for ct in cts])
        # Cotangents that stay zero are no outputs of the call. Loops and branches cannot do that:
        # all iterations, and all branches, have the same outputs.
        body, nonzero_out = transpose_program(olympuspr, linear, nonzero, instantiate_out=False)
        known = [a for a in args if type(a) is not Linear]
        out = iter(self.bind(*known, *[ct for ct in cts if type(ct) is not Zero], olympuspr=body,
                             **params))
        flags = iter(nonzero_out)
        return [(next(out) if next(flags) else Zero(a.aval.to_cotangent_aval()))
                if type(a) is Linear else None
                for a in args]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             olympuspr: ClosedOlympuspr, **params: Any) -> Any:
        body, out_dims = batch_program(olympuspr, axis, dims)
        return self.bind(*args, olympuspr=body, **params), out_dims

    vmap_named = vmap

    def dce(self, used: Sequence[bool], eqn: OlympusprEqn) -> OlympusprEqn:
        params = eqn.params
        body, used_in = dce_closed(params["olympuspr"], used, keep_inputs=False)
        return eqn.replace(invars=[v for v, u in zip(eqn.invars, used_in, strict=True) if u],
                           outvars=[v for v, u in zip(eqn.outvars, used, strict=True) if u],
                           params={**params, "olympuspr": body})


def linearize_program(closed: ClosedOlympuspr, nonzero: tuple[bool, ...]
                      ) -> tuple[Split, tuple[bool, ...]]:
    """Cut into primal part and tangent part; which outputs have a tangent. Cached."""
    def linearize() -> tuple[Split, tuple[bool, ...]]:
        avals = closed.in_avals
        nonzero_out: tuple[bool, ...] = ()

        def body(staging: Any, tape: Any, primals: list, given: list) -> list[Any]:
            nonlocal nonzero_out
            tangents = spread_tangents(avals, nonzero, given)
            outs, out_tangents = jvp_flat(lambda *xs: eval_closed(closed, *xs), primals, tangents)
            nonzero_out = tuple(type(t) is not Zero for t in out_tangents)
            return [*outs, *(t for t in out_tangents if type(t) is not Zero)]

        tangent_avals = [a.to_tangent_aval() for a, nz in zip(avals, nonzero, strict=True) if nz]
        return split_program(body, avals, tangent_avals), nonzero_out

    return closed.derived(("linearize", nonzero), linearize)


def _apply_split(prim: Call, tape: Any, split: Split, known: Sequence[Any],
                 unknown: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Call the known half now, record the unknown half, and merge their outputs."""
    #   known half    known                 ->  known outputs, computed residuals   (in the parent)
    #   unknown half  residuals, unknown    ->  unknown outputs                     (on the tape)
    # A residual that is a known operand is passed on; the known half does not return it.
    outer = ctx.trace
    ctx.trace = tape.parent
    try:
        known_outs = prim.bind(*known, olympuspr=split.known, **params)
    finally:
        ctx.trace = outer
    num_outs = len(known_outs) - split.num_computed
    residuals = split.residual_values(known, known_outs[num_outs:])
    unknown_outs: list[Any] = []
    if any(split.unknown_out):
        unknown_outs = tape.record(prim, [*residuals, *unknown],
                                   {**params, "olympuspr": split.unknown})
    return merged(split.unknown_out, unknown_outs, known_outs[:num_outs])


call_p = Call("jit")


class Defined(Higher, abstract=True):
    """An operation with a `name` and a definition, `olympuspr`: rules are those of a call of it."""

    programs = ("olympuspr",)
    cells = staticmethod(reuse.body)
    called = True

    infer = Call.infer
    effects = Call.effects
    depends = Call.depends
    step_through = Call.step_through

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, olympuspr: ClosedOlympuspr,
            name: str, **params: Any) -> Any:
        return call_p.jvp(primals, tangents, olympuspr=olympuspr, name=name)

    def linearize(self, tape: Any, primals: Sequence[Any], tangents: Sequence[Any], *,
                  olympuspr: ClosedOlympuspr, name: str, **params: Any) -> Any:
        return call_p.linearize(tape, primals, tangents, olympuspr=olympuspr, name=name)

    def partial_eval(self, tape: Any, args: Sequence[Any], unknown: Sequence[bool], *,
                     olympuspr: ClosedOlympuspr, name: str, **params: Any) -> list[Any]:
        return call_p.partial_eval(tape, args, unknown, olympuspr=olympuspr, name=name)

    def transpose(self, cts: Sequence[Any], *args: Any, olympuspr: ClosedOlympuspr, name: str,
                  **params: Any) -> list[Any]:
        return call_p.transpose(cts, *args, olympuspr=olympuspr, name=name)

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             olympuspr: ClosedOlympuspr, name: str, **params: Any) -> Any:
        return call_p.vmap(axis, args, dims, olympuspr=olympuspr, name=name)

    vmap_named = vmap
