"""print_saved_residuals: what reverse mode keeps of a function between its two passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base import source
from ..base.typing import Array, PyTree
from ..control.call import call_p
from ..control.remat import name_p
from ..core.ir import Literal, OlympusprEqn
from ..core.primitive import Zero
from ..core.trace import typeof
from ..interpreters.jvp import jvp_flat
from ..interpreters.partial_eval import split_program
from ..jit.arguments import check_arrays, check_callable, leaf_name
from ..types.avals import ShapedArray, has_tangent
from ..types.tree import tree_flatten, tree_leaves


def saved_residuals(fun: Callable[..., PyTree], *args: PyTree, **kwargs: PyTree
                    ) -> list[tuple[ShapedArray, str]]:
    """The aval of each residual, and where it comes from.

    Args:
      fun: a function of pytrees of arrays; derivatives are meant in all of its arguments.
      *args, **kwargs: its arguments; only their shapes and dtypes matter.
    """
    check_callable("saved_residuals", fun)
    leaves, tree = tree_flatten((args, kwargs))
    keywords = sorted(kwargs)       # as the tree flattens a dict
    positions, trees = [*range(len(args)), *keywords], [*args, *[kwargs[k] for k in keywords]]
    check_arrays("saved_residuals", fun, leaves, positions, trees)
    avals = list(map(typeof, leaves))
    names = [leaf_name(fun, positions, trees, i) for i in range(len(leaves))]
    t_avals = [a.to_tangent_aval() for a in avals]
    active = list(map(has_tangent, avals))

    def flat(*xs: object) -> list[Array]:
        args, named = tree.unflatten(xs)
        return tree_leaves(fun(*args, **named))

    def tangents(_: object, __: object, primals: Sequence[Array], unknown: Sequence[Array]
                 ) -> list[Array]:
        # Symbolic zeros, as in `linearize_flat`: rules record nothing for operands without tangent.
        rest = iter(unknown)
        ins = [next(rest) if on else Zero(a) for on, a in zip(active, t_avals)]
        return [t for t in jvp_flat(flat, primals, ins)[1] if type(t) is not Zero]

    # The split of reverse mode, staged: nothing is computed, and a residual has a variable in the
    # known half, whose equation tells its origin.
    split = split_program(tangents, avals, [a for a, on in zip(t_avals, active) if on])
    known = split.known.olympuspr
    inputs = {v: f"from the argument {name}" for v, name in zip(known.invars, names)}
    inputs.update((v, "from a constant") for v in known.constvars)
    made = {v: eqn for eqn in known.eqns for v in eqn.outvars}
    # The known half returns the results first, then the residuals that it computes.
    computed = known.outvars[len(known.outvars) - split.num_computed:]
    residuals = [(typeof(c), "from a constant") for c in split.unknown.consts]
    for v in split.residual_values(known.invars, computed):
        if type(v) is Literal:
            residuals.append((v.aval, "from a literal"))
        else:
            residuals.append((v.aval, inputs.get(v) or _origin(made[v])))
    return residuals


def _origin(eqn: OlympusprEqn) -> str:
    line = source.format_source(eqn.source)
    if eqn.primitive is name_p:
        return f"named {eqn.params['name']!r} from {line}"
    if eqn.primitive is call_p:
        return f"output of jitted function {eqn.params['name']!r} from {line}"
    return f"output of {eqn.primitive} from {line}"


def print_saved_residuals(f: Callable[..., PyTree], *args: PyTree, **kwargs: PyTree) -> None:
    """Print what reverse mode keeps of `f` at these arguments: a line per array.

    Args:
      f: a function of pytrees of arrays.
      *args, **kwargs: its arguments; only their shapes and dtypes matter.

    >>> olympus.ad_checkpoint.print_saved_residuals(lambda x: onp.sin(x), 2.0)  # doctest: +ELLIPSIS
    f32[] output of cos from <doctest ...>:1:54 (<lambda>)
    """
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short(short_dtypes=True)} {origin}")
