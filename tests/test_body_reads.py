"""A loop, branch or map that is called eagerly reads what its body reads now: see body_reads.py."""

import body_reads
import body_reads_callables
import body_reads_objects
import body_reads_process
import numpy as np
import pytest
from body_reads import WAYS

import olympus
from olympus import lax
from olympus._src.control import bodies

X = np.array([0.5, 1.5], "float32")


# Each makes a call of a body's `g`, with functions that stay the same; and the Python loop.

def scan(g):
    def step(c, x):
        return g(c), g(x)
    return lambda x: lax.scan(step, x, x[None])


def scan_plain(g, x):
    return g(x), np.stack([g(x)])


def fori(g):
    def body(i, c):
        return g(c)
    return lambda x: lax.fori_loop(0, 2, body, x)


def while_loop(g):
    def again(s):
        return s[0] < 2

    def body(s):
        return s[0] + 1, g(s[1])
    return lambda x: lax.while_loop(again, body, (0, x), checkpoints=2)[1]


def condition(g):
    """The value decides how often the loop runs: g(1) times, up to 5."""
    def again(s):
        return s[0] < g(1.0)

    def body(s):
        return s[0] + 1, s[1] * 2
    return lambda x: lax.while_loop(again, body, (0.0, x), checkpoints=2)[1]


def condition_plain(g, x):
    i = 0.0
    while i < g(1.0):
        i, x = i + 1, x * 2
    return x


def associative(g):
    def product(a, b):
        return g(a * b)
    return lambda x: lax.associative_scan(product, x)


def reduce_(g):
    def product(a, b):
        return g(a * b)
    return lambda x: lax.reduce(x, np.float32(1), product, (0,))


LOOPS = {
    "scan": (scan, scan_plain),
    "fori_loop": (fori, lambda g, x: g(g(x))),
    "while_loop": (while_loop, lambda g, x: g(g(x))),
    "while_loop's condition": (condition, condition_plain),
    "cond": (lambda g: lambda x: lax.cond(True, g, g, x), lambda g, x: g(x)),
    "switch": (lambda g: lambda x: lax.switch(1, [g, g, g], x), lambda g, x: g(x)),
    "map": (lambda g: lambda x: lax.map(g, x), lambda g, x: np.stack([g(v) for v in x])),
    "map in batches": (lambda g: lambda x: lax.map(g, x, batch_size=2),
                       lambda g, x: np.stack([g(v) for v in x])),
    "checkpoint": (olympus.checkpoint, lambda g, x: g(x)),
    "associative_scan": (associative, lambda g, x: np.stack([x[0], g(x[0] * x[1])])),
}


def total(parts):
    return sum((p * p).sum() for p in (parts if isinstance(parts, tuple) else (parts,)))


def slope(f, x):
    """The gradient by differences."""
    out = np.zeros_like(x, float)
    for i in range(x.size):
        e = np.zeros_like(x, float)
        e[i] = 1e-4
        out[i] = (total(f(x + e)) - total(f(x - e))) / 2e-4
    return out


def around(call, how):
    """A call, its gradient, or either in a function that is jitted anew."""
    if how == "grad":
        return lambda x: olympus.grad(lambda x: total(call(x)))(x)
    if how == "jit":
        return lambda x: olympus.jit(lambda x: call(x))(x)
    return call


@pytest.fixture(autouse=True)
def as_written():
    modules = body_reads, body_reads_callables, body_reads_objects, body_reads_process
    before = [dict(vars(module)) for module in modules]
    yield
    for undo in body_reads.UNDO:
        undo()
    body_reads.UNDO.clear()
    for module, names in zip(modules, before, strict=True):
        vars(module).clear()
        vars(module).update(names)


OFTEN = {"a global array", "a global of a helper", "a keyword default", "an item of a list",
         "an attribute", "its own code", "a large array", "a custom rule s function"}


@pytest.mark.parametrize(("way", "how"), [
    pytest.param(way, how, marks=() if how == "call" or way in OFTEN else pytest.mark.slow)
    for way in WAYS for how in ("call", "grad", "jit")])
def test_a_body_reads_what_there_is_now(way, how):
    g, change = WAYS[way]()
    calls = {name: around(make(g), how) for name, (make, _) in LOOPS.items()}
    values, wrong = [], {}
    for changed in (False, True):
        if changed:
            change()
        values.append(float(g(np.float32(1))))
        for name, call in calls.items():
            def plain(x, name=name):
                return LOOPS[name][1](g, x)
            expected = slope(plain, X.astype(float)) if how == "grad" else plain(X)
            for _ in range(2):
                found = call(olympus.numpy.asarray(X))
                same = [np.allclose(a, b, rtol=1e-2) for a, b in zip(
                    found if isinstance(found, tuple) else (found,),
                    expected if isinstance(expected, tuple) else (expected,), strict=True)]
                if not all(same):
                    wrong[name, changed] = found, expected
    assert not wrong
    assert values == [2, 3]


# What cannot be compared: a body that reads it is staged at each call.
STAGED_AGAIN = {
    "a bytearray", "a cached helper", "a cached helper that is cleared later",
    "a clock by another name", "a context variable", "a file", "a file of NumPy",
    "a file of NumPy by another name", "a file that is opened", "a generator",
    "a generator of random numbers", "a getenv", "a large array",
    "a list that it appends to and a helper reads", "a local of a class of ones own",
    "a long list", "a masked array", "a memoryview", "a method by a computed text",
    "a method caller", "a number of NumPy of ones own", "a partial of a class of ones own",
    "a property of a class of ones own", "a reader of NumPy by its own name",
    "a table of weak references", "a thread s local", "a weak reference", "an array of Python",
    "an array of a class of ones own", "an array of objects", "an attribute by a computed text",
    "an attribute getter", "an environment variable", "an event", "an exception", "an exec",
    "an iterator that cycles", "an option", "every attribute of an object",
    "random numbers of NumPy", "random numbers of Python", "the flat items of an array",
    "the globals", "the keys of a dict", "the precision of decimals",
    "the print options of NumPy", "the signature of a helper", "the table of modules",
    "the time", "the values of a dict", "the vars of an object"}


@pytest.mark.parametrize("way", [w for w in WAYS if w not in STAGED_AGAIN])
def test_a_body_is_staged_once_as_long_as_nothing_changes(way, monkeypatch):
    g, _ = WAYS[way]()
    call, x = LOOPS["fori_loop"][0](g), olympus.numpy.asarray(X)
    call(x)
    call(x)
    staged, stage = [], bodies._stage_body
    monkeypatch.setattr(bodies, "_stage_body", lambda *args: (staged.append(1), stage(*args))[1])
    call(x)
    assert not staged
