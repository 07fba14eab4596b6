"""A compiled program computes what its operations say: each kind of rewriting that XLA:CPU knows.

The right values are NumPy's, which computes an operation at a time, in the same dtype or by hand.
Numbers lie at the edges of each format.

A jaxlib that rewrites anew fails a test: `.ci/run` runs this file and generated programs
(`tools/faithful.py`) on the newest one. Where a generated program fails, the tool prints the least
one that does; its kind becomes a row here, and a kind of operation in `lowering/fences.py`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import export, lax, nn
from olympus.sharding import Mesh, PartitionSpec

FLOATS = ("float16", "bfloat16", "float32", "float64")
LIMITS = {name: (float(info.max), float(info.smallest_normal))
          for name in FLOATS for info in [olympus.dtypes.finfo(name)]}


def spread(xp: Any, s: Any) -> Any:
    """A scalar at the shape of the arrays of a row."""
    return lax.broadcast(s, (2,)) if xp is onp else np.stack([s, s])


def full(xp: Any, number: float, x: Any) -> Any:
    """An array of one number, like another array."""
    return xp.full((2,), number, dtype=x.dtype)


# A name, the function of (the module, the greatest number, arrays) and the arrays in terms of the
# greatest number M and T, the smallest normal one.
ROWS: dict[str, tuple[Callable[..., Any], Callable[[float, float], list[list[float]]]]] = {
    "x * c * c": (lambda xp, m, x: x * m**.6 * m**.6, lambda M, T: [[0, M**-.7]]),
    "x * c * a scalar": (lambda xp, m, x, y: x * m**.6 * spread(xp, y[0]),
                         lambda M, T: [[0, M**-.7], [M**.6] * 2]),
    "x * full(c) * full(c)": (lambda xp, m, x: x * full(xp, m**.6, x) * full(xp, m**.6, x),
                              lambda M, T: [[0, M**-.7]]),
    "(x * c) ** 2": (lambda xp, m, x: xp.square(x * m**.6), lambda M, T: [[0, M**-.6]]),
    "(x * c) ** 3": (lambda xp, m, x: (x * m**.4) ** 3, lambda M, T: [[0, M**-.4]]),
    "(x * c) * (y / c)": (lambda xp, m, x, y: (x * m**.6) * (y / m**-.6),
                          lambda M, T: [[0, M**-.6], [0, M**-.6]]),
    "(x * c) * (y * c)": (lambda xp, m, x, y: (x * m**-.2) * (y * m**-.2),
                          lambda M, T: [[M**.6] * 2, [M**.6] * 2]),
    "(x * 0) * (y * 0)": (lambda xp, m, x, y: (x * 0.0) * (y * 0.0),
                          lambda M, T: [[M**.6] * 2, [M**.6] * 2]),
    "(x + c) + d": (lambda xp, m, x: (x + 2.5) + 2.5 * 2.0**-int(np.log2(m) / 2),
                    lambda M, T: [[-2.5, 1]]),
    "x / c / c": (lambda xp, m, x: x / m**.6 / m**.6, lambda M, T: [[M, M / 2]]),
    "c / (c / x)": (lambda xp, m, x: m**.6 / (m**-.4 / x), lambda M, T: [[1, M**-.4]]),
    "x + c + c": (lambda xp, m, x: (x + m * .75) + m * .75, lambda M, T: [[-.75 * M, -M / 2]]),
    "c - x + c": (lambda xp, m, x: (m * .75 - x) + m * .75, lambda M, T: [[.75 * M, M / 2]]),
    "x / y / z": (lambda xp, m, x, y, z: x / y / z,
                  lambda M, T: [[M, M / 2], [M**.6] * 2, [M**.6] * 2]),
    "x / y / c": (lambda xp, m, x, y: x / y / (m / 2), lambda M, T: [[M, M], [2, 1]]),
    "x / c / y": (lambda xp, m, x, y: x / (m / 2) / y, lambda M, T: [[M, M], [2, M**.25]]),
    "x / (y / z)": (lambda xp, m, x, y, z: x / (y / z),
                    lambda M, T: [[M**.7] * 2, [M**.7] * 2, [M**.7] * 2]),
    "(x / y) / (z / w)": (lambda xp, m, x, y, z, w: (x / y) / (z / w),
                          lambda M, T: [[M**.7] * 2, [M**.8] * 2, [M**.7] * 2, [M**.6] * 2]),
    "(x / y) / (y / x)": (lambda xp, m, x, y: (x / y) / (y / x),
                          lambda M, T: [[T**.6] * 2, [2 * T**.6] * 2]),
    "x / c": (lambda xp, m, x: x / (m * .9), lambda M, T: [[M, -M / 2]]),
    "x / array": (lambda xp, m, x: x / xp.array([m * .9, 2], dtype=x.dtype),
                  lambda M, T: [[M, -M / 2]]),
    "x / a scalar": (lambda xp, m, x, y: x / spread(xp, y[0]),
                     lambda M, T: [[M, -M / 2], [.9 * M] * 2]),
    "x / abs(a scalar)": (lambda xp, m, x, y: x / abs(spread(xp, y[0])),
                          lambda M, T: [[M, -M / 2], [-.9 * M] * 2]),
    "c x + c y": (lambda xp, m, x, y: .5 * x + .5 * y, lambda M, T: [[M, -M], [M * .9, -M]]),
    "c x + c y + c z": (lambda xp, m, x, y, z: .25 * x + .25 * y + .5 * z,
                        lambda M, T: [[M, M], [M, -M], [M * .75, M]]),
    "x * (1 - c) + y * c": (lambda xp, m, x, y: x * (1 - .5) + y * .5,
                            lambda M, T: [[M * .9, 1], [M * .9, 1]]),
    "x / exp(y)": (lambda xp, m, x, y: x / xp.exp(y),
                   lambda M, T: [[M * .3] * 2, [np.log(M) - .2] * 2]),
    "x / exp2(y)": (lambda xp, m, x, y: x / xp.exp2(y),
                    lambda M, T: [[M * .3] * 2, [np.floor(np.log2(M))] * 2]),
    "x / y ** z": (lambda xp, m, x, y, z: x / y ** z,
                   lambda M, T: [[M * .3] * 2, [2.] * 2, [np.floor(np.log2(M))] * 2]),
    "exp(x) ** y": (lambda xp, m, x, y: xp.exp(x) ** y, lambda M, T: [[-np.inf, 0], [0, 1]]),
    "log(x ** y)": (lambda xp, m, x, y: xp.log(x ** y), lambda M, T: [[-1, 1], [3, -np.inf]]),
    "1 / (x + 0)": (lambda xp, m, x: 1 / (x + 0.0), lambda M, T: [[-0.0, 1]]),
    "1 / (0 - -x + zeros)": (lambda xp, m, x: 1 / (0.0 - -x + full(xp, 0, x)),
                             lambda M, T: [[-0.0, 1]]),
    "max(clip(x), c)": (lambda xp, m, x: xp.maximum(xp.minimum(xp.maximum(x, .1), .1), x),
                        lambda M, T: [[3, -1]])}


NO_SCALARS = ("x / array", "x / a scalar", "x / abs(a scalar)", "x * c * a scalar",
              "x * full(c) * full(c)")


# XLA:CPU alone multiplies by the reciprocal of a repeated scalar: a barrier keeps it from it there.
BY_SCALARS = {"x / c", "x / a scalar", "x / abs(a scalar)", "x / array", "x / y / c", "x / c / y"}


def arrays(row: str, name: str) -> list[Any]:
    return [np.array(each).astype(onp.dtype(name)) for each in ROWS[row][1](*LIMITS[name])]


@pytest.mark.parametrize("row", ROWS)
def test_floats_are_not_real_numbers(row):
    def run(xp, args):
        """Of arrays and of scalars, which XLA rewrites further."""
        def of(name, *xs):
            return ROWS[row][0](xp, LIMITS[name][0], *xs)

        with np.errstate(all="ignore"):
            return {name: [of(name, *xs), *([] if row in NO_SCALARS else [
                of(name, *(x[0] for x in xs))])] for name, xs in args.items()}

    with olympus.enable_x64(True):
        args = {name: arrays(row, name) for name in FLOATS}
        traced = olympus.jit(lambda xs: run(onp, xs)).trace(args)
        expected, (found, elsewhere) = run(np, args), [
            traced.lower(lowering_platforms=(platform,)).compile()(args)
            for platform in ("cpu", "cuda")]    # fences of accelerators, compiled here
        eager = run(onp, {name: [*map(onp.asarray, xs)] for name, xs in args.items()})
    for name in FLOATS:
        rtol = 8 * float(olympus.dtypes.finfo(name).eps) * np.log2(LIMITS[name][0])
        for outs in found[name], eager[name], *([] if row in BY_SCALARS else [elsewhere[name]]):
            for out, right in zip(outs, expected[name], strict=True):
                np.testing.assert_allclose(np.float64(out), np.float64(right), rtol, err_msg=name)


@pytest.mark.parametrize(("scale", "x", "expected"), [
    (140, [1e-10, 0], [1.393796574908163e32, 0]), (-160, [1e30, 0], [6.842277657836021e-19, 0]),
    (250, [1.2e-38, 0], [1.2e-38 * 2.0**250, 0])])
def test_ldexp_scales_in_steps(scale, x, expected):
    found = olympus.jit(lambda x: onp.ldexp(x, scale))(np.float32(x))
    np.testing.assert_allclose(found, expected, 1e-6)


@pytest.mark.parametrize("f", [
    lambda x, y, z: x * 1e20 * 1e20, lambda x, y, z: x / y / z, lambda x, y, z: (x / y) / (z / y)])
def test_complex_numbers_are_not_real_ones_either(f):
    args = np.complex64([[0, 1e38j], [1e20, 1e30], [1e20, 1e30]])[:, :1]
    found = olympus.jit(f)(*args)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, f(*args.astype("complex128")), 1e-6)


@pytest.mark.parametrize("divisor", [2, -2j, 3 - 4j, 2.0, complex(-0.0, 2)])
def test_complex_quotients_by_constants_have_the_zeros_of_quotients(divisor):
    """Regression: XLA multiplied by the reciprocal, so (0-0j) / 2 was 0+0j."""
    x = np.complex64([complex(a, b) for a in (0.0, -0.0, 1, -1) for b in (0.0, -0.0, 1, -2)])
    eager = onp.asarray(x) / divisor        # first: its program is no recipe for the other
    for found in eager, olympus.jit(lambda x: x / divisor)(x):
        for part in np.real, np.imag:
            want = part(x / np.complex64(divisor))
            np.testing.assert_allclose(part(found), want, 1e-6, 1e-7)
            np.testing.assert_array_equal(np.signbit(part(found)), np.signbit(want))


@pytest.mark.parametrize("zero", [0j, -0j, complex(0, -0.0), complex(-0.0, 0)])
def test_sums_with_a_complex_zero_have_the_signs_of_its_parts(zero):
    """Regression: XLA dropped the sum, or both parts lost their sign: -0j + (0-0j) was 0j."""
    x = np.complex64([complex(a, b) for a in (0.0, -0.0, 1) for b in (0.0, -0.0, -2)])
    zero = np.complex64(zero)
    for fun, want in ((lambda x, c: x + c, x + zero), (lambda x, c: x - c, x - zero),
                      (lambda x, c: c + x, x + zero), (lambda x, c: c - x, zero - x),
                      (lambda x, c: x + onp.conj(c), x + zero.conj()),
                      (lambda x, c: x + lax.complex(c.real, onp.asarray(c.imag)), x + zero),
                      (lambda x, c: lax.fori_loop(0, 2, lambda i, y: y + c, x), x + zero)):
        for constant in zero, np.full(x.shape, zero):
            found = np.asarray(olympus.jit(lambda x: fun(x, constant))(x))
            np.testing.assert_array_equal(np.signbit(found.real), np.signbit(want.real))
            np.testing.assert_array_equal(np.signbit(found.imag), np.signbit(want.imag))


def test_numbers_taken_from_complex_ones_are_real_to_no_pass():
    """Regression: NumPy warned that imaginary parts are lost, which tests take for an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert olympus.jit(lambda z: (z - 1) - 2)(np.complex64(4 + 2j)) == 1 + 2j


def test_zeros_lose_their_sign_in_sums():
    """-0 + 0 is 0, as NumPy has it: for arrays of zeros, other constants, and complex numbers."""
    zeros = np.zeros(2, "float32")
    sums = [lambda x: x + zeros, lambda x: (x + 0.0) + 0.0, lambda x: x - np.float32(-0.0),
            lambda x: lax.complex(x, x) + 0j, lambda x: x - zeros, lambda x: x + np.float32(-0.0),
            lambda x: x + -zeros]
    x = np.float32([-0.0, 3])
    for found in olympus.jit(lambda x: [f(x) for f in sums[:4]])(x):
        assert not np.signbit([np.real(found), np.imag(found)]).any()
    for found in olympus.jit(lambda x: [f(x) for f in sums[4:]])(x):
        assert np.signbit(found).tolist() == [True, False]


def test_complex_constants_whose_absolute_value_overflows():
    """Python's abs raises an OverflowError for them."""
    c = complex(1.7e308, 1.7e308)
    with olympus.enable_x64(True):
        found = olympus.jit(lambda x: (x * 2.0) * (x * c))(np.complex128(1e-200))
    np.testing.assert_allclose(found, 2e-200 * (1e-200 * c), 1e-12)


INTS: dict[str, tuple[Callable[[Any, Any], Any], int, object]] = {
    "x * x < 0": (lambda xp, x: x * x < 0, 50000, True),
    "x * x >= 0": (lambda xp, x: x * x >= 0, 50000, False),
    "square(x) < 0": (lambda xp, x: xp.square(x) < 0, 50000, True),
    "abs(x) < 0": (lambda xp, x: abs(x) < 0, -2**31, True),
    "abs(x * x)": (lambda xp, x: abs(x * x), 50000, 1794967296),
    "x * x // 1024": (lambda xp, x: x * x // 1024, 50001, -1752801),
    "x * x % 8": (lambda xp, x: x * x % 8, 50001, 1),
    "rem(x * x, 8)": (lambda xp, x: lax.rem(x * x, xp.int32(8)), 50001, -7),
    "sign(x * x)": (lambda xp, x: xp.sign(x * x), 50000, -1),
    "max(clamp(x), 60000)": (lambda xp, x: xp.maximum(lax.clamp(y := x + 10000, x, x), y), 50000,
                             60000),
    "max(x * x, 0)": (lambda xp, x: xp.maximum(x * x, 0), 50000, 0),
    "x * x >> 3": (lambda xp, x: x * x >> 3, 50000, -224370912)}


@pytest.mark.parametrize("row", INTS)
def test_integers_have_bounds(row):
    f, x, expected = INTS[row]
    assert int(olympus.jit(lambda x: f(onp, x))(np.int32(x))) == int(expected)


@pytest.mark.parametrize("name", ["int4", "int8", "int32", "uint8", "uint64"])
@pytest.mark.parametrize("f", [
    lambda x: lax.div(x, x), lambda x: lax.div(x + 1 - 1, x), lambda x: lax.div(x | x, x & x),
    lambda x: olympus.jit(lax.div)(x, x)])
def test_an_integer_by_itself(f, name):
    """By zero all bits are set."""
    with olympus.enable_x64(True):
        x = onp.asarray([0, 1, 3], name)
        found = np.asarray(olympus.jit(f)(x)).astype("int64").astype("uint64")
    assert found.tolist()[1:] == [1, 1] and int(found[0]) % 16 == 15


@pytest.mark.parametrize("name", ["int4", "int32", "uint16", "uint64"])
def test_no_integer_is_divided_by_zero(name):
    """Each divisor that may be 0 is another number where it is 0, in what XLA is given: it would
    end the process where it divides two constants itself.
    """
    def run(x, y):
        zeros = lax.full((3,), 0, name)
        return (lax.div(x, y), lax.rem(x, y), lax.div(x, zeros), lax.rem(x, zeros),
                lax.div(x, y & 0), lax.rem(x, 0))

    with olympus.enable_x64(True):
        x, y = onp.asarray([0, 5, 7], name), onp.asarray([0, 0, 2], name)
        lowered = olympus.jit(run).lower(x, y)
        found = [np.asarray(r).astype("int64") for r in lowered.compile()(x, y)]
        ones = int(np.asarray(onp.asarray(-1, "int64").astype(name)).astype("int64"))
    assert [r.tolist() for r in found] == [[ones, ones, 3], [0, 5, 1], [ones] * 3, [0, 5, 7],
                                           [ones] * 3, [0, 5, 7]]
    lines = lowered.as_text().splitlines()
    selected = {line.split()[0] for line in lines if "stablehlo.select" in line}
    divisors = {line.split(":")[0].split(", ")[-1].strip() for line in lines
                if "stablehlo.divide" in line or "stablehlo.remainder" in line}
    assert divisors and divisors <= selected


@pytest.mark.parametrize("f", [
    lambda x, y: x.astype("uint16") & y, lambda x, y: y | x.astype("uint16"),
    lambda x, y: x.astype("uint16")[::-1] & y,
    lambda x, y: x.astype("uint16") & np.uint16([7, 3, 1]),
    lambda x, y: olympus.jit(lambda x: x.astype("uint16") | y)(x),
    lambda x, y: olympus.jit(lambda x: x | y)(x.astype("uint16")),
    lambda x, y: olympus.jit(lambda x: x.astype("uint16"))(x) & y,
    lambda x, y: olympus.checkpoint(lambda x: x & y)(x.astype("uint16")),
    lambda x, y: lax.cond(True, lambda x: x & y, lambda x: x, x.astype("uint16")),
    lambda x, y: lax.fori_loop(0, 1, lambda i, x: x & y, x.astype("uint16")),
    # XLA drops what stands between.
    lambda x, y: x.astype("uint16") * 1 & y, lambda x, y: (x.astype("uint16") ^ 0) & y,
    lambda x, y: ~~x.astype("uint16") & y, lambda x, y: x.astype("uint8").astype("uint16") & y,
    lambda x, y: lax.select_n(np.array(True), y, x.astype("uint16")) & y,
    lambda x, y: lax.optimization_barrier(x.astype("uint16")) & y,
    lambda x, y: x.astype("uint16").reshape(1, 3).sum(0, dtype="uint16") & y,
    lambda x, y: onp.clip(x.astype("uint16"), 0, 2**16 - 1) & y,
    lambda x, y: onp.cumsum(x.astype("uint16"), dtype="uint16") & x.astype("uint16")])
def test_a_narrowed_integer_and_its_mask_are_kept_apart(f):
    """Jaxlib 0.10.2 ended the process where the narrowed integer had a sign: all are read from
    memory, from where they are narrowed to where they are masked.
    """
    text = olympus.jit(f).lower(np.arange(3, dtype="int32"), np.uint16([1, 2, 3])).as_text()
    kept = {line.split()[0] for line in text.splitlines() if "call @held" in line}
    masked = re.search(r"stablehlo.(?:and|or) (%\w+), (%\w+)", text)
    assert masked
    given = "func.func private" in text.replace("@held", "") or "stablehlo.case" in text or (
        "stablehlo.while" in text)
    assert kept if given else kept & {*masked.groups()}


@pytest.mark.parametrize("reduce", [
    lax.reduce_and, lax.reduce_or, lambda x, axes: lax.reduce_window(
        x, np.uint16(2**16 - 1), lax.bitwise_and, (2, 1), (1, 1), "VALID")])
def test_a_narrowed_integer_among_what_a_mask_reduces_is_kept_apart(reduce):
    """XLA makes an operation of two joined arrays that are reduced."""
    def run(x, y):
        return reduce(onp.stack([x.astype("uint16"), y]), (0,))

    x, y = np.int32([0, 70000, 9]), np.uint16([1, 2, 3])
    text = olympus.jit(run).lower(x, y).as_text()
    kept = re.search(r"(%\w+) = func.call @held|(%\w+) = call @held", text)
    reduced = re.search(r"stablehlo.reduce(?:_window)?\"?\((%\w+)", text)
    assert kept and reduced and reduced[1] in kept.groups()


# `f(x, 0)` is a sum.
GIVEN_ZERO: dict[str, Callable[[Any], Any]] = {
    "a call": lambda x: olympus.jit(lambda x, c: x + c)(x, 0.0),
    "with an array": lambda x: olympus.jit(lambda x, c: x + c)(x, onp.zeros(2)),
    "minus": lambda x: olympus.jit(lambda x, c: x - c)(x, -0.0),
    "a call in a call": lambda x: olympus.jit(lambda x, c: olympus.jit(lambda x: x + c)(x))(x, 0.0),
    "a result": lambda x: x + olympus.jit(lambda: 0.0)(),
    "an array as result": lambda x: x + olympus.jit(lambda: onp.zeros(2))(),
    "an argument as result": lambda x: x + olympus.jit(lambda c: c)(0.0),
    "cond": lambda x: lax.cond(x[1] > 0, lambda x, c: x + c, lambda x, c: x, x, 0.0),
    "checkpoint": lambda x: olympus.checkpoint(lambda x, c: x + c)(x, 0.0),
    "one iteration": lambda x: lax.scan(lambda c, _: (c + x, None), onp.zeros(2), None, 1)[0],
    "xs": lambda x: lax.scan(lambda c, t: (c, x + t), 0, onp.zeros((3, 2)))[1][0],
    "one of xs": lambda x: lax.scan(lambda c, t: (c, x + t), 0, np.float32([3, 0, -0.0]))[1][1],
    "a product": lambda x: x + onp.zeros(2) * 2, "a sum": lambda x: x + onp.zeros((3, 2)).sum(0),
    "a difference": lambda x: x + (onp.ones(2) - 1),
    "joined": lambda x: x + onp.concatenate([onp.zeros(1), onp.zeros(1)]),
    "of int": lambda x: x + onp.zeros(2, "int32").astype(x.dtype),
    # What XLA computes of constants.
    "a choice": lambda x: x + onp.where(True, 0.0, 1.0), "a sine": lambda x: x + onp.sin(0.0),
    "a clip": lambda x: x + onp.clip(full(onp, -3, x), full(onp, 0, x), full(onp, 1, x)),
    "a comparison": lambda x: x + (full(onp, 1, x) > full(onp, 2, x)).astype(x.dtype),
    "a maximum": lambda x: x + lax.reduce_max(onp.zeros((2, 2), x.dtype), (0,)),
    "minus a sine": lambda x: x - -onp.sin(full(onp, 0, x)),
    "bits": lambda x: x + lax.bitcast_convert_type(onp.zeros(2, "int32"), "float32"),
    "a gather": lambda x: x + onp.zeros(5, x.dtype)[onp.array([0, 3])],
    "a computed argument": lambda x: olympus.jit(lambda x, c: x + c)(x, onp.sin(0.0)),
    "a computed result": lambda x: x + olympus.jit(lambda c: c * 0 + onp.zeros(2))(1.0),
    # A carry that a loop returns as it was.
    "a while loop's carry": lambda x: lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1], s[2] + s[1]),
        (0, onp.zeros(2, x.dtype), x))[2],
    "a for loop's carry": lambda x: lax.fori_loop(
        0, 3, lambda i, s: (s[0], s[1] + s[0]), (onp.zeros(2, x.dtype), x))[1],
    "a scan's carry": lambda x: lax.scan(
        lambda s, r: (s, r + s), onp.zeros((), x.dtype), x)[1],
    "a loop's result": lambda x: x + lax.fori_loop(
        0, 3, lambda i, s: (s[0], s[1] + 1), (onp.zeros(2, x.dtype), x))[0],
    # What a function computes of a constant argument.
    "a sine within": lambda x: olympus.jit(lambda x, c: x + onp.sin(c))(x, 0.0),
    "a difference within": lambda x: olympus.checkpoint(lambda x, c: x + (1 - c))(x, onp.ones(2)),
    "a logarithm within cond": lambda x: lax.cond(
        x[1] > 0, lambda x, c: x + onp.log(c), lambda x, c: x, x, full(onp, 1, x)),
    "a function's result within": lambda x: olympus.jit(
        lambda x, c: x + olympus.jit(onp.log)(c))(x, 1.0),
    "an integer within": lambda x: olympus.jit(
        lambda x, c: x + (c - 1).astype(x.dtype))(x, onp.asarray(1)),
    "what a loop carries": lambda x: lax.fori_loop(
        0, 3, lambda i, s: (s[0] + onp.log(s[1]), s[1]), (x, full(onp, 1, x)))[0]}


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_zeros_lose_their_sign_in_sums_with_a_zero_from_elsewhere(name):
    x = onp.asarray([-0.0, 3], name)
    found = olympus.jit(lambda x: {key: f(x) for key, f in GIVEN_ZERO.items()})(x)
    assert [key for key, sums in found.items() if np.signbit(sums).any()] == []


@pytest.mark.parametrize("given", [np.inf, 3e9, 0.3, 1e-30, -0.0])
@pytest.mark.parametrize("name", ["int32", "int8", "bool", "float16"])
def test_a_constant_that_is_converted_is_another_number(name, given):
    """A function that is given it divides by it, and adds it."""
    def run(x):
        number = lax.full((2,), given, "float32").astype(name).astype("float32")
        return x + number, olympus.jit(lambda x, c: (x + c, c / x))(x, number)

    x = onp.asarray([-0.0, 3], "float32")
    number = np.asarray(onp.asarray([given], "float32").astype(name).astype("float32"))
    with np.errstate(all="ignore"):
        wanted = np.asarray(x) + number, (np.asarray(x) + number, number / np.asarray(x))
    found = olympus.jit(run)(x)
    for one, other in zip(olympus.tree.leaves(found), olympus.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.signbit(one), np.signbit(other))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("f", [lambda x: onp.log(lax.rsqrt(x)), lambda x: onp.log(1 / onp.sqrt(x))])
def test_the_logarithm_of_a_reciprocal_root(f, name):
    """The root of -0.0 is -0.0, its reciprocal -inf."""
    with olympus.enable_x64(True):
        found = olympus.jit(f)(onp.asarray([-0.0, 0.0, -1.0, 1.0], name))
    np.testing.assert_array_equal(np.float64(found), [np.nan, np.inf, np.nan, 0])


BODIES: dict[str, Callable[..., Any]] = {
    "a call": olympus.jit, "checkpoint": olympus.checkpoint,
    "cond": lambda f: lambda x, c: lax.cond(x[0] > 0, f, lambda x, c: x, x, c),
    "scan": lambda f: lambda x, c: lax.scan(lambda s, _: (f(s, c), None), x, None, 2)[0],
    "xs": lambda f: lambda x, c: lax.scan(lambda s, r: (f(s, r), None), x, c[None])[0],
    "a carry": lambda f: lambda x, c: lax.while_loop(
        lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1], s[2]), s[2]), (0, x, c))[1]}
NAN = {
    "exp": lambda x: onp.exp(x * onp.nan), "cosh": lambda x: onp.cosh(x + onp.nan),
    "sinh": lambda x: onp.sinh(x * onp.nan), "expm1": lambda x: onp.expm1(x * onp.nan),
    "exp2": lambda x: onp.exp2(x + onp.nan), "sigmoid": lambda x: nn.sigmoid(x * onp.nan),
    "silu": lambda x: nn.silu(x + onp.nan), "elu": lambda x: nn.elu(x * onp.nan),
    "logsumexp": lambda x: nn.logsumexp(onp.stack([x, x]) * onp.nan),
    "softmax": lambda x: nn.softmax(onp.stack([x, x]) + onp.nan),
    "an array": lambda x: onp.exp(x + np.full(8, np.nan, x.dtype)),
    "inf * 0": lambda x: onp.exp(x + onp.full(8, onp.inf, x.dtype) * 0),
    "inf - inf": lambda x: onp.exp(x - (onp.full(8, onp.inf) - onp.full(8, onp.inf))),
    "0 / 0": lambda x: onp.exp(onp.zeros(8, x.dtype) / 0 * x),
    "in a loop": lambda x: lax.map(lambda r: onp.exp(r * onp.nan), onp.stack([x, x])),
    "given": lambda x: olympus.jit(lambda x, c: onp.exp(x * c))(x, onp.nan),
    "an array given": lambda x: olympus.jit(lambda x, c: onp.exp(x * c))(
        x, onp.full(8, onp.nan, x.dtype)),
    "a scalar given": lambda x: olympus.checkpoint(lambda x, c: onp.exp(x + c))(
        x, onp.asarray(onp.nan, x.dtype)),
    "a result": lambda x: onp.exp(x * olympus.jit(lambda: onp.nan)()),
    "sqrt": lambda x: onp.exp(x + onp.sqrt(-onp.ones(8, x.dtype))),
    "sqrt of a scalar": lambda x: onp.exp(x * onp.sqrt(onp.asarray(-1, x.dtype))),
    "rsqrt": lambda x: onp.exp(x * lax.rsqrt(onp.full(8, -1, x.dtype))),
    "log": lambda x: onp.cosh(x + onp.log(onp.ones(8, x.dtype) - 3)),
    "log1p": lambda x: onp.exp(x + onp.log1p(onp.full(8, -2, x.dtype))),
    "arccos": lambda x: onp.exp(x + onp.arccos(2 * onp.ones(8, x.dtype))),
    "arctanh": lambda x: onp.exp(x + onp.arctanh(onp.full(8, 2, x.dtype))),
    "arccosh": lambda x: onp.exp(x + onp.arccosh(onp.zeros(8, x.dtype))),
    "sin": lambda x: nn.softmax(x + onp.sin(onp.full(8, onp.inf, x.dtype))),
    "fmod": lambda x: onp.exp(x + onp.fmod(onp.ones(8, x.dtype), onp.zeros(8, x.dtype))),
    "power": lambda x: onp.exp(x + onp.power(onp.full(8, -2, x.dtype), .5)),
    "a NaN's exponential": lambda x: onp.cosh(x + onp.exp(onp.full(8, onp.nan, x.dtype))),
    "a maximum": lambda x: onp.exp(onp.max(onp.full(8, onp.nan, x.dtype)) - x),
    "a norm": lambda x: onp.exp(x / onp.linalg.norm(onp.full(8, onp.nan, x.dtype))),
    "a sign": lambda x: onp.exp(x * onp.sign(onp.full(8, onp.nan, x.dtype))),
    "a dividend": lambda x: onp.exp(lax.div(onp.asarray(onp.nan, x.dtype), x)),
    "a remainder": lambda x: onp.exp(lax.rem(x, onp.asarray(onp.nan, x.dtype))),
    "a bound": lambda x: onp.exp(onp.minimum(onp.maximum(x, onp.nan), 9)),
    "a clamp": lambda x: onp.exp(lax.clamp(onp.asarray(onp.nan, x.dtype), onp.tile(x, 9), x)),
    "padding": lambda x: onp.exp(onp.pad(onp.tile(x, 3), 2, constant_values=onp.nan))[:2],
    "a part": lambda x: onp.exp(onp.full(9, onp.nan, x.dtype).at[1:3].set(x))[3:],
    "a joined sum": lambda x: onp.exp(onp.sum(onp.append(onp.full(2, onp.nan, x.dtype), x))),
    "cumulated": lambda x: onp.exp(onp.cumsum(onp.full(9, onp.nan, x.dtype))),
    "a product of vectors": lambda x: onp.exp(onp.tile(x, 9) @ onp.full(9, onp.nan, x.dtype)),
    "a choice of constants": lambda x: onp.exp(onp.where(x > 0, onp.nan, onp.ones(8, x.dtype))),
    "a root given": lambda x: olympus.jit(lambda x, c: onp.exp(x + c))(
        x, onp.sqrt(onp.full(8, -1, x.dtype))),
    "a root as result": lambda x: onp.exp(x * olympus.jit(
        lambda: onp.sqrt(onp.full(8, -1, x.dtype)))()),
    # Functions of constants that a body is given.
    **{f"{op} within {body}": lambda x, f=f, give=give: give(lambda x, c: onp.exp(x + f(c)))(
        x, onp.full(8, -1, x.dtype))
       for body, give in BODIES.items()
       for op, f in (("sqrt", onp.sqrt), ("log", lambda c: onp.log(2 * c)),
                     ("power", lambda c: onp.power(c, .5)), ("rem", lambda c: lax.rem(c, c + 1)))},
    "a body's result": lambda x: onp.cosh(x * BODIES["a call"](lambda x, c: onp.sqrt(c))(
        x, onp.full(8, -1, x.dtype)))}


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_a_nan_that_the_program_names_stays_one(name):
    x = onp.ones((), name)
    found = olympus.jit(lambda x, xs: {
        key: f(xs if "within" in key or "body" in key else x) for key, f in NAN.items()})(
            x, onp.ones(8, name))
    assert [key for key, x in found.items() if not onp.isnan(x).all()] == []


@pytest.mark.parametrize("length", [1, 2])
def test_an_array_with_a_nan_that_a_loop_reads_has_one(length):
    """XLA makes a constant of what it computes of an array that is closed over."""
    numbers = onp.asarray(np.where(np.arange(8) % 2, 1, np.nan), "float32")
    signs = onp.asarray(np.where(np.arange(8) % 2, 1, -1), "float32")

    @olympus.jit
    def run(x):
        roots = onp.sqrt(signs) + 0
        return [lax.scan(lambda s, _, c=c: (onp.exp(s + c), None), x, None, length)[0]
                for c in (numbers, numbers[::-1], roots)]

    for c, found in zip((numbers, numbers[::-1], numbers), run(onp.zeros(8)), strict=True):
        np.testing.assert_array_equal(onp.isnan(found), np.isnan(c))


@pytest.mark.parametrize("operation", [lax.add, lax.sub, lax.div])
def test_a_nan_that_two_operations_read_is_one_to_the_second_too(operation):
    """LLVM takes an exponential of a NaN that it knows for undefined."""
    def run(x, y):
        nan = lax.full_like(x, np.inf) * (lax.full_like(x, 0.0) * onp.arange(8, dtype=x.dtype))
        return operation(x, nan), onp.exp(operation(y, nan))

    for found in olympus.jit(run)(np.float32([1] * 8), np.float32([2] * 8)):
        assert onp.isnan(found).all()


# Functions that sum elements, of the sum and its operand.
ADDED: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "of -0": (lambda x: onp.sum(onp.full(8, -0.0, x.dtype)) + 0 * x, [1, 2]),
    "of an array of -0": (lambda x: onp.sum(np.full(8, -0.0, x.dtype)) + 0 * x, [1, 2]),
    "of a repeated number": (lambda x: onp.sum(lax.broadcast(x[0], (8,))), [-0.0, 1]),
    "of repeated rows": (lambda x: onp.sum(lax.broadcast(x, (8,)), 0), [-0.0, -0.0]),
    "of negatives": (lambda x: onp.sum(-x), [1, -1]),
    "of negatives, twice": (lambda x: onp.stack([onp.sum(y := -x), onp.sum(y, 0)]), [1, -1]),
    "of moved negatives": (lambda x: onp.sum(-x.reshape(1, 2), 1), [1, -1]),
    "of products with -1": (lambda x: onp.sum(x * -1), [1, -1]),
    "a mean": (lambda x: onp.mean(onp.full(8, -0.0, x.dtype)) + 0 * x, [1, 2]),
    "cumulative": (lambda x: onp.cumsum(onp.full(8, -0.0, x.dtype)) + 0 * x[0], [1, 2]),
    "windows": (lambda x: lax.reduce_window(
        -x * 0, onp.asarray(0, x.dtype), lax.add, (2,), (1,), "VALID"), [1, 2]),
    "of vectors' products": (lambda x: onp.full(8, -0.0, x.dtype) @ onp.ones(8, x.dtype) + 0 * x,
                             [1, 2]),
    "of a negative vector's products": (lambda x: -x @ onp.ones(2, x.dtype), [1, -1])}


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_a_sum_of_elements_is_no_negative_zero(name):
    """A sum begins with 0, and 0 + -0 is 0; NumPy's begins with -0."""
    for key, (f, x) in ADDED.items():
        x = onp.asarray(x, name)
        traced = olympus.jit(f).trace(x)
        for platform in ("cpu", "cuda"):
            found = traced.lower(lowering_platforms=(platform,)).compile()(x)
            assert not onp.signbit(found).any(), (key, platform)
            assert not found.any(), (key, platform)


def test_a_sum_in_a_module_of_several_platforms_is_no_negative_zero(monkeypatch):
    """Where a platform has a rule of its own, the sum is lowered once for each platform."""
    sums = lax.reduce_sum_p
    monkeypatch.setattr(sums, "platform_rules", {"cuda": sums.lower})
    f = olympus.jit(lambda x: onp.sum(lax.broadcast(x, (8,)), 0))
    both = export.export(f, platforms=("cpu", "cuda"))(np.float32([-0.0, 1]))
    found = both.call(np.float32([-0.0, 1]))
    np.testing.assert_array_equal(found, [0, 8])
    assert not onp.signbit(found).any()


@pytest.mark.parametrize("zero", [
    lambda x: (x > x) ^ (x > x), lambda x: lax.ne(x, 0) ^ lax.ne(x, 0), lambda x: x & ~x,
    lambda x: (x + 1) - (x + 1), lambda x: lax.rem(x, 1)], ids=["x > x", "x != 0", "&", "-", "%"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_angle_of_zeros_from_integers(zero, dtype):
    """arctan2 of numbers that the compiler knows to be 0, though the program does not say so."""
    def run(x):
        e = zero(x).astype(dtype)
        return onp.arctan2(e, e)

    assert float(olympus.jit(run)(np.int32(1))) == 0


def in_shard_map(f):
    mesh = Mesh(np.array(olympus.devices()[:1]), ("i",))
    return olympus.shard_map(f, mesh=mesh, in_specs=PartitionSpec(), out_specs=PartitionSpec())


PLACES = {
    "scan": lambda f: lambda x, y: lax.scan(lambda c, row: (c, f(*row)), 0, (x, y))[1],
    "fori_loop": lambda f: lambda x, y: lax.fori_loop(0, 2, lambda i, c: f(x, y), x),
    "carry": lambda f: lambda x, y: lax.fori_loop(0, 1, lambda i, c: f(c, y), x),
    "while_loop": lambda f: lambda x, y: lax.while_loop(
        lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1], y)), (0, x))[1],
    "cond": lambda f: lambda x, y: lax.cond(x[0] > 0, f, lambda x, y: x, x, y),
    "vmap": olympus.vmap, "checkpoint": olympus.checkpoint, "jit": olympus.jit,
    "shard_map": in_shard_map,
    "grad": lambda f: lambda x, y: olympus.grad(lambda x: (f(x, y) * x).sum() / 2)(x),
    "jvp": lambda f: lambda x, y: olympus.jvp(lambda x: f(x, y), (x,), (x,))[1]}


@pytest.mark.parametrize("place", PLACES)
def test_in_bodies_and_derivatives(place):
    """A quotient of a quotient, which is linear in x."""
    x, y = onp.array([3e37, 1e37]), onp.array([1e20, 1e20])
    inside = PLACES[place](lambda x, y: x / y / y)
    for found in inside(x, y), olympus.jit(inside)(x, y):
        np.testing.assert_allclose(found, [3e-3, 1e-3], 1e-6)


CALLS = {
    "a call": olympus.jit, "checkpoint": olympus.checkpoint,
    "cond": lambda f: lambda x, c: lax.cond(x[1] > 0, f, lambda x, c: x, x, c),
    "fori_loop": lambda f: lambda x, c: lax.fori_loop(
        0, 1, lambda i, s: (f(*s), s[1]), (x, c))[0]}


@pytest.mark.parametrize("call", CALLS)
def test_a_constant_that_is_given_to_a_function(call):
    """It is one within, and next to what the function gives."""
    once, twice = CALLS[call](lambda x, c: x * c), CALLS[call](lambda x, c: x * c * c)

    @olympus.jit
    def run(x):
        c = onp.full((2,), 1e20)
        return once(x, 1e20) * 1e20, once(once(x, c), c), twice(x, c)

    for found in run(onp.array([0, 1e-30])):
        np.testing.assert_allclose(found, [0, 1e10], 1e-6)


def test_a_value_that_is_moved_before_it_is_kept_apart():
    """The reversed array reads the product, not what the second product reads."""
    @olympus.jit
    def run(x):
        y = x * 1e20
        moved = y[::-1]
        return y * 1e20, moved * 1e20

    found, moved = run(onp.array([0, 1e-30]))
    np.testing.assert_allclose(found, [0, 1e10], 1e-6)
    np.testing.assert_allclose(moved, [1e10, 0], 1e-6)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("make", [np.array, lambda number, name: np.array(number, name)[()]],
                         ids=["rank 0", "scalar"])
def test_constants_of_numpy(name, make):
    with olympus.enable_x64(True):
        c, big = make(4, onp.dtype(name)), make(LIMITS[name][0], onp.dtype(name))
        x = onp.asarray(np.array([big, big / 4], onp.dtype(name)))
        found = olympus.jit(lambda x: (x / c * c, x / big, (x / c) + (x / c)))(x)
    for out, expected in zip(found, ([1, .25], [1, .25], [.5, .125]), strict=True):
        np.testing.assert_allclose(
            np.float64(out) / (1 if out is found[1] else np.float64(big)), expected, 1e-2)


# What XLA drops or undoes, as a function of a product that is left as it is.
SAME: dict[str, Callable[[Any], Any]] = {
    "x * 1": lambda x: x * 1.0, "x / 1": lambda x: x / 1.0, "x + 0": lambda x: x + 0.0,
    "x - 0": lambda x: x - 0.0, "x ** 1": lambda x: lax.pow(x, 1.0),
    "neg": lambda x: lax.neg(lax.neg(x)),
    "real": lambda x: lax.real(lax.complex(x, x)), "max": lambda x: lax.max(x, -onp.inf),
    "clamp": lambda x: lax.clamp(-onp.inf, x, onp.inf),
    "select": lambda x: lax.select(onp.full(x.shape, True), x, -x),
    "bits": lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, "int32"), "float32"),
    "sum": lambda x: x.reshape(-1, 1).sum(1), "cumsum": lambda x: onp.cumsum(x[None], 0)[0],
    "dot": lambda x: (x.reshape(-1, 1) @ onp.ones((1, 1)))[:, 0],
    "conv": lambda x: lax.conv(x.reshape(1, 1, 2), onp.ones((1, 1, 1)), (1,), "VALID").reshape(2),
    "pad": lambda x: lax.pad(x, 0.0, [(0, 0, 0)]), "stack": lambda x: onp.stack([x, -x])[0],
    "concatenate": lambda x: onp.concatenate([x, x])[:2],
    "slice": lambda x: lax.dynamic_slice(x, (0,), (2,)),
    "update": lambda x: lax.dynamic_update_slice(onp.zeros(2), x, (0,))}


def test_operations_that_xla_drops_keep_others_apart():
    """`x * c * 1 * c` is no product by c * c; several constants are not merged one by one."""
    @olympus.jit
    def run(x):
        return {**{name: f(x * 1e20) * 1e20 for name, f in SAME.items()},
                "x * 2": x * 1e20 * 2 * 1e20 / 2}

    for name, found in run(onp.array([0, 1e-30])).items():
        np.testing.assert_allclose(found, [0, 1e10], 1e-6, err_msg=name)


@pytest.mark.parametrize(("f", "x", "expected"), [
    (lambda x: lax.square(-(x[1] * 1e20)), [0, 1e-20], 1),
    (lambda x: lax.square(abs(x[1] * 1e20)), [0, 1e-20], 1),
    (lambda x: lax.square(lax.broadcast(x[1] * 1e20, (2,))), [0, 1e-20], [1, 1]),
    (lambda x: x / (x * 1e-18) * 1.0 / (x * 1e-18), [3e38, 1.5e38], [1 / 300, 1 / 150]),
    (lambda x: x / 1e20 / 2.0 / 1e20, [3e38, 1.5e38], [.015, .0075]),
    (lambda x: 1e20 / lax.neg(lax.neg(x / 1e-30)), [1e5, 1e6], [1e-15, 1e-16])])
def test_signs_and_constants_in_between(f, x, expected):
    np.testing.assert_allclose(olympus.jit(f)(np.float32(x)), expected, 1e-5)


@pytest.mark.parametrize("given", [
    lambda x: lax.cond(x[0] > 0, lambda x: x, lambda x: x + 1, x),
    lambda x: lax.fori_loop(0, 2, lambda _, x: -x, x), olympus.jit(lambda x: x)])
def test_a_scaled_result_of_a_call_is_no_constant_beside_a_scalar(given):
    """Regression: s * (c * x) was (s * c) * x, which is 0; one of 200,000 generated programs."""
    f = olympus.jit(lambda s, x: lax.mul(
        lax.broadcast(s, (8,)), lax.mul(np.float32(1e-30), given(x))))
    found = f(np.float32(1e-20), np.full(8, 1e30, "float32"))
    np.testing.assert_allclose(found, 1e-20, 1e-6)


def test_a_product_of_products_is_multiplied_in_order():
    """LLVM multiplied all x first, which overflows, and then by the constants' power, 0."""
    x = np.array([5e138, -9e184, -5e138, -6e-232, 2e-139, 9e184, 1e-185, 0.0])
    with olympus.enable_x64(True):
        found = olympus.jit(lambda x: lax.reduce_prod(x * 3.3e-93, (0,)))(x)
    assert found == 0


def shifted(x):
    """The elements, one place later; the first one stays."""
    return x.at[1:].set(x[:-1])


def write(x, new, *starts):
    return lax.dynamic_update_slice(x, new, starts)


LATER = np.int32([1, 1, 2, 3, 4, 5, 6, 7])      # 1, … 8 shifted
# Functions of 0, … 7, and their results.
WRITES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "a reshape": (lambda x: shifted(x + 1)[None], LATER[None]),
    "a transposition": (lambda x: shifted((x + 1)[:, None]).T, LATER[None]),
    "a broadcast": (lambda x: lax.broadcast_in_dim(shifted(x + 1), (1, 8), (1,)), LATER[None]),
    "an argument": (lambda x: shifted(x)[None], LATER[None] - 1),
    "a call": (lambda x: olympus.jit(shifted)(x + 1)[None], LATER[None]),
    "a call that is given both": (lambda x: olympus.jit(lambda y, new: write(y, new, 1))(
        x + 1, (x + 1)[:-1])[None], LATER[None]),
    "a branch": (lambda x: lax.cond(x[0] == 0, lambda: shifted(x + 1)[None], lambda: x[None]),
                 LATER[None]),
    "a sum": (lambda x: x.at[1:].add(x[:-1])[None], [[0, 1, 3, 5, 7, 9, 11, 13]]),
    "a product": (lambda x: (x + 1).at[1:].multiply((x + 1)[:-1])[None],
                  [[1, 2, 6, 12, 20, 30, 42, 56]]),
    "a number of its own": (lambda x: x.at[:4].set(x[:4] - x[2])[None],
                            [[-2, -1, 0, 1, 4, 5, 6, 7]]),
    "an exchange": (lambda x: x.at[:2].set(x[1::-1])[None], [[1, 0, 2, 3, 4, 5, 6, 7]]),
    "elements at indices": (lambda x: write(x, x[onp.arange(7)], 1)[None], LATER[None] - 1),
    "a computed start": (lambda x: write(x, lax.dynamic_slice(x, (x[2],), (4,)), x[3])[None],
                         [[0, 1, 2, 2, 3, 4, 5, 7]]),
    "a reshaped array": (lambda x: (lambda y: write(y[None], y[:-1][None], 0, 1))(x + 1),
                         LATER[None]),
    "rows": (lambda x: (lambda y: write(y.reshape(4, 2), y[:-2].reshape(3, 2), 1, 0))(x + 1),
             [[1, 2], [1, 2], [3, 4], [5, 6]]),
    "a loop": (lambda x: lax.fori_loop(0, 2, lambda _, y: shifted(y[0] + 1)[None], x[None]),
               [[2, 2, 2, 3, 4, 5, 6, 7]]),
    "gathered elements": (lambda x: shifted(x[onp.arange(1, 9) % 8]), [1, 1, 2, 3, 4, 5, 6, 7]),
    "gathered elements, written whole": (lambda x: (lambda y: shifted(write(y, y, x[0])))(
        x[onp.arange(1, 9) % 8]), [1, 1, 2, 3, 4, 5, 6, 7]),
    "a matrix of one column": (lambda x: shifted(onp.dot(
        x.reshape(8, 1) * onp.ones((1, 4)), onp.ones((4, 1)))),
        [[0], [0], [4], [8], [12], [16], [20], [24]]),
    "a mapped row": (lambda x: olympus.vmap(lambda y: shifted(y)[None])(x[None] + 1),
                     LATER[None, None]),
    "a slope": (lambda x: olympus.grad(lambda y: (shifted(y * 2)[None] ** 2).sum())(
        x.astype("float32")), [0, 8, 16, 24, 32, 40, 48, 0]),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_reads_no_element_that_it_has_written(name):
    """XLA:CPU writes in place, and copies no array that it takes for another one, reshaped."""
    f, expected = WRITES[name]
    np.testing.assert_array_equal(olympus.jit(f)(onp.arange(8)), expected)


def test_a_mapped_write_of_a_whole_array_leaves_nothing_of_the_write_before():
    def f(x, start):
        part = lax.dynamic_slice(x, (start, 4, 4), (8, 2, 3))
        written = part.at[6:8, 1:2, 1:2].min(part[5:7, :1, 1:2])
        return lax.dynamic_update_slice(written, part, (start, 0, 3))

    x = np.random.default_rng(0).integers(-9, 9, (1, 9, 2, 6)).astype("int16")
    found = olympus.jit(olympus.vmap(f))(x, np.array([3]))
    assert np.array_equal(found, x[:, 1:, :, 3:])


@pytest.mark.parametrize(("i", "j"), [(9, 0), (3, 5), (9, 9), (-3, 0), (-3, 7), (6, -1)])
@pytest.mark.parametrize("static", [True, False])
def test_a_slice_of_a_slice_is_moved_inside_of_each(i, j, static):
    def run(x, i, j):
        return lax.dynamic_slice(lax.dynamic_slice(x, (i,), (4,)), (j,), (1,))

    x, args = onp.arange(10), (i, j)
    found = olympus.jit(lambda x: run(x, i, j))(x) if static else olympus.jit(run)(x, *args)
    first, second = (min(max(k + n * (k < 0), 0), n - size)
                     for k, n, size in ((i, 10, 4), (j, 4, 1)))
    assert found == first + second


@pytest.mark.parametrize(("dtype", "index"), [
    ("uint8", 200), ("uint16", 40000), ("uint32", 2**31 + 5), ("uint8", 3)])
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_a_constant_index_is_no_negative_one(dtype, index, mode):
    x, numbers = np.arange(50000), lax.GatherDimensionNumbers((), (0,), (0,))
    found = olympus.jit(lambda x: lax.gather(
        x, np.array([index], dtype), numbers, (1,), mode=mode, fill_value=-1))(x)
    assert found == (index if index < 50000 else 49999 if mode == "clip" else -1)


def test_what_is_cut_off_is_no_padding_of_a_window():
    def run(x):
        part = lax.pad(x, np.int32(0), [(0, 0, 1), (-1, 0, 0)])
        return lax.reduce_window(part, np.int32(0), lax.add, (1, 2), (1, 1), [(0, 0), (1, 0)])

    assert olympus.jit(run)(np.array([[669, -763]], "int32")) == -763


@pytest.mark.parametrize("axis", [0, 1])
def test_long_sums_of_windows_spread_axes_that_they_do_not_cross(axis):
    x = np.arange(64 * 128, dtype="float32").reshape(64, 128)
    sizes = (1, 2) if axis == 0 else (2, 1)
    found = olympus.jit(lambda x: lax.reduce_window(
        x, 0.0, lax.add, sizes, sizes, "VALID", base_dilation=sizes[::-1]))(x)
    pairs = x[:, ::2] + x[:, 1::2] if axis == 0 else x[::2] + x[1::2]
    expected = np.zeros([n * size - size + 1 for n, size in zip(pairs.shape, sizes[::-1])])
    expected[(slice(None, None, 2), slice(None)) if axis == 0 else np.s_[:, ::2]] = pairs
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("axes", [(3,), (0, 2, 4, 6), (1, 2), tuple(range(8)), (7,)])
@pytest.mark.parametrize("name", ["sum", "max", "prod", "a reducer"])
def test_reductions_of_many_axes_have_few_of_them(name, axes):
    """The library that XLA:CPU sums with leaves its buffers for some arrays of more axes."""
    x = np.random.default_rng(0).integers(-2, 3, (2, 1, 3, 2, 1, 2, 2, 3)).astype("float32")
    own = name == "a reducer"
    f = olympus.jit(lambda x: lax.reduce(x, np.float32(5), lambda a, b: b + a, axes)
                    if own else getattr(onp, name)(x, axes))
    text = f.lower(x).as_text()
    operands = re.findall(r"stablehlo.reduce\(%\S+ .*\) .* : \(tensor<([\dx]*)", text)
    assert (operands or own) and all(shape.count("x") <= 6 for shape in operands)
    wanted = x.sum(axes) + 5 if own else getattr(np, name)(x, axis=axes)
    np.testing.assert_allclose(f(x), wanted)
