"""The base class of sparse arrays, their static fields, and the checks of their parts.

    BCOO    data[*batch, nse, *dense], indices[*batch, nse, n_sparse]
    BCSR    data[*batch, nse, *dense], indices[*batch, nse], indptr[*batch, rows + 1]

A part may have size 1 along a larger batch axis: all batches along the axis then share it.
An index outside of the array, negative or too large, is padding: its element is nowhere.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import NamedTuple, NoReturn, Protocol, Self

from ..base.typing import Array, DType
from ..core.trace import Tracer
from ..numpy.creation import asarray
from ..types import dtypes
from ..types.shape import canonical_shape, prod
from ..types.symbolic import is_symbolic_dim

Shape = tuple[int, ...]
#: descriptions of parameters, for the docstrings of this room
WORDS = {
    "mat": "the array.", "arr": "the array.", "operand": "the array.", "operands": "the arrays.",
    "lhs, rhs": "the arrays.", "nse": "the number of stored elements, static; None counts them.",
    "index_dtype": "the dtype of the indices.",
    "dimension_numbers": "as those of the function of `lax`.", "dimension": "the axis.",
    "dimensions": "the axes.", "shape": "the new shape.", "sharding": "not used.",
    "broadcast_dimensions": "for each axis of the array, its place in the new shape.",
    "start_indices": "where it starts, along each axis.", "slice_sizes": "the sizes of the result.",
    "precision": "not used.", "out_sharding": "not used.",
    "preferred_element_type": "the dtype of sums and result; None is that of the operands.",
    "v": "a vector.", "B": "a dense matrix.", "transpose": "whether of the transpose.",
    "indices": "the indices.", "spenv": "the environment.", "spvalues": "the values, a pytree.",
    "args": "the arrays, a pytree.", "fun": "the function.", "in_axes": "as those of `vmap`.",
}


class SparseEfficiencyError(ValueError):
    """A layout was asked for that would store many zeros."""


class SparseEfficiencyWarning(UserWarning):
    """A layout stores many zeros, or an operation is slow."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """An operation is slow on a GPU. Kept for programs that filter it; Olympus never gives it."""


class SparseInfo(NamedTuple):
    """The static fields of a BCOO or BCSR: its shape, and the promises about its indices.

    >>> from olympus.experimental import sparse
    >>> sparse.util.SparseInfo((2, 3)).unique_indices
    False
    """

    shape: Shape
    indices_sorted: bool = False
    unique_indices: bool = False
    #: in trees: the batch axes, larger than 1, along which all parts have the size 1
    shared: tuple[int, ...] = ()


class COOInfo(NamedTuple):
    """The static fields of a COO: its shape, and which indices are promised as sorted.

    >>> from olympus.experimental import sparse
    >>> sparse.coo.COOInfo((2, 3)).rows_sorted
    False
    """

    shape: Shape
    rows_sorted: bool = False
    cols_sorted: bool = False


class BCOOProperties(NamedTuple):
    """The numbers of axes of a BCOO, and of its stored elements.

    >>> from olympus.experimental import sparse
    >>> sparse.bcoo.BCOOProperties(n_batch=0, n_sparse=2, n_dense=0, nse=5).nse
    5
    """

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


class BCSRProperties(NamedTuple):
    """The numbers of axes of a BCSR, and of its stored elements.

    >>> from olympus.experimental import sparse
    >>> sparse.bcsr.BCSRProperties(n_batch=0, n_dense=0, nse=5).nse
    5
    """

    n_batch: int
    n_dense: int
    nse: int


def as_int(what: str, number: object) -> int:
    """A parameter as an int; TypeError for anything else."""
    try:
        return operator.index(number)   # pyright: ignore[reportArgumentType]
    except TypeError:
        raise TypeError(f"{what}: {number!r:.60} of type {type(number).__name__} given; an int is "
                        "required.") from None


def given_parts(what: str, args: object, names: str) -> list[Array]:
    """The arrays that a sparse array is made of; TypeError unless as many are given as it has."""
    count = names.count(",") + 1
    if not isinstance(args, (tuple, list)) or len(args) != count:
        shown = f"{len(args)} parts" if isinstance(args, (tuple, list)) else type(args).__name__
        raise TypeError(
            f"{what}: {shown} given; a tuple of {count} arrays, ({names}), is required.")
    return [asarray(x) for x in args]


def tree_info(info: SparseInfo, parts: Sequence[object], behind: int) -> SparseInfo:
    """The static part of a sparse array's pytree: `info`, with the batch axes that batches share.

    `behind`: how many axes of the second part are no batches. Parts may be any objects.
    """
    shapes = [getattr(part, "shape", None) or () for part in parts]
    if len(shapes[1]) <= behind:
        return info
    batches = zip(info.shape, *shapes[:1], shapes[1][:-behind], *shapes[2:])
    return info._replace(shared=tuple([
        i for i, (size, *own) in enumerate(batches) if size != 1 and set(own) == {1}]))


def healed_shape(info: SparseInfo, behind: int, *batches: Shape) -> Shape:
    """The shape of a sparse array whose parts now have these batch axes.

    `vmap` and `scan` take a leading axis from the leaves of a pytree, or add one, and `shard_map`
    cuts axes; none changes the static shape. `behind`: the number of axes that are no batches.
    """
    known = info.shape[:len(info.shape) - behind]
    first = len(batches[0]) - len(known)    # where the former first axis is now
    # Where all parts have the size 1, either the axis has it or they share the axis.
    sizes = [known[i - first] if size == 1 and i - first in info.shared else size
             for i, size in enumerate(largest(*batches))]
    return (*sizes, *info.shape[len(known):])


def largest(*batches: Sequence[int]) -> tuple[int, ...]:
    """The sizes that batch axes broadcast to: where they differ, the one that is not 1."""
    return tuple(next((s for s in sizes if s != 1), 1) for sizes in zip(*batches, strict=True))


class Buffer(Protocol):
    """Anything with a shape and a dtype.

    >>> from olympus.experimental import sparse
    >>> mat: sparse.bcoo.Buffer = sparse.eye(2).data
    >>> mat.shape
    (2,)
    """

    @property
    def shape(self) -> Shape: ...

    @property
    def dtype(self) -> DType: ...


class OLYMPUSSparse:
    """The base class of sparse arrays: pytrees of the arrays that they are stored in.

    Args:
      args: the arrays.
      shape: the shape of the array that they stand for.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental import sparse
    >>> M = sparse.CSR.fromdense(onp.array([[0., 1.], [2., 0.]]))
    >>> isinstance(M, sparse.OLYMPUSSparse), M.ndim, M.size, len(M)
    (True, 2, 4, 2)
    """

    data: Array
    shape: Shape
    __array_priority__ = 100
    __array_ufunc__ = None      # NumPy leaves operators to us
    __hash__ = None     # pyright: ignore[reportAssignmentType]

    def __init__(self, args: tuple[Array, ...], *, shape: Sequence[int]) -> None:
        self.shape = canonical_shape(shape, type(self).__name__)

    def tree_flatten(self) -> tuple[tuple[Array, ...], object]:
        """For pytrees: the arrays as leaves, and the static fields."""
        raise NotImplementedError(f"{type(self).__name__}.tree_flatten")

    @property
    def dtype(self) -> DType:
        """The dtype of the stored elements."""
        return self.data.dtype

    @property
    def nse(self) -> int:
        """The number of stored elements, padding included; in each batch."""
        raise NotImplementedError(f"{type(self).__name__}.nse")

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, stored or not."""
        return prod(self.shape)

    @property
    def T(self) -> Self:
        """The transpose: all axes in reverse order."""
        return self.transpose()

    def __len__(self) -> int:
        return self.shape[0]

    def _extra(self) -> str:
        """Further entries of the repr."""
        return ""

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            text = f"{name}({self.dtype}{list(self.shape)}, nse={self.nse}{self._extra()})"
        except (AttributeError, IndexError, TypeError, NotImplementedError):
            return f"{name}(<invalid>)"     # unflattened with leaves that are no arrays
        return f"{type(self.data).__name__}[{text}]" if isinstance(self.data, Tracer) else text

    def block_until_ready(self) -> Self:
        """Wait for the arrays to be computed; return the sparse array."""
        for part in self.tree_flatten()[0]:
            part.block_until_ready()
        return self

    def __array__(self, dtype: DType | None = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(f"numpy.asarray: {self!r} given; a dense array is required; call "
                        "todense(), which stores every zero.")

    def transpose(self, axes: Sequence[int] | None = None) -> Self:
        """The sparse array with permuted axes."""
        return self._lacks("transpose")

    def todense(self) -> Array:
        """The array, dense."""
        return self._lacks("todense")

    def sum(self, *args: object, **kwargs: object) -> object:
        """The sum along axes."""
        return self._lacks("sum")

    def _lacks(self, what: str) -> NoReturn:
        name = type(self).__name__
        raise NotImplementedError(
            f"{name}: {what} of {self!r} asked for; {name} has matrix products, transposes and "
            "todense() only;\n  convert it, for example BCOO.fromdense(M.todense(), nse=M.nse), "
            "or M.to_bcoo() of a BCSR.")


def _operator(name: str) -> object:
    def method(self: OLYMPUSSparse, *args: object) -> NoReturn:
        self._lacks(name)
    method.__name__ = method.__qualname__ = name
    return method


for _name in ("neg", "pos", "abs", "matmul", "rmatmul", "mul", "rmul", "add", "radd", "sub", "rsub",
              "truediv", "rtruediv", "pow", "rpow", "getitem"):
    setattr(OLYMPUSSparse, f"__{_name}__", _operator(f"__{_name}__"))


def described(data: Buffer | None = None, indices: Buffer | None = None,
              indptr: Buffer | None = None) -> str:
    """The types of given parts, for messages."""
    return ", ".join(f"{name} {part.dtype}{list(part.shape)}"
                     for name, part in (("data", data), ("indices", indices), ("indptr", indptr))
                     if part is not None)


def _served(part: Iterable[int], whole: Iterable[int]) -> bool:
    """Whether batch axes of a part broadcast to the batch axes of the array."""
    return all(s in (1, w) for s, w in zip(part, whole))


def check_counts(what: str, dtype: DType, sizes: Sequence[int]) -> None:
    """ValueError unless indices of a dtype hold these sizes; padding has the size itself."""
    most = dtypes.iinfo(dtype).max
    if any(not is_symbolic_dim(size) and size > most for size in sizes):
        raise ValueError(f"{what}; {dtype} counts to {most}; a dtype that holds "
                         f"{max(n for n in sizes if not is_symbolic_dim(n))} is required.")


def index_properties(indices: Buffer, shape: Sequence[int]) -> BCOOProperties:
    """The numbers of axes of a BCOO with these indices; TypeError or ValueError if they misfit."""
    what = f"BCOO: {described(indices=indices)} for shape {tuple(shape)} given"
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"{what}; indices of an integer dtype are required.")
    if len(indices.shape) < 2:
        raise ValueError(f"{what}; indices [*batch, nse, n_sparse] are required; for one sparse "
                         "axis add a last axis of size 1.")
    *batch, nse, n_sparse = indices.shape
    n_dense = len(shape) - len(batch) - n_sparse
    if n_dense < 0:
        raise ValueError(f"{what}; {len(batch)} batch axes and {n_sparse} sparse axes need a shape "
                         f"of {len(batch) + n_sparse} sizes or more.")
    if not _served(batch, shape):
        raise ValueError(f"{what}; indices batch dimensions not compatible: sizes 1 or "
                         f"{tuple(shape[:len(batch)])} are required.")
    check_counts(what, indices.dtype, shape[len(batch):len(batch) + n_sparse])
    return BCOOProperties(len(batch), n_sparse, n_dense, nse)


def bcoo_properties(data: Buffer, indices: Buffer, shape: Sequence[int]) -> BCOOProperties:
    """The numbers of axes of a BCOO of these parts; TypeError or ValueError if they misfit."""
    props = index_properties(indices, shape)
    n_batch, n_sparse, _, nse = props
    what = f"BCOO: {described(data, indices)} for shape {tuple(shape)} given"
    if not _served(data.shape[:n_batch], shape) or len(data.shape) < n_batch:
        raise ValueError(f"{what}; data batch dimensions not compatible: sizes 1 or "
                         f"{tuple(shape[:n_batch])} are required.")
    if tuple(data.shape[n_batch:]) != (nse, *shape[n_batch + n_sparse:]):
        raise ValueError(f"{what}; Invalid data.shape: after the batch axes, nse and the dense "
                         f"axes, {(nse, *shape[n_batch + n_sparse:])}, are required.")
    return props


def pointer_properties(indices: Buffer, indptr: Buffer, shape: Sequence[int]) -> BCSRProperties:
    """The numbers of axes of a BCSR with these indices; TypeError or ValueError if they misfit."""
    what = f"BCSR: {described(None, indices, indptr)} for shape {tuple(shape)} given"
    for part in (indices, indptr):
        if not dtypes.is_integer(part.dtype):
            raise TypeError(f"{what}; integer dtypes are required.")
    n_batch = len(indices.shape) - 1
    n_dense = len(shape) - n_batch - 2
    if n_batch < 0 or n_dense < 0 or len(indptr.shape) != n_batch + 1:
        raise ValueError(f"{what}; indices [*batch, nse], indptr [*batch, rows + 1] and a shape "
                         "[*batch, rows, columns, *dense] are required.")
    for name, part in (("indices", indices), ("indptr", indptr)):
        if not _served(part.shape[:n_batch], shape):
            raise ValueError(f"{what}; {name} batch dimensions not compatible: sizes 1 or "
                             f"{tuple(shape[:n_batch])} are required.")
    if indptr.shape[-1] != shape[n_batch] + 1:
        raise ValueError(f"{what}; indptr shape must match the matrix shape plus 1: a last axis of "
                         f"size {shape[n_batch] + 1} is required.")
    check_counts(what, indices.dtype, shape[n_batch + 1:n_batch + 2])
    check_counts(what, indptr.dtype, indices.shape[-1:])
    return BCSRProperties(n_batch, n_dense, indices.shape[-1])


def bcsr_properties(data: Buffer, indices: Buffer, indptr: Buffer, shape: Sequence[int]
                    ) -> BCSRProperties:
    """The numbers of axes of a BCSR of these parts; TypeError or ValueError if they misfit."""
    props = pointer_properties(indices, indptr, shape)
    n_batch, _, nse = props
    what = f"BCSR: {described(data, indices, indptr)} for shape {tuple(shape)} given"
    if not _served(data.shape[:n_batch], shape) or len(data.shape) < n_batch:
        raise ValueError(f"{what}; data batch dimensions not compatible: sizes 1 or "
                         f"{tuple(shape[:n_batch])} are required.")
    if tuple(data.shape[n_batch:]) != (nse, *shape[n_batch + 2:]):
        raise ValueError(f"{what}; Invalid data.shape: after the batch axes, nse and the dense "
                         f"axes, {(nse, *shape[n_batch + 2:])}, are required.")
    return props
