"""Rows for Fourier transforms: lax's primitive and NumPy's functions. Parts stand for numbers."""

from functools import partial

import numpy as np

from olympus import lax, numpy as onp
from olympus.numpy import fft

from . import Op, reals

V = reals(5)
W = reals(6, seed=1)
CUBE = reals(2, 3, 4)
FIVE = reals(2, 3, 2, 3, 4)


def parts(x):
    """Real and imaginary part: derivatives are taken of real numbers."""
    return x.real, x.imag


def spectrum(fun, xp):
    """`fun` of the complex numbers that two real arrays are the parts of."""
    def run(x, y):
        z = fun(x + xp.asarray(1j, "c16" if x.dtype == np.float64 else "c8") * y)
        return parts(z) if z.dtype.kind == "c" else z
    return run


def raw(name, kind, lengths, *args, **params):
    """A row of `lax.fft` against the NumPy function `name`, over trailing axes."""
    axes = range(-len(lengths), 0)
    ours, theirs = partial(lax.fft, fft_type=kind, fft_lengths=lengths), partial(
        getattr(np.fft, name), s=lengths, axes=axes)
    label = f"fft-{kind}-{'x'.join(map(str, lengths))}"
    if kind == "rfft":
        return Op(label, lambda x: parts(theirs(x)), lambda x: parts(ours(x)), args, **params)
    return Op(label, spectrum(theirs, np), spectrum(ours, onp), args, **params)


def both(name, *args, **options):
    """A row of a function of `numpy.fft`: of one real array, or of the parts of a complex one."""
    ours, theirs = (partial(getattr(m, name), **options) for m in (fft, np.fft))
    label = "-".join([f"numpy_{name}", *(f"{k}={v}" for k, v in options.items())])
    if len(args) == 1:
        return Op(label, lambda x: parts(theirs(x)), lambda x: parts(ours(x)), args)
    return Op(label, spectrum(theirs, np), spectrum(ours, onp), args)


TWO = (CUBE, reals(2, 3, 4, seed=1))
ALL = (
    raw("fftn", "fft", (5,), V, reals(5, seed=1)),
    raw("fftn", "fft", (3, 4), *TWO),
    raw("ifftn", "ifft", (2, 3, 4), *TWO),
    raw("rfftn", "rfft", (5,), V),
    raw("rfftn", "rfft", (6,), W),
    raw("rfftn", "rfft", (3, 4), CUBE),
    raw("rfftn", "rfft", (2, 3, 4), CUBE),
    raw("irfftn", "irfft", (7,), *TWO),
    raw("irfftn", "irfft", (6,), *TWO),
    raw("irfftn", "irfft", (3, 6), *TWO),
    raw("irfftn", "irfft", (2, 3, 7), *TWO),
    both("fft", *TWO, n=3, axis=0, norm="ortho"),
    both("ifft", *TWO, n=6, axis=1, norm="forward"),
    both("rfft", CUBE, n=5, axis=1, norm="forward"),
    both("irfft", *TWO, n=5, axis=1, norm="ortho"),
    both("hfft", *TWO, n=4, axis=0, norm="forward"),
    both("ihfft", CUBE, n=3, axis=2, norm="ortho"),
    both("fft2", *TWO, s=(3, 2), axes=(2, 0), norm="forward"),
    both("ifft2", *TWO, s=(2, 5), axes=(0, 1), norm="ortho"),
    both("rfft2", CUBE, s=(3, 4), axes=(1, 0), norm="ortho"),
    both("irfft2", *TWO, s=(3, 5), axes=(2, 1), norm="forward"),
    both("fftn", *TWO, s=(4, 2), axes=(0, -1), norm="ortho"),
    both("fftn", FIVE, FIVE[::-1]),
    both("ifftn", FIVE, FIVE[::-1], axes=(4, 0, 2, 1)),
    both("rfftn", FIVE, norm="ortho"),
    both("irfftn", FIVE, FIVE[::-1], axes=(3, 1, 0, 4), norm="forward"),
    Op("numpy_fftshift", lambda x: np.fft.fftshift(x, (0, 2)),
       lambda x: fft.fftshift(x, (0, 2)), (CUBE,), "fi"),
    Op("numpy_ifftshift", np.fft.ifftshift, fft.ifftshift, (CUBE,), "fi"),
    Op("numpy_fftfreq", lambda d: np.fft.fftfreq(5, d).astype(d.dtype),
       lambda d: fft.fftfreq(5, d), (np.array(0.7),)),
    Op("numpy_rfftfreq", lambda d: np.fft.rfftfreq(6, d).astype(d.dtype),
       lambda d: fft.rfftfreq(6, d), (np.array(0.7),)),
)
