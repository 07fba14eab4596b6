"""`jax.experimental.pallas.ops.gpu.attention`: models with attention on GPUs import it."""

from ......stand_ins import planned

__all__ = []

__getattr__ = planned(
    __name__, "kernels of one's own (Pallas)",
    "BlockSizes mha mha_reference")
