"""Random bits made by the compiler: frozen values, dtypes, keys, vmap as a loop, messages."""

import numpy as np
import pytest

import olympus
from olympus import lax, numpy as onp

KEY = np.arange(4, dtype="u4")
# What JAX 0.10.2 gives for the key 0, 1, 2, 3 on a CPU.
PHILOX = [895509795, 3230209149, 3834998268]
THREE_FRY = [2689575991, 2205648888, 150810639]
WIDE = {"RNG_PHILOX": [13873642655090500899, 8621663791288249852, 15587144579316200292],
        "RNG_THREE_FRY": [9473189843108342839, 6602757811040235535, 14704592877870579330]}


@pytest.mark.parametrize(("algorithm", "bits", "step"), [
    ("RNG_DEFAULT", PHILOX, 1), ("RNG_PHILOX", PHILOX, 1), ("RNG_THREE_FRY", THREE_FRY, 2)])
def test_values(algorithm, bits, step):
    member = lax.RandomAlgorithm[algorithm]
    key, found = lax.rng_bit_generator(KEY, 3, algorithm=member)
    assert found.tolist() == bits
    assert key.tolist() == [0, 1, 2 + step, 3]
    for dtype in ("uint8", "uint16"):
        narrow = lax.rng_bit_generator(KEY, (3,), dtype, algorithm.lower())[1]
        assert narrow.dtype == dtype
        np.testing.assert_array_equal(narrow, np.array(bits, "u4").astype(dtype))
    with olympus.enable_x64(True):
        wide = lax.rng_bit_generator(KEY, (3,), "uint64", member)[1]
        assert wide.tolist() == WIDE.get(algorithm, WIDE["RNG_PHILOX"])
        state, found = lax.rng_bit_generator(KEY.view("u8"), (3,), algorithm=int(member))
        assert found.tolist() == bits
        assert state.dtype == np.uint64


def test_vmap_is_a_loop_over_keys():
    keys = np.arange(24, dtype="u4").reshape(2, 4, 3)
    draw = lambda key: lax.rng_bit_generator(key, (2, 5))
    new, bits = olympus.vmap(olympus.vmap(draw, in_axes=1))(keys)
    for i in range(2):
        for j in range(3):
            one = draw(keys[i, :, j])
            np.testing.assert_array_equal(new[i, j], one[0])
            np.testing.assert_array_equal(bits[i, j], one[1])
    assert len(np.unique(bits)) == bits.size
    assert olympus.vmap(draw)(np.zeros((0, 4), "u4"))[1].shape == (0, 2, 5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "uint32"])
def test_uniform(dtype):
    low, high = onp.asarray(2, dtype), onp.asarray(5, dtype)
    found = lax.rng_uniform(low, high, (400,))
    assert found.dtype == dtype
    wide = np.asarray(found).astype("f8")
    assert wide.min() >= 2
    assert wide.max() <= 5
    assert abs(wide.mean() - (3.5 if "float" in dtype else 3)) < 0.3
    assert lax.rng_uniform(low, high, ()).shape == ()
    assert lax.rng_uniform(low, high, (2, 0)).shape == (2, 0)


def test_uniform_of_bounds_that_are_mapped():
    lows = np.arange(3, dtype="f4") * 10
    found = np.asarray(olympus.vmap(lambda a: lax.rng_uniform(a, a + 1, (50,)))(lows))
    assert (np.floor(found) == lows[:, None]).all()
    one = np.asarray(olympus.vmap(lambda a: lax.rng_uniform(0.0, a, (2, 50)))(lows + 10))
    assert (one < (lows + 10)[:, None, None]).all()
    assert one[2].max() > 20


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: lax.rng_bit_generator(KEY[:2], (3,)), TypeError, "uint32.4. or uint64.2. is required"),
    (lambda: lax.rng_bit_generator(KEY.astype("i4"), 3), TypeError, "key int32.4. given"),
    (lambda: lax.rng_bit_generator(KEY[None], 3), TypeError, "one key"),
    (lambda: lax.rng_bit_generator(KEY, 3, "int32"), TypeError, "dtype int32 given"),
    (lambda: lax.rng_bit_generator(KEY, 3, algorithm="mersenne"), ValueError, "'mersenne' given"),
    (lambda: lax.rng_bit_generator(KEY, 3, algorithm=7), ValueError, "algorithm 7 given"),
    (lambda: lax.rng_bit_generator(KEY, -1), ValueError, "dimension -1"),
    (lambda: lax.rng_bit_generator(KEY, 3, out_sharding="x"), TypeError, "rng_bit_gener"),
    (lambda: lax.rng_uniform(np.zeros(2), 1.0, 3), TypeError, "scalars are required"),
    (lambda: lax.rng_uniform(onp.float32(0), onp.int32(1), 3), TypeError, "one dtype"),
    # Traced only: XLA would not survive other dtypes, so none must reach it even if this fails.
    (lambda: olympus.make_olympuspr(lambda a: lax.rng_uniform(a, a, 3))(onp.uint8(0)), TypeError,
     "abort XLA's CPU compiler"),
    (lambda: olympus.make_olympuspr(lambda a: lax.rng_uniform(a, a, 3))(0j), TypeError,
     "bounds complex64"),
    (lambda: olympus.grad(lambda a: lax.rng_uniform(a, 1.0, ()))(0.0), TypeError,
     "no derivative"),
])
def test_messages(call, error, text):
    with pytest.raises(error, match=text):
        call()
