"""Rows for olympus.numpy functions of samples: signals, polynomials, covariances, histograms, bits.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from olympus import numpy as onp

from . import Op, both, reals

V, W, Z = reals(6), reals(3, seed=1), reals(4, seed=2)
M, N = reals(3, 5), reals(2, 5, seed=1)
UP = np.array([-2.0, -0.5, 0.25, 1.75])     # ascending
BITS = np.array([[1, 0, 1, 1, 0, 0, 0, 1, 1], [0] * 9, [1] * 9], np.int32)
BYTES = np.array([[161, 7, 0], [255, 1, 128]], np.uint8)
COUNTS = np.array([1, 2, 0, 1, 3])
WEIGHTS = np.array([0.5, 1.0, 2.0, 1.5, 0.25], np.float32)


def made(name: str, *sizes: Any, **params: Any) -> Op:
    """The row of a function that makes an array of the default float dtype from sizes."""
    label = "-".join([name, *map(str, sizes)])
    return Op(label, lambda: getattr(np, name)(*sizes, **params).astype(onp.zeros(0).dtype),
              lambda: getattr(onp, name)(*sizes, **params), (), grad=False)


def _filled(a: np.ndarray, val: Any, wrap: bool = False) -> np.ndarray:
    a = a.copy()
    np.fill_diagonal(a, val, wrap)
    return a


def filling(label: str, a: np.ndarray, val: Any, wrap: bool = False, **options: Any) -> Op:
    return Op(f"fill_diagonal-{label}", partial(_filled, wrap=wrap),
              partial(onp.fill_diagonal, wrap=wrap, inplace=False), (a, val), **options)


def sorted_roots(o: Any, **params: Any) -> Callable[[Any], Any]:
    return lambda p: o.sort_complex(o.roots(p, **params))


def extrapolated(x: np.ndarray, xp: np.ndarray, fp: np.ndarray) -> np.ndarray:
    """`interp` that goes on with the outer lines: `np.interp` of further points on these."""
    far = np.array([-9.0, 9.0]).astype(xp.dtype)
    slopes = np.diff(fp)[[0, -1]] / np.diff(xp)[[0, -1]]
    ends = fp[[0, -1]] + slopes * (far - xp[[0, -1]])
    return np.interp(x, np.concatenate([far[:1], xp, far[1:]]),
                     np.concatenate([ends[:1], fp, ends[1:]])).astype(fp.dtype)


def interpolating(label: str, x: np.ndarray, **params: Any) -> Op:
    name = f"interp-{label}"
    return Op(name, lambda x, xp, fp: np.interp(x, xp, fp, **params).astype(fp.dtype),
              partial(onp.interp, **params), (x, UP, Z), "fd", twice=False)


def histogram(label: str, name: str, *args: Any, **params: Any) -> Op:
    """Data of float32 and counts of ints: nothing is cast, so what NumPy's edges are stays."""
    return Op(f"{name}-{label}", partial(getattr(np, name), **params),
              partial(getattr(onp, name), **params), args, grad=False)


SAMPLE = reals(40, seed=5).astype(np.float32)
PLANE = reals(30, 2, seed=6).astype(np.float32)
EDGES = np.array([-1.5, 0.0, 0.25, 2.0], np.float32)


ALL = (
    histogram("10", "histogram", SAMPLE),
    histogram("range", "histogram", SAMPLE.reshape(8, 5), bins=5, range=(-1.0, 2.0)),
    histogram("edges", "histogram", SAMPLE, bins=EDGES),
    histogram("density", "histogram", SAMPLE, bins=EDGES, density=True),
    histogram("integers", "histogram", np.arange(49, dtype=np.int32), bins=7, range=(0, 49)),
    histogram("empty", "histogram", SAMPLE[:0], bins=3),
    histogram("one-value", "histogram", np.full(4, 2.5, np.float32), bins=3),
    Op("histogram-weights", lambda w: np.histogram(SAMPLE[:6], EDGES, weights=w)[0],
       lambda w: onp.histogram(SAMPLE[:6], EDGES, weights=w)[0], (V,), "fdz"),
    histogram("7", "histogram_bin_edges", SAMPLE, bins=7),
    histogram("2", "histogramdd", PLANE, bins=(3, 4), density=True),
    histogram("range", "histogramdd", PLANE, bins=2, range=((-1, 1), (0, 2))),
    Op("histogram2d-edges", lambda x, y: np.histogram2d(x, y, EDGES, density=True),
       lambda x, y: onp.histogram2d(x, y, EDGES, density=True),
       (PLANE[:, 0].copy(), PLANE[:, 1].copy()), grad=False),
    both("convolve", V, W, dtypes="fdicz"), both("convolve", W, V, mode="same"),
    both("convolve", V, W, mode="valid"), both("convolve", V, np.array(2.0)),
    both("convolve", V, Z, mode="same"), both("convolve", BITS[0] > 0, BITS[0] > 0, grad=False),
    both("correlate", V, W, dtypes="fdicz"), both("correlate", W, V, mode="full", dtypes="fz"),
    both("correlate", Z, V, mode="same"), both("correlate", V, Z, mode="same"),
    both("polyadd", V, W, dtypes="fi"), both("polysub", W, V, dtypes="fz"),
    both("polymul", V, W, dtypes="fd"), both("polymul", V, np.array(1.5)),
    Op("polydiv", lambda u, v: [np.polydiv(u, v)[0], np.append([0] * 4, np.polydiv(
        u, v)[1][-2:]).astype(u.dtype)], onp.polydiv, (V, W), "fd", tol=2e-4),
    both("polydiv", W, V),
    both("polyder", V, dtypes="fi"), both("polyder", V, m=3), both("polyder", W, m=3),
    both("polyint", V), both("polyint", V, m=3, dtypes="fd"),
    Op("polyint-k", lambda p, k: np.polyint(p, 2, k), lambda p, k: onp.polyint(p, 2, k), (V, W)),
    both("poly", Z, dtypes="fd"), both("poly", reals(3, 3), tol=1e-3),
    Op("roots-strip_zeros", lambda p: np.sort_complex(np.roots(p)).astype("c8"),
       sorted_roots(onp, strip_zeros=False), (V,), grad=False, tol=1e-3),
    Op("polyfit", lambda x, y: np.polyfit(x, y, 2), lambda x, y: onp.polyfit(x, y, 2),
       (V, reals(6, seed=3)), "fd", tol=5e-4),
    Op("polyfit-cov", lambda x, y: np.polyfit(x, y, 1, cov=True),
       lambda x, y: onp.polyfit(x, y, 1, cov=True), (V, reals(6, 2, seed=3)), tol=5e-4),
    Op("polyfit-w", lambda x, y, w: np.polyfit(x, y, 1, w=w, cov="unscaled"),
       lambda x, y, w: onp.polyfit(x, y, 1, w=w, cov="unscaled"),
       (V, reals(6, seed=3), np.abs(reals(6, seed=4))), tol=5e-4),
    both("cov", M, dtypes="fd", tol=1e-4), both("cov", M[0], N, rowvar=True, tol=1e-4),
    both("cov", M.T, rowvar=False, bias=True), both("cov", M, ddof=2),
    Op("cov-weights", lambda m: np.cov(m, fweights=COUNTS, aweights=WEIGHTS, dtype=m.dtype),
       lambda m: onp.cov(m, fweights=COUNTS, aweights=WEIGHTS), (M,), "fd", tol=1e-4),
    Op("cov-complex", np.cov, onp.cov, (M,), "z"),
    both("corrcoef", M, dtypes="d"), both("corrcoef", M, N, dtypes="d"),
    both("corrcoef", M.T, rowvar=False, dtypes="d"),
    interpolating("inside", reals(2, 3, low=-1.9, high=1.7)), interpolating("outside", V),
    interpolating("ends", V, left=7.0, right=-1.0), interpolating("period", V, period=1.6),
    Op("interp-extrapolate", extrapolated, partial(onp.interp, left="extrapolate",
                                                   right="extrapolate"), (V, UP, Z), "fd",
       twice=False),
    both("unwrap", reals(3, 5, low=-20, high=20), dtypes="fd"),
    both("unwrap", reals(3, 5, low=-20, high=20), axis=0, period=4.0, discont=3.0),
    both("unwrap", COUNTS * 3, period=4, grad=False),
    both("packbits", BITS, grad=False), both("packbits", BITS, axis=0, grad=False),
    both("packbits", BITS > 0, axis=-1, bitorder="little", grad=False),
    both("unpackbits", BYTES, grad=False), both("unpackbits", BYTES, axis=0, count=11, grad=False),
    both("unpackbits", BYTES, axis=1, count=-3, bitorder="little", grad=False),
    filling("scalar", M, np.array(0.5)), filling("values", M, W[:2]),
    filling("wrap", reals(7, 2), W, True), filling("cube", reals(3, 3, 3), reals(2, 2)),
    *[made(name, size) for name in ("bartlett", "blackman", "hamming", "hanning")
      for size in (0, 1, 6, 7)],
    *[Op(f"kaiser-{size}", lambda b, size=size: np.kaiser(size, b).astype(b.dtype),
         lambda b, size=size: onp.kaiser(size, b), (np.array(3.3),), "fd") for size in (1, 6, 7)],
)
