"""Grids and rows written as slices: mgrid, ogrid, r_ and c_."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.typing import Array
from ..lax import shape as lax_shape
from ..types import dtypes
from .creation import arange, asarray, linspace, meshgrid
from .indexing import concrete
from .joining import concatenate, stack
from .promote import convert, to_array

__all__ = ["c_", "mgrid", "ogrid", "r_"]


def _number(name: str, x: Any) -> Any:
    """A bound or step of a slice as a number; ConcretizationTypeError for traced ones."""
    found = concrete(name, x, "a bound of a slice", "use arange with static numbers")
    if found.ndim or found.dtype.kind not in "iufc":
        raise TypeError(f"{name}: {x!r} given in a slice; numbers are required.")
    return found.item()


def _points(name: str, entry: Any) -> Array:
    """The numbers that a slice stands for: with an imaginary step as many as that says."""
    if not isinstance(entry, slice):
        raise TypeError(f"{name}: {entry!r} given; a slice such as 0:5, or 0:1:5j, is required.")
    if entry.stop is None:
        raise TypeError(f"{name}: {entry} given; a slice with an end is required.")
    start, stop, step = [_number(name, x) for x in (
        0 if entry.start is None else entry.start, entry.stop,
        1 if entry.step is None else entry.step)]
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


class _Grid:
    """What `mgrid` and `ogrid` are."""

    def __init__(self, name: str, sparse: bool) -> None:
        self._name, self._sparse = name, sparse

    def __repr__(self) -> str:
        return f"olympus.numpy.{self._name}"

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple):
            return _points(self._name, key)
        points = [_points(self._name, entry) for entry in key]
        if not points:
            return () if self._sparse else asarray([], int)
        dtype = dtypes.result_type(*points)
        found = meshgrid(*[convert(x, dtype) for x in points], indexing="ij", sparse=self._sparse)
        return tuple(found) if self._sparse else stack(found)


class _Joiner:
    """What `r_` and `c_` are: entries made arrays of some rank and joined along an axis.

    Rank 1 entries lie along axis `place` of those of `rank`; -1 is the last axis.
    """

    def __init__(self, name: str, axis: int, rank: int, place: int) -> None:
        self._name, self._options = name, (axis, rank, place)

    def __repr__(self) -> str:
        return f"olympus.numpy.{self._name}"

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Array:
        entries = key if isinstance(key, tuple) else (key,)
        axis, rank, place = self._options
        directive = ""
        if entries and isinstance(entries[0], str):
            directive, entries = entries[0], entries[1:]
            if directive not in ("r", "c"):
                axis, rank, place = self._parsed(directive)
        if any(isinstance(entry, str) for entry in entries):
            raise ValueError(f"{self._name}: text behind the first entry given; a directive must "
                             "be the first.")
        if not entries:
            raise ValueError(f"{self._name}: no entries given; at least one is required.")
        values = [_points(self._name, e) if isinstance(e, slice) else e for e in entries]
        arrays = [to_array(asarray(v)) for v in values]
        dtype = dtypes.result_type(*[v if np.isscalar(v) else a for v, a in zip(values, arrays)])
        found = concatenate([_raised(self._name, convert(a, dtype), rank, place) for a in arrays],
                            axis)
        if directive in ("r", "c") and found.ndim == 1:     # a matrix of one row or column
            return found[None] if directive == "r" else found[:, None]
        return found

    def _parsed(self, directive: str) -> tuple[int, int, int]:
        """"axis", "axis,rank" or "axis,rank,place"; what is left out is as in `r_` or `c_`."""
        try:
            given = tuple([int(part) for part in directive.split(",")])
        except ValueError:
            given = ()
        if not 1 <= len(given) <= 3:
            raise ValueError(f"{self._name}: directive {directive!r} given; 'r', 'c' or up to "
                             "three integers with commas are required.")
        return (*given, *self._options[len(given):])


def _raised(name: str, x: Any, rank: int, place: int) -> Any:
    """An array with at least `rank` axes: its own begin at axis `place` of those."""
    missing = rank - x.ndim
    if missing <= 0:
        return x
    first = place + missing + 1 if place < 0 else place
    if not 0 <= first <= missing and x.ndim:
        raise ValueError(f"{name}: place {place} given for an array of {x.ndim} axes among {rank}; "
                         f"a number in [-{missing + 1}, {missing}] is required.")
    ones = [i for i in range(rank) if not first <= i < first + x.ndim]
    return lax_shape.expand_dims(x, ones)


mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)
r_ = _Joiner("r_", 0, 1, -1)
c_ = _Joiner("c_", -1, 2, 0)
