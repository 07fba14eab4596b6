"""Passes are linear in the size of the program: work is counted in Python calls, not in seconds.

Depth, too: a pass visits each level of nested functions and loops a fixed number of times, though
it may need several rounds for the carries of each; and nesting on purpose has room on the stack.
"""

import functools
import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.core.staging import stage
from olympus._src.lowering import context
from olympus.extend.core import ClosedOlympuspr


def calls(action):
    """How many Python functions `action()` enters, without finalisers of other objects."""
    count = 0
    gc.collect()

    def profile(frame, event, arg):
        nonlocal count
        count += event == "call"

    gc.disable()
    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def chain(n):
    def fun(x):
        for _ in range(n):
            x = onp.sin(x) * 2.0 + x
        return x
    return fun


def fan_out(n):
    return lambda x: sum((x * float(i) for i in range(n)), x)


def constants(n):
    arrays = [np.full(2, i, np.float32) for i in range(n)]

    def fun(x):
        for a in arrays:
            x = x + a
        return x
    return fun


def nested(n):
    def fun(x):
        return x + 1.0
    for _ in range(n // 8):
        fun = (lambda g: olympus.jit(lambda x: g(x) * 2.0))(fun)
    return fun


def linear(f):
    """The tangent map of `f`, itself traced in one piece."""
    return lambda t: olympus.jvp(f, (X,), (t,))[1]


def blocks(action):
    """How many blocks of memory live because of what `action()` returns."""
    gc.collect()
    before = sys.getallocatedblocks()
    kept = action()
    gc.collect()
    return sys.getallocatedblocks() - before + 0 * (kept is None)


def exponent(work, small, large):
    """The fitted power of growth between two sizes, after a warm-up, with no program kept."""
    work(small)
    counts = []
    for size in small, large:
        olympus.clear_caches()
        counts.append(calls(functools.partial(work, size)))
    return np.log(counts[1] / counts[0]) / np.log(large / small)


SHAPES = {"length": chain, "fan-out": fan_out, "constants": constants, "nested jit": nested}
X = np.ones(2, np.float32)
PASSES = {
    "trace": lambda f: olympus.make_olympuspr(f)(X),
    "print": lambda f: str(olympus.make_olympuspr(f)(X)),
    "jvp": lambda f: olympus.make_olympuspr(lambda x: olympus.jvp(f, (x,), (x,)))(X),
    "grad": lambda f: olympus.make_olympuspr(olympus.grad(lambda x: onp.sum(f(x))))(X),
    "vmap": lambda f: olympus.make_olympuspr(olympus.vmap(f))(np.ones((3, 2), np.float32)),
    "lower": lambda f: olympus.jit(f).lower(X),
    "linearize": lambda f: olympus.linearize(f, X),
    "transpose": lambda f: olympus.make_olympuspr(
        olympus.linear_transpose(linear(f), X))(X),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PASSES)
def test_work_grows_linearly(name, shape):
    make, run = SHAPES[shape], PASSES[name]
    assert exponent(lambda n: run(make(n)), 40, 160) < 1.15


def test_a_scan_in_a_scan_is_traced_once_per_level():
    def loop(depth):
        if depth == 0:
            return lambda c: c * 1.5
        inner = loop(depth - 1)
        return lambda c: lax.scan(lambda c, _: (inner(c), None), c, None, length=2)[0]

    def work(depth):
        olympus.make_olympuspr(olympus.grad(lambda x: onp.sum(loop(depth)(x))))(X)

    work(2)
    a, b = calls(lambda: work(3)), calls(lambda: work(6))
    assert b < 2.6 * a


def alone(f):
    def loop(c):
        return lax.scan(lambda c, _: (f(c), None), c, None, length=2)[0]
    return loop


def chained(f):
    """Carries that become active, mapped or unknown only round after round."""
    def loop(c):
        def body(c, _):
            return (f(c[0]), c[0] * c[1], c[1] + c[2], c[2] * c[3]), c[1]
        one = onp.ones(2)
        return lax.scan(body, (c, one, one, one), None, length=2)[0][3]
    return loop


def while_kept(f):
    def loop(c):
        return lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, f(s[1])), (0, c),
                              checkpoints=2)[1]
    return loop


def deep(step, depth):
    """`step` applied so many times to the sine: a body in a body in a body …"""
    fun = onp.sin
    for _ in range(depth):
        fun = step(fun)
    return fun


BODIES = {
    "scan": alone,
    "scan of chained carries": chained,
    "scan of remat": lambda f: alone(olympus.checkpoint(f)),
    "remat of scan": lambda f: olympus.checkpoint(alone(f)),
    "cond": lambda f: lambda c: lax.cond(c[0] > 0.3, f, lambda c: c * 2, c),
    "fori_loop": lambda f: lambda c: lax.fori_loop(0, 2, lambda i, c: f(c) + i, c),
    "while_loop(checkpoints)": while_kept,
    "map": lambda f: lambda c: lax.map(lambda y: onp.sum(f(y + c)), c),
}
DEEP_PASSES = {
    "trace": PASSES["trace"], "jvp": PASSES["jvp"], "vmap": PASSES["vmap"], "grad": PASSES["grad"],
    "hvp": lambda f: olympus.make_olympuspr(lambda x: olympus.jvp(
        olympus.grad(lambda x: onp.sum(f(x))), (x,), (x,)))(X),
    "lower grad": lambda f: olympus.jit(olympus.grad(lambda x: onp.sum(f(x)))).lower(X),
}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("name", DEEP_PASSES)
def test_bodies_in_bodies_are_visited_once_per_level(name, kind):
    def work(depth):
        DEEP_PASSES[name](deep(BODIES[kind], depth))

    work(2)     # code that is met first is read for the names that it reads
    a, b, c = (calls(lambda n=n: work(n)) for n in (2, 4, 6))
    # An exponential pass has a ratio of 4 or more. Residuals of inner loops pass through all outer
    # ones, so a level costs a little more than the one inside.
    assert c - b < 1.35 * (b - a)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["trace", "jvp", "grad", "vmap"])
def test_what_a_pass_makes_grows_linearly(name, shape):
    make, run = SHAPES[shape], PASSES[name]
    run(make(8))
    a, b, c = (blocks(lambda n=n: run(make(n))) for n in (40, 80, 160))
    assert c - b < 2.4 * (b - a) + 200


DEEP = {
    "run": lambda f: olympus.jit(f)(X),
    "grad": lambda f: olympus.grad(lambda x: onp.sum(f(x)))(X),
    "vmap": lambda f: olympus.vmap(f)(np.stack([X, X])),
    "vmap of grad": lambda f: olympus.vmap(olympus.grad(lambda x: onp.sum(f(x))))(np.stack([X, X])),
    "remat": lambda f: olympus.grad(olympus.checkpoint(lambda x: onp.sum(f(x))))(X),
    "print": lambda f: str(olympus.make_olympuspr(f)(X)),
}


def jitted(n):
    """sin in so many functions that are jitted inside one another, the argument halved twice."""
    def halved(f, k):
        return olympus.jit(lambda x: f(x * 0.5 if k < 2 else x))

    fun = onp.sin
    for k in range(n):
        fun = halved(fun, k)
    return fun


@pytest.mark.parametrize("name", DEEP)
def test_functions_jitted_200_times_inside_one_another(name):
    out = DEEP[name](jitted(200))
    if name != "print":
        expected = np.sin(0.25) if name in ("run", "vmap") else 0.25 * np.cos(0.25)
        np.testing.assert_allclose(out, np.full(np.shape(out), expected), rtol=1e-5)


@pytest.mark.parametrize("name", DEEP)
def test_scans_20_deep(name):
    def loop(f, n):
        return lambda c: lax.scan(lambda c, _: (f(c), None), c, None, length=n)[0]

    fun = lambda c: c * 1.01 + 0.0 * onp.sin(c)
    for k in range(20):
        fun = loop(fun, 2 if k < 4 else 1)
    out = DEEP[name](fun)
    if name != "print":
        np.testing.assert_allclose(out, np.full(np.shape(out), 1.01 ** 16), rtol=1e-5)


def test_a_jitted_function_that_calls_itself_without_end_is_a_recursion_error():
    code = """
import threading, olympus
def f(x):
    return olympus.jit(lambda y: f(y) * 2)(x)
def go():
    try:
        f(1.0)
    except RecursionError:
        print("told")
go()
thread = threading.Thread(target=go)
thread.start(), thread.join()
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.stdout.split() == ["told", "told"], run.stderr[-500:]


def test_programs_that_grew_deep_one_by_one_can_be_lowered():
    """Each level is traced when the next inner one is known: only the passes go deep."""
    fun, results = onp.sin, []

    def work():
        nonlocal fun
        for _ in range(150):
            fun = (lambda f: olympus.jit(lambda x: f(x)))(fun)
            olympus.make_olympuspr(fun)(X)
        results.append(olympus.grad(lambda x: onp.sum(fun(x)))(X))
        results.append(fun(X))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    np.testing.assert_allclose(results, [np.cos(X), np.sin(X)], rtol=1e-6)


@pytest.mark.parametrize("kind", ["plain", "donated", "while"])
def test_types_of_wide_programs_are_listed_a_fixed_number_of_times(kind, monkeypatch):
    """Regression: to lower one with 20,000 arguments took 40 s, as all were listed for each."""
    lists = 0

    def counted(of):
        def avals(self):
            nonlocal lists
            lists += 1
            return [v.aval for v in of(self.olympuspr)]
        return property(avals)

    monkeypatch.setattr(ClosedOlympuspr, "in_avals", counted(lambda pr: pr.invars))
    monkeypatch.setattr(ClosedOlympuspr, "out_avals", counted(lambda pr: pr.outvars))

    def doubled(xs):
        return [x * 2.0 for x in xs]

    def turned(xs):
        return olympus.jvp(
            lambda ys: lax.while_loop(lambda c: c[0][0] < 9.0, doubled, ys), (xs,), (xs,))

    def listed(n):
        nonlocal lists
        lists = 0
        f = olympus.jit(turned if kind == "while" else lambda xs: doubled(xs),
                        donate_argnums=0 if kind == "donated" else ())
        f.lower([np.ones(2, np.float32)] * n)
        return lists

    listed(2)
    assert listed(40) == listed(10)


def test_the_combination_of_a_reduction_is_traced_once_for_a_module(monkeypatch):
    traced = []
    monkeypatch.setattr(context, "stage", lambda *args: traced.append(args) or stage(*args))
    x = onp.ones((3, 4))
    text = olympus.jit(lambda x: (x.prod(0), x.prod(1), (x + 1).prod())).lower(x).as_text()
    assert text.count("stablehlo.multiply") == 3
    assert len(traced) == 1
