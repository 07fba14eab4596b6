"""Shardings as XLA's messages: names only."""

from .._src.base.lib import GSPMDSharding
from .._src.base.lib.proto import (
    get_hlo_sharding_from_serialized_proto, get_op_sharding_from_serialized_proto,
    get_serialized_proto_from_hlo_sharding,
)
from .._src.base.util import publish as _publish

__all__ = [
    "GSPMDSharding", "get_hlo_sharding_from_serialized_proto",
    "get_op_sharding_from_serialized_proto", "get_serialized_proto_from_hlo_sharding",
]

_publish(__name__)
