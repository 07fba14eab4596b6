"""References in the carry of a loop inside a kernel.

A loop carries arrays, so it closes over the references in its carry. The body gets each reference
at its place in the carry, and must return it there.

Outside of kernels a loop whose body returns a reference is refused, as a jitted function is.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from ..base.typing import PyTree, Reference
from ..control.bodies import described, leaf_names
from ..core.cells import is_part, is_ref
from ..types.tree import tree_flatten


class _Kernels(threading.local):
    """The number of nested kernels that this thread is staging."""

    staged = 0


kernels = _Kernels()


class Places:
    """The references in a value, by the indices of their leaves; with `parts`, also parts of
    references, which are leaves then.
    """

    __slots__ = ("tree", "refs")

    def __init__(self, value: PyTree, parts: bool = False) -> None:
        leaves, self.tree = tree_flatten(value, is_part if parts else None)
        self.refs: dict[int, Reference] = {
            i: x for i, x in enumerate(leaves) if is_ref(x) or is_part(x)}

    def without(self, value: PyTree) -> PyTree:
        """The value with None in place of each reference."""
        leaves: list[PyTree] = self.tree.flatten_up_to(value)
        for i in self.refs:
            leaves[i] = None
        return self.tree.unflatten(leaves)

    def joined(self, value: PyTree) -> PyTree:
        """The value with the references back in their places."""
        return self.tree.unflatten([self.refs.get(i, x) for i, x in enumerate(
            self.tree.flatten_up_to(value))])

    def returned(self, what: str, fun: Callable[..., PyTree], value: PyTree) -> PyTree:
        """A body's result without the references; TypeError unless each is at its place."""
        try:
            leaves = self.tree.flatten_up_to(value)
        except ValueError:
            return value        # which the loop refuses, by its structure
        for i, ref in self.refs.items():
            if leaves[i] is not ref:
                raise TypeError(
                    f"{what}: {described(fun)} returned {_shown(leaves[i])} as "
                    f"{leaf_names(self.tree, 'the value')[i]}, where it was given a reference; "
                    "a loop cannot change which reference stands at a place: return each reference "
                    "where it was given, and choose by an index, ref[i].")
        return self.without(value)


def places_of(value: PyTree) -> Places | None:
    """The references in the value of a loop of a kernel; None if there are none."""
    if not kernels.staged:
        return None
    carried = Places(value)
    return carried if carried.refs else None


def _shown(x: PyTree) -> str:
    return f"another reference, {x.aval}," if is_ref(x) else f"{x!r:.60}"


def closed_over(what: str, fun: Callable[..., PyTree], carried: Places, at: int = 0,
                pair: bool = False) -> Callable[..., PyTree]:
    """A loop's body as a function of values without references.

    Args:
      at: the place of the value among the body's arguments.
      pair: whether the value is the first of two results.
    """
    @functools.wraps(fun)
    def body(*args: PyTree) -> PyTree:
        result = fun(*args[:at], carried.joined(args[at]), *args[at + 1:])
        if not pair:
            return carried.returned(what, fun, result)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            return result       # which the loop refuses
        return carried.returned(what, fun, result[0]), result[1]

    return body
