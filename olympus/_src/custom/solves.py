"""custom_linear_solve and custom_root: solvers with derivatives by the implicit function theorem.

The derivative of a solution follows from the equation that it satisfies, not from the iterations of
the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, Params, PyTree, T
from ..base.util import cut, lazy_imports, name_of
from ..control.bodies import (
    Body, aval_error, cast, check_callable, flatten, leaf_names, same_type, stage_body,
    structure_error,
)
from ..control.groups import Applied, HasBodies
from ..core.evaluate import eval_closed
from ..core.primitive import Axis, Cotangent, Linear, Tangent, Zero, not_linear
from ..core.trace import typeof
from ..interpreters.batching import batch_program, to_axis
from ..interpreters.jvp import jvp_flat
from ..interpreters.partial_eval import TapeTrace
from ..interpreters.transpose import transpose_program
from ..lax.arithmetic import neg, sub
from ..lax.shape import instantiate
from ..types.avals import MUTABLE, ShapedArray
from ..types.tree import tree_flatten, tree_structure, tree_unflatten
from ..types.tree_registry import PyTreeDef
from .jvp import custom_jvp
from .rules import WithTangents, results

with lazy_imports(__name__):       # where there are references
    from ..interpreters import discharge as _refs


class LinearSolve(HasBodies):
    """params: const_lengths (of matvec, solve, transpose_solve), olympusprs (the three programs).

    Operands: the consts of each, then b. Results: x, then the solver's other results.
    """

    programs = ("olympusprs",)

    def applied(self, params: Params, xs: Sequence[T]) -> Applied[T]:
        _, consts, _, rhs = cut(xs, *params["const_lengths"])
        return [("the solver", params["olympusprs"][1], [*consts, *rhs])]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, const_lengths: tuple,
            olympusprs: tuple) -> WithTangents:
        """A dx = db - dA x."""
        # The solvers' consts have no influence: the solution depends on the equation alone.
        consts, *_, rhs = cut(primals, *const_lengths)
        t_consts, *_, t_rhs = cut(tangents, *const_lengths)
        out = self.bind(*primals, const_lengths=const_lengths, olympusprs=olympusprs)
        x, rest = cut(out, len(rhs))
        _, change = jvp_flat(lambda *c: eval_closed(olympusprs[0], *c, *x), consts, t_consts)
        t_rhs = [db if type(da) is Zero else neg(da) if type(db) is Zero else sub(db, da)
                 for db, da in zip(t_rhs, change, strict=True)]
        if all(type(t) is Zero for t in t_rhs):
            return out, [Zero(typeof(y).to_tangent_aval()) for y in out]
        t_out = self.bind(*primals[:len(primals) - len(rhs)], *map(instantiate, t_rhs),
                          const_lengths=const_lengths, olympusprs=olympusprs)
        return out, [*t_out[:len(x)], *(Zero(typeof(y).to_tangent_aval()) for y in rest)]

    def partial_eval(self, tape: TapeTrace, args: Sequence[ArrayLike], unknown: Sequence[bool],
                     **params: Hashable) -> Sequence[Array]:
        # In the tangent equation only b is unknown, and the solution is linear in it.
        return tape.record(self, args, params)

    def transpose(self, cts: Sequence[Tangent], *args: ArrayLike | Linear, const_lengths: tuple,
                  olympusprs: tuple) -> Sequence[Cotangent]:
        matvec, solve, transpose_solve = olympusprs
        if transpose_solve is None:
            raise TypeError(
                "custom_linear_solve: transpose_solve required for backwards mode automatic "
                "differentiation of custom_linear_solve; pass it, or symmetric=True.")
        m_consts, s_consts, t_consts, rhs = cut(args, *const_lengths)
        if any(type(a) is Linear for a in (*m_consts, *s_consts, *t_consts)):
            raise not_linear("custom_linear_solve", "the matrix")
        vecmat, _ = transpose_program(matvec, [False] * len(m_consts) + [True] * len(rhs),
                                      [True] * len(rhs))
        # The two solvers, and their consts, change places: the transpose's transpose is the
        # original.
        outs = self.bind(*m_consts, *t_consts, *s_consts, *map(instantiate, cts[:len(rhs)]),
                         const_lengths=(len(m_consts), len(t_consts), len(s_consts)),
                         olympusprs=(vecmat, transpose_solve, solve))
        return [None] * (len(args) - len(rhs)) + [
            ct if type(a) is Linear else None for a, ct in zip(rhs, outs[:len(rhs)], strict=True)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             const_lengths: tuple, olympusprs: tuple
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        *consts, rhs = cut(args, *const_lengths)
        *c_dims, b_dims = cut(dims, *const_lengths)
        rhs = [to_axis(x, d, 0, axis.size) for x, d in zip(rhs, b_dims, strict=True)]
        # All of x and b are mapped, even if one is not: the programs feed each other.
        vector = [0] * len(rhs)
        programs = tuple(None if program is None
                         else batch_program(program, axis, [*d, *vector], True)[0]
                         for program, d in zip(olympusprs, c_dims, strict=True))
        out = self.bind(*[x for group in consts for x in group], *rhs, const_lengths=const_lengths,
                        olympusprs=programs)
        return out, [0] * len(out)


linear_solve_p = LinearSolve("custom_linear_solve")


def _of_arrays(what: str, role: str, body: Body) -> Body:
    """The body on the contents of references that it closes over."""
    if not MUTABLE:
        return body
    program, consts = _refs.on_contents(what, role, body.program, body.consts)
    return Body(program, consts, body.out_tree, body.name)


def _like(what: str, role: str, body: Body, tree: PyTreeDef, avals: Sequence[ShapedArray],
          like: str, count: int = -1) -> None:
    """TypeError unless the body, which plays the role, returns the given structure and types."""
    found_tree, own = body.out_tree, body.out_avals
    if count >= 0:      # a pair, whose first item is looked at
        out = tree_unflatten(found_tree, range(found_tree.num_leaves))
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(f"{what}: {body.name} returned {type(out).__name__}; with has_aux a "
                            "pair (solution, auxiliary data) is required.")
        found_tree, own = tree_structure(out[0]), own[:count]
    if found_tree != tree:
        raise structure_error(what, tree, found_tree,
                              f"{role}() output pytree structure must match {like}: {body.name} "
                              "returned another structure")
    if [a.shape for a in avals] != [a.shape for a in own]:
        raise ValueError(f"{what}: {role}() output shapes must match {like}, got "
                         f"{[a.shape for a in own]} and {[a.shape for a in avals]} from "
                         f"{body.name}.")
    if not all(map(same_type, avals, own)):
        raise aval_error(what, leaf_names(tree, "the result"), avals, own,
                         f"{role}() output types must match {like}: {body.name}")


@api_boundary
def custom_linear_solve(matvec: Callable[..., PyTree], b: PyTree, solve: Callable[..., PyTree],
                        transpose_solve: Callable[..., PyTree] | None = None,
                        symmetric: bool = False, has_aux: bool = False) -> PyTree:
    """Solve `matvec(x) = b` by `solve`, with derivatives from the equation.

    Args:
      matvec: a linear function of a pytree like `b`; it may close over traced values.
      b: pytree of arrays.
      solve: `solve(matvec, b) -> x`.
      transpose_solve: `transpose_solve(vecmat, b) -> x` for the transposed system; reverse mode
        needs it.
      symmetric: whether `matvec` is its own transpose, so that `solve` serves for both.
      has_aux: whether the solvers return (x, auxiliary data); the data has no derivative.
    Returns: x, or (x, auxiliary data).

    >>> def divide(a, b):
    ...     return olympus.lax.custom_linear_solve(lambda x: a * x, b, lambda f, b: b / f(1.0),
    ...                                            symmetric=True)
    >>> print(olympus.grad(divide, (0, 1))(2.0, 3.0))
    (Array(-0.75, dtype=float32, weak_type=True), Array(0.5, dtype=float32, weak_type=True))
    """
    what = "custom_linear_solve"
    check_callable(what, matvec=matvec, solve=solve)
    if transpose_solve is not None:
        check_callable(what, transpose_solve=transpose_solve)
    leaves, avals, tree = flatten(f"{what}: b", b)
    in_tree = tree_structure((b,))
    product = _of_arrays(what, "matvec", stage_body(matvec, in_tree, avals))
    _like(what, "matvec", product, tree, avals, "b")
    count = len(avals) if has_aux else -1
    direct = _of_arrays(what, "matvec or solve", stage_body(
        lambda rhs: solve(matvec, rhs), in_tree, avals))
    _like(what, "solve", direct, tree, avals, "b", count)
    back: Body | None = None
    if transpose_solve is not None or symmetric:
        n = len(product.consts)
        vecmat_program, _ = transpose_program(
            product.program, [False] * n + [True] * len(avals), [True] * len(avals))

        def vecmat(x: Array) -> Array:
            xs = [cast(leaf, a) for leaf, a in zip(tree_flatten(x)[0], avals, strict=True)]
            return tree_unflatten(tree, eval_closed(vecmat_program, *product.consts, *xs))

        solver, operator = (transpose_solve, vecmat) if transpose_solve is not None else (
            solve, matvec)
        back = _of_arrays(what, "transpose_solve", stage_body(
            lambda rhs: solver(operator, rhs), in_tree, avals))
        _like(what, "transpose_solve", back, tree, avals, "b", count)
    bodies = (product, direct, back)
    consts = [[] if body is None else body.consts for body in bodies]
    out = linear_solve_p.bind(
        *consts[0], *consts[1], *consts[2], *leaves, const_lengths=tuple(map(len, consts)),
        olympusprs=tuple(None if body is None else body.program for body in bodies))
    return tree_unflatten(direct.out_tree, out)


@api_boundary
def custom_root(f: Callable[..., PyTree], initial_guess: PyTree, solve: Callable[..., PyTree],
                tangent_solve: Callable[..., PyTree], has_aux: bool = False) -> PyTree:
    """Find `x` with `f(x) = 0` by `solve`, with derivatives from the implicit function theorem.

    Args:
      f: maps a pytree like `initial_guess` to one of the same structure and types; it may close
        over traced values, and derivatives are taken with respect to those.
      initial_guess: pytree of arrays; it has no influence on derivatives.
      solve: `solve(f, initial_guess) -> x`.
      tangent_solve: `tangent_solve(g, y) -> x` with `g(x) = y` for the linear function g, the
        derivative of f at the solution; linear in y.
      has_aux: whether `solve` returns (x, auxiliary data); the data has no derivative.
    Returns: x, or (x, auxiliary data).

    >>> def root(a):    # x with x² = a, by Newton's method
    ...     newton = lambda f, x: olympus.lax.fori_loop(
    ...         0, 10, lambda _, x: x - f(x) / olympus.grad(f)(x), x)
    ...     return olympus.lax.custom_root(lambda x: x * x - a, 1.0, newton,
    ...                                    lambda g, y: y / g(1.0))
    >>> print(root(4.0), olympus.grad(root)(4.0))
    2.0 0.25
    """
    what = "custom_root"
    check_callable(what, f=f, solve=solve, tangent_solve=tangent_solve)
    leaves, avals, tree = flatten(f"{what}: initial_guess", initial_guess)
    in_tree = tree_structure((initial_guess,))
    equation = _of_arrays(what, "f", stage_body(f, in_tree, avals))
    _like(what, "f", equation, tree, avals, "initial_guess")
    solver = _of_arrays(what, "f or solve", stage_body(
        lambda guess: solve(f, guess), in_tree, avals))
    _like(what, "solve", solver, tree, avals, "initial_guess", len(avals) if has_aux else -1)
    n = len(avals)

    # The values that `f` and `solve` close over are arguments, in two groups. Only values of `f`
    # have derivatives; values of `solve` and the guess have none.
    @custom_jvp
    def root(consts: list[ArrayLike], others: list[ArrayLike], guess: list[ArrayLike]
             ) -> list[Array]:
        return results(eval_closed(solver.program, *others, *guess))

    @root.defjvp
    def root_jvp(primals: tuple, tangents: tuple) -> tuple[list[Array], list[ArrayLike]]:
        out = root(*primals)
        consts, t_consts = primals[0], tangents[0]
        # f(x, c) = 0, hence (df/dx) dx = -(df/dc) dc: `moved` is the right side, `linear` the left.
        # `out` is a call of `root` again, so that second derivatives have a rule, too.
        x = out[:n]
        _, moved = jvp_flat(lambda *c: eval_closed(equation.program, *c, *x), consts, t_consts)
        rhs = tree_unflatten(tree, [neg(instantiate(t)) for t in moved])

        def linear(v: PyTree) -> PyTree:
            vs = [cast(leaf, a.to_tangent_aval())
                  for leaf, a in zip(tree_flatten(v)[0], avals, strict=True)]
            _, slope = jvp_flat(lambda *xs: eval_closed(equation.program, *consts, *xs), x, vs)
            return tree_unflatten(tree, list(map(instantiate, slope)))

        t_x, tangent_tree = tree_flatten(tangent_solve(linear, rhs))
        if tangent_tree != tree:
            raise structure_error(what, tree, tangent_tree,
                                  "tangent_solve() output pytree structure must "
                                  f"match x: {name_of(tangent_solve)} returned another structure")
        rest = [instantiate(Zero(typeof(y).to_tangent_aval())) for y in out[n:]]
        return out, [*(cast(t, typeof(y).to_tangent_aval())
                       for t, y in zip(t_x, out[:n], strict=True)), *rest]

    out = root(equation.consts, solver.consts, leaves)
    return tree_unflatten(solver.out_tree, out)
