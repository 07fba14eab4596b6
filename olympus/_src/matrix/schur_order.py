"""Reordering of a Schur decomposition: chosen eigenvalues first.

Adjacent diagonal blocks, of one row or two, change places by an orthogonal similarity until every
chosen one is above those that are not: Bai and Demmel, "On swapping diagonal blocks in real Schur
form", 1993.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..base.typing import Array, ArrayLike
from ..control_flow.branches import switch
from ..control_flow.map import map
from ..control_flow.while_loop import while_loop
from ..core.trace import typeof
from ..lax import arithmetic, comparison, transcendental
from ..lax.arithmetic import mul, neg, sub
from ..lax.bits import bitwise_and, bitwise_not, bitwise_or
from ..lax.comparison import lt, ne
from ..lax.contract import dot_general
from ..lax.convert import convert_element_type
from ..lax.creation import full, full_like
from ..lax.families import add
from ..lax.linalg.core import INT32, adjoint, diagonal, eye, masked, matmul
from ..lax.linalg.qr import qr
from ..lax.linalg.spectra import left_divided
from ..lax.shape import broadcast_in_dim, reduce_sum, reshape, transpose
from ..lax.slicing import (
    concatenate, dynamic_index_in_dim, dynamic_slice, dynamic_slice_in_dim, dynamic_update_slice,
    dynamic_update_slice_in_dim, pad, slice,
)
from ..lax.transcendental import atan2, sqrt
from ..types import dtypes
from ..types.shape import definitely_equal, prod

Select = Callable[..., Array]       # of eigenvalues, or their real and imaginary parts: bool[n]


def reordered(t: ArrayLike, z: ArrayLike, select: Select) -> list[Array]:
    """t and z[..., n, n] with the eigenvalues that `select` is true for first, in their order."""
    aval = typeof(t)
    n = aval.shape[-1]
    flat = [reshape(x, (prod(aval.shape[:-2]), n, n)) for x in (t, z)]
    outs = map(lambda xs: _one(xs[0], xs[1], select), tuple(flat))
    return [reshape(x, aval.shape) for x in outs]


def _one(t: Array, z: Array, select: Select) -> tuple[Array, ...]:
    """One matrix: passes over its blocks, until one changes nothing."""
    n = typeof(t).shape[0]
    state = (t, z, _chosen(t, select), full((), True))
    return while_loop(lambda state: state[3], lambda state: _pass(state, n), state)[:2]


def _below(t: Array) -> Array:
    """t[i+1, i] at i: [n], the last one 0."""
    n = typeof(t).shape[0]
    if definitely_equal(n, 1):
        return full_like(t, 0, shape=(1,))
    shifted = pad(slice(t, (1, 0), (n, n)), full_like(t, 0, shape=()), [(0, 1, 0), (0, 0, 0)])
    return diagonal(shifted)


def _chosen(t: Array, select: Select) -> Array:
    """bool[n]: which rows belong to a chosen eigenvalue; of a pair, either may be chosen."""
    values = diagonal(t)
    if typeof(t).dtype.kind == "c":
        return _selected_flags(select(values), t)
    below = _below(t)
    above = reduce_sum(masked(t, np.eye(typeof(t).shape[0], k=1, dtype=bool)), (1,))
    imaginary = sqrt(mul(arithmetic.abs(below), arithmetic.abs(above)))
    imaginary = add(imaginary, pad(imaginary, full_like(t, 0, shape=()), [(1, -1, 0)]))
    return bitwise_or(_selected_flags(select(values, imaginary), t),
                      _selected_flags(select(values, neg(imaginary)), t))


def _selected_flags(chosen: Array, t: Array) -> Array:
    aval = typeof(chosen)
    if aval.shape != typeof(t).shape[:1]:
        raise TypeError(f"schur: select_callable returned {aval} for {typeof(t).shape[0]} "
                        "eigenvalues; one truth value per eigenvalue is required; write it with "
                        "elementwise operations.")
    return convert_element_type(chosen, dtypes.as_dtype(bool))


def _pass(state: tuple[Array, ...], n: int) -> tuple[Array, ...]:
    """From top to bottom, exchange each block that is not chosen with a chosen one after it."""
    t, z, chosen, _ = state
    swaps = [lambda t, z, chosen, i: (t, z, chosen)]
    sizes = (1,) if typeof(t).dtype.kind == "c" else (1, 2)
    swaps += [_swap(p, q, n) for p in sizes for q in sizes]

    def size(at: ArrayLike, below: ArrayLike) -> Array:
        return add(convert_element_type(ne(_item_at(below, at), 0.0), INT32), 1)

    def step(state: Sequence[Array]) -> tuple[Array, ...]:
        i, t, z, chosen, changed = state
        below = full_like(t, 0, shape=(n,)) if len(sizes) == 1 else _below(t)
        p = size(i, below)
        j = add(i, p)
        q = size(j, below)
        swap = bitwise_and(bitwise_and(_item_at(chosen, j), bitwise_not(_item_at(chosen, i))),
                           lt(j, n))
        kind = add(mul(sub(p, 1), len(sizes)), q)
        kind = comparison.select(swap, kind, full_like(kind, 0))
        t, z, chosen = switch(kind, swaps, t, z, chosen, i)
        return add(i, comparison.select(swap, q, p)), t, z, chosen, bitwise_or(changed, swap)

    start = full((), 0, INT32)
    return while_loop(lambda state: lt(state[0], n - 1), step,
                      (start, t, z, chosen, full((), False)))[1:]


def _item_at(x: ArrayLike, i: ArrayLike) -> Array:
    return dynamic_index_in_dim(x, i, 0, keepdims=False)


def _swap(p: int, q: int, n: int) -> Callable[[Array, Array, Array, Array], tuple[Array, ...]]:
    """Exchange blocks of p and q rows; the first starts at row i."""
    if p + q > n:
        return lambda t, z, chosen, i: (t, z, chosen)

    def swap(t: Array, z: Array, chosen: Array, i: Array) -> tuple[Array, Array, Array]:
        window = dynamic_slice(t, (i, i), (p + q, p + q))
        t, z = _similar(t, z, _exchange(window, p), i)
        window = dynamic_slice(t, (i, i), (p + q, p + q))
        clean = np.ones((p + q, p + q), bool)
        clean[q:, :q] = False
        t = dynamic_update_slice(t, masked(window, clean), (i, i))
        if q == 2:
            t, z = _evened(t, z, i)
        if p == 2:
            t, z = _evened(t, z, add(i, q))
        order = np.array([True] * q + [False] * p)
        return t, z, dynamic_update_slice_in_dim(chosen, order, i, 0)

    return swap


def _similar(t: Array, z: Array, u: Array, i: Array) -> tuple[Array, Array]:
    """uᴴ t u and z u, where the unitary u acts on the rows (columns) from i on."""
    k = typeof(u).shape[0]
    rows = matmul(adjoint(u), dynamic_slice_in_dim(t, i, k, 0))
    t = dynamic_update_slice_in_dim(t, rows, i, 0)
    t, z = (dynamic_update_slice_in_dim(x, matmul(dynamic_slice_in_dim(x, i, k, 1), u), i, 1)
            for x in (t, z))
    return t, z


def _exchange(window: Array, p: int) -> Array:
    """The unitary matrix that puts the eigenvalues of the second block before the first's.

    The columns of (y, 1) with a y - y c = -b span the invariant subspace of ((a, b), (0, c)) for c.
    """
    k = typeof(window).shape[0]
    q = k - p
    a, b = slice(window, (0, 0), (p, p)), slice(window, (0, p), (p, k))
    c = slice(window, (p, p), (k, k))
    system = sub(_kron(a, eye(full_like(c, 0))), _kron(eye(full_like(a, 0)), c))
    y = left_divided(system, reshape(neg(b), (p * q, 1)))
    basis = concatenate([reshape(y, (p, q)), eye(full_like(c, 0))], 0)
    return qr(basis)[0]


def _kron(x: Array, y: Array) -> Array:
    """The matrix of b -> x b y on b[p, q], read row by row."""
    p, q = typeof(x).shape[0], typeof(y).shape[0]
    outer = dot_general(x, y, (((), ()), ((), ())), "highest")      # [r, r', c', c]
    return reshape(transpose(outer, (0, 3, 1, 2)), (p * q, p * q))


def _evened(t: Array, z: Array, i: Array) -> tuple[Array, Array]:
    """Rotate the two rows from i on so that the block's diagonal elements are equal."""
    block = dynamic_slice(t, (i, i), (2, 2))
    (a, b), (c, d) = [[reshape(slice(block, (r, s), (r + 1, s + 1)), ()) for s in (0, 1)]
                      for r in (0, 1)]
    angle = mul(atan2(sub(d, a), add(b, c)), 0.5)
    cos, sin = (reshape(f(angle), (1, 1)) for f in (transcendental.cos, transcendental.sin))
    u = concatenate([concatenate([cos, neg(sin)], 1), concatenate([sin, cos], 1)], 0)
    t, z = _similar(t, z, u, i)
    block = dynamic_slice(t, (i, i), (2, 2))
    mean = mul(reduce_sum(diagonal(block), (0,)), 0.5)
    off = masked(block, ~np.eye(2, dtype=bool))
    even = add(off, mul(eye(block), broadcast_in_dim(mean, (2, 2), ())))
    return dynamic_update_slice(t, even, (i, i)), z
