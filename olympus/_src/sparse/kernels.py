"""Products of large matrices on one CPU: with a vector, and with several columns.

With a vector: XLA's scatter adds one product after the other, and waits for the last sum where the
next product is of the same row. So long rows have two sums each, which take turns.

Several columns: the kernel of jaxlib, which believes its indices: pointers must ascend from 0 to at
most the number of elements, and columns be in the array. So each program asks whether those at hand
are such, and whether rows are sorted where that is promised; where not, the plain form runs.
"""

from __future__ import annotations

from collections.abc import Callable

from ..base.lib import sparse_product_target
from ..base.typing import Array, DType, IrValue
from ..core.kernels import Kernel
from ..core.primitive import Builder
from ..lax.barriers import optimization_barrier
from ..lax.creation import broadcasted_iota, iota
from ..lax.indexing import GatherDimensionNumbers, gather
from ..numpy.arithmetic import minimum
from ..numpy.creation import zeros
from ..numpy.joining import concatenate
from ..numpy.reductions import cumsum
from ..numpy.selection import where
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from .defined import Defined, add_at
from .formats import Shape, SparseInfo
from .products import Numbers, bcoo_dot_general_p, bcsr_dot_general_p, columns_of

INT32 = dtypes.as_dtype("int32")
_TERMS = ("int32", "int64", "float32", "float64", "complex64", "complex128")
_LONG = 8       # elements in each row from which two sums are quicker than one
_WIDTH = 8      # columns that the kernel multiplies by at once; others it does slowly


# A vector ----------------------------------------------------------------------------------------

def _takes_turns(b: Builder, *parts: IrValue, dimension_numbers: Numbers,
                 preferred_element_type: DType | None, lhs_spinfo: SparseInfo) -> bool:
    data, indices, rhs = b.avals_in
    ((lc, _), _) = dimension_numbers
    return (len(lc) == rhs.ndim == data.ndim == 1 and indices.shape == (data.size, 2)
            and indices.dtype.name in ("int32", "int64") and data.size >= 2**14
            and data.dtype.name in _TERMS and rhs.dtype == data.dtype == b.avals_out[0].dtype
            and 0 not in lhs_spinfo.shape and 2 * max(lhs_spinfo.shape) < 2**31)


def _by_vector(b: Builder, *xs: IrValue, dimension_numbers: Numbers,
               preferred_element_type: DType | None, lhs_spinfo: SparseInfo) -> IrValue:
    (((met,), _), _) = dimension_numbers
    height, width = lhs_spinfo.shape[1 - met], lhs_spinfo.shape[met]

    def product(data: Array, indices: Array, x: Array) -> list[Array]:
        nse, = data.shape
        rows, columns = (columns_of(indices, (k,)) for k in (1 - met, met))
        found = gather(x, columns, GatherDimensionNumbers((), (0,), (0,)), (1,),
                       mode="promise_in_bounds")    # which XLA clamps
        # One choice, after the product: what padding stores or finds may be infinite.
        inside = (columns >= 0) & (columns < width)
        terms = where(inside[:, 0], data * found, zeros((), data.dtype))
        sums = 2 if nse >= _LONG * height else 1
        if sums > 1:
            turn = broadcasted_iota(rows.dtype, rows.shape, 0) % sums
            rows = minimum(rows, height) * sums + turn
        out = add_at((height * sums,), rows, terms)
        return [out[::2] + out[1::2] if sums > 1 else out]

    return b.traced(product, xs, b.avals_in)[0]


# Several columns ---------------------------------------------------------------------------------

def _suits(b: Builder, *parts: IrValue, dimension_numbers: Numbers,
           preferred_element_type: DType | None, lhs_spinfo: SparseInfo) -> bool:
    data, indices, *_, rhs = b.avals_in
    info, out = lhs_spinfo, b.avals_out[0]
    ((lc, _), (lb, _)) = dimension_numbers
    if (lc != (1,) or lb or len(info.shape) != 2 or rhs.ndim != 2 or data.ndim != 1
            or indices.shape[0] != data.size or out.shape[1] < 2
            or data.dtype.name not in _TERMS or not rhs.dtype == data.dtype == out.dtype
            or 0 in info.shape or max(*info.shape, data.size) >= 2**31 - 1):
        return False
    if len(parts) == 3:     # rows are counted first, in as much time as four columns take
        return info.indices_sorted and out.shape[1] >= _WIDTH and data.size * out.shape[1] >= 2**17
    return data.size * out.shape[1] >= 2**14


def _bcoo_parts(shape: Shape, indices: Array) -> tuple[Array, Array, Array]:
    """Whether the kernel may run, pointers, and columns."""
    (height, width), rows, columns = shape, indices[:, 0], indices[:, 1]
    # An index that is no row counts for none: its element follows the last pointer.
    counts = add_at((height,), indices[:, :1], zeros(rows.shape, INT32) + 1)
    fits = (columns >= 0) & (columns < width) | (rows >= height)
    # In one pass: `all` of each would read the indices again.
    fits = (fits[1:] & (rows[:-1] <= rows[1:])).all() & fits[0] & (rows[0] >= 0)
    return fits, concatenate([zeros((1,), INT32), cumsum(counts)]), columns


def _bcsr_parts(shape: Shape, columns: Array, indptr: Array) -> tuple[Array, Array, Array]:
    nse, width = columns.shape[0], shape[1]
    fits = (columns >= 0) & (columns < width) | (iota(INT32, nse) >= indptr[-1])
    return (fits.all() & (indptr[:-1] <= indptr[1:]).all() & (indptr[0] == 0)
            & (indptr[-1] <= nse)), indptr, columns


def _by_columns(b: Builder, *xs: IrValue, dimension_numbers: Numbers,
                preferred_element_type: DType | None, lhs_spinfo: SparseInfo) -> IrValue:
    prim: Defined = b.eqn.primitive
    (_, (axis,)), _ = dimension_numbers
    parts: Callable[..., tuple[Array, Array, Array]] = (
        _bcoo_parts if len(xs) == 3 else _bcsr_parts)

    def prepared(data: Array, *others: Array) -> list[Array]:
        # Of an array that the program closes over, XLA would count the rows while it compiles, in
        # microseconds each.
        *places, rhs = others
        found = parts(lhs_spinfo.shape, *optimization_barrier(places))
        x = rhs if axis == 0 else rhs.T
        if wide := -x.shape[1] % _WIDTH:
            x = concatenate([x, zeros((x.shape[0], wide), x.dtype)], 1)
        return [*[part.astype(INT32) for part in found], x]

    fits, *operands = b.traced(prepared, xs, b.avals_in)
    out: ShapedArray = b.avals_out[0]
    rows, width = out.shape
    wide = make_aval((rows, width + -width % _WIDTH), out.dtype)

    def by_kernel() -> list[IrValue]:
        # Without layouts XLA may hand over columns in a row's place, as `qr` gives them.
        (found,) = b.custom_call(sparse_product_target(), [xs[0], *operands], [b.type(wide)],
                                 layouts=([[0], [0], [0], [1, 0]], [[1, 0]]), shapes=[wide.shape])
        return [found] if wide == out else b.traced(lambda x: [x[:, :width]], [found], [wide])

    def plain() -> list[IrValue]:
        definition = prim.flat({"dimension_numbers": dimension_numbers, "lhs_spinfo": lhs_spinfo,
                                "preferred_element_type": preferred_element_type})
        return b.traced(definition, xs, b.avals_in)

    return b.case(fits, [plain, by_kernel], [b.type(out)])[0]


_KERNEL = Kernel("several columns", "XLA adds the products to the rows, a number at a time",
                 _suits, _by_columns)
_VECTOR = Kernel("a vector", "a sum waits for the product before, in the same row",
                 _takes_turns, _by_vector)
KERNELS = {bcoo_dot_general_p: (_VECTOR, _KERNEL), bcsr_dot_general_p: (_KERNEL,)}
