"""Arrays to and from other libraries: DLPack, NumPy's protocols, buffers, pickles."""

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import dlpack

EXCHANGED = ["bool", "int8", "uint16", "int32", "float16", "float32", "complex64"]


def aligned(shape, dtype="float32", order="C"):
    """0, 1, 2 … in an array whose memory a device can share."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    out = memory[start:start + size].view(dtype).reshape(shape, order=order)
    out[...] = np.arange(out.size).reshape(shape)
    return out


class Exported:
    """An array of a library of which nothing is known but DLPack's two methods."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **kwargs):
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


LAYOUTS = {
    "row_major": lambda: aligned((32, 16)), "column_major": lambda: aligned((32, 16), order="F"),
    "every_other": lambda: aligned((32, 16))[::2, ::4], "backwards": lambda: aligned((8, 16))[::-1],
    "permuted": lambda: aligned((4, 8, 16)).transpose(1, 2, 0), "unaligned": lambda: aligned(9)[1:],
    "broadcast": lambda: np.broadcast_to(aligned(16), (3, 16)), "empty": lambda: aligned((0, 3)),
    "scalar": lambda: aligned(()), "one": lambda: aligned((3, 5))[:1, 2:3],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_from_dlpack_reads_any_layout_as_programs_will(layout):
    x = LAYOUTS[layout]()
    y = dlpack.from_dlpack(Exported(x))
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(olympus.jit(lambda v: v.T + 1)(y), x.T + 1)
    np.testing.assert_array_equal(np.from_dlpack(y), x)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_from_dlpack_of_what_numpy_cannot_import(layout):
    """A capsule of bfloat16 in any layout: NumPy's capsule, told to be of that dtype."""
    x = LAYOUTS[layout]().astype(onp.bfloat16)
    if layout == "column_major":
        x = np.asfortranarray(x)

    class Retyped(Exported):
        def __dlpack__(self, **kwargs):
            if kwargs:
                raise BufferError("no dtype of NumPy's")
            return retyped(self._array.view(np.uint16), 4)

    y = onp.from_dlpack(Retyped(x))
    assert y.dtype == "bfloat16"
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(olympus.jit(lambda v: v.T + 1)(y), x.T + 1)


def retyped(x, code):
    """A capsule of an array, with another of DLPack's type codes."""
    from olympus._src.base.lib import dlpack as seam
    capsule = (x if x.flags.writeable else x.copy()).__dlpack__()
    seam._Tensor.from_address(seam._get_pointer(capsule, b"dltensor")).code = code
    return capsule


def test_from_dlpack_shares_or_copies_as_asked():
    x = aligned((32, 16))
    shared, copied = onp.from_dlpack(x, copy=False), onp.from_dlpack(x, copy=True)
    x[0, 0] = 7
    assert shared.unsafe_buffer_pointer() == x.ctypes.data
    assert copied[0, 0] == 0 and np.asarray(shared)[0, 0] == 7
    olympus.jit(lambda v: v * 0, donate_argnums=0)(shared).block_until_ready()
    assert x[0, 0] == 7 and x[1, 0] == 16      # donated memory is not written if it is NumPy's
    for given, says in ((aligned((8, 8), order="F"), "row-major"), (aligned(9)[1:], "multiples"),
                        (np.arange(4.0), "x64")):
        with pytest.raises(ValueError, match=says):
            onp.from_dlpack(given, copy=False)
    assert onp.from_dlpack(np.arange(4.0)).dtype == "float32"
    with olympus.enable_x64(True):
        assert onp.from_dlpack(np.arange(4.0)).dtype == "float64"


def test_from_dlpack_of_an_array_and_devices():
    x = onp.arange(3.0)
    device, other = olympus.devices()[0], olympus.devices()[-1]
    assert onp.from_dlpack(x) is x and onp.from_dlpack(x, copy=False) is x
    assert onp.from_dlpack(x, copy=True).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert onp.from_dlpack(np.ones(3), device=other).devices() == {other}
    assert onp.from_dlpack(Exported(x), device=device).devices() == {device}
    assert onp.from_dlpack(x, device=x.sharding).devices() == {device}
    with pytest.raises(TypeError, match="__dlpack__"):
        onp.from_dlpack([1, 2])
    with pytest.raises(TypeError, match="__dlpack__"):
        olympus.jit(onp.from_dlpack)(x)
    with pytest.raises(TypeError, match="kind 8"):
        onp.from_dlpack(type("Metal", (), {"__dlpack__": None,
                                           "__dlpack_device__": lambda self: (8, 0)})())


@pytest.mark.parametrize("dtype", EXCHANGED)
def test_dlpack_gives_numpy_read_only_memory(dtype):
    x = onp.arange(6).reshape(2, 3).astype(dtype)
    out = np.from_dlpack(x)
    assert out.dtype == dtype and not out.flags.writeable
    assert out.ctypes.data == x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(out, np.arange(6).reshape(2, 3).astype(dtype))
    assert dlpack.is_supported_dtype(dtype) and not dlpack.is_supported_dtype("int4")


def test_dlpack_of_every_version_copy_and_device():
    x = onp.arange(3.0)
    assert x.__dlpack_device__() == (1, 0)
    for version in (None, (0, 8), (1, 0), (2, 0)):
        for copy in (None, True, False):
            for device in (None, (1, 0)):
                name = repr(x.__dlpack__(max_version=version, copy=copy, dl_device=device))
                assert ("versioned" in name) == (version is not None and version[0] > 0)
    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="int4"):
        x.astype("int4").__dlpack__()
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=1)
    x.delete()
    for use in (x.__dlpack__, x.platform, x.is_ready, x.clone, lambda: x.format):
        with pytest.raises(RuntimeError, match="deleted"):      # not the end of the process
            use()


def test_the_module_says_what_it_can_do():
    info = onp.__array_namespace_info__()
    assert onp.__array_api_version__ == "2024.12" and onp.ones(1).__array_namespace__() is onp
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True,
                                   "max dimensions": 64}
    assert info.default_device() in info.devices()
    for x64 in (False, True):
        with olympus.enable_x64(x64):
            made = {"real floating": onp.zeros(1).dtype, "integral": onp.arange(1).dtype,
                    "complex floating": onp.asarray(1j).dtype,
                    "indexing": onp.argmax(onp.zeros(2)).dtype}
            assert info.default_dtypes() == made
            assert ("int64" in info.dtypes(kind="signed integer")) == x64
            assert info.dtypes()["bool"] == "bool" and "bfloat16" not in info.dtypes()
            assert len(info.dtypes(kind=("bool", "unsigned integer"))) == 4 + x64
    with pytest.raises(ValueError, match="2020"):
        onp.ones(1).__array_namespace__(api_version="2020.01")
