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


@pytest.mark.parametrize(("call", "match"), [
    (lambda: linalg.expm(np.ones((2, 3))), "square matrices"),
    (lambda: linalg.hadamard(6), "power of 2"),
    (lambda: linalg.companion(np.ones(1)), "at least 2 coefficients"),
    (lambda: linalg.block_diag(np.ones((1, 1, 1))), "at most two axes"),
    (lambda: linalg.solve(np.eye(2), np.ones(3)), "right side of 2 rows"),
    (lambda: linalg.solve(np.eye(2), np.ones(2), assume_a="odd"), "assume_a 'odd'"),
    (lambda: linalg.leslie(np.ones(3), np.ones(3)), "one rate of survival less"),
    (lambda: linalg.qr(np.eye(2), mode="raw", pivoting=True), "mode 'raw' and pivoting"),
    (lambda: linalg.eigh_tridiagonal(np.ones(3), np.ones(3)), "n - 1 beside it"),
    (lambda: linalg.solve_sylvester(np.eye(2), np.eye(3), np.eye(2)), r"trailing axes \[2, 3\]"),
    (lambda: linalg.expm_frechet(np.eye(2), np.eye(3)), "equal shapes"),
    (lambda: linalg.polar(np.eye(2), "up"), "side 'up'"),
], ids=["expm", "hadamard", "companion", "block_diag", "solve", "assume_a", "leslie", "qr",
        "tridiagonal", "sylvester", "frechet", "polar"])
def test_refusals(call, match):
    with pytest.raises(ValueError, match=match):
        call()
