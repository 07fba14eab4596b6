"""Functions with transformations around them, for interpreters of one's own."""

from .._src.base.util import publish as _publish
from .._src.core.linear_util import (
    StoreException, WrappedFun, cache, merge_linear_aux, transformation, transformation2,
    transformation_with_aux, transformation_with_aux2, wrap_init,
)

__all__ = [
    "StoreException", "WrappedFun", "cache", "merge_linear_aux", "transformation",
    "transformation2", "transformation_with_aux", "transformation_with_aux2", "wrap_init",
]

_publish(__name__)
