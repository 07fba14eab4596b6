"""How names of Olympus are shown, and which other names it answers to: `olympus.as_jax` sets this.

What is here is read where something is printed, raised or missed, and when a program is recorded
that carries other programs; never on the way of a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

shown: Callable[[str], str] = str
"""Text of ours as it is shown to the user."""

# (primitive, params) -> params
NamedParams = Callable[[Any, dict[str, Any]], dict[str, Any]]
named_params: NamedParams | None = None
"""Makes the params of an equation, of this primitive, answer to other names, too."""

foreign_params: NamedParams | None = None
"""The params as a trace of a user's class is given them, all by the other names."""

array_methods = ("__olympus_array__",)
"""The methods by which an object of another class says what array it is."""


namespace = "olympus.numpy"
"""The module that arrays say has the functions of the array API standard."""


def answer_to(show: Callable[[str], str], params: NamedParams, foreign: NamedParams, array: str,
              numpy: str) -> None:
    """Show names by `show`, and answer to other names of params, array method and namespace."""
    global shown, named_params, foreign_params, array_methods, namespace
    shown, named_params, foreign_params, namespace = show, params, foreign, numpy
    array_methods = ("__olympus_array__", array)


def array_method(x: object) -> Callable[[], object] | None:
    """The method that converts an object of another class to an array; None if it has none.

    >>> class Two:
    ...     def __olympus_array__(self):
    ...         return 2
    >>> array_method(Two())(), array_method(2)
    (2, None)
    """
    for name in array_methods:
        if hasattr(x, name):
            return getattr(x, name)
    return None
