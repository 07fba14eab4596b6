"""Parameters that are spelt in Olympus's way, taken by JAX's name as well."""

from __future__ import annotations

import types

from ..base.util import wraps
from . import spellings

# Parameters that JAX 0.10.2 calls otherwise than 0.12 and Olympus do.
_RENAMED = {("make_mesh", "axis_shapes"): "axis_sizes"}


def respelled(value: object) -> object:
    """A function that takes JAX's names of its parameters, too; anything else as it is.

    The few functions that have such parameters are wrapped, and no other.
    """
    if type(value) is not types.FunctionType:
        return value
    code = value.__code__
    parameters = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    ours = {theirs: name for (function, theirs), name in _RENAMED.items()
            if function == code.co_name and name in parameters}
    if not (ours or any("olympus" in name for name in parameters)):
        return value

    @wraps(value)
    def function(*args: object, **options: object) -> object:
        return value(*args, **{ours.get(k) or spellings.ours(k): v for k, v in options.items()})
    return function
