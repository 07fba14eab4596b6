"""Arrays that a program closes over arrive with their bits, whatever the dtype and size."""

import ml_dtypes
import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax

NAMES = ["bool", "int2", "uint2", "int4", "uint4", "int8", "uint8", "int16", "uint32", "float16",
         "bfloat16", "float32", "complex64", "float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"]


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 9, 65])
@pytest.mark.parametrize("name", NAMES)
def test_a_closed_over_array_keeps_its_values(name, size, rng):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    low = 0 if name.startswith("u") or name == "bool" else -2
    values = rng.integers(low, 2, size).astype(np.float32).astype(dtype)
    wide = np.complex64 if name == "complex64" else np.float32
    got = olympus.jit(lambda: lax.convert_element_type(values, wide))()
    np.testing.assert_array_equal(got, values.astype(wide))


def test_a_splat_is_not_written_out():
    big = np.broadcast_to(np.float32(2.5), (1000, 1000))
    text = olympus.jit(lambda x: x + big).lower(onp.float32(1)).as_text()
    assert len(text) < 2000


def test_a_closed_over_array_that_changes_later_is_not_seen_by_the_program():
    values = np.arange(3, dtype=np.float32)
    compiled = olympus.jit(lambda x: x + values)
    np.testing.assert_array_equal(compiled(1.0), [1, 2, 3])
    values[:] = 7
    np.testing.assert_array_equal(compiled(1.0), [1, 2, 3])
