"""The base of all matrix operations: batches, checks, LAPACK calls, matrix arithmetic.

`MatrixOperation` is the family: a subclass says how many trailing axes its operands have and which
results they give, and emits the kernel; inference, empty arrays and vmap follow. The functions
below are the matrix arithmetic of the derivative rules: all act on the last two axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar

from ...base.typing import Array, ArrayLike, DType, DTypeLike, IrValue, Params
from ...core import tags
from ...core.facts import Shapes
from ...core.primitive import Axis, Builder, Primitive, Zero
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.shape import definitely_equal, prod
from ..arithmetic import conj, mul, sub
from ..comparison import eq, ge, le, select
from ..contract import dot_general
from ..convert import convert_element_type
from ..creation import broadcasted_iota
from ..families import add
from ..indexing import GatherDimensionNumbers, gather
from ..shape import (
    align, broadcast_in_dim, check_element, expand_dims, merge, move_axis, reduce_sum, transpose,
    zeros_of,
)
from ..slicing import slice_in_dim
from .kernels import INT32

Shape = tuple[int, ...]
Results = list[tuple[Shape, DType]]    # of an operation: trailing shape and dtype of each
LAPACK = frozenset(dtypes.as_dtype(d) for d in ("float32", "float64", "complex64", "complex128"))


class MatrixOperation(Primitive, abstract=True):
    """An operation on the last axes of its operands, in parallel over leading axes that all share.

    ranks                               trailing axes per operand: 2 for a matrix, 1 for a vector
    accepts                             dtypes that operands may have; all must have the same
    indices                             places of operands that are int32 instead
    results(dtype, *shapes, **params)   -> (trailing shape, dtype) per result; raises on bad shapes
    emit(b, *xs, **params)              lower, where no operand is empty; -> list
    emit_empty(b, *xs, **params)        lower, where one is: zeros unless overridden; -> list
    """

    ranks: ClassVar[tuple[int, ...]] = (2,)
    accepts: ClassVar[frozenset[Any]] = LAPACK
    indices: ClassVar[tuple[int, ...]] = ()
    results: Callable[..., Results]
    emit: Callable[..., Sequence[IrValue]]

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        # The cost of LAPACK's functions for a matrix: a call, 50 to 500 ns, and its size cubed.
        if self.pace == math.inf:
            return math.inf
        *batch, rows, columns = ins[0]
        return prod(batch) * (150.0 + self.pace * rows * columns * min(rows, columns))

    def infer(self, *avals: ShapedArray, **params: Hashable) -> list[ShapedArray] | ShapedArray:
        batch = self._check(avals)
        shapes = [a.shape[len(batch):] for a in avals]
        weak = all(a.weak_type for i, a in enumerate(avals) if i not in self.indices)
        results = [make_aval((*batch, *shape), dtype, weak and dtype != INT32)
                   for shape, dtype in self.results(avals[0].dtype, *shapes, **params)]
        return results if self.multiple_results else results[0]

    def spread(self, operands: Sequence[tags.Operand], outs: Sequence[ShapedArray], params: Params
               ) -> list[tags.Entries]:
        return tags.matrix(operands, outs, self.ranks)

    def _check(self, avals: Sequence[ShapedArray]) -> Shape:
        """The batch that all operands have; raises on dtypes and ranks that do not fit."""
        head = f"{self.name}: {describe(avals)} given; "
        for i, (aval, rank) in enumerate(zip(avals, self.ranks, strict=True)):
            accepts = frozenset((INT32,)) if i in self.indices else self.accepts
            if aval.dtype not in accepts:
                names = sorted(map(dtypes.long_name, accepts))
                raise TypeError(f"{head}{', '.join(names[:-1])}{' or ' * (len(names) > 1)}"
                                f"{names[-1]} is required; convert it with astype.")
            if aval.dtype != avals[0].dtype and i not in self.indices:
                raise TypeError(f"{head}equal dtypes are required; convert one of them.")
            if aval.ndim < rank:
                axes = "axis is" if rank == 1 else "axes are"
                raise TypeError(f"{head}at least {rank} {axes} required of {aval}; reshape it.")
        batches = [a.shape[:a.ndim - rank] for a, rank in zip(avals, self.ranks, strict=True)]
        for other in batches[1:]:
            if len(other) != len(batches[0]) or not all(
                    definitely_equal(m, n) for m, n in zip(other, batches[0], strict=True)):
                raise TypeError(f"{head}equal leading (batch) axes are required, but they have "
                                f"{', '.join(map(str, batches))}; broadcast them.")
        return batches[0]

    def batch(self, b: Builder) -> int:
        """The number of batch axes of the equation being lowered."""
        return b.avals_in[0].ndim - self.ranks[0]

    def lower(self, b: Builder, *xs: IrValue, **params: Hashable) -> Sequence[IrValue] | IrValue:
        empty = any(a.size == 0 for a in b.avals_in)
        outs = (self.emit_empty if empty else self.emit)(b, *xs, **params)
        return outs if self.multiple_results else outs[0]

    def emit_empty(self, b: Builder, *xs: IrValue, **params: Hashable) -> list[IrValue]:
        return [b.full(a, 0) for a in b.avals_out]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Any, list[int] | int]:
        check_element(self, axis, args, dims, params)
        xs, _ = align(axis, args, dims, 0)
        outs = self.bind(*xs, **params)
        return outs, [0] * len(outs) if self.multiple_results else 0


def describe(avals: Sequence[ShapedArray]) -> str:
    """How messages list operands."""
    kind = "operand" if len(avals) == 1 else "operands"
    return f"{kind} {', '.join(map(str, avals))}"


def check_square(name: str, shape: Shape, what: str = "operand") -> None:
    """Raise ValueError unless the trailing shape of a matrix is [n, n]."""
    if not definitely_equal(*shape):
        raise ValueError(f"{name}: {what} with trailing axes {list(shape)} given; a square matrix, "
                         "or a batch of them, is required.")


def real_dtype(dtype: DTypeLike) -> DType:
    """The dtype of the real and imaginary parts."""
    return dtypes.to_real_dtype(dtype)


def total(*terms: Array | Zero | None) -> Any:
    """The sum of terms, None and Zero left out; None if none is left."""
    nonzero = [t for t in terms if t is not None and type(t) is not Zero]
    out: Any = nonzero[0] if nonzero else None
    for term in nonzero[1:]:
        out = add(out, term)
    return out


def matrix_transpose(x: ArrayLike) -> Array:
    """x[..., n, m] -> [..., m, n]."""
    n = typeof(x).ndim
    return transpose(x, (*range(n - 2), n - 1, n - 2))


def adjoint(x: ArrayLike) -> Array:
    """The conjugate transpose."""
    x = matrix_transpose(x)
    return conj(x) if typeof(x).dtype.kind == "c" else x


def matmul(x: ArrayLike, y: ArrayLike) -> Array:
    """x[..., n, k] @ y[..., k, m] in the full precision of the dtype; equal batches."""
    n = typeof(x).ndim
    batch = tuple(range(n - 2))
    return dot_general(x, y, (((n - 1,), (n - 2,)), (batch, batch)), "highest")


def _positions(x: ArrayLike) -> tuple[Array, Array]:
    """Row and column numbers of the elements of x[..., n, m], as int32[n, m]."""
    shape = typeof(x).shape[-2:]
    return broadcasted_iota(INT32, shape, 0), broadcasted_iota(INT32, shape, 1)


def masked(x: ArrayLike, keep: ArrayLike) -> Array:
    """x[..., n, m] where `keep` (bool[n, m]) holds, else 0: even NaN is left out."""
    aval = typeof(x)
    keep = broadcast_in_dim(keep, aval.shape, (aval.ndim - 2, aval.ndim - 1))
    return select(keep, x, zeros_of(aval))


def tril(x: ArrayLike, k: int = 0) -> Array:
    """x with zeros above its k-th diagonal."""
    row, column = _positions(x)
    return masked(x, ge(add(row, k), column))


def triu(x: ArrayLike, k: int = 0) -> Array:
    """x with zeros below its k-th diagonal."""
    row, column = _positions(x)
    return masked(x, le(add(row, k), column))


def eye(x: ArrayLike) -> Array:
    """An array like x[..., n, m] with ones on the diagonal of each matrix, else zeros."""
    aval = typeof(x)
    ones = convert_element_type(on_diagonal(x), aval.dtype)
    return broadcast_in_dim(ones, aval.shape, (aval.ndim - 2, aval.ndim - 1))


def half(x: ArrayLike) -> Array:
    """The lower triangle with half the diagonal: half(x) + half(x)ᴴ = x for Hermitian x."""
    return sub(tril(x), mul(diagonal_part(x), literal(0.5, typeof(x).dtype)))


def on_diagonal(x: ArrayLike) -> Array:
    """bool[n, m]: which elements of x[..., n, m] are on the diagonal."""
    return eq(*_positions(x))


def diagonal(x: ArrayLike) -> Array:
    """The diagonals of x[..., n, n] as [..., n]."""
    return reduce_sum(diagonal_part(x), (typeof(x).ndim - 1,))


def diagonal_part(x: ArrayLike) -> Array:
    """x with zeros off its diagonal."""
    return masked(x, on_diagonal(x))


def rows(x: ArrayLike, start: int, stop: int | None) -> Array:
    """x[..., start:stop, :]."""
    return slice_in_dim(x, start, stop, 1, typeof(x).ndim - 2)


def columns(x: ArrayLike, start: int, stop: int | None) -> Array:
    """x[..., start:stop]; of vectors, elements."""
    return slice_in_dim(x, start, stop, 1, typeof(x).ndim - 1)


def take_rows(x: Array, indices: ArrayLike) -> Array:
    """x[..., m, n] at places[..., m]: the rows of each matrix in another order."""
    aval = typeof(x)
    if aval.size == 0:
        return x
    batch = tuple(range(aval.ndim - 2))
    at = (aval.ndim - 2,)
    numbers = GatherDimensionNumbers((aval.ndim - 1,), at, at, batch, batch)
    return gather(x, expand_dims(indices, (-1,)), numbers, (*[1] * (aval.ndim - 1), aval.shape[-1]),
                  unique_indices=True)


def take_columns(x: Array, indices: ArrayLike) -> Array:
    """x[..., m, n] at places[..., n]: the columns of each matrix in another order."""
    return matrix_transpose(take_rows(matrix_transpose(x), indices))


def merged(x: ArrayLike, dim: int | None, free: int) -> tuple[Array, Shape]:
    """x with its mapped axis merged into the one that is `free` without it; and the shape that
    the result must have again, mapped at `free`."""
    x = move_axis(x, dim, free)
    return merge(x, free), typeof(x).shape


def scaled(x: ArrayLike, factor: ArrayLike, axes: Sequence[int]) -> Array:
    """x times `factor`, whose axes are the named ones of x."""
    return mul(x, broadcast_in_dim(factor, typeof(x).shape, tuple(axes)))
