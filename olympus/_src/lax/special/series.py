"""Functions that series and continued fractions compute: elementwise, by loops inside the lowering.

`Computed` is the family: on CPU its value is a function of float64 arrays in terms of array
operations, so that results of all narrower dtypes are nearly always the correctly rounded ones.
Accelerators compute float32 in float32: TPUs have no float64 and emulate it, in a hundred times the
operations. `iterate` is the loop; it exists only in lowered code and so needs no rules.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, Unpack

import numpy as np

from ...base import config
from ...base.typing import Array, ArrayLike, DType, DTypeLike, IrValue
from ...base.util import lazy_module, memoize
from ...core import tags
from ...core.facts import GivenFacts
from ...core.ir import ClosedOlympuspr
from ...core.primitive import Builder, Primitive
from ...core.staging import stage
from ...core.trace import typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ..arithmetic import div, mul, sub
from ..bits import bitwise_and, bitwise_or
from ..comparison import ge, le, lt, select
from ..convert import convert_element_type
from ..creation import full_like
from ..families import FLOATING, Elementwise, Partial, add, full_shape
from ..reduce import reduce_or
from ..transcendental import log1p

BOOL, F32, F64 = np.dtype(bool), np.dtype("float32"), np.dtype("float64")
Step = Callable[[Array, Sequence[Array], Sequence[Array]], tuple[Array, Sequence[Array]]]


class Iterate(Primitive):
    """Repeat `step` where its first operand, bool, holds, until it holds nowhere or `limit` times.

    Operands are (active, state ..., constants ...) of one shape; results are the state.
    """

    spread = staticmethod(tags.elementwise)
    multiple_results = True
    jvp = transpose = vmap = None
    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.iterations"), 512

    def infer(self, active: ShapedArray, *xs: ShapedArray, step: Step, states: int, limit: int
              ) -> list[ShapedArray]:
        full_shape(self.name, (active, *xs))
        return list(xs[:states])

    def lower(self, b: Builder, active: IrValue, *xs: IrValue, step: Step, states: int, limit: int
              ) -> Sequence[IrValue]:
        avals = b.avals_in
        count = make_aval((), F32 if dtypes.to_real_dtype(avals[1].dtype) == F32 else F64)
        axes = tuple(range(avals[0].ndim))

        def go_on(i: Array, active: Array) -> list[Array]:
            return [bitwise_and(reduce_or(active, axes), lt(i, float(limit)))]

        def body(i: Array, active: Array, *xs: Array) -> Sequence[Array]:
            state, constants = xs[:states], xs[states:]
            again, new = step(i, state, constants)
            return [add(i, 1.0), bitwise_and(active, again),
                    *(select(active, n, s) for n, s in zip(new, state, strict=True))]

        with config.enable_x64(count.dtype == F64):
            cond_program = stage(go_on, (count, avals[0]))
            body_program = stage(body, (count, *avals))
        out = b.while_loop(
            [b.constant(0.0, count), active, *xs],
            lambda i, active, *_: b.call_inline(cond_program, (i, active))[0],
            lambda *values: [*b.call_inline(body_program, values), *values[2 + states:]])
        return out[2:2 + states]


iterate_p = Iterate("iterate")


def iterate(step: Step, active: ArrayLike, state: Sequence[ArrayLike],
            constants: Sequence[ArrayLike], limit: int) -> list[Array]:
    """The state after `step(i, state, constants) -> (again, new state)` for i = 0.0, 1.0 …

    Args:
      step: a function of lax operations that holds no arrays of its own.
      active: bool array: where to go on. An element stops for good when `again` fails there.
      state, constants: arrays of the shape of `active`.
      limit: the largest number of steps.
    """
    return iterate_p.bind(active, *state, *constants, step=step, states=len(state), limit=limit)


class Loop(NamedTuple):
    """The arguments of `iterate` but for the limit."""

    step: Step
    active: Array
    state: Sequence[Array]
    constants: Sequence[Array]


def iterate_either(first: Loop, second: Loop, limit: int
                   ) -> tuple[Sequence[Array], Sequence[Array]]:
    """The states after two loops of one type; an element takes at most one of them.

    In float32 they are one loop, which has half of the kernels and, on GPUs, half of the waits. A
    step of it takes as long as two, so CPUs keep both.
    """
    if not is_short(first.state[0]):
        return iterate(*first, limit), iterate(*second, limit)
    count, steps = len(first.state), (first.step, second.step)
    shared = {id(x): x for x in (*first.constants, *second.constants)}
    ours, theirs = ([list(shared).index(id(x)) for x in loop.constants] for loop in (first, second))

    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, Sequence[Array]]:
        by_first, *values = constants
        again, new = steps[0](i, state[:count], [values[k] for k in ours])
        later, newer = steps[1](i, state[count:], [values[k] for k in theirs])
        return select(by_first, again, later), [*new, *newer]

    out = iterate(step, bitwise_or(first.active, second.active), [*first.state, *second.state],
                  [first.active, *shared.values()], limit)
    return out[:count], out[count:]


def tolerance(dtype: DTypeLike, wide: DTypeLike = F64) -> float:
    """The relative size of the rest that a sum in `wide` may leave out for a result of `dtype`.

    In float32 it is the distance of 1 and the next number, by which a quotient of convergents that
    are rounded may differ from 1 for ever.
    """
    if dtypes.finfo(wide).bits == 32:
        return 2.0 ** -23
    return 2.0 ** -54 if dtypes.finfo(dtype).bits == 64 else 2.0 ** -34


def least_normal(x: ArrayLike) -> float:
    """The least positive normal number of the dtype in which is computed: some take less for 0."""
    return float(dtypes.finfo(typeof(x).dtype).tiny)


def is_short(x: ArrayLike) -> bool:
    """Whether a formula computes in float32, for whose digits fewer terms of a series suffice."""
    return dtypes.finfo(typeof(x).dtype).bits <= 32


def enough(x: ArrayLike, coefficients: Sequence[float], within: float) -> Sequence[float]:
    """The coefficients of a power series in `x` that count in its dtype, for |x| <= `within`.

    In float32 the terms left out are together below 2^-28 of the first. Compilers of accelerators
    take a second for a thousand operations.
    """
    return _first_terms(coefficients, within) if is_short(x) else coefficients


def _first_terms(coefficients: Sequence[float], within: float) -> Sequence[float]:
    count, rest = len(coefficients), 2.0 ** -28 * abs(coefficients[0])
    while count > 2 and rest >= (last := abs(coefficients[count - 1]) * within ** (count - 1)):
        count, rest = count - 1, rest - last
    return coefficients[:count]


@memoize(64)
def _economised(coefficients: tuple[float, ...], least: float, most: float) -> Sequence[float]:
    """A polynomial of fewer terms within 2^-28 of the first one, in [least, most].

    The last terms of its Chebyshev series are left out, which are smaller than its own last terms.
    """
    whole = np.polynomial.Polynomial(coefficients)
    series = whole.convert(domain=[least, most], kind=np.polynomial.Chebyshev)
    scaled = [value / abs(coefficients[0]) for value in series.coef.tolist()]
    short = series.truncate(len(_first_terms([1.0, *scaled[1:]], 1.0)))
    return short.convert(domain=whole.domain, kind=np.polynomial.Polynomial).coef.tolist()


def polynomial_in(x: ArrayLike, coefficients: Sequence[float], most: float = math.inf,
                  least: float = 0.0) -> Array:
    """Sum of coefficients[k] x**k, by Horner's rule; in float32 fewer terms, for x in a range."""
    if most < math.inf and is_short(x):
        coefficients = _economised(tuple(coefficients), least, most)
    total = add(mul(x, coefficients[-1]), coefficients[-2])
    for c in coefficients[-3::-1]:
        total = add(mul(x, total), c)
    return total


def log1p_minus(x: ArrayLike) -> Array:
    """ln(1+x) - x for x > -1, without cancellation for small x.

    With r = x / (2+x), ln(1+x) = 2 artanh(r) (DLMF 4.6.3), so the difference is
    r (2 r² (1/3 + r²/5 + ...) - x).
    """
    near = bitwise_and(ge(x, -0.5), le(x, 1.0))
    small = log1p_minus_near(select(near, x, full_like(x, 0.0)))
    return select(near, small, sub(log1p(select(near, full_like(x, 1.0), x)), x))


def log1p_minus_near(x: Array) -> Array:
    """`log1p_minus` for -1/2 <= x <= 1."""
    r = div(x, add(x, 2.0))
    r2 = mul(r, r)
    series = polynomial_in(r2, [1.0 / (2 * k + 3) for k in range(17)], 1 / 9)
    return mul(r, sub(mul(mul(2.0, r2), series), x))


class Computed(Elementwise):
    """Elementwise operation: `fun(tolerance, *arrays, **params)` of float64 or complex128 arrays.

    Where `wide` is "float32", and on accelerators, of arrays of the operands' own dtype, or of
    float32 if that is less: for formulas that a few operations compute without loss.
    """

    algebra = "called"
    pace = 200.0
    hands_on_nan = False    # not all do: a polynomial of degree 0 is 1, whatever its operand

    def __init__(self, name: str, fun: Callable[..., Array], partials: Sequence[Partial],
                 kinds: str = FLOATING, wide: str = "float64", **facts: Unpack[GivenFacts]) -> None:
        super().__init__(name, name, kinds, partials, **facts)
        self.program = memoize(256)(functools.partial(_program, fun))
        self.least = np.dtype(wide)

    def lower(self, b: Builder, *xs: IrValue, **params: Hashable) -> IrValue:
        out = b.avals_out[0]
        # Others need not ask for the platform.
        small = dtypes.itemsize_bits(dtypes.to_real_dtype(out.dtype)) <= 32
        least = F32 if small and self.least == F64 and b.platform != "cpu" else self.least
        # Without 64-bit types the numbers and tables of a formula are float32, too.
        x64 = not (small and least == F32 and b.platform != "cpu")
        program = self.program(least, x64, out.shape, out.dtype, len(xs), **params)
        # Lowered operations may make further ones, and bounds of float64 are infinite in float32.
        with config.enable_x64(x64), np.errstate(over="ignore"):
            return b.call(program, b.expand(xs), self.name)[0]


def _program(fun: Callable[..., Array], least: np.dtype, x64: bool, shape: tuple[int, ...],
             dtype: DType, count: int, **params: Hashable) -> ClosedOlympuspr:
    """`fun` between conversions to `least` or more and back, staged for one shape and dtype."""
    wide = np.result_type(dtype, least) if dtypes.itemsize_bits(dtype) >= 32 else least

    def widened(*xs: Array) -> Sequence[Array]:
        xs = tuple(convert_element_type(x, wide) for x in xs)
        return [convert_element_type(fun(tolerance(dtype, wide), *xs, **params), dtype)]

    with config.enable_x64(x64):
        return stage(widened, [make_aval(shape, dtype)] * count)
