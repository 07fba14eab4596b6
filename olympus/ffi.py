"""Foreign functions: code in C++, or any language that can make handlers of XLA's FFI, in programs.
"""

from ._src.base.util import publish as _publish
from ._src.host.ffi import (
    build_ffi_lowering_function, ffi_call, ffi_lowering, include_dir, pycapsule,
    register_ffi_target, register_ffi_target_as_batch_partitionable, register_ffi_type,
    register_ffi_type_id,
)
from ._src.types.avals import abstract_token

__all__ = [
    "abstract_token", "build_ffi_lowering_function", "ffi_call", "ffi_lowering", "include_dir",
    "pycapsule", "register_ffi_target", "register_ffi_target_as_batch_partitionable",
    "register_ffi_type", "register_ffi_type_id",
]

_publish(__name__)
