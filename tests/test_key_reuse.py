"""Using a random key twice: found wherever it happens, named with both lines; other uses pass."""

import re
import sys

import numpy as np
import pytest

import olympus
from olympus import lax, numpy as onp, random
from olympus._src.core import reuse
from olympus.errors import KeyReuseError
from olympus.experimental import key_reuse

KEY = random.key


@pytest.fixture(autouse=True)
def checked():
    with olympus.debug_key_reuse(True):
        yield


def keys(n=4):
    return random.split(KEY(0), n)


def two_lines(key):
    first = random.normal(key)
    return first + random.uniform(key)


def next_key(key, _=None):
    key, sub = random.split(key)
    return key, random.normal(sub)


def custom():
    @olympus.custom_jvp
    def scaled(x, key):
        return x * random.normal(key)

    scaled.defjvp(lambda primals, tangents: (scaled(*primals), tangents[0]))
    return scaled


def with_fwd():
    @olympus.custom_vjp
    def scaled(x, key):
        return x * random.normal(key)

    scaled.defvjp(lambda x, key: (x * random.normal(key), None), lambda res, ct: (ct, None))
    return scaled


def steps(key, uses):
    """A while loop whose body draws and `uses(key)` says with what it goes on."""
    def body(state):
        rest, sub = uses(state[1])
        return state[0] + abs(random.normal(sub)) + 1, rest

    return lax.while_loop(lambda state: state[0] < 3, body, (0., key))


def noisy(x, key):
    return onp.sin(x * random.normal(key))


CLOSED = KEY(9)
TWICE = {   # functions of a key that use it, or one that was made of it, twice
    "draws": two_lines,
    "jit": lambda key: olympus.jit(two_lines)(key),
    "two-jits": lambda key: [olympus.jit(random.normal)(key), olympus.jit(random.uniform)(key)],
    "nested-jit": lambda key: olympus.jit(
        lambda k: olympus.jit(random.normal)(k) + olympus.jit(random.uniform)(k))(key),
    "split": lambda key: [random.split(key), random.normal(key)],
    "after-split": lambda key: [random.normal(key), random.split(key)],
    "index": lambda key: [random.normal(k) for k in (random.split(key)[0], random.split(key)[0])],
    "vmap": lambda key: (lambda ks: [olympus.vmap(random.normal)(ks), random.normal(ks[1])])(
        random.split(key)),
    "jit-vmap": lambda key: olympus.jit(olympus.vmap(two_lines))(random.split(key)),
    "scan-const": lambda key: lax.scan(lambda c, _: (c, random.normal(key)), 0, None, length=3),
    "scan-carry": lambda key: lax.scan(lambda k, _: (k, random.normal(k)), key, None, length=3),
    "scan-turn": lambda key: lax.scan(  # each key of the carry is used in every third iteration
        lambda c, _: ((c[1], c[2], c[0]), random.normal(c[0])),
        tuple(random.split(key, 3)), None, length=4),
    "scan-xs": lambda key: (lambda ks: [
        lax.scan(lambda c, k: (c, random.normal(k)), 0, ks), random.normal(ks[3])])(
            random.split(key, 4)),
    "while": lambda key: steps(key, lambda k: (k, k)),
    "fori": lambda key: lax.fori_loop(0, 3, lambda i, x: x + random.normal(key), 0.),
    "cond": lambda key: [lax.cond(True, random.normal, lambda k: 0., key), random.normal(key)],
    "branch-inside": lambda key: lax.cond(True, two_lines, random.normal, key),
    "cond-result": lambda key: random.normal(lax.cond(
        True, lambda k: (random.normal(k), k)[1], lambda k: random.split(k)[0], key)),
    "switch": lambda key: [random.normal(key),
                           lax.switch(1, [lambda k: 0., random.normal], key)],
    "vmap-of-cond": lambda key: olympus.jit(lambda p, ks: [
        olympus.vmap(lambda p, k: lax.cond(p, lambda k: 0., random.normal, k))(p, ks),
        olympus.vmap(random.normal)(ks)])(np.array([True, False]), random.split(key)),
    "grad": lambda key: [olympus.grad(noisy)(2., key), random.normal(key)],
    "jit-grad": lambda key: olympus.jit(olympus.grad(lambda x, k: noisy(noisy(x, k), k)))(2., key),
    "checkpoint": lambda key: olympus.checkpoint(lambda x: noisy(noisy(x, key), key))(2.),
    "custom-jvp": lambda key: (lambda f: f(f(1., key), key))(custom()),
    "custom-vjp": lambda key: (lambda f: olympus.grad(lambda x: f(f(x, key), key))(1.))(
        with_fwd()),
    "closure": lambda key: (lambda f: [f(1.), f(2.)])(
        olympus.jit(lambda x: x * random.normal(key))),
    "moved": lambda key: (lambda ks: [
        olympus.vmap(random.normal)(
            onp.concatenate([ks[:2], ks[2:]]).reshape(2, 2).T.ravel()[::-1]),
        random.normal(ks[3])])(random.split(key, 4)),
    "gathered": lambda key: (lambda ks: [
        olympus.vmap(random.normal)(ks[np.array([2, 0])]), random.normal(ks[0])])(
            random.split(key, 3)),
    "set": lambda key: (lambda ks: random.normal(
        (random.normal(ks[1]), ks.at[0].set(ks[1]))[1][0]))(random.split(key)),
    "compiled": lambda key: (lambda f: [f(key), f(key)])(
        olympus.jit(random.normal).lower(key).compile()),
    "copied": lambda key: [random.normal(key.copy()), random.normal(
        olympus.device_put(key, olympus.devices()[0]))],
    "operands": lambda key: olympus.jit(lambda a, b: random.normal(a) + random.normal(b))(key, key),
    "operands-of-a-call": lambda key: olympus.jit(lambda key: olympus.jit(
        lambda a, b: random.normal(a) + random.normal(b))(key, key))(key),
    "operand-and-closure": lambda key: olympus.jit(
        lambda a: random.normal(a) + random.normal(key))(key),
    "sampler": lambda key: [random.permutation(key, 5), random.bits(key)],
}
ONCE = {
    "split": lambda key: [random.normal(k) for k in random.split(key)],
    "fold_in": lambda key: [random.normal(random.fold_in(key, i)) for i in (0, 1)]
               + [random.normal(key)],
    "clone": lambda key: [random.normal(key), random.normal(random.clone(key))],
    "read": lambda key: [key == key, random.key_data(key), key.shape, repr(key),
                         random.normal(key)],
    "made-again": lambda key: [random.normal(KEY(3)), random.normal(KEY(3))],
    "raw": lambda key: two_lines(random.PRNGKey(0)),
    "scan": lambda key: random.normal(lax.scan(next_key, key, None, length=3)[0]),
    "scan-xs": lambda key: lax.scan(lambda c, k: (c, random.normal(k)), 0, random.split(key, 5)),
    "scan-once": lambda key: lax.scan(lambda c, _: (c, random.normal(key)), 0, None, length=1),
    "while": lambda key: random.normal(steps(key, random.split)[1]),
    "fori-fold_in": lambda key: lax.fori_loop(
        0, 3, lambda i, x: x + random.normal(random.fold_in(key, i)), 0.),
    "fori-index": lambda key: (lambda ks: lax.fori_loop(
        0, 4, lambda i, x: x + random.normal(ks[i]), 0.))(random.split(key, 4)),
    "cond": lambda key: lax.cond(True, random.normal, random.uniform, key),
    "cond-result": lambda key: random.normal(lax.cond(
        True, lambda k: k, lambda k: random.split(k)[0], key)),
    "vmap-of-cond": lambda key: olympus.jit(olympus.vmap(
        lambda p, k: lax.cond(p, random.normal, random.uniform, k)))(
            np.array([True, False]), random.split(key)),
    "vmap-of-while": lambda key: olympus.jit(olympus.vmap(
        lambda k: steps(k, random.split)[0]))(random.split(key)),
    "vmap-of-cond-of-places": lambda key: olympus.jit(olympus.vmap(lambda p, ks: lax.cond(
        p, lambda ks: random.normal(lax.dynamic_slice(ks, (0,), (1,))[0]),
        lambda ks: random.normal(ks.at[0].set(ks[1])[0]), ks)))(
            np.array([True, False]), random.split(key, (2, 3))),
    "grad": lambda key: olympus.grad(noisy)(2., key),
    "jit-grad-scan": lambda key: olympus.jit(olympus.grad(
        lambda x, ks: lax.scan(lambda c, k: (noisy(c, k), c), x, ks)[0]))(2., random.split(key, 3)),
    "checkpoint": lambda key: (lambda ks: [
        olympus.grad(olympus.checkpoint(noisy))(2., ks[0]),
        olympus.jit(olympus.vmap(olympus.grad(olympus.checkpoint(noisy))))(
            onp.ones(2), ks[1:])])(random.split(key, 3)),
    "checkpoint-twice-differentiated": lambda key: olympus.hessian(olympus.checkpoint(noisy))(
        2., key),
    "printed": lambda key: olympus.jit(lambda k: (olympus.debug.callback(lambda _: None, k),
                                                  random.normal(k))[1])(key),
    "custom-vjp": lambda key: olympus.jit(olympus.grad(with_fwd()))(1., key),
    "not-run": lambda key: [olympus.make_olympuspr(random.normal)(key), random.normal(key),
                            olympus.eval_shape(random.normal, key)],
}


@pytest.mark.parametrize("name", TWICE)
def test_a_second_use_is_an_error(name):
    with pytest.raises(KeyReuseError, match="random key is used at .*after it was used at"):
        TWICE[name](KEY(1))


@pytest.mark.parametrize("name", ONCE)
def test_one_use_is_none(name):
    ONCE[name](KEY(1))


def lines(error):
    """The numbers of the lines that an error names, of this file."""
    return [int(n) for n in re.findall(rf"{__name__}\.py:(\d+)", str(error.value))]


def test_both_lines_are_named():
    here = two_lines.__code__.co_firstlineno
    for run in (two_lines, olympus.jit(two_lines)):
        with pytest.raises(KeyReuseError) as error:
            run(KEY(0))
        found = lines(error)
        assert here + 1 in found and here + 2 in found
        assert found.index(here + 2) < found.index(here + 1)


def test_lines_of_calls_of_one_function_are_named():
    draw = olympus.jit(random.normal)
    key = KEY(0)
    draw(key)
    with pytest.raises(KeyReuseError, match="another iteration or call") as error:
        draw(key)
    here = test_lines_of_calls_of_one_function_are_named.__code__.co_firstlineno
    assert {here + 3, here + 5} <= set(lines(error))


def test_a_key_is_used_though_its_call_failed_to_be_the_last():
    key = KEY(0)
    with pytest.raises(KeyReuseError):
        two_lines(key)
    with pytest.raises(KeyReuseError):
        random.normal(key)


@pytest.mark.parametrize("draw", [
    lambda key: random.gamma(key, 2.), lambda key: random.poisson(key, 2.),
    lambda key: random.choice(key, 5, (2,), replace=False),
    lambda key: random.truncated_normal(key, -1., 1.),
    lambda key: random.geometric(key, 0.3), lambda key: random.normal(key, (2,), "complex64"),
    lambda key: random.randint(key, (2,), 0, 5)], ids=["gamma", "poisson", "choice", "truncated",
                                                      "geometric", "complex", "randint"])
def test_samplers_use_their_key_once(draw):
    key = KEY(5)
    draw(key)
    with pytest.raises(KeyReuseError):
        draw(key)
    key_reuse.check_key_reuse(olympus.vmap(draw), keys(2))


def test_nothing_is_checked_while_the_option_is_off():
    key = KEY(0)
    with olympus.debug_key_reuse(False):
        two_lines(key)
        olympus.jit(two_lines)(key)
    random.normal(key)      # what was used meanwhile is not known


def test_the_option_sees_what_was_compiled_before():
    draw, key = olympus.jit(random.normal), KEY(0)
    with olympus.debug_key_reuse(False):
        draw(key)
    draw(key)
    with pytest.raises(KeyReuseError):
        draw(key)


def test_a_function_is_checked_without_running_it():
    key_reuse.check_key_reuse(random.normal, KEY(0))
    with olympus.debug_key_reuse(False), pytest.raises(KeyReuseError, match="after it was used"):
        key_reuse.check_key_reuse(two_lines, KEY(0))
    assert issubclass(KeyReuseError, TypeError)


def work(fun):
    """How many Python functions a check of it enters, traced beforehand."""
    program = olympus.make_olympuspr(fun)(KEY(0)).olympuspr
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        reuse.summary(program)
    finally:
        sys.setprofile(None)
    return count


def drawn(n):
    def fun(key):
        for _ in range(n):
            key, _ = next_key(key)
        return key
    return fun


def looped(n):
    fun = next_key
    for _ in range(n):
        fun = (lambda inner: lambda key, _: (
            lax.scan(inner, key, None, length=5)[0], 0.))(fun)
    return lambda key: fun(key, None)[0]


@pytest.mark.parametrize("make, small", [(drawn, 20), (looped, 3)], ids=["length", "depth"])
def test_work_is_linear_in_the_size_of_the_program(make, small):
    work(make(1))
    one, two, three = (work(make(n * small)) for n in (1, 2, 3))
    assert three - two < 1.1 * (two - one)
