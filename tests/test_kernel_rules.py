"""Operations that kernels replace on one CPU: results, derivatives and maps beside NumPy's."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from properties import compiled

import olympus
from olympus import enable_x64, grad, jit, lax, vmap
from olympus._src.base.config import kernels
from olympus._src.lax.special.series import iterate

RNG = np.random.default_rng(0)      # of a test; the rows' shapes have their own numbers
# Bounds of the relative error of sums in each dtype, by the largest element.
ERRORS = {"float32": 3e-6, "float64": 1e-13, "bfloat16": 2e-2, "float16": 3e-3, "complex64": 3e-6}


@pytest.fixture(autouse=True)
def _numbers_of_the_test(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "RNG", rng)


def taken(fun: Callable[..., Any], *args: Any) -> list[str]:
    """The names of the kernels that a function's program is lowered by."""
    return [t.kernel.name for t in jit(lambda *xs: fun(*xs)).lower(*args)._context.taken]


def close(found: Any, wanted: Any, dtype: str, times: int = 1) -> None:
    found, wanted = np.asarray(found), np.asarray(wanted)
    kind = np.complex128 if wanted.dtype.kind == "c" else np.float64
    assert found.shape == wanted.shape
    scale = np.max(np.abs(wanted), initial=0) or 1
    bound = times * ERRORS[dtype] * scale
    np.testing.assert_allclose(found.astype(kind), wanted, rtol=0, atol=bound)


def normal(shape: tuple[int, ...], dtype: str = "float32") -> Any:
    x = RNG.standard_normal(shape)
    if dtype == "complex64":
        x = x + 1j * RNG.standard_normal(shape)
    return olympus.numpy.asarray(x).astype(dtype)


def wide(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


# Conditions

def test_equations_alike_ask_the_condition_of_a_kernel_once(monkeypatch: pytest.MonkeyPatch
                                                            ) -> None:
    kernels_of = lax.reduce_sum_p.kernels.KERNELS
    asked = list[int]()
    monkeypatch.setitem(kernels_of, lax.reduce_sum_p, [
        k._replace(applies=lambda *given, **params: bool(asked.append(1)))
        for k in kernels_of[lax.reduce_sum_p][:1]])
    x = olympus.numpy.ones((31, 1009))
    jit(lambda x: [lax.reduce_sum(x + i, (0,)) for i in range(20)]).lower(x)
    assert len(asked) == 1


def test_conditions_on_types_read_nothing_else() -> None:
    modules = {p.kernels for p in [getattr(lax, name) for name in dir(lax)]
               if getattr(p, "kernels", None) is not None}
    found = {k.applies for m in modules for ks in m.KERNELS.values() for k in ks}
    assert len(found) > 15
    for f in found:
        while isinstance(f, functools.partial):
            f = f.func
        assert {"owner", "invars"}.isdisjoint(f.__code__.co_names), f


# Reports

def test_a_report_names_the_lines_that_kernels_compute() -> None:
    def fun(x: Any) -> Any:
        first = olympus.numpy.argmax(x)
        return first + sum(olympus.numpy.argmax(x + i) for i in range(3))

    with kernels("off"):
        report = olympus.debug.kernels(fun, normal((20_000,)))
    one, three = report.lines
    assert (one.count, three.count, report.reason) == (1, 3, "")
    assert one.operation == "argmax" and one.type == "float32[20000]"
    assert "first = olympus.numpy.argmax(x)" in one.where
    assert str(report).startswith(
        "jit(fun): kernels of Olympus compute 4 operations, which saves some 320 us\n"
        "        80 us  ")
    assert (one.saves, three.saves) == (80, 240)        # 4 ns an element
    assert olympus.debug.kernels(jit(fun), normal((20,))).lines == ()


# Convolutions in groups

def convolved(x: np.ndarray, w: np.ndarray, groups: int, strides: tuple[int, ...],
              pads: tuple[tuple[int, int], ...], spread: tuple[int, ...], dilation: tuple[int, ...]
              ) -> np.ndarray:
    """A convolution of x[n, c, …] by w[o, c / groups, …], place by place."""
    n, c, *space = x.shape
    grown = np.zeros((n, c, *[(s - 1) * d + 1 for s, d in zip(space, spread)]), x.dtype)
    grown[(..., *[np.s_[::d] for d in spread])] = x
    # Negative padding crops.
    grown = np.pad(grown, [(0, 0), (0, 0), *[(max(p, 0), max(q, 0)) for p, q in pads]])
    grown = grown[(..., *[np.s_[max(-p, 0):m - max(-q, 0)]
                          for m, (p, q) in zip(grown.shape[2:], pads)])]
    window = w.shape[2:]
    size = [(m - (k - 1) * d - 1) // s + 1
            for m, k, d, s in zip(grown.shape[2:], window, dilation, strides)]
    out: Any = 0
    for place in itertools.product(*map(range, window)):
        part = grown[(..., *[np.s_[i * d:i * d + (m - 1) * s + 1:s]
                             for i, d, m, s in zip(place, dilation, size, strides)])]
        part = part.reshape(n, groups, c // groups, *size)
        numbers = w[(..., *place)].reshape(groups, -1, c // groups)
        out = out + np.einsum("ngc...,goc->ngo...", part, numbers).reshape(n, -1, *size)
    return out


# x[n, c, …], w[o, i, …], groups, strides, padding, dilations of image and kernel; the kernels that
# the value and both derivatives are computed by, None where XLA's form stays.
DW, DK, GG, PL = ("depthwise convolution", "kernel of a depthwise convolution",
                  "convolution group by group", "convolution plane by plane")
CONVOLUTIONS = {
    "depthwise": ((2, 16, 24, 24), (16, 1, 3, 3), 16, (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1),
                  (DW, DW, DK)),
    "strides": ((2, 16, 25, 24), (16, 1, 3, 2), 16, (2, 3), ((2, 0), (1, 1)), (1, 1), (1, 1),
                (None, DW, None)),
    "dilations": ((2, 16, 24, 24), (16, 1, 3, 3), 16, (1, 1), ((2, 2), (3, 1)), (1, 2), (2, 1),
                  (DW, DW, DK)),
    "cropped": ((2, 16, 26, 24), (16, 1, 3, 3), 16, (1, 1), ((-2, 1), (1, -1)), (1, 1), (1, 1),
                (DW, DW, DK)),
    "two for each": ((2, 16, 24, 24), (32, 1, 3, 3), 16, (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1),
                     (DW, None, DK)),
    "one axis": ((3, 32, 300), (32, 1, 4), 32, (1,), ((3, 0),), (1,), (1,), (DW, DW, DK)),
    "three axes": ((2, 8, 9, 9, 9), (8, 1, 2, 3, 2), 8, (1, 1, 1), ((1, 0), (1, 1), (0, 1)),
                   (1, 1, 1), (1, 1, 1), (DW, DW, DK)),
    "batch of 1": ((1, 16, 24, 24), (16, 1, 3, 3), 16, (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1),
                   (DW, DW, DK)),
    "groups": ((2, 16, 12, 12), (24, 8, 3, 3), 2, (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1),
               (GG, GG, GG)),
    "groups, strides": ((2, 16, 12, 13), (8, 8, 3, 3), 2, (2, 1), ((1, 1), (2, 1)), (1, 1), (1, 2),
                        (GG, GG, GG)),
    "many groups": ((2, 64, 9, 9), (64, 4, 3, 3), 16, (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1),
                    (None, None, GG)),
    "planes": ((2, 8, 9, 10, 8), (9, 8, 3, 2, 3), 1, (1, 1, 1), ((1, 1), (1, 0), (2, 1)),
               (1, 1, 1), (1, 1, 1), (PL, PL, PL)),
    "planes, strides": ((2, 8, 12, 9, 8), (6, 8, 4, 3, 2), 1, (2, 1, 3), ((0, 3), (1, 1), (2, 2)),
                        (1, 1, 1), (1, 1, 1), (PL, PL, PL)),
    "planes, dilations": ((1, 9, 6, 7, 8), (8, 9, 3, 3, 2), 1, (1, 2, 1), ((2, -1), (1, 1), (0, 2)),
                          (2, 1, 2), (3, 1, 2), (PL, PL, PL)),
    "few planes": ((1, 4, 6, 5, 5), (4, 4, 3, 2, 2), 1, (1, 1, 1), ((1, 1), (1, 0), (0, 1)),
                   (1, 1, 1), (1, 1, 1), (None, None, None)),
    "small": ((1, 4, 8, 8), (4, 1, 3, 3), 4, (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1),
              (None, None, None)),
}
LAYOUTS = {"first": lambda n: ("NC" + "DHW"[3 - n:], "OI" + "DHW"[3 - n:], "NC" + "DHW"[3 - n:]),
           "last": lambda n: ("N" + "DHW"[3 - n:] + "C", "DHW"[3 - n:] + "IO",
                              "N" + "DHW"[3 - n:] + "C"),
           "mixed": lambda n: ("C" + "DHW"[3 - n:] + "N", "I" + "DHW"[3 - n:] + "O",
                               "DHW"[3 - n:] + "CN")}


def laid_out(x: Any, spec: str, first: str) -> Any:
    """An array in the order `first` + spatial axes, in another one."""
    order = first + "DHW"[3 - (x.ndim - 2):]
    return x.transpose([order.index(c) for c in spec])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_in_groups(name: str, layout: str) -> None:
    xs, ws, groups, strides, pads, spread, dilation, names = CONVOLUTIONS[name]
    if layout != "first" and name in ("cropped", "three axes", "batch of 1"):
        pytest.skip("one layout is enough")
    dtype = {"last": "float64", "mixed": "bfloat16"}.get(layout, "float32")
    specs = LAYOUTS[layout](len(strides))
    with enable_x64(dtype == "float64"):
        x, w = normal(xs, dtype), normal(ws, dtype)

        def oracle(x: Any, w: Any) -> np.ndarray:
            return convolved(wide(x), wide(w), groups, strides, pads, spread, dilation)

        wanted = oracle(x, w)
        ct = normal(wanted.shape, dtype)

        def conv(x: Any, w: Any) -> Any:
            return lax.conv_general_dilated(x, w, strides, pads, spread, dilation, specs, groups)

        x, w = laid_out(x, specs[0], "NC"), laid_out(w, specs[1], "OI")
        out, back = jit(lambda x, w: olympus.vjp(conv, x, w))(x, w)
        close(out, laid_out(wanted, specs[2], "NC"), dtype)
        dx, dw = jit(back)(laid_out(ct, specs[2], "NC"))
        # The cotangent of w is the array whose products with any w' are those of ct with the
        # convolution by w', which is linear in it.
        for given, found, image in ((xs, dx, True), (ws, dw, False)):
            other = normal(given, dtype)
            moved = laid_out(other, specs[0 if image else 1], "NC" if image else "OI")
            value = (oracle(other, _plain(w, specs[1], "OI")) if image else
                     oracle(_plain(x, specs[0], "NC"), other))
            terms = wide(found) * wide(moved), value * wide(ct)
            scale = np.sqrt((terms[0] ** 2).sum() + (terms[1] ** 2).sum())
            assert abs(terms[0].sum() - terms[1].sum()) <= 10 * ERRORS[dtype] * scale
        if layout == "first":
            for fun, kernel in zip((conv, lambda x, w: grad(lambda x: (conv(x, w) * ct).sum())(x),
                                    lambda x, w: grad(lambda w: (conv(x, w) * ct).sum())(w)),
                                   names, strict=True):
                assert [*taken(fun, x, w), None][0] == kernel


def _plain(x: Any, spec: str, first: str) -> Any:
    order = first + "DHW"[3 - (x.ndim - 2):]
    return x.transpose([spec.index(c) for c in order])


def depthwise(x: Any, w: Any) -> Any:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=x.shape[1])


def by_numpy(x: Any, w: Any) -> np.ndarray:
    return convolved(wide(x), wide(w), x.shape[1], (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1))


@pytest.mark.filterwarnings("ignore:invalid value")
def test_depthwise_convolutions_of_nan_infinities_and_nothing() -> None:
    x, w = np.array(normal((1, 8, 32, 32))), np.array(normal((8, 1, 3, 3)))
    x[0, 0, 5, 5], x[0, 1, 0, 0], x[0, 2, 3, 3], x[0, 3] = np.nan, np.inf, -np.inf, -0.0
    w[1, 0, 1, 1] = 0
    assert taken(depthwise, x, w) == [DW]
    np.testing.assert_allclose(jit(depthwise)(x, w), by_numpy(x, w), rtol=1e-4, atol=1e-5)
    for shape in ((0, 8, 32, 32), (1, 8, 0, 32)):
        assert jit(depthwise)(np.ones(shape, "float32"), w).shape == shape


def test_depthwise_convolutions_mapped_and_in_loops() -> None:
    x, w = normal((3, 2, 8, 24, 24)), normal((3, 8, 1, 3, 3))
    wanted = np.stack([by_numpy(a, b) for a, b in zip(x, w, strict=True)])
    close(jit(vmap(depthwise))(x, w), wanted, "float32")
    close(vmap(depthwise, (0, None))(x, w[0]), [by_numpy(a, w[0]) for a in x], "float32")
    close(vmap(depthwise, (None, 0))(x[0], w), [by_numpy(x[0], b) for b in w], "float32")
    found = jit(lambda x, w: lax.map(lambda p: depthwise(*p), (x, w)))(x, w)
    close(found, wanted, "float32")
    both = jit(lambda x, w: lax.fori_loop(0, 2, lambda i, c: depthwise(c, w), x))(x[0], w[0])
    close(both, by_numpy(by_numpy(x[0], w[0]), w[0]), "float32")


def test_exports_and_several_devices_keep_the_plain_form() -> None:
    x, w = normal((2, 8, 24, 24)), normal((8, 1, 3, 3))
    exported = olympus.export.export(jit(depthwise))(x, w)
    assert "feature_group_count = 8" in str(exported.mlir_module())
    assert "feature_group_count = 8" not in jit(depthwise).lower(x, w).as_text()
    with kernels("off"):
        assert "feature_group_count = 8" in jit(depthwise).lower(x, w).as_text()
    mesh = olympus.make_mesh((1,), ("i",))
    sharding = olympus.sharding.NamedSharding(mesh, olympus.sharding.PartitionSpec("i"))
    constrained = jit(lambda x, w: depthwise(lax.with_sharding_constraint(x, sharding), w))
    assert "feature_group_count = 8" in constrained.lower(x, w).as_text()


# Reductions

SLICES, COUNT = "sum of slices", "count in pieces"


@pytest.mark.parametrize(("shape", "axes", "name"), [
    ((16, 2048), 0, SLICES), ((16, 2047), 0, None), ((15, 2048), 0, None), ((2, 16384), 0, SLICES),
    ((1, 40000), 0, None), ((64, 2100), 0, SLICES), ((65, 2100), 0, SLICES),
    ((1025, 2100), 0, SLICES), ((2, 8, 2048), (0, 1), SLICES), ((2, 8, 16384), 1, SLICES),
    ((2, 8, 16383), 1, None), ((4, 3, 9000), (0, 2), None), ((0, 40000), 0, None),
    ((40000, 4), 0, None), ((4, 40000), 1, None)])
def test_sums_of_columns(shape: tuple[int, ...], axes: Any, name: str | None) -> None:
    for dtype in ("float32", "float64", "int32", "int64", "complex64", "bfloat16"):
        if dtype != "float32" and shape[0] not in (16, 65):
            continue
        with enable_x64("64" in dtype and dtype != "complex64"):
            x = normal(shape, dtype) if dtype[0] != "i" else (
                RNG.integers(-2**31, 2**31, shape).astype(dtype))

            def total(x: Any) -> Any:
                return olympus.numpy.sum(x, axes)

            assert taken(total, x) == [n for n in (name,) if n and dtype != "complex64"]
            found = jit(total)(x)
            if dtype[0] == "i":
                np.testing.assert_array_equal(found, np.sum(x, axes, dtype=dtype))
                continue
            close(found, np.sum(wide(x), axes), dtype)
            if dtype == "float32" and x.size:
                ct = normal(found.shape)
                (back,) = olympus.vjp(total, x)[1](ct)
                kept = np.expand_dims(np.asarray(ct), axes)
                np.testing.assert_array_equal(back, np.broadcast_to(kept, shape))
                each = jit(vmap(total))(np.stack([x, 2 * x]))
                close(each, [np.sum(wide(x), axes), 2 * np.sum(wide(x), axes)], dtype)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("shape", [(16, 4096), (300, 4096)])
def test_sums_of_columns_of_nan_infinities_and_zeros(shape: tuple[int, int]) -> None:
    x = np.array(normal(shape))
    x[3, 5], x[1, 7], x[2, 8], x[[4, 5], 9] = np.nan, np.inf, -np.inf, (np.inf, -np.inf)
    x[:, 10], x[:, 11] = -0.0, 0.0
    found = np.asarray(jit(lambda x: x.sum(0))(x))
    np.testing.assert_allclose(found, np.sum(x, 0), rtol=1e-4, atol=1e-4)
    assert not np.signbit(found[[10, 11]]).any()


@pytest.mark.parametrize("size", [262143, 262144, 262151, 300001])
def test_counts(size: int) -> None:
    x = RNG.integers(0, 200, size).astype("uint8")
    for of in (x, (x - 100).view("int8"), x.astype("int16") * 150, x > 100):
        def total(x: Any) -> Any:
            return olympus.numpy.sum(x, dtype="int32")

        assert taken(total, of) == [COUNT] * (size >= 262144), of.dtype
        assert jit(total)(of) == np.sum(of, dtype="int32"), of.dtype
    one = x.reshape(1, -1) > 100
    assert jit(lambda x: olympus.numpy.sum(x > 100))(x) == one.sum()
    assert (jit(vmap(lambda x: olympus.numpy.sum(x)))(one) == one.sum()).all()


TRUTHS = [((32767,), None), ((32768,), None), ((32769,), 0), ((300, 201), None), ((520, 63), 1),
          ((512, 64), 1), ((511, 65), 1), ((3, 11000), 1), ((40, 10, 91), (1, 2)),
          ((40, 10, 91), (0, 2)), ((400, 100), 0), ((2, 20000, 1), 1)]


@pytest.mark.parametrize(("shape", "axes"), TRUTHS)
def test_whether_any_or_all_are_true(shape: tuple[int, ...], axes: Any) -> None:
    x = np.zeros(shape, bool)
    size, last = x.size, x.any(axes).size
    used = size >= 32768 and size // last >= 64 and axes not in (0, (0, 2))
    used = used or shape == (32769,)
    places = [0, size - 1, *RNG.integers(0, size, 3)]
    for given in (x, *[np.arange(size).reshape(shape) == at for at in places]):
        for name, of in (("any", given), ("all", ~given)):
            def run(x: Any, name: str = name) -> Any:
                return getattr(olympus.numpy, name)(x, axes)

            assert taken(run, of) == [f"{name} in pieces"] * used
            np.testing.assert_array_equal(jit(run)(of), getattr(np, name)(of, axes))
    if axes is None:
        both = np.stack([x, ~x])
        np.testing.assert_array_equal(jit(vmap(olympus.numpy.any))(both), [False, True])


PLACES = [((8192,), 0), ((8191,), 0), ((17001,), 0), ((1000, 17), 1), ((1000, 17), 0),
          ((20, 1000), 0), ((19, 1000), 0), ((32, 60, 9), 0), ((2, 9000), 1), ((64, 128), 1),
          ((90, 1, 500), 1), ((1024, 21), 1), ((1024, 22), 1), ((480, 35), 1), ((480, 36), 1)]


@pytest.mark.parametrize(("shape", "axis"), PLACES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "bfloat16", "uint8"])
def test_places_of_extrema(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    size = int(np.prod(shape))
    last = axis == len(shape) - 1
    least = (17 if last else 13) if dtype == "bfloat16" else (22 if last else 20) if (
        dtype.startswith("float")) else 36 if last else 32
    used = size >= 16384 and shape[axis] >= least or (
        size >= 8192 and shape[axis] >= (size if dtype == "bfloat16" else 128) and last)
    with enable_x64(dtype == "float64"):
        x = normal(shape).astype(dtype) if dtype not in ("bool", "int32", "uint8") else (
            RNG.integers(0, 2 if dtype == "bool" else 9, shape).astype(dtype))
        for given in _with_ties_and_nan(np.asarray(x), axis):
            for name, numpy in (("argmax", np.argmax), ("argmin", np.argmin)):
                def place(x: Any, name: str = name) -> Any:
                    return getattr(olympus.numpy, name)(x, axis)

                assert bool(taken(place, given)) == used
                wanted = numpy(wide(given), axis)
                np.testing.assert_array_equal(jit(place)(given), wanted)
    if dtype == "float32":
        np.testing.assert_array_equal(
            jit(vmap(lambda x: olympus.numpy.argmax(x, axis)))(np.stack([x, -x])),
            [np.argmax(x, axis), np.argmin(x, axis)])
        index = jit(lambda x: lax.argmax(x, axis, "uint8"))(x)
        assert index.dtype == "uint8"


@pytest.mark.parametrize("n", [8192, 8193, 4096 * 3 + 100])
def test_places_of_extrema_at_the_ends_of_chunks(n: int) -> None:
    x = RNG.standard_normal((14, n), "float32").clip(-4, 4)
    places = [0, 511, 4095, 4096, n - 4096, n - 4095, n - 1] * 2
    for row, (place, value) in enumerate(zip(places, [9] * 7 + [np.nan] * 7, strict=True)):
        x[row, [place, min(place + 1, n - 1), n - 1]] = value

    def place(x: Any) -> Any:
        return olympus.numpy.argmax(x)

    assert taken(place, x[0]) == ["maximum of chunks, then its place"]
    place = jit(place)
    assert [int(place(row)) for row in x] == places
    assert jit(lambda x: olympus.numpy.argmin(-x, 1))(x).tolist() == places


def _with_ties_and_nan(x: np.ndarray, axis: int) -> list[np.ndarray]:
    """The array; all elements equal; zeros of both signs; infinities; NaN at some places."""
    found = [x, np.zeros_like(x)]
    if x.dtype.kind == "f" or x.dtype.name == "bfloat16":
        zeros = np.zeros_like(x)
        zeros[::2] = -0.0
        least = np.full_like(x, -np.inf)
        missing = x.copy()
        flat = missing.reshape(-1)
        flat[[5, x.size // 2, -1]] = np.nan
        flat[[3, x.size // 3]] = np.inf
        found += [zeros, least, -least, missing]
    return found


# Products of many small matrices

OUTER = "outer products"
PRODUCTS = [
    ("bij,bjk->bik", (64, 4, 4), (64, 4, 4), True), ("bij,bjk->bik", (63, 5, 5), (63, 5, 5), False),
    ("bij,bjk->bik", (113, 3, 3), (113, 3, 3), False),
    ("bij,bjk->bik", (114, 3, 3), (114, 3, 3), True),
    ("bij,bjk->bik", (83, 7, 7), (83, 7, 7), False), ("bij,bjk->bik", (84, 7, 7), (84, 7, 7), True),
    ("bij,bjk->bik", (64, 8, 8), (64, 8, 8), True), ("bij,bjk->bik", (63, 8, 8), (63, 8, 8), False),
    ("bij,bjk->bik", (512, 9, 2), (512, 2, 4), False),
    ("bij,bjk->bik", (2048, 2, 2), (2048, 2, 2), False),
    ("bij,bj->bi", (1024, 4, 4), (1024, 4), True), ("bi,bi->b", (4096, 8), (4096, 8), True),
    ("bij,bj->bi", (4096, 4, 1), (4096, 1), False),
    ("jbi,bkj->bik", (3, 512, 3), (512, 8, 3), True),
    ("abij,bajk->abik", (16, 30, 3, 3), (30, 16, 3, 3), True),
    ("bcij,bjci->b", (4096, 2, 2, 2), (4096, 2, 2, 2), True), ("ij,jk->ik", (4, 8), (8, 4), False),
    ("bij,bjk->bik", (0, 4, 4), (0, 4, 4), False)]


@pytest.mark.parametrize(("formula", "a", "b", "used"), PRODUCTS)
def test_products_of_small_matrices(formula: str, a: tuple[int, ...], b: tuple[int, ...],
                                    used: bool) -> None:
    def product(x: Any, y: Any) -> Any:
        return olympus.numpy.einsum(formula, x, y)

    for dtype in ("float32", "float64", "int32", "complex64")[:4 if len(a) == 3 else 1]:
        with enable_x64(dtype == "float64"):
            if dtype == "int32":
                x, y = [RNG.integers(-2**31, 2**31, shape).astype(dtype) for shape in (a, b)]
            else:
                x, y = normal(a, dtype), normal(b, dtype)
            assert (OUTER in taken(product, x, y)) == (used and dtype != "complex64")
            out = jit(product)(x, y)
            if dtype == "int32":
                np.testing.assert_array_equal(out, np.einsum(formula, x, y))
                continue
            close(out, np.einsum(formula, wide(x), wide(y)), dtype)
            close(jit(lambda x, y: product(olympus.numpy.exp(x), 2 * y))(x, y),
                  np.einsum(formula, np.exp(wide(x)), 2 * wide(y)), dtype)
            if dtype == "float32":
                ct = normal(out.shape)
                left, right = jit(lambda x, y, ct: olympus.vjp(product, x, y)[1](ct))(x, y, ct)
                (i, j), k = formula.split("->")[0].split(","), formula.split("->")[1]
                close(left, np.einsum(f"{k},{j}->{i}", wide(ct), wide(y)), dtype)
                close(right, np.einsum(f"{i},{k}->{j}", wide(x), wide(ct)), dtype)
                both = jit(vmap(product, (0, None)))(np.stack([x, -x]), y)
                close(both, np.stack([np.einsum(formula, wide(s * x), wide(y)) for s in (1, -1)]),
                      dtype)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_products_of_small_matrices_of_nan_infinities_and_zeros() -> None:
    x, y = np.array(normal((256, 4, 4))), np.array(normal((256, 4, 4)))
    x[0, 0, 1], x[1, 2, 2], x[2, 1, 1], y[2, 1, 1] = np.nan, np.inf, -np.inf, 0
    x[3], y[4] = -0.0, 0.0
    y[3] = np.abs(y[3])
    found = np.asarray(jit(olympus.numpy.matmul)(x, y))
    np.testing.assert_allclose(found, x @ y, rtol=1e-4, atol=1e-5)
    assert not np.signbit(found[3:5]).any()


# Factorisations and solutions of many small matrices

LU, SOLUTION, CHOLESKY, TRIANGULAR = (
    "LU by entries", "solution by entries", "Cholesky by entries", "triangular solution by entries")
MANY = {1: 256, 2: 256, 3: 1024, 4: 4096}
linalg = olympus.numpy.linalg


def matrices(n: int, count: int, dtype: str) -> Any:
    """Well conditioned matrices; some need exchanges of rows."""
    x = RNG.uniform(-1, 1, (count, n, n)) + 2 * np.eye(n)[RNG.permutation(n)]
    return x.astype(dtype)


@pytest.mark.parametrize(("n", "columns", "dtype"), [
    (1, 1, "float32"), (2, 2, "float32"), (2, 1, "float64"), (3, 3, "float32"), (4, 1, "float32")])
def test_small_systems(n: int, columns: int, dtype: str) -> None:
    with enable_x64(dtype == "float64"):
        a = matrices(n, MANY[n], dtype)
        b, ct = [RNG.standard_normal((MANY[n], n, columns)).astype(dtype) for _ in range(2)]
        assert taken(linalg.solve, a, b) == [LU, SOLUTION]
        x, back = jit(lambda a, b: olympus.vjp(linalg.solve, a, b))(a, b)
        da, db = jit(back)(ct)
        wanted = np.linalg.solve(wide(a), wide(b))
        wanted_b = np.linalg.solve(wide(a).swapaxes(1, 2), wide(ct))
        _near(x, wanted, dtype)
        _near(db, wanted_b, dtype)
        _near(da, -wanted_b @ wanted.swapaxes(1, 2), dtype)
        fewer = a[:MANY[n] - 1], b[:MANY[n] - 1]
        assert taken(linalg.solve, *fewer) == []
        if n == 2:
            _near(jit(linalg.inv)(a), np.linalg.inv(wide(a)), dtype)
            halves = jit(vmap(linalg.solve))(a.reshape(2, -1, n, n), b.reshape(2, -1, n, columns))
            _near(halves.reshape(b.shape), wanted, dtype)
        if n == 4:
            _near(jit(linalg.det)(a), np.linalg.det(wide(a)), dtype)


def _near(found: Any, wanted: np.ndarray, dtype: str) -> None:
    """Within errors that grow with the condition."""
    single = dtype == "float32"
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=2e-3 if single else 1e-10,
                               atol=np.abs(wanted).max() * (1e-5 if single else 1e-13))


@pytest.mark.parametrize("n", [1, 3])
def test_small_factorisations_are_lapacks(n: int) -> None:
    a = matrices(n, MANY[n], "float32")
    factors, pivots, order = jit(lax.linalg.lu)(a)
    assert taken(lax.linalg.lu, a) == [LU]
    for i in range(0, len(a), 97):
        wanted, exchanges = scipy.linalg.lu_factor(a[i])
        np.testing.assert_allclose(factors[i], wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(pivots[i], exchanges)
        lower, upper = np.tril(factors[i], -1) + np.eye(n), np.triu(factors[i])
        np.testing.assert_allclose(lower @ upper, a[i][np.asarray(order[i])], atol=1e-5)


@pytest.mark.parametrize("n", [2, 3])
def test_small_cholesky_factors(n: int) -> None:
    x = matrices(n, MANY[n], "float32")
    a = x @ x.swapaxes(1, 2) + np.eye(n, dtype="float32")
    assert taken(linalg.cholesky, a) == [CHOLESKY]
    _near(jit(linalg.cholesky)(a), np.linalg.cholesky(wide(a)), "float32")
    a[3], a[5, 0, 0], a[6, n - 1, n - 1], a[7] = -a[3], np.nan, 0, 0
    found = np.asarray(jit(linalg.cholesky)(a))
    lower = np.tril_indices(n)
    for i in (3, 5, 6, 7):
        assert np.isnan(found[i][lower]).all()
    assert np.isfinite(found[8:]).all()
    assert (np.triu(found, 1) == 0).all()
    # The derivative of tr(C L) by a symmetric change, by differences in float64.
    c, change = RNG.standard_normal((2, n, n))
    change, good = change + change.T, a[8:]
    with enable_x64(True):
        good = wide(good)
        got = (jit(grad(lambda a: (linalg.cholesky(a) * c).sum()))(good) * change).sum((1, 2))
        ends = [(np.linalg.cholesky(good + s * 1e-5 * change) * c).sum((1, 2)) for s in (1, -1)]
    np.testing.assert_allclose(got, (ends[0] - ends[1]) / 2e-5, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("n", [2, 3])
def test_small_triangular_systems(n: int, left: bool) -> None:
    a = matrices(n, MANY[n], "float32") + 3 * np.eye(n, dtype="float32")
    b = np.asarray(normal((MANY[n], n, 2) if left else (MANY[n], 2, n)))
    for lower, transposed, unit in itertools.product((False, True), repeat=3):
        def solve(a: Any, b: Any) -> Any:
            return lax.linalg.triangular_solve(
                a, b, left_side=left, lower=lower, transpose_a=transposed, unit_diagonal=unit,
                conjugate_a=transposed)

        assert taken(solve, a, b) == [TRIANGULAR]
        part = wide(np.tril(a) if lower else np.triu(a))
        if unit:
            part[:, range(n), range(n)] = 1
        part = part.swapaxes(1, 2) if transposed else part
        wanted = (np.linalg.solve(part, wide(b)) if left else
                  np.linalg.solve(part.swapaxes(1, 2), wide(b).swapaxes(1, 2)).swapaxes(1, 2))
        _near(jit(solve)(a, b), wanted, "float32")


@pytest.mark.parametrize("n", [2, 3])
def test_singular_small_systems_are_as_by_lapack(n: int) -> None:
    """Rank 0 and 1, a zero in the first place and infinities: finite where LAPACK's are.

    A NaN as the first pivot leaves all NaN, where OpenBLAS eliminates nothing by it.
    """
    a = matrices(n, MANY[n], "float32")
    a[0], a[1] = 0, 1
    a[2, 0, 0], a[3, 0, 0], a[4, -1, -1] = 0, np.nan, np.inf
    a[5, :, 0], a[6, 0] = 0, 0
    b = np.asarray(normal((MANY[n], n, 1)))
    for fun, args in ((linalg.solve, (a, b)), (linalg.inv, (a,)), (linalg.det, (a,)),
                      (lambda a: lax.linalg.lu(a)[0], (a,))):
        found = np.asarray(jit(lambda *xs, f=fun: f(*xs))(*args))
        with kernels("off"):
            plain = np.asarray(jit(lambda *xs, f=fun: f(*xs))(*args))
        for i in (0, 1, 2, 4, 5, 6):
            np.testing.assert_array_equal(np.isfinite(found[i]), np.isfinite(plain[i]))
        assert np.isnan(found[3]).any()
        np.testing.assert_array_equal(np.isfinite(found[7:]), True)
    assert jit(linalg.inv)(a[:0]).shape == (0, n, n)


# Cumulative operations

CUMULATIVE: dict[str, Any] = {
    "cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate, "cumlogsumexp": np.logaddexp.accumulate}
ALONG: list[tuple[tuple[int, ...], int, bool]] = [
    ((512,), 0, True), ((511,), 0, False), ((513,), 0, True), ((2049,), 0, True),
    ((4, 15), 1, False),
    ((40, 16), 1, True), ((40, 17), 1, True), ((16, 40), 0, True), ((15, 40), 0, False),
    ((2, 17, 30), 1, True), ((3, 2048), 1, True), ((3, 2057), 1, True), ((2049, 3), 0, True),
    ((5000, 17), 0, True), ((2, 3000, 2), 1, True), ((5000, 16, 2), 1, False), ((0, 600), 1, False)]


@pytest.mark.parametrize(("shape", "axis", "used"), ALONG)
@pytest.mark.parametrize("name", CUMULATIVE)
def test_cumulative_operations(name: str, shape: tuple[int, ...], axis: int, used: bool) -> None:
    fun, oracle = getattr(lax, name), CUMULATIVE[name]
    kinds = ("float32", "int32", "float64", "bfloat16", "complex64", "uint8")
    for dtype in kinds if shape in ((513,), (40, 17), (16, 40)) else kinds[:1]:
        if name == "cumlogsumexp" and dtype[:1] in "iuc" or name[:4] in ("cumm",) and (
                dtype == "complex64"):
            continue
        with enable_x64(dtype == "float64"):
            x = normal(shape) if dtype[0] in "iu" else normal(shape, dtype)
            if name == "cumprod" and dtype[0] not in "iu":
                x = (1 + x * 1e-2).astype(dtype)
            x = np.asarray(x * 9 if dtype[0] in "iu" else x).astype(
                dtype if dtype != "uint8" else "int32").astype(olympus.numpy.dtype(dtype))
            for reverse in (False, True):
                def run(x: Any, reverse: bool = reverse) -> Any:
                    return fun(x, axis, reverse)

                assert taken(run, x) == ["one loop"] * used
                flipped = np.flip(x, axis) if reverse else x
                wanted = (oracle(flipped, axis, dtype=dtype) if dtype[0] in "iu" else
                          oracle(wide(flipped), axis))
                wanted = np.flip(wanted, axis) if reverse else wanted
                found = jit(run)(x)
                if dtype[0] in "iu" or name[:4] == "cumm":
                    np.testing.assert_array_equal(wide(found), wide(wanted))
                else:
                    # Each product rounds once more: the bound grows with the length.
                    scale = 4 if name == "cumprod" else 1
                    close(found, wanted, dtype, scale)
    if shape in ((513,), (40, 17), (16, 40)):
        x = np.abs(np.asarray(normal(shape))) + 1
        x = x / x.max() + 0.1
        each = vmap(lambda x: fun(x, axis))(np.stack([x, x * 2]))
        close(each, [oracle(wide(x), axis), oracle(2 * wide(x), axis)], "float32")


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", CUMULATIVE)
def test_cumulative_operations_on_nan_infinities_and_zeros(name: str, axis: int) -> None:
    x = np.array(normal((40, 40)))
    x[5, 5], x[20, 3], x[30, 3], x[7, 9], x[9, 30] = np.nan, np.inf, -np.inf, np.inf, -np.inf
    x[:20, 11], x[11, :20] = -0.0, -0.0
    found = np.asarray(jit(lambda x: getattr(lax, name)(x, axis))(x))
    wanted = CUMULATIVE[name](wide(x), axis)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    if name == "cumsum":
        assert not np.signbit(found[:20, 11] if axis == 0 else found[11, :20]).any()


@pytest.mark.parametrize("shape", [(200_000,), (70_000, 3)])
def test_long_cumulative_sums_are_exact_in_blocks_and_never_fall(shape: tuple[int, ...]) -> None:
    x = RNG.random(shape, "float32")
    for reverse in (False, True):
        found = np.asarray(jit(lambda x, r=reverse: lax.cumsum(x, 0, r))(x))
        flipped = x[::-1] if reverse else x
        found = found[::-1] if reverse else found
        wanted = np.cumsum(flipped, 0, "float64")
        assert np.max(np.abs(found - wanted)) <= 4e-6 * wanted.max()
        assert (np.diff(found, axis=0) >= 0).all()
    np.testing.assert_allclose(jit(grad(lambda x: (lax.cumsum(x) * x).sum()))(x),
                               np.cumsum(x, 0) + np.cumsum(x[::-1], 0)[::-1], rtol=1e-4)


# Convolutions of one feature

SINGLE, LONG = "convolution of one feature", "convolution by Fourier transforms"
# Elements, the convolution kernel's elements, mode, and the kernel that computes it.
VECTORS: list[tuple[int, int, str, list[str]]] = [
    (1365, 3, "same", []), (1366, 3, "same", [SINGLE]), (2048, 2, "same", []),
    (2000, 40, "full", [SINGLE]), (2000, 41, "full", []), (1000, 128, "full", [LONG]),
    (1000, 127, "valid", [LONG]), (1000, 129, "same", [LONG]), (300, 299, "full", [LONG]),
    (129, 1000, "same", [LONG])]


@pytest.mark.parametrize(("n", "m", "mode", "names"), VECTORS)
def test_convolutions_of_vectors(n: int, m: int, mode: str, names: list[str]) -> None:
    x, y = normal((n,)), normal((m,))
    for name in ("convolve", "correlate") if m in (127, 129, 3) else ("convolve",):
        fun, oracle = getattr(olympus.numpy, name), getattr(np, name)
        assert taken(lambda x, y, fun=fun: fun(x, y, mode), x, y) == names
        close(jit(lambda x, y, fun=fun: fun(x, y, mode))(x, y), oracle(wide(x), wide(y), mode),
              "float32")
    if m == 129:
        ct = normal((n,))
        loss = lambda x, y: (olympus.numpy.convolve(x, y, mode) * ct).sum()
        dx, dy = jit(grad(loss, (0, 1)))(x, y)
        close(dx, np.convolve(wide(ct), wide(y)[::-1], mode), "float32")
        close(dy, np.correlate(np.pad(wide(ct), 64), wide(x), "valid"), "float32", 3)
        assert LONG in taken(grad(loss, (0, 1)), x, y)


def test_convolutions_of_float64_vectors_stay_with_xla_which_is_faster() -> None:
    with enable_x64(True):
        x, y = normal((100_000,), "float64"), normal((32,), "float64")
        assert taken(olympus.numpy.convolve, x, y) == []
        close(jit(olympus.numpy.convolve)(x, y), np.convolve(x, y), "float64")


@pytest.mark.parametrize(("shape", "window", "dtype", "names"), [
    ((30, 40), (3, 3), "float32", [SINGLE]), ((30, 40), (8, 8), "float64", [SINGLE]),
    ((64, 50), (15, 15), "float32", [LONG]), ((64, 50), (15, 15), "float64", []),
    ((20, 18, 16), (3, 4, 5), "complex64", [SINGLE]), ((20, 18, 16), (7, 7, 7), "float32", [LONG])])
def test_convolutions_of_images(shape: Any, window: Any, dtype: str, names: list[str]) -> None:
    with enable_x64(dtype == "float64"):
        x, w = normal((2, 1, *shape), dtype), normal((1, 1, *window), dtype)

        def run(x: Any, w: Any) -> Any:
            return lax.conv_general_dilated(x, w, (1,) * len(shape), "SAME")

        assert taken(run, x, w) == names
        pads = tuple([((k - 1) // 2, k // 2) for k in window])
        ones = (1,) * len(shape)
        close(jit(run)(x, w), convolved(wide(x), wide(w), 1, ones, pads, ones, ones), dtype)
        each = jit(vmap(run, (0, None)))(x[:, None], w)
        close(each[:, 0], convolved(wide(x), wide(w), 1, ones, pads, ones, ones), dtype)


def test_convolutions_by_transforms_of_infinities_nan_zeros_and_signs() -> None:
    x, y = np.array(normal((1000,))), np.array(normal((200,)))
    run = jit(olympus.numpy.convolve)
    assert taken(olympus.numpy.convolve, x, y) == [LONG]
    for value in (np.nan, np.inf, -np.inf):
        other = x.copy()
        other[500] = value
        found, wanted = np.asarray(run(other, y)), np.convolve(wide(other), wide(y))
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
        assert np.isfinite(found).sum() == 999      # all but 200 of 1,199
    x[:400], x[600:] = 0, 0
    found, positive = np.asarray(run(x, y)), np.asarray(run(np.abs(x), np.abs(y)))
    np.testing.assert_array_equal(found[[*range(400), *range(800, 1199)]], 0)
    assert (positive >= 0).all()
    counts = [RNG.integers(0, 9, n).astype("float32") for n in (1000, 200)]
    np.testing.assert_array_equal(run(*counts), np.convolve(*map(wide, counts)))
    assert run(x * 0, y).tolist() == [0] * 1199


# Repeats

@pytest.mark.parametrize(("shape", "reps", "used"), [
    ((700,), 100, 1), ((30, 40, 3), (7, 5, 6), 1), ((40, 50), (40, 1), 0), ((70,), 9, 0)])
@pytest.mark.parametrize("dtype", ["float32", "bool", "complex64"])
def test_tiles_in_two_steps(shape: tuple[int, ...], reps: Any, used: int, dtype: str) -> None:
    x = (normal(shape) > 0 if dtype == "bool" else normal(shape, dtype))
    fun = lambda x: olympus.numpy.tile(x, reps)
    assert len(taken(fun, x)) == used and not taken(lambda x: fun(x) == 1, x)
    np.testing.assert_array_equal(jit(fun)(x), np.tile(np.asarray(x), reps))


# Options

def test_jit_says_whether_kernels_are_taken_and_logs_them(caplog: pytest.LogCaptureFixture
                                                          ) -> None:
    def fun(x: Any) -> Any:
        return olympus.numpy.argmax(x)

    x = np.arange(20_000, dtype="float32")
    counts = {mode: len(jit(fun, kernels=mode).lower(x)._context.taken)
              for mode in (None, "auto", "off")}
    assert counts == {None: 1, "auto": 1, "off": 0}
    with kernels("off"):
        assert len(jit(fun, kernels="auto").lower(x)._context.taken) == 1
        assert jit(fun).lower(x)._context.taken == []
    for mode in ("off", "auto"):        # the outermost function's counts
        inner = jit(fun, kernels="off" if mode == "auto" else "auto")
        text = jit(lambda x: inner(x) + 1, kernels=mode).lower(x)
        assert len(text._context.taken) == (mode == "auto")
    assert olympus.debug.kernels(jit(fun, kernels="off"), x).reason == 'kernels is "off"'
    with caplog.at_level("WARNING"):
        assert int(jit(fun, kernels="report")(x)) == 19_999
    assert "kernels of Olympus compute 1 operations" in caplog.text
    with pytest.raises(ValueError, match="jit: kernels='on' given; 'auto', 'off', 'report'"):
        jit(fun, kernels="on")


# Iterations

@pytest.mark.parametrize("shape", [(3, 193), (1, 64, 10)])
@pytest.mark.parametrize("dtype, states, limit", [
    ("float32", 1, 7), ("float32", 3, 8), ("float64", 4, 8), ("complex64", 1, 100)])
def test_iterations_by_blocks_end_for_each_element(shape: tuple[int, ...], dtype: str, states: int,
                                                   limit: int) -> None:
    def step(i: Any, state: Any, constants: Any) -> Any:
        most, = constants
        return lax.lt(i, most), [lax.add(lax.add(x, x), 1) for x in state]

    with enable_x64(dtype == "float64"):
        wide = "float64" if dtype == "float64" else "float32"
        most = olympus.numpy.asarray(RNG.integers(-1, 12, shape)).astype(wide)
        x = normal(shape, dtype)

        def run(x: Any, most: Any) -> Any:
            return iterate(step, lax.ge(most, 0), [x] * states, [most], limit)

        assert taken(run, x, most) == ["iteration by blocks"]
        outs = compiled(run)(x, most)
        times = np.minimum(np.where(most < 0, 0, np.asarray(most) + 1), limit)
        for out in outs:
            close(out, np.asarray(x) * 2.0 ** times + 2.0 ** times - 1, dtype)
