"""`jax.experimental.pallas.mosaic_gpu`: libraries of kernels for GPUs import it."""

from ....stand_ins import planned

__all__ = []

__getattr__ = planned(
    __name__, "kernels of one's own (Pallas)",
    "ACC Barrier BlockSpec ClusterBarrier CompilerParams GMEM Layout MemorySpace Mesh "
    "SMEM SemaphoreType TMEM SwizzleTransform TilingTransform WGMMAAccumulatorRef "
    "async_prefetch async_store barrier_arrive barrier_wait commit_smem copy_gmem_to_smem "
    "copy_smem_to_gmem emit_pipeline emit_pipeline_warp_specialized kernel layout_cast "
    "set_max_registers tcgen05_mma wait_smem_to_gmem warp_map wgmma wgmma_wait")
