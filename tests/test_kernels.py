"""Kernels of other platforms than the CPU, and the programs that stand in where there is none."""

import re

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import export
from olympus._src.lax.linalg.jacobi import emit_svd
from olympus._src.lax.linalg.qr import geqrf, product
from olympus._src.lax.linalg.solve import emit_elimination
from olympus.lax import linalg
from olympus.lax.linalg import svd_p, tridiagonal_solve_p

SQUARE = onp.ones((3, 3), "float32")
TALL, WIDE = onp.ones((40, 36), "float32"), onp.ones((3, 1100), "float32")
COLUMN = onp.ones((3, 1), "float32")


def by_gpu(library):
    """The custom calls of cuSOLVER or hipSOLVER: functions, operands, demands."""
    gesvdj, gesvd = [f"{library}_{kernel}_ffi" for kernel in ("gesvdj", "gesvd")]
    return [
        (linalg.lu, SQUARE, f"{library}_getrf_ffi", {}),
        (geqrf, SQUARE, f"{library}_geqrf_ffi", {}),
        (linalg.qr, SQUARE, f"{library}_orgqr_ffi", {}),
        (linalg.eigh, SQUARE, f"{library}_syevd_ffi", {"lower": "true", "algorithm": "0 : ui8"}),
        (lambda x: linalg.eigh(x, lower=False, implementation=linalg.EighImplementation.JACOBI),
         SQUARE, f"{library}_syevd_ffi", {"lower": "false", "algorithm": "2 : ui8"}),
        (linalg.tridiagonal, SQUARE, f"{library}_sytrd_ffi", {"lower": "true"}),
        (linalg.svd, SQUARE, gesvdj, {"compute_uv": "true", "full_matrices": "true"}),
        (lambda x: linalg.svd(x, full_matrices=False), SQUARE, gesvdj,
         {"compute_uv": "true", "full_matrices": "true"}),
        (lambda x: linalg.svd(x, full_matrices=False), TALL, gesvdj,
         {"compute_uv": "true", "full_matrices": "false"}),
        (lambda x: linalg.svd(x, full_matrices=False), WIDE, gesvd,
         {"compute_uv": "true", "full_matrices": "false", "transposed": "true"}),
        (lambda x: linalg.svd(x, algorithm=linalg.SvdAlgorithm.QR), COLUMN, gesvd,
         {"compute_uv": "true", "full_matrices": "true", "transposed": "false"}),
    ]


CALLS = {
    "cuda": [*by_gpu("cusolver"), (lambda x: linalg.tridiagonal_solve(x[0], x[0], x[0], x), SQUARE,
                                   "cusparse_gtsv2_ffi", {})],
    "rocm": by_gpu("hipsolver"),
    "tpu": [(linalg.lu, SQUARE, "LuDecomposition", {}), (linalg.qr, SQUARE, "Qr", {}),
            (linalg.qr, SQUARE, "ProductOfElementaryHouseholderReflectors", {}),
            (lambda x: linalg.eigh(x, symmetrize_input=False), SQUARE, "Eigh", '"1,1,100,1e-6"'),
            (linalg.svd, SQUARE, "Qr", {})],
}


@pytest.mark.parametrize("platform", CALLS)
def test_kernels_are_called_as_their_libraries_want_it(platform):
    for function, x, target, parameters in CALLS[platform]:
        text = export.export(olympus.jit(function), platforms=[platform])(x).mlir_module()
        calls = [line for line in text.splitlines() if f"custom_call @{target}(" in line]
        assert calls, (target, text)
        found = re.search(r'backend_config = (\{[^}]*\}|"[^"]*")', calls[0])
        given = found[1] if found else "{}"
        if given[0] == "{":
            given = dict(p.split(" = ") for p in given[1:-1].split(", ") if p)
        assert given == parameters, target


def test_wide_matrices_are_read_as_their_transposes():
    f = olympus.jit(lambda x: linalg.svd(x, compute_uv=False))
    text = export.export(f, platforms=["cuda"])(WIDE).mlir_module()
    assert "operand_layouts = [dense<[1, 0]> : tensor<2xindex>]" in text


@pytest.mark.slow
def test_every_platform_takes_what_is_made_of_factorisations():
    def f(x):
        return (onp.linalg.det(x), onp.linalg.pinv(x), onp.linalg.solve(x, x), onp.linalg.qr(x),
                onp.linalg.eigh(x), linalg.qdwh(x), linalg.tridiagonal_solve(x[0], x[1], x[2], x),
                olympus.scipy.linalg.expm(x))

    x = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], "f4")
    exported = export.export(olympus.jit(f), platforms=["tpu", "cuda", "cpu", "rocm"])(x)
    for got, want in zip(olympus.tree.leaves(exported.call(x)), olympus.tree.leaves(f(x)),
                         strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


# Programs ----------------------------------------------------------------------------------------

def emitted(function, prim, rule, *xs):
    """The results of a function that lowers a primitive otherwise."""
    exported = export.export(olympus.jit(function), _override_lowering_rules=[(prim, rule)])(*xs)
    assert "lapack_sgesdd" not in (text := exported.mlir_module()) and "gtsv" not in text
    return [np.asarray(x) for x in olympus.tree.leaves(exported.call(*xs))]


def rotations(b, x, *, algorithm, **params):
    return emit_svd(b, x, b.avals_in[0], **params)


def check_svd(x, full_matrices):
    u, s, vh = emitted(lambda x: linalg.svd(x, full_matrices=full_matrices), svd_p, rotations, x)
    k, eps = s.shape[-1], 50 * np.finfo(x.dtype).eps
    size = np.abs(x).max() or 1
    np.testing.assert_allclose((u[..., :k] * s[..., None, :] / size) @ vh[..., :k, :], x / size,
                               atol=eps)
    for basis in (np.conj(np.swapaxes(u, -1, -2)) @ u, vh @ np.conj(np.swapaxes(vh, -1, -2))):
        np.testing.assert_allclose(basis, np.broadcast_to(np.eye(basis.shape[-1]), basis.shape),
                                   atol=eps)
    want = np.linalg.svd(x.astype(np.result_type(x, "f8")), compute_uv=False)
    np.testing.assert_allclose(s / size, want / size, atol=eps)
    assert (np.diff(s) <= 0).all() and (s >= 0).all()


def normal(*shape, dtype):
    rng = np.random.default_rng(sum(shape))
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_singular_values_by_rotations(dtype):
    check_svd(normal(2, 5, 4, dtype=dtype), True)
    check_svd(normal(3, 6, dtype=dtype), False)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1), (3, 3), (3, 5), (30, 21)], ids=str)
def test_singular_values_by_rotations_of_any_shape(shape):
    check_svd(normal(*shape, dtype="float32"), True)
    check_svd(normal(*shape, dtype="complex64"), False)


@pytest.mark.slow
def test_singular_values_by_rotations_of_dependent_columns_and_of_any_size():
    check_svd(normal(6, 2, dtype="float32") @ normal(2, 5, dtype="float32"), True)
    check_svd(np.zeros((4, 3), "f4"), True)
    check_svd(normal(3, 3, dtype="float32") * np.float32(1e30), True)
    check_svd(normal(3, 3, dtype="float32") * np.float32(1e-30), True)


@pytest.mark.slow
def test_singular_values_by_rotations_of_nan():
    x = np.ones((2, 3, 2), "f4")
    x[0, 1, 1] = np.nan
    for out in emitted(linalg.svd, svd_p, rotations, x):
        assert np.isnan(out[0]).all() and np.isfinite(out[1]).all()


def elimination(b, *xs, perturb_singular):
    return emit_elimination(b, list(xs))[0]


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 6])
def test_tridiagonal_systems_by_elimination(size):
    dl, d, du = (normal(2, size, dtype="complex64") * k for k in (1, 0.1, 2j))
    d[1, 0] = 0 if size > 1 else 1      # a row is exchanged
    b = normal(2, size, 3, dtype="complex64")
    full = [np.diag(d[i]) + np.diag(dl[i, 1:], -1) + np.diag(du[i, :-1], 1) for i in range(2)]
    dl[:, 0], du[:, -1] = np.nan, np.nan    # are not read
    (x,) = emitted(linalg.tridiagonal_solve, tridiagonal_solve_p, elimination, dl, d, du, b)
    np.testing.assert_allclose(x, np.linalg.solve(np.stack(full), b), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_singular_tridiagonal_systems_by_elimination():
    zero, d = np.zeros((2, 3), "f4"), np.ones((2, 3), "f4")
    d[0, 1] = 0
    (x,) = emitted(linalg.tridiagonal_solve, tridiagonal_solve_p, elimination, zero, d, zero,
                   np.ones((2, 3, 1), "f4"))
    assert np.isnan(x[0]).all() and (x[1] == 1).all()


@pytest.mark.parametrize("left", [True, False])
def test_products_with_reflectors_by_their_matrix(left):
    a, taus = geqrf(normal(5, 3, dtype="complex64"))
    c = normal(5, 2, dtype="complex64")
    c = c if left else c.T
    for transpose in (True, False):
        np.testing.assert_allclose(
            product(a, taus, c, left=left, transpose=transpose),
            linalg.ormqr(a, taus, c, left=left, transpose=transpose), rtol=1e-4, atol=1e-5)
