"""MLIR's own Python bindings, as jaxlib ships them: what lowering rules are written with."""

from ..._src.base.util import publish as _publish
from ..._src.extend.registration import lower_with_sharding_in_types
from ..._src.base.lib.mlir import (
    deserialize_portable_artifact, hlo_to_stablehlo, ir, passmanager, refine_polymorphic_shapes,
    serialize_portable_artifact,
)
from . import dialects

__all__ = [
    "deserialize_portable_artifact", "dialects", "hlo_to_stablehlo", "ir",
    "lower_with_sharding_in_types", "passmanager", "refine_polymorphic_shapes",
    "serialize_portable_artifact",
]

_publish(__name__)
