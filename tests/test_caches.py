"""What programs are kept for, and for how long: no cache gives one caller another's program."""

import re

import pytest

import olympus
import olympus.numpy as onp
from olympus import lax

x3 = onp.array([0.5, 1.5, 2.5])


@olympus.custom_jvp
def sine(x):
    return onp.sin(x)


sine.defjvp(lambda primals, tangents: (onp.sin(primals[0]), onp.cos(primals[0]) * tangents[0]))
jitted = olympus.jit(lambda x: onp.sin(x) * 2)


def step(c, x):
    return c * onp.sin(x), c


def scanned(x):
    return lax.scan(step, x[0], x)[0]


CALLS = {
    "jit": jitted,
    "grad of jit": olympus.grad(lambda x: jitted(x).sum()),
    "vmap of jit": olympus.vmap(jitted),
    "scan": scanned,
    "grad of scan": olympus.grad(scanned),
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: onp.sin(c), x),
    "cond": lambda x: lax.cond(x[0] > 0, onp.sin, onp.cos, x),
    "checkpoint": olympus.grad(lambda x: olympus.checkpoint(onp.sin)(x).sum()),
    "custom_jvp": olympus.grad(lambda x: sine(x).sum()),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_program_is_named_by_each_caller_not_by_the_first(call):
    def names(scope):
        def f(x):
            with olympus.named_scope(scope):
                return call(x)

        text = olympus.jit(f).lower(x3).as_text(debug_info=True)
        return {name for name in re.findall(r'loc\("([^"]*)"', text) if "/" in name}

    with olympus.named_scope("around"):
        first = names("first")
    second = names("second")
    assert any("first" in n for n in first)
    assert any("second" in n for n in second)
    assert not any("first" in n or "around" in n for n in second), second


def test_scopes_inside_a_program_that_is_differentiated_keep_their_names():
    @olympus.jit
    def f(x):
        with olympus.named_scope("inner"):
            return onp.sin(x)

    text = olympus.jit(olympus.grad(f)).lower(1.0).as_text(debug_info=True)
    assert "inner/" in text
