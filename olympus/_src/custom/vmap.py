"""custom_vmap: a function with a user's rule for vmap."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..base.source import filter_traceback
from ..base.typing import Array, ArrayLike, P, Params, PyTree, R
from ..base.util import name_of
from ..control.bodies import stage_body
from ..control.call import linearize_program
from ..control_flow.map import map as loop_map
from ..core.context import ThreadState, ctx
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, derived
from ..core.primitive import (
    Axis, Cotangent, Linear, Tangent, Transposed, Zero, program_uses_axis, spread_tangents,
)
from ..core.staging import closure_convert, recorder, stage
from ..core.trace import REFERENCES, typeof
from ..interpreters.batching import BatchTrace, batch_flat, batch_program, to_axis
from ..interpreters.dce import dce_closed
from ..interpreters.jvp import jvp_flat, jvp_program
from ..interpreters.partial_eval import TapeTrace
from ..interpreters.transpose import transpose_program
from ..lax.shape import instantiate, reduce_sum
from ..types.avals import has_tangent, is_float0
from ..types.shape import definitely_equal
from ..types.tree import broadcast_prefix, explain_mismatch, tree_flatten, tree_map, tree_unflatten
from ..types.tree_registry import PyTreeDef
from .rules import CustomCall, CustomFunction, Rules, WithTangents, check_pair, closed_over, merged

Flagged = list[tuple[Array, bool]]      # (value, whether it is mapped)


class custom_vmap(CustomFunction[P, R]):
    """Decorator: under vmap the rule given to `def_vmap` runs instead of the function.

    Derivatives are the function's, and under vmap the rule's.

    Args: fun: a function of pytrees of arrays.

    >>> import olympus, olympus.numpy as onp
    >>> @olympus.custom_batching.custom_vmap
    ... def f(x, y):
    ...     return x + y
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, x, y):
    ...     return onp.full(axis_size, -1.), True
    >>> print(f(1., 2.), olympus.vmap(f)(onp.ones(2), onp.ones(2)))
    3.0 [-1. -1.]
    """

    what = "custom_vmap"

    def __init__(self, fun: Callable[P, R]) -> None:
        super().__init__(fun)
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., tuple[PyTree, PyTree]]
                 ) -> Callable[..., tuple[PyTree, PyTree]]:
        """Set the rule `(axis_size, in_batched, *args) -> (out, out_batched)`; return it.

        Mapped arrays have the mapped axis in front. `in_batched` is a list, per argument a pytree
        of bools; `out_batched` has the structure of `out`, or of a prefix of it.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.vmap_rule is None:
            raise AttributeError("custom_vmap: No batching rule defined for custom_vmap function "
                                 f"{name_of(self.fun)} using def_vmap. Define it before the first "
                                 "call.")
        try:
            leaves, tree = tree_flatten(self.resolve(args, kwargs))
            own = _UserRule(self, tree)
            # Without any trace nothing is mapped: the function runs in Python.
            if ctx.trace is ThreadState.trace:
                out = own.run(*leaves)
            else:
                # Closed-over values become operands, so that traces see them.
                body = stage_body(self.fun, tree, list(map(typeof, leaves)))
                own.out_tree = body.out_tree
                rule = _Shifted(own, len(body.consts)) if body.consts else own
                prim = custom_vmap_call_p
                out = prim.bind(*body.consts, *leaves, **prim.pack(
                    rule, body.program, {"name": name_of(self.fun)}))
            return tree_unflatten(own.out_tree, out)
        except Exception as error:
            filter_traceback(error)
            raise


# Each transformation wraps the rule once more:
#   _UserRule         the user's rule
#   _Shifted          the rule behind operands that the function closes over
#   _Differentiated   the rule of (f, df); _Tangent: of df alone; _Cotangent: of its transpose
#   _Within           the rule under a vmap to which it does not apply
class _VmapRule(Rules):
    """A flat rule: (axis size, flags of mapped arguments, args) -> outs, flags of mapped ones."""

    __slots__ = ()
    rule: Any = None    # the rule from which this one derives
    num_leading = 0     # leading operands: closed-over values, which the rule never sees

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[ArrayLike]
                 ) -> tuple[list[Array], list[bool]]:
        raise NotImplementedError

    def decides(self, mapped: Sequence[bool]) -> bool:
        """Whether the rule applies, given flags of mapped operands."""
        return any(mapped)

    def seal(self) -> None:
        """Note that the call is staged, so values that the rule closes over end before it runs."""
        self.rule.seal()


class _NothingMapped(Exception):
    """Without mapped operands, a rule does not give unmapped outputs."""


class _Asked(threading.local):
    """The users' rules that this thread runs now without mapped operands."""

    rules: tuple[Any, ...] = ()


_asked = _Asked()


class _UserRule(_VmapRule):
    """The user's rule in one call of a decorated function: `run` is the flat function."""

    # staged: whether the function was staged. sealed: whether its rule closes over values of that
    # staging, which have ended when the rule runs.
    __slots__ = ("fun", "user_rule", "in_tree", "out_tree", "staged", "sealed")

    def __init__(self, owner: custom_vmap, in_tree: PyTreeDef) -> None:
        self.fun, self.in_tree = owner.fun, in_tree
        self.user_rule: Any = owner.vmap_rule
        self.names, self.optimize_remat = (name_of(self.user_rule),), False
        self.num_contents = 0
        self.out_tree: Any = None
        self.staged = self.sealed = False

    def seal(self) -> None:
        self.staged, self.sealed = True, bool(closed_over(self.user_rule, references=True))

    def run(self, *flat: object) -> list[Array]:
        leaves, self.out_tree = tree_flatten(self.fun(*self.in_tree.unflatten(flat)))
        return leaves

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[ArrayLike]
                 ) -> tuple[list[Array], list[bool]]:
        what = f"custom_vmap {name_of(self.fun)}: custom vmap rule ({self.names[0]})"
        lost = TypeError(f"{what} closes over a traced value or a reference, and the function was "
                         "staged (by jit, scan …) before it was mapped; only arguments reach the "
                         "rule then; pass it as an argument of the function.")
        if self.sealed:
            raise lost
        outer = _asked.rules
        if not any(batched):
            if any(rule is self.user_rule for rule in outer):
                raise _NothingMapped    # it calls its own function: without this, for ever
            _asked.rules = (*outer, self.user_rule)
        try:
            result = self.user_rule(size, list(self.in_tree.unflatten(batched)),
                                    *self.in_tree.unflatten(args))
        finally:
            _asked.rules = outer
        into = recorder(ctx.trace) if self.staged else None
        if into is not None and any(type(x) in REFERENCES for x, _ in into.consts.values()):
            raise lost      # the rule has touched a reference that is a global
        out, out_batched = check_pair(what, result, "output, whether each is mapped")
        leaves, tree = tree_flatten(out)
        try:
            flags = [bool(f) for f in broadcast_prefix(out_batched, out)]
        except ValueError as error:
            raise ValueError("custom_vmap: structure of output value and output batching "
                             f"specification returned by custom vmap rule ({self.names[0]}) do "
                             f"not match: {error}") from None
        if any(flags) and not any(batched):
            raise _NothingMapped
        if self.out_tree != tree:
            remarks = "; ".join(explain_mismatch(self.out_tree, tree)[:4])
            raise ValueError("custom_vmap: structure of output returned by custom vmap rule "
                             f"({self.names[0]}) does not match that of original custom-vmapped "
                             f"function {name_of(self.fun)}; {remarks}; return the same structure.")
        for x, flag in zip(leaves, flags, strict=True):
            aval = typeof(x)
            if flag and not (aval.shape and definitely_equal(aval.shape[0], size)):
                raise ValueError(f"{what} returned {aval} as mapped; a leading axis of size {size} "
                                 "is required; return False for it in out_batched otherwise.")
        return leaves, flags


class _Shifted(_VmapRule):
    """The rule of a function that takes the values it closes over as leading operands."""

    __slots__ = ("rule", "num_leading")

    def __init__(self, rule: _VmapRule, num_leading: int) -> None:
        super().__init__(rule)
        self.rule, self.num_leading = rule, num_leading

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[ArrayLike]
                 ) -> tuple[list[Array], list[bool]]:
        n = self.num_leading
        if any(batched[:n]):
            raise TypeError(f"custom_vmap: the function of the rule {self.names[0]} closes over a "
                            "mapped value; the rule knows nothing of it; pass it as an argument.")
        return self.rule(size, batched[n:], args[n:])


class _Derived(_VmapRule):
    """The rule of a function that is derived from `program`; it takes operands, then (co)tangents.

    nonzero: flags of the operands of `program` that have a (co)tangent.
    """

    __slots__ = ("rule", "program", "nonzero")

    def __init__(self, rule: _VmapRule, program: ClosedOlympuspr, nonzero: tuple[bool, ...]
                 ) -> None:
        super().__init__(rule)
        self.rule, self.program, self.nonzero = rule, program, nonzero

    def function(self, size: int, mapped: Sequence[bool]
                 ) -> tuple[Callable[..., list[Array]], list[bool]]:
        """The rule as a function of the operands, which fills the list of flags of its outputs."""
        # The first operands are values that the function closes over: the rule never sees them.
        if any(self.nonzero[:self.rule.num_leading]):
            raise TypeError(f"custom_vmap: the function of the rule {self.names[0]} closes over a "
                            "differentiated value; the rule knows nothing of it; pass it as an "
                            "argument.")
        return _function(self.rule, size, mapped)


def _function(rule: _VmapRule, size: int, mapped: Sequence[bool]
              ) -> tuple[Callable[..., list[Array]], list[bool]]:
    """The rule as a function of the operands, which fills the list of flags of its outputs."""
    flags: list[bool] = []

    def run(*xs: ArrayLike) -> list[Array]:
        outs, flags[:] = rule(size, mapped, xs)
        return outs

    return run, flags


class _Differentiated(_Derived):
    """The rule of (operands, nonzero tangents) -> (outs, tangents)."""

    __slots__ = ()

    def pairs(self, size: int, batched: Sequence[bool], args: Sequence[ArrayLike]
              ) -> tuple[Flagged, Flagged]:
        """The outputs, and the tangents of those that can have one, with flags."""
        # The rule gets one flag for an operand and its tangent. If no operand is mapped together
        # with its tangent, take the derivative of the rule without mapped operands, and map that:
        # results of primals alone, or of tangents alone, are then not repeated. If the rule returns
        # mapped outputs all the same, it gets the flags of everything mapped.
        n = len(self.nonzero)
        mapped_tangents = iter(batched[n:])
        moving = [nz and next(mapped_tangents) for nz in self.nonzero]
        pairs = list(zip(batched[:n], moving, strict=True))
        if not any(m and t for m, t in pairs):
            try:
                return self._batch(size, [False] * n, batched, args)
            except _NothingMapped:
                if not any(batched):
                    raise
        return self._batch(size, [m or t for m, t in pairs], batched, args)

    def _batch(self, size: int, mapped: Sequence[bool], batched: Sequence[bool],
              args: Sequence[ArrayLike]) -> tuple[Flagged, Flagged]:
        """`pairs` by the rule for the operands `mapped`, with vmap over the other mapped ones."""
        n, k = len(self.nonzero), len(self.program.out_avals)
        wanted = [*mapped, *(m for m, nz in zip(mapped, self.nonzero, strict=True) if nz)]
        flat = [_axis_in_front(x, have, want, size)
                for x, have, want in zip(args, batched, wanted, strict=True)]
        run, flags = self.function(size, mapped)

        def both(*xs: ArrayLike) -> list[Array]:
            outs, tangents = jvp_flat(run, xs[:n], merged([
                None if nz else Zero(typeof(x).to_tangent_aval())
                for x, nz in zip(xs[:n], self.nonzero, strict=True)], xs[n:]))
            # All outputs of the program that can have tangents have them (`_moving`): so must the
            # rule's.
            moving[:] = [not _still(t) for t in tangents]
            return [*outs, *(instantiate(t) for t in tangents if not _still(t))]

        moving: list[bool] = []
        outs, dims = batch_flat(both, Axis(size), flat, [
            0 if have and not want else None for have, want in zip(batched, wanted, strict=True)])
        all_flags = [*flags, *(f for f, m in zip(flags, moving, strict=True) if m)]
        flagged = [(x, f) if d is None else (to_axis(x, d, 0, size), True)
                   for x, d, f in zip(outs, dims, all_flags, strict=True)]
        return flagged[:k], flagged[k:]

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[ArrayLike]
                 ) -> tuple[list[Array], list[bool]]:
        outs, tangents = self.pairs(size, batched, args)
        return [x for x, _ in (*outs, *tangents)], [f for _, f in (*outs, *tangents)]


class _Tangent(_Differentiated):
    """The rule of (operands, nonzero tangents) -> tangents."""

    __slots__ = ()

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[ArrayLike]
                 ) -> tuple[list[Array], list[bool]]:
        _, tangents = self.pairs(size, batched, args)
        return [t for t, _ in tangents], [f for _, f in tangents]

    def decides(self, mapped: Sequence[bool]) -> bool:
        # The rule does not handle tangents of closed-over values.
        n = len(self.nonzero if any(self.nonzero[:self.rule.num_leading]) else mapped)
        return any(mapped[:n])


class _Cotangent(_Tangent):
    """The rule of (operands, cotangents of outputs) -> cotangents of the operands `nonzero`."""

    __slots__ = ()

    def decides(self, mapped: Sequence[bool]) -> bool:
        return any(mapped[:len(self.nonzero)])     # if only cotangents are mapped, plain vmap

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[ArrayLike]
                 ) -> tuple[list[Array], list[bool]]:
        if not any(batched):
            raise _NothingMapped
        n = len(self.nonzero)
        # Every element has cotangents of its own: operands that have one count as mapped.
        mapped = [m or nz for m, nz in zip(batched[:n], self.nonzero, strict=True)]
        run, flags = self.function(size, mapped)
        primals = [_axis_in_front(x, have, want, size)
                   for x, have, want in zip(args[:n], batched[:n], mapped, strict=True)]
        program, consts = closure_convert(stage(run, list(map(typeof, primals))))
        moving = [f for a, f in zip(program.out_avals, flags, strict=True) if has_tangent(a)]
        # Elements share an output that the rule leaves unmapped: its cotangent is a sum over them.
        cts = [_axis_in_front(ct, have, True, size)
               for ct, have in zip(args[n:], batched[n:], strict=True)]
        cts = [ct if f else reduce_sum(ct, (0,)) for ct, f in zip(cts, moving, strict=True)]
        back = cotangent_program(program, (*(False,) * len(consts), *self.nonzero))
        out = eval_closed(back, *consts, *primals, *cts)
        return out, [True] * len(out)


class _Within(_VmapRule):
    """The rule of a function that is mapped over `axis` by its operations, not by its rule."""

    __slots__ = ("rule", "axis", "dims")

    def __init__(self, rule: _VmapRule, axis: Axis, dims: Sequence[int | None]) -> None:
        super().__init__(rule)
        self.rule, self.axis, self.dims = rule, axis, list(dims)

    def __call__(self, size: int, batched: Sequence[bool], args: Sequence[ArrayLike]
                 ) -> tuple[list[Array], list[bool]]:
        run, flags = _function(self.rule, size, batched)
        # The user's rule gets the outer axis in front: it shifts the axes mapped here by one.
        outs, dims = batch_flat(run, self.axis, args, [
            None if d is None else d + b for d, b in zip(self.dims, batched, strict=True)])
        return [to_axis(x, d, int(f), self.axis.size)
                for x, d, f in zip(outs, dims, flags, strict=True)], flags

    def decides(self, mapped: Sequence[bool]) -> bool:
        return self.rule.decides(mapped)


def _axis_in_front(x: ArrayLike, have: bool, want: bool, size: int) -> ArrayLike:
    """`x`, repeated along a new leading axis if it must be mapped and is not."""
    return to_axis(x, None, 0, size) if want and not have else x


def _still(t: Tangent) -> bool:
    return is_float0(t.aval if type(t) is Zero else typeof(t))


def differentiated_program(closed: ClosedOlympuspr, nonzero: tuple[bool, ...]) -> ClosedOlympuspr:
    """(operands, nonzero tangents) -> (outs, tangents of the outs that can have one)."""
    return jvp_program(closed, nonzero, _moving(closed))[0]


def tangent_program(closed: ClosedOlympuspr, nonzero: tuple[bool, ...]) -> ClosedOlympuspr:
    """(operands, nonzero tangents) -> tangents of the outputs that can have one."""
    both, k = differentiated_program(closed, nonzero), len(closed.out_avals)
    return _silent(dce_closed(both, [i >= k for i in range(len(both.out_avals))])[0])


@derived
def cotangent_program(closed: ClosedOlympuspr, nonzero: tuple[bool, ...]) -> ClosedOlympuspr:
    """(operands, cotangents of outputs that can have one) -> cotangents of the operands `nonzero`.
    """
    split, nonzero_out = linearize_program(closed, nonzero)
    n, num_linear = len(nonzero), sum(nonzero)
    back, _ = transpose_program(
        split.unknown, [*[False] * len(split.residuals), *[True] * num_linear],
        [True] * sum(split.unknown_out))
    moving, first = _moving(closed), _silent(split.known)

    # Reverse mode in one program: the known half again, for the residuals, then the transpose.
    # Cotangents of outputs without a tangent (not `nonzero_out`) are dropped.
    def run(*args: Array) -> list[Array]:
        known = eval_closed(first, *args[:n])
        computed = known[len(known) - split.num_computed:]
        wanted = [g for g, m in zip(nonzero_out, moving, strict=True) if m]
        cts = [ct for ct, on in zip(args[n:], wanted, strict=True) if on]
        return eval_closed(back, *split.residual_values(args[:n], computed), *cts)

    avals = [a.to_tangent_aval() for a, m in zip(closed.out_avals, moving, strict=True) if m]
    return stage(run, [*closed.in_avals, *avals])


def _silent(closed: ClosedOlympuspr) -> ClosedOlympuspr:
    """The program without its effects, which happened in the primal call."""
    # Equations with effects and results stay, because the results may be needed.
    pr = closed.olympuspr
    if not pr.effects:
        return closed
    return closed.replace(olympuspr=pr.replace(eqns=[
        e for e in pr.eqns if not e.effects or e.outvars]))


def _moving(closed: ClosedOlympuspr) -> tuple[bool, ...]:
    """Flags of the outputs that can have a tangent."""
    return tuple(map(has_tangent, closed.out_avals))


class _Staged:
    """A function that evaluates a program."""

    __slots__ = ("closed",)

    def __init__(self, closed: ClosedOlympuspr) -> None:
        self.closed = closed

    def __call__(self, *args: Array) -> list[Array]:
        return eval_closed(self.closed, *args)


class CustomVmapCall(CustomCall):
    """params: name, call_olympuspr, rule. The function is staged before any trace sees it.

    Derivatives are calls, too, whose rules are derivatives of the rule. On a tape, primals and
    tangents are two calls: one is known, and the other linear.
    """

    what, with_contents = "custom_vmap", "VmapWithContents"
    kept = ("rule",)

    def function(self, closed: ClosedOlympuspr) -> _Staged:
        return _Staged(closed)

    #   f              ── jvp ───────►  (f, df): _Differentiated
    #   (f, df)        ── on a tape ─►  f, at once, and df, recorded: _Tangent
    #   df             ── transpose ─►  its transpose: _Cotangent, whose transpose is df
    # Each stays a call with a rule, so that vmap of any derivative uses the user's rule.
    def jvp(self, fun: _Staged, rules: _VmapRule, primals: Sequence[Array],
            tangents: Sequence[Tangent], **params: Hashable) -> WithTangents:
        closed = fun.closed
        nonzero = tuple([type(t) is not Zero for t in tangents])
        dense = [t for t in tangents if type(t) is not Zero]
        both = _Staged(differentiated_program(closed, nonzero))
        out = ctx.trace.process_custom(self, both, _Differentiated(rules, closed, nonzero),
                                       (*primals, *dense), params)
        k = len(closed.out_avals)
        return out[:k], spread_tangents(closed.out_avals, _moving(closed), out[k:])

    def on_tape(self, tape: TapeTrace, fun: _Staged, rules: _Differentiated | _Tangent, args: tuple,
                params: Params) -> Sequence[Array]:
        # Split the call of (f, df) in two, unless a primal is unknown itself.
        if type(rules) is _Differentiated:
            n = len(rules.nonzero)
            if not any(map(tape.owns, args[:n])):
                outs = tape.process_custom(self, _Staged(rules.program), rules.rule, args[:n],
                                           params)
                tangent = tangent_program(rules.program, rules.nonzero)
                rule = _Tangent(rules.rule, rules.program, rules.nonzero)
                return [*outs, *tape.record(self, args, self.pack(rule, tangent, params))]
        return tape.record(self, args, self.pack(rules, fun.closed, params))

    def stage(self, fun: _Staged, rules: _VmapRule, args: tuple, params: Params) -> list[Array]:
        # The equation outlives the traces whose values the user's rule may close over.
        rules.seal()
        return ctx.trace.process(self, args, self.pack(rules, fun.closed, params))

    def transpose(self, cts: Sequence[Tangent], *args: Transposed, **params: Any
                  ) -> Sequence[Cotangent]:
        rules, rest = self.unpack(params)
        n = len(getattr(rules, "nonzero", ()))
        linear = [type(a) is Linear for a in args]
        # If it is linear in operands other than the (co)tangents, the function itself is linear:
        # transpose its body.
        if not isinstance(rules, _Tangent) or linear != [i >= n for i in range(len(args))]:
            return super().transpose(cts, *args, **params)
        kind, make = (_Tangent, tangent_program) if type(rules) is _Cotangent else \
            (_Cotangent, cotangent_program)
        out = ctx.trace.process_custom(
            self, _Staged(make(rules.program, rules.nonzero)),
            kind(rules.rule, rules.program, rules.nonzero),
            (*args[:n], *map(instantiate, cts)), rest)
        return [*[None] * n, *out]

    def vmap(self, trace: BatchTrace, fun: _Staged, rules: _VmapRule, vals: Sequence[ArrayLike],
             dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        mapped = [d is not None for d in dims]
        if not rules.decides(mapped):
            name = trace.axis.name
            # The rule does not apply to this axis, but may apply to an outer one: keep it.
            if any(mapped) or (name is not None and program_uses_axis(fun.closed, name)):
                body, _ = batch_program(fun.closed, trace.axis, dims, True)
                fun, rules = _Staged(body), _Within(rules, trace.axis, dims)
            out = ctx.trace.process_custom(self, fun, rules, tuple(vals), params)
            return out, [0 if type(rules) is _Within else None] * len(out)
        # The user's rule runs in the parent trace, on arrays of all elements.
        args = [x if d is None else to_axis(x, d, 0, trace.axis.size)
                for x, d in zip(vals, dims, strict=True)]
        outs, flags = rules(trace.axis.size, mapped, args)
        return outs, [0 if flag else None for flag in flags]


custom_vmap_call_p = CustomVmapCall("custom_vmap_call")


def sequential_vmap(f: Callable[..., PyTree]) -> custom_vmap:
    """Decorator: under vmap the function runs for one element after the other, in a loop.

    Args: f: a function of pytrees of arrays.

    >>> f = olympus.custom_batching.sequential_vmap(lambda x: onp.sum(x))
    >>> print(olympus.vmap(f)(onp.ones((2, 3))))
    [3. 3.]
    """
    made = custom_vmap(f)

    @made.def_vmap
    def rule(axis_size: int, in_batched: Sequence[PyTree], *args: PyTree) -> tuple[PyTree, PyTree]:
        leaves, tree = tree_flatten(args)
        flags = tree_flatten(tuple(in_batched))[0]
        mapped = [x for x, flag in zip(leaves, flags, strict=True) if flag]
        if not mapped:      # only tangents are: say that all is mapped, which repeats the others
            return args, True

        def one(elements: Sequence[object]) -> PyTree:
            rest = iter(elements)
            return made(*tree.unflatten([next(rest) if flag else x
                                         for x, flag in zip(leaves, flags, strict=True)]))

        out = loop_map(one, mapped)
        return out, tree_map(lambda _: True, out)

    return made
