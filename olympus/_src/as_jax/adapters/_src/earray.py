"""`jax._src.earray`: Flax makes arrays of extended dtypes by it. Ours are made by conversion."""

from ...stand_ins import planned

__all__ = []
__getattr__ = planned(__name__, "arrays of extended dtypes", "EArray")
