"""Lowering rules that are programs: kept, called as functions, at the user's line, values as is."""

import functools
import inspect
import re

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.extend.core import Primitive
from olympus.extend.random import define_prng_impl
from olympus.interpreters import mlir

KEY = olympus.random.key(3)


def draws(count):
    def f(key):
        total = 0.0
        for _ in range(count):
            key, sub = olympus.random.split(key)
            total += olympus.random.uniform(sub, (4,))
        return total

    return olympus.jit(f)


def functions(lowered):
    return re.findall(r"func private @(\w+)", lowered.as_text())


def here():
    return inspect.currentframe().f_back.f_lineno


def lines_in(lowered):
    """The lines of this file that a module names."""
    text = lowered.as_text(debug_info=True)
    return {int(n) for n in re.findall(r'test_rule_programs\.py":(\d+)', text)}


def test_many_draws_are_calls_of_one_function():
    few, many = functions(draws(2).lower(KEY)), functions(draws(9).lower(KEY))
    assert few == many
    assert sum(name.startswith("threefry") for name in many) == 2     # of splits, and of bits


def test_draws_by_a_function_are_those_of_each_alone():
    @olympus.jit
    def draw(key):
        key, sub = olympus.random.split(key)
        return key, olympus.random.uniform(sub, (4,))

    key, total = KEY, np.zeros(4, "float32")
    for _ in range(3):
        key, drawn = draw(key)
        total += np.asarray(drawn)
    np.testing.assert_array_equal(draws(3)(KEY), total)


def test_a_users_generator_is_asked_anew():
    shift = [1]
    impl = define_prng_impl(
        key_shape=(1,), name="shifting", tag="sh", seed=lambda x: x.astype("uint32")[None],
        split=lambda key, shape: onp.broadcast_to(key, (*shape, 1)),
        random_bits=lambda key, width, shape: onp.full(shape, shift[0], f"uint{width}") + key[0],
        fold_in=lambda key, number: key + number)
    key = olympus.random.key(0, impl=impl)
    first = olympus.jit(lambda k: olympus.random.bits(k, (2,)))(key)
    shift[0] = 5
    second = olympus.jit(lambda k: olympus.random.bits(k, (2,)) * 1)(key)
    assert (first.tolist(), second.tolist()) == ([1, 1], [5, 5])


@pytest.mark.parametrize("fun, args", [
    (olympus.random.split, (KEY,)), (onp.conj, (onp.ones(2, "complex64"),)),
    (lax.bessel_i0e, (onp.ones(2),)), (onp.sqrt, (onp.ones(2, "complex64"),))])
def test_a_rules_operations_are_at_the_users_line_and_not_at_that_of_the_lowering(fun, args):
    def f(*xs):
        return fun(*xs), lines.append(here())

    lines = []
    traced = olympus.jit(lambda *xs: f(*xs)[0]).trace(*args)
    lowered = traced.lower()
    found, line = lines_in(lowered), here() - 1
    assert lines[0] in found
    assert line not in found
    optimised = lowered.compile().as_text()
    assert f"line={line} " not in optimised


@pytest.mark.parametrize("fun, x", [(onp.sum, onp.ones(3)), (olympus.random.bits, KEY)])
def test_equations_alike_are_at_a_line_each(fun, x):
    def f(x):
        first = fun(x)
        second = fun(x)
        return first, second, lines.append(here())

    lines = []
    found = lines_in(olympus.jit(lambda x: f(x)[:2]).lower(x))
    assert {lines[0] - 1, lines[0] - 2} <= found


def test_reductions_alike_are_copied_and_others_are_not():
    x = np.arange(24, dtype="float32").reshape(2, 3, 4) % 5 + 1

    def sums(np, x, z):
        return [np.sum(x, 0), np.sum(x * 2, 0), np.sum(x, 1), np.sum(x, (0, 1)), np.sum(z, 0),
                np.max(x, 1), np.max(-x, 1), np.min(-x, 1), np.prod(x, 1), np.sum(x[0], 0),
                np.sum(x[:, 0], 0)]

    got = olympus.jit(lambda x, z: sums(onp, x, z))(x, x.astype("int32"))
    for a, b in zip(got, sums(np, x, x.astype("int32")), strict=True):
        np.testing.assert_allclose(a, b)


def test_scopes_are_in_front_of_what_a_rule_is_made_of():
    def f(key):
        with olympus.named_scope("layer"):
            return olympus.random.uniform(key, (3,))

    text = olympus.jit(f).lower(KEY).compile().as_text()
    assert "layer/threefry2x32/" in text


def test_zeros_of_either_sign_and_nan_are_constants_of_their_own():
    def f(x):
        return x * 0.0, x * -0.0, x + float("nan"), x * 1, x * 1.0, x + float("nan")

    got = np.array(olympus.jit(f)(onp.float32(2)))
    np.testing.assert_array_equal(np.signbit(got[:2]), [False, True])
    np.testing.assert_array_equal(got[2:], [np.nan, 2, 2, np.nan])
    # A sum with NaN is made of the bits of one (`lowering.fences`).
    assert olympus.jit(f).lower(onp.float32(2)).as_text().count(f"dense<{0x7FC00000}>") == 1


def test_draws_deep_in_a_nest_of_calls_are_written_out():
    def nested(depth):
        if not depth:
            return lambda key: olympus.random.uniform(key)
        inner = olympus.jit(nested(depth - 1))
        return lambda key: inner(key) + 1

    assert "threefry2x32" not in functions(olympus.jit(nested(20)).lower(KEY))
    assert "threefry2x32" in functions(olympus.jit(nested(3)).lower(KEY))


def test_formulas_that_differ_in_the_arguments_of_a_partial_have_a_program_each():
    """Regression: a second formula of one primitive, by the same code, was the first one."""
    def scaled(factor, x, power=1):
        return lax.mul(lax.integer_pow(x, power), factor)

    def lowered(b, x):
        return [b.by_rule(functools.partial(fun, power=power), [x], b.avals_in)[0]
                for fun in (functools.partial(scaled, 2.0), functools.partial(scaled, 3.0))
                for power in (1, 2)]

    several_p = Primitive("several")
    several_p.multiple_results = True
    several_p.def_abstract_eval(lambda x: [x] * 4)
    mlir.register_lowering(several_p, lowered)
    assert [float(x) for x in olympus.jit(several_p.bind)(5.0)] == [10, 50, 15, 75]
