"""`jax.experimental.pallas.ops.tpu.paged_attention`: servers of models on TPUs import it."""

from ......stand_ins import planned

__all__ = []

__getattr__ = planned(
    __name__, "kernels of one's own (Pallas)",
    "paged_attention")
