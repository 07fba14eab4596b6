"""`x.at[index].set(y)`: arrays cannot be changed, so a write makes a new array.

Under jit, where `x` is not used afterwards, XLA writes in place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..base import source
from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike
from ..control_flow.while_loop import while_loop
from ..core.trace import typeof
from ..lax import creation
from ..lax.indexing import GatherScatterMode
from ..runtime.eager import FAILURES
from ..types import dtypes
from ..types.shape import prod
from ..types.sharding import ShardingLike
from .arithmetic import divide, power
from .conditions import where
from .creation import asarray, is_sequence
from .indexing import read, write
from .masks import masked_index
from .promote import array_args, convert
from .reductions import argmax


class _IndexUpdateHelper:
    """`x.at`: index it to say where."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, index: object) -> _IndexUpdateRef:
        return _IndexUpdateRef(self.array, index)

    def __setitem__(self, index: object, value: object) -> None:
        raise TypeError("at: `x.at[index] = y` given; arrays are not changed in place;\n  "
                        "write `x = x.at[index].set(y)`, or `.add(y)` for `+=`.")

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


def _update(operation: str, doc: str, by: Callable[[Any, Any], Any] | None = None) -> Any:
    """A method of `x.at[index]` that writes: all take the same, which is said below the class.

    The factor of `x`: ones, with `by` multiplied in there.
    """
    def method(self: _IndexUpdateRef, values: ArrayLike, *, indices_are_sorted: bool = False,
               unique_indices: bool = False, mode: str | GatherScatterMode | None = None,
               out_sharding: ShardingLike = None, wrap_negative_indices: bool = True) -> Array:
        try:
            x = self.array if by is None else _ones(self.array, values)
            out = write(operation if by is None else "multiply", x, self.index, values, mode=mode,
                        indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                        out_sharding=out_sharding, method=operation,
                        wrap_negative_indices=wrap_negative_indices)
            return out if by is None else by(self.array, out)
        except (*FAILURES, IndexError) as error:
            source.filter_traceback(error)
            raise

    method.__name__, method.__doc__ = operation, doc.lstrip()
    method.__qualname__ = f"_IndexUpdateRef.{operation}"
    return method


class _IndexUpdateRef:
    """`x.at[index]`: its methods read there or return an array that is changed there.

    For all: `mode` decides about indices outside of the bounds ("drop" or "clip" for writes, "clip"
    or "fill" for reads). Without it, integers that are known to be outside are an IndexError;
    traced ones drop the write and read the nearest element. `indices_are_sorted` and
    `unique_indices` are promises that can make it faster; `wrap_negative_indices` says whether
    negative indices count from the end. Writes take a traced mask where the values do not count its
    true elements.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: object) -> None:
        self.array, self.index = array, index

    def __getattr__(self, name: str) -> NoReturn:
        methods = [m for m in dir(type(self)) if not m.startswith("_")
                   and callable(getattr(type(self), m))]
        raise AttributeError(f"at: `x.at[index].{name}` given;\n  one of {', '.join(methods)} is "
                             "required.")

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(self, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | GatherScatterMode | None = None, fill_value: ArrayLike | None = None,
            out_sharding: ShardingLike = None, wrap_negative_indices: bool = True) -> Array:
        """`x[index]`, with a choice of the values read outside of the bounds.

        Args:
          mode: "clip" (the nearest element) or "fill".
          fill_value: what "fill" reads; NaN, the lowest signed or the highest unsigned integer by
            default. Given with a mask, traced or not, it is read where the mask does not hold: the
            result has whole axes in the mask's place, as `where(mask, x, fill_value)` has.

        Returns:
          An array of the dtype of `x`.

        >>> import olympus.numpy as onp
        >>> print(onp.array([1., 2.]).at[onp.array([1, 5])].get(mode="fill", fill_value=0.))
        [2. 0.]
        >>> print(onp.array([1., 2.]).at[onp.array([True, False])].get(fill_value=0.))
        [1. 0.]
        """
        try:
            return read(self.array, self.index, mode=mode, fill_value=fill_value,
                        unique_indices=unique_indices, indices_are_sorted=indices_are_sorted,
                        wrap_negative_indices=wrap_negative_indices, out_sharding=out_sharding)
        except (*FAILURES, IndexError) as error:
            source.filter_traceback(error)
            raise

    set = _update("set", """
        A copy of `x` with `values` at `x[index]`; of several writes to one element one stays.

        >>> import olympus.numpy as onp
        >>> print(onp.zeros(4).at[1:3].set(onp.array([5., 6.])))
        [0. 5. 6. 0.]
        """)
    add = _update("add", """
        A copy of `x` with `values` added at `x[index]`; repeated indices add repeatedly.

        >>> import olympus.numpy as onp
        >>> print(onp.zeros(3).at[onp.array([0, 0, 2])].add(1.))
        [2. 0. 1.]
        """)
    subtract = _update("subtract", """
        A copy of `x` with `values` taken from `x[index]`; repeated indices subtract repeatedly.

        >>> import olympus.numpy as onp
        >>> print(onp.zeros(3).at[onp.array([0, 0, 2])].subtract(1.))
        [-2.  0. -1.]
        """)
    multiply = mul = _update("multiply", """
        A copy of `x` multiplied at `x[index]`; repeated indices multiply repeatedly.

        >>> import olympus.numpy as onp
        >>> print(onp.ones(3).at[onp.array([0, 0, 2])].multiply(3.))
        [9. 1. 3.]
        """)
    divide = _update("divide", """
        A copy of `x` divided at `x[index]`; repeated indices divide repeatedly.

        Returns:
          An array of the shape of `x`; integers become floats.

        >>> import olympus.numpy as onp
        >>> print(onp.ones(3).at[onp.array([0, 0, 2])].divide(2.))
        [0.25 1.   0.5 ]
        """, divide)
    power = _update("power", """
        A copy of `x` raised to powers at `x[index]`; repeated indices apply repeatedly.

        Returns:
          An array of the shape of `x` and its dtype with the values'.

        >>> import olympus.numpy as onp
        >>> print(onp.array([2., 3.]).at[0].power(3.))
        [8. 3.]
        """, power)
    min = _update("min", """
        A copy of `x` with the lesser of `x[index]` and `values` there.

        >>> import olympus.numpy as onp
        >>> print(onp.array([5., 5.]).at[onp.array([0, 0])].min(onp.array([4., 1.])))
        [1. 5.]
        """)
    max = _update("max", """
        A copy of `x` with the greater of `x[index]` and `values` there.

        >>> import olympus.numpy as onp
        >>> print(onp.array([5., 5.]).at[onp.array([0, 0])].max(onp.array([4., 9.])))
        [9. 5.]
        """)

    @source.api_boundary
    def apply(self, func: Callable[[Array], ArrayLike], *, indices_are_sorted: bool = False,
              unique_indices: bool = False, mode: str | GatherScatterMode | None = None,
              wrap_negative_indices: bool = True) -> Array:
        """A copy of `x` with `func` applied at `x[index]`; repeated indices apply it repeatedly.

        Args:
          func: elementwise function of an array, whose result is converted to the dtype of `x`.

        >>> import olympus.numpy as onp
        >>> print(onp.array([1., 4., 9.]).at[1:].apply(onp.sqrt))
        [1. 2. 3.]
        """
        options: dict[str, Any] = {"indices_are_sorted": indices_are_sorted,
                                   "unique_indices": unique_indices,
                                   "wrap_negative_indices": wrap_negative_indices}
        x = array_args("at[...].apply", self.array)[0]
        masked = masked_index(x.shape, self.index)
        if masked is not None:
            region = read(x, masked.index, mode="clip", **options)
            new = _apply_where(func, region, masked.layout.over(masked.mask, region.shape))
            return write("set", x, masked.index, new, mode=mode, **options)
        values = read(x, self.index, **options)
        if unique_indices:
            return write("set", x, self.index, func(values), mode=mode, **options)
        times = write("add", creation.full(x.shape, 0, np.int32), self.index, 1, mode=mode,
                      **options)

        def again(state: tuple[Array, Array]) -> tuple[Array, Array]:
            values, left = state
            return where(left > 0, convert(func(values), x.dtype), values), left - 1

        left = read(times, self.index, **options)
        values, _ = while_loop(lambda state: (state[1] > 0).any(), again, (values, left))
        return write("set", x, self.index, values, mode=mode, **options)


complete_docstrings(vars(_IndexUpdateRef), {
    "indices_are_sorted, unique_indices": "promises that can make it faster.",
    "mode": '"drop" or "clip": what happens outside of the bounds.',
    "wrap_negative_indices": "whether negative indices count from the end.",
    "values": "array or number that broadcasts to the shape of `x[index]`.",
}, returns="An array of the shape and dtype of `x`.")


def _ones(x: Array, values: ArrayLike) -> Array:
    """The ones that `x` is divided by, or raised to, where nothing is written.
    """
    if not dtypes.is_bool(typeof(x).dtype):
        return creation.full_like(x, 1)
    dtype = typeof(asarray(values) if is_sequence(values) else values).dtype
    return creation.full_like(x, 1, np.int32 if dtypes.is_bool(dtype) else dtype)


def _apply_where(func: Callable[[Array], ArrayLike], region: Array, mask: ArrayLike) -> Array:
    """`func` of the elements where the mask holds, the others as they are.

    For the others `func` gets the first that is chosen: it may be undefined for theirs, and a
    gradient would be NaN.
    """
    if not prod(region.shape):
        return region
    first = region.ravel()[argmax(mask)]
    return where(mask, convert(func(where(mask, region, first)), region.dtype), region)


def at(self: Array) -> _IndexUpdateHelper:
    """Functional updates: `x.at[index].set(y)` is a copy of `x` with `x[index] = y`.

    The methods are set, add, subtract, multiply (mul), divide, power, min, max, apply and get.
    Under jit, where `x` is not used afterwards, the write happens in place.

    Returns:
      An object to index like an array; the result has those methods.

    >>> import olympus.numpy as onp
    >>> print(onp.zeros(4).at[1:3].add(2.0))
    [0. 2. 2. 0.]
    """
    return self.aval.methods["at"].fget(self) if self.aval.mutable else _IndexUpdateHelper(self)


@source.api_boundary
def setitem(self: Array, index: object, value: object) -> None:
    """Write to a traced reference; an array raises, since arrays are immutable."""
    if self.aval.mutable:
        self.aval.methods["__setitem__"](self, index, value)
        return
    raise TypeError(
        f"x[index] = y: assignment into an array {self.aval} given;\n  arrays are immutable and do "
        f"not support in-place item assignment;\n  {_written_anew()}instead of x[index] = y use "
        "x = x.at[index].set(y), and of x[index] += y x = x.at[index].add(y).")


@source.api_boundary
def delitem(self: Array, index: object) -> None:
    """Always raises: arrays are immutable."""
    raise TypeError(f"del x[index]: an element of an array {self.aval} given; arrays are immutable "
                    "and have all their elements; use x = olympus.numpy.delete(x, index).")


_OPERATIONS = {"": "set", "+": "add", "-": "subtract", "*": "multiply", "/": "divide"}


def _written_anew() -> str:
    """The user's assignment in terms of `at`, if it is one line of a simple form."""
    line = source.source_line(source.user_frame())
    match = re.fullmatch(r"([\w.]+)\[([^\[\]]*)\] ([-+*/]?)= (.+)", line.partition("  #")[0])
    if match is None:
        return ""
    name, index, operation, value = match.groups()
    return (f"`{match[0]}` becomes `{name} = {name}.at[{index}].{_OPERATIONS[operation]}({value})`;"
            "\n  ")
