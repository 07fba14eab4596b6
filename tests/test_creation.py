"""Arrays from data of every sort, and what creation refuses: NumPy is the oracle."""

import array
import collections

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import nn


class Image:
    """Data that only NumPy's array interface describes, as of PIL's images."""

    def __init__(self, values):
        self.values = values

    @property
    def __array_interface__(self):
        return self.values.__array_interface__


SOURCES = [
    range(5), range(0), [range(3)] * 2, (range(2), [3, 4]), collections.deque([1, 2]),
    [collections.deque([1.5, 2])], collections.UserList([[1], [2]]), array.array("d", [1.5, 2]),
    array.array("b", [1, -2]), [array.array("h", [1, 2]), [3, 4]], Image(np.arange(6.)[::2]),
    [Image(np.arange(3)), range(3)], memoryview(b"ab"), bytearray(b"ab"), [np.float16(1), 2],
]


@pytest.mark.parametrize("data", SOURCES, ids=lambda d: type(d).__name__)
def test_arrays_of_any_sequence_or_buffer(data):
    expected = np.asarray(data)
    for found in (onp.array(data), onp.asarray(data, "float32")):
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
    if hasattr(data, "__array_interface__") or isinstance(data, (array.array, bytearray)):
        assert onp.array(data).dtype == olympus.dtypes.canonicalize_dtype(expected.dtype)


def test_sequences_of_traced_values():
    found = olympus.jit(lambda x: onp.array([range(2), collections.deque([x, 2])]))(5)
    np.testing.assert_array_equal(found, [[0, 1], [5, 2]])


@pytest.mark.parametrize(("dtype", "text", "value"), [
    ("float32", "3.5", 3.5), ("float32", "nan", np.nan), ("float16", "-inf", -np.inf),
    ("bfloat16", "0.5", 0.5), ("int8", "3", 3), ("uint32", "4294967295", 2**32 - 1),
    ("complex64", "1+2j", 1 + 2j), ("float32", b"3", 3.)])
def test_numbers_are_read_from_text(dtype, text, value):
    for found in (getattr(onp, dtype)(text), onp.array([text], dtype)[0]):
        assert found.dtype == dtype
        np.testing.assert_array_equal(np.asarray(found).astype(type(value)), value)


@pytest.mark.parametrize(("make", "error", "match"), [
    (lambda: onp.int8("300"), OverflowError, "300"), (lambda: onp.int8("3.5"), ValueError, "3.5"),
    (lambda: onp.float32("x"), ValueError, "numbers"), (lambda: onp.array("3.5"), TypeError, "str"),
    (lambda: onp.array(["1"]), TypeError, "text"), (lambda: onp.bool_("x"), TypeError, "text"),
    (lambda: onp.array(b"ab"), TypeError, "bytes"), (lambda: onp.array({1, 2}), TypeError, "set"),
    (lambda: onp.array(iter([1])), TypeError, "iterator"),
    (lambda: onp.asarray(olympus.ShapeDtypeStruct((2,), "int8")), TypeError, "ShapeDtypeStruct"),
    (lambda: onp.full((2,), olympus.ShapeDtypeStruct((2,), "int8")), TypeError, "ShapeDtypeStruct"),
    (lambda: onp.stack([olympus.ShapeDtypeStruct((2,), "int8")]), TypeError, "ShapeDtypeStruct"),
])
def test_what_is_no_data_is_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_one_hot_of_a_list():
    np.testing.assert_array_equal(nn.one_hot([0, 1], 2), np.eye(2))
