"""Iterative solvers of linear systems."""

from ..._src.base.util import publish_bounded as _publish
from ..._src.scipy.krylov import bicgstab, cg, gmres

__all__ = ["bicgstab", "cg", "gmres"]

_publish(__name__)
