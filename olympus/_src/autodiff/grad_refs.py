"""Gradients that are added to references: the pullback of `vjp`, told where each one goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..base.source import api_boundary
from ..base.typing import PyTree, Reference
from ..base.util import wraps
from ..control_flow.carried_refs import Places
from ..core.cells import check_aliases, is_ref
from ..core.ir import Var
from ..core.trace import typeof
from ..jit.arguments import structure_path
from ..types.avals import ShapedArray, matches
from ..types.refs import inner
from ..types.tree_registry import PyTreeDef, register_pytree_node

if TYPE_CHECKING:
    from .derivatives import Pullback


def without_references(fun: Callable[..., PyTree], primals: tuple[PyTree, ...]
                       ) -> tuple[Callable[..., PyTree], tuple[PyTree, ...]]:
    """The function and its arguments with None in place of references, which it gets all the same.

    Unless there is nothing else, by which it could be differentiated, or they cannot be flattened:
    then the caller refuses them.
    """
    try:
        places = Places(primals, parts=True)
    except (RecursionError, ValueError):
        return fun, primals
    if len(places.refs) in (0, places.tree.num_leaves):
        return fun, primals

    @wraps(fun)
    def closed_over(*args: PyTree) -> PyTree:
        return fun(*places.joined(args))
    return closed_over, places.without(primals)


class _Mark:
    """What is wanted of a gradient, or what became of it; in pytrees a node without leaves."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class GradValue(_Mark):
    """In `with_refs`: the gradient is returned.

    >>> import olympus
    >>> pullback = olympus.vjp(lambda x, y: x * y, 3., 4.)[1]
    >>> x_ct, y_ct = pullback.with_refs(olympus.ad.GradValue(), olympus.ad.GradValue())(1.)
    >>> float(x_ct), float(y_ct)
    (4.0, 3.0)
    """

    __slots__ = ()


class DontWant(_Mark):
    """In `with_refs`: the gradient is not wanted.

    >>> import olympus
    >>> pullback = olympus.vjp(lambda x, y: x * y, 3., 4.)[1]
    >>> x_ct, y_ct = pullback.with_refs(olympus.ad.GradValue(), olympus.ad.DontWant())(1.)
    >>> float(x_ct), y_ct
    (4.0, DidntWant())
    """

    __slots__ = ()


class GradRef(_Mark):
    """In a result: the gradient was added to the reference.

    >>> import olympus
    >>> pullback = olympus.vjp(lambda x, y: x * y, 3., 4.)[1]
    >>> total = olympus.new_ref(olympus.numpy.float32(10.))
    >>> pullback.with_refs(total, olympus.ad.DontWant())(1.)[0], float(total[...])
    (GradRef(), 14.0)
    """

    __slots__ = ()


class DidntWant(_Mark):
    """In a result: the gradient was not wanted.

    >>> import olympus
    >>> pullback = olympus.vjp(lambda x, y: x * y, 3., 4.)[1]
    >>> marks = pullback.with_refs(olympus.ad.DontWant(), olympus.ad.DontWant())(1.)
    >>> marks == (olympus.ad.DidntWant(), olympus.ad.DidntWant())
    True
    """

    __slots__ = ()


for _kind in (GradValue, DontWant, GradRef, DidntWant):
    register_pytree_node(_kind, lambda mark: ((), None), lambda _, children, kind=_kind: kind())


def with_refs(pullback: Pullback, wanted: Sequence[PyTree]) -> Callable[..., tuple[PyTree, ...]]:
    """The pullback whose gradients go where `wanted` says, one tree for each argument."""
    tree, avals = pullback.meta.in_tree, pullback.meta.lin.avals
    leaves = _leaves(tree, wanted)
    for i, (x, aval) in enumerate(zip(leaves, avals, strict=True)):
        _check_reference(tree, i, x, aval)
    check_aliases("vjp", pullback.meta.name, (), leaves,
                  lambda i: f"with_refs{structure_path(tree, i)}")

    @api_boundary
    def call(*out_cts: PyTree) -> tuple[PyTree, ...]:
        refs = {i: x for i, x in enumerate(leaves) if is_ref(x)}
        pulled = pullback.pulled(out_cts, refs)
        return tree.unflatten([
            GradRef() if i in refs else DidntWant() if type(x) is DontWant else ct
            for i, (x, ct) in enumerate(zip(leaves, pulled, strict=True))])

    return call


def _leaves(tree: PyTreeDef, wanted: Sequence[PyTree]) -> list[Reference]:
    """For each leaf of the arguments a reference or a mark; a mark stands for a whole argument."""
    trees = tree.children()
    if len(wanted) != len(trees):
        raise ValueError(f"vjp: {len(wanted)} given to with_refs for {len(trees)} arguments; one "
                         "for each is required: a reference, GradValue() or DontWant(), or a tree "
                         "of them.")
    found = []
    for its, given in zip(trees, wanted, strict=True):
        found += [given] * its.num_leaves if isinstance(given, _Mark) else its.flatten_up_to(given)
    return found


def _check_reference(tree: PyTreeDef, index: int, x: Reference, aval: ShapedArray) -> None:
    if type(x) in (GradValue, DontWant):
        return
    where = f"with_refs{structure_path(tree, index)}"
    if not is_ref(x):
        raise TypeError(f"vjp: {x!r:.60} of type {type(x).__name__} given as {where}; a reference, "
                        "olympus.ad.GradValue() or olympus.ad.DontWant() is required.")
    have, want = typeof(x), aval.to_cotangent_aval()
    if not matches(inner(have), want):
        raise ValueError(f"vjp: {have} given as {where} for the argument {aval}; a reference of "
                         f"the gradient's type {want} is required; make it of "
                         "olympus.numpy.zeros_like of the argument.")


def into(invars: Sequence[Var], active: Sequence[bool], refs: Mapping[int, Reference]
         ) -> dict[Var, Reference]:
    """References by the inputs of a program whose cotangents they take."""
    places = [i for i, a in enumerate(active) if a]
    return {v: refs[i] for v, i in zip(invars, places, strict=True) if i in refs}
