"""Forward mode: every value travels with its tangent.

A tangent is an array, a tracer, or a symbolic `Zero`. Rules run in the parent trace, so forward
mode nests, and composes with all other transformations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.config import check_tracer_leaks
from ..base.source import user_frame
from ..base.typing import Array, ArrayLike, Params
from ..base.util import WithAux
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, derived
from ..core.leaks import Noting, check_leaks, note_origins
from ..core.primitive import Higher, Primitive, Tangent, Zero, missing_rule, pair, spread_tangents
from ..core.staging import recorder, stage
from ..core.trace import Trace, Tracer, check_usable, ctx, enter, leave, typeof
from ..lax.shape import as_array, instantiate
from ..types.tree import tree_map
from .compiled_rules import jvp_at_once
from .partial_eval import TapeTrace


def zero_tangent(x: ArrayLike) -> Zero:
    """The tangent of a constant."""
    return Zero(typeof(x).to_tangent_aval())


class DifferentiatedTracer(Tracer):
    """A primal value with a derivative; attributes for messages are the primal's."""

    __slots__ = ("_primal",)

    def _known_value(self) -> ArrayLike | None:
        primal = self._primal
        return primal._known_value() if isinstance(primal, Tracer) else primal

    def _differentiated(self) -> bool:
        return True

    def _origin(self) -> str:
        primal = self._primal
        return primal._origin() if isinstance(primal, Tracer) else "differentiated"

    def _unknown_because(self) -> str:
        return self._primal._unknown_because() if isinstance(self._primal, Tracer) else ""

    def _may_be_static(self) -> bool:
        return isinstance(self._primal, Tracer) and self._primal._may_be_static()

    def _setting(self) -> str:
        return self._primal._setting() if isinstance(self._primal, Tracer) else ""


class JVPTracer(DifferentiatedTracer):
    """A primal value with its tangent.

    >>> import olympus
    >>> from olympus.interpreters.ad import JVPTracer
    >>> def f(x):
    ...     print(isinstance(x, JVPTracer), x)
    ...     return x
    >>> _ = olympus.jvp(f, (1.0,), (2.0,))
    True JVPTracer(primal=1.0, tangent=2.0)
    """

    # Primal and tangent are values of the parent or of traces below. The tangent is never `Zero`
    # (`wrap` makes no tracer then), so an operation with such an operand needs its rule.
    __slots__ = ("_tangent",)

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any) -> None:
        self._trace = trace
        self.aval = typeof(primal)
        self._primal, self._tangent = primal, tangent

    def __repr__(self) -> str:
        t = self._tangent
        if isinstance(t, Tracer) and not t._known:
            return f"GradTracer(primal={self._primal}, typeof(tangent)={t.aval.str_short(True)})"
        return f"JVPTracer(primal={self._primal}, tangent={t})"


JVPTracer.__module__ = "olympus.interpreters.ad"    # also before that is imported: for messages


class JVPTrace(Trace):
    """Applies `prim.jvp`; above a tape, `prim.linearize` of primitives with bodies.

    >>> import olympus
    >>> from olympus.extend.core import find_top_trace
    >>> from olympus.interpreters.ad import JVPTrace
    >>> def f(x):
    ...     print(isinstance(find_top_trace(x), JVPTrace))
    ...     return x
    >>> _ = olympus.jvp(f, (1.0,), (1.0,))
    True
    """

    __slots__ = ("waits_for", "record")
    parent: Trace

    def __init__(self, parent: Trace) -> None:
        super().__init__(parent)
        self.waits_for = None
        self.record = recorder(parent)

    def split(self, args: Sequence[Array]) -> tuple[list[Array], list[Tangent], bool]:
        """(primals, tangents, whether any tangent is not zero)."""
        primals, tangents, active = [], [], False
        for a in args:
            if type(a) is JVPTracer and a._trace is self:
                primals.append(a._primal)
                tangents.append(a._tangent)
                active = True
            else:
                if isinstance(a, Tracer):
                    check_usable(a)
                primals.append(a)
                tangents.append(zero_tangent(a))
        return primals, tangents, active

    def wrap(self, primal: ArrayLike, tangent: ArrayLike | Zero) -> Array:
        return primal if type(tangent) is Zero else JVPTracer(self, primal, tangent)

    def process(  # noqa: PLR0912 - hot: a call would be a frame for each operation
            self, prim: Primitive, args: tuple, params: Params) -> Array | list[Array]:
        # The hot path: `split` written out, which makes no zeros where no operand is active.
        primals, tangents, active, zeros = [], [], False, False
        for a in args:
            if type(a) is JVPTracer and a._trace is self:
                primals.append(a._primal)
                tangents.append(a._tangent)
                active = True
            else:
                if isinstance(a, Tracer):
                    check_usable(a)
                primals.append(a)
                tangents.append(None)
                zeros = True
        parent = ctx.trace = self.parent
        record = self.record
        line = None if record is None else record.source
        try:
            if not active:
                return parent.process(prim, args, params)
            higher = isinstance(prim, Higher)
            own = not higher and not prim.foreign
            results: Any = (jvp_at_once(parent, prim, primals, tangents, params)
                            if own and record is None else None)
            if results is None:
                if zeros:
                    tangents = [zero_tangent(x) if t is None else t
                                for x, t in zip(primals, tangents, strict=True)]
                # Everything a built-in rule binds has one source line; find it once.
                if own and record is not None:
                    record.source = line or user_frame()
                # Above a tape, tangents are the unknowns. An ordinary rule needs no more: the tape
                # runs operations on primals, and records operations on tangents. A body must be
                # split in two.
                if higher and isinstance(parent, TapeTrace):
                    results = prim.linearize(parent, primals, tangents, **params)
                else:
                    if prim.jvp is None:
                        raise missing_rule(prim, f"Differentiation rule for {prim.name!r} not "
                                           "implemented; it has no derivative; apply "
                                           "olympus.lax.stop_gradient to its operands, or wrap the "
                                           "function that uses it in olympus.custom_jvp.")
                    results = prim.jvp(primals, tangents, **params)
                    if prim.foreign:
                        results = tree_map(as_array, results)
        finally:
            ctx.trace = self
            if record is not None:
                record.source = line
        if prim.multiple_results:
            return list(map(self.wrap, *pair(prim, "jvp", "tangents", results, args, params)))
        if type(results) is not tuple or len(results) != 2:
            results = pair(prim, "jvp", "tangent", results)
        primal, tangent = results
        return primal if type(tangent) is Zero else JVPTracer(self, primal, tangent)

    def process_custom(self, prim: Primitive, fun: Callable, rules: object, args: tuple,
                       params: Params) -> list[Array]:
        primals, tangents, active = self.split(args)
        # Until the rule has returned, it may read nothing of this trace but the operands: a tracer
        # that it closes over would be a constant, whose derivative is silently lost. `check_usable`
        # refuses it.
        ctx.trace, self.waits_for, record = self.parent, (prim, params), self.record
        line = None if record is None else record.source
        try:
            if not active:
                return self.parent.process_custom(prim, fun, rules, tuple(primals), params)
            if record is not None:
                record.source = None     # the rule has lines of its own
            # Users' rules may return numbers; built-in rules take arrays.
            results = tree_map(as_array, prim.jvp(fun, rules, primals, tangents, **params))
        finally:
            ctx.trace, self.waits_for = self, None
            if record is not None:
                record.source = line
        outs, out_tangents = pair(prim, "jvp", "tangents", results)
        return list(map(self.wrap, outs, out_tangents))


class _NotingJVPTrace(Noting, JVPTrace):
    __slots__ = ("notes",)


def jvp_flat(fun: Callable[..., Sequence[Array]], primals: Sequence[ArrayLike],
             tangents: Sequence[ArrayLike | Zero]) -> tuple[list[Array], list[Tangent]]:
    """The outputs and tangents (maybe `Zero`) of a flat function, computed in the current trace."""
    parent = ctx.trace
    trace = (_NotingJVPTrace if check_tracer_leaks.value else JVPTrace)(parent)
    args = [trace.wrap(p, t) for p, t in zip(primals, tangents, strict=True)]
    outer = enter(trace)
    try:
        outs = fun(*args)
        out_primals, out_tangents, _ = trace.split(outs)
    finally:
        leave(outer)
        trace.alive = False
    origins = note_origins(trace)
    # References of this frame are no leaks: drop them first.
    if origins is not None:
        args = outs = []
        check_leaks(trace, origins)
    return out_primals, out_tangents


def jvp_program(closed: ClosedOlympuspr, nonzero: Sequence[bool],
                instantiate_out: bool | Sequence[bool] = False
                ) -> tuple[ClosedOlympuspr, tuple[bool, ...]]:
    """The program (primals, nonzero tangents) -> (outs, nonzero out tangents), and flags of these.

    Args:
      closed: a program without tracers among its constants.
      nonzero: per input, whether it has a tangent.
      instantiate_out: per output, whether its tangent must be an array even if zero.
    """
    if isinstance(instantiate_out, bool):
        instantiate_out = (instantiate_out,) * len(closed.outvars)
    return _jvp_program(closed, tuple(nonzero), tuple(instantiate_out))


@derived
def _jvp_program(closed: ClosedOlympuspr, nonzero: tuple[bool, ...],
                 instantiate_out: tuple[bool, ...]) -> tuple[ClosedOlympuspr, tuple[bool, ...]]:
    pr = closed.olympuspr
    n, in_avals = len(pr.invars), [v.aval for v in pr.invars]

    # Tracing finds the zero tangents, which `nonzero_out` returns.
    def jvp_body(*args: Array) -> tuple[list[Array], tuple[bool, ...]]:
        tangents = spread_tangents(in_avals, nonzero, args[n:])
        outs, out_tangents = jvp_flat(lambda *xs: eval_closed(closed, *xs), args[:n], tangents)
        out_tangents = [instantiate(t) if force else t
                        for t, force in zip(out_tangents, instantiate_out, strict=True)]
        nonzero_out = tuple(type(t) is not Zero for t in out_tangents)
        return [*outs, *(t for t in out_tangents if type(t) is not Zero)], nonzero_out

    tangent_avals = [a.to_tangent_aval() for a, nz in zip(in_avals, nonzero, strict=True) if nz]
    with_aux = WithAux(jvp_body)
    return stage(with_aux, [*in_avals, *tangent_avals], pr.debug_info), with_aux.aux
