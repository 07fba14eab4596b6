"""custom_jvp: a function whose tangents a user's rule computes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from typing import Any

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, F, P, PyTree, R
from ..base.util import lazy_imports, name_of
from ..control.bodies import check_callable
from ..core.evaluate import eval_closed
from ..core.primitive import Tangent, Zero
from ..core.staging import closure_convert, stage
from ..core.tags import pvary
from ..core.trace import Tracer, ctx, typeof
from ..interpreters.batching import to_axis
from ..lax.families import add
from ..lax.shape import instantiate, zeros_of
from ..types.avals import ShapedArray, is_float0
from ..types.tree import tree_flatten, tree_map, tree_structure
from .rules import (
    Batched, Chosen, CustomCall, Ruled, Rules, SymbolicZero, UserRules, WithFailure, WithTangents,
    alike, at, check_pair, check_structure, leaf_paths, merged, packed, run_batched, unbatched,
    with_consts,
)

with lazy_imports(__name__):
    from . import apart as _varied, as_functions as _as_functions  # named axes; traces of users


class custom_jvp(Ruled[P, R]):
    """Decorator: derivatives of the function come from the rule given to `defjvp` or `defjvps`.

    Args:
      fun: the function; its arguments and result are pytrees of arrays.
      nondiff_argnums: positions of arguments without derivative, which the rule gets first.
      nondiff_argnames: the same by name.

    >>> import olympus
    >>> @olympus.custom_jvp
    ... def cube(x):
    ...     return x * x * x
    >>> @cube.defjvp
    ... def cube_jvp(primals, tangents):
    ...     return cube(*primals), 3 * primals[0] ** 2 * tangents[0]
    >>> float(olympus.grad(cube)(2.0))
    12.0
    """

    what, _rules, _setters = "custom_jvp", ("jvp",), "defjvp or defjvps"
    jvp: Callable[..., Any] | None

    @api_boundary
    def defjvp(self, jvp: F, symbolic_zeros: bool = False) -> F:
        """Set the rule `jvp(*nondiff, primals, tangents) -> (out, tangent of out)`; return it.

        `primals` and `tangents` are tuples, one entry per differentiable argument. With
        `symbolic_zeros` tangents known to be zero are `SymbolicZero` objects instead of zeros.
        """
        check_callable(f"custom_jvp {name_of(self.fun)}", jvp=jvp)
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    @api_boundary
    def defjvps(self, *jvps: Callable[..., PyTree] | None) -> None:
        """Set one rule per argument: `jvp(tangent, out, *primals) -> tangent of out`, or None."""
        if self.nondiff_argnums:
            raise TypeError(f"custom_jvp {name_of(self.fun)}: defjvps given with nondiff_argnums "
                            f"{self.nondiff_argnums}; it knows no such arguments; use defjvp.")

        def jvp(primals: tuple, tangents: tuple) -> tuple[PyTree, PyTree]:
            if len(jvps) != len(primals):
                raise TypeError(f"custom_jvp {name_of(self.fun)}: defjvps has {len(jvps)} rules; "
                                f"one is required for each of {len(primals)} arguments; pass None "
                                "where the derivative is zero.")
            # Call the decorated function, so that higher derivatives come from the rules, too.
            call: Any = self
            out = call(*primals)
            total = None
            for rule, t in zip(jvps, tangents, strict=True):
                if rule is not None:
                    term = rule(t, out, *primals)
                    total = term if total is None else tree_map(add, total, term)
            if total is None:
                total = tree_map(lambda x: zeros_of(typeof(x).to_tangent_aval()), out)
            return out, total

        self.defjvp(jvp)


# Rules here: (primals, tangents) -> (outs, tangents of outs).
class _JvpRules(UserRules):
    """One call of a decorated function."""

    __slots__ = ()

    def __call__(self, primals: Sequence[ArrayLike], tangents: Sequence[Array | Zero]
                 ) -> tuple[list[Array], list[Array | Zero]]:
        unflatten = self.in_tree.unflatten
        start = _varied.Apart(primals) if ctx.axes else None
        result = self.rules[0](*self.statics.values(), tuple(unflatten(primals)),
                               tuple(unflatten(self.zeros(tangents))))
        what = f"Custom JVP rule {self.names[0]} for function {name_of(self.fun)}"
        out, t_out = check_pair(what, result, "primal and tangent outputs")
        check_structure(
            what, out, t_out, "must produce primal and tangent outputs\n  with equal container "
            f"(pytree) structures, but got {tree_structure(out)} and {tree_structure(t_out)} "
            "respectively")
        leaves = self.output(f"{what} must produce a pair (list or tuple of length two)", out)
        if start is not None:
            leaves = start.varying(leaves)
        return leaves, [_tangent(what, path, x, t) for path, x, t in
                        zip(leaf_paths(self.out_tree), leaves, tree_flatten(t_out)[0], strict=True)]


def _tangent(what: str, path: str, x: Array, t: Any) -> Tangent:
    """A rule's tangent of one output, checked."""
    aval = typeof(x).to_tangent_aval()
    if type(t) in (SymbolicZero, Zero):
        actual, t = t.aval, Zero(aval)
    else:
        actual = typeof(t)
    if not alike(actual, aval):
        raise TypeError("Custom JVP rule must produce primal and tangent outputs with "
                        f"corresponding shapes and dtypes.\n  Expected {aval} (tangent type of "
                        f"{typeof(x)}) but got {actual}.\n  {at(path)}{what}.")
    # An integer output has no derivative: drop the rule's tangent.
    return Zero(aval) if is_float0(aval) else t if type(t) is Zero else pvary(t, aval.vma)


class _StagedJvp(Rules):
    """A rule as a program. Inputs: tracers that it closes over, arguments, tangents."""

    __slots__ = ("program", "still", "still_out", "own", "_found")

    def __init__(self, rule: Rules) -> None:
        super().__init__(rule)
        self.program: Any = None    # `stage` sets these
        self.still: Sequence[Zero | None] = ()
        self.still_out: Sequence[Zero | None] = ()
        self.own, self._found = (0, 0), []

    def stage(self, rule: Rules, avals: Sequence[ShapedArray]) -> list[Tracer]:
        """Stage the rule for arguments of these avals; return the tracers that it closes over."""
        # Every argument that can have a tangent gets one, perhaps zeros: one program serves all
        # calls.
        t_avals = [a.to_tangent_aval() for a in avals]
        self.still = [Zero(a) if is_float0(a) else None for a in t_avals]
        run = packed(rule, len(avals), self.still)
        self.program, self._found = closure_convert(stage(
            run, [*avals, *(a for a in t_avals if not is_float0(a))]))
        self.still_out = run.aux
        return self._found

    def place(self, consts: Sequence[Tracer]) -> None:
        """Make `consts` the leading inputs of the program."""
        self.program = with_consts(self.program, self._found, consts)
        self.own, self._found = (0, len(consts)), []

    def __call__(self, primals: Sequence[Array], tangents: Sequence[Tangent]) -> WithTangents:
        # The leading consts have zero tangents (`differentiate` makes them so).
        out = eval_closed(self.program, *primals, *[
            instantiate(t) for t, z in zip(tangents[self.own[1]:], self.still, strict=True)
            if z is None])
        n = len(self.still_out)
        return out[:n], merged(self.still_out, out[n:])


class _BatchedJvp(Batched):
    __slots__ = ()

    def __call__(self, primals: Sequence[Array], tangents: Sequence[Tangent]) -> WithTangents:
        # A tangent of an array is mapped as its primal is.
        size, t_dims = self.trace.axis.size, self.axes_of(primals, self.dims)
        zeros = [Zero(unbatched(t.aval, d, size)) if type(t) is Zero else None
                 for t, d in zip(tangents, t_dims, strict=True)]
        run = packed(self.rules, len(primals), zeros)
        nonzero = [(t, d) for t, d in zip(tangents, t_dims, strict=True) if type(t) is not Zero]
        vals, dims = run_batched(self.trace, run, [*primals, *(t for t, _ in nonzero)],
                                 [*self.dims, *(d for _, d in nonzero)])
        n = len(run.aux)
        outs = self.place(vals[:n], dims[:n], dims[n:])
        wanted = [d for d, z in zip(self.axes_of(outs, self.out_dims), run.aux, strict=True)
                  if z is None]
        moved = [to_axis(t, d, want, size) if self.mapped else t
                 for t, d, want in zip(vals[n:], dims[n:], wanted, strict=True)]
        return outs, merged([z and Zero(typeof(x).to_tangent_aval())
                             for x, z in zip(outs, run.aux, strict=True)], moved)


class _ChosenJvp(Chosen):
    __slots__ = ()

    def __call__(self, primals: Sequence[Array], tangents: Sequence[Tangent]) -> WithTangents:
        outs, out_tangents = self.rules(primals, tangents)
        return [*compress(outs, self.used)], [*compress(out_tangents, self.used)]


class _JvpWithFailure(WithFailure):
    __slots__ = ()

    def __call__(self, primals: Sequence[Array], tangents: Sequence[Tangent]) -> WithTangents:
        outs, out_tangents = self.rules(primals, tangents)
        flags = self.failure(primals)
        zeros = [Zero(typeof(x).to_tangent_aval()) for x in flags]
        return [*flags, *outs], [*zeros, *out_tangents]


class CustomJvpCall(CustomCall):
    """params, staged: name, call_olympuspr, jvp, symbolic_zeros."""

    what = "custom_jvp"
    kept = ("jvp",)
    staged, batched, chosen = _StagedJvp, _BatchedJvp, _ChosenJvp
    with_failure, with_contents = _JvpWithFailure, "JvpWithContents"
    looked_into = True

    def jvp(self, fun: Callable[..., list[Array]], rules: _JvpRules, primals: Sequence[Array],
            tangents: Sequence[Tangent], **params: Hashable) -> WithTangents:
        return self.differentiate(fun, rules, primals, tangents, params, rules)

    def in_users_trace(self, *call: Any) -> Sequence[Array]:
        return _as_functions.jvp_by_method(self, *call)

    def of_functions(self, args: tuple, **params: Any) -> list[Array]:
        return _as_functions.jvp_of_functions(args, **params)


custom_jvp_call_p = CustomJvpCall("custom_jvp_call")
custom_jvp._prim, custom_jvp._kind = custom_jvp_call_p, _JvpRules
