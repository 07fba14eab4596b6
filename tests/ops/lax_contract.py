"""Rows for contractions and convolutions beyond `dot_general`."""

import numpy as np

from olympus import lax

from . import Op, reals

A = reals(3, 4)
B = reals(4, 2, seed=1)
SIZES = np.array([2, 0, 2], np.int32)
PAIRS = np.array([[1, 2, 0], [0, 1, 3]], np.int32)
BOXES = reals(2, 4, 3), reals(2, 3, 3, 2, seed=1)
IMAGE = reals(2, 3, 6)
KERNEL = reals(4, 3, 2, seed=1)
NHC = ("NHC", "HIO", "NHC")
SCALE = np.array([[1.0, 2.0], [0.5, 4.0], [1.0, 0.25]], np.float32)
FREE = lax.RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (0,))), (1,), (1,))
SUMMED = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((0,), (0,))), (1,), ())
BATCH = lax.RaggedDotDimensionNumbers((((2,), (1,)), ((0,), (0,))), (0,), ())


def groups(sizes, rows):
    """The group of each row, or -1."""
    known = np.repeat(np.arange(len(sizes)), sizes)
    return np.pad(known, (0, max(rows - len(known), 0)), constant_values=-1)[:rows]


def ragged(x, y, sizes):
    return np.stack([row @ y[g] if g >= 0 else 0 * (row @ y[0])
                     for row, g in zip(x, groups(sizes, len(x)), strict=True)])


def ragged_sums(x, y, sizes):
    """[b, m, k], [b, m, n] -> [g, b, k, n]"""
    which = [groups(s, x.shape[1]) for s in sizes]
    return np.stack([np.stack([(a[w == g]).T @ b[w == g]
                               for a, b, w in zip(x, y, which, strict=True)]) for g in range(3)])


def spread(x, step):
    out = np.zeros((*x.shape[:-1], (x.shape[-1] - 1) * step + 1), x.dtype)
    out[..., ::step] = x
    return out


def transposed(x, w, step):
    """[n, i, h], [o, i, k]: every kernel, reversed, at every place of the spread image."""
    wide = spread(x, step)
    return np.stack([np.stack([sum(np.convolve(c, k[::-1]) for c, k in zip(a, o, strict=True))
                               for o in w]) for a in wide])


def seen(x, k):
    """[n, c, h] -> [n, c * k, h - k + 1]"""
    n, c, h = x.shape
    rows = np.stack([x[:, :, i:h - k + 1 + i] for i in range(k)], 2)
    return rows.reshape(n, c * k, h - k + 1)


ALL = (
    Op("lax.dot", lambda x, y: x @ y, lambda x, y: lax.dot(
        x, y, dimension_numbers=(((1,), (0,)), ((), ())), precision="highest"), (A, B), "fihec"),
    Op("lax.dot-mixed", lambda x, y: (x.astype("f8") @ y).astype("f4"),
       lambda x, y: lax.dot(x, y), (A, B.astype("f4")), "fi"),
    Op("lax.dot-wide", lambda x, y: (x.astype("f4") @ y.astype("f4")),
       lambda x, y: lax.dot(x, y, preferred_element_type=np.float32), (A, B), "fi", grad=False),
    Op("lax.batch_matmul", lambda x, y: x @ y,
       lambda x, y: lax.batch_matmul(x, y, precision="F32_F32_F32"), (reals(2, 3, 4),
                                                                       reals(2, 4, 2, seed=1))),
    Op("lax.ragged_dot", lambda x, y: ragged(x, y, SIZES), lambda x, y: lax.ragged_dot(
        x, y, SIZES, precision="high"), (reals(5, 4), reals(3, 4, 2, seed=1)), "fi"),
    Op("lax.ragged_dot-offset", lambda x, y: ragged(x, np.concatenate([0 * y[:1], y]), SIZES),
       lambda x, y: lax.ragged_dot(x, y, SIZES, group_offset=np.array([1], np.int32)),
       (reals(5, 4), reals(2, 4, 2, seed=1))),
    Op("lax.ragged_dot_general", lambda x, y: np.stack([*map(ragged, x, y, PAIRS)]),
       lambda x, y: lax.ragged_dot_general(x, y, PAIRS, FREE, None, x.dtype), BOXES),
    Op("lax.ragged_dot_general-sums", lambda x, y: ragged_sums(x, y, PAIRS),
       lambda x, y: lax.ragged_dot_general(x, y, PAIRS, SUMMED),
       (reals(2, 4, 3), reals(2, 4, 2, seed=1))),
    Op("lax.ragged_dot_general-batch", lambda x, y: x @ y,
       lambda x, y: lax.ragged_dot_general(x, y, SIZES, BATCH),
       (reals(2, 4, 3), reals(2, 3, 2, seed=1))),
    Op("lax.scaled_dot", lambda x, y: (x * np.repeat(SCALE, 2, 1)) @ (y * SCALE[:2].repeat(2, 0)),
       lambda x, y: lax.scaled_dot(x, y, lhs_scale=SCALE, rhs_scale=SCALE[:2],
                                   dimension_numbers=(((1,), (0,)), ((), ())),
                                   preferred_element_type=np.float32),
       (np.round(A), np.round(B)), grad=False),
    Op("lax.conv_transpose", lambda x, w: transposed(x, w, 2), lambda x, w: lax.conv_transpose(
        x, w, (2,), "VALID", dimension_numbers=("NCH", "OIH", "NCH")), (IMAGE, KERNEL)),
    Op("lax.conv_transpose-same", lambda x, w: np.pad(
        transposed(x, w, 3), ((0, 0), (0, 0), (0, 1))).transpose(0, 2, 1),
       lambda x, w: lax.conv_transpose(lax.transpose(x, (0, 2, 1)), lax.transpose(w, (2, 1, 0)),
                                       (3,), "SAME", preferred_element_type=x.dtype),
       (IMAGE, KERNEL)),
    Op("lax.conv_transpose-kernel",
       lambda x, w: transposed(x, w.swapaxes(0, 1)[:, :, ::-1], 2)[:, :, 1:],
       lambda x, w: lax.conv_transpose(x, w, (2,), [(1, 0)], dimension_numbers=(
           "NCH", "OIH", "NCH"), transpose_kernel=True, precision="highest",
           use_consistent_padding=True), (reals(2, 4, 6), KERNEL)),
    Op("lax.conv_transpose-dilated", lambda x, w: transposed(x, spread(w, 2), 2),
       lambda x, w: lax.conv_transpose(x, w, (2,), "VALID", rhs_dilation=(2,),
                                       dimension_numbers=("NCH", "OIH", "NCH")), (IMAGE, KERNEL)),
    Op("lax.conv_general_dilated_patches", lambda x: seen(x, 3),
       lambda x: lax.conv_general_dilated_patches(x, (3,), (1,), "VALID"), (IMAGE,), "fi"),
    Op("lax.conv_general_dilated_patches-all",
       lambda x: np.pad(spread(x, 2), ((0, 0), (0, 0), (1, 1)))[
           :, :, np.add.outer([0, 3], np.arange(0, 10, 2))].transpose(0, 3, 1, 2).reshape(2, 5, 6),
       lambda x: lax.conv_general_dilated_patches(
           lax.transpose(x, (0, 2, 1)), (2,), (2,), [(1, 1)], (2,), (3,), NHC, "highest", x.dtype),
       (IMAGE,)),
    Op("lax.conv_general_dilated_local", lambda x, w: np.einsum("nkh,okh->noh", seen(x, 2), w),
       lambda x, w: lax.conv_general_dilated_local(x, w, (1,), "VALID", (2,)),
       (IMAGE, reals(4, 6, 5, seed=1))),
    Op("lax.conv_general_dilated_local-all",
       lambda x, w: np.einsum("nkh,hko->nho", seen(np.pad(x, ((0, 0), (0, 0), (1, 0))), 3)[
           :, [0, 2, 3, 5, 6, 8], ::2], w),
       lambda x, w: lax.conv_general_dilated_local(
           lax.transpose(x, (0, 2, 1)), w, (2,), [(1, 0)], (2,), (1,), (2,), NHC, "highest"),
       (IMAGE, reals(3, 6, 4, seed=1))),
    Op("lax.conv_general_permutations", lambda x: x * np.array([[0, 2, 1], [2, 1, 0], [0, 2, 1]],
                                                               x.dtype),
       lambda x: x * np.array(lax.conv_general_permutations(NHC), x.dtype), (reals(3, 3),)),
    Op("lax.conv_general_shape_tuple", lambda x: x * np.array([2, 4, 5], x.dtype),
       lambda x: x * np.array(lax.conv_general_shape_tuple(
           (2, 8, 3), (3, 3, 5), (2,), "SAME", NHC), x.dtype), (reals(2, 3),)),
    Op("lax.conv_shape_tuple", lambda x: x * np.array([2, 4, 4], x.dtype),
       lambda x: x * np.array(lax.conv_shape_tuple(
           (4, 3, 8), (4, 3, 3), (2,), [(1, 1)], 2), x.dtype), (reals(2, 3),)),
    Op("lax.conv_transpose_shape_tuple", lambda x: x * np.array([2, 17, 5], x.dtype),
       lambda x: x * np.array(lax.conv_transpose_shape_tuple(
           (2, 8, 3), (3, 5, 3), (2,), "VALID", ("NHC", "HOI", "NHC")), x.dtype), (reals(2, 3),)),
)
