"""while_loop and fori_loop: loops whose number of iterations may depend on data."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.config import jit_disabled
from ..base.errors import ConcretizationTypeError
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, PyTree, T
from ..base.util import lazy_imports, name_of
from ..control.bodies import Derived, bind_while, cast, check_callable, flatten
from ..control.while_primitive import while_p
from ..core.trace import Tracer, literal, typeof
from ..lax.barriers import stop_gradient
from ..lax.comparison import lt
from ..lax.families import add
from ..types import dtypes
from ..types.avals import MUTABLE, ShapedArray, scalar_aval
from ..types.shape import SymbolicDim, maximum
from .checkpointed import checkpointed_while_p
from .scan import scan

with lazy_imports(__name__):
    from . import carried_refs as _carried, progress as _progress  # in kernels; under progress=


@api_boundary
def while_loop(cond_fun: Callable[[PyTree], PyTree], body_fun: Callable[[PyTree], T],
               init_val: PyTree, *, checkpoints: int | None = None) -> T:
    """`val = body_fun(val)` while `cond_fun(val)` holds; returns the last `val`.

    Forward mode works. Reverse mode needs `checkpoints`, because the number of iterations is not
    known: it stores that many values of `val` at a time, and computes the others again, by the
    binomial schedule of Griewank & Walther, "Algorithm 799: revolve" (2000). With K checkpoints,
    each of C(K + r, K) iterations runs at most r more times. Under vmap the loop runs until every
    element has ended; elements that have ended keep their value.

    Args:
      cond_fun: gives a boolean scalar.
      body_fun: gives a value with the structure, shapes and dtypes of `init_val`.
      init_val: a pytree of arrays.
      checkpoints: how many values reverse mode may store, at least 1; None refuses reverse mode. A
        second reverse derivative stores the square of that number.
    Returns: The last value; `init_val` where the condition does not hold at first.

    >>> print(olympus.lax.while_loop(lambda x: x < 100, lambda x: x * 2, 3))
    192
    >>> def power(x):       # the first of x, x², x⁴ … above 100
    ...     return olympus.lax.while_loop(lambda y: y < 100., lambda y: y * y, x, checkpoints=2)
    >>> print(power(3.), olympus.grad(power)(3.))
    6561.0 17496.0
    """
    check_callable("lax.while_loop", body_fun=body_fun, cond_fun=cond_fun)
    if MUTABLE and (carried := _carried.places_of(init_val)):
        inside = carried.joined
        return inside(while_loop(lambda val: cond_fun(inside(val)),
                                 _carried.closed_over("while_loop", body_fun, carried),
                                 carried.without(init_val), checkpoints=checkpoints))
    bind = while_p.bind
    if checkpoints is not None:
        if (isinstance(checkpoints, bool) or getattr(checkpoints, "ndim", 0)
                or not hasattr(checkpoints, "__index__") or checkpoints < 1):
            raise ValueError(f"while_loop: checkpoints is {checkpoints!r}; a positive int or None "
                             "is required.")
        bind = functools.partial(checkpointed_while_p.bind, checkpoints=checkpoints.__index__())
    if jit_disabled.value:
        try:
            going = _truth(cond_fun, init_val)
        except ConcretizationTypeError:
            going = None        # it is traced, after all
        if going is not None:
            val = init_val
            while going:
                val = body_fun(val)
                going = _truth(cond_fun, val)
            return val
    return bind_while(bind, cond_fun, body_fun, init_val)


def _truth(cond_fun: Callable[[PyTree], PyTree], val: object) -> bool:
    """The condition's truth for a concrete value."""
    going = cond_fun(val)
    if not isinstance(going, (bool, np.bool_)) and getattr(going, "shape", None) != ():
        raise TypeError("while_loop: cond_fun must return a boolean scalar, but got "
                        f"{going!r:.60} from {name_of(cond_fun)}; reduce with olympus.numpy.all or "
                        "any.")
    return bool(going)


@api_boundary
def fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[PyTree, PyTree], T],
              init_val: PyTree, *, unroll: int | bool | None = None, progress: bool | str = False
             ) -> T:
    """`for i in range(lower, upper): val = body_fun(i, val)`; returns the last `val`.

    With concrete bounds it is a `scan` (and reverse mode works), else a `while_loop`.

    Args:
      lower, upper: integer scalars of one dtype, or real ones; Python numbers take the other's. The
        index is weakly typed where both are concrete, as a Python number is, and else where `lower`
        is.
      body_fun: gives a value with the structure, shapes and dtypes of `init_val`.
      init_val: a pytree of arrays.
      unroll: as for `scan`; only with concrete bounds.
      progress: show a progress bar, under this label if it is a str.
    Returns: The last value; `init_val` where upper <= lower.

    >>> print(olympus.lax.fori_loop(0, 4, lambda i, x: x + i, 0))
    6
    """
    check_callable("lax.fori_loop", body_fun=body_fun)
    if MUTABLE and (carried := _carried.places_of(init_val)):
        body_fun = _carried.closed_over("fori_loop", body_fun, carried, 1)
        return carried.joined(fori_loop(lower, upper, body_fun, carried.without(init_val),
                                        unroll=unroll, progress=progress))
    flatten("fori_loop: init_val", init_val)
    aval = _index_aval(lower, upper)
    if progress:
        label = progress if isinstance(progress, str) else "fori_loop"
        body_fun = _progress.shown_fori(body_fun, label, _index(lower, aval), _index(upper, aval))
    # The staged program depends on body_fun and the index's type alone, so a later call finds it
    # (`Derived`): the index is carried, and no bound closed over.
    bounds = _concrete(lower), _concrete(upper)
    if None not in bounds:
        first: Any = bounds[0]
        last: Any = bounds[1]
        count = maximum(last - first, 0)
        if dtypes.is_inexact(aval.dtype):   # one concrete under `grad` has its derivative
            count, first = math.ceil(count), lower

        def step(carry: tuple[Array, Array | Sequence[Array]], _: object) -> tuple[PyTree, None]:
            i, val = carry
            return (add(i, literal(1, aval.dtype, aval.weak_type)), body_fun(i, val)), None

        (_, out), _ = scan(Derived(step, body_fun, aval, "fori_loop"),
                           (_index(first, aval), init_val), None, count,
                           unroll=1 if unroll is None else unroll)
        return out
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError(f"fori_loop: unroll={unroll} given with bounds that are traced. Can only "
                         "use `unroll` in `fori_loop` if the loop bounds are statically known: "
                         "Python ints; leave unroll out.")
    # For the same reason the upper bound is carried, unchanged.
    one = literal(1, aval.dtype, aval.weak_type)

    def below(state: PyTree) -> Array:
        return lt(state[0], state[1])

    def advance(state: PyTree) -> PyTree:
        return add(state[0], one), state[1], body_fun(state[0], state[2])

    return while_loop(Derived(below, body_fun, ("below", aval), "fori_loop"),
                      Derived(advance, body_fun, ("advance", aval), "fori_loop"),
                      (_index(lower, aval), _index(upper, aval), init_val))[2]


def _index_aval(lower: Any, upper: Any) -> ShapedArray:
    a, b = typeof(lower), typeof(upper)
    kinds = [dtypes.scalar_kind(x.dtype).replace("u", "i") for x in (a, b)]
    for name, x, kind in (("lower", a, kinds[0]), ("upper", b, kinds[1])):
        if x.shape != () or kind not in "if" or kinds[0] != kinds[1]:
            raise TypeError(f"fori_loop: lower and upper arguments to fori_loop must have equal "
                            f"types, got {a} and {b}; two integer scalars are required, or two "
                            f"real ones; convert {name} with int(...) or astype.")
    if a.dtype != b.dtype and not (a.weak_type or b.weak_type):
        raise TypeError("fori_loop: lower and upper arguments to fori_loop must have equal types, "
                        f"got {a} and {b}; convert one with astype.")
    index = scalar_aval(int if kinds[0] == "i" else float)
    # With concrete bounds the index is weak, as Python's, unless the default integers lack a bound.
    if not isinstance(lower, Tracer) and not isinstance(upper, Tracer):
        if kinds[0] == "f":
            return index
        bounds = dtypes.iinfo(index.dtype)
        if all(isinstance(x, SymbolicDim) or bounds.min <= int(x) <= bounds.max
               for x in (lower, upper)):
            return index
    aval = b if a.weak_type else a
    return index if aval.dtype == index.dtype and a.weak_type else aval


def _index(x: Any, aval: ShapedArray) -> Any:
    """A bound as a value of the loop index's type."""
    if isinstance(x, Tracer) or aval.weak_type:
        return cast(x, aval) if isinstance(x, Tracer) else _concrete(x)
    return np.asarray(x).astype(aval.dtype)[()]


def _concrete(x: Any) -> float | SymbolicDim | None:
    """A bound as a Python number or a dimension, None if it is traced."""
    if dtypes.is_inexact(typeof(x).dtype):
        try:
            return float(stop_gradient(x) if isinstance(x, Tracer) else x)
        except ConcretizationTypeError:
            return None
    return None if isinstance(x, Tracer) else x if isinstance(x, SymbolicDim) else int(x)
