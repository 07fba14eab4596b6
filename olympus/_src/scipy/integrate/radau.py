"""Radau IIA of order 5: the implicit method for stiff equations, as SciPy's solve_ivp names it.

Source: Hairer & Wanner, "Solving Ordinary Differential Equations II" (1996), IV.8. A step is a
cubic that satisfies the equation at three nodes. Newton's method finds it with the Jacobian matrix
at the beginning of the step; a linear change of variables makes of its system of 3n equations a
real and a complex one of n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...autodiff.jacobians import jacfwd
from ...base.typing import Array, ArrayLike
from ...control_flow.while_loop import while_loop
from ...custom.solves import custom_root
from ...numpy.arithmetic import absolute, imag, minimum, real
from ...numpy.conditions import clip
from ...numpy.creation import asarray, zeros
from ...numpy.diagonals import eye
from ...numpy.elementary import isfinite
from ...numpy.joining import concatenate, stack
from ...numpy.selection import where
from ...types import dtypes
from ..linalg.factors import lu_factor
from ..linalg.systems import lu_solve, solve
from .dormand_prince import Fun, mean_error_ratio, norm
from .steps import HOPELESS, Attempt, Equation, Progress, finite, horner

_ITERATIONS = 6         # at most, in one step
_NODES = np.array([(4 - 6 ** 0.5) / 10, (4 + 6 ** 0.5) / 10, 1])
_POWERS = np.vander(_NODES, 4)[:, :3]           # s³, s², s at the nodes
_TO_POWERS = np.linalg.inv(_POWERS)
# Integrals of the quadratic through values at the nodes, from 0 to each node.
_INTEGRALS = _POWERS / np.array([3, 2, 1]) @ np.linalg.inv(np.vander(_NODES, 3))
_ERROR = np.array([-13 - 7 * 6 ** 0.5, -13 + 7 * 6 ** 0.5, -1]) / 3


def _separated() -> tuple[float, complex, np.ndarray, np.ndarray]:
    """The eigenvalues of the inverse of `_INTEGRALS`, and the basis in which it has two blocks."""
    values: Any     # NumPy does not say that they are complex
    vectors: Any
    values, vectors = np.linalg.eig(np.linalg.inv(_INTEGRALS))
    one, pair = np.argmin(abs(values.imag)), np.argmax(values.imag)
    basis = np.stack([vectors[:, one].real, vectors[:, pair].real, vectors[:, pair].imag], 1)
    return values[one].real, values[pair].conj(), basis, np.linalg.inv(basis)


_REAL, _COMPLEX, _BASIS, _INVERSE = _separated()


class _Newton(NamedTuple):
    """An iteration in the variables in which the system separates."""

    w: Array        # [3, n]
    z: Array        # [3, n]: states at the nodes, less the one at the beginning
    size: Array     # of the last change
    rate: Array     # of it to the one before
    count: Array
    converged: Array
    failed: Array


@dataclass(frozen=True, eq=False)
class Radau:
    """The method; steps follow Gustafsson's predictive controller."""

    order: int = 3
    degree: int = 3

    def attempt(self, eq: Equation, p: Progress, h: Array, rtol: float, atol: ArrayLike
                ) -> Attempt:
        """One step; where Newton's method does not converge, half of it is tried next."""
        fun, wide = eq.fun, dtypes.result_type(p.y.dtype, np.float32)
        jacobian = eq.jacobian(p.y, p.t).astype(wide)
        identity = eye(p.y.size, dtype=wide)
        factors = [lu_factor(mu / h.astype(wide) * identity - jacobian)
                   for mu in (_REAL, np.asarray(_COMPLEX, dtypes.to_complex_dtype(wide)))]

        # The guess continues the last step's polynomial.
        length = where(p.t > p.t_before, p.t - p.t_before, 1)
        s = ((p.t - p.t_before + _NODES * h) / length).astype(p.y.dtype)
        guess = horner(p.polynomial[:, None], s[:, None]) - p.y
        scale = rtol * absolute(p.y) + atol
        stages = _iterated(fun, p, h, guess, scale, factors, rtol)

        y = p.y + stages.z[2]
        bent = _combine_rows(_ERROR[None], stages.z)[0] / h
        error = lu_solve(factors[0], (p.f + bent).astype(wide)).astype(p.y.dtype)
        ratio = mean_error_ratio(error, rtol, atol, p.y, y)
        # For stiff parts that have died out, the estimate is too large until it is filtered again.
        again = lu_solve(factors[0], (fun(p.y + error, p.t) + bent).astype(wide))
        ratio = where(ratio > 1, mean_error_ratio(again.astype(p.y.dtype), rtol, atol, p.y, y),
                      ratio)
        ratio = where(stages.converged, finite(ratio), HOPELESS)

        known = where(ratio == 0, 1, ratio)
        moved = p.t > p.t_before
        trend = p.dt / length * (where(p.ratio == 0, 1, p.ratio) / known) ** 0.25
        factor = minimum(1, where(moved, trend, 1)) * known ** -0.25
        most = 2 * _ITERATIONS
        factor = clip(0.9 * (most + 1) / (most + stages.count) * factor, 0.2, 10)
        factor = where(ratio == 0, 10, where(stages.converged, factor, 0.5))
        return Attempt(y, fun(y, p.t + h), _polynomial(stages.z, p.y), ratio, p.dt * factor,
                       3 * stages.count + 2)

    def redo(self, fun: Fun, y: Array, t: Array, h: Array, polynomial: Array
             ) -> tuple[Array, Array]:
        """The state after a step and its polynomial, with the derivatives of their equation."""
        def collocation(z: Array) -> Array:
            return z - h * _combine_rows(_INTEGRALS, _slopes(fun, y, t, h, z))

        def solved(g: Callable[[Array], Array], b: Array) -> Array:
            matrix = jacfwd(lambda x: g(x.reshape(b.shape)).ravel())(zeros(b.size, b.dtype))
            return solve(matrix, b.ravel()).reshape(b.shape)

        start = _combine_rows(_POWERS, polynomial[:3])
        z = custom_root(collocation, start, lambda _, z: z, solved)
        return y + z[2], _polynomial(z, y)


RADAU = Radau()


def _combine_rows(matrix: np.ndarray, rows: Array) -> Array:
    """Sums of three rows in their dtype."""
    return asarray(matrix.astype(rows.dtype)) @ rows


def _slopes(fun: Fun, y: Array, t: Array, h: Array, z: Array) -> Array:
    return stack([fun(y + z[i], t + h * float(node)) for i, node in enumerate(_NODES)])


def _polynomial(z: Array, y: Array) -> Array:
    return concatenate([_combine_rows(_TO_POWERS, z), y[None]])


def _iterated(fun: Fun, p: Progress, h: Array, guess: Array, scale: Array, factors: list,
              rtol: float) -> _Newton:
    """Simplified Newton's method on the collocation equations, until they hold well enough."""
    dtype, eps = p.y.dtype, float(dtypes.finfo(p.y.dtype).eps)
    tolerance = max(10 * eps / max(rtol, 100 * eps), min(0.03, rtol ** 0.5))
    (real_lu, complex_lu), wide = factors, factors[0][0].dtype

    def body(s: _Newton) -> _Newton:
        f = _combine_rows(_INVERSE, _slopes(fun, p.y, p.t, h, s.z)).astype(wide)
        w, step = s.w.astype(wide), h.astype(wide)
        first = lu_solve(real_lu, f[0] - _REAL / step * w[0])
        others = lu_solve(complex_lu, f[1] + 1j * f[2]
                          - asarray(_COMPLEX, complex_lu[0].dtype) / step * (w[1] + 1j * w[2]))
        change = stack([first, real(others), imag(others)]).astype(dtype)
        size = norm((change / scale).ravel())
        rate = where(s.count > 0, size / where(s.size == 0, 1, s.size), 0)
        left = rate / where(rate < 1, 1 - rate, 1) * size
        hopeless = (rate >= 1) | (left * rate ** (_ITERATIONS - 1 - s.count) > tolerance)
        failed = ~isfinite(size) | (s.count > 0) & hopeless
        w = where(failed, s.w, s.w + change)
        converged = ~failed & ((size == 0) | (s.count > 0) & (left < tolerance))
        return _Newton(w, _combine_rows(_BASIS, w), size, rate, s.count + 1, converged, failed)

    one = norm(guess.ravel()) * 0 + 1
    return while_loop(lambda s: ~s.converged & ~s.failed & (s.count < _ITERATIONS), body, _Newton(
        _combine_rows(_INVERSE,
                      guess), guess, one, one, asarray(0), asarray(False), asarray(False)))
