"""Programs lowered for accelerators, as far as that needs neither a plugin nor a device.

What is lowered for a TPU or GPU and has no kernels of theirs is compiled for the CPU here, and run.
"""

import importlib.util
import itertools
import re

import numpy as np
import pytest
import scipy.special as sp
import special_sweep

import olympus
from olympus import lax
from olympus._src.devices.chips import CHIPS, parse_target
from olympus.experimental import topologies
from olympus.scipy import special

ULP = np.finfo(np.float32).eps


def lowered(fun, *args, platform="tpu"):
    return olympus.jit(fun).trace(*args).lower(lowering_platforms=(platform,))


def here(fun, *args, platform="tpu"):
    """The value of a program that was lowered for another platform."""
    return np.asarray(lowered(fun, *args, platform=platform).compile()(*args))


def points(*ranges, count=200):
    rng = np.random.default_rng(0)
    return [np.exp(rng.uniform(*np.log(r), count)).astype(np.float32) for r in ranges]


A, B, X = points((0.02, 3000), (0.02, 3000), (0.02, 3000))
MEAN = A / (A + B)
# Near the middle of the distributions, where series and fractions take the most steps.
NEAR = np.clip(MEAN * np.exp(2 * np.sqrt((1 - MEAN) / (A * MEAN + B)) * np.linspace(-1, 1, 200)),
               1e-6, 0.999999).astype(np.float32)
S, Q = points((1.02, 20), (0.05, 100))
ORDER = np.arange(200) % 10 + 1.0
ORDER = ORDER.astype(np.float32)
# The function, its arguments, the values by SciPy in float64, and the units by which results may
# differ: JAX's differ by 65,000 (igamma), 110,000 (igammac), 70,000 (betainc) on such points.
SPECIAL = {
    "igamma": (lax.igamma, (A, X), sp.gammainc, 100),
    "igammac": (lax.igammac, (A, X), sp.gammaincc, 100),
    "igamma near the mean": (lax.igamma, (A, A * np.float32(1.01)), sp.gammainc, 100),
    "betainc": (lax.betainc, (A, B, NEAR), sp.betainc, 200),
    "zeta": (lax.zeta, (S, Q), sp.zeta, 8),
    "polygamma": (lax.polygamma, (ORDER, Q), lambda m, x: sp.polygamma(m.astype(int), x), 100),
    "polygamma of an array": (special.polygamma, (np.arange(200, dtype=np.float32) % 45, 2 * Q),
                              lambda m, x: sp.polygamma(m.astype(int), x), 100),
}


def test_conversions_to_fewer_bits_are_kept_on_accelerators():
    x = np.float32([1.1, 7e4, 1e-10])

    def kept(dtype):
        return lowered(lambda x: x.astype(dtype).astype("float32"), x, platform="cuda").as_text()

    for dtype, name, fence in (
            ("float16", "f16", "select"), ("float8_e4m3fn", "f8E4M3FN", "select"),
            ("bfloat16", "bf16", "reduce_precision")):
        # XLA:GPU drops a conversion and its inverse that follow each other, but not around these.
        assert f"stablehlo.{fence}" in kept(dtype) and f"tensor<3x{name}>" in kept(dtype)
    jitted = olympus.jit(lambda x: x.astype("float16"))
    text = lowered(lambda x: jitted(x).astype("float32"), x, platform="tpu").as_text()
    assert "stablehlo.select" in text
    few = np.float32([1.1, np.inf, np.nan, 3.4e38, 1e-39, -0.0, 1 + 2 ** -8, 1 + 3 * 2 ** -8])
    np.testing.assert_array_equal(
        here(lambda x: x.astype("bfloat16").astype("float32"), few, platform="cuda"),
        few.astype(olympus.numpy.bfloat16).astype(np.float32))
    wide = np.asarray([1e30, 2], olympus.numpy.bfloat16)
    for f, fence in (
            (lambda x: (x.astype("float32") * x.astype("float32")).astype("float16"), "select"),
            (lambda x: (x / x).astype("float16"), "reduce_precision")):     # LLVM: in float16
        assert f"stablehlo.{fence}" in lowered(f, wide, platform="cuda").as_text()
    assert "stablehlo.select" not in lowered(
        lambda x: (x * 2).astype("bfloat16") + 1, x, platform="cuda").as_text()


def test_a_boolean_times_nan_is_nan_on_accelerators():
    def times(mask, x):
        return mask.astype("float32") * x

    mask, x = np.array([True, False, False]), np.float32([2, np.nan, np.inf])
    assert "ui8" not in lowered(times, mask, x, platform="cuda").as_text()
    np.testing.assert_array_equal(here(times, mask, x, platform="cuda"), [2, np.nan, np.nan])


def test_gradients_of_softmax_and_attention_negate_sums_of_rows_not_elements():
    rows = np.ones((4, 8), np.float32)

    def attended(q):
        return olympus.nn.dot_product_attention(q, q, q, is_causal=True).sum()

    for fun, x, elements in (
            (lambda x: (olympus.nn.softmax(x) ** 2).sum(), rows, "4x8"),
            (lambda x: (olympus.nn.log_softmax(x) ** 2).sum(), rows, "4x8"),
            (attended, np.ones((1, 4, 2, 8), np.float32), "1x2x4x4")):
        text = lowered(olympus.grad(fun), x).as_text()
        assert "stablehlo.negate" in text
        assert f"tensor<{elements}xf32>" not in [
            line.rsplit(" : ", 1)[1] for line in text.splitlines() if "stablehlo.negate" in line]


def test_a_loop_that_writes_quotients_does_not_pass_through_its_array_on_accelerators():
    """The whole array was fenced in each iteration: 8,200 operations on a TPU, 10 are needed."""
    def row(i, a):
        return lax.dynamic_update_slice(a.at[i].set(x[i] / y[i]), (y[i] / x[i])[None], (i + 500,))

    x, y = map(olympus.numpy.asarray, np.arange(1, 1001, dtype=np.float32).reshape(2, 500))
    for body in row, olympus.jit(row):
        f = olympus.jit(lambda a, body=body: lax.fori_loop(0, 500, body, a))
        text = lowered(f, np.zeros(1000, np.float32), platform="cuda").as_text()
        assert "-> tensor<1000xi1>" not in text and "compare EQ" in text
        np.testing.assert_allclose(here(f, np.zeros(1000, np.float32), platform="cuda"),
                                   [*(x / y), *(y / x)], 1e-6)


@pytest.mark.parametrize("f", [
    lambda x: lax.cummax(abs(x)), lambda x: lax.cummin(-x), lambda x: (-x)[::-1].min(),
    lambda x: olympus.numpy.maximum(abs(x), x[::-1]), lambda x: olympus.numpy.argmax(-x),
    lambda x: lax.reduce_window(abs(x), x[0], lax.max, (3,), (1,), "VALID")])
def test_an_extremum_of_negated_integers_keeps_the_sign_on_gpus(f):
    """A kernel of jaxlib 0.11.2 on an H200 gave the extremum of x."""
    x = np.int32([0, 2, -3, -2, 272])
    assert "optimization_barrier" in lowered(f, x, platform="cuda").as_text()
    assert "optimization_barrier" not in lowered(f, np.float32(x), platform="cuda").as_text()
    assert np.array_equal(here(f, x, platform="cuda"), f(olympus.numpy.asarray(x)))


def test_minus_the_least_int16_is_stored_on_gpus():
    """What reads it in the same kernel took it for 32768 (jaxlib 0.11.2 on an H200)."""
    for dtype, kept in (("int16", True), ("uint16", True), ("int32", False), ("int8", False)):
        text = lowered(lambda x: -x, np.ones(3, dtype), platform="cuda").as_text()
        assert ("optimization_barrier" in text) == kept


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_special_functions_of_float32_have_no_float64_on_accelerators(platform, name):
    fun, given, _, _ = SPECIAL[name]
    for args in (given, [x.astype(olympus.numpy.bfloat16) for x in given]):
        assert "f64" not in lowered(fun, *args, platform=platform).as_text()
        assert "f64" not in lowered(
            lambda *xs: olympus.grad(lambda *xs: fun(*xs).sum(), len(xs) - 1)(*xs), *args,
            platform=platform).as_text()
    assert "f64" in lowered(fun, *given, platform="cpu").as_text()


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_of_float32_keep_their_digits_on_accelerators(name):
    fun, args, wanted, units = SPECIAL[name]
    want = wanted(*(x.astype(np.float64) for x in args))
    told = (np.abs(want) > 1e-36) & (np.abs(want) < 1e38)
    error = np.abs(here(fun, *args).astype(np.float64) - want)[told] / np.abs(want[told]) / ULP
    assert error.max() < units and np.median(error) < max(2.0, units / 5)


def test_polygamma_and_incomplete_gamma_at_the_ends_of_float32_on_accelerators():
    orders, x = map(np.ravel, np.meshgrid(np.float32([0, 1, 2, 34, 35, 40]), np.float32(
        [0, 1e-40, 1e-30, 1.5, 1e20, np.inf, np.nan, -2, -0.5])))
    want = special.polygamma(orders, x)         # by float64
    np.testing.assert_allclose(here(special.polygamma, orders, x), want, rtol=2e-5)
    # Ratios of these over- and underflow.
    ends = np.float32([0, 1.2e-38, 1e-30, 0.5, 1, 1.5, 1e9, 1e38, np.inf, np.nan, -1])
    a, x = map(np.ravel, np.meshgrid(ends, ends))
    for fun in (lax.igamma, lax.igammac, lax.igamma_grad_a):
        np.testing.assert_allclose(here(fun, a, x), fun(a, x), rtol=2e-5, atol=1e-37)
    a, x = a[x < 1e38], x[x < 1e38]
    for fun in (lax.random_gamma_grad, olympus.vmap(olympus.grad(lax.igamma, 1))):
        np.testing.assert_allclose(here(fun, a, x), fun(a, x), rtol=2e-5, atol=1e-37)
    assert here(lax.igamma, np.float32(1e38), np.float32(3e38)) == 1    # NaN: 4 * 1e38 overflows
    # Below 2 ** -64 x is scaled; where x over a was near 1 after that, it counted as near 1.
    a, x = points((1e-5, 0.5), (1e-25, 5e-20), count=2000)
    np.testing.assert_allclose(here(lax.igamma, a, x), sp.gammainc(*np.float64([a, x])), rtol=5e-5)


def test_incomplete_beta_of_the_least_parameters_is_not_0_on_accelerators():
    """a I is a times the density; the density underflows where both parameters are 1e-37."""
    ends, places = np.float32([1.2e-38, 2e-38, 1e-30, 1e-10, 0.01, 1, 16, 1e5, 1e20]), np.float32(
        [1.2e-38, 1e-36, 1e-20, 0.1, 0.5, 0.999])
    a, b, x = map(np.ravel, np.meshgrid(ends, ends, places))
    slope = olympus.vmap(olympus.grad(lax.betainc, 2))
    for fun in (lax.betainc, slope):        # on CPU by float64
        np.testing.assert_allclose(here(fun, a, b, x), fun(a, b, x), rtol=5e-5, atol=1e-36)
    # The first term of the fraction rounds to 0 where b x - a y does to 1: it was NaN.
    a, b = points((1e-9, 20), (1e7, 1e20))
    x = (a + 1) / (a + b + 2)
    np.testing.assert_allclose(here(lax.betainc, a, b, x), lax.betainc(a, b, x), rtol=1e-5)
    # Sums of parameters overflow, and quotients of a large and a tiny one.
    ends, places = np.float32([1e-5, 1, 16, 1e20, 1e34, 1e37, 3e38]), np.float32(
        [1e-38, 1e-37, 1e-30, 0.5, 0.99])
    a, b, x = map(np.ravel, np.meshgrid(ends, ends, places))
    for fun in (lax.betainc, slope):
        np.testing.assert_allclose(here(fun, a, b, x), fun(a, b, x), rtol=5e-5, atol=1e-36)
    with olympus.enable_x64(True):      # both in float64
        np.testing.assert_allclose(lax.betainc(1e-307, 3e-307, 0.3), 0.75)
        np.testing.assert_allclose(lax.betainc(1e-17, 1e20, 1e-20), 1.0)


def test_the_density_of_beta_near_0_does_not_underflow_with_its_power_on_accelerators():
    slope = olympus.grad(lambda x: lax.betainc(np.float32(2), np.float32(2), x))
    np.testing.assert_allclose(here(slope, np.float32(1e-20)), 6e-20, rtol=1e-5)
    with olympus.enable_x64(True):      # and of float64 on CPU
        np.testing.assert_allclose(olympus.grad(lax.betainc, 2)(2.0, 2.0, 1e-170), 6e-170,
                                   rtol=1e-13)


def test_zeta_whose_terms_underflow_is_their_sum():
    s, q = points((1.02, 13), (100, 1e8), count=500)
    want = sp.zeta(*map(np.float64, (s, q)))
    kept = want > 2e-38
    np.testing.assert_allclose(here(lax.zeta, s, q)[kept], want[kept], rtol=2e-6)
    assert (q[kept] ** -s[kept] < np.finfo(np.float32).tiny).any()      # a subnormal first term


def test_zeta_of_large_exponents_is_its_first_term():
    s, q = np.float32([1e5, 1e5, 1e9, 3e4]), np.float32([1.0, 1.0001, 2.0, 0.9999])
    want = q.astype(np.float64) ** -s.astype(np.float64)
    np.testing.assert_allclose(here(lax.zeta, s, q), want, rtol=1e-2)   # the power's own digits
    np.testing.assert_allclose(lax.zeta(s, q), want, rtol=1e-6)
    with olympus.enable_x64(True):
        assert lax.zeta(1e30, 1.0) == 1.0


def test_no_float64_is_in_programs_of_float32_on_accelerators():
    x = np.float32([0.5, 0.25])
    matrix = np.float32([[1, 2], [3, 4]])
    for fun, args in ((olympus.numpy.linalg.det, (matrix,)), (special.hyp2f1, (x, x, x, x)),
                      (special.lambertw, (x,)), (special.wofz, (x,)), (special.jv, (x, x))):
        for platform in ("tpu", "cuda"):
            assert "f64" not in lowered(fun, *args, platform=platform).as_text(), fun


def test_hypergeometric_sums_keep_their_digits_on_accelerators():
    args = [np.random.default_rng(0).uniform(-2, 0.9, 20).astype(np.float32) for _ in range(4)]
    want = sp.hyp2f1(*(x.astype(np.float64) for x in args))
    np.testing.assert_allclose(here(special.hyp2f1, *args), want, rtol=1e-5)


def test_hyp1f1_far_below_0_is_not_0_on_accelerators():
    """The exponential of x / 2 was 0 in float32, the factor beside it large."""
    points = np.float32([(8.25, 28.5, -194), (18.5, 16.25, -193), (11.5, 10.25, -205)]).T
    want = special.hyp1f1(*points)      # in float64, where it is not
    np.testing.assert_allclose(here(special.hyp1f1, *points), want, rtol=1e-4)


def test_hyp2f1_of_negative_c_is_right_or_nan_on_accelerators():
    """Terms that grow once more behind -c may be 0 in float32 before: 1.04 was 1.02 at c = -75."""
    parameters = [-6.5, -2.5, -0.3, 0.5, 1, 2.5, 7]
    points = np.float32(list(itertools.product(
        parameters, parameters, [-0.3, -1.5, -2.5, -9.5, -20.5, -75.3],
        [-3, -0.5, -0.2, -1e-3, 0.1, 0.5, 0.9]))).T
    found, want = here(special.hyp2f1, *points), np.asarray(special.hyp2f1(*points))
    held = ~np.isnan(found) & ~np.isnan(want)       # that of float64 may lose all digits, too
    np.testing.assert_allclose(found[held], want[held], rtol=1e-3)
    assert held[points[2] > -30].mean() > 0.99


# By kind of operand (tools/special_sweep.py) ordinary numbers, and the ends.
SIDES = (0.3, 1.0, 1.72, 2.5, 6.25, 9.5, 14.0, 23.5, 40.0, 75.0)
OPERANDS = {
    "r": (0.0, *SIDES, 300.0, 1e4, 1e20, *(-x for x in SIDES), -300.0, np.inf, -np.inf),
    "p": (0.0, 1e-20, *SIDES, 300.0, 1e4, 1e20, np.inf, -0.5),
    "q": (0.0, 1e-30, 1e-6, 0.1, 0.3, 0.5, 0.75, 0.97, 1.0, 2.0),
    "n": (0.0, 1.0, 2.0, 3.0, 7.0, 12.0, 20.0, 33.0),
    "o": (-6.5, -0.3, 0.0, 1e-6, *SIDES, 150.0), "s": (1e-3, 0.3, 0.5, 1.0, 2.5, 7.0, 19.0, 120.0),
    "m": (-1e4, -3.0, 0.0, 1e-20, 0.3, 0.9, 0.999, 1.0), "i": (-1.0, -0.9, -0.3, 0.0, 0.5, 0.99),
    "d": (0.3, 1.0, 4.5, 30.0, 1e3),
}
# Where sums of float32 hold: beyond, terms cancel or leave the range (docs/accuracy.md).
LIMITS = {
    "hyp1f1": lambda a, b, x: b >= 0.3 and abs(x) <= 150,
    "hyp2f1": lambda a, b, c, x: c >= 0 and x >= -3,
    "eval_gegenbauer of real degrees": lambda n, alpha, x: -0.5 < alpha <= 75,
    "eval_genlaguerre of real degrees": lambda n, alpha, x: alpha > -1 and -40 <= x <= 14,
    "eval_laguerre of real degrees": lambda n, x: -40 <= x <= 14,
    "lax.polygamma": lambda m, x: m <= 12 and x <= 300,     # XLA's formula
}
CASES = {case.name: case for case in special_sweep.CASES}
QUICK = ("kv", "erfc", "ndtr", "expi", "gammaln", "beta", "factorial", "k1", "lambertw")


@pytest.mark.parametrize("name", [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES])
def test_special_functions_of_float32_have_their_values_on_accelerators(name):
    case = CASES[name]
    points = list(itertools.product(*(OPERANDS[kind] for kind in case.kinds)))
    if name in LIMITS:
        points = [xs for xs in points if LIMITS[name](*xs)]
    chosen = np.random.default_rng(0).permutation(len(points))[:600]
    xs = list(np.array(points, np.float32)[chosen].T)
    value = olympus.jit(case.fun)
    found, want = np.asarray(here(case.fun, *xs), np.float64), np.asarray(value(*xs), np.float64)
    move = np.full(want.shape, 1e-36)       # by the last digits of the operands
    with np.errstate(all="ignore"):
        for i, kind in enumerate(case.kinds):
            for side in (-np.inf, np.inf) if kind not in "n" else ():
                near = [np.nextafter(x, np.float32(side)) if i == j else x
                        for j, x in enumerate(xs)]
                gap = np.abs(np.asarray(value(*near), np.float64) - want)
                move = np.fmax(move, np.where(np.isfinite(gap), 16 * gap, 0.0))
        right = np.abs(found - want) <= 1e-4 * np.abs(want) + move
    right |= (found == want) | (np.isnan(found) & np.isnan(want))
    wrong = [(*map(float, point), *pair) for *point, pair in zip(
        *(x[~right] for x in xs), zip(found[~right], want[~right], strict=True), strict=True)]
    assert not wrong, f"{len(wrong)} wrong, (*operands, found, on a CPU): {wrong[:8]}"


@pytest.mark.parametrize("reduce, start", [(lax.max, -np.inf), (lax.min, np.inf)])
def test_derivatives_of_extrema_of_windows_on_tpus(reduce, start):
    x = np.random.default_rng(0).permutation(49).reshape(7, 7).astype(np.float32)
    x[2, 3], x[0, 0] = np.nan, start
    for padding in (((1, 0), (0, 1)), ((2, 2), (1, 1))):
        def total(x, padding=padding):
            y = lax.reduce_window(x, start, reduce, (3, 2), (2, 1), padding)
            return (y ** 2 * olympus.numpy.arange(1.0, 1 + y.size).reshape(y.shape)).sum()

        slope = olympus.grad(total)
        assert "select_and_scatter" in lowered(slope, x).as_text()
        assert "select_and_scatter" not in lowered(slope, x, platform="cuda").as_text()
        np.testing.assert_allclose(here(slope, x), olympus.jit(slope)(x), rtol=1e-6)
        def moved(x):
            return olympus.jvp(total, (x,), (olympus.numpy.cos(x),))[1]
        np.testing.assert_allclose(here(moved, x), olympus.jit(moved)(x), rtol=1e-5)


def test_sums_of_16_bits_at_indices_are_rounded_once_on_accelerators():
    """On TPUs they are added behind the scatter; elements that nothing is added to keep signs."""
    x = olympus.numpy.array([-0.0, 0, 1, 256], "bfloat16")
    places, ones = np.array([2, 3, 3, 3]), olympus.numpy.ones(4, "bfloat16")
    for fun, wanted in ((lambda x: x.at[places].add(ones), [-0.0, 0, 2, 260]),
                        (lambda x: x.at[places].subtract(ones), [-0.0, 0, 0, 253]),
                        (olympus.grad(lambda x: x[places].sum()), [0, 0, 1, 3]),
                        (olympus.grad(lambda x: x[places].sum() + (256 * x).sum()),
                         [256, 256, 256 + 1, 260])):
        for platform in ("tpu", "cuda"):
            found = here(fun, x, platform=platform).astype(np.float32)
            wanted = np.float32(olympus.numpy.array(wanted, "bfloat16"))
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def test_kernels_of_accelerators():
    x = np.eye(3, dtype=np.float32)
    left = {"compute_left_eigenvectors": True}
    for fun, platform, name in (
            (lax.linalg.lu, "cuda", "@cu_lu_pivots_to_permutation"),
            (lax.linalg.lu, "rocm", "@hip_lu_pivots_to_permutation"),
            (lambda x: lax.linalg.qr(x, pivoting=True), "cuda", "@cuhybrid_geqp3"),
            (lambda x: lax.linalg.eig(x, **left), "cuda", "@cuhybrid_eig_real"),
            (lambda x: lax.linalg.eig(x + 0j), "rocm", "@hiphybrid_eig_comp"),
            (lambda x: lax.linalg.eig(x, compute_left_eigenvectors=False), "cuda",
             "@cusolver_geev_ffi"),
            (lambda x: lax.approx_max_k(x, 2), "tpu", "@ApproxTopK"),
            (lambda x: lax.approx_min_k(x, 2), "cuda", "@ApproxTopK")):
        assert name in lowered(fun, x, platform=platform).as_text()


def test_programs_of_a_tpu_reach_the_host_by_transfers():
    x = np.ones(3, np.float32)

    def shown(x):
        olympus.debug.print("{}", x, ordered=True)
        olympus.debug.print("no operands", ordered=True)
        return olympus.pure_callback(lambda x: (x, x[:0]), (x, x[:0]), x)

    text = lowered(shown, x).as_text()
    assert text.count("stablehlo.send") == text.count("stablehlo.recv") == 3
    for channel in range(2, 8):
        assert f'_xla_host_transfer_rendezvous = "{channel}"' in text
    with pytest.raises(NotImplementedError, match="partitioned=True given on tpu"):
        lowered(lambda x: olympus.debug.callback(print, x, partitioned=True), x)


def test_targets_have_names():
    assert [str(parse_target(t)) for t in (
        "tpu:v5e:2x2", "V6E:16x16", "h100:8", "cuda:a100:2x8", "gpu:l4", "v5p", "v7x:2x2x1")] == [
        "v5e:2x2", "v6e:16x16", "h100:8", "a100:2x8", "l4:1", "v5p:1x1x1", "tpu7x:2x2x1"]
    for text, wrong in (("v5x:2x2", "chips are v5p, v5e"), ("h10:8", "chips are h100"),
                        ("tpu:h100:8", "is of the platform cuda; write cuda:h100:8"),
                        ("v5p:2x2", "has 3 axes; .* as v5p:2x2x1"), ("h100:0", "8, 2x2 or"),
                        ("h100:eight", "8, 2x2 or"), ("h100:1x1x1x8", "8, 2x2 or")):
        with pytest.raises(ValueError, match=wrong):
            parse_target(text)
    for chip in CHIPS.values():
        assert 0.1 < chip.peak("bfloat16") / chip.bandwidth / 200 < 4 and chip.source


WHEELS = {"tpu": "libtpu", "cuda": "jax_cuda13_plugin"}


@pytest.mark.parametrize("target", ["v5e:2x2", "h100:4"])
def test_programs_compile_for_devices_that_are_not_here(target):
    platform = parse_target(target).chip.platform
    if importlib.util.find_spec(WHEELS[platform]) is None:
        pytest.skip(f"{WHEELS[platform]} is not installed")
    topology = topologies.get_topology_desc(target)
    device, kind = topology.devices[0], CHIPS[parse_target(target).name].kind
    assert repr(topology) == f"TopologyDescription(4 x {kind})"
    assert len(topologies.get_topology_desc(platform, target).devices) == 4
    here = olympus.sharding.SingleDeviceSharding(device)
    assert here.memory_kind == "device"
    low = olympus.jit(lambda x: x @ x).lower(
        olympus.ShapeDtypeStruct((256, 256), np.float32, sharding=here))
    compiled = low.compile()
    for costs in (low.cost_analysis()["flops"], low.cost_table()[0].flops,
                  compiled.cost_table()[0].flops):
        assert costs == 2 * 256**3
    assert compiled.memory_analysis().argument_size_in_bytes == 4 * 256**2
    assert "dot(" in compiled.as_text() or "gemm" in compiled.as_text() or (
        "convolution(" in compiled.as_text())
    image, kernel = (olympus.ShapeDtypeStruct(shape, np.float32, sharding=here)
                     for shape in ((1, 4, 8, 8), (4, 4, 3, 3)))
    convolution = olympus.jit(lambda x, w: lax.conv(x, w, (1, 1), "SAME")).lower(image, kernel)
    # cuDNN refuses to run the algorithm that XLA names where it cannot tune.
    assert '"algo_id"' not in convolution.compile().as_text()
    mesh = topologies.make_mesh(topology, (2, 2), ("a", "b"))
    over = olympus.sharding.NamedSharding(mesh, olympus.sharding.PartitionSpec("a", "b"))
    spread = olympus.jit(lambda x: x @ x).lower(
        olympus.ShapeDtypeStruct((256, 256), np.float32, sharding=over)).compile()
    assert "all-gather" in spread.as_text()
    # TPUs scatter sums where the mesh is a ring of their torus, in 16 bits as GPUs do.
    line = olympus.make_mesh((4,), ("i",), devices=topology.devices)
    cut = olympus.sharding.PartitionSpec("i")
    scattered = olympus.jit(olympus.shard_map(
        lambda x: lax.psum_scatter(x, "i", tiled=True), mesh=line, in_specs=cut, out_specs=cut
    )).lower(olympus.ShapeDtypeStruct((256, 256), "bfloat16", sharding=olympus.sharding.
                                      NamedSharding(line, cut))).compile().as_text()
    assert re.search(r"bf16\S* reduce-scatter\(" if platform == "tpu" else
                     r"bf16\[\S* all-to-all-start\(", scattered)
    assert platform == "cuda" or [d.coords for d in line.devices] == [
        [0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
    told = olympus.jit(lambda x: (olympus.debug.print("{}", x, ordered=True), x)[1]).lower(
        olympus.ShapeDtypeStruct((4,), np.float32, sharding=here)).compile().as_text()
    assert ("send(" if platform == "tpu" else "xla_ffi_python_gpu_callback") in told
    # An array of ours on such a device ends the process in jaxlib: it is never handed on.
    for x in (np.ones(4), olympus.numpy.ones(4)):
        for place in (device, here):
            with pytest.raises(RuntimeError, match="a device of a topology given for an array"):
                olympus.device_put(x, place)
    with pytest.raises(RuntimeError, match="compiled for 1 x .* of a topology"):
        compiled(np.ones((256, 256), np.float32))
    with pytest.raises(ValueError, match="knows none of this name"):
        topologies.get_topology_desc("nothing", platform)
