"""Structure, indexing, reductions, cumulative operations and sorting: values and rules."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from ops import lax_shape as rows

from olympus import lax
from olympus._src.base.config import enable_x64
from olympus._src.transforms.autodiff import jvp, vjp
from olympus._src.transforms.jit import jit
from olympus._src.transforms.vmap import vmap

EVERY = [pytest.param(row, id=row.name) for row in rows.ALL]
SMOOTH = [pytest.param(row, id=row.name) for row in rows.ALL if row.grad]


@pytest.fixture(autouse=True)
def _x64() -> Any:
    with enable_x64(True):
        yield


def leaves(out: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in (out if isinstance(out, (list, tuple)) else [out])]


def assert_equal(actual: Any, expected: Any, tol: float = 1e-12) -> None:
    actual, expected = leaves(actual), leaves(expected)
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        np.testing.assert_allclose(a, e, rtol=tol, atol=tol)


def is_real(x: Any) -> bool:
    return np.asarray(x).dtype.kind == "f"


def split(row: rows.Row) -> tuple[Any, list[Any]]:
    """The row's function of its floating arguments, and those."""
    reals = [np.asarray(a) for a in row.args if is_real(a)]

    def fun(*xs: Any) -> list[Any]:
        given = iter(xs)
        out = row.fun(*[next(given) if is_real(a) else a for a in row.args])
        out = out if isinstance(out, (list, tuple)) else [out]
        return [x for x in out if np.dtype(x.dtype).kind == "f"]
    return fun, reals


@pytest.mark.parametrize("row", EVERY)
def test_oracle(row: rows.Row) -> None:
    expected = row.oracle(*row.args)
    assert_equal(row.fun(*row.args), expected)
    assert_equal(jit(row.fun)(*row.args), expected)


@pytest.mark.parametrize("row", SMOOTH)
def test_jvp(row: rows.Row, rng: np.random.Generator) -> None:
    fun, xs = split(row)
    for active in itertools.product((True, False), repeat=len(xs)):
        if not any(active):
            continue
        ts = [rng.normal(size=x.shape) * a for x, a in zip(xs, active, strict=True)]

        def along(*varied: Any, active: Any = active) -> list[Any]:
            given = iter(varied)
            return fun(*[next(given) if a else x for a, x in zip(active, xs, strict=True)])

        moving = [x for x, a in zip(xs, active, strict=True) if a]
        out, tangents = jvp(along, tuple(moving),
                            tuple(t for t, a in zip(ts, active, strict=True) if a))
        assert_equal(out, fun(*xs))
        eps = 1e-6
        high, low = [leaves(fun(*[x + s * eps * t for x, t in zip(xs, ts, strict=True)]))
                     for s in (1, -1)]
        assert_equal(tangents, [(h - m) / (2 * eps) for h, m in zip(high, low, strict=True)], 1e-6)


@pytest.mark.parametrize("row", SMOOTH)
def test_vjp(row: rows.Row, rng: np.random.Generator) -> None:
    fun, xs = split(row)
    ts = [rng.normal(size=x.shape) for x in xs]
    _, tangents = jvp(fun, tuple(xs), tuple(ts))
    outs, pull = vjp(fun, *xs)
    cts = [rng.normal(size=np.shape(o)) for o in outs]
    back = pull(cts)
    forward = sum(np.vdot(c, np.asarray(t)) for c, t in zip(cts, tangents, strict=True))
    assert [np.shape(b) for b in back] == [x.shape for x in xs]
    backward = sum(np.vdot(np.asarray(b), t) for b, t in zip(back, ts, strict=True))
    np.testing.assert_allclose(backward, forward, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("row", SMOOTH)
def test_second_order(row: rows.Row, rng: np.random.Generator) -> None:
    """The tangent map itself, differentiated: jvp of jvp against differences of jvp."""
    fun, xs = split(row)
    ts, ss = [[rng.normal(size=x.shape) for x in xs] for _ in range(2)]

    def tangent(*at: Any) -> list[Any]:
        return jvp(fun, at, tuple(ts))[1]

    _, second = jvp(tangent, tuple(xs), tuple(ss))
    eps = 1e-5
    high, low = [leaves(tangent(*[x + k * eps * s for x, s in zip(xs, ss, strict=True)]))
                 for k in (1, -1)]
    assert_equal(second, [(h - m) / (2 * eps) for h, m in zip(high, low, strict=True)], 1e-6)


def variants(x: Any) -> list[np.ndarray]:
    x = np.asarray(x)
    if x.dtype.kind == "f":
        return [x, x[..., ::-1] * 1.5 if x.ndim else x * 1.5, x + 0.25]
    return [x, np.roll(x, 1), x - x.dtype.type(1)] if x.ndim else [x, x + x.dtype.type(1), x * 0]


@pytest.mark.parametrize("row", EVERY)
def test_vmap(row: rows.Row) -> None:
    """Every combination of mapped arguments, mapped at the front and at the back."""
    if "unique" in row.name or "scatter_mul" in row.name or row.name == "gather windows":
        stacks = [[np.asarray(a)] * 3 if not is_real(a) else variants(a) for a in row.args]
    else:
        stacks = [variants(a) for a in row.args]
    for mapped in itertools.product((None, 0, -1), repeat=len(row.args)):
        if all(m is None for m in mapped):
            continue
        given = [a if m is None else np.stack(s, m)
                 for a, s, m in zip(row.args, stacks, mapped, strict=True)]
        looped = [leaves(row.fun(*[a if m is None else s[k] for a, s, m in
                                   zip(row.args, stacks, mapped, strict=True)])) for k in range(3)]
        actual = vmap(row.fun, in_axes=mapped)(*given)
        assert_equal(actual, [np.stack(parts) for parts in zip(*looped, strict=True)])


NAN = np.float32("nan")
SPECIAL = np.array([3.0, NAN, 1.0, -NAN, -0.0, 0.0, -np.inf], np.float32)


def test_nan_order() -> None:
    values, order = lax.sort((SPECIAL, np.arange(7)))
    assert order.tolist() == [6, 4, 5, 2, 0, 1, 3] and np.isnan(np.asarray(values)[-2:]).all()
    assert (int(lax.argmax(SPECIAL, 0, "int32")), int(lax.argmin(SPECIAL, 0, "int32"))) == (1, 1)
    assert np.isnan(lax.reduce_max(SPECIAL, (0,))) and np.isnan(lax.reduce_min(SPECIAL, (0,)))
    assert np.isnan(np.asarray(lax.cummax(SPECIAL))[1:]).all()
    assert lax.sort((np.array([0.0, -0.0]), np.arange(2)))[1].tolist() == [0, 1]


def test_complex_order() -> None:
    x = np.array([1 + 2j, 1 + 1j, 5j, complex(NAN, 0)])
    assert np.asarray(lax.sort(x))[:3].tolist() == [5j, 1 + 1j, 1 + 2j]
    assert complex(lax.reduce_max(x[:3], (0,))) == 1 + 2j


def test_ties_share() -> None:
    x = np.array([1.0, 1.0, 0.0])
    back = vjp(lambda v: lax.reduce_max(v, (0,)), x)[1](1.0)[0]
    assert np.asarray(back).tolist() == [0.5, 0.5, 0]
    assert np.asarray(vjp(lax.cummax, x)[1](np.ones(3))[0]).tolist() == [2, 1, 0]


@pytest.mark.parametrize(("dtype", "value"), [
    ("int32", -(2**31)), ("uint8", 255), ("bool", True), ("float32", NAN)])
def test_fill_defaults(dtype: str, value: Any) -> None:
    out = lax.gather(np.zeros(3, dtype), rows.ints([5]), rows.TAKE, (1,), mode="fill")
    np.testing.assert_array_equal(np.asarray(out), np.array([value], dtype))


@pytest.mark.parametrize(("dtype", "size"), [("int8", 200), ("uint8", 300)])
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_narrow_indices(dtype: str, size: int, mode: str) -> None:
    """Indices whose dtype cannot hold the axis's size."""
    index = np.array([[100]], dtype)
    x = np.arange(size, dtype=np.float32)
    assert lax.gather(x, index, rows.TAKE, (1,), mode=mode).tolist() == [100]
    assert np.asarray(lax.dynamic_slice(x, (index[0, 0],), (1,))).tolist() == [100]
    written = lax.scatter(x, index, np.float32([-1]), rows.PUT, mode=mode)
    assert np.asarray(written)[100] == -1


def test_empty_axes() -> None:
    assert float(lax.reduce_max(np.zeros((0,)), (0,))) == -np.inf
    assert float(lax.reduce_prod(np.zeros((0,)), (0,))) == 1.0
    assert float(jvp(lambda x: lax.reduce_prod(x, (0,)), (np.zeros(0),), (np.zeros(0),))[1]) == 0
    assert lax.concatenate([np.zeros((0, 2)), np.ones((1, 2))], 0).shape == (1, 2)


ERRORS = [
    (lambda x: lax.squeeze(x, (0,)), ValueError, "cannot select an axis to squeeze out"),
    (lambda x: lax.concatenate([], 0), ValueError, "no operands given"),
    (lambda x: lax.concatenate([x, np.ones((2, 2))], 0), TypeError, "equal sizes are required"),
    (lambda x: lax.concatenate([x, rows.ints([1])], 0), TypeError, "one dtype is required"),
    (lambda x: lax.slice(x, (0, 0), (9, 1)), TypeError, "start <= limit <= size"),
    (lambda x: lax.slice(x, (0,), (1,)), TypeError, "one entry per axis"),
    (lambda x: lax.reshape(x, (5,)), TypeError, "the numbers must be equal"),
    (lambda x: lax.transpose(x, (0, 0)), TypeError, "permutation of range"),
    (lambda x: lax.rev(x, (0, 0)), ValueError, "name each axis once"),
    (lambda x: lax.tile(x, (2,)), TypeError, "one number of repeats per axis"),
    (lambda x: lax.broadcast_in_dim(x, (2,), (0,)), TypeError, "one increasing result axis"),
    (lambda x: lax.broadcast(x, (-1,)), ValueError, "not negative"),
    (lambda x: lax.broadcast_to_rank(x, 1), ValueError, "at least 2 is required"),
    (lambda x: lax.collapse(x, 1, 1), ValueError, "at least one axis"),
    (lambda x: lax.pad(x, 0.0, [(-9, 0, 0), (0, 0, 0)]), ValueError, "not negative are required"),
    (lambda x: lax.pad(x, np.int32(0), [(1, 0, 0)] * 2), TypeError, "scalar of the operand's"),
    (lambda x: lax.split(x, (1, 1)), ValueError, "sum to 3"),
    (lambda x: lax.index_in_dim(x, 5), IndexError, "out of bounds for axis 0 with size 3"),
    (lambda x: lax.full((2,), x), TypeError, "a scalar is required"),
    (lambda x: lax.iota("bool", 2), TypeError, "numeric dtype"),
    (lambda x: lax.dynamic_slice(x, (0, 0), (5, 1)), TypeError, "at most the axis's"),
    (lambda x: lax.dynamic_slice(x, (0.0, 0), (1, 1)), TypeError, "integers are required"),
    (lambda x: lax.dynamic_slice(x, (0,), (1, 1)), TypeError, "one per axis is required"),
    (lambda x: lax.dynamic_update_slice(x, np.ones((5, 1)), (0, 0)), TypeError, "not larger"),
    (lambda x: lax.gather(x[0], np.ones((1, 1)), rows.TAKE, (1,)), TypeError, "integer dtype"),
    (lambda x: lax.gather(x, rows.ints([0, 0]), rows.ROWS_OF, (1, 4)), TypeError, "size 1 is"),
    (lambda x: lax.gather(x, rows.ints([0]), rows.ROWS_OF, (1, 9)), TypeError, "one size per axis"),
    (lambda x: lax.gather(x, rows.ints([0]), rows.ROWS_OF, (1, 4), mode="wrap"), ValueError,
     "mode"),
    (lambda x: lax.scatter(x[0], rows.ints([0]), np.ones(2), rows.PUT), TypeError, "must be (1,)"),
    (lambda x: lax.scatter(x[0], rows.ints([0]), rows.ints(1), rows.PUT), TypeError, "one dtype"),
    (lambda x: lax.reduce_sum(x > 0, (0,)), TypeError, "numeric dtype is required"),
    (lambda x: lax.reduce_sum(x, (3,)), ValueError, "out of bounds"),
    (lambda x: lax.reduce_and(x, (0,)), TypeError, "dtypes accepted are bool"),
    (lambda x: lax.argmax(x[:0], 0, "int32"), ValueError, "at least one element"),
    (lambda x: lax.argmax(x, 0, "float32"), TypeError, "integer dtype"),
    (lambda x: lax.argmax(x + 1j, 0, "int32"), TypeError, "dtypes accepted"),
    (lambda x: lax.cumsum(x, 5), ValueError, "out of bounds"),
    (lambda x: lax.cumsum(x > 0), TypeError, "dtypes accepted"),
    (lambda x: lax.sort((x, x[0])), TypeError, "equal shapes"),
    (lambda x: lax.sort(x, num_keys=3), ValueError, "1 to 1 is required"),
    (lambda x: lax.top_k(x, 9), ValueError, "at most the axis's size"),
]


@pytest.mark.parametrize(("fun", "error", "message"), ERRORS,
                         ids=[f"{i} {message}" for i, (*_, message) in enumerate(ERRORS)])
def test_errors(fun: Any, error: type, message: str) -> None:

    with pytest.raises(error, match=re.escape(message)):
        fun(np.ones((3, 4)))


def test_scatter_mul_refuses_repeated_updates() -> None:
    with pytest.raises(NotImplementedError, match="unique_indices=True"):
        jvp(lambda u: lax.scatter_mul(rows.V, rows.ints([1]), u, rows.PUT), (np.ones(1),),
            (np.ones(1),))
