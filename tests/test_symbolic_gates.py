"""Programs traced over dimensions that are no numbers: the gates that symbolic shapes go through.

Whatever code asks more of a dimension than types/shape.py offers fails here. Nothing is lowered.
"""

import ast
from collections.abc import Callable
from typing import Any

import check_style
import pytest

import olympus
import olympus.numpy as onp
from olympus import export, lax, nn, random
from olympus.errors import InconclusiveDimensionOperation

b, n = export.symbolic_shape("b, n", constraints=["b >= 4", "n >= 4"])


def arg(*shape: Any, dtype: Any = "float32") -> olympus.ShapeDtypeStruct:
    return olympus.ShapeDtypeStruct(shape, dtype)


X, M, I = arg(b), arg(b, 8), arg(b, dtype="int32")
IMAGE = arg(b, 3, 16, 16)
KERNEL = arg(5, 3, 3, 3)


def attention(q, k, v):
    return onp.einsum("bqk,bkd->bqd", nn.softmax(onp.einsum("bqd,bkd->bqk", q, k) / 3.0), v)


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / onp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def lstm_step(x, h, c, w):
    i, f, g, o = onp.split(onp.concatenate([x, h], axis=1) @ w, 4, axis=1)
    c = nn.sigmoid(f) * c + nn.sigmoid(i) * onp.tanh(g)
    return nn.sigmoid(o) * onp.tanh(c), c


def mlp_loss(w, x, y):
    return onp.mean((nn.relu(x @ w) - y) ** 2) + layer_norm(x).sum()


def row(name: str, function: Callable, *args: Any, shape: Any) -> Any:
    return pytest.param(function, args, shape, id=name)


ROWS = [
    # kind, program, arguments, shapes of its results
    row("elementwise", lambda x: onp.sin(x) * 2 + x ** 2, X, shape=(b,)),
    row("x * b", lambda x: x * x.shape[0] + (x.shape[0] - x), X, shape=(b,)),
    row("compare", lambda x: (x > 0) & (x < 1), X, shape=(b,)),
    row("broadcasting", lambda x, y: x[:, None] + y, X, arg(1, n), shape=(b, n)),
    row("broadcast_to", lambda x: onp.broadcast_to(x, (3, x.shape[0])), X, shape=(3, b)),
    row("matmul", lambda x, y: x @ y, M, arg(8, n), shape=(b, n)),
    row("matmul contracted", lambda x, y: x.T @ y, M, M, shape=(8, 8)),
    row("einsum", lambda x, y: onp.einsum("bi,bj->ij", x, y), M, M, shape=(8, 8)),
    row("dot_general", lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
        arg(b, 3, n), arg(b, n, 5), shape=(b, 3, 5)),
    row("tensordot", lambda x, y: onp.tensordot(x, y, 1), arg(b, n), arg(n, 3), shape=(b, 3)),
    row("outer", onp.outer, X, arg(n), shape=(b, n)),
    row("softmax", nn.softmax, arg(3, b), shape=(3, b)),
    row("logsumexp", nn.logsumexp, X, shape=()),
    row("mean", onp.mean, X, shape=()),
    row("mean axis", lambda x: x.mean(0, keepdims=True), M, shape=(1, 8)),
    row("var", onp.var, X, shape=()),
    row("sum", lambda x: x.sum(1), M, shape=(b,)),
    row("max", lambda x: x.max(), X, shape=()),
    row("argmax", onp.argmax, X, shape=()),
    row("cumsum", onp.cumsum, X, shape=(b,)),
    row("sort", onp.sort, X, shape=(b,)),
    row("argsort", onp.argsort, X, shape=(b,)),
    row("top_k", lambda x: lax.top_k(x, 2), M, shape=((b, 2), (b, 2))),
    row("top_k of b", lambda x: lax.top_k(x, 2)[0], X, shape=(2,)),
    row("reshape -1", lambda x: x.reshape(-1, 4), M, shape=(2 * b, 4)),
    row("reshape explicit", lambda x: x.reshape(x.shape[0], 2, 4), M, shape=(b, 2, 4)),
    row("reshape -1 of b", lambda x: x.reshape(x.shape[0], -1), arg(b, 3, 4), shape=(b, 12)),
    row("ravel", lambda x: x.ravel(), M, shape=(8 * b,)),
    row("transpose", lambda x: x.T, M, shape=(8, b)),
    row("squeeze", lambda x: x.squeeze(1), arg(b, 1), shape=(b,)),
    row("expand_dims", lambda x: onp.expand_dims(x, 0), X, shape=(1, b)),
    row("moveaxis", lambda x: onp.moveaxis(x, 0, -1), arg(b, 2, 3), shape=(2, 3, b)),
    row("concatenate", lambda x, y: onp.concatenate([x, y]), X, arg(n), shape=(b + n,)),
    row("concatenate static", lambda x: onp.concatenate([x, onp.ones(3)]), X, shape=(b + 3,)),
    row("stack", lambda x, y: onp.stack([x, y]), X, X, shape=(2, b)),
    row("pad", lambda x: onp.pad(x, 2), X, shape=(b + 4,)),
    row("pad edge", lambda x: onp.pad(x, 2, mode="edge"), X, shape=(b + 4,)),
    row("pad b", lambda x: onp.pad(x, (x.shape[0], 1)), X, shape=(2 * b + 1,)),
    row("lax pad", lambda x: lax.pad(x, 0.0, [(1, -1, 1)]), X, shape=(2 * b - 1,)),
    row("x[1:]", lambda x: x[1:], X, shape=(b - 1,)),
    row("x[:-1]", lambda x: x[:-1], X, shape=(b - 1,)),
    row("x[:3]", lambda x: x[:3], X, shape=(3,)),
    row("x[-2:]", lambda x: x[-2:], X, shape=(2,)),
    row("x[::2]", lambda x: x[::2], X, shape=((b + 1) // 2,)),
    row("x[::-1]", lambda x: x[::-1], X, shape=(b,)),
    row("x[:, 1:]", lambda x: x[:, 1:], M, shape=(b, 7)),
    row("x[0]", lambda x: x[0], X, shape=()),
    row("x[5]", lambda x: x[5], M, shape=(8,)),
    row("x.at[::2].set", lambda x: x.at[::2].set(0), X, shape=(b,)),
    row("x[-1]", lambda x: x[-1], M, shape=(8,)),
    row("x[idx]", lambda x, i: x[i], X, arg(n, dtype="int32"), shape=(n,)),
    row("x[:, idx]", lambda x, i: x[:, i], M, arg(dtype="int32"), shape=(b,)),
    row("x.at[0].set", lambda x: x.at[0].set(1.0), X, shape=(b,)),
    row("x.at[1:].add", lambda x: x.at[1:].add(1.0), X, shape=(b,)),
    row("x.at[idx].add", lambda x, i: x.at[i].add(1.0), X, arg(n, dtype="int32"), shape=(b,)),
    row("where", lambda x: onp.where(x > 0, x, 0), X, shape=(b,)),
    row("one_hot", lambda i: nn.one_hot(i, 10), I, shape=(b, 10)),
    row("arange(b)", lambda x: onp.arange(x.shape[0]), X, shape=(b,)),
    row("zeros((b,))", lambda x: onp.zeros((x.shape[0], 2)), X, shape=(b, 2)),
    row("ones_like", onp.ones_like, X, shape=(b,)),
    row("full", lambda x: onp.full(x.shape, 3), X, shape=(b,)),
    row("iota", lambda x: lax.iota("int32", x.shape[0]), X, shape=(b,)),
    row("broadcasted_iota", lambda x: lax.broadcasted_iota("int32", x.shape, 1), M, shape=(b, 8)),
    row("eye", lambda x: onp.eye(x.shape[0]), X, shape=(b, b)),
    row("tril", onp.tril, arg(b, b), shape=(b, b)),
    row("diagonal", lambda x: onp.diagonal(x), arg(b, b), shape=(b,)),
    row("repeat", lambda x: onp.repeat(x, 3), X, shape=(3 * b,)),
    row("tile", lambda x: onp.tile(x, 3), X, shape=(3 * b,)),
    row("roll", lambda x: onp.roll(x, 1), X, shape=(b,)),
    row("roll traced", lambda x, i: onp.roll(x, i), X, arg(dtype="int32"), shape=(b,)),
    row("flip", onp.flip, X, shape=(b,)),
    row("split", lambda x: onp.split(x, 2, axis=1), M, shape=((b, 4), (b, 4))),
    row("split in halves", lambda x: onp.split(x, 2), arg(2 * b), shape=((b,), (b,))),
    row("split of b", lambda x: onp.split(x, [2]), X, shape=((2,), (b - 2,))),
    row("take", lambda x: onp.take(x, onp.array([0, 2]), axis=0), M, shape=(2, 8)),
    row("take_along_axis", lambda x, i: onp.take_along_axis(x, i, 1), M,
        arg(b, 1, dtype="int32"), shape=(b, 1)),
    row("scatter", lambda x, i: onp.zeros((5, 8)).at[i].add(x), M, I, shape=(5, 8)),
    row("scan", lambda x: lax.scan(lambda c, e: (c + e, c), 0.0, x), X, shape=((), (b,))),
    row("scan carry", lambda x: lax.scan(lambda c, e: (c + e, None), x, onp.ones(5))[0], X,
        shape=(b,)),
    row("map", lambda x: lax.map(onp.sin, x), X, shape=(b,)),
    row("vmap", lambda x: olympus.vmap(lambda r: r @ r)(x), M, shape=(b,)),
    row("vmap of scan", olympus.vmap(lambda x: lax.scan(lambda c, e: (c + e, c), 0.0, x)), M,
        shape=((b,), (b, 8))),
    row("cond", lambda x: lax.cond(x[0] > 0, onp.sin, onp.cos, x), X, shape=(b,)),
    row("while", lambda x: lax.while_loop(lambda c: c.sum() > 1, lambda c: c / 2, x), X,
        shape=(b,)),
    row("fori_loop(0, b)", lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.0), X,
        shape=()),
    row("jit", olympus.jit(lambda x: x + 1), X, shape=(b,)),
    row("remat", olympus.checkpoint(lambda x: onp.sin(x) * x), X, shape=(b,)),
    row("conv batch", lambda x, k: lax.conv(x, k, (1, 1), "SAME"), IMAGE, KERNEL,
        shape=(b, 5, 16, 16)),
    row("conv spatial", lambda x, k: lax.conv(x, k, (1, 1), "VALID"), arg(2, 3, b, n), KERNEL,
        shape=(2, 5, b - 2, n - 2)),
    row("conv spatial same", lambda x, k: lax.conv(x, k, (1, 1), "SAME"), arg(2, 3, b, n), KERNEL,
        shape=(2, 5, b, n)),
    row("conv spatial stride", lambda x, k: lax.conv(x, k, (2, 2), "VALID"), arg(2, 3, b, 16),
        KERNEL, shape=(2, 5, (b - 3) // 2 + 1, 7)),
    row("reduce_window", lambda x: lax.reduce_window(x, -onp.inf, lax.max, (1, 2, 2), (1, 2, 2),
        "VALID"), arg(b, 8, 8), shape=(b, 4, 4)),
    row("reduce_window of b", lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (1,), "VALID"),
        X, shape=(b - 2,)),
    row("same pooling", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (1, 1), "SAME"),
        arg(8, b), shape=(8, b)),
    row("layer norm", layer_norm, M, shape=(b, 8)),
    row("attention", attention, *(arg(b, n, 16),) * 3, shape=(b, n, 16)),
    row("lstm step", lstm_step, M, arg(b, 4), arg(b, 4), arg(12, 16), shape=((b, 4), (b, 4))),
    row("grad of loss", olympus.grad(mlp_loss), arg(8, 3), M, arg(b, 3), shape=(8, 3)),
    row("grad of input", olympus.grad(mlp_loss, 1), arg(8, 3), M, arg(b, 3), shape=(b, 8)),
    row("grad of indexing", olympus.grad(lambda x: (x[1:] * x[:-1]).sum() + x[0] + x[-1]), X,
        shape=(b,)),
    row("grad of scan", olympus.grad(lambda x: lax.scan(lambda c, e: (c * e, c), 1.0, x)[0]), X,
        shape=(b,)),
    row("grad of conv", olympus.grad(lambda k, x: lax.conv(x, k, (1, 1), "SAME").sum()), KERNEL,
        IMAGE, shape=(5, 3, 3, 3)),
    row("searchsorted", onp.searchsorted, X, arg(n), shape=(n,)),
    row("clip", lambda x: onp.clip(x, 0, 1), X, shape=(b,)),
    row("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 8)), M, arg(dtype="int32"),
        shape=(2, 8)),
    row("dynamic_slice of b", lambda x, i: lax.dynamic_slice(x, (i, 0), (x.shape[0], 2)), M,
        arg(dtype="int32"), shape=(b, 2)),
    row("dynamic_update_slice", lambda x, i: lax.dynamic_update_slice(x, onp.ones((2, 8)), (i, 0)),
        M, arg(dtype="int32"), shape=(b, 8)),
    row("cholesky", onp.linalg.cholesky, arg(b, 3, 3), shape=(b, 3, 3)),
    row("solve", onp.linalg.solve, arg(b, 3, 3), arg(b, 3, 1), shape=(b, 3, 1)),
    row("norm", onp.linalg.norm, X, shape=()),
    row("fft", lambda x: onp.fft.fft(x), M, shape=(b, 8)),
    row("random", lambda x: x + random.normal(random.key(0), (8,)), M, shape=(b, 8)),
    row("x.size", lambda x: onp.zeros((x.size,)), M, shape=(8 * b,)),
]


def shapes(out: Any) -> Any:
    if isinstance(out, (tuple, list)):
        return tuple(shapes(leaf) for leaf in out)
    return tuple(out.shape)


@pytest.mark.parametrize(("function", "args", "shape"), ROWS)
def test_traces(function: Callable, args: tuple, shape: Any) -> None:
    out = olympus.eval_shape(function, *args)
    assert shapes(out) == shape


def refusal(name: str, function: Callable, *args: Any, match: str) -> Any:
    return pytest.param(function, args, match, id=name)


REFUSED = [
    # operations that need the number itself
    refusal("len(x)", len, X, match=r"len\(\)"),
    refusal("iteration", lambda x: [*x], X, match="iteration"),
    refusal("unstack", onp.unstack, X, match="unstack"),
    refusal("fft", onp.fft.fft, X, match="fft"),
    refusal("range", lambda x: [x[i] for i in range(x.shape[0])], X, match="constant"),
]


@pytest.mark.parametrize(("function", "args", "match"), REFUSED)
def test_refuses(function: Callable, args: tuple, match: str) -> None:
    with pytest.raises(InconclusiveDimensionOperation, match=match):
        olympus.eval_shape(function, *args)


@pytest.mark.parametrize(("code", "breaches"), [
    ("x.shape[0] < 3", 1), ("3 >= x.shape[0]", 1), ("x.shape[i] // 2", 1), ("k % x.shape[0]", 1),
    ("min(x.shape[0], 3)", 1), ("range(x.shape[-1])", 1), ("divmod(x.shape[0], 2)", 1),
    ("int(x.shape[0])", 1), ("x.shape[0] == 3", 1), ("n = x.shape[0]\n    n < 2", 1),
    ("m, n = x.shape[-2:]\n    max(m, n)", 1), ("a, n = 1, x.shape[0]\n    n % 2, a % 2", 1),
    ("n = x.shape[0]\n    n == 1", 1), ("[n for n in x.shape if n != 1]", 1),
    ("for i, (n, k) in enumerate(zip(x.shape, y)):\n        n == 1, k == 1", 1),
    ("s = x.shape[1:]\n    *_, n = s\n    s[0] == n, n % 2", 2), ("shape[0] == 1", 1),
    ("any(n < 0 for n in reversed(shape))", 1), ("n: int = x.shape[0]\n    2 // n", 1),
    ("(n := x.shape[0]) + 1\n    n > 3", 1), ("m = n = x.shape[0]\n    m == 1", 1),
    ("[n for n in mesh.shape if n != 1]", 0), ("definitely_equal(x.shape[0], 3)", 0),
    ("less(x.shape[0], 3)", 0), ("x.shape[0] + 3", 0), ("n = len(x.shape)\n    n < 2", 0),
    ("divmod(n, mesh.shape[0])", 0), ("x.shape[1:] == y.shape[1:]", 0),
])
def test_the_style_check_refuses_raw_arithmetic_of_dimensions(code: str, breaches: int) -> None:
    found = set(check_style.check_shapes(ast.parse(f"def f(x, y, shape):\n    {code}")))
    assert len(found) == breaches
