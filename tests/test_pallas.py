"""Kernels against the same on whole arrays, in NumPy."""

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.kernels.masked import load, store, swap
from olympus.experimental import checkify, pallas as pl
from olympus.experimental.pallas import tpu as pltpu

F32, I32 = np.float32, np.int32
RNG = np.random.default_rng(0)


def out(*shape, dtype=F32):
    return olympus.ShapeDtypeStruct(shape, dtype)


def called(kernel, out_shape, **options):
    return pl.pallas_call(kernel, out_shape, interpret=True, **options)


def arrays(*shapes):
    return [RNG.normal(size=s).astype(F32) for s in shapes]


# Each row: a function of arrays by a kernel, the same in whole-array operations, and arguments. ---

def matmul(x, y, b=4):
    def kernel(x, y, o):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o[...] = onp.zeros_like(o[...])
        o[...] += x[...] @ y[...]
    (m, k), n = x.shape, y.shape[1]
    return called(kernel, out(m, n), grid=(m // b, n // b, k // b),
                  in_specs=[pl.BlockSpec((b, b), lambda i, j, k: (i, k)),
                            pl.BlockSpec((b, b), lambda i, j, k: (k, j))],
                  out_specs=pl.BlockSpec((b, b), lambda i, j, k: (i, j)))(x, y)


def matmul_by_scratch(x, y, b=4):
    def kernel(x, y, o, acc):
        @pl.when(pl.program_id(2) == 0)
        def _():
            acc[...] = onp.zeros_like(acc[...])
        acc[...] += x[...] @ y[...]

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _():
            o[...] = acc[...]
    (m, k), n = x.shape, y.shape[1]
    return called(kernel, out(m, n), grid=(m // b, n // b, k // b),
                  in_specs=[pl.BlockSpec((b, b), lambda i, j, k: (i, k)),
                            pl.BlockSpec((b, b), lambda i, j, k: (k, j))],
                  out_specs=pl.BlockSpec((b, b), lambda i, j, k: (i, j)),
                  scratch_shapes=[pl.ANY((b, b), F32)])(x, y)


def softmax(x):
    def kernel(x, o):
        e = onp.exp(x[...] - x[...].max(-1, keepdims=True))
        o[...] = e / e.sum(-1, keepdims=True)
    block = pl.BlockSpec((2, x.shape[1]), lambda i: (i, 0))
    return called(kernel, out(*x.shape), grid=pl.cdiv(x.shape[0], 2), in_specs=[block],
                  out_specs=block)(x)


def rows_by_none(x):
    def kernel(x, o):
        o[...] = x[...].sum()
    return called(kernel, out(x.shape[0]), grid=x.shape[0],
                  in_specs=[pl.BlockSpec((None, x.shape[1]), lambda i: (i, 0))],
                  out_specs=pl.BlockSpec((pl.squeezed,), lambda i: i))(x)


def moving_sum(x):
    def kernel(x, o):
        o[...] = x[...].sum(keepdims=True)
    return called(kernel, out(x.shape[0] - 2), grid=x.shape[0] - 2,
                  in_specs=[pl.BlockSpec((pl.Element(3),), lambda i: (i,))],
                  out_specs=pl.BlockSpec((1,), lambda i: (i,)))(x)


def gated_scan(x, y):
    """A recurrence whose state is scratch, with a loop in the kernel: h = tanh(h * x + y)."""
    def kernel(x, y, o, h):
        @pl.when(pl.program_id(0) == 0)
        def _():
            h[...] = onp.zeros_like(h[...])

        @pl.loop(0, 4)
        def _(i):
            h[...] = onp.tanh(h[...] * x[i] + y[i])
            o[i] = h[...]
    block = pl.BlockSpec((4, x.shape[1]), lambda i: (i, 0))
    return called(kernel, out(*x.shape), grid=x.shape[0] // 4, in_specs=[block, block],
                  out_specs=block, scratch_shapes=[pl.ANY((x.shape[1],), F32)])(x, y)


def gated_scan_whole(x, y):
    h, hs = onp.zeros(x.shape[1]), []
    for a, b in zip(x, y, strict=True):
        h = onp.tanh(h * a + b)
        hs.append(h)
    return onp.stack(hs)


def reversed_by_ds(x):
    def kernel(x, o):
        i = pl.program_id(0)
        o[pl.ds(2 * i, 2)] = x[pl.ds(x.shape[0] - 2 - 2 * i, 2)][::-1] * (i + 1)
    return called(kernel, out(*x.shape), grid=x.shape[0] // 2)(x)


def gathered_rows(x):
    def kernel(rows, x, o):
        o[...] = x[...] * rows[pl.program_id(0)]
    spec = pltpu.PrefetchScalarGridSpec(
        1, grid=(3,), in_specs=[pl.BlockSpec((1, x.shape[1]), lambda i, rows: (rows[i], 0))],
        out_specs=pl.BlockSpec((1, x.shape[1]), lambda i, rows: (i, 0)))
    return called(kernel, out(3, x.shape[1]), grid_spec=spec)(onp.array([2, 0, 2]), x)


def two_outputs(x):
    def kernel(x, o):
        o["twice"][...], o["sum"][...] = x[...] * 2, x[...].sum()
    found = called(kernel, {"twice": out(*x.shape), "sum": out(x.shape[0] // 2)},
                   grid=x.shape[0] // 2, in_specs=[pl.BlockSpec((2,), lambda i: (i,))],
                   out_specs={"twice": pl.BlockSpec((2,), lambda i: (i,)),
                              "sum": pl.BlockSpec((None,), lambda i: (i,))})(x)
    return onp.concatenate([found["twice"], found["sum"]])


def in_place(x, y):
    def kernel(x, y, o):
        o[...] = o[...] * y[...]
    block = pl.BlockSpec((2,), lambda i: (i,))
    return called(kernel, out(*x.shape), grid=2, in_specs=[block, block], out_specs=block,
                  input_output_aliases={0: 0})(x, y)


def copied(x):
    def kernel(x, o, sem):
        copy = pltpu.make_async_copy(x.at[pl.ds(2 * pl.program_id(0), 2)], o, sem)
        copy.start()
        copy.wait()
    return called(kernel, out(*x.shape), grid=2, in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
                  out_specs=pl.BlockSpec((2,), lambda i: (i,)),
                  scratch_shapes=[pltpu.SemaphoreType.DMA])(x)


def closed_over(x):
    def kernel(o):
        o[...] = (x * pl.program_id(0))[:2]
    return called(kernel, out(4), grid=2, out_specs=pl.BlockSpec((2,), lambda i: (i,)))()


def by_core_map(x):
    def kernel(x, o):
        o[...] = x[...] ** 2 * (1 + lax.axis_index("core"))
    return pl.kernel(kernel, out(*x.shape), mesh=Cores(core=1), interpret=True)(x)


class Cores:
    def __init__(self, **shape):
        self.shape = shape


def indirect(x):
    def kernel(x, o):
        o[...] = x[...]
    return called(kernel, out(2, 3), in_specs=[
        pl.BlockSpec((pl.Indirect(2), 3), lambda: (onp.array([3, 1]), 0))])(x)


def carried_references(x, y):
    """Loops in loops whose carries hold references and a part: running sums of x * y."""
    def kernel(x, y, o, total):
        total[...] = onp.zeros_like(total[...])

        def row(carry, i):
            def add(j, carry):
                refs, count = carry
                refs["total"][j] += refs["x"][i, j] * y[i, j]
                return refs, count + 1
            refs, count = lax.fori_loop(0, x.shape[1], add, carry)
            o[i] = refs["total"][...]
            return (refs, count), count
        (refs, count), counts = lax.scan(row, ({"x": x, "total": total}, 0), onp.arange(4))
        assert refs["total"] is total and counts.shape == (4,)

        def below(carry):
            return carry[1] < count // count    # 1, which no loop knows

        def doubled(carry):
            part, i = carry
            part[...] = part[...] * 2
            return part, i + 1
        lax.while_loop(below, doubled, (o.at[3], 0), checkpoints=1)
    return called(kernel, out(*x.shape), scratch_shapes=[pl.ANY((x.shape[1],), F32)])(x, y)


ROWS = {
    "matmul": (matmul, lambda x, y: x @ y, arrays((8, 8), (8, 4))),
    "matmul by scratch": (matmul_by_scratch, lambda x, y: x @ y, arrays((8, 8), (8, 4))),
    "softmax, the last block leaves": (softmax, lambda x: olympus.nn.softmax(x, -1),
                                       arrays((5, 6))),
    "None and Squeezed": (rows_by_none, lambda x: x.sum(1), arrays((3, 4))),
    "Element": (moving_sum, lambda x: x[2:] + x[1:-1] + x[:-2], arrays((7,))),
    "state in scratch": (gated_scan, gated_scan_whole, arrays((8, 3), (8, 3))),
    "ds at computed places": (reversed_by_ds,
                              lambda x: x[::-1] * onp.repeat(onp.arange(1., 4.), 2), arrays((6,))),
    "prefetched scalars": (gathered_rows,
                           lambda x: x[onp.array([2, 0, 2])] * onp.array([[2.], [0.], [2.]]),
                           arrays((3, 4))),
    "a dict of outputs": (two_outputs,
                          lambda x: onp.concatenate([x * 2, x.reshape(-1, 2).sum(1)]),
                          arrays((6,))),
    "alias": (in_place, lambda x, y: x * y, arrays((4,), (4,))),
    "copies": (copied, lambda x: x, arrays((4,))),
    "closed over": (closed_over, lambda x: onp.concatenate([x[:2] * 0, x[:2]]), arrays((4,))),
    "kernel over one core": (by_core_map, lambda x: x ** 2, arrays((4,))),
    "references in carries": (carried_references,
                              lambda x, y: onp.cumsum(x * y, 0) * onp.array([[1.], [1], [1], [2]]),
                              arrays((4, 3), (4, 3))),
    "Indirect": (indirect, lambda x: x[onp.array([3, 1])], arrays((4, 3))),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("how", ["eager", "jit", "vmap", "jvp", "grad"])
def test_kernels_are_what_they_are_on_whole_arrays(name, how):
    f, whole, args = ROWS[name]
    if how == "vmap":
        args = [np.stack([x, x[::-1] * 2]) for x in args]
    ts = [np.cos(x) for x in args]
    do = {
        "eager": lambda f: f(*args),
        "jit": lambda f: olympus.jit(f)(*args),
        "vmap": lambda f: olympus.vmap(f)(*args),
        "jvp": lambda f: olympus.jit(lambda: olympus.jvp(f, args, ts))(),
        "grad": lambda f: olympus.jit(olympus.grad(
            lambda *xs: (onp.sin(f(*xs))).sum(), tuple(range(len(args)))))(*args),
    }[how]
    if how == "eager":      # in NumPy
        want = np.asarray(whole(*map(onp.asarray, args)))
    else:
        want = do(whole)
    olympus.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6),
                     do(f), want)


def test_second_derivatives_and_vmap_of_grad():
    f, whole, (x, y) = ROWS["state in scratch"]
    x, y = x[:4], y[:4]
    grad = lambda f: olympus.grad(lambda x: f(x, y)[-1].sum())
    both = np.stack([x, 2 * x])
    np.testing.assert_allclose(olympus.vmap(grad(f))(both), olympus.vmap(grad(whole))(both),
                               rtol=2e-5, atol=1e-6)
    hessian = lambda f: olympus.jacfwd(grad(f))(x)
    np.testing.assert_allclose(hessian(f), hessian(whole), rtol=2e-4, atol=1e-6)


# What is not written, what leaves the array ------------------------------------------------------

@pytest.mark.parametrize("dtype, blank", [
    (F32, np.nan), (np.float16, np.nan), (onp.bfloat16, np.nan), (np.complex64, np.nan),
    (onp.float8_e4m3fn, np.nan), (I32, -2**31), (np.uint8, 0), (onp.int4, -8), (bool, False)])
def test_what_is_never_written(dtype, blank):
    def kernel(x, o, never):
        o[0] = x[0]
    x = onp.ones(2, dtype)
    first, never = called(kernel, (out(2, dtype=dtype), out(3, dtype=dtype)))(x)
    want = np.array([blank] * 3).astype(np.float64 if dtype is not np.complex64 else dtype)
    np.testing.assert_array_equal(np.asarray(never).astype(want.dtype), want)
    np.testing.assert_array_equal(np.asarray(first).astype(want.dtype)[1], want[1])
    assert first[0] == x[0]


def test_padding_of_blocks_that_leave():
    def kernel(x, o):
        o[...] = onp.isnan(x[...]).sum(keepdims=True).astype(I32)
    found = called(kernel, out(3, dtype=I32), grid=3,
                   in_specs=[pl.BlockSpec((4,), lambda i: (i,))],
                   out_specs=pl.BlockSpec((1,), lambda i: (i,)))(np.zeros(10, F32))
    assert found.tolist() == [0, 0, 2]


def test_gradients_do_not_see_the_padding_of_the_last_block():
    def kernel(x, w, o):
        o[...] = x[...] * w[...] + onp.log(x[...])
    rows = pl.BlockSpec((pl.Element(4, (1, 0)), 3), lambda i: (4 * i, 0))
    f = called(kernel, out(7, 3), grid=2, in_specs=[rows, pl.BlockSpec((3,), lambda i: 0)],
               out_specs=rows)
    x, w = arrays((2, 7, 3), (3,))
    x = np.abs(x) + 1

    def loss(w, x=x[0]):
        return f(x, w).sum()

    grad = olympus.grad(loss)
    np.testing.assert_allclose(grad(w), x[0].sum(0), rtol=1e-5)
    np.testing.assert_allclose(olympus.vmap(grad, (None, 0))(w, x), x.sum(1), rtol=1e-5)
    summed = olympus.grad(lambda w: olympus.vmap(loss, (None, 0))(w, x).sum())
    np.testing.assert_allclose(summed(w), x.sum((0, 1)), rtol=1e-5)
    carried = olympus.grad(lambda w: lax.scan(lambda c, x: (c + loss(w, x), None), 0., x)[0])
    np.testing.assert_allclose(carried(w), x.sum((0, 1)), rtol=1e-5)
    double = called(lambda x, o: o.__setitem__(..., 2 * x[...]), out(7, 3), grid=2, in_specs=[rows],
                    out_specs=rows)
    back = olympus.linear_transpose(double, x[0])
    assert olympus.jvp(back, (x[1],), (x[0],))[1][0].tolist() == (2 * x[0]).tolist()


def test_gradients_see_the_same_mask_in_the_padding():
    # A mask's padding repeated its last element, so that gradients counted the padding, too.
    def kernel(kept, x, o):
        o[...] = onp.where(kept[...] == 1, x[...] ** 2, 0).sum(keepdims=True)
    block = pl.BlockSpec((2,), lambda i: (i,))
    x, kept = onp.array([1., 2., 3.]), onp.array([1, 0, 1])
    for mask in (kept, kept == 1, kept.astype("int8")):
        run = called(kernel, out(2), grid=2, in_specs=[block] * 2,
                     out_specs=pl.BlockSpec((1,), lambda i: (i,)))
        value, slope = olympus.value_and_grad(lambda x: run(mask, x).sum())(x)
        assert value == 10 and slope.tolist() == [2, 0, 6]
        assert olympus.jvp(lambda x: run(mask, x).sum(), (x,), (x,)) == (10, 20)


def test_padding_of_elements_in_front():
    def kernel(x, o):
        o[...] = x[...]
    found = called(kernel, out(6), in_specs=[pl.BlockSpec((pl.Element(6, (1, 1)),), lambda: (0,))])(
        np.arange(4, dtype=F32))
    np.testing.assert_array_equal(found, [np.nan, 0, 1, 2, 3, np.nan])


def test_empty_arrays_are_one_block():
    def kernel(x, o):
        o[...] = x[...] * 2
    whole = pl.BlockSpec((0, 4), lambda: (0, 0))
    for specs in ({}, {"in_specs": [whole], "out_specs": whole}):
        f = called(kernel, out(0, 4), **specs)
        assert f(onp.zeros((0, 4))).shape == olympus.grad(lambda x, f=f: f(x).sum())(
            onp.zeros((0, 4))).shape == (0, 4)
        assert olympus.vmap(f)(onp.zeros((3, 0, 4))).shape == (3, 0, 4)
    with pytest.raises(ValueError, match="the block size 0 given for args"):
        called(kernel, out(4), in_specs=[pl.BlockSpec((0,), lambda: 0)])(onp.zeros(4))


def test_bounded_slices():
    def kernel(x, o):
        o[...] = x[...] * 10
    def at(i):
        return (pl.ds(i * 3, onp.where(i == 0, 3, 2)),)
    block = pl.BlockSpec((pl.BoundedSlice(4),), at)
    found = called(kernel, out(6), grid=2, in_specs=[block], out_specs=block)(
        np.arange(6, dtype=F32))
    np.testing.assert_array_equal(found, [0, 10, 20, 30, 40, np.nan])


def test_computed_grids():
    def kernel(o):
        o[pl.program_id(0), pl.program_id(1)] = pl.num_programs(0) * 10 + pl.program_id(1)
    run = olympus.jit(lambda n: called(kernel, out(3, 2, dtype=I32), grid=(n, 2))())
    least = -2**31
    assert run(2).tolist() == [[20, 21], [20, 21], [least, least]]
    assert run(0).tolist() == [[least] * 2] * 3
    tangent = olympus.jvp(lambda x: called(
        lambda x, o: o.__setitem__(0, x[0] * x[0]), out(1), grid=(onp.int32(2),))(x),
        (onp.ones(1),), (onp.ones(1),))[1]
    assert tangent.tolist() == [2.]


@pytest.mark.slow
def test_a_grid_of_computed_size_has_reverse_mode():
    def running(x, n):
        def kernel(x, o, state):
            pl.when(pl.program_id(0) == 0)(lambda: state.__setitem__(..., onp.zeros(())))
            state[...] = onp.sin(state[...] + x[0])
            o[0] = state[...]
        block = pl.BlockSpec((1,), lambda i: (i,))
        return called(kernel, out(*x.shape), grid=n, in_specs=[block], out_specs=block,
                      scratch_shapes=[pl.ANY((), F32)])(x)

    x = RNG.normal(size=40).astype(F32)
    loss = lambda x, n: (onp.where(onp.arange(40) < n, running(x, n), 0) ** 2).sum()
    for n in 0, 1, 17, 30:
        np.testing.assert_allclose(
            olympus.jit(olympus.grad(loss))(x, onp.int32(n))[:n],
            olympus.grad(lambda x, n=n: (running(x, n) ** 2).sum())(x[:n]), rtol=1e-6)


def scaled_rows(x):
    def kernel(x, o, total):
        @pl.when(pl.program_id(0) == 0)
        def _():
            total[...] = onp.zeros_like(total)
        total[...] += onp.where(onp.isnan(x[...]), 0, x[...]).sum(0) * pl.num_programs(0)
        o[...] = onp.tanh(x[...] + total[...])
    block = pl.BlockSpec((3, x.shape[1]), lambda i: (i, 0))
    return called(kernel, out(*x.shape), grid=pl.cdiv(x.shape[0], 3), in_specs=[block],
                  out_specs=block, scratch_shapes=[pl.ANY(x.shape[1:], F32)])(x)


def squared(x):
    return matmul(x, x, 2)


@pytest.mark.slow
@pytest.mark.parametrize("f, sizes, shapes", [
    (scaled_rows, "n, m", [(3, 2), (7, 4), (1, 1)]), (squared, "2*n, 2*n", [(2, 2), (6, 6)]),
    (lambda x: called(lambda x, o: lax.fori_loop(
        0, x.shape[0], lambda i, c: o.__setitem__(i, x[x.shape[0] - 1 - i]), None),
        out(*x.shape))(x), "n, m", [(5, 2), (1, 3)])])
def test_symbolic_sizes_of_grids_and_blocks(f, sizes, shapes):
    spec = olympus.ShapeDtypeStruct(olympus.export.symbolic_shape(sizes), F32)
    whole = olympus.export.export(olympus.jit(f))(spec)
    slope = lambda x: olympus.grad(lambda x: (f(x) ** 2).sum())(x)
    gradient = olympus.export.export(olympus.jit(slope))(spec)
    for shape in shapes:
        x = RNG.normal(size=shape).astype(F32)
        np.testing.assert_allclose(whole.call(x), f(x), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(gradient.call(x), slope(x), rtol=1e-5, atol=1e-6)


def test_no_steps_and_empty_arrays():
    def kernel(x, o):
        o[...] = x[...]
    block = pl.BlockSpec((4,), lambda i: (i,))
    assert called(kernel, out(0), grid=0, in_specs=[block], out_specs=block)(
        np.zeros(0, F32)).shape == (0,)
    assert np.isnan(called(kernel, out(4), grid=0, in_specs=[block], out_specs=block)(
        np.zeros(4, F32))).all()


def test_programs_kept_for_a_function_know_the_size_of_the_grid():
    def body(i, c):
        return c + pl.num_programs(0)
    def kernel(o):
        o[...] = lax.fori_loop(0, 2, body, 0)
    assert [int(called(kernel, out(dtype=I32), grid=n)()) for n in (1, 2, 3)] == [2, 4, 6]


def test_named_axes_of_a_grid():
    def kernel(o):
        o[pl.program_id(0)] = lax.axis_index("rows") + 10 * lax.axis_size("rows")
    assert called(kernel, out(2, dtype=I32), grid=(("rows", 2),))().tolist() == [20, 21]


def test_inputs_that_a_kernel_writes_stay_as_they_are():
    def kernel(x, o):
        x[...] = x[...] + 1
        o[...] = x[...]
    x = onp.zeros(2)
    assert called(kernel, out(2), grid=3)(x).tolist() == [3, 3] and x.tolist() == [0, 0]


def test_a_window_outside_is_refused():
    with pytest.raises(ValueError, match="Out of bound slice"):
        called(lambda x, o: o.__setitem__(..., x[pl.ds(3, 2)]), out(2))(np.zeros(4, F32))


def test_scratch_by_name():
    def kernel(o, *, total):
        total[...] = 3.
        o[...] = total[...]
    assert called(kernel, out(), scratch_shapes={"total": pl.ANY((), F32)})() == 3


@pytest.mark.parametrize("loop", [
    lambda f, o, s: lax.fori_loop(0, 2, lambda i, c: f(c), (o, s)),
    lambda f, o, s: lax.while_loop(lambda c: True, f, (o, s)),
    lambda f, o, s: lax.scan(lambda c, _: (f(c), None), (o, s), None, 2),
    lambda f, o, s: pl.loop(0, 2, init_carry=(o, s))(lambda i, c: f(c))])
def test_a_loop_does_not_change_which_reference_it_carries(loop):
    for change, found in ((lambda c: c[::-1], "another reference, Ref"),
                          (lambda c: (c[0][...], c[1]), "JitTracer.float32"),
                          (lambda c: (c[0].at[0], c[1]), "RefPart")):
        def kernel(o, s, change=change):
            loop(change, o, s)
        with pytest.raises(TypeError, match=f"(?s)returned {found}.*return each reference"):
            called(kernel, out(2), scratch_shapes=[pl.ANY((2,), F32)])()


def test_outer_references():
    ref = olympus.new_ref(onp.zeros(2))

    @pl.core_map(Cores(core=2), interpret=True)
    def _():
        ref[...] += 1 + lax.axis_index("core")
    assert ref[...].tolist() == [3, 3]


def test_kernels_inside_shard_map():
    P = olympus.sharding.PartitionSpec
    f, whole, (x, y) = ROWS["state in scratch"]
    run = olympus.shard_map(f, mesh=olympus.make_mesh((1,), ("x",)), in_specs=(P("x"), P()),
                            out_specs=P("x"))
    np.testing.assert_allclose(run(x, y), whole(x, y), rtol=2e-5)


def test_index_maps_of_mapped_scalars():
    spec = pltpu.PrefetchScalarGridSpec(1, grid=2,
                                  in_specs=[pl.BlockSpec((1, 3), lambda i, rows: (rows[i], 0))],
                                  out_specs=pl.BlockSpec((1, 3), lambda i, rows: (i, 0)))
    run = called(lambda rows, x, o: o.__setitem__(..., x[...]), out(2, 3), grid_spec=spec)
    x, rows = np.arange(12, dtype=F32).reshape(4, 3), np.array([[0, 1], [3, 2], [1, 1]])
    np.testing.assert_array_equal(olympus.vmap(run, (0, None))(rows, x), x[rows])


def test_kernels_in_kernels_and_jitted_functions_of_places():
    @olympus.jit
    def scaled(x):
        return x * pl.program_id(0)

    def kernel(x, o):
        half = pl.BlockSpec((2,), lambda i: (i,))
        o[...] = scaled(x[...]) + called(
            lambda x, o: o.__setitem__(..., scaled(x[...])), out(4), grid=2, in_specs=[half],
            out_specs=half)(x[...])
    block = pl.BlockSpec((4,), lambda i: (i,))
    found = called(kernel, out(12), grid=3, in_specs=[block], out_specs=block)(np.ones(12, F32))
    assert found.tolist() == [0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3]


@pytest.mark.parametrize("dtype", [
    bool, onp.int4, np.int8, np.uint16, onp.bfloat16, onp.float8_e5m2, np.complex64, np.float64,
    np.int64])
def test_dtypes(dtype):
    with olympus.enable_x64(np.dtype(dtype).itemsize == 8 and dtype is not np.complex64):
        x = onp.arange(6).astype(dtype)
        block = pl.BlockSpec((4,), lambda i: (1 - i,))
        found = called(copy, out(6, dtype=dtype), grid=2, in_specs=[block], out_specs=block)(x)
        assert found.dtype == x.dtype and bool((found == x).all())


def test_index_checks_inside_kernels():
    def kernel(i, x, o):
        o[...] = x[i[...]]
    run = olympus.jit(lambda i: called(kernel, out())(i, onp.arange(3.)), checks={"index"})
    assert run(2) == 2
    with pytest.raises(Exception, match="out of bounds|outside"):
        run(5)
    blocks = olympus.jit(lambda i: called(
        lambda x, o: o.__setitem__(..., x[...]), out(2),
        in_specs=[pl.BlockSpec((2,), lambda: (i,))])(onp.arange(4.)), checks={"index"})
    assert blocks(1).tolist() == [2, 3]
    with pytest.raises(Exception, match="out of bounds|outside"):
        blocks(2)


def test_debug_print_and_checks(capfd):
    def kernel(x, o):
        pl.debug_print("step {} of", pl.program_id(0))
        pl.debug_check(x[...] < 2, "too large")
        o[...] = x[...]
    run = called(kernel, out(), grid=2)
    run(F32(5)).block_until_ready()
    olympus.effects_barrier()
    assert capfd.readouterr().out.split("\n")[:2] == ["step 0 of", "step 1 of"]
    with pl.enable_debug_checks(True):
        error, _ = checkify.checkify(run)(F32(5))
    assert "too large" in error.get()


# Masks -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("start", [-2, 0, 1, 3, 4, 9])
def test_masked_windows_are_not_moved(start):
    x = np.arange(5, dtype=I32)
    at = start + np.arange(4)
    inside = (at >= 0) & (at < 5)
    ref = olympus.new_ref(x)
    run = olympus.jit(lambda s: load(ref, pl.ds(s, 4), mask=inside, other=-1))
    assert run(start).tolist() == np.where(inside, x[np.clip(at, 0, 4)], -1).tolist()
    olympus.jit(lambda s: store(ref, pl.ds(s, 4), 10 + onp.arange(4)))(start)
    want = x.copy()
    want[at[inside]] = 10 + np.arange(4)[inside]
    assert ref[...].tolist() == want.tolist()


def test_parts_that_leave_are_read_and_written_under_masks():
    """A known window, also one of another, has a shape; only what reads it whole is refused."""
    def kernel(x, o):
        mask = onp.arange(64) < 50
        part = x.at[pl.ds(0, 64)]
        assert part.shape == (64,) and part.at[pl.ds(48, 4)].shape == (4,)
        assert load(part.at[pl.ds(48, 4)], mask=mask[48:52], other=-1).shape == (4,)
        for refused in (lambda: part[...], lambda: part.__setitem__(..., 1.),
                        lambda: part.at[pl.ds(48, 4)][...],
                        lambda: olympus.ref.swap(x, pl.ds(40, 16), 1.),
                        lambda: olympus.ref.addupdate(part, ..., 1.)):
            with pytest.raises(ValueError, match="Out of bound slice.* under a mask"):
                refused()
        found = load(part, mask=mask, other=-1.)
        store(o.at[pl.ds(0, 64)], None, onp.where(mask, found, onp.inf), mask=mask)
    x = np.arange(50, dtype=F32)
    assert called(kernel, out(50))(x).tolist() == x.tolist()


def test_masked_places_do_not_race():
    ref = olympus.new_ref(onp.zeros(3, I32))
    old = swap(ref, onp.array([0, 0, 2]), onp.array([5, 6, 7]),
               mask=onp.array([True, False, True]))
    assert ref[...].tolist() == [5, 0, 7] and old.tolist() == [0, 0, 0]


# Mistakes ----------------------------------------------------------------------------------------

def copy(x, o):
    o[...] = x[...]


X = np.zeros((4, 6), F32)
MISTAKES = {
    "rank": ({"in_specs": [pl.BlockSpec((2,), lambda: (0,))]},
             r"Block shape for args\[0\] \(= \(2,\)\) must have the same number of dimensions"),
    "length of an index map": ({"in_specs": [pl.BlockSpec((2, 6), lambda: 0)]},
                               r"must return 2 values to match block_shape=\(2, 6\)"),
    "type of an index": ({"in_specs": [pl.BlockSpec((2, 6), lambda: (0., 0))]},
                         r"must return integer scalars. Output\[0\] has type float32\[\]"),
    "no block for an output": ({"out_specs": ()}, "out_specs.*different structures"),
    "too few blocks": ({"in_specs": []}, "in_specs.*different structures"),
    "input of an alias": ({"input_output_aliases": {2: 0}}, r"input index 2 outside the range"),
    "output of an alias": ({"input_output_aliases": {0: 1}}, r"output index 1 outside the range"),
    "a block outside": ({"in_specs": [pl.BlockSpec((2, 6), lambda: (2, 0))]},
                        "there are 2 blocks of 2 elements"),
    "a size": ({"in_specs": [pl.BlockSpec((0, 6), lambda: (2, 0))]}, "a positive int is required"),
    "a size beyond int32": ({"in_specs": [pl.BlockSpec((2**40, 6))]}, r"less than 2\*\*31"),
    "a bounded slice without a map": ({"out_specs": pl.BlockSpec((pl.BoundedSlice(2), 6))},
                                      "without an index map; one that returns"),
    "an entry": ({"in_specs": [pl.BlockSpec(("x", 6), lambda: (2, 0))]},
                 "Unsupported block dimension type"),
    "a slice": ({"in_specs": [pl.BlockSpec((pl.BoundedSlice(2), 6), lambda: (2, 0))]},
                "should be pl.Slice"),
    "grid_spec and grid": ({"grid": 2, "grid_spec": pl.GridSpec(grid=2)}, "must be `()`. It is 2"),
    "a grid": ({"grid": (2.,)}, "Grid must be a tuple of integers"),
    "too many steps": ({"grid": (10**6, 10**6)}, "fewer than 2\\*\\*31 are required"),
    "no list of specs": ({"in_specs": pl.BlockSpec((4, 6))}, "must be a tuple or a list"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_value_errors(name):
    options, message = MISTAKES[name]
    with pytest.raises(ValueError, match="(?s)" + message.replace("`()`", r"`\(\)`")):
        called(copy, out(4, 6), **options)(X)


@pytest.mark.parametrize("kernel, options, message", [
    (lambda x: None, {}, "1 inputs, 1 outputs and 0 of scratch are given"),
    (lambda x, o, a, b: None, {"scratch_shapes": [pl.ANY((), F32)]}, "and 1 of scratch are given"),
    (lambda x, o: None, {"scratch_shapes": {"a": pl.ANY((), F32)}}, "and 1 of scratch are given"),
    (3, {}, "pass the function itself"),
    (copy, {"grid_spec": 3}, "a GridSpec is required"),
    (copy, {"input_output_aliases": [1]}, "a dict from inputs to outputs is required"),
    (copy, {"in_specs": [3]}, "a BlockSpec is required"),
    (copy, {"in_specs": [pl.BlockSpec(4)]}, r"block shape 4 given for args\[0\]; a tuple"),
    (lambda x, o: pl.loop(0, "a")(print), {}, "loop: upper 'a' given; an int"),
    (lambda x, o: pl.loop(0, 3)(None), {}, "loop: body is None"),
    (lambda x, o: pl.run_scoped(None), {}, "run_scoped: f is None"),
    (copy, {"scratch_shapes": [3]}, "a ShapeDtypeStruct or a MemoryRef is required")])
def test_mistakes_are_type_errors(kernel, options, message):
    with pytest.raises(TypeError, match=message):
        called(kernel, out(4, 6), **options)(X)


def test_two_aliases_of_one_output():
    with pytest.raises(ValueError, match="which input 0 is an alias of, too"):
        called(lambda x, y, o: None, out(4, 6), input_output_aliases={0: 0, 1: 0})(X, X)


def test_an_error_says_where_a_block_was_made():
    spec = pl.BlockSpec((2,), lambda: (0,))      # here
    with pytest.raises(ValueError, match=r"made at .*test_pallas.py:\d+"):
        called(copy, out(4, 6), in_specs=[spec])(X)


def test_without_interpret_on_a_cpu_or_for_a_tpu():
    run = pl.pallas_call(copy, out(4, 6))
    assert olympus.eval_shape(run, X).shape == (4, 6)      # it is traced
    with pytest.raises(ValueError, match="Only interpret mode is supported on CPU backend"):
        run(X)
    with pytest.raises(pltpu.LoweringException, match="on platform: tpu"):
        olympus.jit(run).trace(X).lower(lowering_platforms=("tpu",))
    with pltpu.force_tpu_interpret_mode():
        assert run(X).shape == (4, 6)


def test_results_and_places_that_are_none():
    with pytest.raises(ValueError, match="should return None. It returns a PyTree"):
        called(lambda x, o: x[...], out(4, 6))(X)
    with pytest.raises(ValueError, match="outside of a kernel"):
        pl.program_id(0)
    with pytest.raises(ValueError, match="Axis 1 is out of bounds for grid"):
        called(lambda x, o: o.__setitem__(..., pl.program_id(1)), out(4, 6), grid=2)(X)


# Names ------------------------------------------------------------------------------------------

def test_figures_of_chips():
    about = {c.value: pltpu.get_tpu_info_for_chip(c, 1) for c in pltpu.ChipVersion}
    assert about["v5e"].vmem_capacity_bytes == 2**27 and about["v5e"].sparse_core is None
    assert about["v6e"].mxu_column_size == 256 and about["v6e"].sparse_core.num_cores == 2
    for chip in about.values():
        assert chip.is_lite == (chip.chip_version.num_physical_tensor_cores_per_chip == 1)
        assert chip.is_split_chip != chip.is_lite and not chip.is_megacore
        assert chip.is_matmul_supported(F32, F32) and not chip.is_matmul_supported(I32, I32)
        tiles = [chip.get_sublane_tiling(d) for d in ("float32", "int8", "int4")]
        assert tiles == [8, 32, 64]
    both = pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V5P, 2)
    assert both.is_megacore and not both.is_split_chip
    with pytest.raises(ValueError, match="do not support Megacore.*others 1 or 2"):
        pltpu.get_tpu_info_for_chip(pltpu.ChipVersion.TPU_V5E, 2)
    with pytest.raises(TypeError, match="a ChipVersion is required"):
        pltpu.get_tpu_info_for_chip("v5e", 1)
    with pytest.raises(ValueError, match="Unsupported TPU device kind: cpu"):
        pltpu.get_tpu_info()


def test_cost_and_sizes():
    x = out(8, 16)
    cost = pl.estimate_cost(lambda x: onp.exp(x) @ x.T, x)
    assert cost.flops >= 2 * 8 * 8 * 16 and cost.transcendentals == 128
    assert cost.bytes_accessed == 4 * (8 * 16 + 8 * 8)

    def scaled(x, twice, y):        # an option is a Python value, an array is not
        return x * y if twice else x
    assert pl.estimate_cost(scaled, x, twice=True, y=x).flops == 8 * 16
    assert [pl.cdiv(a, 4) for a in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert pl.cdiv(onp.int32(5), 4) == 2 and pl.align_to(5, 4) == 8
    assert pl.next_power_of_2(9) == 16 and pl.strides_from_shape((2, 3)) == (3, 1)


def test_a_program_names_the_kernel():
    program = olympus.make_olympuspr(called(copy, out(4, 6), name="mine"))(X)
    eqn, = program.eqns
    assert eqn.primitive is pl.pallas_call_p and eqn.params["name"] == "mine"
    assert "scan" not in str(olympus.make_olympuspr(called(copy, out(4, 6)))(X).eqns[0].params[
        "olympuspr"])      # one step is no loop
