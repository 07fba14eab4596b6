"""Rows for lax operations that move, reduce, contract, sort or index, and for control flow."""

import numpy as np
import scipy.signal

from olympus import lax

from . import Op, reals

M = reals(3, 4)
V = reals(5)
CUBE = reals(2, 3, 4)
BITS = np.array([[True, False, True], [True, True, False]])
WHOLE = np.array([[5, 3, 6], [9, 12, 7]], np.int32)
PICK = np.array([2, 0, 2, 1], np.int32)
COLUMN = PICK[:, None]
SPOTS = np.array([[3], [0], [4]], np.int32)
ROWS = lax.GatherDimensionNumbers((1,), (0,), (0,))
POINTS = lax.ScatterDimensionNumbers((), (0,), (0,))


def updated(x, start, y):
    x = x.copy()
    x[tuple(slice(s, s + n) for s, n in zip(start, y.shape, strict=True))] = y
    return x


def written(op):
    def oracle(x, u):
        x = x.copy()
        op(x, SPOTS[:, 0], u) if op else x.__setitem__(SPOTS[:, 0], u)
        return x
    return oracle


def convolved(x, w):
    return np.stack([np.stack([scipy.signal.correlate(a, k, "valid")[0] for k in w]) for a in x])


def widened(x, w, step):
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return convolved(x, w)[:, :, ::step, ::step]


ALL = (
    Op("broadcast", lambda x: np.broadcast_to(x, (2, 5)), lambda x: lax.broadcast(x, (2,)), (V,)),
    Op("broadcast_in_dim", lambda x: np.broadcast_to(x[:, None], (5, 3)),
       lambda x: lax.broadcast_in_dim(x, (5, 3), (0,)), (V,), "fic"),
    Op("broadcast_to_rank", lambda x: x[None, None], lambda x: lax.broadcast_to_rank(x, 3), (V,)),
    Op("collapse", lambda x: x.reshape(6, 4), lambda x: lax.collapse(x, 0, 2), (CUBE,)),
    Op("reshape", lambda x: x.reshape(6, 4), lambda x: lax.reshape(x, (6, 4)), (CUBE,), "fic"),
    Op("reshape-order", lambda x: x.transpose(2, 0, 1).reshape(6, 4),
       lambda x: lax.reshape(x, (6, 4), (2, 0, 1)), (CUBE,)),
    Op("expand_dims", lambda x: x[:, None, :, None], lambda x: lax.expand_dims(x, (1, 3)), (M,)),
    Op("squeeze", lambda x: x[0, :, 0], lambda x: lax.squeeze(x, (0, 2)), (reals(1, 4, 1),)),
    Op("transpose", lambda x: x.transpose(2, 0, 1), lambda x: lax.transpose(x, (2, 0, 1)),
       (CUBE,), "fib"),
    Op("rev", lambda x: x[::-1, :, ::-1], lambda x: lax.rev(x, (0, 2)), (CUBE,)),
    Op("tile", lambda x: np.tile(x, (2, 3)), lambda x: lax.tile(x, (2, 3)), (M,)),
    Op("concatenate", lambda x, y: np.concatenate([x, y, x], 1),
       lambda x, y: lax.concatenate([x, y, x], 1), (M, reals(3, 2, seed=1)), "fi"),
    Op("split", lambda x: np.split(x, [1, 3], 1), lambda x: lax.split(x, (1, 2, 1), 1), (M,)),
    Op("pad", lambda x: np.pad(x, ((1, 2), (0, 1))),
       lambda x: lax.pad(x, x.dtype.type(0), [(1, 2, 0), (0, 1, 0)]), (M,)),
    Op("pad-interior", lambda x, v: np.array([v, x[1], v, v, x[2], v, v, x[3], v, v, x[4]]),
       lambda x, v: lax.pad(x, v, [(-2, 0, 2)]), (V, np.array(0.7))),
    Op("slice", lambda x: x[1:3, 0:4:2], lambda x: lax.slice(x, (1, 0), (3, 4), (1, 2)), (M,)),
    Op("slice_in_dim", lambda x: x[:, 1:3], lambda x: lax.slice_in_dim(x, 1, 3, axis=1), (M,)),
    Op("index_in_dim", lambda x: x[:, 2], lambda x: lax.index_in_dim(x, 2, 1, False), (M,)),
    Op("index_take", lambda x: x[PICK], lambda x: lax.index_take(x, (PICK,), (0,)), (M,)),
    Op("dynamic_slice", lambda x: x[1:3, 2:4],
       lambda x: lax.dynamic_slice(x, (np.int32(1), np.int32(9)), (2, 2)), (M,)),
    Op("dynamic_slice_in_dim", lambda x, i: x[2:4],
       lambda x, i: lax.dynamic_slice_in_dim(x, i, 2), (V, np.int32(2))),
    Op("dynamic_index_in_dim", lambda x, i: x[3:4],
       lambda x, i: lax.dynamic_index_in_dim(x, i), (V, np.int32(-2))),
    Op("dynamic_update_slice", lambda x, y: updated(x, (1, 2), y),
       lambda x, y: lax.dynamic_update_slice(x, y, (1, 2)), (M, reals(2, 2, seed=1))),
    Op("dynamic_update_slice_in_dim", lambda x, y, i: updated(x, (1,), y),
       lambda x, y, i: lax.dynamic_update_slice_in_dim(x, y, i, 0),
       (V, reals(2, seed=1), np.int32(1))),
    Op("dynamic_update_index_in_dim", lambda x, y: updated(x, (1, 0), y[None]),
       lambda x, y: lax.dynamic_update_index_in_dim(x, y, 1, 0), (M, reals(4, seed=1))),
    Op("gather", lambda x: x[PICK],
       lambda x: lax.gather(x, COLUMN, ROWS, (1, 4)), (M,), "fi"),
    Op("gather-fill", lambda x, i: np.where(i < 3, x[np.minimum(i[:, 0], 2)], 0.5),
       lambda x, i: lax.gather(x, i, ROWS, (1, 4), mode="fill", fill_value=0.5),
       (M, np.array([[1], [7], [2]], np.int32))),
    Op("scatter", written(None), lambda x, u: lax.scatter(x, SPOTS, u, POINTS),
       (V, reals(3, seed=1)), "fi"),
    Op("scatter_add", written(np.add.at), lambda x, u: lax.scatter_add(x, SPOTS, u, POINTS),
       (V, reals(3, seed=1)), "fi"),
    Op("scatter_sub", written(np.subtract.at), lambda x, u: lax.scatter_sub(x, SPOTS, u, POINTS),
       (V, reals(3, seed=1))),
    Op("scatter_mul", written(np.multiply.at), lambda x, u: lax.scatter_mul(
        x, SPOTS, u, POINTS, unique_indices=True), (V, reals(3, seed=1))),
    Op("scatter_min", written(np.minimum.at), lambda x, u: lax.scatter_min(x, SPOTS, u, POINTS),
       (V, reals(3, seed=1)), grad=False),
    Op("scatter_max", written(np.maximum.at), lambda x, u: lax.scatter_max(x, SPOTS, u, POINTS),
       (V, reals(3, seed=1)), grad=False),
    Op("select", lambda x, y: np.where(BITS, x, y), lambda x, y: lax.select(BITS, x, y),
       (reals(2, 3), reals(2, 3, seed=1))),
    Op("select_n", lambda w, x, y, z: np.choose(w, [x, y, z]), lax.select_n,
       (np.array([2, 0, 1, 0, 2], np.int32), V, reals(5, seed=1), reals(5, seed=2))),
    Op("clamp", lambda x: np.clip(x, -1, 1.5), lambda x: lax.clamp(-1, x, 1.5), (M,)),
    Op("convert_element_type", lambda x: x.astype("i4"),
       lambda x: lax.convert_element_type(x, "int32"), (M,), "fh", grad=False),
    Op("convert_element_type-float", lambda x: x.astype("f4"),
       lambda x: lax.convert_element_type(x, "float32"), (M,), "fhib", grad=False),
    Op("bitcast_convert_type", lambda x: x.view("i4"),
       lambda x: lax.bitcast_convert_type(x, "int32"), (M,), grad=False),
    Op("bitcast_convert_type-narrow", lambda x: x.view("i2").reshape(*x.shape, 2),
       lambda x: lax.bitcast_convert_type(x, "int16"), (M,), grad=False),
    Op("iota", lambda x: x + np.arange(5, dtype="i4"), lambda x: x + lax.iota("int32", 5),
       (np.arange(5, dtype="i4"),), grad=False),
    Op("broadcasted_iota", lambda x: np.broadcast_to(np.arange(3, dtype="i4")[:, None], (3, 4)),
       lambda x: lax.broadcasted_iota("int32", (3, 4), 0), (M,), grad=False),
    Op("full", lambda x: np.full((2, 3), x), lambda x: lax.full((2, 3), x), (np.array(1.7),)),
    Op("full_like", lambda x: np.full_like(x, 3), lambda x: lax.full_like(x, 3), (M,), "fi",
       grad=False),
    Op("stop_gradient", lambda x: x, lax.stop_gradient, (M,), grad=False),
    Op("optimization_barrier", lambda x: x, lax.optimization_barrier, (M,)),
    Op("argmax", lambda x: np.argmax(x, 1).astype("i4"), lambda x: lax.argmax(x, 1, "int32"),
       (M,), "fi", grad=False),
    Op("argmin", lambda x: np.argmin(x, 0).astype("i4"), lambda x: lax.argmin(x, 0, "int32"),
       (M,), "fi", grad=False),
    Op("reduce_max", lambda x: x.max(1), lambda x: lax.reduce_max(x, (1,)), (CUBE,), "fi"),
    Op("reduce_min", lambda x: x.min((0, 2)), lambda x: lax.reduce_min(x, (0, 2)), (CUBE,), "fi"),
    Op("reduce_prod", lambda x: x.prod((0, 1)), lambda x: lax.reduce_prod(x, (0, 1)),
       (reals(2, 3, 2),)),
    Op("reduce_and", lambda x: x.all(1), lambda x: lax.reduce_and(x, (1,)), (BITS,), grad=False),
    Op("reduce_or", lambda x: x.any(0), lambda x: lax.reduce_or(x, (0,)), (BITS,), grad=False),
    Op("reduce_xor", lambda x: np.bitwise_xor.reduce(x, 1), lambda x: lax.reduce_xor(x, (1,)),
       (WHOLE,), grad=False),
    Op("cumsum", lambda x: np.cumsum(x, 1, x.dtype), lambda x: lax.cumsum(x, 1), (M,), "fi"),
    Op("cumsum-reverse", lambda x: np.cumsum(x[::-1], 0)[::-1],
       lambda x: lax.cumsum(x, 0, reverse=True), (M,)),
    Op("cumprod", lambda x: np.cumprod(x, 1), lambda x: lax.cumprod(x, 1), (M,)),
    Op("cummax", lambda x: np.maximum.accumulate(x, 1), lambda x: lax.cummax(x, 1), (M,)),
    Op("cummin", lambda x: np.minimum.accumulate(x, 0), lambda x: lax.cummin(x, 0), (M,)),
    Op("cumlogsumexp", lambda x: np.logaddexp.accumulate(x, 1), lambda x: lax.cumlogsumexp(x, 1),
       (M,)),
    Op("sort", lambda x: np.sort(x, 1), lambda x: lax.sort(x, dimension=1), (M,), "fi"),
    Op("sort_key_val", lambda k, v: (np.sort(k), v[np.argsort(k)]),
       lambda k, v: tuple(lax.sort_key_val(k, v)), (V, reals(5, seed=1))),
    Op("top_k", lambda x: (-np.sort(-x, 1)[:, :2], np.argsort(-x, 1)[:, :2].astype("i4")),
       lambda x: lax.top_k(x, 2), (M,), grad=False),
    Op("top_k-values", lambda x: -np.sort(-x, 1)[:, :2], lambda x: lax.top_k(x, 2)[0], (M,)),
    Op("dot", np.dot, lax.dot, (M, reals(4, 2, seed=1))),
    Op("dot-vectors", np.dot, lax.dot, (V, reals(5, seed=1))),
    Op("dot_general", lambda x, y: np.einsum("bij,kbj->bik", x, y),
       lambda x, y: lax.dot_general(x, y, (((2,), (2,)), ((0,), (1,)))),
       (CUBE, reals(5, 2, 4, seed=1))),
    Op("dot_general-order", lambda x, y: np.einsum("aij,kjai->k", x, y),
       lambda x, y: lax.dot_general(x, y, (((2, 0, 1), (1, 2, 3)), ((), ()))),
       (CUBE, reals(2, 4, 2, 3, seed=1)), tol=1e-4),
    Op("batch_matmul", np.matmul, lax.batch_matmul, (CUBE, reals(2, 4, 2, seed=1))),
    Op("conv", convolved, lambda x, w: lax.conv(x, w, (1, 1), "VALID"),
       (reals(2, 3, 5, 4), reals(2, 3, 2, 3, seed=1)), tol=2e-4),
    Op("conv_with_general_padding", lambda x, w: widened(x, w, 1),
       lambda x, w: lax.conv_with_general_padding(x, w, (1, 1), ((1, 1), (1, 1)), None, None),
       (reals(2, 3, 4, 4), reals(2, 3, 2, 3, seed=1)), tol=2e-4),
    Op("conv_general_dilated", lambda x, w: widened(x, w, 2),
       lambda x, w: lax.conv_general_dilated(x, w, (2, 2), ((1, 1), (1, 1))),
       (reals(1, 2, 5, 5), reals(2, 2, 3, 3, seed=1)), tol=2e-4),
    Op("scan", lambda c, xs: (c * np.prod(xs), c * np.cumprod(xs)),
       lambda c, xs: lax.scan(lambda c, x: (c * x, c * x), c, xs), (np.array(1.3), V)),
    Op("scan-reverse", lambda c, xs: (c + np.sum(xs), c + np.cumsum(xs[::-1])[::-1]),
       lambda c, xs: lax.scan(lambda c, x: (c + x, c + x), c, xs, reverse=True),
       (np.array(1.3), V)),
    Op("map", np.sin, lambda x: lax.map(lax.sin, x), (M,)),
    Op("fori_loop", lambda x: x * 1.1 ** 4, lambda x: lax.fori_loop(
        0, 4, lambda i, c: c * 1.1, x), (M,)),
    Op("cond", lambda p, x: np.where(p, np.sin(x), x * x),
       lambda p, x: lax.cond(p, lax.sin, lax.square, x), (np.bool_(True), V)),
    Op("switch", lambda i, x: (x, np.sin(x), x * x)[i],
       lambda i, x: lax.switch(i, [lambda x: x, lax.sin, lax.square], x), (np.int32(2), V)),
    Op("associative_scan", lambda x: np.cumprod(x, 0),
       lambda x: lax.associative_scan(lax.mul, x), (reals(5, 2),)),
)
