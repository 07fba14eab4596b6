"""What programs written for JAX count on in arrays, numpy and lax: one test per symptom."""

import enum
import warnings

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax


@pytest.mark.parametrize("mode", ["constant", "edge", "empty", "linear_ramp", "wrap"])
def test_pad_by_nothing_keeps_the_weak_type(mode):
    assert onp.pad(onp.array(1.)[None], 0, mode).weak_type


@pytest.mark.parametrize("name", ["tri", "eye"])
def test_diagonals_may_be_traced(name):
    traced = olympus.vmap(lambda k: getattr(onp, name)(3, 4, k=k))(onp.arange(-5, 6))
    expected = [getattr(np, name)(3, 4, k) for k in range(-5, 6)]
    np.testing.assert_array_equal(traced, expected)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("decimals", [39, 308, 309, 1000])
def test_rounding_to_more_digits_than_there_are_changes_nothing(dtype, decimals):
    x = onp.array([1.25, -3e-5, 6e4, onp.inf], dtype)
    assert onp.array_equal(onp.round(x, decimals), x)


@pytest.mark.parametrize("exponent", [np.int8(2), np.array(2), onp.int32(2)], ids=repr)
def test_known_integers_as_exponents_are_multiplications(exponent):
    program = olympus.make_olympuspr(lambda x: onp.power(x, exponent))(np.float32(1))
    assert [e.primitive.name for e in program.eqns] == ["integer_pow"]
    assert not olympus.jit(lambda x: x ** exponent)(1).weak_type
    assert olympus.grad(lambda x: x ** exponent)(0.) == 0.


@pytest.mark.parametrize("rtol", [0., 1e-4, np.inf])
@pytest.mark.parametrize("atol", [0., 1e-4, np.inf])
def test_isclose_of_infinite_tolerances(rtol, atol):
    x, y = np.meshgrid(*[[-np.inf, -1., -1e-5, -0., 0., 1e-5, 1., np.inf, np.nan]] * 2)
    with warnings.catch_warnings(action="ignore"):
        expected = np.isclose(x, y, rtol, atol)
    np.testing.assert_array_equal(onp.isclose(x, y, rtol, atol), expected)


def test_isclose_of_keys():
    key = olympus.random.key(0)
    assert onp.isclose(key, key) and not onp.isclose(key, olympus.random.key(1))


def test_isscalar_of_text_and_rank_0():
    assert onp.isscalar("a") and onp.isscalar(np.array(1)) and not onp.isscalar(np.array([1]))


def test_complex_to_bool_does_not_warn():
    with warnings.catch_warnings(action="error"):
        assert onp.array([0j, 1j]).astype(bool).tolist() == [False, True]


@pytest.mark.parametrize("fun", [onp.sin, onp.sum, lambda x: onp.ones(2) + x, olympus.jit(onp.sin)])
def test_masked_arrays_are_refused(fun):
    with pytest.raises(ValueError, match="numpy masked arrays are not supported"):
        fun(np.ma.array([1., 2.], mask=[True, False]))


def test_masked_arrays_are_refused_by_a_call_that_is_cached():
    masked = np.ma.array([1., 2.], mask=[True, False])
    double = olympus.jit(lambda x: x["a"] * 2)
    assert double({"a": np.ones(2)}).tolist() == [2, 2]
    with pytest.raises(ValueError, match="numpy masked arrays are not supported"):
        double({"a": masked})
    assert double({"a": masked.filled(0)}).tolist() == [0, 4]


@pytest.mark.parametrize("transform", [lambda f: f, olympus.jit])
def test_reduce_of_a_weak_array_from_a_strong_identity_is_strong(transform):
    weak = onp.broadcast_to(onp.array(2), (3,))
    assert not transform(lambda x, i: lax.reduce(x, i, lax.mul, (0,)))(weak, onp.int32(1)).weak_type


def test_scatter_with_an_inserted_axis_out_of_bounds():
    numbers = lax.ScatterDimensionNumbers((1,), (5,), (0,))
    with pytest.raises(TypeError, match="^scatter: Invalid inserted_window_dims set"):
        lax.scatter(np.ones((5, 4)), np.zeros((2, 1), int), np.ones((2, 4)), numbers)


def test_conv_of_different_ranks():
    numbers = lax.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))
    with pytest.raises(ValueError, match="must have the same number of dimensions"):
        lax.conv_general_dilated(np.ones((1, 1, 1)), np.ones((1, 1, 1, 1)), (1,), ((0, 0),),
                                 dimension_numbers=numbers)


F, C = onp.ones((2, 3)), onp.ones((2, 3), "complex64")
KEY = olympus.random.split(olympus.random.key(0), 3)


@pytest.mark.parametrize(("name", "call"), [
    ("bitwise_and", lambda: onp.bitwise_and(C, C)), ("bitwise_and", lambda: C & C),
    ("bitwise_and", lambda: olympus.jit(onp.bitwise_and)(C, C)),
    ("bitwise_or", lambda: olympus.vmap(onp.bitwise_or)(C, C)),
    ("arccos", lambda: onp.arccos(olympus.random.key(0))), ("divmod", lambda: onp.divmod(C, C)),
    ("allclose", lambda: onp.allclose([1], [2])), ("nansum", lambda: onp.nansum(F, axis=5)),
    ("trace", lambda: onp.trace(F, axis1=1, axis2=-1)), ("nanmean", lambda: onp.nanmean(F, out=F)),
    ("digitize", lambda: onp.digitize(F, F[0], method="foo")),
    ("dot: precision", lambda: onp.dot(F, F.T, precision="foo")),
    ("append", lambda: onp.append(F, F, axis=5)), ("hstack", lambda: onp.hstack([F, F[0]])),
    ("block", lambda: onp.block([F, F[:1]])), ("vstack", lambda: onp.vstack([F], dtype="int8")),
    ("bitwise_and", lambda: olympus.jit(lambda x: x & x)(C)),
    ("left_shift", lambda: olympus.jit(lambda x: 1 << x)(C)),
    ("dot", lambda: onp.dot(F, KEY)), ("vdot", lambda: onp.vdot(KEY, KEY)),
    ("convolve", lambda: onp.convolve(KEY, KEY)), ("all", lambda: onp.all(KEY)),
    ("piecewise", lambda: onp.piecewise(KEY, [F[0] > 0], [1.])), ("pad", lambda: onp.pad(KEY, 1)),
    ("polyadd", lambda: onp.polyadd(KEY, KEY[:2])), ("add", lambda: onp.add(F, KEY)),
], ids=lambda v: v if type(v) is str else "")
def test_messages_begin_with_the_function_that_was_called(name, call):
    with pytest.raises((TypeError, ValueError), match=f"^{name}: "):
        call()


def test_enums_in_lists_are_numbers():
    assert onp.array([enum.IntEnum("Enum", {"A": 42}).A, 1]).tolist() == [42, 1]


def test_take_from_an_empty_axis():
    assert onp.take(onp.ones((2, 0)), np.array([], int), axis=1).shape == (2, 0)
    with pytest.raises(IndexError, match="cannot do a non-empty take from an empty axis"):
        onp.take(onp.ones((2, 0)), np.array([0]), axis=1)


WEAK = onp.broadcast_to(onp.array(2), (3,))


@pytest.mark.parametrize("write", [
    lambda x: x.at[0].set(np.int32(5)), lambda x: x.at[:2].set(5), lambda x: x.at[:2].add(5),
    lambda x: x.at[np.array([True, False, True])].set(np.int32(5)), lambda x: x.at[0].apply(abs)])
def test_writes_keep_the_weak_type(write):
    assert write(WEAK).weak_type and olympus.jit(write)(WEAK).weak_type


@pytest.mark.parametrize("fun", [
    onp.floor_divide, onp.remainder, onp.fmod, onp.gcd, onp.lcm, lambda x, y: onp.divmod(x, y)[0],
    lambda x, y: onp.sign(x / y), lambda x, y: onp.imag(x)])
def test_operations_on_weak_numbers_are_weak(fun):
    assert fun(WEAK, 3).weak_type and fun(7, 3).weak_type
    assert fun(WEAK, np.int8(3)).dtype in (np.int8, np.int32, np.float32)


@pytest.mark.parametrize("fun", [onp.max, onp.min, onp.ptp, onp.sum, onp.nanmax, onp.all, onp.any,
                                 onp.signbit, lambda x: onp.ldexp(x, 2),
                                 lambda x: onp.piecewise(x, [x > 1], [1])])
def test_reductions_of_weak_numbers_are_strong(fun):
    assert not fun(WEAK).weak_type and not fun(onp.array(2.)).weak_type


@pytest.mark.parametrize("fun", [
    onp.angle, onp.spacing, onp.rint, lambda x: onp.power(x, x), lambda x: x.at[0].power(2),
    lambda x: onp.nan_to_num(x + 0.)])
def test_what_gives_strong_numbers_for_weak_ones(fun):
    assert not fun(WEAK).weak_type and not olympus.jit(fun)(WEAK).weak_type


@pytest.mark.parametrize("call", [
    lambda i, f: onp.average(i, weights=f), lambda i, f: onp.average(f, weights=i),
    onp.trapezoid, lambda i, f: onp.trapezoid(f, i), onp.gradient,
    lambda i, f: onp.gradient(f, i), lambda i, f: onp.gradient(i, f[1])])
def test_integers_beside_small_floats_become_small_floats(call):
    for dtype in (onp.bfloat16, onp.float16):
        found = call(onp.arange(1, 4), onp.arange(1., 4., dtype=dtype))
        assert found.dtype == dtype
        assert onp.allclose(found, call(onp.arange(1., 4.), onp.arange(1., 4.)), rtol=1e-2)
    with olympus.numpy_dtype_promotion("strict"):
        assert call(onp.arange(1, 4), onp.arange(1., 4.)).dtype == onp.float32


@pytest.mark.parametrize("fun", [onp.sum, onp.prod, onp.mean, onp.nansum, onp.cumsum])
def test_sums_of_complex_numbers_at_a_real_dtype_warn(fun):
    with pytest.warns(np.exceptions.ComplexWarning):
        assert fun(onp.array([1j, 2.]), dtype="float32").dtype == np.float32


def test_variances_at_a_complex_dtype():
    assert onp.var(onp.array([1., 2., 3., 4.]), dtype="complex64") == np.complex64(1.25)


def test_users_functions_reduce_over_all_axes():
    x = np.arange(6.).reshape(2, 3)
    found = onp.frompyfunc(lambda x, y: x - y, 2, 1).reduce(x, axis=None)
    assert found == np.frompyfunc(lambda x, y: x - y, 2, 1, identity=None).reduce(x, axis=None)


def test_piecewise_traces_each_function_once():
    calls = []

    def double(x):
        calls.append(x)
        return 2 * x

    x = onp.arange(4.)
    for _ in range(3):
        assert onp.piecewise(x, [x > 1], [double]).tolist() == [0, 0, 4, 6]
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_a_shape_is_one_tuple(name):
    with pytest.raises(TypeError, match=rf"Did you mean {name}\(\(2, 3\)\)\?"):
        getattr(onp, name)(2, 3)


@pytest.mark.parametrize("index", [0, 7, np.array([1])])
def test_a_fill_value_that_is_an_array_is_refused(index):
    with pytest.raises(ValueError, match=r"^at\[...\].get: .* must be a scalar"):
        WEAK.at[index].get(mode="fill", fill_value=onp.ones(3))


@pytest.mark.parametrize(("operands", "preferred"), [
    ("float32", "int32"), ("float32", "float16"), ("int8", "uint32"), ("complex64", "float32")])
def test_sums_of_another_kind_of_number_are_refused(operands, preferred):
    x = onp.ones((1, 1, 4), operands)
    with pytest.raises(TypeError, match="^conv_general_dilated: .*preferred_element_type"):
        lax.conv_general_dilated(x, x, (1,), "SAME", preferred_element_type=preferred)


class Wrapped:
    """What becomes an array where one is needed."""

    def __init__(self, x):
        self.x = x

    def __olympus_array__(self):
        return onp.asarray(self.x)


@pytest.mark.parametrize("call", [
    lambda m, x, i: m.delete(x, i), lambda m, x, i: m.insert(x, i, 9.),
    lambda m, x, i: m.roll(x, i)], ids=["delete", "insert", "roll"])
def test_places_may_be_what_becomes_an_array(call):
    x = np.arange(4.)
    np.testing.assert_array_equal(call(onp, Wrapped(x), Wrapped(1)), call(np, x, 1))


@pytest.mark.parametrize("module", [olympus, onp, lax], ids=lambda m: m.__name__)
@pytest.mark.parametrize("name", ["", "nothing", "linalg.nothing", "_private", "a b"])
def test_modules_lack_what_they_do_not_have(module, name):
    assert not hasattr(module, name)
