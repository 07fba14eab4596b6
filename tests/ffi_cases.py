"""Foreign calls on eight CPU devices: see eight_devices.py. The handlers are those of examples/ffi.
"""

import ffi_library
import numpy as np
from eight_devices import names, report
from ffi_library import struct

import olympus
from olympus import ffi
from olympus.experimental import buffer_callback as buffers
from olympus.sharding import AxisType, NamedSharding, PartitionSpec as P

X = np.arange(8 * 4 * 5, dtype=np.float32).reshape(8, 4, 5)
NORMALISED = X / np.sqrt(np.mean(X * X, -1, keepdims=True) + 1e-5)


def over(kind, shape=(8,), axes=("i",)):
    ffi_library.load()
    mesh = olympus.make_mesh(shape, axes, axis_types=(kind,) * len(shape))
    return mesh, olympus.device_put(X, NamedSharding(mesh, P(*axes)))


def rms(x):
    return ffi_library.load()[0].rms_norm(x)


def check(found, spec=None):
    np.testing.assert_allclose(found, NORMALISED, rtol=1e-5, atol=1e-6)
    if spec is not None:
        assert found.sharding.is_equivalent_to(NamedSharding(found.sharding.mesh, spec), 3)


def case_whole_arrays_reach_a_handler():
    mesh, x = over(AxisType.Auto)
    whole = olympus.jit(rms)
    assert "all-gather" in whole.lower(x).compile().as_text()
    check(whole(x))
    check(rms(x))


def case_calls_of_a_batch_partitionable_target_are_cut_along_axes_of_vmap():
    mesh, x = over(AxisType.Auto)
    for f in (olympus.vmap(rms), olympus.vmap(olympus.vmap(rms))):
        assert "all-gather" not in olympus.jit(f).lower(x).compile().as_text()
        check(olympus.jit(f)(x), P("i"))
    loss = olympus.jit(olympus.grad(lambda x: (olympus.vmap(rms)(x) * X).sum()))
    one = olympus.grad(lambda x: (rms(x) * X).sum())(X)
    np.testing.assert_allclose(loss(x), one, rtol=1e-4, atol=1e-5)
    assert "all-gather" not in loss.lower(x).compile().as_text()


def case_an_operand_that_is_not_mapped_keeps_a_call_whole():
    mesh, x = over(AxisType.Auto)
    ffi.register_ffi_target_as_batch_partitionable("sum")
    call = ffi.ffi_call("sum", struct((4, 5)), vmap_method="expand_dims")
    row = np.ones((4, 5), np.float32)
    found = olympus.jit(olympus.vmap(call, in_axes=(0, None)))(x, row)
    assert np.array_equal(found, X + 10)


def case_a_call_in_shard_map_is_of_one_device():
    mesh, x = over(AxisType.Auto)
    local = olympus.shard_map(rms, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    check(local(x), P("i"))
    assert "all-gather" not in olympus.jit(local).lower(x).compile().as_text()
    check(olympus.jit(local)(x), P("i"))
    gradient = olympus.jit(olympus.grad(lambda x: (local(x) * X).sum()))(x)
    one = olympus.grad(lambda x: (rms(x) * X).sum())(X)
    np.testing.assert_allclose(gradient, one, rtol=1e-4, atol=1e-5)


def case_a_call_in_a_shard_map_over_some_axes():
    mesh, x = over(AxisType.Auto, (2, 4), ("i", "j"))
    local = olympus.shard_map(rms, mesh=mesh, in_specs=P("i"), out_specs=P("i"), axis_names={"i"})
    check(olympus.jit(local)(x))


def case_explicit_types_say_how_results_are_cut():
    mesh, x = over(AxisType.Explicit)
    with olympus.set_mesh(mesh):
        assert str(olympus.typeof(olympus.jit(rms)(x))) == "float32[8,4,5]"
        cut = struct(X.shape, sharding=NamedSharding(mesh, P("i")))
        call = ffi.ffi_call("copy", cut)
        found = olympus.jit(call)(x)
        assert str(olympus.typeof(found)) == "float32[8@i,4,5]" and np.array_equal(found, X)
        mapped = olympus.jit(olympus.vmap(rms))(x)
        assert str(olympus.typeof(mapped)) == "float32[8@i,4,5]"
        check(mapped)


def case_a_call_with_side_effects_is_made_in_shard_map():
    mesh, x = over(AxisType.Auto)
    library = ffi_library.load()[1]
    loud = ffi.ffi_call("count", (), has_side_effect=True)

    def f(x):
        loud(x)
        return x

    try:
        olympus.jit(f)(x)
    except olympus.errors.OlympusRuntimeError as error:
        assert "a call with side effects in a program over several devices" in str(error)
    else:
        raise AssertionError("XLA shares it out by now")
    before = library.Calls()
    local = olympus.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    for way in (olympus.jit(local), local):
        assert np.array_equal(way(x), X)
    olympus.effects_barrier()
    assert library.Calls() - before == 16


def case_a_buffer_callback_gets_whole_arrays_or_those_of_a_device():
    seen = []

    def twice(ctx, out, x):
        seen.append(x.shape)
        np.asarray(out)[...] = 2 * np.asarray(x)

    mesh, x = over(AxisType.Auto)
    found = olympus.jit(buffers.buffer_callback(twice, X))(x)
    assert np.array_equal(found, 2 * X) and {*seen} == {X.shape}
    seen.clear()
    part = buffers.buffer_callback(twice, struct((1, 4, 5)))
    local = olympus.jit(olympus.shard_map(part, mesh=mesh, in_specs=P("i"), out_specs=P("i")))
    assert np.array_equal(local(x), 2 * X) and seen == [(1, 4, 5)] * 8


CASES = names(globals())
if __name__ == "__main__":
    report(globals())
