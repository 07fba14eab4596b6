"""A pytree of arrays as one vector, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.source import api_boundary
from ..base.typing import Array, DType, PyTree
from ..base.util import ByKey
from ..core.trace import typeof
from ..jit.arguments import as_arrays, leaf_path
from ..lax.arithmetic import real
from ..lax.convert import convert_element_type
from ..lax.creation import full
from ..lax.shape import reshape
from ..lax.slicing import concatenate, split
from ..types import dtypes
from ..types.shape import prod
from ..types.tree import tree_flatten
from ..types.tree_registry import PyTreeDef


class Unravel(ByKey):
    """Turns a vector into the pytree that `ravel_pytree` was given; equal for equal trees."""

    __slots__ = ("tree", "types", "dtype")

    def __init__(self, tree: PyTreeDef, types: Sequence[tuple[tuple[int, ...], DType]], dtype: DType
                 ) -> None:
        self.tree, self.types, self.dtype = tree, tuple(types), dtype

    @api_boundary
    def __call__(self, vector: Array) -> PyTree:
        aval = typeof(vector)
        sizes = [prod(shape) for shape, _ in self.types]
        if aval.shape != (sum(sizes),):
            raise ValueError(f"unravel: {aval} given; a vector of {sum(sizes)} elements is "
                             "required, as ravel_pytree returned.")
        mixed = any(dtype != self.dtype for _, dtype in self.types)
        if mixed and aval.dtype != self.dtype:
            raise TypeError("unravel: unravel function given array of dtype "
                            f"{dtypes.long_name(aval.dtype)}, but expected dtype "
                            f"{dtypes.long_name(self.dtype)}, as ravel_pytree returned; convert it "
                            "with astype.")
        parts = split(vector, sizes, 0) if sizes else []
        return self.tree.unflatten([
            _cast_leaf(reshape(part, shape), dtype if mixed else aval.dtype)
            for part, (shape, dtype) in zip(parts, self.types)])

    def _key(self) -> tuple:
        return self.tree, self.types, self.dtype


def _cast_leaf(x: Array, dtype: DType) -> Array:
    if dtypes.is_complex(typeof(x).dtype) and not dtypes.is_complex(dtype):
        x = real(x)     # of a leaf that was real beside a complex one
    return x if typeof(x).dtype == dtype else convert_element_type(x, dtype)


@api_boundary
def ravel_pytree(pytree: PyTree) -> tuple[Array, Callable[[Array], PyTree]]:
    """All elements of a pytree of arrays as one vector, and the function that undoes it.

    The vector has the promoted dtype of all leaves; the function gives each leaf its own back. A
    tree without leaves becomes an empty float vector.

    Args: pytree: a pytree of arrays and numbers.
    Returns: (vector, unravel).

    TypeError for leaves that are not arrays. The returned function raises ValueError for a vector
    of another length and, where the leaves' dtypes differ, TypeError for one of another dtype.

    >>> from olympus.flatten_util import ravel_pytree
    >>> vector, unravel = ravel_pytree({"a": onp.ones((2, 1)), "b": 3.0})
    >>> vector
    Array([1., 1., 3.], dtype=float32)
    >>> unravel(vector * 2)["b"]
    Array(6., dtype=float32)
    """
    leaves, tree = tree_flatten(pytree)
    if not leaves:
        dtype = dtypes.default_float()
        return full((0,), 0, dtype), Unravel(tree, (), dtype)
    avals = []
    for i, leaf in enumerate(leaves):
        try:
            avals.append(typeof(leaf))
        except TypeError:
            raise TypeError(f"ravel_pytree: leaf pytree{leaf_path(pytree, i)} is of type "
                            f"{type(leaf).__name__}; an array or a Python number is required."
                            ) from None
    dtype = dtypes.result_type(*leaves)
    flat = [_cast_leaf(reshape(x, (a.size,)), dtype) for x, a in zip(as_arrays(leaves), avals)]
    vector = concatenate(flat, 0) if len(flat) > 1 else flat[0]
    return vector, Unravel(tree, [(a.shape, a.dtype) for a in avals], dtype)
