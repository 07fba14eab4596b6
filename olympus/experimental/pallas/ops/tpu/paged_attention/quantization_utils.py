"""Numbers in 8 bits with a scale for each row: names only."""

from ......_src.base.util import publish as _publish
from ......_src.kernel_library.quantization import (
    MAX_INT8, QuantizedTensor, from_int8, get_quantization_scales, quantize_to_int8, to_int8,
    unquantize_from_int8,
)

__all__ = [
    "MAX_INT8", "QuantizedTensor", "from_int8", "get_quantization_scales", "quantize_to_int8",
    "to_int8", "unquantize_from_int8",
]

_publish(__name__)
