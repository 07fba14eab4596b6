"""Fourier transforms as in `olympus.numpy.fft`, and cosine and sine transforms."""

from .._src.base.util import publish_bounded as _publish
from .._src.numpy.fft import (
    fft, fft2, fftfreq, fftn, fftshift, hfft, ifft, ifft2, ifftn, ifftshift, ihfft, irfft, irfft2,
    irfftn, rfft, rfft2, rfftfreq, rfftn
)
from .._src.scipy.fft import (
    dct, dctn, dst, dstn, idct, idctn, idst, idstn, next_fast_len, prev_fast_len
)

__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "idct",
    "idctn", "idst", "idstn", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2",
    "irfftn", "next_fast_len", "prev_fast_len", "rfft", "rfft2", "rfftfreq", "rfftn"
]

_publish(__name__)
