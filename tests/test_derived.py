"""What is derived of bodies (jvp, batched, split, transposed, lowered, compiled) is kept on them:
computed once, and gone with the user's function.
"""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import olympus
from olympus import lax, numpy as onp
from olympus._src.core.ir import derived
from olympus._src.core.staging import StagingTrace
from olympus._src.lowering.context import ModuleContext

XS = onp.arange(1.0, 6.0)


@pytest.fixture
def counts(monkeypatch):
    """How many programs were staged and lowered: a list of two numbers."""
    made = [0, 0]
    close, init = StagingTrace.close, ModuleContext.__init__

    def counted_close(self, *args):
        made[0] += type(self) is StagingTrace     # not the tapes of eager reverse mode
        return close(self, *args)

    def counted_init(self, *args):
        made[1] += 1
        init(self, *args)

    monkeypatch.setattr(StagingTrace, "close", counted_close)
    monkeypatch.setattr(ModuleContext, "__init__", counted_init)
    return made


@olympus.custom_jvp
def sine(x):
    return onp.sin(x)


@sine.defjvp
def sine_jvp(primals, tangents):
    return sine(*primals), onp.cos(primals[0]) * tangents[0]


@olympus.custom_vjp
def cosine(x):
    return onp.cos(x)


cosine.defvjp(lambda x: (cosine(x), onp.sin(x)), lambda sin, ct: (-sin * ct,))


@olympus.custom_batching.custom_vmap
def tangent(x):
    return onp.tan(x)


@tangent.def_vmap
def tangent_rule(size, batched, x):
    return onp.tan(x), batched[0]


def step(c, x):
    return onp.sin(c) * x * XS[0], c


def step_with_rules(c, x):
    return sine(c) * cosine(c), c


jitted_step = olympus.jit(step)


def below(c):
    return c[0] < 3


def advance(c):
    return c[0] + 1, onp.sin(c[1])


def twice(x):
    return 2.0 * x


def inner(x):
    return onp.sin(onp.sin(x))


def power(x, n):
    return x ** n


recomputed = olympus.checkpoint(inner)
recomputed_by_policy = olympus.checkpoint(
    inner, policy=olympus.checkpoint_policies.nothing_saveable)
recomputed_with_static = olympus.checkpoint(power, static_argnums=1)

CASES = {
    "scan": lambda x: lax.scan(step, x, XS)[0],
    "scan of jitted": lambda x: lax.scan(jitted_step, x, XS)[0],
    "scan of custom rules": lambda x: lax.scan(step_with_rules, x, XS)[0],
    "scan in stretches": lambda x: lax.scan(step, x, XS, checkpoint=2)[0],
    "cond": lambda x: lax.cond(True, inner, twice, x),
    "switch": lambda x: lax.switch(1, [inner, twice, recomputed], x),
    "while": lambda x: lax.while_loop(below, advance, (0, x), checkpoints=2)[1],
    "fori": lambda x: lax.fori_loop(0, 4, power, x),
    "map": lambda x: lax.map(inner, x * XS).sum(),
    "checkpoint": recomputed,
    "checkpoint by policy": recomputed_by_policy,
    "checkpoint with static": lambda x: recomputed_with_static(x, 3),
    "custom_jvp": sine,
    "custom_vjp": cosine,
    "custom_vmap": tangent,
}
TRANSFORMS = {
    "grad": olympus.grad,
    "vmap": lambda f: lambda x: olympus.vmap(f)(onp.stack([x, x])),
    "grad of vmap": lambda f: olympus.grad(lambda x: olympus.vmap(f)(onp.stack([x, x])).sum()),
    "grad of grad": lambda f: olympus.grad(olympus.grad(f)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("case", CASES)
def test_warm_eager_transformations_stage_and_lower_nothing(case, transform, counts):
    fun, x = TRANSFORMS[transform](CASES[case]), onp.float32(0.5)
    first = fun(x)
    counts[:] = 0, 0
    np.testing.assert_array_equal(fun(x), first)
    assert counts == [0, 0]


def test_warm_forward_mode_stages_and_lowers_nothing(counts):
    for fun in (lambda x: lax.while_loop(below, advance, (0, x))[1], CASES["scan"], CASES["cond"]):
        for _ in range(2):
            counts[:] = 0, 0
            olympus.jvp(fun, (0.5,), (1.0,))
        assert counts == [0, 0]


def test_one_decorated_function_more_is_staged_once(counts):
    fixed = [olympus.checkpoint(f) for f in (onp.sin, lambda x: x + 1.0, lambda x: x + 2.0)]
    for fun in fixed:
        counts[:] = 0, 0
        lax.map(fun, XS)
        staged = counts[0]
        lax.map(fun, XS)
        assert counts[0] == staged


def test_static_arguments_of_checkpoint_that_are_equal_are_told_apart():
    def f(x, k):
        return x * k

    g = olympus.checkpoint(f, static_argnums=1)
    assert g(onp.int32(3), 1).dtype == "int32"
    assert g(onp.int32(3), 1.0).dtype == "float32"
    assert np.signbit(g(1.0, -0.0)) and not np.signbit(g(1.0, 0.0))


def test_wrappers_do_not_take_over_the_programs_of_what_they_wrap():
    import functools

    def f(x):
        return x + 1.0

    lax.map(f, XS)
    wrapper = functools.wraps(f)(lambda x: f(x) * 10.0)
    np.testing.assert_array_equal(lax.map(wrapper, XS), (np.arange(1.0, 6.0) + 1) * 10)


class Held:
    """What a user's function holds."""


def users(kind, held):
    """A function of a scalar that holds `held`: in bodies, rules and callbacks."""
    def use(x):
        assert held
        return onp.sin(x)

    jvp = olympus.custom_jvp(use)
    jvp.defjvp(lambda primals, tangents: (jvp(*primals), use(primals[0]) * tangents[0]))
    vjp = olympus.custom_vjp(use)
    vjp.defvjp(lambda x: (use(x), x), lambda x, ct: (use(x) * ct,))
    vmap = olympus.custom_batching.custom_vmap(use)
    vmap.def_vmap(lambda size, batched, x: (use(x), batched[0]))

    def both(x):
        return jvp(x) * vjp(x)

    return {
        "scan": lambda x: lax.scan(lambda c, _: (both(c), None), x, None, 3)[0],
        "while": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, both(c[1])),
                                          (0, x), checkpoints=2)[1],
        "cond": lambda x: lax.cond(True, use, both, x),
        "switch": lambda x: lax.switch(1, [use, both], x),
        "map": lambda x: lax.map(both, x * XS).sum(),
        "reduce": lambda x: lax.reduce(x * XS, 0.0, lambda a, b: (use(a), a + b)[1], (0,)),
        "checkpoint": olympus.checkpoint(both),
        "jit": olympus.jit(both), "custom_jvp": jvp, "custom_vjp": vjp, "custom_vmap": vmap,
        "callback": lambda x: lax.scan(
            lambda c, _: (olympus.debug.callback(lambda c: held, c), (use(c), None))[1], x, None,
            3)[0],
    }[kind]


@pytest.mark.parametrize("kind", ["scan", "while", "cond", "switch", "map", "reduce", "checkpoint",
                                  "jit", "custom_jvp", "custom_vjp", "custom_vmap", "callback"])
def test_what_functions_hold_is_gone_with_them(kind):
    held = Held()
    alive = weakref.ref(held)
    fun = users(kind, held)
    fun(0.5)
    olympus.grad(fun)(0.5)
    olympus.effects_barrier()
    del fun, held
    gc.collect()
    assert alive() is None


def test_what_is_derived_of_one_program_is_bounded():
    program = olympus.make_olympuspr(onp.sin)(1.0)
    numbered = derived(lambda program, i: [i])
    for i in range(1000):
        numbered(program, i)
    assert len(program.cache) <= 256


def test_passes_with_equal_arguments_keep_apart():
    program = olympus.make_olympuspr(onp.sin)(1.0)
    ones, twos = derived(lambda program, n: [n]), derived(lambda program, n: [n, n])
    assert (ones(program, 3), twos(program, 3)) == ([3], [3, 3])


def test_two_threads_that_derive_at_once_get_one_object():
    program, both = olympus.make_olympuspr(onp.sin)(1.0), threading.Barrier(2, timeout=60)
    slow = derived(lambda program: [both.wait()])
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(slow, [program] * 2)
    assert first is second
