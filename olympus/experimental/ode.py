"""Solutions of ordinary differential equations: names only."""

from .._src.base.util import publish as _publish
from .._src.scipy.integrate.dormand_prince import (
    abs2, fit_4th_order_polynomial, initial_step_size, interp_fit_dopri, mean_error_ratio,
    optimal_step_size, runge_kutta_step,
)
from .._src.extend.odeint import ravel_first_arg_
from .._src.scipy.integrate.odeint import odeint, ravel_first_arg

__all__ = [
    "abs2", "fit_4th_order_polynomial", "initial_step_size", "interp_fit_dopri",
    "mean_error_ratio", "odeint", "optimal_step_size", "ravel_first_arg", "ravel_first_arg_",
    "runge_kutta_step",
]

_publish(__name__)
