"""jet: derivatives of higher orders along a curve, all at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, PyTree
from ..base.util import WithAux
from ..core.primitive import Primitive
from ..core.trace import typeof
from ..interpreters.jet import jet_flat, jet_rules
from ..jit.arguments import as_arrays, check_arrays
from ..lax.convert import convert_element_type
from ..lax.creation import full_like
from ..types.avals import ShapedArray, has_tangent
from ..types.tree import tree_flatten, tree_leaves, tree_unflatten
from ..types.tree_registry import PyTreeDef


class ZeroTerm:
    """Stands in a series for a term that is zero; `zero_term` is one.

    >>> from olympus.experimental.jet import jet, zero_term
    >>> print(jet(lambda x: 3 * x, (2.0,), ([1.0, zero_term],))[1][1])
    0.0
    """


class ZeroSeries:
    """Stands for a series whose terms are all zero; `zero_series` is one.

    >>> from olympus.experimental.jet import jet, zero_series
    >>> print(jet(lambda x, y: x * y, (2.0, 5.0), ([1.0], zero_series))[1][0])
    5.0
    """


zero_term, zero_series = ZeroTerm(), ZeroSeries()
Series = Sequence[Sequence[Array]]      # the terms of each operand, by order


@api_boundary
def jet(fun: Callable[..., PyTree], primals: Sequence[PyTree], series: Sequence[PyTree],
        factorial_scaled: bool = True, **_: object) -> tuple[PyTree, PyTree]:
    """The value of a function on a curve and its first derivatives along it, by Taylor mode.

    For arguments x(t) whose value and derivatives at t = 0 are primals and series, it computes the
    value and derivatives of fun(x(t)). The work grows with a power of the order, where `jvp` within
    `jvp` doubles it with each. Every primitive that `jvp` knows is known, loops too, though their
    bodies double with each order.

    Args:
      fun: a function of pytrees of arrays, with any result.
      primals: its arguments, a tuple or list.
      series: for each argument the list of derivatives, first to n-th; for a pytree the same
        structure with such a list for each leaf. `zero_series` stands for zeros.
      factorial_scaled: whether terms are derivatives; else they are coefficients of the Taylor
        polynomial, the k-th derivative over k!.

    Returns:
      (fun(*primals), series of the result: its structure with a list of n terms for each leaf).

    Raises ValueError for series of different lengths.

    Source: Griewank & Walther, "Evaluating Derivatives" (2008), chapter 13.

    >>> from olympus.experimental.jet import jet
    >>> value, derivatives = jet(onp.exp, (0.0,), ([1.0, 0.0, 0.0],))
    >>> print(value, *derivatives)
    1.0 1.0 1.0 1.0
    """
    if len(primals) != len(series):
        raise ValueError(f"jet: {len(primals)} primals and {len(series)} series given; one for each"
                         " is required.")
    leaves, tree = tree_flatten(tuple(primals))
    check_arrays("jet", fun, leaves, range(len(primals)), primals)
    series_by_leaf: list[Any] = []
    for i, (primal, terms) in enumerate(zip(primals, series, strict=True)):
        its, inner = tree_flatten(primal)
        series_by_leaf += ([zero_series] * len(its) if isinstance(terms, ZeroSeries) else
                           _series_of(i, inner, terms))
    # A zero series is as long as the others are.
    lengths = {len(terms) for terms in series_by_leaf if not isinstance(terms, ZeroSeries)}
    if len(lengths) > 1:
        raise ValueError(f"jet: series of {sorted(lengths)} terms given; as many for each argument "
                         "are required.")
    order = lengths.pop() if lengths else 0
    arrays = as_arrays(leaves)
    scaled = [_derivatives_of_terms(terms, x, factorial_scaled) for x,
              terms in zip(arrays, series_by_leaf, strict=True)]

    def flat(*xs: object) -> tuple[list[ArrayLike], PyTreeDef]:
        outs, out_tree = tree_flatten(fun(*tree_unflatten(tree, xs)))
        return as_arrays(outs), out_tree

    with_aux = WithAux(flat)
    outs, towers = jet_flat(with_aux, arrays, scaled, order)
    if not factorial_scaled:    # the interpreter's terms are derivatives
        towers = [[t / math.factorial(k) for k, t in enumerate(terms, 1)] for terms in towers]
    return tree_unflatten(with_aux.aux, outs), tree_unflatten(with_aux.aux, towers)


def _series_of(i: int, tree: PyTreeDef, terms: object) -> list[Array]:
    """The list of terms of each leaf of an argument."""
    series = tree.flatten_up_to(terms)
    for leaf in series:
        if not isinstance(leaf, (list, tuple)) or any(len(tree_leaves(t)) > 1 for t in leaf):
            raise ValueError(f"jet: {leaf!r:.60} given as the series of argument {i}; a list of "
                             "arrays, the derivatives by order, is required for each leaf.")
    return series


def _derivatives_of_terms(terms: Sequence[ArrayLike | ZeroTerm] | ZeroSeries, x: ArrayLike,
                          factorial_scaled: bool) -> list[Array]:
    """Derivatives in the dtype that tangents of x have; none for values without tangent."""
    aval = typeof(x)
    if isinstance(terms, ZeroSeries) or not has_tangent(aval):
        return []
    coefficients = []
    for k, term in enumerate(terms, 1):
        if isinstance(term, ZeroTerm):
            term = 0.0
        array, = as_arrays([term])
        array = convert_element_type(array, aval.dtype)
        if array.shape != aval.shape:       # a scalar term stands for all elements
            array = full_like(x, array) if not array.shape else _refuse(k, array, aval)
        coefficients.append(array if factorial_scaled else array * math.factorial(k))
    return coefficients


def _refuse(k: int, term: object, aval: ShapedArray) -> NoReturn:
    raise ValueError(f"jet: term {k} {typeof(term)} given for a primal {aval}; its shape is "
                     "required.")


def jet2(fun: Callable[..., PyTree], primals: Sequence[PyTree], series: Sequence[PyTree], *,
         factorial_scaled: bool = False, **_: object) -> tuple[PyTree, PyTree]:
    """`jet` whose terms are coefficients of Taylor polynomials.

    Args: fun, primals, series, factorial_scaled: as for `jet`.
    Returns: (fun(*primals), series of the result).

    >>> from olympus.experimental.jet import jet2
    >>> print(jet2(lambda x: x * x, (3.0,), ([1.0, 0.0],)))     # (3 + t)² = 9 + 6 t + t²
    (Array(9., dtype=float32, weak_type=True), [Array(6., dtype=float32), Array(1., dtype=float32)])
    """
    return jet(fun, primals, series, factorial_scaled)


def fact(n: int) -> float:
    """The factorial of an int, as a float.

    Args: n: not negative.

    >>> from olympus.experimental.jet import fact
    >>> fact(4)
    24.0
    """
    return float(math.factorial(n))


# Rules of users' primitives: on coefficients of Taylor polynomials -------------------------------

def defzero(prim: Primitive) -> None:
    """Let a primitive be constant along every curve.

    Args: prim: the primitive.

    >>> from olympus.experimental.jet import defzero
    >>> from olympus.extend.core import Primitive
    >>> defzero(Primitive("steps"))
    """
    jet_rules[prim] = lambda primals, series, **params: zero_prop(prim, primals, series, **params)


def zero_prop(prim: Primitive, primals_in: Sequence[ArrayLike], series_in: Series, **params: object
              ) -> tuple[Array, list[Array]]:
    """The rule of a primitive that is constant along every curve.

    Args: prim, params: the operation; primals_in, series_in: operands and their terms.
    Returns: (result, terms).

    >>> from olympus.experimental.jet import zero_prop
    >>> print(zero_prop(lax.floor_p, [2.5], [[1.0]]))
    (Array(2., dtype=float32, weak_type=True), [Array(0., dtype=float32, weak_type=True)])
    """
    out = prim.bind(*primals_in, **params)
    return out, [full_like(out, 0) for _ in series_in[0]]


def deflinear(prim: Primitive) -> None:
    """Let a primitive apply to each term as to the value.

    Args: prim: the primitive, linear in all operands together.

    >>> from olympus.experimental.jet import deflinear
    >>> from olympus.extend.core import Primitive
    >>> deflinear(Primitive("twice"))
    """
    jet_rules[prim] = lambda primals, series, **params: linear_prop(prim, primals, series, **params)


def linear_prop(prim: Primitive, primals_in: Sequence[ArrayLike], series_in: Series,
                **params: object) -> tuple[Array, list[Array]]:
    """The rule of a primitive that is linear in all operands together.

    Args: prim, params: the operation; primals_in, series_in: operands and their terms.
    Returns: (result, terms).

    >>> from olympus.experimental.jet import linear_prop
    >>> print(linear_prop(lax.neg_p, [2.5], [[1.0]])[0])
    -2.5
    """
    return prim.bind(*primals_in, **params), [
        prim.bind(*terms, **params) for terms in zip(*series_in, strict=True)]


def def_deriv(prim: Primitive, deriv: Callable[..., ArrayLike]) -> None:
    """Give the derivative of a primitive of one operand.

    Args: prim: the primitive; deriv: its derivative, a function of the operand and the params.

    >>> from olympus.experimental.jet import def_deriv
    >>> from olympus.extend.core import Primitive
    >>> def_deriv(Primitive("own_sin"), lax.cos)
    """
    jet_rules[prim] = lambda primals, series, **params: deriv_prop(
        prim, lambda x: deriv(x, **params), primals, series, **params)


def deriv_prop(prim: Primitive, deriv: Callable[..., ArrayLike], primals_in: Sequence[Array],
               series_in: Series, **params: object) -> tuple[Array, list[Array]]:
    """The rule of a primitive of one operand whose derivative is given.

    Args:
      prim, params: the operation; deriv: its derivative.
      primals_in, series_in: the operand and its terms.
    Returns: (result, terms).

    >>> from olympus.experimental.jet import deriv_prop
    >>> print(deriv_prop(lax.sin_p, lax.cos, [0.0], [[1.0, 0.0, 0.0]], accuracy=None)[1][0])
    1.0
    """
    x, = primals_in
    terms, = series_in
    out = prim.bind(x, **params)
    if not terms:
        return out, []
    # y' = deriv(x) x', of one order less.
    # Terms are coefficients: the k-th of x times k is one of x', and one of y' divided by k is one
    # of y.
    velocity = [k * t for k, t in enumerate(terms, 1)]
    slope, more = jet2(lambda x, dx: deriv(x) * dx, (x, velocity[0]), (terms[:-1], velocity[1:]))
    return out, [t / k for k, t in enumerate([slope, *more], 1)]


def def_comp(prim: Primitive, comp: Callable[..., PyTree], **kwargs: PyTree) -> None:
    """Let a primitive be differentiated as a function of other primitives.

    Args:
      prim: the primitive; comp: a function of the operands that computes the same.
      **kwargs: further arguments of `jet2`.

    >>> from olympus.experimental.jet import def_comp
    >>> from olympus.extend.core import Primitive
    >>> def_comp(Primitive("own_tan"), lambda x: lax.sin(x) / lax.cos(x))
    """
    jet_rules[prim] = lambda primals, series, **params: jet2(
        lambda *xs: comp(*xs, **params), primals, series, **kwargs)
