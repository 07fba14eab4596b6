"""`jax.experimental.pallas.triton`: libraries of kernels for GPUs import it."""

from ....stand_ins import planned

__all__ = []

__getattr__ = planned(
    __name__, "kernels of one's own (Pallas)",
    "CompilerParams TritonCompilerParams approx_tanh atomic_add atomic_and atomic_cas "
    "atomic_max atomic_min atomic_or atomic_xchg atomic_xor debug_barrier "
    "elementwise_inline_asm load store")
