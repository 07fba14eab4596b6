"""What kernels of splash attention read of a mask: names only."""

from ......_src.base.util import publish as _publish
from ......_src.kernel_library.mask_info import (
    MaskInfo, process_dynamic_mask, process_dynamic_mask_dkv, process_mask, process_mask_dkv,
)

__all__ = [
    "MaskInfo", "process_dynamic_mask", "process_dynamic_mask_dkv", "process_mask",
    "process_mask_dkv",
]

_publish(__name__)
