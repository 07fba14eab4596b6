"""Kernels that send to other devices, on eight devices; `test_pallas_devices.py` runs them."""

import functools

import numpy as np
from eight_devices import error, names, report

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.experimental import pallas as pl
from olympus.experimental.pallas import tpu as pltpu

P = olympus.sharding.PartitionSpec
DMA, LOGICAL = pltpu.SemaphoreType.DMA, pltpu.DeviceIdType.LOGICAL
X = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)


def mapped(kernel, shape=(1, 3), sizes=(8,), check_vma=True, **options):
    """A kernel as a function of arrays cut over a mesh."""
    mesh = olympus.make_mesh(sizes, ("x", "y")[:len(sizes)])
    spec = P(mesh.axis_names)
    run = pl.pallas_call(kernel, olympus.ShapeDtypeStruct(shape, np.float32),
                         scratch_shapes=[DMA, DMA], interpret=True, **options)
    return olympus.shard_map(run, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=check_vma)


def ring(x, o, sent, received, *, n=8):
    """All devices' rows, handed from each to the next."""
    me = lax.axis_index("x")
    o[me] = x[0]

    @pl.loop(0, n - 1)
    def _(i):
        row = o.at[(me - i) % n]
        copy = pltpu.make_async_remote_copy(row, row, sent, received, ((me + 1) % n,))
        copy.start()
        copy.wait()


def case_a_ring_gathers_and_has_a_derivative():
    for check_vma in True, False:
        run = mapped(ring, (8, 3), check_vma=check_vma)
        np.testing.assert_array_equal(olympus.jit(run)(X), np.tile(X, (8, 1)))
        loss = lambda x, run=run: (onp.sin(run(x)).sum())
        np.testing.assert_allclose(olympus.jit(olympus.grad(loss))(X), 8 * np.cos(X), rtol=1e-5)
    two = np.stack([X, -X])
    np.testing.assert_array_equal(olympus.vmap(mapped(ring, (8, 3)))(two),
                                  np.tile(two, (1, 8, 1)))


def case_devices_are_named_by_places_or_numbers():
    def transposed(x, o, sent, received, *, to):
        a, b = lax.axis_index("x"), lax.axis_index("y")
        pltpu.async_remote_copy(x, o, sent, received, *to(a, b)).wait()

    want = np.asarray(X).reshape(2, 4, 3)[:, [3, 0, 1, 2]].reshape(8, 3)
    for to in (lambda a, b: ((a, (b + 1) % 4),), lambda a, b: ([a, (b + 1) % 4],),
               lambda a, b: ({"y": (b + 1) % 4},), lambda a, b: (a * 4 + (b + 1) % 4, LOGICAL)):
        found = mapped(functools.partial(transposed, to=to), sizes=(2, 4))(X)
        np.testing.assert_array_equal(found, want)


def case_several_arrive_in_order_and_none_leaves_what_was_there():
    def to_first(x, o, sent, received):
        o[...] = onp.full(o.shape, -1.)
        me = lax.axis_index("x")
        copy = pltpu.make_async_remote_copy(x, o, sent, received, (me // 4 * 4,))
        copy.start()
        o[0, 0] = pl.semaphore_read(received) // 12     # how many arrived
        copy.wait_send()
        o[0, 1] = pl.semaphore_read(sent)

    found = mapped(to_first)(X)
    want = np.full((8, 3), -1.)
    want[:, 0], want[:, 1], want[[0, 4], 2] = [4, 0, 0, 0] * 2, 0, X[[3, 7], 2]
    np.testing.assert_allclose(found, want, rtol=1e-6)


def case_signals_are_added_on_the_other_device():
    def meet(o, sems):
        me, barrier = lax.axis_index("x"), pltpu.get_barrier_semaphore()
        for step in 1, 7:
            pl.semaphore_signal(barrier, device_id=((me + step) % 8,))
        pl.semaphore_wait(barrier, 2)
        pl.semaphore_signal(sems.at[me % 2], me, device_id=3, device_id_type=LOGICAL)
        o[0, :2], o[0, 2] = sems[...], pl.semaphore_read(barrier)

    run = pl.pallas_call(meet, olympus.ShapeDtypeStruct((1, 3), np.int32), interpret=True,
                         scratch_shapes=[pltpu.SemaphoreType.REGULAR((2,))])
    line = olympus.make_mesh((8,), ("x",))
    found = olympus.shard_map(run, mesh=line, in_specs=(), out_specs=P("x"))()
    want = np.zeros((8, 3), int)
    want[3, :2] = 12, 16
    np.testing.assert_array_equal(found, want)


def case_a_copy_that_not_all_devices_start_is_refused():
    def one(x, o, sent, received, *, decide):
        o[...] = x[...]
        decide(lambda: pltpu.async_remote_copy(x, o, sent, received, (0,)).wait())

    def turns(send):
        lax.while_loop(lambda i: i < lax.axis_index("x"), lambda i: (send(), i + 1)[1], 0)

    def later(send):        # from its second turn on, the loop's carry tells the devices apart
        lax.fori_loop(0, 3, lambda i, mine: (pl.when(mine < 3)(send), lax.axis_index("x"))[1], 0)

    for decide in (lambda send: pl.when(lax.axis_index("x") == 3)(send), turns,
                   lambda send: olympus.jit(lambda i: pl.when(i + 1 > 3)(send))(
                       lax.axis_index("x"))):
        for check_vma in True, False:
            text = error(NotImplementedError, "depends on the device",
                         lambda decide=decide, check_vma=check_vma: mapped(functools.partial(
                             one, decide=decide), check_vma=check_vma)(X))
            assert "pallas_cases.py:" in text and "start it outside" in text
    error(NotImplementedError, "depends on the device",     # types see it, too
          lambda: mapped(functools.partial(one, decide=later), check_vma=False)(X))
    # Values computed from the data vary, too, also through references.
    def by_data(x, o, sent, received):
        o[...] = x[...] * 2
        pl.when(o[0, 1] > 6)(lambda: pltpu.async_remote_copy(x, o, sent, received, (0,)).wait())

    for check_vma in True, False:
        text = error(NotImplementedError, "the predicate of cond depends on the device",
                     lambda check_vma=check_vma: mapped(by_data, check_vma=check_vma)(X))
        assert text.count("pallas_cases.py:") >= 2, text
    # All devices agree on a step of the grid, and on what they gathered.
    def agreed(x, o, sent, received):
        me = lax.axis_index("x")
        for all_agree in pl.program_id(0) == 1, lax.all_gather(me, "x").sum() == 28:
            pl.when(all_agree)(lambda: pltpu.async_remote_copy(
                x, o, sent, received, ((me + 1) % 8,)).wait())
    np.testing.assert_array_equal(mapped(agreed, grid=2)(X), np.roll(X, 1, 0))


def case_mistakes():
    def send(x, o, sent, received, *, to):
        pltpu.async_remote_copy(x, o, sent, received, *to)

    for to, kind, match in (
            (((0, 0),), ValueError, "of 2 entries given; 1 required"),
            (((0., ),), TypeError, "must be an int32 value, but got float32"),
            (({"z": 0},), ValueError, "names of the axes ('x',) of"),
            (((0, 0), LOGICAL), ValueError, "of 2 entries given; 1 required")):
        error(kind, match, lambda to=to: mapped(functools.partial(send, to=to))(X))
    error(ValueError, "call the kernel in shard_map", lambda: pl.pallas_call(
        functools.partial(send, to=((0,),)), olympus.ShapeDtypeStruct((8, 3), np.float32),
        scratch_shapes=[DMA, DMA], interpret=True)(X))


def case_windows_at_common_places_and_closed_over_parts():
    """Regression: a window of a varying reference at a place that all devices share was refused,
    and so was a kernel that closed over what varies."""
    mesh, spec = olympus.make_mesh((8,), ("x",)), P("x")

    def shard(f):
        return olympus.jit(olympus.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec))

    def reversed_pairs(x):
        def kernel(x, o):
            i = pl.program_id(0)
            o[pl.ds(2 * i, 2)] = x[pl.ds(4 - 2 * i, 2)][::-1] * (i + 1)
        return pl.pallas_call(kernel, olympus.ShapeDtypeStruct((6,), np.float32), grid=3,
                              interpret=True)(x)

    def closed_over(x):
        def kernel(o):
            o[...] = (x * pl.program_id(0))[:3]
        return pl.pallas_call(kernel, olympus.ShapeDtypeStruct((6,), np.float32), grid=2,
                              out_specs=pl.BlockSpec((3,), lambda i: (i,)), interpret=True)()

    def doubled(x):
        ref = olympus.new_ref(x)
        pl.loop(0, 6)(lambda i: ref.__setitem__(pl.ds(i, 1), ref[pl.ds(i, 1)] * 2))
        return ref[...]

    x = np.arange(48, dtype=np.float32)
    rows = x.reshape(8, 6)
    for f, want in ((reversed_pairs, rows[:, ::-1] * [1, 1, 2, 2, 3, 3]), (doubled, rows * 2),
                    (closed_over, np.concatenate([rows[:, :3] * 0, rows[:, :3]], 1))):
        np.testing.assert_array_equal(shard(f)(x), want.ravel())
        found = olympus.grad(lambda x, f=f: (shard(f)(x) * x).sum())(x)
        plain = olympus.jit(olympus.grad(lambda row, f=f: (f(row) * row).sum()))
        np.testing.assert_allclose(found, np.concatenate(list(map(plain, rows))), rtol=1e-6)


CASES = names(globals())
if __name__ == "__main__":
    report(globals())
