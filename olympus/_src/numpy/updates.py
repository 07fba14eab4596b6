"""`x.at[index].set(y)`: arrays cannot be changed, so a write makes a new array.

Under jit, where `x` is not used afterwards, XLA writes in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..lax import creation
from ..lax.sharding import constrain
from ..loops.while_loop import while_loop
from .conditions import where
from .indexing import read, write
from .promote import array_args, convert
from .ufuncs import divide, power

__all__ = ["at", "setitem"]


class _IndexUpdateHelper:
    """`x.at`: index it to say where."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> _IndexUpdateRef:
        return _IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


class _IndexUpdateRef:
    """`x.at[index]`: its methods read there or return an array that is changed there.

    Of all: `mode` says what happens outside of the bounds ("drop" or "clip" for writes, "clip" or
    "fill" for reads); `indices_are_sorted` and `unique_indices` are promises that can make it
    faster; `wrap_negative_indices` says whether negative indices count from the end.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Any, index: Any) -> None:
        self.array, self.index = array, index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(self, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: Any = None, fill_value: Any = None, out_sharding: Any = None,
            wrap_negative_indices: bool = True) -> Any:
        """`x[index]`; with `mode="fill"` elements outside read as `fill_value` (default NaN)."""
        out = read(self.array, self.index, mode=mode, fill_value=fill_value,
                   unique_indices=unique_indices, indices_are_sorted=indices_are_sorted,
                   wrap_negative_indices=wrap_negative_indices)
        return constrain("at[...].get", out, out_sharding)

    def set(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True) -> Any:
        """`x[index] = values`; of several writes to one element one stays."""
        return write("set", self.array, self.index, values, mode=mode,
                     indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                     out_sharding=out_sharding, wrap_negative_indices=wrap_negative_indices)

    def add(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True) -> Any:
        """`x[index] += values`; repeated indices add repeatedly."""
        return write("add", self.array, self.index, values, mode=mode,
                     indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                     out_sharding=out_sharding, wrap_negative_indices=wrap_negative_indices)

    def subtract(self, values: Any, *, indices_are_sorted: bool = False,
                 unique_indices: bool = False, mode: Any = None, out_sharding: Any = None,
                 wrap_negative_indices: bool = True) -> Any:
        """`x[index] -= values`; repeated indices subtract repeatedly."""
        return write("subtract", self.array, self.index, values, mode=mode,
                     indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                     out_sharding=out_sharding, wrap_negative_indices=wrap_negative_indices)

    def multiply(self, values: Any, *, indices_are_sorted: bool = False,
                 unique_indices: bool = False, mode: Any = None, out_sharding: Any = None,
                 wrap_negative_indices: bool = True) -> Any:
        """`x[index] *= values`; repeated indices multiply repeatedly."""
        return write("multiply", self.array, self.index, values, mode=mode,
                     indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                     out_sharding=out_sharding, wrap_negative_indices=wrap_negative_indices)

    mul = multiply

    def divide(self, values: Any, *, indices_are_sorted: bool = False,
               unique_indices: bool = False, mode: Any = None, out_sharding: Any = None,
               wrap_negative_indices: bool = True) -> Any:
        """`x[index] /= values`; repeated indices divide repeatedly."""
        return divide(self.array, write(
            "multiply", creation.full_like(self.array, 1), self.index, values, mode=mode,
            indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
            out_sharding=out_sharding, wrap_negative_indices=wrap_negative_indices))

    def power(self, values: Any, *, indices_are_sorted: bool = False,
              unique_indices: bool = False, mode: Any = None, out_sharding: Any = None,
              wrap_negative_indices: bool = True) -> Any:
        """`x[index] **= values`; repeated indices apply repeatedly."""
        return power(self.array, write(
            "multiply", creation.full_like(self.array, 1), self.index, values, mode=mode,
            indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
            out_sharding=out_sharding, wrap_negative_indices=wrap_negative_indices))

    def min(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True) -> Any:
        """`x[index] = minimum(x[index], values)`."""
        return write("min", self.array, self.index, values, mode=mode,
                     indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                     out_sharding=out_sharding, wrap_negative_indices=wrap_negative_indices)

    def max(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: Any = None, out_sharding: Any = None, wrap_negative_indices: bool = True) -> Any:
        """`x[index] = maximum(x[index], values)`."""
        return write("max", self.array, self.index, values, mode=mode,
                     indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                     out_sharding=out_sharding, wrap_negative_indices=wrap_negative_indices)


    def apply(self, func: Callable[[Any], Any], *, indices_are_sorted: bool = False,
              unique_indices: bool = False, mode: Any = None, wrap_negative_indices: bool = True
              ) -> Any:
        """`x[index] = func(x[index])`, elementwise; repeated indices apply it repeatedly."""
        options = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices,
                   "wrap_negative_indices": wrap_negative_indices}
        x = array_args("at[...].apply", self.array)[0]
        values = read(x, self.index, **options)
        if unique_indices:
            return write("set", x, self.index, func(values), mode=mode, **options)
        times = write("add", creation.full(x.shape, 0, np.int32), self.index, 1, mode=mode,
                      **options)

        def again(state: tuple[Any, Any]) -> tuple[Any, Any]:
            values, left = state
            return where(left > 0, convert(func(values), x.dtype), values), left - 1

        left = read(times, self.index, **options)
        values, _ = while_loop(lambda state: (state[1] > 0).any(), again, (values, left))
        return write("set", x, self.index, values, mode=mode, **options)


def at(self: Any) -> _IndexUpdateHelper:
    """Functional updates: `x.at[index].set(y)` is a copy of `x` with `x[index] = y`.

    >>> import olympus.numpy as onp
    >>> print(onp.zeros(4).at[1:3].add(2.0))
    [0. 2. 2. 0.]
    """
    return _IndexUpdateHelper(self)


def setitem(self: Any, index: Any, value: Any) -> None:
    """Always raises: arrays are immutable."""
    raise TypeError(
        f"x[index] = y: assignment into an array {self.aval} given; arrays are immutable and do "
        "not support in-place item assignment; instead of x[index] = y use "
        "x = x.at[index].set(y), and x.at[index].add(y) instead of x[index] += y.")
