"""`jax.experimental.pallas.tpu`: libraries of kernels for TPUs import it."""

from ....stand_ins import planned

__all__ = []

__getattr__ = planned(
    __name__, "kernels of one's own (Pallas)",
    "ANY CMEM CORE_PARALLEL CompilerParams DeviceIdType DMA GridDimensionSemantics HBM "
    "HOST InterpretParams KernelType MemorySpace PARALLEL ARBITRARY "
    "PrefetchScalarGridSpec SEMAPHORE SMEM SemaphoreType SideEffectType TPUCompilerParams "
    "TPUMemorySpace VMEM VMEM_SHARED async_copy async_remote_copy bitcast "
    "create_tensorcore_mesh delay emit_pipeline emit_pipeline_with_allocations "
    "get_barrier_semaphore get_tpu_info is_tpu_device load make_async_copy "
    "make_async_remote_copy matmul_push_rhs pack_elementwise prng_random_bits prng_seed "
    "repeat roll run_on_first_core sample_block semaphore_signal semaphore_wait store "
    "stateful_bernoulli stateful_bits stateful_normal stateful_uniform to_pallas_key "
    "trace unpack_elementwise with_memory_space_constraint")
