"""Dtypes that users ask for, and the modes of promotion, in every public function that has them."""

import inspect
import warnings

import bad_input as tool
import ml_dtypes
import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax

PARAMETERS = {"dtype", "new_dtype", "index_dtype", "preferred_element_type", "out_dtype"}
NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
# What a dtype is only asked about, or bytes that are read at it.
NO_REQUEST = {"numpy.isdtype", "numpy.dtype"}


def asking():
    """(function, its legal call, parameter) for every parameter that names a dtype."""
    for name, fun in tool.functions():
        if not name.startswith("olympus.") and name not in NO_REQUEST:
            for parameter in PARAMETERS & set(tool.signature(fun).parameters):
                yield name, tool.legal_call(name, fun), parameter


def traced(call, parameter, dtype):
    """The dtypes of the results, and the warnings of a request; None where it is refused."""
    bound = inspect.BoundArguments(tool.signature(call.fun), {**call.arguments, parameter: dtype})
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            out = olympus.eval_shape(lambda: tool.leaves(call.fun(*bound.args, **bound.kwargs)))
        except (TypeError, ValueError):
            return None
    asked = [w for w in seen if "Explicitly requested" in str(w.message)]
    return [x.dtype for x in out], [(w.filename, "enable_x64" in str(w.message)) for w in asked]


def test_a_64_bit_dtype_that_is_asked_for_warns_at_the_users_line():
    wrong, taken = [], set()
    for name, call, parameter in asking():
        for wide, narrow in NARROW.items():
            own = traced(call, parameter, narrow)
            if own is None:
                continue
            taken.add(name)
            for spelling in (wide, np.dtype(wide), np.dtype(wide).type, getattr(onp, wide)):
                found = traced(call, parameter, spelling)
                if found != (own[0], [(__file__, True)]) and not (
                        name == "numpy.frombuffer" and found is None):
                    wrong.append((name, parameter, spelling, found))
    assert not wrong
    assert len(taken) > 180


def test_every_spelling_of_a_dtype_is_the_same_request():
    wrong = []
    for name, call, parameter in asking():
        for dtype in ("float32", "int32", "bfloat16", "uint8"):
            canonical = np.dtype(getattr(ml_dtypes, dtype, dtype))
            own = traced(call, parameter, canonical)
            for spelling in (dtype, canonical.type, getattr(onp, dtype)):
                if traced(call, parameter, spelling) != own or (own and own[1]):
                    wrong.append((name, parameter, spelling))
    assert not wrong


@pytest.mark.parametrize("call", [
    lambda x, d: x.astype(d), lambda x, d: x.sum(dtype=d), lambda x, d: x.mean(dtype=d),
    lambda x, d: x.cumsum(dtype=d), lambda x, d: x.prod(dtype=d),
    lambda x, d: onp.full_like(x, 1, d), lambda x, d: x[None].trace(dtype=d),
    lambda x, d: x.view(d), lambda x, d: onp.array([1.0], d),
    lambda x, d: onp.loadtxt(["1 2"], d), lambda x, d: onp.genfromtxt(["1 2"], d),
    lambda x, d: onp.fromiter([1.0], d), lambda x, d: onp.float64(1) if d == "float64" else
    onp.complex128(1),
], ids=["astype", "sum", "mean", "cumsum", "prod", "full_like", "trace", "view", "array", "loadtxt",
        "genfromtxt", "fromiter", "scalar type"])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_methods_and_readers_warn_too(call, dtype):
    with pytest.warns(UserWarning, match="Explicitly requested.*enable_x64") as seen:
        assert call(onp.arange(4.0), dtype).dtype == NARROW[dtype]
    assert {w.filename for w in seen} == {__file__} and len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in (float, int, complex):      # a kind, not a width
            onp.zeros(2, kind)


# Operands that are not promoted: indices, counts, what is converted to another operand's dtype.
UNPROMOTED = {
    "compress", "extract", "full_like", "insert", "ldexp", "nanpercentile", "nanquantile",
    "percentile", "quantile", "place", "put", "put_along_axis", "putmask", "repeat", "resize",
    "take", "take_along_axis", "logical_and", "logical_or", "logical_xor"}


def pairs():
    """(name, call, two of its array parameters) of every function of `numpy` that has two."""
    for name, fun in tool.functions():
        call = tool.legal_call(name, fun)
        if name.startswith("numpy.") and call is not None:
            arrays = [k for k, v in call.arguments.items() if isinstance(v, np.ndarray)]
            if len(arrays) == 2:
                yield name, call, arrays


def test_strict_promotion_holds_in_every_function_of_two_arrays():
    mixed, promoted = [], 0
    for name, call, (a, b) in pairs():
        for kinds in (("f4", "i4"), ("i4", "f4")):
            args = {**call.arguments, a: call.arguments[a].astype(kinds[0]),
                    b: call.arguments[b].astype(kinds[1])}
            run = tool.Call(name, call.fun, args).run
            try:
                run()
            except (TypeError, ValueError):
                continue        # it does not mix them in any mode
            try:
                with olympus.numpy_dtype_promotion("strict"):
                    run()
                mixed.append(name.rpartition(".")[2])
            except ValueError as error:
                promoted += "dtype promotion" in str(error)
    assert set(mixed) <= UNPROMOTED
    assert promoted > 120


@pytest.mark.parametrize("x64", [True, False])
def test_types_are_promoted_without_x64_as_with_it(x64):
    for a, b, want in [("int64", "int8", "int64"), ("float64", "int32", "float64"),
                       ("bool", np.complex128, "complex128"), ("uint64", "int8", "float64"),
                       (int, int, "int64"), (float, "int8", "float64"), (float, "float32", "f4")]:
        with olympus.enable_x64(x64):
            assert onp.promote_types(a, b) == onp.promote_types(b, a) == want


def test_scalar_types_have_subclasses_that_make_the_same_arrays():
    class StepType(onp.int8):
        """The place of a step in an episode."""

        FIRST = 0

    assert StepType.FIRST == 0 and StepType.__doc__.startswith("The place")
    assert onp.zeros(2, StepType).dtype == StepType.dtype == np.dtype(StepType) == np.int8
    assert StepType(3).dtype == np.int8 and isinstance(np.int8(1), StepType)
    assert StepType == onp.int8 == StepType and StepType != onp.int16
    assert {StepType: 1}[onp.int8] == 1 and repr(StepType).endswith(".StepType")


OF_64_BITS = {
    "arctanh": (onp.arctanh, (np.array([0.1, -0.7]),)),
    "a product of two widths": (lambda x: lax.dot(
        x, x.astype(np.float32), preferred_element_type=np.float64), (np.eye(3) / 3,)),
    "places": (lambda x: onp.nonzero(x > 0.5, size=3)[0], (np.linspace(0, 1, 7),)),
    "a matrix's logarithm": (olympus.scipy.linalg.logm, (np.array([[2.0, 0.3], [0.1, 1.5]]),)),
    "within a loop": (lambda x: lax.fori_loop(
        0, 2, lambda _, c: onp.arctanh(c / 3), x), (np.array([0.1, -0.7]),)),
}


@pytest.mark.parametrize("name", OF_64_BITS)
def test_what_was_traced_with_x64_is_lowered_without_it_alike(name):
    """Regression: rules narrowed numbers as they were lowered: a TypeError, or float32's digits."""
    fun, args = OF_64_BITS[name]
    with olympus.enable_x64(True):
        traced = olympus.jit(lambda *xs: fun(*xs)).trace(*args)
    lowered = traced.lower()
    assert "f64>" in lowered.as_text()
    with olympus.enable_x64(True):
        within = olympus.jit(fun).lower(*args)
        for found, want in zip(*map(olympus.tree.leaves, (
                lowered.compile()(*args), within.compile()(*args))), strict=True):
            assert found.dtype == want.dtype
            np.testing.assert_array_equal(found, want)


def test_a_part_of_a_jitted_function_with_x64_computes_in_float64():
    def inner(x):
        with olympus.enable_x64(True):
            return onp.arctanh(x.astype(np.float64)).astype(np.float32)

    assert float(olympus.jit(inner)(np.float32(0.5))) == np.float32(np.arctanh(0.5))


def test_arrays_made_with_x64_have_their_types_without_it_and_again_with_it():
    """Regression: the modulus was of float32, an MLIRError, and stayed that for its shape."""
    with olympus.enable_x64(True):
        x, z = onp.array([[-1.0, 2.0, 7.0]]), onp.array([[3 + 4j, 1j]])
    for _ in range(2):
        for given, fun in ((x, abs), (z, abs), (z, onp.real), (z, onp.imag), (z, onp.conj),
                           (x, lambda x: lax.linalg.svd(x, compute_uv=False)),
                           (x[:, :1], lambda x: lax.linalg.eigh(x)[1])):
            assert fun(given).dtype.itemsize == (16 if fun is onp.conj else 8), fun
        np.testing.assert_array_equal(abs(z), [[5.0, 1.0]])
        np.testing.assert_array_equal(olympus.grad(lambda v: abs(v).sum())(x), np.sign(x))
        with olympus.enable_x64(True):
            assert abs(x).dtype == onp.imag(z).dtype == np.float64


def test_a_mapped_function_with_a_part_in_float64_computes_that_in_it():
    @olympus.jit
    def inner(x):
        with olympus.enable_x64(True):
            return onp.abs(onp.sin(x.astype(np.float64))).astype(np.float32)

    x = np.linspace(-1, 1, 6, dtype=np.float32)
    want = abs(np.sin(x.astype(float)))
    np.testing.assert_allclose(olympus.vmap(inner)(x), want, rtol=1e-7)
    np.testing.assert_allclose(olympus.vmap(olympus.grad(inner))(x), np.sign(x) * np.cos(x),
                               rtol=1e-6)
    np.testing.assert_allclose(olympus.jit(olympus.vmap(inner))(x), want, rtol=1e-7)


def test_the_gradient_of_a_fourier_transform_in_a_part_in_float64():
    """Regression: the weights of the transpose were of complex64, and jit raised a TypeError."""
    def power(x, wide):
        with olympus.enable_x64(wide):
            spectrum = onp.fft.rfft(x.astype(np.float64) if wide else x)
            return (onp.fft.irfft(spectrum * spectrum, 6)[1]).astype(np.float32)

    x = np.linspace(-1, 1, 6, dtype=np.float32)
    slope = olympus.grad(power)
    np.testing.assert_allclose(olympus.jit(slope, static_argnums=1)(x, True), slope(x, False),
                               rtol=1e-5)
