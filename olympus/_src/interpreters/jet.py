"""Taylor mode: every value travels with its derivatives of higher orders along a curve.

A value is a tower: the value, and the tower of its derivative, which the primitive's `jvp` rule on
towers makes on demand (Karczmarczuk, "Functional differentiation of computer programs", 2001).
Equal equations give one tower: the derivative of sin is cos, whose derivative is the same sin
again, so derivatives of order n cost as much as by a recurrence. No primitive needs a further rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from math import factorial
from typing import Any, final

from ..base.typing import Array, ArrayLike, Params
from ..core.evaluate import eval_closed
from ..core.primitive import Higher, Primitive, Tangent, Zero, missing_rule, pair
from ..core.trace import Trace, Tracer, check_usable, ctx, enter, leave, typeof
from ..lax.creation import full_like
from ..lax.shape import instantiate
from .jvp import DifferentiatedTracer

# (operands, series of each, **params) -> (result, its series): rules that users register, in place
# of the jvp rule. The terms of a series are derivatives over factorials.
Rule = Callable[..., tuple[Any, Sequence[Any]]]
jet_rules: dict[Primitive, Rule] = {}


@final
class _Application:
    """An operation on towers, from which the derivatives of its results are made."""

    __slots__ = ("number", "prim", "args", "params", "avals", "rules", "slopes")

    def __init__(self, number: int, prim: Primitive, args: tuple, params: Params,
                 primals: Sequence[Array], rules: tuple | None = None) -> None:
        self.number, self.prim, self.args, self.params = number, prim, args, params
        self.avals = [typeof(x).to_tangent_aval() for x in primals]
        self.rules = rules              # (function, rules) of a custom_jvp call
        self.slopes: list[Any] | None = None        # towers or Zeros, one for each result


class JetTracer(DifferentiatedTracer):
    """A value, and the origin of the tower of its derivative.

    >>> from olympus.experimental.jet import JetTracer, jet
    >>> jet(lambda x: print(type(x) is JetTracer, x), (2.0,), ([1.0],))
    True JetTracer(~float32[])
    (None, None)
    """

    __slots__ = ("_maker", "_place")

    def __init__(self, trace: JetTrace, primal: ArrayLike, maker: _Application | Tangent,
                 place: int = 0) -> None:
        self._trace = trace
        self.aval = typeof(primal)
        # `maker` is an application, or the tower of the derivative itself (Zero for a constant).
        self._primal, self._maker, self._place = primal, maker, place

    @property
    def _slope(self) -> Tangent | None:
        """The tower of the derivative, a Zero, or None if it has not been made."""
        maker = self._maker
        if type(maker) is not _Application:
            return maker
        return None if maker.slopes is None else maker.slopes[self._place]


class JetTrace(Trace):
    """Applies operations to values, and remembers them to make derivatives on demand.

    >>> from olympus.experimental.jet import JetTrace, jet
    >>> jet(lambda x: print(type(x._trace) is JetTrace, x._trace.order), (2.0,), ([1.0],))
    True 1
    (None, None)
    """

    __slots__ = ("order", "made", "numbers")
    parent: Trace

    def __init__(self, parent: Trace, order: int) -> None:
        super().__init__(parent)
        self.order = order
        # (primitive, operands, params) -> (operands, which this keeps alive, results)
        self.made: dict[Any, tuple[tuple, Any]] = {}
        self.numbers = count()

    def mine(self, x: object) -> bool:
        """Whether a value is a tower of this trace."""
        return type(x) is JetTracer and x._trace is self

    def process(self, prim: Primitive, args: tuple, params: Params) -> Array | list[Array]:
        if not any(map(self.mine, args)):
            return self.below(prim, args, params)
        if isinstance(prim, Higher) and prim.called:    # its body is written out
            body, = prim.bodies(params)
            return eval_closed(body, *args)
        key = None
        if not prim.effectful:
            key = prim, tuple([id(a) for a in args]), tuple(params.items())
            try:
                return self.made[key][1]
            except KeyError:
                pass
            except TypeError:       # params that are not hashable
                key = None
        if prim in jet_rules:
            out = self.by_rule(jet_rules[prim], args, params)
        else:
            primal = self.below(prim, [a._primal if self.mine(a) else a for a in args], params)
            several = primal if prim.multiple_results else [primal]
            maker = _Application(next(self.numbers), prim, args, params, several)
            out = [JetTracer(self, x, maker, i) for i, x in enumerate(several)]
            out = out if prim.multiple_results else out[0]
        if key is not None:
            self.made[key] = args, out
        return out

    def below(self, prim: Primitive, args: Sequence[Array], params: Params) -> Any:
        """Bind in the parent trace."""
        for a in args:
            if isinstance(a, Tracer):
                check_usable(a)
        ctx.trace = self.parent
        try:
            return self.parent.process(prim, tuple(args), params)
        finally:
            ctx.trace = self

    def by_rule(self, rule: Rule, args: tuple, params: Params) -> Array | list[Array]:
        """The results of a user's rule, which gives all orders at once."""
        primals = [a._primal if self.mine(a) else a for a in args]
        derivatives = [self.derivatives([a])[0] if self.mine(a) else None for a in args]
        ctx.trace = self.parent
        try:
            series = [[full_like(a, 0)] * self.order if terms is None else
                      [t / factorial(k) for k, t in enumerate(terms, 1)]
                      for a, terms in zip(args, derivatives, strict=True)]
            out, terms = rule(primals, series, **params)
            several = isinstance(out, (tuple, list))
            outs, series_out = (out, terms) if several else ([out], [terms])
            series_out = [[t * factorial(k) for k, t in enumerate(ts, 1)] for ts in series_out]
        finally:
            ctx.trace = self
        towers = [self.tower(x, ts) for x, ts in zip(outs, series_out, strict=True)]
        return towers if several else towers[0]

    def tower(self, primal: ArrayLike, terms: Sequence[Array]) -> JetTracer:
        """A value with these derivatives; higher ones are zero."""
        aval = typeof(primal).to_tangent_aval()
        slope: Any = Zero(aval)
        for term in reversed(terms):
            slope = JetTracer(self, term, slope)
        return JetTracer(self, primal, slope) if terms else primal

    def process_custom(self, prim: Primitive, fun: Callable, rules: object, args: tuple,
                       params: Params) -> list[Array]:
        if not any(map(self.mine, args)):
            ctx.trace = self.parent
            try:
                return self.parent.process_custom(prim, fun, rules, args, params)
            finally:
                ctx.trace = self
        if prim.what != "custom_jvp":       # its rules are for reverse mode
            return fun(*args)
        ctx.trace = self.parent
        try:
            primals = self.parent.process_custom(
                prim, fun, rules, tuple([a._primal if self.mine(a) else a for a in args]), params)
        finally:
            ctx.trace = self
        maker = _Application(next(self.numbers), prim, args, params, primals, (fun, rules))
        return [JetTracer(self, x, maker, i) for i, x in enumerate(primals)]

    def derivatives(self, towers: Sequence[Array]) -> list[list[Array]]:
        """The derivatives of each tower, from the first up to the trace's order."""
        derivatives: list[list[Any]] = [[] for _ in towers]
        zeros = [typeof(x).to_tangent_aval() for x in towers]
        level: list[Any] = list(towers)
        for _ in range(self.order):
            self.differentiate(level)
            level = [x._slope if self.mine(x) else None for x in level]
            for terms, x, zero in zip(derivatives, level, zeros, strict=True):
                terms.append(x._primal if self.mine(x) else
                             instantiate(Zero(zero)) if x is None or type(x) is Zero else x)
        return derivatives

    def differentiate(self, towers: Sequence[Array]) -> None:
        """Make the slopes of towers, and of everything they are computed from, oldest first."""
        needed: dict[int, _Application] = {}
        pending: list[Any] = list(towers)
        while pending:
            x = pending.pop()
            if self.mine(x) and x._slope is None and x._maker.number not in needed:
                needed[x._maker.number] = x._maker
                pending += x._maker.args
        for _, maker in sorted(needed.items()):
            maker.slopes = self.slopes(maker)

    def slopes(self, maker: _Application) -> list[Tangent]:
        """The first derivatives of an application's results, by its jvp rule on towers."""
        prim = maker.prim
        tangents = [x._slope if self.mine(x) else Zero(typeof(x).to_tangent_aval())
                    for x in maker.args]
        if all(type(t) is Zero for t in tangents):
            return [Zero(a) for a in maker.avals]
        if prim.jvp is None:
            raise missing_rule(prim, "differentiated; it has no derivative; apply "
                               "olympus.lax.stop_gradient to its operands, or give a rule in "
                               "olympus.experimental.jet.jet_rules.")
        if maker.rules is not None:
            results = prim.jvp(*maker.rules, maker.args, tangents, **maker.params)
        else:
            results = prim.jvp(maker.args, tangents, **maker.params)
        slopes = pair(prim, "jvp", "tangents", results, maker.args, maker.params)[1]
        return list(slopes) if prim.multiple_results else [slopes]


def jet_flat(fun: Callable[..., Sequence[Array]], primals: Sequence[ArrayLike],
             series: Sequence[Sequence[Array]], order: int
             ) -> tuple[list[Array], list[list[Array]]]:
    """The results of a flat function, and their derivatives up to an order, in the current trace.

    `series` has the derivatives of each operand; () for a constant.
    """
    trace = JetTrace(ctx.trace, order)
    args = [trace.tower(x, terms) for x, terms in zip(primals, series, strict=True)]
    outer = enter(trace)
    try:
        outs: list[Any] = list(fun(*args))
        terms = trace.derivatives(outs)
    finally:
        leave(outer)
        trace.alive = False
    return [x._primal if trace.mine(x) else x for x in outs], terms
