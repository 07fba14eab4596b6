"""Rows for olympus.scipy.linalg, with SciPy as oracle."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as sl

from olympus import numpy as onp
from olympus.scipy import linalg

from . import Op, reals

SQUARE = reals(3, 3) + 4 * np.eye(3)
SMALL = reals(3, 3) / 4
STACK = reals(2, 3, 3) + 5 * np.eye(3)
SPREAD = np.diag([1.0, 2.5, 4.0]) + reals(3, 3) / 9
FULL = "fc"


def row(name: str, *args: Any, label: str = "", dtypes: str = FULL, tol: float = 2e-5,
        oracle: Callable[..., Any] | None = None, grad: bool = True, **params: Any) -> Op:
    """The row of a function that SciPy has by the same name, in the dtypes of its arguments."""
    ours, theirs = getattr(linalg, name), oracle or getattr(sl, name)
    kept = {} if oracle else params
    return Op(f"scipy.linalg.{name}{label}", lambda *xs: narrowed(theirs(*xs, **kept), xs),
              lambda *xs: ours(*xs, **params), args, dtypes, grad, tol)


def narrowed(out: Any, xs: Any) -> Any:
    """SciPy's results in no more precision than the arguments'."""
    wide = any(np.asarray(x).dtype in ("f8", "c16") for x in xs)
    outs = out if isinstance(out, tuple) else (out,)
    found = tuple(x if wide or not isinstance(x, np.ndarray) else
                  x.astype({"f8": "f4", "c16": "c8", "i8": "i4"}.get(x.dtype.str[1:], x.dtype))
                  for x in map(np.asarray, outs))
    return found if isinstance(out, tuple) else found[0]


def each(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function of one matrix for a stack of them."""
    return lambda xs: np.stack([fun(x) for x in xs])


def complexed(fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: np.asarray(fun(*xs)).astype(
        "c8" if xs[0].dtype in ("f4", "c8") else "c16")


def hermitian(x: np.ndarray) -> np.ndarray:
    return np.tril(x) + np.conj(np.swapaxes(np.tril(x, -1), -1, -2)) - 1j * np.diag(
        np.diag(x).imag) if np.iscomplexobj(x) else np.tril(x) + np.tril(x, -1).T


def eigenvalues(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return sl.eigh(hermitian(a), hermitian(b), eigvals_only=True)


MATRICES = (
    row("toeplitz", reals(3), reals(4)),
    row("toeplitz", reals(2, 3), label="-batch", oracle=each(sl.toeplitz)),
    row("hankel", reals(3), reals(2)),
    row("circulant", reals(4)),
    row("companion", reals(4)),
    *(row("fiedler_companion", reals(n), label=f"-{n}") for n in (2, 6, 7)),
    row("fiedler", reals(2, 3), dtypes="f", oracle=each(sl.fiedler)),
    row("leslie", reals(3), reals(2)),
    row("block_diag", reals(2), reals(2, 3), reals(1)),
    *(row("convolution_matrix", reals(m), label=f"-{mode}-{m}-{n}", n=n, mode=mode)
      for mode, m, n in (("full", 3, 2), ("same", 4, 3), ("same", 3, 4), ("valid", 3, 5))),
)
FACTORS = (
    row("cholesky", SQUARE, oracle=lambda x: sl.cholesky(hermitian(x), lower=True), lower=True),
    row("lu", reals(4, 3)),
    row("lu", reals(3, 4), label="-permuted", permute_l=True),
    row("lu", SQUARE, label="-indices", p_indices=True, dtypes="f"),
    row("lu_factor", SQUARE),
    row("qr", reals(4, 3), mode="economic"),
    row("qr", SQUARE, label="-pivoting", pivoting=True),
    row("qr", reals(4, 3), label="-r", mode="r"),
    row("qr_multiply", reals(4, 3), reals(2, 4)),
    row("qr_multiply", reals(4, 3), reals(3), label="-left", mode="left", conjugate=True),
    row("svd", reals(4, 3), compute_uv=False),
    row("polar", SQUARE, tol=1e-4),
    row("polar", reals(2, 3), label="-svd-left", oracle=lambda x: sl.polar(x, "left"), tol=1e-4,
        side="left", method="svd"),
    row("hessenberg", SQUARE, calc_q=True, tol=1e-4),
    row("eigvalsh", SQUARE, SQUARE + 3 * np.eye(3), label="-pair", oracle=eigenvalues, tol=1e-4),
    row("eigh_tridiagonal", reals(4), reals(3), dtypes="f", tol=1e-4,
        oracle=lambda d, e: sl.eigh_tridiagonal(d, e, True, "i", (1, 2)),
        eigvals_only=True, select="i", select_range=(1, 2)),
)
SYSTEMS = (
    row("solve", SQUARE, reals(3)),
    row("solve", STACK, reals(3, 2), label="-batch", oracle=np.linalg.solve),
    *(row("solve", SQUARE, reals(3), label=f"-{kind}", tol=1e-4, assume_a=kind, lower=True)
      for kind in ("sym", "her", "pos", "diagonal", "upper triangular")),
    row("solve_triangular", SQUARE, reals(3), label="-conjugated", trans=2),
    row("inv", STACK, oracle=np.linalg.inv),
    row("det", STACK, oracle=np.linalg.det, tol=1e-4),
    Op("scipy.linalg.lu_solve", lambda a, b: np.linalg.solve(a.conj().T, b),
       lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, 2), (SQUARE, reals(3, 2)), FULL),
    Op("scipy.linalg.cho_solve", lambda a, b: np.linalg.solve(hermitian(a), b),
       lambda a, b: linalg.cho_solve(linalg.cho_factor(a, True), b), (SQUARE, reals(3)), FULL,
       True, 1e-4),
    row("solve_sylvester", SQUARE, reals(2, 2) + 4 * np.eye(2), reals(3, 2), tol=1e-4),
    row("solve_sylvester", SQUARE, reals(2, 2) + 4 * np.eye(2), reals(3, 2), label="-eigen",
        dtypes="fc", tol=1e-4, oracle=sl.solve_sylvester, method="eigen"),
    row("solve_continuous_lyapunov", SQUARE, reals(3, 3), tol=1e-4),
    row("solve_discrete_lyapunov", SMALL, reals(3, 3), tol=1e-4),
    row("solve_discrete_lyapunov", SMALL, reals(3, 3), label="-bilinear", method="bilinear",
        dtypes="f", tol=1e-4),
)
FUNCTIONS = (
    row("expm", SQUARE, tol=1e-4),
    row("expm", np.stack([SMALL / 30, SMALL, SQUARE]), label="-batch", dtypes="f", tol=1e-4),
    row("expm", SQUARE, label="-upper", tol=1e-4, dtypes="f", upper_triangular=True,
        oracle=lambda x: sl.expm(np.triu(x))),
    row("expm_frechet", SMALL, reals(3, 3), dtypes="f"),
    row("sqrtm", SPREAD, oracle=complexed(sl.sqrtm), tol=1e-4),
    row("logm", SPREAD, oracle=complexed(lambda x: sl.logm(x.astype("c16"))), tol=1e-4),
    row("fractional_matrix_power", SPREAD, oracle=complexed(
        lambda x: sl.fractional_matrix_power(x, 0.3)), t=0.3, dtypes="f", tol=1e-4),
    row("signm", SPREAD - 3 * np.eye(3), dtypes="f", tol=1e-4),
    Op("scipy.linalg.funm", complexed(sl.sinm), lambda x: linalg.funm(x, onp.sin), (SPREAD,), FULL,
       True, 1e-4),
    *(row(name, SMALL, dtypes=FULL if name == "cosm" else "fd")
      for name in ("cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm")),
)
ALL = MATRICES + FACTORS + SYSTEMS + FUNCTIONS
