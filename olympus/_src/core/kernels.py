"""Kernels: formulas that lowering for one CPU takes in place of a primitive's own rule."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.source import Source
from ..types.avals import ShapedArray

if TYPE_CHECKING:
    from .ir import OlympusprEqn


class Kernel(NamedTuple):
    """A formula, when it applies, and what makes it faster than the plain form.

    `applies(b, *xs, **params)` reads types and params alone, as equations alike ask it once;
    `suits(b, *xs, **params)` reads what made the operands, or literals, and each asks it.
    `emit(b, *xs, **params)` is a rule of lowering. A primitive names the module with its kernels in
    `Primitive.kernels`; the module has them in `KERNELS`, by primitive. `saves` is the
    CPU time saved per element of the largest operand or result, in nanoseconds, at a million
    elements in `tools/kernel_table.py`; 0 where it depends on more.
    """

    name: str
    why: str
    applies: Callable[..., bool]
    emit: Callable[..., Any]
    saves: float = 0.0
    suits: Callable[..., bool] | None = None


class Taken(NamedTuple):
    """A kernel that an equation was lowered by."""

    kernel: Kernel
    eqn: OlympusprEqn
    avals: Sequence[ShapedArray]
    params: dict[str, Hashable]
    source: Source | None
