"""Experimental names, which may still change. Modules are imported when first named."""

import typing as _typing

from .._src.base.util import publish as _publish
from .._src.base.util import submodules as _submodules
from .._src.host.callbacks import io_callback

__all__ = ["io_callback"]

_publish(__name__)
if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import (
        array_serialization as array_serialization, buffer_callback as buffer_callback,
        checkify as checkify,
        compilation_cache as compilation_cache,
        compute_on as compute_on, control_deps as control_deps,
        custom_partitioning as custom_partitioning, fused as fused,
        hiolympus as hiolympus, jet as jet,
        key_reuse as key_reuse, layout as layout, mesh_utils as mesh_utils,
        multihost_utils as multihost_utils, ode as ode, overlap as overlap,
        pallas as pallas, pjit as pjit,
        profiler as profiler, random as random, rnn as rnn, roofline as roofline,
        scheduling_groups as scheduling_groups,
        serialize_executable as serialize_executable, shard_alike as shard_alike,
        shard_map as shard_map, sparse as sparse, topologies as topologies,
        xla_metadata as xla_metadata,
    )
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
