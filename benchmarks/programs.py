"""Programs to trace, lower and compile: each makes its functions anew, so that nothing is kept."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from .inputs import normal, random


class Program(NamedTuple):
    """A function that makes the function, and its arguments."""

    make: Callable[[], Callable[..., Any]]
    args: tuple[Any, ...]


def transformer(L, layers=12, width=64, heads=4, words=128, length=32, batch=2) -> Program:
    """The loss of a decoder, and its gradient."""
    np = L.np

    def matrix(*shape, seed):
        return L.array(normal(*shape, seed=seed, scale=0.02))

    blocks = [{"qkv": matrix(width, 3 * width, seed=i), "out": matrix(width, width, seed=i + 1),
               "up": matrix(width, 4 * width, seed=i + 2),
               "down": matrix(4 * width, width, seed=i + 3)} for i in range(layers)]
    params = {"embed": matrix(words, width, seed=98), "place": matrix(length, width, seed=99),
              "blocks": blocks}

    def standard(x):
        x = x - x.mean(-1, keepdims=True)
        return x * L.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    def attention(x, p):
        q, k, v = (a.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)
                   for a in np.split(x @ p["qkv"], 3, axis=-1))
        scores = np.einsum("bhtc,bhsc->bhts", q, k) * (width // heads) ** -0.5
        past = np.tril(np.ones((length, length), bool))
        weights = L.nn.softmax(np.where(past, scores, -1e9))
        mixed = np.einsum("bhts,bhsc->bhtc", weights, v)
        return mixed.transpose(0, 2, 1, 3).reshape(batch, length, width) @ p["out"]

    def loss(params, tokens, targets):
        x = params["embed"][tokens] + params["place"]
        for p in params["blocks"]:
            x = x + attention(standard(x), p)
            x = x + L.nn.gelu(standard(x) @ p["up"]) @ p["down"]
        logs = L.nn.log_softmax(standard(x) @ params["embed"].T)
        return -np.take_along_axis(logs, targets[..., None], axis=-1).mean()

    tokens, targets = (L.array(random(seed).integers(0, words, (batch, length)).astype("int32"))
                       for seed in (1, 2))
    return Program(lambda: L.value_and_grad(lambda *args: loss(*args)), (params, tokens, targets))


def chain(L, operations=1000) -> Program:
    """Elementwise operations, one after the other."""
    def make():
        def run(x, y):
            for _ in range(operations // 4):
                x = L.np.maximum(L.lax.sin(x) * 0.5 + y, y)
            return x
        return run
    return Program(make, (L.array(normal(8)), L.array(normal(8, seed=1))))


def perceptron(L) -> Program:
    """The gradient of a small network for each pair of two batches."""
    sizes = 16, 32, 32, 1
    params = [(L.array(normal(m, n, seed=m, scale=m ** -0.5)), L.array(normal(n)))
              for m, n in itertools.pairwise(sizes)]

    def make():
        def net(params, x):
            for w, b in params[:-1]:
                x = L.np.tanh(x @ w + b)
            w, b = params[-1]
            return (x @ w + b)[0]
        return L.vmap(L.vmap(L.grad(net), (None, 0)), (None, 0))
    return Program(make, (params, L.array(normal(4, 8, 16))))


def lstm(L, width=32, steps=50, batch=4) -> Program:
    """The loss of an LSTM in a scan, and its gradient."""
    np = L.np

    def make():
        def loss(params, xs):
            w, u, b = params

            def cell(carry, x):
                h, c = carry
                i, f, g, o = np.split(x @ w + h @ u + b, 4, axis=-1)
                c = L.nn.sigmoid(f) * c + L.nn.sigmoid(i) * np.tanh(g)
                h = L.nn.sigmoid(o) * np.tanh(c)
                return (h, c), h

            start = np.zeros((batch, width), "float32")
            return (L.lax.scan(cell, (start, start), xs)[1] ** 2).mean()
        return L.value_and_grad(loss)

    params = (L.array(normal(width, 4 * width, scale=0.1)),
              L.array(normal(width, 4 * width, seed=1, scale=0.1)), L.array(normal(4 * width)))
    return Program(make, (params, L.array(normal(steps, batch, width, seed=2))))


PROGRAMS = {"gradient of 12 transformer layers": transformer, "1,000 elementwise operations": chain,
            "vmap of vmap of a gradient": perceptron, "gradient of an LSTM in a scan": lstm}
SLOW = {"gradient of 12 transformer layers"}    # to compile


SALT = itertools.count(1)


def salted(L, fun: Callable[..., Any]) -> Callable[..., Any]:
    """`fun` with one more result, unlike any before: equal programs are compiled once."""
    k = numpy.float32(1 + next(SALT) / 4096)
    return lambda *args: (fun(*args), L.tree.leaves(args)[0].ravel()[0] * k)
