"""Names of operations that only one kind of device has.

They can be imported; a call raises an error that names the device. `device_only` makes each when
its name is first looked up.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

from ..base.hints import no_such_name
from ..base.typing import PyTree

#: module of `olympus.experimental.pallas`: the device, names that need it
_ONLY = {
    "tpu": ("a TPU", (
        "PipelineStep annotate conv core_barrier "
        "emit_pipeline_with_async_prefetch "
        "has_memory_space join_bits "
        "matmul_acc_lhs matmul_lhs_fifo matmul_pop matmul_pop_fifo "
        "matmul_push_rhs pack_fp6 "
        "split_bits "
        "unpack_fp6")),
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


#: Decorators, which modules call while they are imported: only a call of their result raises.
_DECORATORS = frozenset(["inline_mgpu"])


class DeviceOnly:
    """A name that only one kind of device has. Calling it raises.

    Modules describe layouts while they are imported, `plgpu.Layout.WGMMA.reduce(0)`: so attributes
    are `DeviceOnly`, too, and so are the results of calls that only describe.

    described: how many calls only describe.
    """

    def __init__(self, facade: str, name: str, device: str, described: float) -> None:
        self.__module__, self.__name__, self.__qualname__ = facade, name, name
        self.__doc__ = f"Needs {device}: raises NotImplementedError."
        self._device, self._described = device, described

    def __call__(self, *args: object, **kwargs: object) -> DeviceOnly:
        if self._described:
            return DeviceOnly(self.__module__, self.__name__, self._device, self._described - 1)
        raise NotImplementedError(
            f"{self.__name__}: a kernel that uses it needs {self._device} and a compiler of "
            "kernels, which Olympus lacks;\n  in interpret mode write it with indexing and "
            "functions of olympus.numpy.")

    def __getattr__(self, name: str) -> DeviceOnly:
        if name.startswith("_"):
            raise AttributeError(f"{self.__name__!r} has no attribute {name!r}")
        return DeviceOnly(self.__module__, f"{self.__name__}.{name}", self._device, math.inf)

    def __repr__(self) -> str:
        return f"<{self.__name__}, which needs {self._device}>"


def device_only(facade: str) -> tuple[Callable[[str], PyTree], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a module with names of operations that only a device has.

    Each is a `DeviceOnly`, which raises NotImplementedError with the name and the device.
    """
    device, names = _ONLY[facade.rpartition(".")[2]]
    known, module = frozenset(names.split()), sys.modules[facade]

    def getattr_(name: str) -> PyTree:
        if name not in known:
            return no_such_name(module, name)
        described = 2 if name in _DECORATORS else 0
        return vars(module).setdefault(name, DeviceOnly(facade, name, device, described))

    return getattr_, lambda: sorted({*vars(module), *known})
