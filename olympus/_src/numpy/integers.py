"""Greatest common divisors and least common multiples, by Euclid's algorithm."""

from __future__ import annotations

from ..base.typing import Array, ArrayLike
from ..control_flow.while_loop import while_loop
from ..core.trace import literal
from ..lax.arithmetic import div, mul, rem
from ..lax.comparison import eq, ne
from ..lax.reduce import reduce_or
from ..types import dtypes
from ..types.shape import broadcast_shapes
from .arithmetic import absolute, zero_of
from .eager import eager_named
from .promote import BOOL, broadcast_to, choose, promote


def _integers(name: str, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    x, y = promote(name, x, y)
    if not dtypes.is_integer(x.dtype) or x.dtype == BOOL:
        raise ValueError(f"{name}: operands of dtype {x.dtype} given; integers are required.")
    shape = broadcast_shapes(x.shape, y.shape)
    return broadcast_to(absolute(x), shape), broadcast_to(absolute(y), shape)


def _euclid(x: Array, y: Array) -> Array:
    zero = zero_of(x)

    def unfinished(pair: tuple[Array, Array]) -> Array:
        rest = ne(pair[1], zero)
        return reduce_or(rest, tuple(range(rest.ndim))) if rest.ndim else rest

    def step(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        x, y = pair
        going = ne(y, zero)
        divisor = choose(going, y, literal(1, x.dtype, x.aval.weak_type))
        return choose(going, y, x), choose(going, rem(x, divisor), y)

    return while_loop(unfinished, step, (x, y))[0]


@eager_named
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor, never negative; of 0 and n it is |n|.

    Args: x1, x2: arrays or numbers that broadcast, of integers; other dtypes are a ValueError.
    Returns: An array of the broadcast shape and promoted dtype; 0 of two zeros.

    >>> onp.gcd(onp.array([12, -18, 0]), 8)
    Array([4, 2, 8], dtype=int32)
    """
    return _euclid(*_integers("gcd", x1, x2))


@eager_named
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple, never negative; 0 if either number is.

    Args: x1, x2: arrays or numbers that broadcast, of integers; other dtypes are a ValueError.

    Returns:
      An array of the broadcast shape and promoted dtype, which wraps around if that is too narrow.

    >>> onp.lcm(onp.array([4, -6, 0]), 10)
    Array([20, 30,  0], dtype=int32)
    """
    x, y = _integers("lcm", x1, x2)
    divisor = _euclid(x, y)
    none = eq(divisor, zero_of(x))
    return mul(div(x, choose(none, literal(1, x.dtype, x.aval.weak_type), divisor)), y)
