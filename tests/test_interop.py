"""Arrays to and from other libraries: DLPack, NumPy's protocols, buffers, pickles."""

import array
import copy
import operator
import pickle

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import dlpack
from olympus._src.base import lib
from olympus._src.base.lib import dlpack as seam

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
    capsule = (x if x.flags.writeable else x.copy()).__dlpack__()
    seam._Tensor.from_address(seam._get_pointer(capsule, b"dltensor")).code = code
    return capsule


def test_a_tensor_with_a_pending_sign_is_not_read_negated():
    class Negated(Exported):        # as torch.tensor([1 + 2j]).conj().imag is
        def is_neg(self):
            return True

    for read in (onp.from_dlpack, onp.asarray):
        with pytest.raises(BufferError, match=r"pending sign .* pass x\.resolve_neg"):
            read(Negated(np.arange(3.0, dtype=np.float32)))


def test_tensors_of_torch_have_their_signs():
    torch = pytest.importorskip("torch")
    t = torch.tensor([1 + 0j, 2 + 6j]).conj().imag
    with pytest.raises(BufferError, match="resolve_neg"):
        onp.asarray(t)
    np.testing.assert_array_equal(onp.asarray(t.resolve_neg()), np.float32([0, -6]))


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
        for copied in (None, True, False):
            for device in (None, (1, 0)):
                name = repr(x.__dlpack__(max_version=version, copy=copied, dl_device=device))
                assert ("versioned" in name) == (version is not None and version[0] > 0)
    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="int4"):
        x.astype("int4").__dlpack__()
    with pytest.raises(ValueError, match="stream"):
        x.__dlpack__(stream=1)


def test_what_cpp_does_not_ask_of_a_deleted_array_is_asked_before(monkeypatch):
    """C++ would not survive these calls for a deleted array, so the array here is not deleted."""
    x, gone, asked = onp.arange(3.0), onp.arange(3.0), []
    gone.delete()
    with pytest.raises(RuntimeError, match="clone: Array has been deleted"):
        seam.check_alive("clone", gone)
    for module in (lib, seam):
        monkeypatch.setattr(module, "check_alive", lambda what, array: asked.append(what))
    for use in (x.__dlpack__, x.platform, x.is_ready, x.clone, lambda: x.format):
        use()
    assert asked == ["to_dlpack", "platform", "is_ready", "clone", "format"]


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


# NumPy's protocols -------------------------------------------------------------------------------

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Interface:
    """A library's array of `__array_interface__` alone, as of PIL's images."""

    __array_interface__ = X.__array_interface__


class Converts:
    """An array of `__array__` alone."""

    def __array__(self, dtype=None, copy=None):
        return X


@pytest.mark.parametrize("made", [
    Interface, Converts, lambda: Exported(X), lambda: memoryview(X), lambda: Exported(onp.array(X)),
    lambda: array.array("f", X[0]), lambda: bytearray(b"olympus"), lambda: [Converts(), X]],
    ids=["interface", "array", "dlpack", "memoryview", "ours", "array.array", "bytearray", "list"])
def test_asarray_reads_what_others_export(made):
    given = made()
    out = onp.asarray(given)
    expected = np.asarray(given._array if isinstance(given, Exported) else given)
    assert type(out) is type(onp.ones(1)) and out.dtype == expected.dtype
    np.testing.assert_array_equal(out, expected)


def test_asarray_without_a_copy_shares_or_refuses():
    x = aligned((4, 4))
    shared = onp.asarray(x, copy=False)
    assert shared.unsafe_buffer_pointer() == x.ctypes.data
    assert onp.asarray(shared, copy=False) is shared
    assert onp.asarray(x).unsafe_buffer_pointer() != x.ctypes.data
    for given, dtype in ((x.T, None), (x, "int32"), (shared, "int32"), (x.astype("int64"), None)):
        with pytest.raises(ValueError, match="copy=False"):
            onp.asarray(given, dtype, copy=False)


def test_numpy_reads_the_memory_itself():
    x = onp.asarray(X)
    read = np.asarray(x)
    assert read.ctypes.data == x.unsafe_buffer_pointer() == np.asarray(x, copy=False).ctypes.data
    assert not read.flags.writeable and memoryview(x).readonly and memoryview(x).shape == (2, 3)
    assert np.array(x).flags.writeable and np.asarray(x, "float64").dtype == "float64"
    assert bytes(x) == X.tobytes()
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, "int32", copy=False)


@pytest.mark.parametrize("op", [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.matmul, operator.eq, operator.lt, operator.ge], ids=lambda f: f.__name__)
def test_numpy_operands_on_either_side(op):
    x = X[:, :2] + 1
    for left, right in ((x, onp.asarray(x)), (onp.asarray(x), x)):
        out = op(left, right)
        assert type(out) is type(onp.ones(1))
        np.testing.assert_allclose(out, op(x, x), rtol=1e-6)
    if op is not operator.matmul:
        for scalar in (np.float32(2), np.int8(2), np.asarray(2.0)):
            assert type(op(scalar, onp.asarray(x))) is type(op(onp.asarray(x), scalar)) is type(
                onp.ones(1))
            np.testing.assert_allclose(op(scalar, onp.asarray(x)), op(scalar, x), rtol=1e-6)


def test_numpy_arrays_take_ours_as_values_indices_and_operands_in_place():
    x, n, kept = onp.asarray(X), X.copy(), X.copy()
    n[0], n[1, onp.asarray(2)] = x[1], onp.asarray(7.0)
    np.testing.assert_array_equal(n, [[3, 4, 5], [3, 4, 7]])
    np.testing.assert_array_equal(np.arange(10)[onp.asarray([1, 2])], [1, 2])
    np.testing.assert_array_equal(X[x > 2], X[X > 2])
    assert [1, 2, 3][onp.asarray(1)] == 2 and list(range(onp.asarray(2))) == [0, 1]
    m = kept
    m += x      # gives a new array, as every operator with one of ours; NumPy's is as it was
    np.testing.assert_array_equal(m, 2 * X)
    np.testing.assert_array_equal(kept, X)
    np.testing.assert_array_equal(np.add(X, x, out=kept), 2 * X)
    np.testing.assert_array_equal(np.stack([x, X]), [X, X])
    assert np.linalg.norm(x) == np.linalg.norm(X) and np.shape(x) == (2, 3)


def test_numpys_testing_takes_ours():
    x = onp.asarray(X)
    for check in (np.testing.assert_allclose, np.testing.assert_array_equal,
                  np.testing.assert_almost_equal, np.testing.assert_array_almost_equal):
        check(x, X)
        with pytest.raises(AssertionError):
            check(x, X + 1)
    np.testing.assert_array_less(x, X + 1)
    np.testing.assert_equal({"a": [x]}, {"a": [X]})


@pytest.mark.parametrize("dtype", ["bool", "float32", "bfloat16", "int4", "complex64"])
def test_pickles_and_copies(dtype):
    x = onp.asarray(X).astype(dtype)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps({"x": x}, protocol))["x"]
        assert (back.dtype, back.weak_type) == (x.dtype, False)
        np.testing.assert_array_equal(back, x)
    for back in (copy.copy(x), copy.deepcopy([x])[0]):
        assert back.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
        np.testing.assert_array_equal(back, x)
    assert pickle.loads(pickle.dumps(onp.asarray(2.0))).weak_type


# Other libraries, where they are installed (extra `interop`) --------------------------------------

def test_torch_tensors_go_both_ways():
    torch = pytest.importorskip("torch")
    for t in (torch.arange(6.0).reshape(2, 3).T, torch.ones(3, dtype=torch.bool),
              torch.arange(64, dtype=torch.bfloat16).reshape(8, 8).T[::2]):
        for convert in (onp.asarray, onp.from_dlpack):
            out = convert(t)
            np.testing.assert_array_equal(np.asarray(out, "float32"), t.float().numpy())
            back = torch.from_dlpack(out)
            assert back.dtype == t.dtype and torch.equal(back, t)
    with pytest.raises(BufferError, match="detach"):
        onp.from_dlpack(torch.ones(2, requires_grad=True))


def test_pandas_takes_arrays_and_gives_them():
    pandas = pytest.importorskip("pandas")
    x = onp.asarray(X)
    frame = pandas.DataFrame({"a": x[0], "b": onp.arange(3)})
    assert frame.dtypes.tolist() == ["float32", "int32"]
    np.testing.assert_array_equal(pandas.DataFrame(x), X)
    np.testing.assert_array_equal(onp.asarray(frame["a"]), X[0])
    np.testing.assert_array_equal(onp.asarray(frame), np.asarray(frame))
    np.testing.assert_array_equal(frame["a"] + x[1], X[0] + X[1])


def test_matplotlib_draws_arrays():
    figure = pytest.importorskip("matplotlib.figure")
    axes = figure.Figure().subplots()
    x = onp.asarray(X)
    np.testing.assert_array_equal(axes.plot(x[0], x[1])[0].get_ydata(), X[1])
    assert axes.imshow(x).get_array().shape == (2, 3)
    assert axes.hist(x.ravel())[0].sum() == 6 and len(axes.bar(onp.arange(3), x[0])) == 3
    axes.axhline(x[0, 1])


def test_images_become_arrays():
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    np.testing.assert_array_equal(onp.asarray(image.fromarray(pixels)), pixels)


class OtherTensor(Converts):
    """A number of a library that has dtypes of its own, as torch's tensors."""

    dtype = "other.float32"


def test_a_list_of_another_librarys_numbers():
    """Regression: its dtype was not understood, as if it had been given."""
    found = onp.array([OtherTensor(), OtherTensor()])
    np.testing.assert_array_equal(found, np.stack([np.asarray(Converts())] * 2))


class WithoutNumpy(Exported):
    """As a tensor of bfloat16: NumPy's conversion refuses it, DLPack does not."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Got unsupported ScalarType BFloat16")


@pytest.mark.parametrize("kind", [Exported, WithoutNumpy])
def test_a_list_of_arrays_that_only_dlpack_hands_over(kind):
    found = onp.array([[kind(X), X], (X, kind(X))])
    np.testing.assert_array_equal(found, np.array([[X, X], [X, X]]))
    half = onp.asarray(X, onp.bfloat16)
    assert onp.array([kind(half), kind(half)]).dtype == onp.bfloat16
    with pytest.raises(ValueError, match="equal shapes"):
        onp.array([kind(X), kind(X[0])])


def test_arrays_of_others_whose_aval_is_a_method_and_whose_dlpack_says_no():
    class Metres:
        shape, dtype = (2,), np.dtype("float16")

        def aval(self):
            return "another type"

        def __dlpack__(self, **options):
            raise NotImplementedError

        __dlpack_device__ = __dlpack__

        def __array__(self, dtype=None, copy=None):
            return np.ones(2, dtype or "float16")

    x = Metres()
    assert onp.asarray(x).dtype == onp.result_type(x, 1) == "float16"
    assert (onp.shape(x), onp.ndim(x), onp.size(x)) == ((2,), 1, 2)
