#!/usr/bin/env python3
"""What the kernels of `lax/kernels/` gain and cost, by operation and size, on this machine.

    PYTHONPATH=. python tools/kernel_table.py [PATTERN ...] [--sizes 1000 100000] [--rounds 5]
    PYTHONPATH=. python tools/kernel_table.py --per-element     # the table of docs/what_is_fast.md

Each case runs with `olympus_kernels` "off" and "auto" by turns: microseconds of CPU time of all
threads (the least of the rounds), the quotient, the largest difference as a part of the largest
element, and the CPU time in which both compile. A case without a kernel is marked. The
thresholds at the top of the files in `lax/kernels/` are chosen with this table: no case below 0.95.
"""

from __future__ import annotations

import argparse
import fnmatch
import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import grad, jit, lax, nn
from olympus._src.base import config

RNG = np.random.default_rng(0)
Case = tuple[str, Callable[..., Any], tuple[Any, ...]]
CASES: list[Callable[[int], Iterator[Case]]] = []


def case(make: Callable[[int], Iterator[Case]]) -> Callable[[int], Iterator[Case]]:
    """Decorator: cases of about so many elements."""
    CASES.append(make)
    return make


def uniform(*shape: int, dtype: str = "float32") -> Any:
    return onp.asarray(RNG.random(shape).astype(dtype))


def conv(layout: tuple[str, str, str], groups: int) -> Callable[..., Any]:
    return lambda x, w: lax.conv_general_dilated(
        x, w, (1,) * (x.ndim - 2), "SAME", dimension_numbers=layout, feature_group_count=groups)


@case
def convolutions(n: int) -> Iterator[Case]:
    """Depthwise and in groups, the values and both gradients."""
    side = max(int((n / 128) ** 0.5), 3)
    for layout, last in ((("NHWC", "HWIO", "NHWC"), True), (("NCHW", "OIHW", "NCHW"), False)):
        for groups, each in ((64, 1), (4, 16), (16, 4)):
            c = groups * each
            x = uniform(2, side, side, c) if last else uniform(2, c, side, side)
            w = uniform(3, 3, each, c) if last else uniform(c, each, 3, 3)
            fun, name = conv(layout, groups), f"conv {layout[0]} {groups} groups of {each}"
            yield name, fun, (x, w)
            for i, what in enumerate("xw"):
                yield f"{name}, gradient of {what}", grad(
                    lambda x, w, fun=fun: (fun(x, w) ** 2).sum(), i), (x, w)


@case
def elementary_emitter(n: int) -> Iterator[Case]:
    """Programs of one operation, and of sizes that threads share unequally."""
    x, y, points = uniform(n), uniform(n), uniform(n // 3 | 1, 3)
    for name in "add", "abs", "rsqrt", "exp":
        operands = (x, y) if name == "add" else (x,)
        yield f"single {name}", getattr(lax, name), operands
    for name in "softplus", "gelu", "relu":
        yield f"unequal {name}", getattr(nn, name), (uniform(n + 1),)
        yield f"unequal {name} of points", getattr(nn, name), (points,)


@case
def deep_convolutions(n: int) -> Iterator[Case]:
    """Over three axes, the values and both gradients."""
    with olympus.enable_x64(True):
        for dtype in ("float32", "float64"):
            for c in (1, 4, 16):
                side = max(int((n / c) ** (1 / 3)), 3)
                x, w = uniform(1, c, side, side, side, dtype=dtype), uniform(
                    16, c, 3, 3, 3, dtype=dtype)
                fun = lambda x, w: lax.conv_general_dilated(x, w, (1, 1, 1), "SAME")
                name = f"conv over 3 axes, {c} features, {dtype}"
                yield name, fun, (x, w)
                for i, what in enumerate("xw"):
                    yield f"{name}, gradient of {what}", grad(
                        lambda x, w, fun=fun: (fun(x, w) ** 2).sum(), i), (x, w)


@case
def reductions(n: int) -> Iterator[Case]:
    """Over leading axes, of booleans and small integers, and places of extrema."""
    for rows in (2, 8, 64, 65, 1000):
        if rows < n:
            yield f"sum over axis 0 of {rows} rows", lambda x: x.sum(0), (uniform(rows, n // rows),)
    x = uniform(n)
    yield "count", lambda x: onp.sum(x), (x > 0.5,)
    yield "sum of uint8", lambda x: onp.sum(x, dtype="int32"), ((x * 99).astype("uint8"),)
    yield "count of x > 0.5", lambda x: onp.sum(x > 0.5), (x,)
    yield "any", lambda x: onp.any(x), (x > 2,)
    yield "all of x < 2", lambda x: onp.all(x < 2), (x,)
    yield "argmax", lambda x: onp.argmax(x), (x,)
    for rows in (8, 100, 1000):
        if 8 * rows <= n:
            for axis in (0, 1):
                yield f"argmax over axis {axis}, {rows} rows", (
                    lambda x, axis=axis: onp.argmax(x, axis)), (uniform(rows, n // rows),)


@case
def tiles(n: int) -> Iterator[Case]:
    """Vectors and rows repeated."""
    yield "tile by 3", lambda x: onp.tile(x, 3), (uniform(n // 3),)
    side = max(int((n / 4) ** 0.5), 1)
    yield "tile by 2, 2", lambda x: onp.tile(x, (2, 2)), (uniform(side, side),)


@case
def short_rows(n: int) -> Iterator[Case]:
    """Sums along a last axis of few numbers, or beside it, of arrays and of computed values."""
    for dtype in ("float32", "int32"):
        for k in (2, 3, 4, 8, 12):
            x = (uniform(n // k, k) * 9).astype(dtype)
            yield f"sum of rows of {k}, {dtype}", lambda x: x.sum(-1), (x,)
    for k in (2, 3, 8):
        side = max(int((n / k) ** 0.5), 1)
        yield f"distances in {k} dimensions", (
            lambda x, y: ((x[:, None] - y) ** 2).sum(-1)), (uniform(side, k), uniform(side, k))
    for k in (2, 3):
        side = max(int((n / k) ** 0.5), 1)
        yield f"sum beside an axis of {k}", lambda x: x.sum(1), (uniform(side, side, k),)
        yield f"sum before an axis of {k}", lambda x: x.sum(0), (uniform(n // k, k),)
    side = max(int((n / 3) ** 0.5), 1)

    def forces(x: Any) -> Any:
        away = x[:, None] - x
        return (away * (((away * away).sum(-1) + 1e-3) ** -1.5)[..., None]).sum(1)

    yield "forces", forces, (uniform(side, 3),)
    yield "forces, gradient", grad(lambda x: (forces(x) ** 2).sum()), (uniform(side, 3),)


@case
def products(n: int) -> Iterator[Case]:
    """Products of many small matrices."""
    for m, k, j in ((2, 2, 2), (3, 3, 3), (4, 4, 4), (8, 8, 8), (12, 12, 12), (4, 4, 1), (3, 3, 8),
                    (2, 8, 2), (16, 3, 16), (1, 8, 1)):
        batch = n // max(m * k, k * j)
        if batch > 1:
            x, y = uniform(batch, m, k), uniform(batch, k, j)
            name = f"matmul [{m}, {k}] @ [{k}, {j}]"
            yield name, lambda x, y: x @ y, (x, y)
            yield f"{name}, gradients", grad(lambda x, y: ((x @ y) ** 2).sum(), (0, 1)), (x, y)


@case
def ragged(n: int) -> Iterator[Case]:
    """Contractions with ragged groups."""
    for groups, width in ((2, 32), (4, 64), (16, 64), (8, 256), (64, 256)):
        rows = n // width
        x, y = uniform(rows, width), uniform(groups, width, width)
        sizes = onp.full(groups, rows // groups, dtype=onp.int32)
        name = f"ragged_dot, {groups} groups, {width}"
        if rows >= groups:
            yield name, lax.ragged_dot, (x, y, sizes)
            yield f"{name}, gradients", grad(
                lambda x, y, sizes: (lax.ragged_dot(x, y, sizes) ** 2).sum(), (0, 1)), (x, y, sizes)


@case
def small_matrices(n: int) -> Iterator[Case]:
    """Factorisations and solutions."""
    for k in (2, 3, 4):
        batch = n // (k * k)
        x = uniform(batch, k, k) - 0.5
        positive = x @ x.swapaxes(1, 2) + onp.eye(k)
        right = uniform(batch, k, 1)
        yield f"solve {k}", onp.linalg.solve, (positive, right)
        yield f"inv {k}", onp.linalg.inv, (positive,)
        yield f"det {k}", onp.linalg.det, (x,)
        yield f"cholesky {k}", onp.linalg.cholesky, (positive,)
        yield f"solve {k}, gradients", grad(
            lambda a, b: (onp.linalg.solve(a, b) ** 2).sum(), (0, 1)), (positive, right)
        yield f"cholesky {k}, gradient", grad(
            lambda a: (onp.linalg.cholesky(a) ** 3).sum()), (positive,)


@case
def cumulative(n: int) -> Iterator[Case]:
    """Along all of an array, along rows and along columns."""
    x = uniform(n)
    yield "cumsum", lambda x: lax.cumsum(x), (x,)
    yield "cumsum of n + 1, reverse", lambda x: lax.cumsum(x, reverse=True), (uniform(n + 1),)
    yield "cumsum of int32", lambda x: lax.cumsum(x), ((x * 9).astype("int32"),)
    yield "cummax", lambda x: lax.cummax(x), (x,)
    yield "cumprod", lambda x: lax.cumprod(x), (1 + x * 1e-6,)
    if n <= 10**6:
        yield "cumlogsumexp", lambda x: lax.cumlogsumexp(x), (x,)
    for rows in (10, 16, 30, 100, 1000, 10000):
        if 10 * rows <= n:
            for axis in (0, 1):
                yield f"cumsum along axis {axis}, {rows} rows", (
                    lambda x, axis=axis: lax.cumsum(x, axis)), (uniform(rows, n // rows),)


@case
def orders(n: int) -> Iterator[Case]:
    """Sorting, alone and with operands carried along."""
    x = uniform(n)
    few = (x * 9).astype("int32")
    for name, key in (("float32", x), ("sorted", onp.sort(x)), ("few values", few),
                      ("4,096 values", (x * 4096).astype("int32")),
                      ("bfloat16", x.astype("bfloat16"))):
        yield f"sort, {name}", lambda x: lax.sort(x), (key,)
        yield f"argsort, {name}", lambda x: onp.argsort(x), (key,)
    yield "sort with two more", lambda *xs: lax.sort(xs), (x, few, x > 0.5)
    yield "lexsort of two", lambda *xs: onp.lexsort(xs), (x, few)
    yield "sort of complex numbers", onp.sort, (few + 1j * x,)
    for dtype in ("bool", "int8", "uint8", "int16", "uint16"):
        key = (x * 200).astype(dtype) if dtype != "bool" else x > 0.5
        yield f"sort, {dtype}", lambda x: lax.sort(x), (key,)
        yield f"argsort, {dtype}", lambda x: onp.argsort(x), (key,)
    yield "random permutation", lambda key, n=n: olympus.random.permutation(key, n), (
        olympus.random.key(0),)
    for draws in (10, n // 1000, n // 100):
        if draws:
            yield f"choice of {draws} without replacement", lambda key, n=n, draws=draws: (
                olympus.random.choice(key, n, (draws,), replace=False)), (olympus.random.key(0),)


@case
def wide_orders(n: int) -> Iterator[Case]:
    """Sorts of 64 bits: floats, integers of any size, and in a range."""
    with olympus.enable_x64(True):
        for name, key in (("float64", RNG.random(n)), ("int64", RNG.integers(-2**63, 2**63 - 1, n)),
                          ("int64 below 100", RNG.integers(0, 100, n))):
            yield f"sort, {name}", lambda x: lax.sort(x), (onp.asarray(key),)


@case
def rows_in_order(n: int) -> Iterator[Case]:
    """Rows and columns of several lengths, alone and with their places."""
    for size in (3, 10, 30, 100, 300, 1000, 2048):
        if 16 * size <= n:
            x = uniform(n // size, size)
            for name, key, axis in (("float32", x, 1), ("int32", (x * 1e9).astype("int32"), 1),
                                    ("float32 columns", x.T, 0)):
                yield f"sort rows of {size}, {name}", (
                    lambda x, axis=axis: onp.sort(x, axis)), (key,)
            yield f"argsort rows of {size}", lambda x: onp.argsort(x, 1), (x,)


@case
def largest(n: int) -> Iterator[Case]:
    """The k largest of all, and of a hundred rows."""
    x, whole = uniform(n), (uniform(n) * 10**9).astype("int32")
    for part in (1000, 100, 32, 10, 2):
        k = n // part
        yield f"top_k, one of {part}", lambda x, k=k: lax.top_k(x, k), (x,)
        yield f"top_k, one of {part}, int32", lambda x, k=k: lax.top_k(x, k), (whole,)
        if k >= 100:
            yield f"top_k, one of {part}, rows", lambda x, k=k: lax.top_k(x, k // 100), (
                x[:n // 100 * 100].reshape(100, -1),)


@case
def places(n: int) -> Iterator[Case]:
    """Of true elements: half of all, one of a hundred, and as many as a tenth of all."""
    x = uniform(n)
    for part, size in ((0.5, n), (0.01, n), (0.5, n // 10)):
        yield f"nonzero, {part:.0%}, {'all' if size == n else 'a tenth'}", (
            lambda x, size=size: onp.nonzero(x, size=size)), (x < part,)


@case
def rows(n: int) -> Iterator[Case]:
    """Added to a table of 16-bit floats, and the derivative of rows that are read."""
    for dtype in ("float16", "bfloat16"):
        for width in (16, 64, 256, 1024):
            for count in (100, 1000, 10000):
                if width < n and count * width <= 4 * n:
                    x, i = uniform(n // width, width, dtype=dtype), onp.asarray(
                        RNG.integers(0, n // width, count))
                    u = uniform(count, width, dtype=dtype)
                    name = f"{count} rows of {width} {dtype}"
                    yield f"{name} added", lambda x, i, u: x.at[i].add(u), (x, i, u)
                    yield f"{name} read, gradient", grad(
                        lambda x, i, u: (x[i] * u).sum(dtype=x.dtype)), (x, i, u)


@case
def partitions(n: int) -> Iterator[Case]:
    """Of all elements and along both axes, with one rank to three."""
    x = uniform(n)
    for count in (1, 2, 3):
        kth = tuple([n * (j + 1) // (count + 1) for j in range(count)])
        yield f"partition, {count} ranks", lambda x, kth=kth: onp.partition(x, kth), (x,)
    yield "argpartition", lambda x: onp.argpartition(x, x.size // 2), (x,)
    for rows in (10, 100, 1000):
        if 4 * rows <= n:
            for axis in (0, 1):
                kth = (rows, n // rows)[axis] // 2
                yield f"partition along axis {axis}, {rows} rows", (
                    lambda x, axis=axis, kth=kth: onp.partition(x, kth, axis)), (
                    uniform(rows, n // rows),)


@case
def ranks(n: int) -> Iterator[Case]:
    """Medians and percentiles of all elements, and along axes of a few sizes."""
    x, several = uniform(n), onp.arange(1, 9) * 11
    yield "median", lambda x: onp.median(x), (x,)
    for count in (2, 4, 6, 8):
        yield f"{count} percentiles", lambda x, q: onp.percentile(x, q), (x, several[:count])
    for rows in (2, 4, 8, 10, 30, 100, 1000):
        if 4 * rows <= n:
            for axis in (0, 1):
                yield f"median along axis {axis}, {rows} rows", (
                    lambda x, axis=axis: onp.median(x, axis)), (uniform(rows, n // rows),)


@case
def loops(n: int) -> Iterator[Case]:
    """300 steps on about a hundredth of so many elements.

    One function of XLA's computes them, up to a limit (`lib.executables.SMALL_LOOP`) that both
    modes have. Compare with XLA's own by a second run, with
    `XLA_FLAGS=--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=1024`.
    """
    size = max(n // 100, 4)
    x, c = uniform(300, size), uniform(size)

    def steps(step: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, c, *more: lax.scan(
            lambda c, v: ((y := step(c, v, *more)), y), c, x)[1]

    for name, step in (
            ("sum", lambda c, v: c * 0.5 + v * onp.sum(c)),
            ("maximum", lambda c, v: c * 0.5 + v * onp.max(c)),
            ("softmax", lambda c, v: olympus.nn.softmax(c + v)),
            ("turned", lambda c, v: onp.sin(onp.roll(c, 1)) * onp.roll(v, 2) + onp.roll(c * v, -1)),
            ("moved", lambda c, v: onp.concatenate([v[:1], c[:-1] * v[1:]])),
            ("condition", lambda c, v: lax.cond(
                v[0] > 0.5, lambda: c * 0.5 + v, lambda: onp.sin(c) - v)),
            ("least before", lambda c, v: lax.cummin(c + v) * 0.5),
            ("written", lambda c, v: c.at[(v[0] * size).astype("int32")].add(v[1])),
            ("loop", lambda c, v: lax.fori_loop(
                0, 5, lambda _, c: c * 0.9 + onp.roll(c, 1) * 0.05, c) + v)):
        yield f"steps: {name}", steps(step), (x, c)
    if size <= 1000:
        w = uniform(size, size) * 0.01
        cell = steps(lambda c, v, w: onp.tanh(c @ w + v))
        yield "steps: product", cell, (x, c, w)
        yield "steps: product, gradient", grad(lambda x, c, w: cell(x, c, w).sum(), 2), (x, c, w)
        yield "steps: 16 rows", cell, (x[:, None], onp.tile(c, (16, 1)), w)

    def halved(c: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 300, lambda s: (s[0] + 1, onp.sin(s[1] + s[0])),
                              (0, c))

    yield "steps: while", halved, (c,)


@case
def stencils(n: int) -> Iterator[Case]:
    """Steps of partial differential equations by slices, ten in a loop, and one."""
    side = int(n ** 0.5)

    def around(u: Any) -> Any:
        return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]

    def heat(u: Any) -> Any:
        return u.at[1:-1, 1:-1].add(0.1 * (around(u) - 4 * u[1:-1, 1:-1]))

    def jacobi(u: Any) -> Any:
        return u.at[1:-1, 1:-1].set(0.25 * jit(around)(u))

    def other(u: Any) -> Any:
        return u.at[1:-1, 1:-1].add(-0.1 * u[1:-1, 1:-1])

    for name, step in (("heat", heat), ("jacobi", jacobi), ("update of itself", other)):
        yield f"{name}, ten steps", (
            lambda u, step=step: lax.fori_loop(0, 10, lambda _, u: step(u), u)), (
            uniform(side, side),)
        yield f"{name}, one step", step, (uniform(side, side),)
    yield "heat in one dimension", lambda u: lax.fori_loop(0, 10, lambda _, u: u.at[1:-1].add(
        0.1 * (u[2:] + u[:-2] - 2 * u[1:-1])), u), (uniform(n),)
    yield "heat, gradient", grad(lambda u: (lax.scan(
        lambda u, _: (heat(u), None), u, None, 10)[0] ** 2).sum()), (uniform(side, side),)


@case
def elementwise(n: int) -> Iterator[Case]:
    """Functions for which XLA calls the C library, alone, and with gradients and more around."""
    x, y, part = uniform(n) * 6 - 3, uniform(n) * 6 - 3, uniform(n) * 2 - 1
    yield from (
            ("sin", onp.sin, (x,)), ("cos", onp.cos, (x,)), ("tan", onp.tan, (x,)),
            ("arcsin", onp.arcsin, (part,)), ("arccos", onp.arccos, (part,)),
            ("arctan", onp.arctan, (x,)), ("arctan2", onp.arctan2, (x, y)),
            ("cbrt", onp.cbrt, (x,)), ("exp2", onp.exp2, (x,)), ("sinh", onp.sinh, (x,)),
            ("arcsinh", onp.arcsinh, (x,)), ("arccosh", onp.arccosh, (abs(x) + 1,)),
            ("arctanh", onp.arctanh, (part,)), ("erf_inv", lax.erf_inv, (part,)),
            ("lgamma", lax.lgamma, (x,)),
            ("x % y", lambda x, y: x % y, (x, y)), ("x // y", lambda x, y: x // y, (x, y)),
            *[(f"x {name} y of {dtype}", fun, ((x * 1e4).astype(dtype), (y * 30).astype(dtype)))
              for dtype in ("int8", "uint16", "int32", "uint32")
              for name, fun in (("//", lambda x, y: x // y), ("%", lambda x, y: x % y))],
            ("x ** 2.5", lambda x: x ** 2.5, (part + 1,)), ("x ** -2.0", lambda x: x ** -2.0, (x,)),
            ("x ** y", lambda x, y: x ** y, (part + 1, y)),
            ("x ** 2.2", lambda x: x ** 2.2, (part + 1,)),
            ("sin, an angle of 10**7", onp.sin, (x.at[0].set(1e7),)),
            ("x % y, a quotient of 10**10", lambda x, y: x % y, (x, y.at[0].set(1e-10))),
            ("sin of bfloat16", onp.sin, (x.astype("bfloat16"),)),
            ("sum of sin(x) * cos(y)", lambda x, y: onp.sum(onp.sin(x) * onp.cos(y)), (x, y)),
            ("gradient of arctan2", grad(lambda x, y: onp.sum(onp.arctan2(x, y)), (0, 1)), (x, y)),
            ("arctan, read four times", lambda x: (
                lambda z: (z.sum(), z[::-1], onp.cumsum(z), z @ z))(onp.arctan(x)), (x,)))


@case
def elementwise_of_float64(n: int) -> Iterator[Case]:
    """The same of float64, and logarithms."""
    with olympus.enable_x64(True):
        x, y = uniform(n, dtype="float64") * 6 - 3, uniform(n, dtype="float64") * 6 - 3
        part = x / 3
        for name, xs in (
                ("sin", (x,)), ("cos", (x,)), ("tan", (x,)), ("arcsin", (part,)),
                ("arccos", (part,)), ("arctan", (x,)), ("arctan2", (x, y)), ("cbrt", (x,)),
                ("exp2", (x,)), ("sinh", (x,)), ("log1p", (part,)), ("log2", (part + 1,)),
                ("log10", (part + 1,))):
            yield f"{name} of float64", getattr(onp, name), xs
        yield "x ** 2.5 of float64", lambda x: x ** 2.5, (part + 1,)
        yield "sin of float64, an angle of 10**9", onp.sin, (x.at[0].set(1e9),)
        yield "sum of log10(x), float64", lambda x: onp.sum(onp.log10(x)), (part + 1,)
        yield "sum of log1p(x), float64", lambda x: onp.sum(onp.log1p(x)), (part + 1,)


def ready(out: Any) -> Any:
    return olympus.block_until_ready(out)


def measure(fun: Callable[..., Any], args: tuple[Any, ...], rounds: int,
            modes: Sequence[str] = ("off", "auto")
            ) -> tuple[list[float], list[float], list[Any], list[str]]:
    """For each mode: seconds a call and to compile, the result; and the kernels taken."""
    runs, compiling, outs, names = [], [], [], list[str]()
    for mode in modes:
        with config.kernels(mode):
            start = time.process_time()
            lowered = jit(lambda *xs: fun(*xs)).lower(*args)
            names = [t.kernel.name for t in lowered._context.taken]
            runs.append(lowered.compile())
            compiling.append(time.process_time() - start)
            outs.append(ready(runs[-1](*args)))
    start = time.process_time()
    ready(runs[-1](*args))
    count = max(1, min(300, int(0.02 / max(time.process_time() - start, 1e-6))))
    best = [float("inf")] * len(runs)
    for _ in range(rounds):
        for i, run in enumerate(runs):
            start = time.process_time()
            for _ in range(count):
                outs[i] = run(*args)
            ready(outs[i])
            best[i] = min(best[i], (time.process_time() - start) / count)
    return best, compiling, outs, names


def difference(outs: list[Any]) -> float:
    """The largest difference between two results, as a part of the largest element."""
    worst = 0.0
    for a, b in zip(*map(olympus.tree.leaves, outs), strict=True):
        x, y = [np.asarray(v).astype(np.complex128) for v in (a, b)]
        if x.size:
            worst = max(worst, float(np.max(np.abs(x - y)) / (np.max(np.abs(x)) or 1)))
    return worst


# One case for each kernel, or kind of kernel.
KINDS = (
    "conv NHWC 64 groups of 1", "conv over 3 axes, 16 features, float32",
    "sum over axis 0 of 64 rows", "count", "argmax", "distances in 3 dimensions",
    "forces, gradient", "matmul [[]4, 4] @ [[]4, 4]", "solve 3", "cholesky 3", "cumsum",
    "cumsum along axis 0, 100 rows", "sort, float32", "argsort, float32", "top_k, one of 32",
    "partition, 1 ranks", "median", "heat, ten steps", "sin", "arctan2", "x % y", "x ** 2.5",
    "x ** y", "sin of float64", "arctan2 of float64", "cbrt of float64", "log10 of float64")


def per_element(patterns: Sequence[str], sizes: Sequence[int], rounds: int) -> None:
    """A table in Markdown: nanoseconds per element, in brackets where no kernel applies.

    The last column is the exponent of the time between a hundredth of the last size and it.
    """
    print("| | " + " | ".join(f"{n:.0e}" for n in sizes) + " | exponent |")
    print("| - |" + " - |" * (len(sizes) + 1))
    for make in CASES:
        rows = dict[str, dict[int, tuple[float, str]]]()
        for n in sizes:
            for name, fun, args in make(n):
                if any(fnmatch.fnmatch(name, p) for p in patterns):
                    (seconds,), _, _, names = measure(fun, args, rounds, ("auto",))
                    cell = f"{seconds / n * 1e9:.2g}"
                    rows.setdefault(name, {})[n] = seconds, cell if names else f"({cell})"
        for name, found in rows.items():
            last, before = sizes[-1], sizes[-1] // 100
            slope = f"{math.log(found[last][0] / found[before][0], 100):.2f}" if (
                last in found and before in found) else ""
            cells = [found[n][1] if n in found else "" for n in sizes]
            print(f"| {name} | " + " | ".join(cells) + f" | {slope} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[10**k for k in range(3, 8)])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--per-element", action="store_true",
                        help="nanoseconds per element of one case for each kind, in Markdown")
    given = parser.parse_args()
    warnings.simplefilter("ignore", olympus.errors.RetraceWarning)
    olympus.config.update("olympus_enable_compilation_cache", False)
    if given.per_element:
        patterns = KINDS if given.patterns == ["*"] else given.patterns
        per_element(patterns, given.sizes, given.rounds)
        return
    print(f"{'case':44} {'elements':>9} {'off, us':>10} {'auto, us':>10} {'gain':>6} "
          f"{'difference':>10}  compiling, ms  kernels")
    for make in CASES:
        for n in given.sizes:
            for name, fun, args in make(n):
                if not any(fnmatch.fnmatch(name, p) for p in given.patterns):
                    continue
                best, compiling, outs, names = measure(fun, args, given.rounds)
                (off, auto), (slow, more) = best, compiling
                print(f"{name:44} {n:9} {off * 1e6:10.1f} {auto * 1e6:10.1f} {off / auto:6.2f} "
                      f"{difference(outs):10.1e}  {slow * 1e3:5.0f} {more * 1e3:5.0f}    "
                      f"{', '.join(names) or '-'}", flush=True)


if __name__ == "__main__":
    main()
