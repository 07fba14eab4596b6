"""Names for gradients that are added to references: see `vjp(…)[1].with_refs`."""

from ._src.base.util import publish as _publish
from ._src.autodiff.grad_refs import DidntWant, DontWant, GradRef, GradValue

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]

_publish(__name__)
