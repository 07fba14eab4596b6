"""Branches, loops and arithmetic of sizes, for kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, PyTree
from ..base.util import clipped
from ..control.bodies import check_callable
from ..control_flow.branches import cond
from ..control_flow.while_loop import fori_loop
from ..core.trace import typeof
from ..types import dtypes
from ..types.shape import SymbolicDim

Integer: TypeAlias = Any    # an int for ints, an array for integer arrays


@api_boundary
def when(condition: bool | ArrayLike, /) -> Callable[[Callable[[], None]], None]:
    """Run the decorated function where a condition holds.

    Args: condition: a bool, or a boolean scalar array, for which both cases are traced.

    >>> def kernel(o):
    ...     @pl.when(pl.program_id(0) == 1)
    ...     def _():
    ...         o[...] = 7
    >>> out = olympus.ShapeDtypeStruct((), onp.int32)
    >>> print(pl.pallas_call(kernel, out, grid=2, interpret=True)())
    7
    """
    def decorate(fun: Callable[[], None]) -> None:
        if isinstance(condition, (bool, np.bool_)):
            if condition:
                fun()
        else:
            cond(condition, fun, lambda: None)

    return api_boundary(decorate)


@api_boundary
def loop(lower: Integer, upper: Integer, *, init_carry: PyTree = None, step: Integer = 1,
         unroll: int | bool | None = None) -> Callable[[Callable[..., PyTree]], PyTree]:
    """Run the decorated function for each index: `for i in range(lower, upper, step)`.

    Args:
      lower, upper, step: integers, which may be traced.
      init_carry: a pytree, which the function takes after the index and returns with new values;
        None: the function takes the index alone, and works on references.
      unroll: as for `lax.fori_loop`.
    Returns: A decorator, whose result is the last carry.

    >>> ref = olympus.new_ref(onp.zeros(4))
    >>> @pl.loop(0, 4, step=2)
    ... def _(i):
    ...     ref[i] = 1.
    >>> print(ref[...])
    [1. 0. 1. 0.]
    """
    for what, count in (("lower", lower), ("upper", upper), ("step", step)):
        if not _is_count(count):
            raise TypeError(f"loop: {what} {clipped(count)} given; an int, or a traced one, is "
                            "required.")

    def decorate(body: Callable[..., PyTree]) -> PyTree:
        check_callable("loop", body=body)

        def at(i: Array, carry: PyTree) -> PyTree:
            i = lower + i * step
            return body(i) if init_carry is None else body(i, carry)

        return fori_loop(0, cdiv(upper - lower, step), at, init_carry, unroll=unroll)

    return api_boundary(decorate)


def _is_count(x: object) -> bool:
    """Whether it is an integer scalar, traced or not, or a symbolic size."""
    try:
        aval = typeof(x)
    except TypeError:
        return isinstance(x, SymbolicDim)
    return not aval.shape and not dtypes.is_inexact(aval.dtype)


@api_boundary
def cdiv(a: Integer, b: Integer) -> Integer:
    """The quotient of two integers, rounded up.

    Args: a, b: ints, or integer arrays.
    Returns: An int, or an array.

    >>> from olympus.experimental import pallas as pl
    >>> pl.cdiv(10, 4), pl.cdiv(8, 4)
    (3, 2)
    """
    return -(-a // b) if isinstance(a, int) and isinstance(b, int) else (a + (b - 1)) // b


@api_boundary
def align_to(a: Integer, alignment: Integer) -> Integer:
    """The least multiple of `alignment` that is at least `a`.

    Args: a, alignment: ints, or integer arrays.
    Returns: An int, or an array.

    >>> from olympus.experimental import pallas as pl
    >>> pl.align_to(10, 8), pl.align_to(16, 8)
    (16, 16)
    """
    return cdiv(a, alignment) * alignment


@api_boundary
def next_power_of_2(x: int) -> int:
    """The least power of two that is at least `x`.

    Args: x: a positive int.
    Returns: An int. ValueError for a negative one.

    >>> from olympus.experimental import pallas as pl
    >>> pl.next_power_of_2(5), pl.next_power_of_2(8)
    (8, 8)
    """
    if x < 0:
        raise ValueError(f"next_power_of_2: {x} given: `next_power_of_2` requires a non-negative "
                         "integer.")
    return 1 if x == 0 else 1 << (x - 1).bit_length()


@api_boundary
def strides_from_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The distance between neighbours along each axis of an array in row-major order, in elements.

    Args: shape: ints.

    >>> from olympus.experimental import pallas as pl
    >>> pl.strides_from_shape((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(strides[::-1])
