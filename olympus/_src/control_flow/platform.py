"""platform_dependent: a choice between functions that is made when the program is lowered."""

from __future__ import annotations

from collections.abc import Callable

from ..base.source import api_boundary
from ..base.typing import PyTree
from ..control.bodies import cast, check_callable, flatten, share_consts, stage_body
from ..control.platform import platform_cond, platform_index_p
from ..types.tree import tree_unflatten
from .branches import check_branches


@api_boundary
def platform_dependent(*args: PyTree, default: Callable[..., PyTree] | None = None,
                       **per_platform: Callable[..., PyTree]) -> PyTree:
    """Apply the function for the platform on which the program runs.

    Args:
      *args: pytrees of arrays.
      default: the function for all other platforms.
      **per_platform: functions by platform: cpu, cuda, rocm, tpu. All are traced, so that one
        program can be lowered for each; their results have the same structure, shapes and dtypes.
    Returns: The function's result, a pytree of arrays.

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
    wanted = check_branches("platform_dependent", bodies)
    if any(a != b for body in bodies for a, b in zip(body.out_avals, wanted, strict=True)):
        bodies = [stage_body(fun, tree, avals, lambda out: list(map(cast, out, wanted)))
                  for fun in named.values()]
    programs, consts = share_consts(bodies)
    index = platform_index_p.bind(platforms=platforms)
    outs = platform_cond(platforms).bind(index, *consts, *leaves, branches=tuple(programs))
    return tree_unflatten(bodies[0].out_tree, outs)
