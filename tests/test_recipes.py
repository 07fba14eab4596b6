"""Equations alike are lowered by one recipe: modules are those that each equation's rule makes."""

import numpy as np
import pytest

import olympus
from olympus import lax, numpy as onp
from olympus._src.lowering import attributes, builder
from olympus.extend.core import primitives
from olympus.interpreters import mlir

X = np.arange(6, dtype="float32").reshape(2, 3)


def lowered(fun, *args):
    """The module of a function made anew, with what names it."""
    text = olympus.jit(lambda *xs: fun(*xs)).lower(*args).as_text(debug_info=True)
    return [line for line in text.splitlines() if not line.startswith("#loc")]


def equal_operands(x, y):
    """First the operands are one value, then two."""
    return x - x, x - y, onp.where(x > 0, x, x), onp.where(x > y, y, x)


def numbers_that_are_operands(x, y):
    """Rules write numbers that may be operands besides."""
    ones, one = onp.ones((2, 3), "float32"), onp.float32(1)
    return (onp.zeros((2, 3), "int32").astype(bool), x.astype("int32").astype(bool),
            lax.integer_pow(ones, -1), lax.integer_pow(x, -1), lax.integer_pow(ones, 0),
            lax.integer_pow(x, 0), lax.exp2(2 * ones), lax.exp2(x),
            one * x, x * 1.0, 1.0 - x, x - 1.0, lax.pad(x, 0.0, ((1, 1, 0), (0, 0, 0))),
            lax.pad(y, x[0, 0], ((1, 1, 0), (0, 0, 0))))


def spread_scalars(x, y):
    """A scalar on the one side, on the other, in a loop's body, and as each of several."""
    def step(i, c):
        return c * 0.5 + y[0, 0] * c - (2.0 - c) * x[0, 1]

    return lax.fori_loop(0, 3, step, x), x[0, 0] + x, x + x[0, 0], onp.broadcast_to(x[1, 1], (2, 3))


def same_values(x, y):
    """What emits nothing, beside what emits something of the same types."""
    z = lax.stop_gradient(x) + lax.stop_gradient(y)
    return z.astype("float32"), z.astype("int32").astype("float32"), -0.0 * x, 0.0 * x


PROGRAMS = [equal_operands, numbers_that_are_operands, spread_scalars, same_values]


@pytest.mark.parametrize("fun", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("swapped", [False, True])
def test_recipes_make_the_modules_that_rules_make(monkeypatch, fun, swapped):
    def program(x, y):
        outs = fun(x, y)
        return fun(y + 1, x), outs if not swapped else outs[::-1]

    attributes._recipes.cache_clear()
    first, again = lowered(program, X, X + 1), lowered(program, X, X + 1)
    assert attributes._recipes
    monkeypatch.setattr(builder, "has_recipes", lambda module, prim: False)
    assert first == again == lowered(program, X, X + 1)


def test_a_rule_given_later_is_used_in_place_of_a_recipe(monkeypatch):
    sin_p = primitives.sin_p
    assert any("stablehlo.sine" in line for line in lowered(lambda x: olympus.lax.sin(x), X))
    monkeypatch.setitem(sin_p.__dict__, "lower", sin_p.lower)       # is taken back with the test
    mlir.register_lowering(sin_p, mlir.lower_fun(lambda x, **_: lax.cos(x), multiple_results=False))
    assert any("stablehlo.cosine" in line for line in lowered(lambda x: olympus.lax.sin(x), X))
