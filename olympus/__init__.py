"""Olympus: array programs, transformed and compiled.

Functions on arrays are traced into a small typed program (the olympuspr), which `grad`, `vmap` and
`jit` transform, and XLA compiles through jaxlib.
"""

import typing as _typing

from ._src.base.collector import collector_at_rest as _collector_at_rest
with _collector_at_rest():      # What these make stays: to look for cycles is a sixth of the time.
    from . import dtypes, errors, lax, numpy, sharding, tree, tree_util, typing
from ._src.base.util import publish as _publish
from ._src.base.util import submodules as _submodules
from ._src.base.util import when_named as _when_named
from ._src.devices.array import Shard
from ._src.devices.devices import (
    default_backend, device_count, devices, host_count, host_id, host_ids, local_device_count,
    local_devices, print_environment_info, process_count, process_index, process_indices,
)
from ._src.base.config import (
    CompilerEffortLevel, allow_f16_reductions, array_garbage_collection_guard, auto_pcast,
    check_tracer_leaks, checking_leaks, config, debug_infs, debug_key_reuse, debug_nans,
    default_device, default_matmul_precision, default_prng_impl, disable_jit, enable_checks,
    enable_custom_prng, enable_x64, explain_cache_misses, legacy_prng_key, log_compiles,
    make_user_context, no_execution, no_tracing, numpy_dtype_promotion, numpy_rank_promotion,
    olympus2tf_associative_scan_reductions, remove_size_one_mesh_axis_from_type, softmax_custom_jvp,
    thread_guard, threefry_partitionable, transfer_guard, transfer_guard_device_to_device,
    transfer_guard_device_to_host, transfer_guard_host_to_device,
)
from ._src.base.typing import Array, Device
from ._src.host.callbacks import pure_callback
from ._src.custom.jvp import custom_jvp
from ._src.core.effects import effects_barrier
from ._src.core.trace import typeof
from ._src.numpy import array_methods
from ._src.arrays.device import (
    block_until_ready, clear_caches, copy_to_host_async, device_get, device_put, live_arrays,
    make_mesh,
)
from ._src.jit.jit import Inline, jit
from ._src.jit.tracing import (
    ensure_compile_time_eval, eval_shape, make_olympuspr, named_call, named_scope,
)
from ._src.mapping.vmap import vmap
from ._src.lax.meshes import get_mesh, set_mesh
from ._src.lax.sharding import reshard
from ._src.types.avals import ShapeDtypeStruct
from ._src.types.dtypes import float0
from ._src.types.mesh import get_abstract_mesh, use_abstract_mesh
from ._src.types.sharding import NamedSharding
from ._src.types.sharding import PartitionSpec as P
from ._src.numpy.index_plan import dslice as ds
from .version import __version__, __version_info__
with _when_named(__name__):
    from ._src.control_flow.remat import checkpoint, checkpoint_policies
    from ._src.control_flow.remat import checkpoint as remat
    from ._src.jit.checked import check
    from ._src.custom.gradient import closure_convert, custom_gradient
    from ._src.custom.vjp import custom_vjp
    from ._src.arrays.assembly import (
        make_array_from_callback, make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from ._src.autodiff.derivatives import (
        fwd_and_bwd, grad, jvp, linear_transpose, linearize, value_and_grad, vjp,
    )
    from ._src.autodiff.jacobians import hessian, jacfwd, jacobian, jacrev
    from ._src.jit.memory import memory_report
    from ._src.mapping.pmap import pmap
    from ._src.mapping.shard_map import shard_map, smap
    from ._src.core.cells import Ref
    from ._src.numpy.refs import empty_ref, free_ref, freeze, new_ref

__all__ = [
    "Array", "CompilerEffortLevel", "Device", "Inline", "NamedSharding", "P", "Ref",
    "ShapeDtypeStruct", "Shard",
    "__version__", "__version_info__", "allow_f16_reductions", "array_garbage_collection_guard",
    "auto_pcast", "block_until_ready", "check", "check_tracer_leaks", "checking_leaks",
    "checkpoint", "checkpoint_policies", "clear_caches", "closure_convert", "config",
    "copy_to_host_async",
    "core", "custom_derivatives", "custom_gradient", "custom_jvp", "custom_vjp", "debug_infs",
    "debug_key_reuse", "debug_nans", "default_backend", "default_device",
    "default_matmul_precision", "default_prng_impl", "device_count", "device_get", "device_put",
    "devices", "disable_jit", "ds", "dtypes", "effects_barrier", "empty_ref", "enable_checks",
    "enable_custom_prng",
    "enable_x64", "ensure_compile_time_eval", "errors", "eval_shape", "explain_cache_misses",
    "float0", "free_ref", "freeze", "fwd_and_bwd", "get_abstract_mesh", "get_mesh", "grad",
    "hessian", "host_count",
    "host_id", "host_ids", "interpreters", "jacfwd", "jacobian", "jacrev", "jit", "jvp", "lax",
    "legacy_prng_key", "linear_transpose", "linearize", "live_arrays", "local_device_count",
    "local_devices", "log_compiles", "make_array_from_callback",
    "make_array_from_process_local_data", "make_array_from_single_device_arrays", "make_mesh",
    "make_olympuspr", "make_user_context", "memory", "memory_report", "named_call", "named_scope",
    "new_ref",
    "no_execution",
    "no_tracing", "numpy", "numpy_dtype_promotion", "numpy_rank_promotion",
    "olympus2tf_associative_scan_reductions", "pmap", "print_environment_info", "process_count",
    "process_index", "process_indices", "pure_callback", "ref", "remat",
    "remove_size_one_mesh_axis_from_type", "reshard", "set_mesh", "shard_map", "sharding", "smap",
    "softmax_custom_jvp", "stages", "thread_guard", "threefry_partitionable", "transfer_guard",
    "transfer_guard_device_to_device", "transfer_guard_device_to_host",
    "transfer_guard_host_to_device", "tree", "tree_util", "typeof", "typing", "use_abstract_mesh",
    "value_and_grad", "vjp", "vmap",
]

_publish(__name__)
if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import (
        ad as ad, ad_checkpoint as ad_checkpoint, api_util as api_util, core as core,
        custom_batching as custom_batching, custom_derivatives as custom_derivatives,
        debug as debug, distributed as distributed, dlpack as dlpack,
        example_libraries as example_libraries, experimental as experimental, export as export,
        extend as extend, ffi as ffi, flatten_util as flatten_util, image as image,
        interpreters as interpreters, lib as lib, memory as memory, monitoring as monitoring,
        nn as nn, ops as ops, profiler as profiler, random as random, ref as ref, scipy as scipy,
        stages as stages, struct as struct, test_util as test_util,
    )
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
