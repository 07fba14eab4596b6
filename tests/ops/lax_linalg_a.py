"""Rows for the factorisations and solvers of lax.linalg that make no eigenvalue problem.

Names start with `linalg-`: `olympus.lax.linalg` is one name of `olympus.lax`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from olympus import lax, numpy as onp

from . import Op, reals

linalg = lax.linalg
SQUARE = reals(3, 3) + 6 * np.eye(3)
STACK = reals(2, 3, 3) + 6 * np.eye(3)
TALL, WIDE = reals(4, 2) + 4 * np.eye(4, 2), reals(2, 4) + 4 * np.eye(2, 4)
TALLS = reals(2, 4, 3, seed=2) + 4 * np.eye(4, 3)
B = reals(3, 2, seed=1)
TAUS = np.array([1.3, 0.6])
FULL = "fdcz"


def turned(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def each(fun: Callable[..., Any], count: int) -> Callable[..., Any]:
    """`fun` of matrices, which gives `count` arrays, on stacks of matrices."""
    def batched(x: np.ndarray) -> Any:
        outs = [fun(m) for m in x.reshape(-1, *x.shape[-2:])]
        return tuple(np.stack([o[i] for o in outs]).reshape(*x.shape[:-2], *outs[0][i].shape)
                     for i in range(count))
    return batched


def from_lower(x: np.ndarray) -> np.ndarray:
    below = np.tril(x, -1)
    return below + turned(below) + x.real * np.eye(x.shape[-1], dtype=x.real.dtype)


def solved(*, left_side: bool = False, lower: bool = False, transpose_a: bool = False,
           conjugate_a: bool = False, unit_diagonal: bool = False) -> Callable[..., Any]:
    def oracle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a = np.tril(a) if lower else np.triu(a)
        if unit_diagonal:
            one = np.eye(a.shape[-1], dtype=a.dtype)
            a = a * (1 - one) + one
        a = np.swapaxes(a, -1, -2) if transpose_a else a
        a = np.conj(a) if conjugate_a else a
        vector = b.ndim < a.ndim
        b = b[..., None] if vector else b if left_side else np.swapaxes(b, -1, -2)
        x = np.linalg.solve(a if left_side else np.swapaxes(a, -1, -2), b)
        return x[..., 0] if vector else x if left_side else np.swapaxes(x, -1, -2)
    return oracle


def triangular(name: str, a: np.ndarray, b: np.ndarray, **flags: bool) -> Op:
    return Op(f"lax.linalg-triangular_solve-{name}", solved(**flags),
              lambda a, b: linalg.triangular_solve(a, b, **flags), (a, b), FULL)


def factored(x: np.ndarray) -> Any:
    order, lower, upper = scipy.linalg.lu(x, p_indices=True)
    k = min(x.shape)
    out = np.zeros_like(x)
    out[:, :k] += np.tril(lower, -1)
    out[:k] += upper
    order = np.argsort(order).astype("i4")
    left, pivots = [*range(len(x))], []
    for i in range(k):
        pivots.append(left.index(order[i]))
        left[i], left[pivots[-1]] = left[pivots[-1]], left[i]
    return out, np.array(pivots, "i4"), order


def exchanged(pivots: np.ndarray, size: int) -> np.ndarray:
    out = np.broadcast_to(np.arange(size, dtype="i4"), (*pivots.shape[:-1], size)).copy()
    for order, row in zip(out.reshape(-1, size), pivots.reshape(-1, pivots.shape[-1]), strict=True):
        for i, p in enumerate(row):
            order[[i, p]] = order[[p, i]]
    return out


def product(a: np.ndarray, taus: np.ndarray) -> np.ndarray:
    """H1 ... Hk, the whole matrix."""
    q = np.eye(len(a), dtype=a.dtype)
    for i, tau in enumerate(taus):
        v = np.concatenate([np.zeros(i), [1], a[i + 1:, i]]).astype(a.dtype)
        q = q @ (np.eye(len(a), dtype=a.dtype) - tau * np.outer(v, np.conj(v)))
    return q


def pivoted(mode: str) -> Callable[..., Any]:
    def oracle(x: np.ndarray) -> Any:
        q, r, order = scipy.linalg.qr(x, pivoting=True, mode=mode)
        return q, r, order.astype("i4")
    return oracle


def tridiagonal(dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray) -> np.ndarray:
    n = d.shape[-1]
    a = np.zeros((*d.shape, n), d.dtype)
    i = np.arange(n)
    a[..., i, i] = d
    a[..., i[1:], i[:-1]] = dl[..., 1:]
    a[..., i[:-1], i[1:]] = du[..., :-1]
    return np.linalg.solve(a, b)


ALL = (
    triangular("right", SQUARE, B.T),
    triangular("left", SQUARE, B, left_side=True),
    triangular("left-lower", SQUARE, B, left_side=True, lower=True),
    triangular("transpose", SQUARE, B.T, transpose_a=True, lower=True),
    triangular("conjugate", SQUARE, B, left_side=True, conjugate_a=True),
    triangular("adjoint-unit", SQUARE, B, left_side=True, lower=True, transpose_a=True,
               conjugate_a=True, unit_diagonal=True),
    triangular("batch", STACK, reals(2, 3, 2, seed=1), left_side=True),
    triangular("vector", STACK, reals(2, 3, seed=1), left_side=True, lower=True),
    Op("lax.linalg-cholesky", lambda x: np.linalg.cholesky((x + turned(x)) / 2), linalg.cholesky,
       (SQUARE,), FULL),
    Op("lax.linalg-cholesky-batch", lambda x: np.linalg.cholesky((x + turned(x)) / 2),
       linalg.cholesky, (STACK,), FULL),
    Op("lax.linalg-cholesky-lower", lambda x: np.linalg.cholesky(from_lower(x)),
       lambda x: linalg.cholesky(x, symmetrize_input=False), (SQUARE,), FULL),
    Op("lax.linalg-cholesky_update", lambda r, w: turned(np.linalg.cholesky(
        turned(np.triu(r)) @ np.triu(r) + w[..., None] * w[..., None, :])),
       lambda r, w: linalg.cholesky_update(onp.triu(r), w), (SQUARE, reals(3)), "fd"),
    Op("lax.linalg-cholesky_update-batch", lambda r, w: turned(np.linalg.cholesky(
        turned(np.triu(r)) @ np.triu(r) + w[..., None] * w[..., None, :])),
       lambda r, w: linalg.cholesky_update(onp.triu(r), w), (STACK, reals(2, 3)), "fd"),
    *(Op(f"lax.linalg-lu-{name}", each(factored, 3), linalg.lu, (x,), FULL)
      for name, x in (("square", SQUARE), ("tall", TALL), ("wide", WIDE), ("batch", STACK),
                      ("exchanges", reals(4, 4, seed=5)))),
    Op("lax.linalg-lu_pivots_to_permutation", lambda p: exchanged(p, 5),
       lambda p: linalg.lu_pivots_to_permutation(p, 5),
       (np.array([[2, 2, 4], [1, 3, 2]], np.int32),), "f", False),
    *(Op(f"lax.linalg-qr-{name}", lambda x: np.linalg.qr(x, "reduced"),
         lambda x: linalg.qr(x, full_matrices=False), (x,), FULL)
      for name, x in (("square", SQUARE), ("tall", TALL), ("wide", WIDE))),
    *(Op(f"lax.linalg-qr-full-{name}", lambda x: np.linalg.qr(x, "complete"),
         linalg.qr, (x,), FULL)
      for name, x in (("square", STACK), ("tall", TALL), ("batch", TALLS))),
    *(Op(f"lax.linalg-qr-pivoting-{name}", pivoted(mode),
         lambda x, full=mode == "full": linalg.qr(x, pivoting=True, full_matrices=full,
                                                  use_magma=False), (x,), FULL)
      for name, mode, x in (("tall", "economic", reals(4, 3, seed=1)),
                            ("full", "full", reals(4, 3, seed=1)),
                            ("wide", "economic", reals(3, 4, seed=2)))),
    Op("lax.linalg-householder_product", lambda a, taus: product(a, taus)[:, :a.shape[1]],
       linalg.householder_product, (reals(4, 3), TAUS), FULL),
    Op("lax.linalg-householder_product-batch", lambda a, taus: np.stack(
        [product(x, t)[:, :a.shape[-1]] for x, t in zip(a, taus, strict=True)]),
       linalg.householder_product, (reals(2, 3, 2), reals(2, 2)), FULL),
    *(Op(f"lax.linalg-ormqr-{name}", oracle, lambda a, taus, c, f=flags: linalg.ormqr(
        a, taus, c, **f), (reals(4, 3), TAUS, c), FULL)
      for name, oracle, c, flags in (
          ("left", lambda a, taus, c: product(a, taus) @ c, reals(4, 2, seed=1), {}),
          ("right", lambda a, taus, c: c @ product(a, taus), reals(2, 4, seed=1), {"left": False}),
          ("left-transpose", lambda a, taus, c: turned(product(a, taus)) @ c, reals(4, 2, seed=1),
           {"transpose": True}),
          ("right-transpose", lambda a, taus, c: c @ turned(product(a, taus)), reals(2, 4, seed=1),
           {"left": False, "transpose": True}))),
    *(Op(f"lax.linalg-tridiagonal_solve-{name}", tridiagonal,
         lambda dl, d, du, b, f=flags: linalg.tridiagonal_solve(dl, d, du, b, **f), args, FULL)
      for name, flags, args in (
          ("one", {}, (reals(4), reals(4, low=5, high=7), reals(4, seed=1), reals(4, 2))),
          ("batch", {}, (reals(2, 3), reals(2, 3, low=5, high=7), reals(2, 3, seed=1),
                         reals(2, 3, 2))),
          ("perturbed", {"perturb_singular": True},
           (reals(4), reals(4, low=5, high=7), reals(4, seed=1), reals(4, 2))))),
)
