"""Operators and methods of arrays and tracers against NumPy's."""

import copy
import inspect
import operator
import pickle
from collections.abc import Hashable

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import enable_x64, lax, nn, random
from olympus._src.numpy.array_methods import METHODS, OPERATORS, PROPERTIES
from olympus.core import Tracer

X = np.array([[1.5, -2.0, 3.0], [0.25, 4.0, -1.0]], np.float32)
K = np.array([[5, 2, 3], [7, 1, 4]], np.int32)

BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
          operator.mod, operator.eq, operator.ne, operator.lt, operator.le, operator.gt,
          operator.ge]
INTEGER = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("op", BINARY, ids=lambda f: f.__name__)
def test_binary_operators(op):
    for x, y in ((X, X[:1]), (X, 2), (2.0, X), (K, 3), (K, K)):
        expected = op(x, y)
        left = onp.asarray(x) if isinstance(x, np.ndarray) else x
        right = onp.asarray(y) if isinstance(y, np.ndarray) else y
        np.testing.assert_allclose(op(left, right), expected, rtol=1e-6)
        np.testing.assert_allclose(olympus.jit(op)(left, right), expected, rtol=1e-6)


@pytest.mark.parametrize("op", INTEGER, ids=lambda f: f.__name__)
def test_integer_operators(op):
    np.testing.assert_array_equal(op(onp.asarray(K), K[:1]), op(K, K[:1]))
    np.testing.assert_array_equal(op(onp.asarray(K), 1), op(K, 1))
    np.testing.assert_array_equal(op(1, onp.asarray(K)), op(1, K))


def test_unary_operators_and_power():
    x = onp.asarray(X)
    for f in (operator.neg, operator.pos, abs, round, lambda v: v ** 2, lambda v: 2 ** v,
              lambda v: divmod(v, 2)[1]):
        expected = f(X) if f is not round else np.round(X)
        np.testing.assert_allclose(f(x), expected, rtol=1e-6)
    assert round(x).dtype == olympus.jit(round)(x).dtype == "int32"     # as Python's own
    assert round(x, 1).dtype == "float32" and round(onp.asarray(K)).dtype == "int32"
    np.testing.assert_array_equal(~onp.asarray(K), ~K)


def test_methods_and_properties():
    x = onp.asarray(X)
    np.testing.assert_array_equal(x.T, X.T)
    np.testing.assert_array_equal(x.mT, X.T)
    np.testing.assert_array_equal(x.reshape(3, 2), X.reshape(3, 2))
    np.testing.assert_array_equal(x.reshape((3, -1)), X.reshape(3, -1))
    np.testing.assert_array_equal(x.transpose(1, 0), X.T)
    np.testing.assert_array_equal(x.astype(int), X.astype(int))
    np.testing.assert_array_equal(x.flatten(), X.flatten())
    np.testing.assert_array_equal(x.clip(0, 1), X.clip(0, 1))
    np.testing.assert_array_equal(x.sort(), np.sort(X))
    np.testing.assert_array_equal(x.argsort(0), X.argsort(0))
    np.testing.assert_array_equal(x.view(onp.int32), X.view(np.int32))
    np.testing.assert_array_equal(x.compress(np.array([True, False]), axis=0), X[:1])
    np.testing.assert_allclose(x.sum(0), X.sum(0))
    assert bool((x > 3).any()) and int(x.argmax()) == 4
    assert 4.0 in x and 9.0 not in x
    np.testing.assert_array_equal(copy.deepcopy(x), X)


@pytest.mark.parametrize("bits", ["uint8", "uint16", "float16", "int32"])
def test_view_of_another_width(bits):
    wide = np.arange(8, dtype=np.float32)
    narrow = onp.asarray(wide).view(bits)
    np.testing.assert_array_equal(narrow, wide.view(bits))
    np.testing.assert_array_equal(narrow.view("float32"), wide)


def test_iteration():
    x = onp.asarray(X)
    np.testing.assert_array_equal(np.stack(list(x)), X)
    np.testing.assert_array_equal(np.stack(list(reversed(x))), X[::-1])
    a, b = olympus.jit(lambda x: tuple(x))(x)
    np.testing.assert_array_equal(b, X[1])
    with pytest.raises(TypeError, match="0-d"):
        iter(onp.asarray(1.0))


def test_tracers_know_sizes_and_grads_values():
    def fun(x):
        assert (x.itemsize, x.nbytes, f"{x}"[-14:]) == (4, 24, "(float32[2,3])")
        return x.sum()

    olympus.jit(fun)(X)

    def known(x):
        still = lax.stop_gradient(x)
        assert still.item() == 1.5 and still.tolist() == 1.5 and f"{still:.2f}" == "1.50"
        assert still.tobytes() == np.float32(1.5).tobytes()
        return x * x

    assert float(olympus.grad(known)(1.5)) == 3.0


@pytest.mark.parametrize(("kind", "to", "offset"), [
    ("i4", "i2", 2), ("i4", "u1", 3), ("i4", "i4", 0), ("c8", "f4", 4), ("c8", "c8", 0),
    ("f4", "?", 1), ("i4", "i2", 3), ("i4", "i2", -1), ("i2", "i4", 0), ("?", "u1", 0)])
def test_getfield_reads_bytes(kind, to, offset):
    values = (np.arange(-3, 3).reshape(2, 3) * (1 if kind == "?" else 1000)).astype(kind)
    for x in (values, values[0, 0]):
        try:
            expected = np.asarray(x).getfield(to, offset)
        except ValueError:
            with pytest.raises(ValueError, match="getfield: .* bytes of an element"):
                onp.asarray(x).getfield(to, offset)
        else:
            found = onp.asarray(x).getfield(to, offset)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "float32",
                                   "complex64"])
def test_byteswap(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    for swap in (lambda x: x.byteswap(), olympus.jit(lambda x: x.byteswap())):
        assert np.asarray(swap(onp.asarray(x))).tobytes() == x.byteswap().tobytes()


def test_flat_reads_and_iterates():
    x = onp.asarray(X)
    assert x.flat[4] == X.flat[4] and len(x.flat) == X.size
    np.testing.assert_array_equal([float(v) for v in x.flat], list(X.flat))


def test_format_names_layout_and_sharding():
    x = onp.asarray(X)
    assert x.format.sharding == x.sharding and x.format.layout.major_to_minor == (0, 1)


CREATED = {
    "zeros": lambda d: onp.zeros(3, d), "ones": lambda d: onp.ones(3, d),
    "full_like": lambda d: onp.full_like(onp.ones(2), 3, d), "array": lambda d: onp.array([1], d),
    "arange": lambda d: onp.arange(3, dtype=d), "eye": lambda d: onp.eye(2, dtype=d),
    "linspace": lambda d: onp.linspace(0, 1, 3, dtype=d), "sum": lambda d: onp.ones(3).sum(dtype=d),
    "mean": lambda d: onp.ones(3).mean(dtype=d), "cumsum": lambda d: onp.ones(3).cumsum(dtype=d),
    "astype": lambda d: onp.ones(3).astype(d),
    "normal": lambda d: random.normal(random.key(0), (2,), d),
    "convert_element_type": lambda d: lax.convert_element_type(1, d),
    "full": lambda d: lax.full((2,), 1, d), "iota": lambda d: lax.iota(d, 3),
    "one_hot": lambda d: nn.one_hot(onp.arange(2), 2, dtype=d),
}
@pytest.mark.parametrize("name", CREATED)
def test_narrowing_what_was_asked_for_is_said(name, clear_caches):
    with pytest.warns(UserWarning, match=f"^{name}: Explicitly requested dtype float64 is not "
                      "available.*truncated to dtype float32") as caught:
        assert CREATED[name]("float64").dtype == "float32"
    assert [w.filename for w in caught] == [__file__]
    for quiet in (float, "float32"):
        assert CREATED[name](quiet).dtype == "float32"
    with enable_x64():
        assert CREATED[name]("float64").dtype == "float64"


def test_arrays_lose_imaginary_parts_with_a_warning():
    values = np.array([1 + 2j], np.complex64)
    for drop in (lambda x: onp.array(x, "float32"), lambda x: onp.full(1, x, "float32"),
                 lambda x: x.astype("float32"), lambda x: onp.full_like(onp.ones(1), x)):
        with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary") as caught:
            assert np.array_equal(drop(onp.asarray(values)), [1])
        assert [w.filename for w in caught] == [__file__]
    assert onp.array(1j, bool)


def test_narrowing_of_given_data_is_not_said():
    assert onp.asarray(np.ones(3)).dtype == onp.sin(np.float64(1)).dtype == "float32"


class Foreign:
    """A type with operators of its own."""

    __hash__ = None

    def __radd__(self, other):
        return "radd"

    def __eq__(self, other):
        return "eq"


def test_foreign_operands():
    x = onp.asarray(X)
    assert x + Foreign() == "radd"
    assert (x == Foreign()) == "eq"
    assert (x == None) is False and (x != None) is True  # noqa: E711
    for y in ([1, 2, 3], "a", None):
        with pytest.raises(TypeError, match="unsupported operand"):
            x + y


class Plain:
    """Stands for an array, and has nothing else of one."""

    def __init__(self, value):
        self.value = value

    def __olympus_array__(self):
        return self.value


class Forwarding(Plain):
    """Like flax's Variable: attributes that it lacks it asks of the array."""

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "value"), name)


STANDING = {
    "sin": lambda v, x: onp.sin(v(x)), "add": lambda v, x: onp.add(v(x), v(x)),
    "number": lambda v, x: onp.multiply(v(x), 2.0), "var": lambda v, x: onp.var(v(x)),
    "matmul": lambda v, x: onp.ones((2, 2)) @ v(x), "reflected": lambda v, x: x - v(x),
    "stack": lambda v, x: onp.stack([v(x), x]), "list": lambda v, x: onp.array([v(x), x]),
    "where": lambda v, x: onp.where(x > 1, v(x), 0.0), "write": lambda v, x: x.at[0].set(v(x[1])),
    "reduce": lambda v, x: onp.sum(v(x), axis=0), "asarray": lambda v, x: onp.asarray(v(x)),
    "rollaxis": lambda v, x: onp.rollaxis(v(x), 1), "block": lambda v, x: onp.block([[v(x)], [x]]),
    "hsplit": lambda v, x: onp.hsplit(v(x), 2)[1], "dx": lambda v, x: onp.trapezoid(x, dx=v(x[1:])),
    "complex": lambda v, x: x + onp.iscomplexobj(v(x * 1j)) + 2 * onp.isrealobj(v(x * 1j)),
    "pad": lambda v, x: onp.pad(x, 1, constant_values=v(x[1, 1])),
}


@pytest.mark.parametrize("kind", [Plain, Forwarding])
@pytest.mark.parametrize("name", STANDING)
def test_values_that_stand_for_arrays(name, kind):
    x = onp.arange(1., 5.).reshape(2, 2)

    def standing(x):
        return STANDING[name](kind, x)

    def itself(x):
        return STANDING[name](lambda value: value, x)

    for found in (standing(x), olympus.jit(standing)(x), olympus.vmap(standing)(x[None])[0]):
        np.testing.assert_allclose(found, itself(x), rtol=1e-6)
    slopes = [olympus.grad(lambda x, f=f: f(x).sum())(x) for f in (standing, itself)]
    np.testing.assert_allclose(*slopes, rtol=1e-6)


def test_values_that_stand_for_indices():
    x, places = onp.arange(6.), onp.array([4, 1])
    for kind in (Plain, Forwarding):
        np.testing.assert_array_equal(x[kind(places)], [4, 1])
        np.testing.assert_array_equal(olympus.jit(lambda i: x[kind(i)])(places), [4, 1])
        np.testing.assert_array_equal(onp.take(x, kind(places)), [4, 1])
        np.testing.assert_array_equal(olympus.jit(lambda i: x.at[kind(i)].set(9))(places),
                                      [0, 9, 2, 3, 9, 5])


def test_arrays_are_not_hashable():
    x = onp.ones(2)
    for value in (x, random.key(0), olympus.jit(lambda x: isinstance(x, Hashable))):
        assert not isinstance(value, Hashable) or not value(x)
    assert x.__array_namespace__() is onp


def test_tables_are_documented_and_on_both_classes():
    for table in (OPERATORS, METHODS, PROPERTIES):
        for name, value in table.items():
            assert value.__doc__, name
            assert hasattr(olympus.core.Tracer if hasattr(olympus, "core") else type(
                onp.zeros(1)), name)


@pytest.mark.parametrize("name", sorted({*METHODS, *PROPERTIES}))
def test_no_tracer_hides_a_method_behind_a_field_of_its_own(name):
    """`x.var()` under jit read the tracer's variable."""
    expected = inspect.getattr_static(Tracer, name)
    kinds = [Tracer]
    for kind in kinds:
        kinds += kind.__subclasses__()
        assert inspect.getattr_static(kind, name) is expected, kind


def test_attributes_of_memory_are_numpys():
    for x in (X, K, np.zeros((2, 0, 3), np.float32), np.array(1.5, np.float32), np.ones(3, bool)):
        y = onp.asarray(x)
        assert (y.strides, y.base) == (x.strides, None)
        assert y.flags.c_contiguous and not y.flags.writeable
        assert bytes(y.data) == bytes(x.data)
        assert pickle.loads(y.dumps()).tolist() == x.tolist()
    assert olympus.jit(lambda x: x.strides[0] + x[0, 0])(X) == X.strides[0] + X[0, 0]


def test_files_written_by_arrays(tmp_path):
    onp.asarray(K).tofile(tmp_path / "k.bin")
    assert np.fromfile(tmp_path / "k.bin", np.int32).tolist() == K.ravel().tolist()
    onp.asarray(K).dump(tmp_path / "k.pkl")
    assert np.load(tmp_path / "k.pkl", allow_pickle=True).tolist() == K.tolist()
    with open(tmp_path / "k.pkl", "wb") as file:
        onp.asarray(K).dump(file)


@pytest.mark.parametrize(("name", "instead"), [
    ("fill", "full_like"), ("put", "inplace=False"), ("resize", "olympus.numpy.resize"),
    ("partition", "olympus.numpy.partition"), ("setflags", "np.array"), ("itemset", "at"),
    ("setfield", "view")])
def test_methods_that_write_name_what_to_use(name, instead):
    for call in (lambda x: getattr(x, name)(0), olympus.jit(lambda x: getattr(x, name)(0))):
        with pytest.raises(TypeError, match=f"{name}: .*float32.*immutable; .*use .*{instead}"):
            call(onp.asarray(X))


@pytest.mark.parametrize(("name", "instead"), [
    ("device_buffer", "addressable_data"), ("device_buffers", "addressable_shards")])
def test_buffers_name_what_replaced_them(name, instead):
    with pytest.raises(AttributeError, match=f"{name}: removed .*use .*{instead}"):
        getattr(onp.asarray(X), name)
    assert not hasattr(onp.asarray(X), name)


def test_keywords_of_methods():
    x = onp.asarray(X)
    assert x.astype("int32", order="C", casting="unsafe", subok=False).dtype == "int32"
    with pytest.raises(TypeError, match="a conversion that casting 'safe' allows"):
        x.astype("int32", casting="safe")
    with pytest.raises(ValueError, match="programs see no memory order"):
        x.astype("int32", order="F")
    assert x.reshape(3, 2, copy=True).shape == x.reshape((6,), copy=None)[:6].reshape(3, 2).shape
    assert x.copy(order="K").tolist() == x.clip(-9, 9, out=None).tolist() == X.tolist()
    with pytest.raises(TypeError, match="arrays cannot be written to"):
        x.dot(x.T, out=x)
    with pytest.raises(ValueError, match="immutable"):
        x.byteswap(inplace=True)


def test_the_type_of_arrays_documents_their_members():
    for name in (*METHODS, *PROPERTIES, "shape", "dtype", "item", "tolist", "strides", "fill"):
        assert getattr(olympus.Array, name) is getattr(type(onp.asarray(X)), name)
