"""composite: a named operation with a definition, which compilers may recognise by its name.

Lowering emits one `stablehlo.composite`, unless sizes are symbolic. Derivatives and vmap transform
the definition: their programs no longer compute the operation of that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import errors
from ..base.source import api_boundary
from ..base.typing import IrValue, P, R
from ..base.util import WithAux
from ..control.bodies import check_callable, flatten
from ..control.call import Defined
from ..core.ir import ClosedOlympuspr, DebugInfo, OlympusprEqn
from ..core.primitive import Builder
from ..core.staging import closure_convert, stage
from ..core.trace import Tracer, describe, typeof
from ..lowering.attributes import element_type
from ..types import dtypes
from ..types.shape import is_static
from ..types.tree import tree_flatten, tree_unflatten

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+")


class CompositeOp(Defined):
    """params: olympuspr, name, version, attributes (pairs of a name and MLIR text)."""

    def lower(self, b: Builder, *args: IrValue, olympuspr: ClosedOlympuspr, name: str, version: int,
              attributes: tuple[tuple[str, str], ...]) -> list[IrValue]:
        if not all(is_static(aval.shape) for aval in (*b.avals_in, *b.avals_out)):
            return b.call_inline(olympuspr, args)   # XLA does not refine a definition's sizes
        return b.composite(olympuspr, args, name, version, dict(attributes))

    def dce(self, used: Sequence[bool], eqn: OlympusprEqn) -> OlympusprEqn:
        return eqn      # the operation stays, with all its results


composite_p = CompositeOp("composite")


def composite(decomposition: Callable[P, R], name: str, version: int = 0
              ) -> Callable[P, R]:
    """A function that is one named operation in lowered programs.

    Args:
      decomposition: the definition, a function of pytrees of arrays; keyword arguments are static
        and become attributes of the operation: numbers, strings, dtypes, NumPy arrays, and
        lists and dicts of these (None is left out).
      name: "namespace.operation".
      version: of the operation, an int.
    Returns: A function of the same arguments. ValueError for other names, TypeError for attributes
      of other types, UnexpectedTracerError for traced values that are no positional arguments.

    A compiler that does not know the name uses the definition; so do derivatives and vmap.

    >>> twice = olympus.lax.composite(lambda x, *, by: by * x, "my.scale", 1)
    >>> print(twice(3.0, by=2.0))
    6.0
    """
    check_callable("composite", decomposition=decomposition)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"composite: name {name!r} given; a namespace and a name, such as "
                         "'my_library.my_op', is required.")
    if type(version) is not int or not 0 <= version < 2**31:
        raise ValueError(f"composite: version {version!r} given; an int from 0 is required.")

    @api_boundary
    def call(*args: Any, **attributes: Any) -> Any:
        texts = {key: attribute_text(f"composite {name}: attribute {key}", value)
                 for key, value in attributes.items()}
        leaves, avals, tree = flatten(f"composite {name}", args)
        with_aux = WithAux(lambda *xs: tree_flatten(
            decomposition(*tree_unflatten(tree, xs), **attributes)))
        closed, tracers = closure_convert(stage(with_aux, avals, DebugInfo("composite", name)))
        if tracers and not isinstance(tracers[0], Tracer):
            raise TypeError(f"composite {name}: the decomposition closes over the reference "
                            f"{typeof(tracers[0])}; arrays are operands of the operation, and "
                            "results; read the reference before, and write it after the call.")
        if tracers:
            raise errors.UnexpectedTracerError(
                f"composite {name}: Found an Olympus Tracer as a constant in the decomposition for "
                f"the composite op '{name}': it closes over {describe(tracers[0])}; traced "
                "values are operands of the operation; pass it as a positional argument.")
        # Sorted, because the order of keywords means nothing; None is left out.
        outs = composite_p.bind(*leaves, olympuspr=closed, name=name, version=version,
                                attributes=tuple((k, v) for k, v in sorted(texts.items()) if v))
        return tree_unflatten(with_aux.aux, outs)

    return call


def attribute_text(what: str, value: object) -> str:
    """The MLIR text of a Python value; "" for None."""
    if isinstance(value, Tracer):
        raise errors.UnexpectedTracerError(
            f"{what} is {describe(value)}: Found an Olympus Tracer as an attribute in the "
            "decomposition for the composite op; a static value is required; pass the array as a "
            "positional argument.")
    if value is None:
        return ""
    # MLIR has few escapes, but takes any byte in hex.
    if isinstance(value, str):
        return '"' + "".join(c if c.isalnum() or c in " _-.,:/" else "".join(
            f"\\{byte:02X}" for byte in c.encode()) for c in value) + '"'
    if isinstance(value, dict):
        items = [(key, attribute_text(f"{what}[{key!r}]", x)) for key, x in value.items()]
        return "{" + ", ".join(f"{_key(what, key)} = {text}" for key, text in items if text) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(attribute_text(f"{what}[{i}]", x) or "unit"
                               for i, x in enumerate(value)) + "]"
    if type(value) is bool:
        return "true" if value else "false"
    if isinstance(value, (int, float, np.generic, np.ndarray)):
        return _number_text(what, np.asarray(value))
    if isinstance(value, np.dtype):
        return str(element_type(dtypes.as_dtype(value)))
    raise TypeError(f"{what} is {value!r} of type {type(value).__name__}; numbers, strings, "
                    "dtypes, NumPy arrays, and lists and dicts of those are required; pass arrays "
                    "as positional arguments.")


def _key(what: str, key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{what} has the key {key!r}; strings are required.")
    return attribute_text(what, key)


def _number_text(what: str, array: np.ndarray) -> str:
    """The MLIR text of a NumPy scalar or array, bit for bit."""
    kind = dtypes.scalar_kind(array.dtype)
    if kind not in "biuf":
        raise TypeError(f"{what} is {array.dtype}; real numbers are required.")
    name = str(element_type(dtypes.as_dtype(array.dtype)))
    if array.ndim:
        shape = "".join(f"{n}x" for n in array.shape)
        words = array.astype("u1") * 255 if kind == "b" else array
        data = "" if not array.size else f'"0x{np.ascontiguousarray(words).tobytes().hex()}"'
        return f"dense<{data}> : tensor<{shape}{name}>"
    if kind == "b":
        return "true" if array else "false"
    if kind in "iu":
        return f"{int(array)} : {name}"
    bits = int.from_bytes(array.tobytes(), "little")
    return f"0x{bits:0{2 * array.itemsize}X} : {name}"
