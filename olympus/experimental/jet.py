"""Taylor mode: derivatives of higher orders, all at once: names only.

`jet_rules` maps primitives to rules `rule(primals_in, series_in, **params) -> (primal_out,
series_out)` on coefficients of Taylor polynomials, for those whose `jvp` rule is not to be used.
"""

from .._src.base.util import publish as _publish
from .._src.interpreters.jet import JetTrace, JetTracer, jet_rules
from .._src.autodiff.jet import (
    ZeroSeries, ZeroTerm, def_comp, def_deriv, deflinear, defzero, deriv_prop, fact, jet, jet2,
    linear_prop, zero_prop, zero_series, zero_term,
)

__all__ = [
    "JetTrace", "JetTracer", "ZeroSeries", "ZeroTerm", "def_comp", "def_deriv", "deflinear",
    "defzero", "deriv_prop", "fact", "jet", "jet2", "jet_rules", "linear_prop", "zero_prop",
    "zero_series", "zero_term",
]

_publish(__name__)
