"""`jax.experimental.pallas`: libraries of attention kernels import it and call it on TPUs only."""

from ....stand_ins import planned

__all__ = ["cdiv", "next_power_of_2"]

__getattr__ = planned(
    __name__, "kernels of one's own (Pallas)",
    "ANY Blocked BlockDim BlockSpec Buffered CompilerParams CostEstimate Element GridSpec "
    "MemoryRef MemorySpace PipelineMode Slice Squeezed atomic_add atomic_and atomic_cas "
    "atomic_max atomic_min atomic_or atomic_xchg atomic_xor broadcast_to core core_map "
    "debug_check debug_checks_enabled debug_print delay device_id dot ds dslice empty "
    "enable_debug_checks estimate_cost get_global kernel load loop lower_as_mlir "
    "max_contiguous mpmd multiple_of no_block_spec num_programs pallas_call pallas_call_p "
    "program_id reciprocal run_scoped run_state semaphore semaphore_read semaphore_signal "
    "semaphore_wait squeezed store swap touch when with_scoped")


def cdiv(a: int, b: int) -> int:
    """The quotient, rounded up."""
    return -(-a // b)


def next_power_of_2(x: int) -> int:
    """The least power of two that is not less than a positive `x`."""
    return 1 << (x - 1).bit_length()
