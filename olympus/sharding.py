"""Where the parts of arrays are: meshes, specifications and shardings; names only."""

from ._src.base.config import no_collectives
from ._src.base.util import publish as _publish
from ._src.lax.meshes import get_mesh, set_mesh
from ._src.lax.sharding import auto_axes, explicit_axes, reshard
from ._src.types.mesh import (
    AbstractDevice, AbstractMesh, AxisType, ManualAxisType, Mesh, UnreducedKind, get_abstract_mesh,
    use_abstract_mesh,
)
from ._src.types.sharding import (
    NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding, make_single_device_sharding,
)

__all__ = ["AbstractDevice", "AbstractMesh", "AxisType", "ManualAxisType", "Mesh",
           "NamedSharding", "PartitionSpec", "Sharding", "SingleDeviceSharding", "UnreducedKind",
           "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh",
           "make_single_device_sharding", "no_collectives", "reshard", "set_mesh",
           "use_abstract_mesh"]

_publish(__name__)
