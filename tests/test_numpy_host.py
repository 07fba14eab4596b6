"""What stays with NumPy on the host: text of arrays, files, and grids written as slices.

`golden/arrays.json` holds what JAX 0.10.2 prints for the arrays of `printed`, to the character.
"""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import olympus
import olympus.numpy as onp

GOLDEN = json.loads((Path(__file__).parent / "golden" / "arrays.json").read_text())
OPTIONS: list[dict[str, Any]] = [
    {}, {"linewidth": 40}, {"precision": 2}, {"threshold": 5, "edgeitems": 2},
    {"linewidth": 30, "precision": 10}, {"sign": "+"}]


def printed(xp: Any) -> dict[str, list[str]]:
    """The text of arrays of many sizes and dtypes under NumPy's options, by name."""
    rng = np.random.default_rng(0)
    arrays = {"weak": xp.asarray(2.5), "weak ints": xp.full((30,), 1), "cube": xp.zeros((2, 0, 3)),
              "scalar": xp.float32(1.5), "wide": xp.ones((2, 40)), "bool": xp.arange(9) > 3}
    for n in (0, 1, 4, 5, 6, 7, 11, 12, 17, 1001):
        x = rng.normal(size=n)
        for kind in ("float32", "int8", "complex64", "bfloat16", "float8_e4m3fn"):
            arrays[f"{kind}[{n}]"] = xp.asarray(x.astype("c8" if kind[0] == "c" else "f4")
                                                ).astype(kind)
    out: dict[str, list[str]] = {name: [] for name in arrays}
    for options in OPTIONS:
        with np.printoptions(**options):
            for name, x in arrays.items():
                out[name].append(repr(x))
    return out


@pytest.mark.filterwarnings("ignore")
def test_arrays_print_as_jaxs() -> None:
    assert printed(onp) == GOLDEN


def test_text_of_an_array() -> None:
    x = onp.asarray([1.23456, -7.0, 1e-9])
    assert onp.array_repr(x) == repr(x) and onp.array_str(x) == str(x)
    assert onp.array_repr(x, 20, 2, True) == (
        "Array([ 1.23,\n       -7.  ,\n        0.  ],      dtype=float32)")
    assert onp.array_str(x, precision=3, suppress_small=True) == "[ 1.235 -7.     0.   ]"
    assert onp.array2string(x, separator=";", precision=1) == "[ 1.2e+00;-7.0e+00; 1.0e-09]"
    assert onp.array2string(onp.arange(3).astype("bfloat16")) == "[0 1 2]"
    assert onp.format_float_positional(onp.float32(0.1)) == "0.1"
    assert onp.format_float_scientific(onp.float32(0.1), precision=2) == "1.e-01"
    texts: list[str] = []
    olympus.jit(lambda x: texts.append(onp.array_repr(x)))(x)
    assert "float32[3]" in texts[0]     # a traced value has a type only


def test_print_options_are_numpys() -> None:
    with np.printoptions():
        onp.set_printoptions(precision=1, linewidth=30)
        assert np.get_printoptions()["precision"] == onp.get_printoptions()["precision"] == 1
        assert repr(onp.asarray([0.123])) == "Array([0.1], dtype=float32)"


@pytest.mark.parametrize("kind", ["bfloat16", "float32", "bool", "complex64", "int8", "uint32"])
def test_saved_arrays_come_back(kind: str) -> None:
    x = onp.arange(4).astype(kind)
    file = io.BytesIO()
    onp.save(file, x)
    file.seek(0)
    back = onp.load(file)
    assert isinstance(back, olympus.Array) and back.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(back), np.asarray(x))


def test_saved_arrays_come_back_by_name() -> None:
    for write in (onp.savez, onp.savez_compressed):
        file = io.BytesIO()
        write(file, a=onp.arange(3), b=onp.ones(2))
        file.seek(0)
        back = onp.load(file)
        assert back["a"].tolist() == [0, 1, 2] and back["b"].dtype == "float32"


def test_numbers_from_text_files_and_iterators(tmp_path: Path) -> None:
    with olympus.enable_x64(True):
        calls = [
            lambda o: o.fromstring("1 2.5 3", sep=" "), lambda o: o.fromiter(range(4), "float32"),
            lambda o: o.fromstring("1,2", dtype=int, sep=","), lambda o: o.fromiter([1, 2], int, 2),
            lambda o: o.loadtxt(["1 2", "3 4"]), lambda o: o.loadtxt(["1,2"], int, delimiter=","),
            lambda o: o.genfromtxt(["1,2", "3,"], delimiter=","),
            lambda o: o.fromfile(tmp_path / "x.bin", "int16"),
            lambda o: o.fromfile(tmp_path / "x.bin", "int16", 2, offset=2)]
        np.arange(5, dtype=np.int16).tofile(tmp_path / "x.bin")
        for call in calls:
            found, expected = call(onp), call(np)
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            np.testing.assert_array_equal(found, expected)
        text = io.StringIO()
        onp.savetxt(text, onp.eye(2))
        assert np.loadtxt(io.StringIO(text.getvalue())).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(("call", "text"), [
    (lambda: onp.loadtxt(["1 x"]), "loadtxt: .* could not convert"),
    (lambda: onp.fromiter([1], int, 3), "fromiter: .* iterator too short"),
    (lambda: onp.array_repr(onp.ones(3), precision=-1), "array_repr: .* precision must be"),
], ids=["loadtxt", "fromiter", "array_repr"])
def test_numpys_errors_name_the_operation(call: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()


GRIDS = [
    "mgrid[0:5]", "mgrid[0:5, 0:3]", "mgrid[-1:1:5j]", "mgrid[-1:1:5j, 0:2]", "mgrid[:1:.3, :2]",
    "mgrid[:]", "mgrid[3:]", "ogrid[::2]",
    "mgrid[5:0:-1, :2]", "mgrid[0:0, :2]", "mgrid[()]", "ogrid[0:5]", "ogrid[:1:3j, :4, 1:7:2]",
    "r_[1, 2, 3]", "r_[0:5]", "r_[X, 0, 0, X]", "r_[-1:1:6j, [0] * 3, 5, 6]", "r_[3:6:2, 7]",
    "r_['0,2', X, X]", "r_['-1', M, M]", "r_['0,2,0', X, X]", "r_['1,2,0', X, X]", "r_['r', X, X]",
    "r_['c', X, X]", "r_['c', M, M]", "r_['0,3', X, X]", "r_['0,3,1', X, X]", "r_['2,3,0', X, X]",
    "r_['0,3,-2', X, M]", "r_[1.5, 2]", "r_[True, 2]", "r_[np.int8([1, 2]), 3]",
    "r_[np.float32([1, 2]), 3.5]", "r_[:0, 1]", "c_[X, X]", "c_[M, 0 * M]", "c_[0:3, 3:6]",
    "c_[1, 2]", "c_['0', X, X]", "c_['0,2', X, X]"]


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("text", GRIDS)
def test_grids_and_rows_are_numpys(text: str) -> None:
    names = {"X": np.array([1, 2, 3]), "M": np.ones((2, 3)), "np": np}
    expected = eval(f"np.{text}", names)
    with olympus.enable_x64(True):
        found = eval(f"onp.{text}", {**names, "onp": onp})
    assert isinstance(found, tuple) == isinstance(expected, tuple)
    for f, e in zip(*[x if isinstance(x, tuple) else (x,) for x in (found, expected)],
                    strict=True):
        assert (f.dtype, f.shape) == (e.dtype, e.shape)
        np.testing.assert_allclose(f, e, rtol=1e-14)


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda: onp.mgrid[3], TypeError, "mgrid: 3 given; a slice"),
    (lambda: onp.ogrid[:2, ::3j], TypeError, "a slice with an end"),
    (lambda: onp.r_["x", 1], ValueError, "directive 'x' given"),
    (lambda: onp.r_[1, "r"], ValueError, "a directive must be the first"),
    (lambda: onp.c_[()], ValueError, "at least one is required"),
    (lambda: onp.r_["0,2,5", [1, 2]], ValueError, "place 5 given"),
    (lambda: olympus.jit(lambda n: onp.mgrid[:n])(3), olympus.errors.ConcretizationTypeError,
     "a bound of a slice"),
], ids=["number", "no-end", "directive", "later", "nothing", "place", "traced"])
def test_grids_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_rows_of_traced_values() -> None:
    found = olympus.jit(lambda x: (onp.r_[x, 0:2, 7.0], onp.c_[x, x]))(np.arange(3.0, dtype="f4"))
    np.testing.assert_array_equal(found[0], [0, 1, 2, 0, 1, 7])
    np.testing.assert_array_equal(found[1], [[0, 0], [1, 1], [2, 2]])
