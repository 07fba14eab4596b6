"""Names of kernels for TPUs and GPUs: parameters, atomic operations, names that need a device."""

from typing import Any

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus.experimental import pallas as pl
from olympus.experimental.pallas import mosaic_gpu, triton
from olympus.experimental.pallas import tpu as pltpu


@pytest.mark.parametrize(("module", "name", "device"), [
    (pltpu, "prng_seed", "a TPU"), (pltpu, "matmul_pop", "a TPU"),
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


def test_bitcast_changes_rows() -> None:
    x = np.arange(32, dtype=np.int32).reshape(8, 4) * 70001
    narrow = pltpu.bitcast(onp.array(x), onp.int16)
    want = x.view(np.int16).reshape(8, 4, 2).swapaxes(1, 2).reshape(16, 4)
    np.testing.assert_array_equal(narrow, want)
    np.testing.assert_array_equal(pltpu.bitcast(narrow, onp.int32), x)
    with pytest.raises(ValueError, match="whole elements"):
        pltpu.bitcast(onp.zeros((3, 4), onp.int16), onp.int32)
