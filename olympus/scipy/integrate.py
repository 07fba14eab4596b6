"""Integrals of samples and functions, and initial value problems, as scipy.integrate has them."""

from .._src.base.util import publish_bounded as _publish
from .._src.numpy.statistics import trapezoid
from .._src.scipy.integrate.quadrature import cumulative_trapezoid, fixed_quad, quad, simpson
from .._src.scipy.integrate.solve_ivp import OdeSolution, solve_ivp

__all__ = [
    "OdeSolution", "cumulative_trapezoid", "fixed_quad", "quad", "simpson", "solve_ivp",
    "trapezoid",
]

_publish(__name__)
