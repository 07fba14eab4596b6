"""platform_dependent: a choice between functions that is made when the program is lowered."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from ..base.source import api_boundary
from ..base.typing import IrValue, PyTree
from ..core.ir import ClosedOlympuspr
from ..core.primitive import Builder, Primitive
from ..lowering.linking import external
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.tree import tree_unflatten
from .bodies import cast, check_callable, flatten, share_consts, stage_body
from .cond import Cond, _check_branches

Platforms = tuple[str | None, ...]


def chosen(platforms: Platforms, platform: str) -> int:
    """The number of the branch for a platform: its own, else the default (None)."""
    name = external(platform)
    for i, wanted in enumerate(platforms):
        if wanted in (name, None):
            return i
    names = ", ".join(map(str, platforms)) or "none"
    raise ValueError(f"platform_dependent: lowered for {name}; functions are given for {names}; "
                     f"pass one for {name}, or default=.")


class PlatformIndex(Primitive):
    """The number of the branch that the platform takes, int32. params: platforms."""

    jvp = transpose = vmap = None       # no operands

    def infer(self, *, platforms: Platforms) -> ShapedArray:
        return make_aval((), dtypes.as_dtype("int32"))

    def lower(self, b: Builder, *, platforms: Platforms) -> IrValue:
        return b.scalar(chosen(platforms, b.platform), dtypes.as_dtype("int32"))


class PlatformCond(Cond):
    """`cond` on a PlatformIndex: only the branch of the platform is lowered."""

    def __init__(self, platforms: Platforms) -> None:
        super().__init__("platform_dependent")
        self.platforms = platforms

    # All other rules are cond's: they transform every branch, as any may be the platform's.
    def lower(self, b: Builder, index: IrValue, *args: IrValue, branches: Sequence[ClosedOlympuspr]
              ) -> list[IrValue]:
        return b.call_inline(branches[chosen(self.platforms, b.platform)], args)


platform_index_p = PlatformIndex("platform_index")
# One primitive for each list of platforms, as two of them would not be equal.
platform_cond = functools.cache(PlatformCond)


@api_boundary
def platform_dependent(*args: PyTree, default: Callable[..., PyTree] | None = None,
                       **per_platform: Callable[..., PyTree]) -> PyTree:
    """Apply the function for the platform on which the program runs.

    Args:
      *args: pytrees of arrays.
      default: the function for all other platforms.
      **per_platform: functions by platform: cpu, cuda, rocm, tpu. All are traced, so that one
        program can be lowered for each; their results have the same structure, shapes and dtypes.

    Returns:
      What the function returns, a pytree of arrays.

    ValueError, when lowered, for a platform without a function; TypeError for results
    that differ.

    >>> f = lambda x: olympus.lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x)
    >>> print(f(1.0))
    2.0
    """
    if "gpu" in per_platform:
        raise ValueError("platform_dependent: gpu= given; cuda= or rocm= is required.")
    named = dict(per_platform) if default is None else {**per_platform, "default": default}
    if not named:
        raise ValueError("platform_dependent: no functions given; one for each platform, or "
                         "default=, is required.")
    check_callable("platform_dependent", **named)
    # None stands for the default.
    platforms = tuple(name if name in per_platform else None for name in named)
    leaves, avals, tree = flatten("platform_dependent: arguments", args)
    bodies = [stage_body(fun, tree, avals) for fun in named.values()]
    wanted = _check_branches("platform_dependent", bodies)
    if any(a != b for body in bodies for a, b in zip(body.out_avals, wanted, strict=True)):
        bodies = [stage_body(fun, tree, avals, lambda out: list(map(cast, out, wanted)))
                  for fun in named.values()]
    programs, consts = share_consts(bodies)
    index = platform_index_p.bind(platforms=platforms)
    outs = platform_cond(platforms).bind(index, *consts, *leaves, branches=tuple(programs))
    return tree_unflatten(bodies[0].out_tree, outs)
