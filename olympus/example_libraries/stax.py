"""Layers of neural networks as pairs of functions, and how they are combined."""

from .._src.base.util import publish as _publish
from .._src.example_libraries.stax import (
    AvgPool, BatchNorm, Conv, Conv1DTranspose, ConvTranspose, Dense, Dropout, Elu, Exp, FanInConcat,
    FanInSum, FanOut, Flatten, Gelu, GeneralConv, GeneralConvTranspose, Identity, LeakyRelu,
    LogSoftmax, MaxPool, Relu, Selu, Sigmoid, Softmax, Softplus, SumPool, Tanh, elementwise, glorot,
    logsoftmax, parallel, randn, serial, shape_dependent,
)

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu",
    "Exp", "FanInConcat", "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv",
    "GeneralConvTranspose", "Identity", "LeakyRelu", "LogSoftmax", "MaxPool", "Relu", "Selu",
    "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "glorot", "logsoftmax",
    "parallel", "randn", "serial", "shape_dependent",
]

_publish(__name__)
