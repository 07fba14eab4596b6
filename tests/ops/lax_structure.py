"""Rows for lax operations that convert and contract, and of integers and bits."""

import numpy as np
import scipy.signal

from olympus import jvp, lax, linear_transpose
from olympus._src.lax import comparison

from . import Op, reals

M = reals(3, 4)
V = reals(5)
CUBE = reals(2, 3, 4)
BITS = np.array([[True, False, True], [True, True, False]])
WHOLE = np.array([[5, 3, 6], [9, 12, 7]], np.int32)
PICK = np.array([2, 0, 2, 1], np.int32)


def convolved(x, w):
    return np.stack([np.stack([scipy.signal.correlate(a, k, "valid")[0] for k in w]) for a in x])


def widened(x, w, step):
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return convolved(x, w)[:, :, ::step, ::step]


ALL = (
    Op("lax.pad-interior", lambda x, v: np.array([v, x[1], v, v, x[2], v, v, x[3], v, v, x[4]]),
       lambda x, v: lax.pad(x, v, [(-2, 0, 2)]), (V, np.array(0.7))),
    Op("lax.index_take", lambda x: x[PICK], lambda x: lax.index_take(x, (PICK,), (0,)), (M,)),
    Op("lax.select", lambda x, y: np.where(BITS, x, y), lambda x, y: lax.select(BITS, x, y),
       (reals(2, 3), reals(2, 3, seed=1))),
    Op("lax.convert_element_type", lambda x: x.astype("i4"),
       lambda x: lax.convert_element_type(x, "int32"), (M,), "fh", grad=False),
    Op("lax.convert_element_type-float", lambda x: x.astype("f4"),
       lambda x: lax.convert_element_type(x, "float32"), (M,), "fhib", grad=False),
    Op("lax.convert_element_type-complex", lambda x: x * x.dtype.type(2) * (1 + 2j),
       lambda x: lax.mul(lax.convert_element_type(lax.mul(x, 2.0), np.result_type(x.dtype, "c8")),
                         1 + 2j), (M,)),
    Op("lax.complex-transposed", lambda a, b: (a, -b), lambda a, b: linear_transpose(
        lax.complex, a, b)(lax.complex(a, b)), (V, V[::-1]), grad=False),
    Op("lax.bitcast_convert_type-slope", np.multiply, lambda x, t: jvp(lambda x: lax.mul(
        x, lax.bitcast_convert_type(x, x.dtype)), (x,), (t,))[1], (V, V[::-1]), grad=False),
    Op("lax.stop_gradient-transpose", lambda x: 2 * x, lambda x: linear_transpose(
        lambda x: lax.stop_gradient(2 * x), x)(x)[0], (V,)),
    Op("lax.stop_gradient-slope", np.multiply, lambda x, t: jvp(lambda x: lax.mul(
        x, lax.stop_gradient(x)), (x,), (t,))[1], (V, V[::-1]), grad=False),
    Op("lax.argmax-slope", lambda x: x * (np.argmax(x) + 2 * np.argmin(x)).astype(x.dtype),
       lambda x: lax.mul(x, lax.convert_element_type(lax.add(lax.argmax(x, 0, "int32"), lax.mul(
           lax.argmin(x, 0, "int32"), 2)), x.dtype)), (V,)),
    Op("lax.lt_to-slope", lambda x, y: np.where(x < y, x, 2 * x) + np.where(x <= y, y, 3 * y),
       lambda x, y: lax.add(lax.select(
           lax.bitwise_and(comparison.lt_to(x, y), lax.bitwise_not(comparison.eq_to(x, y))),
           x, lax.mul(x, 2)), lax.select(
           lax.bitwise_and(comparison.le_to(x, y), lax.ge(y, lax.select(lax.le(x, y), x, y))),
           y, lax.mul(y, 3))), (V, V[::-1] + 0.1)),
    Op("lax.bitcast_convert_type", lambda x: x.view("i4"),
       lambda x: lax.bitcast_convert_type(x, "int32"), (M,), grad=False),
    Op("lax.bitcast_convert_type-narrow", lambda x: x.view("i2").reshape(*x.shape, 2),
       lambda x: lax.bitcast_convert_type(x, "int16"), (M,), grad=False),
    Op("lax.iota", lambda x: x + np.arange(5, dtype="i4"), lambda x: x + lax.iota("int32", 5),
       (np.arange(5, dtype="i4"),), grad=False),
    Op("lax.broadcasted_iota", lambda x: np.broadcast_to(np.arange(3, dtype="i4")[:, None], (3, 4)),
       lambda x: lax.broadcasted_iota("int32", (3, 4), 0), (M,), grad=False),
    Op("lax.reduce_xor", lambda x: np.bitwise_xor.reduce(x, 1), lambda x: lax.reduce_xor(x, (1,)),
       (WHOLE,), grad=False),
    Op("lax.dot", np.dot, lax.dot, (M, reals(4, 2, seed=1))),
    Op("lax.dot-vectors", np.dot, lax.dot, (V, reals(5, seed=1))),
    Op("lax.dot_general", lambda x, y: np.einsum("bij,kbj->bik", x, y),
       lambda x, y: lax.dot_general(x, y, (((2,), (2,)), ((0,), (1,)))),
       (CUBE, reals(5, 2, 4, seed=1))),
    Op("lax.dot_general-order", lambda x, y: np.einsum("aij,kjai->k", x, y),
       lambda x, y: lax.dot_general(x, y, (((2, 0, 1), (1, 2, 3)), ((), ()))),
       (CUBE, reals(2, 4, 2, 3, seed=1)), tol=1e-4),
    Op("lax.batch_matmul", np.matmul, lax.batch_matmul, (CUBE, reals(2, 4, 2, seed=1))),
    Op("lax.conv", convolved, lambda x, w: lax.conv(x, w, (1, 1), "VALID"),
       (reals(2, 3, 5, 4), reals(2, 3, 2, 3, seed=1)), tol=2e-4),
    Op("lax.conv_with_general_padding", lambda x, w: widened(x, w, 1),
       lambda x, w: lax.conv_with_general_padding(x, w, (1, 1), ((1, 1), (1, 1)), None, None),
       (reals(2, 3, 4, 4), reals(2, 3, 2, 3, seed=1)), tol=2e-4),
    Op("lax.conv_general_dilated", lambda x, w: widened(x, w, 2),
       lambda x, w: lax.conv_general_dilated(x, w, (2, 2), ((1, 1), (1, 1))),
       (reals(1, 2, 5, 5), reals(2, 2, 3, 3, seed=1)), tol=2e-4),
)
