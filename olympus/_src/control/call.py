"""`jit`'s primitive: apply a closed olympuspr. Every rule transforms the body and calls the result.

Interpreters do not name it: they read its rules, like any other primitive's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from typing import Any

from ..base.typing import Array, ArrayLike, IrValue, Params, R, T, Value
from ..base.util import WithAux, lazy_imports, merged
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, OlympusprEqn, derived
from ..core.primitive import (
    Axis, Builder, Cotangent, Higher, Linear, Tangent, Transposed, Zero, spread_tangents,
)
from ..core.staging import StagingTrace
from ..core.trace import Trace, ctx, typeof
from ..interpreters.batching import batch_program
from ..interpreters.checks import Checks
from ..interpreters.dce import dce_closed
from ..interpreters.jvp import jvp_flat, jvp_program
from ..interpreters.partial_eval import Split, TapeTrace, partial_eval_program, split_program
from ..interpreters.transpose import linear_flags, transpose_program
from .bodies import with_leading
from .groups import HasBodies

Picked = Callable[[Any, Any, Any, Any], Any]

with lazy_imports(__name__):       # for values of users' types
    from ..interpreters import parts as _parts


class Call(HasBodies):
    """Apply `olympuspr` to the operands; `name` is the program's name.

    Subclasses may have params with one entry per operand and result: `with_program` selects the
    entries of a derived program.
    """

    called = True
    fusion = "called"
    looked_into = True

    def derived(self, params: Params, make: Callable[..., R], *args: bool | Sequence[bool | None]
                ) -> R:
        """`make(program, *args)`, in the axes in which the program was traced."""
        return make(params["olympuspr"], *args)

    def with_program(self, params: Params, body: ClosedOlympuspr, ins: Picked, outs: Picked,
                 transposed: bool = False) -> Params:
        """The params with a derived program.

        `ins` and `outs` select the entries of the derived program, from the entries of operands,
        their tangents, results and their tangents (cotangents in a transposed one).
        """
        return {**params, "olympuspr": body}

    def in_parts(self, args: Sequence[Value], params: Params) -> list[Value]:
        body, repeated = params["olympuspr"], _parts.repeated
        outs = self.bind(*_parts.parts_of(args), **self.with_program(
            _parts.bodies_in_parts(self, params), _parts.in_parts(body),
            lambda x, dx, y, dy: repeated(x, body.in_avals),
            lambda x, dx, y, dy: repeated(y, body.out_avals)))
        return _parts.raised(body.out_avals, outs)

    def lower(self, b: Builder, *args: IrValue, olympuspr: ClosedOlympuspr, name: str,
              **params: Hashable) -> Sequence[IrValue]:
        return b.call(olympuspr, args, name)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], **params: Hashable
            ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        nonzero = tuple([type(t) is not Zero for t in tangents])
        body, nonzero_out = self.derived(params, jvp_program, nonzero)
        out = self.bind(*primals, *compress(tangents, nonzero), **self.with_program(
            params, body, lambda x, dx, y, dy: (*x, *compress(dx, nonzero)),
            lambda x, dx, y, dy: (*y, *compress(dy, nonzero_out))))
        n = len(nonzero_out)
        return out[:n], spread_tangents(map(typeof, out[:n]), nonzero_out, out[n:])

    def linearize(self, tape: TapeTrace, primals: Sequence[Array], tangents: Sequence[Tangent],
                  **params: Hashable) -> tuple[Sequence[Array], Sequence[Tangent]]:
        """Differentiate and split in one pass over the body, if all tangents are unknown."""
        # If a primal is unknown, too, some tangent is known, or an operand's effects must wait for
        # recorded ones, the jvp program is bound instead, and the tape splits it by `partial_eval`.
        active = [t for t in tangents if type(t) is not Zero]
        if not all(map(tape.owns, active)) or any(map(tape.owns, primals)) or (
                tape.touched and tape.must_wait(self, primals, params)):
            return self.jvp(primals, tangents, **params)
        nonzero = tuple([type(t) is not Zero for t in tangents])
        split, nonzero_out = self.derived(params, linearize_program, nonzero)
        outs = self.apply_split(
            tape, split, primals, active, params,
            lambda x, dx, y, dy: (x, compress(dx, nonzero), (*y, *compress(dy, nonzero_out))))
        n = len(nonzero_out)
        return outs[:n], spread_tangents(map(typeof, outs[:n]), nonzero_out, outs[n:])

    def partial_eval(self, tape: TapeTrace, args: Sequence[Array], unknown: Sequence[bool],
                     **params: Hashable) -> Sequence[Array]:
        split = self.derived(params, partial_eval_program, unknown)
        known = [not u for u in unknown]
        return self.apply_split(
            tape, split, [*compress(args, known)], [*compress(args, unknown)], params,
            lambda x, dx, y, dy: (compress(x, known), compress(x, unknown), y))

    def apply_split(self, tape: TapeTrace, split: Split, known: Sequence[ArrayLike],
                    unknown: Sequence[Array], params: Params, pick: Picked) -> list[Array]:
        """Call the known half, record the unknown half, and merge their results.

        `pick`: entries of operands, their tangents, results and their tangents -> entries of the
        known operands, of the unknown operands, and of all results.
        """
        #   known half    known               ->  known outputs, computed residuals   (the parent)
        #   unknown half  residuals, unknown  ->  unknown outputs                     (the tape)
        # The known half does not return residuals that are known operands.
        results = bound_in(tape.parent, self, known, {**params, "olympuspr": split.known})
        num_outs = len(results) - split.num_computed
        residuals = split.residual_values(known, results[num_outs:])
        unknown_outs: list[Any] = []
        if any(split.unknown_out):
            unknown_outs = tape.record(self, [*residuals, *unknown],
                                       {**params, "olympuspr": split.unknown})
        return merged(split.unknown_out, unknown_outs, results[:num_outs])

    def transpose(self, cts: Sequence[Tangent], *args: Transposed, **params: Hashable
                  ) -> list[Cotangent]:
        closed: Any = params["olympuspr"]
        linear = linear_flags(closed, args)
        nonzero = tuple([type(ct) is not Zero for ct in cts])
        # Zero cotangents are no outputs of the call. (Loops and branches must instantiate them: all
        # iterations, and all branches, have the same outputs.)
        body, nonzero_out = self.derived(params, transpose_program, linear, nonzero, False)
        known = [not lin for lin in linear]
        out = iter(self.bind(*compress(args, known), *compress(cts, nonzero), **self.with_program(
            params, body, lambda x, dx, y, dy: (*compress(x, known), *compress(dy, nonzero)),
            lambda x, dx, y, dy: compress(compress(dx, linear), nonzero_out), True)))
        flags = iter(nonzero_out)
        return [(next(out) if next(flags) else Zero(a.aval.to_cotangent_aval()))
                if type(a) is Linear else None
                for a in args]

    def adds(self, params: Params, count: int) -> Sequence[bool]:
        return (True,) * count

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             olympuspr: ClosedOlympuspr, **params: Hashable
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        body, out_dims = batch_program(olympuspr, axis, dims)
        return self.bind(*args, olympuspr=body, **params), out_dims

    def with_contents(self, params: Params, body: ClosedOlympuspr, new: Sequence[bool]) -> Params:
        return self.with_program(params, body, lambda x, dx, y, dy: x,
                             lambda x, dx, y, dy: (*y, *compress(x, new)))

    def with_more(self, which: Sequence[int], more: Sequence[T], xs: Sequence[T], params: Params
                  ) -> tuple[Sequence[T], Params]:
        body = params["olympuspr"]
        body = with_leading(body, 0, [body.in_avals[i] for i in which])
        return [*more, *xs], self.with_program(
            params, body, lambda x, dx, y, dy: (*[x[i] for i in which], *x),
            lambda x, dx, y, dy: y)

    def checked(self, checks: Checks, args: Sequence[Array], params: Params
                ) -> list[Array] | None:
        body = self.derived(params, checks.body)
        return body and checks.took(
            self.bind(*args, **{**params, "olympuspr": body.program}), body.sites)

    def dce(self, used: Sequence[bool], eqn: OlympusprEqn) -> OlympusprEqn:
        body, used_in = dce_closed(eqn.params["olympuspr"], used, keep_inputs=False)
        return eqn.replace(
            invars=[*compress(eqn.invars, used_in)], outvars=[*compress(eqn.outvars, used)],
            params=self.with_program(eqn.params, body, lambda x, dx, y, dy: compress(x, used_in),
                                 lambda x, dx, y, dy: compress(y, used)))


@derived
def linearize_program(closed: ClosedOlympuspr, nonzero: tuple[bool, ...]
                      ) -> tuple[Split, tuple[bool, ...]]:
    """The jvp program split into primals and tangents, and flags of outputs with a tangent."""
    avals = closed.in_avals

    def body(staging: StagingTrace, tape: TapeTrace, primals: list, nonzero_tangents: list
             ) -> tuple[list[Array], tuple[bool, ...]]:
        tangents = spread_tangents(avals, nonzero, nonzero_tangents)
        outs, out_tangents = jvp_flat(lambda *xs: eval_closed(closed, *xs), primals, tangents)
        return ([*outs, *(t for t in out_tangents if type(t) is not Zero)],
                tuple(type(t) is not Zero for t in out_tangents))

    tangent_avals = [a.to_tangent_aval() for a, nz in zip(avals, nonzero, strict=True) if nz]
    with_aux = WithAux(body)
    return split_program(with_aux, avals, tangent_avals), with_aux.aux


def bound_in(trace: Trace, prim: Higher, args: Sequence[ArrayLike], params: Params) -> list[Array]:
    """The results of an operation that is bound in another trace."""
    outer = ctx.trace
    ctx.trace = trace
    try:
        return prim.bind(*args, **params)
    finally:
        ctx.trace = outer


call_p = Call("jit")


def _of_call(rule: str) -> Any:
    def apply(self: Call, *args: object, olympuspr: ClosedOlympuspr, name: str, **params: Hashable
              ) -> object:
        return getattr(call_p, rule)(*args, olympuspr=olympuspr, name=name)

    return apply


class Defined(Call, abstract=True):
    """An operation with a `name` and a definition, `olympuspr`, and the rules of a call of it."""

    jvp, linearize, partial_eval, transpose, vmap = map(
        _of_call, ("jvp", "linearize", "partial_eval", "transpose", "vmap"))
    checked: Any = None     # checks treat it as one operation
