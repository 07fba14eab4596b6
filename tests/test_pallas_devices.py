"""Names of kernels for TPUs and GPUs: parameters, atomic operations, names that need a device."""

import dataclasses
from typing import Any

import eight_devices
import numpy as np
import pallas_cases
import pytest

import olympus
import olympus.numpy as onp
from olympus.experimental import checkify, pallas as pl
from olympus.experimental.pallas import mosaic_gpu, tpu as pltpu, triton


@pytest.mark.parametrize(("module", "name", "device"), [
    (pltpu, "matmul_pop", "a TPU"), (pltpu, "matmul_push_rhs", "a TPU"),
    (triton, "elementwise_inline_asm", "a GPU"), (mosaic_gpu, "wgmma", "a GPU"),
    (mosaic_gpu, "Barrier", "a GPU")])
def test_a_name_that_needs_a_device_imports_and_says_so(module: Any, name: str, device: str
                                                        ) -> None:
    operation = getattr(module, name)
    assert name in dir(module) and getattr(module, name) is operation
    with pytest.raises(NotImplementedError, match=f"{name}: .* needs {device}"):
        operation(1, key=2)
    with pytest.raises(AttributeError, match="no_such_operation"):
        _ = module.no_such_operation


def test_descriptions_for_a_device_are_made_while_a_module_is_imported() -> None:
    names: Any = mosaic_gpu
    tiles = names.Layout.TCGEN05.reduce(0)

    @names.inline_mgpu(arg_types=(tiles,))
    def fence(_: Any) -> None:
        raise AssertionError

    assert repr(tiles) == "<Layout.TCGEN05.reduce, which needs a GPU>"
    for use in fence, names.layout_cast:
        with pytest.raises(NotImplementedError, match="needs a GPU"):
            use(tiles)
    with pytest.raises(AttributeError, match="_no_such_name"):
        _ = names.Layout._no_such_name


def seed_by_place() -> None:       # one function for several kernels: each has its own state
    pltpu.prng_seed(3, pl.program_id(0))


@pytest.mark.parametrize("wrapped", [lambda f: f, olympus.jit])
def test_random_numbers_of_a_kernel_have_a_state_that_lasts_from_step_to_step(wrapped: Any
                                                                             ) -> None:
    def draw(o: Any) -> None:
        pl.when(pl.program_id(0) % 2 == 0)(seed_by_place)
        o[...] = pltpu.prng_random_bits(o.shape)

    run = wrapped(lambda: pl.pallas_call(
        lambda o: draw(o), olympus.ShapeDtypeStruct((12,), onp.int32), grid=4,
        out_specs=pl.BlockSpec((3,), lambda i: (i,)), interpret=True)())
    want: list[Any] = []
    for place in 0, 2:
        key = olympus.random.fold_in(olympus.random.fold_in(olympus.random.key(0), 3), place)
        for _ in range(2):
            key, now = olympus.random.split(key)
            want.append(np.asarray(olympus.random.bits(now, (3,), "uint32")).view(np.int32))
    np.testing.assert_array_equal(run(), np.concatenate(want))
    np.testing.assert_array_equal(run(), np.concatenate(want))


def test_dropout_in_a_kernel_has_the_gradient_of_its_mask() -> None:
    def drop(x: Any, o: Any) -> None:
        pltpu.prng_seed(1, pl.program_id(0))
        o[...] = onp.where(pltpu.stateful_bernoulli(.5, x.shape), x[...] * 2, 0)

    block = pl.BlockSpec((8,), lambda i: (i,))
    run = lambda x: pl.pallas_call(drop, olympus.ShapeDtypeStruct((64,), onp.float32), grid=8,
                                   in_specs=[block], out_specs=block, interpret=True)(x)
    x = onp.arange(1., 65.)
    factor = np.asarray(run(x)) / np.asarray(x)
    assert set(factor.tolist()) == {0., 2.} and 16 < (factor > 0).sum() < 48
    np.testing.assert_array_equal(olympus.grad(lambda x: run(x).sum())(x), factor)
    np.testing.assert_array_equal(olympus.vmap(run)(onp.stack([x, -x])), [factor * x, -factor * x])


@pytest.mark.parametrize(("seeds", "error", "message"), [
    ([1.5], TypeError, r"1.5 of type float32\[\] given; integer scalars"),
    ([], TypeError, "at least one integer"), (None, ValueError, "called outside of a kernel")])
def test_seeds_of_kernels_are_checked(seeds: list[Any] | None, error: type[Exception],
                                      message: str) -> None:
    with pytest.raises(error, match=f"prng_seed: .*{message}"):
        if seeds is None:
            pltpu.prng_seed(1)
        else:
            pl.pallas_call(lambda o: pltpu.prng_seed(*seeds),
                           olympus.ShapeDtypeStruct((), onp.int32), interpret=True)()


def test_an_index_map_of_another_arity_and_a_spec_the_wrong_way_round_are_named() -> None:
    def run(index_map: Any) -> Any:
        return pl.pallas_call(
            lambda x, o: None, olympus.ShapeDtypeStruct((4, 4), onp.float32), grid=2,
            in_specs=[pl.BlockSpec((2, 4), index_map)], interpret=True)(onp.zeros((4, 4)))

    where = r"(?s)Index map function .* at .*test_pallas_devices.py:\d+ for\s+args\[0\] does not " \
            r"take.*1 indices of the grid are\s+given.*BlockSpec was made at"
    for wrong in (lambda i, j: (i, j)), (lambda: (0, 0)):
        with pytest.raises(TypeError, match=where):
            run(wrong)
    with pytest.raises(TypeError, match="BlockSpec: block_shape <function .* and index_map .*2, 4"):
        pl.BlockSpec(
            lambda i: (i, 0), (2, 4))       # pyright: ignore[reportArgumentType]


ATOMICS = {"atomic_add": np.add, "atomic_max": np.maximum, "atomic_min": np.minimum,
           "atomic_and": np.bitwise_and, "atomic_or": np.bitwise_or,
           "atomic_xor": np.bitwise_xor}


@pytest.mark.parametrize("name", ATOMICS)
def test_atomic_operations_of_all_steps_on_one_block(name: str) -> None:
    x = np.random.RandomState(0).randint(0, 100, (5, 8)).astype(np.int32)

    def kernel(x_ref: Any, o_ref: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            o_ref[...] = x_ref[...]

        @pl.when(pl.program_id(0) > 0)
        def _() -> None:
            getattr(triton, name)(o_ref, slice(None), x_ref[...], mask=onp.arange(8) < 6)

    got = pl.pallas_call(
        kernel, olympus.ShapeDtypeStruct((8,), onp.int32), grid=5,
        in_specs=[pl.BlockSpec((None, 8), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8,), lambda i: (0,)),
        compiler_params=triton.CompilerParams(num_warps=4), interpret=True)(onp.array(x))
    want = ATOMICS[name].reduce(x)
    np.testing.assert_array_equal(got, np.where(np.arange(8) < 6, want, x[0]))


@pytest.mark.parametrize("name", [*ATOMICS, "atomic_xchg"])
@pytest.mark.parametrize("shape", [(6,), (3, 2)])
def test_atomic_operations_on_one_place_come_one_after_the_other(name: str, shape: Any) -> None:
    places = np.array([2, 0, 2, 2, 4, 0]).reshape(shape)
    mask, x = np.array([1, 1, 1, 0, 1, 1], bool).reshape(shape), np.arange(3, 9).reshape(shape)
    start = np.array([12, 5, 6, 1, 9], np.int32)

    def kernel(start: Any, places: Any, x: Any, o: Any, old: Any) -> None:
        o[...] = start[...]
        old[...] = getattr(triton, name)(o, (1, places[...]), x[...], mask=mask)

    two = np.stack([start * 0, start])
    found, old = pl.pallas_call(
        kernel, (olympus.ShapeDtypeStruct((2, 5), onp.int32),
                 olympus.ShapeDtypeStruct(shape, onp.int32)), interpret=True)(two, places, x)
    want, before = two.copy(), np.zeros(shape, int)
    for i in np.ndindex(shape):
        before[i] = want[1, places[i]]
        if mask[i]:
            want[1, places[i]] = ATOMICS.get(name, lambda a, b: b)(before[i], x[i])
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(np.asarray(old)[mask], before[mask])


def test_a_histogram_by_atomic_add_has_a_gradient() -> None:
    places = np.array([0, 1, 1, 4, 1])

    def count(x: Any) -> Any:
        def kernel(x: Any, o: Any) -> None:
            o[...] = onp.zeros(5)
            triton.atomic_add(o, (places,), x[...])
        return pl.pallas_call(kernel, olympus.ShapeDtypeStruct((5,), onp.float32),
                              interpret=True)(x)

    x = np.arange(1, 6, dtype=np.float32)
    np.testing.assert_array_equal(count(x), np.bincount(places, x))
    np.testing.assert_array_equal(olympus.grad(lambda x: (count(x) ** 2).sum())(x),
                                  2 * np.bincount(places, x)[places])
    assert "while" not in str(olympus.jit(count).lower(x).compile().as_text())


def pipelined(x: Any, y: Any, rows: Any = None) -> Any:
    """x @ y by a pipeline over blocks of 2 by 3 by 4; the last ones leave the arrays."""
    (m, k), n = x.shape, y.shape[1]
    rows = pl.cdiv(m, 2) if rows is None else rows

    def body(x: Any, y: Any, o: Any, total: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            total[...] = onp.zeros(total.shape)

        here = pl.program_id(2) * 4 + onp.arange(4) < k
        total[...] += onp.where(here, x[...], 0) @ onp.where(here[:, None], y[...], 0)
        o[...] = total[...]

    def kernel(x: Any, y: Any, o: Any, total: Any) -> None:
        run = pltpu.emit_pipeline(
            body, grid=(rows, pl.cdiv(n, 3), pl.cdiv(k, 4)),
            in_specs=[pl.BlockSpec((2, 4), lambda i, j, k: (i, k)),
                      pl.BlockSpec((4, 3), lambda i, j, k: (k, j))],
            out_specs=[pl.BlockSpec((2, pl.Element(3)), lambda i, j, k: (i, 3 * j))],
            core_axis=0)
        run(x, y, o, scratches=(total,))

    return pl.pallas_call(kernel, olympus.ShapeDtypeStruct((m, n), onp.float32), grid=2,
                          scratch_shapes=[pltpu.VMEM((2, 3), onp.float32)],
                          interpret=pltpu.InterpretParams())(x, y)


def test_a_pipeline_runs_on_blocks_that_may_leave() -> None:
    draw = np.random.RandomState(0)
    x, y = draw.randn(5, 7).astype(np.float32), draw.randn(7, 4).astype(np.float32)
    only_one = pl.BlockSpec((2, 4), lambda i: i)

    def wrong(*specs: Any) -> Any:
        return pl.pallas_call(lambda o: pltpu.emit_pipeline(
            lambda o: None, grid=(1,), out_specs=list(specs))(o),
            olympus.ShapeDtypeStruct((4, 4), onp.float32), interpret=True)
    for specs, message in (((only_one,), "returned 1 values"), ((), "1 references given for 0"),
                           ((pl.BlockSpec((2,)),), "one entry for each axis"),):
        with pytest.raises(ValueError, match=f"emit_pipeline: .*{message}"):
            wrong(*specs)()
    with pytest.raises(NotImplementedError, match="Element without padding"):
        wrong(pl.BlockSpec((pl.Element(2, (1, 1)), 4), lambda i: (i, 0)))()
    np.testing.assert_allclose(pipelined(x, y), x @ y, rtol=1e-5)
    np.testing.assert_allclose(olympus.jit(pipelined)(x, y, onp.int32(3)), x @ y, rtol=1e-5)
    x, y = draw.randn(4, 8).astype(np.float32), draw.randn(8, 3).astype(np.float32)
    loss = lambda f: lambda x, y: (f(x, y) ** 2).sum()
    for got, want in zip(*[olympus.grad(loss(f), (0, 1))(x, y) for f in (pipelined, onp.matmul)],
                         strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4)


@olympus.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Doubling(pltpu.BufferedRef):
    """A buffer that copies twice the block, by a copy of its own."""

    def copy_in(self, src_ref: Any, grid_indices: Any) -> None:
        i, j = grid_indices
        pltpu.make_async_copy(src_ref.at[pl.ds(i * 2, 2), pl.ds(j * 3, 3)], self.current_ref,
                              self.sem_recvs.at[self.current_copy_in_slot]).start()
        self.current_ref[...] *= 2


@pytest.mark.slow
def test_a_pipeline_runs_again_on_buffers_that_were_made_once() -> None:
    x, y = (np.random.RandomState(i).randn(3, 4, 5).astype(np.float32) for i in range(2))
    block = pl.BlockSpec((2, 3), lambda i, j: (i, j))

    def body(x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] * y[...] + pl.program_id(1)

    run, make = pltpu.emit_pipeline_with_allocations(
        body, grid=(2, 2), in_specs=[block, block], out_specs=[block])

    # The last block leaves the arrays. Buffers are scratch of the outer kernel, or are scoped.
    def scratch(x: Any, y: Any, o: Any, *buffers: Any) -> None:
        i = pl.program_id(0)
        run(x.at[i], y.at[i], o.at[i], allocations=buffers)

    def scoped(x: Any, y: Any, o: Any) -> None:
        parts = [ref.at[pl.program_id(0)] for ref in (x, y, o)]
        pl.run_scoped(lambda buffers: run(*parts, allocations=buffers), make(*parts))

    def call(kernel: Any, *scratch: Any) -> Any:
        return lambda x, y: pl.pallas_call(kernel, olympus.ShapeDtypeStruct(x.shape, x.dtype),
                                           grid=3, scratch_shapes=scratch, interpret=True)(x, y)

    rows = (pltpu.BufferedRef.input(block, np.float32), pltpu.BufferedRef.input(
        block, np.float32, buffer_count=3), pltpu.BufferedRef.output(block, np.float32))
    late = np.arange(5) // 3
    stacked = onp.stack([x, -x])
    np.testing.assert_allclose(olympus.vmap(call(scratch, *rows), (0, None))(stacked, y),
                               stacked * y + late, rtol=1e-6)

    def loss(x: Any, y: Any) -> Any:
        out = call(scoped)(x, y)
        return (out ** 2).sum(), out

    grads, out = olympus.jit(olympus.grad(loss, (0, 1), has_aux=True))(x, y)
    np.testing.assert_allclose(out, x * y + late, rtol=1e-6)
    for got, other in zip(grads, (y, x), strict=True):
        np.testing.assert_allclose(got, 2 * (x * y + late) * other, rtol=1e-5)

    # In and out through one buffer; a subclass; values that are no buffer for it.
    def add(o: Any) -> None:
        o[...] += 1

    def in_place(x: Any, o: Any, buffer: Any) -> None:
        o[...] = x[...]
        pltpu.emit_pipeline(add, grid=(2, 2), out_specs=[block])(o, allocations=[buffer])

    both = pl.pallas_call(in_place, olympus.ShapeDtypeStruct((4, 6), np.float32), interpret=True,
                          scratch_shapes=[pltpu.BufferedRef.input_output(block, np.float32)])
    z = np.arange(24, dtype=np.float32).reshape(4, 6)
    np.testing.assert_array_equal(both(z), z + 1)
    own = (Doubling.input(block, np.float32), *rows[1:])
    z = np.tile(z, (3, 1, 1))
    np.testing.assert_allclose(call(scratch, *own)(z, z), 2 * z * z + np.arange(6) // 3)
    for make_wrong, message in (
            (lambda: call(scratch, *rows[:2])(x, y), "2 as the number of allocations"),
            (lambda: pltpu.BufferedRef.output(block, np.float32, 3), "buffer_count=3"),
            (lambda: pltpu.BufferedRef.input(pl.BlockSpec(), np.float32), "with a block shape"),
            (lambda: make(x), "1 references given for 3 specs")):
        with pytest.raises(ValueError, match=message):
            make_wrong()


def test_bitcast_changes_rows() -> None:
    x = np.arange(32, dtype=np.int32).reshape(8, 4) * 70001
    narrow = pltpu.bitcast(onp.array(x), onp.int16)
    want = x.view(np.int16).reshape(8, 4, 2).swapaxes(1, 2).reshape(16, 4)
    np.testing.assert_array_equal(narrow, want)
    np.testing.assert_array_equal(pltpu.bitcast(narrow, onp.int32), x)
    with pytest.raises(ValueError, match="whole elements"):
        pltpu.bitcast(onp.zeros((3, 4), onp.int16), onp.int32)


# InterpretParams ---------------------------------------------------------------------------------

def number_steps(o: Any, count: Any) -> None:
    o[...] = onp.full(o.shape, count[...])
    count[...] += 1


@pytest.mark.parametrize("kinds", [("parallel", pltpu.ARBITRARY), None, (pltpu.PARALLEL,) * 2])
def test_parallel_axes_run_in_an_order_that_a_seed_draws(kinds: Any) -> None:
    seen: list[Any] = []

    def record(place: Any, core: Any) -> None:
        seen.append((*map(int, place), int(core)))

    how = pltpu.InterpretParams(random_seed=3, uninitialized_memory="zero",
                                grid_point_recorder=record)
    found = np.asarray(pl.pallas_call(
        number_steps, olympus.ShapeDtypeStruct((8, 3), onp.int32), grid=(8, 3), interpret=how,
        out_specs=pl.BlockSpec((1, 1), lambda i, j: (i, j)),
        scratch_shapes=[pl.ANY((), onp.int32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=kinds))())
    olympus.effects_barrier()
    rng = np.random.default_rng(3)
    rows = rng.permutation(8) if kinds else range(8)
    columns = rng.permutation(3) if kinds and kinds[1] is pltpu.PARALLEL else range(3)
    assert seen == [(i, j, 0) for i in rows for j in columns]
    assert [int(found[i, j]) for i, j, _ in seen] == list(range(24))


@pytest.mark.parametrize(("cores", "each"), [(2, 2), (3, 2), (5, 1)])
def test_each_core_has_scratch_and_copies_of_inputs_of_its_own(cores: int, each: int) -> None:
    seen: list[int] = []

    def kernel(x: Any, array: Any, o: Any, count: Any) -> None:
        x[...] += 1
        array[...] += 1
        number_steps(o, count)
        o[...] += 100 * x[...] + 10000 * array[...]

    how = pltpu.InterpretParams(num_cores_or_threads=cores, uninitialized_memory="zero",
                                grid_point_recorder=lambda place, core: seen.append(int(core)))
    found = np.asarray(pl.pallas_call(
        kernel, olympus.ShapeDtypeStruct((4, 3), onp.int32), grid=(2, 2, 3), interpret=how,
        in_specs=[pl.no_block_spec, pl.BlockSpec(memory_space=pl.ANY)],
        out_specs=pl.BlockSpec((1, 1), lambda i, j, k: (2 * i + j, k)),
        scratch_shapes=[pl.ANY((), onp.int32)], compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")))(
                onp.zeros((), onp.int32), onp.zeros((), onp.int32)))
    olympus.effects_barrier()
    steps = np.arange(12).reshape(4, 3)     # in all; an array is the memory of all cores
    own = steps % (3 * each)
    np.testing.assert_array_equal(found, own + 100 * (own + 1) + 10000 * (steps + 1))
    assert seen == (steps // (3 * each)).ravel().tolist()


def test_memory_may_begin_as_zero() -> None:
    def kernel(x: Any, o: Any, never: Any, scratch: Any) -> None:
        o[...] = x[...] + scratch[...] + pl.run_scoped(lambda r: r[...], pl.ANY((4,), onp.float32))

    def run(**options: Any) -> Any:
        return pl.pallas_call(
            kernel, (olympus.ShapeDtypeStruct((6,), onp.float32),) * 2, grid=2,
            in_specs=[pl.BlockSpec((4,), lambda i: (i,))],
            out_specs=[pl.BlockSpec((4,), lambda i: (i,)), pl.BlockSpec(memory_space=pl.ANY)],
            scratch_shapes=[pl.ANY((4,), onp.float32)], **options)(onp.arange(6.))

    zero = pltpu.InterpretParams(uninitialized_memory="zero")
    assert np.isnan(np.array(run(interpret=pltpu.InterpretParams()))).all()
    np.testing.assert_array_equal(np.array(run(interpret=zero)), [np.arange(6), np.zeros(6)])
    with pltpu.force_tpu_interpret_mode(zero):
        np.testing.assert_array_equal(np.array(run()), [np.arange(6), np.zeros(6)])
    with pltpu.force_tpu_interpret_mode():
        assert np.isnan(np.array(run())).all()


@pytest.mark.parametrize(("options", "match"), [
    ({"uninitialized_memory": "one"}, "'nan', 'zero' is required"),
    ({"num_cores_or_threads": 0}, "at least 1"), ({"vector_clock_size": 0}, "at least 1"),
    ({"out_of_bounds_reads": True}, "'raise', 'uninitialized'")])
def test_mistakes_in_interpret_params(options: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        pltpu.InterpretParams(**options)
    with pytest.warns(UserWarning, match="detect_races=True has no effect.*jit.checks="):
        pltpu.InterpretParams(detect_races=True)


@pytest.mark.parametrize(("acts", "words"), [
    ("start wait", None), ("start start wait wait", None),
    ("wait", "counts 0 where 8 are waited for.*would wait for ever"),
    ("start wait wait", "counts 0 where 8"), ("start", "pallas_call: semaphores end at 16; 0 is"),
    ("scoped start", r"run_scoped: semaphores end at \[0 8\]"), ("scoped start wait", None)])
def test_semaphores_are_looked_at_in_checked_programs(acts: str, words: str | None) -> None:
    def kernel(x: Any, o: Any, sem: Any) -> None:
        def move(sem: Any) -> None:
            copy = pltpu.make_async_copy(x, o, sem)
            for act in acts.removeprefix("scoped ").split():
                getattr(copy, act)()
        if acts.startswith("scoped"):
            pl.run_scoped(lambda sems: move(sems.at[1]), pltpu.SemaphoreType.DMA((2,)))
        else:
            move(sem)

    run = pl.pallas_call(kernel, olympus.ShapeDtypeStruct((2,), onp.float32), grid=2,
                         scratch_shapes=[pltpu.SemaphoreType.DMA], interpret=True)
    x = onp.array([1., 2.])
    for f in (run, lambda x: olympus.vmap(run)(x[None])[0]):
        checked = olympus.jit(f, checks={"user"})
        if words is None:
            assert checked(x).tolist() == [1, 2]
        else:
            with pytest.raises(checkify.OlympusRuntimeError, match=words):
                checked(x)


# Numbers of few bits, random rounding -------------------------------------------------------------

@pytest.mark.parametrize("target", ["bfloat16", "float16", "float8_e5m2", "float8_e4m3fn"])
def test_random_rounding_is_right_on_average(target: str) -> None:
    dtype, f32 = np.dtype(getattr(onp, target)), np.float32
    tiny = max(float(onp.finfo(dtype).smallest_normal), 1e-30)      # float32 has no subnormals
    values = [1.001, -3.7, 0., -0., 100.3, tiny * .7, -tiny * .037, tiny * 1.01, np.inf, np.nan]
    n = 4096
    x = np.repeat(np.array(values, f32)[:, None], n, 1)
    bits = np.tile((np.arange(n, dtype=np.uint64) << 20).astype(np.uint32), (len(values), 1))
    found = olympus.jit(lambda x, b: pltpu.stochastic_round(x, b, target_dtype=dtype))(x, bits)
    found = np.asarray(found)
    for value, row in zip(x[:8, 0], found[:8], strict=True):
        kinds = np.unique(row.astype(np.float64))
        assert len(kinds) <= 2 and kinds[0] <= value <= kinds[-1]
        np.testing.assert_allclose(row.astype(np.float64).mean(), np.float64(value),
                                   atol=(kinds[-1] - kinds[0]) / n * 2)
        assert (value == 0) == (len(kinds) == 1) and row[0] == row.astype(dtype)[0]
    np.testing.assert_array_equal(found[8:].astype(f32), x[8:].astype(dtype).astype(f32))
    with pytest.raises(ValueError, match="uint32 of its.shape is required"):
        pltpu.stochastic_round(x, bits[0], target_dtype=dtype)
    with pytest.raises(ValueError, match="at most 16 bits"):
        pltpu.stochastic_round(x, bits, target_dtype=f32)


@pytest.mark.parametrize(("wide", "packed"), [
    ("int32", "int8"), ("uint32", "uint8"), ("int32", "int4"), ("int16", "uint8"),
    ("int8", "int4"), ("int8", "int2"), ("float32", "bfloat16"), ("int32", "int16")])
def test_packed_numbers_come_back(wide: str, packed: str) -> None:
    wide_dtype, small = np.dtype(getattr(onp, wide)), np.dtype(getattr(onp, packed))
    count = olympus.dtypes.itemsize_bits(wide_dtype) // olympus.dtypes.itemsize_bits(small)
    rng = np.random.default_rng(0)
    xs = [rng.integers(-100, 100, 50).astype(wide_dtype) for _ in range(count)]
    words = pltpu.pack_elementwise(xs, packed_dtype=small)
    assert words.dtype == f"uint{wide_dtype.itemsize * 8}"
    for i, x in enumerate(xs):
        found = pltpu.unpack_elementwise(words, index=i, packed_dtype=small,
                                         unpacked_dtype=wide_dtype)
        want = onp.array(x).astype(small).astype(wide_dtype)
        assert found.dtype == wide_dtype
        np.testing.assert_array_equal(found, want)
    if packed == "int8":    # in the bytes of a little-endian word
        np.testing.assert_array_equal(np.asarray(words).view(np.int8).reshape(-1, count).T,
                                      np.stack(xs).astype(np.int8))


def test_mistakes_of_packing() -> None:
    x = np.zeros(2, np.int16)
    for call, match in (
            (lambda: pltpu.pack_elementwise([], packed_dtype="int8"), "no arrays given"),
            (lambda: pltpu.pack_elementwise([x], packed_dtype="int8"), "2 are required"),
            (lambda: pltpu.pack_elementwise([x, x[:1]], packed_dtype="int8"), "one shape"),
            (lambda: pltpu.pack_elementwise([x], packed_dtype="int32"), "divide those"),
            (lambda: pltpu.unpack_elementwise(x, index=2, packed_dtype="int8",
                                              unpacked_dtype="int16"), "has 2 places"),
            (lambda: pltpu.unpack_elementwise(x, index=0, packed_dtype="int8",
                                              unpacked_dtype="int32"), "as many.bits"),
            (lambda: pltpu.einshape("ab->ba", onp.zeros(3)), "one letter or.group"),
            (lambda: pltpu.einshape("(ab)->ba", onp.zeros(6)), "all but one letter"),
            (lambda: pltpu.einshape("(ab)->ba", onp.zeros(6), a=4), "divides it"),
            (lambda: pltpu.sample_block(olympus.random.uniform, olympus.random.key(0), (3,), (2,),
                                        (6,), (0,)), "divide the block")):
        with pytest.raises(ValueError, match=f"(?s){match}"):
            call()


def test_axes_by_an_equation() -> None:
    x = np.arange(2 * 6 * 4).reshape(2, 6, 4)
    np.testing.assert_array_equal(pltpu.einshape("a(bc)d->c(da)b", x, c=3),
                                  x.reshape(2, 2, 3, 4).transpose(2, 3, 0, 1).reshape(3, 8, 2))


@pytest.mark.parametrize("block", [(2, 4), (4, 8), (4, 4)])
@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_blocks_of_all_sizes_have_the_same_random_numbers(block: Any, impl: str) -> None:
    def draw(key: Any, o: Any) -> None:
        o[...] = pltpu.sample_block(olympus.random.normal, key[...], o.shape, (2, 4), (8, 8))

    key = pltpu.to_pallas_key(olympus.random.key(5, impl=impl))
    found = pl.pallas_call(
        draw, olympus.ShapeDtypeStruct((8, 8), onp.float32), grid=(8 // block[0], 8 // block[1]),
        in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)],
        out_specs=pl.BlockSpec(block, lambda i, j: (i, j)), interpret=True)(key)
    want = np.block([[np.asarray(olympus.random.normal(olympus.random.fold_in(key, 2 * i + j),
                                                       (2, 4))) for j in range(2)]
                     for i in range(4)])
    np.testing.assert_allclose(found, want, rtol=1e-6)
    assert pltpu.to_pallas_key(olympus.random.split(key, 6).reshape(2, 3)).shape == (2, 3)


@pytest.fixture(scope="module")
def results(request: pytest.FixtureRequest) -> dict[str, str]:
    return eight_devices.outcomes(pallas_cases, request)


@pytest.mark.slow
@pytest.mark.parametrize("case", pallas_cases.CASES)
def test_on_eight_devices(results: dict[str, str], case: str) -> None:
    assert not results[case], results[case]


# One memory of an input and its alias, as TPUs have it: (kernel, grid, specs of both, the same
# program in NumPy on the memory, a row of blocks).

ROWS = pl.BlockSpec((2, 3), lambda i: (i, 0))
ARRAY = pl.BlockSpec(memory_space=pl.ANY)


def _one_ahead(x: Any, o: Any, buffer: Any) -> None:
    buffer[...] = x[...] * 2
    pltpu.sync_copy(buffer, o.at[pl.ds((pl.program_id(0) + 1) % 3 * 2, 2)])


def _from_behind(x: Any, o: Any, buffer: Any) -> None:
    pltpu.sync_copy(x.at[pl.ds(onp.maximum(pl.program_id(0) - 1, 0) * 2, 2)], buffer)
    o[...] = buffer[...] + 1


def _both_arrays(x: Any, o: Any, buffer: Any) -> None:
    here = pl.ds(pl.program_id(0) * 2, 2)
    pltpu.sync_copy(o.at[here], buffer)
    buffer[...] *= 3
    pltpu.sync_copy(buffer, x.at[pl.ds((pl.program_id(0) + 2) % 3 * 2, 2)])


def _add(x: Any, o: Any, buffer: Any) -> None:
    x[...] += 10
    o[...] = x[...] * 1


def ahead(m: np.ndarray) -> None:
    for i in range(3):
        m[(i + 1) % 3] = m[i] * 2


def behind(m: np.ndarray) -> None:
    for i in range(3):
        m[i] = m[max(i - 1, 0)] + 1


def two_ahead(m: np.ndarray) -> None:
    for i in range(3):
        m[(i + 2) % 3] = m[i] * 3


def twice_then_back(m: np.ndarray) -> None:
    m += 20     # two steps at a block, which stays; then others


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "grid", "ins", "outs", "want"), [
    (_one_ahead, 3, ROWS, ARRAY, ahead), (_from_behind, 3, ARRAY, ROWS, behind),
    (_both_arrays, 3, ARRAY, ARRAY, two_ahead),
    (_add, (3, 2), pl.BlockSpec((2, 3), lambda i, j: (i, 0)),
     pl.BlockSpec((2, 3), lambda i, j: (i, 0)), twice_then_back)],
    ids=["blocks to an array", "an array to blocks", "arrays", "blocks that stay"])
def test_an_alias_is_one_memory_where_a_tpu_is_simulated(kernel: Any, grid: Any, ins: Any,
                                                         outs: Any, want: Any) -> None:
    def run(x: Any, how: Any = pltpu.InterpretParams()) -> Any:  # noqa: B008
        return pl.pallas_call(kernel, olympus.ShapeDtypeStruct(x.shape, x.dtype), grid=grid,
                              in_specs=[ins], out_specs=outs, input_output_aliases={0: 0},
                              scratch_shapes=[pltpu.VMEM((2, 3), x.dtype)], interpret=how)(x)

    x = np.random.RandomState(0).randn(2, 6, 3).astype(np.float32)
    memory = x.copy()
    for one in memory:
        want(one.reshape(3, 2, 3))
    values, grads = olympus.jit(olympus.vmap(olympus.value_and_grad(
        lambda x: (out := run(x), (out ** 2).sum())[1])))(x)
    np.testing.assert_allclose(values, (memory ** 2).sum((1, 2)), rtol=1e-5)
    np.testing.assert_allclose(run(x[0]), memory[0], rtol=1e-6)
    eps = np.float32(1e-2)      # the programs are linear: differences of squares are exact
    for place in ((0, 0), (2, 1), (5, 2)):
        ends = []
        for sign in 1, -1:
            end = x[0].astype(np.float64)
            end[place] += sign * eps
            want(end.reshape(3, 2, 3))
            ends.append((end ** 2).sum())
        np.testing.assert_allclose(grads[0][place], (ends[0] - ends[1]) / (2 * eps), rtol=1e-3,
                                   atol=1e-3)


@pytest.mark.slow
def test_blocks_of_an_alias_may_leave_it_in_other_ways() -> None:
    def shift(x: Any, o: Any) -> None:
        o[...] = onp.concatenate([x[...], x[...]])

    x = np.arange(10.)
    found = pl.pallas_call(
        shift, olympus.ShapeDtypeStruct((10,), np.float32), grid=2, input_output_aliases={0: 0},
        in_specs=[pl.BlockSpec((3,), lambda i: (i,))], interpret=pltpu.InterpretParams(),
        out_specs=pl.BlockSpec((6,), lambda i: (i,)))(x.astype(np.float32))
    np.testing.assert_array_equal(found, np.resize(x[:3], 10))
