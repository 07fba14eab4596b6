"""How arrays are cut, as XLA's messages and their bytes."""
# jaxlib has no stubs of its extension modules.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

from jaxlib import _hlo


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """XLA's message OpSharding, parsed from its bytes.

    Args: sharding: the bytes.

    >>> sharding.get_op_sharding_from_serialized_proto(b"").tile_assignment_dimensions
    []
    """
    made = _hlo.OpSharding()
    made.ParseFromString(sharding)
    return made


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """XLA's sharding, parsed from the bytes of its message.

    Args: sharding: the bytes.

    >>> sharding.get_hlo_sharding_from_serialized_proto(b"").is_replicated()
    True
    """
    return _hlo.HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """The bytes of XLA's message of a sharding.

    Args: sharding: an `HloSharding`.
    Returns: Bytes, which `get_hlo_sharding_from_serialized_proto` reads.

    >>> whole = sharding.get_hlo_sharding_from_serialized_proto(b"")
    >>> data = sharding.get_serialized_proto_from_hlo_sharding(whole)
    >>> sharding.get_hlo_sharding_from_serialized_proto(data) == whole
    True
    """
    return sharding.to_proto().SerializeToString()
