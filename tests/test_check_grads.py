"""olympus.test_util: right derivatives pass in every dtype, wrong ones are named."""

import functools

import numpy as np
import pytest

import olympus
from olympus import numpy as onp, test_util


def mixed(p, n):
    return {"y": onp.sin(p["a"]) * p["b"] ** 2, "n": n}


@pytest.mark.parametrize("dtype, order", [
    ("float64", 3), ("float32", 2), ("float16", 1), ("bfloat16", 1), ("complex64", 2),
    ("complex128", 2)])
def test_right_derivatives_pass_at_each_precision(dtype, order):
    with olympus.enable_x64(True):
        a = onp.asarray(np.array([0.3, 1.2, -0.7]) + (0.3j if dtype[0] == "c" else 0), dtype)
        how = {"atol": 1e-2, "rtol": 1e-2} if order > 2 else {}
        test_util.check_grads(mixed, ({"a": a, "b": a / 2 + 1}, 3), order, **how)


def test_functions_that_are_not_holomorphic_are_checked_as_they_are():
    test_util.check_grads(lambda x: onp.conj(x) * onp.abs(x), (onp.array([1 + 2j, 0.5j]),), 1)


@olympus.custom_jvp
def halved(x):
    return x**2


halved.defjvp(lambda primals, tangents: (halved(*primals), primals[0] * tangents[0]))


@olympus.custom_jvp
def bent(x):
    return x**2


bent.defjvps(lambda t, y, x: 2 * olympus.lax.stop_gradient(x) * t)


nowhere = olympus.custom_jvp(lambda x: x**2)
nowhere.defjvps(lambda t, y, x: float("nan") * t)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
@pytest.mark.parametrize("fun, order", [(halved, 1), (bent, 2)], ids=["first", "second"])
def test_wrong_derivatives_are_found(fun, order, mode):
    for n in range(1, order):
        test_util.check_grads(fun, (2.0,), n, [mode])
    words = "forward" if mode == "fwd" else "reverse"
    with pytest.raises(AssertionError, match=f"{words} mode"):
        test_util.check_grads(fun, (2.0,), order, [mode])


def test_a_nan_is_right_where_the_difference_is_one():
    """Unless it is refused; one beside a number never is."""
    test_util.check_grads(onp.sqrt, (-1.0,), 2)
    with pytest.raises(AssertionError):
        test_util.check_grads(onp.sqrt, (-1.0,), 1, equal_nan=False)
    for mode in ("fwd", "rev"):
        with pytest.raises(AssertionError):
            test_util.check_grads(nowhere, (2.0,), 1, [mode])


def test_tolerances_may_be_given_by_dtype():
    """As JAX takes them: dtypes that are not named have the usual tolerances."""
    wide = {onp.float32: 2.0, "float64": 1e-9}
    for how in ({"atol": wide}, {"rtol": wide}):
        test_util.check_grads(halved, (2.0,), 1, **how)
        with pytest.raises(AssertionError):
            test_util.check_grads(halved, (2.0,), 1, **{k: {"float64": 2.0} for k in how})
    with olympus.enable_x64(), pytest.raises(AssertionError):
        test_util.check_grads(halved, (np.float64(2),), 1, atol=wide)


def test_wrong_values_structures_and_shapes_are_found():
    def sin_jvp(out):
        return lambda primals, tangents: (out, out)

    right = functools.partial(olympus.jvp, onp.sin)
    test_util.check_jvp(onp.sin, right, (0.5,), 1e-3, 1e-3)
    for wrong in (onp.cos(0.5), (onp.sin(0.5),), onp.sin(onp.full(2, 0.5))):
        with pytest.raises(AssertionError, match="check_jvp: the value"):
            test_util.check_jvp(onp.sin, sin_jvp(wrong), (0.5,), err_msg="of sin")
    with pytest.raises(AssertionError, match="check_vjp: the value"):
        test_util.check_vjp(onp.sin, functools.partial(olympus.vjp, onp.cos), (0.5,))


@pytest.mark.parametrize("order, modes", [(0, ["fwd"]), (1, []), (1, ["forward"])],
                         ids=["order", "none", "name"])
def test_check_grads_refuses_in_words(order, modes):
    with pytest.raises(ValueError, match="check_grads"):
        test_util.check_grads(onp.sin, (0.5,), order, modes)
