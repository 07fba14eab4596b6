"""Names of kernels for one kind of device: their parameters, and the operations that run anywhere.

Parameters are accepted and have no effect in interpret mode. An operation that only a device has
can be imported, and says so where it is called: `device_only` makes it of its name.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from ..base.config import config
from ..base.docstrings import complete_docstrings
from ..base.hints import no_such_name
from ..base.typing import Array, ArrayLike, DTypeLike, PyTree, Reference
from ..devices.devices import default_backend
from ..kernels import masked
from ..kernels.control import when
from ..kernels.specs import SemaphoreRef, SemaphoreType, Spaces
from ..lax.collectives.axes import axis_index
from ..lax.convert import bitcast_convert_type
from ..numpy import arithmetic as uf
from ..numpy import logic, trigonometry
from ..numpy.selection import where
from ..types.dtypes import itemsize_bits
from ..types.shape import floor_div, mod

# module of `olympus.experimental.pallas`: the device, names that need it
_ONLY = {
    "tpu": ("a TPU", (
        "BufferType BufferedRef BufferedRefBase ChipVersion LoweringException PipelineStep "
        "Tiling TpuInfo annotate async_remote_copy conv core_barrier einshape emit_pipeline "
        "emit_pipeline_with_allocations emit_pipeline_with_async_prefetch "
        "get_barrier_semaphore get_tpu_info get_tpu_info_for_chip has_memory_space join_bits "
        "make_async_remote_copy matmul_acc_lhs matmul_lhs_fifo matmul_pop matmul_pop_fifo "
        "matmul_push_rhs pack_elementwise pack_fp6 prng_random_bits prng_seed sample_block "
        "split_bits stateful_bernoulli stateful_bits stateful_normal stateful_uniform "
        "stochastic_round to_pallas_key trace_value unpack_elementwise unpack_fp6")),
    "triton": ("a GPU", (
        "CUSTOM_CALL_TARGET_NAME GpuInfo GpuVersion elementwise_inline_asm get_gpu_info "
        "get_gpu_info_from_version is_gpu_device")),
    "mosaic_gpu": ("a GPU", (
        "ACC Barrier ClusterBarrier CopyPartition InterpretGPUParams Layout LoweringSemantics "
        "Mesh NDLoopInfo OOBFillMode PeerMemRef PipelinePipeline RefType RefUnion Replicated "
        "SemaphoreSignal ShapeDtypeStruct SwizzleTransform TMEMLayout Tiling TilingTransform "
        "TraceScope Transform TryClusterCancelResult WGMMAAccumulatorRef WarpMesh "
        "alloc_semaphore as_torch_kernel async_copy_scales_to_tmem async_copy_smem_to_tmem "
        "async_copy_sparse_metadata_to_tmem async_load_tmem async_prefetch async_store_smem "
        "async_store_tmem atomic_add atomic_and atomic_max atomic_min atomic_or atomic_xor "
        "barrier_arrive barrier_arrive_and_wait barrier_test barrier_wait cluster_ref "
        "commit_smem commit_smem_to_gmem_group commit_tmem copy_gmem_to_smem "
        "copy_smem_to_gmem dynamic_scheduling_loop emit_pipeline "
        "emit_pipeline_warp_specialized find_swizzle force_gpu_interpret_mode "
        "format_tcgen05_sparse_metadata griddepcontrol_launch_dependents griddepcontrol_wait "
        "im2col_ref inline_mgpu layout_cast load max min mma multicast_ref "
        "multimem_load_reduce multimem_store nd_loop planar_snake print_layout prod "
        "query_cluster_cancel remote_ref semaphore_signal_multicast semaphore_signal_parallel "
        "set_gpu_interpret_mode set_max_registers store sum tcgen05_commit_arrive tcgen05_mma "
        "transform_ref transpose_ref try_cluster_cancel wait_gmem_to_smem wait_load_tmem "
        "wait_smem_to_gmem warp_map wgmma wgmma_accumulator_load wgmma_wait")),
}


def device_only(facade: str) -> tuple[Callable[[str], PyTree], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a module with names of operations that only a device has.

    Each is a function that raises NotImplementedError with the name and the device.
    """
    device, names = _ONLY[facade.rpartition(".")[2]]
    known, module = frozenset(names.split()), sys.modules[facade]

    def getattr_(name: str) -> PyTree:
        if name not in known:
            return no_such_name(module, name)

        def needs_device(*args: object, **kwargs: object) -> NoReturn:
            raise NotImplementedError(
                f"{name}: a kernel that uses it needs {device} and a compiler of kernels, which "
                "Olympus lacks;\n  in interpret mode write it with indexing and functions of "
                "olympus.numpy.")

        needs_device.__name__ = needs_device.__qualname__ = name
        needs_device.__module__ = facade
        needs_device.__doc__ = f"Needs {device}: raises NotImplementedError."
        return vars(module).setdefault(name, needs_device)

    return getattr_, lambda: sorted({*vars(module), *known})


# Parameters --------------------------------------------------------------------------------------

class GPUMemorySpace(Spaces, enum.Enum):
    """Memories of a GPU. In interpret mode all are the device's memory.

    Args:
      shape: the array's shape.
      dtype: its dtype, or a kind of semaphore.

    Returns:
      A `MemoryRef`, or a `SemaphoreRef`, in this memory.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental.pallas import mosaic_gpu as plgpu
    >>> plgpu.SMEM((8, 128), onp.float32).shape
    (8, 128)
    """

    GMEM = "gmem"
    SMEM = "smem"
    TMEM = "tmem"
    REGS = "regs"


class CoreType(enum.Enum):
    """The kind of core that runs a kernel.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.CoreType.TC.value
    'tc'
    """

    TC = "tc"
    SC_SCALAR_SUBCORE = "sc_scalar_subcore"
    SC_VECTOR_SUBCORE = "sc_vector_subcore"


@dataclasses.dataclass(frozen=True)
class TritonParams:
    """Options of the compiler for GPUs, Triton; they have no effect in interpret mode.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> plgpu.CompilerParams(num_warps=4).num_warps
    4
    """

    num_warps: int | None = None
    num_stages: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class MosaicParams:
    """Options of the compiler for GPUs, Mosaic; they have no effect in interpret mode.

    >>> from olympus.experimental.pallas import mosaic_gpu as plgpu
    >>> plgpu.CompilerParams(max_concurrent_steps=2).max_concurrent_steps
    2
    """

    approx_math: bool = False
    dimension_semantics: Sequence[str] | None = None
    max_concurrent_steps: int = 1
    unsafe_no_auto_barriers: bool = False
    reduction_scratch_bytes: int = 2048
    profile_space: int = 0
    profile_dir: str = ""
    profile_trace_scope: object = None
    lowering_semantics: object = None


def set_tpu_interpret_mode(params: object = None) -> None:
    """Interpret all kernels from now on: `olympus_pallas_interpret` is True.

    Args:
      params: an `InterpretParams`, which has no effect, or None.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.set_tpu_interpret_mode()
    >>> olympus.config.update("olympus_pallas_interpret", False)
    """
    config.update("olympus_pallas_interpret", True)


def reset_tpu_interpret_mode_state() -> None:
    """Forget the state of interpreted kernels; they have none.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.reset_tpu_interpret_mode_state()
    """


def is_tpu_device() -> bool:
    """Whether the default device is a TPU.

    Returns:
      A bool.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.is_tpu_device()
    False
    """
    return default_backend() == "tpu"


class TensorCoreMesh:
    """The cores of a TPU, a mesh for `pl.core_map` and `pl.kernel`; here they run one by one.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.TensorCoreMesh("core", num_cores=2).shape
    {'core': 2}
    """

    def __init__(self, axis_name: str, num_cores: int = 1) -> None:
        self.axis_name, self.num_cores = axis_name, num_cores

    @property
    def shape(self) -> dict[str, int]:
        """The number of cores by the axis's name."""
        return {self.axis_name: self.num_cores}


def create_tensorcore_mesh(axis_name: str, devices: PyTree = None, num_cores: int | None = None
                           ) -> TensorCoreMesh:
    """A mesh of the cores of a TPU; of one core if their number is left out.

    Args:
      axis_name: the name of the axis of cores.
      devices: has no effect in interpret mode.
      num_cores: the number of cores; None is one.

    Returns:
      A `TensorCoreMesh`.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.create_tensorcore_mesh("core").shape
    {'core': 1}
    """
    return TensorCoreMesh(axis_name, 1 if num_cores is None else num_cores)


# Operations of TPUs ------------------------------------------------------------------------------

def run_on_first_core(core_axis_name: str) -> Callable[[Callable[[], None]], None]:
    """Decorator: run a function at once, on the first core of an axis of the mesh only.

    Args:
      core_axis_name: the name of the axis.

    Returns:
      A decorator of functions without arguments.

    >>> from olympus.experimental import pallas as pl
    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> def f(x, o):
    ...     @pltpu.run_on_first_core("core")
    ...     def _():
    ...         o[...] = x[...] + 1
    >>> mesh = pltpu.create_tensorcore_mesh("core")
    >>> out = olympus.ShapeDtypeStruct((2,), onp.float32)
    >>> print(pl.kernel(f, out, mesh=mesh, interpret=True)(onp.ones(2)))
    [2. 2.]
    """
    return when(axis_index(core_axis_name) == 0)


def dma_semaphore() -> SemaphoreRef:
    """The type of one semaphore of kind `DMA`.

    Returns:
      A `SemaphoreRef` of no axes.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.dma_semaphore().shape
    ()
    """
    return SemaphoreType.DMA(())


def bitcast(x: Array, ty: DTypeLike) -> Array:
    """The bits of an array as another dtype; narrower and wider ones change the rows (axis -2).

    Args:
      ty: a dtype.

    Returns:
      An array of dtype `ty` with the bits of x.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.bitcast(onp.ones((8, 4), onp.int32), onp.int16).shape
    (16, 4)
    """
    old, new = itemsize_bits(x.dtype), itemsize_bits(ty)
    if old == new:
        return bitcast_convert_type(x, ty)
    *lead, rows, columns = x.shape
    if old > new:
        parts = bitcast_convert_type(x, ty)
        return parts.swapaxes(-1, -2).reshape(*lead, -1, columns)
    if mod(rows * old, new):
        raise ValueError(f"bitcast: {x.aval} to {ty} given; rows whose bits make whole elements "
                         "are required.")
    parts = x.reshape(*lead, -1, floor_div(new, old), columns)
    return bitcast_convert_type(parts.swapaxes(-1, -2), ty)


def with_memory_space_constraint(x: Array, memory_space: object) -> Array:
    """An array that the compiler keeps in a memory space; in interpret mode the array itself.

    Args:
      memory_space: a member of `MemorySpace`.

    Returns:
      x.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> print(pltpu.with_memory_space_constraint(onp.ones(2), pltpu.VMEM))
    [1. 1.]
    """
    return x


# Operations of GPUs ------------------------------------------------------------------------------

def load(ref: Reference, *, mask: ArrayLike | None = None, other: ArrayLike | None = None,
         cache_modifier: str | None = None, eviction_policy: str | None = None,
         volatile: bool = False) -> Array:
    """The elements of a reference; `other` where a mask is false.

    Args:
      ref: a reference, or a part of one, which may leave it where the mask is false.
      mask: bools that broadcast to the part.
      other: the result where the mask is false; unspecified if left out.
      cache_modifier, eviction_policy, volatile: have no effect in interpret mode.

    Returns:
      An array of the part's shape.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> ref = olympus.new_ref(onp.arange(3))
    >>> print(plgpu.load(ref, mask=onp.array([True, False, True]), other=-1))
    [ 0 -1  2]
    """
    return masked.load(ref, mask=mask, other=other)


def store(ref: Reference, val: ArrayLike, *, mask: ArrayLike | None = None,
          eviction_policy: str | None = None) -> None:
    """Write to a reference where a mask is true.

    Args:
      eviction_policy: has no effect in interpret mode.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> ref = olympus.new_ref(onp.arange(3))
    >>> plgpu.store(ref, 9, mask=onp.array([True, False, True]))
    >>> print(ref[...])
    [9 1 9]
    """
    masked.store(ref, None, val, mask=mask)


def _atomic(op: Callable[[Array, Array], Array], ref: Reference, idx: object, val: ArrayLike,
            mask: ArrayLike | None) -> Array:
    """The old part of a reference, which `op` of it and a value replaces."""
    return masked.swap(ref, idx, op(masked.load(ref, idx, mask=mask, other=0), uf.add(val, 0)),
                       mask=mask)


def atomic_add(x_ref_or_view: Reference, idx: object, val: ArrayLike, *,
               mask: ArrayLike | None = None) -> Array:
    """Add to a part of a reference where a mask is true, and return the old part.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> ref = olympus.new_ref(onp.arange(3))
    >>> print(plgpu.atomic_add(ref, slice(0, 2), 5), ref[...])
    [0 1] [5 6 2]
    """
    return _atomic(uf.add, x_ref_or_view, idx, val, mask)


def atomic_max(x_ref_or_view: Reference, idx: object, val: ArrayLike, *,
               mask: ArrayLike | None = None) -> Array:
    """`atomic_add` with the larger of both.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> ref = olympus.new_ref(onp.arange(3))
    >>> print(plgpu.atomic_max(ref, slice(0, 3), 1), ref[...])
    [0 1 2] [1 1 2]
    """
    return _atomic(uf.maximum, x_ref_or_view, idx, val, mask)


def atomic_min(x_ref_or_view: Reference, idx: object, val: ArrayLike, *,
               mask: ArrayLike | None = None) -> Array:
    """`atomic_add` with the smaller of both.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> ref = olympus.new_ref(onp.arange(3))
    >>> print(plgpu.atomic_min(ref, slice(0, 3), 1), ref[...])
    [0 1 2] [0 1 1]
    """
    return _atomic(uf.minimum, x_ref_or_view, idx, val, mask)


def atomic_and(x_ref_or_view: Reference, idx: object, val: ArrayLike, *,
               mask: ArrayLike | None = None) -> Array:
    """`atomic_add` with the bits that both have.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> ref = olympus.new_ref(onp.arange(3))
    >>> print(plgpu.atomic_and(ref, slice(0, 3), 1), ref[...])
    [0 1 2] [0 1 0]
    """
    return _atomic(logic.bitwise_and, x_ref_or_view, idx, val, mask)


def atomic_or(x_ref_or_view: Reference, idx: object, val: ArrayLike, *,
              mask: ArrayLike | None = None) -> Array:
    """`atomic_add` with the bits that one of both has.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> ref = olympus.new_ref(onp.arange(3))
    >>> print(plgpu.atomic_or(ref, slice(0, 3), 1), ref[...])
    [0 1 2] [1 1 3]
    """
    return _atomic(logic.bitwise_or, x_ref_or_view, idx, val, mask)


def atomic_xor(x_ref_or_view: Reference, idx: object, val: ArrayLike, *,
               mask: ArrayLike | None = None) -> Array:
    """`atomic_add` with the bits that only one of both has.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> ref = olympus.new_ref(onp.arange(3))
    >>> print(plgpu.atomic_xor(ref, slice(0, 3), 1), ref[...])
    [0 1 2] [1 0 3]
    """
    return _atomic(logic.bitwise_xor, x_ref_or_view, idx, val, mask)


def atomic_xchg(x_ref_or_view: Reference, idx: object, val: ArrayLike, *,
                mask: ArrayLike | None = None) -> Array:
    """Write to a part of a reference where a mask is true, and return the old part.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> ref = olympus.new_ref(onp.arange(3))
    >>> print(plgpu.atomic_xchg(ref, slice(0, 2), 5), ref[...])
    [0 1] [5 5 2]
    """
    return masked.swap(x_ref_or_view, idx, val, mask=mask)


def atomic_cas(ref: Reference, cmp: ArrayLike, val: ArrayLike) -> Array:
    """Write a value where a reference equals another, and return the old content.

    Args:
      cmp: the value to compare with.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> ref = olympus.new_ref(onp.array(1))
    >>> print(plgpu.atomic_cas(ref, 1, 7), ref[...])
    1 7
    """
    old = masked.load(ref)
    masked.store(ref, None, where(uf.subtract(old, cmp) == 0, val, old))
    return old


def approx_tanh(x: Array) -> Array:
    """The hyperbolic tangent, which a GPU rounds more coarsely.

    Returns:
      An array like x.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> float(plgpu.approx_tanh(onp.array(0.)))
    0.0
    """
    return trigonometry.tanh(x)


def debug_barrier() -> None:
    """Let the threads of a step wait for one another; here is one thread.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> plgpu.debug_barrier()
    """


def max_contiguous(x: Array, values: int | Sequence[int]) -> Array:
    """Promise the compiler that runs of indices follow one another; the result is x.

    Args:
      values: how many indices follow one another, one number for each axis.

    Returns:
      x.

    >>> from olympus.experimental.pallas import triton as plgpu
    >>> print(plgpu.max_contiguous(onp.arange(2), 2))
    [0 1]
    """
    return x


complete_docstrings(globals(), {
    "ref": "a reference.",
    "x_ref_or_view": "a reference, or a part of one.",
    "idx": "an index, as for arrays.",
    "val": "the value to write or to combine, broadcast to the part.",
    "mask": "bools that broadcast to the part, or None for all of it.",
    "x": "an array.",
}, returns="The old part, an array.")
