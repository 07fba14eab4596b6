"""Derivatives with respect to sparse arrays: names only."""

from ..._src.base.util import publish as _publish
from ..._src.sparse.derivatives import (
    flatten_fun_for_sparse_ad, grad, is_sparse, jacfwd, jacobian, jacrev, value_and_grad,
)

__all__ = [
    "flatten_fun_for_sparse_ad", "grad", "is_sparse", "jacfwd", "jacobian", "jacrev",
    "value_and_grad",
]

_publish(__name__)
