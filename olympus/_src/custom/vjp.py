"""custom_vjp: a function whose cotangents a pair of rules of the user computes.

Under differentiation `fwd` runs instead of the function, and the tangents go through `custom_lin`,
a linear operation that cannot be evaluated: all it can do is be transposed, which calls `bwd`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ..base.errors import UnexpectedTracerError
from ..base.typing import P, R
from ..base.util import name_of
from ..control.bodies import cast, check_callable, flatten
from ..control.call import Defined, call_p
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, OlympusprEqn
from ..core.primitive import Axis, Linear, Primitive, Zero, with_zeros
from ..core.staging import closure_convert, is_recorded, stage
from ..core.trace import Tracer, ctx, describe, typeof
from ..interpreters.batching import BatchTrace, batch_flat, batch_program, to_axis
from ..lax.shape import instantiate, reduce_sum
from ..types import dtypes
from ..types.avals import is_float0
from ..types.tree import (
    PyTreeDef,
    broadcast_prefix,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
    treedef_children,
)
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
    python_value,
    run_batched,
    unbatched,
    with_consts,
)

__all__ = ["CustomVJPPrimal", "custom_vjp", "custom_vjp_call_p",
           "custom_vjp_primal_tree_values"]


@dataclasses.dataclass(slots=True)
class CustomVJPPrimal:
    """What `fwd` gets for each array with `symbolic_zeros=True`: is its cotangent wanted?"""

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The tree that `fwd` gets with `symbolic_zeros=True`, with plain values for its records.

    >>> custom_vjp_primal_tree_values([CustomVJPPrimal(1.0, True)])
    [1.0]
    """
    return tree_map(lambda x: x.value, tree)


class custom_vjp(CustomFunction[P, R]):
    """Decorator: cotangents of the function come from the rules given to `defvjp`.

    Args:
      fun: the function; its arguments and result are pytrees of arrays.
      nondiff_argnums: positions of arguments without derivative; no traced values. `fwd` gets
        them in place, `bwd` in front.
      nondiff_argnames: the same by name.

    >>> import olympus
    >>> @olympus.custom_vjp
    ... def clip_gradient(lo, hi, x):
    ...     return x
    >>> clip_gradient.defvjp(
    ...     lambda lo, hi, x: (x, (lo, hi)),
    ...     lambda res, ct: (None, None, olympus.numpy.clip(ct, res[0], res[1])))
    >>> float(olympus.grad(lambda x: 5 * clip_gradient(-1.0, 1.0, x))(2.0))
    1.0
    """

    what = "custom_vjp"

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (),
                 nondiff_argnames: Sequence[str] = ()) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = self.optimize_remat = False

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any],
               symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """Set the rules `fwd(*args) -> (out, residuals)` and `bwd(*nondiff, residuals, ct) -> cts`.

        `bwd` returns a tuple with one cotangent per differentiable argument; None stands for
        zeros, at any depth. With `symbolic_zeros` every array that `fwd` gets is a
        `CustomVJPPrimal`, and cotangents known to be zero are `SymbolicZero` objects.
        `optimize_remat` promises that `fwd` computes the same output as the function: where nothing
        reads the residuals, as in the first pass of a checkpointed function, the function runs.
        """
        check_callable(f"custom_vjp {name_of(self.fun)}", fwd=fwd, bwd=bwd)
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros
        self.optimize_remat = optimize_remat

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(f"custom_vjp {name_of(self.fun)}: called without rules; both are "
                                 "required; set them with defvjp first.")
        given = self.resolve(args, kwargs)
        statics = {i: given[i] for i in self.nondiff_argnums if i < len(given)}
        if any(isinstance(x, Tracer) for x in tree_leaves(list(statics.values()))):
            raise TypeError(f"custom_vjp {name_of(self.fun)}: a traced value given as an argument "
                            f"that nondiff_argnums {self.nondiff_argnums} names; a concrete value "
                            "is required there; make it a differentiable argument and return None "
                            "as its cotangent.")
        leaves, tree = tree_flatten([a for i, a in enumerate(given)
                                     if i not in self.nondiff_argnums])
        call = _VjpCall(self, self.fwd, self.bwd, statics, tree)
        out = ctx.trace.process_custom(
            custom_vjp_call_p, call.run, call, tuple(leaves),
            {"name": name_of(self.fun), "symbolic_zeros": self.symbolic_zeros})
        return call.result(out)


#   primals          ── fwd ────────►  outs, residuals     at once, where the primals are known
#   res., tangents   ── custom_lin ─►  tangents of outs    recorded, never evaluated
#   res., cotangents ── bwd ────────►  cotangents          the transpose of custom_lin
# Residuals are operands of custom_lin, and bwd takes them as arguments: so jit, vmap and scan can
# carry them from one pass to the other.
class _VjpRule:
    """Flat rules: (primals, perturbed) -> (outs, residuals, bwd).

    bwd(residuals, cotangents of outs) -> cotangents of primals; both may be `Zero`.
    """

    __slots__ = ()
    name, bwd_name = "", ""
    code: object = None
    identity: object = None
    own = (0, 0)
    optimize_remat = False

    @property
    def staged_type(self) -> Any:
        return _StagedVjp

    def closed_over(self) -> list[Tracer]:
        return []

    def shifted(self, num_leading: int) -> _VjpRule:
        return _ShiftedVjp(self, num_leading)

    def __call__(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
        raise NotImplementedError


class _VjpCall(_VjpRule):
    """One call of a decorated function: `run` is the flat function."""

    __slots__ = ("name", "bwd_name", "code", "identity", "fun", "fwd", "bwd", "symbolic_zeros",
                 "optimize_remat", "statics", "in_tree", "out_tree", "out_avals")

    def __init__(self, owner: custom_vjp, fwd: Callable[..., Any], bwd: Callable[..., Any],
                 statics: dict[int, Any], in_tree: Any) -> None:
        self.fun, self.fwd, self.bwd = owner.fun, fwd, bwd
        self.name, self.bwd_name = name_of(fwd), name_of(bwd)
        self.code = getattr(fwd, "__code__", fwd)
        # Static arguments by identity: they need not be hashable, and `statics` keeps them alive.
        self.identity = (fwd, bwd, owner.fun, *map(id, statics.values()))
        self.symbolic_zeros, self.optimize_remat = owner.symbolic_zeros, owner.optimize_remat
        self.statics, self.in_tree = statics, in_tree
        self.out_tree: PyTreeDef | None = None      # both known once function or fwd has run
        self.out_avals: list[Any] | None = None

    def result(self, leaves: Sequence[Any]) -> Any:
        """The call's result, once the function or its rule has run."""
        assert self.out_tree is not None, "whatever processed the call has run one of the two"
        return tree_unflatten(self.out_tree, leaves)

    def closed_over(self) -> list[Tracer]:
        return closed_over(self.fun, self.fwd, self.bwd, *self.statics.values())

    def arguments(self, flat: Sequence[Any]) -> list[Any]:
        # In ascending order, as nondiff_argnums is sorted: each insertion finds its final place.
        args = self.in_tree.unflatten(flat)
        for i, value in self.statics.items():
            args.insert(i, value)
        return args

    def run(self, *flat: Any) -> list[Any]:
        leaves, self.out_tree = tree_flatten(self.fun(*self.arguments(flat)))
        self.out_avals = list(map(typeof, leaves))
        return leaves

    def __call__(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
        what = f"custom_vjp {name_of(self.fun)}"
        given = list(map(CustomVJPPrimal, primals, perturbed)) if self.symbolic_zeros else primals
        out, res = check_pair(f"{what}: fwd {self.name}", self.fwd(*self.arguments(given)),
                              "output, residuals")
        leaves, tree = tree_flatten(out)
        if self.out_tree is not None and self.out_avals is not None and self.out_tree != tree:
            check_structure(what, tree_unflatten(self.out_tree, self.out_avals), out,
                            f"the output of fwd {self.name} is not like the function's")
        _check_avals(f"{what}: fwd {self.name}", "the function's output", tree, self.out_avals,
                     leaves)
        self.out_tree = tree
        res_leaves, _, res_tree = flatten(f"{what}: the residuals of fwd {self.name}", res)
        in_avals = [typeof(x).to_tangent_aval() for x in primals]

        def bwd(res: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            return self.backward(res_tree.unflatten(res), tree, in_avals, cts)

        return leaves, res_leaves, bwd

    def backward(self, res: Any, out_tree: Any, in_avals: Sequence[Any], cts: Sequence[Any]
                 ) -> list[Any]:
        """Call the user's bwd; its cotangents, flat and checked."""
        if self.symbolic_zeros:
            cts = [SymbolicZero(ct.aval) if type(ct) is Zero else ct for ct in cts]
        else:
            cts = list(map(instantiate, cts))
        what = f"custom_vjp {name_of(self.fun)}: bwd {self.bwd_name}"
        # bwd runs when the forward pass, and perhaps the transformation around it, is over.
        for tracer in closed_over(self.bwd):
            if not tracer._trace.alive:
                raise UnexpectedTracerError(
                    f"{what} closes over {describe(tracer)}, whose transformation has ended when "
                    "bwd runs; return the value from fwd as a residual instead.")
        result = self.bwd(*self.statics.values(), res, out_tree.unflatten(cts))
        flat = _cotangent_leaves(what, self.in_tree, result)
        out = []
        for i, (ct, aval) in enumerate(zip(flat, in_avals)):
            if ct is None or type(ct) in (SymbolicZero, Zero) or is_float0(aval):
                out.append(Zero(aval))
                continue
            found = typeof(ct)
            fits = dtypes.is_complex(aval.dtype) or not dtypes.is_complex(found.dtype)
            if found.shape != aval.shape or not fits:
                path = leaf_paths(self.in_tree)[i]
                raise (TypeError if found.shape == aval.shape else ValueError)(
                    f"{what}: {at(path)}a cotangent {found} returned for an argument {aval}; equal "
                    "shape and, for a real argument, a real dtype are required; correct the rule.")
            out.append(Zero(aval) if is_float0(found) else cast(ct, aval))
        return out


def _cotangent_leaves(what: str, in_tree: Any, result: Any) -> list[Any]:
    """One cotangent per flat argument; None, at any depth, stands for a subtree of zeros."""
    subtrees = treedef_children(in_tree)
    if not isinstance(result, (tuple, list)) or len(result) != len(subtrees):
        count = f" of length {len(result)}" if isinstance(result, (tuple, list)) else ""
        raise TypeError(f"{what}: {type(result).__name__}{count} returned; a tuple of "
                        f"{len(subtrees)} cotangents is required, one per differentiable argument; "
                        "return None for an argument whose cotangent is zero.")
    leaves: list[Any] = []
    for i, (ct, tree) in enumerate(zip(result, subtrees)):
        # None has to be a leaf, or it would vanish from the structure.
        found, structure = tree_flatten(ct, is_leaf=_is_none)
        if structure == tree:
            leaves += found
            continue
        argument = tree.unflatten(range(tree.num_leaves))
        try:
            spread = broadcast_prefix(ct, argument, is_leaf=_is_none)
        except ValueError:
            spread = []
        if sum(x is not None for x in spread) != sum(x is not None for x in found) or \
                len(spread) != tree.num_leaves:
            check_structure(f"{what}: at [{i}]", argument, ct,
                            "the cotangent is not like the argument")
        leaves += spread
    return leaves


def _is_none(x: Any) -> bool:
    return x is None


def _check_avals(what: str, like: str, tree: Any, expected: Sequence[Any] | None,
                 leaves: Sequence[Any]) -> None:
    for i, (aval, x) in enumerate(zip(expected or (), leaves)):
        found = typeof(x)
        if (found.shape, found.dtype) != (aval.shape, aval.dtype):
            raise TypeError(f"{what}: {at(leaf_paths(tree)[i])}{found} returned; {like} is {aval}, "
                            "and they must agree; correct the rule.")


class _StagedVjp(_VjpRule):
    """Rules that are programs. Inputs: tracers that they close over, then the arguments.

    The tracers are among the residuals, too.
    """

    __slots__ = ("name", "bwd_name", "optimize_remat", "fwd", "back", "num_outs", "flags", "own",
                 "_found")

    def __init__(self, rules: _VjpRule) -> None:
        self.name, self.bwd_name = rules.name, rules.bwd_name
        self.optimize_remat = rules.optimize_remat
        self.fwd: Any = None        # all known once they are staged
        self.back: Any = None
        self.num_outs = 0
        self.flags: tuple[bool, ...] = ()
        self.own: tuple[int, int] = (0, 0)
        self._found: Sequence[list[Any]] = ()

    def stage(self, rules: _VjpRule, avals: Sequence[Any]) -> list[Any]:
        """Stage the rules for arguments of these avals; the tracers that they close over."""
        backwards: list[Callable[..., list[Any]]] = []      # one, once `forward` has run

        def forward(*args: Any) -> list[Any]:
            # One program serves all calls: every argument may have a tangent.
            outs, res, bwd = rules(args, [True] * len(avals))
            backwards.append(bwd)
            self.num_outs = len(outs)
            return [*outs, *res]

        self.fwd, of_fwd = closure_convert(stage(forward, avals))
        res_avals = self.fwd.out_avals[self.num_outs:]
        ct_avals = [a.to_tangent_aval() for a in self.fwd.out_avals[:self.num_outs]]

        # After `forward`: only then is it known how many residuals there are, and of which
        # structure.
        def backward(*args: Any) -> list[Any]:
            given = iter(args[len(res_avals):])
            cts = backwards[0](args[:len(res_avals)], with_zeros(ct_avals, given))
            self.flags = tuple(type(ct) is not Zero for ct in cts)
            return [ct for ct in cts if type(ct) is not Zero]

        self.back, of_bwd = closure_convert(
            stage(backward, [*res_avals, *(a for a in ct_avals if not is_float0(a))]))
        self._found = of_fwd, of_bwd
        return [*of_fwd, *(t for t in of_bwd if not any(t is f for f in of_fwd))]

    def place(self, consts: Sequence[Any]) -> None:
        """Take all of `consts` in front."""
        of_fwd, of_bwd = self._found
        self.fwd = with_consts(self.fwd, of_fwd, consts)
        self.back = with_consts(self.back, of_bwd, consts)
        self.own, self._found = (0, len(consts)), ()

    def __call__(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
        n = self.own[1]
        out = eval_closed(self.fwd, *primals)
        in_avals = [typeof(x).to_tangent_aval() for x in primals]

        def bwd(res: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            given = [instantiate(ct) for ct in cts if not is_float0(_ct_aval(ct))]
            found = iter(eval_closed(self.back, *res, *given))
            flags = (*(False,) * n, *self.flags)
            return [next(found) if nz else Zero(a) for nz, a in zip(flags, in_avals)]

        # The consts are residuals, in front: `back` takes them as `fwd` does, and its inputs are
        # then just residuals and cotangents. They get no cotangents.
        return out[:self.num_outs], [*primals[:n], *out[self.num_outs:]], bwd


class _ShiftedVjp(_VjpRule):
    """The rules of a function with leading operands that the function closes over."""

    __slots__ = ("name", "bwd_name", "optimize_remat", "rules", "num_leading")

    def __init__(self, rules: _VjpRule, num_leading: int) -> None:
        self.name, self.bwd_name = rules.name, rules.bwd_name
        self.optimize_remat = rules.optimize_remat
        self.rules, self.num_leading = rules, num_leading

    @property
    def own(self) -> tuple[int, int]:   # known of rules that are being staged once they are
        return self.num_leading, self.num_leading + self.rules.own[1]

    def __call__(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
        n = self.num_leading
        outs, res, bwd = self.rules(primals[n:], perturbed[n:])
        zeros = [Zero(typeof(x).to_tangent_aval()) for x in primals[:n]]
        return outs, res, lambda res, cts: [*zeros, *bwd(res, cts)]


def _ct_aval(ct: Any) -> Any:
    return ct.aval if type(ct) is Zero else typeof(ct)


class _BatchedVjp(_VjpRule):
    """Rules under vmap: they run under the vmap's own trace, in whatever trace is current.

    Outputs are all mapped or none is, so that cotangents are per element where any is.
    """

    __slots__ = ("name", "bwd_name", "optimize_remat", "code", "identity", "own", "trace", "rules",
                 "dims", "mapped")

    def __init__(self, trace: BatchTrace, rules: _VjpRule, dims: Sequence[int | None]) -> None:
        self.name, self.bwd_name = rules.name, rules.bwd_name
        self.optimize_remat = rules.optimize_remat
        self.trace, self.rules, self.dims = trace, rules, list(dims)
        self.code, self.own = rules.code, rules.own
        self.identity = (trace, self.dims, rules.identity)
        self.mapped = mapped_by_rule(trace, rules, dims)

    def closed_over(self) -> list[Tracer]:
        return self.rules.closed_over()

    def place(self, outs: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
        if self.mapped is None:
            self.mapped = any(d is not None for d in dims)
        return [to_axis(x, d, 0, self.trace.axis.size) for x, d in zip(outs, dims)
                ] if self.mapped else list(outs)

    def __call__(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
        backwards: list[Callable[..., list[Any]]] = []      # one, once `forward` has run
        num_outs = 0

        def forward(*xs: Any) -> list[Any]:
            nonlocal num_outs
            outs, res, bwd = self.rules(xs, perturbed)
            backwards.append(bwd)
            num_outs = len(outs)
            return [*outs, *res]

        vals, dims = run_batched(self.trace, forward, primals, self.dims)
        outs = self.place(vals[:num_outs], dims[:num_outs])
        in_avals = [typeof(x).to_tangent_aval() for x in primals]
        res_dims = dims[num_outs:]

        def batched_bwd(res: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            return self.backward(backwards[0], res, res_dims, cts, in_avals)

        return outs, vals[num_outs:], batched_bwd

    def backward(self, bwd: Callable[..., list[Any]], res: Sequence[Any],
                 res_dims: Sequence[int | None], cts: Sequence[Any], in_avals: Sequence[Any]
                 ) -> list[Any]:
        ct_dim = 0 if self.mapped else None
        nonzero = [type(ct) is not Zero for ct in cts]
        flags: list[bool] = []

        def run(*xs: Any) -> list[Any]:
            given = iter(xs[len(res):])
            found = bwd(xs[:len(res)], [next(given) if nz else Zero(unbatched(ct.aval, ct_dim))
                                        for ct, nz in zip(cts, nonzero)])
            flags[:] = [type(ct) is not Zero for ct in found]
            return [ct for ct in found if type(ct) is not Zero]

        given = [ct for ct, nz in zip(cts, nonzero) if nz]
        vals, dims = run_batched(self.trace, run, [*res, *given],
                                 [*res_dims, *[ct_dim] * len(given)])
        rest = iter(zip(vals, dims))
        size = self.trace.axis.size
        return [sum_or_move(*next(rest), want, size, self.mapped or want is not None) if nz
                else Zero(aval) for nz, want, aval in zip(flags, self.dims, in_avals)]


def sum_or_move(ct: Any, dim: int | None, want: int | None, size: int, per_element: Any) -> Any:
    """A cotangent of mapped elements for an operand mapped at `want`, or summed if it is not."""
    if want is not None:
        return to_axis(ct, dim, want, size)
    # The elements share the operand: its cotangent is the sum of theirs. One that is not mapped
    # counts once for each element, unless the outputs are not mapped, either.
    if dim is None and not per_element:
        return ct
    return reduce_sum(to_axis(ct, dim, 0, size), (0,))


class CustomVjpCall(CustomCall):
    """params, staged: name, bwd, call_olympuspr, fwd, symbolic_zeros."""

    what = "custom_vjp"

    def jvp(self, fun: Callable[..., Any], rules: Any, primals: Sequence[Any],
            tangents: Sequence[Any], **params: Any) -> Any:
        def apply(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            nonzero = tuple(type(t) is not Zero for t in tangents)
            # On a recorded program dce may find that nothing reads the residuals; evaluated, all is
            # done.
            run = _apart if rules.optimize_remat and is_recorded(ctx.trace) else _together
            outs, res, bwd = run(fun, rules, primals, nonzero)
            out_avals = tuple([typeof(x).to_tangent_aval() for x in outs])
            found = iter(custom_lin_p.bind(
                *res, *[t for t in tangents if type(t) is not Zero], name=params["name"], bwd=bwd,
                num_res=len(res), perturbed=nonzero, out_avals=out_avals))
            return outs, with_zeros(out_avals, found)

        return self.differentiate(fun, rules, primals, tangents, params, apply)

    def vmap(self, trace: Any, fun: Callable[..., Any], rules: Any, vals: Sequence[Any],
             dims: Sequence[int | None], **params: Any) -> Any:
        batched = _BatchedVjp(trace, rules, dims)

        def run(*xs: Any) -> list[Any]:
            return batched.place(*run_batched(trace, fun, xs, dims))

        outs = ctx.trace.process_custom(self, run, batched, tuple(vals), params)
        return outs, [0 if batched.mapped else None] * len(outs)

    def pack(self, rules: Any, body: ClosedOlympuspr, params: dict[str, Any]) -> dict[str, Any]:
        return {"name": params["name"], "bwd": Rule(rules, rules.bwd_name),
                "call_olympuspr": body, "fwd": Rule(rules, rules.name),
                "symbolic_zeros": params["symbolic_zeros"]}

    def unpack(self, params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        rest = {"name": params["name"], "symbolic_zeros": params["symbolic_zeros"]}
        return params["fwd"].call, rest


def _together(fun: Callable[..., Any], rules: _VjpRule, primals: Sequence[Any],
              perturbed: Sequence[bool]) -> Any:
    return rules(primals, perturbed)


def _apart(fun: Callable[..., Any], rules: _VjpRule, primals: Sequence[Any],
           perturbed: Sequence[bool]) -> Any:
    """The rules, with outputs and residuals from an equation that can be cut (`CustomFwd`)."""
    found: list[Any] = []

    def forward(*args: Any) -> list[Any]:
        outs, res, bwd = rules(args, perturbed)
        found[:] = len(outs), bwd
        return [*outs, *res]

    avals = list(map(typeof, primals))
    whole, of_whole = closure_convert(stage(forward, avals))
    alone, of_alone = closure_convert(stage(fun, avals))
    n, bwd = found
    # Bodies of equations hold no tracers, and either must be able to stand for the other.
    if of_whole or of_alone or whole.out_avals[:n] != alone.out_avals:
        return rules(primals, perturbed)
    out = custom_fwd_p.bind(*primals, olympuspr=whole, call_olympuspr=alone, name=rules.name)
    return out[:n], out[n:], bwd


class CustomFwd(Defined):
    """fwd of a custom_vjp function with `optimize_remat`: outputs, then residuals.

    params: olympuspr, call_olympuspr (the function, which is called where no residual is read),
    name.
    """

    programs = ("olympuspr", "call_olympuspr")
    lowered = ("olympuspr",)

    def lower(self, b: Any, *args: Any, olympuspr: ClosedOlympuspr, **params: Any) -> list[Any]:
        return b.call_inline(olympuspr, args)

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             olympuspr: ClosedOlympuspr, call_olympuspr: ClosedOlympuspr, name: str) -> Any:
        whole, alone = (batch_program(body, axis, dims, True)[0]
                        for body in (olympuspr, call_olympuspr))
        out = self.bind(*args, olympuspr=whole, call_olympuspr=alone, name=name)
        return out, [0] * len(out)

    vmap_named = vmap

    def dce(self, used: Sequence[bool], eqn: OlympusprEqn) -> OlympusprEqn:
        # Residuals are read: an ordinary call of fwd. None is: an ordinary call of the function.
        alone, params = eqn.params["call_olympuspr"], eqn.params
        n = len(alone.out_avals)
        if any(used[n:]):
            n, alone = len(used), params["olympuspr"]
        return call_p.dce(used[:n], eqn.replace(
            primitive=call_p, outvars=eqn.outvars[:n],
            params={"olympuspr": alone, "name": params["name"]}))


custom_fwd_p = CustomFwd("custom_fwd")


class CustomLin(Primitive):
    """Tangents of a custom_vjp function: residuals, then the tangents that are not zero.

    params: name, bwd, num_res, perturbed (which arguments have a tangent), out_avals.
    """

    multiple_results = foreign = True

    def _forward(self, name: str) -> TypeError:
        return TypeError(f"custom_vjp {name}: forward mode (jvp, jacfwd, linearize's function) "
                         "applied; its rules define reverse mode only; use grad, vjp or jacrev, or "
                         "define the function with custom_jvp, which serves both modes.")

    result_avals = Primitive.inferred   # not memoised: `bwd` would be kept alive

    def infer(self, *avals: Any, out_avals: Sequence[Any], **params: Any) -> list[Any]:
        return [a for a in out_avals if not is_float0(a)]

    def lower(self, b: Any, *xs: Any, name: str, **params: Any) -> Any:
        raise self._forward(name)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, name: str,
            **params: Any) -> Any:
        raise self._forward(name)

    def transpose(self, cts: Sequence[Any], *args: Any, bwd: Callable[..., Any], num_res: int,
                  perturbed: Sequence[bool], out_avals: Sequence[Any], name: str) -> list[Any]:
        # float0 outputs have no tangent, so no output here, but bwd wants a cotangent for each.
        given = iter(cts)
        found = bwd(list(map(python_value, args[:num_res])), with_zeros(out_avals, given))
        # bwd gives one cotangent per argument; the operands are those that had a tangent.
        wanted = [ct for ct, on in zip(found, perturbed) if on]
        return [None] * num_res + [ct if type(a) is Linear else None
                                   for a, ct in zip(args[num_res:], wanted)]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             bwd: Callable[..., Any], num_res: int, out_avals: Sequence[Any],
             **params: Any) -> Any:
        res_dims, size = list(dims[:num_res]), axis.size
        tangents = [to_axis(t, d, 0, size) for t, d in zip(args[num_res:], dims[num_res:])]

        # A new vmap of bwd, not `run_batched`: what is mapped here is the linear map, after fwd
        # ran.
        def batched_bwd(res: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            nonzero = [type(ct) is not Zero for ct in cts]
            zeros: list[Any] = []

            def run(*xs: Any) -> list[Any]:
                given = iter(xs[len(res):])
                found = bwd(xs[:len(res)], [next(given) if nz else Zero(a)
                                            for nz, a in zip(nonzero, out_avals)])
                zeros[:] = [ct if type(ct) is Zero else None for ct in found]
                return [ct for ct in found if type(ct) is not Zero]

            given = [ct for ct in cts if type(ct) is not Zero]
            vals, out_dims = batch_flat(run, axis, [*res, *given], [*res_dims, *[0] * len(given)])
            rest = iter([to_axis(x, d, 0, size) for x, d in zip(vals, out_dims)])
            # A zero of one element, widened to all.
            return [next(rest) if z is None else
                    Zero(z.aval.update(shape=(size, *z.aval.shape))) for z in zeros]

        wide = tuple([a.update(shape=(size, *a.shape)) for a in out_avals])
        out = self.bind(*args[:num_res], *tangents, bwd=batched_bwd, num_res=num_res,
                        out_avals=wide, **params)
        return out, [0] * len(out)


custom_vjp_call_p = CustomVjpCall("custom_vjp_call")
custom_lin_p = CustomLin("custom_lin")
