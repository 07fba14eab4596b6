"""`jax._src.literals`: Equinox and jaxtyping count its classes as arrays. Ours are arrays."""

__all__ = ["LiteralArray", "TypedNdArray"]


class TypedNdArray:
    """A NumPy array with a weak type, as JAX's programs have them; there are none here."""


LiteralArray = TypedNdArray
