"""Parts and other shapes of references: read, written, and given to transformed functions."""

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.ref import addupdate, get, new_ref, set

X = np.array([0.5, -1.0, 2.0, 0.25], np.float32)


def ways(fun, *args):
    """The results of a function of no references: eagerly, in jit, step by step."""
    with olympus.disable_jit():
        steps = fun(*args)
    return fun(*args), olympus.jit(fun)(*args), steps


def test_parts_of_parts_are_read_and_written():
    def run(x):
        ref = new_ref(x.reshape(2, 2))
        ref.at[1].at[0][...] = 9.0
        ref.at[:, 1].swap(5.0)
        ref.at[0].addupdate(1.0)
        ref.at[...].T.at[0].set(3.0)
        ref.at[0].reshape(2, 1)[1, 0] = -1.0
        return ref[...], ref.at[1].at[0:1][...], get(ref.at[1].bitcast("int32"), 0)

    want = np.array([[3, -1], [3, 5]], np.float32)
    for found, part, bits in ways(run, X):
        np.testing.assert_array_equal(found, want)
        assert part == 3 and bits == np.float32(3).view(np.int32)


VIEWS = [
    (lambda ref: ref.T, lambda x: x.T), (lambda ref: ref.transpose(1, 0), lambda x: x.T),
    (lambda ref: ref.reshape(4), lambda x: x.reshape(4)), (
        lambda ref: ref.bitcast("int32").T, lambda x: x.T.view(np.int32)),
    (lambda ref: ref.reshape(1, -1).T.at[::2], lambda x: x.reshape(1, -1).T[::2])]


@pytest.mark.parametrize(("view", "of"), VIEWS)
def test_a_reference_is_read_and_written_in_other_shapes(view, of):
    """Regression: traced references had no reshape, transpose and T, as they have in JAX."""
    def run(x):
        ref = new_ref(x.reshape(2, 2))
        part = view(ref)
        before = part[...]
        part[0] = 1
        return before, ref[...]

    want = X.reshape(2, 2).copy()
    before = of(want).copy()
    of(want)[0] = 1
    for found, left in ways(run, X):
        np.testing.assert_array_equal(found, before)
        np.testing.assert_array_equal(left, want)


_MESH = olympus.make_mesh((1,), ("d",), axis_types=(olympus.sharding.AxisType.Explicit,))
CALLS = {
    "jit": olympus.jit, "checkpoint": olympus.checkpoint, "named": olympus.named_call,
    "cond": lambda f: lambda part: lax.cond(onp.array(True), f, f, part),
    "scan": lambda f: lambda part: lax.scan(lambda c, _: (c, f(part)), 0, None, length=1)[1][0],
    "shard_map": lambda f: olympus.jit(
        olympus.shard_map(f, mesh=_MESH, in_specs=olympus.P(), out_specs=olympus.P())),
    "unmapped": lambda f: lambda part: olympus.vmap(
        lambda part, x: f(part) + x, in_axes=(None, 0))(part, onp.zeros(2))[0],
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("traced", [False, True])
def test_a_part_is_an_argument(call, traced):
    """Regression: transformed functions refused parts, and jit gave its function an array."""
    def add_and_read(part):
        addupdate(part, -1, 5.0)
        return part.at[1:].T[0]

    def run(x, i):
        ref = new_ref(x.reshape(2, 2))
        return CALLS[call](add_and_read)(ref.at[i].at[::-1]), ref[...]

    if traced:
        out, left = olympus.jit(run)(X, 1)
    else:
        out, left = run(onp.asarray(X), 1)
    assert out == 7 and left.tolist() == [[0.5, -1.0], [7.0, 0.25]]


def test_parts_of_one_pattern_share_a_program():
    step = olympus.jit(lambda part, v: set(part, ..., v))
    ref = new_ref(onp.zeros((3, 2)))
    for i in range(3):
        step(ref.at[onp.int32(i)], i + 1.0)
    assert ref[...].tolist() == [[1, 1], [2, 2], [3, 3]]
    assert step.cache_info().traces == 1
    assert [type(x) for x in olympus.tree.leaves(ref.at[0])] == [type(ref)]
