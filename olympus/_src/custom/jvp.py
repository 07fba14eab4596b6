"""custom_jvp: a function whose tangents a rule of the user computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.typing import P, R
from ..base.util import name_of
from ..control.bodies import check_callable
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr
from ..core.primitive import Zero
from ..core.staging import closure_convert, stage
from ..core.trace import Tracer, ctx, typeof
from ..interpreters.batching import BatchTrace, to_axis
from ..lax.families import add
from ..lax.shape import instantiate, zeros_of
from ..types.avals import is_float0
from ..types.tree import PyTreeDef, tree_flatten, tree_map, tree_unflatten
from .rules import (
    CustomCall,
    CustomFunction,
    Rule,
    SymbolicZero,
    at,
    check_pair,
    check_structure,
    closed_over,
    leaf_paths,
    mapped_by_rule,
    run_batched,
    unbatched,
    with_consts,
)

__all__ = ["custom_jvp", "custom_jvp_call_p"]


class custom_jvp(CustomFunction[P, R]):
    """Decorator: derivatives of the function come from the rule given to `defjvp` or `defjvps`.

    Args:
      fun: the function; its arguments and result are pytrees of arrays.
      nondiff_argnums: positions of arguments that are passed to the rule as they are, in front.
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

    what = "custom_jvp"

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (),
                 nondiff_argnames: Sequence[str] = ()) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule `jvp(*nondiff, primals, tangents) -> (out, tangent of out)`; return it.

        `primals` and `tangents` are tuples, one entry per differentiable argument. With
        `symbolic_zeros` tangents known to be zero are `SymbolicZero` objects instead of zeros.
        """
        check_callable(f"custom_jvp {name_of(self.fun)}", jvp=jvp)
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule per argument: `jvp(tangent, out, *primals) -> tangent of out`, or None."""
        if self.nondiff_argnums:
            raise TypeError(f"custom_jvp {name_of(self.fun)}: defjvps given with nondiff_argnums "
                            f"{self.nondiff_argnums}; it knows no such arguments; use defjvp.")

        def jvp(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
            if len(jvps) != len(primals):
                raise TypeError(f"custom_jvp {name_of(self.fun)}: defjvps has {len(jvps)} rules; "
                                f"one is required for each of {len(primals)} arguments; pass None "
                                "where the derivative is zero.")
            # The decorated function itself: derivatives of the rules come from the rules, too.
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

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.jvp is None:
            raise AttributeError(f"custom_jvp {name_of(self.fun)}: called without a rule; one is "
                                 "required; set it with defjvp or defjvps first.")
        given = self.resolve(args, kwargs)
        leaves, tree = tree_flatten([a for i, a in enumerate(given)
                                     if i not in self.nondiff_argnums])
        call = _JvpCall(self, self.jvp, {i: given[i] for i in self.nondiff_argnums
                                         if i < len(given)}, tree)
        out = ctx.trace.process_custom(
            custom_jvp_call_p, call.run, call, tuple(leaves),
            {"name": name_of(self.fun), "symbolic_zeros": self.symbolic_zeros})
        return call.result(out)


# Rules wrap each other as the call travels:
#   _JvpCall     the user's Python rule
#   _BatchedJvp  a rule under vmap
#   _StagedJvp   a rule as a program: made by staging if it may hold tracers
#   _ShiftedJvp  behind leading operands: made by staging if the function closes over tracers
class _JvpRule:
    """A flat rule: (primals, tangents) -> (outs, tangents of outs); tangents may be `Zero`."""

    __slots__ = ()
    name = ""
    code: object = None
    identity: object = None
    own = (0, 0)

    @property
    def staged_type(self) -> Any:
        return _StagedJvp

    def closed_over(self) -> list[Tracer]:
        return []

    def shifted(self, num_leading: int) -> _JvpRule:
        return _ShiftedJvp(self, num_leading)

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        raise NotImplementedError


class _JvpCall(_JvpRule):
    """One call of a decorated function: `run` is the flat function."""

    __slots__ = ("name", "code", "identity", "fun", "rule", "symbolic_zeros", "statics", "in_tree",
                 "out_tree", "out_avals")

    def __init__(self, owner: custom_jvp, rule: Callable[..., Any], statics: dict[int, Any],
                 in_tree: Any) -> None:
        self.fun, self.symbolic_zeros = owner.fun, owner.symbolic_zeros
        self.rule = rule
        self.name, self.code = name_of(rule), getattr(rule, "__code__", rule)
        # Static arguments by identity: they need not be hashable, and `statics` keeps them alive.
        self.identity = (rule, owner.fun, *map(id, statics.values()))
        self.statics, self.in_tree = statics, in_tree
        self.out_tree: PyTreeDef | None = None      # both known once function or rule has run
        self.out_avals: list[Any] | None = None

    def result(self, leaves: Sequence[Any]) -> Any:
        """The call's result, once the function or its rule has run."""
        assert self.out_tree is not None, "whatever processed the call has run one of the two"
        return tree_unflatten(self.out_tree, leaves)

    def closed_over(self) -> list[Tracer]:
        return closed_over(self.rule, self.fun, *self.statics.values())

    def run(self, *flat: Any) -> list[Any]:
        # In ascending order, as nondiff_argnums is sorted: each insertion finds its final place.
        args = self.in_tree.unflatten(flat)
        for i, value in self.statics.items():
            args.insert(i, value)
        leaves, self.out_tree = tree_flatten(self.fun(*args))
        self.out_avals = list(map(typeof, leaves))
        return leaves

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        # Tangents may be `Zero`, in any place; the user's rule sees arrays or `SymbolicZero`s.
        if self.symbolic_zeros:
            given = [SymbolicZero(t.aval) if type(t) is Zero else t for t in tangents]
        else:
            given = list(map(instantiate, tangents))
        what = f"custom_jvp {name_of(self.fun)}"
        unflatten = self.in_tree.unflatten
        result = self.rule(*self.statics.values(), tuple(unflatten(primals)),
                           tuple(unflatten(given)))
        out, t_out = check_pair(what, result, "output, tangent of the output")
        check_structure(what, out, t_out, "the rule's tangent output is not like its primal output")
        # The function may have run before (staging runs it first), or never: what it returned is
        # known in the first case, and taken from the rule in the second.
        leaves, tree = tree_flatten(out)
        if self.out_tree is not None and self.out_avals is not None and self.out_tree != tree:
            check_structure(what, tree_unflatten(self.out_tree, self.out_avals), out,
                            "the rule's primal output is not like the function's")
        self.out_tree = tree
        t_leaves = [_tangent(what, path, x, t) for path, x, t in
                    zip(leaf_paths(tree), leaves, tree_flatten(t_out)[0])]
        _check_outputs(what, tree, self.out_avals, leaves)
        return leaves, t_leaves


def _check_outputs(what: str, tree: Any, expected: Sequence[Any] | None, leaves: Sequence[Any]
                   ) -> None:
    """The rule's outputs must have the avals of the function's, where those are known."""
    for i, (aval, x) in enumerate(zip(expected or (), leaves)):
        found = typeof(x)
        if (found.shape, found.dtype) != (aval.shape, aval.dtype):
            where = at(leaf_paths(tree)[i])
            raise TypeError(f"{what}: {where}the rule's primal output is {found}; the "
                            f" function's is {aval}, and they must agree; correct the rule.")


def _tangent(what: str, path: str, x: Any, t: Any) -> Any:
    """A rule's tangent of one output, checked."""
    aval = typeof(x).to_tangent_aval()
    if type(t) in (SymbolicZero, Zero):
        found, t = t.aval, Zero(aval)
    else:
        found = typeof(t)
    if found.shape != aval.shape or found.dtype != aval.dtype:
        raise TypeError(f"{what}: {at(path)}the rule returned the output {typeof(x)} with a "
                        f"tangent {found}; the tangent must be {aval}; correct the rule.")
    # An integer output has no derivative: what the rule gave for it is dropped.
    return Zero(aval) if is_float0(aval) else t


class _StagedJvp(_JvpRule):
    """A rule that is a program. Inputs: tracers that it closes over, arguments, tangents."""

    __slots__ = ("name", "program", "nonzero", "flags", "own", "_found")

    def __init__(self, rule: _JvpRule) -> None:
        self.name = rule.name
        self.program: Any = None    # all known once it is staged
        self.nonzero: list[bool] = []
        self.flags: tuple[bool, ...] = ()
        self.own, self._found = (0, 0), []

    def stage(self, rule: _JvpRule, avals: Sequence[Any]) -> list[Any]:
        """Stage the rule for arguments of these avals; the tracers that it closes over."""
        # Every argument that can have a tangent has one here, be it zeros: one program serves all
        # calls.
        t_avals = [a.to_tangent_aval() for a in avals]
        self.nonzero = [not is_float0(t) for t in t_avals]
        n = len(avals)

        def body(*args: Any) -> list[Any]:
            given = iter(args[n:])
            outs, out_tangents = rule(args[:n], [
                next(given) if nz else Zero(a) for a, nz in zip(t_avals, self.nonzero)])
            self.flags = tuple(type(t) is not Zero for t in out_tangents)
            return [*outs, *(t for t in out_tangents if type(t) is not Zero)]

        self.program, self._found = closure_convert(stage(
            body, [*avals, *(a for a, nz in zip(t_avals, self.nonzero) if nz)]))
        return self._found

    def place(self, consts: Sequence[Any]) -> None:
        """Take all of `consts` in front."""
        self.program = with_consts(self.program, self._found, consts)
        self.own, self._found = (0, len(consts)), []

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        # The consts in front come with zero tangents: `differentiate` sees to that.
        given = [instantiate(t) for t, nz in zip(tangents[self.own[1]:], self.nonzero) if nz]
        out = eval_closed(self.program, *primals, *given)
        n = len(self.flags)
        rest = iter(out[n:])
        return out[:n], [next(rest) if nz else Zero(typeof(x).to_tangent_aval())
                         for x, nz in zip(out[:n], self.flags)]


class _ShiftedJvp(_JvpRule):
    """The rule of a function with leading operands that the function closes over."""

    __slots__ = ("name", "rule", "num_leading")

    def __init__(self, rule: _JvpRule, num_leading: int) -> None:
        self.name, self.rule, self.num_leading = rule.name, rule, num_leading

    @property
    def own(self) -> tuple[int, int]:   # known of a rule that is being staged once it is
        return self.num_leading, self.num_leading + self.rule.own[1]

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        n = self.num_leading
        return self.rule(primals[n:], tangents[n:])


class _BatchedJvp(_JvpRule):
    """A rule under vmap: it runs under the vmap's own trace, in whatever trace is current."""

    __slots__ = ("name", "code", "identity", "own", "trace", "rule", "dims", "mapped")

    def __init__(self, trace: BatchTrace, rule: _JvpRule, dims: Sequence[int | None]) -> None:
        self.trace, self.rule, self.dims, self.name = trace, rule, list(dims), rule.name
        self.code, self.own = rule.code, rule.own
        # Mapped along other axes, or by another vmap, it is another rule.
        self.identity = (trace, self.dims, rule.identity)
        self.mapped = mapped_by_rule(trace, rule, dims)

    def closed_over(self) -> list[Tracer]:
        return self.rule.closed_over()

    def place(self, outs: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
        """Outputs all mapped at axis 0, or none, as the first run (of function or rule) finds."""
        if self.mapped is None:
            self.mapped = any(d is not None for d in dims)
        return [to_axis(x, d, 0, self.trace.axis.size) for x, d in zip(outs, dims)
                ] if self.mapped else list(outs)

    @property
    def out_dim(self) -> int | None:
        return 0 if self.mapped else None

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        n = len(primals)
        #   primals, tangents that are not zero  ->  outs, tangents that are not zero
        # A tangent is mapped as its primal is. Which outputs have one, `flags` says once the rule
        # ran.
        nonzero = [type(t) is not Zero for t in tangents]
        flags: list[bool] = []

        def run(*args: Any) -> list[Any]:
            given = iter(args[n:])
            outs, out_tangents = self.rule(args[:n], [
                next(given) if nz else Zero(unbatched(t.aval, d))
                for t, d, nz in zip(tangents, self.dims, nonzero)])
            flags[:] = [type(t) is not Zero for t in out_tangents]
            return [*outs, *(t for t in out_tangents if type(t) is not Zero)]

        given = [(t, d) for t, d, nz in zip(tangents, self.dims, nonzero) if nz]
        vals, dims = run_batched(self.trace, run, [*primals, *(t for t, _ in given)],
                                 [*self.dims, *(d for _, d in given)])
        placed = self.place(vals, dims)
        outs, rest = placed[:len(flags)], iter(placed[len(flags):])
        return outs, [next(rest) if nz else Zero(typeof(x).to_tangent_aval())
                      for x, nz in zip(outs, flags)]


class CustomJvpCall(CustomCall):
    """params, staged: name, call_olympuspr, jvp, symbolic_zeros."""

    what = "custom_jvp"

    def jvp(self, fun: Callable[..., Any], rules: Any, primals: Sequence[Any],
            tangents: Sequence[Any], **params: Any) -> Any:
        return self.differentiate(fun, rules, primals, tangents, params, rules)

    def vmap(self, trace: Any, fun: Callable[..., Any], rules: Any, vals: Sequence[Any],
             dims: Sequence[int | None], **params: Any) -> Any:
        # The trace below runs the function or the rule; both place their outputs by `rule.place`,
        # so that `out_dim` is settled after it, and the same for both.
        rule = _BatchedJvp(trace, rules, dims)

        def run(*xs: Any) -> list[Any]:
            return rule.place(*run_batched(trace, fun, xs, dims))

        outs = ctx.trace.process_custom(self, run, rule, tuple(vals), params)
        return outs, [rule.out_dim] * len(outs)

    def pack(self, rules: Any, body: ClosedOlympuspr, params: dict[str, Any]) -> dict[str, Any]:
        return {"name": params["name"], "call_olympuspr": body, "jvp": Rule(rules, rules.name),
                "symbolic_zeros": params["symbolic_zeros"]}

    def unpack(self, params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        rest = {"name": params["name"], "symbolic_zeros": params["symbolic_zeros"]}
        return params["jvp"].call, rest


custom_jvp_call_p = CustomJvpCall("custom_jvp_call")
