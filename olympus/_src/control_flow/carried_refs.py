"""References among the values that loops carry, inside of kernels.

A loop carries contents, and a reference is a place. So a loop closes over the references in its
carry, and its body, which finds them at their places, returns each at its place.

Outside of kernels a loop whose body returns a reference is refused, as a jitted function is.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from ..base.typing import PyTree, Reference
from ..control.bodies import described, leaf_names
from ..core.cells import is_place, is_ref
from ..types.tree import tree_flatten


class _Kernels(threading.local):
    """How many kernels, one in another, this thread stages."""

    staged = 0


kernels = _Kernels()


class Places:
    """The references in a value, by the numbers of their leaves."""

    __slots__ = ("tree", "held")

    def __init__(self, value: PyTree) -> None:
        leaves, self.tree = tree_flatten(value)
        self.held: dict[int, Reference] = {
            i: x for i, x in enumerate(leaves) if is_place(x)}

    def without(self, value: PyTree) -> PyTree:
        """A value of this structure with None for each reference."""
        leaves: list[PyTree] = self.tree.flatten_up_to(value)
        for i in self.held:
            leaves[i] = None
        return self.tree.unflatten(leaves)

    def joined(self, value: PyTree) -> PyTree:
        """The value with the references at their places."""
        return self.tree.unflatten([self.held.get(i, x) for i, x in enumerate(
            self.tree.flatten_up_to(value))])

    def returned(self, what: str, fun: Callable[..., PyTree], value: PyTree) -> PyTree:
        """What a body returned, without the references; TypeError unless each is at its place."""
        leaves, tree = tree_flatten(value)
        if tree != self.tree:
            return value        # which the loop refuses, by its structure
        for i, ref in self.held.items():
            if leaves[i] is not ref:
                raise TypeError(
                    f"{what}: {described(fun)} returned {_shown(leaves[i])} as "
                    f"{leaf_names(tree, 'the value')[i]}, where it was given a reference; a loop "
                    "cannot change which reference stands at a place: return each reference where "
                    "it was given, and choose by an index, ref[i].")
        return self.without(value)


def places_of(value: PyTree) -> Places | None:
    """The references in the value of a loop of a kernel; None if there are none."""
    if not kernels.staged:
        return None
    places = Places(value)
    return places if places.held else None


def _shown(x: PyTree) -> str:
    return f"another reference, {x.aval}," if is_ref(x) else f"{x!r:.60}"


def closed_over(what: str, fun: Callable[..., PyTree], places: Places, at: int = 0,
                pair: bool = False) -> Callable[..., PyTree]:
    """A loop's body as a function of values without references.

    Args:
      at: the place of the value among the body's arguments.
      pair: whether the value is the first of two results.
    """
    @functools.wraps(fun)
    def body(*args: PyTree) -> PyTree:
        found = fun(*args[:at], places.joined(args[at]), *args[at + 1:])
        if not pair:
            return places.returned(what, fun, found)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            return found        # which the loop refuses
        return places.returned(what, fun, found[0]), found[1]

    return body
