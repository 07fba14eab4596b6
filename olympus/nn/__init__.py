"""Functions of neural networks: activations, softmax and its kin, initial values of weights."""

from .._src.base.util import publish_bounded as _publish
from .._src.nn.activations import (
    celu, elu, gelu, glu, hard_sigmoid, hard_silu, hard_swish, hard_tanh, identity, leaky_relu,
    log1mexp, log_sigmoid, log_softmax, logmeanexp, logsumexp, mish, relu, relu6, selu, sigmoid,
    silu, soft_sign, softmax, softplus, sparse_plus, sparse_sigmoid, squareplus, swish, tanh,
)
from .._src.nn.attention import dot_product_attention
from .._src.nn.normalization import one_hot, standardize
from .._src.nn.scaled import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul
from . import initializers

__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "get_scaled_dot_general_config", "glu",
    "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "initializers",
    "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish",
    "one_hot", "relu", "relu6", "scaled_dot_general", "scaled_matmul", "selu", "sigmoid", "silu",
    "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus",
    "standardize", "swish", "tanh",
]

_publish(__name__)
