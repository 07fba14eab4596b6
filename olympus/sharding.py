"""Where the parts of arrays are: meshes, specifications and shardings; names only."""

from ._src.types.sharding import (
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    make_single_device_sharding,
)

__all__ = ["AxisType", "Mesh", "NamedSharding", "PartitionSpec", "Sharding",
           "SingleDeviceSharding", "make_single_device_sharding"]
