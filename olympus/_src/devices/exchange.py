"""Arrays given to other libraries: `__dlpack__` and `__dlpack_device__`.

What lies in the host's memory and has a dtype of NumPy's is exported by NumPy, whose capsules say
that the memory is read-only; jaxlib's cannot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import lib
from ..base.typing import Array

CPU, CUDA, PINNED, ROCM = 1, 2, 3, 10       # DLPack's numbers of kinds of devices
_DEVICE_TYPES = {"cpu": CPU, "cuda": CUDA, "rocm": ROCM}

_NUMPY_KNOWS_VERSIONS = "max_version" in (np.ndarray.__dlpack__.__doc__ or "")     # from 2.1 on


def dlpack_device(self: Array, /) -> tuple[int, int]:
    """DLPack's kind of device, 1 for the host, and the device's number."""
    sharding = self._sharding
    if sharding.num_devices != 1:
        raise BufferError(f"__dlpack_device__: an array on {sharding.num_devices} devices given; "
                          "one device is required; export the arrays of x.addressable_shards.")
    device: Any = next(iter(self.devices()))
    kind = _DEVICE_TYPES.get(device.client.platform)
    if kind is None:
        raise BufferError(f"__dlpack_device__: an array on {device} given; DLPack's devices are "
                          "CPUs and GPUs.")
    if kind != CPU and sharding._memory_kind in ("pinned_host", "unpinned_host"):
        kind = PINNED
    return kind, device.local_hardware_id


def dlpack(self: Array, /, *, stream: Any = None, max_version: tuple[int, int] | None = None,
           dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> object:
    """A DLPack capsule of the array, for `from_dlpack` of this or another library.

    Args:
      stream: for GPUs, the number of the stream that will read it; None on the host.
      max_version: the newest DLPack version that the caller reads. From 1.0 on, the capsule says
        that the memory is read-only if it is the array's own.
      dl_device: where it is wanted: where the array is, or (1, 0), the host.
      copy: whether to copy; None copies where it must.

    BufferError for an array on several devices, a dtype or device that DLPack does not have, and
    a copy that `copy=False` forbids.
    """
    here = dlpack_device(self)
    wanted = here if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
    if wanted != here and wanted[0] != CPU:
        raise BufferError(f"__dlpack__: dl_device {dl_device} given for an array on {here}; that "
                          "device, or (1, 0), the host, is required; move it with x.to_device.")
    if wanted[0] != CPU:
        return lib.to_dlpack(lib.copied(self) if copy else self, stream)
    if stream is not None:
        raise ValueError(f"__dlpack__: stream {stream!r} given for an array on the host; it has "
                         "no streams; None is required.")
    if here[0] != CPU and copy is False:
        raise BufferError("__dlpack__: copy=False given, and the host for an array on a GPU; that "
                          "needs a copy; leave copy unset.")
    # bfloat16 and its like have no export of NumPy's, and without a version a capsule cannot say
    # "read-only": NumPy refuses, jaxlib exports.
    versioned = _NUMPY_KNOWS_VERSIONS and max_version is not None and max_version[0] >= 1
    if self.aval.dtype.isbuiltin == 1 and (versioned or copy or here[0] != CPU):
        value = lib.to_numpy(self)
        return (value.__dlpack__(max_version=max_version, copy=copy) if versioned
                else value.copy().__dlpack__())
    if here[0] != CPU:
        raise BufferError(f"__dlpack__: {self.aval} on a GPU and the host given; no such capsule "
                          "can be made; move it with x.to_device first.")
    return lib.to_dlpack(lib.copied(self) if copy else self)
