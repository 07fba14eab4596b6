"""Eigenvalues and eigenvectors of general matrices."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Sequence

from ...base import source
from ...base.typing import Array, ArrayLike, DType, IrValue
from ...base.util import member
from ...core.primitive import Builder, Tangent
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import make_aval
from .. import arithmetic
from ..arithmetic import conj, div, imag, mul, neg, square, sub
from ..comparison import eq, gt, lt, select
from ..creation import broadcasted_iota, full_like
from ..families import add
from ..reduce import argmax
from ..shape import broadcast_in_dim, reduce_sum
from ..slicing import pad
from . import kernels
from .core import (
    INT32, MatrixOperation, Results, Shape, adjoint, check_square, diagonal, matmul, scaled,
)
from .spectra import as_dtype, left_divided, off_diagonal_inverse, pairs


class EigImplementation(enum.Enum):
    """Libraries that `eig` may call. The CPU has LAPACK.

    >>> from olympus import lax, numpy as onp
    >>> w = lax.linalg.eig(onp.eye(2), implementation=lax.linalg.EigImplementation.LAPACK)[0]
    >>> print(w)
    [1.+0.j 1.+0.j]
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class Eig(MatrixOperation):
    """w and, where asked for, vl with vlᴴ x = diag(w) vlᴴ and vr with x vr = vr diag(w)."""

    multiple_results = True
    transpose = None

    def results(self, dtype: DType, shape: Shape, *, compute_left_eigenvectors: bool,
                compute_right_eigenvectors: bool, **params: Hashable) -> Results:
        check_square("eig", shape)
        dtype = dtypes.to_complex_dtype(dtype)
        vectors = compute_left_eigenvectors + compute_right_eigenvectors
        return [(shape[:1], dtype), *[(shape, dtype)] * vectors]

    def emit(self, b: Builder, x: IrValue, *, compute_left_eigenvectors: bool,
             compute_right_eigenvectors: bool, enable_eigvec_derivs: bool,
             implementation: EigImplementation | None) -> Sequence[IrValue]:
        n, aval, outs = self.batch(b), b.avals_in[0], list(b.avals_out)
        kernels.check_implementation(b, "eig", implementation)
        if b.platform == "gpu" and _is_cusolvers(implementation, compute_left_eigenvectors):
            return _by_cusolver(b, x, n, compute_left_eigenvectors, compute_right_eigenvectors)
        w = outs[0]
        vectors = make_aval(aval.shape, w.dtype)
        real = aval.dtype != w.dtype
        parts = [w.update(dtype=aval.dtype)] * 2 if real else [w]
        on_host = kernels.has(b, "hybrid_eig")
        results = kernels.reported(
            b, "hybrid_eig" if on_host else "geev", [x], [*parts, vectors, vectors], n, {
                "left": compute_left_eigenvectors, "right": compute_right_eigenvectors,
                **kernels.magma(implementation and implementation is EigImplementation.MAGMA)
            } if on_host else {
                "compute_left": "V" if compute_left_eigenvectors else "N",
                "compute_right": "V" if compute_right_eigenvectors else "N"})
        *values, left, right, info = results
        wanted = [b.op("stablehlo.complex", values, None, w) if real else values[0]]
        wanted += [left] * compute_left_eigenvectors + [right] * compute_right_eigenvectors
        return kernels.nan_unless(b, "EQ", info, n, wanted, outs)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *,
            compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
            enable_eigvec_derivs: bool, implementation: EigImplementation | None
            ) -> tuple[list[Array], list[Tangent]]:
        """ẇ = diag(vr⁻¹ẋvr), v̇r = vr (F∘vr⁻¹ẋvr), F = 1/(w_j - w_i), then normalised.

        Giles 2008, §3.1; Boeddeker et al. 2017. Left eigenvectors are the right eigenvectors of xᴴ.
        """
        left, right = compute_left_eigenvectors, compute_right_eigenvectors
        if (left or right) and not enable_eigvec_derivs:
            raise NotImplementedError(
                f"eig: derivative of eigenvectors of {typeof(primals[0])} asked for; they have one "
                "only where all eigenvalues differ, and it assumes LAPACK's normalisation; pass "
                "enable_eigvec_derivs=True, or leave the eigenvectors out.")
        # Derivatives of the eigenvalues do not depend on how eigenvectors are normalised.
        w, *vectors = self.bind(
            *primals, compute_left_eigenvectors=left,
            compute_right_eigenvectors=right or not left, enable_eigvec_derivs=True,
            implementation=implementation)
        t = as_dtype(tangents[0], w)
        if not left:
            rates, t_right = _eigen_tangents(w, vectors[-1], t)
            return [w, *vectors[:right]], [rates, *[t_right][:right]]
        rates, t_left = _eigen_tangents(conj(w), vectors[0], adjoint(t))
        t_right = [_eigen_tangents(w, vectors[1], t)[1]] if right else []
        return [w, *vectors], [conj(rates), t_left, *t_right]


def _is_cusolvers(implementation: EigImplementation | None, left: bool) -> bool:
    """Whether cuSOLVER is asked for, or computes all that is: right eigenvectors."""
    return implementation is EigImplementation.CUSOLVER or implementation is None and not left


def _by_cusolver(b: Builder, x: IrValue, n: int, left: bool, right: bool) -> list[IrValue]:
    """`eig` on a GPU, where pairs of conjugate eigenvectors of a real matrix come packed."""
    if left:
        raise NotImplementedError(
            "eig: left eigenvectors asked for on platform gpu; cuSOLVER gives right ones only; "
            "leave them out, or take the right ones of the adjoint.")
    (aval,), outs = b.avals_in, list(b.avals_out)
    w = outs[0]
    _, values, _, vectors, info = kernels.reported(b, "geev", [x], [aval, w, aval, aval], n, {
        "left": False, "right": right})
    wanted = [values]
    if right:
        wanted += b.traced(_unpacked, [values, vectors], [w, aval])
    return kernels.nan_unless(b, "EQ", info, n, wanted, outs)


def _unpacked(w: Array, v: Array) -> Array:
    """Eigenvectors of eigenvalues w, of columns v: real and imaginary parts of a pair in turn."""
    if typeof(v).dtype.kind == "c":
        return v
    aval = typeof(v)
    last = aval.ndim - 1
    axes = (*range(last - 1), last)
    first = broadcast_in_dim(gt(imag(w), 0.0), aval.shape, axes)
    second = broadcast_in_dim(lt(imag(w), 0.0), aval.shape, axes)
    none = [(0, 0, 0)] * last
    zero = literal(0, aval.dtype)
    before, after = pad(v, zero, [*none, (1, -1, 0)]), pad(v, zero, [*none, (-1, 1, 0)])
    parts = select(second, before, v), select(first, after, select(second, neg(v), full_like(v, 0)))
    return arithmetic.complex(*parts)


def _eigen_tangents(w: Array, v: Array, t: Array) -> tuple[Array, Array]:
    """Tangents of eigenvalues w and eigenvectors v of a matrix whose tangent is t."""
    if typeof(v).size == 0:     # no component is the largest
        return w, v
    inner = left_divided(v, matmul(t, v))
    turned = matmul(v, mul(inner, off_diagonal_inverse(pairs(sub, w))))
    return diagonal(inner), sub(turned, _drift(v, turned))


def _drift(v: ArrayLike, t: ArrayLike) -> Array:
    """The part of t along v's own directions: LAPACK's columns have length 1 and a real component.

    That component is the largest one, exactly real: the phase that keeps it so is taken off.
    """
    aval = typeof(v)
    axis = aval.ndim - 2
    growth = reduce_sum(arithmetic.real(mul(conj(v), t)), (axis,))
    size = add(square(arithmetic.real(v)), square(imag(v)))
    size = select(eq(imag(v), 0.0), size, neg(size))
    lead = broadcast_in_dim(argmax(size, axis, INT32), aval.shape,
                            tuple(d for d in range(aval.ndim) if d != axis))
    mask = eq(broadcasted_iota(INT32, aval.shape, axis), lead)
    turn = div(_picked(mask, imag(t), axis), _picked(mask, arithmetic.real(v), axis))
    batch = range(axis)
    return scaled(v, arithmetic.complex(growth, turn), (*batch, axis + 1))


def _picked(mask: Array, x: Array, axis: int) -> Array:
    """The elements where the mask, true once along the axis, is true."""
    return reduce_sum(select(mask, x, full_like(x, 0)), (axis,))


eig_p = Eig("eig")


def eig(x: ArrayLike, *, compute_left_eigenvectors: bool = True,
        compute_right_eigenvectors: bool = True, enable_eigvec_derivs: bool = False,
        implementation: EigImplementation | None = None,
        use_magma: bool | None = None) -> list[Array]:
    """Eigenvalues w and eigenvectors of a general matrix: vlᴴ x = diag(w) vlᴴ, x vr = vr diag(w).

    Args:
      x: float[..., n, n] or complex.
      compute_left_eigenvectors, compute_right_eigenvectors: which eigenvectors to return.
      enable_eigvec_derivs: allow derivatives of the eigenvectors. They are scaled as LAPACK's
        columns: of length 1, with a largest component that is real; infinite or NaN where
        eigenvalues agree. Derivatives of the eigenvalues need no permission.
      implementation: the library; the CPU has LAPACK.
      use_magma: deprecated spelling of `implementation`: MAGMA if true, LAPACK if false.
    Returns: [w[..., n]], followed by vl[..., n, n] and vr[..., n, n] where asked for; all complex.
      NaN for each matrix for which LAPACK did not converge, so also where x holds a NaN.

    Raises ValueError if eigenvectors are differentiated without permission.

    >>> print(lax.linalg.eig(onp.array([[0., 1.], [-1., 0.]]))[0])
    [0.+1.j 0.-1.j]
    """
    if use_magma is not None:
        source.warn("eig: use_magma is deprecated; pass implementation=EigImplementation.MAGMA "
                    "or LAPACK.", DeprecationWarning)
        implementation = EigImplementation.MAGMA if use_magma else EigImplementation.LAPACK
    return eig_p.bind(
        x, compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs),
        implementation=None if implementation is None else member(
            EigImplementation, implementation, "eig: implementation"))
