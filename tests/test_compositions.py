"""Laws of composition: every ordered pair and triple of transformations, over 12 small functions.

All twelve run in one program: row k of the operand goes through function k, so that a gradient of
the sum keeps them apart. Mathematically `jit`, `checkpoint` and the custom rules are the identity;
what is left of a composition is computed by finite differences in NumPy, at double precision.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import olympus
from olympus import errors, lax

N = 3
V = np.array([0.7, -0.4, 1.1])
W = np.array([[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.1, 0.2, 0.7]])
W32 = W.astype(np.float32)

F = Callable[[Any], Any]


def total(x: Any) -> Any:
    return lax.reduce_sum(x, tuple(range(x.ndim)))


def spread(x: Any) -> Any:
    return lax.broadcast_in_dim(x, (N,), ())


# The functions: in Olympus, and in NumPy with loops unrolled -------------------------------------

def cubic(x: Any) -> Any:
    return lax.mul(lax.mul(x, x), x)


def damped(x: Any) -> Any:
    return lax.mul(lax.sin(x), lax.exp(lax.neg(x)))


def layer(x: Any) -> Any:
    return lax.tanh(lax.dot_general(W32, x, (((1,), (0,)), ((), ()))))


def scanned(x: Any) -> Any:
    def body(c: Any, a: Any) -> Any:
        c = lax.mul(lax.sin(lax.add(c, a)), 0.9)
        return c, lax.mul(c, a)

    last, ys = lax.scan(body, 0.1, x)
    return lax.add(ys, spread(last))


def scanned_np(x: Any) -> Any:
    c, ys = 0.1, []
    for a in x:
        c = np.sin(c + a) * 0.9
        ys.append(c * a)
    return np.array(ys) + c


def scan_closure(x: Any) -> Any:
    """The body closes over the differentiated value."""
    return lax.scan(lambda c, _: (lax.sin(lax.mul(c, x)), None), lax.add(x, 1.0), None, 2)[0]


def branch(x: Any) -> Any:
    return lax.cond(lax.gt(total(x), 0.3), lambda y: lax.mul(lax.sin(y), x), lax.cos, x)


def python_if(x: Any) -> Any:
    return lax.mul(lax.sin(x), x) if lax.gt(total(x), 0.3) else lax.cos(x)


def jit_closure(x: Any) -> Any:
    """An inner jit closes over the outer value."""
    return olympus.jit(lambda y: lax.mul(lax.sin(y), x))(lax.mul(x, x))


def ruled(x: Any) -> Any:
    @olympus.custom_jvp
    def sine(y: Any) -> Any:
        return lax.sin(y)

    sine.defjvps(lambda t, out, y: lax.mul(t, lax.cos(y)))
    return lax.mul(sine(x), x)


def inner_grad(x: Any) -> Any:
    """A gradient with respect to y of something that depends on x too."""
    return olympus.grad(lambda y: total(lax.mul(lax.sin(y), lax.mul(y, x))))(x)


def quotient(x: Any) -> Any:
    return lax.div(x, spread(lax.add(total(lax.mul(x, x)), 1.0)))


def inner_vmap(x: Any) -> Any:
    return olympus.vmap(lambda a: lax.mul(lax.sin(a), total(lax.mul(x, a))))(x)


FUNCTIONS: list[tuple[F, F]] = [
    (cubic, lambda x: x ** 3),
    (damped, lambda x: np.sin(x) * np.exp(-x)),
    (layer, lambda x: np.tanh(W @ x)),
    (scanned, scanned_np),
    (scan_closure, lambda x: np.sin(np.sin((x + 1) * x) * x)),
    (branch, lambda x: np.sin(x) * x if x.sum() > 0.3 else np.cos(x)),
    (jit_closure, lambda x: np.sin(x * x) * x),
    (ruled, lambda x: np.sin(x) * x),
    (inner_grad, lambda x: np.cos(x) * x * x + np.sin(x) * x),
    (quotient, lambda x: x / (1 + (x * x).sum())),
    (inner_vmap, lambda x: np.sin(x) * x * x.sum()),
    (python_if, lambda x: np.sin(x) * x),
]
X = np.array([[0.6 + 0.03 * k, 0.35 + 0.05 * k, 0.8 - 0.02 * k] for k in range(len(FUNCTIONS))])


def together(rows: int) -> F:
    """(rows, N) -> (rows, N): function k on row k."""
    def apply(x: Any) -> Any:
        outs = []
        for k in range(rows):
            row = lax.reshape(lax.slice(x, (k, 0), (k + 1, N)), (N,))
            outs.append(lax.reshape(FUNCTIONS[k][0](row), (1, N)))
        return lax.concatenate(outs, 0)

    return apply


# The transformations, each from a function of one array to another -------------------------------

def directions(x: Any) -> np.ndarray:
    return np.broadcast_to(V, x.shape).astype(np.float32)


def by_grad(f: F) -> F:
    return olympus.grad(lambda x: total(f(x)))


def by_jvp(f: F) -> F:
    return lambda x: olympus.jvp(f, (x,), (directions(x),))[1]


def by_linearize(f: F) -> F:
    return lambda x: olympus.linearize(f, x)[1](directions(x))


def by_vmap(f: F) -> F:
    def mapped(x: Any) -> Any:
        both = lax.concatenate([lax.reshape(y, (1, *x.shape)) for y in (x, lax.mul(x, 0.5))], 0)
        return lax.reduce_sum(olympus.vmap(f)(both), (0,))

    return mapped


def by_custom_jvp(f: F) -> F:
    wrapped = olympus.custom_jvp(f)
    wrapped.defjvp(lambda primals, tangents: olympus.jvp(f, primals, tangents))
    return wrapped


def by_custom_vjp(f: F) -> F:
    wrapped = olympus.custom_vjp(f)
    wrapped.defvjp(lambda x: olympus.vjp(f, x), lambda pullback, ct: pullback(ct))
    return wrapped


TRANSFORMS: dict[str, Callable[[F], F]] = {
    "jit": olympus.jit, "grad": by_grad, "jvp": by_jvp, "vmap": by_vmap,
    "linearize": by_linearize, "checkpoint": olympus.checkpoint, "custom_jvp": by_custom_jvp,
    "custom_vjp": by_custom_vjp,
}
STAGED = {"jit", "vmap", "checkpoint"}
FORWARD = {"jvp", "linearize"}


# The oracle --------------------------------------------------------------------------------------

H = 2e-3


def slope(f: F, x: np.ndarray, v: np.ndarray) -> Any:
    """The derivative along v, by central differences of fourth order."""
    return (8 * (f(x + H * v) - f(x - H * v)) - (f(x + 2 * H * v) - f(x - 2 * H * v))) / (12 * H)


def derived(kind: str, f: F) -> F:
    if kind == "vmap":
        return lambda x: f(x) + f(0.5 * x)
    if kind == "jvp":
        return lambda x: slope(f, x, V)
    return lambda x: np.array([slope(lambda y: f(y).sum(), x, e) for e in np.eye(N)])


@functools.cache
def expected(kinds: tuple[str, ...]) -> np.ndarray:
    rows = []
    for (_, f), x in zip(FUNCTIONS, X, strict=True):
        for kind in reversed(kinds):
            f = derived(kind, f)
        rows.append(f(x))
    return np.array(rows)


def meaning(names: tuple[str, ...]) -> tuple[str, ...]:
    """What is left of a composition in mathematics."""
    short = {"grad": "grad", "jvp": "jvp", "linearize": "jvp", "vmap": "vmap"}
    return tuple(short[n] for n in names if n in short)


def forward_through_custom_vjp(names: tuple[str, ...]) -> bool:
    """Whether forward mode meets a custom_vjp function, which has no forward rule."""
    for i, name in enumerate(names):
        if name != "custom_vjp":
            continue
        first = next((n for n in reversed(names[:i]) if n in {"grad", *FORWARD}), "grad")
        if first in FORWARD:    # after a grad, what its rules compute is differentiated like all
            return True
    return False


def compose(names: tuple[str, ...], f: F) -> F:
    """The first name is the outermost transformation."""
    for name in reversed(names):
        f = TRANSFORMS[name](f)
    return f


def compositions(length: int) -> list[tuple[str, ...]]:
    return list(itertools.product(TRANSFORMS, repeat=length))


COMPOSITIONS = [*compositions(1), *compositions(2), *[
    pytest.param(names, marks=pytest.mark.slow) for names in compositions(3)]]


@pytest.mark.parametrize("names", COMPOSITIONS, ids="-".join)
def test_composition(names: tuple[str, ...]) -> None:
    # Python's `if` needs a value, which programs made ahead of it do not have.
    rows = len(FUNCTIONS) - bool(STAGED & set(names))
    f = compose(names, together(rows))
    x = X[:rows].astype(np.float32)
    if forward_through_custom_vjp(names):
        with pytest.raises(TypeError, match="custom_vjp"):
            f(x)
        return
    found = np.asarray(f(x), np.float64)
    for k in range(rows):
        np.testing.assert_allclose(found[k], expected(meaning(names))[k], rtol=3e-4, atol=3e-4,
                                   err_msg=FUNCTIONS[k][0].__name__)


@pytest.mark.parametrize("name", sorted(STAGED))
def test_python_if_needs_a_value(name: str) -> None:
    with pytest.raises(errors.TracerBoolConversionError, match="gt"):
        TRANSFORMS[name](python_if)(X[0].astype(np.float32))
