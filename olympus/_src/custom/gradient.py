"""Derivatives from closures: custom_gradient, closure_convert and linear_call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, P, Params, PyTree, R, T
from ..base.util import cut, merged, name_of, wraps
from ..control.bodies import (
    Body, aval_error, check_callable, flatten, leaf_names, same_type, stage_body, structure_error,
)
from ..control.groups import Applied, HasBodies
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr
from ..core.primitive import Axis, Cotangent, Linear, Tangent, Transposed, Zero
from ..core.trace import Tracer, typeof
from ..interpreters.batching import batch_program, to_axis
from ..interpreters.jvp import jvp_flat
from ..interpreters.partial_eval import TapeTrace
from ..lax.families import add
from ..lax.shape import instantiate
from ..types.avals import has_tangent, is_float0
from ..types.tree import tree_flatten, tree_structure, tree_unflatten
from ..types.tree_registry import PyTreeDef, register_pytree_node
from .rules import check_pair, results
from .vjp import custom_vjp


class _Converted:
    """A function as a program with the values that it closes over, which are pytree leaves."""

    __slots__ = ("program", "consts", "in_tree", "out_tree")

    def __init__(self, program: ClosedOlympuspr, consts: Sequence[ArrayLike], in_tree: PyTreeDef,
                 out_tree: PyTreeDef) -> None:
        self.program, self.consts = program, consts
        self.in_tree, self.out_tree = in_tree, out_tree

    def __call__(self, *args: PyTree) -> PyTree:
        leaves, tree = tree_flatten(args)
        if tree != self.in_tree:
            raise structure_error("closure_convert", self.in_tree, tree,
                                  "The inputs to the closure produced by closure_convert must "
                                  "have the structure of the example")
        return tree_unflatten(self.out_tree,
                              results(eval_closed(self.program, *self.consts, *leaves)))


register_pytree_node(
    _Converted, lambda f: (f.consts, (f.program, f.in_tree, f.out_tree)),
    lambda aux, consts: _Converted(aux[0], consts, *aux[1:]))


def _stage(what: str, fun: Callable[..., PyTree], args: tuple
           ) -> tuple[Body, list[ArrayLike], PyTreeDef]:
    """The staged function, its flat arguments and their structure."""
    leaves, avals, tree = flatten(what, args)
    return stage_body(fun, tree, avals), leaves, tree


def custom_gradient(fun: Callable[P, tuple[R, Callable[..., PyTree]]]) -> Callable[P, R]:
    """Decorator for a function that returns its value together with its own reverse-mode rule.

    Args: fun: `fun(*args) -> (out, rule)` with `rule(cotangent of out) -> cotangents of args`, a
        tuple with one entry per argument; a single argument's cotangent may stand by itself. The
        rule may close over values that `fun` computed.
    Returns: A function of the same arguments that returns `out`.

    >>> @olympus.custom_gradient
    ... def square(x):
    ...     return x * x, lambda ct: ct * 2 * x
    >>> float(olympus.grad(square)(3.0))
    6.0
    """
    check_callable("custom_gradient", fun=fun)
    what, call = f"custom_gradient {name_of(fun)}", cast("Callable[..., Any]", fun)

    def value(*args: PyTree) -> PyTree:
        return check_pair(what, call(*args), "output, rule")[0]

    def fwd(*args: PyTree) -> tuple[PyTree, _Converted]:
        out, rule = check_pair(what, call(*args), "output, rule")
        leaves, out_tree = tree_flatten(out)
        # Integer outputs have no cotangent: the user's rule gets None for them.
        active = [a for a in (typeof(x).to_tangent_aval() for x in leaves) if not is_float0(a)]

        def flat_rule(*flat_cts: Array) -> PyTree:
            cts = iter(flat_cts)
            return rule(tree_unflatten(out_tree, [
                next(cts) if has_tangent(typeof(x)) else None for x in leaves]))

        # Stage the rule while the values that it closes over are alive: as leaves of the pytree
        # `_Converted` they become residuals.
        body = stage_body(wraps(rule)(flat_rule), tree_structure(tuple(active)), active)
        return out, _Converted(body.program, body.consts, tree_structure(tuple(active)),
                               body.out_tree)

    def bwd(converted: _Converted, ct: PyTree) -> PyTree:
        leaves = [x for x in tree_flatten(ct)[0] if not is_float0(typeof(x))]
        cts = converted(*leaves)
        return cts if isinstance(cts, (tuple, list)) else (cts,)

    wrapped = custom_vjp(wraps(fun)(value))
    wrapped.defvjp(fwd, bwd)
    return wrapped


@api_boundary
def closure_convert(fun: Callable[..., R], *example_args: PyTree
                    ) -> tuple[Callable[..., R], list[Array]]:
    """Turn the differentiable traced values that `fun` closes over into arguments.

    For functions that take functions and define derivatives: values whose cotangents a custom rule
    shall give have to be among its arguments.

    Args:
      fun: a function of pytrees of arrays.
      *example_args: arguments of the shapes and dtypes that it will be called with.
    Returns: `converted(*args, *consts)` and the list of those values, `consts`.

    >>> def f(a):
    ...     g, consts = olympus.closure_convert(lambda x: a * x, 1.0)
    ...     return g(2.0, *consts)
    >>> float(olympus.grad(f)(5.0))
    2.0
    """
    check_callable("closure_convert", fun=fun)
    body, _, in_tree = _stage("closure_convert", fun, example_args)
    # Constants that are not traced, or have no derivative, stay inside.
    hoisted = [isinstance(c, Tracer) and has_tangent(typeof(c))
               for c in body.consts]
    traced: list[Any] = [c for c, h in zip(body.consts, hoisted, strict=True) if h]
    inside = [c for c, h in zip(body.consts, hoisted, strict=True) if not h]
    num_args = len(example_args)

    def converted(*args: PyTree) -> PyTree:
        if len(args) != num_args + len(traced):
            raise TypeError("closure_convert: The inputs to the closure produced by "
                            f"closure_convert of {name_of(fun)} must be {num_args} arguments and "
                            f"then {len(traced)} values that it closed over; {len(args)} are "
                            "given.")
        consts = merged(hoisted, args[num_args:], inside)
        return _Converted(body.program, consts, in_tree, body.out_tree)(*args[:num_args])

    return converted, traced


class LinearCall(HasBodies):
    """params: callee, transpose, num_callee_consts, num_transpose_consts, num_res.

    Operands: consts of callee, consts of transpose, residuals, the linear arguments.
    """

    programs = ("callee", "transpose")

    def applied(self, params: Params, xs: Sequence[T]) -> Applied[T]:
        consts, _, rest = cut(xs, params["num_callee_consts"], params["num_transpose_consts"])
        return [("the function", params["callee"], [*consts, *rest])]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], **params: Any
            ) -> tuple[list[Array], list[Tangent]]:
        nf, nt, nr = (params[k] for k in ("num_callee_consts", "num_transpose_consts", "num_res"))
        f_consts, _, res, lin = cut(primals, nf, nt, nr)
        t_consts, _, t_res, t_lin = cut(tangents, nf, nt, nr)
        out = self.bind(*primals, **params)
        zeros = [Zero(typeof(x).to_tangent_aval()) for x in lin]
        # The callee may be nonlinear in consts and residuals: differentiate it. In the linear
        # arguments the derivative is this operation itself.
        t_out: list[Tangent]
        _, t_out = jvp_flat(lambda *xs: eval_closed(params["callee"], *xs),
                            [*f_consts, *res, *lin], [*t_consts, *t_res, *zeros])
        if any(type(t) is not Zero for t in t_lin):
            linear = self.bind(*primals[:nf + nt + nr], *map(instantiate, t_lin), **params)
            t_out = [x if type(t) is Zero else add(t, x)
                     for t, x in zip(t_out, linear, strict=True)]
        return out, t_out

    def partial_eval(self, tape: TapeTrace, args: Sequence[Array], unknown: Sequence[bool],
                     **params: Hashable) -> list[Array]:
        return tape.record(self, args, params)

    def transpose(self, cts: Sequence[Tangent], *args: Transposed, callee: ClosedOlympuspr,
                  transpose: ClosedOlympuspr, num_callee_consts: int, num_transpose_consts: int,
                  num_res: int) -> Sequence[Cotangent]:
        f_consts, t_consts, res, lin = cut(args, num_callee_consts, num_transpose_consts, num_res)
        # The programs and their consts change places: the transpose of the transpose is the
        # original.
        cotangents = self.bind(*t_consts, *f_consts, *res, *map(instantiate, cts), callee=transpose,
                               transpose=callee, num_callee_consts=num_transpose_consts,
                               num_transpose_consts=num_callee_consts, num_res=num_res)
        return [None] * (len(args) - len(lin)) + [
            ct if type(a) is Linear else None for a, ct in zip(lin, cotangents, strict=True)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             callee: ClosedOlympuspr, transpose: ClosedOlympuspr, num_callee_consts: int,
             num_transpose_consts: int, num_res: int) -> tuple[list[Array], list[int]]:
        f_dims, t_dims, r_dims, l_dims = cut(dims, num_callee_consts, num_transpose_consts, num_res)
        # All linear operands and all outputs are mapped: transposed, they are each other's.
        lin = [to_axis(x, d, 0, axis.size)
               for x, d in zip(args[len(args) - len(l_dims):], l_dims, strict=True)]
        num_out = len(callee.out_avals)
        forward, _ = batch_program(callee, axis, [*f_dims, *r_dims, *[0] * len(lin)], True)
        back, _ = batch_program(transpose, axis, [*t_dims, *r_dims, *[0] * num_out], True)
        out = self.bind(*args[:len(args) - len(lin)], *lin, callee=forward, transpose=back,
                        num_callee_consts=num_callee_consts,
                        num_transpose_consts=num_transpose_consts, num_res=num_res)
        return out, [0] * num_out


linear_call_p = LinearCall("linear_call")


@api_boundary
def linear_call(fun: Callable[..., PyTree], fun_transpose: Callable[..., PyTree],
                residual_args: PyTree, linear_args: PyTree) -> PyTree:
    """Call a linear function whose transpose is given.

    Args:
      fun: `fun(residual_args, linear_args) -> out`, linear in the second argument.
      fun_transpose: `fun_transpose(residual_args, out cotangent) -> linear_args cotangent`.
      residual_args, linear_args: pytrees of arrays.
    Returns: What `fun` returns.

    >>> def scale(c, x):
    ...     return olympus.custom_derivatives.linear_call(
    ...         lambda c, x: c * x, lambda c, ct: c * ct, c, x)
    >>> float(olympus.linear_transpose(lambda x: scale(3.0, x), 1.0)(2.0)[0])
    6.0
    """
    check_callable("linear_call", fun=fun, fun_transpose=fun_transpose)
    forward, leaves, _ = _stage("linear_call", fun, (residual_args, linear_args))
    out = tree_unflatten(forward.out_tree, forward.out_avals)
    residuals = tree_flatten(residual_args)[0]
    lin_avals = list(map(typeof, leaves[len(residuals):]))
    ct_tree = tree_structure((residual_args, out))
    back = stage_body(fun_transpose, ct_tree, [*map(typeof, residuals), *forward.out_avals])
    lin_tree = tree_structure(linear_args)
    if back.out_tree != lin_tree:
        raise structure_error("linear_call", lin_tree, back.out_tree,
                              "transpose output pytree structure must match that of linear inputs: "
                              f"{back.name} returned another than linear_args")
    if not all(map(same_type, lin_avals, back.out_avals)):
        raise aval_error("linear_call", leaf_names(lin_tree, "linear_args"), lin_avals,
                         back.out_avals, f"{back.name} returned other types than linear_args")
    result = linear_call_p.bind(
        *forward.consts, *back.consts, *leaves, callee=forward.program,
        transpose=back.program, num_callee_consts=len(forward.consts),
        num_transpose_consts=len(back.consts), num_res=len(residuals))
    return tree_unflatten(forward.out_tree, result)
