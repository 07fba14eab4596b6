"""`jax.experimental`: Flax's variables ask for the types of mutable values."""

from ...stand_ins import planned

__all__ = []

__getattr__ = planned(__name__, "types of users (hijax)", "cur_qdd primal_tangent_dtype EArray")
