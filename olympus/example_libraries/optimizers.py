"""First-order optimisers of pytrees, with schedules of their step sizes."""

from .._src.base.util import publish as _publish
from .._src.example_libraries.optimizers import (
    InitFn, JoinPoint, Optimizer, OptimizerState, ParamsFn, Schedule, UpdateFn, adagrad, adam,
    adamax, clip_grads, constant, exponential_decay, inverse_time_decay, l2_norm, make_schedule,
    momentum, nesterov, optimizer, pack_optimizer_state, piecewise_constant, polynomial_decay,
    rmsprop, rmsprop_momentum, sgd, sm3, unpack_optimizer_state,
)

__all__ = [
    "InitFn", "JoinPoint", "Optimizer", "OptimizerState", "ParamsFn", "Schedule", "UpdateFn",
    "adagrad", "adam", "adamax", "clip_grads", "constant", "exponential_decay",
    "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "nesterov", "optimizer",
    "pack_optimizer_state", "piecewise_constant", "polynomial_decay", "rmsprop",
    "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]

_publish(__name__)
