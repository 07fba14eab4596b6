"""checkpoint (remat): keep the inputs of a function for reverse mode and compute the rest again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

from ..base.source import filter_traceback
from ..base.typing import Array, P, PyTree, R
from ..base.util import bit_key, wraps
from ..control.bodies import Derived, check_aliases, check_callable, flatten, stage_body
from ..control.remat import (
    Offloadable, Policy, Prevent, Recompute, Saveable, Verdict, checkpoint_p, name_p,
)
from ..core.primitive import Primitive
from ..lax.contract import dot_general_p
from ..lax.conv import conv_general_dilated_p
from ..types.avals import MUTABLE, Aval
from ..types.memory import Space
from ..types.shape import entries, static_int
from ..types.tree import broadcast_prefix, tree_leaves, tree_map, tree_structure, tree_unflatten


def checkpoint(fun: Callable[P, R], *, prevent_cse: bool | Sequence[PyTree] = True,
               policy: Callable[..., bool] | None = None,
               static_argnums: int | Sequence[int] = (),
               static_argnames: str | Sequence[str] = ()) -> Callable[P, R]:
    """Make reverse mode keep only a function's inputs, and compute the rest again.

    Args:
      fun: the function.
      prevent_cse: keep XLA from merging both computations; not needed inside `scan`. A sequence has
        a bool for each array: it is a prefix of the tuple of arguments that are not static, or, if
        some are given by keyword, of the pair of that tuple and the keywords.
      policy: `(primitive, *avals, **params) -> bool`: which results to keep after all; see
        `checkpoint_policies`.
      static_argnums, static_argnames: arguments that are not arrays.

    >>> f = olympus.checkpoint(lambda x: onp.sin(onp.sin(x)))
    >>> print(f"{olympus.grad(f)(1.0):.4f}")
    0.3600
    """
    check_callable("checkpoint", fun=fun)
    if policy is not None:
        check_callable("checkpoint", policy=policy)
    nums = {static_int(n, "checkpoint", "static_argnums") for n in entries(static_argnums)}
    names = entries(static_argnames)
    if not all(isinstance(n, str) for n in names):
        raise TypeError(f"checkpoint: static_argnames {static_argnames!r} given; names (str) are "
                        "required.")
    nums |= _positions(fun, set(names))
    if not isinstance(prevent_cse, (bool, tuple, list)) or not all(
            type(x) is bool for x in tree_leaves(prevent_cse)):
        raise TypeError(f"checkpoint: prevent_cse {prevent_cse!r} given; a bool, or a sequence "
                        "with the structure of the arguments whose leaves are bools, is required.")
    call = cast("Callable[..., R]", fun)

    @wraps(fun)
    def wrapped(*args: Array, **kwargs: PyTree) -> object:
        static = {n % len(args) for n in nums if -len(args) <= n < len(args)}
        fixed = {k: v for k, v in kwargs.items() if k in names}
        dynamic = ([a for i, a in enumerate(args) if i not in static],
                   {k: v for k, v in kwargs.items() if k not in names})

        def body(values: list[Array], named: dict[str, PyTree]) -> PyTree:
            rest = iter(values)
            return call(*[a if i in static else next(rest) for i, a in enumerate(args)], **named,
                        **fixed)

        leaves, avals, tree = flatten("checkpoint", dynamic)
        prevented: Prevent = prevent_cse is True
        if not isinstance(prevent_cse, bool):
            whole = tuple(dynamic[0])
            flags = tuple(broadcast_prefix(
                tuple(prevent_cse), (whole, dynamic[1]) if dynamic[1] else whole))
            prevented = any(flags) and flags
        # Static arguments are part of the key of the staged body. Those whose equality says too
        # little leave it without a key: it is staged at each call.
        static_values = {**{i: args[i] for i in static}, **fixed}
        key = (len(args), *[(k, bit_key(v)) for k, v in static_values.items()]) \
            if all(type(v) in _COMPARABLE for v in static_values.values()) else None
        try:
            staged = stage_body(Derived(body, fun, key, "checkpoint"), tree, avals)
            if MUTABLE:
                named = sorted(dynamic[1])
                check_aliases("checkpoint", fun, staged.consts, leaves, tree_structure(
                    (*dynamic[0], *[dynamic[1][k] for k in named])), (*static,), named)
        except Exception as error:
            filter_traceback(error)
            raise
        if type(prevented) is tuple:
            prevented = (False,) * len(staged.consts) + prevented
        out = checkpoint_p.bind(*staged.consts, *leaves, olympuspr=staged.program,
                                prevent_cse=prevented, differentiated=False, policy=policy)
        return tree_unflatten(staged.out_tree, out)

    return wrapped


# Static arguments that are all that they say; others may change, or equal different objects.
_COMPARABLE = (bool, int, float, complex, str, bytes, type(None))


def _positions(fun: Callable[..., PyTree], names: set[str]) -> set[int]:
    """Where arguments of these names stand if they are given by position."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return set()
    return {i for i, p in enumerate(parameters)
            if p.name in names and p.kind is p.POSITIONAL_OR_KEYWORD}


def checkpoint_name(x: PyTree, name: str) -> PyTree:
    """`x`, with a name for the policies `save_only_these_names` and its like.

    Args:
      x: a pytree of arrays.
      name: any str; several values may have one.
    Returns: The same values.

    >>> from olympus.ad_checkpoint import checkpoint_name
    >>> keep = olympus.checkpoint_policies.save_only_these_names("wave")
    >>> wave = lambda x: checkpoint_name(olympus.numpy.sin(x), "wave") ** 2
    >>> f = olympus.checkpoint(wave, policy=keep)
    >>> print(f"{olympus.grad(f)(1.0):.4f}")
    0.9093
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name: name is {name!r}; a str is required.")
    return tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


def checkpoint_name_fwd(x: PyTree, name: str) -> Array:
    """`checkpoint_name` for values of the function itself: its derivatives have no name.

    That is what `checkpoint_name` does, too.

    Args:
      x: a pytree of arrays.
      name: any str.
    Returns: The same values.

    >>> from olympus.ad_checkpoint import checkpoint_name_fwd
    >>> f = lambda x: olympus.numpy.sin(checkpoint_name_fwd(x, "angle"))
    >>> str(olympus.make_olympuspr(lambda x: olympus.jvp(f, (x,), (x,)))(1.0)).count("name=angle")
    1
    """
    return checkpoint_name(x, name)


class checkpoint_policies:
    """Policies for `checkpoint`: what to keep for reverse mode.

    Each is `(primitive, *avals, **params) -> bool`, or is made by a function of names, such as
    `save_only_these_names`, which `ad_checkpoint.checkpoint_name` gives.

    >>> import olympus
    >>> keep_dots = olympus.checkpoint_policies.dots_saveable
    >>> f = olympus.checkpoint(lambda x: olympus.numpy.sin(x @ x), policy=keep_dots)
    >>> print(olympus.grad(lambda x: f(x).sum())(olympus.numpy.zeros((2, 2)) + 1).round(2))
    [[-1.66 -1.66]
     [-1.66 -1.66]]
    """

    @staticmethod
    def everything_saveable(prim: Primitive, *avals: Aval, **params: object) -> bool:
        """Keep all: as without checkpoint."""
        return True

    @staticmethod
    def nothing_saveable(prim: Primitive, *avals: Aval, **params: object) -> bool:
        """Keep only inputs."""
        return False

    @staticmethod
    def dots_saveable(prim: Primitive, *avals: Aval, **params: object) -> bool:
        """Keep results of matrix products and convolutions."""
        return prim is dot_general_p or prim is conv_general_dilated_p

    checkpoint_dots = dots_saveable

    @staticmethod
    def dots_with_no_batch_dims_saveable(prim: Primitive, *avals: Aval, **params: Any) -> bool:
        """Keep results of matrix products without batch axes."""
        return prim is dot_general_p and params["dimension_numbers"][1] == ((), ())

    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable

    @staticmethod
    def save_only_these_names(*names: str) -> Policy:
        """Keep values that `checkpoint_name` gave one of these names."""
        return lambda prim, *_, **params: prim is name_p and params["name"] in names

    @staticmethod
    def save_any_names_but_these(*names: str) -> Policy:
        """Keep values that have a name, except these."""
        return lambda prim, *_, **params: prim is name_p and params["name"] not in names

    @staticmethod
    def save_anything_except_these_names(*names: str) -> Policy:
        """Keep all values but those with one of these names."""
        return lambda prim, *_, **params: not (prim is name_p and params["name"] in names)

    @staticmethod
    def offload_dot_with_no_batch_dims(offload_src: Space | str, offload_dst: Space | str
                                       ) -> Policy:
        """Move results of matrix products without batch axes to another memory space."""
        moved = Offloadable(Space.of(offload_src), Space.of(offload_dst))
        keep = checkpoint_policies.dots_with_no_batch_dims_saveable
        return lambda prim, *avals, **params: (
            moved if keep(prim, *avals, **params) else Recompute)

    @staticmethod
    def save_and_offload_only_these_names(
            *, names_which_can_be_saved: Sequence[str], names_which_can_be_offloaded: Sequence[str],
            offload_src: Space | str, offload_dst: Space | str) -> Policy:
        """Keep values with one set of names, move those with another to a memory space.

        Names are those that `checkpoint_name` gives; a name may be in one set only (ValueError).
        """
        saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
        if saved & offloaded:
            raise ValueError(
                f"save_and_offload_only_these_names: {sorted(saved & offloaded)} in both sets; a "
                "value is either saved or offloaded; drop the names from one.")
        moved = Offloadable(Space.of(offload_src), Space.of(offload_dst))

        def policy(prim: Primitive, *_: object, **params: Hashable) -> Verdict | Offloadable:
            name = params["name"] if prim is name_p else None
            return Saveable if name in saved else moved if name in offloaded else Recompute

        return policy

    @staticmethod
    def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
        """Keep what either policy keeps; where both do, as the first one says."""
        def policy(prim: Primitive, *avals: Aval, **params: Hashable
                   ) -> bool | Verdict | Offloadable:
            first = policy_1(prim, *avals, **params)
            return policy_2(prim, *avals, **params) if first in (False, Recompute) else first

        return policy
