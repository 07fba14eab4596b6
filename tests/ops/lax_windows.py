"""Rows for reductions and windows by any function, the best k, stacking and facts on arrays."""

import itertools

import numpy as np

import olympus
from olympus import lax, numpy as onp

from . import Op, reals

V = reals(7)
M = reals(4, 5)
SMALL = reals(3, 4, low=-0.4, high=0.5)
SPOTS = np.array([[3], [0], [4]], np.int32)
TWICE = np.array([[3], [0], [3]], np.int32)
POINTS = lax.ScatterDimensionNumbers((), (0,), (0,))


def product_plus_one(a, b):
    """Associative, with identity 0, and no monoid that lax knows: (1 + a)(1 + b) - 1."""
    return a + b + a * b


def elements(x, window, strides=None, pads=None, base=None, spread=None):
    """The elements of each window, in loops: an array of lists of (value, flat place)."""
    n = x.ndim
    strides, base, spread = [v or (1,) * n for v in (strides, base, spread)]
    pads = pads or ((0, 0),) * n
    place = np.arange(x.size).reshape(x.shape)
    grown = [max((s - 1) * b + 1, 0) for s, b in zip(x.shape, base, strict=True)]
    sizes = [max((g + lo + hi - (w - 1) * d - 1) // s + 1, 0) for g, (lo, hi), w, d, s in zip(
        grown, pads, window, spread, strides, strict=True)]
    out = np.empty(sizes, object)
    for at in np.ndindex(*sizes):
        out[at] = []
        for offset in itertools.product(*map(range, window)):
            spot = [a * s + o * d - lo for a, s, o, d, (lo, _) in zip(
                at, strides, offset, spread, pads, strict=True)]
            if all(0 <= p < g and p % b == 0 for p, g, b in zip(spot, grown, base, strict=True)):
                index = tuple(p // b for p, b in zip(spot, base, strict=True))
                out[at].append((x[index], place[index]))
    return out


def windowed(fold, start=0, **how):
    def oracle(x):
        cells = elements(x, **how)
        made = [fold(np.array([start, *(v for v, _ in cell)], x.dtype)) for cell in cells.ravel()]
        return np.array(made, x.dtype).reshape(cells.shape)
    return oracle


def picked(cells, fold):
    """The flat place of the first extremum of each window."""
    def first(cell):
        return next(p for v, p in cell if v == fold(v for v, _ in cell))
    return np.array([first(c) for c in cells.ravel()]).reshape(cells.shape)


def gathered(t, x):
    return t.ravel()[picked(elements(x, (2, 2), (1, 2)), max)]


def scattered(s, x):
    out = np.zeros(x.size, s.dtype)
    np.add.at(out, picked(elements(x, (2, 2), (1, 2)), max), s)
    return out.reshape(x.shape)


SELECT = {"select_prim": lax.ge_p, "window_dimensions": (2, 2), "window_strides": (1, 2),
          "padding": ((0, 0), (0, 0)), "base_dilation": (1, 1), "window_dilation": (1, 1)}
FULL = {"window": (2, 3), "strides": (2, 1), "pads": ((1, 2), (2, -1)), "base": (2, 1),
        "spread": (1, 2)}


def everything(fold, init):
    """`fold` over windows with every option set."""
    def fun(x):
        start = x.dtype.type(init) if np.isfinite(init) else init
        return lax.reduce_window(x, start, fold, (2, 3), (2, 1), ((1, 2), (2, -1)), (2, 1), (1, 2))
    return fun


def select_and_scatter(x, source):
    scalar = np.zeros((), x.dtype)
    programs = [olympus.make_olympuspr(f)(scalar, scalar) for f in (lax.ge, lax.add)]
    return lax.select_and_scatter_p.bind(
        x, source, scalar, select_olympuspr=programs[0], scatter_olympuspr=programs[1],
        window_dimensions=(2, 2), window_strides=(1, 2), padding=((0, 0), (0, 0)))


def select_and_multiply(x, source, start):
    scalar = np.zeros((), x.dtype)
    programs = [olympus.make_olympuspr(f)(scalar, scalar) for f in (lax.le, lax.mul)]
    return lax.select_and_scatter_p.bind(
        x, source, start, select_olympuspr=programs[0], scatter_olympuspr=programs[1],
        window_dimensions=(2, 3), window_strides=(1, 2), padding=((1, 1), (0, 2)))


def multiplied(x, source, start):
    out = np.full(x.size, start, source.dtype)
    cells = elements(x, (2, 3), (1, 2), ((1, 1), (0, 2)))
    np.multiply.at(out, picked(cells, min), source)
    return out.reshape(x.shape)


def applied(x, places):
    x = x.copy()
    for (i,) in places:
        x[i] = np.sin(x[i]) * x[i]
    return x


def apply_at(places, **options):
    return lambda x: lax.scatter_apply(x, places, lambda v: onp.sin(v) * v, POINTS,
                                       update_shape=(3,), **options)


def apply_orders(x):
    """((value, derivative), (derivative, second derivative))."""
    ones = onp.ones_like(x)

    def pair(x):
        return olympus.jvp(apply_at(TWICE), (x,), (ones,))

    return olympus.jvp(pair, (x,), (ones,))


def applied_orders(x):
    """v sin v = f at place 0, f(f) at place 3, v elsewhere; with derivatives."""
    f, f1 = x * np.sin(x), np.sin(x) + x * np.cos(x)
    f2 = 2 * np.cos(x) - x * np.sin(x)
    g, g1, g2 = f * np.sin(f), np.sin(f) + f * np.cos(f), 2 * np.cos(f) - f * np.sin(f)
    place = np.arange(len(x))
    value, slope, second = (np.where(place == 3, twice, np.where(place == 0, once, none))
                            for twice, once, none in (
                                (g, f, x), (g1 * f1, f1, 1), (g2 * f1 * f1 + g1 * f2, f2, 0)))
    return (value, slope), (slope, second)


def both_sums(x, y):
    return x.sum(1), np.prod(1 + y, 1) - 1


def sink(x):
    lax.dce_sink({"kept": x + 1}, prevent_mlir_dce=True)
    return x * 2


ALL = (
    Op("lax.reduce", lambda x: x.sum((0, 1), dtype=x.dtype),
       lambda x: lax.reduce(x, 0, lax.add, (0, 1)), (M,), "fi"),
    Op("lax.reduce-start", lambda x: 3 * x.prod(1, dtype=x.dtype),
       lambda x: lax.reduce(x, 3, lax.mul, (1,)), (M,), "fi"),
    Op("lax.reduce-max", lambda x: np.maximum(x.max(0), x.dtype.type(1)),
       lambda x: lax.reduce(x, x.dtype.type(1), lax.max, [0]), (M,), "fi"),
    Op("lax.reduce-any", lambda x: np.prod(1 + x, 1, dtype=x.dtype) - x.dtype.type(1),
       lambda x: lax.reduce(x, 0, product_plus_one, (1,)), (SMALL,), "fi", tol=1e-5),
    Op("lax.reduce-any-all", lambda x: np.prod(1 + x, dtype=x.dtype) - x.dtype.type(1),
       lambda x: lax.reduce(x, 0, product_plus_one, (1, 0)), (SMALL,), tol=1e-5),
    Op("lax.reduce-any-start", lambda x, i: np.prod(1 + x, 1) * (1 + i) - 1,
       lambda x, i: lax.reduce(x, i, product_plus_one, (1,)), (SMALL, np.array(0.7)), tol=1e-5),
    Op("lax.reduce-two", both_sums, lambda x, y: lax.reduce(
        (x, y), (0, 0), lambda a, b: (a[0] + b[0], product_plus_one(a[1], b[1])), (1,)),
       (SMALL, reals(3, 4, low=-0.4, high=0.5, seed=1)), tol=1e-5),
    Op("lax.reduce_window", windowed(np.sum, **FULL), everything(lax.add, 0), (M,), "fi"),
    Op("lax.reduce_window-max", windowed(np.max, -9, window=(2, 3), pads=((0, 1), (1, 1))),
       lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 3), padding="SAME"), (M,)),
    Op("lax.reduce_window-max-all", windowed(np.max, -9, **FULL), everything(lax.max, -9),
       (M,), "fi"),
    Op("lax.reduce_window-max-dilated", windowed(np.max, -9, window=(2, 2), spread=(2, 3)),
       lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), window_dilation=(2, 3)), (M,)),
    Op("lax.reduce_window-min", windowed(np.min, 9, window=(2,), strides=(2,)),
       lambda x: lax.reduce_window(x, np.inf, lax.min, (2,), (2,)), (V,)),
    Op("lax.reduce_window-start", windowed(np.sum, 2, window=(3,), pads=((2, 1),)),
       lambda x: lax.reduce_window(x, 2, lax.add, (3,), (1,), ((2, 1),)), (V,), "fi"),
    Op("lax.reduce_window-any", windowed(lambda v: np.prod(1 + v) - v.dtype.type(1), **FULL),
       everything(product_plus_one, 0), (reals(4, 5, low=-0.4, high=0.5),), tol=1e-5),
    Op("lax.reduce_window-any-start",
       lambda x, i: (1 + i) * (1 + x) * np.array([1, *(1 + x[:-1])]) - 1,
       lambda x, i: lax.reduce_window(x, i, product_plus_one, (2,), (1,), [(1, 0)]),
       (V, np.array(0.3)), tol=1e-5),
    Op("lax.reduce_window_shape_tuple", lambda x: x * np.array([2, 3], x.dtype),
       lambda x: x * np.array(lax.reduce_window_shape_tuple(
           (4, 5), (2, 3), (2, 1), ((1, 0), (0, 2)), (1, 1), (1, 2)), x.dtype), (reals(3, 2),)),
    Op("lax.padtype_to_pads", lambda x: x * np.array([[1, 1], [0, 1]], x.dtype),
       lambda x: x * np.array(lax.padtype_to_pads((5, 6), (3, 2), (2, 1), "SAME"), x.dtype),
       (reals(2, 2),)),
    Op("lax.select_and_gather_add", gathered,
       lambda t, x: lax.select_and_gather_add_p.bind(t, x, **SELECT), (reals(4, 5, seed=1), M)),
    Op("lax.select_and_scatter_add", scattered,
       lambda s, x: lax.select_and_scatter_add_p.bind(s, x, **SELECT), (reals(3, 2, seed=1), M)),
    Op("lax.select_and_scatter", lambda x, s: scattered(s, x), select_and_scatter,
       (M, reals(3, 2, seed=1))),
    Op("lax.select_and_scatter-product", lambda x, s, i: multiplied(x, s, i), select_and_multiply,
       (M, reals(5, 3, seed=1), np.array(1.3)), tol=1e-4),
    Op("lax.scatter_apply", lambda x: applied(x, SPOTS),
       apply_at(SPOTS, unique_indices=True, mode="clip"), (V,)),
    Op("lax.scatter_apply-twice", lambda x: applied(x, TWICE), apply_at(TWICE), (V,)),
    Op("lax.scatter_apply-orders", applied_orders, apply_orders, (V,), tol=1e-4),
    Op("lax.scatter_apply-derivative", lambda x: [
        np.where(np.arange(7) == 3, *pair) for pair in ((np.sin(x), x), (np.cos(x), 1))],
       lambda x: olympus.jvp(
           lambda y: lax.scatter_apply(y, SPOTS[:1], onp.sin, POINTS, update_shape=(1,),
                                       indices_are_sorted=True), (x,), (onp.ones_like(x),)),
       (V,)),
    Op("lax.approx_max_k", lambda x: (-np.sort(-x, 0)[:2], np.argsort(-x, 0)[:2].astype("i4")),
       lambda x: lax.approx_max_k(x, 2, 0, 0.8), (M,), "fhe"),
    Op("lax.approx_min_k", lambda x: (np.sort(x, 1)[:, :3], np.argsort(x, 1)[:, :3].astype("i4")),
       lambda x: lax.approx_min_k(x, 3, reduction_dimension=-1, recall_target=1.0), (M,), "fh"),
    Op("lax.approx_max_k-rest", lambda x: -np.sort(-x, 1)[:, :256],
       lambda x: lax.approx_max_k(x, 2, 1, 0.9, 4000, aggregate_to_topk=False)[0],
       (reals(2, 300),)),
    Op("lax.stack", lambda x, y: np.stack([x, y, x], 1), lambda x, y: lax.stack([x, y, x], axis=1),
       (M, reals(4, 5, seed=1)), "fib"),
    Op("lax.unstack", lambda x: [*np.moveaxis(x, 1, 0)], lambda x: lax.unstack(x, axis=1), (M,),
       "fi"),
    Op("lax.unstack-first", lambda x: x[0] * x[2],
       lambda x: lax.unstack(x)[0] * lax.unstack(x)[2], (M,)),
    Op("lax.broadcast_like", lambda x: np.broadcast_to(x, (3, 4, 5)),
       lambda x: lax.broadcast_like(x, np.zeros((3, 4, 5), np.int8)), (reals(4, 1),), "fi"),
    Op("lax.dtype", lambda x: x.astype(x.dtype), lambda x: lax.convert_element_type(
        x, lax.dtype(x)), (M,), "fh"),
    Op("lax.shape_as_value", lambda x: np.array(x.shape, "i4"),
       lambda x: lax.shape_as_value(x.shape), (M,), grad=False),
    Op("lax.dce_sink", lambda x: x * 2, sink, (M,)),
)
