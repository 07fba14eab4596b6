"""`jax.interpreters.xla`: TensorFlow Probability registers its variables in its tables."""

from ...foreign import canonicalize_dtype_handlers, pytype_aval_mappings

__all__ = ["canonicalize_dtype_handlers", "pytype_aval_mappings"]
