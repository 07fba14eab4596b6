"""Rows for olympus.numpy reductions, statistics, products, sorts and searches."""

import numpy as np

from olympus import numpy as onp

from . import Op, both, reals

M = reals(3, 4)
V = reals(7)
HOLES = np.where(reals(3, 4) > 2, np.nan, reals(3, 4)).astype(np.float32)
SORTED = np.sort(V)
SQUARE = reals(4, 4)


def over(names: str, *args, axes=(None, 1), **settings) -> tuple[Op, ...]:
    return tuple(both(name, *args, axis=axis, **settings)
                 for name in names.split() for axis in axes)


ALL = (
    *over("sum prod mean max min", M, dtypes="fi", tol=1e-4),
    *over("var std", M, tol=1e-4),
    *over("ptp median", M),
    *over("all any count_nonzero", M > 1, grad=False),
    *over("argmax argmin", M, dtypes="fi", grad=False),
    *over("cumsum cumprod", M, tol=1e-4),
    *over("nansum nanmean nanmax nanmin nanvar nanstd nanprod", HOLES, grad=False, tol=1e-4),
    *over("nanargmax nanargmin", HOLES, grad=False),
    *over("nancumsum nancumprod", HOLES, grad=False, tol=1e-4),
    both("sum", M, axis=(0, 1), keepdims=True),
    both("mean", M, axis=0, keepdims=True),
    both("var", M, axis=0, ddof=1),
    both("average", M, axis=1, weights=np.array([1.0, 2.0, 0.5, 0.25], np.float32)),
    both("quantile", M, np.float32(0.3), axis=1),
    both("percentile", M, np.float32(30.0), axis=0),
    both("nanmedian", HOLES, axis=1, grad=False),
    both("nanquantile", HOLES, np.float32(0.25), axis=1, grad=False),
    both("sort", M, axis=0, dtypes="fi"),
    Op("sort-descending", lambda x: np.sort(x, 0)[::-1],
       lambda x: onp.sort(x, 0, descending=True), (M,)),
    both("argsort", M, axis=1, grad=False),
    both("diff", M, axis=1),
    both("diff", np.zeros((2, 0)), axis=1), both("ediff1d", np.zeros((0, 3))),
    both("ediff1d", V), both("sort_complex", M, grad=False),
    both("gradient", V), both("gradient", V, edge_order=2), both("gradient", reals(3, 4), axis=1),
    Op("gradient-spaced", lambda x, h: np.gradient(x, h, edge_order=2),
       lambda x, h: onp.gradient(x, h, edge_order=2), (V, np.cumsum(reals(7, low=0.4)))),
    both("trapezoid", V),
    both("searchsorted", SORTED.astype("f4"), V.astype("f4") + 0.1, grad=False),
    both("digitize", V.astype("f4"), SORTED.astype("f4"), grad=False),
    both("dot", M, reals(4, 2, seed=1), dtypes="fic"),
    both("matmul", reals(2, 3, 4), reals(4, 2, seed=1)),
    both("matmul", reals(4), reals(2, 4, 3, seed=1)),
    both("inner", M, reals(2, 4, seed=1)),
    both("outer", V, reals(3, seed=1)),
    both("vdot", M, reals(3, 4, seed=1)),
    both("tensordot", reals(2, 3, 4), reals(4, 3, 2, seed=1), axes=((1, 2), (1, 0)), tol=1e-4),
    both("kron", reals(2, 2), reals(2, 3, seed=1)),
    both("cross", reals(4, 3), reals(4, 3, seed=1)),
    both("trace", SQUARE),
    both("polyval", reals(4), reals(3, seed=1), tol=1e-4),
    both("vander", reals(3), grad=False),
    Op("einsum", lambda x, y: np.einsum("ij,kj->ik", x, y),
       lambda x, y: onp.einsum("ij,kj->ik", x, y), (M, reals(2, 4, seed=1))),
    Op("einsum-diagonal", lambda x: np.einsum("ii->i", x), lambda x: onp.einsum("ii->i", x),
       (SQUARE,)),
    Op("norm", np.linalg.norm, onp.linalg.norm, (M,)),
)
