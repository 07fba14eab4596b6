"""`jax.experimental.colocated_python.serialization`: Orbax names it at import."""

from ....stand_ins import planned

__all__ = []
__getattr__ = planned(__name__, "Pathways", "_deserialize _serialize _deserialize_specs "
                      "_serialize_specs colocated_cpu_devices")
