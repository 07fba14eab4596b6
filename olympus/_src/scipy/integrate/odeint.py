"""odeint: states of an ordinary differential equation at given times, with derivatives.

Derivatives are solutions of differential equations too, by the same method: tangents go along with
the state (sensitivities), cotangents come back along it (the adjoint equation: Pontryagin et al.,
"The Mathematical Theory of Optimal Processes", 1962; Chen et al., "Neural Ordinary Differential
Equations", 2018). So neither stores the steps, and both have derivatives themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ...arrays.flatten_util import ravel_pytree
from ...autodiff.derivatives import jvp, vjp
from ...autodiff.jacobians import jacfwd
from ...base.source import api_boundary
from ...base.typing import Array, ArrayLike, PyTree
from ...base.util import merged, name_of, real_number
from ...control_flow.scan import scan
from ...control_flow.while_loop import while_loop
from ...core.trace import typeof
from ...custom.gradient import closure_convert, linear_call
from ...custom.jvp import custom_jvp
from ...custom.rules import SymbolicZero
from ...jit.jit import jit
from ...mapping.vmap import vmap
from ...numpy.arithmetic import real
from ...numpy.creation import asarray, is_sequence
from ...numpy.joining import concatenate
from ...numpy.promote import inexact
from ...numpy.selection import where
from ...types import dtypes
from ...types.tree import tree_flatten, tree_flatten_with_path, tree_map, tree_structure
from ...types.tree_paths import keystr
from .dormand_prince import Fun
from .runge_kutta import RK45
from .steps import Equation, Progress, Settings, at_time, is_going, start, step

Unravel: TypeAlias = Callable[[Array], PyTree]


@api_boundary
def odeint(func: Callable[..., PyTree], y0: PyTree, t: ArrayLike, *args: PyTree,
           rtol: float = 1.4e-8, atol: float = 1.4e-8, mxstep: float = np.inf,
           hmax: float = np.inf) -> PyTree:
    """Solve dy/dt = func(y, t, *args) from y(t[0]) = y0, with steps that adapt to the error.

    The method is the Runge–Kutta pair of Dormand and Prince, of orders 5 and 4, with a quartic
    between its steps. Forward and reverse mode work, to any order, with respect to `y0`, `t`,
    `args` and what `func` closes over; under `vmap` all elements step until the last has ended.

    Args:
      func: gives dy/dt, a pytree like `y0`; for one array, a list of its elements will do.
      y0: a pytree of arrays, the state at t[0]; integers become floats.
      t: [n], times at which the state is asked for: ascending, or descending, first the initial.
      *args: pytrees of arrays that are handed to `func`.
      rtol, atol: the error of a step may be `atol + rtol * abs(y)`, in the mean of squares.
      mxstep: the most steps between two times of `t`.
      hmax: the longest step.
    Returns: the states at `t`: like `y0`, with a leading axis of length n. NaN from where `mxstep`
      steps did not suffice, or no step was short enough.

    Raises TypeError for arguments that are not arrays and for a result of `func` that is not like
    `y0`, ValueError for `t` that is no vector.

    >>> from olympus.experimental.ode import odeint
    >>> t = onp.array([0.0, 1.0, 2.0])
    >>> decay = lambda rate: odeint(lambda y, t, rate: -rate * y, 1.0, t, rate)
    >>> with onp.printoptions(precision=4):
    ...     print(decay(0.5), olympus.jacobian(decay)(0.5))
    [1.     0.6065 0.3679] [ 0.     -0.6065 -0.7358]
    """
    if not callable(func):
        raise TypeError(f"odeint: func {func!r} given; a callable func(y, t, *args) is required.")
    for what, value in (("y0", y0), ("t", t), ("args", args)):
        for path, leaf in tree_flatten_with_path(value)[0]:
            try:
                typeof(leaf)
            except TypeError:
                raise TypeError(f"odeint: {what}{keystr(path)} is of type {type(leaf).__name__}; an"
                                " array or a number is required; let func close over others."
                                ) from None
    if typeof(asarray(t)).ndim != 1 or not np.size(t):
        raise ValueError(f"odeint: t {typeof(asarray(t))} given; a vector of one time or more is "
                         "required.")
    rtol, atol, mxstep, hmax = (real_number(v, f"odeint: {name}") for name, v in (
        ("rtol", rtol), ("atol", atol), ("mxstep", mxstep), ("hmax", hmax)))
    return _odeint(func, Settings(rtol, atol, hmax, RK45, mxstep), y0, t, args)


@partial(jit, static_argnums=(0, 1))
def _odeint(func: Callable[..., PyTree], settings: Settings, y0: PyTree, t: ArrayLike,
            args: Sequence[Array]) -> Array:
    y0 = tree_map(lambda x: inexact(asarray(x)), y0)
    flat, unravel = ravel_pytree(y0)
    t = asarray(t)
    if not dtypes.is_floating(t.dtype):
        t = t.astype(dtypes.to_real_dtype(flat.dtype))

    fun, consts = closure_convert(flat_dynamics(func, y0, unravel, "odeint"), flat, t[0], *args)
    return vmap(unravel)(solved_at(fun, settings, flat, t, (*args, *consts)))


def flat_dynamics(func: Callable[..., PyTree], y0: PyTree, unravel: Unravel, what: str) -> Fun:
    """`func` of the state as a vector; a result that is not like the state is refused."""
    def dynamics(y: Array, t: Array, *args: Array) -> Array:
        slope = func(unravel(y), t, *args)
        if getattr(y0, "shape", ()) and is_sequence(slope):
            slope = asarray(slope)
        if tree_structure(slope) != tree_structure(y0):
            raise TypeError(f"{what}: {name_of(func)} returned {tree_structure(slope)}; the "
                            f"structure of y0, {tree_structure(y0)}, is required.")
        for (path, leaf), x in zip(tree_flatten_with_path(slope)[0], tree_flatten(y0)[0],
                                   strict=True):
            if np.shape(leaf) != x.shape:
                raise TypeError(f"{what}: {name_of(func)} returned {typeof(leaf)} for "
                                f"y0{keystr(path)}; the shape of the state, {x.shape}, is required."
                                )
        return like(ravel_pytree(slope)[0], y)
    return dynamics


def like(x: Array, y: Array) -> Array:
    """Numbers in the dtype of others, the real parts if those are real."""
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(y.dtype):
        x = real(x)
    return x.astype(y.dtype)


def ravel_first_arg(f: Callable[..., PyTree], unravel: Unravel
                    ) -> Callable[..., Array]:
    """`f` as a function whose first argument, and result, is a vector.

    Args: f: of a pytree and more, giving a pytree; unravel: makes the pytree of a vector.
    Returns: the function of the vector and the rest.

    >>> from olympus.experimental.ode import ravel_first_arg
    >>> from olympus.flatten_util import ravel_pytree
    >>> vector, unravel = ravel_pytree({"x": 1.0, "v": 2.0})
    >>> print(ravel_first_arg(lambda y, t: {"x": y["v"], "v": -y["x"]}, unravel)(vector, 0.0))
    [-1.  2.]
    """
    return lambda y_flat, *args: ravel_pytree(f(unravel(y_flat), *args))[0]


@partial(custom_jvp, nondiff_argnums=(0, 1))
def solved_at(fun: Fun, settings: Settings, y0: Array, ts: Array, args: Sequence[PyTree]) -> Array:
    """States [len(ts), n] at the times; `fun(y, t, *args)` closes over nothing that is traced."""
    # Backwards in time is forwards in its negative.
    sign = where(ts[-1] < ts[0], -1, 1)
    forward = sign.astype(ts.dtype)

    def slope(y: Array, s: Array) -> Array:
        return fun(y, s * forward, *args) * sign.astype(dtypes.to_real_dtype(y.dtype))

    def to_time(p: Progress, until: Array) -> tuple[Progress, Array]:
        p = while_loop(lambda p: is_going(p, until, settings.most_steps),
                       lambda p: step(equation, p, settings)[0],
                       p._replace(steps=p.steps * 0))
        return p, at_time(p, until)

    times, equation = ts * forward, Equation(slope, jacfwd(slope))
    _, ys = scan(to_time, start(slope, y0, times[0], settings), times[1:])
    return concatenate([y0[None], ys])


def _solved_at_jvp(fun: Fun, settings: Settings, primals: Any, tangents: Any) -> Any:
    y0, ts, args = primals
    dy0, dts, dargs = tangents
    ys = solved_at(fun, settings, y0, ts, args)
    leaves, tree = tree_flatten(args)
    # Only of arguments that vary: each costs the cotangents' equation a state.
    t_leaves = tree_flatten(dargs, is_leaf=lambda x: isinstance(x, SymbolicZero))[0]
    varies = [not isinstance(d, SymbolicZero) for d in t_leaves]
    fixed = [x for x, v in zip(leaves, varies, strict=True) if not v]
    params = [x for x, v in zip(leaves, varies, strict=True) if v]

    def of_params(y: Array, t: Array, fixed: PyTree, params: Sequence[Array]) -> Array:
        return fun(y, t, *tree.unflatten(merged(varies, params, fixed)))

    tangents = ([_dense(dy0, y0)], [_dense(dts, ts)],
                [d for d, v in zip(t_leaves, varies, strict=True) if v])
    return ys, linear_call(partial(_tangents, of_params, settings),
                           partial(_cotangents, of_params, settings),
                           (ys, ts, fixed, params), tangents)


def _dense(tangent: Array | SymbolicZero, x: Array) -> Array:
    return x * 0 if isinstance(tangent, SymbolicZero) else tangent


solved_at.defjvp(_solved_at_jvp, symbolic_zeros=True)


def _tangents(fun: Callable[..., Array], settings: Settings, residuals: PyTree,
              linear: Sequence[Sequence[Array]]) -> Array:
    """The sensitivities: d(dy)/dt = df/dy dy + df/dargs dargs beside dy/dt = f."""
    ys, ts, fixed, params = residuals
    (dy0,), (dts,), dparams = linear
    n = ys.shape[1]

    def joint(z: Array, t: Array, fixed: object, params: Sequence[Array], dparams: Sequence[Array]
              ) -> Array:
        return concatenate(jvp(lambda y, p: fun(y, t, fixed, p), (z[:n], params),
                               (z[n:], dparams)))

    slopes = vmap(lambda y, t: fun(y, t, fixed, params))(ys, ts)
    # A later start leaves the state where it was, for the time between.
    z0 = concatenate([ys[0], dy0 - slopes[0] * dts[0].astype(slopes.dtype)])
    settings = settings.beside(n, n)
    tangents = solved_at(joint, settings, z0, ts, (fixed, params, dparams))[:, n:]
    return tangents + slopes * dts[:, None].astype(slopes.dtype)


def _cotangents(fun: Callable[..., Array], settings: Settings, residuals: PyTree, cts: Array
                ) -> tuple[list[Array], list[Array], list[Array]]:
    """The adjoint equation, from each time asked for to the one before it."""
    ys, ts, fixed, params = residuals
    slopes = vmap(lambda y, t: fun(y, t, fixed, params))(ys, ts)

    def joint(z: Array, t: Array, fixed: object, params: Sequence[Array]) -> Array:
        y, ct, _ = unravel(z)
        f, pullback = vjp(lambda y, p: fun(y, t, fixed, p), y, params)
        y_ct, params_ct = pullback(ct)
        return ravel_pytree((f, -y_ct, tree_map(lambda x: -x, params_ct)))[0].astype(z.dtype)

    def back(carry: tuple[Array, Sequence[Array]], xs: Sequence[Array]) -> tuple[PyTree, None]:
        ct, params_ct = carry
        y, added, t, t_before = xs
        z0 = ravel_pytree((y, ct + added, params_ct))[0]
        times = asarray([t, t_before])
        beside = settings.beside(ct.size, z0.size - ct.size)
        z = solved_at(joint, beside, z0, times, (fixed, params))[1]
        return unravel(z)[1:], None

    start_cts = (ys[0] * 0, tree_map(lambda x: x * 0, params))
    _, unravel = ravel_pytree((ys[0], *start_cts))
    (ct, params_ct), _ = scan(back, start_cts, (ys[1:], cts[1:], ts[1:], ts[:-1]), reverse=True)
    moved = (slopes * cts).sum(1)
    times_ct = moved.at[0].set(-(slopes[0] * ct).sum())
    return [ct + cts[0]], [like(times_ct, ts)], params_ct
