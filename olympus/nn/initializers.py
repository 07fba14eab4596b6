"""Initial values of weights: functions of (key, shape, dtype), and functions that make those."""

from .._src.base.util import publish_bounded as _publish
from .._src.nn.initializers import (
    Initializer, constant, delta_orthogonal, glorot_normal, glorot_uniform, he_normal, he_uniform,
    kaiming_normal, kaiming_uniform, lecun_normal, lecun_uniform, normal, ones, orthogonal,
    truncated_normal, uniform, variance_scaling, xavier_normal, xavier_uniform, zeros,
)

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal",
    "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal",
    "ones", "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]

_publish(__name__)
