"""ufunc objects against NumPy's: one table of all functions, methods, dtypes and axes."""

import copy
import functools
import inspect
import pickle
import pydoc

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus._src.numpy.ufunc_table import UFUNCS

NAMES = sorted(UFUNCS)
CORE = ["matmul", "vecdot", "matvec", "vecmat"]
EACH = [n for n in NAMES if n not in CORE]
BINARY = [n for n in EACH if UFUNCS[n].nin == 2 and UFUNCS[n].nout == 1]
SEQUENCES = [n for n in BINARY if n not in ("ldexp", "nextafter")]
# The dtype of most rows: float32 where there is a loop for it.
FIRST = [(n, "f4" if "f" in str(UFUNCS[n].types) else "i4") for n in SEQUENCES]
POWERS = ("power", "float_power")
BOOLEAN = ("add", "multiply", "subtract", "maximum", "fmin", "equal", "less", "bitwise_and",
           "logical_xor", "logical_or")


def numbers(dtype, shape, seed=0, few=False):
    """Small numbers, so that results are far from overflow; `few` are not 1."""
    size = int(np.prod(shape))
    x = np.random.default_rng(seed + size).permutation(size) % 5 + 1
    if dtype == "?":
        return (x % 2 > 0).reshape(shape)
    if few:
        x = 1 + (x == 1)
    return (x * (0.5 if np.dtype(dtype).kind in "fc" else 1)).astype(dtype).reshape(shape)


def oracle(name):
    """NumPy's ufunc; of those whose vectorised loops overwrite what they read, one without them."""
    own = getattr(np, name)
    if name not in ("arctan2", *POWERS):
        return own
    return np.frompyfunc(lambda x, y: own(np.asarray(x)[()], np.asarray(y)[()]), 2, 1)


def outcome(call):
    """What a call returns, or the class of what it raises."""
    try:
        with np.errstate(all="ignore"):
            return call()
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        return next(c for c in (TypeError, ValueError, IndexError, RuntimeError)
                    if isinstance(error, c))


def agree(mine, theirs, what="", kinds=True):
    """The same error, or values of one kind of dtype."""
    if isinstance(theirs, type) or isinstance(mine, type):
        assert mine is theirs, what
        return
    got, want = np.asarray(mine), np.asarray(theirs)
    assert got.shape == want.shape, what
    if kinds:
        assert got.dtype.kind.replace("u", "i") == want.dtype.kind.replace("u", "i"), what
    np.testing.assert_allclose(got.astype("c16"), want.astype("c16"), rtol=2e-5, err_msg=what)


@pytest.mark.parametrize("name", NAMES)
def test_attributes_are_numpys(name):
    mine, theirs = getattr(onp, name), getattr(np, name)
    assert isinstance(mine, onp.ufunc) and mine.__name__ == theirs.__name__
    for attribute in ("nin", "nout", "nargs", "identity", "signature"):
        assert getattr(mine, attribute) == getattr(theirs, attribute), attribute
    assert mine.ntypes == len(mine.types) == len(set(mine.types))


def test_every_ufunc_of_numpy_is_one():
    theirs = [n for n in dir(np) if isinstance(getattr(np, n), np.ufunc) and n != "isnat"]
    assert [n for n in theirs if not isinstance(getattr(onp, n), onp.ufunc)] == []
    for n in theirs:    # other names are other names of one object
        assert getattr(onp, n) is getattr(onp, getattr(np, n).__name__)


@pytest.mark.parametrize("name", NAMES)
def test_types_are_true(name):
    """Of each loop the result's dtype; of dtypes without a loop, that they are converted."""
    fun, shape = UFUNCS[name], (2, 2) if name in CORE else ()
    scalar = {"E": onp.bfloat16}
    with olympus.enable_x64(True):
        for loop in fun.types:
            ins, outs = loop.split("->")
            given = [olympus.ShapeDtypeStruct(shape, np.dtype(scalar.get(c, c))) for c in ins]
            made = olympus.tree.leaves(olympus.eval_shape(fun, *given))
            assert [m.dtype for m in made] == [np.dtype(scalar.get(c, c)) for c in outs], loop
        for char in set("?bhilBHILeEfdFD") - {loop[0] for loop in fun.types}:
            given = [olympus.ShapeDtypeStruct(shape, np.dtype(scalar.get(char, char)))] * fun.nin
            made = outcome(lambda: olympus.tree.leaves(olympus.eval_shape(fun, *given)))
            assert isinstance(made, type) or made[0].dtype != given[0].dtype, char


def sequences(*dtypes):
    """Rows of names and dtypes; gcd and lcm refuse others than integers with JAX's ValueError."""
    return [(n, d) for n in SEQUENCES for d in dtypes
            if (d == "i4" or n not in ("gcd", "lcm")) and (d != "?" or n in BOOLEAN)]


@pytest.mark.parametrize(("name", "dtype"), sequences("i4", "f4", "?"))
def test_reduce_is_numpys(name, dtype):
    mine, theirs = getattr(onp, name), oracle(name)
    x, mask = numbers(dtype, (3, 4), few=name in POWERS), numbers("?", (3, 4), 1)
    kinds = isinstance(theirs.types[0], str) and theirs.types != ["OO->O"]
    calls = [(0, {}), (0, {"where": mask, "initial": 1})]
    if (name, dtype) in FIRST:
        calls += [(-1, {"keepdims": True}), (None, {}), ((0, 1), {}), ((), {}),
                  (0, {"where": mask})]
    for axis, options in calls:
        agree(outcome(lambda: mine.reduce(x, axis, **options)),
              outcome(lambda: theirs.reduce(x, axis, **options)), f"{axis} {options}", kinds)
    for empty, options in ((x[:0], {}), (x[:0], {"initial": 1}), (x[:, :0], {}), (x[0, 0], {})):
        agree(outcome(lambda: mine.reduce(empty, **options)),
              outcome(lambda: theirs.reduce(empty, **options)), f"{empty.shape} {options}", kinds)


@pytest.mark.parametrize(("name", "dtype"), FIRST)
def test_accumulate_reduceat_and_outer_are_numpys(name, dtype):
    mine, theirs = getattr(onp, name), oracle(name)
    x, places = numbers(dtype, (2, 7), few=name in POWERS), np.array([0, 3, 1, 6, 6, 2])
    kinds = theirs.types != ["OO->O"]
    for axis in (0, 1, None):
        agree(outcome(lambda: mine.accumulate(x, axis)),
              outcome(lambda: theirs.accumulate(x, axis)), f"accumulate {axis}", kinds)
    agree(outcome(lambda: mine.reduceat(x, places, 1)),
          outcome(lambda: theirs.reduceat(x, places, 1)), "reduceat", kinds)
    agree(outcome(lambda: mine.outer(x[0], x)), outcome(lambda: theirs.outer(x[0], x)), "outer",
          kinds)


@pytest.mark.parametrize("name", EACH)
def test_at_is_numpys(name):
    mine, theirs = getattr(onp, name), getattr(np, name)
    for dtype in ("i4", "f4") if name in ("add", "subtract", "divide", "sqrt", "less") else (
            "f4" if "f" in str(mine.types) else "i4",):
        x, b = numbers(dtype, (5,), few=name in POWERS), numbers(dtype, (4,), 2)
        places = np.array([0, 3, 3, -1])
        more = (b,) if mine.nin == 2 else ()

        def written():
            out = x.copy()
            theirs.at(out, places, *more)
            return out

        want = outcome(written)
        got = outcome(lambda: mine.at(x, places, *more, inplace=False))
        if not (name in ("gcd", "lcm", "ldexp") and dtype == "f4") and not (
                want is TypeError and not isinstance(got, type)):      # NumPy has no float32 loop
            agree(got, want, dtype)


def test_methods_refuse_what_numpy_refuses():
    x = np.ones((2, 3), np.float32)
    calls = [
        lambda m: m.sin.reduce(x), lambda m: m.divmod.reduce(x), lambda m: m.sin.outer(x, x),
        lambda m: m.sin.accumulate(x), lambda m: m.sin.reduceat(x, [0]),
        lambda m: m.add.accumulate(np.float32(5)), lambda m: m.add.reduceat(np.float32(5), [0]),
        lambda m: m.add.reduceat(x, [0, 3], 1), lambda m: m.add.reduceat(x, [-1]),
        lambda m: m.add.reduceat(x, 0), lambda m: m.add.reduce(x, axis=3),
        lambda m: m.add.reduce(x, axis=(0, 0)), lambda m: m.subtract.reduce(x, axis=(0, 1)),
        lambda m: m.add.accumulate(x, axis=None), lambda m: m.sin(x, dtype="i4"),
        lambda m: m.add(x, x, dtype="i4"), lambda m: m.less(x, x, dtype="f4"),
        lambda m: m.add(x.astype("i4"), x, casting="no"), lambda m: m.sin(x.astype("i4"),
                                                                          casting="no"),
        lambda m: m.add(x, x, casting="foo"), lambda m: m.add(x, x, order="Z"),
        lambda m: m.add(x, x, bar=1), lambda m: m.add(x), lambda m: m.add(x, x, 3),
        lambda m: m.add(x, x, out=3), lambda m: m.divide.reduce(x.astype("i4"), dtype="i4"),
    ]
    for i, call in enumerate(calls):
        want = outcome(lambda: call(np))
        assert isinstance(want, type) and outcome(lambda: call(onp)) is want, i
    x = onp.ones(3)
    with pytest.raises(ValueError, match="inplace"):
        onp.add.at(x, 0, 1.0)
    for call in (lambda: onp.add.at(x, 0, inplace=False),
                 lambda: onp.negative.at(x, 0, 1.0, inplace=False)):
        with pytest.raises(ValueError, match="second"):
            call()


# Keywords ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", EACH)
def test_keywords_are_numpys(name):
    """Where a mask holds the value is NumPy's, elsewhere 0; `dtype` is the loop's."""
    mine, theirs = getattr(onp, name), getattr(np, name)
    dtypes = ["f4", "i4"] if name == "ldexp" else ["f4" if "f" in str(mine.types) else "i4"] * 2
    xs = [numbers(d, (3, 2), k) for k, d in enumerate(dtypes[:mine.nin])]
    mask = numbers("?", (3, 2), 1)
    with np.errstate(all="ignore"):
        whole = theirs(*xs)
        outs = tuple([np.zeros_like(o) for o in (whole if mine.nout > 1 else (whole,))])
        theirs(*xs, out=outs, where=mask)
    got = mine(*xs, where=mask)
    for g, w in zip(got if mine.nout > 1 else (got,), outs, strict=True):
        agree(g, w)
    plain = mine(*xs, None, where=True, order="C", subok=False, casting="same_kind")
    for g, w in zip(*[o if mine.nout > 1 else (o,) for o in (plain, whole)], strict=True):
        agree(g, w)


A, B = [np.random.default_rng(k).normal(size=(2, 3, 3)).astype("c8") for k in range(2)]
AXES = [("matmul", [(2, 1), (-1, -2), (0, 2)]),
        ("vecdot", [1, 1]), ("vecdot", [2, (1,), ()]), ("matvec", [(1, 2), 1, 0]),
        ("vecmat", [1, (2, 1), -1])]


@pytest.mark.parametrize(("name", "axes"), AXES)
def test_axes_are_numpys(name, axes):
    mine, theirs = getattr(onp, name), getattr(np, name)
    args = {"matvec": (A, B[:, 0]), "vecmat": (A[:, 0], B)}.get(name, (A, B))
    np.testing.assert_allclose(mine(*args, axes=axes), theirs(*args, axes=axes), rtol=1e-5)


def test_options_of_products_are_numpys():
    a = A.real
    calls = [
        lambda m: m.vecdot(a, a, axis=1), lambda m: m.vecdot(a, a, axis=1, keepdims=True),
        lambda m: m.vecdot(a, a, axes=[1, 1], keepdims=True),
        lambda m: m.vecdot(a, a, axes=[1, 1, 0], keepdims=True),
        lambda m: m.vecdot(a, a, keepdims=True),
        lambda m: m.matmul(a, a[0, 0], axes=[(1, 2), 0, 1]),
        lambda m: m.matmul(a[0, 0], a, axes=[0, (2, 1), 0]), lambda m: m.matmul(a, a, dtype="f2"),
        lambda m: m.matmul(a, a, casting="no", order="C", subok=False),
        lambda m: m.matmul(a, a, axis=1), lambda m: m.matmul(a, a, keepdims=True),
        lambda m: m.vecdot(a, a, axes=[1]), lambda m: m.vecdot(a, a, axes=[1, 1], axis=1),
        lambda m: m.vecdot(a, a, axes=5), lambda m: m.matvec(a, a[0], axis=0),
        lambda m: m.matmul(a, a, axes=[(0, 1, 2), (1, 0), (0, 1)]),
        lambda m: m.matmul(a, a, axes=[(0, 5), (1, 0), (0, 1)]),
        lambda m: m.matmul(a, a, dtype="i4"),
        lambda m: m.matmul(a, a, where=True), lambda m: m.matmul(a, a, out=3),
        lambda m: m.matmul.reduce(a), lambda m: m.vecdot.accumulate(a),
        lambda m: m.matvec.outer(a, a), lambda m: m.matmul.reduceat(a, [0]),
    ]
    for i, call in enumerate(calls):
        mine, theirs = outcome(lambda: call(onp)), outcome(lambda: call(np))
        if isinstance(mine, type) or isinstance(theirs, type):
            assert mine is theirs, i
        else:
            tol = 1e-2 if theirs.dtype == np.float16 else 1e-5
            np.testing.assert_allclose(mine, theirs, rtol=tol, atol=tol, err_msg=str(i))
            assert mine.dtype == theirs.dtype


def test_a_mask_stops_derivatives():
    x, mask = onp.array([4.0, 0.0, -1.0]), np.array([True, False, False])
    for fun, want in ((onp.sqrt, [0.25, 0, 0]), (onp.log, [0.25, 0, 0])):
        got = olympus.grad(lambda x: fun(x, where=mask).sum())(x)
        np.testing.assert_array_equal(got, want)
    np.testing.assert_allclose(olympus.grad(
        lambda x: onp.divide(x, x - 4.0, where=x < 0).sum())(x), [0, 0, -4 / 25])
    assert olympus.grad(lambda x: onp.sqrt(x, where=x > 0))(0.0) == 0
    np.testing.assert_array_equal(olympus.vmap(lambda x, m: onp.add(x, 1, where=m))(x, mask),
                                  [5, 0, 0])


# Methods under transformations -------------------------------------------------------------------

def folded(fun, xs):
    out = xs[0]
    for x in xs[1:]:
        out = fun(out, x)
    return out


@pytest.mark.parametrize("name", ["subtract", "fmin"])
def test_methods_are_loops_to_jit_grad_and_vmap(name):
    fun = getattr(onp, name)
    x = onp.asarray(np.random.default_rng(0).uniform(0.5, 2.0, 5), np.float32)
    places = np.array([0, 2, 4])

    def looped(x):
        runs = [folded(fun, x[:n]) for n in range(1, 6)]
        ats = [folded(fun, x[a:b]) for a, b in ((0, 2), (2, 4), (4, 5))]
        return onp.stack([runs[-1], *runs, *ats, fun(x[0], x[1]), fun(x[1], x[0]),
                          fun(fun(x[2], x[0]), x[1])])

    def methods(x):
        new = fun.at(x, np.array([2, 2]), x[:2], inplace=False)
        return onp.concatenate([fun.reduce(x)[None], fun.accumulate(x), fun.reduceat(x, places),
                                fun.outer(x[:1], x[1:2])[0], fun.outer(x[1:2], x[:1])[0],
                                new[2:3]])

    same = lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
    values, slopes = olympus.jit(looped), olympus.jit(olympus.jacrev(looped))(x)
    same(olympus.jit(methods)(x), values(x))
    same(olympus.jit(olympus.jacrev(methods))(x), slopes)
    same(olympus.jit(olympus.jacfwd(methods))(x), slopes)
    both = onp.stack([x, x[::-1]])
    same(olympus.jit(olympus.vmap(methods))(both), onp.stack([values(y) for y in both]))
    traced = olympus.jit(lambda x, at: fun.reduceat(x, at))(x, places)
    same(traced, fun.reduceat(x, places))


# Objects -----------------------------------------------------------------------------------------

def test_a_ufunc_is_a_function_of_its_module():
    for name in ("add", "sin", "trunc", "power", "frexp"):
        fun = getattr(onp, name)
        assert fun.__module__ == "olympus.numpy" and name in repr(fun)
        assert pickle.loads(pickle.dumps(fun)) is fun and copy.deepcopy(fun) is fun
        assert {fun: 1}[fun] == 1
        assert "where" in inspect.signature(fun).parameters
        assert not isinstance(olympus.jit(fun), onp.ufunc)
        assert "ArrayLike" in pydoc.render_doc(fun)
    assert olympus.jit(lambda f, x: f(x), static_argnums=0)(onp.sin, 0.0) == 0
    assert functools.partial(onp.add, 1.0)(2.0) == 3
    assert not isinstance(onp.sum, onp.ufunc) and not isinstance(3, onp.ufunc)
    assert issubclass(onp.ufunc, object) and onp.add.reduce.__doc__


def ratio(x, y):
    """A function that does not associate."""
    return x / (1 + y)


def test_frompyfunc_makes_ufuncs():
    fun = onp.frompyfunc(ratio, 2, 1)
    assert isinstance(fun, onp.ufunc) and type(fun) is onp.ufunc and fun.__name__ == "ratio"
    assert (fun.nin, fun.nout, fun.nargs, fun.identity) == (2, 1, 3, None)
    assert repr(fun) == "<olympus.numpy.ufunc 'ratio'>" and "associate" in fun.__doc__
    assert fun == onp.frompyfunc(ratio, 2, 1) != onp.frompyfunc(ratio, 2, 1, identity=1)
    assert hash(fun) == hash(onp.frompyfunc(ratio, 2, 1))
    x = np.array([[1.0, 2, 3], [4, 5, 7]], np.float32)
    theirs = np.frompyfunc(ratio, 2, 1)
    for call in (lambda f: f(x, x[0]), lambda f: f.reduce(x, 1), lambda f: f.accumulate(x),
                 lambda f: f.reduceat(x, [0, 2, 1], 1), lambda f: f.outer(x[0], x)):
        agree(call(fun), call(theirs), kinds=False)
    np.testing.assert_allclose(fun.at(x, (0, np.array([1, 1])), 3.0, inplace=False)[0, 1], 2 / 16)
    np.testing.assert_array_equal(fun(x, 1.0, where=x > 2), np.where(x > 2, x / 2, 0))
    assert float(onp.frompyfunc(max_of, 2, 1, identity=-1.0).reduce(np.zeros(0, "f4"))) == -1.0
    both = onp.frompyfunc(lambda x: (x + 1, x - 1), 1, 2)
    assert [float(o) for o in both(3.0)] == [4, 2]
    with pytest.raises(ValueError, match="no identity"):
        fun.reduce(x[:0])
    own = onp.ufunc(ratio, 2, 1, name="mine", call=lambda x, y: x - y,
                    reduce=lambda x, **options: options["axis"])
    assert own(3.0, 1.0) == 2 and own.reduce(x, 1) == 1 and own.__name__ == "mine"
    for bad, error in ((lambda: onp.ufunc(3, 1, 1), TypeError),
                       (lambda: onp.ufunc(ratio, 2, 1, nargs=4), ValueError),
                       (lambda: fun(1.0, 2.0, dtype="f4"), TypeError),
                       (lambda: fun(1.0), TypeError), (lambda: fun(1., 2., out=x), TypeError)):
        with pytest.raises(error):
            bad()


def max_of(x, y):
    return onp.maximum(x, y)


SIGNATURES = ["dd->d", "ff->f", (None, None, "f8"), ("f8", None, None), ("f8",), "d", "dd->f",
              "dd", np.float64, ("f4", "f8", None), "ii->i", "??->?", (None,) * 3]


@pytest.mark.parametrize("signature", SIGNATURES, ids=str)
def test_signature_chooses_the_loop(signature):
    """As NumPy: of the functions that have such a loop."""
    x, y = np.array([1, 2], "i4"), np.array([3.0, 4.0], "f4")
    with olympus.enable_x64(True):
        for name in ("add", "less", "logaddexp", "matmul", "gcd"):
            for a in (x, y):
                mine, theirs = (outcome(lambda m=m, a=a, n=name: getattr(m, n)(
                    a, a, signature=signature)) for m in (onp, np))
                agree(mine, theirs, f"{name} {a.dtype}")


def test_signature_beside_dtype_is_refused():
    with pytest.raises(TypeError, match="add: dtype and signature given"):
        onp.add(1.0, 2.0, dtype="f4", signature="ff->f")
    with pytest.raises(TypeError, match="has no loops|no loops to choose"):
        onp.frompyfunc(lambda x: x, 1, 1)(1.0, signature="f->f")


@pytest.mark.parametrize("name", NAMES)
def test_resolve_dtypes_says_what_a_call_has(name):
    """For each dtype that a call takes."""
    f = getattr(onp, name)
    kinds = ("?", "i1", "u2", "i4", "i8", "bfloat16", "f2", "f4", "f8", "c8", "c16")
    with olympus.enable_x64(True):
        for kind in kinds:
            dtype = onp.dtype(kind)
            try:
                found = olympus.eval_shape(f, *[onp.ones((2, 2), dtype)] * f.nin)
            except (TypeError, ValueError):
                continue
            found = found if isinstance(found, tuple) else (found,)
            given = (dtype,) * f.nin + (None,) * f.nout
            assert f.resolve_dtypes(given)[f.nin:] == tuple([x.dtype for x in found])


I2, I4, F4, F8, C8 = map(np.dtype, ("i2", "i4", "f4", "f8", "c8"))
RESOLVED = [
    ("add", (F4, int, None), {}), ("add", (int, float, None), {}), ("add", (complex, F4, None), {}),
    ("sin", (F4, None), {}), ("add", (F4, None, None), {}),
    ("add", (I4, I4, F4), {"casting": "no"}),
    ("add", (I4, I4), {}), ("add", [F4, F4, None], {}), ("add", ("f4", F4, None), {}),
    ("add", (F4, F4, I4), {}), ("add", (F4, F4, F8), {}), ("logical_and", (F4, F4, None), {}),
    ("add", (I4, I4, None), {"signature": "dd->d"}), ("sin", (C8, None), {"signature": "f->f"}),
    ("absolute", (C8, None), {"signature": (None, F8)}),
    ("absolute", (C8, None), {"signature": (None, F4)}), ("ldexp", (F4, I4, None), {}),
    ("add", (None, I2, None), {"reduction": True}),
    ("multiply", (F4, I2, None), {"reduction": True}),
    ("add", (None, I2, F4), {"reduction": True}), ("add", (F4, None, None), {"reduction": True}),
    ("logical_or", (None, F4, None), {"reduction": True}),
]


@pytest.mark.parametrize("row", RESOLVED, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}")
def test_resolve_dtypes_is_numpys(row):
    name, given, options = row
    with olympus.enable_x64(True):
        mine, theirs = (outcome(lambda m=m: getattr(m, name).resolve_dtypes(given, **options))
                        for m in (onp, np))
    assert mine == theirs
