"""Assertions about the derivatives of your functions, for tests."""

from ._src.base.util import publish as _publish
from ._src.autodiff.check_grads import check_grads, check_jvp, check_vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]

_publish(__name__)
