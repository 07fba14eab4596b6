"""`jax.experimental.colocated_python.serialization`: Orbax names it at import."""

from ....stand_ins import planned

__all__ = []
__getattr__ = planned(
    __name__, "Pathways", "DeviceList _deserialize _deserialize_specs _get_cpu_device_map "
    "_reduce_device_list _reduce_mesh _reduce_single_device_sharding _serialize _serialize_specs "
    "colocated_cpu_devices xb")
