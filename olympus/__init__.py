"""Olympus: array programs, transformed and compiled.

Functions on arrays are traced into a small typed program (the olympuspr), which `grad`, `vmap` and
`jit` transform, and XLA compiles through jaxlib.
"""

from . import dtypes, errors, lax, tree, tree_util, typing
from ._src.backend.array import Array
from ._src.backend.devices import (
    default_backend,
    device_count,
    devices,
    host_count,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)
from ._src.base.config import (
    check_tracer_leaks,
    checking_leaks,
    config,
    debug_infs,
    debug_nans,
    default_device,
    default_matmul_precision,
    default_prng_impl,
    disable_jit,
    enable_checks,
    enable_x64,
    explain_cache_misses,
    log_compiles,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    softmax_custom_jvp,
    threefry_partitionable,
)
from ._src.base.lib import Device
from ._src.core.trace import typeof
from ._src.transforms.autodiff import (
    fwd_and_bwd,
    grad,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from ._src.transforms.jit import jit
from ._src.transforms.vmap import vmap
from ._src.types.avals import ShapeDtypeStruct
from ._src.types.dtypes import float0
from .version import __version__, __version_info__

__all__ = [
    "Array", "Device", "ShapeDtypeStruct", "__version__", "__version_info__", "check_tracer_leaks",
    "checking_leaks", "config", "debug_infs", "debug_nans", "default_backend", "default_device",
    "default_matmul_precision", "default_prng_impl", "device_count", "devices", "disable_jit",
    "dtypes", "enable_checks", "enable_x64", "errors", "explain_cache_misses", "float0",
    "fwd_and_bwd", "grad", "host_count", "jit", "jvp", "lax", "linear_transpose", "linearize",
    "local_device_count", "local_devices", "log_compiles", "numpy_dtype_promotion",
    "numpy_rank_promotion", "process_count", "process_index", "softmax_custom_jvp",
    "threefry_partitionable", "tree", "tree_util", "typeof", "typing", "value_and_grad", "vjp",
    "vmap",
]
