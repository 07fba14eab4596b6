"""Kernels: formulas that replace a primitive's own lowering rule on one CPU."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.source import Source
from ..types.avals import ShapedArray

if TYPE_CHECKING:
    from .ir import OlympusprEqn


class Kernel(NamedTuple):
    """A formula with its conditions, and why it is faster than the plain form.

    applies: `(b, *xs, **params)` -> bool, from types and params alone: asked once for equal ones.
    emit: `(b, *xs, **params)`, a lowering rule.
    saves: CPU time saved per element of the largest operand or result, in nanoseconds, at a million
      elements in `tools/kernel_table.py`; 0 where it depends on more.
    suits: `(b, *xs, **params)` -> bool, from literals and the operations that made the operands:
      asked for each equation.

    `Primitive.kernels` names the module that has a primitive's kernels, in its table `KERNELS`.
    """

    name: str
    why: str
    applies: Callable[..., bool]
    emit: Callable[..., Any]
    saves: float = 0.0
    suits: Callable[..., bool] | None = None


class Taken(NamedTuple):
    """A kernel with the equation that it lowered."""

    kernel: Kernel
    eqn: OlympusprEqn
    avals: Sequence[ShapedArray]
    params: dict[str, Hashable]
    source: Source | None
