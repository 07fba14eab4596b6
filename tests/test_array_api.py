"""The array API standard 2024.12: a share of the sweep of tools/array_api_sweep.py."""

import pickle

import array_api_sweep as tool
import numpy as np
import pytest

import olympus
import olympus.numpy as onp


def test_signatures_are_the_standard_s():
    assert not list(tool.signature_differences())


def test_laws_that_numpy_does_not_decide():
    assert not list(tool.broken_laws())


@pytest.mark.parametrize("family", tool.FAMILIES, ids=lambda f: f.__name__)
def test_calls_agree_with_numpy(family, monkeypatch):
    """Some of the calls; the tool makes all."""
    monkeypatch.setattr(tool, "FAMILIES", (family,))
    found = {str(call): tool.difference(call) for call in tool.calls(0, (3, 61))}
    assert found and not {call: what for call, what in found.items() if what}


def test_the_sweep_notices_values_types_and_errors(monkeypatch):
    x = np.arange(3, dtype="int8")
    calls = [tool.Call("sum", (x,)), tool.Call("expand_dims", (x,), {"axis": 9}),
             tool.Call("unique_all", (x,))]
    assert not any(map(tool.difference, calls))
    for wrong in (lambda x, **_: onp.sum(x).astype("int8"), lambda x, **_: onp.sum(x) + 1,
                  lambda x, **_: tuple(onp.unique_all(x)[:3])):
        for call in calls:
            monkeypatch.setattr(onp, call.name, wrong)
        assert all(map(tool.difference, calls))


def test_every_name_of_the_standard_is_called():
    lines = tool.SIGNATURES.read_text(encoding="utf-8").splitlines()
    names = {line.partition("(")[0] for line in lines}
    assert len(names) == len(lines)
    called = {call.name for call in tool.calls()}
    laws = {"can_cast", "finfo", "iinfo", "isdtype", "from_dlpack", "__array_namespace_info__"}
    assert names - called - laws == set()


def test_limits_are_floats_with_numpys_attributes():
    """`finfo(x).max.dtype` and `.astype` failed; the numbers stay weakly typed."""
    half, eps = onp.ones(3, "bfloat16"), onp.finfo("float32").eps
    assert eps.dtype == np.float32 and eps.astype("float64").dtype == np.float64
    assert eps == np.finfo("float32").eps and pickle.loads(pickle.dumps(eps)).dtype == eps.dtype
    for fun in (olympus.lax.add, onp.add, onp.maximum, onp.result_type, onp.nextafter,
                lambda a, b: onp.where(a > 0, a, b), lambda a, b: onp.clip(a, -b, b),
                lambda a, b: a.at[0].set(b), lambda a, b: olympus.jit(onp.multiply)(a, b)):
        assert str(fun(half, eps)) == str(fun(half, float(eps)))


def test_finfo_gives_python_floats():
    info = onp.finfo(onp.bfloat16)
    assert (info.eps, info.bits, info.dtype) == (2.0 ** -7, 16, "bfloat16")
    assert isinstance(info.max, float) and "bfloat16" in repr(info) and "bfloat16" in str(info)
    assert (onp.ones(2, "bfloat16") * onp.finfo("float32").eps).dtype == "bfloat16"
    assert onp.finfo(onp.ones(2, "complex64")).dtype == "float32"
    with pytest.raises(AttributeError):
        _ = info.nothing


def test_an_axis_out_of_bounds_is_an_index_error_and_a_value_error():
    for fun in (onp.sum, onp.flip, onp.expand_dims, onp.take_along_axis):
        args = (np.zeros(3, int), np.zeros(3, int))[:1 + (fun is onp.take_along_axis)]
        for kind in (IndexError, ValueError):
            with pytest.raises(kind, match="out of bounds"):
                olympus.jit(lambda: fun(*args, axis=7))()


def test_places_are_default_integers_with_x64_too():
    x = np.array([[3.0, 1.0, 2.0], [2.0, 5.0, 5.0]])
    for x64 in (False, True):
        with olympus.enable_x64(x64):
            for mode, want in (("largest", [[0, 2], [1, 2]]), ("smallest", [[1, 2], [0, 1]])):
                values, places = onp.top_k(x, 2, mode=mode)
                assert places.dtype == onp.searchsorted(x[0], 1.0).dtype == ("int32", "int64")[x64]
                np.testing.assert_array_equal(places, want)
                np.testing.assert_array_equal(values, np.take_along_axis(x, np.array(want), 1))


@pytest.mark.parametrize("mode", ["largest", "smallest"])
def test_top_k_of_more_than_there_are_is_an_error(mode):
    with pytest.raises(ValueError, match=r"top_k.* k 4"):
        onp.top_k(np.zeros(3), 4, mode=mode)
