"""Every exception class of Olympus. They take ready strings; `core.trace.describe` composes those.

Each says its message in lines, and which page of docs/errors shows how it comes about and its mend.

    Exception
     +- RuntimeError
     |   +- OlympusRuntimeError            compiler, runtime (jaxlib's C++ class itself), memory
     |       +- DonatedArgumentError       a donated or deleted array is used again
     |   +- RetraceError                   a function is traced more often than it may be
     |   +- StaleValueError a value that a traced function read has changed
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
     |   +- IncompatibleDevicesError       arguments of one call on different devices
     +- NotImplementedError
     |   +- RuleMissingError               a primitive lacks the rule that was asked for
     +- InconclusiveDimensionOperation     a comparison of symbolic dimensions is undecided
"""

from __future__ import annotations

from typing import ClassVar

from .lib import XlaRuntimeError as OlympusRuntimeError
from .messages import in_lines


class _WithPage(Exception):
    """An exception that has a page in docs/errors; the text is made when it is shown.

    A subclass of the user's has the page of ours that it derives from.
    """

    page: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__:
            cls.page = f"docs/errors/{cls.__name__}.md"

    def __str__(self) -> str:
        return f"{in_lines(Exception.__str__(self))}\n  See {self.page}"


def said(error: Exception) -> str:
    """An error's message without the link to its page, for other messages to quote."""
    return Exception.__str__(error) if isinstance(error, _WithPage) else str(error)


class DonatedArgumentError(_WithPage, OlympusRuntimeError):
    """An array is used after it was donated to a call, or deleted."""


class RetraceError(_WithPage, RuntimeError):
    """A jitted function is traced more often than its `max_traces` allows."""


class RetraceWarning(_WithPage, UserWarning):
    """A jitted function is traced again and again, or more often than `jit(max_traces=…)` says."""


class StaleValueError(_WithPage, RuntimeError):
    """A jitted function read a value, besides its arguments, that has changed since."""


class StaleValueWarning(_WithPage, UserWarning):
    """A jitted function's program has the old value of something; or no guard can see whether."""


class OLYMPUSTypeError(_WithPage, TypeError):
    """Base of the errors that misuse of traced values raises."""


class OLYMPUSIndexError(_WithPage, IndexError):
    """Base of indexing errors that tracing causes."""


class ConcretizationTypeError(OLYMPUSTypeError):
    """Python needs the value of an array that is known only by shape and dtype.

    Remedies: mark the argument static (`static_argnums`, `static_argnames`), or use
    `olympus.numpy.where`, `olympus.lax.cond` or `olympus.lax.while_loop`.
    """

    def __init__(self, tracer: object, context: str = "") -> None:
        super().__init__(f"{tracer}\n{context}" if context else str(tracer))


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced array decides a Python `if`, `while`, `and`, `or`, `not` or `assert`."""


class TracerIntegerConversionError(OLYMPUSTypeError):
    """A traced array is used where Python needs an int: an index of a list, a shape, `range`."""

    def __init__(self, tracer: object) -> None:
        super().__init__(str(tracer))


class TracerArrayConversionError(OLYMPUSTypeError):
    """A traced array is handed to NumPy, which needs its values."""

    def __init__(self, tracer: object) -> None:
        super().__init__(str(tracer))


class UnexpectedTracerError(OLYMPUSTypeError):
    """A traced value is used after its transformation ended, or in another thread."""


class LeakError(UnexpectedTracerError):
    """A traced value is still referenced when its transformation ends."""


class NonConcreteBooleanIndexError(OLYMPUSIndexError):
    """A traced mask indexes an array, so the result's shape would depend on values.

    Remedies: `olympus.numpy.where(mask, x, 0)`, or `nonzero(mask, size=...)`.
    """

    def __init__(self, tracer: object) -> None:
        super().__init__(str(tracer))


class IndexTypeError(_WithPage, TypeError, IndexError):
    """An index of a type that no index has: a TypeError, and an IndexError as NumPy's."""


class IndexValueError(_WithPage, ValueError, IndexError):
    """Index arrays that do not broadcast: a ValueError, and an IndexError as NumPy's."""


class FormatError(_WithPage, ValueError, IndexError, KeyError):
    """A format string has a field without an argument; the errors that `str.format` raises."""


class KeyReuseError(OLYMPUSTypeError):
    """A random key is used twice; split it first."""


class ShardingTypeError(OLYMPUSTypeError):
    """Shardings of operands do not fit together."""


class OlympusprTypeError(_WithPage, TypeError):
    """A program fails its type check: the pass that made it is wrong."""


class TypePromotionError(_WithPage, ValueError):
    """Dtypes have no implicit promotion; cast one of the operands."""


class IncompatibleDevicesError(_WithPage, ValueError):
    """Parts of one program, or its arguments, are bound to different devices."""


class RuleMissingError(_WithPage, NotImplementedError):
    """A transformation needs a rule that the primitive does not have."""


class InconclusiveDimensionOperation(_WithPage):
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
