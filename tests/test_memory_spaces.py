"""Types say in which memory of its device an array is; so do results, as JAX 0.10.2 has them."""

import copy

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.core import ShapedArray
from olympus.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

DEVICE = olympus.devices()[0]
HOST = SingleDeviceSharding(DEVICE, memory_kind="pinned_host")
HERE = SingleDeviceSharding(DEVICE)
Space = olympus.memory.Space
V = np.arange(1.0, 9.0, dtype=np.float32)
X, H = onp.asarray(V), olympus.device_put(V, HOST)
M = H.reshape(2, 4)


def to(space):
    return lambda x: olympus.device_put(x, space)


# (function of an array in the host's memory, its type, what NumPy computes)
ROWS = {
    "+ 1": (lambda x: x + 1, "float32<host>[8]", V + 1),
    "number of rank 0": (lambda x: x * onp.float32(2), "float32<host>[8]", V * 2),
    "power": (lambda x: x ** 2.5, "float32<host>[8]", V ** 2.5),
    "reduction": (onp.max, "float32<host>[]", V.max()),
    "scalars are anywhere": (onp.mean, "float32[]", V.mean()),
    "where": (lambda x: onp.where(x > 3, x, 0), "float32<host>[8]", np.where(V > 3, V, 0)),
    "softmax": (olympus.nn.softmax, "float32<host>[8]",
                np.exp(V) / np.exp(V).sum()),
    "at[].add": (lambda x: x.at[onp.array([0, 1])].add(1.0), "float32<host>[8]",
                 V + np.eye(8)[:2].sum(0)),
    "at[].set": (lambda x: x.at[2].set(0.0), "float32<host>[8]", V * (np.arange(8) != 2)),
    "argsort": (onp.argsort, "int32[8]", np.arange(8)),
    "likeness": (lambda x: onp.zeros_like(x) + x, "float32<host>[8]", V),
    "barrier": (lambda x: lax.optimization_barrier((x, X))[0], "float32<host>[8]", V),
    "callback": (lambda x: olympus.pure_callback(
        np.sin, olympus.ShapeDtypeStruct((8,), "float32"), x), "float32[8]", np.sin(V)),
    "moved": (lambda x: to(Space.Device)(x) + X, "float32[8]", 2 * V),
    "there and back": (lambda x: to(Space.Host)(to(Space.Device)(x) + X), "float32<host>[8]",
                       2 * V),
    "sharding without a memory": (to(HERE), "float32[8]", V),
    "vmap": (lambda x: olympus.vmap(lambda r: r.sum())(x.reshape(2, 4)), "float32<host>[2]",
             V.reshape(2, 4).sum(1)),
    "cond": (lambda x: lax.cond(x[0] > 0, lambda: x * 2, lambda: x), "float32<host>[8]", 2 * V),
    "carry": (lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x), "float32<host>[8]", 8 * V),
    "rows of scan": (lambda x: lax.scan(lambda c, r: (c + to(Space.Device)(r).sum(), r),
                                        0.0, x.reshape(2, 4))[1], "float32<host>[2,4]",
                     V.reshape(2, 4)),
    "scalars of scan": (lambda x: lax.scan(lambda c, y: (c + y, c), 0.0, x)[0], "float32[]",
                        V.sum()),
    "offloaded by scan": (lambda x: lax.scan(lambda c, r: (c, to(Space.Host)(r + c)), 1.0,
                                             to(Space.Device)(x).reshape(2, 4))[1],
                          "float32<host>[2,4]", V.reshape(2, 4) + 1),
    "grad": (olympus.grad(lambda x: (x * x).sum()), "float32<host>[8]", 2 * V),
    "grad of what is moved": (olympus.grad(lambda x: (to(Space.Device)(x) * X).sum()),
                              "float32<host>[8]", V),
    "grad through the host": (
        lambda x: olympus.grad(lambda y: to(Space.Host)(y * y).sum())(to(Space.Device)(x)),
        "float32[8]", 2 * V),
    "grad of scan": (olympus.grad(lambda x: lax.scan(
        lambda c, r: (c + (to(Space.Device)(r) ** 2).sum(), None), 0.0, x.reshape(2, 4))[0]),
        "float32<host>[8]", 2 * V),
    "checkpoint": (olympus.grad(lambda x: olympus.checkpoint(onp.sin)(x).sum()),
                   "float32<host>[8]", np.cos(V)),
    "jvp": (lambda x: olympus.jvp(onp.sin, (x,), (x,))[1], "float32<host>[8]", V * np.cos(V)),
    "jacfwd": (lambda x: olympus.jacfwd(onp.sin)(x).sum(0), "float32<host>[8]", np.cos(V)),
    "jacrev": (lambda x: olympus.jacrev(onp.sin)(x).sum(0), "float32<host>[8]", np.cos(V)),
}


@pytest.mark.parametrize("name", ROWS)
def test_results_are_where_types_say(name):
    f, text, value = ROWS[name]
    for run in (f, olympus.jit(f)):
        y = run(H)
        assert str(olympus.typeof(y)) == text
        assert y.sharding.memory_kind == ("pinned_host" if "host" in text else "device")
        np.testing.assert_allclose(y, value, rtol=1e-5)
    assert str(olympus.make_olympuspr(f)(H).out_avals[0]) == text


def test_arrays_know_their_memory():
    assert str(olympus.typeof(H)) == "float32<host>[8]" and olympus.typeof(X).memory_space is (
        Space.Device)
    unpinned = olympus.device_put(X, SingleDeviceSharding(DEVICE, memory_kind="unpinned_host"))
    assert str(olympus.typeof(unpinned)) == "float32[8]"
    mesh = olympus.make_mesh((1,), ("x",))
    cut = NamedSharding(mesh, PartitionSpec("x"), memory_kind="pinned_host")
    for y in (olympus.device_put(V, cut), olympus.device_put(X, cut) * 2,
              olympus.jit(onp.sin, out_shardings=cut)(X)):
        assert str(olympus.typeof(y)) == "float32<host>[8@x]" and y.sharding == cut
        assert str(olympus.typeof(y.addressable_shards[0].data)) == "float32<host>[8]"
    key = olympus.device_put(olympus.random.key(0), HOST)
    assert str(olympus.typeof(key)) == "key<fry><host>[]"
    for y in (olympus.device_put(2.0, Space.Host), olympus.device_put(V, Space.Host)):
        assert olympus.typeof(y).memory_space is Space.Host
    for y in (olympus.device_put(H, DEVICE), olympus.device_put(H, HERE)):
        assert olympus.typeof(y) is olympus.typeof(X)
    for y in (copy.deepcopy(H), olympus.device_put(H, may_alias=False), onp.copy(H)):
        assert olympus.typeof(y) is olympus.typeof(H) and y is not H
    assert repr(Space.Host) == str(Space.Host) == "MemorySpace.Host"
    assert str(olympus.make_olympuspr(to(Space.Device))(H)) == (
        "{ lambda ; a:f32<host>[8]. let\n    b:f32[8] = device_put[target=MemorySpace.Device] a\n"
        "  in (b,) }")
    text = olympus.jit(to(Space.Device)).lower(H).as_text()
    assert text.count('mhlo.memory_kind = "pinned_host"') == 1


def test_jit_takes_arguments_in_the_memory_that_it_is_told():
    text = []
    f = olympus.jit(lambda x: text.append(str(olympus.typeof(x))) or x * 2, in_shardings=HOST)
    for given in (H, V):
        np.testing.assert_array_equal(f(given), 2 * V)
        assert f(given).sharding.memory_kind == "pinned_host"
    lowered = f.lower(olympus.ShapeDtypeStruct((8,), "float32"))
    np.testing.assert_array_equal(lowered.compile()(H), 2 * V)
    assert set(text) == {"float32<host>[8]"}
    given = olympus.ShapeDtypeStruct((8,), "float32", sharding=HOST)
    assert olympus.jit(to(Space.Device)).lower(given).compile().input_shardings == ((HOST,), {})
    for want, have in ((HOST, X), (HOST, olympus.device_put(X, DEVICE)), (HERE, H)):
        with pytest.raises(ValueError, match="Memory kinds passed to olympus.jit does not match"):
            olympus.jit(lambda x: x, in_shardings=want)(have)


@pytest.mark.parametrize("kind", ["device", "pinned_host", "unpinned_host"])
def test_jit_leaves_results_in_the_memory_that_it_is_told(kind):
    wanted = SingleDeviceSharding(DEVICE, memory_kind=kind)
    for given in (X, H):
        for donated in ((), (0,)):
            f = olympus.jit(lambda x: x + 1, out_shardings=wanted, donate_argnums=donated)
            for _ in range(2):
                y = f(olympus.device_put(given, may_alias=False))
                assert y.sharding == wanted and np.array_equal(y, V + 1)


@pytest.mark.parametrize("call", [
    lambda: H + X, lambda: olympus.jit(onp.add)(H, X), lambda: H + V, lambda: H @ X,
    lambda: onp.where(X > 0, H, X), lambda: onp.concatenate([H, X])],
    ids=["add", "jit", "numpy", "dot", "where", "concatenate"])
def test_operands_in_two_memories_are_refused(call):
    with pytest.raises(ValueError, match="memory_space of all inputs passed to .* must be the sa"):
        call()


def test_branches_and_carries_keep_to_a_memory():
    with pytest.raises(TypeError, match="move one with device_put"):
        lax.cond(True, lambda: H, lambda: X)
    with pytest.raises(TypeError, match=r"float32\[8\]"):
        lax.fori_loop(0, 3, lambda i, c: to(Space.Device)(c), H)


def test_users_policies_may_name_memories():
    def policy(prim, *avals, **params):
        return olympus.ad_checkpoint.Offloadable(src="device", dst="pinned_host")

    f = olympus.checkpoint(lambda x: onp.sin(onp.sin(x)).sum(), policy=policy)
    np.testing.assert_allclose(olympus.jit(olympus.grad(f))(X), np.cos(np.sin(V)) * np.cos(V),
                               rtol=1e-5)
    kept = [x for x in olympus.tree.leaves(olympus.vjp(f, X)[1]) if x.ndim]
    assert "float32<host>[8]" in {str(olympus.typeof(x)) for x in kept}


def test_types_of_one_shape_in_two_memories_differ():
    host = ShapedArray((4,), "float32", memory_space=Space.Host)
    assert host != ShapedArray((4,), "float32") and host.update(shape=(2,)).memory_space is (
        Space.Host)
