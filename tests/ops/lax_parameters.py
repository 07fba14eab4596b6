"""Rows that give parameters a value of their own which no other row gives them.

`tools/untested_params.py` lists what is left. Index arrays that promise something (sorted, unique)
are made of an offset, so that the promise holds of every mapped one too.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special as sp

from olympus import lax, numpy as onp

from . import Op, Refusal, reals
from .lax_collectives import over
from .lax_contract import BOXES, FREE, NHC, PAIRS, SCALE, SIZES, ragged, seen, spread, transposed
from .lax_elementwise import EPS, POSITIVE, WIDE
from .lax_linalg_b import FULL, SQUARE, TALL, TOL, hermitian, schur_fixed, turned_
from .lax_shape import PUT, TAKE
from .lax_structure import convolved, widened

linalg = lax.linalg
V, M = reals(7), reals(3, 4)
CUBE = reals(2, 3, 4)
HIGHEST = lax.AccuracyMode.HIGHEST
TEAMS = [[2, 0], [1, 3]]
FOUR = reals(4, 2, 4)
ONE, BELOW = np.array(1, np.int32), np.array(-2, np.int32)
PROMISES = {"indices_are_sorted": True, "unique_indices": True}


def wide(x: Any) -> Any:
    """The dtype to accumulate in; rows that return it have `convert` in their name."""
    return np.promote_types(x.dtype, np.float32)


def imaginary(x: Any) -> Any:
    return np.result_type(x.dtype, np.complex64)


# Elementwise -------------------------------------------------------------------------------------

def exact(name: str, oracle: Callable[..., Any], x: np.ndarray = WIDE, kinds: str = "fdhec",
          ulps: float = 40.0) -> Op:
    return Op(f"lax.{name}-accuracy", oracle, lambda x: getattr(lax, name)(x, accuracy=HIGHEST),
              (x,), kinds, tol=ulps * EPS, each=True)


ELEMENTWISE = (
    exact("cbrt", np.cbrt, kinds="fdhe"), exact("cos", np.cos), exact("exp", np.exp),
    exact("erfc", sp.erfc, kinds="fdhe"), exact("exp2", lambda x: 2.0 ** x),
    exact("expm1", np.expm1), exact("log", np.log, POSITIVE), exact("log1p", np.log1p, POSITIVE),
    exact("log2", lambda x: np.log(x) / np.log(2.0), POSITIVE),
    exact("logistic", lambda x: 1 / (1 + np.exp(-x))),
    exact("rsqrt", lambda x: 1 / np.sqrt(x), POSITIVE), exact("sin", np.sin),
    exact("sqrt", np.sqrt, POSITIVE), exact("tan", np.tan), exact("tanh", np.tanh),
    Op("lax.mul-out_dtype", lambda x, y: (x * y).astype(imaginary(x)),
       lambda x, y: lax.mul(x, y, out_dtype=imaginary(x)), (V, V[::-1])),
    Op("lax.mul-out_dtype-convert", np.multiply, lambda x, y: lax.mul(x, y, out_dtype=wide(x)),
       (V, V[::-1]), "fhe"),
)


# Structure ---------------------------------------------------------------------------------------

STRUCTURE = (
    Op("lax.collapse-stop", lambda x: x.reshape(6, 4), lambda x: lax.collapse(x, 0, 2), (CUBE,)),
    Op("lax.collapse-stop-negative", lambda x: x.reshape(6, 4), lambda x: lax.collapse(x, -3, -1),
       (CUBE,)),
    Op("lax.full-dtype", lambda x: np.full((2, 3), x, imaginary(x)),
       lambda x: lax.full((2, 3), x, imaginary(x)), (np.array(0.7),)),
    Op("lax.full_like-dtype", lambda x: np.full((2, 2), x, imaginary(x)),
       lambda x: lax.full_like(M, x, dtype=imaginary(x), shape=(2, 2)), (np.array(0.7),)),
    Op("lax.empty", lambda x: x * 2, lambda x: lax.add(lax.mul(x, 2), lax.empty(x.shape, x.dtype)),
       (M,)),
    Op("lax.broadcast_shapes", lambda x: np.broadcast_to(x, (2, 3, 4)),
       lambda x: lax.broadcast_in_dim(x, lax.broadcast_shapes((2, 1, 1), x.shape), (1, 2)), (M,)),
    Op("lax.slice_in_dim-stride", lambda x: x[:, -4::3],
       lambda x: lax.slice_in_dim(x, -4, None, 3, axis=1), (M,)),
    Op("lax.sort-unstable", lambda x: np.sort(x, 0), lambda x: lax.sort(x, 0, is_stable=False),
       (M,), "fi"),
    Op("lax.sort_key_val-unstable",
       lambda k, v: (np.sort(k, 0), np.take_along_axis(v, np.argsort(k, 0), 0)),
       lambda k, v: lax.sort_key_val(k, v, dimension=0, is_stable=False), (M, reals(3, 4, seed=1))),
    Op("lax.top_k-unstable", lambda x: (-np.sort(-x)[:, :2], np.argsort(-x)[:, :2].astype("i4")),
       lambda x: lax.top_k(x, 2, is_stable=False), (M,)),
    Op("lax.reduce_window_shape_tuple-apart", lambda x: x[:, :2] * 3, lambda x: lax.mul(
        x[:, :2], 1.0 * lax.reduce_window_shape_tuple(
            (4, 3), (2, 2), (2, 1), "VALID", base_dilation=(2, 2))[0]), (M,)),
    *(Op(f"lax.approx_{name}_k-{label}", lambda x, sign=sign: sign * np.sort(sign * x, 0)[:256],
         lambda x, name=name, params=params: getattr(lax, f"approx_{name}_k")(
             x, 30, 0, **params, aggregate_to_topk=False)[0], (reals(300, 2),))
      for name, sign in (("min", 1), ("max", -1)) for label, params in (
          ("recall", {"recall_target": 0.5}), ("input", {"reduction_input_size_override": 4000}))),
)


# Places ------------------------------------------------------------------------------------------

def replaced(x: np.ndarray, u: np.ndarray, start: int, axis: int = 0) -> np.ndarray:
    x = np.moveaxis(x.copy(), axis, 0)
    x[start:start + len(u)] = u
    return np.moveaxis(x, 0, axis)


def places(offset: Any) -> Any:
    """Sorted and unique, also when the last, which is outside of V, is clipped."""
    return np.array([[0], [2], [9]], np.int32) + offset


def changed(change: Callable[..., Any]) -> Callable[..., np.ndarray]:
    def oracle(x: np.ndarray, u: np.ndarray, offset: Any) -> np.ndarray:
        x, at = x.copy(), places(offset)[:, 0].clip(0, len(x) - 1)
        x[at] = change(x[at], u)
        return x
    return oracle


def scatter_row(name: str, change: Callable[..., Any]) -> Op:
    return Op(f"lax.{name}-promises", changed(change), lambda x, u, at: getattr(lax, name)(
        x, places(at), u, PUT, mode="clip", **PROMISES), (V, reals(3, seed=1), ONE), "fi")


PLACES = (
    Op("lax.dynamic_slice-unsigned", lambda x, i: x[0:2, 1:3],
       lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 2), allow_negative_indices=(False, True)),
       (M, BELOW)),
    Op("lax.dynamic_slice_in_dim-unsigned", lambda x, i: x[:, 0:2],
       lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, 1, allow_negative_indices=False), (M, BELOW)),
    Op("lax.dynamic_index_in_dim-unsigned", lambda x, i: x[:, 0], lambda x, i:
       lax.dynamic_index_in_dim(x, i, 1, False, allow_negative_indices=False), (M, BELOW)),
    Op("lax.dynamic_update_slice-unsigned", lambda x, u, i: replaced(x, u, 0),
       lambda x, u, i: lax.dynamic_update_slice(x, u, (i,), allow_negative_indices=False),
       (V, reals(2, seed=1), BELOW)),
    Op("lax.dynamic_update_slice_in_dim-unsigned", lambda x, u, i: replaced(x, u.T, 0, 1),
       lambda x, u, i: lax.dynamic_update_slice_in_dim(x, u, i, 1, allow_negative_indices=False),
       (M, reals(3, 2, seed=1), BELOW)),
    Op("lax.dynamic_update_index_in_dim-unsigned", lambda x, u, i: replaced(x, u[None], 0, 1),
       lambda x, u, i: lax.dynamic_update_index_in_dim(x, u, i, 1, allow_negative_indices=False),
       (M, reals(3, seed=1), BELOW)),
    Op("lax.gather-promises", lambda x, at: x[places(at)[:, 0].clip(0, 6)], lambda x, at:
       lax.gather(x, places(at), TAKE, (1,), mode="clip", **PROMISES), (V, ONE)),
    scatter_row("scatter", lambda x, u: u), scatter_row("scatter_add", np.add),
    scatter_row("scatter_sub", np.subtract), scatter_row("scatter_mul", np.multiply),
    scatter_row("scatter_min", np.minimum), scatter_row("scatter_max", np.maximum),
)


# Contractions ------------------------------------------------------------------------------------

def strided(x: np.ndarray, w: np.ndarray, features: int = 1, batches: int = 1) -> np.ndarray:
    """[n, c, h], [o, i, k] -> [n / batches, h, o]: image apart by 2, kernel by 3, steps of 2."""
    x, w = np.pad(spread(x, 2), ((0, 0), (0, 0), (1, 2))), spread(w, 3)
    out = []
    for o, kernel in enumerate(w):
        first = o * features // len(w) * len(kernel)
        images = np.split(x, batches)[o * batches // len(w)][:, first:first + len(kernel)]
        out.append([sum(np.correlate(c, k)[::2] for c, k in zip(image, kernel, strict=True))
                    for image in images])
    return np.array(out).transpose(1, 2, 0)


def strided_row(name: str, shape: tuple[int, ...], kernel: tuple[int, ...], **counts: int) -> Op:
    def fun(x: Any, w: Any) -> Any:
        x, w = lax.transpose(x, (0, 2, 1)), lax.transpose(w, (2, 1, 0))
        numbers = lax.conv_dimension_numbers(x.shape, w.shape, NHC)
        return lax.conv_general_dilated(x, w, (2,), [(1, 2)], (2,), (3,), numbers,
                                        counts.get("features", 1), counts.get("batches", 1),
                                        "highest", wide(x))

    return Op(f"lax.conv_general_dilated-{name}-convert", lambda x, w: strided(x, w, **counts), fun,
              (reals(*shape), reals(*kernel, seed=1)), "fh")


IMAGE, KERNEL = reals(2, 3, 4, 4), reals(2, 3, 2, 3, seed=1)
ACROSS = (((0,), (1,)), ((), ()))
CONTRACT = (
    Op("lax.dot-across", lambda x, y: x.T @ y.T, lambda x, y: lax.dot(
        x, y, dimension_numbers=ACROSS), (M, reals(2, 3, seed=1)), "fih"),
    Op("lax.scaled_dot-across", lambda x, y: (x * np.repeat(SCALE[:2], 2, 0)[:, :1]).T @ y.T,
       lambda x, y: lax.scaled_dot(x, y, lhs_scale=SCALE[:2, :1], dimension_numbers=ACROSS,
                                   preferred_element_type=np.float32),
       (np.round(reals(4, 1)), np.round(reals(2, 4, seed=1))), grad=False),
    Op("lax.dot_general-convert", lambda x, y: np.einsum("bij,kbj->bik", x, y),
       lambda x, y: lax.dot_general(x, y, (((2,), (2,)), ((0,), (1,))), "highest", wide(x)),
       (CUBE, reals(5, 2, 4, seed=1)), "fhe"),
    Op("lax.ragged_dot-convert", lambda x, y: ragged(x, y, SIZES),
       lambda x, y: lax.ragged_dot(x, y, SIZES, preferred_element_type=wide(x)),
       (reals(5, 4), reals(3, 4, 2, seed=1)), "fh"),
    Op("lax.ragged_dot_general-offset", lambda x, y: np.stack([
        ragged(a, np.concatenate([0 * b[:1], b]), n) for a, b, n in zip(x, y, PAIRS, strict=True)]),
       lambda x, y: lax.ragged_dot_general(x, y, PAIRS, FREE, "high", group_offset=ONE),
       (reals(2, 4, 3), reals(2, 2, 3, 2, seed=1))),
    Op("lax.conv-convert", convolved,
       lambda x, w: lax.conv(x, w, (1, 1), "VALID", "highest", wide(x)), (IMAGE, KERNEL), "fh",
       tol=2e-4),
    Op("lax.conv_with_general_padding-convert", lambda x, w: widened(x, w, 1), lambda x, w:
       lax.conv_with_general_padding(x, w, (1, 1), ((1, 1), (1, 1)), None, None, "highest",
                                     wide(x)), (IMAGE, KERNEL), "fh", tol=2e-4),
    Op("lax.conv_general_dilated_local-apart",
       lambda x, w: np.einsum("nkh,okh->noh", seen(spread(x, 2), 2), w),
       lambda x, w: lax.conv_general_dilated_local(x, w, (1,), "VALID", (2,), lhs_dilation=(2,)),
       (reals(2, 3, 4), reals(4, 6, 6, seed=1))),
    Op("lax.ragged_dot_general-convert", lambda x, y: np.stack([*map(ragged, x, y, PAIRS)]),
       lambda x, y: lax.ragged_dot_general(x, y, PAIRS, FREE, preferred_element_type=wide(x)),
       BOXES, "fh"),
    Op("lax.conv_transpose-convert", lambda x, w: transposed(x, w, 2), lambda x, w:
       lax.conv_transpose(x, w, (2,), "VALID", dimension_numbers=("NCH", "OIH", "NCH"),
                          preferred_element_type=wide(x)), (reals(2, 3, 4), reals(4, 3, 2)), "fh"),
    Op("lax.conv_general_dilated_patches-convert", lambda x: seen(x, 3), lambda x:
       lax.conv_general_dilated_patches(x, (3,), (1,), "VALID", preferred_element_type=wide(x)),
       (reals(2, 3, 4),), "fh"),
    strided_row("features", (2, 4, 5), (6, 2, 2), features=2),
    strided_row("batches", (4, 3, 5), (4, 3, 2), batches=2),
)


# Linear algebra ----------------------------------------------------------------------------------

def corner(x: np.ndarray) -> Any:
    """The polar decomposition of x[:3, :2], among zeros."""
    u, h = scipy.linalg.polar(x[:3, :2])
    m, n = x.shape
    return np.pad(u, ((0, m - 3), (0, n - 2))), np.pad(h, ((0, n - 2), (0, n - 2)))


def right_first(*w: Any) -> Any:
    return w[0].real > 0


LINALG = (
    Op("lax.linalg-qdwh-hermitian", lambda x: scipy.linalg.polar(hermitian()(x)),
       lambda x: linalg.qdwh((x + turned_(x)) / 2, is_hermitian=True, max_iterations=8,
                             eps=8 * float(np.finfo(x.dtype).eps))[:2], (SQUARE,), FULL, tol=TOL),
    Op("lax.linalg-qdwh-corner", corner, lambda x: linalg.qdwh(x, dynamic_shape=(3, 2))[:2],
       (TALL,), FULL, tol=TOL),
    Op("lax.linalg-schur-sorted", lambda x: schur_fixed(*scipy.linalg.schur(x, sort="rhp")[:2]),
       lambda x: schur_fixed(*linalg.schur(x, sort_eig_vals=True, select_callable=right_first)),
       (SQUARE,), FULL, tol=TOL),
)


# Control flow ------------------------------------------------------------------------------------

def root(a: Any) -> Any:
    """√a and the number of steps."""
    def newton(f: Any, x: Any) -> Any:
        return lax.fori_loop(0, 30, lambda _, s: (s[0] - f(s[0]) / (2 * s[0]), s[1] + 1),
                             (x, np.int32(0)))

    return lax.custom_root(lambda x: x * x - a, onp.ones_like(a), newton,
                           lambda g, y: y / g(onp.ones_like(y)), has_aux=True)


def symmetric_solve(a: Any, b: Any) -> Any:
    a = a + a.T
    return lax.custom_linear_solve(lambda v: a @ v, b, lambda _, v: onp.linalg.solve(a, v),
                                   symmetric=True)


CONTROL = (
    Op("lax.associative_scan-reverse", lambda x: np.cumprod(x[:, ::-1], 1)[:, ::-1],
       lambda x: lax.associative_scan(lax.mul, x, reverse=True, axis=1), (M,)),
    Op("lax.cond-operand", lambda p, x: np.sin(x) if p else x * x,
       lambda p, x: lax.cond(p, lax.sin, lambda x: x * x, operand=x), (np.array(True), V)),
    Op("lax.switch-operand", lambda i, x: [x, np.sin(x), x * x][i],
       lambda i, x: lax.switch(i, [lambda x: x, lax.sin, lambda x: x * x], operand=x), (ONE, V)),
    Op("lax.fori_loop-unroll", lambda x, f: x * f ** 5,
       lambda x, f: lax.fori_loop(0, 5, lambda i, c: c * f, x, unroll=2), (V, V[::-1])),
    Op("lax.scan-length", lambda x, f: (x * f ** 3, np.stack([x, x * f, x * f ** 2])), lambda x, f:
       lax.scan(lambda c, _: (c * f, c), x, length=3, _split_transpose=True), (V, V[::-1])),
    *(Op(f"lax.scan-progress={p}", lambda x, f: x * f ** 4, lambda x, f, p=p: lax.scan(
        lambda c, _: (c * f, None), x, None, 4, progress=p)[0], (V, V[::-1]))
      for p in (True, "label")),
    Op("lax.fori_loop-progress", lambda x, f: x * f ** 4,
       lambda x, f: lax.fori_loop(0, 4, lambda i, c: c * f, x, progress=True), (V, V[::-1])),
    Op("lax.composite-version", np.sin, lambda x: lax.composite(
        lax.sin, name="tests.sine", version=3)(x), (V,)),
    Op("lax.custom_root-aux", lambda a: (np.sqrt(a), np.int32(30)), root,
       (np.array([0.5, 2.0, 7.0]),), "fd", tol=1e-5),
    Op("lax.custom_linear_solve-symmetric", lambda a, b: np.linalg.solve(a + a.T, b),
       symmetric_solve, (reals(4, 4) + 8 * np.eye(4), reals(4, 2)), tol=1e-4),
)


# Collectives, of elements in two teams -----------------------------------------------------------

def teams(of_team: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """From a function of the arrays of a team's elements, stacked, one of all elements'."""
    def oracle(*xs: np.ndarray) -> np.ndarray:
        parts = {i: y for team in TEAMS
                 for i, y in zip(team, of_team(*(x[team] for x in xs)), strict=True)}
        return np.stack([parts[i] for i in range(4)])
    return oracle


def everywhere(fold: Callable[..., Any]) -> Callable[..., np.ndarray]:
    return lambda xs: np.stack([fold(xs)] * len(xs))


def reduce_row(name: str, fold: Callable[..., Any]) -> Op:
    return Op(f"lax.{name}-groups", teams(everywhere(lambda xs: fold(xs, 0))), over(
        lambda x: getattr(lax, name)(x, "i", axis_index_groups=TEAMS)), (FOUR,))


def received(x: np.ndarray, out: np.ndarray) -> np.ndarray:
    return np.concatenate([x.swapaxes(0, 1), out[:, 2:]], 1)


def exchange(x: Any, out: Any) -> Any:
    """Every element sends row k to member k of its team, who keeps the rows by sender."""
    rows, one = np.arange(2), np.ones(2, int)
    spots = np.array([[1, 1], [0, 0], [0, 0], [1, 1]])
    return over(lambda x, out, spot: lax.ragged_all_to_all(
        x, out, rows, one, spot, one, axis_name="i", axis_index_groups=TEAMS))(x, out, spots)


COLLECTIVES = (
    Op("lax.axis_size", lambda x: 4 * x, over(lambda x: x * lax.axis_size("i")), (FOUR,)),
    reduce_row("psum", np.sum), reduce_row("pmean", np.mean), reduce_row("pmax", np.max),
    reduce_row("pmin", np.min),
    Op("lax.all_gather-groups", teams(everywhere(lambda xs: np.concatenate(xs, 1))),
       over(lambda x: lax.all_gather(x, "i", axis_index_groups=TEAMS, axis=1, tiled=True,
                                     to="reduced")), (FOUR,)),
    Op("lax.psum_scatter-groups", teams(lambda xs: np.stack(np.split(xs.sum(0), 2, 1))),
       over(lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, axis_index_groups=TEAMS,
                                       tiled=True)), (FOUR,)),
    Op("lax.all_to_all-groups", teams(lambda xs: np.stack([
        np.concatenate([np.split(x, 2, 1)[k] for x in xs], 0) for k in (0, 1)])),
       over(lambda x: lax.all_to_all(x, "i", 1, 0, axis_index_groups=TEAMS, tiled=True)), (FOUR,)),
    Op("lax.pswapaxes-groups", teams(lambda xs: xs.swapaxes(0, 1)),
       over(lambda x: lax.pswapaxes(x, "i", 0, axis_index_groups=TEAMS)), (FOUR,)),
    Op("lax.ragged_all_to_all-groups", teams(received), exchange, (FOUR, reals(4, 3, 4, seed=1))),
)

REFUSED = (
    Refusal("erfc-accuracy", lambda x, name: lax.erfc(x, accuracy=name), TypeError,
            "an AccuracyMode, a Tolerance or None is required", (V, "high")),
)

ALL = (*REFUSED, *ELEMENTWISE, *STRUCTURE, *PLACES, *CONTRACT, *LINALG, *CONTROL, *COLLECTIVES)
