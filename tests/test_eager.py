"""Eager evaluation: numbers on devices, keys of operations, and what users may do to results."""

import linecache
import math
import re

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.extend.core import Primitive
from olympus.interpreters import mlir, xla

INTEGERS = ["int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "uint32"]
INEXACT = {"divide": np.divide, "hypot": np.hypot, "arctan2": np.arctan2, "logaddexp": np.logaddexp,
           "logaddexp2": np.logaddexp2, "copysign": np.copysign, "float_power": np.float_power}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", INEXACT)
def test_a_number_beyond_an_integer_dtype_reaches_a_floating_function_whole(name, dtype):
    """asarray([64], "uint8") / 256 was inf: the number wrapped before it became a float."""
    x, fun = onp.asarray([1, 3, 7]).astype(dtype), getattr(onp, name)
    values = np.asarray([1.0, 3.0, 7.0])
    for number in (8, 15, 128, 256, 300, 1000, 40000, 2**31 - 1, -9, -200):
        with np.errstate(all="ignore"):
            there, back = (f.astype("float32") for f in (INEXACT[name](values, number),
                                                         INEXACT[name](number, values)))
        for got, want in ((fun(x, number), there), (fun(number, x), back),
                          (olympus.jit(lambda x, n=number: fun(x, n))(x), there)):
            assert got.dtype == "float32"
            np.testing.assert_allclose(got, want, rtol=1e-5)


def outsiders(how):
    """A primitive with a param that is added to its operand; and what adds it."""
    p = Primitive(f"plus_{how}")
    p.def_abstract_eval(lambda x, by: x)
    mlir.register_lowering(p, mlir.lower_fun(lambda x, by: x + value(by), multiple_results=False))
    if how == "apply_primitive":
        p.def_impl(lambda x, by: xla.apply_primitive(p, x, by=by))
    return lambda x, by: p.bind(x, by=by)


def value(by):
    """A float that differs for all params that are other params: by type, sign and bits."""
    by = by[0] if isinstance(by, tuple) else by
    kind = {int: 10.0, float: 20.0, bool: 30.0, np.float32: 40.0}[type(by)]
    return kind + (0 if math.isnan(by) else math.copysign(1.0, by) + by)


@pytest.mark.parametrize("how", ["lowering", "apply_primitive"])
def test_params_that_python_calls_equal_are_different_programs(how):
    """0.0 and -0.0 shared a program, also 1, 1.0 and True."""
    plus, x = outsiders(how), onp.asarray(np.zeros(2, "float32"))
    params = [0.0, -0.0, 0, False, 1, 1.0, True, np.float32(1), np.float32(-0.0), float("nan"),
              float("nan")]
    for by in (*params, *((p,) for p in params), *reversed(params)):
        assert plus(x, by)[0] == value(by), by


@pytest.mark.parametrize("make", [
    lambda: onp.asarray(2.0), lambda: onp.array(2), lambda: onp.positive(2.0),
    lambda: onp.real(2.0), lambda: onp.squeeze(2.0), lambda: onp.transpose(2),
    lambda: onp.fft.fftshift(2.0), lambda: onp.roll(1.5, (), ()),
    lambda: olympus.grad(lambda x: x)(2.0),
    lambda: olympus.vjp(lambda x: x, 2.0)[0], lambda: olympus.jvp(lambda x: x, (2.0,), (1.0,))[1],
    lambda: lax.stop_gradient(onp.abs(2.0)), lambda: olympus.device_put(2.0),
])
def test_what_a_user_deletes_is_nobody_elses(make):
    """Constants are kept on the device; a result that was one of them could be donated."""
    first, second = make(), make()
    want = np.asarray(second)
    first.delete()
    assert np.asarray(second) == want
    assert np.asarray(make()) == want


def test_nan_keeps_its_sign_and_zero_too():
    x = onp.asarray([1.0, -1.0])
    for number in (math.nan, -math.nan, 0.0, -0.0, -math.nan, math.nan):
        want = np.copysign(x, number)
        assert np.array_equal(np.signbit(want), np.signbit(onp.copysign(x, number)))


@pytest.mark.parametrize("number", [2**31, -2**40, 2**62, 10**25])
def test_a_number_beyond_int32_is_a_number_beside_floats(number):
    """Eagerly it was one; jit refused it."""
    x = np.asarray([1.5, 2.0], "float32")
    for fun in ("add", "copysign", "logaddexp2", "float_power", "maximum", "where"):
        def call(x, fun=fun):
            args = (x > 0, x, number) if fun == "where" else (x, number)
            return getattr(onp, fun)(*args)

        with np.errstate(all="ignore"):
            wide = np.float32(number)
            want = np.where(x > 0, x, wide) if fun == "where" else getattr(np, fun)(x, wide)
            want = want.astype("float32")
        for got in (call(onp.asarray(x)), olympus.jit(call)(x)):
            assert got.dtype == "float32"
            np.testing.assert_allclose(got, want, rtol=1e-6)
    np.testing.assert_allclose(onp.hypot(number, 3), np.hypot(float(number), 3), rtol=1e-6)
    for fun in (lambda: onp.add(onp.arange(3), number), lambda: lax.neg(number)):
        for refused in (fun, olympus.jit(fun)):
            with pytest.raises(OverflowError, match="fit"):
                refused()


def _reciprocals(x):
    return 1 / x                                                        # here


def _rows(x):
    return lax.scan(lambda c, a: (c + 1, onp.log(a)), 0, x)[1]          # here


def _until(x):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, onp.log(c[1])), (0, x))  # here


def _counted(x):
    return lax.fori_loop(0, 4, lambda i, c: onp.sqrt(c - 1), x)         # here


@olympus.custom_jvp
def _ruled(x):
    return onp.sqrt(x)                                                  # here


_ruled.defjvp(lambda x, t: (_ruled(*x), *t))


def _chosen(x):
    return lax.cond(x[0] > 0, onp.exp, lambda x: onp.sqrt(x), x)        # here


def _remat(x):
    return olympus.checkpoint(lambda x: onp.arcsin(x * 2))(x)           # here


NAN_PROGRAMS = {
    "inner jit": (olympus.jit(lambda x: olympus.jit(_counted)(x) + 1), "sqrt", 1.5),
    "scan": (olympus.jit(_rows), "log", -1.0), "while": (olympus.jit(_until), "log", 0.5),
    "loop": (olympus.jit(_counted), "sqrt", 1.5), "rule": (olympus.jit(_ruled), "sqrt", -1.0),
    "branch": (olympus.jit(_chosen), "sqrt", -1.0), "remat": (olympus.jit(_remat), "asin", 3.0),
    "vmap": (olympus.jit(olympus.vmap(_counted)), "sqrt", 1.5),
    "donated": (olympus.jit(_counted, donate_argnums=0), "sqrt", 1.5),
    "compiled": (lambda x: olympus.jit(_counted).lower(x).compile()(x), "sqrt", 1.5),
    "eager loop": (_rows, "log", -1.0),
}


@pytest.mark.parametrize("case", NAN_PROGRAMS)
def test_debug_nans_names_the_operation_and_the_users_line(case):
    fun, operation, value = NAN_PROGRAMS[case]
    with olympus.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        fun(onp.asarray([value, value], "float32"))
    text = " ".join(str(caught.value).split())      # wherever its lines end
    assert f" of {operation} at " in text and "test_eager.py" in text, text
    line = int(re.search(r"test_eager\.py:(\d+)", text)[1])
    assert "# here" in linecache.getline(__file__, line) and "and debug_nans is on" in text, text


def test_debug_infs_names_it_too_and_counts_no_operand():
    def f(x):
        return x + 1

    with olympus.debug_infs(True):
        with pytest.raises(FloatingPointError, match=r"of div at .*1 / x"):
            olympus.jit(_reciprocals)(onp.zeros(2))
        with pytest.raises(FloatingPointError, match=r"^jit\(f\): .*the result float32\[2\]"):
            olympus.jit(f)(np.full(2, np.inf, "float32"))
    assert olympus.jit(_reciprocals)(onp.zeros(2))[0] == np.inf


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_compared_with_any_number_as_they_are(dtype):
    """uint8 arrays below 256 were not: the number wrapped to 0."""
    x = onp.asarray([1, 3, 7]).astype(dtype)
    wide = np.asarray([1, 3, 7], "int64")
    for number in (8, 44, 256, 300, -1, -9, 2**31, -2**40, 2**62, 3):
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
            fun, want = getattr(onp, name), getattr(np, name)
            there, back = want(wide, number).tolist(), want(number, wide).tolist()
            assert fun(x, number).tolist() == there and fun(number, x).tolist() == back
            if number == 300:
                found = olympus.jit(lambda x, f=fun, n=number: (f(x, n), f(n, x)))(x)
                assert [y.tolist() for y in found] == [there, back]
    limits = onp.iinfo(dtype)
    for low, high in ((0, 300), (-300, 5), (-2**40, 2**40), (2, 5)):
        want = wide.clip(max(low, int(limits.min)), min(high, int(limits.max))).tolist()
        for clip in (lambda x, a=low, b=high: x.clip(a, b), onp.clip):
            args = () if clip is not onp.clip else (low, high)
            assert clip(x, *args).tolist() == want
            assert olympus.jit(lambda x, c=clip, a=args: c(x, *a))(x).tolist() == want
    assert (x < 2**40).all() and not (x == 300).any() and (x[0] < 2**40).shape == ()


def test_full_takes_the_ints_of_its_dtype_and_no_others():
    """lax.full(…, 300, int8) was 44 eagerly and an error of NumPy's in jit."""
    for fill, dtype in ((2**32 - 1, "uint32"), (-128, "int8"), (2**40, "float32"), (7, "int4")):
        for make in (lambda f=fill, d=dtype: lax.full((2,), f, d),
                     lambda f=fill, d=dtype: lax.full_like(onp.zeros(2, d), f)):
            for call in (make, olympus.jit(make)):
                assert np.asarray(call()).astype("float64").tolist() == [float(fill)] * 2
    for fill, dtype in ((300, "int8"), (-1, "uint8"), (2**32, "uint32"), (8, "int4")):
        make = lambda f=fill, d=dtype: lax.full((2,), f, d)
        for call in (make, olympus.jit(make)):
            with pytest.raises(OverflowError, match=f"full: fill_value {fill} given"):
                call()
