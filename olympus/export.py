"""Programs that leave the process, and shapes that are no numbers."""

from ._src.base.util import publish as _publish
from ._src.export.exported import (
    DisabledSafetyCheck, Exported, default_export_platform, deserialize, export,
    maximum_supported_calling_convention_version, minimum_supported_calling_convention_version,
)
from ._src.export.iree import to_iree
from ._src.export.nodes import register_namedtuple_serialization, register_pytree_node_serialization
from ._src.export.onnx import to_onnx
from ._src.export.symbolic_args import symbolic_args_specs
from ._src.types.scopes import SymbolicScope, symbolic_dim_bounds, symbolic_shape
from ._src.types.symbolic import is_symbolic_dim

__all__ = [
    "DisabledSafetyCheck", "Exported", "SymbolicScope", "default_export_platform", "deserialize",
    "export", "is_symbolic_dim", "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version", "register_namedtuple_serialization",
    "register_pytree_node_serialization", "symbolic_args_specs", "symbolic_dim_bounds",
    "symbolic_shape", "to_iree", "to_onnx",
]

_publish(__name__)
