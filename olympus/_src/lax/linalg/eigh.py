"""Eigenvalues and eigenvectors of symmetric and Hermitian matrices."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Sequence

from ...base.typing import Array, ArrayLike, DType, IrValue
from ...base.util import member
from ...core.primitive import Builder, Tangent
from ...core.trace import typeof
from ..arithmetic import mul, real, sub
from ..families import add
from . import kernels
from .cholesky import symmetrize
from .core import (
    MatrixOperation, Results, Shape, adjoint, check_square, diagonal, half, matmul, real_dtype,
)
from .spectra import as_dtype, check_subset, off_diagonal_inverse, pairs, subset


class EighImplementation(enum.Enum):
    """Algorithms of `eigh`. The CPU has QR: LAPACK's divide and conquer after a reduction; GPUs
    have QR and JACOBI, TPUs JACOBI.

    >>> from olympus import lax, numpy as onp
    >>> x = onp.diag(onp.array([3., 1.]))
    >>> print(lax.linalg.eigh(x, implementation=lax.linalg.EighImplementation.QR)[1])
    [1. 3.]
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


# The platforms' implementations, with cuSOLVER's and hipSOLVER's numbers.
_ON_GPU = {EighImplementation.QR: 1, EighImplementation.JACOBI: 2}
_IMPLEMENTATIONS = {
    "cpu": {EighImplementation.QR: 0}, "gpu": _ON_GPU, "rocm": _ON_GPU,
    "tpu": {EighImplementation.JACOBI: 0}}


class Eigh(MatrixOperation):
    """v, w with x v = v diag(w), read from one triangle of x; w ascends."""

    multiple_results = True
    transpose = None
    pace = 30.0

    def results(self, dtype: DType, shape: Shape, **params: Hashable) -> Results:
        check_square("eigh", shape)
        return [(shape, dtype), (shape[:1], real_dtype(dtype))]

    def emit(self, b: Builder, x: IrValue, *, lower: bool, sort_eigenvalues: bool,
             implementation: EighImplementation | None) -> Sequence[IrValue]:
        known = _IMPLEMENTATIONS.get(b.platform, {})
        if implementation is not None and implementation not in known:
            names = " and ".join([i.name for i in known]) or "none by name"
            raise NotImplementedError(
                f"eigh: implementation {implementation.name} given on platform {b.platform}; it "
                f"has {names} only; leave `implementation` out.")
        n, (v, w) = self.batch(b), b.avals_out
        if b.platform == "tpu":
            # At most 100 sweeps of Jacobi, until the off-diagonal part is as small as that.
            flags = f"{lower:d},{sort_eigenvalues:d},100,1e-6"
            return kernels.xla_call(b, "Eigh", [x], [v, w],
                                    {"backend_config": b.attr(f'"{flags}"')})
        how = {"mode": "V"} if b.platform == "cpu" else {
            "algorithm": chr(known[implementation] if implementation else 0)}
        *outs, info = kernels.reported(b, "syevd", [x], [v, w], n,
                                       {**kernels.triangle(b, lower), **how}, (0,))
        return kernels.nan_unless(b, "EQ", info, n, outs, [v, w])

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, lower: bool,
            **params: Hashable) -> tuple[list[Array], list[Tangent]]:
        """ẇ = diag(vᴴẋv), v̇ = v (F∘vᴴẋv), F = 1/(w_j - w_i): Giles 2008, §3.1.

        This moves no phase of an eigenvector: diag(vᴴv̇) is 0.
        """
        v, w = self.bind(*primals, lower=lower, **params)
        # One triangle is read: the tangent is the Hermitian matrix that it stands for.
        read = half(tangents[0] if lower else adjoint(tangents[0]))
        inner = matmul(adjoint(v), matmul(add(read, adjoint(read)), v))
        turn = mul(inner, as_dtype(off_diagonal_inverse(pairs(sub, w)), inner))
        rates = diagonal(inner)
        return [v, w], [matmul(v, turn), real(rates) if rates.dtype.kind == "c" else rates]


eigh_p = Eigh("eigh")


def eigh(x: ArrayLike, *, lower: bool = True, symmetrize_input: bool = True,
         sort_eigenvalues: bool = True, subset_by_index: tuple[int, int] | None = None,
         implementation: EighImplementation | None = None) -> tuple[Array, Array]:
    """Eigenvectors v and eigenvalues w of a symmetric or Hermitian x: x v = v diag(w).

    Args:
      x: float[..., n, n] or complex.
      lower: read the lower triangle of x, else the upper one.
      symmetrize_input: decompose (x + xᴴ)/2 instead of reading one triangle.
      sort_eigenvalues: whether w must ascend; it does in either case.
      subset_by_index: (start, end): return the eigenvalues start to end-1 in ascending order only;
        all are computed.
      implementation: the algorithm; the CPU has QR.
    Returns: (v[..., n, k], w[..., k]), v of orthonormal columns, w real; NaN for each matrix for
      which LAPACK did not converge, so also where x holds a NaN.

    The derivative of v keeps the phases of the basis (diag(vᴴv̇) = 0); it is infinite or NaN where
    eigenvalues agree. That of w never is.

    >>> v, w = lax.linalg.eigh(onp.array([[2., 1.], [1., 2.]]))
    >>> print(onp.round(w, 5))
    [1. 3.]
    """
    if symmetrize_input:
        x = symmetrize(eigh_p, x)
    v, w = eigh_p.bind(x, lower=bool(lower), sort_eigenvalues=bool(sort_eigenvalues),
                       implementation=_implementation_of(implementation))
    aval = typeof(w)
    bounds = check_subset("eigh", subset_by_index, aval.shape[-1])
    return subset(v, bounds, aval.ndim), subset(w, bounds, aval.ndim - 1)


def _implementation_of(implementation: EighImplementation | None) -> EighImplementation | None:
    return None if implementation is None else member(
        EighImplementation, implementation, "eigh: implementation")
