"""Tables of operations: the modules here hold rows; `tests/properties.py` what holds for each.

A row's arguments are arrays: those in float64 are cast to each dtype that the row names by a letter
of `KINDS`, all others (indices, masks, Python numbers) are handed over as they are.
"""

import functools
import importlib
import pkgutil
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from olympus import numpy as onp

KINDS = {"f": np.dtype("f4"), "d": np.dtype("f8"), "h": np.dtype("f2"), "i": np.dtype("i4"),
         "e": np.dtype(ml_dtypes.bfloat16), "u": np.dtype("u1"), "c": np.dtype("c8"),
         "z": np.dtype("c16"), "b": np.dtype("?")}


class Op(NamedTuple):
    """`fun(*args)` is `oracle(*args)` in every dtype of `dtypes`, to `tol` in float32.

    `grad` says that it is differentiable in all arguments that are cast, in complex ones if it
    takes them; `each` that it is elementwise, so that arguments without elements and without
    dimensions are legal too; `twice` that its derivative has one. In float64 `tol` is as many units
    in the last place as in float32.
    """

    name: str
    oracle: Callable[..., Any]
    fun: Callable[..., Any]
    args: tuple[Any, ...]
    dtypes: str = "f"
    grad: bool = True
    tol: float = 2e-5
    each: bool = False
    twice: bool = True


class Refusal(NamedTuple):
    """`call(*args)` raises `error` with a message that the pattern `match` is found in."""

    name: str
    call: Callable[..., Any]
    error: type[Exception]
    match: str
    args: tuple[Any, ...] = ()
    x64: bool = False


class Effect(NamedTuple):
    """`run(say, *args)`, compiled, says or prints `words`, in any order."""

    name: str
    run: Callable[..., Any]
    args: tuple[Any, ...]
    words: list[str]


def reals(*shape: int, low: float = -2.9, high: float = 3.3, seed: int = 0) -> np.ndarray:
    """Distinct numbers between `low` and `high` in a fixed disorder: no ties, no zeros."""
    size = int(np.prod(shape))
    order = np.random.default_rng(seed + 7 * size).permutation(size)
    return (low + (order + 0.37 + 0.1 * seed) * (high - low) / (size + 1)).reshape(shape)


def both(name: str, *args: Any, dtypes: str = "f", grad: bool = True, tol: float = 2e-5,
         each: bool = False, **params: Any) -> Op:
    """The row of a function that NumPy and Olympus both have under `name`."""
    label = "-".join([name, *(f"{k}={v}" for k, v in params.items())])
    return Op(label, partial(getattr(np, name), **params), partial(getattr(onp, name), **params),
              args, dtypes, grad, tol, each)


@functools.cache
def tables() -> dict[str, tuple[Any, ...]]:
    """The rows of every table, by the table's name."""
    return {m.name: importlib.import_module(f"{__name__}.{m.name}").ALL
            for m in pkgutil.iter_modules(__path__)}
