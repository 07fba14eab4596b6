"""Functions with their own derivatives: names only."""

from ._src.base.util import publish as _publish
from ._src.custom.gradient import closure_convert, custom_gradient, linear_call
from ._src.custom.jvp import custom_jvp, custom_jvp_call_p
from ._src.custom.rules import SymbolicZero, zero_from_primal
from ._src.custom.vjp import (
    CustomVJPPrimal, custom_vjp, custom_vjp_call_p, custom_vjp_primal_tree_values,
)
from ._src.custom.vjp import custom_fwd_p as remat_opt_p

__all__ = ["CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp",
           "custom_jvp_call_p", "custom_vjp", "custom_vjp_call_p", "custom_vjp_primal_tree_values",
           "linear_call", "remat_opt_p", "zero_from_primal"]

_publish(__name__)
