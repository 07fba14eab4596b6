"""olympus.ops: reductions over segments, against a loop over the segments in NumPy."""

import numpy as np
import pytest

import olympus
from olympus import numpy as onp, ops

IDS = np.array([2, 0, -1, 2, 9, 5, 0, 2])
COMBINE = {"sum": (np.sum, 0), "prod": (np.prod, 1), "max": (np.max, None), "min": (np.min, None)}
DTYPES = ["float32", "float16", "bfloat16", "float8_e5m2", "float8_e4m3fn", "int8", "uint8", "int4",
          "int32", "complex64"]


def looped(name, data, ids, size):
    combine, identity = COMBINE[name]
    return [combine(data[ids == k], axis=0) if (ids == k).any() else identity for k in range(size)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", COMBINE)
def test_segments_of_every_dtype_are_a_loop(name, dtype):
    data = onp.asarray(np.array([1, 2, 3, 1, 2, 3, 0, 2]), dtype)
    out = getattr(ops, f"segment_{name}")(data, IDS, 6)
    assert out.dtype == data.dtype and out.shape == (6,)
    expected = looped(name, np.array([1, 2, 3, 1, 2, 3, 0, 2]), IDS, 6)
    for found, value in zip(np.asarray(out).astype("c8"), expected, strict=True):
        assert value is None or found == value
    if dtype in ("float32", "bfloat16"):
        assert name in ("sum", "prod") or np.asarray(out[1]).astype(float) == (
            np.inf if name == "min" else -np.inf)
    elif name in ("max", "min") and dtype not in ("complex64", "float16", "float8_e5m2"):
        info = (onp.finfo if dtype[0] == "f" else onp.iinfo)(dtype)
        assert float(out[1]) == float(info.min if name == "max" else info.max)


@pytest.mark.parametrize("name", COMBINE)
def test_buckets_give_what_one_scatter_gives(name):
    data = np.random.default_rng(0).normal(size=(8, 3)).astype("f4")
    fun = getattr(ops, f"segment_{name}")
    for size in (1, 3, 8, 100):
        np.testing.assert_allclose(fun(data, IDS, 6, bucket_size=size), fun(data, IDS, 6),
                                   rtol=1e-6)


def test_the_number_of_segments_is_one_more_than_the_largest():
    data = onp.ones(8)
    assert ops.segment_sum(data, IDS).shape == (10,)
    assert ops.segment_sum(data[:0], IDS[:0]).shape == (0,)
    assert ops.segment_sum(data, -np.ones(8, int)).shape == (0,)
    assert ops.segment_sum(data, IDS, 0).shape == (0,)


def test_rows_outside_are_dropped_or_put_into_the_nearest_segment():
    data = np.arange(8.0, dtype="f4")
    assert ops.segment_sum(data, IDS, 3).tolist() == [7, 0, 10]
    assert ops.segment_sum(data, IDS, 3, mode="clip").tolist() == [9, 0, 19]


def test_segments_are_three_equations():
    for name in COMBINE:
        fun = getattr(ops, f"segment_{name}")
        program = olympus.make_olympuspr(lambda x, i, fun=fun: fun(x, i, 3))(onp.ones(8), IDS)
        assert len(program.eqns) == 3


@pytest.mark.parametrize("args, error", [
    ((onp.ones(8), IDS * 1.0, 3), TypeError), ((onp.ones(8), IDS > 0, 3), TypeError),
    ((onp.ones(8) > 0, IDS, 3), TypeError), ((onp.ones(8), IDS[:3], 3), ValueError),
    ((onp.ones(8), IDS, -1), ValueError), ((onp.ones(8), IDS, 2.5), TypeError),
    ((onp.ones(8), IDS, 3, False, False, 0), ValueError),
    ((onp.ones(8), IDS, 3, False, False, None, "wild"), ValueError)],
    ids=["float ids", "bool ids", "bool data", "few ids", "negative", "half", "bucket", "mode"])
def test_segments_refuse_in_words(args, error):
    with pytest.raises(error, match="segment_sum|mode"):
        ops.segment_sum(*args)


def test_segments_under_jit_need_their_number():
    with pytest.raises(olympus.errors.ConcretizationTypeError, match="num_segments"):
        olympus.jit(ops.segment_sum)(onp.ones(8), IDS)
