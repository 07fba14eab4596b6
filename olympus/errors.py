"""The exceptions that users catch; their tree is drawn in `olympus._src.base.errors`."""

from ._src.base.util import publish as _publish
from ._src.base.errors import (
    ConcretizationTypeError, DonatedArgumentError, FormatError, IncompatibleDevicesError,
    InconclusiveDimensionOperation,
    IndexTypeError, IndexValueError, KeyReuseError, LeakError, NonConcreteBooleanIndexError,
    OLYMPUSIndexError, OlympusprTypeError, OlympusRuntimeError, OLYMPUSTypeError, RetraceError,
    RetraceWarning, RuleMissingError,
    ShardingTypeError, StaleValueError, StaleValueWarning,
    TracerArrayConversionError, TracerBoolConversionError,
    TracerIntegerConversionError, UnexpectedTracerError,
)

__all__ = [
    "ConcretizationTypeError", "DonatedArgumentError", "FormatError",
    "IncompatibleDevicesError", "InconclusiveDimensionOperation",
    "IndexTypeError", "IndexValueError", "KeyReuseError",
    "LeakError", "NonConcreteBooleanIndexError", "OLYMPUSIndexError",
    "OLYMPUSTypeError", "OlympusRuntimeError", "OlympusprTypeError", "RetraceError",
    "RetraceWarning", "RuleMissingError", "ShardingTypeError", "StaleValueError",
    "StaleValueWarning",
    "TracerArrayConversionError", "TracerBoolConversionError",
    "TracerIntegerConversionError", "UnexpectedTracerError",
]

_publish(__name__)
