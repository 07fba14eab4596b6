"""The seam: the only package of Olympus that imports jaxlib.

It names what Olympus uses of jaxlib, gives each use one documented function, and hides how the
versions differ by testing for features. MLIR is behind `mlir`, loaded on first use.
"""

from typing import TYPE_CHECKING, Any

from olympus._src.base.lib.arrays import (
    Array, ArrayImpl, Device, DeviceList, GSPMDSharding, HloSharding, ShardAval, Sharding,
    SingleDeviceSharding, addresses, block_until_ready, check_alive, copied, copy_to_device,
    copy_to_host_async, copy_to_sharding, default_memory_kind, device_put, device_put_parts,
    is_readable, make_array, may_share, memory_kinds, result_handler, rewrap, same_tiles,
    shard_slices, shards, single_device_sharding, tile_counts, tiled_sharding, to_numpy,
    unready, unsafe_buffer_pointer, wait_for,
)
from olympus._src.base.lib.calls import (
    TYPED, UNTYPED, Buffer, ExecutionContext, ExecutionStage, buffer_callback_target,
    call_platform, capsule_address, has_custom_call, include_dir, is_batch_partitionable,
    lapack_names, lapack_target, memory_rights, pycapsule, python_callback_target,
    register_batch_partitionable, register_custom_call, register_custom_type, registered_calls,
    registered_names,
)
from olympus._src.base.lib.clients import Client, cores, has_long_vectors, make_cpu_client
from olympus._src.base.lib.distributed import (
    connect, cpu_collectives, disconnect_collectives, limit_collectives, prepare_service,
    start_service, watch_preemption,
)
from olympus._src.base.lib.dlpack import from_dlpack, to_dlpack
from olympus._src.base.lib.executables import (
    IN_THIS_THREAD, CompilerOptionError, FastPath, LoadedExecutable, MemoryStats,
    XlaRuntimeError, array_layout, compile, cost_analysis, deserialize_executable, execute,
    execute_with_tokens, fastpath, forget_all_signatures, forget_signatures,
    get_compile_options, hlo_cost_analysis, hlo_text, inspection_key, is_absent,
    is_error_of_pjit, lacks_code, layout_fields, layout_order, layouts, memory_stats,
    raise_error_of_pjit, serialize_executable, shardings, shared_signatures,
)
from olympus._src.base.lib.guards import (
    array_tracebacks, explicit_transfers, guard, thread_guard,
)
from olympus._src.base.lib.host import (
    HostFunction, Transfers, WeakCall, keep_while_running, raised_by_host, runtime_error,
    set_explain_collective, set_text_of_failure, wait_for_hosts,
)
from olympus._src.base.lib.loading import (
    LATE_BARRIERS, _jax, answer_for_jax, jaxlib_version, libraries, no_jax, pretty_printer, utils,
    warn_if_jax_loaded,
)
from olympus._src.base.lib.loading import weakref_lru_cache as _weakref_lru_cache
from olympus._src.base.lib.partitioning import PARTITIONED_CALL, WholeArray, partitioner_key
from olympus._src.base.lib.waiting import check_ending, interruptible
from olympus._src.base.util import lazy_imports

with lazy_imports(__name__):
    from olympus._src.base.lib import allocator, mlir, plugins

Config: Any = _jax.config.Config
config_unset: Any = _jax.config.unset
trace_context: Any = _jax.config.trace_context

PyTreeRegistry: Any = _jax.pytree.PyTreeRegistry
PyTreeDef: Any = _jax.pytree.PyTreeDef
DictKey: Any = _jax.pytree.DictKey
SequenceKey: Any = _jax.pytree.SequenceKey
GetAttrKey: Any = _jax.pytree.GetAttrKey
FlattenedIndexKey: Any = _jax.pytree.FlattenedIndexKey
treedef_tuple: Any = _jax.pytree.treedef_tuple
all_leaves: Any = _jax.pytree.all_leaves

pjit: Any = _jax.pjit
PjitFunction: Any = _jax.PjitFunction
set_tracer_class: Any = _jax.set_tracer_class
Traceback: Any = _jax.Traceback
weakref_lru_cache: Any = _weakref_lru_cache.weakref_lru_cache
safe_map: Any = utils.safe_map
safe_zip: Any = utils.safe_zip


def install_config_slots(enable_x64: object, disable_jit: object, post_hook: object) -> None:
    """Give C++ the three configuration objects that it reads in every call of a jitted function."""
    _jax.jax_jit.set_enable_x64_state(enable_x64)
    _jax.jax_jit.set_disable_jit_state(disable_jit)
    _jax.jax_jit.set_post_hook_state(post_hook)
