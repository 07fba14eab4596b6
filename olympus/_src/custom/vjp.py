"""custom_vjp: a function whose cotangents a pair of user's rules computes.

Under differentiation `fwd` runs instead of the function. The tangents go through `custom_lin`, a
linear operation that cannot be evaluated, only transposed: its transpose calls `bwd`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from typing import Any, NoReturn

from ..base.errors import UnexpectedTracerError
from ..base.source import api_boundary
from ..base.typing import (
    Array, ArrayLike, IrValue, MappedAxis, P, Params, PyTree, R, Reference, Value,
)
from ..base.util import WithAux, cut, lazy_imports, name_of
from ..control.bodies import cast, check_callable, flatten
from ..control.call import Defined, call_p
from ..core import tags
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, OlympusprEqn, numbers
from ..core.primitive import (
    Axis, Builder, Cotangent, Linear, Primitive, Tangent, Transposed, Zero, with_zeros,
)
from ..core.staging import closure_convert, stage
from ..core.trace import Tracer, ctx, describe, typeof
from ..interpreters.batching import batch_flat, batch_program, to_axis
from ..lax.collectives.reductions import fit
from ..lax.shape import instantiate, reduce_sum
from ..types import dtypes
from ..types.avals import ShapedArray, is_float0
from ..types.tree import broadcast_prefix, tree_flatten, tree_leaves, tree_map, treedef_children
from ..types.tree_registry import PyTreeDef
from .rules import (
    Batched, Chosen, CustomCall, Ruled, Rules, Shifted, SymbolicZero, UserRules, WithFailure,
    WithTangents, alike, at, check_pair, check_structure, closed_over, leaf_paths, merged, packed,
    run_batched, unbatched, with_consts,
)

with lazy_imports(__name__):        # where there are named axes, references, traces of users
    from . import apart as _varied, as_functions as _as_functions, contents as _contents

# (residuals, cotangents of outs) -> cotangents of primals.
Backward = Callable[[Sequence[Array], Sequence[Tangent]], Sequence[Tangent]]
Forward = tuple[Sequence[Array], Sequence[ArrayLike], Backward]     # outs, residuals, bwd


@dataclasses.dataclass(slots=True)
class CustomVJPPrimal:
    """An argument of `fwd` with `symbolic_zeros=True`, and whether its cotangent is wanted.

    Args:
      value: the argument.
      perturbed: whether it depends on a differentiated value.

    >>> from olympus.custom_derivatives import CustomVJPPrimal
    >>> CustomVJPPrimal(2.0, perturbed=False).value
    2.0
    """

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(tree: PyTree) -> PyTree:
    """The tree that `fwd` gets with `symbolic_zeros=True`, with plain values for its records.

    Args: tree: a pytree of `CustomVJPPrimal`.
    Returns: A pytree of the same structure.

    >>> custom_vjp_primal_tree_values([CustomVJPPrimal(1.0, True)])
    [1.0]
    """
    return tree_map(lambda x: x.value, tree)


class custom_vjp(Ruled[P, R]):
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

    what, _rules, _setters = "custom_vjp", ("fwd", "bwd"), "defvjp"
    fwd: Callable[..., Any] | None
    bwd: Callable[..., Any] | None

    @api_boundary
    def defvjp(self, fwd: Callable[..., PyTree], bwd: Callable[..., PyTree],
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


#   primals          ── fwd ────────►  outs, residuals     at once, where the primals are known
#   res., tangents   ── custom_lin ─►  tangents of outs    recorded, never evaluated
#   res., cotangents ── bwd ────────►  cotangents          the transpose of custom_lin
# Residuals are operands of custom_lin and arguments of bwd: so jit, vmap and scan can pass them
# from one pass to the other.
#
# Rules here: (primals, perturbed) -> `Forward`.
class _VjpRules(UserRules):
    """One call of a decorated function."""

    __slots__ = ()

    def __init__(self, owner: Ruled[..., PyTree], rules: tuple[Callable[..., PyTree], ...],
                 statics: dict[int, object], in_tree: PyTreeDef) -> None:
        super().__init__(owner, rules, statics, in_tree)
        if any(isinstance(x, Tracer) for x in tree_leaves(list(statics.values()))):
            raise UnexpectedTracerError(
                f"{self.what}: a traced value given as an argument that nondiff_argnums "
                f"{owner.nondiff_argnums} names; a concrete value is required there; make it a "
                "differentiable argument and return None as its cotangent.")

    def __call__(self, primals: Sequence[Array], perturbed: Sequence[bool]) -> Forward:
        what = f"Custom VJP fwd rule {self.names[0]} for function {name_of(self.fun)}"
        inputs = list(map(CustomVJPPrimal, primals, perturbed)) if self.symbolic_zeros else primals
        start = _varied.Apart(primals) if ctx.axes else None
        out, res = check_pair(what, self.rules[0](*self.arguments(inputs)),
                              "the primal output and residuals")
        leaves = self.output(f"{what} must produce a pair (list or tuple of length two)", out)
        if start is not None:
            leaves = start.varying(leaves)
        tree = self.out_tree
        res_leaves, _, res_tree = flatten(f"{self.what}: the residuals of fwd {self.names[0]}", res)
        in_avals = [getattr(a, "inner", a)      # of the content, if it is a reference
                    for a in (typeof(x).to_cotangent_aval() for x in primals)]

        def bwd(res: Sequence[Array], cts: Sequence[Tangent]) -> Sequence[Tangent]:
            return self.backward(res_tree.unflatten(res), tree, in_avals, cts)

        return leaves, res_leaves, bwd

    def backward(self, res: PyTree, out_tree: PyTreeDef, in_avals: Sequence[ShapedArray],
                 cts: Sequence[Tangent]) -> list[Tangent]:
        """Call the user's bwd; its cotangents, flat and checked."""
        rule = self.rules[1]
        what = f"Custom VJP bwd rule {self.names[1]} for function {name_of(self.fun)}"
        # bwd runs when the forward pass, and perhaps the transformation around it, is over.
        for tracer in closed_over(rule):
            if not tracer._trace.alive:
                raise UnexpectedTracerError(
                    f"{what} closes over {describe(tracer)}, whose transformation has ended when "
                    "bwd runs; return the value from fwd as a residual instead.")
        result = rule(*self.statics.values(), res, out_tree.unflatten(self.zeros(cts)))
        flat = _cotangent_leaves(what, self.in_tree, result)
        out = []
        for i, (ct, aval) in enumerate(zip(flat, in_avals, strict=True)):
            if type(ct) is SymbolicZero and ct.shape != aval.shape:
                raise ValueError(f"{what}: {at(leaf_paths(self.in_tree)[i])}a SymbolicZero of "
                                 f"{ct.aval} returned for an argument {aval}. Consider just "
                                 "returning a None here instead.")
            if ct is None or type(ct) in (SymbolicZero, Zero) or is_float0(aval):
                out.append(Zero(aval))
                continue
            got = typeof(ct)
            high = got.is_high or aval.is_high
            fits = alike(got, aval) if high else (
                dtypes.is_complex(aval.dtype) or not dtypes.is_complex(got.dtype))
            if not fits or (not high and got.shape != aval.shape):
                path = leaf_paths(self.in_tree)[i]
                raise (TypeError if high or got.shape == aval.shape else ValueError)(
                    f"{what} must produce an output of the arguments' types,\n  but at "
                    f"output{path} the bwd rule produced an output of type {got}\n  "
                    f"corresponding to an input of type {aval};\n  equal shape and, for a real "
                    "argument, a real dtype are required.")
            out.append(Zero(aval) if is_float0(got) else cast(ct, aval))
        return out


def _cotangent_leaves(what: str, in_tree: PyTreeDef, result: PyTree) -> list[PyTree]:
    """One cotangent per flat argument; None, at any depth, for a subtree of zeros."""
    subtrees = treedef_children(in_tree)
    if not isinstance(result, (tuple, list)) or len(result) != len(subtrees):
        count = f" of length {len(result)}" if isinstance(result, (tuple, list)) else ""
        raise TypeError(f"{what} must produce a tuple of length {len(subtrees)},\n  of one "
                        "cotangent per differentiable argument, but got "
                        f"{type(result).__name__}{count};\n  return None for an argument whose "
                        "cotangent is zero.")
    leaves: list[Any] = []
    for i, (ct, tree) in enumerate(zip(result, subtrees, strict=True)):
        # None as a leaf: otherwise it would vanish from the structure.
        cts, structure = tree_flatten(ct, is_leaf=_is_none)
        if structure == tree:
            leaves += cts
            continue
        argument = tree.unflatten(range(tree.num_leaves))
        try:        # for each leaf of the argument, the index of its cotangent in `cts`
            which = broadcast_prefix(structure.unflatten(range(len(cts))), argument)
        except ValueError:
            which = None
        # A cotangent where the argument is None is ignored.
        if which is None or any(which.count(k) > 1 for k in which if cts[k] is not None):
            check_structure(what, argument, ct, "must produce cotangents with the same container "
                            f"(pytree) structure as the arguments: at [{i}]")
            which = []
        leaves += [cts[k] for k in which]
    return leaves


def _is_none(x: object) -> bool:
    return x is None


class _StagedVjp(Rules):
    """Rules as programs. Inputs: tracers that they close over, then the arguments.

    The tracers are residuals, too.
    """

    __slots__ = ("fwd", "back", "num_outs", "still", "own", "_found")

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        self.fwd: Any = None        # `stage` sets these
        self.back: Any = None
        self.num_outs = 0
        self.still: Sequence[Zero | None] = ()
        self.own: tuple[int, int] = (0, 0)
        self._found: Sequence[list[Any]] = ()

    def stage(self, rules: Rules, avals: Sequence[ShapedArray]) -> list[Array]:
        """Stage the rules for arguments of these avals; return the tracers that they close over."""
        # Every argument may have a tangent: one program serves all calls.
        forward = _forward_rules(rules, [True] * len(avals))
        self.fwd, of_fwd = closure_convert(stage(forward, avals))
        # After `forward` has run, which finds the number and the structure of the residuals.
        self.num_outs, bwd = forward.aux
        outs, res_avals = cut(self.fwd.out_avals, self.num_outs)
        ct_avals = [a.to_cotangent_aval() for a in outs]
        backward = flat_backward(bwd, len(res_avals), [
            Zero(a) if is_float0(a) else None for a in ct_avals])
        self.back, of_bwd = closure_convert(
            stage(backward, [*res_avals, *(a for a in ct_avals if not is_float0(a))]))
        self.still = backward.aux
        self._found = of_fwd, of_bwd
        return [*of_fwd, *(t for t in of_bwd if not any(t is f for f in of_fwd))]

    def place(self, consts: Sequence[Tracer]) -> None:
        """Make `consts` the leading inputs of both programs."""
        of_fwd, of_bwd = self._found
        self.fwd = with_consts(self.fwd, of_fwd, consts)
        self.back = with_consts(self.back, of_bwd, consts)
        self.own, self._found = (0, len(consts)), ()

    def __call__(self, primals: Sequence[Array], perturbed: Sequence[bool]) -> Forward:
        n = self.own[1]
        outs, res = cut(eval_closed(self.fwd, *primals), self.num_outs)
        zeros = [Zero(typeof(x).to_cotangent_aval()) for x in primals[:n]]

        def bwd(res: Sequence[Array], cts: Sequence[Tangent]) -> list[Tangent]:
            nonzero = [instantiate(ct) for ct in cts
                       if not is_float0(ct.aval if type(ct) is Zero else typeof(ct))]
            return [*zeros, *merged(self.still, eval_closed(self.back, *res, *nonzero))]

        # The consts are the first residuals: `back` takes them first, like `fwd`, so its inputs are
        # residuals and cotangents. They get no cotangents.
        return outs, [*primals[:n], *res], bwd


def _forward_rules(rules: Callable[..., Forward], perturbed: Sequence[bool]) -> WithAux:
    """The rules as a function from primals to outs and residuals; aux: number of outs, bwd."""
    def forward(*primals: Array) -> tuple[list[ArrayLike], tuple[int, Backward]]:
        outs, res, bwd = rules(primals, perturbed)
        return [*outs, *res], (len(outs), bwd)

    return WithAux(forward)


def flat_backward(bwd: Backward, num_res: int, zeros: Sequence[Zero | None]) -> WithAux:
    """`bwd` as a function of residuals and nonzero cotangents, by `packed`."""
    return packed(lambda res, cts: ((), bwd(res, cts)), num_res, zeros)


class _ShiftedVjp(Shifted):
    __slots__ = ()

    def __call__(self, primals: Sequence[Array], others: Sequence[object]) -> Forward:
        outs, res, bwd = super().__call__(primals, others)
        zeros = [Zero(typeof(x).to_cotangent_aval()) for x in primals[:self.num_leading]]
        return outs, res, lambda res, cts: [*zeros, *bwd(res, cts)]


class _BatchedVjp(Batched):
    __slots__ = ()

    def __call__(self, primals: Sequence[Array], perturbed: Sequence[bool]) -> Forward:
        forward = _forward_rules(self.rules, perturbed)
        vals, dims = run_batched(self.trace, forward, primals, self.dims)
        num_outs, bwd = forward.aux
        res_dims = dims[num_outs:]
        outs = self.place(vals[:num_outs], dims[:num_outs], res_dims)
        in_avals = [typeof(x).to_cotangent_aval() for x in primals]
        n = len(outs) - self.num_contents       # contents of references have no cotangents
        ct_dims, wanted = (
            self.axes_of(values, axes, "to_cotangent_aval")
            for values, axes in ((outs[:n], self.out_dims[:n]), (primals, self.dims)))

        def batched_bwd(res: Sequence[Array], cts: Sequence[Tangent]) -> Sequence[Tangent]:
            return self.backward(bwd, res, res_dims, cts, ct_dims, in_avals, wanted)

        return outs, vals[num_outs:], batched_bwd

    def backward(self, bwd: Backward, res: Sequence[Array], res_dims: Sequence[MappedAxis],
                 cts: Sequence[Tangent], ct_dims: Sequence[MappedAxis],
                 in_avals: Sequence[ShapedArray], wanted: Sequence[MappedAxis]) -> list[Tangent]:
        size = self.trace.axis.size
        run = flat_backward(bwd, len(res), [
            Zero(unbatched(ct.aval, d, size)) if type(ct) is Zero else None
            for ct, d in zip(cts, ct_dims, strict=True)])
        nonzero = [(ct, d) for ct, d in zip(cts, ct_dims, strict=True) if type(ct) is not Zero]
        vals, dims = run_batched(self.trace, run, [*res, *(ct for ct, _ in nonzero)],
                                 [*res_dims, *(d for _, d in nonzero)])
        self.check_shared(dims)
        rest = iter(zip(vals, dims, strict=True))
        return [Zero(aval) if z else
                sum_or_move(*next(rest), want, size) if self.mapped else next(rest)[0]
                for z, want, aval in zip(run.aux, wanted, in_avals, strict=True)]


def sum_or_move(ct: Array, dim: int | None, want: int | None, size: int) -> Array:
    """The cotangent of an operand mapped at `want`; summed over elements if it is not mapped."""
    if want is not None:
        return to_axis(ct, dim, want, size)
    # Elements share the operand: its cotangent is the sum of theirs.
    return reduce_sum(to_axis(ct, dim, 0, size), (0,))


class _ChosenVjp(Chosen):
    __slots__ = ()

    def __call__(self, primals: Sequence[Array], perturbed: Sequence[bool]) -> Forward:
        outs, res, bwd = self.rules(primals, perturbed)
        zeros = [None if u else Zero(typeof(x).to_cotangent_aval())
                 for x, u in zip(outs, self.used, strict=True)]
        return [*compress(outs, self.used)], res, lambda res, cts: bwd(res, merged(zeros, cts))


class _VjpWithFailure(WithFailure):
    __slots__ = ()

    def __call__(self, primals: Sequence[Array], perturbed: Sequence[bool]) -> Forward:
        outs, res, bwd = self.rules(primals, perturbed)
        return [*self.failure(primals), *outs], res, lambda res, cts: bwd(res, cts[2:])


class CustomVjpCall(CustomCall):
    """params, staged: name, bwd, call_olympuspr, fwd, symbolic_zeros."""

    what = "custom_vjp"
    kept = ("fwd", "bwd")
    staged, batched, shifted, chosen = _StagedVjp, _BatchedVjp, _ShiftedVjp, _ChosenVjp
    with_failure, with_contents = _VjpWithFailure, "VjpWithContents"
    looked_into = True

    def hands_references_on(self, params: Params, xs: Sequence[object]) -> list[bool]:
        return [True] * len(xs)     # `fwd` may return any of them as residuals

    def jvp(self, fun: Callable[..., list[Array]], rules: Rules, primals: Sequence[Array],
            tangents: Sequence[Tangent], **params: Hashable) -> WithTangents:
        def apply(primals: Sequence[Array], tangents: Sequence[Tangent]) -> WithTangents:
            nonzero = tuple(type(t) is not Zero for t in tangents)
            # In a recorded program dce may find that nothing reads the residuals.
            apart = rules.optimize_remat and ctx.trace.recorded
            outs, res, bwd = (_apart(fun, rules, primals, nonzero) if apart else
                              rules(primals, nonzero))
            # Contents of references have no derivative: see `WithContents`.
            n = len(outs) - rules.num_contents
            out_avals = tuple([typeof(x).to_tangent_aval() for x in outs[:n]])
            tangents_out = iter(custom_lin_p.bind(
                *res, *[t for t in tangents if type(t) is not Zero], name=params["name"], bwd=bwd,
                num_res=len(res), perturbed=nonzero, out_avals=out_avals))
            return outs, [*with_zeros(out_avals, tangents_out),
                          *[Zero(typeof(x).to_tangent_aval()) for x in outs[n:]]]

        return self.differentiate(fun, rules, primals, tangents, params, apply)

    def in_users_trace(self, *call: Any) -> Sequence[Array]:
        return _as_functions.vjp_by_method(self, *call)

    def of_functions(self, args: tuple, **params: Any) -> list[Array]:
        return _as_functions.vjp_of_functions(args, **params)


def _apart(fun: Callable[..., list[Array]], rules: Rules, primals: Sequence[Array],
           perturbed: Sequence[bool]) -> Forward:
    """The rules, with outputs and residuals from an equation that dce can split (`CustomFwd`)."""
    forward = _forward_rules(rules, perturbed)
    avals = list(map(typeof, primals))
    whole, of_whole = closure_convert(stage(forward, avals))
    alone, of_alone = closure_convert(stage(fun, avals))
    n, bwd = forward.aux
    # Bodies may contain no tracers, and the function and `fwd` must have equal output types.
    if of_whole or of_alone or whole.out_avals[:n] != alone.out_avals:
        return rules(primals, perturbed)
    out = custom_fwd_p.bind(*primals, olympuspr=whole, call_olympuspr=alone, name=rules.names[0])
    return out[:n], out[n:], bwd


class CustomFwd(Defined):
    """fwd of a custom_vjp function with `optimize_remat`: outputs, then residuals.

    params: olympuspr, call_olympuspr (the function, which is called where no residual is read),
    name.
    """

    programs = ("olympuspr", "call_olympuspr")
    lowered = ("olympuspr",)

    def lower(self, b: Builder, *args: IrValue, olympuspr: ClosedOlympuspr, **params: Hashable
              ) -> list[IrValue]:
        return b.call_inline(olympuspr, args)

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             olympuspr: ClosedOlympuspr, call_olympuspr: ClosedOlympuspr, name: str
             ) -> tuple[list[Array], list[int | None]]:
        whole, alone = (batch_program(body, axis, dims, True)[0]
                        for body in (olympuspr, call_olympuspr))
        out = self.bind(*args, olympuspr=whole, call_olympuspr=alone, name=name)
        return out, [0] * len(out)

    def dce(self, used: Sequence[bool], eqn: OlympusprEqn) -> OlympusprEqn:
        # An ordinary call: of fwd if any residual is read, of the function otherwise.
        alone, params = eqn.params["call_olympuspr"], eqn.params
        n = len(alone.out_avals)
        if any(used[n:]):
            n, alone = len(used), params["olympuspr"]
        return call_p.dce(used[:n], eqn.replace(
            primitive=call_p, outvars=eqn.outvars[:n],
            params={"olympuspr": alone, "name": params["name"]}))


custom_fwd_p = CustomFwd("custom_fwd")


class CustomLin(Primitive):
    """The tangents of a custom_vjp function. Operands: residuals, then nonzero tangents.

    params: name, bwd, num_res, perturbed (which arguments have a tangent), out_avals.
    """

    multiple_results = foreign = takes_refs = True
    # Operands are not cast to vary along the same axes: a rule may return sums over devices, which
    # the transpose of the cast would sum again.
    spread = staticmethod(tags.by_body)

    def _forward(self, name: str) -> TypeError:
        return TypeError(f"custom_vjp {name}: can't apply forward-mode autodiff (jvp) to a "
                         "custom_vjp function. Its rules define reverse mode only; use grad, vjp "
                         "or jacrev, or define the function with custom_jvp, which serves both.")

    result_avals = Primitive.inferred   # not memoised: `bwd` would be kept alive

    def in_parts(self, args: Sequence[Value], params: Params) -> NoReturn:
        raise self._forward(params["name"])

    def infer(self, *avals: ShapedArray, out_avals: Sequence[ShapedArray], **params: Hashable
              ) -> list[ShapedArray]:
        return [a for a in out_avals if not is_float0(a)]

    def hands_references_on(self, params: Params, xs: Sequence[object]) -> list[bool]:
        return [i < params["num_res"] for i in range(len(xs))]

    def discharged(self, ins: Sequence[Reference], params: Params) -> list[Array]:
        return _contents.linear_of_contents(self, ins, params)

    def lower(self, b: Builder, *xs: IrValue, name: str, **params: Hashable) -> IrValue:
        raise self._forward(name)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, name: str,
            **params: Hashable) -> NoReturn:
        raise self._forward(name)

    def transpose(self, cts: Sequence[Array], *args: Transposed, bwd: Backward,
                  num_res: int, perturbed: Sequence[bool], out_avals: Sequence[ShapedArray],
                  name: str) -> Sequence[Cotangent]:
        # float0 outputs have no tangent, hence no result here, but bwd takes a cotangent for each.
        nonzero = iter(cts)
        in_cts = bwd(numbers(args[:num_res]),
                     with_zeros([a.to_cotangent_aval() for a in out_avals], nonzero))
        # bwd returns one cotangent per argument: drop it where the argument had no tangent.
        wanted = [ct for ct, on in zip(in_cts, perturbed, strict=True) if on]
        return [None] * num_res + [fit(ct, a.aval) if type(a) is Linear else None
                                   for a, ct in zip(args[num_res:], wanted, strict=True)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             bwd: Backward, num_res: int, out_avals: Sequence[ShapedArray], **params: Hashable
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        res_dims, size = list(dims[:num_res]), axis.size
        tangents = [to_axis(t, d, 0, size)
                    for t, d in zip(args[num_res:], dims[num_res:], strict=True)]

        # A new vmap of bwd, not `run_batched`: this vmap began after fwd ran.
        def batched_bwd(res: Sequence[Array], cts: Sequence[Tangent]) -> list[Tangent]:
            zeros = [Zero(a.to_cotangent_aval()) if type(ct) is Zero else None
                     for ct, a in zip(cts, out_avals, strict=True)]
            run = flat_backward(bwd, len(res), zeros)
            dense = [ct for ct in cts if type(ct) is not Zero]
            vals, out_dims = batch_flat(run, axis, [*res, *dense], [*res_dims, *[0] * len(dense)])
            # A zero of one element, widened to all.
            wide = [z and Zero(z.aval.update(shape=(size, *z.aval.shape))) for z in run.aux]
            return merged(wide, [to_axis(x, d, 0, size)
                                 for x, d in zip(vals, out_dims, strict=True)])

        wide = tuple([a.update(shape=(size, *a.shape)) for a in out_avals])
        out = self.bind(*args[:num_res], *tangents, bwd=batched_bwd, num_res=num_res,
                        out_avals=wide, **params)
        return out, [0] * len(out)


custom_vjp_call_p = CustomVjpCall("custom_vjp_call")
custom_lin_p = CustomLin("custom_lin")
custom_vjp._prim, custom_vjp._kind = custom_vjp_call_p, _VjpRules
