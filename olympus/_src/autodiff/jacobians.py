"""Jacobians and Hessians: one linearisation, mapped over the unit vectors of its inputs or outputs.

    jacfwd    tangent program on each unit tangent          one column at a time
    jacrev    backward pass of each unit cotangent          one row at a time
    hessian   jacfwd of jacrev
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.source import filter_traceback
from ..base.typing import Array, ArrayLike, P, PyTree, Shape
from ..base.util import name_of, wraps
from ..control.bodies import cast
from ..core.context import under
from ..core.evaluate import eval_olympuspr
from ..core.primitive import Axis
from ..core.trace import ctx
from ..interpreters.batching import batch_flat, to_axis
from ..jit.arguments import (
    as_arrays, check_argnums, check_arrays, check_callable, leaf_name, select, structure_path,
    substitute,
)
from ..jit.jit import JitOptions, make_jit
from ..lax.comparison import eq
from ..lax.creation import broadcasted_iota
from ..lax.families import add
from ..lax.shape import reshape, zeros_of
from ..lax.sharding import as_typed
from ..lax.slicing import split
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.tree import tree_flatten
from ..types.tree_registry import PyTreeDef
from .derivatives import (
    ArgNums, FlatFunction, Linearized, check_inputs, linearize_flat, pull_back, real_outputs,
)

Blocks = list[list[ArrayLike]]    # per result, the derivatives by each argument


def jacfwd(fun: Callable[P, PyTree], argnums: ArgNums = 0, has_aux: bool = False,
           holomorphic: bool = False
           ) -> Callable[P, PyTree]:
    """A function that computes the Jacobian of `fun` by forward mode: good for few inputs.

    Args:
      fun: a function of pytrees of arrays, with any result.
      argnums: which positional arguments to differentiate: an int or several.
      has_aux: `fun` returns a pair (result, anything else), and the Jacobian function too.
      holomorphic: `fun` is complex-differentiable; its arguments and results must be complex.
    Returns: A function of the same arguments. Its result has the structure of the function's
      result, with the structure of the argument at each leaf (a tuple of those if `argnums` is
      one); an array's shape is the result's followed by the argument's. An integer result has a
      Jacobian of zeros, of its dtype.

    >>> olympus.jacfwd(lambda x: x * x)(onp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    return _jacobian("jacfwd", fun, argnums, has_aux, holomorphic, False, _jacobian_columns)


def jacrev(fun: Callable[P, PyTree], argnums: ArgNums = 0, has_aux: bool = False,
           holomorphic: bool = False,
           allow_int: bool = False) -> Callable[P, PyTree]:
    """A function that computes the Jacobian of `fun` by reverse mode: good for few outputs.

    Arguments and result are as for `jacfwd`; with `allow_int`, the part that belongs to integer
    arguments has dtype float0.

    Args:
      fun, argnums, has_aux, holomorphic: as for `jacfwd`.
      allow_int: whether arguments may be integers.
    Returns: A function of the same arguments; it costs as many gradients as `fun` has outputs.

    >>> olympus.jacrev(lambda x: x * x)(onp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    return _jacobian("jacrev", fun, argnums, has_aux, holomorphic, allow_int, _jacobian_rows)


jacobian = jacrev


def hessian(fun: Callable[P, PyTree], argnums: ArgNums = 0, has_aux: bool = False,
            holomorphic: bool = False
            ) -> Callable[P, PyTree]:
    """A function that computes the matrix of second derivatives of `fun`: `jacfwd(jacrev(fun))`.

    The result has the structure of the function's result; each leaf has the argument's structure,
    twice.

    Args:
      fun: a function of pytrees of arrays with real results.
      argnums: which argument to differentiate by, an int or a sequence of them.
      has_aux: whether `fun` returns a pair, whose first item alone is differentiated.
      holomorphic: whether `fun` is a holomorphic function of complex numbers.
    Returns: A function of the same arguments; for shapes s of the result and n of the argument,
      arrays of shape s + n + n.

    >>> olympus.hessian(lambda x: x[0] * x[1])(onp.array([1.0, 2.0]))
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    # Forward over reverse: tangents of the backward pass need no second tape.
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def _jacobian(what: str, fun: Callable, argnums: ArgNums, has_aux: bool, holomorphic: bool,
              allow_int: bool, blocks: Callable[[Linearized], Blocks]) -> Callable:
    check_callable(what, fun)
    numbers = check_argnums(what, argnums)

    @wraps(fun)
    def jacobian_of(*args: Array, **kwargs: PyTree) -> PyTree:
        try:
            positions, chosen = select(what, fun, numbers, args)
            leaves, in_tree = tree_flatten(chosen)
            trees = chosen if isinstance(numbers, tuple) else (chosen,)
            avals = check_arrays(what, fun, leaves, positions, trees)
            # Unit tangents are real: of a function that is not holomorphic the derivative along
            # the imaginary axis would be missing. Gradients of real results have both.
            if what == "jacfwd" and not holomorphic:
                _check_real(fun, avals, positions, trees)
            check_inputs(what, fun, avals, positions, trees, holomorphic, allow_int)

            def call(xs: Sequence[Array]) -> PyTree:
                full = substitute(args, positions, numbers, in_tree.unflatten(xs))
                return fun(*full, **kwargs)

            flat = FlatFunction(what, fun, call, has_aux)
            # The function runs once, in either mode; only the linear program is mapped over units.
            _, lin = linearize_flat(flat, as_arrays(leaves), avals)
            _check_results(what, fun, lin.out_avals, flat.out_tree, holomorphic)
            result = flat.out_tree.unflatten(map(in_tree.unflatten, blocks(lin)))
            return (result, flat.aux) if has_aux else result
        except Exception as error:
            filter_traceback(error)
            raise

    return jacobian_of


def _check_real(fun: Callable[..., PyTree], avals: Sequence[ShapedArray], positions: Sequence[int],
                trees: Sequence[Array]) -> None:
    for i, aval in enumerate(avals):
        if not dtypes.is_floating(aval.dtype):
            raise TypeError(f"jacfwd: argument {leaf_name(fun, positions, trees, i)} of "
                            f"{name_of(fun)}: jacfwd requires real-valued inputs (input dtype that "
                            f"is a sub-dtype of np.floating), but got {aval.dtype}; "
                            + ("pass holomorphic=True if the function is, else use jvp."
                               if dtypes.is_complex(aval.dtype) else
                               "convert it to float, or leave it out of argnums."))


def _check_results(what: str, fun: Callable[..., PyTree], avals: Sequence[ShapedArray],
                   tree: PyTreeDef, holomorphic: bool) -> None:
    for i, aval in enumerate(avals):
        if holomorphic and not dtypes.is_complex(aval.dtype):
            raise TypeError(f"{what}: result{structure_path(tree, i)} of {name_of(fun)}: {what} "
                            "with holomorphic=True requires outputs with complex dtype, but got "
                            f"{aval.dtype}; drop holomorphic.")
        if what == "jacrev" and not holomorphic and not dtypes.is_floating(aval.dtype):
            hint = ("pass holomorphic=True if the function is, else use vjp"
                    if dtypes.is_complex(aval.dtype) else "return a float, or use vjp")
            raise TypeError(f"{what}: result{structure_path(tree, i)} of {name_of(fun)}: "
                            f"{real_outputs(what, aval)}; {hint}.")


# Blocks: per output the list of derivatives by each input ----------------------------------------

def _units(avals: Sequence[ShapedArray]) -> tuple[Sequence[Array], int]:
    """All unit vectors of a list of arrays, stacked along a new first axis, and their number."""
    # Under a trace the operations become part of the caller's program.
    make = _unit_arrays if ctx.trace.recorded or any(a.tagged for a in avals) else _made_units
    return make(tuple(avals)), sum(a.size for a in avals)


def _unit_arrays(avals: tuple[ShapedArray, ...]) -> Sequence[Array]:
    #   row k of all units is 1 at the k-th element of the arguments laid end to end:
    #   an argument's own are zeros but for an identity matrix, `offset` rows down
    total, offset, units = sum(a.size for a in avals), 0, []
    for aval in avals:
        shape = (total, aval.size)
        rows, columns = broadcasted_iota("int32", shape, 0), broadcasted_iota("int32", shape, 1)
        hit = cast(eq(rows, add(columns, offset)), aval)
        units.append(as_typed(reshape(hit, (total, *aval.shape)), aval.with_axis(0, total)))
        offset += aval.size
    return units


_made_units = make_jit(_unit_arrays, JitOptions(static_argnums=0), library=True)   # by one program


def _jacobian_columns(lin: Linearized) -> Blocks:
    """Forward mode: the tangent program, mapped over the unit tangents."""
    units, total = _units(lin.avals)    # none where the arguments have no elements
    program = lin.program
    outs, dims = batch_flat(
        under("vmap", lambda *ts: eval_olympuspr(program.olympuspr, program.consts, *ts)),
        Axis(total), units, [0] * len(units)) if total else ([], [])
    columns = iter(zip(outs, dims))
    return [_blocks_of_column(next(columns) if total and active else None, out, lin.avals, total)
            for out, active in zip(lin.out_avals, lin.active_out)]


def _blocks_of_column(column: tuple[Array, int | None] | None, out: ShapedArray,
                      avals: Sequence[ShapedArray], total: int) -> list[ArrayLike]:
    """The derivatives of one output by each input, from those by all of them along one axis."""
    tangent = out.to_tangent_aval()
    # Zeros of the integer's own dtype, not of float0.
    if dtypes.scalar_kind(out.dtype) in "iu":
        return [_zeros(out, (), a.shape) for a in avals]
    if column is None:
        return [_zeros(tangent, (), a.shape) for a in avals]
    # The mapped axis counts elements of arguments: behind the result's axes it is cut by argument,
    # and each part is reshaped to the argument's own axes.
    array, dim = column
    value = to_axis(array, dim, out.ndim, total)
    parts = split(value, [a.size for a in avals], out.ndim) if len(avals) > 1 else [value]
    return [reshape(part, (*out.shape, *a.shape)) for part, a in zip(parts, avals)]


def _zeros(aval: ShapedArray, before: Shape, behind: Shape) -> ArrayLike:
    """Zeros of a type, with more axes in front and at the end, which are not cut."""
    for n in reversed(before):
        aval = aval.with_axis(0, n)
    for n in behind:
        aval = aval.with_axis(aval.ndim, n)
    return zeros_of(aval)


def _jacobian_rows(lin: Linearized) -> Blocks:
    """Reverse mode: the backward pass, mapped over the unit cotangents."""
    units, total = _units([a.to_cotangent_aval() for a in lin.out_avals])
    wanted = [i for i, active in enumerate(lin.active_in) if active]
    ins: list[Any] = [None] * len(lin.avals)
    if total and wanted:
        def backward(*cts: Array) -> list[Any]:
            rows = pull_back(lin, lin.program.consts, cts)
            # Without the zeros of inactive arguments, which `_stack` makes unmapped.
            return [rows[i] for i in wanted]

        outs, dims = batch_flat(under("vmap", backward), Axis(total), units, [0] * len(units))
        for i, x, dim in zip(wanted, outs, dims):
            ins[i] = to_axis(x, dim, 0, total)
    sizes = [a.size for a in lin.out_avals]
    # Reverse mode gives derivatives input by input; the result of users is output by output.
    by_input = [_stack(x, a, lin.out_avals, sizes) for x, a in zip(ins, lin.avals)]
    return [list(row) for row in zip(*by_input)] if by_input else [[] for _ in lin.out_avals]


def _stack(value: Array | None, aval: ShapedArray, outs: Sequence[ShapedArray], sizes: Sequence[int]
           ) -> list[ArrayLike]:
    """The derivatives of each output by one input, from all outputs' derivatives along axis 0."""
    tangent = aval.to_tangent_aval()
    if value is None:
        return [_zeros(tangent, out.shape, ()) for out in outs]
    parts = split(value, sizes, 0) if len(sizes) > 1 else [value]
    return [reshape(part, (*out.shape, *aval.shape)) for part, out in zip(parts, outs)]
