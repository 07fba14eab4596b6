"""NumPy's functions on arrays that can be traced, differentiated and compiled."""


import typing as _typing

from numpy import (
    False_, ScalarType, True_, base_repr, binary_repr, broadcast, character, common_type,
    complexfloating, errstate, flexible, floating, generic, get_printoptions, index_exp, inexact,
    integer, little_endian, may_share_memory, min_scalar_type, mintypecode, ndenumerate, ndindex,
    nditer, number, object_, printoptions, s_, save, savetxt, savez, savez_compressed,
    shares_memory, signedinteger, typecodes, typename, unsignedinteger
)
from numpy.exceptions import ComplexWarning

from .._src.base.util import publish as _publish
from .._src.base.util import submodules as _submodules
from .._src.base.util import when_named as _when_named
from .._src.base.typing import Array as ndarray
from .._src.numpy import array_methods as _array_methods  # installs operators and methods
from .._src.numpy.array_api import __array_api_version__, __array_namespace_info__, from_dlpack
from .._src.numpy.conditions import clip, nan_to_num, piecewise, select
from .._src.numpy.constants import (
    can_cast, dtype, e, euler_gamma, finfo, iinfo, inf, isdtype, issubdtype, iterable, nan,
    ndim, newaxis, pi, promote_types, result_type, shape, size
)
from .._src.numpy.creation import (
    array, asarray, copy, empty, empty_like, frombuffer, full, full_like, ones, ones_like, zeros,
    zeros_like
)
from .._src.numpy.diagonals import (
    diag, diag_indices, diag_indices_from, diagflat, eye, identity, tri, tril, tril_indices,
    tril_indices_from, triu, triu_indices, triu_indices_from, vander
)
from .._src.numpy.elementary import (
    around, cbrt, ceil, copysign, exp, exp2, expm1, floor, frexp, heaviside, hypot, isfinite, isinf,
    isnan, ldexp, log, log10, log1p, log2, logaddexp, logaddexp2, modf, nextafter, rint, round,
    signbit, spacing, sqrt, trunc
)
from .._src.numpy.elementary import trunc as fix
from .._src.numpy.indexing import nonzero, put_along_axis, take, take_along_axis
from .._src.numpy.integers import gcd, lcm
from .._src.numpy.joining import (
    append, array_split, block, column_stack, concat, concatenate, delete, dsplit, dstack,
    hsplit, hstack, insert, repeat, split, stack, tile, unstack, vsplit, vstack
)
from .._src.numpy.joining import vstack as row_stack
from .._src.numpy.logic import (
    bitwise_and, bitwise_count, bitwise_invert, bitwise_left_shift, bitwise_not, bitwise_or,
    bitwise_right_shift, bitwise_xor, invert, left_shift, logical_and, logical_not, logical_or,
    logical_xor, right_shift
)
from .._src.numpy.manipulation import (
    astype, atleast_1d, atleast_2d, atleast_3d, broadcast_arrays, broadcast_shapes,
    broadcast_to, expand_dims, flip, fliplr, flipud, matrix_transpose, moveaxis, permute_dims,
    ravel, reshape, resize, roll, rollaxis, rot90, squeeze, swapaxes, transpose
)
from .._src.numpy.products import (
    cross, diagonal, dot, inner, kron, matmul, matvec, outer, tensordot, trace, vdot, vecdot,
    vecmat
)
from .._src.numpy.reductions import (
    all, amax, amin, any, argmax, argmin, count_nonzero, cumprod, cumsum, cumulative_prod,
    cumulative_sum, max, min, minmax, nanargmax, nanargmin, nancumprod, nancumsum, nanmax,
    nanmin, nanprod, nansum, prod, sum
)
from .._src.numpy.selection import (
    argwhere, choose, compress, copyto, extract, fill_diagonal, flatnonzero, mask_indices, place,
    put, putmask, ravel_multi_index, trim_zeros, unravel_index, where
)
from .._src.numpy.sorting import (
    argpartition, argsort, bincount, digitize, lexsort, partition, searchsorted, sort,
    sort_complex, top_k
)
from .._src.numpy.statistics import (
    average, diff, ediff1d, gradient, mean, median, nanmean, nanmedian, nanpercentile,
    nanquantile, nanstd, nanvar, percentile, ptp, quantile, std, trapezoid, var
)
from .._src.numpy.trigonometry import (
    acos, acosh, angle, arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh, asin, asinh,
    atan, atan2, atanh, cos, cosh, deg2rad, degrees, i0, rad2deg, radians, sin, sinc, sinh, tan,
    tanh
)
from .._src.numpy import ufunc_table as _ufunc_table  # the attributes of elementwise functions
from .._src.numpy.ufunc import frompyfunc, ufunc
from .._src.numpy.arithmetic import (
    abs, absolute, add, conj, conjugate, divide, divmod, equal, fabs, float_power, floor_divide,
    fmax, fmin, fmod, greater, greater_equal, imag, less, less_equal, maximum, minimum, mod,
    multiply, negative, not_equal, positive, pow, power, real, reciprocal, remainder, sign, square,
    subtract, true_divide
)
from .._src.numpy.vectorize import apply_along_axis, apply_over_axes, vectorize
from .._src.types.dtypes import (
    bfloat16, bool_, cdouble, complex128, complex64, complex_, csingle, double, float16,
    float32, float4_e2m1fn, float64, float6_e2m3fn, float6_e3m2fn, float8_e3m4, float8_e4m3,
    float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz,
    float8_e8m0fnu, float_, int1, int16, int2, int32, int4, int64, int8, int_, single, uint,
    uint1, uint16, uint2, uint32, uint4, uint64, uint8
)
from .._src.types.dtypes import bool_ as bool
from .._src.types.dtypes import float16 as half
from .._src.types.dtypes import int8 as byte, int16 as short, int32 as intc
from .._src.types.dtypes import int64 as intp, int64 as long, int64 as longlong
from .._src.types.dtypes import uint8 as ubyte, uint16 as ushort, uint32 as uintc
from .._src.types.dtypes import uint64 as uintp, uint64 as ulong, uint64 as ulonglong
from . import exceptions
with _when_named(__name__):
    from .._src.numpy.bits import packbits, unpackbits
    from .._src.numpy.correlation import convolve, corrcoef, correlate, cov
    from .._src.numpy.emath import real_if_close
    from .._src.numpy.einsum import einsum, einsum_path
    from .._src.numpy.files import fromfile, fromiter, fromstring, genfromtxt, load, loadtxt
    from .._src.numpy.grids import (
        arange, c_, fromfunction, geomspace, indices, ix_, linspace, logspace, meshgrid, mgrid,
        ogrid, r_
    )
    from .._src.numpy.histograms import histogram, histogram2d, histogram_bin_edges, histogramdd
    from .._src.numpy.interpolation import interp, unwrap
    from .._src.numpy.layout import (
        asanyarray, asarray_chkfinite, ascontiguousarray, asfortranarray, isfortran, require
    )
    from .._src.numpy.padding import pad
    from .._src.numpy.polynomial import (
        poly, polyadd, polyder, polydiv, polyfit, polyint, polymul, polysub, polyval, roots
    )
    from .._src.numpy.predicates import (
        allclose, array_equal, array_equiv, isclose, iscomplex, iscomplexobj, isneginf, isposinf,
        isreal, isrealobj, isscalar
    )
    from .._src.numpy.printing import (
        array2string, array_repr, array_str, format_float_positional, format_float_scientific,
        set_printoptions
    )
    from .._src.numpy.sets import (
        intersect1d, isin, setdiff1d, setxor1d, union1d, unique, unique_all, unique_counts,
        unique_inverse, unique_values
    )
    from .._src.numpy.windows import bartlett, blackman, hamming, hanning, kaiser

__all__ = [
    "ComplexWarning", "False_", "ScalarType", "True_", "abs", "absolute", "acos", "acosh", "add",
    "all", "allclose", "amax", "amin", "angle", "any", "append", "apply_along_axis",
    "apply_over_axes", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "argmax", "argmin", "argpartition", "argsort", "argwhere", "around", "array",
    "array2string", "array_equal", "array_equiv", "array_repr", "array_split", "array_str",
    "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray", "asin",
    "asinh", "astype", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d",
    "average", "bartlett", "base_repr", "bfloat16", "binary_repr", "bincount", "bitwise_and",
    "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "blackman", "block", "bool", "bool_", "broadcast",
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "byte", "c_", "can_cast", "cbrt",
    "cdouble", "ceil", "character", "choose", "clip", "column_stack", "common_type", "complex128",
    "complex64", "complex_", "complexfloating", "compress", "concat", "concatenate", "conj",
    "conjugate", "convolve", "copy", "copysign", "copyto", "corrcoef", "correlate", "cos", "cosh",
    "count_nonzero", "cov", "cross", "csingle", "cumprod", "cumsum", "cumulative_prod",
    "cumulative_sum", "deg2rad", "degrees", "delete", "diag", "diag_indices", "diag_indices_from",
    "diagflat", "diagonal", "diff", "digitize", "divide", "divmod", "dot", "double", "dsplit",
    "dstack", "dtype", "e", "ediff1d", "einsum", "einsum_path", "empty", "empty_like",
    "equal", "errstate", "euler_gamma", "exceptions", "exp", "exp2", "expand_dims", "expm1",
    "extract", "eye", "fabs", "fill_diagonal", "finfo", "fix", "flatnonzero", "flexible",
    "flip", "fliplr", "flipud", "float16", "float32", "float4_e2m1fn", "float64", "float6_e2m3fn",
    "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float_",
    "float_power", "floating", "floor", "floor_divide", "fmax", "fmin", "fmod",
    "format_float_positional", "format_float_scientific", "frexp", "frombuffer", "fromfile",
    "fromfunction", "fromiter", "frompyfunc", "fromstring", "full", "full_like", "gcd", "generic",
    "genfromtxt", "geomspace", "get_printoptions", "gradient", "greater", "greater_equal", "half",
    "hamming", "hanning", "heaviside", "histogram", "histogram2d", "histogram_bin_edges",
    "histogramdd", "hsplit", "hstack", "hypot", "i0", "identity", "iinfo", "imag", "index_exp",
    "indices", "inexact", "inf", "inner", "insert", "int1", "int16", "int2", "int32", "int4",
    "int64", "int8", "int_", "intc", "integer", "interp", "intersect1d", "intp", "invert",
    "isclose", "iscomplex", "iscomplexobj", "isdtype", "isfinite", "isfortran", "isin", "isinf",
    "isnan", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "issubdtype", "iterable",
    "ix_", "kaiser", "kron", "lcm", "ldexp", "left_shift", "less", "less_equal", "lexsort",
    "linspace", "little_endian", "load", "loadtxt", "log", "log10", "log1p", "log2",
    "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or", "logical_xor",
    "logspace", "long", "longlong", "mask_indices", "matmul", "matrix_transpose", "matvec", "max",
    "maximum", "may_share_memory", "mean", "median", "meshgrid", "mgrid", "min",
    "min_scalar_type", "minimum", "minmax", "mintypecode", "mod", "modf", "moveaxis", "multiply",
    "nan", "nan_to_num", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean",
    "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum",
    "nanvar", "ndarray", "ndenumerate", "ndim", "ndindex", "nditer", "negative", "newaxis",
    "nextafter", "nonzero", "not_equal", "number", "object_", "ogrid", "ones", "ones_like",
    "outer", "packbits", "pad", "partition", "percentile", "permute_dims", "pi", "piecewise",
    "place", "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub",
    "polyval", "positive", "pow", "power", "printoptions", "prod", "promote_types", "ptp", "put",
    "put_along_axis", "putmask", "quantile", "r_", "rad2deg", "radians", "ravel",
    "ravel_multi_index", "real", "real_if_close", "reciprocal", "remainder", "repeat", "require",
    "reshape", "resize", "result_type", "right_shift", "rint", "roll", "rollaxis", "roots",
    "rot90", "round", "row_stack", "s_", "save", "savetxt", "savez", "savez_compressed",
    "searchsorted", "select", "set_printoptions", "setdiff1d", "setxor1d", "shape",
    "shares_memory", "short", "sign", "signbit", "signedinteger", "sin", "sinc", "single", "sinh",
    "size", "sort", "sort_complex", "spacing", "split", "sqrt", "square", "squeeze", "stack",
    "std", "subtract", "sum", "swapaxes", "take", "take_along_axis", "tan", "tanh", "tensordot",
    "tile", "top_k", "trace", "transpose", "trapezoid", "tri", "tril", "tril_indices",
    "tril_indices_from", "trim_zeros", "triu", "triu_indices", "triu_indices_from", "true_divide",
    "trunc", "typecodes", "typename", "ubyte", "ufunc", "uint", "uint1", "uint16", "uint2",
    "uint32", "uint4", "uint64", "uint8", "uintc", "uintp", "ulong", "ulonglong", "union1d",
    "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unpackbits",
    "unravel_index", "unsignedinteger", "unstack", "unwrap", "ushort", "vander", "var", "vdot",
    "vecdot", "vecmat", "vectorize", "vsplit", "vstack", "where", "zeros", "zeros_like",
]

_publish(__name__)
if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import emath as emath, error as error, fft as fft, linalg as linalg
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
