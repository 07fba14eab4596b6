"""What holds for every operation: short properties over the rows of `tests/ops`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import ops
import pytest
from ops import KINDS, Op, lax_elementwise

import olympus
from olympus import jit, jvp, tree, vjp, vmap

NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
ROUGH = {"h": 4e-3, "e": 3e-2}


def from_elementwise(row: lax_elementwise.Row) -> Op:
    """A row of lax's elementwise table, whose letter h stands for both half precisions."""
    kinds = "".join(k for k in row.kinds if k in "fiub")
    return Op(f"lax.{row.name}", row.oracle, row.fun, row.args, kinds or row.kinds,
              row.grad and "f" in kinds, max(2e-5, row.ulps * 2e-7), row.name != "select_n")


TABLES = {m.name: importlib.import_module(f"ops.{m.name}").ALL
          for m in pkgutil.iter_modules(ops.__path__)}
TABLES["lax_elementwise"] = [*map(from_elementwise, lax_elementwise.ALL)]
ALL: tuple[Op, ...] = tuple(op for table in TABLES.values() for op in table if isinstance(op, Op))


def rows(keep: Callable[[Op], bool] = lambda op: True, of: Sequence[Op] = ALL) -> Any:
    picked = [op for op in of if keep(op)]
    return pytest.mark.parametrize("op", picked, ids=[op.name for op in picked])


def cast(op: Op, kind: str) -> list[Any]:
    """The row's arguments in the dtype that the letter `kind` stands for."""
    return [of_kind(a, kind, i) if getattr(a, "dtype", None) == np.float64 else a
            for i, a in enumerate(op.args)]


def of_kind(a: np.ndarray, kind: str, place: int) -> np.ndarray:
    if kind == "c":
        return (a + (0.7 - 0.3 * place) * 1j * np.flip(a)).astype("c8")
    return (np.abs(a) if kind == "u" else a).astype(KINDS[kind])


def same(actual: Any, expected: Any, tol: float) -> None:
    """Equal structure, shapes and values; comparing in double precision."""
    actual, expected = tree.leaves(actual), tree.leaves(expected)
    assert len(actual) == len(expected)
    for a, e in zip(map(np.asarray, actual), map(np.asarray, expected), strict=True):
        assert a.shape == e.shape
        wide = "c16" if a.dtype.kind == "c" else "f8"
        np.testing.assert_allclose(a.astype(wide), e.astype(wide), rtol=tol, atol=tol)


def types(value: Any) -> list[tuple[Any, ...]]:
    return [(x.shape, x.dtype, x.weak_type) for x in map(olympus.typeof, tree.leaves(value))]


CASES = [pytest.param(op, kind, id=f"{op.name}-{kind}") for op in ALL for kind in op.dtypes]


@pytest.mark.parametrize(("op", "kind"), CASES)
def test_values_and_dtype_are_the_oracles(op: Op, kind: str) -> None:
    args = cast(op, kind)
    wide = [a.astype("f4") if kind in ROUGH and a.dtype == KINDS[kind] else a for a in args]
    with np.errstate(all="ignore"):
        expected = op.oracle(*wide)
    out = op.fun(*args)
    same(out, expected, ROUGH.get(kind, op.tol))
    for a, e in zip(tree.leaves(out), tree.leaves(expected), strict=True):
        dtype = np.asarray(e).dtype
        rough = kind in ROUGH and dtype.kind == "f" and "convert" not in op.name
        assert a.dtype == (KINDS[kind] if rough else NARROW.get(dtype.name, dtype))


@rows()
def test_jit_is_eager(op: Op) -> None:
    args = cast(op, op.dtypes[0])
    out, jitted = op.fun(*args), jit(op.fun)(*args)
    assert types(out) == types(jitted)
    same(jitted, out, 1e-5)


@rows(lambda op: all(np.ndim(a) for a in op.args))
def test_vmap_is_a_loop(op: Op) -> None:
    args = cast(op, op.dtypes[0])
    axes = [-1 if i else 0 for i in range(len(args))]
    stacked = [np.stack([a, np.flip(a, -1)], axis) for a, axis in zip(args, axes, strict=True)]
    compiled = jit(op.fun)
    one = [compiled(*(np.take(a, i, x) for a, x in zip(stacked, axes, strict=True)))
           for i in (0, 1)]
    same(jit(vmap(op.fun, in_axes=tuple(axes)))(*stacked),
         tree.map(lambda *leaves: np.stack(leaves), *one), 2e-5)


@rows(lambda op: len(op.args) > 1)
def test_vmap_over_one_argument(op: Op) -> None:
    args = cast(op, op.dtypes[0])
    compiled = jit(op.fun)
    for i in range(min(len(args), 2)):
        each = [args[i], np.flip(args[i]) if np.ndim(args[i]) else args[i]]
        axes = [None] * len(args)
        axes[i] = 0
        one = [compiled(*args[:i], a, *args[i + 1:]) for a in each]
        out = jit(vmap(op.fun, in_axes=tuple(axes)))(*args[:i], np.stack(each), *args[i + 1:])
        same(out, tree.map(lambda *leaves: np.stack(leaves), *one), 2e-5)


def smooth(op: Op) -> tuple[Callable[..., Any], list[np.ndarray], list[np.ndarray]]:
    """The operation as a function of what is differentiated, with directions of its size."""
    rng = np.random.default_rng(len(op.name))
    free = [i for i, a in enumerate(op.args) if getattr(a, "dtype", None) == np.float64]

    def fun(*xs: Any) -> list[Any]:
        args = list(op.args)
        for i, x in zip(free, xs, strict=True):
            args[i] = x
        return [y for y in tree.leaves(op.fun(*args)) if y.dtype == np.float64]

    xs = [op.args[i] for i in free]
    return fun, xs, [rng.normal(size=x.shape) for x in xs]


@rows(lambda op: op.grad)
def test_jvp_is_the_central_difference(op: Op) -> None:
    with olympus.enable_x64(True):
        fun, xs, ts = smooth(op)
        compiled, h = jit(fun), 1e-6
        _, tangents = jit(lambda xs, ts: jvp(fun, xs, ts))(tuple(xs), tuple(ts))
        ahead, behind = (compiled(*(x + s * t for x, t in zip(xs, ts, strict=True)))
                         for s in (h, -h))
        slopes = [(np.asarray(a) - np.asarray(b)) / (2 * h)
                  for a, b in zip(ahead, behind, strict=True)]
        same(tangents, slopes, 2e-6)


@rows(lambda op: op.grad)
def test_vjp_is_the_transpose_of_jvp(op: Op) -> None:
    with olympus.enable_x64(True):
        fun, xs, ts = smooth(op)

        def products(xs: Any, ts: Any) -> Any:
            out, tangents = jvp(fun, xs, ts)
            cts = [y * 0.3 + 1.1 for y in out]
            return sum((c * t).sum() for c, t in zip(cts, tangents, strict=True)), sum(
                (c * t).sum() for c, t in zip(vjp(fun, *xs)[1](cts), ts, strict=True))

        forward, backward = jit(products)(tuple(xs), tuple(ts))
        same(backward, forward, 1e-9)


@rows(lambda op: op.each)
def test_no_elements_and_no_dimensions(op: Op) -> None:
    args = cast(op, op.dtypes[0])
    usual = types(op.fun(*args))
    for cut in (lambda a: np.zeros((2, 0), a.dtype), lambda a: a.reshape(-1)[0]):
        few = [cut(a) for a in args]
        shape = np.shape(few[0])
        assert [(s, d) for s, d, _ in types(op.fun(*few))] == [(shape, d) for _, d, _ in usual]


@rows(lambda op: op.each and len(op.args) == 2 and "f" in op.dtypes, TABLES["numpy_ufuncs"])
def test_python_numbers_take_the_arrays_dtype(op: Op) -> None:
    x = np.abs(cast(op, "f")[0])
    for args in ((x, 2), (x, 2.0), (2, x), (2.5, x)):
        expected = tree.leaves(op.oracle(*args))
        for a, e in zip(tree.leaves(op.fun(*args)), expected, strict=True):
            assert (a.dtype, a.shape) == (NARROW.get(e.dtype.name, e.dtype), e.shape)
            assert not a.weak_type


def test_every_elementwise_and_structural_function_has_a_row() -> None:
    covered = {op.name.removeprefix("lax.").split("-")[0] for table in TABLES
               if table.startswith("lax") for op in TABLES[table]}
    public = {name for name in dir(olympus.lax) if name.islower() and not name.endswith("_p")}
    elsewhere = {"axis_index", "axis_size", "psum", "pmax", "pmin", "pmean", "while_loop", "empty",
                 "broadcast_shapes", "conv_dimension_numbers", "linalg", "reduce_sum"}
    assert {n for n in public - covered - elsewhere if not n.startswith("_")} == set()
