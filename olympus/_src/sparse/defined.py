"""Operations given by a definition, and the functions that definitions call.

    Defined("bcoo_todense", definition)     the primitive whose rules are those of its definition
    batched(f, sizes)(*parts)               f for each batch; a part of size 1 serves the axis
    read(x, index), add_at(sizes, index, updates)     elements at indices; padding counts nowhere
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, IrValue, Params
from ..core.primitive import Axis, Builder, Cotangent, Linear, Primitive, Tangent, Transposed
from ..core.staging import stage
from ..core.trace import typeof
from ..interpreters.batching import batch_flat
from ..interpreters.jvp import jvp_flat
from ..interpreters.transpose import apply_transpose
from ..lax.convert import convert_element_type
from ..lax.indexing import GatherDimensionNumbers, ScatterDimensionNumbers, gather, scatter_add
from ..lax.shape import broadcast_in_dim, squeeze
from ..mapping.vmap import vmap
from ..numpy.creation import zeros
from ..numpy.reductions import any as any_of
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.shape import prod
from ..types.tree import flatten_axes, tree_flatten
from .formats import WORDS, largest

Definition = Callable[..., "Array | Sequence[Array]"]
BOOL, UINT8 = dtypes.as_dtype("bool"), dtypes.as_dtype("uint8")


class Defined(Primitive):
    """An operation given by its `definition`, a function of other operations.

    Derivatives and vmap go through the definition. Subclasses replace a rule where another one is
    quicker.
    """

    def __init__(self, name: str, definition: Definition, multiple_results: bool = False) -> None:
        super().__init__(name)
        self.definition, self.multiple_results = definition, multiple_results

    def flat(self, params: Params) -> Callable[..., Sequence[Array]]:
        """The definition as a function that returns a list."""
        def run(*xs: Array) -> Sequence[Array]:
            out = self.definition(*xs, **params)
            return out if self.multiple_results else [out]  # pyright: ignore[reportReturnType]
        return run

    def infer(self, *avals: ShapedArray, **params: Hashable) -> ShapedArray | list[ShapedArray]:
        outs = stage(self.flat(params), avals).out_avals
        return list(outs) if self.multiple_results else outs[0]

    def lower(self, b: Builder, *xs: IrValue, **params: Hashable) -> IrValue | list[IrValue]:
        return b.inline(self.definition, *xs, **params)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], **params: Hashable
            ) -> tuple[Array | list[Array], Tangent | list[Tangent]]:
        outs, out_tangents = jvp_flat(self.flat(params), primals, tangents)
        return (outs, out_tangents) if self.multiple_results else (outs[0], out_tangents[0])

    def transpose(self, cts: Tangent | Sequence[Tangent], *args: Transposed, **params: Hashable
                  ) -> Sequence[Cotangent]:
        closed = stage(self.flat(params), [x.aval if type(x) is Linear else typeof(x)
                                           for x in args])
        cotangents = cts if isinstance(cts, (list, tuple)) else [cts]
        return apply_transpose(closed.olympuspr, closed.consts, args,
                               cotangents, self.name)    # pyright: ignore[reportArgumentType]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None],
             **params: Hashable
             ) -> tuple[Array | list[Array], int | None | list[int | None]]:
        outs, out_dims = batch_flat(self.flat(params), axis, args, dims)
        return (outs, out_dims) if self.multiple_results else (outs[0], out_dims[0])


def batched(f: Callable[..., Array | Sequence[Array]], sizes: Sequence[int]
            ) -> Callable[..., Array]:
    """`f` mapped over the leading axes of all operands.

    An operand whose axis has the size 1 serves the whole axis.
    """
    if not sizes:
        return f    # pyright: ignore[reportReturnType]
    size = sizes[0]

    def run(*args: Array) -> Array:
        mapped = [x.shape[0] == size for x in args]
        xs = [x if m else squeeze(x, (0,)) for x, m in zip(args, mapped, strict=True)]
        axes = tuple(0 if m else None for m in mapped)
        return vmap(batched(f, sizes[1:]), in_axes=axes, axis_size=size)(*xs)

    return run


def broadcasting_vmap(fun: Callable[..., object], in_axes: int | Sequence[object] = 0,
                      out_axes: int | Sequence[object] = 0) -> Callable[..., object]:
    """`vmap` that repeats a mapped axis of size 1 as often as the other operands need.

    Args: out_axes: as those of `vmap`.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental.sparse.util import broadcasting_vmap
    >>> print(broadcasting_vmap(onp.add)(onp.arange(3), onp.array([10])))
    [10 11 12]
    """
    def run(*args: object) -> object:
        leaves, tree = tree_flatten(args)
        axes = flatten_axes("vmap in_axes", tree, in_axes)
        sizes = [x.shape[d] for x, d in zip(leaves, axes) if d is not None]
        size = largest(*[(s,) for s in sizes])[0] if sizes else 1
        if any(s not in (1, size) for s in sizes):
            raise ValueError(f"broadcasting_vmap: mismatched input shapes: mapped axes of the "
                             f"sizes {sizes} given; sizes 1 and {size} are required.")
        if size > 1:
            shared = [d is not None and x.shape[d] == 1 for x, d in zip(leaves, axes)]
            leaves = [squeeze(x, (d,)) if s else x for x, d, s in zip(leaves, axes, shared)]
            axes = [None if s else d for d, s in zip(axes, shared)]
        return vmap(fun, tree.unflatten(axes), out_axes)(*tree.unflatten(leaves))

    return run


def nfold_vmap(fun: Callable[..., object], N: int, *, broadcasted: bool = True,
               in_axes: int | Sequence[object] = 0) -> Callable[..., object]:
    """`fun` mapped over N leading axes, by `broadcasting_vmap` or by `vmap`.

    Args:
      N: the number of axes.
      broadcasted: whether axes of size 1 serve others.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental.sparse.util import nfold_vmap
    >>> print(nfold_vmap(onp.sum, 1)(onp.ones((2, 3))))
    [3. 3.]
    """
    for _ in range(N):
        fun = (broadcasting_vmap if broadcasted else vmap)(fun, in_axes=in_axes)
    return fun


def read(x: Array, index: Array) -> Array:
    """x[i] for each row i of `index`, [n, k]: an array [n, *x.shape[k:]]; 0 outside of `x`."""
    n, k = index.shape
    rest = x.shape[k:]
    if not k:
        return broadcast_in_dim(x, (n, *rest), range(1, len(rest) + 1))
    if not prod(x.shape[:k]):
        return zeros((n, *rest), x.dtype)
    leading = tuple(range(k))
    numbers = GatherDimensionNumbers(tuple(range(1, 1 + len(rest))), leading, leading)
    return gather(x, index, numbers, (*[1] * k, *rest), mode="fill", fill_value=0)


def add_at(sizes: Sequence[int], index: Array, updates: Array) -> Array:
    """An array [*sizes, *rest] of zeros to which updates, [n, *rest], are added.

    Each is added at its row of `index`, [n, len(sizes)]; those outside are dropped.
    """
    rest, dtype = updates.shape[1:], updates.dtype
    if dtype == BOOL:   # the sum of bools is their "or"
        return add_at(sizes, index, convert_element_type(updates, UINT8)) != 0 if sizes else (
            any_of(updates, 0))
    if dtypes.itemsize_bits(dtype) < 8 or (dtype.kind == "V" and dtype.itemsize == 1):
        wide = dtypes.as_dtype("int32" if dtypes.is_integer(dtype) else "float32")
        return convert_element_type(
            add_at(sizes, index, convert_element_type(updates, wide)), dtype)
    if not sizes:
        return updates.sum(0, dtype=dtype)
    out = zeros((*sizes, *rest), dtype)
    if not prod(out.shape) or not index.shape[0]:
        return out
    axes = tuple(range(len(sizes)))
    window = tuple(range(1, 1 + len(rest)))
    return scatter_add(out, index, updates, ScatterDimensionNumbers(window, axes, axes),
                       mode="drop")


complete_docstrings(globals(), WORDS, returns="a function of the same arguments.")
