"""The distribution of a difference of two Poisson numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...base.typing import Array, DType, Shape
from ...control_flow.while_loop import fori_loop
from ...numpy.arithmetic import absolute
from ...numpy.conditions import where
from ...numpy.elementary import exp, log, log1p, sqrt
from ...numpy.trigonometry import asinh
from ...random.continuous import subkeys
from ...random.keys import typed
from ...random.poisson import poisson
from .distribution import Summed, formula, published

_ABOVE = 24     # orders above the one asked for, from where on the expansion is accurate


def _expansion(count: int) -> list[list[float]]:
    """The polynomials U of Bessel functions of large order (DLMF 10.41.9), lowest power first."""
    polynomials = [np.polynomial.Polynomial([1.0])]
    rate, weight = (np.polynomial.Polynomial(c) for c in ([0, 0, 0.5, 0, -0.5], [1, 0, -5]))
    for _ in range(count - 1):
        polynomials.append(rate * polynomials[-1].deriv() + (weight * polynomials[-1]).integ() / 8)
    return [u.coef.tolist() for u in polynomials]


_U = _expansion(10)


def _log_bessel(n: Any, x: Array) -> Array:
    """log(exp(-x) I_n(x)) for orders n >= 0 and x > 0 that may both be large.

    The uniform expansion (DLMF 10.41.3) some orders above; from there down by ratios, whose
    recurrence is stable in that direction (DLMF 10.29.1).
    """
    def large(n: Any) -> Array:
        z = x / n
        root = sqrt(1.0 + z * z)
        total, p = 0.0 * z, 1.0 / root
        for u in _U[::-1]:
            value = 0.0 * p
            for c in u[::-1]:
                value = value * p + c
            total = total / n + value
        level = n / (root + z) - n * asinh(n / x)
        return level - 0.5 * log(2.0 * math.pi * n * root) + log(total)

    top = large(n + _ABOVE)

    def down(i: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        ratio, level = state
        ratio = 1.0 / (ratio + 2.0 * (n + (_ABOVE - i.astype(x.dtype))) / x)
        return ratio, level - log(ratio)

    return fori_loop(0, _ABOVE, down, (exp(large(n + (_ABOVE + 1.0)) - top), top))[1]


class Skellam(Summed):
    name, title, low = "skellam", "Skellam distribution", -math.inf
    about = """That of the difference of two Poisson numbers: I_k(2 sqrt(mu1 mu2)) exp(-mu1 - mu2)
    (mu1 / mu2)**(k/2), with the modified Bessel function I."""
    parameters, sample, at = ("mu1", "mu2"), (3.0, 2.0), 2
    words = ("mu1, mu2: means of the two, > 0.",)
    shown = "0.160 -1.832 0.758 -0.277 0.242 -1.418 0.000 2.000 1.000 5.000 2.236 2.222"
    drawn = "[1 3 1]"
    inner = formula(lambda mu1, mu2: 0.0)
    mean = formula(lambda mu1, mu2: mu1 - mu2)
    var = formula(lambda mu1, mu2: mu1 + mu2)

    def logpmf(self, k: Array, mu1: Array, mu2: Array) -> Array:
        first, second = sqrt(mu1), sqrt(mu2)
        # Without the loss of digits in differences of means that are nearly equal.
        apart, share = (mu1 - mu2) / (first + second), (mu1 - mu2) / mu2
        close = absolute(share) < 0.5
        rate = where(close, log1p(where(close, share, 0.0)), log(mu1) - log(mu2))
        level = 0.5 * k * rate - apart * apart
        return level + _log_bessel(absolute(k), 2.0 * first * second)

    def draw(self, key: Array, shape: Shape, dtype: DType, mu1: Array, mu2: Array) -> Array:
        first, second = subkeys(typed(key))
        return poisson(first, mu1, shape) - poisson(second, mu2, shape)


skellam = published(Skellam())
