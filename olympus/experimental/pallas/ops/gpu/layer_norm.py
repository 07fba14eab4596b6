"""Layer normalisation: names only."""

from ....._src.base.util import publish as _publish
from ....._src.kernel_library.norms import layer_norm, layer_norm_reference

__all__ = ["layer_norm", "layer_norm_reference"]

_publish(__name__)
