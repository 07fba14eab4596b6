"""Rows for olympus.numpy functions that no other table has: sets, places, splits, integers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from olympus import numpy as onp

from . import Op, both, reals

V, W, M = reals(6), reals(6, seed=1), reals(3, 4)
CUBE = reals(2, 4, 4, seed=2)
I, J = np.array([12, 18, 0, 7], np.int32), np.array([8, 27, 5, 0], np.int32)
SMALL = np.array([1, 0, 3, 2], np.int32)
TIES = np.array([3, 1, 3, 0, 1, 3], np.int32)
OTHERS = np.array([1, 5, 3, 1], np.int32)
MASK = np.array([True, False, True, True, False, True])


def plain(name: str, *args: Any, dtypes: str = "f", **params: Any) -> Op:
    """A row without a derivative."""
    return both(name, *args, dtypes=dtypes, grad=False, **params)


def sized(name: str, size: int, *args: Any, **params: Any) -> Op:
    """The row of a function whose result's size depends on values, and is told."""
    return Op(name, partial(getattr(np, name), **params),
              partial(getattr(onp, name), **params, size=size), args, grad=False)


def written(name: str, *args: Any, dtypes: str = "f", **params: Any) -> Op:
    """The row of a function that writes into its first operand, and returns it here."""
    def oracle(a: Any, *rest: Any) -> Any:
        a = a.copy()
        getattr(np, name)(a, *rest, **params)
        return a

    return Op(name, oracle, partial(getattr(onp, name), inplace=False, **params), args, dtypes,
              grad=False)


def parts(name: str, *args: Any) -> Op:
    return both(name, *args, indices_or_sections=2, dtypes="fi")


def of_o(name: str, fun: Callable[..., Any], *args: Any, **options: Any) -> Op:
    return Op(name, partial(fun, np), partial(fun, onp), args, **options)


ALL = (
    plain("allclose", V, V, dtypes="fd"), plain("array_equal", V, V, dtypes="fi"),
    plain("array_equiv", M, M, dtypes="fi"), plain("isin", TIES, OTHERS),
    sized("argwhere", 4, MASK), sized("flatnonzero", 4, MASK), sized("nonzero", 4, MASK),
    sized("extract", 4, MASK, W.astype("f4")),
    of_o("compress", lambda o, c, x: o.compress(c, x) if o is np else o.compress(c, x, size=4),
         MASK, V, dtypes="fi"),
    sized("intersect1d", 2, TIES, OTHERS), sized("union1d", 4, TIES, OTHERS),
    sized("setdiff1d", 1, TIES, OTHERS), sized("setxor1d", 2, TIES, OTHERS),
    sized("unique_all", 3, TIES), sized("unique_counts", 3, TIES),
    sized("unique_inverse", 3, TIES), of_o("unique_values", lambda o, x: (
        o.sort(o.unique_values(x)) if o is np else o.unique_values(x, size=3)), TIES, grad=False),
    of_o("bincount", lambda o, x: np.bincount(x, minlength=5) if o is np
         else o.bincount(x, length=5), TIES, grad=False),
    plain("bitwise_count", I), plain("gcd", I, J), plain("lcm", I, J),
    plain("left_shift", I, SMALL), plain("right_shift", I, SMALL),
    both("ldexp", V[:4], SMALL, dtypes="fd"), both("fmax", V, W, dtypes="fi", each=True),
    both("fmin", V, W, dtypes="fi", each=True),
    both("cumulative_sum", V, dtypes="fc"), both("cumulative_prod", V, dtypes="fd"),
    both("cumulative_sum", M, axis=1, include_initial=True, dtypes="fd"),
    both("matrix_transpose", CUBE, dtypes="fic"), both("matvec", M, V[:4], dtypes="fc"),
    both("vecdot", M, W[:4], dtypes="fc"), both("nanpercentile", M, q=30, axis=1, dtypes="fd"),
    parts("dsplit", CUBE), parts("hsplit", M), parts("vsplit", CUBE),
    of_o("partition", lambda o, x: o.partition(x, 2)[2], V, dtypes="fdi"),
    of_o("argpartition", lambda o, x: o.argpartition(x, 2)[2], V, dtypes="fdi",
         grad=False),
    Op("top_k", lambda x: -np.sort(-x)[:, :2], lambda x: onp.top_k(x, 2)[0], (M,), dtypes="fdic"),
    Op("top_k-smallest", lambda x: np.sort(x, 0)[:2],
       lambda x: onp.top_k(x, 2, axis=0, mode="smallest")[0], (M,), dtypes="fdic"),
    of_o("apply_over_axes", lambda o, x: o.apply_over_axes(o.sum, x, (0, 2)), CUBE, dtypes="fd"),
    of_o("piecewise", lambda o, x: o.piecewise(x, [x < 0, x > 1], [lambda v: v * 2, 0.5, 1.5]), V),
    of_o("fromfunction", lambda o: o.fromfunction(lambda i, j: i - 2 * j, (2, 3), dtype="f4"),
         grad=False),
    of_o("geomspace", lambda o, x, y: o.geomspace(o.abs(x), o.abs(y) + 1, 5), V, W, tol=1e-4),
    of_o("logspace", lambda o, x, y: o.logspace(x, y, 5, base=2.0), V, W, tol=1e-4),
    *[of_o(f"tri-{k}", lambda o, k=k: o.tri(3, 4, k, dtype="f4"), grad=False) for k in (-1, 2)],
    *[of_o(name, lambda o, name=name: getattr(o, name)(4, 1), grad=False)
      for name in ("tril_indices", "triu_indices", "diag_indices")],
    *[of_o(name, lambda o, x, name=name: getattr(o, name)(x), M[:, :3], grad=False)
      for name in ("tril_indices_from", "triu_indices_from", "diag_indices_from")],
    Op("mask_indices", lambda: np.mask_indices(4, np.triu, 1),
       lambda: onp.mask_indices(4, onp.triu, 1, size=6), (), grad=False),
    of_o("ix_", lambda o, x, y: o.ix_(x, y), SMALL, TIES, grad=False),
    of_o("unravel_index", lambda o, x: o.unravel_index(x, (3, 7)), I, grad=False),
    of_o("ravel_multi_index",
         lambda o, x, y: o.ravel_multi_index((x, y), (4, 3), mode="wrap"), I, J, grad=False),
    written("putmask", V, MASK, W, dtypes="fi"),
    written("copyto", M, W[:4], dtypes="fi"),
    written("put_along_axis", M, np.array([[1], [0], [3]]), reals(3, 1, seed=4), axis=1),
    *[of_o(f"emath.{name}", lambda o, x, name=name: getattr(o.emath, name)(x), x, dtypes="fcd",
           tol=1e-4) for name, x in (
               *[(f, -1 - np.abs(V)) for f in ("sqrt", "log", "log2", "log10")],
               *[(f, 2 + np.abs(V)) for f in ("arccos", "arcsin", "arctanh")])],
    of_o("emath.logn", lambda o, x: o.emath.logn(3.0, x), -1 - np.abs(V), dtypes="fd", tol=1e-4),
    of_o("emath.power", lambda o, x, y: o.emath.power(x, y), -1 - np.abs(V), W, dtypes="fd",
         tol=1e-4),
    *[of_o(name, lambda o, x, name=name: getattr(o, name)(x), M, dtypes="fiud") for name in (
        "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "require")],
    *[of_o(f"{name} of a number", lambda o, x, name=name: getattr(o, name)(x), np.array(1.5))
      for name in ("ascontiguousarray", "asfortranarray")],
    of_o("require what all arrays are", lambda o, x: o.require(x, "f4", ["C", "A"]), M),
    Op("linalg.vector_norm", partial(np.linalg.vector_norm, axis=0),
       partial(onp.linalg.vector_norm, axis=0), (M,), "fdc"),
)
