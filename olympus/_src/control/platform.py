"""The primitives of `platform_dependent`: a branch that lowering chooses."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ..base.typing import IrValue
from ..core.ir import ClosedOlympuspr
from ..core.primitive import Builder, Primitive
from ..lowering.linking import external
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from .cond import Cond

Platforms = tuple[str | None, ...]


def chosen(platforms: Platforms, platform: str) -> int:
    """The index of a platform's branch: its own, or the default (None)."""
    name = external(platform)
    for i, wanted in enumerate(platforms):
        if wanted in (name, None):
            return i
    names = ", ".join(map(str, platforms)) or "none"
    raise ValueError(f"platform_dependent: lowered for {name}; functions are given for {names}; "
                     f"pass one for {name}, or default=.")


class PlatformIndex(Primitive):
    """The index of the platform's branch, int32. params: platforms."""

    jvp = transpose = vmap = None       # no operands
    pace = 0.0

    def infer(self, *, platforms: Platforms) -> ShapedArray:
        return make_aval((), dtypes.as_dtype("int32"))

    def lower(self, b: Builder, *, platforms: Platforms) -> IrValue:
        return b.scalar(chosen(platforms, b.platform), dtypes.as_dtype("int32"))


class PlatformCond(Cond):
    """`cond` on a PlatformIndex: only the branch of the platform is lowered."""

    def __init__(self, platforms: Platforms) -> None:
        super().__init__("platform_dependent")
        self.platforms = platforms

    # The other rules are cond's: they transform every branch, since the platform is not known yet.
    def lower(self, b: Builder, index: IrValue, *args: IrValue, branches: Sequence[ClosedOlympuspr]
              ) -> list[IrValue]:
        return b.call_inline(branches[chosen(self.platforms, b.platform)], args)


platform_index_p = PlatformIndex("platform_index")
# Cached, because two primitives for one list of platforms would not be equal.
platform_cond = functools.cache(PlatformCond)
