"""Taylor mode against derivatives of derivatives, and the known ones of Faà di Bruno's formula."""

import math

import numpy as np
import pytest
from ops import Op, tables
from properties import cast, same

import olympus
from olympus import jvp, lax, numpy as onp
from olympus.experimental import jet as module
from olympus.experimental.jet import jet, jet2, jet_rules, zero_series
from olympus.extend.core import Primitive

ROWS = [op for name, table in tables().items() if name.startswith("lax_") for op in table
        if isinstance(op, Op) and op.grad and op.twice and "f" in op.dtypes]


@pytest.mark.slow
@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
def test_the_second_order_is_forward_over_forward(op):
    args = cast(op, "f")
    moved = [i for i, a in enumerate(args) if getattr(a, "dtype", None) == np.float32]
    rng = np.random.default_rng(0)
    first, second = ([rng.uniform(-1, 1, args[i].shape).astype("f4") for i in moved]
                     for _ in range(2))

    def f(*xs):
        given = dict(zip(moved, xs, strict=True))
        return op.fun(*[given.get(i, a) for i, a in enumerate(args)])

    primals = [args[i] for i in moved]
    value, found = jet(f, primals, list(zip(first, second, strict=True)))
    same(value, f(*primals), 1e-6)
    slope = lambda *xs: jvp(f, xs, tuple(first))[1]
    # (f(x(t)))'' = f''(x)(x', x') + f'(x) x''
    bend = olympus.tree.map(lambda a, b: a if a.dtype == olympus.float0 else a + b,
                            jvp(slope, primals, first)[1], jvp(f, primals, second)[1])
    whole = [i for i, t in enumerate(olympus.tree.leaves(bend)) if t.dtype != olympus.float0]
    for i in whole:     # integers among the results have no derivative
        for k, expected in enumerate((slope(*primals), bend)):
            terms = olympus.tree.leaves(found)[2 * i + k]
            same(terms, olympus.tree.leaves(expected)[i], 1e-3)


@pytest.mark.parametrize(("f", "x"), [
    (onp.exp, 0.3), (onp.sin, 0.3), (onp.tanh, 0.3), (onp.log, 0.7), (lambda x: x ** 2.5, 0.7),
    (lambda x: 1 / (1 + x * x), 0.4), (lambda x: onp.sin(onp.exp(x)) * x, 0.2),
    (olympus.nn.sigmoid, 0.3),
], ids=["exp", "sin", "tanh", "log", "pow", "div", "composition", "sigmoid"])
def test_the_fifth_order_is_five_derivatives(f, x):
    with olympus.enable_x64():
        _, found = jet(f, (x,), ([1.0, 0.0, 0.0, 0.0, 0.0],))
        for k in range(5):
            f = (lambda g: lambda t: jvp(g, (t,), (1.0,))[1])(f)
            np.testing.assert_allclose(found[k], f(x), rtol=1e-9)


def test_the_work_grows_with_a_power_of_the_order():
    def size(n):
        zeros = [0.0] * (n - 1)
        return len(olympus.make_olympuspr(lambda x: jet(
            lambda x: onp.sin(onp.tanh(x) * x), (x,), ([1.0, *zeros],)))(0.3).eqns)

    assert size(12) < 2 ** 3.2 * size(6)


def test_jet_and_jet2_are_the_polynomials_of_a_composition():
    h0, h1, h2 = 0.5 ** 3, 3 * 0.5 ** 2, 6 * 0.5
    value, (one, two) = jet(onp.sin, (h0,), ((h1, h2),))
    expected = [math.sin(h0), math.cos(h0) * h1, -math.sin(h0) * h1 ** 2 + math.cos(h0) * h2]
    np.testing.assert_allclose([value, one, two], expected, rtol=1e-6)
    _, coefficients = jet2(onp.sin, (h0,), ((h1, h2 / 2),))
    np.testing.assert_allclose(coefficients, [one, two / 2], rtol=1e-6)


def test_jet_of_pytrees_constants_and_loops_inside_other_transformations():
    def f(p, i):
        return {"y": lax.fori_loop(0, 2, lambda _, x: onp.sin(x), p["a"]) * p["b"][i], "i": i + 1}
    series = {"a": [1.0, 0.0], "b": [onp.zeros(3)] * 2}
    value, found = olympus.jit(lambda a: jet(f, ({"a": a, "b": onp.arange(3.0)}, 2), (
        series, zero_series)))(0.3)
    slope = math.cos(math.sin(0.3)) * math.cos(0.3)
    np.testing.assert_allclose(found["y"][0], 2 * slope, rtol=1e-6)
    assert value["i"] == 3
    rows = olympus.vmap(lambda x: jet(onp.exp, (x,), ([1.0, 0.0],))[1][1])(onp.arange(3.0))
    np.testing.assert_allclose(rows, np.exp(np.arange(3)), rtol=1e-6)
    third = olympus.grad(lambda x: jet(onp.exp, (x,), ([1.0, 0.0],))[1][1])(0.5)
    np.testing.assert_allclose(third, math.exp(0.5), rtol=1e-6)


def test_custom_jvp_rules_are_used_and_functions_with_custom_vjp_are_differentiated():
    @olympus.custom_jvp
    def cube(x):
        return x ** 3
    cube.defjvp(lambda x, t: (cube(*x), 3 * x[0] ** 2 * t[0] * 2))     # twice the derivative
    np.testing.assert_allclose(jet(cube, (2.0,), ([1.0, 0.0],))[1], [24, 24])

    @olympus.custom_vjp
    def square(x):
        return x * x
    square.defvjp(lambda x: (x * x, x), lambda x, ct: (0 * ct,))
    np.testing.assert_allclose(jet(square, (3.0,), ([1.0, 0.0],))[1], [6, 2])


@pytest.mark.parametrize("give", ["def_deriv", "def_comp", "rule", "deflinear", "defzero"])
def test_rules_of_users_primitives(give):
    prim = Primitive(f"own_{give}")
    prim.def_impl(lambda x: {"deflinear": 2 * x, "defzero": onp.floor(x)}.get(give, onp.sin(x)))
    expected = {"deflinear": [2, 0, 0], "defzero": [0, 0, 0]}.get(
        give, [math.cos(0.5), -math.sin(0.5), -math.cos(0.5)])
    if give == "rule":
        jet_rules[prim] = lambda primals, series: jet2(onp.sin, primals, series)
    else:
        getattr(module, give)(prim, *{"def_deriv": [onp.cos], "def_comp": [onp.sin]}.get(give, []))
    try:
        _, found = jet(lambda x: prim.bind(x), (0.5,), ([1.0, 0.0, 0.0],))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    finally:
        del jet_rules[prim]


def test_scalar_terms_and_zeros_are_no_nan_where_the_value_is_infinite():
    x = onp.array([np.inf, 1.0])
    np.testing.assert_array_equal(jet(lambda x: 2 * x, (x,), ([1.0],))[1], [[2, 2]])
    np.testing.assert_array_equal(module.zero_prop(lax.floor_p, [x], [[x]])[1], [[0, 0]])


def test_jet_refuses_in_words():
    with pytest.raises(ValueError, match="as many for each"):
        jet(onp.add, (1.0, 2.0), ([1.0], [1.0, 0.0]))
    with pytest.raises(ValueError, match="one for each"):
        jet(onp.add, (1.0, 2.0), ([1.0],))
    with pytest.raises(ValueError, match="term 1"):
        jet(onp.sin, (onp.ones(2),), ([onp.ones(3)],))
    with pytest.raises(TypeError, match="array or a Python number"):
        jet(onp.sin, ("x",), ([1.0],))
