"""`jax.extend.ifrt_programs`: Orbax names it at import; it runs on Pathways only."""

from ...stand_ins import planned

__all__ = []
__getattr__ = planned(__name__, "Pathways", "ifrt_programs")
