"""Names that adapters have and no other module of ours: what stands for JAX's own, mostly private.

`adapters.py` says which modules of JAX have them, and who asks.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np

from ..base import source
from ..base.typing import Array
from ..core.trace import ThreadState, ctx
from ..devices.devices import _clients
from ..numpy import promote
from ..types import dtypes
from ..types.tree_registry import is_tree_node

DType = np.dtype
global_result_handlers = MappingProxyType({})       # results are made elsewhere
_backends = MappingProxyType(_clients)              # those that have started


def trace_state_clean() -> bool:
    """Whether operations run at once: no function is being traced or transformed."""
    return ctx.trace is ThreadState.trace


def supports_inf(dtype: Any) -> bool:
    """Whether a floating dtype has an infinity."""
    return bool(np.isinf(np.asarray(np.inf, dtypes.as_dtype(dtype))))


class TypedNdArray:
    """A NumPy array with a weak type, as JAX's programs have them; there are none here."""


def promote_dtypes(*args: object) -> list[Array]:
    """The operands at the dtype that they have together."""
    return [promote.to_array(x) for x in promote.promote_dtypes("promote_dtypes", *args)]


def promote_dtypes_inexact(*args: object) -> list[Array]:
    """The operands at a dtype of floats or complex numbers that they have together."""
    return [promote.to_array(x) for x in promote.inexact_dtypes("promote_dtypes_inexact", *args)]


def promote_dtypes_complex(*args: object) -> list[Any]:
    """The operands at a dtype of complex numbers that they have together."""
    return [promote.convert(x, dtypes.to_complex_dtype(x.dtype))
            for x in promote_dtypes_inexact(*args)]


def api_boundary(fun: Callable[..., Any] | None = None, **options: object) -> object:
    """Decorator of public functions: errors leave them without inner frames."""
    return source.api_boundary if fun is None else source.api_boundary(fun)


def include_frame(frame: Any) -> bool:
    """Whether tracebacks show a frame."""
    return not source.is_hidden(frame.f_code.co_filename)


class Registry:
    """The classes that are nodes of pytrees."""

    def __contains__(self, kind: object) -> bool:
        return isinstance(kind, type) and is_tree_node(kind)


_registry = Registry()


def cdiv(a: int, b: int) -> int:
    """The quotient, rounded up."""
    return -(-a // b)


def next_power_of_2(x: int) -> int:
    """The least power of two that is not less than a positive `x`."""
    return 1 << (x - 1).bit_length()
