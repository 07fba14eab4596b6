"""Parameters that are spelt in Olympus's way, taken by JAX's name as well."""

from __future__ import annotations

import types

from ..base.util import wraps
from . import spellings


def respelled(value: object) -> object:
    """A function that takes JAX's names of its parameters, too; anything else as it is.

    The few functions that have such parameters are wrapped, and no other.
    """
    if type(value) is not types.FunctionType:
        return value
    code = value.__code__
    parameters = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    if not any("olympus" in name for name in parameters):
        return value

    @wraps(value)
    def function(*args: object, **options: object) -> object:
        return value(*args, **{spellings.ours(k): v for k, v in options.items()})
    return function
