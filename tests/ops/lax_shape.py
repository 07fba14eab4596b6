"""Rows for lax operations on structure: shapes, slices, indexing, reductions, scans, sorting.

Integer arguments are indices, floating ones are cast.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from olympus import lax

from . import Op

Array = np.ndarray


def row(name: str, fun: Callable[..., Any], oracle: Callable[..., Any], args: tuple[Any, ...],
        grad: bool = True, kinds: str = "f") -> Op:
    return Op(f"lax.{name}", oracle, fun, args, kinds, grad)


def reals(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng((seed, *shape)).normal(size=shape)


def distinct(*shape: int) -> Array:
    n = int(np.prod(shape))
    return np.random.default_rng(n).permutation(n).reshape(shape) * 0.7 - 1.3


def ints(*values: Any) -> Array:
    return np.array(values, np.int32)


X, V = reals(3, 4), reals(5)
TAKE = lax.GatherDimensionNumbers((), (0,), (0,))
ROWS_OF = lax.GatherDimensionNumbers((1,), (0,), (0,))
WINDOW = lax.GatherDimensionNumbers((1, 2), (), (0, 1))
PAIRED = lax.GatherDimensionNumbers((1,), (), (1,), (0,), (0,))
PUT = lax.ScatterDimensionNumbers((), (0,), (0,))
PUT_ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))
PUT_WINDOW = lax.ScatterDimensionNumbers((1, 2), (), (0, 1))
PUT_PAIRED = lax.ScatterDimensionNumbers((1,), (), (1,), (0,), (0,))


def _pad(x: Array, value: Any, config: list[tuple[int, int, int]]) -> Array:
    for axis, (lo, hi, mid) in enumerate(config):
        x = np.moveaxis(x, axis, 0)
        out = np.full((len(x) + max(len(x) - 1, 0) * mid, *x.shape[1:]), value, x.dtype)
        out[:: mid + 1] = x
        for amount, end in ((lo, 0), (hi, 1)):
            if amount < 0:
                out = out[-amount:] if end == 0 else out[:amount]
            else:
                more = np.full((amount, *x.shape[1:]), value, x.dtype)
                out = np.concatenate([out, more] if end else [more, out])
        x = np.moveaxis(out, 0, axis)
    return x


def _scatter(combine: Callable[[Any, Any], Any], drop: bool = True) -> Callable[..., Array]:
    def oracle(x: Array, indices: Array, updates: Array) -> Array:
        out = x.copy()
        for (i,), u in zip(indices, updates, strict=True):
            i = int(i) if drop else min(max(int(i), 0), len(x) - 1)
            if 0 <= i < len(x):
                out[i] = combine(out[i], u)
        return out
    return oracle


def _put_window(x: Array, indices: Array, updates: Array) -> Array:
    out = x.copy()
    for (i, j), u in zip(indices, updates, strict=True):
        out[i : i + 2, j : j + 2] += u
    return out


def _paired(x: Array, indices: Array, updates: Array) -> Array:
    out = x.copy()
    for k, (j,) in enumerate(indices):
        out[k, j : j + 2] += updates[k]
    return out


def _windows(x: Array, indices: Array) -> Array:
    return np.stack([x[i : i + 2, j : j + 2] for i, j in indices])


def _update(x: Array, u: Array, i: Array) -> Array:
    out, i = x.copy(), int(np.clip(i + 5 if i < 0 else i, 0, 3))
    out[i : i + 2] = u
    return out


def _fill(x: Array, i: Array) -> Array:
    inside = (i[:, 0] >= 0) & (i[:, 0] < len(x))
    return np.where(inside, x[np.clip(i[:, 0], 0, len(x) - 1)], 7.0)


def _cum(function: Any, axis: int, reverse: bool) -> Callable[[Array], Array]:
    def oracle(x: Array) -> Array:
        flip = (lambda v: np.flip(v, axis)) if reverse else (lambda v: v)
        return flip(function.accumulate(flip(x), axis))
    return oracle


STRUCTURE = [
    row("broadcast", lambda x: lax.broadcast(x, (2,)), lambda x: np.stack([x, x]), (X,)),
    row("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 2)),
        lambda x: np.broadcast_to(x[:, None], (3, 2, 4)), (X,), kinds="fic"),
    row("broadcast_in_dim-permuted", lambda x: lax.broadcast_in_dim(x, (4, 2, 3), (2, 0)),
        lambda x: np.broadcast_to(x.T[:, None, :], (4, 2, 3)), (X,)),
    row("broadcast_in_dim-ones", lambda x: lax.broadcast_in_dim(x, (3, 2, 4), (0, 1)),
        lambda x: np.broadcast_to(x[..., None], (3, 2, 4)), (reals(3, 1),)),
    row("broadcast_to_rank", lambda x: lax.broadcast_to_rank(x, 3), lambda x: x[None], (X,)),
    row("reshape", lambda x: lax.reshape(x, (2, 6)), lambda x: x.reshape(2, 6), (X,), kinds="fic"),
    row("reshape-dimensions", lambda x: lax.reshape(x, (12,), (1, 0)), lambda x: x.T.ravel(),
        (X,)),
    row("transpose", lambda x: lax.transpose(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1),
        (reals(2, 3, 4),), kinds="fib"),
    row("squeeze", lambda x: lax.squeeze(x, (0, -1)), lambda x: x[0, ..., 0], (reals(1, 3, 1),)),
    row("expand_dims", lambda x: lax.expand_dims(x, (0, -1)), lambda x: x[None, ..., None], (X,)),
    row("collapse", lambda x: lax.collapse(x, 1), lambda x: x.reshape(2, 12), (reals(2, 3, 4),)),
    row("rev", lambda x: lax.rev(x, (1,)), lambda x: x[:, ::-1], (X,)),
    row("tile", lambda x: lax.tile(x, (2, 3)), lambda x: np.tile(x, (2, 3)), (X,)),
    row("concatenate", lambda x, y: lax.concatenate([x, y, x], 1),
        lambda x, y: np.concatenate([x, y, x], 1), (X, reals(3, 2)), kinds="fi"),
    row("concatenate-one", lambda x: lax.concatenate_p.bind(x, dimension=1), lambda x: x, (X,)),
    row("split", lambda x: lax.split(x, (1, 3), 1), lambda x: np.split(x, [1], 1), (X,)),
    row("pad", lambda x, v: lax.pad(x, v, [(1, 2, 0), (0, 1, 2)]),
        lambda x, v: _pad(x, v, [(1, 2, 0), (0, 1, 2)]), (X, reals())),
    row("pad-negative", lambda x, v: lax.pad(x, v, [(-1, 2, 1), (1, -2, 0)]),
        lambda x, v: _pad(x, v, [(-1, 2, 1), (1, -2, 0)]), (X, reals())),
    row("slice", lambda x: lax.slice(x, (1, 0), (3, 4), (1, 3)), lambda x: x[1:3, 0:4:3], (X,)),
    row("slice-empty", lambda x: lax.slice(x, (1, 2), (3, 2)), lambda x: x[1:3, 2:2], (X,)),
    row("slice_in_dim", lambda x: lax.slice_in_dim(x, 1, -1, 1, 1), lambda x: x[:, 1:-1], (X,)),
    row("index_in_dim", lambda x: lax.index_in_dim(x, -1, 1, False), lambda x: x[:, -1], (X,)),
    row("full", lambda v: lax.full((2, 3), v), lambda v: np.full((2, 3), v), (reals(),)),
    row("full_like", lambda x: lax.full_like(x, 2), lambda x: np.full_like(x, 2), (X,), False,
        "fi"),
]

INDEXING = [
    row("dynamic_slice", lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)),
        lambda x, i, j: x[1:3, 1:4], (X, np.int32(7), np.int32(-3))),
    row("dynamic_slice_in_dim", lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, 1),
        lambda x, i: x[:, 1:3], (X, np.int32(1))),
    row("dynamic_index_in_dim", lambda x, i: lax.dynamic_index_in_dim(x, i, 0, False),
        lambda x, i: x[i], (X, np.int32(-2))),
    row("dynamic_update_slice", lambda x, u, i: lax.dynamic_update_slice(x, u, (i,)), _update,
        (V, reals(2), np.int32(-4))),
    row("dynamic_update_slice_in_dim",
        lambda x, u: lax.dynamic_update_slice_in_dim(x, u, 1, 1),
        lambda x, u: np.concatenate([x[:, :1], u, x[:, 3:]], 1), (X, reals(3, 2))),
    row("dynamic_update_index_in_dim",
        lambda x, u: lax.dynamic_update_index_in_dim(x, u, 1, 0),
        lambda x, u: np.stack([x[0], u, x[2]]), (X, reals(4))),
    row("gather", lambda x, i: lax.gather(x, i, TAKE, (1,), mode="clip"),
        lambda x, i: x[np.clip(i[:, 0], 0, 4)], (V, ints([0], [3], [3], [9], [-1]))),
    row("gather-rows", lambda x, i: lax.gather(x, i, ROWS_OF, (1, 4)), lambda x, i: x[i[:, 0]],
        (X, ints([2], [0], [2])), kinds="fi"),
    row("gather-windows", lambda x, i: lax.gather(x, i, WINDOW, (2, 2)), _windows,
        (X, ints([0, 1], [1, 2]))),
    row("gather-fill", lambda x, i: lax.gather(x, i, TAKE, (1,), fill_value=7.0), _fill,
        (V, ints([0], [3], [5], [-1]))),
    row("gather-paired", lambda x, i: lax.gather(x, i, PAIRED, (1, 2)),
        lambda x, i: np.stack([r[j : j + 2] for r, (j,) in zip(x, i, strict=True)]),
        (X, ints([2], [0], [1]))),
    row("scatter", lambda x, i, u: lax.scatter(x, i, u, PUT), _scatter(lambda a, b: b),
        (V, ints([1], [4], [9]), reals(3)), kinds="fi"),
    row("scatter-clip", lambda x, i, u: lax.scatter(x, i, u, PUT, mode="clip"),
        _scatter(lambda a, b: b, False), (V, ints([1], [9], [-2]), reals(3))),
    row("scatter-repeated", lambda x, i, u: lax.scatter(x, i, u, PUT), _scatter(lambda a, b: b),
        (V, ints([1], [1], [0], [7]), reals(4))),
    row("scatter-unique", lambda x, i, u: lax.scatter(x, i, u, PUT, unique_indices=True),
        _scatter(lambda a, b: b), (V, ints([1], [4], [0]), reals(3))),
    row("scatter_add", lambda x, i, u: lax.scatter_add(x, i, u, PUT), _scatter(np.add),
        (V, ints([1], [1], [9]), reals(3)), kinds="fi"),
    row("scatter_add-rows", lambda x, i, u: lax.scatter_add(x, i, u, PUT_ROWS), _scatter(np.add),
        (X, ints([1], [1]), reals(2, 4))),
    row("scatter_add-windows", lambda x, i, u: lax.scatter_add(x, i, u, PUT_WINDOW), _put_window,
        (X, ints([0, 1], [1, 2]), reals(2, 2, 2))),
    row("scatter_add-paired", lambda x, i, u: lax.scatter_add(x, i, u, PUT_PAIRED), _paired,
        (X, ints([2], [0], [1]), reals(3, 2))),
    row("scatter_sub", lambda x, i, u: lax.scatter_sub(x, i, u, PUT), _scatter(np.subtract),
        (V, ints([1], [1], [9]), reals(3))),
    row("scatter_mul", lambda x, i, u: lax.scatter_mul(x, i, u, PUT, unique_indices=True),
        _scatter(np.multiply), (V, ints([1], [3], [4]), reals(3))),
    row("scatter_mul-repeated", lambda x, i, u: lax.scatter_mul(x, i, u, PUT),
        _scatter(np.multiply), (V, ints([1], [4], [1], [9], [1]), reals(5)), kinds="fi"),
    row("scatter_mul-zeros", lambda x, i, u: lax.scatter_mul(x, i, u, PUT), _scatter(np.multiply),
        (V, ints([1], [4], [1], [0], [4], [1]), np.array([0.0, 2, 0, 0, 3, 1.5]))),
    row("scatter_min", lambda x, i, u: lax.scatter_min(x, i, u, PUT), _scatter(np.minimum),
        (V, ints([1], [1], [9]), reals(3))),
    row("scatter_max", lambda x, i, u: lax.scatter_max(x, i, u, PUT), _scatter(np.maximum),
        (V, ints([1], [1], [9]), reals(3))),
]

REDUCTIONS = [
    row("reduce_sum", lambda x: lax.reduce_sum(x, (0, 2)), lambda x: x.sum((0, 2)),
        (reals(2, 3, 4),)),
    row("reduce_prod", lambda x: lax.reduce_prod(x, (0, 2)), lambda x: x.prod((0, 2)),
        (reals(2, 3, 4),)),
    row("reduce_prod-zeros", lambda x: lax.reduce_prod(x, (0,)), lambda x: x.prod(0),
        (np.array([[0.0, 0, 1], [2, 0, 3], [3, 4, 5]]),)),
    row("reduce_max", lambda x: lax.reduce_max(x, (1,)), lambda x: x.max(1), (distinct(3, 4),),
        kinds="fi"),
    row("reduce_min", lambda x: lax.reduce_min(x, (0, 1)), lambda x: x.min(), (distinct(3, 4),),
        kinds="fi"),
    row("reduce_and", lambda x: lax.reduce_and(lax.gt(x, 0.0), (1,)), lambda x: (x > 0).all(1),
        (X,), False),
    row("reduce_or", lambda x: lax.reduce_or(lax.gt(x, 0.0), (0,)), lambda x: (x > 0).any(0),
        (X,), False),
    row("reduce_xor", lambda x: lax.reduce_xor(lax.gt(x, 0.0), (0,)),
        lambda x: np.logical_xor.reduce(x > 0, 0), (X,), False),
    row("argmax", lambda x: lax.argmax(x, 1, "int32"), lambda x: x.argmax(1).astype(np.int32),
        (X,), False, "fi"),
    row("argmin", lambda x: lax.argmin(x, 0, "int16"), lambda x: x.argmin(0).astype(np.int16),
        (X,), False, "fi"),
    *[row(f"{name}{'-reverse' if reverse else ''}-{axis}",
          partial(getattr(lax, name), axis=axis, reverse=reverse),
          _cum(function, axis, reverse), (distinct(5, 4),))
      for name, function in (("cumsum", np.add), ("cumprod", np.multiply),
                             ("cummax", np.maximum), ("cummin", np.minimum),
                             ("cumlogsumexp", np.logaddexp))
      for axis, reverse in ((0, False), (1, True))],
    row("cumprod-zeros", lax.cumprod, np.cumprod, (np.array([2.0, 0, 3, 0, 1]),)),
    row("cumsum-one", lax.cumsum, np.cumsum, (reals(1),)),
    row("cumsum-empty", lax.cumsum, np.cumsum, (reals(0),)),
    row("sort", lax.sort, np.sort, (distinct(3, 4),), kinds="fi"),
    row("sort-0", lambda x: lax.sort(x, 0), lambda x: np.sort(x, 0), (distinct(3, 4),)),
    row("sort-keys", lambda k, x, y: lax.sort((k, x, y), num_keys=2),
        lambda k, x, y: [a[np.lexsort((x, k))] for a in (k, x, y)],
        (ints(2, 1, 2, 1, 0), V, reals(5, seed=1))),
    row("sort_key_val", lax.sort_key_val,
        lambda x, y: [np.sort(x), np.take_along_axis(y, np.argsort(x), -1)], (distinct(3, 4), X)),
    row("top_k", lambda x: lax.top_k(x, 2)[0], lambda x: -np.sort(-x)[..., :2], (distinct(3, 4),)),
    row("top_k-axis", lambda x: lax.top_k(x, 2, axis=0)[1],
        lambda x: np.argsort(-x, 0)[:2].astype(np.int32), (distinct(3, 4),), False),
]

ALL = (*STRUCTURE, *INDEXING, *REDUCTIONS)
