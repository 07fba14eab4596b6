"""Cases for tests/test_pmap.py, which runs this file in a process with eight CPU devices.

Oracles are NumPy on what all devices have, and the same collectives along axes of vmap.
"""

import re

import numpy as np
from eight_devices import error, names, report
from mesh_collective_cases import FORMS, check_derivatives, check_values, mesh

import olympus
import olympus.numpy as onp
from olympus import jit, jvp, lax, pmap, shard_map, vmap
from olympus._src.lax.collectives import moves, reductions
from olympus.errors import ShardingTypeError
from olympus.sharding import Mesh, NamedSharding, PartitionSpec as P

# Collectives; mesh_collective_cases.py has more ---------------------------------------------------

def case_values_of_collectives():
    for form, check in zip(FORMS, (False, True, False, True), strict=True):
        check_values(form, check)


def case_derivatives_of_collectives():
    check_derivatives(FORMS[2], True)


def case_parts_of_16_bit_sums_are_sent_as_they_are():
    # GPUs send them to the devices that add them in float32; here on CPUs, with hosts of two.
    moves.PARTS_ON, moves.NEAR, reductions.FEW_TO_SEND = frozenset(("cpu",)), 2, 1
    pairs = [[0, 6], [2, 4], [5, 7], [3, 1]]
    draw = np.random.default_rng(0).integers
    x = draw(-99, 99, (8, 8, 3, 16)) * 2.0**draw(0, 4, (8, 8, 3, 16))
    sums = {"psum": lambda x: lax.psum(x, "i")[0],
            "first": lambda x: lax.psum_scatter(x[0], "i"),
            "last": lambda x: lax.psum_scatter(x[0], "i", scatter_dimension=2, tiled=True),
            "pairs": lambda x: lax.psum_scatter(x[0, :2], "i", axis_index_groups=pairs)}
    whole = np.moveaxis(x.sum(0).reshape(8, 3, 8, 2), 2, 0)
    partner = np.array([6, 3, 4, 1, 2, 7, 0, 5])
    place = np.array([[g.index(i) for g in pairs if i in g][0] for i in range(8)])
    both = x + x[partner]
    want = {"psum": np.broadcast_to(x.sum(0), x.shape), "first": x.sum(0), "last": whole,
            "pairs": both[np.arange(8), place]}
    for dtype in ("bfloat16", "float16"):
        each = onp.asarray(x, dtype)
        right = np.asarray(each).astype(np.float32)
        assert (right == x).all()
        step = jit(shard_map(lambda x: [f(x)[None] for f in sums.values()], mesh=mesh(("i", 8)),
                             in_specs=P("i"), out_specs=P("i"), check_vma=False))
        text = step.lower(each).as_text()
        assert text.count('"stablehlo.all_to_all"') == 4 and "all_reduce" not in text
        for got, name in zip(step(each), want, strict=True):
            rounded = np.asarray(want[name].astype(np.float32)).astype(got.dtype)
            assert (np.asarray(got) == rounded).all(), name
    given = onp.zeros((8, 1 << 21), "bfloat16")
    moves.PARTS_ON, reductions.FEW_TO_SEND = frozenset(("gpu",)), 1 << 20
    gpus = jit(shard_map(lambda x: lax.psum(x, "i"), mesh=mesh(("i", 8)), in_specs=P("i"),
                         out_specs=P()))
    assert "all_reduce" in gpus.lower(given).as_text()
    def lowered(f):
        return f.trace(given).lower(lowering_platforms=("cuda",)).as_text()

    assert "all_reduce" not in lowered(gpus)
    # XLA moves the sum of a loop's sums behind the loop.
    total = lambda x: lax.fori_loop(0, 3, lambda i, c: c + gpus(x), x[:1])
    assert lowered(jit(total)).count('"stablehlo.all_reduce"') == 1


def case_devices_exchange_cotangents_of_the_size_of_parameters():
    # They were of the size of what parameters are broadcast to.
    on, w, x = mesh(("i", 8)), np.arange(1, 5, dtype=np.float32), SQUARE[:, :4] / 9
    losses = {
        "scale and shift": lambda w, x: onp.tanh(x * w + w).sum(),
        "where": lambda w, x: onp.where(x > 1, w, x * x).sum(),
        "condition": lambda w, x: onp.where(x > 1, w, 2 * w).sum(),
        "of lax": lambda w, x: (lax.mul(x, w[None]) ** 2).sum(),
        "mapped": lambda w, x: vmap(lambda x: lax.mul(x, w))(x).sum(),
        "mapped ranks": lambda w, x: vmap(lambda x: lax.mul(x, w[1]))(x).sum(),
        "scalar": lambda w, x: (lax.sin(w[2]) * x).sum(),
        "power": lambda w, x: (x ** w).sum(),
    }
    for name, loss in losses.items():
        inner = lambda w, x, loss=loss: lax.psum(olympus.grad(
            lambda w: loss(w, x))(lax.pcast(w, "i", to="varying")), "i")
        outer, within, inside = [shard_map(f, mesh=on, in_specs=(P(), P("i")), out_specs=P())
                                 for f in (lambda w, x, f=loss: lax.psum(f(w, x), "i"),
                                           lambda w, x, f=loss: olympus.grad(f)(w, x), inner)]
        want = olympus.grad(loss)(w, x)
        for f in (olympus.grad(outer), within, inside):
            close(jit(f)(w, x), want)
            sent = re.findall(r":f32\[([\d,]*)\]\S* = psum", str(olympus.make_olympuspr(f)(w, x)))
            assert sent and {*sent} <= {"", "4", "1,4", "1"}, (name, sent)


def case_sums_that_are_not_taken_yet():
    on = mesh(("i", 4), order=slice(4))
    over = lambda f, ins, outs: jit(shard_map(f, mesh=on, in_specs=ins, out_specs=outs))
    w, x = np.arange(8, dtype=np.float32), SQUARE[:4, :2]
    types = []

    def shown(x):
        types.append(str(olympus.typeof(x)))
        return x

    terms = lambda x: shown(lax.pcast(x, "i", to="unreduced"))
    triple = lambda x: lax.psum(2 * terms(x) + terms(x), "i")
    close(over(triple, P("i"), P())(x), 3 * x.sum(0)[None])
    close(over(lambda w, x: lax.psum_scatter(terms(w * x[0, 0]), "i", tiled=True), (P(), P("i")),
               P("i"))(w, x), w * x[:, 0].sum())

    # The gradient of a shared weight stays unreduced until it is scattered.
    loss = lambda w, x: ((x * w[:2]) ** 2).sum()

    def scattered(w, x):
        shared = shown(lax.pcast(w, "i", to="reduced"))
        return lax.psum_scatter(shown(olympus.grad(loss)(shared, x)), "i", tiled=True)

    gathered = lambda w, x: olympus.grad(lambda w: loss(shown(lax.all_gather(
        w, "i", tiled=True, to="reduced")), x))(w)
    through = lambda w, s, x: olympus.grad(lambda w, s: lax.psum(
        s * loss(lax.pcast(w, "i", to="reduced"), x), "i"), (0, 1))(w, s)
    want = olympus.grad(loss)(w, x)
    close(over(scattered, (P(), P("i")), P("i"))(w, x), want)
    close(over(gathered, (P("i"), P("i")), P("i"))(w, x), want)
    close(over(through, (P(), P(), P("i")), P())(w, 3.0, x), (3 * want, loss(w, x)))
    assert types == ["float32[1,2]{U:i}"] * 2 + ["float32[8]{U:i}", "float32[8]{R:i}",
                                                 "float32[8]{U:i}", "float32[8]{R:i}"], types
    free = shard_map(lambda x: lax.psum(lax.pcast(x, "i", to="unreduced"), "i"), mesh=on,
                     in_specs=P("i"), out_specs=P(), check_vma=False)
    close(jit(free)(x), x.sum(0)[None])

    for fun, kind, text in [
            (lambda x: onp.sin(terms(x)), ShardingTypeError, "unreduced along 'i'"),
            (lambda x: terms(x) + 1, ShardingTypeError, "unreduced along 'i'"),
            (lambda x: terms(x) + x, ShardingTypeError, "unreduced along 'i'"),
            (terms, ValueError, "should be equal to the unreduced present"),
            (lambda x: lax.pcast(x, "i", to="reduced"), ValueError, "is varying, to='reduced'"),
            (lambda x: lax.pcast(terms(x), "i", to="varying"), ValueError, "is unreduced, to=")]:
        error(kind, text, lambda fun=fun: over(fun, P("i"), P())(x))
    error(ValueError, "is invarying, to='unreduced'", lambda: over(terms, P(), P())(x))


def case_one_value_for_all_devices():
    """Gathered, sent by one bit for bit, and the largest of complex numbers."""
    on = mesh(("i", 4), order=slice(4))
    gather = lambda x: lax.all_gather(x, "i", tiled=True, to="invarying")
    both = lambda x: (gather(x), olympus.grad(lambda x: (gather(x) ** 2).sum())(x))
    f = shard_map(both, mesh=on, in_specs=P("i"), out_specs=(P(), P("i")))
    close(jit(f)(X), (X, 2 * X))
    bits = np.array([[0, -0.0, np.nan, np.inf]] * 4, np.float32) * np.float32([[1], [-1], [2], [3]])
    for dtype in ("float32", "bfloat16", "float8_e4m3fn", "complex64"):
        x = onp.asarray(bits).astype(dtype)
        sent = jit(shard_map(lambda x: lax.pbroadcast(x, "i", 1), mesh=on, in_specs=P("i"),
                             out_specs=P("i")))(x)
        assert np.asarray(sent).tobytes() == np.asarray(x[np.ones(4, int)]).tobytes(), dtype
    z = np.array([1 + 2j, 1 + 3j, 0 + 9j, 1 - 1j], np.complex64)
    largest = lambda z: (lax.pmax(z, "i"), lax.pmax(z, "i", axis_index_groups=[[0, 3], [1, 2]]))
    f = jit(shard_map(largest, mesh=on, in_specs=P("i"), out_specs=(P(), P("i"))))
    close(f(z), (z[1:2], z[[0, 1, 1, 0]]))


# pmap ---------------------------------------------------------------------------------------------

X = np.arange(8, dtype=np.float32)
SQUARE = np.arange(64, dtype=np.float32).reshape(8, 8)


def close(actual, wanted):
    """Equal as float32 are."""
    olympus.tree.map(lambda a, w: np.testing.assert_allclose(a, w, 1e-5, 1e-5), actual, wanted)


def check_spread(y, want, *spec, devices=None):
    """The values, and a block of them on each device."""
    devices = olympus.devices()[:8] if devices is None else devices
    close(y, want)
    on = Mesh(np.array(devices), y.sharding.mesh.axis_names)
    (name,) = on.axis_names
    assert y.sharding == NamedSharding(on, P(*[s and name for s in spec])), y.sharding
    assert len(y.addressable_shards) == len(devices) and y.committed
    for part, device in zip(y.addressable_shards, devices, strict=True):
        assert part.device == device and np.array_equal(part.data, np.asarray(y)[part.index])


def case_results_are_spread_over_devices():
    check_spread(pmap(onp.sin)(X), np.sin(X), 1)
    check_spread(pmap(lambda x: x + 1)(X[:4]), X[:4] + 1, 1, devices=olympus.devices()[:4])
    last = olympus.devices()[::-1][:4]
    check_spread(pmap(lambda x: -x, devices=last)(X[:4]), -X[:4], 1, devices=last)
    check_spread(pmap(lambda x: x, in_axes=1)(SQUARE), SQUARE.T, 1)
    check_spread(pmap(lambda x: x, in_axes=-1, out_axes=1)(SQUARE[:3]), SQUARE[:3], None, 1)
    check_spread(pmap(lambda x: 1, backend="cpu")(X), np.ones(8), 1)
    y = pmap(lambda x: x * 2)(X)            # spread already, as it is and otherwise
    check_spread(pmap(lambda x: x)(y), 2 * X, 1)
    check_spread(pmap(lambda x: x)(pmap(lambda x: x, out_axes=1)(SQUARE)), SQUARE.T, 1)
    assert pmap(onp.sin).__name__ == "sin"
    keys = pmap(lambda k: olympus.random.split(k))(olympus.random.split(olympus.random.key(0), 8))
    assert keys.shape == (8, 2)
    one = olympus.random.split(olympus.random.split(olympus.random.key(0), 8)[3])
    assert (olympus.random.key_data(keys[3]) == olympus.random.key_data(one)).all()


def case_arguments_are_mapped_as_in_axes_says():
    tree = {"a": X, "b": 2.0}
    f = pmap(lambda t, y, *, z: (t["a"] + t["b"] * y, {"z": z, "one": y}),
             in_axes=({"a": 0, "b": None}, None), out_axes=(0, {"z": 0, "one": None}))
    out, more = f(tree, 3.0, z=SQUARE)
    check_spread(out, X + 6, 1)
    check_spread(more["z"], SQUARE, 1)
    assert more["one"] == 3 and more["one"].shape == ()
    close(pmap(lambda x: x, in_axes=None, axis_size=8)(X), np.stack([X] * 8))
    close(pmap(lambda x, y: x + y, in_axes=[0, None])(X, 1), X + 1)
    traced = []
    scaled = pmap(lambda x, n, y: traced.append(n) or x * n + y, static_broadcasted_argnums=1,
                  in_axes=(0, None, 0))
    for n in (3, 4, 3):
        close(scaled(X, n, X), X * n + X)
    close(pmap(lambda x, n, y: x * n + y, static_broadcasted_argnums=(1, 2))(X, 2, 1), X * 2 + 1)
    assert traced == [3, 4]


def case_collectives_along_the_axis_of_pmap():
    names = pmap(lambda x: (lax.axis_index("i"), lax.axis_size("i"), lax.psum(x, "i"),
                            lax.all_gather(x, "i"), lax.ppermute(x, "i", [(0, 1), (7, 2)]),
                            lax.pmean(x, "i", axis_index_groups=[[0, 2, 4, 6], [1, 3, 5, 7]])),
                 "i", out_axes=(0, None, None, None, 0, 0))(X)
    want = [X, 8, 28, X, [0, 0, 7, 0, 0, 0, 0, 0], [3, 4] * 4]
    for y, w in zip(names, want, strict=True):
        close(y, np.asarray(w))
    inner = vmap(lambda x: x - lax.pmean(x, ("i", "j")), axis_name="j")
    close(pmap(inner, axis_name="i")(SQUARE), SQUARE - SQUARE.mean())
    outer = vmap(pmap(lambda x: x - lax.pmean(x, ("i", "j")), axis_name="i"), axis_name="j")
    close(outer(SQUARE), SQUARE - SQUARE.mean())
    close(vmap(pmap(lambda x: x + lax.axis_index("i"), "i"), 1, 1)(SQUARE), SQUARE + X[:, None])
    close(pmap(lambda x: lax.psum(x, [3]), axis_name=3)(X), np.full(8, 28))


def case_derivatives_of_pmap():
    loss = lambda x, w: pmap(lambda x, w: onp.sin(x * w) + lax.psum(x * w, "i"), "i", in_axes=(
        0, None))(x, w).sum()
    whole = lambda x, w: (onp.sin(x * w) + (x * w).sum()).sum()
    want = olympus.grad(whole, (0, 1))(X, 0.3)
    for f in (olympus.grad(loss, (0, 1)), jit(olympus.grad(loss, (0, 1)))):
        close(f(X, 0.3), want)
    close(jvp(loss, (X, 0.3), (X, 1.0)), jvp(whole, (X, 0.3), (X, 1.0)))
    hessian = lambda f: olympus.jvp(olympus.grad(f, 1), (X, 0.3), (X, 0.0))[1]
    close(hessian(loss), hessian(whole))
    inside = pmap(olympus.grad(lambda x: lax.psum(x, "i") ** 2), "i")
    close(inside(X), np.full(8, 8 * 56.0))       # of the sum of what all devices get
    remat = lambda x: pmap(olympus.checkpoint(lambda x: onp.sin(onp.sin(x))))(x).sum()
    close(olympus.grad(remat)(X), np.cos(np.sin(X)) * np.cos(X))
    step = pmap(olympus.value_and_grad(lambda w, x: lax.pmean(w * x, "i")), "i",
                in_axes=(None, 0))
    close(step(2.0, X)[1], X)


def case_stages_and_donation_of_pmap():
    f = pmap(lambda x, y: {"sum": x + y}, donate_argnums=1)
    x, y = pmap(lambda x: (x, x + 1))(X)
    lowered = f.lower(x, y)
    assert "sdy.manual_computation" in lowered.as_text()
    assert [i.donated for i in lowered.args_info[0]] == [False, True]
    check_spread(lowered.compile()(x, y)["sum"], 2 * X + 1, 1)
    struct = olympus.ShapeDtypeStruct((8,), "float32")
    assert f.lower(struct, struct).out_info["sum"].shape == (8,)
    x, y = pmap(lambda x: (x, x + 1))(X)
    check_spread(f(x, y)["sum"], 2 * X + 1, 1)
    assert y.is_deleted() and not x.is_deleted()
    check_spread(jit(f)(X, X)["sum"], 2 * X, 1)
    with olympus.enable_x64(True):
        assert pmap(lambda x: x)(X.astype(float)).dtype == np.float64
    seen = []
    pmap(lambda x: olympus.debug.callback(seen.append, x))(X)
    olympus.effects_barrier()
    assert sorted(map(float, seen)) == X.tolist()
    assert pmap(lambda x: olympus.pure_callback(np.sin, x, x))(X)[3] == np.sin(X[3])


def case_bad_calls_of_pmap():
    error(ValueError, "mapped over 16 examples, and there are 8 devices", lambda: pmap(onp.sin)(
        np.ones(16)))
    error(ValueError, "and there are 2 devices", lambda: pmap(
        onp.sin, devices=olympus.devices()[:2])(X))
    error(ValueError, "one axis had size 8: axis 0 of argument x of type float32[8]",
          lambda: pmap(lambda x, y: x)(X, X[:4]))
    error(ValueError, "the `axis_size` argument was 4", lambda: pmap(lambda x: x, axis_size=4)(X))
    error(ValueError, "is only 0", lambda: pmap(lambda x: x)(1.0))
    error(ValueError, "out_axes has 3 for result of f, which with the mapped axis has rank 1",
          lambda: pmap(as_f(lambda x: x), out_axes=3)(X))
    error(ValueError, "out_axes has -1", lambda: pmap(lambda x: x, out_axes=-1)(X))
    error(ValueError, "is called by a function mapped along ('i',)", lambda: pmap(
        pmap(lambda x: x), "i")(np.ones((2, 2))))
    error(NameError, "axis_name='j'; bound axis names are: 'i'", lambda: pmap(
        lambda x: lax.psum(x, "j"), "i")(X))
    error(ValueError, "must be passed positionally", lambda: pmap(
        lambda x, n: x * n, static_broadcasted_argnums=1)(X, n=2))
    error(ValueError, "a tuple of entries corresponding to the positional", lambda: pmap(
        lambda x, y: x, in_axes=(0,))(X, X))
    error(ValueError, "pmap out_axes specification must be a tree prefix", lambda: pmap(
        lambda x: (x, x), out_axes=(0, 0, 0))(X))
    error(TypeError, "a value of type <class 'str'>", lambda: pmap(lambda x: "a")(X))


def case_references_have_a_row_for_each_device():
    def f(ref, x):
        ref[...] *= 2
        ref[0] += x
        return ref[...].sum()

    rows, x = np.arange(16, dtype=np.float32).reshape(8, 2), X
    want = 2 * rows + x[:, None] * [1, 0]
    for axis in (0, 1):
        ref = olympus.new_ref(np.moveaxis(rows, 0, axis))
        close(pmap(f, in_axes=(axis, 0))(ref, x), want.sum(1))
        close(np.moveaxis(np.asarray(ref[...]), axis, 0), want)
    shared = olympus.new_ref(np.ones(2, np.float32))
    close(pmap(lambda ref, x: ref[...].sum() * x, in_axes=(None, 0))(shared, x), 2 * x)
    pmap(lambda x: shared.addupdate(lax.psum(x, "i"), 0), "i")(x)
    close(shared[...], [1 + x.sum(), 1])
    loss = lambda rows: (lambda ref: (pmap(f)(ref, rows[:, 1]), ref[...].sum())[1])(
        olympus.new_ref(rows))
    close(olympus.grad(loss)(rows), np.full((8, 2), [2, 3]))
    for write in (lambda x: shared.set(x, 0), lambda x: lax.fori_loop(
            0, 2, lambda i, _: shared.addupdate(x, 0), None)):
        error(ValueError, "a value that differs from device to device is written to a reference "
              "Ref{float32[2]}", lambda: pmap(write)(x))


def as_f(fun):
    fun.__name__ = "f"
    return fun


CASES = names(globals())

if __name__ == "__main__":
    report(globals())
