"""Exchange of arrays with other libraries through DLPack."""

from ._src.base.util import publish as _publish
from ._src.numpy.array_api import dlpack_array as from_dlpack
from ._src.numpy.array_api import is_supported_dtype

__all__ = ["from_dlpack", "is_supported_dtype"]

_publish(__name__)
