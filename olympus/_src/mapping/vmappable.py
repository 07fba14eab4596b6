"""Classes with vmap rules of their own: `batching.register_vmappable`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from ..base.typing import Array, PyTree
from ..base.util import wraps
from ..lax.creation import iota
from ..types.tree import flatten_axes, tree_flatten
from ..types.tree_registry import PyTreeDef
from . import vmap


class Vmappable(NamedTuple):
    """How `vmap` takes values of a class apart into arrays, and puts them together."""

    spec: type
    to_elt: Callable[..., PyTree]
    from_elt: Callable[..., PyTree]


VMAPPABLE: dict[type, Vmappable] = {}


def register(data_type: type, rules: Vmappable) -> None:
    """Let `vmap` map values of a class by rules of its own."""
    VMAPPABLE[data_type] = rules
    vmap.ON_ARRAYS[:] = [OnArrays]


def unregister(data_type: type) -> None:
    """Let `vmap` map values of a class as pytrees again; KeyError for a class without rules."""
    del VMAPPABLE[data_type]
    if not VMAPPABLE:
        vmap.ON_ARRAYS.clear()


def is_vmappable(x: object) -> bool:
    """Whether the class of a value is registered."""
    return type(x) in VMAPPABLE


class OnArrays:
    """A call of a function of registered values as a call of one of arrays.

    `fun` takes `args` and `kwargs`, mapped by `in_axes`. Its results are a list, mapped by
    `out_axes`, a list that is filled as the function runs; `results` puts them together.

    `to_elt` runs twice: first to record the arrays that it maps, then to get an element of each.
    `from_elt` likewise.
    """

    out_tree: PyTreeDef                 # of the results; both from where the function has run
    outs: list[tuple[PyTree, PyTree]]   # each result with its entry of out_axes

    @staticmethod
    def is_spec(entry: object) -> bool:
        """Whether an entry of in_axes is one of a registered class."""
        return any(isinstance(entry, rules.spec) for rules in VMAPPABLE.values())

    def __init__(self, fun: Callable[..., PyTree], args: tuple, kwargs: dict[str, PyTree],
                 in_axes: PyTree, out_axes: PyTree) -> None:
        self.args, self.kwargs, self.in_axes = args, kwargs, in_axes
        self.out_axes: list[PyTree] = []
        leaves, tree = tree_flatten((args, kwargs), is_vmappable)
        taken, dims = any(map(is_vmappable, leaves)), []
        if taken:
            first = tree.children()[0]
            dims = (flatten_axes("vmap in_axes", first, in_axes) if type(in_axes) is tuple else
                    [in_axes] * first.num_leaves)
            dims += [0] * (len(leaves) - len(dims))
            asked: list[tuple[PyTree, PyTree]] = []

            def note(x: PyTree, spec: PyTree) -> PyTree:
                asked.append((x, spec))
                return x

            for x, spec in zip(leaves, dims, strict=True):
                _element(note, x, spec)
            self.args, self.in_axes = tuple(zip(*asked, strict=True)) if asked else ((), ())
            self.kwargs = {}

        @wraps(fun)
        def function(*args: PyTree, **kwargs: PyTree) -> list[Array]:
            if taken:
                rest = iter(args)
                args, kwargs = tree.unflatten([_element(lambda *_: next(rest), x, spec)
                                               for x, spec in zip(leaves, dims, strict=True)])
            outs, self.out_tree = tree_flatten(fun(*args, **kwargs), is_vmappable)
            self.outs = list(zip(outs, flatten_axes("vmap out_axes", self.out_tree, out_axes),
                                 strict=True))
            arrays: list[Array] = []
            self.out_axes.clear()

            def note_result(size: object, x: PyTree, spec: PyTree) -> PyTree:
                arrays.append(x)
                self.out_axes.append(spec)
                return x

            for x, spec in self.outs:
                _value(note_result, None, x, spec)
            return arrays

        self.fun = function

    def results(self, arrays: list[Array], size: int | None) -> PyTree:
        """The function's results, made of the mapped arrays."""
        mapped: Iterator[Array] = iter(arrays)
        return self.out_tree.unflatten([_value(lambda *_: next(mapped), size, x, spec)
                                        for x, spec in self.outs])


def _element(take: Callable[[PyTree, PyTree], PyTree], x: PyTree, spec: PyTree) -> PyTree:
    """An element of a value; `take(array, axis)` is an element of an array."""
    if not is_vmappable(x):
        return take(x, spec)
    return VMAPPABLE[type(x)].to_elt(
        partial(_element, take), lambda size: take(iota("int32", size), 0), x, spec)


def _value(place: Callable[[object, PyTree, PyTree], PyTree], size: object, x: PyTree,
           spec: PyTree) -> PyTree:
    """A value of elements; `place(size, element, axis)` is an array of one's."""
    if not is_vmappable(x):
        return place(size, x, spec)
    return VMAPPABLE[type(x)].from_elt(partial(_value, place), size, x, spec)
