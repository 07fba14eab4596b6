"""Derivatives with respect to sparse arrays: of the stored elements, at their indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..autodiff import derivatives as dense, jacobians
from ..base.docstrings import complete_docstrings
from ..base.source import filter_traceback
from ..base.typing import PyTree
from ..base.util import wraps
from ..types.tree import tree_flatten, tree_map, tree_unflatten
from .formats import WORDS, OLYMPUSSparse

Split = tuple[Callable[..., PyTree], tuple[int, ...], list[PyTree], Callable[[PyTree], PyTree]]


def is_sparse(x: object) -> bool:
    """Whether an object is a sparse array.

    Args: x: any object.

    >>> from olympus.experimental import sparse
    >>> sparse.ad.is_sparse(sparse.eye(2)), sparse.ad.is_sparse(2.)
    (True, False)
    """
    return isinstance(x, OLYMPUSSparse)


def _with_data(mat: PyTree, data: PyTree) -> PyTree:
    """A sparse array with other elements, which may have leading axes more than its own."""
    (old, *rest), tree = tree_flatten(mat)
    rank = len(old.shape)
    leaves, structure = tree_flatten(data)
    made = []
    for x in leaves:
        more = x.ndim - rank
        parts = [part[(None,) * more] for part in rest] if more else rest
        made.append(tree_unflatten(tree, [x, *parts]))
    return tree_unflatten(structure, made)


def flatten_fun_for_sparse_ad(fun: Callable[..., PyTree], argnums: int | Sequence[int],
                              args: tuple[PyTree, ...]) -> Split:
    """`fun` as a function of arrays, for derivatives with respect to some arguments.

    Returns: (a function of arrays; the positions of the arrays to differentiate by, for a sparse
      argument its data; the arrays; a function that packs derivatives like the arguments).

    >>> from olympus.experimental import sparse
    >>> f, places, xs, back = sparse.ad.flatten_fun_for_sparse_ad(lambda M: M, 0, (sparse.eye(2),))
    >>> places, len(xs)
    ((0,), 2)
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if any(not -len(args) <= n < len(args) for n in numbers):
        raise ValueError(f"sparse derivative: argnums={argnums} given for {len(args)} arguments; "
                         "numbers of arguments are required.")
    numbers = tuple(n % len(args) for n in numbers)
    flat, trees, positions, wanted = [], [], [], []
    for i, arg in enumerate(args):
        leaves, tree = tree_flatten(arg, is_leaf=is_sparse)
        trees.append((tree, []))
        for leaf in leaves:
            parts, inner = tree_flatten(leaf)
            if i in numbers:
                positions += range(len(flat), len(flat) + (1 if is_sparse(leaf) else len(parts)))
            trees[-1][1].append((inner, len(flat), len(flat) + len(parts)))
            flat += parts
        if i in numbers:
            wanted.append((i, arg))

    def run(*xs: PyTree, **kwargs: PyTree) -> PyTree:
        full = [tree.unflatten([inner.unflatten(xs[a:b]) for inner, a, b in parts])
                for tree, parts in trees]
        return fun(*full, **kwargs)

    def of_arguments(derivatives: Sequence[PyTree]) -> PyTree:
        rest = iter(derivatives)
        whole = {i: tree_map(lambda leaf: _with_data(leaf, next(rest)) if is_sparse(leaf)
                             else next(rest), arg, is_leaf=is_sparse) for i, arg in wanted}
        outs = tuple(whole[n] for n in numbers)
        return outs[0] if isinstance(argnums, int) else outs

    return run, tuple(positions), flat, of_arguments


def _sparse_aware(what: str, transform: Callable[..., Callable[..., PyTree]], valued: bool = False
                  ) -> Callable[..., Callable[..., PyTree]]:
    def derivative(fun: Callable[..., PyTree], argnums: int | Sequence[int] = 0,
                   has_aux: bool = False, **kwargs: bool) -> Callable[..., PyTree]:
        @wraps(fun)
        def run(*args: PyTree, **named: PyTree) -> PyTree:
            try:
                flat, positions, xs, back = flatten_fun_for_sparse_ad(fun, argnums, args)
                out = transform(flat, positions, has_aux=has_aux, **kwargs)(*xs, **named)
                if valued:
                    return out[0], back(out[1])
                return (back(out[0]), out[1]) if has_aux else back(out)
            except Exception as error:
                filter_traceback(error)
                raise
        return run

    derivative.__name__ = derivative.__qualname__ = what
    derivative.__doc__ = f"""`olympus.{what}` for functions of sparse and dense arguments.

    Args:
      argnums: the arguments to differentiate by.
      has_aux: whether the function returns a pair, whose second item is passed on.
      **kwargs: further options of `olympus.{what}`.

    Returns:
      A function of the same arguments. The derivative by a sparse argument is a sparse array with
      its indices: what is not stored is held at 0.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental import sparse
    >>> M = sparse.BCOO.fromdense(onp.array([0., 2., 3.]))
    >>> found = sparse.{what}(lambda M: (M @ onp.ones(3)) ** 2)(M)
    """
    return derivative


value_and_grad = _sparse_aware("value_and_grad", dense.value_and_grad, valued=True)
grad = _sparse_aware("grad", dense.grad)
jacfwd = _sparse_aware("jacfwd", jacobians.jacfwd)
jacrev = _sparse_aware("jacrev", jacobians.jacrev)
jacobian = jacrev


complete_docstrings(globals(), WORDS, returns="a bool.")
