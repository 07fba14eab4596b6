"""Elementwise functions by formulas in float64 on one CPU, beside NumPy's of longer numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import enable_x64, grad, jit, lax, nn, random, tree, vmap
from olympus._src.base import lib
from olympus._src.base.config import kernels


def taken(fun: Callable[..., Any], *args: Any) -> list[str]:
    """The names of the kernels that a function's program is lowered by."""
    return [t.kernel.name for t in jit(lambda *xs: fun(*xs)).lower(*args)._context.taken]


def near(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def wide_fun(name: str, *xs: Any) -> Any:
    """NumPy's function of numbers of 64 bits of mantissa."""
    with np.errstate(all="ignore"):
        return getattr(np, name)(*[np.asarray(x).astype(np.longdouble) for x in xs])


# Zeros, subnormals, and numbers where the formulas change.
EDGES = np.float32([
    0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, 3, -3, 2.5, 1e-40, -1e-40, 3e38, -3e38,
    1 + 2 ** -23, 1 - 2 ** -24, 0.5 + 2 ** -24, 2 ** -126, 1e-4, 0.0625, 100, -100, 127.5, 128,
    -149, 2 ** 20, 2 ** 54, 2 ** 55, 2 ** 83, 2 ** 112, 16367173 * 2.0 ** 72, 1.5707964, 3.1415927])
# lax's function and NumPy's, how many operands, and numbers of which size.
FUNCTIONS = {
    "sin": ("sin", 1, 1e6), "cos": ("cos", 1, 1e6), "tan": ("tan", 1, 1e6),
    "asin": ("arcsin", 1, 1), "acos": ("arccos", 1, 1), "atan": ("arctan", 1, 1e3),
    "atan2": ("arctan2", 2, 1e3), "cbrt": ("cbrt", 1, 1e30), "exp2": ("exp2", 1, 150),
    "sinh": ("sinh", 1, 90), "asinh": ("arcsinh", 1, 1e30), "acosh": ("arccosh", 1, 1e30),
    "atanh": ("arctanh", 1, 1), "rem": ("fmod", 2, 1e4), "pow": ("power", 2, 30)}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementwise_formulas_round_once_and_keep_the_edges(
        name: str, dtype: str, rng: np.random.Generator) -> None:
    theirs, count, size = FUNCTIONS[name]
    fun, digits = getattr(lax, name), 24 if dtype == "float32" else 8
    n = 65536 - len(EDGES) ** 2
    numbers = [(rng.random(n) * 2 - 1) * size ** rng.random(n) for _ in range(count)]
    xs = [np.concatenate([edges.ravel(), v.astype(np.float32)]) for edges, v in zip(
        np.meshgrid(EDGES, EDGES), numbers)]
    xs = [np.asarray(olympus.numpy.asarray(x).astype(dtype)) for x in xs]
    assert len(taken(fun, *xs)) == 1
    found = np.asarray(jit(fun)(*xs)).astype(np.longdouble)
    wanted = wide_fun(theirs, *xs)
    least = np.finfo(np.float32).tiny       # XLA takes smaller results, and divisors, for 0
    if name == "rem":
        wanted = np.where(abs(xs[1].astype(np.float32)) < least, np.nan, wanted)
    normal = (abs(wanted) >= least) & (abs(wanted) < 3e38)
    unit = 2.0 ** (np.frexp(wanted[normal])[1] - digits)
    error = abs(found[normal] - wanted[normal]) / unit
    assert error.max() < (0.51 if dtype == "float32" else 0.502)
    with np.errstate(over="ignore"):
        rounded = wanted.astype(np.float32)
    same = (found == rounded) | np.isnan(found) & np.isnan(rounded) | normal
    tiny = (abs(wanted) < least) & (abs(found) < least) | (abs(wanted) >= 3e38) & (found == rounded)
    assert (same | tiny).all()
    zero = (wanted == 0) & (found == 0)
    assert (np.signbit(found) == np.signbit(wanted))[zero].all()


@pytest.mark.parametrize("largest", [1.6e7, 1e38])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_of_large_arrays_are_reduced_by_their_size(
        name: str, largest: float, rng: np.random.Generator) -> None:
    x = (rng.standard_normal(1 << 18) * 100).astype(np.float32)
    x[:3] = largest, np.inf, -0.0
    found, wanted = np.asarray(jit(getattr(lax, name))(x)), wide_fun(name, x)
    assert np.isnan(found[1]) and np.signbit(found[2]) == np.signbit(wanted[2])
    unit = 2.0 ** (np.frexp(np.delete(wanted, (1, 2)))[1] - 24)
    assert (abs(np.delete(found - wanted, (1, 2))) / unit).max() < 0.51


# Where formulas of float64 change, in part as NumPy rounds them.
EDGES_64 = np.array([
    0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 2, -2, 3, 1e-310, -1e-310, 2.0 ** -1022,
    -2.0 ** -1022,
    1.7e308, -1.7e308, 1 + 2.0 ** -52, 1 - 2.0 ** -53, 0.5 + 2.0 ** -53, 2.0 ** -54, -2.0 ** -55,
    1e-280, -1e-170, 1e290, np.sqrt(2) - 1, np.sqrt(2) + 1, np.sqrt(0.5), 2.0 ** 28, -2.0 ** 28 + 1,
    np.pi / 2, -np.pi, 5 * np.pi / 4, 1023.5, 1024, -1022, -1074, 710.4, 711, 1e3, 1e-3, 10, 1e15])
FUNCTIONS_64 = {
    "sin": ("sin", 1, 2e8), "cos": ("cos", 1, 2e8), "tan": ("tan", 1, 2e8),
    "asin": ("arcsin", 1, 1), "acos": ("arccos", 1, 1), "atan": ("arctan", 1, 1e6),
    "atan2": ("arctan2", 2, 1e6), "cbrt": ("cbrt", 1, 1e300), "exp2": ("exp2", 1, 1020),
    "sinh": ("sinh", 1, 700), "log1p": ("log1p", 1, 1e6), "log2": ("log2", 1, 1e300),
    "log10": ("log10", 1, 1e300), "asinh": ("arcsinh", 1, 1e300), "acosh": ("arccosh", 1, 1e300),
    "atanh": ("arctanh", 1, 1)}


@pytest.mark.parametrize("name", FUNCTIONS_64)
def test_formulas_of_float64_err_by_less_than_a_digit_and_keep_the_edges(
        name: str, rng: np.random.Generator) -> None:
    theirs, count, size = FUNCTIONS_64[name]
    fun = olympus.numpy.log10 if name == "log10" else getattr(lax, name)
    edges, n = EDGES_64, 40000 - len(EDGES_64) ** 2
    if size == 2e8:         # a larger angle has its own test
        edges = np.where((abs(edges) > 2.0 ** 28) & np.isfinite(edges), 2.0 ** 27, edges)
    numbers = [(rng.random(n) * 2 - 1) * (rng.random(n) if size == 1 else size ** rng.random(n))
               for _ in range(count)]
    for v in numbers:       # tiny ones, too
        v[1::8] *= 10.0 ** -rng.uniform(0, 306, v[1::8].size)
    if name == "acos":
        numbers[0][::2] = 1 - rng.random(len(numbers[0][::2])) ** 8
    xs = [np.concatenate([e.ravel(), v]) for e, v in zip(np.meshgrid(edges, edges), numbers)]
    with enable_x64(True):
        assert len(taken(fun, *xs)) == 1
        found, plain = np.asarray(jit(fun)(*xs)), np.asarray(jit(fun, kernels="off")(*xs))
    least = np.finfo(np.float64).tiny
    if name not in ("atan2", "cbrt"):       # XLA takes smaller numbers for 0, not everywhere
        xs = [np.where(abs(x) < least, np.copysign(0, x), x) for x in xs]
    wanted = wide_fun(theirs, *xs)
    normal = (abs(wanted) >= least) & (abs(wanted) < 1.7e308)
    unit = np.ldexp(np.longdouble(1), np.frexp(wanted[normal])[1] - 53)
    assert (abs(found[normal] - wanted[normal]) / unit).max() < 0.99
    with np.errstate(over="ignore", under="ignore"):
        rounded = wanted.astype(np.float64)
    same = (found == rounded) | np.isnan(found) & np.isnan(rounded) | normal
    tiny = (abs(wanted) < least) & (abs(found) < least)
    near_end = (abs(wanted) >= 1.7e308) & ((found == rounded) | (found == plain))
    assert (same | tiny | near_end).all()
    zero = (wanted == 0) & (found == 0)
    assert (np.signbit(found) == np.signbit(wanted))[zero].all()


def test_logarithms_are_exact_at_powers_of_their_bases() -> None:
    two, ten = np.arange(-1022, 1024), np.arange(-307, 309)
    with enable_x64(True):
        numbers = np.tile(2.0 ** two, 9)
        assert (np.asarray(jit(lax.log2)(numbers)) == np.tile(two, 9)).all()
        numbers = np.tile([float(f"1e{k}") for k in ten.tolist()], 30)
        assert len(taken(olympus.numpy.log10, numbers)) == 1
        assert (np.asarray(jit(olympus.numpy.log10)(numbers)) == np.tile(ten, 30)).all()


def test_large_angles_of_float64_are_the_c_librarys(rng: np.random.Generator) -> None:
    x = rng.standard_normal(16384)
    with enable_x64(True):
        for fun, theirs in ((lax.sin, np.sin), (lax.cos, np.cos), (lax.tan, np.tan)):
            for angle in (2.0 ** 28, 2.0 ** 28 + 0.5, 1e9, 1e300):
                large = np.append(x, [angle, -angle, np.inf, np.nan])
                wanted = theirs(large[:-2].astype(np.longdouble)).astype(np.float64)
                found = np.asarray(jit(fun)(large))
                np.testing.assert_allclose(found[:-2], wanted, rtol=2.3e-16)
                assert np.isnan(found[-2:]).all()


def test_powers_of_float64_by_products_round_once(rng: np.random.Generator) -> None:
    x = np.concatenate([EDGES_64, np.exp(rng.uniform(-700, 700, 9000))])
    with enable_x64(True):
        for exponent in (1.5, -0.5, -2.5, 7.5, -2.0, -3.0, 7.0):
            assert taken(lambda x: x ** exponent, x) == ["products with a rest"]
            found = np.asarray(jit(lambda x: x ** exponent)(x))
            wanted = wide_fun("power", x, np.longdouble(exponent))
            normal = (abs(wanted) > 2.3e-308) & (abs(wanted) < 1.7e308)
            unit = np.ldexp(np.longdouble(1), np.frexp(wanted[normal])[1] - 53)
            small = abs(x[normal]) < 2.3e-308       # 0, as XLA takes them
            assert (abs(found[normal] - wanted[normal]) / unit)[~small].max() < 0.501
            with kernels("off"):
                plain = np.asarray(jit(lambda x: x ** exponent)(x))
            for edge, given, off in zip(EDGES_64, found, plain):
                if not 0 < abs(edge) < 2.3e-308 and not (1e-323 < abs(off) < 2.3e-308):
                    assert given == pytest.approx(off, rel=3e-16, nan_ok=True), (edge, exponent)


def test_formulas_of_float64_are_mapped_differentiated_and_scanned(rng: np.random.Generator
                                                                   ) -> None:
    x = rng.random((20, 1000))
    fun = lambda x, y: lax.asin(x / 9) * lax.atan2(x, y) + lax.log1p(y) * lax.sin(x)
    with enable_x64(True):
        assert len(taken(vmap(fun), x, x + 3)) == 4
        slopes = jit(grad(lambda *xs: fun(*xs).sum(), (0, 1)))(x, x + 3)
        step = lambda c, v: (lax.sin(c) + v, lax.log1p(c * c))
        loop = jit(lambda c, vs: lax.scan(step, c, vs))
        last = loop(np.tile(x, (1, 1)).ravel(), np.ones(3))
        with kernels("off"):
            plain = jit(grad(lambda *xs: fun(*xs).sum(), (0, 1)))(x, x + 3)
            wanted = jit(lambda c, vs: lax.scan(step, c, vs))(x.ravel(), np.ones(3))
        for a, b in zip(olympus.tree.leaves((slopes, last)), olympus.tree.leaves((plain, wanted))):
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


def test_powers_of_small_halves_are_roots_and_products(rng: np.random.Generator) -> None:
    x = np.concatenate([EDGES, rng.random(2000).astype(np.float32) * 9])
    for exponent in (1.5, -0.5, -2.5, 6.5, -2.0, -3.0, 5.0):
        assert taken(lambda x: x ** exponent, x) == ["products in float64"]
        found = np.asarray(jit(lambda x: x ** exponent)(x))
        with np.errstate(over="ignore", under="ignore"):
            wanted = wide_fun("power", x, exponent).astype(np.float32)
        tiny = (abs(wanted) < 1.2e-38) & (found == 0)
        close = np.isclose(found, wanted, rtol=1.2e-7, atol=0, equal_nan=True)
        assert (close | tiny)[abs(x) >= 1e-38].all()
        assert (np.signbit(found) == np.signbit(wanted))[found == 0].all()
    for exponent in (2.0, 0.5):
        assert taken(lambda x: x ** exponent, x) == []
    assert taken(lambda x: x ** 8.5, np.ones(65536, "f4")) == ["polynomial in float64"]


def test_elementwise_formulas_are_mapped_and_differentiated(rng: np.random.Generator) -> None:
    x = rng.standard_normal((40, 500)).astype(np.float32)
    args = (x, x + 3)
    fun = lambda x, y: lax.sin(x) + lax.atan2(x, y) * lax.asin(x / 9)
    assert len(taken(vmap(fun), *args)) == 3
    slopes = jit(grad(lambda *xs: fun(*xs).sum(), (0, 1)))
    near(jit(vmap(fun))(*args), jit(fun, kernels="off")(*args))
    with kernels("off"):
        plain = jit(grad(lambda *xs: fun(*xs).sum(), (0, 1)))(*args)
    for found, wanted in zip(slopes(*args), plain):
        near(found, wanted)
    with enable_x64(True):      # the same formulas, whatever the option says
        near(jit(fun)(*args), jit(vmap(fun))(*args))


@pytest.mark.parametrize("largest", [1e4, 1e30])    # all are XLA's where a quotient is beyond 2**28
def test_remainders_of_many_floats_by_a_number_raised_an_mlir_error(largest: float) -> None:
    x = np.random.default_rng(0).uniform(-99, 99, 1 << 16).astype(np.float32)
    x[:3] = largest, -0.0, 6
    for fun, theirs in ((lambda x: x % 3, lambda x: x % np.float32(3)), (
            lambda x: onp.fmod(x, 3), lambda x: np.fmod(x, np.float32(3))),
            (lambda x: 3 % x, lambda x: np.float32(3) % x), (lambda x: x // 3, lambda x: x // 3)):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(jit(fun)(x), theirs(x), rtol=1e-6, atol=1e-5)


def test_a_wanted_accuracy_and_few_elements_leave_the_plain_form() -> None:
    x = np.ones(1023, np.float32)
    assert taken(lax.tan, x) == [] and taken(lax.tan, np.ones(1024, np.float32)) != []
    assert taken(lax.sin, np.ones(16383, np.float32)) == []
    assert taken(lax.sin, np.ones(16384, np.float32)) != []
    highest = lax.AccuracyMode.HIGHEST
    assert taken(lambda x: lax.tan(x, accuracy=highest), np.ones(2000, np.float32)) == []
    with enable_x64(True):
        assert taken(lax.tan, np.ones(2000)) == []


@pytest.mark.parametrize(("name", "dtype", "n"), [
    ("asinh", "float64", 65536), ("erf_inv", "float32", 16384), ("erf_inv", "float64", 16384),
    ("lgamma", "float32", 16384), ("sin", "bfloat16", 65536), ("atan", "float16", 65536),
    ("log2", "float64", 1 << 19)])
def test_odd_vectors_are_as_even_ones(
        name: str, dtype: str, n: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    fun = getattr(lax, name)
    monkeypatch.setattr(lib, "cores", lambda: 1)    # so that both are the newer emitter's
    with enable_x64(True):
        x = (rng.random((1, n + 1, 1)) * 2 - 1).astype(olympus.numpy.dtype(dtype))
        x[0, :5, 0] = np.nan, np.inf, -np.inf, -0.0, 1
        for odd in (x, x[:, :-2], x[:, :-1]):
            used = odd is x
            assert ("a vector of even size" in taken(fun, odd)) == used
        for run in (jit(fun), jit(grad(lambda x: fun(x).sum()))):
            found, wanted = [np.asarray(run(v)).astype("float64") for v in (x, x[:, :-1])]
            np.testing.assert_array_equal(found[:, :-1], wanted)


# Programs of one CPU device by their loops: (function, shapes of float32 operands).
ELEMENTAL: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "one operation": (lambda x, y: x * y, [(5000,), (5000,)]),
    "cheap operations on few elements": (
        lambda x, y: onp.where(x > 0, x + y, y[::-1]) * 3, [(100,), (100,)]),
    "an absolute value": (lax.abs, [(5000,)]),
    "a conversion": (lambda x: x.astype("int32"), [(5000,)]),
    "a vector of a size that threads share unequally": (nn.softplus, [(66001,)]),
    "points": (lambda x: nn.gelu(x) + 1, [(10_001, 3)]),
    "its gradient": (grad(lambda x: nn.softplus(x).sum()), [(66001,)]),
    "moves of elements": (lambda x: nn.gelu(x).reshape(3, -1).T, [(66_003,)]),
    "a mean of costly terms": (lambda x: nn.softplus(x).mean(), [(66001,)]),
    "a normalisation of points": (nn.softmax, [(10_001, 3)]),
    "remainders of integers": (lambda x: onp.exp(x).astype("int32") % 7, [(66001,)]),
    "random numbers": (lambda x: random.randint(random.key(1), (9001,), 0, 9), [()])}
OTHERS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "an operation with a number": (nn.relu, [(2048,)]),
    "costly operations on few elements": (onp.exp, [(100,)]),
    "a sum of few elements": (lambda x: x.sum(), [(100,)]),
    "equal parts": (nn.softplus, [(65536,)]),
    "long rows": (nn.softplus, [(101, 999)]),
    "moves alone": (lambda x: onp.roll(x, 3), [(66001,)]),
    "a sum of a vector": (lambda x: (x * x).sum(), [(66001,)]),
    "sums of long rows": (lambda x, y: (nn.softplus(x), y.sum(1)), [(66001,), (9, 999)]),
    "remainders of floats": (lambda x: nn.softplus(x) % 3, [(66001,)]),
    "a conversion of bfloat16 to integers": (
        lambda x: nn.softplus(x).astype("bfloat16").astype("int32"), [(66001,)]),
    "a gather": (lambda x: nn.softplus(x)[x.astype("int32") % 9], [(66001,)]),
    "a loop": (lambda x: lax.fori_loop(0, 3, lambda i, x: nn.softplus(x), x), [(66001,)]),
    "a product": (lambda x: nn.gelu(x @ x.T), [(201, 3)]),
    "float16": (lambda x: nn.gelu(x.astype("float16")), [(66001,)]),
    "complex numbers": (lambda x: onp.exp(1j * x), [(66001,)]),
    "a tangent": (lambda x: onp.tan(x) + nn.softplus(x), [(66001,)])}


@pytest.mark.parametrize(("fun", "size", "processor", "used"), [
    (lambda x: 2 * onp.exp(x[::-1]), 5000, True, True), (onp.exp, 5000, False, False),
    (onp.exp, 4000, True, False), (lambda x: 2 * x + 1, 5000, True, False),
    (lambda x: onp.exp(x).sum(), 5000, True, False)])
def test_costly_elementwise_programs_have_long_vectors(
        fun: Callable[..., Any], size: int, processor: bool, used: bool,
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lib, "has_long_vectors", lambda: processor)
    x, plain = np.linspace(-3, 3, size, dtype=np.float32), jit(fun, kernels="off")
    made = jit(lambda x: fun(x)).lower(x).compile()
    assert ("xla_cpu_prefer_vector_width" in dict(made._executable.loaded.key[2])) == used
    np.testing.assert_array_equal(made(x), plain(x))


@pytest.mark.parametrize("name", [*ELEMENTAL, *OTHERS])
def test_programs_whose_loops_the_elemental_emitter_compiles(
        name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lib, "cores", lambda: 2)
    fun, shapes = {**ELEMENTAL, **OTHERS}[name]
    args = [onp.asarray(np.random.default_rng(0).normal(size=s).astype("float32")) for s in shapes]
    found = []
    for mode in "auto", "off":      # two programs, though their modules may be equal
        made = jit(lambda *xs: fun(*xs), kernels=mode).lower(*args).compile()
        is_elemental = "elemental" in dict(made._executable.loaded.key[2])
        assert is_elemental == (mode == "auto" and name in ELEMENTAL)
        found.append(made(*args))
    for got, expected in zip(*map(tree.leaves, found), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("fun", "used"), [(onp.cosh, True), (onp.log1p, False), (
    lambda x: onp.clip(x * 2.5 + x[::-1], -1, 1), True)])
def test_vectors_of_float64_of_odd_size(fun: Callable[..., Any], used: bool,
                                        monkeypatch: pytest.MonkeyPatch) -> None:
    """The newer emitter took up to seven times as long; both compute the same."""
    monkeypatch.setattr(lib, "cores", lambda: 2)
    with enable_x64(True):
        x = np.random.default_rng(2).random(4097)
        made, plain = [jit(lambda x: fun(x), kernels=mode).lower(x).compile()
                       for mode in ("auto", "off")]
        assert ("elemental" in dict(made._executable.loaded.key[2])) == used
        np.testing.assert_array_equal(made(x), plain(x))


def test_donated_arguments_have_the_newer_emitter() -> None:
    """In place, LLVM makes no vectors of the elemental one's loops: exp took six times as long."""
    x = onp.ones(5000)
    for donated in (), (0,):
        made = jit(lambda x: onp.exp(x), donate_argnums=donated).lower(x).compile()
        assert ("elemental" in dict(made._executable.loaded.key[2])) == (not donated)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_integers_are_divided_as_integers(dtype: str, rng: np.random.Generator) -> None:
    """All pairs of 8 bits; multiples and their neighbours of more, where a quotient may round."""
    info = np.iinfo(dtype)
    least, most = int(info.min), int(info.max)
    if info.bits == 8:
        x, y = map(np.ravel, np.meshgrid(np.arange(least, most + 1), np.arange(least, most + 1)))
    else:
        y = rng.integers(0, 2 ** info.bits, 20_000) >> rng.integers(0, info.bits, 20_000)
        y = np.where(y > most, y - 2 ** info.bits, y)
        k = (rng.random(20_000) ** 0.2 * (most // np.maximum(abs(y), 1) + 1)).astype(int)
        x = np.clip(y * k + rng.integers(-1, 2, 20_000), least, most)
        x[:4], y[:4] = [least, least, most, 0], [-1 if least else most, 0, 1, 0]
    x, y = x.astype(dtype), y.astype(dtype)
    wide, by = x.astype(int), y.astype(int)
    quotient = abs(wide) // np.maximum(abs(by), 1) * np.sign(wide) * np.sign(by)
    assert taken(lax.div, x, y) == taken(lax.rem, x, y) == ["quotient of floats"]
    np.testing.assert_array_equal(jit(lax.div)(x, y), np.where(by == 0, -1, quotient).astype(dtype))
    np.testing.assert_array_equal(jit(lax.rem)(x, y), (wide - quotient * by).astype(dtype))
    assert taken(lambda x: x % 7, x) == [] and len(taken(lambda x, y: x % y, x, y[0])) == 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "int32", "int64"])
@pytest.mark.parametrize("size", [1023, 1024, 4095, 4097, 65537])
def test_both_emitters_compute_the_same_special_numbers(dtype: str, size: int) -> None:
    with enable_x64(True):
        x = onp.asarray(np.resize([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -3e38, 1.0, -2.5],
                                  size) if "int" not in dtype else np.resize(
                                      [0, 1, -1, 127, -128, 5, -7], size)).astype(dtype)
        y = x[::-1]
        for fun in (lax.add, lax.mul, lax.max, lax.min, lax.sub, lax.lt, lambda x, y: -x,
                    lambda x, y: lax.abs(x), lambda x, y: lax.sign(x),
                    lambda x, y: onp.where(x > y, x * y, x - y)):
            found, expected = [np.asarray(jit(fun, kernels=mode)(x, y)) for mode in ("auto", "off")]
            kept = found == found       # of NaN the signs and payloads are free
            np.testing.assert_array_equal(kept, expected == expected)
            assert found[kept].tobytes() == expected[kept].tobytes()
