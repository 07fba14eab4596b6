"""reduce by any associative function; one that is a known monoid becomes the monoid's primitive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.typing import ArrayLike, DType, PyTree
from ..control.bodies import (
    aval_error, check_callable, flatten, leaf_names, same_type, stage_body, structure_error,
)
from ..control.call import call_p
from ..control.reduce import reduce_p
from ..core.ir import ClosedOlympuspr, SameObjects, derived
from ..core.primitive import Primitive
from ..core.staging import must_be_passed
from ..core.trace import Tracer, typeof
from ..interpreters.discharge import discharge
from ..lax import reduce as monoids
from ..lax.arithmetic import max_p, min_p, mul_p
from ..lax.bits import and_p, or_p, xor_p
from ..lax.families import add_p, operand
from ..lax.shape import broadcast_in_dim, reduce_sum
from ..lax.sharding import constrain
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import front_axes
from ..types.sharding import ShardingLike
from ..types.tree import tree_flatten, tree_unflatten
from ..types.tree_registry import PyTreeDef


def scalar_program(what: str, fun: Callable[..., PyTree], tree: PyTreeDef,
                   avals: Sequence[ShapedArray], args: int = 2) -> ClosedOlympuspr:
    """`fun` of `args` structures of scalars, staged; it must return such a structure.

    Raises TypeError where it returns anything else, or closes over traced values.
    """
    check_callable(what, computation=fun)
    scalars = tuple([make_aval((), a.dtype) for a in avals])
    _, in_tree = tree_flatten((tree_unflatten(tree, [0] * len(avals)),) * args)
    body = stage_body(fun, in_tree, scalars * args)
    if body.out_tree != tree:
        raise structure_error(what, tree, body.out_tree,
                              f"{what} output must have the same tree structure as the operands")
    if not all(map(same_type, scalars, body.out_avals)):
        raise aval_error(what, leaf_names(tree, "result"), scalars, body.out_avals,
                         "the computation must return the scalar types that it was given")
    for c in body.consts:
        if must_be_passed(c):
            value = "a traced value" if typeof(c).is_array else f"the reference {typeof(c)}"
            raise TypeError(f"{what}: the computation {body.name} closes over {value}; a function "
                            "of its arguments alone is required; pass the value as one more "
                            "operand.")
    program = discharge(body.program)
    # Arrays that it closes over are no operands of the reduction: they become constants again.
    return _closed(program, SameObjects(body.consts)) if body.consts else program


@derived
def _closed(program: ClosedOlympuspr, consts: SameObjects) -> ClosedOlympuspr:
    """The program whose first inputs are constants with these values."""
    pr, n = program.olympuspr, len(consts.values)
    return ClosedOlympuspr(pr.replace(constvars=pr.invars[:n], invars=pr.invars[n:]),
                           consts.values)


def monoid_of(program: ClosedOlympuspr) -> Primitive | None:
    """The primitive that the program is one application of, if it takes two values; else None."""
    pr = program.olympuspr
    if len(pr.eqns) != 1 or len(pr.invars) != 2 or pr.outvars != pr.eqns[0].outvars:
        return None
    eqn = pr.eqns[0]
    # In either order: the operations of `_MONOIDS` commute.
    if {*map(id, eqn.invars)} != {*map(id, pr.invars)}:
        return None
    return monoid_of(eqn.params["olympuspr"]) if eqn.primitive is call_p else eqn.primitive


def initial_values(what: str, leaves: Sequence[ArrayLike], avals: Sequence[ShapedArray],
                   tree: PyTreeDef, init: ArrayLike | Sequence[int]) -> list[ArrayLike]:
    """The flat initial values, one scalar of each operand's dtype; Python numbers are converted."""
    inits, _, init_tree = flatten(f"{what}: init", init)
    if init_tree != tree:
        raise structure_error(what, tree, init_tree,
                              "Operands must have the same tree structure as init_values")
    inits = [operand(i, x) for i, x in zip(inits, leaves, strict=True)]
    wanted = [make_aval((), a.dtype) for a in avals]
    if not all(map(same_type, wanted, map(typeof, inits))):
        raise aval_error(what, leaf_names(tree, "init"), wanted, [*map(typeof, inits)],
                         f"{what} expected init_values to be scalars of the operands' dtypes")
    return inits


def is_known(value: ArrayLike, constant: float, dtype: DType) -> bool:
    """Whether a scalar is known, while tracing, to be this constant."""
    if isinstance(value, Tracer):
        return False
    known = np.asarray(getattr(value, "raw", value)).astype(dtype)
    return bool(known == np.asarray(constant).astype(dtype))


# Per scalar operation: its reduction, identity and kinds of dtype.
_MONOIDS: dict[Any, Any] = {
    add_p: (reduce_sum, lambda dtype: 0, "iufc"),
    **{op: (fun, prim.identity, prim.kinds) for op, fun, prim in (
        (mul_p, monoids.reduce_prod, monoids.reduce_prod_p),
        (max_p, monoids.reduce_max, monoids.reduce_max_p),
        (min_p, monoids.reduce_min, monoids.reduce_min_p),
        (and_p, monoids.reduce_and, monoids.reduce_and_p),
        (or_p, monoids.reduce_or, monoids.reduce_or_p),
        (xor_p, monoids.reduce_xor, monoids.reduce_xor_p))}}


def reduce(operands: PyTree, init_values: PyTree, computation: Callable[[PyTree, PyTree], PyTree],
           dimensions: Sequence[int], out_sharding: ShardingLike = None) -> PyTree:
    """Combine the elements along axes by an associative function, in an unspecified order.

    Args:
      operands: pytree of arrays of one shape.
      init_values: the same structure of scalars of the same dtypes, to start from; for the result
        not to depend on the order they must be the function's identity.
      computation: `(a, b) -> c` on structures of scalars, without traced values from outside.
      dimensions: axes to combine along, counted from the front.
      out_sharding: where the results are; see `with_sharding_constraint`.
    Returns: The structure of the operands, without those axes.

    Raises TypeError where structures, shapes or dtypes differ, ValueError for axes out of bounds.

    >>> print(lax.reduce(onp.array([[1, 2], [3, 4]]), 1, lax.mul, (0,)))
    [3 8]
    """
    leaves, avals, tree = flatten("reduce: operands", operands)
    if not leaves:
        raise TypeError("reduce: no operands given; at least one array is required.")
    inits = initial_values("reduce", leaves, avals, tree, init_values)
    axes = front_axes(dimensions, avals[0].ndim, "reduce")
    program = scalar_program("reduce", computation, tree, avals)
    monoid: Any = monoid_of(program)
    fun, identity, kinds = _MONOIDS.get(monoid, (None, None, ""))
    dtype = avals[0].dtype
    if dtypes.scalar_kind(dtype) not in kinds:
        outs = reduce_p.bind(*leaves, *inits, olympuspr=program, dimensions=axes)
    else:
        outs = [fun(leaves[0], axes)]
        # The monoid's reduction starts from its identity: any other start is combined with
        # afterwards, and one that makes the dtype strong.
        strong = avals[0].weak_type and not typeof(inits[0]).weak_type
        if strong or not is_known(inits[0], identity(dtype), dtype):
            start = broadcast_in_dim(inits[0], typeof(outs[0]).shape, ())
            outs = [monoid.bind(start, *outs)]
    return tree_unflatten(tree, [constrain("reduce", out, out_sharding) for out in outs])
