"""Rows for olympus.numpy.linalg: systems, determinants, triangular factors, matrix products."""

from collections.abc import Callable
from typing import Any

import numpy as np

from olympus.numpy import linalg

from . import Op, reals

SQUARE = reals(3, 3) + 6 * np.eye(3)
STACK = reals(2, 3, 3) + 6 * np.eye(3)
FOUR = reals(4, 4) + 5 * np.eye(4)
SINGULAR = reals(4, 3) @ reals(3, 4, seed=1)
FULL = "fdcz"


def row(name: str, *args: Any, label: str = "", dtypes: str = FULL, tol: float = 2e-5,
        oracle: Callable[..., Any] | None = None, **params: Any) -> Op:
    """The row of a function that NumPy's linalg has by the same name."""
    ours, theirs = getattr(linalg, name), oracle or getattr(np.linalg, name)
    plain = {k: v for k, v in params.items() if oracle is None}
    return Op(f"linalg.{name}{label}", lambda *xs: as_tuple(theirs(*xs, **plain)),
              lambda *xs: as_tuple(ours(*xs, **params)), args, dtypes, True, tol)


def as_tuple(x: Any) -> Any:
    return tuple(x) if isinstance(x, tuple) else x


def upper(x: np.ndarray) -> np.ndarray:
    low = np.tril(x, -1)
    x = low + np.conj(np.swapaxes(low, -1, -2)) + x.real * np.eye(x.shape[-1], dtype=x.real.dtype)
    return np.conj(np.swapaxes(np.linalg.cholesky(x), -1, -2))


ALL = (
    row("solve", SQUARE, reals(3)),
    row("solve", SQUARE, reals(2, 3, 2), label="-one-matrix"),
    row("solve", STACK, reals(3, 1), label="-batch"),
    row("inv", STACK),
    row("tensorsolve", reals(2, 3, 6) + 6 * np.eye(6).reshape(2, 3, 6), reals(2, 3)),
    row("tensorsolve", (reals(6, 6) + 6 * np.eye(6)).reshape(2, 3, 6).swapaxes(1, 2), reals(2, 3),
        label="-axes", axes=(1,)),
    row("tensorinv", (reals(6, 6) + 6 * np.eye(6)).reshape(6, 2, 3), label="-ind", ind=1),
    row("det", SQUARE, tol=1e-4),
    row("det", reals(2, 2, 2), label="-batch"),
    row("det", FOUR, label="-four", tol=2e-4),
    row("det", SINGULAR, label="-singular", dtypes="dz", tol=1e-4),
    row("slogdet", STACK),
    row("slogdet", STACK, label="-qr", dtypes="fd", oracle=np.linalg.slogdet, method="qr"),
    row("cholesky", SQUARE, oracle=lambda x: np.linalg.cholesky(
        (x + np.conj(np.swapaxes(x, -1, -2))) / 2)),
    row("cholesky", STACK, label="-upper", oracle=upper, upper=True, symmetrize_input=False),
    row("qr", STACK),
    *(row("qr", reals(4, 2), label=f"-{mode}", mode=mode) for mode in ("r", "raw", "complete")),
    row("matrix_norm", STACK),
    row("matrix_norm", STACK, label="-one", ord=1, keepdims=True),
    row("matrix_norm", STACK, label="-two", ord=2),
    *(row("matrix_power", SQUARE / 5, label=f"-{n}", n=n, tol=2e-4) for n in (0, 3, -2)),
    Op("linalg.multi_dot", lambda *xs: np.linalg.multi_dot(xs),
       lambda *xs: linalg.multi_dot(xs, precision="highest"),
       (reals(3), reals(3, 4), reals(4, 2), reals(2, 5)), FULL, True, 1e-4),
)
