"""Whether a program ends so soon that the thread that calls it had better run it.

XLA:CPU runs a program in a thread of its own, so that the caller can go on, and wakes that thread
for it: some 40 us of CPU time a call, and as long until the result is there. Nothing is gained
where the program takes less. XLA itself leaves programs of under 1,000 floating-point operations to
the caller, whatever else they do; here the time of a program is estimated from its equations.
`tools/dispatch_table.py` measured the limit and the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..base.typing import Params
from ..core.ir import ClosedOlympuspr, Olympuspr, OlympusprEqn
from ..types.shape import prod

# In nanoseconds. At 100 us a call that is waited for gains a third, and a loop of calls that nobody
# waits for as much as it loses where another core is free.
LIMIT = 1e5
_EQUATION = 20.0    # the least time of an equation: it bounds how many are visited
_STEP = 400.0       # the time that an equation, as a kernel of its own, adds to each step of a loop


# Primitives that run their bodies: once, but for cond, which runs one, and scan, which has a count.
_CALLS = frozenset((
    "composite", "compute_on", "cond", "custom_jvp_call", "custom_linear_solve",
    "custom_vjp_call", "custom_vmap_call", "jit", "linear_call", "remat2", "scan",
    "unchecked_call", "xla_metadata_call"))
_PACES = {name: pace for pace, names in (    # nanoseconds an element, alone on one core
    (0.3, """abs add and bitcast_convert_type broadcast_in_dim ceil clamp complex concatenate conj
        convert_element_type copy dynamic_slice dynamic_update_slice eq floor ge gt imag iota
        is_finite le lt max min mul ne neg not optimization_barrier or pad real reduce_precision
        reduce_sum reshape rev round select_n shift_left shift_right_arithmetic
        shift_right_logical sign slice split sqrt square squeeze stack stop_gradient sub tile
        unstack xor
        name pvary random_unwrap random_wrap random_clone symmetric_product"""),
    (1.0, """div eq_to exp exp2 expm1 integer_pow le_to log log1p logistic lt_to reduce_and
        reduce_max reduce_min reduce_or reduce_prod reduce_xor rsqrt tanh transpose"""),
    (4.0, """acosh argmax argmin asinh atanh atan boxcox boxcox1p clz cos cosh cummax cummin cumprod
        cumsum entr erf erfc gather huber log10 log2 mulhi nextafter population_count pow
        random_bits rng_bit_generator scatter scatter-add scatter-max scatter-min scatter-mul
        scatter-sub select_and_gather_add sin sinh tan threefry2x32 xlog1py xlogy"""),
    (20.0, """acos asin atan2 bessel_i0e bessel_i1e cbrt cumlogsumexp digamma erf_inv lgamma logit
        random_fold_in random_seed random_split rem"""),
    # They iterate, over elements together, until the slowest has converged.
    (math.inf, """betainccinv betaincinv fdtri gammainccinv gammaincinv hyp2f1 hyp2f1_slope
        ndtri_exp stdtrit"""),
) for name in names.split()}
_SPECIAL = 200.0    # of other functions of elements


def is_brief(closed: ClosedOlympuspr) -> bool:
    """Whether a program of one CPU device is estimated to take less than `LIMIT`."""
    return closed.derived("brief", lambda: nanoseconds(closed.olympuspr) <= LIMIT)


def nanoseconds(pr: Olympuspr, limit: float | None = None) -> float:
    """About how long a program takes on one core; infinite if longer than `limit`, or unknown."""
    total, limit = 0.0, LIMIT if limit is None else limit
    for eqn in pr.eqns:
        total += _EQUATION + _equation(eqn, limit - total)
        if total > limit:
            return math.inf
    return total


def _equation(eqn: OlympusprEqn, limit: float) -> float:
    prim, params = eqn.primitive, eqn.params
    ran = prim.applied(params, eqn.invars)
    if not ran:
        return _operation(eqn)
    if prim.endless or prim.name not in _CALLS:
        return math.inf
    times = max(params["length"], 1) if prim.name == "scan" else 1
    bodies = [nanoseconds(body.olympuspr, limit / times)
              + (_STEP * len(body.olympuspr.eqns) if prim.name == "scan" else 0.0)
              for _, body, _ in ran]
    return times * (max(bodies) if prim.name == "cond" else sum(bodies))


def _operation(eqn: OlympusprEqn) -> float:
    name, ins = eqn.primitive.name, [getattr(v.aval, "shape", ()) for v in eqn.invars]
    outs = [getattr(v.aval, "shape", ()) for v in eqn.outvars]
    work = _WORK.get(name)
    if work is not None:
        return work(ins, outs, eqn.params)
    pace = _PACES.get(name, _SPECIAL if eqn.primitive.elementwise else math.inf)
    return pace * max(map(prod, [*ins, *outs]), default=0)


Shapes = Sequence[Sequence[int]]


def _dot(ins: Shapes, outs: Shapes, params: Params) -> float:
    (contracted, _), _ = params["dimension_numbers"]
    return 0.1 * prod(outs[0]) * prod([ins[0][axis] for axis in contracted])


def _conv(ins: Shapes, outs: Shapes, params: Params) -> float:
    # All axes of the kernel but the one of output features are summed over.
    features = ins[1][params["dimension_numbers"].rhs_spec[0]]
    return 0.5 * prod(outs[0]) * prod(ins[1]) / max(features, 1)


def _window(ins: Shapes, outs: Shapes, params: Params) -> float:
    return prod(outs[0]) * prod(params["window_dimensions"])


def _sort(ins: Shapes, outs: Shapes, params: Params) -> float:
    return 4.0 * max(map(prod, ins)) * (1.0 + math.log2(max(max(ins[0], default=1), 1)))


def _fft(ins: Shapes, outs: Shapes, params: Params) -> float:
    size = max(prod(ins[0]), prod(outs[0]))
    return 2000.0 + size * (1.0 + math.log2(max(size, 1)))


def _matrices(pace: float) -> Callable[[Shapes, Shapes, Params], float]:
    """The work of LAPACK's functions: of each matrix the cube of its size, and a call."""
    def work(ins: Shapes, outs: Shapes, params: Params) -> float:
        *batch, rows, columns = ins[0]
        return prod(batch) * (1000.0 + pace * rows * columns * min(rows, columns))
    return work


_WORK: dict[str, Callable[[Shapes, Shapes, Params], float]] = {
    "dot_general": _dot, "conv_general_dilated": _conv, "fft": _fft, "sort": _sort,
    "ranked": _sort, "top_k": _sort,
    **dict.fromkeys(("reduce_window_max", "reduce_window_min", "reduce_window_sum"), _window),
    **dict.fromkeys(("cholesky", "triangular_solve", "lu", "geqrf", "householder_product"),
                    _matrices(1.0)),
    **dict.fromkeys(("qr", "lu_solve"), _matrices(4.0)),
    **dict.fromkeys(("eigh", "svd"), _matrices(30.0))}
