"""The exceptions that users catch; their tree is drawn in `olympus._src.base.errors`."""

from ._src.base.util import publish as _publish
from ._src.base.errors import (
    ConcretizationTypeError, InconclusiveDimensionOperation, KeyReuseError,
    NonConcreteBooleanIndexError, OLYMPUSIndexError, OlympusprTypeError, OlympusRuntimeError,
    OLYMPUSTypeError, TracerArrayConversionError, TracerBoolConversionError,
    TracerIntegerConversionError, UnexpectedTracerError,
)

__all__ = [
    "ConcretizationTypeError", "InconclusiveDimensionOperation", "KeyReuseError",
    "NonConcreteBooleanIndexError", "OLYMPUSIndexError", "OLYMPUSTypeError", "OlympusRuntimeError",
    "OlympusprTypeError", "TracerArrayConversionError", "TracerBoolConversionError",
    "TracerIntegerConversionError", "UnexpectedTracerError",
]

_publish(__name__)
