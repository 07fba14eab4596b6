"""`jax.core`: TensorFlow Probability registers its variables in a table of it."""

from ..foreign import pytype_aval_mappings

__all__ = ["pytype_aval_mappings"]
HOMES = ("olympus.extend.core",)
