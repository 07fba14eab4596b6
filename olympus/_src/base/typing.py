"""Types for signatures: what counts as an array, a dtype, a shape, an axis.

NumPy's own typing module is not imported: it takes longer to load than this layer does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from .array_type import Array, Device  # what jaxlib's C++ classes do not tell of their methods
    from .lib.mlir import ir
else:
    from .lib import Array, Device as Device


@runtime_checkable
class SupportsDType(Protocol):
    """Anything with a `dtype`: arrays and scalar types such as `olympus.numpy.float32`."""

    @property
    def dtype(self) -> np.dtype: ...


@runtime_checkable
class DuckTypedArray(Protocol):
    """Anything with a dtype and a shape, which is all that tracing needs: ShapeDtypeStruct."""

    @property
    def dtype(self) -> Any: ...

    @property
    def shape(self) -> tuple[int, ...]: ...


# A base class of what checkers take for arrays: values that are traced, and constants of programs.
ArrayToCheckers: Any = Array if TYPE_CHECKING else object
# And of symbolic dimensions and of dtypes of keys: to checkers these are ints and NumPy's dtypes.
DimToCheckers: Any = int if TYPE_CHECKING else object
DTypeToCheckers: Any = np.dtype if TYPE_CHECKING else object
StaticScalar: TypeAlias = np.bool_ | np.number | bool | int | float | complex
ArrayLike: TypeAlias = Array | np.ndarray | StaticScalar
DType: TypeAlias = np.dtype
DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
DimSize: TypeAlias = int
Shape: TypeAlias = Sequence[int]
Axis: TypeAlias = int | Sequence[int] | None
Axes: TypeAlias = int | Sequence[int]
Reference: TypeAlias = Any      # a reference, eager or traced, or a part of one
PyTree: TypeAlias = Any
Value: TypeAlias = Any          # an array, or an object of a class whose type a user defines
MappedAxis: TypeAlias = Any     # of an array an int, of such an object a MappingSpec; or None
AxisName: TypeAlias = Hashable | Sequence[Hashable]     # of one named axis, or of several
AxisIndexGroups: TypeAlias = Sequence[Sequence[int]] | None
T = TypeVar("T")        # what comes back as it was given: a pytree, items of a list
P = ParamSpec("P")      # the parameters and the result of a user's function, which is a pytree
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
# Names for rules and passes; `core/primitive.py` has tangents, beside `Zero` and `Linear`.
Modes: TypeAlias = tuple[str | None, str | None]    # `hold` and `kernels`, as `jit` takes them
Params: TypeAlias = dict[str, Any]      # of an equation, by name
IrValue: TypeAlias = "ir.Value"
IrType: TypeAlias = "ir.Type"
IrAttribute: TypeAlias = "ir.Attribute"
IrModule: TypeAlias = "ir.Module"
IrBlock: TypeAlias = "ir.Block"
IrOperation: TypeAlias = "ir.Operation | ir.OpView"
