"""What tests of functions of yours assert about their derivatives."""

from ._src.base.util import publish as _publish
from ._src.autodiff.check_grads import check_grads, check_jvp, check_vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]

_publish(__name__)
