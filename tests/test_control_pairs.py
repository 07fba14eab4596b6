"""Every control-flow primitive under every ordered pair of transformations.

A row is a function of one number with the primitive in it, and the same written out as a Python
loop. The oracle runs that loop in mpmath with 40 digits and differentiates it there. A
transformation maps functions of one number to functions of one number, so they nest freely, and the
oracle of a pair follows from the derivatives of the loop alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
from properties import compiled

import olympus
from olympus import checkpoint, grad, jit, jvp, lax, linearize, numpy as onp, vmap

X = 0.52        # the second element under vmap takes other branches and fewer rounds
XS = (0.3, -0.2, 0.5)
Fun = Callable[[Any], Any]


@pytest.fixture(autouse=True, scope="module")
def _x64() -> Iterator[None]:
    with olympus.enable_x64(True):
        yield


# The rows: with the primitive, and written out ---------------------------------------------------

def step(m: Any, x: Any, c: Any, y: Any) -> tuple[Any, Any]:
    c = m.sin(c) * y + x * c
    return c, c * (y + x)


def scanned(**options: Any) -> Fun:
    def fun(x: Any) -> Any:
        c, ys = lax.scan(functools.partial(step, onp, x), x * 1.5, onp.array(XS) + x, **options)
        return c + (ys * onp.array(XS)).sum()
    return fun


def scanned_out(x: Any, reverse: bool = False) -> Any:
    c, total = x * 1.5, 0
    for y in XS[::-1] if reverse else XS:
        c, out = step(mpmath, x, c, y + x)
        total = total + out * y
    return c + total


def grown(x: Any, **options: Any) -> Any:
    state = lax.while_loop(lambda s: s[1] < 3, lambda s: (s[0] + 1, s[1] * (1.5 + x), s[2] * s[1]),
                           (0, x, onp.sin(x)), **options)
    return state[1] * state[2] + x * state[0]


def grown_out(x: Any) -> Any:
    n, c, d = 0, x, mpmath.sin(x)
    while c < 3:
        n, c, d = n + 1, c * (1.5 + x), d * c
    return c * d + x * n


def affine(p: Any, q: Any) -> Any:
    return p[0] * q[0], p[1] * q[0] + q[1]


def composed(x: Any) -> Any:
    a, b = lax.associative_scan(affine, (onp.array(XS) + x, onp.sin(onp.array(XS) * x)))
    return (a * b).sum()


def composed_out(x: Any) -> Any:
    p, total = (1, 0), 0
    for y in XS:
        p = affine(p, (y + x, mpmath.sin(y * x)))
        total = total + p[0] * p[1]
    return total


def rooted(x: Any) -> Any:
    def newton(f: Fun, y: Any) -> Any:
        return lax.while_loop(lambda y: abs(f(y)) > 1e-13, lambda y: y - f(y) / grad(f)(y), y)
    return lax.custom_root(lambda y: y * y * y + x * y - 1.0, 1.0, newton,
                           lambda g, y: y / g(1.0)) * x


def rooted_out(x: Any) -> Any:
    y = mpmath.mpf(1)
    for _ in range(9):
        y = y - (y ** 3 + x * y - 1) / (3 * y * y + x)
    return y * x


def system(x: Any) -> list[list[Any]]:
    return [[2 + x, 0.3 * x], [0.1, 1 + x * x]]


def solved(x: Any) -> Any:
    def solve(f: Fun, b: Any) -> Any:       # Jacobi's iteration, which needs the diagonal only
        d = onp.array([2 + x, 1 + x * x])
        return lax.fori_loop(0, 40, lambda _, y: y + (b - f(y)) / d, b)
    a = onp.array(system(x))
    y = lax.custom_linear_solve(lambda v: a @ v, onp.array([x, 1.0]), solve, solve)
    return y[0] * y[1]


def solved_out(x: Any) -> Any:
    (a, b), (c, d) = system(x)
    det = a * d - b * c
    return (d * x - b) / det * (a - c * x) / det


def turned(x: Any, n: Any, sin: Fun) -> Any:
    c = x
    for i in range(n):
        c = c * sin(c + i) + x
    return c


def counted(n: Callable[[Any], Any]) -> Fun:
    return lambda x: lax.fori_loop(0, n(x), lambda i, c: c * onp.sin(c + i) + x, x)


def again(x: Any) -> Any:
    c = x
    for _ in range(3):
        c = c * mpmath.sin(c) + x
    return c


def of_branch(m: Any, x: Any) -> list[Fun]:
    return [lambda v: v * 3 * v, lambda v: m.sin(v) * x, lambda v: v * m.exp(v * x)]


ROWS: dict[str, tuple[Fun, Fun]] = {
    "cond": (lambda x: lax.cond(x > 0.4, *of_branch(onp, x)[1:], 2 * x),
             lambda x: of_branch(mpmath, x)[1 if x > 0.4 else 2](2 * x)),
    "switch": (lambda x: lax.switch((x * 5).astype(int), of_branch(onp, x), 2 * x),
               lambda x: of_branch(mpmath, x)[min(int(x * 5), 2)](2 * x)),
    "while_loop": (grown, grown_out),
    "while_loop-checkpoints": (functools.partial(grown, checkpoints=2), grown_out),
    "fori_loop-static": (counted(lambda _: 3), lambda x: turned(x, 3, mpmath.sin)),
    "fori_loop-dynamic": (counted(lambda x: (x * 6).astype(int)),
                          lambda x: turned(x, int(x * 6), mpmath.sin)),
    "scan": (scanned(), scanned_out),
    "scan-reverse": (scanned(reverse=True), functools.partial(scanned_out, reverse=True)),
    "scan-unroll": (scanned(unroll=2), scanned_out),
    "scan-checkpoint": (scanned(checkpoint=2), scanned_out),
    "scan-checkpoint-reverse": (scanned(checkpoint="sqrt", reverse=True),
                                functools.partial(scanned_out, reverse=True)),
    "scan-length": (lambda x: lax.scan(lambda c, _: (c * onp.sin(c) + x, None), x, length=3)[0],
                    again),
    "map": (lambda x: (lax.map(lambda y: onp.sin(x * y) * y, onp.array(XS) + x)).sum(),
            lambda x: sum(mpmath.sin(x * (y + x)) * (y + x) for y in XS)),
    "map-batch_size": (
        lambda x: (lax.map(lambda y: onp.sin(x * y) * y, onp.array(XS) + x, batch_size=2)).sum(),
        lambda x: sum(mpmath.sin(x * (y + x)) * (y + x) for y in XS)),
    "associative_scan": (composed, composed_out),
    "custom_root": (rooted, rooted_out),
    "custom_linear_solve": (solved, solved_out),
}


# The transformations: of a function, and of its derivatives --------------------------------------
# An oracle is `(order, x) -> the derivative of that order at x`.

T = 1.3
TRANSFORMATIONS: dict[str, Callable[[Fun], Fun]] = {
    "jit": jit,
    "grad": grad,
    "jvp": lambda f: lambda x: jvp(f, (x,), (T,))[1],
    "vmap": lambda f: lambda x: vmap(f)(onp.stack([x, 0.5 * x])).sum(),
    "linearize": lambda f: lambda x: (y := linearize(f, x))[0] + y[1](T),
    "checkpoint": checkpoint,
}
ORACLES: dict[str, Callable[[Callable[[int, Any], Any]], Callable[[int, Any], Any]]] = {
    "jit": lambda d: d,
    "grad": lambda d: lambda k, x: d(k + 1, x),
    "jvp": lambda d: lambda k, x: T * d(k + 1, x),
    "vmap": lambda d: lambda k, x: d(k, x) + 0.5 ** k * d(k, 0.5 * x),
    "linearize": lambda d: lambda k, x: d(k, x) + T * d(k + 1, x),
    "checkpoint": lambda d: d,
}


@functools.cache
def slope(name: str, order: int, x: float) -> float:
    with mpmath.workdps(40):
        return float(mpmath.diff(ROWS[name][1], mpmath.mpf(x), order))


NO_REVERSE = {"while_loop", "fori_loop-dynamic"}
MESSAGE = "Reverse-mode differentiation does not work for lax.while_loop.*because every iteration"


def refused(name: str, outer: str, inner: str) -> bool:
    """Loops of unknown length have no reverse mode without checkpoints."""
    return name in NO_REVERSE and "grad" in (outer, inner)


@pytest.mark.parametrize("outer", TRANSFORMATIONS)
@pytest.mark.parametrize("name", ROWS)
def test_pairs(name: str, outer: str) -> None:
    fun = ROWS[name][0]
    around = TRANSFORMATIONS[outer]
    allowed = [inner for inner in TRANSFORMATIONS if not refused(name, outer, inner)]
    pairs = [around(TRANSFORMATIONS[inner](fun)) for inner in allowed]
    expected = [ORACLES[outer](ORACLES[inner](functools.partial(slope, name)))(0, X)
                for inner in allowed]
    if pairs:
        found = compiled(lambda x: [f(x) for f in pairs])(X)
        for inner, a, b in zip(allowed, found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, err_msg=f"{outer} of {inner}")
    for inner in set(TRANSFORMATIONS) - set(allowed):
        with pytest.raises(ValueError, match=MESSAGE):     # eagerly the length may be known
            jit(around(TRANSFORMATIONS[inner](fun)))(X)


@pytest.mark.parametrize("name", ROWS)
def test_pairs_outside_of_jit(name: str) -> None:
    """Linearised and transposed where values are known: nothing is staged that need not be."""
    if not refused(name, "grad", "vmap"):
        value = grad(TRANSFORMATIONS["vmap"](ROWS[name][0]))(onp.float64(X))
        want = ORACLES["grad"](ORACLES["vmap"](functools.partial(slope, name)))(0, X)
        np.testing.assert_allclose(value, want, rtol=1e-10)
