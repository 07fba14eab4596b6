"""Singular values and vectors of rectangular matrices."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Sequence
from typing import Literal, overload

from ...base.typing import Array, ArrayLike, DType, IrValue
from ...base.util import member
from ...core.primitive import Builder, Tangent
from ...core.trace import typeof
from ...types.avals import ShapedArray, make_aval
from ...types.shape import definitely_equal, known_less, minimum
from ..arithmetic import div, mul, neg, real, sub
from ..bits import bitwise_and
from ..comparison import eq, select
from ..creation import full_like
from ..families import add
from ..shape import broadcast_in_dim
from ..slicing import concatenate, slice_in_dim
from . import kernels
from .core import (
    MatrixOperation, Results, Shape, adjoint, columns, diagonal, eye, matmul, on_diagonal,
    real_dtype, scaled,
)
from .jacobi import emit_svd
from .spectra import as_dtype, check_subset, off_diagonal_inverse, pairs, subset


class SvdAlgorithm(enum.Enum):
    """Algorithms of `svd`. The CPU has DEFAULT (divide and conquer) and QR; GPUs have QR and
    JACOBI, which is the default of matrices up to 1024; TPUs have JACOBI.

    >>> from olympus import lax, numpy as onp
    >>> x = onp.diag(onp.array([1., 3.]))
    >>> print(lax.linalg.svd(x, compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.QR))
    [3. 1.]
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


# The platforms' implementations of an algorithm.
_PROGRAM = {SvdAlgorithm.DEFAULT: "jacobi", SvdAlgorithm.JACOBI: "jacobi"}
_ON_GPU = {SvdAlgorithm.DEFAULT: "gesvdj", SvdAlgorithm.QR: "gesvd", SvdAlgorithm.JACOBI: "gesvdj"}
_KERNELS = {
    "cpu": {SvdAlgorithm.DEFAULT: "gesdd", SvdAlgorithm.QR: "gesvd",
            SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd"},
    "gpu": _ON_GPU, "rocm": _ON_GPU}
_LARGE = 1024       # from here on rotations on a GPU take longer than a reduction
_BATCHED = 32       # up to here cuSOLVER's rotations give all vectors, asked for or not


class Svd(MatrixOperation):
    """s and, if `compute_uv`, u and vh, with x = u diag(s) vh; s descends."""

    multiple_results = True
    transpose = None
    pace = 30.0

    def results(self, dtype: DType, shape: Shape, *, full_matrices: bool, compute_uv: bool,
                algorithm: SvdAlgorithm | None) -> Results:
        m, n = shape
        k = minimum(m, n)
        s = ((k,), real_dtype(dtype))
        if not compute_uv:
            return [s]
        if full_matrices:
            return [s, ((m, m), dtype), ((n, n), dtype)]
        return [s, ((m, k), dtype), ((k, n), dtype)]

    def emit(self, b: Builder, x: IrValue, *, full_matrices: bool, compute_uv: bool,
             algorithm: SvdAlgorithm | None) -> Sequence[IrValue]:
        known = _KERNELS.get(b.platform, _PROGRAM)
        if algorithm is not None and algorithm not in known:
            names = [a.name for a in known]
            raise NotImplementedError(
                f"svd: algorithm {algorithm.name} given on platform {b.platform}; it has "
                f"{', '.join(names[:-1])} and {names[-1]}; leave `algorithm` out.")
        n, (aval,), outs = self.batch(b), b.avals_in, list(b.avals_out)
        kernel = known[algorithm or SvdAlgorithm.DEFAULT]
        if kernel == "gesvdj" and algorithm is not SvdAlgorithm.JACOBI and not _small(aval):
            kernel = "gesvd"
        if kernel == "jacobi":
            return emit_svd(b, x, aval, full_matrices=full_matrices, compute_uv=compute_uv)
        if kernel != "gesdd" and b.platform != "cpu":
            return _by_solver(b, x, kernel, full_matrices, compute_uv)
        batch = aval.shape[:n]
        unset = make_aval((*batch, 1, 1), aval.dtype)
        mode = ("A" if full_matrices else "S") if compute_uv else "N"
        vectors = outs[1:] if compute_uv else [unset, unset]
        _, s, u, vh, info = kernels.reported(b, kernel, [x], [aval, outs[0], *vectors], n,
                                             {"mode": mode}, (0,))
        return kernels.nan_unless(b, "EQ", info, n, [s, u, vh][:len(outs)], outs)

    def emit_empty(self, b: Builder, x: IrValue, **params: Hashable) -> list[IrValue]:
        """No singular values, and any unitary matrices: identities."""
        zeros = [b.full(a, 0) for a in b.avals_out]
        return [x if a.size == 0 else b.traced(eye, [x], [a])[0]
                for a, x in zip(b.avals_out, zeros, strict=True)]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, full_matrices: bool,
            compute_uv: bool, algorithm: SvdAlgorithm | None) -> tuple[list[Array], list[Tangent]]:
        """ṡ = Re diag(M), M = uᴴẋv: Giles 2008, §3.2; complex: Wan and Zhang 2019.

        u̇ = uΩ and v̇ = vΨ, where Ω and Ψ are skew-Hermitian and Ωs - sΨ is M off the diagonal. For
        M = H + K, Hermitian and skew, Ω and Ψ are H/(s_j - s_i) ± K/(s_j + s_i).
        """
        (x,), (t,) = primals, tangents
        s, u, vh = self.bind(x, full_matrices=full_matrices and compute_uv, compute_uv=True,
                             algorithm=algorithm)
        k = typeof(s).shape[-1]
        last = typeof(x).ndim - 1
        u1, v1 = slice_in_dim(u, 0, k, axis=last), slice_in_dim(adjoint(vh), 0, k, axis=last)
        tv = matmul(t, v1)
        inner = matmul(adjoint(u1), tv)
        mirrored = adjoint(inner)
        half = 0.5
        even = mul(add(inner, mirrored), half)
        odd = mul(sub(inner, mirrored), half)
        rates = diagonal(even)
        rates = real(rates) if typeof(rates).dtype.kind == "c" else rates
        if not compute_uv:
            return [s], [rates]
        even = mul(even, as_dtype(off_diagonal_inverse(pairs(sub, s)), even))
        odd = mul(odd, as_dtype(_inverse_sums(s, typeof(odd).dtype), odd))
        t_u = _basis_tangent(u, u1, add(even, odd), tv, s)
        t_v = _basis_tangent(adjoint(vh), v1, sub(even, odd), matmul(adjoint(t), u1), s)
        return [s, u, vh], [rates, t_u, adjoint(t_v)]


def _small(aval: ShapedArray) -> bool:
    """Whether rotations on a GPU are faster than a reduction."""
    return all(known_less(d, _LARGE + 1) for d in aval.shape[-2:])


def _by_solver(b: Builder, x: IrValue, kernel: str, full: bool, compute_uv: bool) -> list[IrValue]:
    """`svd` by cuSOLVER and hipSOLVER."""
    (aval,), (s, *vectors) = b.avals_in, b.avals_out
    batch, m, n = aval.shape[:-2], *aval.shape[-2:]
    if kernel == "gesvdj":
        # v comes in place of its adjoint, and both come whether they are asked for or not.
        economic = not full and known_less(_BATCHED, m) and known_less(_BATCHED, n)
        k = minimum(m, n)
        kinds = [aval.update(shape=(*batch, size, k if economic else size)) for size in (m, n)]
        _, values, u, v, info = kernels.reported(b, kernel, [x], [aval, s, *kinds], len(batch), {
            "compute_uv": compute_uv, "full_matrices": not economic}, (0,))
        vectors_out = []
        if compute_uv:
            width = None if full else k
            vectors_out += b.traced(lambda u: columns(u, 0, width), [u], kinds[:1])
            vectors_out += b.traced(lambda v: adjoint(columns(v, 0, width)), [v], kinds[1:])
    else:
        # No fewer rows than columns are wanted: a wide matrix is read as its transpose.
        turned = known_less(m, n)
        kinds = vectors or [aval.update(shape=batch)] * 2
        _, values, *vectors_out, info = kernels.reported(
            b, kernel, [x], [aval, s, *(kinds[::-1] if turned else kinds)], len(batch),
            {"compute_uv": compute_uv, "full_matrices": full, "transposed": turned}, (0,),
            by_rows=turned)
        vectors_out = (vectors_out[::-1] if turned else vectors_out)[:len(vectors)]
    return kernels.nan_unless(b, "EQ", info, len(batch), [values, *vectors_out], b.avals_out)


def _inverse_sums(s: Array, dtype: DType) -> Array:
    """1/(s_j + s_i). On the diagonal, whose part of K is imaginary: 0 for real dtypes.

    There the phases of a pair u_i, v_i move in opposite directions, and not at all if s_i is 0.
    """
    sums = pairs(add, s)
    if dtype.kind != "c":
        return off_diagonal_inverse(sums)
    aval = typeof(sums)
    diagonal = broadcast_in_dim(on_diagonal(sums), aval.shape, (aval.ndim - 2, aval.ndim - 1))
    skip = bitwise_and(diagonal, eq(sums, 0.0))
    inverse = div(1.0, select(skip, full_like(sums, 1), sums))
    return select(skip, full_like(sums, 0), inverse)


def _basis_tangent(q: Array, q1: Array, turn: Array, image: Array, s: Array) -> Array:
    """The tangent of q = (q1, q2), q1[..., m, k]: q1 turns, and leaves its span by image/s.

    q2, any basis of the orthogonal complement of q1, moves only as far as it must to stay
    orthogonal.
    """
    *batch, m, k = typeof(q1).shape
    t1 = matmul(q1, turn)
    if definitely_equal(m, k):
        return t1
    outside = sub(image, matmul(q1, matmul(adjoint(q1), image)))
    inverse = as_dtype(div(1.0, s), outside)
    n = len(batch)
    t1 = add(t1, scaled(outside, inverse, (*range(n), n + 1)))
    width = typeof(q).shape[-1]
    if definitely_equal(width, k):
        return t1
    q2 = slice_in_dim(q, k, width, axis=n + 1)
    return concatenate([t1, neg(matmul(q1, matmul(adjoint(t1), q2)))], n + 1)


svd_p = Svd("svd")


@overload
def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: Literal[True] = True,
        subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None
        ) -> tuple[Array, Array, Array]: ...


@overload
def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: Literal[False],
        subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None
        ) -> Array: ...


@overload
def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True,
        subset_by_index: tuple[int, int] | None = None, algorithm: SvdAlgorithm | None = None
        ) -> Array | tuple[Array, Array, Array]: ...


def svd(x: ArrayLike, *, full_matrices: bool = True, compute_uv: bool = True,
        subset_by_index: tuple[int, int] | None = None,
        algorithm: SvdAlgorithm | None = None) -> Array | tuple[Array, Array, Array]:
    """Singular value decomposition x = u diag(s) vh.

    Args:
      x: float[..., m, n] or complex; k = minimum(m, n).
      full_matrices: u[..., m, m] and vh[..., n, n] are square, else u[..., m, k], vh[..., k, n].
      compute_uv: return u and vh, not only s.
      subset_by_index: (start, end): return the singular values start to end-1 in descending order
        and their vectors only; all are computed. Not with full_matrices.
      algorithm: DEFAULT, QR or DIVIDE_AND_CONQUER on the CPU.
    Returns: (u, s[..., k], vh), or s; u and v have orthonormal columns, s is real and descends. NaN
      for each matrix for which LAPACK did not converge, so also where x holds a NaN.

    The derivatives of u and vh move the phases of the bases as little as possible; they
    are infinite or NaN where singular values agree, or are 0 and m != n. That of s never is.

    >>> print(lax.linalg.svd(onp.array([[0., 2.], [1., 0.]]), compute_uv=False))
    [2. 1.]
    """
    aval = typeof(x)
    bounds = None
    if subset_by_index is not None and aval.ndim >= 2:
        bounds = check_subset("svd", subset_by_index, minimum(*aval.shape[-2:]))
    if bounds is not None and full_matrices and compute_uv:
        raise ValueError(f"svd: subset_by_index {bounds} given with full_matrices=True; the columns"
                         " beyond it belong to no singular value; pass full_matrices=False.")
    outs = svd_p.bind(x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv),
                      algorithm=None if algorithm is None else member(
                          SvdAlgorithm, algorithm, "svd: algorithm"))
    s = subset(outs[0], bounds, aval.ndim - 2)
    if not compute_uv:
        return s
    return subset(outs[1], bounds, aval.ndim - 1), s, subset(outs[2], bounds, aval.ndim - 2)
