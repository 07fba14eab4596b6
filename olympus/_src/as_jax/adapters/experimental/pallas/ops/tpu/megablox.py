"""`jax.experimental.pallas.ops.tpu.megablox`: models of experts on TPUs import it."""

from ......stand_ins import planned

__all__ = []

__getattr__ = planned(
    __name__, "kernels of one's own (Pallas)",
    "gmm tgmm")
