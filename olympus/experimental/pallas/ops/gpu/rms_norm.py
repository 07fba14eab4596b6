"""RMS normalisation: names only."""

from ....._src.base.util import publish as _publish
from ....._src.kernel_library.norms import rms_norm, rms_norm_reference

__all__ = ["rms_norm", "rms_norm_reference"]

_publish(__name__)
