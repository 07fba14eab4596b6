"""Fourier transforms: what rows cannot say. Dtypes, sizes without elements, messages, repeats."""

import numpy as np
import pytest

import olympus
from olympus import lax, numpy as onp
from olympus.numpy import fft

X = np.arange(6.0).astype("f4")
Z = (X + 1j).astype("c8")


@pytest.mark.parametrize(("kind", "given"), [
    ("fft", X), ("fft", np.arange(6)), ("fft", X > 2), ("ifft", X.astype("f2")),
    (lax.FftType.FFT, onp.asarray(X, "bfloat16")), ("FFT", Z)])
def test_lax_fft_of_any_dtype_is_complex64(kind, given):
    out = lax.fft(given, kind, 6)
    name = kind.lower() if isinstance(kind, str) else "fft"
    assert out.dtype == np.complex64
    np.testing.assert_allclose(out, getattr(np.fft, name)(np.asarray(given).astype("c8")), 1e-5,
                               1e-5)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint4", "float16", "bfloat16", "float8_e5m2",
                                   "float32"])
def test_numpy_functions_take_every_dtype(dtype):
    given = onp.asarray([1, 0, 1, 1], dtype)
    for name in ("fft", "rfft", "ifft", "ihfft", "irfft", "hfft"):
        out = getattr(fft, name)(given)
        assert out.dtype == (np.float32 if name in ("irfft", "hfft") else np.complex64)
        np.testing.assert_allclose(out, getattr(np.fft, name)([1, 0, 1, 1]), 1e-5, 1e-5)


def test_double_precision():
    with olympus.enable_x64(True):
        for dtype, wide in (("f8", "c16"), ("i8", "c16"), ("c16", "c16"), ("f4", "c8")):
            out = fft.fft(np.arange(7).astype(dtype))
            assert out.dtype == wide
            np.testing.assert_allclose(out, np.fft.fft(np.arange(7)), 1e-5 if wide == "c8" else
                                       1e-12)


@pytest.mark.parametrize(("kind", "shape", "length", "out"), [
    ("fft", (0, 4), 4, (0, 4)), ("rfft", (0, 4), 4, (0, 3)), ("irfft", (0, 3), 5, (0, 5)),
    ("fft", (2, 0), 0, (2, 0)), ("rfft", (2, 0), 0, (2, 1)), ("irfft", (2, 1), 0, (2, 0))])
def test_no_elements(kind, shape, length, out):
    given = np.zeros(shape, "f4" if kind == "rfft" else "c8")
    found, back = olympus.vjp(lambda x: lax.fft(x, kind, length), given)
    assert found.shape == out
    assert not found.any()
    (ct,) = back(found)
    assert ct.shape == shape
    assert not ct.any()


def test_no_axes():
    assert lax.fft(X, "rfft", ()) is X
    assert fft.fftn(X, axes=()).dtype == np.complex64
    np.testing.assert_array_equal(fft.rfftn(X, axes=()), X)


def test_irfft_ignores_what_must_be_zero():
    spectrum = np.fft.rfft(X) + np.array([3j, 0, 0, -2j])
    np.testing.assert_allclose(fft.irfft(spectrum.astype("c8")), X, 1e-5, 1e-5)


def test_primitive_prints_its_parameters():
    text = str(olympus.make_olympuspr(lambda x: lax.fft(x, "rfft", 6))(X))
    assert "fft_lengths=(6,)" in text
    assert "fft_type=" in text


def test_frequencies():
    for n in range(7):
        for name in ("fftfreq", "rfftfreq"):
            if n:
                np.testing.assert_allclose(getattr(fft, name)(n, 0.3), getattr(np.fft, name)(
                    n, 0.3), 1e-6)
    assert fft.fftfreq(4, dtype="float16").dtype == np.float16
    assert fft.rfftfreq(4, dtype="complex64").dtype == np.complex64
    device = olympus.devices()[0]
    assert fft.fftfreq(4, device=device).committed
    np.testing.assert_allclose(olympus.jit(lambda d: fft.fftfreq(4, d))(0.5), [0, 0.5, -1, -0.5])


def test_shift_and_its_inverse():
    x = np.arange(30).reshape(5, 6)
    for axes in (None, 0, (1,), (0, -1)):
        np.testing.assert_array_equal(fft.fftshift(x, axes), np.fft.fftshift(x, axes))
        np.testing.assert_array_equal(fft.ifftshift(fft.fftshift(x, axes), axes), x)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: lax.fft(X, "dft", 6), ValueError, "'dft' given; a lax.FftType or one of the names"),
    (lambda: lax.fft(X, 2, 6), TypeError, "fft_type 2 given"),
    (lambda: lax.fft(X, "fft", 4), ValueError, r"requires trailing axes \(4,\)"),
    (lambda: lax.fft(Z, "irfft", 6), ValueError, r"requires trailing axes \(4,\)"),
    (lambda: lax.fft(X, "fft", (6, 6)), ValueError, "as many axes as lengths"),
    (lambda: lax.fft(Z.reshape(1, 1, 1, 6), "fft", (1, 1, 1, 6)), ValueError, "one to 3 axes"),
    (lambda: lax.fft(Z, "rfft", 6), TypeError, "RFFT takes real numbers"),
    (lambda: lax.fft(X.astype("f2"), "rfft", 6), TypeError, "RFFT takes float32 and float64"),
    (lambda: lax.fft(np.arange(6), "rfft", 6), TypeError, "RFFT takes float32 and float64"),
    (lambda: lax.fft_p.bind(X, fft_type=lax.FftType.FFT, fft_lengths=(6,)), TypeError,
     "FFT takes complex64"),
    (lambda: fft.rfft(Z), TypeError, "rfft: complex64.* real numbers are required"),
    (lambda: fft.fft(X, norm="unit"), ValueError, "norm 'unit' given"),
    (lambda: fft.fft(X, 0), ValueError, "at least one element"),
    (lambda: fft.irfft(X[:1]), ValueError, "at least one element"),
    (lambda: fft.fft(X, axis=(0,)), ValueError, "one axis is required"),
    (lambda: fft.fft(X, axis=1), ValueError, "axis 1 is out of bounds"),
    (lambda: fft.fft([1, 2]), TypeError, "is of type list"),
    (lambda: fft.fftn(X[None], axes=(0, -2)), ValueError, "different axes are required"),
    (lambda: fft.fftn(X, s=(1, 2)), ValueError, "at most one size per axis"),
    (lambda: fft.fftn(X, s=(1, 2), axes=(0,)), ValueError, "one size per axis"),
    (lambda: fft.fft2(X[None], axes=(0,)), ValueError, "two axes are required"),
    (lambda: fft.fftfreq(4, d=X), ValueError, "a scalar is required"),
    (lambda: fft.fftfreq(4.5), TypeError, "4.5"),
    (lambda: fft.fftfreq(4, dtype=int), TypeError, "floating or complex"),
])
def test_messages(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("n", [10, 100, 4000, 44100])
def test_frequencies_of_whole_numbers_are_whole(n):
    """Divided by n, then by the rounded 1/n, they were 49.999996 in place of 50."""
    whole = np.arange(n // 2 + 1, dtype=np.float32)
    np.testing.assert_array_equal(onp.fft.rfftfreq(n, 1 / n), whole)
    np.testing.assert_array_equal(olympus.jit(lambda: onp.fft.rfftfreq(n, 1 / n))(), whole)
    np.testing.assert_allclose(onp.fft.fftfreq(n, 0.01), np.fft.fftfreq(n, 0.01), rtol=2e-7)
