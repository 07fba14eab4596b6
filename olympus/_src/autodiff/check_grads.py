"""Derivatives held against central differences of the function, in one random direction.

What a user asserts in tests: f(x + h t) and f(x - h t) are computed by the function itself, their
difference by NumPy. The direction is the same in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..arrays.device import device_put
from ..base.docstrings import described_like
from ..base.typing import Array, DTypeLike, PyTree
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import has_tangent
from ..types.tree import tree_flatten_with_path, tree_leaves, tree_map
from ..types.tree_paths import keystr
from .derivatives import jvp, vjp

Tolerance = float | Mapping[DTypeLike, float] | None

# By bits of the mantissa: tolerance, and the step at which rounding, which grows as 1/h, and the
# cubic term, which grows as h², are both below it. Powers of two, so that steps are exact.
_SCALES = {52: (1e-5, 2.0**-17), 23: (2e-3, 2.0**-10), 10: (3e-2, 2.0**-3)}
_COARSE = (1e-1, 2.0**-2)      # 7 bits, as bfloat16 has, and fewer


def _scales(*trees: PyTree) -> dict[np.dtype, tuple[float, float]]:
    """(tolerance, step) by the dtypes of arrays that have derivatives."""
    return {a.dtype: _SCALES.get(dtypes.finfo(a.dtype).nmant, _COARSE)
            for a in map(typeof, tree_leaves(trees)) if has_tangent(a)}


def _difference_step(args: PyTree) -> float:
    """The step of the least exact dtype."""
    return max([step for _, step in _scales(args).values()], default=_SCALES[52][1])


def _tolerance(wanted: Tolerance, *trees: PyTree) -> float:
    """The tolerance of the least exact dtype, unless one is given for all or for that one."""
    if wanted is not None and not isinstance(wanted, Mapping):
        return wanted
    by_dtype = {dtypes.as_dtype(dtype): tolerance for dtype, tolerance in (wanted or {}).items()}
    return max([by_dtype.get(dtype, usual) for dtype, (usual, _) in _scales(*trees).items()],
               default=_SCALES[52][0])


def _direction(rng: np.random.Generator, x: object) -> np.ndarray:
    """Normal numbers shaped and typed as tangents of `x`."""
    aval = typeof(x)
    if not has_tangent(aval):
        return np.zeros(aval.shape, dtypes.float0)
    t = rng.normal(size=aval.shape)
    if dtypes.is_complex(aval.dtype):
        t = t + 1j * rng.normal(size=aval.shape)
    return np.asarray(t).astype(aval.dtype)


def _in_double(x: object) -> np.ndarray:
    """A value in double precision, so that differences and sums are exact enough."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _stepped(args: PyTree, tangents: PyTree, step: float) -> PyTree:
    """The arguments `step` along the direction, each of its own dtype."""
    # Arrays of ours again: a function of NumPy's arrays would run NumPy's operators.
    return tree_map(lambda x, t: x if t.dtype == dtypes.float0 else device_put(
        np.asarray(_in_double(x) + step * _in_double(t)).astype(typeof(x).dtype)), args, tangents)


def _difference(up: PyTree, down: PyTree, eps: float) -> PyTree:
    """(up - down) / (2 eps) in double precision; zeros of float0 for values without derivative."""
    return tree_map(lambda a,
                    b: (_in_double(a) - _in_double(b)) / (2 * eps) if has_tangent(typeof(a))
                    else np.zeros(np.shape(a), dtypes.float0), up, down)


class _Line:
    """A step to either side of the arguments along a direction, rounded as the arguments are."""

    def __init__(self, args: Sequence[Array], eps: float | None) -> None:
        self.args = device_put(tuple(args))
        self.eps = _difference_step(self.args) if eps is None else eps
        rng = np.random.default_rng(0)      # a check that fails fails again
        wanted = tree_map(partial(_direction, rng), self.args)
        self.up = _stepped(self.args, wanted, self.eps)
        self.down = _stepped(self.args, wanted, -self.eps)
        # The step that the rounded arguments did take, which is not quite the wanted one.
        self.tangents = tree_map(lambda x, t: np.asarray(t).astype(typeof(x).dtype)
                                 if has_tangent(typeof(x)) else t,
                                 self.args, _difference(self.up, self.down, self.eps))

    def slopes(self, f: Callable[..., PyTree]) -> PyTree:
        """Central differences of the results of `f`."""
        return _difference(f(*self.up), f(*self.down), self.eps)


def _close(what: str, actual: PyTree, expected: PyTree, atol: float, rtol: float, message: str,
           nan: bool) -> None:
    """AssertionError that names the first leaf that differs."""
    leaves, treedef = tree_flatten_with_path(actual)
    others, other = tree_flatten_with_path(expected)
    if treedef != other:
        raise AssertionError(f"{what}: {treedef} found; the structure {other} is required. "
                             f"{message}")
    for (path, a), (_, e) in zip(leaves, others):
        if np.shape(a) != np.shape(e):
            raise AssertionError(f"{what}{keystr(path)}: shape {np.shape(a)} found; "
                                 f"{np.shape(e)} is required. {message}")
        if dtypes.float0 not in (np.asarray(a).dtype, np.asarray(e).dtype):
            np.testing.assert_allclose(_in_double(a), _in_double(e), rtol=rtol, atol=atol,
                                       equal_nan=nan,
                                       err_msg=f"{what}{keystr(path)} {message}")


def check_jvp(f: Callable[..., PyTree], f_jvp: Callable[..., tuple[PyTree, PyTree]],
              args: Sequence[PyTree], atol: Tolerance = None, rtol: Tolerance = None,
              eps: float | None = 1e-4, err_msg: str = "", *, equal_nan: bool = True) -> None:
    """Hold the derivative that `f_jvp` gives in one direction against central differences of `f`.

    Args:
      f: a function of arrays or pytrees of them, with any result.
      f_jvp: takes (arguments, tangents) and returns (results, tangents of them), as
        `functools.partial(olympus.jvp, f)` does.
      args: the arguments where it is checked; integers among them are held fixed.
      atol, rtol: tolerances; None is 1e-5 in double precision, 2e-3 in single, 3e-2 in half. A dict
        has some by dtype; of those that arrays have, the largest counts.
      eps: the step of the differences; None is one that suits the dtype.
      err_msg: an addition to a failure's message.
      equal_nan: whether a derivative may be NaN where the difference is: of a function that is NaN
        there, too.

    AssertionError where the values, or the derivatives, differ.

    >>> import functools, olympus, olympus.numpy as onp
    >>> test_util.check_jvp(onp.sin, functools.partial(olympus.jvp, onp.sin), (0.5,))
    """
    line = _Line(args, eps)
    expected = f(*line.args)
    atol, rtol = [_tolerance(t, line.args, expected) for t in (atol, rtol)]
    out, derivative = f_jvp(line.args, line.tangents)
    # A NaN among the values is the function's own, and f_jvp has to give it, too.
    _close("check_jvp: the value", out, expected, atol, rtol, err_msg, True)
    _close("check_jvp: the derivative", derivative, line.slopes(f), atol, rtol, err_msg,
           equal_nan)


def _inner_product(cotangents: PyTree, tangents: PyTree) -> np.ndarray:
    """The real part of the sum of products, over all arrays that have derivatives."""
    # A derivative that is linear over the reals alone, as conj's is, and its transpose agree in the
    # real part of the product only.
    pairs = zip(tree_leaves(cotangents), tree_leaves(tangents))
    return np.asarray(sum(float(np.real(np.sum(_in_double(c) * _in_double(t)))) for c, t in pairs
                          if dtypes.float0 not in (np.asarray(c).dtype, np.asarray(t).dtype)))


@described_like(check_jvp)
def check_vjp(f: Callable[..., PyTree], f_vjp: Callable[..., tuple[PyTree, Callable[..., PyTree]]],
              args: Sequence[PyTree], atol: Tolerance = None, rtol: Tolerance = None,
              eps: float | None = 1e-4, err_msg: str = "", *, equal_nan: bool = True) -> None:
    """Hold the pullback that `f_vjp` gives against central differences of `f`.

    Compared are two numbers: a random cotangent times the difference along a random direction, and
    the pullback of that cotangent times the direction.

    Args: f_vjp: takes the arguments and returns (results, pullback), as
        `functools.partial(olympus.vjp, f)` does.

    AssertionError where the values, or the products, differ.

    >>> import functools, olympus, olympus.numpy as onp
    >>> test_util.check_vjp(onp.sin, functools.partial(olympus.vjp, onp.sin), (0.5,))
    """
    line = _Line(args, eps)
    expected = f(*line.args)
    atol, rtol = [_tolerance(t, line.args, expected) for t in (atol, rtol)]
    out, pull = f_vjp(*line.args)
    _close("check_vjp: the value", out, expected, atol, rtol, err_msg, True)
    # Not the numbers of the direction t: in t E t an antisymmetric error E would not be seen.
    cotangents = tree_map(partial(_direction, np.random.default_rng(1)), expected)
    _close("check_vjp: the product", _inner_product(pull(cotangents), line.tangents),
           _inner_product(cotangents, line.slopes(f)), atol, rtol, err_msg, equal_nan)


def _check_modes(f: Callable[..., PyTree], args: PyTree, order: int, modes: Sequence[str],
                 name: str, how: Mapping[str, Any]) -> None:
    for mode, words, check, derive in (("fwd", "forward", check_jvp, jvp),
                                       ("rev", "reverse", check_vjp, vjp)):
        if mode in modes:
            check(f, partial(derive, f), args, **how, err_msg=f"in {name}, {words} mode")
            if order > 1:
                # The direction is made here, of concrete arguments: those that `_pushed` is called
                # with are traced when its own derivative is checked.
                further = (partial(_pushed, f, _Line(args, None).tangents) if mode == "fwd"
                           else partial(_pulled, f))
                _check_modes(further, args, order - 1, modes, f"the {words} derivative of {name}",
                             how)


def _pushed(f: Callable[..., PyTree], tangents: PyTree, *args: PyTree) -> PyTree:
    return jvp(f, args, tangents)[1]


def _pulled(f: Callable[..., PyTree], *args: PyTree) -> PyTree:
    out, pull = vjp(f, *args)
    # `_direction` reads no values, so that the result may be traced.
    return pull(tree_map(partial(_direction, np.random.default_rng(1)), out))


@described_like(check_jvp)
def check_grads(f: Callable[..., PyTree], args: Sequence[PyTree], order: int,
                modes: Sequence[str] = ("fwd", "rev"), atol: Tolerance = None,
                rtol: Tolerance = None, eps: float | None = None, *, equal_nan: bool = True
                ) -> None:
    """Hold derivatives of a function up to an order against central differences.

    Each order is the difference of the one before, in a random direction, the same in every run;
    so the cost does not grow with the number of elements.

    Args:
      f: a function of arrays or pytrees of them, real or complex, with any result.
      args: its arguments, a tuple; integers among them are held fixed.
      order: the highest order, at least 1.
      modes: "fwd", "rev" or both, which are then mixed in every order.

    AssertionError where they differ, ValueError for other modes or an order less than 1.

    >>> test_util.check_grads(lambda x: x["a"] ** 3 * x["b"], ({"a": 1.5, "b": 0.5},), order=2)
    >>> test_util.check_grads(onp.floor, (0.9999,), order=1, eps=1e-3)
    Traceback (most recent call last):
    AssertionError: ...
    """
    modes = tuple(modes)
    if not modes or set(modes) - {"fwd", "rev"} or order < 1:
        raise ValueError(f"check_grads: modes {modes} and order {order} given; 'fwd', 'rev' or "
                         "both, and an order of at least 1, are required.")
    how = {"atol": atol, "rtol": rtol, "eps": eps, "equal_nan": equal_nan}
    _check_modes(f, args, order, modes, getattr(f, "__name__", "the function"), how)
