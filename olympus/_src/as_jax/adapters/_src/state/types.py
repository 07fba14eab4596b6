"""`jax._src.state.types`: Flax's nnx asks of every leaf whether it is a reference."""

from ....stand_ins import planned

__all__ = []
__getattr__ = planned(__name__, "references", "AbstractRef ReadEffect WriteEffect AccumEffect "
                      "RefEffect StateEffect TransformedRef")
