"""`jax.experimental.colocated_python.func`: Orbax names it at import."""

from ....stand_ins import planned

__all__ = []
__getattr__ = planned(__name__, "Pathways", "_make_prng_wrapped_fun make_callable")
