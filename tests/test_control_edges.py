"""Control flow at its edges: no iterations, odd carries, errors by leaf, how often effects are."""

from __future__ import annotations

import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import olympus
from olympus import checkpoint, debug, grad, jit, jvp, lax, numpy as onp, random, vmap

X = np.float32(0.7)
XS = np.array([0.3, -0.4, 0.9], np.float32)
NONE = np.zeros((0,), np.float32)


def sines(c, x):
    return onp.sin(c) * x, c * x


# No iterations: the carry comes out as it went in, and its derivative is the identity ------------

EMPTY = {
    "scan": lambda x: lax.scan(sines, x, NONE)[0],
    "scan-reverse": lambda x: lax.scan(sines, x, NONE, reverse=True)[0],
    "scan-length": lambda x: lax.scan(lambda c, _: (onp.sin(c), c), x, length=0)[0],
    "scan-checkpoint": lambda x: lax.scan(sines, x, NONE, checkpoint="sqrt")[0],
    "scan-unroll": lambda x: lax.scan(sines, x, NONE, unroll=True)[0],
    "fori_loop": lambda x: lax.fori_loop(3, 3, lambda i, c: onp.sin(c), x),
    "fori_loop-backwards": lambda x: lax.fori_loop(3, 1, lambda i, c: onp.sin(c), x),
    "while_loop-checkpoints": lambda x: lax.while_loop(
        lambda c: c > 5., onp.sin, x, checkpoints=2),
    "while_loop": lambda x: lax.while_loop(lambda c: c > 5., onp.sin, x),
    "fori_loop-dynamic": lambda x: lax.fori_loop(0, (0 * x).astype(int), lambda i, c: onp.sin(c),
                                                 x),
}


@pytest.mark.parametrize("name", EMPTY)
def test_no_iterations(name):
    fun = EMPTY[name]
    assert fun(X) == jit(fun)(X) == X
    np.testing.assert_array_equal(vmap(fun)(XS), XS)
    assert jvp(fun, (X,), (X,))[1] == X
    if name not in ("while_loop", "fori_loop-dynamic"):
        assert grad(fun)(X) == jit(grad(fun))(X) == 1
        np.testing.assert_array_equal(vmap(grad(fun))(XS), np.ones(3))


def test_nothing_to_map_over():
    assert lax.map(onp.sin, NONE).shape == (0,)
    assert lax.map(onp.sin, NONE, batch_size=2).shape == (0,)
    assert lax.associative_scan(onp.add, NONE).shape == (0,)
    assert grad(lambda xs: lax.map(onp.sin, xs).sum())(NONE).shape == (0,)
    ys = vmap(lambda x: lax.scan(sines, x, NONE)[1])(XS)
    assert ys.shape == (3, 0)
    assert vmap(lambda x: lax.while_loop(lambda c: c > 0, lambda c: c - 1, x))(NONE).shape == (0,)


# Carries of every kind ---------------------------------------------------------------------------

CARRIES = {
    "bool": (np.array([True, False]), lambda c: ~c),
    "int8": (np.array([1, -3], np.int8), lambda c: c * np.int8(3)),
    "uint32": (np.array([1, 3], np.uint32), lambda c: c * np.uint32(3)),
    "complex64": (np.array([1 + 2j, -1j], np.complex64), lambda c: c * np.complex64(1j)),
    "bfloat16": (np.array([1.5, 2], ml_dtypes.bfloat16), lambda c: c * c.dtype.type(0.5)),
    "float16": (np.array([1.5, 2], np.float16), lambda c: c * np.float16(0.5)),
    "None": ({"a": None, "b": (X, ())}, lambda c: {"a": None, "b": (c["b"][0] * 2, ())}),
    "no leaves": ((), lambda c: ()),
}


@pytest.mark.parametrize("name", CARRIES)
def test_kinds_of_carries(name):
    init, f = CARRIES[name]
    expected = f(f(f(init)))
    ways = [
        lambda c: lax.scan(lambda c, _: (f(c), None), c, None, length=3)[0],
        lambda c: lax.fori_loop(0, 3, lambda _, c: f(c), c),
        lambda c: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, f(s[1])), (0, c))[1],
        lambda c: lax.fori_loop(0, 3, lambda _, c: lax.cond(True, f, lambda v: v, c), c),
        lambda c: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, f(s[1])), (0, c),
                                 checkpoints=1)[1],
    ]
    for way in ways:
        for fun in (way, jit(way)):
            out = fun(init)
            assert olympus.tree.structure(out) == olympus.tree.structure(init)
            for a, b in zip(olympus.tree.leaves(out), olympus.tree.leaves(expected), strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(a, b)
        if olympus.tree.leaves(init):
            stacked = olympus.tree.map(lambda x: np.stack([x, x]), init)
            for a, b in zip(olympus.tree.leaves(vmap(way)(stacked)),
                            olympus.tree.leaves(expected), strict=True):
                np.testing.assert_array_equal(a, np.stack([b, b]))


def test_keys_as_carries():
    def body(key, x):
        key, sub = random.split(key)
        return key, x * random.uniform(sub)

    def plain(key):
        ys = []
        for x in XS:
            key, y = body(key, x)
            ys.append(y)
        return random.key_data(key), onp.stack(ys)

    def looped(key):
        key, ys = lax.scan(body, key, XS)
        return random.key_data(key), ys

    keys = random.split(random.key(3), 2)
    for found, want in zip(jit(looped)(keys[0]), plain(keys[0]), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-6)
    for found, want in zip(vmap(looped)(keys), vmap(plain)(keys), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-6)
    slope = grad(lambda x: lax.scan(body, keys[0], XS * x)[1].sum())(X)
    np.testing.assert_allclose(slope, plain(keys[0])[1].sum(), rtol=1e-6)


@pytest.mark.parametrize("x64", [False, True])
def test_weak_carries_take_the_type_of_the_body(x64):
    with olympus.enable_x64(x64):
        wide = np.float64 if x64 else np.float32
        strong = onp.ones((), wide)
        for fun in (lambda c: lax.scan(lambda c, _: (c * strong, None), c, length=2)[0],
                    lambda c: lax.fori_loop(0, 2, lambda _, c: c * strong, c),
                    lambda c: lax.while_loop(lambda c: c < 1, lambda c: c + strong, c)):
            out = fun(0.0)
            assert (out.dtype, out.weak_type) == (wide, False)
            assert fun(0).dtype == wide
        out = lax.fori_loop(0, 2, lambda _, c: (c[1], c[0]), (0.5, onp.ones((), wide)))
        assert [x.weak_type for x in out] == [False, False]
        assert lax.fori_loop(0, 2, lambda _, c: c * 2.0, 1.0).weak_type


# What does not fit is told leaf by leaf ----------------------------------------------------------

STATE = {"a": (X, 1), "b": XS}


@pytest.mark.parametrize("run", [
    lambda f: lax.scan(lambda c, _: (f(c), None), STATE, length=2),
    lambda f: lax.fori_loop(0, 2, lambda _, c: f(c), STATE),
    lambda f: lax.while_loop(lambda c: c["a"][1] < 3, f, STATE),
    lambda f: lax.while_loop(lambda c: c["a"][1] < 3, f, STATE, checkpoints=2),
], ids=["scan", "fori_loop", "while_loop", "checkpoints"])
@pytest.mark.parametrize("body, message", [
    (lambda c: {"a": (c["b"], c["a"][1]), "b": c["b"][:2]},
     r"\['a'\]\[0\] is float32\[3\], required float32\[\]; .*\['b'\] is float32\[2\], required "
     r"float32\[3\]"),
    (lambda c: {"a": (c["a"][0], onp.sin(XS)), "b": c["b"]},
     r"\['a'\]\[1\] is float32\[3\], required int32\[\]"),
    (lambda c: {"a": c["a"]}, r"structure.*missing|missing.*'b'|'b'"),
    (lambda c: {"a": [*c["a"]], "b": c["b"]}, r"\['a'\].*list of length 2.*tuple of length 2"),
], ids=["shapes", "weak", "missing", "list"])
def test_carries_that_do_not_fit(run, body, message):
    with pytest.raises(TypeError, match=message):
        run(body)


# Effects -----------------------------------------------------------------------------------------

@pytest.fixture
def said():
    found = []

    def say(x):
        debug.callback(lambda v: found.append(round(float(v), 4)), x)
        return x

    def count(fun, *args):
        del found[:]
        olympus.block_until_ready(fun(*args))
        olympus.effects_barrier()
        return len(found)
    return say, count


def test_effects_are_as_many_as_iterations(said):
    say, count = said
    loops = [
        lambda x: lax.scan(lambda c, y: (c * say(y), None), x, XS)[0],
        lambda x: lax.fori_loop(0, 3, lambda i, c: onp.sin(say(c)), x),
        lambda x: lax.scan(checkpoint(lambda c, y: (c * say(y), None)), x, XS)[0],
        lambda x: lax.map(lambda y: y * say(x), XS).sum(),
        lambda x: lax.cond(x > 0.1, lambda: say(x) * say(x) * say(x), lambda: x),
        lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, say(s[1]) * 2), (0, x),
                                 )[1],
    ]
    for i, fun in enumerate(loops):
        assert count(fun, X) == count(jit(fun), X) == 3, i
        assert count(jit(lambda x, f=fun: jvp(f, (x,), (x,))), X) == 3, i
        # Once for all elements where the value is not mapped: the xs of the first and the third.
        assert count(jit(vmap(fun)), XS) == (3 if i in (0, 2) else 6 if i == 4 else 9), i
    for i in (0, 1, 3, 4):
        assert count(jit(grad(loops[i])), X) == 3, i


def test_effects_in_branches_under_a_mapped_predicate_happen_where_they_are_taken(said):
    say, count = said

    def fun(x):
        return lax.cond(x > 0, say, lambda v: 2 * v, x)

    assert count(vmap(fun), XS) == count(jit(vmap(fun)), XS) == 2
    np.testing.assert_allclose(vmap(fun)(XS), np.where(XS > 0, XS, 2 * XS))


def test_elements_that_ended_have_no_effects(said):
    say, count = said

    def fun(x):
        return lax.while_loop(lambda c: c > 0.0, lambda c: say(c) - 0.5, x)

    assert count(jit(vmap(fun)), XS) == 3      # one round for 0.3, none for -0.4, two for 0.9


def test_a_finished_element_does_not_raise():
    def check(x):
        if x < 0:
            raise ValueError("mine")
        return x

    def fun(x):
        def body(c):
            return olympus.pure_callback(check, c, c, vmap_method="sequential") - 1.0
        return lax.while_loop(lambda c: c > 0.0, body, x)

    np.testing.assert_allclose(jit(vmap(fun))(np.array([0.5, 3.5], np.float32)), [-0.5, -0.5])


# Nested transformations --------------------------------------------------------------------------

def product(x):
    return lax.scan(lambda c, y: (onp.sin(c) * y + x, None), x, XS)[0]


def product_out(x):
    c = x
    for y in XS:
        c = onp.sin(c) * y + x
    return c


@pytest.mark.parametrize("wrap", [
    lambda f: f, jit, checkpoint, lambda f: jit(checkpoint(f)), lambda f: checkpoint(jit(f))],
    ids=["plain", "jit", "checkpoint", "jit-checkpoint", "checkpoint-jit"])
def test_third_derivatives_of_scan(wrap):
    want = grad(grad(grad(product_out)))(X)
    np.testing.assert_allclose(grad(grad(grad(wrap(product))))(X), want, rtol=1e-4)
    np.testing.assert_allclose(jit(grad(wrap(grad(wrap(grad(product))))))(X), want, rtol=1e-4)


# One function in both branches, nested -----------------------------------------------------------

def forks(depth, factor):
    f = onp.sin
    for _ in range(depth):
        f = (lambda g: lambda x: lax.cond(x > 0, g, g, x * factor))(f)
    return f


def size(closed):
    """Equations of a program; those of a program that occurs again count once."""
    seen, total, todo = set(), 0, [closed.olympuspr]
    while todo:
        pr = todo.pop()
        if id(pr) in seen:
            continue
        seen.add(id(pr))
        total += len(pr.eqns)
        for eqn in pr.eqns:
            todo += [b.olympuspr for b in eqn.params.get("branches", ())]
    return total


@pytest.mark.parametrize("transform", [
    lambda f: f, grad, lambda f: lambda x: jvp(f, (x,), (x,)), lambda f: lambda x: vmap(f)(x[None]),
    lambda f: lambda x: vmap(grad(f))(x[None])], ids=["plain", "grad", "jvp", "vmap", "vmap grad"])
@pytest.mark.parametrize("factor", [np.float32(0.5), onp.ones(())], ids=["number", "array"])
def test_branches_that_share_a_function_do_not_multiply(transform, factor):
    def grown(measure):
        few, many = (measure(transform(forks(n, factor))) for n in (4, 12))
        return many / few

    x = np.float32(1)
    assert grown(lambda f: size(olympus.make_olympuspr(f)(x))) < 6      # 2^8 if they do
    assert grown(lambda f: len(jit(f).lower(x).as_text())) < 6


def test_branches_that_share_a_function_compute_it():
    f = forks(3, np.float32(0.5))
    xs = np.array([-1.0, 0.5, 2.0], "f")
    np.testing.assert_allclose(jit(vmap(f))(xs), np.sin(xs / 8), rtol=1e-6)
    np.testing.assert_allclose([jit(f)(x) for x in xs], np.sin(xs / 8), rtol=1e-6)
    np.testing.assert_allclose(vmap(jit(grad(f)))(xs), np.cos(xs / 8) / 8, rtol=1e-6)


# Conditions with effects, mapped -----------------------------------------------------------------

@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["plain", "jit"])
def test_a_mapped_condition_is_evaluated_once_for_each_value_of_an_element(wrap, capfd):
    def below(x):
        olympus.debug.print("{}", x)
        return x < 3

    run = wrap(vmap(lambda x: lax.while_loop(below, lambda x: x + 1, x)))
    np.testing.assert_array_equal(run(np.array([0.0, 2.0, 5.0], "f")), [3, 3, 5])
    olympus.effects_barrier()
    seen = sorted(map(float, capfd.readouterr().out.split()))
    assert seen == sorted([0.0, 1.0, 2.0, 3.0] + [2.0, 3.0] + [5.0])


COMPUTING = """
import os, sys, threading
if sys.argv[1] == "one":
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
import numpy as np
import olympus
from olympus import jit, lax, numpy as onp, pure_callback
from olympus.experimental import io_callback

x = onp.ones(100_000)
f = jit(lambda x: pure_callback(lambda v: np.asarray(jit(lambda a: onp.sin(a) * 2)(v)), x, x).sum())
step = lambda c, _: (io_callback(lambda v: np.asarray(onp.cos(v)), c, c, ordered=True), None)
g = jit(lambda c: lax.scan(step, c, None, 100)[0])
threads = [threading.Thread(target=lambda: float(f(x))) for _ in range(8)]
for t in threads:
    t.start()
found = [float(f(x)) for _ in range(5)], float(g(0.5))
for t in threads:
    t.join()
np.testing.assert_allclose(found[0], 2e5 * np.sin(1), rtol=1e-4)
np.testing.assert_allclose(found[1], 0.739085, rtol=1e-5)
"""


@pytest.mark.parametrize("cores", ["one", "all"])
def test_callbacks_that_compute_while_the_main_thread_waits_do_not_hang(cores):
    if cores == "one" and not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system does not bind processes to cores")
    subprocess.run([sys.executable, "-c", COMPUTING, cores], timeout=120, check=True)


# Weak types --------------------------------------------------------------------------------------

ONE, TWO = np.float32(1), np.int32(2)
TYPED = {     # the result's dtype and whether it is weak
    "int to float": (lambda n: lax.fori_loop(0, n, lambda i, c: c * .5, 1), "float32", False),
    "float": (lambda n: lax.fori_loop(0, n, lambda i, c: c * .5, 1.), "float32", True),
    "to strong": (lambda n: lax.fori_loop(0, n, lambda i, c: c * ONE, 1.), "float32", False),
    "index": (lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0), "int32", True),
    "index, strong upper": (lambda n: lax.fori_loop(0, onp.asarray(n, "int32"),
                                                    lambda i, c: c + i, 0), "int32", True),
    "bfloat16 by index": (lambda n: lax.fori_loop(
        np.int32(0), np.int32(3), lambda i, c: c * i, onp.bfloat16(1)), "bfloat16", False),
    "while": (lambda n: lax.while_loop(lambda c: c < n, lambda c: c * 2., 1), "float32", False),
    "while weak": (lambda n: lax.while_loop(lambda c: c < n, lambda c: c * 2, 1), "int32", True),
    "scan": (lambda n: lax.scan(lambda c, _: (c * 2., None), 1, length=2)[0], "float32", False),
    "cond, false is weak": (lambda n: lax.cond(n > 1, lambda: ONE, lambda: 2.), "float32", True),
    "cond, true is weak": (lambda n: lax.cond(n > 1, lambda: 2., lambda: ONE), "float32", False),
    "switch, first is weak": (lambda n: lax.switch(n, [lambda: 2., lambda: ONE]), "float32", True),
}


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["", "jit"])
@pytest.mark.parametrize("name", TYPED)
def test_weak_types_of_results(name, wrap):
    fun, dtype, weak = TYPED[name]
    out = wrap(lambda n: 1 * fun(n))(3)
    assert (out.dtype, out.weak_type) == (dtype, weak)


@pytest.mark.parametrize("fun", [
    lambda x: lax.scan(lambda c, _: (c + x, None), 0., length=2)[0],
    lambda x: lax.while_loop(lambda c: c < 3., lambda c: c + x, 0),
    lambda x: lax.cond(x < 0, lambda: 0., lambda: x)], ids=["scan", "while_loop", "cond"])
def test_a_number_that_takes_the_type_of_arrays_is_no_equation(fun):
    assert "new_dtype=float32" not in str(olympus.make_olympuspr(fun)(ONE))
    assert fun(ONE).dtype == "float32"


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["concrete", "traced"])
def test_fori_loop_between_real_bounds(wrap):
    def total(x, y):
        return lax.fori_loop(x, y, lambda i, c: c + i, 0.)

    assert wrap(total)(0.5, 2.7) == 0.5 + 1.5 + 2.5
    np.testing.assert_allclose(olympus.jacfwd(wrap(total), (0, 1))(1., 3.), (2., 0.))
    with pytest.raises(TypeError, match="must have equal types, got int32.* and float32"):
        total(0, 2.)


def test_fori_loop_between_bounds_that_are_concrete_under_grad_has_a_gradient():
    found = olympus.grad(lambda x: lax.fori_loop(x, x + 2., lambda i, c: c * x + i, x))(3.)
    assert found == 3 * 3**2 + 2 * 3 + 1    # of x³ + x² + x + 1


def test_an_index_that_int32_does_not_hold_keeps_its_dtype():
    first = np.uint32(2**32 - 2)
    found = lax.fori_loop(first, np.uint32(2**32 - 1), lambda i, c: i, np.uint32(0))
    assert (found, found.dtype) == (first, np.uint32)


def test_unroll_of_zero_unrolls_nothing():
    for n in (0, 3):
        assert lax.scan(lambda c, _: (c + 1, None), 0, length=n, unroll=0)[0] == n
        assert lax.fori_loop(0, n, lambda i, c: c + 1, 0, unroll=0) == n
    for unroll, error in ((-1, ValueError), (2.5, TypeError)):
        with pytest.raises(error, match="scan: `unroll` must be"):
            lax.scan(lambda c, _: (c, None), 0, length=2, unroll=unroll)


def test_a_complex_predicate_is_refused():
    for pred in (1j, onp.asarray(0j)):
        with pytest.raises(TypeError, match="a boolean or a real number is required"):
            lax.cond(pred, lambda: 1, lambda: 2)


# Under a mapped predicate a branch sees none of the elements that do not take it ------------------

WHICH, AT = np.array([0, 1, 2, 3, 0]), np.array([0., 4., -0.5, 0.25, -2.], np.float32)
SWITCHED = [lambda m, x, w: x * w, lambda m, x, w: m.sqrt(x * w), lambda m, x, w: w / x,
            lambda m, x, w: m.log(x) * w]


def closed_over(x, w):
    return vmap(lambda i, x: lax.switch(i, [lambda f=f: f(onp, x, w) for f in SWITCHED]))(WHICH, x)


UNTAKEN = {
    "switch": lambda x, w: vmap(
        lambda i, x: lax.switch(i, [lambda x, w, f=f: f(onp, x, w) for f in SWITCHED], x, w))(
            WHICH, x),
    "closed over": closed_over,
    "jit": jit(closed_over),
    "cond": lambda x, w: vmap(lambda i, x: lax.cond(
        i % 2 == 0, lambda: lax.cond(i == 0, lambda: x * w, lambda: w / x),
        lambda: lax.cond(i == 1, lambda: onp.sqrt(x * w), lambda: onp.log(x) * w)))(WHICH, x),
    "scan": lambda x, w: lax.scan(
        lambda c, _: (closed_over(c, w) - c + x, None), x, None, length=1)[0],
}


@pytest.mark.parametrize("name", UNTAKEN)
def test_a_branch_that_is_not_taken_has_no_part_in_derivatives(name):
    fun, w = UNTAKEN[name], np.float32(1.5)
    values = [SWITCHED[i](np, x, w) for i, x in zip(WHICH, AT)]
    slopes = [w, 0.5 * np.sqrt(w / 4), -w / 0.25, w / 0.25, w]
    by_w = [0., 0.5 * np.sqrt(4 / w), -2., np.log(0.25), -2.]
    curves = [0., -0.25 * np.sqrt(w) / 8, 2 * w / -0.125, -w / 0.0625, 0.]
    out, back = olympus.vjp(fun, AT, w)
    np.testing.assert_allclose(out, values, rtol=1e-6)
    for found in (back(np.ones(5, np.float32)),
                  jit(grad(lambda x, w: fun(x, w).sum(), (0, 1)))(AT, w)):
        np.testing.assert_allclose(found[0], slopes, rtol=1e-6)
        np.testing.assert_allclose(found[1], sum(by_w), rtol=1e-5)
    for jac in (olympus.jacrev, olympus.jacfwd):
        np.testing.assert_allclose(jac(fun)(AT, w), np.diag(slopes), rtol=1e-6)
        np.testing.assert_allclose(jac(fun, 1)(AT, w), by_w, rtol=1e-5)
    found = olympus.hessian(lambda x: fun(x, w).sum())(AT)
    np.testing.assert_allclose(found, np.diag(curves), rtol=1e-5)
    # No element takes the other branches: they have no part in derivatives.
    only = np.zeros(5, int)
    slope = grad(lambda w: vmap(lambda i, x: lax.switch(
        i, [lambda f=f: f(onp, x, w) for f in SWITCHED]))(only, AT).sum())(w)
    np.testing.assert_allclose(slope, AT.sum(), rtol=1e-6)


def test_a_loop_in_a_branch_does_not_run_for_elements_that_do_not_take_it():
    def above(x):
        return lax.while_loop(lambda y: y < 10., lambda y: y * 2, x)

    found = vmap(lambda x: lax.cond(x > 0, above, lambda x: x, x))(np.float32([1, -1, 0, 11]))
    np.testing.assert_array_equal(found, [16, -1, 0, 11])


@pytest.mark.parametrize(("branch", "chosen"), [
    (onp.sqrt, False),
    (lambda x: lax.scan(lambda c, _: (c * c, None), x, length=3)[0], False),
    (lambda x: lax.while_loop(lambda y: y < 9., lambda y: y * 2, x), True),
    (lambda x: jit(lambda x: lax.while_loop(lambda y: y < 9., lambda y: y * 2, x))(x), True),
    (lambda x: olympus.pure_callback(np.sqrt, x, x, vmap_method="expand_dims"), True),
], ids=["sqrt", "scan", "while", "while in a call", "callback"])
def test_only_branches_that_mind_are_given_operands_of_those_that_take_them(branch, chosen):
    fun = vmap(lambda x: lax.cond(x > 0, branch, lambda x: x, x))
    assert ("argmax" in str(olympus.make_olympuspr(fun)(XS))) == chosen
    np.testing.assert_allclose(jit(fun)(XS), [branch(x) if x > 0 else x for x in XS], rtol=1e-6)


def test_collectives_in_branches_see_all_elements():
    def one(x):
        return lax.cond(x > 0, lambda x: lax.psum(x, "i") * x, lambda x: x, x)

    x = np.float32([1, -2, 4])
    np.testing.assert_array_equal(vmap(one, axis_name="i")(x), [3, -2, 12])
    np.testing.assert_array_equal(grad(lambda x: vmap(one, axis_name="i")(x).sum())(x),
                                  [3 + 5, 5 + 1, 3 + 5])


def test_elements_that_ended_lend_no_constants_to_those_that_go_on():
    def product(n, w):
        return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] / (w - s[0])),
                              (0., 1.), checkpoints=3)[1]

    n, w = np.float32([1, 3]), np.float32([1, 5])
    wanted = [-1., -(1 / 5 + 1 / 4 + 1 / 3) / 60]
    np.testing.assert_allclose(vmap(product)(n, w), [1, 1 / 60], rtol=1e-6)
    np.testing.assert_allclose(vmap(grad(product, 1))(n, w), wanted, rtol=1e-6)
    np.testing.assert_allclose(grad(lambda w: vmap(product)(n, w).sum())(w), wanted, rtol=1e-6)


# Nests ------------------------------------------------------------------------------------------

def called_twice(f):
    g = olympus.jit(f)
    return lambda x: g(x) + g(x * 2)


LEVELS = {
    "cond": lambda f: lambda x: lax.cond(x > 0, f, lambda y: y * 2, x),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "while": lambda f: lambda x: lax.while_loop(lambda c: c < 1, f, x),
    "shared call": called_twice,
}


def nest(kinds, depth):
    f = onp.sin
    for i in range(depth):
        f = LEVELS[kinds[i % len(kinds)]](f)
    return f


@pytest.mark.parametrize("kinds", [["cond"], ["scan"], ["while"], [*LEVELS]], ids="-".join)
def test_a_nest_deeper_than_the_bound_is_refused(kinds):
    # Lowered only, and the compiler (jaxlib 0.10.2) would follow 135 levels.
    with pytest.raises(RecursionError, match=(
            r"more than 128 loops, branches and calls .*lax\.scan over.*outside in: "
            r"\w+ at .*test_control_edges\.py:\d+")):
        olympus.jit(nest(kinds, 135)).lower(1.0)


def test_a_function_called_first_at_the_top_of_a_nest_counts_at_its_bottom_too():
    deep = olympus.jit(nest(["cond"], 70))

    def f(x):
        below = deep
        for _ in range(70):
            below = LEVELS["while"](below)
        return deep(x) + below(x)

    with pytest.raises(RecursionError, match="more than 128"):
        olympus.jit(f).lower(1.0)


def test_a_nest_around_an_exported_nest_is_refused_beyond_the_bound():
    exported = olympus.export.export(olympus.jit(nest(["cond", "while"], 70)))(1.0)
    below = exported.call
    for _ in range(70):
        below = LEVELS["cond"](below)
    with pytest.raises(RecursionError, match="more than 128 .*call_exported at"):
        olympus.jit(below).lower(1.0)


def test_nests_that_the_compiler_follows_are_lowered():
    assert olympus.jit(nest(["cond", "while"], 120)).lower(1.0).as_text().count("while") >= 60


def test_a_mapped_predicate_leaves_what_all_branches_hand_on_as_it_is():
    """Regression: vmap of cond gave a result mapped that both branches return as it came."""
    def f(p, a, b):
        return lax.switch(p, [lambda a, b: (a, b + 1, a), lambda a, b: (a, b, b),
                              lambda a, b: (a, b, a)], a, b)

    index, b = onp.arange(4) % 3, onp.arange(4)
    same, other, either = olympus.vmap(f, (0, None, 0), (None, 0, 0))(index, 7, b)
    assert int(same) == 7
    np.testing.assert_array_equal(other, [1, 1, 2, 4])
    np.testing.assert_array_equal(either, [7, 1, 7, 7])
    pr = olympus.make_olympuspr(olympus.vmap(f, (0, 0, 0)))(index, b, b).olympuspr
    assert pr.outvars[0] is pr.invars[1]
