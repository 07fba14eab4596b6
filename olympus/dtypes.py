"""Dtypes: promotion, predicates and the dtypes that NumPy does not know."""

from ._src.base.util import publish as _publish
from ._src.base.errors import TypePromotionError
from ._src.types.dtypes import (
    bfloat16, canonicalize_dtype, extended, finfo, float0, iinfo, issubdtype, itemsize_bits,
    prng_key, result_type, scalar_type_of,
)

__all__ = [
    "TypePromotionError", "bfloat16", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo",
    "issubdtype", "itemsize_bits", "prng_key", "result_type", "scalar_type_of",
]

_publish(__name__)
