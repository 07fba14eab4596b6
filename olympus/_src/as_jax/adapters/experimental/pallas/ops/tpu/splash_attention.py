"""`jax.experimental.pallas.ops.tpu.splash_attention`: models with attention on TPUs import it."""

from ......stand_ins import planned

__all__ = []

__getattr__ = planned(
    __name__, "kernels of one's own (Pallas)",
    "BlockSizes CausalMask FullMask LocalMask Mask MultiHeadMask NumpyMask QKVLayout "
    "SegmentIds SplashAttentionKernel make_causal_mask make_local_attention_mask "
    "make_masked_mha_reference make_masked_mqa_reference make_random_mask make_splash_mha "
    "make_splash_mha_single_device make_splash_mqa make_splash_mqa_single_device "
    "splash_attention_kernel splash_attention_mask splash_attention_mask_info")
