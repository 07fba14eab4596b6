"""Rows for what is a function of arrays in scipy.integrate, interpolate, spatial and cluster."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.cluster.vq
import scipy.integrate
import scipy.interpolate
import scipy.spatial.transform

from olympus.scipy import cluster, integrate, interpolate, spatial

from . import Op, reals

X = np.array([-2.0, -1.25, 0.25, 0.75, 2.5])
Y = reals(5, 2)
T = reals(3, 2, low=-1.8, high=2.3, seed=2)
GRID = (np.array([-1.0, 0.0, 0.5, 2.0]), np.array([1.5, 0.25, -2.0]))
ON_GRID, PLACES = reals(4, 3), reals(5, 2, low=-0.9, high=1.4)
QUATERNIONS, VECTORS = reals(3, 4), reals(3, 3, seed=1)


def of(ours: Any, theirs: Any, name: str, label: str, *args: Any, dtypes: str = "fd",
       **params: Any) -> Op:
    """The row of a function that both modules have under `name`."""
    mine, other = getattr(ours, name), getattr(theirs, name)
    return Op(f"{name}-{label}", lambda *a: np.asarray(other(*a, **params), a[0].dtype),
              lambda *a: mine(*a, **params), args, dtypes, tol=5e-5)


def curve(name: str, label: str, nu: int = 0, tol: float = 2e-4, **params: Any) -> Op:
    """A curve through points, at places, or its derivative there."""
    def at(kind: Any) -> Callable[..., Any]:
        def run(x: Any, y: Any, t: Any) -> Any:
            found = getattr(kind, name)(x, y, **params)
            return found(t, nu) if nu else found(t)
        return run

    return Op(f"{name}-{label}", lambda x, y, t: at(scipy.interpolate)(
        *[a.astype("f8") for a in (x, y, t)]).astype(y.dtype), at(interpolate), (X, Y, T), "fd",
        tol=tol, twice=False)


def line(kind: str) -> Op:
    steps = kind not in ("linear", "cubic")
    return Op(f"interp1d-{kind}", lambda x, y, t: scipy.interpolate.interp1d(
        x, y, kind, 0, fill_value="extrapolate")(t).astype(y.dtype),
        lambda x, y, t: interpolate.interp1d(x, y, kind, 0, fill_value="extrapolate")(t),
        (X, Y, T), "fd", grad=not steps, tol=2e-4, twice=False)


def grid(label: str, **params: Any) -> Op:
    def at(kind: Any) -> Callable[..., Any]:
        return lambda p, q, v, t: kind.RegularGridInterpolator((p, q), v, **params)(t)

    return Op(f"RegularGridInterpolator-{label}", lambda *a: at(scipy.interpolate)(
        *a).astype(a[2].dtype), at(interpolate), (*GRID, ON_GRID, PLACES), "fd",
        grad=params.get("method") != "nearest", tol=1e-4, twice=False)


def turned(label: str, run: Callable[..., Any], *args: Any, grad: bool = True) -> Op:
    """What a function makes of rotations given by quaternions."""
    def with_(kind: Any) -> Callable[..., Any]:
        return lambda q, *rest: run(kind.Rotation.from_quat(q), *rest)

    ours, theirs = spatial.transform, scipy.spatial.transform
    return Op(f"Rotation-{label}", lambda q, *rest: with_(theirs)(q, *rest).astype(q.dtype),
              with_(ours), (QUATERNIONS, *args), "fd", grad=grad, tol=2e-4)


def nearest(x: np.ndarray, codes: np.ndarray) -> Any:
    code, distance = scipy.cluster.vq.vq(x, codes)
    return code.astype(np.int64), distance.astype(x.dtype)


def slerp(kind: Any, make: Callable[..., Any], times: Any, q: Any, t: Any) -> Any:
    return make(times, kind.Rotation.from_quat(q))(t).as_matrix()


ALL = (
    of(integrate, scipy.integrate, "simpson", "even", Y.T),
    of(integrate, scipy.integrate, "simpson", "odd", Y.T[:, :4], dx=0.5),
    of(integrate, scipy.integrate, "simpson", "axis", Y, X, axis=0),
    of(integrate, scipy.integrate, "simpson", "two", Y),
    of(integrate, scipy.integrate, "cumulative_trapezoid", "x", Y, X, axis=0),
    of(integrate, scipy.integrate, "cumulative_trapezoid", "initial", Y, initial=0),
    *[curve("CubicSpline", bc, bc_type=bc) for bc in ("not-a-knot", "natural", "clamped")],
    *[curve("CubicSpline", f"derivative-{nu}", nu, tol=2e-3) for nu in (1, 2, 3)],
    curve("CubicSpline", "ends", bc_type=((1, np.array([0.5, 1])), (2, np.array([-0.5, 1])))),
    curve("PchipInterpolator", "x"), curve("Akima1DInterpolator", "x"),
    curve("Akima1DInterpolator", "makima", method="makima"),
    *map(line, ("linear", "cubic", "nearest", "nearest-up", "previous", "next", "zero")),
    grid("linear"), grid("nearest", method="nearest"), grid("beyond", fill_value=None),
    turned("as_matrix", lambda r: r.as_matrix()), turned("as_rotvec", lambda r: r.as_rotvec()),
    turned("as_mrp", lambda r: r.as_mrp()), turned("magnitude", lambda r: r.magnitude()),
    turned("as_euler", lambda r: r.as_euler("zyx")), turned("inv", lambda r: r.inv().as_matrix()),
    turned("as_euler-capital", lambda r: r.as_euler("XYX", degrees=True)),
    turned("apply", lambda r, v: r.apply(v), VECTORS),
    turned("apply-inverse", lambda r, v: r.apply(v, inverse=True), VECTORS),
    turned("product", lambda r: (r * r[::-1]).as_matrix()),
    turned("from_matrix", lambda r: type(r).from_matrix(r.as_matrix()).as_matrix()),
    turned("from_mrp", lambda r, v: type(r).from_mrp(v).as_matrix(), VECTORS),
    turned("from_rotvec", lambda r, v: type(r).from_rotvec(v).as_matrix(), VECTORS),
    turned("from_euler", lambda r, v: type(r).from_euler("XZY", v).as_matrix(), VECTORS),
    turned("mean", lambda r: r.mean().as_matrix()),
    Op("Slerp", lambda times, q, t: slerp(
        scipy.spatial.transform, scipy.spatial.transform.Slerp, times, q, t).astype(q.dtype),
       lambda *a: slerp(spatial.transform, spatial.transform.Slerp.init, *a),
       (X[:3], QUATERNIONS, np.array([-1.5, 0.0])), "fd", tol=2e-4),
    Op("vq", nearest, cluster.vq.vq, (reals(5, 2), reals(3, 2)), "fd", grad=False),
)
