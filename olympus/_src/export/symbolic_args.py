"""Arguments with symbolic shapes, from arguments and text."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.typing import PyTree
from ..core.trace import typeof
from ..types.avals import ShapeDtypeStruct
from ..types.scopes import SymbolicScope, symbolic_shape
from ..types.tree import broadcast_prefix, tree_flatten, tree_unflatten


def symbolic_args_specs(args: PyTree, shapes_specs: PyTree, constraints: Sequence[str] = (),
                        scope: SymbolicScope | None = None) -> PyTree:
    """Specifications of arguments with symbolic shapes, for `export`, `trace` and `eval_shape`.

    Args:
      args: a pytree of arrays, numbers or ShapeDtypeStructs: structure, dtypes, and the sizes that
        the placeholders `_` and `...` stand for.
      shapes_specs: text as `symbolic_shape` takes, None for the arrays' own shapes, or a pytree of
        those that is a prefix of `args`.
      constraints, scope: as for `symbolic_shape`; all shapes belong to one scope.
    Returns: A pytree of ShapeDtypeStructs of the structure of `args`. ValueError where
      `shapes_specs` is no prefix of it.

    >>> x = onp.zeros((2, 3))
    >>> export.symbolic_args_specs((x, 1), ("b, _", None))[0]
    ShapeDtypeStruct(shape=(b, 3), dtype=float32)
    """
    leaves, treedef = tree_flatten(args)
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    try:
        texts = broadcast_prefix(shapes_specs, args, lambda x: x is None)
    except ValueError as error:
        raise ValueError("symbolic_args_specs: shapes_specs pytree structure error: different "
                         f"types or sizes of nodes: {error}") from None
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("Cannot use both `scope` and `constraints`")
    specs = []
    for leaf, text in zip(leaves, texts, strict=True):
        aval = leaf if isinstance(leaf, ShapeDtypeStruct) else typeof(leaf)
        specs.append(ShapeDtypeStruct(symbolic_shape(text, like=aval.shape, scope=scope),
                                      aval.dtype))
    return tree_unflatten(treedef, specs)
