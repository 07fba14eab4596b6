"""`jax.experimental.colocated_python`: Orbax names it at import; it runs on Pathways only."""

from ....stand_ins import planned

__all__ = []
__getattr__ = planned(__name__, "Pathways", "colocated_cpu_devices colocated_python "
                      "colocated_python_class deserialize serialize")
