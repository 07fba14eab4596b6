"""Every exception class of Olympus. They take ready strings; `core.describe` composes those.

    Exception
     +- RuntimeError
     |   +- OlympusRuntimeError            compiler, runtime (jaxlib's C++ class itself), memory
     |       +- DonatedArgumentError       a donated or deleted array is used again
     |   +- RetraceError                   a function is traced more often than it may be
     |   +- StaleValueError                what a traced function read has changed
     +- TypeError
     |   +- OLYMPUSTypeError               a misuse of traced values
     |   |   +- ConcretizationTypeError    Python needs the value of a traced array
     |   |   |   +- TracerBoolConversionError       `if x > 0` on a traced array
     |   |   +- TracerArrayConversionError          `np.sin(x)` on a traced array
     |   |   +- TracerIntegerConversionError        `range(n)`, `list[n]` on a traced array
     |   |   +- UnexpectedTracerError      a traced value outlives its transformation
     |   |   |   +- LeakError              found by `olympus_check_tracer_leaks`
     |   |   +- KeyReuseError              a random key is used twice
     |   |   +- ShardingTypeError          shardings of operands do not fit together
     |   +- OlympusprTypeError             a program fails its type check
     +- IndexError
     |   +- OLYMPUSIndexError              indexing that needs values of a traced array
     |       +- NonConcreteBooleanIndexError        `x[mask]` with a traced mask
     +- TypeError, IndexError
     |   +- IndexTypeError                 an index of no type that an index has
     +- ValueError, IndexError
     |   +- IndexValueError                index arrays that do not broadcast
     +- ValueError, IndexError, KeyError
     |   +- FormatError                    a format string has a field without an argument
     +- ValueError
     |   +- TypePromotionError             dtypes without an implicit promotion
     +- NotImplementedError
     |   +- RuleMissingError               a primitive lacks the rule that was asked for
     +- InconclusiveDimensionOperation     a comparison of symbolic dimensions is undecided
"""

from __future__ import annotations

from typing import Any

from .lib import XlaRuntimeError as OlympusRuntimeError

__all__ = [
    "ConcretizationTypeError", "DonatedArgumentError", "FormatError",
    "InconclusiveDimensionOperation",
    "IndexTypeError", "IndexValueError", "KeyReuseError", "LeakError",
    "NonConcreteBooleanIndexError", "OLYMPUSIndexError", "OLYMPUSTypeError",
    "OlympusIndexError", "OlympusRuntimeError", "OlympusTypeError", "OlympusprTypeError",
    "RetraceError", "RetraceWarning", "RuleMissingError", "ShardingTypeError",
    "StaleValueError", "StaleValueWarning",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError",
    "TypePromotionError", "UnexpectedTracerError",
]


class DonatedArgumentError(OlympusRuntimeError):
    """An array is used after it was donated to a call, or deleted."""


class RetraceError(RuntimeError):
    """A jitted function is traced more often than its `max_traces` allows."""


class RetraceWarning(UserWarning):
    """A jitted function is traced again and again, or more often than `jit(max_traces=…)` says."""


class StaleValueError(RuntimeError):
    """A jitted function read a value, besides its arguments, that has changed since."""


class StaleValueWarning(UserWarning):
    """A jitted function's program has the old value of something; or no guard can see whether."""


class OLYMPUSTypeError(TypeError):
    """Base of the errors that misuse of traced values raises."""


class OLYMPUSIndexError(IndexError):
    """Base of indexing errors that tracing causes."""


class ConcretizationTypeError(OLYMPUSTypeError):
    """Python needs the value of an array that is known only by shape and dtype.

    Remedies: mark the argument static (`static_argnums`, `static_argnames`), or use
    `olympus.numpy.where`, `olympus.lax.cond` or `olympus.lax.while_loop`.
    """

    def __init__(self, tracer: Any, context: str = "") -> None:
        super().__init__(f"{tracer}\n{context}" if context else str(tracer))


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced array decides a Python `if`, `while`, `and`, `or`, `not` or `assert`."""


class TracerIntegerConversionError(OLYMPUSTypeError):
    """A traced array is used where Python needs an int: an index of a list, a shape, `range`."""

    def __init__(self, tracer: Any) -> None:
        super().__init__(str(tracer))


class TracerArrayConversionError(OLYMPUSTypeError):
    """A traced array is handed to NumPy, which needs its values."""

    def __init__(self, tracer: Any) -> None:
        super().__init__(str(tracer))


class UnexpectedTracerError(OLYMPUSTypeError):
    """A traced value is used after its transformation ended, or in another thread."""


class LeakError(UnexpectedTracerError):
    """A traced value is still referenced when its transformation ends."""


class NonConcreteBooleanIndexError(OLYMPUSIndexError):
    """A traced mask indexes an array, so the result's shape would depend on values.

    Remedies: `olympus.numpy.where(mask, x, 0)`, or `nonzero(mask, size=...)`.
    """

    def __init__(self, tracer: Any) -> None:
        super().__init__(str(tracer))


class IndexTypeError(TypeError, IndexError):
    """An index of a type that no index has: a TypeError, and an IndexError as NumPy's."""


class IndexValueError(ValueError, IndexError):
    """Index arrays that do not broadcast: a ValueError, and an IndexError as NumPy's."""


class FormatError(ValueError, IndexError, KeyError):
    """A format string has a field without an argument; the errors that `str.format` raises."""

    __str__ = Exception.__str__     # a KeyError would quote the text


class KeyReuseError(OLYMPUSTypeError):
    """A random key is used twice; split it first."""


class ShardingTypeError(OLYMPUSTypeError):
    """Shardings of operands do not fit together."""


class OlympusprTypeError(TypeError):
    """A program fails its type check: the pass that made it is wrong."""


class TypePromotionError(ValueError):
    """Dtypes have no implicit promotion; cast one of the operands."""


class RuleMissingError(NotImplementedError):
    """A transformation needs a rule that the primitive does not have."""


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic dimensions has no answer that holds for all their values."""


OlympusTypeError = OLYMPUSTypeError
OlympusIndexError = OLYMPUSIndexError

# Tracebacks and pickles name the place that users import from.
for _error in (ConcretizationTypeError, InconclusiveDimensionOperation, KeyReuseError,
               NonConcreteBooleanIndexError, OLYMPUSIndexError, OLYMPUSTypeError,
               OlympusprTypeError, TracerArrayConversionError, TracerBoolConversionError,
               TracerIntegerConversionError, UnexpectedTracerError):
    _error.__module__ = "olympus.errors"
TypePromotionError.__module__ = "olympus.dtypes"
