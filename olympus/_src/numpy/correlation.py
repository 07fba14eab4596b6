"""Sums of shifted products: convolve and correlate, and the covariances of variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.docstrings import described_like
from ..base.typing import Array, ArrayLike, DimSize, DType, DTypeLike
from ..core.ir import Literal
from ..core.trace import Tracer, literal, typeof
from ..jit.fused import fused
from ..lax import arithmetic, shape as lax_shape, slicing
from ..lax.arithmetic import imag
from ..lax.conv import conv_general_dilated
from ..lax.precision import PrecisionLike
from ..lax.transcendental import sqrt
from ..types import dtypes
from ..types.shape import definitely_equal, floor_div, known_less, maximum, minimum, mod
from . import reductions
from .arithmetic import conjugate, real
from .diagonals import diag
from .products import matmul
from .promote import array_args, broadcast_to, choose, convert, promote_dtypes, to_array

# Signals -----------------------------------------------------------------------------------------

def _signals(name: str, a: ArrayLike, v: ArrayLike, scalars: bool) -> list[Array]:
    """Two vectors of one dtype; scalars become vectors of one element if they may."""
    signals = [to_array(x) for x in promote_dtypes(name, a, v)]
    for x in signals:
        if x.ndim > 1 or not (x.ndim or scalars):
            raise ValueError(f"{name}: {x.aval} given; a vector is required; map over the other "
                             "axes with vmap.")
        if x.size == 0:
            raise ValueError(f"{name}: {x.aval} given; a vector with elements is required.")
    return [x if x.shape else lax_shape.expand_dims(x, (0,)) for x in signals]


def _slide(name: str, x: Array, window: Array, mode: str, precision: PrecisionLike,
           preferred: DTypeLike | None) -> Array:
    """The products of a window with the part of `x`, no shorter, that it covers at each place.

    It may be longer where sizes are symbolic: then a part of all products is taken.
    """
    n = window.shape[0]
    half = floor_div(n, 2)
    pads = {"full": (n - 1, n - 1), "same": (half, n - 1 - half), "valid": (0, 0)}
    if not isinstance(mode, str) or mode not in pads:
        raise ValueError(f"{name}: mode {mode!r} given; 'full', 'same' or 'valid' is required.")
    if mode != "full" and not known_less(n, x.shape[0] + 1):
        out = _slide(name, x, window, "full", precision, preferred)
        return slicing.dynamic_slice_in_dim(out, *_middle(name, x.shape[0], n, mode))
    if preferred is not None:
        preferred = dtypes.requested_dtype(name, preferred)
    out = conv_general_dilated(
        lax_shape.expand_dims(x, (0, 1)), lax_shape.expand_dims(window, (0, 1)), (1,), [pads[mode]],
        precision=precision, preferred_element_type=preferred)
    return lax_shape.squeeze(out, (0, 1))


def _middle(name: str, n: DimSize, m: DimSize, mode: str) -> tuple[DimSize, DimSize]:
    """Where the sums of a mode begin among all sums of n and m numbers, and how many they are.

    Where as many stand on either side but for one, `correlate` drops the last of a longer window.
    """
    short, long = minimum(n, m), maximum(n, m)
    if mode == "valid":
        return short - 1, long - short + 1
    longer = minimum(1, maximum(m - n, 0)) if name == "correlate" else 0
    return floor_div(short - 1, 2) + longer * mod(short + 1, 2), long


@fused(static=("mode", "precision", "preferred_element_type"))
def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: PrecisionLike = None,
             preferred_element_type: DTypeLike | None = None) -> Array:
    """The sums over i + j = k of a[i] v[j].

    Args:
      a: [n], or a scalar.
      v: [m], or a scalar; the dtype is the promoted one, and stays one of integers.
      mode: "full" gives all n + m - 1 sums, "same" the max(n, m) in their middle, "valid" the
        max(n, m) - min(n, m) + 1 in which the vectors overlap completely.
      precision: of the products, as in `lax.dot_general`.
      preferred_element_type: the dtype in which they are summed.
    Returns: A vector of the promoted dtype, of the size that `mode` gives.

    Raises ValueError for vectors without elements, for higher ranks and for another mode.

    >>> print(onp.convolve(onp.array([1, 2, 3]), onp.array([0, 1, 10])))
    [ 0  1 12 23 30]
    """
    x, y = _signals("convolve", a, v, True)
    if known_less(x.shape[0], y.shape[0]):
        x, y = y, x
    return _slide("convolve", x, lax_shape.rev(y, (0,)), mode, precision, preferred_element_type)


@fused(static=("mode", "precision", "preferred_element_type"))
@described_like(convolve)
def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: PrecisionLike = None,
              preferred_element_type: DTypeLike | None = None) -> Array:
    """The sums over i of a[i + k] conj(v[i]), one for each shift k.

    Args:
      a: [n].
      v: [m]; the dtype is the promoted one, and stays one of integers.
      mode: which shifts: "valid", "same" or "full", as in `convolve`.

    >>> print(onp.correlate(onp.array([1, 2, 3, 4]), onp.array([1, 0, 1])))
    [4 6]
    """
    x, y = _signals("correlate", a, v, False)
    y = conjugate(y)
    if known_less(x.shape[0], y.shape[0]):
        out = _slide("correlate", y, x, mode, precision, preferred_element_type)
        return lax_shape.rev(out, (0,))
    return _slide("correlate", x, y, mode, precision, preferred_element_type)


# Covariances -------------------------------------------------------------------------------------

def _variables(name: str, m: ArrayLike, y: ArrayLike | None, rowvar: bool, dtype: DTypeLike | None
               ) -> Array:
    """The observations as one row per variable, in a floating dtype, and whether there is one."""
    if dtype is not None:
        dtype = dtypes.requested_dtype(name, dtype)
        if not dtypes.is_inexact(dtype):
            raise ValueError(f"{name}: dtype {dtypes.long_name(dtype)} given; covariances are "
                             "quotients; a floating or complex dtype is required.")
    operands = [m] if y is None else [m, y]
    variables = [to_array(x) for x in promote_dtypes(name, *operands, inexact=True)]
    for x in variables:
        if x.ndim > 2:
            raise ValueError(f"{name}: {x.aval} given; at most 2 dimensions are possible.")
    rows = []
    for i, x in enumerate(variables):
        if dtype is not None:
            x = convert(x, dtype)
        x = lax_shape.expand_dims(x, tuple(range(2 - x.ndim)))
        transposed = not rowvar and (variables[0].ndim != 1 if i == 0
                                     else not definitely_equal(x.shape[0], 1))
        rows.append(lax_shape.transpose(x, (1, 0)) if transposed else x)
    if len({x.shape[1] for x in rows}) != 1 and rows[0].shape[0]:
        raise ValueError(f"{name}: {' and '.join(str(x.aval) for x in variables)} given; as many "
                         "observations of one as of the other are required.")
    if y is None or not rows[0].shape[0]:
        return rows[0]
    return slicing.concatenate(rows, 0)


def _observation_weights(what: str, w: ArrayLike, count: int, dtype: DType) -> Array:
    """Weights of observations; their values are checked where they are known."""
    (w,) = array_args("cov", w)
    aval = typeof(w)
    if what == "fweights" and dtypes.scalar_kind(aval.dtype) not in "iu":
        raise TypeError(f"cov: fweights {aval} given; integers are required.")
    if dtypes.is_complex(aval.dtype):
        raise TypeError(f"cov: {what} {aval} given; real numbers are required.")
    if aval.ndim != 1 or not definitely_equal(aval.shape[0], count):
        raise RuntimeError(f"cov: {what} {aval} given for {count} observations; a vector with "
                           "one weight for each is required.")
    if not isinstance(w, Tracer) and (np.asarray(getattr(w, "raw", w)) < 0).any():
        raise ValueError(f"cov: {what} with a negative entry given; weights are not negative.")
    return convert(w, dtype)


@fused(static=("rowvar", "bias", "ddof", "dtype"), seen=("fweights", "aweights"))
def cov(m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False,
        ddof: int | None = None, fweights: ArrayLike | None = None,
        aweights: ArrayLike | None = None, dtype: DTypeLike | None = None) -> Array:
    """The covariances of variables: the mean products of deviations from the means.

    Args:
      m: [n], one variable, or [k, n], a variable per row; integers become floats.
      y: more variables, in the same form.
      rowvar: whether rows are variables; if not, columns are.
      bias: divide by n, not by n - 1.
      ddof: divide by n - ddof, whatever `bias` says.
      fweights: integers [n], how often each observation counts.
      aweights: [n], how much each observation counts.
      dtype: of the result.
    Returns: float[k, k], or a scalar of one variable.

    Raises ValueError for ranks above 2, for a dtype of integers, and for weights below 0, which is
    seen only where they are not traced, RuntimeError for weights of the wrong size, TypeError for
    weights of another kind.

    >>> print(onp.cov(onp.array([[0., 1., 2.], [2., 1., 0.]])))
    [[ 1. -1.]
     [-1.  1.]]
    """
    if ddof is not None and not (isinstance(ddof, (int, float, np.number)) and ddof % 1 == 0):
        raise ValueError(f"cov: ddof {ddof!r} given; an integer is required.")
    if fweights is not None or aweights is not None:
        x = _variables("cov", m, y, rowvar, dtype)
        kind = dtypes.to_real_dtype(x.dtype)
        fweights, aweights = [
            None if w is None else _observation_weights(what, w, x.shape[1], kind)
            for what, w in (("fweights", fweights), ("aweights", aweights))]
    ddof = int(not bias) if ddof is None else int(ddof)
    return _cov(m, y, fweights, aweights, rowvar=bool(rowvar), ddof=ddof, dtype=dtype)


@fused(static=("rowvar", "ddof", "dtype"))
def _cov(m: ArrayLike, y: ArrayLike | None, fweights: Array | None, aweights: Array | None, *,
         rowvar: bool, ddof: int, dtype: DTypeLike | None) -> Array:
    x = _variables("cov", m, y, rowvar, dtype)
    kind = dtypes.to_real_dtype(x.dtype)
    k, n = x.shape
    if not k:
        return x[:, :0]
    w = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    if w is None:
        total = None
        divisor: Any = literal(maximum(0, n - ddof), kind)
        mean = reductions.reduce_sum(x, (1,)) / broadcast_to(literal(n, x.dtype), (k,))
    else:
        total = reductions.reduce_sum(w, (0,))
        mean = matmul(x, convert(w, x.dtype)) / broadcast_to(convert(total, x.dtype), (k,))
        lost = literal(ddof, kind)
        if aweights is not None:
            lost = lost * reductions.reduce_sum(w * aweights, (0,)) / total
        divisor = arithmetic.max(total - lost, literal(0, kind))
    x = x - lax_shape.broadcast_in_dim(mean, x.shape, (0,))
    right = x if w is None else x * lax_shape.broadcast_in_dim(convert(w, x.dtype), x.shape, (1,))
    covariance = matmul(x, conjugate(lax_shape.transpose(right, (1, 0))))
    covariance = covariance / broadcast_to(convert(divisor, covariance.dtype), covariance.shape)
    return lax_shape.reshape(covariance, () if definitely_equal(k, 1) else (k, k))


@fused(static=("rowvar", "dtype"))
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True,
             dtype: DTypeLike | None = None) -> Array:
    """The correlations of variables: their covariances over their standard deviations.

    Args:
      x: [n], one variable, or [k, n], a variable per row; integers become floats.
      y: more variables, in the same form.
      rowvar: whether rows are variables; if not, columns are.
      dtype: of the result.
    Returns: float[k, k] within [-1, 1] (complex numbers in both parts), or a scalar of one
      variable; NaN of variables that do not vary.

    >>> print(onp.corrcoef(onp.array([[0., 1., 2.], [2., 1., 0.]])))
    [[ 1. -1.]
     [-1.  1.]]
    """
    kind = _variables("cov", x, y, bool(rowvar), dtype).dtype
    c = _cov(x, y, None, None, rowvar=bool(rowvar), ddof=1, dtype=dtypes.wide_dtype(kind))
    if not c.ndim:
        return convert(c / c, kind)
    deviations = convert(sqrt(real(diag(c))), c.dtype)
    for axis in (0, 1):
        c = c / lax_shape.broadcast_in_dim(deviations, c.shape, (axis,))
    if dtypes.is_complex(c.dtype):
        return arithmetic.complex(_within_one(arithmetic.real(c)), _within_one(imag(c)))
    return convert(_within_one(c), kind)


def _within_one(x: Array) -> Array:
    """Rounding errors beyond -1 and 1 removed; NaN stays."""
    one: Literal = literal(1, x.dtype)
    x = choose(x > broadcast_to(one, x.shape), one, x)
    return choose(x < broadcast_to(literal(-1, x.dtype), x.shape), literal(-1, x.dtype), x)
