"""A sampler is one declaration: the signature is what users call, the body is the program.

    @sampler(wide=True)
    def pareto(key, b, shape=None, dtype=None, *, out_sharding=None):
        return exp(exponential_of(key, shape, dtype) / parameter(b, dtype, shape))

In the body the key is typed, and the shape and dtype are the draws'; parameters are as they were
given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import cast

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DType, DTypeLike, F, Shape
from ..jit.fused import fused
from ..lax.convert import convert_element_type
from ..lax.sharding import constrain
from ..types import dtypes
from ..types.shape import canonical_shape
from ..types.sharding import ShardingLike
from .arguments import F32, draw_shape, float_dtype, integer_dtype
from .keys import typed, typed_scalar

METHODS = ("exact", "approximate")     # of samplers built on gamma numbers


def typed_aval(key: ArrayLike, name: str) -> None:
    """Raise unless `key` is a single key, typed or raw."""
    dtype, ndim = getattr(key, "dtype", None), getattr(key, "ndim", 2)
    if dtype is None or dtypes.is_extended(dtype) == bool(ndim) or ndim > 1:
        typed_scalar(name, key)


def at_least_32_bits(dtype: DType) -> DType:
    """The dtype to draw in: in fewer bits the law of most parameters is lost to rounding."""
    return F32 if dtypes.itemsize_bits(dtype) < 32 else dtype


def narrowed(drawn: Array, dtype: DType) -> Array:
    """Draws of at least 32 bits, converted to the dtype that was asked for."""
    return drawn if at_least_32_bits(dtype) == dtype else convert_element_type(drawn, dtype)


_OF_METHODS = {
    (): "", ("exact",): '"exact".',
    METHODS: '"exact"; or "approximate", without a loop, whose probabilities are off by less than\n'
             "0.005 for a gamma number, less for a large one: for simulations that need many\n"
             "numbers and no tails."}


def sampler(*, wide: bool = False, counts: bool = False, methods: tuple[str, ...] = ()
            ) -> Callable[[F], F]:
    """Decorator: the body is compiled once per shape and dtype, and inline where it is recorded.

    Around it the key, shape, dtype and method are checked; the result is where `out_sharding` says.
    The docstring is told what these arguments are.

    Args:
      wide: whether the body draws in float32 at least, which is narrowed to the dtype.
      counts: whether the dtype is one of integers.
      methods: the values of the argument `method`.
    """
    def decorate(fun: F) -> F:
        name, code, settle = fun.__name__, fun.__code__, integer_dtype if counts else float_dtype
        names = code.co_varnames[:code.co_argcount]
        params = names[1:names.index("shape")]

        @fused(static=("shape", "dtype", "method"))
        @functools.wraps(fun)
        def program(key: ArrayLike, *args: ArrayLike, **fixed: object) -> Array:
            return fun(typed(key), *args, **fixed)

        def settled(key: ArrayLike, operands: tuple[ArrayLike, ...], shape: int | Shape | None,
                    dtype: DTypeLike | None, out_sharding: ShardingLike, **options: str) -> Array:
            typed_aval(key, name)
            for method in options.values():
                one_of(name, method, methods)
            dtype = settle(name, dtype)
            shape = draw_shape(name, shape, *operands) if params else canonical_shape(shape, name)
            if not wide:
                drawn = program(key, *operands, shape=shape, dtype=dtype, **options)
            else:
                drawn = narrowed(program(key, *operands, shape=shape, **options,
                                         dtype=at_least_32_bits(dtype)), dtype)
            return drawn if out_sharding is None else constrain(name, drawn, out_sharding)

        # Python binds the arguments, which a function of *args and **kwargs would do in 1 us more.
        draw = eval(compile(
            f"lambda {', '.join(names)}, *, {'method, ' if methods else ''}out_sharding: settled("
            f"key, ({''.join(f'{p}, ' for p in params)}), shape, dtype, out_sharding"
            f"{', method=method' if methods else ''})", __file__, "eval"), {"settled": settled})
        functools.update_wrapper(draw, fun)
        draw.__defaults__, draw.__kwdefaults__ = fun.__defaults__, fun.__kwdefaults__
        complete_docstrings({name: draw}, {
            "key": "a single key.",
            "shape": "the result's shape" + ("." if () in (params, *(fun.__defaults__ or ())) else
                                             "; None is that of the parameters."),
            "dtype": f"{'an integer' if counts else 'a float'} dtype; None is the default one.",
            "method": _OF_METHODS[methods],
        })
        return cast("F", draw)

    return decorate


def one_of(name: str, method: str, methods: tuple[str, ...]) -> str:
    """The method; ValueError unless it is one of these."""
    if method not in methods:
        raise ValueError(f"{name}: method {method!r} given; {' or '.join(map(repr, methods))} is "
                         "required.")
    return method
