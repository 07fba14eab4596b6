"""Operators and methods of arrays and tracers against NumPy's."""

import copy
import operator

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus._src.numpy.array_methods import METHODS, OPERATORS, PROPERTIES

X = np.array([[1.5, -2.0, 3.0], [0.25, 4.0, -1.0]], np.float32)
K = np.array([[5, 2, 3], [7, 1, 4]], np.int32)

BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
          operator.mod, operator.eq, operator.ne, operator.lt, operator.le, operator.gt,
          operator.ge]
INTEGER = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("op", BINARY, ids=lambda f: f.__name__)
def test_binary_operators(op):
    for x, y in ((X, X[:1]), (X, 2), (2.0, X), (K, 3), (K, K)):
        expected = op(x, y)
        left = onp.asarray(x) if isinstance(x, np.ndarray) else x
        right = onp.asarray(y) if isinstance(y, np.ndarray) else y
        np.testing.assert_allclose(op(left, right), expected, rtol=1e-6)
        np.testing.assert_allclose(olympus.jit(op)(left, right), expected, rtol=1e-6)


@pytest.mark.parametrize("op", INTEGER, ids=lambda f: f.__name__)
def test_integer_operators(op):
    np.testing.assert_array_equal(op(onp.asarray(K), K[:1]), op(K, K[:1]))
    np.testing.assert_array_equal(op(onp.asarray(K), 1), op(K, 1))
    np.testing.assert_array_equal(op(1, onp.asarray(K)), op(1, K))


def test_unary_operators_and_power():
    x = onp.asarray(X)
    for f in (operator.neg, operator.pos, abs, round, lambda v: v ** 2, lambda v: 2 ** v,
              lambda v: divmod(v, 2)[1]):
        expected = f(X) if f is not round else np.round(X)
        np.testing.assert_allclose(f(x), expected, rtol=1e-6)
    np.testing.assert_array_equal(~onp.asarray(K), ~K)


def test_methods_and_properties():
    x = onp.asarray(X)
    np.testing.assert_array_equal(x.T, X.T)
    np.testing.assert_array_equal(x.mT, X.T)
    np.testing.assert_array_equal(x.reshape(3, 2), X.reshape(3, 2))
    np.testing.assert_array_equal(x.reshape((3, -1)), X.reshape(3, -1))
    np.testing.assert_array_equal(x.transpose(1, 0), X.T)
    np.testing.assert_array_equal(x.astype(int), X.astype(int))
    np.testing.assert_array_equal(x.flatten(), X.flatten())
    np.testing.assert_array_equal(x.clip(0, 1), X.clip(0, 1))
    np.testing.assert_array_equal(x.sort(), np.sort(X))
    np.testing.assert_array_equal(x.argsort(0), X.argsort(0))
    np.testing.assert_array_equal(x.view(onp.int32), X.view(np.int32))
    np.testing.assert_array_equal(x.compress(np.array([True, False]), axis=0), X[:1])
    np.testing.assert_allclose(x.sum(0), X.sum(0))
    assert bool((x > 3).any()) and int(x.argmax()) == 4
    assert 4.0 in x and 9.0 not in x
    np.testing.assert_array_equal(copy.deepcopy(x), X)


@pytest.mark.parametrize("bits", ["uint8", "uint16", "float16", "int32"])
def test_view_of_another_width(bits):
    wide = np.arange(8, dtype=np.float32)
    narrow = onp.asarray(wide).view(bits)
    np.testing.assert_array_equal(narrow, wide.view(bits))
    np.testing.assert_array_equal(narrow.view("float32"), wide)


def test_iteration():
    x = onp.asarray(X)
    np.testing.assert_array_equal(np.stack(list(x)), X)
    np.testing.assert_array_equal(np.stack(list(reversed(x))), X[::-1])
    a, b = olympus.jit(lambda x: tuple(x))(x)
    np.testing.assert_array_equal(b, X[1])
    with pytest.raises(TypeError, match="0-d"):
        iter(onp.asarray(1.0))


class Foreign:
    """A type with operators of its own."""

    __hash__ = None

    def __radd__(self, other):
        return "radd"

    def __eq__(self, other):
        return "eq"


def test_foreign_operands():
    x = onp.asarray(X)
    assert x + Foreign() == "radd"
    assert (x == Foreign()) == "eq"
    assert (x == None) is False and (x != None) is True  # noqa: E711
    for y in ([1, 2, 3], "a", None):
        with pytest.raises(TypeError, match="unsupported operand"):
            x + y


def test_tables_are_documented_and_on_both_classes():
    for table in (OPERATORS, METHODS, PROPERTIES):
        for name, value in table.items():
            assert value.__doc__, name
            assert hasattr(olympus.core.Tracer if hasattr(olympus, "core") else type(
                onp.zeros(1)), name)
