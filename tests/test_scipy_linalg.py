"""olympus.scipy.linalg: exact matrices, extreme arguments, refusals; its rows check the rest."""

import numpy as np
import pytest
import scipy.linalg as sl

import olympus
from olympus.scipy import linalg


@pytest.mark.parametrize("name", ["hilbert", "invhilbert", "pascal", "invpascal", "dft", "helmert"])
def test_matrices_of_a_size_are_scipys(name):
    for n in (1, 2, 5, 8):
        np.testing.assert_allclose(getattr(linalg, name)(n), getattr(sl, name)(n), 1e-6, 1e-6)


def test_matrices_of_a_size_have_scipys_forms():
    for kind in ("symmetric", "lower", "upper"):
        np.testing.assert_array_equal(linalg.pascal(6, kind), sl.pascal(6, kind))
        np.testing.assert_array_equal(linalg.invpascal(6, kind), sl.invpascal(6, kind))
    np.testing.assert_array_equal(linalg.hadamard(8, np.float32), sl.hadamard(8))
    np.testing.assert_allclose(linalg.helmert(4, True), sl.helmert(4, True), 1e-6)
    np.testing.assert_allclose(linalg.dft(5, "sqrtn"), sl.dft(5, "sqrtn"), 1e-5, 1e-6)


@pytest.mark.slow
def test_expm_takes_the_order_and_squarings_that_the_norm_asks_for(rng):
    """From 1e-9 to what overflows, nilpotent and badly scaled: each within a few ulp of SciPy's."""
    with olympus.enable_x64(True):
        a = rng.normal(size=(5, 5))
        nilpotent = np.triu(3 * rng.normal(size=(5, 5)), 1)
        scaled = np.array([[1, 1e6], [0, -1.0]])
        stack = np.stack([s * a for s in (0, 1e-9, 1e-3, 0.05, 0.3, 1, 4, 60)] + [nilpotent])
        expected = np.stack([sl.expm(x) for x in stack])
        sizes = np.abs(expected).max((1, 2), keepdims=True)
        found = np.asarray(linalg.expm(stack))
        assert np.max(np.abs(found - expected) / sizes) < 1e-11
        np.testing.assert_allclose(olympus.vmap(linalg.expm)(stack), found, 1e-12, 1e-12)
        np.testing.assert_allclose(linalg.expm(scaled), sl.expm(scaled), 1e-13)
        assert np.isnan(linalg.expm(1e9 * a)).all()
        assert np.isnan(linalg.expm(60 * a, max_squarings=1)).all()


@pytest.mark.slow
def test_functions_of_a_real_matrix_know_which_side_of_the_cut_its_eigenvalues_are_on():
    a = np.diag([-4.0, 3, 2]) + np.triu(np.ones((3, 3)), 1)
    np.testing.assert_allclose(linalg.sqrtm(a), sl.sqrtm(a), 1e-5, 1e-5)
    np.testing.assert_allclose(linalg.logm(a), sl.logm(a), 1e-5, 1e-5)


def test_sqrtm_of_a_singular_matrix_with_a_root_is_finite():
    a = np.diag([0.0, 4, 0])
    np.testing.assert_array_equal(linalg.sqrtm(a), np.diag([0.0, 2, 0]))


def test_generalised_eigenvectors_solve_all_three_problems(rng):
    x = rng.normal(size=(4, 4))
    a, b = (x + x.T).astype("f4"), (x @ x.T + np.eye(4)).astype("f4")
    for kind, left, right in ((1, a, b), (2, a @ b, np.eye(4)), (3, b @ a, np.eye(4))):
        w, v = map(np.asarray, linalg.eigh(a, b, type=kind))
        np.testing.assert_allclose(left @ v, right @ v * w, 2e-3, 2e-3)


def test_eigh_tridiagonal_selects_by_value(rng):
    d, e = rng.normal(size=6), rng.normal(size=5)
    w, v = linalg.eigh_tridiagonal(d, e, select="v", select_range=(-1, 1))
    np.testing.assert_allclose(w, sl.eigh_tridiagonal(d, e, True, "v", (-1, 1)), 1e-4, 1e-5)
    assert v.shape == (6, w.size)


def test_rsf2csf_is_triangular_and_the_same_matrix(rng):
    t, z = sl.schur(rng.normal(size=(7, 7)))
    expected = z @ t @ z.T
    t, z = map(np.asarray, linalg.rsf2csf(t, z))
    assert not np.tril(t, -1).any()
    np.testing.assert_allclose(z @ t @ z.conj().T, expected, 1e-4, 1e-5)


@pytest.mark.slow
def test_rsf2csf_of_any_matrices_is_scipys(rng):
    """Blocks that overlap, and noise beside them; was: far off, by one turn for all blocks."""
    t, z = rng.normal(size=(3, 1, 5, 5)), rng.normal(size=(2, 5, 5))
    t[1, 0], form = np.triu(t[1, 0], -1), sl.schur(t[2, 0])[0]
    t[2, 0] = form + np.diag(1e-18 * (np.diag(form, -1) == 0), -1)
    with olympus.enable_x64(True):
        found = [np.broadcast_to(x, (3, 2, 5, 5)) for x in linalg.rsf2csf(t, z)]
    for i, j in np.ndindex(3, 2):
        for got, want in zip(found, sl.rsf2csf(t[i, 0], z[j]), strict=True):
            np.testing.assert_allclose(got[i, j], want, 1e-9, 1e-12)
    with pytest.raises(ValueError, match="rsf2csf: .* matrices of one size"):
        linalg.rsf2csf(np.eye(2), np.eye(3))


@pytest.mark.parametrize(("call", "match"), [
    (lambda: linalg.expm(np.ones((2, 3))), "square matrices"),
    (lambda: linalg.hadamard(6), "power of 2"),
    (lambda: linalg.companion(np.ones(1)), "at least 2 coefficients"),
    (lambda: linalg.convolution_matrix(1.0, 3), "convolution_matrix: .* of at least one axis"),
    (lambda: linalg.block_diag(np.ones((1, 1, 1))), "at most two axes"),
    (lambda: linalg.solve(np.eye(2), np.ones(3)), "right side of 2 rows"),
    (lambda: linalg.solve(np.eye(2), np.ones(2), assume_a="odd"), "assume_a 'odd'"),
    (lambda: linalg.leslie(np.ones(3), np.ones(3)), "one rate of survival less"),
    (lambda: linalg.leslie(np.ones(1), np.ones(0)), "two or more"),
    (lambda: linalg.qr(np.eye(2), mode="raw", pivoting=True), "mode 'raw' and pivoting"),
    (lambda: linalg.eigh_tridiagonal(np.ones(3), np.ones(3)), "n - 1 beside it"),
    (lambda: linalg.solve_sylvester(np.eye(2), np.eye(3), np.eye(2)), r"trailing axes \[2, 3\]"),
    (lambda: linalg.expm_frechet(np.eye(2), np.eye(3)), "equal shapes"),
    (lambda: linalg.polar(np.eye(2), "up"), "side 'up'"),
], ids=["expm", "hadamard", "companion", "convolution", "block_diag", "solve",
        "assume_a", "leslie", "leslie of one", "qr", "tridiagonal", "sylvester", "frechet",
        "polar"])
def test_refusals(call, match):
    with pytest.raises(ValueError, match=match):
        call()


# Bands -------------------------------------------------------------------------------------------

def band(full, lower, upper):
    """The diagonals of a matrix as solve_banded takes them, rubbish in the unread places."""
    n = len(full)
    out = np.full((lower + upper + 1, n), 7, full.dtype)
    for i, j in np.ndindex(n, n):
        if -lower <= j - i <= upper:
            out[upper + i - j, j] = full[i, j]
    return out


def banded(rng, n, lower, upper):
    x = rng.normal(size=(n, n)) + 1j * rng.normal(size=(n, n))
    return np.triu(np.tril(x, upper), -lower)


@pytest.mark.parametrize(("n", "lower", "upper"), [
    *[pytest.param(*sizes, marks=pytest.mark.slow) for sizes in ((7, 1, 2), (6, 2, 0), (3, 4, 3))],
    (5, 0, 1)])
def test_solve_banded_takes_pivots_and_reads_no_place_beyond_the_matrix(n, lower, upper, rng):
    a, b = banded(rng, n, lower, upper), rng.normal(size=(n, 2))
    if lower and upper:
        a[0, 0] = 0
    ab = band(a, lower, upper)
    with olympus.enable_x64(True):
        found = linalg.solve_banded((lower, upper), ab, b)
        np.testing.assert_allclose(found, np.linalg.solve(a, b), 1e-8)


@pytest.mark.slow
def test_solve_banded_has_batches_and_the_derivative_of_the_equation(rng):
    a, ta = banded(rng, 6, 2, 1), banded(rng, 6, 2, 1)
    b, tb = rng.normal(size=6) + 0j, rng.normal(size=6) + 0j
    with olympus.enable_x64(True):
        def solve(ab, b):
            return linalg.solve_banded((2, 1), ab, b)
        given, moved = (band(a, 2, 1), b), (band(ta, 2, 1), tb)
        x, tx = olympus.jvp(solve, given, moved)
        np.testing.assert_allclose(tx, np.linalg.solve(a, tb - ta @ np.asarray(x)), 1e-9)
        _, pull = olympus.vjp(solve, *given)
        found = sum((np.asarray(g) * t).sum() for g, t in zip(pull(tb), moved))
        np.testing.assert_allclose(found, (np.asarray(tx) * tb).sum(), 1e-9)
        stack = np.stack([given[0], 2 * given[0]])
        np.testing.assert_allclose(linalg.solve_banded((2, 1), stack, b[:, None])[..., 0],
                                   np.stack([x, x / 2]), 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("lower", [True, False])
def test_positive_definite_bands(lower, rng):
    g = banded(rng, 6, 2, 0)
    a = g @ g.conj().T
    ab = band(a, 2, 0) if lower else band(a, 0, 2)
    b = rng.normal(size=(6, 2))
    with olympus.enable_x64(True):
        factor = np.asarray(linalg.cholesky_banded(ab, lower=lower))
        expected = np.linalg.cholesky(a)
        read = band(np.ones((6, 6)), 2, 0) == 1 if lower else band(np.ones((6, 6)), 0, 2) == 1
        expected = band(expected, 2, 0) if lower else band(expected.conj().T, 0, 2)
        np.testing.assert_allclose(factor, np.where(read, expected, 0), 1e-9, 1e-12)
        x = np.linalg.solve(a, b)
        np.testing.assert_allclose(linalg.cho_solve_banded((factor, lower), b), x, 1e-8)
        np.testing.assert_allclose(linalg.solveh_banded(ab, b, lower=lower), x, 1e-8)
        assert np.isnan(linalg.solveh_banded(-ab, b, lower=lower)).all()


@pytest.mark.slow
def test_solveh_banded_has_the_derivative_of_the_equation(rng):
    g, tg = banded(rng, 5, 1, 0), banded(rng, 5, 1, 1)
    a, ta, b = g @ g.conj().T, tg + tg.conj().T, rng.normal(size=5) + 0j
    with olympus.enable_x64(True):
        x, tx = olympus.jvp(lambda ab: linalg.solveh_banded(ab, b), (band(a, 0, 1),),
                            (band(ta, 0, 1),))
        np.testing.assert_allclose(tx, -np.linalg.solve(a, ta @ np.asarray(x)), 1e-8)


def test_toeplitz_systems_are_scipys(rng):
    c, r, b = rng.normal(size=(3, 4)).astype("f4")
    c[0] = 4
    np.testing.assert_allclose(linalg.solve_toeplitz((c, r), b), sl.solve_toeplitz((c, r), b),
                               1e-4, 1e-5)
    np.testing.assert_allclose(linalg.solve_toeplitz(c, b), sl.solve_toeplitz(c, b), 1e-4, 1e-5)


@pytest.mark.slow
def test_large_toeplitz_systems_and_their_derivatives(rng):
    c, r, tc, tr = rng.normal(size=(4, 300)) / np.arange(1, 301)
    b = rng.normal(size=(300, 2))
    c[0] = 3.0
    with olympus.enable_x64(True):
        x, tx = olympus.jvp(lambda c, r: linalg.solve_toeplitz((c, r), b), (c, r), (tc, tr))
        np.testing.assert_allclose(x, sl.solve_toeplitz((c, r), b), 1e-9, 1e-12)
        a, t = sl.toeplitz(c, r), sl.toeplitz(tc, np.r_[tc[0], tr[1:]])
        np.testing.assert_allclose(tx, np.linalg.solve(a, -t @ np.asarray(x)), 1e-8, 1e-10)
        slope = olympus.grad(lambda b: (linalg.solve_toeplitz((c, r), b) ** 2).sum())(b)
        np.testing.assert_allclose(slope, np.linalg.solve(a.T, 2 * np.asarray(x)), 1e-8, 1e-10)
        c[0] = r[0] = 0.0       # the first leading submatrix is singular
        x = linalg.solve_toeplitz((c, r), b)
        np.testing.assert_allclose(sl.toeplitz(c, r) @ np.asarray(x), b, 1e-6, 1e-8)


# Ranges and null spaces --------------------------------------------------------------------------

@pytest.mark.slow
def test_pseudo_inverses_have_scipys_tolerances(rng):
    x = rng.normal(size=(4, 3))
    x = (x * [1, 1e-2, 1e-4]) @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    h = x.T @ x + 1j * np.triu(x[:3], 1) * 1e-3
    with olympus.enable_x64(True):
        for options in ({}, {"rtol": 1e-3}, {"atol": 1e-3}, {"atol": 1e-3, "rtol": 1e-1}):
            for ours, theirs, a in ((linalg.pinv, sl.pinv, x), (linalg.pinvh, sl.pinvh, h)):
                found, rank = ours(a, return_rank=True, **options)
                expected, count = theirs(a, return_rank=True, **options)
                assert rank == count
                np.testing.assert_allclose(found, expected, 1e-6, 1e-7 * np.abs(expected).max())
        assert linalg.pinv(0 * x, atol=1.0, return_rank=True)[1] == 0
        np.testing.assert_allclose(linalg.pinvh(h, lower=False), sl.pinvh(h, lower=False), 1e-4)


def test_least_squares_are_scipys(rng):
    a, b = rng.normal(size=(5, 3)).astype("f4"), rng.normal(size=(5, 2)).astype("f4")
    for right in (b, b[:, 0]):
        for found, expected in zip(linalg.lstsq(a, right), sl.lstsq(a, right)):
            np.testing.assert_allclose(found, expected, 1e-4, 1e-5)
            assert np.shape(found) == np.shape(expected)
    assert linalg.lstsq(np.ones((3, 2)), b[:3], 1e-3)[2] == 1


@pytest.mark.slow
def test_bases_span_what_scipys_span_and_move_with_it(rng):
    a, t = rng.normal(size=(5, 3)) @ rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    with olympus.enable_x64(True):
        for ours, theirs in ((linalg.null_space, sl.null_space), (linalg.orth, sl.orth)):
            found, expected = np.asarray(ours(a)), theirs(a)
            assert found.shape == expected.shape
            np.testing.assert_allclose(found @ found.T, expected @ expected.T, 1e-10, 1e-12)
        assert linalg.null_space(np.eye(3)).shape == (3, 0)
        assert linalg.orth(np.zeros((3, 2))).shape == (3, 0)
        wide = rng.normal(size=(2, 4))
        for fun, x in ((linalg.null_space, wide), (linalg.orth, wide.T)):
            def projection(x):
                q = fun(x)
                return q @ q.T
            step = 1e-6 * t[:x.shape[0], :x.shape[1]]
            _, moved = olympus.jvp(projection, (x,), (step * 1e6,))
            by_steps = (projection(x + step) - projection(x - step)) / 2e-6
            np.testing.assert_allclose(moved, by_steps, 1e-5, 1e-8)


@pytest.mark.slow
def test_angles_between_subspaces_keep_small_ones(rng):
    a, b = rng.normal(size=(6, 2)), rng.normal(size=(6, 3))
    tilted = a + 1e-9 * rng.normal(size=(6, 2))
    with olympus.enable_x64(True):
        for x, y in ((a, b), (b, a), (a, tilted), (np.eye(3)[:, :2], np.eye(3)[:, 1:])):
            np.testing.assert_allclose(linalg.subspace_angles(x, y), sl.subspace_angles(x, y), 1e-5,
                                       1e-14)


def test_khatri_rao_and_bandwidth_are_scipys(rng):
    a, b = rng.integers(9, size=(2, 3)), rng.integers(9, size=(4, 3))
    np.testing.assert_array_equal(linalg.khatri_rao(a, b), sl.khatri_rao(a, b))
    stack = np.stack([banded(rng, 5, k, l).real for k, l in ((0, 0), (2, 1), (0, 4), (4, 0))])
    assert np.transpose(linalg.bandwidth(stack)).tolist() == [list(sl.bandwidth(x)) for x in stack]
    assert [int(k) for k in linalg.bandwidth(np.zeros((2, 3)))] == [0, 0]


def test_leslie_of_an_infinite_rate_has_zeros_beside_it():
    found = linalg.leslie(np.array([1.0, 2.0]), np.array([np.inf]))
    np.testing.assert_array_equal(found, [[1, 2], [np.inf, 0]])
