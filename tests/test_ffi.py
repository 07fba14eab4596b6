"""Foreign functions: handlers in C++ under every transformation, with every attribute and layout;
what is refused before XLA sees it; buffer_callback.

The oracles are NumPy, finite differences, and what the handlers of ffi_handlers.cc say themselves.
"""

import ctypes
import functools
import re
import subprocess
import sys
import time
import types

import eight_devices
import ffi_cases
import ffi_library
import numpy as np
import pytest
from ffi_library import struct

import olympus
import olympus.numpy as onp
from olympus import core, export, ffi, lax, random
from olympus.experimental import buffer_callback as buffers
from olympus.experimental.layout import Layout
from olympus.experimental.serialize_executable import deserialize_and_load, serialize
from olympus.extend.core import Primitive
from olympus.interpreters import mlir

X = np.array([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]], np.float32)


@pytest.fixture(scope="module")
def library():
    """The tests' library, in which handlers count their calls."""
    return ffi_library.load()[1]


@pytest.fixture(scope="module")
def rms(library):
    return ffi_library.load()[0].rms_norm


def normalised(x, eps=1e-5):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) / max(x.shape[-1], 1) + eps)


def geqrf(x, **how):
    """LAPACK's QR factorisation, which jaxlib registers, by columns and in place."""
    columns = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    tau = struct((*x.shape[:-2], min(x.shape[-2:])))
    return ffi.ffi_call("lapack_sgeqrf_ffi", [x, tau], input_output_aliases={0: 0},
                        input_layouts=[columns], output_layouts=[columns, None], **how)(x)


# The example: a function with a derivative ------------------------------------------------------

SHAPES = [(3,), (2, 3), (2, 0), (0, 3), (2, 2, 3)]
WAYS = {
    "eager": lambda f: f, "jit": olympus.jit, "scan": lambda f: lambda x: lax.map(f, x),
    "vmap": olympus.vmap, "checkpoint": olympus.checkpoint,
    "cond": lambda f: lambda x: lax.cond(x.sum() < 1e9, f, lambda x: x, x),
    "jit of vmap": lambda f: olympus.jit(olympus.vmap(f, in_axes=1, out_axes=1)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_function_in_cpp_is_numpys_in_every_way(rms, way, shape):
    mapped = way in ("scan", "vmap", "jit of vmap")
    if mapped and (len(shape) < 2 + (way == "jit of vmap") or 0 in shape):
        pytest.skip("no axis to map")
    x = np.linspace(-1, 2, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    np.testing.assert_allclose(WAYS[way](rms)(onp.asarray(x)), normalised(x), rtol=1e-5)


@pytest.mark.parametrize("way", ["eager", "jit", "vmap", "checkpoint"])
def test_its_gradient_is_that_of_differences(rms, way):
    weights = np.arange(6.0).reshape(2, 3)
    with olympus.enable_x64(True):
        gradient = olympus.grad(lambda x: (WAYS[way](rms)(x) * weights).sum())(
            onp.asarray(X, float))
    x, step = X.astype(float), 1e-6
    for at in np.ndindex(x.shape):
        d = np.zeros_like(x)
        d[at] = step
        slope = ((normalised(x + d) - normalised(x - d)) * weights).sum() / (2 * step)
        np.testing.assert_allclose(gradient[at], slope, atol=1e-8)


def test_a_call_without_rules_says_which_target_has_no_derivative():
    call = ffi.ffi_call("absent", struct((3,)))
    for differentiate in (lambda f: olympus.jvp(f, (onp.ones(3),), (onp.ones(3),)),
                          lambda f: olympus.grad(lambda x: f(x).sum())(onp.ones(3))):
        with pytest.raises(ValueError, match="The FFI call to `absent` cannot be differentiated"):
            differentiate(call)
    with pytest.raises(ValueError, match="cannot be differentiated"):
        olympus.linear_transpose(call, onp.ones(3))(onp.ones(3))


@pytest.mark.slow
def test_the_example_registers_before_it_computes_anything(library):
    lines = subprocess.run(
        [sys.executable, "-c", "import ffi_library as f; "
         "f.example().main(f.build() / 'libhandlers.so')"], capture_output=True, text=True,
        cwd=ffi_library.ROOT / "tests", check=True, timeout=300).stdout.splitlines()
    assert all(float(line.split()[-1]) < 1e-5 for line in lines[:3])
    assert lines[3:] == ["three calls of a counter: 5 6 7"]


# Attributes ---------------------------------------------------------------------------------------

# XLA's numbers of dtypes.
PRED, S8, S16, S32, S64, U8, U16, U32, U64, F32, F64 = 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12


def told(dtype, value):
    """What the handler says of a number: its dtype, and its bits from the highest one."""
    return f"{dtype}:{np.asarray(value).tobytes()[::-1].hex()}"


def row(dtype, values):
    return ":".join(["array", str(dtype), *[np.asarray(v).tobytes()[::-1].hex() for v in values]])


ATTRIBUTES = [
    (True, told(PRED, True)), (np.False_, told(PRED, False)), (7, told(S64, np.int64(7))),
    (-(2**63), told(S64, np.int64(-(2**63)))), (0.1, told(F64, 0.1)), (-0.0, told(F64, -0.0)),
    (float("inf"), told(F64, np.inf)), (5e-324, told(F64, 5e-324)),
    *[(t(5), told(k, t(5))) for t, k in (
        (np.int8, S8), (np.int16, S16), (np.int32, S32), (np.int64, S64), (np.uint8, U8),
        (np.uint16, U16), (np.uint32, U32), (np.uint64, U64), (np.float32, F32),
        (np.float64, F64))],
    (np.uint64(2**64 - 1), told(U64, np.uint64(2**64 - 1))),
    (np.uint32(0x7FC01234).view(np.float32), told(F32, np.uint32(0x7FC00000))),
    ("", "text:"), ('a "quoted" \\ line\nof é', 'text:a "quoted" \\ line\nof é'),
    ((1, 2), row(S64, np.array([1, 2]))), ([1.5, 2], row(F64, [1.5, 2.0])),
    ([np.int8(3)], row(S8, [np.int8(3)])), (np.zeros(0, np.int16), row(S16, [])),
    (np.arange(6, dtype=np.uint8).reshape(2, 3), row(U8, np.arange(6, dtype=np.uint8))),
    (np.arange(6).reshape(2, 3).T, row(S64, np.arange(6).reshape(2, 3).T.ravel())),
    (np.array([1.5, -0.0], ">f4"), row(F32, np.array([1.5, -0.0], np.float32))),
    (np.array(3.0), row(F64, [3.0])),
    ({"b c": 1, "a": {"d": "e"}}, f"{{a={{d=text:e;}};b c={told(S64, np.int64(1))};}}"),
    ({}, "{}"),
]


def attributes_of(**given):
    out = ffi.ffi_call("attributes", struct((400,), "uint8"))(**given)
    return bytes(np.asarray(out)).rstrip(b"\0").decode()


@pytest.mark.parametrize("value, expected", ATTRIBUTES, ids=[repr(v)[:30] for v, _ in ATTRIBUTES])
def test_an_attribute_arrives_with_its_type_and_bits(library, value, expected):
    if isinstance(value, np.float32) and np.isnan(value):
        expected = told(F32, value) if attributes_of(v=value).endswith("1234;") else expected
    assert attributes_of(v=value) == f"v={expected};"


def test_attributes_arrive_by_name_whatever_the_order(library):
    assert attributes_of(b=True, a="x") == attributes_of(a="x", b=True) == f"a=text:x;b={PRED}:01;"


def test_calls_whose_attributes_differ_in_type_or_bits_are_programs_of_their_own(library):
    values = [1, True, 1.0, np.int32(1), np.float32(1), "1", (1,), (1.0,), 0.0, -0.0, [0.0], [-0.0]]
    texts = [attributes_of(v=v) for v in values]
    assert len({*texts}) == len(texts)
    assert texts == [attributes_of(v=v) for v in values]


def test_calls_with_equal_attributes_share_a_program(library):
    call = ffi.ffi_call("attributes", struct((8,), "uint8"))
    given = [lambda: {"a": np.arange(3), "b": {"c": 1.0}}, lambda: {"b": {"c": 1.0},
                                                                     "a": np.arange(3)}]
    programs = [olympus.make_olympuspr(lambda: call(**make()))() for make in given]
    first, second = [p.eqns[0].params["attributes"] for p in programs]
    assert first == second and hash(first) == hash(second)


BAD_ATTRIBUTES = [
    (1j, TypeError, r"attribute v=1j of type complex given.*pass its parts"),
    (None, TypeError, r"attribute v=None of type NoneType given.*leave out"),
    (object, TypeError, r"attribute v=<class 'object'> of type type given; a bool, an int"),
    (b"ab", TypeError, r"of type bytes given.*numpy.frombuffer"),
    (np.float16(1), TypeError, r"of type float16 and dtype float16 given.*convert it with astype"),
    (onp.bfloat16.dtype.type(1), TypeError, r"dtype bfloat16 given"),
    (np.ones(2, bool), TypeError, r"of type ndarray and dtype bool given"),
    (np.ones(2, complex), TypeError, r"dtype complex128 given"),
    (np.array(["a"]), TypeError, r"dtype <U1 given"),
    (2**63, ValueError, r"attribute v=9223372036854775808 given; an int of 64 bits"),
    ([2**63], ValueError, r"attribute v=\[9223372036854775808\] given; ints of 64 bits"),
    ((), TypeError, r"attribute v=\(\) given: it has no dtype.*NumPy array"),
    ([1, "a"], TypeError, r"attribute v=\[1, 'a'\] given: not all are numbers of one type"),
    ([True, False], TypeError, r"not all are numbers of one type|dtype bool given"),
    ([[1, 2]], TypeError, r"not all are numbers of one type"),
    ({"a": {"b": None}}, TypeError, r"attribute v\.a\.b=None"),
    ({1: 2}, TypeError, r"the attribute name 1 given in v; a str"),
    ({"": 2}, TypeError, r"the attribute name '' given in v"),
    ("\ud800", ValueError, r"attribute v with the text .* no UTF-8 form"),
]


@pytest.mark.parametrize("value, kind, message", BAD_ATTRIBUTES, ids=lambda v: repr(v)[:30])
def test_an_attribute_that_no_handler_can_have_is_named(value, kind, message):
    call = ffi.ffi_call("absent", struct((3,)))
    for way in (lambda f: f(onp.ones(3)), lambda f: olympus.jit(f).lower(onp.ones(3))):
        with pytest.raises(kind, match=f"(?s)ffi_call: .*{message}"):
            way(lambda x: call(x, v=value))


def test_an_array_of_the_program_is_no_attribute():
    call = ffi.ffi_call("absent", struct(()))
    with pytest.raises(TypeError, match="attribute v=JitTracer.*when the program is compiled"):
        olympus.jit(lambda x: call(v=x))(1.0)
    with pytest.raises(TypeError, match="attribute v=Array.*as an operand"):
        call(v=onp.ones(2))


# What a handler refuses when it runs --------------------------------------------------------------

REFUSED = [
    ("add", lambda f, x: f(x, step=0.5), "attribute step, float64, of `add` given; float32 is "
     r"required; pass numpy.float32\(…\)"),
    ("add", lambda f, x: f(x, step="a"), "attribute step, str, of `add` given; a scalar is"),
    ("add", lambda f, x: f(x), "`add` takes 1 attributes; 0 given"),
    ("add", lambda f, x: f(x, stop=np.float32(1)), "`add` takes no attribute 'stop', but one "
     "called 'step'"),
    ("add", lambda f, x: f(x, step=np.float32(1), more=1),
     r"`add` takes 1 attributes; 2 given \(more, step\)"),
    ("add", lambda f, x: f(x, x, step=np.float32(1)), "`add` takes 1 operands; 2 given"),
    ("add", lambda f, x: f(x.astype("int32"), step=np.float32(1)),
     r"operand 0, int32\[2,3\], of `add` .*given; float32 is required"),
    ("rms_norm", lambda f, x: f(x, eps=np.float32(1)),
     "attribute eps, float32, of `rms_norm` given; float64 is required"),
    ("rms_norm", lambda f, x: f(x, eps=[1.0]), "attribute eps, array of float64, of `rms_norm`"),
]


@pytest.mark.parametrize("target, use, message", REFUSED, ids=[row[2] for row in REFUSED])
def test_what_a_handler_does_not_take_is_named_with_the_line(library, target, use, message):
    call = ffi.ffi_call(target, (struct((2, 3)), struct((), "int32")))
    for way in (lambda f: f, olympus.jit):
        with pytest.raises(olympus.errors.OlympusRuntimeError, match=f"(?s)does not take.*{message}"
                           ) as found:
            way(lambda x: use(call, x))(onp.asarray(X))
    assert f"`{target}` is called at tests/test_ffi.py:" in str(found.value)


def test_a_handlers_own_error_is_raised_with_its_words(library):
    call = olympus.jit(ffi.ffi_call("fail", struct(())))
    for _ in range(3):
        with pytest.raises(olympus.errors.OlympusRuntimeError,
                           match="FAILED_PRECONDITION: the handler is not in the mood"):
            call(1.0).block_until_ready()


# Targets ------------------------------------------------------------------------------------------


def test_a_program_whose_target_is_missing_is_lowered_and_not_compiled(library):
    def f(x):
        return ffi.ffi_call("rms_nrom", x)(x)

    lowered = olympus.jit(f).lower(X)
    assert "stablehlo.custom_call @rms_nrom" in lowered.as_text()
    for compile_it in (lowered.compile, lambda: olympus.jit(f)(X)):
        with pytest.raises(ValueError, match="(?s)the target 'rms_nrom' called on cpu; no such "
                           "target is registered, but 'rms_norm' is.*test_ffi.py.*return ffi.ffi_"
                           "call.*register_ffi_target"):
            compile_it()
    with pytest.raises(ValueError, match="the target 'rms_nrom' called on cpu"):
        f(X)


def test_a_target_of_another_platform_or_version_is_named(library):
    capsule = ffi.pycapsule(library.Copy)
    ffi.register_ffi_target("copy_on_gpu", capsule, platform="CUDA")
    with pytest.raises(ValueError, match="'copy_on_gpu' called on cpu; it is registered for gpu "
                                         "only"):
        ffi.ffi_call("copy_on_gpu", X)(X)
    with pytest.raises(ValueError, match="(?s)'copy' called on cpu; it is registered for the typed "
                                         "API.*and called by the earlier API"):
        ffi.ffi_call("copy", X, custom_call_api_version=2)(X)
    with pytest.raises(ValueError, match="registered for the earlier API.*called by the typed"):
        ffi.ffi_call("untyped", X)(X)


def test_a_function_of_the_earlier_api(library):
    call = ffi.ffi_call("untyped", struct((1,)), custom_call_api_version=1)
    assert call(onp.asarray([21.0])).item() == 42


NO_CODE = ctypes.cast(ctypes.create_string_buffer(64), ctypes.c_void_p)
BAD_REGISTRATION = [
    (lambda c: ffi.register_ffi_target("", c), TypeError, "name='' given; a str"),
    (lambda c: ffi.register_ffi_target("a", 3), TypeError, "execute is 3 of type int; a PyCapsule"),
    (lambda c: ffi.register_ffi_target("a", {"run": c}), ValueError, "the key 'run' given; one of"),
    (lambda c: ffi.register_ffi_target("a", {"prepare": c}), ValueError, "'execute' is required"),
    (lambda c: ffi.register_ffi_target("a", {}), ValueError, "nothing given; 'execute'"),
    (lambda c: ffi.register_ffi_target("a", c, platform="abacus"), ValueError,
     "platform='abacus' given; 'cpu', 'gpu'"),
    (lambda c: ffi.register_ffi_target("a", c, api_version=4), ValueError, "api_version=4 given"),
    (lambda c: ffi.register_ffi_target("copy", c), ValueError, "'copy' given, under which another"),
    (lambda c: ffi.register_ffi_target("\ud800", c), ValueError, "no UTF-8 form"),
    # Regression: calls of such targets ended the process; of this version XLA calls none here.
    (lambda c: ffi.register_ffi_target("a", ffi.pycapsule(NO_CODE), api_version=0), ValueError,
     "execute is <capsule .*points to no\\s+function"),
    (lambda c: ffi.register_ffi_type("T", c), TypeError, "a dict with 'type_id'"),
    (lambda c: ffi.register_ffi_type("T", {"type_info": c}), ValueError, "'type_id' is required"),
    (lambda c: ffi.register_ffi_type("T", {"type_id": 1}), TypeError, "type_id is 1 of type int"),
    (lambda c: ffi.register_ffi_type_id("T", c), ValueError, "use olympus.ffi.register_ffi_type"),
    (lambda c: ffi.register_ffi_target_as_batch_partitionable(None), TypeError, "name=None given"),
    (lambda c: ffi.pycapsule("f"), TypeError, "'f' of type str given; a function"),
    (lambda c: ffi.pycapsule(0), TypeError, "0 of type int given"),
    (lambda c: ffi.pycapsule(None), TypeError, "None of type NoneType given"),
]


@pytest.mark.parametrize("register, kind, message", BAD_REGISTRATION)
def test_bad_registrations_are_refused_before_xla_sees_them(library, register, kind, message):
    with pytest.raises(kind, match=message):
        register(ffi.pycapsule(library.Add))


def test_the_same_function_may_be_registered_again(library):
    ffi.register_ffi_target("copy", ffi.pycapsule(library.Copy))
    ffi.register_ffi_target("copy", {"execute": ffi.pycapsule(library.Copy)}, platform="Host")


def test_a_capsule_of_any_pointer_to_a_function(library):
    address = ctypes.cast(library.Copy, ctypes.c_void_p)
    for pointer in (library.Copy, address, address.value):
        ffi.register_ffi_target("copy", ffi.pycapsule(pointer))


def test_a_state_lives_with_the_compiled_program(library):
    def count(start):
        call = ffi.ffi_call("counter", struct((), "int32"), has_side_effect=True)
        return olympus.jit(lambda: call(start=start))

    five, nine = count(5), count(9)
    assert [int(f()) for f in (five, nine, five, five, nine)] == [5, 9, 6, 7, 10]


def test_the_headers_are_where_a_compiler_finds_them():
    with open(f"{ffi.include_dir()}/xla/ffi/api/ffi.h", encoding="utf-8") as header:
        assert "XLA_FFI" in header.read()


# Arguments of ffi_call ----------------------------------------------------------------------------

ONE, TWO = struct((3,)), [struct((3,)), struct((2, 3))]
ITSELF = {}
ITSELF["again"] = ITSELF
BAD_CALLS = [
    (lambda: ffi.ffi_call(3, ONE), TypeError, "target_name=3 given; a str"),
    (lambda: ffi.ffi_call("t", None), ValueError, "All elements of result_shape_dtypes must have.*"
     "Got None at position 0"),
    (lambda: ffi.ffi_call("t", (ONE, ())), ValueError, r"Got \(\) at position 1"),
    (lambda: ffi.ffi_call("t", ONE, vmap_method="fast"), ValueError,
     "vmap_method must be one of the allowed methods"),
    (lambda: ffi.ffi_call("t", ONE, custom_call_api_version=5), ValueError,
     "custom_call_api_version=5 given; 4"),
    (lambda: ffi.ffi_call("t", ONE, legacy_backend_config="a"), ValueError,
     "The use of the legacy_backend_config parameter"),
    (lambda: ffi.ffi_call("t", ONE, custom_call_api_version=2)(a=1), ValueError,
     "The use of ffi_call attributes requires"),
    (lambda: ffi.ffi_call("t", ONE)([1.0]), TypeError, r"argument 0 is \[1.0\] of type list"),
    (lambda: ffi.ffi_call("t", ONE)(1.0, "a"), TypeError, "argument 1 is 'a' of type str"),
    (lambda: ffi.ffi_call("t", ONE, input_layouts=[None])(X, X), ValueError,
     r"The number of inputs \(2\) must equal the number of input layouts \(1\)"),
    (lambda: ffi.ffi_call("t", ONE, input_layouts=[(0, 0)])(X), ValueError,
     r"the layout \(0, 0\) of input 0, float32\[2,3\], given; a permutation of its 2 axes"),
    (lambda: ffi.ffi_call("t", ONE, input_layouts=[(1, 0, 2)])(X), ValueError, "a permutation"),
    (lambda: ffi.ffi_call("t", ONE, input_layouts=["ab"])(X), TypeError, "a Layout, a sequence"),
    (lambda: ffi.ffi_call("t", ONE, input_layouts=[Layout((0, 1), ((8, 128),))])(X), ValueError,
     "does not support layouts with tiling"),
    (lambda: ffi.ffi_call("t", TWO, output_layouts=[None])(X), ValueError,
     r"The number of outputs \(2\) must equal"),
    (lambda: ffi.ffi_call("t", ONE, input_output_aliases={1: 0})(X), ValueError,
     r"'1:0' with input index 1 outside the range \[0, 1\)"),
    (lambda: ffi.ffi_call("t", ONE, input_output_aliases=3), TypeError,
     "input_output_aliases=3 given;\\s+a dict"),
    (lambda: ffi.ffi_call("t", ONE, input_output_aliases={0: 0, "b": 1}), TypeError, "a dict from"),
    (lambda: ffi.ffi_call("t", ONE, input_layouts=3), TypeError, "input_layouts=3 given; a list"),
    (lambda: ffi.ffi_call("t", ONE, output_layouts=[X]), TypeError, "a Layout, a sequence"),
    (lambda: ffi.ffi_call("t\ud800", ONE), ValueError, "no UTF-8 form"),
    (lambda: ffi.ffi_call("t", types.SimpleNamespace(shape=3, dtype="int32")), TypeError,
     "result 0 of shape 3 given; a tuple"),
    (lambda: ffi.ffi_call("t", ONE)(v=ITSELF), ValueError, "attributes v given, one of which has"),
    (lambda: ffi.ffi_call("t", ONE, input_output_aliases={-1: 0})(X), ValueError, "outside"),
    (lambda: ffi.ffi_call("t", ONE, input_output_aliases={0: 1})(X), ValueError,
     r"with output index 1 outside the range \[0, 1\)"),
    (lambda: ffi.ffi_call("t", ONE, input_output_aliases={0: 0})(X), ValueError,
     r"an input with abstract value float32\[2,3\] and an output with a different abstract value "
     r"float32\[3\]"),
    (lambda: ffi.ffi_call("t", struct((2, 3), "int32"), input_output_aliases={0: 0})(X), ValueError,
     "with a different abstract value"),
    (lambda: ffi.ffi_call("t", X, input_output_aliases={0: 0, 1: 0})(X, X), ValueError,
     "'1:0' and another one to output 0; one input"),
    (lambda: ffi.ffi_call("t", X, input_output_aliases={0: 0}, input_layouts=[(1, 0)])(X),
     ValueError, r"input with layout \(1, 0\) and an output with a different layout \(0, 1\)"),
]


@pytest.mark.parametrize("call, kind, message", BAD_CALLS)
def test_bad_calls_are_refused_before_xla_sees_them(call, kind, message):
    with pytest.raises(kind, match=f"ffi_call: .*{message}"):
        call()


def test_results_are_as_they_are_promised(library):
    for kind in (list, tuple):
        outs = ffi.ffi_call("count", kind([struct((2,)), struct((), "int32")]))()
        assert type(outs) is kind and [o.shape for o in outs] == [(2,), ()]
    assert ffi.ffi_call("count", ())() == ()
    assert ffi.ffi_call("count", struct((2,), weak_type=True))().weak_type


def test_64_bit_results_are_promised_without_x64(library):
    with olympus.enable_x64(False):
        call = ffi.ffi_call("copy", struct((2,), "int64"))
        assert "tensor<2xi64>" in olympus.jit(lambda x: call(x)).lower(onp.ones(4)).as_text()
        out = call(onp.asarray([1, 0, 2, 0], "int32"))
        assert out.dtype == "int64" and out.tolist() == [1, 2] and (out + 1).dtype == "int32"


DTYPES = ["bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16",
          "float32", "complex64", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "int2", "uint2",
          "float4_e2m1fn"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (5,), (0,), (2, 3), (700,)], ids=str)
def test_arrays_of_every_dtype_go_through_a_handler(library, dtype, shape):
    x = onp.arange(max(int(np.prod(shape)), 1))[:int(np.prod(shape))].reshape(shape) % 2
    x = x.astype(dtype)
    for way in (lambda f: f, olympus.jit):
        y = way(ffi.ffi_call("copy", x))(x)
        assert y.dtype == x.dtype and np.array_equal(np.asarray(y), np.asarray(x))


def copying(ctx, out, x):
    np.asarray(out)[...] = np.asarray(x)


def custom(call):
    """A function whose derivative is the call of its cotangent."""
    f = olympus.custom_vjp(call)
    f.defvjp(lambda x: (call(x), None), lambda _, ct: (call(ct),))
    return lambda x: olympus.vjp(f, x)[1](x)[0]


# How a call meets others: each takes it, and gives a function of stacked operands.
NESTED = {
    "vmap of vmap": lambda f: olympus.vmap(olympus.vmap(f), in_axes=1, out_axes=1),
    "scan of vmap": lambda f: lambda x: lax.scan(lambda c, x: (c, olympus.vmap(f)(x)), 0, x)[1],
    "cond in vmap": lambda f: lambda x: olympus.vmap(lambda p, x: lax.cond(
        p, olympus.vmap(f), lambda x: x, x))(np.array([True, False]), x),
    "derivative": lambda f: olympus.vmap(olympus.vmap(custom(f))),
}


@pytest.mark.parametrize("make", [
    lambda x, m: ffi.ffi_call("copy", x, vmap_method=m),
    lambda x, m: buffers.buffer_callback(copying, x, vmap_method=m)], ids=["C++", "Python"])
@pytest.mark.parametrize("dtype, shape, method, nest", [
    ("bool", (2,), "expand_dims", "vmap of vmap"),
    ("int4", (3, 5), "broadcast_all", "vmap of vmap"),
    ("float8_e5m2", (0,), "expand_dims", "vmap of vmap"),
    ("int8", (), "sequential", "scan of vmap"),
    ("bfloat16", (3,), "sequential_unrolled", "scan of vmap"),
    ("complex64", (2, 3), "expand_dims", "cond in vmap"),
    ("uint4", (), "sequential", "cond in vmap"),
    ("float32", (5,), "broadcast_all", "derivative"), ("bfloat16", (), "sequential", "derivative"),
], ids=str)
def test_arrays_of_every_dtype_go_through_nested_transformations(library, make, dtype, shape,
                                                                 method, nest):
    x = (np.arange(6 * max(int(np.prod(shape)), 1)) % 2)[:6 * int(np.prod(shape))]
    x = onp.asarray(x.reshape(2, 3, *shape)).astype(dtype)
    found = olympus.jit(NESTED[nest](make(x[0, 0], method)))(x)
    assert found.dtype == x.dtype and np.array_equal(np.asarray(found), np.asarray(x))


def test_python_numbers_and_numpy_arrays_are_operands(library):
    call = ffi.ffi_call("sum", struct(()))
    assert call(1.0, np.float32(2)).item() == olympus.jit(lambda: call(1.0, 2.0))().item() == 21
    assert olympus.jit(call)(1.0, 2.0).item() == 21


def test_keys_reach_a_handler_as_their_data(library):
    keys = random.split(random.key(3))
    data = ffi.ffi_call("copy", struct((2, 2), "uint32"))(keys)
    assert np.array_equal(data, random.key_data(keys))


def test_tokens_are_operands_and_results():
    def f(x):
        token, y = ffi.ffi_call("absent", (core.abstract_token, x))(lax.create_token(), x)
        return ffi.ffi_call("absent", y)(token)

    text = olympus.jit(f).lower(1.0).as_text()
    types = r"\(!stablehlo.token, tensor<f32>\)"
    assert re.search(f"custom_call @absent\\(.*: {types} -> {types}", text)


# Layouts and aliases ------------------------------------------------------------------------------

LAYOUTS = [(None, (0, 1, 2)), ((0, 1, 2), (0, 1, 2)), ([2, 0, 1], (2, 0, 1)),
           ((0, 2, 1), (0, 2, 1)), (Layout((1, 2, 0)), (1, 2, 0))]


@pytest.mark.parametrize("layout, order", LAYOUTS, ids=str)
def test_operands_and_results_lie_as_their_layouts_say(library, layout, order):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    lies = x.transpose(order).ravel()
    flat = ffi.ffi_call("copy", struct((24,)), input_layouts=[layout])
    assert np.array_equal(flat(x), lies)
    # A transposition before the call is no reason for another order.
    assert np.array_equal(olympus.jit(lambda x: flat(x.transpose(2, 0, 1)))(x.transpose(1, 2, 0)),
                          lies)
    back = ffi.ffi_call("copy", struct((2, 3, 4)), output_layouts=layout)
    assert np.array_equal(back(lies), x)
    # Under vmap the new axis is the slowest.
    many = np.stack([x, -x], 1)
    mapped = ffi.ffi_call("copy", struct((24,)), input_layouts=[layout],
                          vmap_method="broadcast_all")
    assert np.array_equal(olympus.vmap(mapped, in_axes=1)(many), [lies, -lies])


def test_a_result_takes_its_operands_buffer(library):
    call = ffi.ffi_call("add", [struct((3,)), struct((), "int32")], input_output_aliases={0: 0})
    x = onp.arange(3.0)
    y, shared = call(x, step=np.float32(1))
    assert shared == 1 and y.tolist() == [1, 2, 3] and x.tolist() == [0, 1, 2]

    def loop(x):
        return lax.fori_loop(0, 5, lambda i, x: call(x, step=np.float32(2))[0], x)

    assert olympus.jit(loop)(x).tolist() == [10, 11, 12]
    donated = olympus.jit(lambda x: call(x, step=np.float32(1)), donate_argnums=0)
    assert donated(onp.arange(3.0))[1] == 1


def test_an_aliased_operand_that_is_not_mapped_has_all_elements(library):
    call = ffi.ffi_call("sum", struct((2,)), input_output_aliases={1: 0}, vmap_method="expand_dims")
    a, b = np.arange(6, dtype=np.float32).reshape(3, 2), np.ones(2, np.float32)
    assert np.array_equal(olympus.vmap(call, in_axes=(0, None))(a, b), a + 10)


# vmap ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method, count", [("sequential", 3), ("sequential_unrolled", 3),
                                           ("expand_dims", 1), ("broadcast_all", 1)])
@pytest.mark.parametrize("axes", [(0, 0), (1, None), (None, 0)], ids=str)
def test_vmap_calls_as_often_as_its_method_says(library, method, count, axes):
    a, b = np.arange(9, dtype=np.float32).reshape(3, 3), np.eye(3, dtype=np.float32)
    call = ffi.ffi_call("sum", struct((3,)), vmap_method=method)
    rows = [[x[i] if d == 0 else x[:, i] if d == 1 else x[0] for i in range(3)]
            for x, d in zip((a, b), axes, strict=True)]
    given = [x if d is not None else x[0] for x, d in zip((a, b), axes, strict=True)]
    for way in (lambda f: f, olympus.jit):
        before = library.Calls()
        out = way(olympus.vmap(call, in_axes=axes))(*given).block_until_ready()
        assert library.Calls() - before == count
        assert np.array_equal(out, [p + 10 * q for p, q in zip(*rows, strict=True)])
    twice = olympus.vmap(olympus.vmap(call, in_axes=axes), in_axes=(0, None))
    if axes[0] is not None:
        stacked = np.stack([given[0], -given[0]])
        assert np.array_equal(twice(stacked, given[1]), np.stack(
            [olympus.vmap(call, in_axes=axes)(x, given[1]) for x in stacked]))


def test_vmap_without_a_method_says_which_there_are():
    with pytest.raises(ValueError, match="(?s)vmap is only supported for the ffi_call primitive "
                                         "when vmap_method is one of sequential, .*broadcast_all"):
        olympus.vmap(ffi.ffi_call("absent", struct(())))(onp.ones(3))


@pytest.mark.parametrize("method", ["expand_dims", "broadcast_all", "sequential",
                                    "sequential_unrolled"])
def test_a_kernel_of_lapack_is_called_as_users_call_theirs(method):
    x = np.random.default_rng(0).normal(size=(4, 3, 5, 2)).astype(np.float32)
    found = olympus.vmap(functools.partial(geqrf, vmap_method=method))(x)
    for i in range(4):
        r = np.triu(np.asarray(found[0][i])[:, :2])
        np.testing.assert_allclose(r.transpose(0, 2, 1) @ r, x[i].transpose(0, 2, 1) @ x[i],
                                   rtol=2e-4, atol=1e-4)


# Side effects -------------------------------------------------------------------------------------


def test_a_call_whose_results_nothing_reads_is_made_if_it_has_side_effects(library):
    quiet, loud = [ffi.ffi_call("count", (), has_side_effect=s) for s in (False, True)]

    def run(f):
        before = library.Calls()
        olympus.block_until_ready(olympus.jit(f)(1.0))
        olympus.effects_barrier()
        return library.Calls() - before

    assert run(lambda x: (quiet(x), x)[1]) == 0
    assert run(lambda x: (loud(x), x)[1]) == 1
    assert run(lambda x: lax.scan(lambda c, _: (loud(c), (c, None))[1], x, length=4)[0]) == 4
    assert run(lambda x: lax.cond(x > 0, lambda: (loud(x), x)[1], lambda: x)) == 1
    assert run(lambda x: lax.cond(x < 0, lambda: (loud(x), x)[1], lambda: x)) == 0
    assert [repr(e) for e in olympus.make_olympuspr(loud)(1.0).effects] == ["FFI"]


# Other processes ----------------------------------------------------------------------------------

ELSEWHERE = """
import pickle, sys
import numpy as np
import olympus
from olympus import export, ffi
from olympus.experimental.serialize_executable import deserialize_and_load
sys.path.append(sys.argv[2])
import ffi_library

folder, X = sys.argv[1], np.ones((2, 3), np.float32)
olympus.config.update("olympus_compilation_cache_dir", folder + "/cache")

def double(x):
    return ffi.ffi_call("copy", olympus.ShapeDtypeStruct(x.shape, x.dtype))(x) * 2

def sharing():
    yield "jit", lambda: olympus.jit(double)(X)
    yield "persist", lambda: olympus.jit(double, persist=True)(X)
    yield "serialized", lambda: deserialize_and_load(
        *pickle.load(open(folder + "/serialized", "rb")))(X)
    for name in ("exported", "symbolic"):
        artifact = export.deserialize(open(f"{folder}/{name}", "rb").read())
        yield name, lambda: artifact.call(X)

for turn in ("without", "with"):
    if turn == "with":
        ffi_library.load()
    for name, run in sharing():
        try:
            print(turn, name, np.asarray(run()).sum())
        except ValueError as error:
            print(turn, name, "lacks", "target 'copy'" in str(error))
"""


@pytest.mark.slow
def test_exports_and_kept_programs_say_that_they_need_a_target(library, tmp_path, monkeypatch):
    import pickle
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (tmp_path / "elsewhere.py").write_text(ELSEWHERE)
    call = olympus.jit(lambda x: ffi.ffi_call("copy", struct(x.shape))(x) * 2)
    with pytest.raises(ValueError, match=r"(?s)Whoever calls the export has to register 'copy'"):
        export.export(call)(X)
    allowed = [export.DisabledSafetyCheck.custom_call("copy")]
    rows, = export.symbolic_shape("n")
    for name, given in (("exported", X), ("symbolic", struct((rows, 3)))):
        artifact = export.export(call, disabled_checks=allowed)(given)
        (tmp_path / name).write_bytes(artifact.serialize())
    (tmp_path / "serialized").write_bytes(pickle.dumps(serialize(call.lower(X).compile())))
    # The second process finds what the first one has compiled, with a target and without.
    for _ in range(2):
        text = subprocess.run(
            [sys.executable, tmp_path / "elsewhere.py", tmp_path, ffi_library.ROOT / "tests"],
            capture_output=True, text=True, check=True, timeout=300).stdout
        names = ("jit", "persist", "serialized", "exported", "symbolic")
        assert text.splitlines() == [*[f"without {name} lacks True" for name in names],
                                     *[f"with {name} 12.0" for name in names]]


def test_a_serialized_program_runs_where_its_target_is(library):
    compiled = olympus.jit(ffi.ffi_call("copy", X)).lower(X).compile()
    assert np.array_equal(deserialize_and_load(*serialize(compiled))(X), X)


# Lowering rules -----------------------------------------------------------------------------------


def lowered(rule, out=lambda x: x, x=X, several=False, **params):
    p = Primitive("foreign")
    p.multiple_results = several
    p.def_abstract_eval(lambda x, **params: out(x))
    mlir.register_lowering(p, rule)
    return olympus.jit(lambda x: p.bind(x, **params)).lower(x).as_text()


@pytest.mark.parametrize("layout, expected", [
    ((0, 1, 2), "0, 1, 2"), (None, "2, 1, 0"), (Layout((0, 1, 2)), "2, 1, 0")], ids=str)
def test_a_lowering_rule_takes_layouts_from_the_innermost_axis(layout, expected):
    text = lowered(ffi.ffi_lowering("absent", operand_layouts=[layout], result_layouts=[layout]),
                   x=np.ones((3, 3, 3), np.float32))
    for name in ("operand", "result"):
        assert f"{name}_layouts = [dense<[{expected}]> : tensor<3xindex>]" in text


def test_a_lowering_rule_says_all_that_a_custom_call_has():
    rule = ffi.ffi_lowering(
        "absent", has_side_effect=True, operand_output_aliases={0: 0}, backend_config={
            "mode": mlir.ir_attribute(np.int32(2))},
        extra_attributes={"mhlo.frontend_attributes": mlir.ir_attribute({"num_batch_dims": "1"})})
    text = lowered(rule, scale=0.5)
    for part in ("has_side_effect = true", "operand_index = 0", "mode = 2 : i32",
                 "scale = 5.000000e-01 : f64", 'num_batch_dims = "1"', "api_version = 4"):
        assert part in text, text
    assert "layouts" not in lowered(ffi.ffi_lowering("absent", skip_ffi_layout_processing=True))
    text = lowered(ffi.ffi_lowering("absent", api_version=2, backend_config="abc"))
    assert 'backend_config = "abc"' in text and "api_version = 2" in text


def test_a_lowering_rule_of_a_call_without_results():
    emit, found = ffi.build_ffi_lowering_function("absent", has_side_effect=True), []

    def rule(ctx, x):
        found.append(emit(ctx, x).name)
        return []

    p = Primitive("foreign")
    p.multiple_results = True
    p.def_effectful_abstract_eval(lambda x: ([], {olympus.debug.DebugEffect()}))
    mlir.register_lowering(p, rule)
    assert "custom_call @absent" in olympus.jit(p.bind).lower(X).as_text()
    assert found == ["stablehlo.custom_call"]


@pytest.mark.parametrize("make, kind, message", [
    (lambda: ffi.ffi_lowering("t", sideeffect=True), TypeError, "arguments sideeffect given"),
    (lambda: ffi.ffi_lowering("t", backend_config="a"), ValueError, "must be a dictionary"),
    (lambda: lowered(ffi.ffi_lowering("t", api_version=2), a=1), ValueError, "attributes requires"),
    (lambda: lowered(ffi.ffi_lowering("t"), a=None), TypeError, "attribute a=None"),
    (lambda: lowered(ffi.ffi_lowering("t", operand_layouts=[])), ValueError, "number of operands"),
    (lambda: lowered(ffi.ffi_lowering("t", operand_output_aliases={0: 3})), ValueError,
     "output index 3"),
])
def test_bad_lowering_rules_are_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_a_primitive_with_such_a_rule_runs():
    p = Primitive("potrf")
    p.multiple_results = True
    p.def_abstract_eval(lambda x, **params: [x, core.ShapedArray((), "int32")])
    mlir.register_lowering(p, ffi.ffi_lowering("lapack_spotrf_ffi", operand_output_aliases={0: 0}))
    y, info = olympus.jit(lambda x: p.bind(x, uplo=np.uint8(ord("U"))))(4 * onp.eye(3))
    assert info == 0 and np.array_equal(y, 2 * np.eye(3))


# Several devices ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(library, request):      # the library, so that it is built once
    return eight_devices.outcomes(ffi_cases, request)


@pytest.mark.slow
@pytest.mark.parametrize("case", ffi_cases.CASES)
def test_on_eight_devices(results, case):
    assert not results[case], results[case]


# buffer_callback ----------------------------------------------------------------------------------


def twice(ctx, out, x):
    assert ctx.stage == buffers.ExecutionStage.EXECUTE
    assert isinstance(ctx, buffers.ExecutionContext)
    assert all(isinstance(b, buffers.Buffer) for b in (out, x)) and out.writeable
    np.asarray(out)[...] = 2 * np.asarray(x)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16", "complex64"])
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3)], ids=str)
def test_a_buffer_callback_writes_its_results_in_place(dtype, shape):
    def same(ctx, out, x):
        assert (x.shape, x.dtype, x.ndim) == (shape, np.asarray(given).dtype, len(shape))
        np.asarray(out)[...] = np.asarray(x)

    given = onp.ones(shape, dtype)
    call = buffers.buffer_callback(same, given)
    for way in (lambda f: f, olympus.jit):
        assert np.array_equal(np.asarray(way(call)(given)), np.asarray(given))


@pytest.mark.parametrize("dtype, wide", [("int2", "int8"), ("uint4", "uint8"),
                                         ("float4_e2m1fn", "float8_e4m3fn")])
def test_elements_of_less_than_a_byte_are_not_written_beyond_a_buffers_end(dtype, wide):
    def same(ctx, out, x):
        assert x.dtype == out.dtype == wide
        np.asarray(out)[...] = np.asarray(x)

    given = (onp.arange(3 * 700).reshape(3, 700) % 2).astype(dtype)
    call = buffers.buffer_callback(same, given[0], vmap_method="expand_dims")
    for way in (lambda f: f, olympus.jit):
        out = way(olympus.vmap(call))(given)
        assert out.dtype == given.dtype and np.array_equal(np.asarray(out), np.asarray(given))


def test_a_buffer_callback_takes_and_gives_trees():
    def both(ctx, out, a, *, b):
        np.asarray(out["sum"])[...] = np.asarray(a[0]) + np.asarray(b)
        np.asarray(out["none"][0])[...] = 7

    promised = {"sum": struct((3,)), "none": (struct((), "int32"),)}
    call = buffers.buffer_callback(both, promised)
    for way in (lambda f: f, olympus.jit):
        out = way(call)((onp.arange(3.0),), b=onp.ones(3))
        assert out["sum"].tolist() == [1, 2, 3] and out["none"][0] == 7


def test_a_buffer_callback_under_loops_and_maps():
    call = buffers.buffer_callback(twice, struct((3,)), vmap_method="broadcast_all")
    x = onp.arange(3.0)
    assert olympus.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: call(x), x))(x).tolist() == [
        0, 8, 16]
    for method in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all"):
        call = buffers.buffer_callback(twice, struct((3,)), vmap_method=method)
        assert np.array_equal(olympus.jit(olympus.vmap(call, 1))(X.T), 2 * X)


def test_a_buffer_callback_that_adds_in_place():
    def step(ctx, out, x):
        assert np.asarray(out).ctypes.data == np.asarray(x).ctypes.data
        np.asarray(out)[...] += 1

    x = onp.zeros(3)
    assert buffers.buffer_callback(step, x, input_output_aliases={0: 0})(x).tolist() == [1, 1, 1]
    assert x.tolist() == [0, 0, 0]


def test_what_a_buffer_callback_raises_arrives_as_itself():
    def fails(ctx, out, x):
        raise KeyError("not here")

    def returns(ctx, out, x):
        return 3

    for way in (lambda f: f, olympus.jit):
        with pytest.raises(KeyError, match="not here"):
            way(buffers.buffer_callback(fails, X))(X)
        with pytest.raises(ValueError, match="returns returned 3; .*must not return any values"):
            way(buffers.buffer_callback(returns, X))(X)


@pytest.mark.parametrize("call, kind, message", [
    (lambda: buffers.buffer_callback(3, X), TypeError, "callback"),
    (lambda: buffers.buffer_callback(twice, (X, 3)), ValueError, "Got 3 at position 1"),
    (lambda: buffers.buffer_callback(twice, X, vmap_method="fast"), ValueError, "allowed methods"),
    (lambda: buffers.buffer_callback(twice, X, input_output_aliases={1: 0})(X), ValueError,
     "input index 1 outside"),
    (lambda: buffers.buffer_callback(twice, X)("a"), TypeError, "'a' of type str"),
    (lambda: olympus.grad(lambda x: buffers.buffer_callback(twice, x)(x).sum())(X), ValueError,
     "Buffer callbacks do not support JVP"),
    (lambda: olympus.vmap(buffers.buffer_callback(twice, struct((3,))))(X), ValueError,
     "vmap_method is one of"),
])
def test_bad_buffer_callbacks_are_refused(call, kind, message):
    with pytest.raises(kind, match=f"buffer_callback: .*{message}"):
        call()


def test_a_buffer_callback_with_side_effects_is_called_though_nothing_reads_it():
    seen = []
    quiet, loud = [buffers.buffer_callback(lambda ctx, out, x: seen.append(s), (),
                                           has_side_effect=s) for s in (False, True)]
    olympus.jit(lambda x: (quiet(x), loud(x), x)[2])(X).block_until_ready()
    olympus.effects_barrier()
    deadline = time.monotonic() + 30
    while not seen and time.monotonic() < deadline:
        olympus.effects_barrier()
    assert len(seen) == 1


def test_a_buffer_callback_is_kept_by_nobody():
    import gc
    import weakref

    def use():
        def same(ctx, out, x):
            np.asarray(out)[...] = np.asarray(x)

        call = buffers.buffer_callback(same, X)
        call(X), olympus.jit(call)(X)
        return weakref.ref(same)

    reference = use()
    olympus.effects_barrier()
    gc.collect()
    assert reference() is None
