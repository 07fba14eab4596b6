"""Arguments at the edges of formats for the rows of tests/ops: what engines may compute otherwise.

NaN, infinities, zeros of both signs, ties, numbers out of the range of integers, negative bases;
integers whose sums and products wrap, and zero as a divisor.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from ops import Op

import olympus

EDGES = np.array([-np.inf, -3e38, -1e8, -100, -20, -2.5, -2, -1, -0.5, -1e-30, -0.0, 0, 1e-30, 0.5,
                  1, 1.5, 2, 3, 20, 100, 1e5, 1e8, 3e38, np.inf, np.nan])
FEW = np.array([-np.inf, -2, -0.5, -0.0, 0, 1, 3, 1e30, np.inf, np.nan])
ENDS = np.array([1 - 2**31, -100, -7, -2, -1, 0, 1, 2, 3, 7, 100, 2**31 - 2, 2**31 - 1])
TIES = np.array([-0.0, 0, 1, -1, 1, 0, 2, -0.0, -1])


def variants(row: Op, args: tuple[Any, ...], kind: str = "f"
             ) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """A row's arguments by the special numbers in those of a kind, all with the same shapes."""
    leaves, tree = olympus.tree.flatten(args)
    places = [i for i, x in enumerate(leaves) if isinstance(x, np.ndarray) and x.dtype.kind == kind]

    def given(made: list[np.ndarray]) -> tuple[Any, ...]:
        found = dict(zip(places, made, strict=True))
        return olympus.tree.unflatten(tree, [
            found[i].astype(x.dtype) if i in found else x for i, x in enumerate(leaves)])

    values = [leaves[i] for i in places]
    if elementwise(row, leaves, kind):  # beside the usual numbers, each edge with each other one
        ends = ENDS if kind == "i" else EDGES if len(values) == 1 else FEW
        edges = np.meshgrid(*[ends] * len(values))
        yield "edges", given([np.concatenate([x.ravel(), e.ravel()])
                              for x, e in zip(values, edges, strict=True)])
        return
    yield "usual", args
    yield "nan", given([placed(x, {(1 + i, 3): np.nan}) for i, x in enumerate(values)])
    yield "infinities", given([placed(x, {(i, 4): np.inf, (2, 5): -np.inf})
                               for i, x in enumerate(values)])
    yield "ties", given([np.resize(TIES, x.shape) for x in values])


def elementwise(row: Op, leaves: list[Any], kind: str = "f") -> bool:
    """Whether the arrays of a kind among a row's arguments may have any common length."""
    arrays = [x for x in leaves if isinstance(x, np.ndarray)]
    return row.each and 0 < len({x.shape for x in arrays}) < 2 and all(
        x.dtype.kind == kind and x.ndim == 1 for x in arrays)


def placed(x: np.ndarray, numbers: dict[tuple[int, int], float]) -> np.ndarray:
    """A copy with a number at each of the places start, start + step …"""
    found = x.flatten()
    for (start, step), number in numbers.items():
        found[start::step] = number
    return found.reshape(x.shape)


def difference(found: np.ndarray, want: np.ndarray, signs: bool) -> str:
    """How results differ, '' if they do not: in NaN, infinities, numbers, or signs of zeros."""
    if (found.shape, found.dtype) != (want.shape, want.dtype):
        return f"{found.dtype}{[*found.shape]} instead of {want.dtype}{[*want.shape]}"
    kind = np.complex128 if want.dtype.kind == "c" else np.float64
    x, y = (part.ravel() for part in (found.astype(kind), want.astype(kind)))
    if not np.array_equal(np.isnan(x), np.isnan(y)):
        return "other NaN"
    x, y = (part[~np.isnan(y)].view(np.float64) for part in (x, y))
    ends = np.isinf(x) | np.isinf(y)
    if not np.array_equal(x[ends], y[ends]):
        return "other infinities"
    if not np.allclose(x[~ends], y[~ends], rtol=1e-3, atol=1e-4):
        return "other numbers"
    zeros = (x == 0) & (y == 0)
    if signs and not np.array_equal(np.signbit(x[zeros]), np.signbit(y[zeros])):
        return "other signs of zeros"
    return ""
