"""Special cases of the array API standard 2024.12: every elementwise function, row by row.

A row of the tables is `operands: result`. An operand is a number or the name of a set of them; a
result is a number, one of the operands (`x1`, `x2`), or an expression in them. Signs of zeros count
unless written `±0`; multiples of π are approximate.
"""

import itertools
import math

import numpy as np
import pytest

import olympus
import olympus.numpy as onp

inf, nan, pi = math.inf, math.nan, math.pi
POSITIVE, NEGATIVE = (0.25, 1.0, 2.5, 3.0, 1e30), (-0.25, -1.0, -2.5, -3.0, -1e30)
SETS = {
    "positive": POSITIVE, "negative": NEGATIVE, "nonzero": POSITIVE + NEGATIVE,
    "finite": (0.0, -0.0, *POSITIVE, *NEGATIVE), "±0": (0.0, -0.0), "±inf": (inf, -inf),
    ">0": (*POSITIVE, inf), "<0": (*NEGATIVE, -inf), "any": (0.0, -0.0, 1.0, -2.5, inf, -inf, nan),
    "known": (0.0, -0.0, 1.0, -2.5, inf, -inf), "not0": (1.0, -2.5, inf, -inf, nan),
    "not1": (0.0, -2.5, inf, nan), "|x|>1": (1.5, -3.0, inf, -inf), "|x|<1": (0.5, -0.25, 0.0),
    "±1": (1.0, -1.0), "odd": (1.0, 3.0, 5.0), "-odd": (-1.0, -3.0), "even": (0.5, 2.0, 2.5, inf),
    "-even": (-0.5, -2.0, -2.5, -inf), "fraction": (0.5, -2.5), ">1": (1.5, inf),
    "<-1": (-1.5, -inf), "<1": (0.5, -3.0), "whole": (3.0, -4.0, 1e30),
}

UNARY = {
    "abs": "nan: nan | -0: 0 | -inf: inf | negative: -x1",
    "acos": "nan: nan | >1: nan | <-1: nan | 1: 0",
    "acosh": "nan: nan | <1: nan | 1: 0 | inf: inf",
    "asin": "nan: nan | >1: nan | <-1: nan | 0: 0 | -0: -0",
    "asinh": "nan: nan | 0: 0 | -0: -0 | inf: inf | -inf: -inf",
    "atan": "nan: nan | 0: 0 | -0: -0 | inf: pi/2 | -inf: -pi/2",
    "atanh": "nan: nan | <-1: nan | >1: nan | -1: -inf | 1: inf | 0: 0 | -0: -0",
    **dict.fromkeys(("ceil", "floor", "trunc", "round"),
                    "whole: x1 | inf: inf | -inf: -inf | 0: 0 | -0: -0 | nan: nan"),
    "cos": "nan: nan | ±0: 1 | ±inf: nan", "cosh": "nan: nan | ±0: 1 | ±inf: inf",
    "exp": "nan: nan | ±0: 1 | inf: inf | -inf: 0",
    "expm1": "nan: nan | 0: 0 | -0: -0 | inf: inf | -inf: -1",
    "isfinite": "±inf: 0 | nan: 0 | finite: 1", "isinf": "±inf: 1 | nan: 0 | finite: 0",
    "isnan": "nan: 1 | ±inf: 0 | finite: 0",
    **dict.fromkeys(("log", "log2", "log10"), "nan: nan | <0: nan | ±0: -inf | 1: 0 | inf: inf"),
    "log1p": "nan: nan | <-1: nan | -1: -inf | -0: -0 | 0: 0 | inf: inf",
    "reciprocal": "nan: nan | 0: inf | -0: -inf | inf: 0 | -inf: -0 | 1: 1",
    "sign": "<0: -1 | ±0: 0 | >0: 1 | nan: nan",
    "signbit": "0: 0 | -0: 1 | >0: 0 | <0: 1",
    "sin": "nan: nan | 0: 0 | -0: -0 | ±inf: nan",
    "sinh": "nan: nan | 0: 0 | -0: -0 | inf: inf | -inf: -inf",
    "sqrt": "nan: nan | <0: nan | 0: 0 | -0: -0 | inf: inf",
    "square": "nan: nan | ±inf: inf | ±0: 0", "tan": "nan: nan | 0: 0 | -0: -0 | ±inf: nan",
    "tanh": "nan: nan | 0: 0 | -0: -0 | inf: 1 | -inf: -1",
}

QUOTIENT = """
    nan any: nan | any nan: nan | ±inf ±inf: nan | ±0 ±0: nan
    0 >0: 0 | -0 >0: -0 | 0 <0: -0 | -0 <0: 0
    >0 0: inf | >0 -0: -inf | <0 0: -inf | <0 -0: inf
    inf positive: inf | inf negative: -inf | -inf positive: -inf | -inf negative: inf
    positive inf: 0 | positive -inf: -0 | negative inf: -0 | negative -inf: 0 """
BINARY = {
    "add": """nan any: nan | any nan: nan | inf -inf: nan | -inf inf: nan | inf inf: inf
        -inf -inf: -inf | inf finite: inf | -inf finite: -inf | finite inf: inf
        finite -inf: -inf | -0 -0: -0 | -0 0: 0 | 0 -0: 0 | 0 0: 0 | ±0 nonzero: x2
        nonzero ±0: x1 | 2.5 -2.5: 0 | -1 1: 0""",
    "subtract": """nan any: nan | any nan: nan | inf inf: nan | -inf -inf: nan | -0 0: -0
        -0 -0: 0 | 0 0: 0 | nonzero ±0: x1 | 2.5 2.5: 0""",
    "atan2": """nan any: nan | any nan: nan | >0 ±0: pi/2 | 0 >0: 0 | 0 0: 0 | 0 -0: pi | 0 <0: pi
        -0 >0: -0 | -0 0: -0 | -0 -0: -pi | -0 <0: -pi | <0 ±0: -pi/2 | positive inf: 0
        positive -inf: pi | negative inf: -0 | negative -inf: -pi | inf finite: pi/2
        -inf finite: -pi/2 | inf inf: pi/4 | inf -inf: 3*pi/4 | -inf inf: -pi/4
        -inf -inf: -3*pi/4""",
    "copysign": """known <0: -abs(x1) | known -0: -abs(x1) | known 0: abs(x1) | known >0: abs(x1)
        nan any: nan""",
    "divide": QUOTIENT,
    "equal": "nan any: 0 | any nan: 0 | inf inf: 1 | -inf -inf: 1 | ±0 ±0: 1 | inf -inf: 0",
    "floor_divide": QUOTIENT + """ | 7 2: 3 | -7 2: -4 | 7 -2: -4 | -7 -2: 3 | 1 0.1: 9
        0.5 positive: floor(x1/x2) | -0.25 2.5: -1""",
    "hypot": """±inf any: inf | any ±inf: inf | ±0 known: abs(x2) | known ±0: abs(x1)
        finite nan: nan | nan finite: nan | nan nan: nan""",
    "logaddexp": "nan any: nan | any nan: nan | inf known: inf | known inf: inf",
    "maximum": "nan any: nan | any nan: nan | inf known: inf",
    "minimum": "nan any: nan | any nan: nan | -inf known: -inf",
    "multiply": """nan any: nan | any nan: nan | ±inf ±0: nan | ±0 ±inf: nan | inf >0: inf
        inf <0: -inf | -inf >0: -inf | -inf <0: inf | 0 positive: 0 | 0 negative: -0
        -0 negative: 0""",
    "nextafter": "nan any: nan | any nan: nan | -0 0: 0 | 0 -0: -0",
    "not_equal": "nan any: 1 | any nan: 1 | inf -inf: 1 | ±0 ±0: 0",
    "pow": """not1 nan: nan | any 0: 1 | any -0: 1 | nan not0: nan | |x|>1 inf: inf
        |x|>1 -inf: 0 | ±1 ±inf: 1 | 1 known: 1 | |x|<1 inf: 0 | |x|<1 -inf: inf | inf >0: inf
        inf <0: 0 | -inf odd: -inf | -inf even: inf | -inf -odd: -0 | -inf -even: 0 | 0 >0: 0
        0 <0: inf | -0 odd: -0 | -0 even: 0 | -0 -odd: -inf | -0 -even: inf
        negative fraction: nan""",
    "remainder": """nan any: nan | any nan: nan | ±inf ±inf: nan | ±0 ±0: nan | ±0 >0: 0 | ±0 <0: -0
        >0 ±0: nan | <0 ±0: nan | ±inf nonzero: nan | positive inf: x1 | positive -inf: x2
        negative inf: x2 | negative -inf: x1 | 7 2: 1 | -7 2: 1 | 7 -2: -1 | -7 -2: -1
        4 2: 0 | -4 2: 0 | 4 -2: -0 | -4 -2: -0""",
}


def rows(table):
    """(operands, expression) of each row, the sets multiplied out."""
    for row in table.replace("\n", " | ").split(" | "):
        if row.strip():
            operands, _, result = row.partition(":")
            for xs in itertools.product(*[SETS.get(o) or (float(o),) for o in operands.split()]):
                yield xs, result.strip()


def value(expression, xs):
    """The number that an expression of a table is."""
    names = {"inf": inf, "nan": nan, "pi": pi, "abs": abs, "floor": math.floor}
    return float(eval(expression, {**names, **{f"x{i + 1}": x for i, x in enumerate(xs)}}))


def same(got, want, tol=0.0):
    if math.isnan(want):
        return math.isnan(got)
    if want == 0 or math.isinf(want):
        return got == want and math.copysign(1, got) == math.copysign(1, want)
    return abs(got - want) <= tol * abs(want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_real_special_cases_are_the_standards(name, dtype):
    known = [(xs, value("-0.0" if e == "-0" else e, xs))
             for xs, e in rows(UNARY.get(name) or BINARY[name])]
    if dtype.endswith("16"):    # 1e30 is infinite in float16, 0.1 another number
        known = [(xs, w) for xs, w in known if not {1e30, 0.1} & set(map(abs, xs))]
    wide = dtype == "float64"
    with olympus.enable_x64(wide):
        operands = [np.array(x, getattr(onp, dtype).dtype) for x in zip(*[xs for xs, _ in known])]
        calls = [getattr(onp, name), olympus.jit(getattr(onp, name))]
        for call in calls if dtype == "float32" else calls[:1]:
            got = np.asarray(call(*map(onp.asarray, operands))).astype(np.float64)
            tol = {"float64": 1e-15, "float32": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}[dtype]
            wrong = [(xs, g, w) for (xs, w), g in zip(known, got.tolist(), strict=True)
                     if not same(g, w, tol)]
            assert not wrong, len(wrong)


def test_integers_are_divided_as_numpys():
    x = np.array([7, -7, 7, -7, 5, 0, -128, -8], np.int8)
    y = np.array([2, 2, -2, -2, 0, 0, -1, 4], np.int8)
    with np.errstate(all="ignore"):
        for name in ("floor_divide", "remainder", "fmod", "divmod"):
            for a, b in ((x, y), (x.view(np.uint8), y.view(np.uint8))):
                for got, want in zip(olympus.tree.leaves(getattr(onp, name)(a, b)),
                                     olympus.tree.leaves(getattr(np, name)(a, b)), strict=True):
                    np.testing.assert_array_equal(got, want, name)


def test_divmod_is_pythons():
    values = [0.0, -0.0, 0.5, -0.5, 2.0, -2.0, 7.5, inf, -inf, nan]
    pairs = [(x, y) for x in values for y in values if y != 0]
    for (x, y), q, r in zip(pairs, *map(np.asarray, onp.divmod(*map(np.float32, zip(*pairs))))):
        want = divmod(x, y)
        assert same(float(q), want[0]) and same(float(r), want[1]), (x, y, q, r)


def test_gradients_are_what_they_were():
    for name, want in (("remainder", (1.0, -2.0)), ("floor_divide", (0.0, 0.0)), ("sign", (0.0,))):
        for x in (4.0, 5.0, 4.5):
            args = (x, 2.0)[:len(want)]
            got = olympus.grad(getattr(onp, name), tuple(range(len(want))))(*args)
            assert tuple(map(float, got)) == want, (name, x)


# Complex numbers ---------------------------------------------------------------------------------

# `a b: real imag` for z = a + bi, and its conjugate; `?` before a part: its sign is not specified;
# cos and sin are of b.
COMPLEX = {
    "abs": """±inf any: inf 0 | any inf: inf 0 | ±0 finite: abs(b) 0 | finite ±0: abs(a) 0
        nan finite: nan 0 | finite nan: nan 0 | nan nan: nan 0""",
    "acos": """±0 0: pi/2 -0 | ±0 nan: pi/2 nan | finite inf: pi/2 -inf | nonzero nan: nan nan
        -inf positive: pi -inf | inf positive: 0 -inf | -inf inf: 3*pi/4 -inf | inf inf: pi/4 -inf
        ±inf nan: nan ?inf | nan finite: nan nan | nan inf: nan -inf | nan nan: nan nan""",
    "acosh": """±0 0: 0 pi/2 | finite inf: inf pi/2 | nonzero nan: nan nan | 0 nan: nan ?pi/2
        -inf positive: inf pi | inf positive: inf 0 | -inf inf: inf 3*pi/4 | inf inf: inf pi/4
        ±inf nan: inf nan | nan finite: nan nan | nan inf: inf nan | nan nan: nan nan""",
    "asinh": """0 0: 0 0 | positive inf: inf pi/2 | finite nan: nan nan | inf positive: inf 0
        inf inf: inf pi/4 | inf nan: inf nan | nan 0: nan 0 | nan nonzero: nan nan
        nan inf: ?inf nan | nan nan: nan nan | -0 0: -0 0 | -inf positive: -inf 0""",
    "atanh": """0 0: 0 0 | 0 nan: 0 nan | 1 0: inf 0 | positive inf: 0 pi/2 | nonzero nan: nan nan
        inf positive: 0 pi/2 | inf inf: 0 pi/2 | inf nan: 0 nan | nan finite: nan nan
        nan inf: ?0 pi/2 | nan nan: nan nan | -0 0: -0 0 | -inf positive: -0 pi/2""",
    "cosh": """0 0: 1 0 | 0 inf: nan ?0 | 0 nan: nan ?0 | nonzero inf: nan nan
        nonzero nan: nan nan | inf 0: inf 0 | inf nonzero: inf*cos inf*sin | inf inf: ?inf nan
        inf nan: inf nan | nan ±0: nan ?0 | nan nonzero: nan nan | nan nan: nan nan
        -inf nonzero: inf*cos -inf*sin""",
    "exp": """±0 0: 1 0 | finite inf: nan nan | finite nan: nan nan | inf 0: inf 0
        -inf finite: 0*cos 0*sin | inf nonzero: inf*cos inf*sin | -inf inf: ?0 ?0
        inf inf: ?inf nan | -inf nan: ?0 ?0 | inf nan: ?inf nan | nan 0: nan 0
        nan nonzero: nan nan | nan nan: nan nan""",
    "expm1": """±0 0: 0 0 | finite inf: nan nan | finite nan: nan nan | inf 0: inf 0
        -inf finite: -1 0*sin | inf nonzero: inf*cos inf*sin | -inf inf: -1 ?0 | inf inf: ?inf nan
        -inf nan: -1 ?0 | inf nan: ?inf nan | nan 0: nan 0 | nan nonzero: nan nan
        nan nan: nan nan""",
    "log": """-0 0: -inf pi | 0 0: -inf 0 | finite inf: inf pi/2 | finite nan: nan nan
        -inf positive: inf pi | inf positive: inf 0 | -inf inf: inf 3*pi/4 | inf inf: inf pi/4
        ±inf nan: inf nan | nan finite: nan nan | nan inf: inf nan | nan nan: nan nan""",
    "log1p": """-1 0: -inf 0 | finite inf: inf pi/2 | finite nan: nan nan | -inf positive: inf pi
        inf positive: inf 0 | -inf inf: inf 3*pi/4 | inf inf: inf pi/4 | ±inf nan: inf nan
        nan finite: nan nan | nan inf: inf nan | nan nan: nan nan""",
    "sign": "±0 ±0: 0 0 | nan any: nan nan | any nan: nan nan",
    "sinh": """0 0: 0 0 | 0 inf: ?0 nan | 0 nan: ?0 nan | positive inf: nan nan
        positive nan: nan nan | inf 0: inf 0 | inf positive: inf*cos inf*sin | inf inf: ?inf nan
        inf nan: ?inf nan | nan 0: nan 0 | nan nonzero: nan nan | nan nan: nan nan
        -0 0: -0 0 | -inf 0: -inf 0""",
    # Of an infinite a the standard's rows are exchanged by mistake; these are C99's and NumPy's.
    "sqrt": """±0 0: 0 0 | any inf: inf inf | finite nan: nan nan | -inf positive: 0 inf
        inf positive: inf 0 | -inf nan: nan ?inf | inf nan: inf nan | nan finite: nan nan
        nan nan: nan nan""",
    "tanh": """0 0: 0 0 | nonzero inf: nan nan | 0 inf: 0 nan | nonzero nan: nan nan | 0 nan: 0 nan
        inf positive: 1 ?0 | inf inf: 1 ?0 | inf nan: 1 ?0 | nan 0: nan 0 | nan nonzero: nan nan
        nan nan: nan nan | -0 0: -0 0 | -inf 0: -1 0""",
}
# What is another function at i z, turned back: f(z) = turn * g(i z).
TURNED = {"asin": ("asinh", -1j), "atan": ("atanh", -1j), "cos": ("cosh", 1), "sin": ("sinh", -1j),
          "tan": ("tanh", -1j)}


def complex_number(a, b):
    return np.array([a, b]).view(np.complex128)[0]


def times_i(z, times):
    """Exactly: infinities and zeros are only moved."""
    for _ in range(times):
        z = complex_number(-z.imag, z.real)
    return z


def part(expression, a, b):
    """(the value of a part of a result, whether its sign counts)."""
    names = {"inf": inf, "nan": nan, "pi": pi, "abs": abs, "a": a, "b": b, "cos": math.cos(b)
             if math.isfinite(b) else nan, "sin": math.sin(b) if math.isfinite(b) else nan}
    unsigned = expression.startswith("?")
    expression = expression.lstrip("?")
    return float("-0.0" if expression == "-0" else eval(expression, names)), not unsigned


def complex_rows(name):
    """(z, real part, imaginary part) of each row, the parts as pairs."""
    for (a, b), result in rows(COMPLEX[name]):
        if 1e30 in (abs(a), abs(b)):        # of which float32 has another sine
            continue
        re, im = [part(e, a, b) for e in result.split()]
        yield complex_number(a, b), re, im
        if not math.isnan(b):       # conj(f(z)) is f(conj(z))
            yield complex_number(a, -b), re, (im[0] if name in ("abs", "sign") else -im[0], im[1])


def as_wanted(got, want):
    value, signed = want
    return same(abs(got), abs(value), 1e-6) if not signed else same(got, value, 1e-6)


@pytest.mark.parametrize("name", [*COMPLEX, *TURNED])
def test_complex_special_cases_are_the_standards(name):
    base, turn = TURNED.get(name, (name, 1))
    zs, parts = [], []
    for z, re, im in complex_rows(base):
        zs.append(times_i(z, 3) if name != base else z)     # i z is the row's operand
        parts.append((im, (-re[0], re[1])) if turn == -1j else (re, im))
    for dtype in (np.complex64, np.complex128):
        with olympus.enable_x64(dtype is np.complex128):
            got = np.asarray(getattr(onp, name)(np.array(zs, dtype))).astype(np.complex128)
        wrong = [(z, g, re, im) for z, g, (re, im) in zip(zs, got.tolist(), parts, strict=True)
                 if not (as_wanted(g.real, re) and as_wanted(g.imag, im))]
        assert not wrong


@pytest.mark.parametrize("name", ["exp", "sin", "cos", "sinh", "cosh", "tanh", "sqrt", "log", "abs",
                                  "asin", "acos", "acosh", "atanh", "expm1"])
def test_complex_values_and_derivatives_are_numpys(name):
    """At ordinary points, on the axes too, nothing is mended; derivatives are differences."""
    fun, theirs = getattr(onp, name), getattr(np, name)
    z = np.array([1 + 2j, -0.5 + 0.25j, 0.3j, -1.5j, 0.75, -0.6, 2.5 - 1j])
    with olympus.enable_x64(True):
        np.testing.assert_allclose(fun(z), theirs(z), rtol=1e-13, atol=1e-15)
        if name == "abs":
            return
        h = 1e-6
        slope = olympus.jvp(fun, (z,), (np.ones_like(z),))[1]
        np.testing.assert_allclose(slope, (theirs(z + h) - theirs(z - h)) / (2 * h), rtol=1e-6)
