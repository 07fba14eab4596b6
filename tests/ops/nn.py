"""Rows for olympus.nn: activations and what normalises, with NumPy and SciPy as oracles."""

import numpy as np
import scipy.special as sp

from olympus import image, nn, ops

from . import Op, reals

X = reals(3, 4)
MASK = np.arange(12).reshape(3, 4) % 3 != 1


def row(name, oracle, fun, *args, label="", each=False, **settings):
    return Op(f"nn.{name}{label}", oracle, fun, args or (X,), each=each, **settings)


def softmax(x, axis=-1):
    return np.exp(log_softmax(x, axis))


def log_softmax(x, axis=-1):
    return x - sp.logsumexp(x, axis, keepdims=True).astype(x.dtype)


def standardized(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + x.dtype.type(1e-5))


def chosen(x):
    return sp.softmax(np.where(MASK, x, -np.inf), 0).astype(x.dtype)


IDS = np.array([1, 0, 1], np.int32)


def segments(combine, x):
    return np.stack([combine(x[[1]], 0), combine(x[::2], 0)])


def averaged(x):
    """Of 3 rows 2, of 4 columns 2, by area."""
    rows = np.array([[2, 1, 0], [0, 1, 2]], x.dtype) / 3
    return rows @ x.reshape(3, 2, 2).mean(2)


def attended(q, k, v):
    """One head of one sequence, causal."""
    logits = np.where(np.tri(3, dtype=bool), q[:, 0] @ k[:, 0].T / 2, -np.inf)
    return (sp.softmax(logits, -1) @ v[:, 0])[:, None].astype(q.dtype)


ALL = (
    row("dot_product_attention", attended,
        lambda *x: nn.dot_product_attention(*x, is_causal=True), X[:, None], X[::-1, None] / 2,
        X[:, None] + 1),
    *(row(name, lambda x, i, c=c: segments(c, x), lambda x, i, f=f: f(x, i, 2), X, IDS,
          dtypes="fc" if name != "segment_max" else "fi")
      for name, c, f in (("segment_sum", np.sum, ops.segment_sum),
                         ("segment_prod", np.prod, ops.segment_prod),
                         ("segment_max", np.max, ops.segment_max))),
    row("resize", averaged, lambda x: image.resize(x, (2, 2), "area"), dtypes="fc"),
    row("relu", lambda x: np.maximum(x, 0), nn.relu, dtypes="fh", each=True),
    row("relu6", lambda x: np.clip(x, 0, 6), nn.relu6, X * 3, each=True),
    row("silu", lambda x: x * sp.expit(x), nn.silu, dtypes="fh", each=True),
    row("elu", lambda x: np.where(x > 0, x, np.expm1(x)), nn.elu, each=True),
    row("gelu", lambda x: (x * sp.ndtr(x)).astype(x.dtype), lambda x: nn.gelu(x, False), each=True),
    row("leaky_relu", lambda x: np.where(x > 0, x, x / 4), lambda x: nn.leaky_relu(x, 0.25),
        each=True),
    row("softplus", lambda x: np.logaddexp(x, 0).astype(x.dtype), nn.softplus, each=True),
    row("softmax", softmax, nn.softmax, dtypes="fh"),
    row("softmax", chosen, lambda x: nn.softmax(x, 0, MASK), label="-where"),
    row("log_softmax", log_softmax, nn.log_softmax),
    row("logsumexp", lambda x: sp.logsumexp(x, 1, keepdims=True).astype(x.dtype),
        lambda x: nn.logsumexp(x, 1, keepdims=True)),
    row("standardize", standardized, nn.standardize, tol=1e-4),
    row("one_hot", lambda i: np.eye(4, dtype="f4")[i], lambda i: nn.one_hot(i, 4),
        np.array([2, 0, 3], np.int32), grad=False),
)
