"""vmap: a Python loop over the examples is the oracle; axis specifications; errors."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import olympus
from olympus import lax, numpy as onp

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = A.T + 1
I = np.arange(3)
V = np.array([1.0, -2.0, 0.5], np.float32)


def mul(x: Any, y: Any) -> Any:
    return lax.mul(x, y)


def close(found: Any, wanted: Any) -> None:
    found_leaves, found_tree = olympus.tree.flatten(found)
    leaves, tree = olympus.tree.flatten(wanted)
    assert found_tree == tree
    for a, b in zip(found_leaves, leaves, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6)


class Scaled:
    """A callable object; its name is none."""

    __name__: Any = 3
    factor = 3.0

    def __call__(self, x: Any) -> Any:
        return mul(x, self.factor)


CASES: list[tuple[str, Callable[[], Any], Any]] = [
    ("both", lambda: olympus.vmap(mul)(A, A), A * A),
    ("shared", lambda: olympus.vmap(mul, in_axes=(0, None))(A, V), A * V),
    ("second axis", lambda: olympus.vmap(mul, in_axes=(0, 1))(A, B), A * B.T),
    ("negative", lambda: olympus.vmap(mul, in_axes=(0, -1))(A, B), A * B.T),
    ("list", lambda: olympus.vmap(mul, in_axes=[0, 1])(A, B), A * B.T),
    ("out", lambda: olympus.vmap(mul, in_axes=(0, 1), out_axes=1)(A, B), (A * B.T).T),
    ("out negative", lambda: olympus.vmap(mul, out_axes=-1)(A, A), (A * A).T),
    ("keyword", lambda: olympus.vmap(mul, in_axes=1)(B, y=A), B.T * A),
    ("prefix", lambda: olympus.vmap(lambda d: mul(d["a"][0], d["b"]),
                                    in_axes=({"a": 0, "b": None},))({"a": [A], "b": V}), A * V),
    ("out prefix", lambda: olympus.vmap(lambda x: {"x": (x, x), "y": x},
                                        out_axes={"x": 1, "y": 0})(A),
     {"x": (A.T, A.T), "y": A}),
    ("out none", lambda: olympus.vmap(lambda x: (x, 2.0 * V), out_axes=(0, None))(A), (A, 2 * V)),
    ("constant", lambda: olympus.vmap(lambda x: V)(A), np.stack([V, V])),
    ("axis_size", lambda: olympus.vmap(lambda: V, axis_size=2)(), np.stack([V, V])),
    ("sum_match", lambda: olympus.vmap(lambda x: x, out_axes=None, sum_match=True)(A), A.sum(0)),
    ("nested", lambda: olympus.vmap(olympus.vmap(mul), in_axes=(0, None))(A, V), A * V),
    ("jit", lambda: olympus.jit(olympus.vmap(mul))(A, A), A * A),
    ("of jit", lambda: olympus.vmap(olympus.jit(mul))(A, A), A * A),
    ("of any object", lambda: olympus.vmap(
        lambda x, s, f, d: f(x) if s == "text" and d["a"] == 0 else 0,
        in_axes=(0, None, None, {"a": None}))(
        V, "text", lambda x: mul(x, x), {"a": 0}), V * V),
    ("object in a pytree", lambda: olympus.vmap(
        lambda d: mul(d["x"], d["f"].factor), in_axes=({"x": 0, "f": None},))(
            {"x": V, "f": Scaled()}), 3 * V),
    ("callable whose name is no string", lambda: olympus.vmap(Scaled())(V), 3 * V),
    ("select by a number", lambda: olympus.vmap(lambda x: onp.where(True, x, 1.))(V), V),
    ("select_n by a number", lambda: olympus.vmap(
        lambda x: lax.select_n(np.int32(2), x, 2., 3.))(V), 0 * V + 3),
    ("select by a number, axis 1", lambda: olympus.vmap(
        lambda x: onp.where(np.False_, 1., x), in_axes=1, out_axes=1)(A), A),
    ("grad", lambda: olympus.vmap(olympus.grad(lambda x: lax.mul(x, x)))(V), 2 * V),
]


@pytest.mark.parametrize(("call", "wanted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_values(call: Callable[[], Any], wanted: Any) -> None:
    close(call(), wanted)


def loop_body(c: Any, x: Any) -> Any:
    c = lax.add(lax.mul(c, x), 1.0)
    return c, lax.sin(c)


OPERATIONS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: lax.dot_general(x, y, (((0,), (0,)), ((), ()))),
    lambda x, y: lax.scan(loop_body, y, lax.broadcast_in_dim(x, (2, 3), (1,)))[1],
    lambda x, y: lax.cond(lax.gt(lax.reduce_sum(x, (0,)), 4.0), lax.add, lax.mul, x, y),
    lambda x, y: lax.while_loop(lambda c: lax.lt(lax.reduce_sum(c, (0,)), 40.0),
                                lambda c: lax.add(lax.mul(c, 2.0), y), x),
    lambda x, y: lax.concatenate([x, y], 0),
]


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("f", OPERATIONS, ids=["dot", "scan", "cond", "while", "concatenate"])
def test_is_a_loop(f: Callable, axes: tuple) -> None:
    args = [A + 1 if d == 0 else V * V for d in axes]
    rows = [f(*[a[i] if d == 0 else a for a, d in zip(args, axes, strict=True)])
            for i in range(2)]
    np.testing.assert_allclose(np.asarray(olympus.vmap(f, axes)(*args)),
                               np.stack([np.asarray(r) for r in rows]), rtol=1e-6)


def test_derivatives_of_integers_through_vmap() -> None:
    slopes = [olympus.vmap(lambda x: olympus.vjp(lambda a, n: a * n, x, 2)[1](x))(V),
              olympus.vmap(lambda x, n: olympus.vjp(lambda a, n: a * n, x, n)[1](x))(V, I),
              olympus.vmap(olympus.vmap(lambda x: olympus.vjp(lambda a, n: a * n, x, 2)[1](x)))(A)]
    for (dx, dn), x, n in zip(slopes, (V, V, A), (2, I, 2), strict=True):
        np.testing.assert_array_equal(dx, x * n)
        assert (dn.shape, dn.dtype) == (x.shape, olympus.float0)
    zeros = np.zeros((3, 2), olympus.float0)
    out = olympus.vmap(lambda z, x: (z, x), in_axes=(0, 0), out_axes=(1, 0))(zeros, V)[0]
    assert (out.shape, out.dtype) == ((2, 3), olympus.float0)


ERRORS: list[tuple[Callable[[], Any], type, str]] = [
    (lambda: olympus.vmap(lambda x, y: x)(A, {"k": B}), ValueError,
     "one axis had size 2: axis 0 of argument x of type float32[2,3];\n"
     "  * one axis had size 3: axis 0 of argument y['k'] of type float32[3,2]"),
    (lambda: olympus.vmap(mul)(A, y=B), ValueError, "axis 0 of kwargs['y'] of type float32[3,2]"),
    (lambda: olympus.vmap(mul, axis_size=4)(A, A), ValueError, "the `axis_size` argument was 4"),
    (lambda: olympus.vmap(mul, in_axes=(0, 2))(A, A), ValueError, "at least 3, but is only 2"),
    (lambda: olympus.vmap(lambda x: x)(1.0), ValueError, "rank should be at least 1"),
    (lambda: olympus.vmap(mul, in_axes=(0,))(A, A), ValueError, "len(in_axes)=1, len(args)=2"),
    (lambda: olympus.vmap(mul, in_axes=(0, (0, 0)))(A, [A]), ValueError, "vmap in_axes"),
    (lambda: olympus.vmap(mul, in_axes=None)(A, A), ValueError, "at least one non-None value"),
    (lambda: olympus.vmap(lambda: 1.0)(), ValueError, "without any array"),
    (lambda: olympus.vmap(mul, in_axes="a"), TypeError, "but got 'a'"),
    (lambda: olympus.vmap(mul, in_axes=(0, 1.5)), TypeError, "the leaf 1.5"),
    (lambda: olympus.vmap(mul, in_axes=(0, True)), TypeError, "the leaf True"),
    (lambda: olympus.vmap(mul, in_axes=True), TypeError, "but got True"),
    (lambda: olympus.vmap(mul, out_axes=False), TypeError, "the leaf False"),
    (lambda: olympus.vmap(mul, axis_name=["i"]), TypeError, "axis_name=['i'] of type list"),
    (lambda: olympus.vmap(mul)(V, "s"), TypeError, "argument y of"),
    (lambda: olympus.vmap(mul, out_axes=None)(A, A), ValueError, "got axis spec None"),
    (lambda: olympus.vmap(mul, out_axes=2)(A, A), ValueError, "axis 2 is out of bounds"),
    (lambda: olympus.vmap(mul, out_axes=(0, 0))(A, A), ValueError, "vmap out_axes"),
    (lambda: olympus.vmap(lambda x: x)("s"), TypeError, "argument x of <lambda>: 's' of type"),
    (lambda: olympus.vmap(lambda x: "s")(A), TypeError, "a value of type <class 'str'>"),
    (lambda: olympus.vmap(3), TypeError, "Expected a callable value"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS, ids=[e[2] for e in ERRORS])
def test_errors(call: Callable[[], Any], error: type, text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


def _rows(*dtypes: str) -> list[Any]:
    return [np.ones((2, 2), dtype) for dtype in dtypes]


@pytest.mark.parametrize("fun, args", [
    (lambda x: lax.fft(x, "fft", 2), [np.ones(2, "c8")]),
    (lax.linalg.lu, _rows("f4")), (lax.linalg.qr, _rows("f4")), (lax.linalg.svd, _rows("f4")),
    (lax.linalg.eig, _rows("f4")), (lax.linalg.hessenberg, _rows("f4")),
    (lax.linalg.tridiagonal, _rows("f4")), (lax.linalg.triangular_solve, _rows("f4", "f4")),
    (lambda b: lax.linalg.triangular_solve(np.eye(2, dtype="f4"), b), [np.ones(2, "f4")]),
    (lax.linalg.symmetric_product, _rows("f4", "f4")),
    (lax.linalg.cholesky_update, [np.ones((2, 2), "f4"), np.ones(2, "f4")]),
    (lambda x: lax.linalg.lu_pivots_to_permutation(x, 2), [np.ones(2, "i4")]),
    (lambda c: lax.polynomial(np.float32(2), c), [np.ones(2, "f4")]),
    (lambda x: lax.bitcast_convert_type(x, "int32"), [np.ones(4, "u1")]),
    (olympus.random.wrap_key_data, [np.ones(2, "u4")]),
    (olympus.random.normal, [np.ones(2, "u4")])])
def test_the_mapped_axis_is_not_taken_for_an_axis_that_the_elements_lack(fun, args):
    with pytest.raises((TypeError, ValueError)) as one:
        fun(*(x[0] for x in args))
    for mapped in (olympus.vmap(fun), olympus.jit(olympus.vmap(fun))):
        with pytest.raises(one.type, match="required"):
            mapped(*args)
