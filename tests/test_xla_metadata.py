"""What XLA is told of operations: read from the text of the module."""

import re

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.experimental.control_deps import control_dep, schedule
from olympus.experimental.pjit import pjit
from olympus.experimental.scheduling_groups import scheduling_group, xla_metadata_call
from olympus.experimental.xla_metadata import set_xla_metadata


def told(f, *args):
    """What is said of each operation: {name: set of texts}."""
    found = {}
    for line in olympus.jit(f).lower(*args).as_text().splitlines():
        name = re.search(r"= stablehlo\.(\w+) %", line)
        text = re.search(r"frontend_attributes = \{([^}]*)\}", line)
        if name:
            found.setdefault(name[1], set()).add(text and text[1])
    return found


def marked(f, **metadata):
    def run(*args):
        with set_xla_metadata(**metadata):
            return f(*args)
    return run


def test_operations_of_a_block_are_marked():
    f = marked(lambda x: x * 2, a="b", flag=True, count=10)
    assert told(f, 1.0)["multiply"] == {'a = "b", count = "10", flag = "true"'}
    inner = marked(lambda x: marked(lambda x: x * 2, a="c", d="e")(x) + 1, a="b")
    assert told(inner, 1.0) == {"multiply": {'a = "c", d = "e"'}, "add": {'a = "b"'}}
    assert told(lambda x: marked(onp.sin, a="b")(x) * 2, 1.0)["multiply"] == {None}


def test_programs_are_of_the_metadata_around():
    f = olympus.jit(lambda x: x * 2)
    with set_xla_metadata(a="b"):
        assert 'a = "b"' in f.lower(1.0).as_text()
        assert np.array_equal(f(2.0), 4)
    assert "frontend_attributes" not in f.lower(1.0).as_text()
    decorated = set_xla_metadata(a="b")(f)
    assert 'a = "b"' in decorated.lower(1.0).as_text() and decorated(3.0) == 6


def test_bodies_and_derivatives_are_marked():
    unmarked = marked(onp.cos, a=None)
    found = told(marked(lambda x: lax.cond(x < 0, onp.sin, unmarked, x), a="b"), 1.0)
    assert found["sine"] == {'a = "b"'} and found["cosine"] == {None}
    loop = marked(lambda x: lax.while_loop(lambda x: x < 10, lambda x: x + 1, x), a="b")
    assert told(loop, 1.0)["add"] == {'a = "b"'}
    nested = marked(olympus.jit(marked(onp.sin, c="d")), a="b")
    assert told(nested, 1.0)["sine"] == {'a = "b", c = "d"'}
    assert told(olympus.grad(marked(onp.sin, a="b")), 1.0)["cosine"] == {'a = "b"'}


def test_the_maker_of_a_value_is_marked():
    f = lambda x: set_xla_metadata(onp.sin(x) * 2, k="v", none=None) + 1
    found = told(f, 1.0)
    assert found["multiply"] == {'k = "v"'} and found["add"] == {None}
    assert told(lambda x: set_xla_metadata(x, k="v"), 1.0) == {}
    np.testing.assert_allclose(olympus.grad(f)(1.0), 2 * np.cos(1), rtol=1e-6)
    np.testing.assert_allclose(olympus.vmap(f)(np.ones(2)), [2 * np.sin(1) + 1] * 2, rtol=1e-6)


@pytest.mark.slow
def test_calls_are_marked_and_share_a_function():
    x = np.arange(8, dtype=np.float32)
    g = xla_metadata_call(lambda x: x * x, inlineable="false")
    f = lambda x: g(g(x)).sum()
    lowered = olympus.jit(f).lower(x)
    assert lowered.as_text().count("func.func private @xla_metadata_call") == 1
    assert 'inlineable = "false"' in lowered.as_text()
    np.testing.assert_allclose(olympus.jit(olympus.grad(f))(x), 4 * x ** 3, rtol=1e-6)
    np.testing.assert_allclose(olympus.vmap(g)(x), x * x)
    np.testing.assert_allclose(olympus.grad(olympus.checkpoint(f))(x), 4 * x ** 3, rtol=1e-6)
    group = scheduling_group("one")(lambda x, k: {"k": x + k})
    assert 'scheduling_group = "one"' in olympus.jit(group).lower(1.0, k=2.0).as_text()
    assert group(1.0, k=2.0) == {"k": 3}
    with pytest.raises(TypeError, match="inlineable=False of type bool"):
        xla_metadata_call(g, inlineable=False)


def test_values_are_computed_in_a_demanded_order():
    def f(x):
        a, b, c = onp.sin(x), onp.cos(x), onp.tan(x)
        schedule([c, a, b])
        return a + b + c

    text = olympus.jit(f).lower(0.5).as_text()
    named = dict(map(reversed, re.findall(r"(%\w+) = stablehlo\.(\w+) %arg0", text)))
    assert re.findall(r"@control_dep\((%\w+), (%\w+)\)", text) == [
        (named["tan"], named["sine"]), (named["sine"], named["cosine"])]
    want = np.sin(0.5) + np.cos(0.5) + np.tan(0.5)
    slope = np.cos(0.5) - np.sin(0.5) + 1 / np.cos(0.5) ** 2
    found = olympus.jit(olympus.vmap(olympus.value_and_grad(f)))(np.full(1, 0.5))
    np.testing.assert_allclose(np.ravel(found), [want, slope], rtol=1e-6)
    assert control_dep(1.0, np.ones(2)) is None
    with pytest.raises(TypeError, match="ops 3 of type int"):
        schedule(3)


def test_pjit_is_jit():
    with pytest.warns(DeprecationWarning, match=r"use these instead"):
        f = pjit(lambda x, n: x * n, None, None, 1)
    assert f(2.0, 3) == 6
