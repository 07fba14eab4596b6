"""Factorisations and solvers beyond the rows of `tests/ops`: what fails, is empty or is refused."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg
from ops import Refusal

import olympus
from olympus import grad, hessian, jit, jvp, linear_transpose, make_olympuspr, numpy as onp, vmap
from olympus._src.lowering.module import Lowering, lower_program
from olympus.lax import linalg

DTYPES = ("float32", "float64", "complex64", "complex128")


def matrices(*shape, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("c") else x).astype(dtype)


def close(x, y, tol=1e-5):
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tol, atol=tol)


# Failure -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("dtype", DTYPES)
def test_a_matrix_that_is_not_positive_definite_gives_nan_and_leaves_the_others(dtype):
    with olympus.enable_x64(dtype in ("float64", "complex128")):
        x = np.stack([4 * np.eye(2), [[1, 2], [2, 1]], 9 * np.eye(2)]).astype(dtype)
        out = np.asarray(jit(linalg.cholesky)(x))
    assert out.dtype == dtype
    close(out[[0, 2]], [2 * np.eye(2), 3 * np.eye(2)])
    lower = np.tril(np.ones((2, 2), bool))
    assert np.isnan(out[1].real[lower]).all() and (out[1][~lower] == 0).all()
    if out.dtype.kind == "c":
        assert np.isnan(out[1].imag[lower]).all()


def test_nan_in_is_nan_out():
    x = np.full((2, 2), np.nan, "f4")
    for fun in (linalg.cholesky, linalg.lu, linalg.qr):
        assert np.isnan(np.asarray(olympus.tree.leaves(fun(x))[0])).any()


def test_singular_matrices():
    ones = np.ones((2, 2), "f4")
    lu, pivots, order = linalg.lu(ones)
    close(lu, [[1, 1], [1, 0]])
    assert (np.asarray(pivots) == [0, 1]).all() and (np.asarray(order) == [0, 1]).all()
    assert not np.isfinite(np.asarray(onp.linalg.solve(ones, np.ones(2, "f4")))).any()
    sign, log = onp.linalg.slogdet(ones)
    assert (sign, log) == (0, -np.inf)
    zero = np.zeros(3, "f4")
    assert np.isnan(np.asarray(linalg.tridiagonal_solve(zero, zero, zero, np.ones((3, 1), "f4")))
                    ).all()
    bounded = linalg.tridiagonal_solve(zero, zero, zero, np.ones((3, 1), "f4"),
                                       perturb_singular=True)
    assert np.isfinite(np.asarray(bounded)).all() and (np.asarray(bounded) > 1e30).all()


def test_one_singular_tridiagonal_matrix_of_a_batch():
    d = np.stack([np.full(3, 2), np.zeros(3)]).astype("f4")
    zero = np.zeros((2, 3), "f4")
    out = np.asarray(linalg.tridiagonal_solve(zero, d, zero, np.ones((2, 3, 1), "f4")))
    close(out[0], np.full((3, 1), 0.5))
    assert np.isnan(out[1]).all()


# Nothing in them ---------------------------------------------------------------------------------

@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3), (2, 0, 0)])
def test_square_and_empty(shape):
    x = np.zeros(shape, "f4")
    assert linalg.cholesky(x).shape == shape
    assert grad(lambda x: linalg.cholesky(x).sum())(x).shape == shape
    assert linalg.triangular_solve(x, x).shape == shape
    assert onp.linalg.inv(x).shape == shape
    close(onp.linalg.det(x), np.ones(shape[:-2]) if shape[-1] == 0 else np.zeros(shape[:-2]))
    assert linalg.cholesky_update(x, x[..., 0] if shape[-1] else x.reshape(*shape[:-1])).shape \
        == shape


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 2), (2, 0, 3), (2, 3, 0)])
@pytest.mark.parametrize("full", [True, False])
def test_factors_of_nothing(shape, full):
    x = np.zeros(shape, "f4")
    *batch, m, n = shape
    k = min(m, n)
    q, r, order = linalg.qr(x, pivoting=True, full_matrices=full)
    assert q.shape == (*batch, m, m if full else k)
    assert r.shape == (*batch, m if full else k, n)
    close(order, np.broadcast_to(np.arange(n), (*batch, n)))
    if full and k == 0:
        close(q, np.broadcast_to(np.eye(m), (*batch, m, m)))
    lu, pivots, rows = linalg.lu(x)
    assert (lu.shape, pivots.shape) == (shape, (*batch, k))
    close(rows, np.broadcast_to(np.arange(m), (*batch, m)))
    assert grad(lambda x: linalg.lu(x)[0].sum() + linalg.qr(x)[1].sum())(x).shape == shape


def test_reflectors_of_nothing():
    a, none = np.zeros((3, 0), "f4"), np.zeros(0, "f4")
    c = matrices(3, 2)
    close(linalg.ormqr(a, none, c), c)
    assert linalg.householder_product(a, none).shape == (3, 0)
    close(linalg.householder_product(matrices(3, 2), none), np.eye(3, 2))


# Dtypes ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_triangular_systems_take_half_precision(half):
    a = onp.asarray([[2.0, 0.0], [1.0, 4.0]]).astype(half)
    out = linalg.triangular_solve(a, onp.ones((2, 2), half), left_side=True, lower=True)
    assert out.dtype == half
    close(onp.asarray(out, "float32"), [[0.5, 0.5], [0.125, 0.125]], 1e-2)


def test_results_are_not_weak_and_integers_become_floats():
    x = np.eye(2, dtype="i4") * 4
    for fun in (onp.linalg.inv, onp.linalg.det, onp.linalg.cholesky, onp.linalg.qr,
                onp.linalg.slogdet):
        for leaf in olympus.tree.leaves(fun(x)):
            assert (leaf.dtype, leaf.weak_type) == ("float32", False)
    assert onp.linalg.matrix_power(x, 3).dtype == "int32"
    assert onp.linalg.solve(x, np.ones(2, "c8")).dtype == "complex64"


# Structure ---------------------------------------------------------------------------------------

def test_qr_signs_pivots_and_reconstruction():
    x = matrices(6, 4, dtype="complex64")
    q, r, order = (np.asarray(y) for y in linalg.qr(x, pivoting=True, full_matrices=False))
    close(q @ r, x[:, order])
    close(np.conj(q.T) @ q, np.eye(4))
    size = np.abs(np.diag(r))
    assert (np.diff(size) <= 1e-6).all() and np.abs(np.diag(r).imag).max() < 1e-6


def test_permutation_matches_scipy():
    x = matrices(7, 5)
    factors, pivots = scipy.linalg.lu_factor(x)
    lu, ours, order = linalg.lu(x)
    close(lu, factors)
    assert (np.asarray(ours) == pivots).all()
    lower = np.tril(factors, -1)[:, :5] + np.eye(7, 5)
    close(lower @ np.triu(factors[:5]), x[np.asarray(order)])
    assert (np.asarray(linalg.lu_pivots_to_permutation(ours, 7)) == np.asarray(order)).all()


def test_programs_show_one_equation_each():
    x = np.eye(3, dtype="f4")
    for fun, name in ((linalg.lu, "lu"), (linalg.qr, "qr"),
                      (lambda x: linalg.triangular_solve(x, x), "triangular_solve"),
                      (lambda x: linalg.cholesky_update(x, x[0]), "cholesky_update"),
                      (lambda x: linalg.ormqr(x, x[0], x), "ormqr")):
        assert f" {name}" in str(make_olympuspr(fun)(x))


def test_one_matrix_for_mapped_right_hand_sides_is_factored_once():
    a, b = matrices(3, 3) + 4 * np.eye(3, dtype="f4"), matrices(5, 3)
    mapped = vmap(onp.linalg.solve, in_axes=(None, 0))
    close(mapped(a, b), np.linalg.solve(a, b.T).T, 1e-4)
    text = str(make_olympuspr(mapped)(a, b))
    assert "f32[5,3,3]" not in text and text.count(" lu ") == 1


@pytest.mark.parametrize(("fun", "calls"), [
    (linalg.cholesky, ["@cusolver_potrf_ffi"]),
    (lambda x: linalg.triangular_solve(x, x), ["stablehlo.triangular_solve"]),
    (linalg.lu, ["@cusolver_getrf_ffi"]),
    (linalg.qr, ["@cusolver_geqrf_ffi", "@cusolver_orgqr_ffi"]),
    (lambda x: linalg.ormqr(x, x[0], x), ["@cusolver_ormqr_ffi"]),
])
def test_on_a_gpu_the_kernels_are_cusolvers(fun, calls):
    program = make_olympuspr(fun)(np.eye(3, dtype="c8"))
    text = str(lower_program(Lowering(program, "f", "gpu"))[0])
    assert [name for name in calls if name in text] == calls


def test_a_kernel_that_a_gpu_has_not_is_refused():
    x = np.ones((3, 3), "f4")
    program = make_olympuspr(linalg.schur)(x)
    with pytest.raises(NotImplementedError, match="gees.*run this part on the CPU"):
        lower_program(Lowering(program, "f", "gpu"))


# Derivatives -------------------------------------------------------------------------------------

def test_solve_is_linear_in_the_right_hand_side():
    a, ct = matrices(3, 3) + 4 * np.eye(3, dtype="f4"), matrices(3)
    (out,) = linear_transpose(lambda b: onp.linalg.solve(a, b), ct)(ct)
    close(out, np.linalg.solve(a.T, ct))


def test_second_derivatives_of_a_log_determinant():
    """d² log det(a + z I) = -trace(a⁻²), by each way that there is to it."""
    with olympus.enable_x64(True):
        x = matrices(4, 4, dtype="float64")
        a = x @ x.T + np.eye(4)
        inverse = np.linalg.inv(a)
        for log in (lambda a: onp.linalg.slogdet(a)[1],
                    lambda a: onp.linalg.slogdet(a, method="qr")[1],
                    lambda a: onp.log(onp.linalg.det(a)),
                    lambda a: 2 * onp.log(onp.diagonal(onp.linalg.cholesky(a))).sum(),
                    lambda a: onp.log(onp.abs(onp.diagonal(linalg.lu(a)[0]))).sum()):
            close(grad(log)(a), inverse.T, 1e-9)
            second = hessian(lambda z, log=log: log(a + z * np.eye(4)))(0.0)
            close(second, -np.trace(inverse @ inverse), 1e-9)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("rank", [3, 2, 1, 0])
def test_derivatives_of_the_determinant_of_singular_matrices(dtype, rank):
    with olympus.enable_x64(True):
        a = matrices(4, rank, dtype=dtype) @ matrices(rank, 4, dtype=dtype, seed=1)
        s, t = matrices(2, 4, 4, dtype=dtype, seed=2)

        def along(x, y):
            return np.linalg.det(a + x * s + y * t)

        h = 1e-3
        slope = lambda y: (along(h, y) - along(-h, y)) / (2 * h)
        first = jvp(onp.linalg.det, (a,), (s,))[1]
        second = jvp(lambda a: jvp(onp.linalg.det, (a,), (s,))[1], (a,), (t,))[1]
        close(first, slope(0.0), 1e-3)
        close(second, (slope(h) - slope(-h)) / (2 * h), 1e-3)


@pytest.mark.parametrize("a", [np.eye(4, k=1), np.diag([1.0, 0.0, 2.0, 3.0]), np.zeros((4, 4))])
def test_cofactors_where_elimination_meets_zeros(a):
    minors = [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a, i, 0), j, 1))
               for j in range(4)] for i in range(4)]
    close(grad(onp.linalg.det)(a.astype("f4")), minors, 1e-5)
    close(vmap(grad(onp.linalg.det))(np.stack([a, np.eye(4)]).astype("f4"))[0], minors, 1e-5)


# Refusals ----------------------------------------------------------------------------------------

EYE, WIDE, VECTOR = np.eye(3, dtype="f4"), np.ones((2, 3), "f4"), np.ones(3, "f4")
SQUARE = r"square matri"
REFUSALS = (
    Refusal("cholesky-wide", linalg.cholesky, ValueError, f"cholesky: .*{SQUARE}", (WIDE,)),
    Refusal("cholesky-vector", linalg.cholesky, TypeError, r"cholesky: operand float32\[3\] given; "
            "at least 2 axes are required", (VECTOR,)),
    Refusal("cholesky-int", linalg.cholesky, TypeError, "cholesky: .*float32.* is required; "
            "convert", (np.eye(2, dtype="i4"),)),
    Refusal("lu-half", linalg.lu, TypeError, "lu: .*float16.*required; convert",
            (np.eye(2, dtype="f2"),)),
    Refusal("update-size", linalg.cholesky_update, ValueError, "3 elements are required",
            (EYE, np.ones(2, "f4"))),
    Refusal("update-complex", linalg.cholesky_update, TypeError, "float32 or float64 is required",
            (EYE + 0j, VECTOR + 0j)),
    Refusal("solve-size", linalg.triangular_solve, ValueError,
            "triangular_solve: .*must have 3 columns; pass left_side=True", (EYE, WIDE.T)),
    Refusal("solve-wide", linalg.triangular_solve, ValueError, f"matrix a .*{SQUARE}",
            (WIDE, WIDE)),
    Refusal("solve-batch", linalg.triangular_solve, TypeError, r"equal leading \(batch\) axes",
            (np.ones((2, 3, 3), "f4"), np.ones((5, 3, 3), "f4"))),
    Refusal("solve-dtypes", linalg.triangular_solve, TypeError, "equal dtypes are required",
            (EYE, EYE + 0j)),
    Refusal("pivots-float", lambda x: linalg.lu_pivots_to_permutation(x, 3), TypeError,
            "int32 is required", (VECTOR,)),
    Refusal("pivots-size", lambda x: linalg.lu_pivots_to_permutation(x, 2), ValueError,
            "at least 3 is required", (np.zeros(3, "i4"),)),
    Refusal("product-wide", linalg.householder_product, ValueError, "taus <= columns <= rows",
            (WIDE, np.ones(2, "f4"))),
    Refusal("ormqr-size", linalg.ormqr, ValueError, "c must have 3 rows", (EYE, VECTOR, WIDE)),
    Refusal("ormqr-taus", linalg.ormqr, ValueError, "at most 2 taus", (WIDE, VECTOR, WIDE)),
    Refusal("tridiagonal-size", linalg.tridiagonal_solve, ValueError, "three diagonals of n",
            (VECTOR, VECTOR, np.ones(2, "f4"), EYE)),
    Refusal("tridiagonal-vector", linalg.tridiagonal_solve, TypeError, "at least 2 axes",
            (VECTOR, VECTOR, VECTOR, VECTOR)),
    Refusal("np-solve", onp.linalg.solve, ValueError, r"for a batch of vectors write",
            (np.ones((2, 3, 3), "f4"), WIDE)),
    Refusal("np-inv", onp.linalg.inv, ValueError, f"inv: .*{SQUARE}", (WIDE,)),
    Refusal("np-det", onp.linalg.det, ValueError, f"det: .*{SQUARE}", (VECTOR,)),
    Refusal("np-list", onp.linalg.inv, TypeError, "of type list", ([[1.0]],)),
    Refusal("np-slogdet", lambda x: onp.linalg.slogdet(x, method="svd"), ValueError,
            "'lu' or 'qr' is required", (EYE,)),
    Refusal("np-slogdet-complex", lambda x: onp.linalg.slogdet(x, method="qr"), ValueError,
            "use method 'lu'", (EYE + 0j,)),
    Refusal("np-qr-mode", lambda x: onp.linalg.qr(x, "thin"), ValueError, "'reduced', 'complete'",
            (EYE,)),
    Refusal("np-power", lambda x: onp.linalg.matrix_power(x, 0.5), TypeError, "an int is required",
            (EYE,)),
    Refusal("np-power-wide", lambda x: onp.linalg.matrix_power(x, 2), TypeError, SQUARE, (WIDE,)),
    Refusal("np-chain-one", lambda x: onp.linalg.multi_dot([x]), ValueError, "at least two",
            (EYE,)),
    Refusal("np-chain-sizes", lambda x: onp.linalg.multi_dot([x, x]), ValueError,
            "as many as the rows of the next", (WIDE,)),
    Refusal("np-chain-ranks", lambda x: onp.linalg.multi_dot([x, x[0], x]), ValueError,
            "first and last may be vectors", (EYE,)),
    Refusal("np-tensorinv", lambda x: onp.linalg.tensorinv(x, 1), ValueError, "as many elements",
            (WIDE,)),
    Refusal("np-tensorinv-ind", lambda x: onp.linalg.tensorinv(x, 0), ValueError, "positive int",
            (EYE,)),
    Refusal("np-tensorsolve", onp.linalg.tensorsolve, ValueError, "as many elements",
            (WIDE, np.ones(2, "f4"))),
)


@pytest.mark.parametrize("row", REFUSALS, ids=[r.name for r in REFUSALS])
def test_refusals_say_what_is_wrong(row):
    with pytest.raises(row.error, match=row.match):
        row.call(*row.args)


def test_a_derivative_by_reflectors_cannot_be_transposed_linearly():
    with pytest.raises(TypeError, match="ormqr: transposed in its reflectors"):
        linear_transpose(lambda a: linalg.ormqr(a, VECTOR, EYE), EYE)(EYE)


def exact_det(a):
    """By Leibniz's formula in rational numbers."""
    n = len(a)
    total = Fraction(0)
    for order in itertools.permutations(range(n)):
        sign = (-1) ** sum(i > j for i, j in itertools.combinations(order, 2))
        total += sign * math.prod(Fraction(float(a[i, j])) for i, j in enumerate(order))
    return total


def nearly_singular(n, count=400):
    """All but equal rows, and sums of n - 1 outer products, disturbed."""
    rng = np.random.default_rng(n)
    for k in range(count):
        if k % 3 == 0:
            size = rng.uniform(1, 1e5)
            a = np.full((n, n), size * (1 - rng.uniform(1e-6, 1e-3)))
            a[np.arange(n), np.arange(n)] = size
        elif k % 3 == 1:
            a = rng.standard_normal((n, n - 1)) @ rng.standard_normal((n - 1, n))
            a += rng.uniform(1e-7, 1e-4) * rng.standard_normal((n, n))
        else:
            a = rng.standard_normal((n, n))
            a[-1] = a[0] * (1 + 1e-5 * rng.standard_normal(n))
        yield a


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("dtype, bound", [("float32", 1e-6), ("complex64", 1e-6),
                                          ("float64", 1e-7), ("complex128", 1e-7)])
def test_determinants_of_nearly_singular_matrices(n, dtype, bound):
    a = np.array([*nearly_singular(n)]).astype(dtype)
    wanted = np.array([float(exact_det(m)) for m in a.real])
    with olympus.enable_x64(True):
        for run in (onp.linalg.det, olympus.jit(onp.linalg.det)):
            error = np.abs(np.asarray(run(a)) - wanted) / np.abs(wanted)
            assert error.max() <= bound     # NumPy's, by LU in float64, are 5e-8 and 2e-8


def test_large_determinants_and_their_derivatives():
    m = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 10]], np.float32)
    for scale in (1e13, 3e19):
        assert onp.linalg.det(m * np.float32(scale)) == -np.inf
        assert onp.linalg.det(-m * np.float32(scale)) == np.inf
    a = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    small = olympus.grad(onp.linalg.det)(a)
    for scale in (1e-9, 1e9, 1e11):
        found = olympus.grad(onp.linalg.det)(a * np.float32(scale))
        np.testing.assert_allclose(found / np.float32(scale) ** 3, small, 2e-4, 1e-6)
    with olympus.enable_x64(True):
        found = olympus.grad(onp.linalg.det)(a.astype(np.float64) * 1e80)
        np.testing.assert_allclose(found / 1e240, small, 2e-5, 1e-6)
