"""`jax.experimental.pallas.ops.tpu.flash_attention`: models with attention on TPUs import it."""

from ......stand_ins import planned

__all__ = []

__getattr__ = planned(
    __name__, "kernels of one's own (Pallas)",
    "BlockSizes SegmentIds flash_attention mha_reference")
