"""Rows for eigenvalue and singular value decompositions, and for what is made of them.

Vectors are compared after `fixed`: of each, the first component made real and positive, which no
phase that a platform chooses survives. Names start with `linalg-`: see `lax_linalg_a`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg

from olympus import lax, numpy as onp

from . import Op, reals
from .lax_linalg_a import turned

linalg = lax.linalg
SQUARE = reals(4, 4, seed=1)
STACK = reals(2, 3, 3, seed=3)
UNTIED = np.sinh(SQUARE)     # no two columns or rows have sums that are nearly equal
TALL, WIDE = reals(4, 3, seed=1), reals(3, 5, seed=2)
TALLS = reals(2, 4, 2, seed=2)
FULL = "fdcz"
TOL = 1e-4


def phases(v: Any) -> Any:
    """Of the columns of v: the phase of the first component."""
    first = v[..., :1, :]
    return first / abs(first)


def fixed(v: Any) -> Any:
    return v * phases(v).conj()


def projector(v: Any) -> Any:
    return v @ turned_(v)


def turned_(x: Any) -> Any:
    """The adjoint of a NumPy or an Olympus array."""
    return x.conj().swapaxes(-1, -2)


# Hermitian ---------------------------------------------------------------------------------------

def hermitian(part: str = "both") -> Callable[[np.ndarray], np.ndarray]:
    def of(x: np.ndarray) -> np.ndarray:
        if part == "both":
            return (x + turned(x)) / 2
        x = np.tril(x) if part == "lower" else turned(np.triu(x))
        below = np.tril(x, -1)
        return below + turned(below) + x.real * np.eye(x.shape[-1], dtype=x.real.dtype)
    return of


def eigh_row(name: str, x: np.ndarray, part: str = "both", start: int = 0, stop: int | None = None,
             **params: Any) -> Op:
    def oracle(x: np.ndarray) -> Any:
        w, v = np.linalg.eigh(hermitian(part)(x))
        return fixed(v)[..., start:stop], w[..., start:stop]

    def fun(x: Any) -> Any:
        v, w = linalg.eigh(x, **params)
        return fixed(v), w

    return Op(f"lax.linalg-eigh-{name}", oracle, fun, (x,), FULL, tol=TOL)


# Singular ----------------------------------------------------------------------------------------

def singular(parts: Any) -> Any:
    """Without phases: u and vh of one phase each, and the projectors on what is beyond them."""
    u, s, vh = parts
    k = s.shape[-1]
    phase = phases(u[..., :k])
    return [u[..., :k] * phase.conj(), s, phase.swapaxes(-1, -2) * vh[..., :k, :],
            projector(u[..., k:]), projector(turned_(vh[..., k:, :]))]


def svd_row(name: str, x: np.ndarray, full: bool = True, **params: Any) -> Op:
    return Op(f"lax.linalg-svd-{name}",
              lambda x: singular(np.linalg.svd(x, full_matrices=full)),
              lambda x: singular(linalg.svd(x, full_matrices=full, **params)), (x,), FULL,
              tol=TOL)


def some_singular(x: np.ndarray) -> Any:
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return singular((u[..., 1:3], s[..., 1:3], vh[..., 1:3, :]))


# General -----------------------------------------------------------------------------------------

def ordered(w: Any, *vectors: Any) -> Any:
    """Eigenvalues by a fixed functional, and vectors without phases."""
    xp = np if isinstance(w, np.ndarray) else onp
    order = xp.argsort(w.real + 0.37 * w.imag, axis=-1)
    picked = [xp.take_along_axis(v, order[..., None, :], -1) for v in vectors]
    return [xp.take_along_axis(w, order, -1), *map(fixed, picked)]


def eig_oracle(x: np.ndarray, left: bool = True, right: bool = True) -> Any:
    parts = [scipy.linalg.eig(m, left=True, right=True) for m in x.reshape(-1, *x.shape[-2:])]
    w, vl, vr = (np.stack(p).reshape(*x.shape[:-2], *p[0].shape)
                 for p in zip(*parts, strict=True))
    return ordered(w, *[vl] * left, *[vr] * right)


def eig_row(name: str, x: np.ndarray, left: bool = True, right: bool = True, **params: Any) -> Op:
    return Op(f"lax.linalg-eig-{name}", partial(eig_oracle, left=left, right=right),
              lambda x: ordered(*linalg.eig(
                  x, compute_left_eigenvectors=left, compute_right_eigenvectors=right,
                  enable_eigvec_derivs=True, **params)), (x,), FULL, tol=TOL)


def schur_fixed(t: Any, z: Any) -> Any:
    d = phases(z)
    return d.swapaxes(-1, -2) * t * d.conj(), z * d.conj()


def schur_oracle(x: np.ndarray) -> Any:
    parts = [scipy.linalg.schur(m) for m in x.reshape(-1, *x.shape[-2:])]
    return schur_fixed(*(np.stack(p).reshape(x.shape) for p in zip(*parts, strict=True)))


def lapack(name: str, x: np.ndarray, **params: Any) -> Any:
    return scipy.linalg.lapack.get_lapack_funcs(name, (x,))(x, **params)[:-1]


def tridiagonal(x: np.ndarray, lower: bool) -> Any:
    c, d, e, taus = lapack("hetrd" if np.iscomplexobj(x) else "sytrd", x, lower=lower)
    other = np.triu(x, 1) if lower else np.tril(x, -1)
    return (np.tril(c) if lower else np.triu(c)) + other, d, e, taus


# Other -------------------------------------------------------------------------------------------

def syrk(a: np.ndarray, c: np.ndarray) -> np.ndarray:
    return a.dtype.type(1.5) * a @ np.swapaxes(a, -1, -2) + a.dtype.type(-0.5) * c


def mirrored(x: np.ndarray) -> np.ndarray:
    return np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2)


def lstsq(a: np.ndarray, b: np.ndarray) -> Any:
    x, _, _, s = np.linalg.lstsq(a, b)
    rest = abs(b - a @ x) ** 2
    return x, np.atleast_1d(rest.sum(0)), s


def of_pairs(name: str, x: np.ndarray, dtypes: str = FULL, grad: bool = True, label: str = "",
             **params: Any) -> Op:
    """A function that `numpy.linalg` has under the same name."""
    return Op(f"numpy.linalg-{name}{label}", partial(getattr(np.linalg, name), **params),
              partial(getattr(onp.linalg, name), **params), (x,), dtypes, grad, TOL)


def ranked(**params: Any) -> Callable[[np.ndarray], Any]:
    return lambda x: np.asarray(np.linalg.matrix_rank(x, **params))


LOW = (TALL[:, :2] @ np.array([[1.0, 2.0, 0.5], [0.0, 1.0, -1.0]]))

ALL = (
    eigh_row("both", SQUARE),
    eigh_row("batch", STACK),
    eigh_row("lower", SQUARE, "lower", symmetrize_input=False),
    eigh_row("upper", SQUARE, "upper", symmetrize_input=False, lower=False),
    eigh_row("subset", SQUARE, "both", 1, 3, subset_by_index=(1, 3)),
    eigh_row("qr", SQUARE, implementation=linalg.EighImplementation.QR, sort_eigenvalues=False),
    svd_row("square", SQUARE),
    svd_row("tall", TALL, False),
    svd_row("wide", WIDE, False),
    svd_row("tall-full", TALL),
    svd_row("wide-full", WIDE),
    svd_row("batch-full", TALLS),
    svd_row("qr", TALL, algorithm=linalg.SvdAlgorithm.QR),
    Op("lax.linalg-svd-subset", some_singular, lambda x: singular(linalg.svd(
        x, full_matrices=False, subset_by_index=(1, 3))), (TALL,), FULL, tol=TOL),
    Op("lax.linalg-svd-values", lambda x: np.linalg.svd(x, compute_uv=False),
       lambda x: linalg.svd(x, compute_uv=False), (TALLS,), FULL, tol=TOL),
    eig_row("both", SQUARE),
    eig_row("batch", STACK),
    eig_row("left", SQUARE, right=False, implementation=linalg.EigImplementation.LAPACK),
    eig_row("right", SQUARE, left=False),
    eig_row("values", SQUARE, False, False),
    Op("lax.linalg-schur", schur_oracle, lambda x: schur_fixed(*linalg.schur(x)), (SQUARE,), FULL,
       tol=TOL),
    Op("lax.linalg-schur-batch", schur_oracle, lambda x: schur_fixed(*linalg.schur(x)), (STACK,),
       FULL, tol=TOL),
    Op("lax.linalg-schur-values", lambda x: abs(np.diagonal(scipy.linalg.schur(x)[0])),
       lambda x: abs(onp.diagonal(linalg.schur(x, compute_schur_vectors=False)[0])), (SQUARE,),
       FULL, tol=TOL),
    Op("lax.linalg-hessenberg", partial(lapack, "gehrd"), linalg.hessenberg, (SQUARE,), FULL,
       tol=TOL),
    Op("lax.linalg-tridiagonal-lower", partial(tridiagonal, lower=True), linalg.tridiagonal,
       (SQUARE,), FULL, tol=TOL),
    Op("lax.linalg-tridiagonal-upper", partial(tridiagonal, lower=False),
       partial(linalg.tridiagonal, lower=False), (SQUARE,), FULL, tol=TOL),
    Op("lax.linalg-symmetric_product", syrk, partial(linalg.symmetric_product, alpha=1.5,
                                                      beta=-0.5),
       (reals(2, 3, 2), STACK), "fdhe"),
    Op("lax.linalg-symmetric_product-mirrored", lambda a, c: mirrored(syrk(a, c)),
       partial(linalg.symmetric_product, alpha=1.5, beta=-0.5, symmetrize_output=True),
       (reals(4, 2), SQUARE), "fd"),
    Op("lax.linalg-symmetric_product-alone", lambda a, c: a @ a.T, linalg.symmetric_product,
       (reals(4, 2), SQUARE), "fd"),
    Op("lax.linalg-qdwh", scipy.linalg.polar, lambda x: linalg.qdwh(x)[:2], (SQUARE,), FULL,
       tol=TOL),
    Op("lax.linalg-qdwh-tall", scipy.linalg.polar, lambda x: linalg.qdwh(x)[:2], (TALL,), FULL,
       tol=TOL),
    Op("numpy.linalg-eigvalsh", lambda x: np.linalg.eigvalsh(hermitian()(x)),
       onp.linalg.eigvalsh, (STACK,), FULL, tol=TOL),
    Op("numpy.linalg-eigvalsh-upper", lambda x: np.linalg.eigvalsh(x, "U"),
       partial(onp.linalg.eigvalsh, UPLO="U", symmetrize_input=False), (SQUARE,), FULL, tol=TOL),
    Op("numpy.linalg-eigh", lambda x: np.linalg.eigh(hermitian()(x))[0],
       lambda x: onp.linalg.eigh(x).eigenvalues, (STACK,), FULL, tol=TOL),
    Op("numpy.linalg-eigvals", lambda x: ordered(np.linalg.eigvals(x.astype(
        np.result_type(x, np.complex64)))), lambda x: ordered(onp.linalg.eigvals(x)), (STACK,),
       FULL, tol=TOL),
    of_pairs("svdvals", TALLS),
    Op("numpy.linalg-svd-hermitian", lambda x: singular(np.linalg.svd(hermitian()(x))),
       lambda x: singular(onp.linalg.svd(x, hermitian=True)), (SQUARE,), FULL, tol=TOL),
    of_pairs("pinv", TALLS),
    of_pairs("pinv", WIDE, label="-wide"),
    of_pairs("pinv", LOW, "fdcz", False, "-rank", rcond=1e-3),
    Op("numpy.linalg-pinv-hermitian", lambda x: np.linalg.pinv(hermitian()(x)),
       partial(onp.linalg.pinv, hermitian=True), (SQUARE,), FULL, tol=TOL),
    Op("numpy.linalg-lstsq", lstsq, lambda a, b: [onp.linalg.lstsq(a, b)[i] for i in (0, 1, 3)],
       (TALL, reals(4, 2)), FULL, tol=TOL),
    Op("numpy.linalg-lstsq-vector", lstsq,
       lambda a, b: [onp.linalg.lstsq(a, b)[i] for i in (0, 1, 3)], (TALL, reals(4)), FULL,
       tol=TOL),
    Op("numpy.linalg-matrix_rank", ranked(), onp.linalg.matrix_rank, (TALLS,), FULL, False),
    Op("numpy.linalg-matrix_rank-hermitian", lambda x: ranked()(hermitian()(x)),
       partial(onp.linalg.matrix_rank, hermitian=True), (SQUARE,), FULL, False),
    of_pairs("cond", STACK),
    *(of_pairs("cond", UNTIED, label=f"-{p}", p=p) for p in (-2, 1, -1, np.inf, "fro", "nuc")),
    *(of_pairs("norm", reals(2, 3, 2, 4), label=f"-{p}", ord=p, axis=(3, 1), keepdims=p == 2)
      for p in (2, -2, "nuc")),
)
