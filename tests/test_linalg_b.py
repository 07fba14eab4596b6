"""Decompositions beyond their rows: gauges, edge cases, degenerate spectra, refusals.

Signs and phases of vectors are a platform's choice: what is compared is reconstructed, or does not
depend on them.
"""

import numpy as np
import pytest
import scipy.linalg

import olympus
from olympus import grad, hessian, jit, jvp, lax, numpy as onp, vmap

linalg = lax.linalg
STEP = 1e-6


@pytest.fixture(autouse=True)
def x64():
    with olympus.enable_x64(True):
        yield


def normal(*shape, kind="d", seed=0):
    rng = np.random.default_rng(seed + 10 * sum(shape))
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if kind == "z" else x


def adjoint(x):
    return np.asarray(x).conj().swapaxes(-1, -2)


def slopes(fun, x, t):
    ahead, behind = (olympus.tree.leaves(fun(x + h * t)) for h in (STEP, -STEP))
    return [(np.asarray(a) - np.asarray(b)) / (2 * STEP)
            for a, b in zip(ahead, behind, strict=True)]


def close(actual, expected, tol=1e-6):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tol, atol=tol)


KINDS = pytest.mark.parametrize("kind", ["d", "z"])
OPERATIONS = {
    "eig": lambda x: linalg.eig(x, enable_eigvec_derivs=True), "eigh": linalg.eigh,
    "svd": linalg.svd, "schur": linalg.schur,
    "hessenberg": linalg.hessenberg, "tridiagonal": linalg.tridiagonal, "qdwh": linalg.qdwh,
    "svd-qr": lambda x: linalg.svd(x, algorithm=linalg.SvdAlgorithm.QR),
    "eigvals": onp.linalg.eigvals, "pinv": onp.linalg.pinv, "svdvals": onp.linalg.svdvals,
    "cond": onp.linalg.cond, "norm": lambda x: onp.linalg.norm(x, "nuc"),
    "lstsq": lambda x: onp.linalg.lstsq(x, x)[0],
}
each_operation = pytest.mark.parametrize("name", OPERATIONS)


@each_operation
@KINDS
def test_nan_gives_nan(name, kind):
    x = np.full((3, 3), np.nan, "c16" if kind == "z" else "f8")
    first = olympus.tree.leaves(OPERATIONS[name](x))[0]
    assert np.isnan(np.asarray(first)).any()


@pytest.mark.parametrize("name", ["eig", "eigh", "svd", "schur", "svdvals"])
def test_a_nan_spoils_its_own_matrix_only(name):
    x = normal(3, 4, 4)
    x[1, 2, 1] = np.nan
    for out, good in zip(olympus.tree.leaves(OPERATIONS[name](x)),
                         olympus.tree.leaves(OPERATIONS[name](normal(3, 4, 4))), strict=True):
        assert np.isnan(np.asarray(out)[1]).all()
        close(np.asarray(out)[::2], np.asarray(good)[::2], 1e-12)


@pytest.mark.parametrize("name", ["eig", "eigh", "svd", "schur", "hessenberg", "tridiagonal"])
@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3), (1, 1)])
def test_empty_and_tiny(name, shape):
    x = np.ones(shape)
    outs, tangents = jvp(OPERATIONS[name], (x,), (x,))
    batch = shape[:-2]
    for out, t in zip(outs, tangents, strict=True):
        assert out.shape[:len(batch)] == batch and t.shape == out.shape
        assert np.isfinite(np.asarray(out)).all() and np.isfinite(np.asarray(t)).all()


def test_empty_rectangles():
    u, s, vh = linalg.svd(np.zeros((2, 0, 3)))
    assert (u.shape, s.shape) == ((2, 0, 0), (2, 0))
    close(vh, np.broadcast_to(np.eye(3), (2, 3, 3)))
    u, s, vh = linalg.svd(np.zeros((3, 0)), full_matrices=False)
    assert (u.shape, s.shape, vh.shape) == ((3, 0), (0,), (0, 0))
    assert onp.linalg.pinv(np.zeros((2, 0, 3))).shape == (2, 3, 0)
    assert onp.linalg.matrix_rank(np.zeros((2, 0, 3))).shape == (2,)
    assert [v.shape for v in linalg.qdwh(np.zeros((3, 0)))] == [(3, 0), (0, 0), (), ()]
    x, residuals, rank, s = onp.linalg.lstsq(np.zeros((0, 3)), np.zeros((0, 2)))
    assert (x.shape, residuals.shape, int(rank), s.shape) == ((3, 2), (2,), 0, (0,))
    assert float(onp.linalg.norm(np.zeros((0, 3)), 2)) == 0


# Invariants --------------------------------------------------------------------------------------

@KINDS
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_tangents_of_svd_reconstruct(kind, full, shape):
    x, t = normal(2, *shape, kind=kind), normal(2, *shape, kind=kind, seed=1)
    (u, s, vh), (tu, ts, tvh) = jvp(lambda x: linalg.svd(x, full_matrices=full), (x,), (t,))
    u, s, vh, tu, ts, tvh = map(np.asarray, (u, s, vh, tu, ts, tvh))
    k = min(shape)
    whole = np.zeros((2, u.shape[-1], vh.shape[-2]))
    t_whole = whole.copy()
    whole[:, range(k), range(k)], t_whole[:, range(k), range(k)] = s, ts
    close(u @ whole @ vh, x, 1e-12)
    close(tu @ whole @ vh + u @ t_whole @ vh + u @ whole @ tvh, t, 1e-11)
    for q, tq in ((u, tu), (adjoint(vh), adjoint(tvh))):
        turn = adjoint(q) @ tq
        close(turn + adjoint(turn), 0 * turn, 1e-11)


@KINDS
@pytest.mark.parametrize("n", [2, 5, 6])
def test_tangents_of_schur_reconstruct(kind, n):
    x, t = normal(2, n, n, kind=kind), normal(2, n, n, kind=kind, seed=1)
    (s, z), (ts, tz) = jvp(linalg.schur, (x,), (t,))
    s, z, ts, tz = map(np.asarray, (s, z, ts, tz))
    close(z @ s @ adjoint(z), x, 1e-12)
    close(tz @ s @ adjoint(z) + z @ ts @ adjoint(z) + z @ s @ adjoint(tz), t, 1e-9)
    turn = adjoint(z) @ tz
    close(turn + adjoint(turn), 0 * turn, 1e-9)
    blocks = np.where(np.tril(s, -1) != 0, 1, 0)
    assert not np.any(np.tril(ts, -1) * (1 - blocks))
    for m in range(2):
        for i in np.nonzero(blocks[m])[1]:
            close(ts[m, i, i], ts[m, i + 1, i + 1], 1e-9)


@KINDS
def test_eigenvectors_move_as_lapack_normalises_them(kind):
    x, t = normal(2, 4, 4, kind=kind), normal(2, 4, 4, kind=kind, seed=1)

    def fun(x):
        return linalg.eig(x, enable_eigvec_derivs=True)

    for tangent, slope in zip(jvp(fun, (x,), (t,))[1], slopes(fun, x, t), strict=True):
        close(tangent, slope)


@KINDS
def test_eigh_keeps_phases(kind):
    x, t = normal(4, 4, kind=kind), normal(4, 4, kind=kind, seed=1)
    (v, _), (tv, _) = jvp(linalg.eigh, (x,), (t,))
    close(np.diag(adjoint(v) @ np.asarray(tv)), np.zeros(4), 1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_schur_in_order(n):
    x = normal(3, n, n)
    t, z = map(np.asarray, jit(lambda x: linalg.schur(
        x, sort_eig_vals=True, select_callable=lambda re, im: re > 0))(x))
    close(z @ t @ adjoint(z), x, 1e-12)
    for m in range(3):
        count = scipy.linalg.schur(x[m], sort="rhp")[2]
        assert (np.diag(t[m])[:count] > 0).all() and (np.diag(t[m])[count:] <= 0).all()
        below = np.diag(t[m], -1)
        assert not (below[1:] * below[:-1]).any()
        for i in np.nonzero(below)[0]:
            assert t[m, i, i] == t[m, i + 1, i + 1] and below[i] * t[m, i, i + 1] < 0


def test_complex_schur_in_order_and_its_derivative():
    x, t = normal(5, 5, kind="z"), normal(5, 5, kind="z", seed=1)

    def fun(x):
        return linalg.schur(x, sort_eig_vals=True, select_callable=lambda w: w.imag > 0)

    (s, z), (ts, tz) = jvp(fun, (x,), (t,))
    s, z, ts, tz = map(np.asarray, (s, z, ts, tz))
    assert (np.diff((np.diag(s).imag > 0).astype(int)) <= 0).all()
    close(z @ s @ adjoint(z), x, 1e-12)
    close(tz @ s @ adjoint(z) + z @ ts @ adjoint(z) + z @ s @ adjoint(tz), t, 1e-9)
    close(fun(x)[0], linalg.schur(x, compute_schur_vectors=False, sort_eig_vals=True,
                                  select_callable=lambda w: w.imag > 0)[0], 1e-14)


@KINDS
def test_hessenberg_reflectors(kind):
    x = normal(5, 5, kind=kind)
    packed, taus = linalg.hessenberg(x)
    q = np.eye(5, dtype=x.dtype)
    q[1:, 1:] = linalg.householder_product(np.asarray(packed)[1:, :-1], taus)
    close(q @ np.triu(packed, -1) @ adjoint(q), x, 1e-12)
    packed, d, e, taus = linalg.tridiagonal(x + adjoint(x))
    q[1:, 1:] = linalg.householder_product(np.asarray(packed)[1:, :-1], taus)
    t = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    close(q @ t @ adjoint(q), x + adjoint(x), 1e-12)


# Degenerate spectra ------------------------------------------------------------------------------

def test_values_have_finite_derivatives_where_they_agree():
    one = np.eye(3)
    close(grad(lambda x: linalg.eigh(x)[1].sum())(one), one)
    close(grad(lambda x: onp.linalg.eigvals(x).real.sum())(one), one)
    close(grad(lambda x: onp.linalg.svdvals(x).sum())(one), one)
    close(grad(lambda x: onp.linalg.norm(x, "nuc"))(one), one)
    close(grad(lambda x: onp.linalg.pinv(x).sum())(one), -np.ones((3, 3)))
    close(grad(lambda x: onp.linalg.lstsq(x, np.ones(3))[0].sum())(one), -np.ones((3, 3)))
    close(grad(lambda x: linalg.qdwh(x)[0].sum())(one), np.zeros((3, 3)))


def test_vectors_have_none_there():
    t = normal(3, 3)
    assert not np.isfinite(np.asarray(jvp(linalg.eigh, (np.eye(3),), (t,))[1][0])).any()
    assert not np.isfinite(np.asarray(jvp(linalg.svd, (np.eye(3),), (t,))[1][0])).any()


# Second derivatives ------------------------------------------------------------------------------

SCALARS = {
    "eigh": lambda x: (linalg.eigh(x)[1] ** 3).sum(),
    "eigh-projector": lambda x: ((linalg.eigh(x)[0][:, :1] @ linalg.eigh(x)[0][:, :1].T) ** 2
                                 * np.arange(16.).reshape(4, 4)).sum(),
    "svd": lambda x: (linalg.svd(x, compute_uv=False) ** 3).sum(),
    "svd-polar": lambda x: (onp.sin(linalg.svd(x)[0] @ linalg.svd(x)[2])
                            * np.arange(16.).reshape(4, 4)).sum(),
    "eig": lambda x: abs(onp.linalg.eigvals(x) ** 2).sum(),
    "eig-vectors": lambda x: (abs(linalg.eig(x, enable_eigvec_derivs=True)[2]) ** 3
                              * np.arange(16.).reshape(4, 4)).sum(),
    "schur": lambda x: abs(onp.diagonal(linalg.schur(x)[0], 1) ** 2).sum(),
    "hessenberg": lambda x: onp.sin(linalg.hessenberg(x)[0]).sum(),
    "tridiagonal": lambda x: onp.sin(linalg.tridiagonal(x)[2]).sum(),
    "symmetric_product": lambda x: onp.sin(linalg.symmetric_product(x, x, beta=2.0)).sum(),
    "qdwh": lambda x: (onp.sin(linalg.qdwh(x)[1]) * np.arange(16.).reshape(4, 4)).sum(),
    "pinv": lambda x: onp.sin(onp.linalg.pinv(x[:, :3])).sum(),
    "lstsq": lambda x: onp.sin(onp.linalg.lstsq(x[:, :3], x[:, 3])[0]).sum(),
    "cond": lambda x: onp.log(onp.linalg.cond(x)),
    "norm": lambda x: onp.linalg.norm(x, 2) ** 2,
}


@pytest.mark.parametrize("name", SCALARS)
def test_gradient_of_the_gradient(name):
    slope = jit(grad(SCALARS[name]))
    x, t = normal(4, 4, seed=4), normal(4, 4, seed=1)
    second = jit(lambda x, t: jvp(slope, (x,), (t,))[1])(x, t)
    close(second, slopes(slope, x, t)[0], 2e-5)


def test_hessian():
    x = normal(3, 3)
    whole = np.asarray(hessian(lambda x: onp.log(linalg.eigh(x @ x.T)[1]).sum())(x))
    inverse = np.linalg.inv(x)
    close(whole, -2 * np.einsum("jk,li->ijkl", inverse, inverse), 1e-8)


# vmap --------------------------------------------------------------------------------------------

def test_vmap_of_polar_and_of_partly_mapped_operands():
    x = normal(3, 4, 4)
    close(vmap(lambda x: linalg.qdwh(x)[0])(x), np.stack([scipy.linalg.polar(m)[0] for m in x]))
    c = normal(4, 4)
    close(vmap(linalg.symmetric_product, (0, None))(x, c), x @ adjoint(x))
    close(vmap(lambda a, c: linalg.symmetric_product(a, c, beta=1.0), (None, 2), 2)(c, x.T),
          (c @ c.T)[..., None] + x.T)
    close(vmap(onp.linalg.lstsq, (0, None))(x, c)[0], np.linalg.solve(x, c[None]))
    nested = vmap(vmap(linalg.eigh, 2, 1), 0)(normal(2, 4, 4, 3))
    assert [v.shape for v in nested] == [(2, 4, 3, 4), (2, 4, 3)]


# qdwh --------------------------------------------------------------------------------------------

@KINDS
def test_polar_decomposition_of_a_corner(kind):
    x = normal(5, 4, kind=kind)
    u, h, _, converged = jit(lambda x, m, n: linalg.qdwh(x, dynamic_shape=(m, n)))(x, 4, 2)
    expected = scipy.linalg.polar(x[:4, :2])
    assert converged
    for found, exact in zip((u, h), expected, strict=True):
        m, n = exact.shape
        close(np.asarray(found)[:m, :n], exact, 1e-12)
        assert not np.asarray(found)[m:].any() and not np.asarray(found)[:, n:].any()
    t = normal(5, 4, kind=kind, seed=1)

    def fun(x):
        return linalg.qdwh(x, dynamic_shape=(4, 2))[:2]

    for tangent, slope in zip(jvp(fun, (x,), (t,))[1], slopes(fun, x, t), strict=True):
        close(tangent, slope)


def test_polar_options():
    x = normal(4, 4)
    symmetric = x + x.T
    u, h, steps, converged = linalg.qdwh(symmetric, is_hermitian=True)
    close(u, scipy.linalg.polar(symmetric)[0], 1e-11)
    close(u, u.T, 1e-14)
    assert converged and 1 <= steps <= 7
    assert [int(linalg.qdwh(x, max_iterations=n)[2]) for n in (0, 1, 2)] == [0, 1, 2]
    assert not linalg.qdwh(x, max_iterations=2)[3]
    assert linalg.qdwh(np.eye(2) * 3.0, eps=1e-3)[2] <= steps
    u, h, _, _ = linalg.qdwh(np.zeros((3, 2)))
    assert not np.asarray(u).any() and not np.asarray(h).any()


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_polar_decomposition_of_bad_matrices(scale):
    q = np.linalg.qr(normal(6, 6))[0]
    x = scale * q @ np.diag(10.0 ** -np.arange(0, 12, 2)) @ np.linalg.qr(normal(6, 6, seed=1))[0]
    u, h, _, converged = linalg.qdwh(x)
    assert converged
    close(np.asarray(u).T @ np.asarray(u), np.eye(6), 1e-13)
    close(np.asarray(u) @ np.asarray(h) / scale, x / scale, 1e-13)


# numpy.linalg ------------------------------------------------------------------------------------

def test_results_have_names():
    x = normal(3, 3)
    assert onp.linalg.eig(x)._fields == ("eigenvalues", "eigenvectors")
    assert onp.linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert onp.linalg.svd(x)._fields == ("U", "S", "Vh")
    u, s, vh = onp.linalg.svd(x, full_matrices=False, hermitian=True, subset_by_index=(0, 2))
    assert (u.shape, s.shape, vh.shape) == ((3, 2), (2,), (2, 3))
    close(onp.linalg.svd(x, compute_uv=False, hermitian=True),
          np.linalg.svd((x + x.T) / 2, compute_uv=False))
    assert onp.linalg.eigh(np.eye(2, dtype=int), "U").eigenvalues.dtype == "f8"


def test_least_squares_as_numpy():
    for a in (normal(5, 3), normal(3, 5), np.ones((4, 3))):
        for b in (normal(len(a)), normal(len(a), 2)):
            for rcond in (None, 0.3, -1):
                found = onp.linalg.lstsq(a, b, rcond, numpy_resid=True)
                for x, e in zip(found, np.linalg.lstsq(a, b, rcond), strict=True):
                    assert x.shape == np.shape(e)
                    close(x, e, 1e-10)
            assert onp.linalg.lstsq(a, b)[1].shape == b.shape[1:] or (1,)


def test_tolerances():
    x = np.diag([3.0, 1.0, 0.1])
    assert int(onp.linalg.matrix_rank(x, rtol=0.2)) == 2 == int(onp.linalg.matrix_rank(x, tol=0.2))
    stack = np.stack([x, 2 * x])
    assert onp.linalg.matrix_rank(stack, tol=np.array([0.15, 1e9])).tolist() == [2, 0]
    assert [int(onp.linalg.matrix_rank(v)) for v in (np.zeros(3), np.ones(3), 2.0)] == [0, 1, 1]
    close(onp.linalg.pinv(stack, rtol=np.array([0.2, 0.5])),
          np.linalg.pinv(stack, rcond=np.array([0.2, 0.5])))
    close(onp.linalg.pinv(x, rcond=0.2), np.linalg.pinv(x, rcond=0.2))


def test_condition_of_singular_matrices():
    for p in (None, 2, 1, -1, np.inf, "fro", "nuc"):
        assert float(onp.linalg.cond(np.diag([1.0, 0.0]), p)) == np.inf
        assert float(onp.linalg.cond(np.zeros((2, 2)), p)) == np.inf
        assert np.isnan(float(onp.linalg.cond(np.full((2, 2), np.nan), p)))


def test_single_precision_stays_single():
    with olympus.enable_x64(False):
        x = normal(3, 3).astype("f4")
        assert {v.dtype.name for v in linalg.eigh(x)} == {"float32"}
        assert {v.dtype.name for v in linalg.svd(x + 1j * x)} == {"float32", "complex64"}
        assert {v.dtype.name for v in linalg.eig(x)} == {"complex64"}
        assert linalg.qdwh(x)[2].dtype == "int32"
        assert onp.linalg.pinv(np.ones((2, 2), "i4")).dtype == "float32"
        assert onp.linalg.matrix_rank(x).dtype == "int32"


# Refusals ----------------------------------------------------------------------------------------

M, R = np.eye(3), np.ones((3, 2))
NO_MODE = linalg.SvdAlgorithm.JACOBI
REFUSALS = {
    "eig-square": (ValueError, "eig: .*square", lambda: linalg.eig(R)),
    "eig-dtype": (TypeError, "eig: .*astype", lambda: linalg.eig(M.astype(int))),
    "eig-rank": (TypeError, "eig: .*axes", lambda: linalg.eig(M[0])),
    "eig-platform": (ValueError, "LAPACK", lambda: linalg.eig(
        M, implementation=linalg.EigImplementation.CUSOLVER)),
    "eig-derivative": (NotImplementedError, "enable_eigvec_derivs",
                       lambda: jvp(linalg.eig, (M,), (M,))),
    "cond-empty": (ValueError, "must not be empty", lambda: onp.linalg.cond(M[:0])),
    "eigh-square": (ValueError, "eigh: .*square", lambda: linalg.eigh(R)),
    "eigh-platform": (NotImplementedError, "QDWH", lambda: linalg.eigh(
        M, implementation=linalg.EighImplementation.QDWH)),
    "eigh-subset": (ValueError, "subset_by_index", lambda: linalg.eigh(
        M, subset_by_index=(2, 2))),
    "svd-subset": (ValueError, "subset_by_index", lambda: linalg.svd(
        M, full_matrices=False, subset_by_index=(0, 4))),
    "svd-full-subset": (ValueError, "full_matrices", lambda: linalg.svd(
        M, subset_by_index=(0, 1))),
    "svd-algorithm": (NotImplementedError, "JACOBI", lambda: linalg.svd(M, algorithm=NO_MODE)),
    "schur-square": (ValueError, "schur: .*square", lambda: linalg.schur(R)),
    "schur-sort": (ValueError, "select_callable", lambda: linalg.schur(M, sort_eig_vals=True)),
    "schur-select": (TypeError, "truth value", lambda: linalg.schur(
        M, sort_eig_vals=True, select_callable=lambda re, im: re.sum() > 0)),
    "hessenberg-square": (ValueError, "hessenberg: .*square", lambda: linalg.hessenberg(R)),
    "tridiagonal-square": (ValueError, "tridiagonal: .*square", lambda: linalg.tridiagonal(R)),
    "product-square": (ValueError, "c_matrix", lambda: linalg.symmetric_product(R, R)),
    "product-rows": (ValueError, "rows", lambda: linalg.symmetric_product(R, np.eye(2))),
    "product-complex": (TypeError, "astype", lambda: linalg.symmetric_product(1j * M, 1j * M)),
    "qdwh-rank": (TypeError, "vmap", lambda: linalg.qdwh(np.ones((2, 3, 3)))),
    "qdwh-wide": (ValueError, "rows", lambda: linalg.qdwh(R.T)),
    "qdwh-hermitian": (ValueError, "rows", lambda: linalg.qdwh(R, is_hermitian=True)),
    "eigh-uplo": (ValueError, "UPLO 'X'", lambda: onp.linalg.eigh(M, "X")),
    "vector": (ValueError, "svdvals: .*matrix", lambda: onp.linalg.svdvals(M[0])),
    "pinv-both": (ValueError, "rcond", lambda: onp.linalg.pinv(M, 0.1, rcond=0.1)),
    "rank-both": (ValueError, "tol", lambda: onp.linalg.matrix_rank(M, 0.1, tol=0.1)),
    "lstsq-rank": (TypeError, "vmap", lambda: onp.linalg.lstsq(np.ones((2, 3, 3)), M)),
    "lstsq-rows": (ValueError, "rows", lambda: onp.linalg.lstsq(M, np.ones(2))),
    "cond-square": (ValueError, "square", lambda: onp.linalg.cond(R, 1)),
    "cond-order": (ValueError, "order 'x'", lambda: onp.linalg.cond(M, "x")),
    "norm-order": (ValueError, "order 3", lambda: onp.linalg.norm(M, 3)),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal(name):
    error, match, call = REFUSALS[name]
    with pytest.raises(error, match=match):
        call()


def test_use_magma_is_deprecated():
    with pytest.warns(DeprecationWarning, match="implementation"):
        close(linalg.eig(M, use_magma=False)[0], np.ones(3))
    with pytest.warns(DeprecationWarning), pytest.raises(ValueError, match="MAGMA"):
        linalg.eig(M, use_magma=True)
