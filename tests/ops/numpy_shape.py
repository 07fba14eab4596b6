"""Rows for olympus.numpy functions that make, move, join, split and choose elements."""

import numpy as np

from olympus import numpy as onp

from . import Op, both, reals

M, N = reals(3, 4), reals(3, 4, seed=1)
V = reals(6)
CUBE = reals(2, 3, 4)
MASK = M > 0
ROWS = np.array([2, 0, 2], np.int32)
DEEP = np.argsort(M, 1).astype(np.int32)


def joined(name: str, *args, **params) -> Op:
    """The row of a function that takes a list of arrays."""
    return Op(name, lambda *a: getattr(np, name)(list(a), **params),
              lambda *a: getattr(onp, name)(list(a), **params), args)


ALL = (
    both("reshape", CUBE, shape=(4, -1)),
    both("ravel", CUBE), both("ravel", CUBE, order="F"),
    both("transpose", CUBE), both("transpose", CUBE, axes=(1, 2, 0)),
    both("swapaxes", CUBE, axis1=0, axis2=2),
    both("moveaxis", CUBE, source=0, destination=-1),
    both("rollaxis", CUBE, axis=2),
    both("expand_dims", M, axis=(0, 2)),
    both("squeeze", reals(1, 4, 1), axis=0),
    both("broadcast_to", V, shape=(2, 6)),
    both("flip", CUBE, axis=1), both("flip", M), both("fliplr", M), both("flipud", M),
    both("rot90", M, k=3),
    both("roll", M, shift=2, axis=1), both("roll", M, shift=-5),
    both("repeat", M, repeats=2, axis=1), both("tile", M, reps=(2, 1)),
    both("pad", M, pad_width=((1, 0), (2, 1))),
    both("pad", M, pad_width=2, mode="edge"),
    both("pad", M, pad_width=2, mode="reflect"),
    both("pad", M, pad_width=1, mode="wrap"),
    both("atleast_1d", np.array(1.7)), both("atleast_2d", V), both("atleast_3d", M),
    joined("concatenate", M, N, axis=1), joined("stack", M, N, axis=1), joined("hstack", M, N),
    joined("vstack", M, N), joined("dstack", M, N), joined("column_stack", V, V),
    Op(
        "broadcast_arrays", lambda x, y: list(np.broadcast_arrays(x, y)),
        lambda x, y: list(onp.broadcast_arrays(x, y)), (M, reals(4))),
    joined("block", M, N),
    Op("append", lambda x, y: np.append(x, y, 0), lambda x, y: onp.append(x, y, 0), (M, N)),
    Op("split", lambda x: np.split(x, 2, 1), lambda x: onp.split(x, 2, 1), (M,)),
    Op("array_split", lambda x: np.array_split(x, 4), lambda x: onp.array_split(x, 4), (V,)),
    Op("where", lambda x, y: np.where(MASK, x, y), lambda x, y: onp.where(MASK, x, y), (M, N)),
    Op("clip", lambda x: np.clip(x, -1, 2), lambda x: onp.clip(x, -1, 2), (M,), "fi"),
    Op("select", lambda x, y: np.select([MASK, x > 9], [x, y], 0.0),
       lambda x, y: onp.select([MASK, x > 9], [x, y], 0.0), (M, N)),
    both("diag", V, k=1), both("diag", M), both("diagonal", CUBE, axis1=1, axis2=2),
    both("diagflat", V), both("tril", M), both("triu", M, k=1),
    Op("take", lambda x: np.take(x, ROWS, 0), lambda x: onp.take(x, ROWS, 0), (M,)),
    Op("take-wrap", lambda x, i: np.take(x, i, 0, mode="wrap"),
       lambda x, i: onp.take(x, i, 0, mode="wrap"), (M, ROWS - 4)),
    Op("take_along_axis", lambda x: np.take_along_axis(x, DEEP, 1),
       lambda x: onp.take_along_axis(x, DEEP, 1), (M,)),
    Op("getitem", lambda x: x[1:, ::-2], lambda x: onp.asarray(x)[1:, ::-2], (M,)),
    Op("getitem-array", lambda x: x[:, ROWS], lambda x: onp.asarray(x)[:, ROWS], (M,)),
    Op("insert", lambda x: np.insert(x, 2, 5.0), lambda x: onp.insert(x, 2, 5.0), (V,)),
    Op("insert-places", lambda x, y, i: np.insert(x, i, y, 1),
       lambda x, y, i: onp.insert(x, i, y, 1), (M, N[:, :3], np.array([4, -3, 1]))),
    Op("insert-place", lambda x, y, i: np.insert(x, i, y), lambda x, y, i: onp.insert(x, i, y),
       (V, V[:3], np.array([-2]))),
    Op("delete", lambda x: np.delete(x, 2), lambda x: onp.delete(x, 2), (V,)),
    Op("meshgrid", lambda x, y: list(np.meshgrid(x, y)), lambda x, y: list(onp.meshgrid(x, y)),
       (V, reals(3, seed=1))),
    Op("apply_along_axis", lambda x: np.apply_along_axis(np.sum, 0, x),
       lambda x: onp.apply_along_axis(onp.sum, 0, x), (M,)),
    Op("linspace", lambda x, y: np.linspace(x, y, 5, dtype="f4" if x.dtype == "f4" else x.dtype),
       lambda x, y: onp.linspace(x, y, 5), (np.array(0.3), np.array(2.6))),
    both("zeros_like", M, grad=False), both("ones_like", M, dtypes="fi", grad=False),
    both("copy", M), both("resize", V, new_shape=(2, 5)),
)
