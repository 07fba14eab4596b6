"""Control flow: scan, cond, switch, while_loop, fori_loop, map, associative_scan, callbacks.

The oracle is the unrolled Python loop in NumPy; derivatives are compared with those of the same
function written out.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import olympus
from olympus import (
    checkpoint, effects_barrier, grad, jit, jvp, lax, linearize, numpy as onp, pure_callback, vmap,
)
from olympus._src.host import debug
from olympus._src.host.callbacks import VMAP_METHODS
from olympus.experimental import io_callback
from olympus.lax import (
    add, associative_scan, cond, convert_element_type, fori_loop, gt, lt, map as lax_map, mul,
    reduce_sum, scan, sin, switch, while_loop,
)

X = np.float32(0.5)
XS = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
XS64 = [float(y) for y in XS]     # oracles compute in float64
FLAGS = np.array([True, False, True, False])


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b, np.asarray(a).dtype), rtol=2e-5)


# Each row: a function of one float32[] that contains control flow, and the same in plain Python
# with the operations given by `s` (sine), so that it serves as oracle and can be differentiated.

def looped(x):
    return scan(lambda c, y: (mul(c, sin(add(c, y))), None), x, XS)[0]


def looped_reverse(x):
    return reduce_sum(scan(lambda c, y: (mul(c, y), add(c, sin(c))), x, XS, reverse=True)[1], (0,))


def branched(x):
    return cond(gt(x, 0.35), lambda v: mul(v, sin(v)), lambda v: mul(v, 3.0), x)


def branched_in_loop(x):
    return scan(lambda c, y: (cond(gt(y, 0.25), lambda v: mul(v, y), sin, c), None), x, XS)[0]


def switched(x):
    return switch(1, [sin, lambda v: mul(v, v), lambda v: v], x)


def counted(x):
    return fori_loop(0, 3, lambda i, c: mul(c, sin(c)), x)


def mapped(x):
    return reduce_sum(lax_map(lambda y: mul(y, sin(mul(x, y))), XS, batch_size=3), (0,))


def prefixes(x):
    repeated = scan(lambda c, _: (c, c), x, None, 4)[1]
    return reduce_sum(associative_scan(mul, mul(XS, repeated)), (0,))


def while_doubling(x):
    return while_loop(lambda c: lt(c, 3.0), lambda c: mul(c, 2.0), x)


def plain_looped(x):
    for y in XS64:
        x = x * np.sin(x + y)
    return x


def plain_reverse(x):
    total = 0
    for y in XS64[::-1]:
        total, x = total + x + np.sin(x), x * y
    return total


def plain_branched_in_loop(x):
    for y in XS64:
        x = x * y if y > 0.25 else np.sin(x)
    return x


def plain_counted(x):
    for _ in range(3):
        x = x * np.sin(x)
    return x


def plain_while(x):
    while x < 3:
        x = x * 2
    return x


ROWS = {
    "scan": (looped, plain_looped),
    "scan_reverse": (looped_reverse, plain_reverse),
    "cond": (branched, lambda x: x * np.sin(x) if x > 0.35 else 3 * x),
    "cond_in_scan": (branched_in_loop, plain_branched_in_loop),
    "switch": (switched, lambda x: x * x),
    "fori": (counted, plain_counted),
    "map": (mapped, lambda x: sum(y * np.sin(x * y) for y in XS64)),
    "associative_scan": (prefixes, lambda x: np.cumprod(np.array(XS64) * x).sum()),
    "while": (while_doubling, plain_while),
}


def slope(oracle, x):
    return (oracle(float(x) + 1e-6) - oracle(float(x) - 1e-6)) / 2e-6


@pytest.mark.parametrize("name", ROWS)
def test_values(name):
    fun, oracle = ROWS[name]
    close(fun(X), oracle(0.5))
    close(jit(fun)(X), oracle(0.5))
    close(vmap(fun)(XS), [oracle(v) for v in XS64])
    close(jit(vmap(jit(fun)))(XS), [oracle(v) for v in XS64])


@pytest.mark.parametrize("name", ROWS)
def test_forward_mode(name):
    fun, oracle = ROWS[name]
    one, want = np.float32(1), slope(oracle, X)
    close(jvp(fun, (X,), (one,))[1], want)
    close(jit(lambda x: jvp(fun, (x,), (one,))[1])(X), want)
    close(linearize(fun, X)[1](one), want)
    close(vmap(lambda x: jvp(fun, (x,), (one,))[1])(XS), [slope(oracle, v) for v in XS])


@pytest.mark.parametrize("name", [n for n in ROWS if n != "while"])
def test_reverse_mode(name):
    fun, oracle = ROWS[name]
    want = slope(oracle, X)
    close(grad(fun)(X), want)
    close(jit(grad(fun))(X), want)
    close(grad(jit(fun))(X), want)
    close(vmap(grad(fun))(XS), [slope(oracle, v) for v in XS])
    close(grad(lambda v: reduce_sum(vmap(fun)(v), (0,)))(XS), [slope(oracle, v) for v in XS])
    second = jvp(grad(fun), (X,), (np.float32(1),))[1]
    close(grad(grad(fun))(X), second)


def test_scan_differentiates_xs_and_closed_over_values():
    def fun(c, xs, w):
        return scan(lambda c, x: (mul(mul(c, w), sin(x)), None), c, xs)[0]

    product = np.prod(np.sin(XS)) * 0.5 * 2.0 ** 4
    close(grad(fun, 1)(X, XS, np.float32(2)), product * np.cos(XS) / np.sin(XS))
    close(grad(fun, 2)(X, XS, np.float32(2)), product * 2)


@pytest.mark.parametrize("unroll", [1, 2, 3, 4, 9, True, False])
def test_scan_unroll(unroll):
    carry, ys = jit(lambda xs: scan(lambda c, x: (add(c, x), c), X, xs, unroll=unroll))(XS)
    close(carry, 1.5)
    close(ys, [0.5, 0.6, 0.8, 1.1])


def test_scan_without_xs_and_of_length_zero():
    close(scan(lambda c, _: (add(c, 1.0), c), X, None, 3)[1], [0.5, 1.5, 2.5])
    carry, ys = scan(lambda c, _: (add(c, 1.0), c), X, None, 0)
    close(carry, 0.5)
    assert ys.shape == (0,)


def test_weak_carry_takes_the_type_of_the_body():
    carry, _ = scan(lambda c, x: (add(c, x), None), 0.0, XS)
    assert not carry.weak_type
    close(carry, 1.0)
    out = while_loop(lambda c: lt(convert_element_type(c, "float32"), 3.0),
                     lambda c: add(convert_element_type(c, "float32"), X), 0)
    assert out.dtype == np.float32
    close(out, 3.0)


def test_mapped_predicates():
    close(vmap(lambda p, x: cond(p, sin, lambda v: mul(v, 3.0), x))(FLAGS, XS),
          np.where(FLAGS, np.sin(XS), 3 * XS))
    close(vmap(grad(lambda x, p: cond(p, sin, lambda v: mul(v, 3.0), x)))(XS, FLAGS),
          np.where(FLAGS, np.cos(XS), 3))
    index = np.arange(-1, 4)
    branches = [lambda v: v, lambda v: mul(v, 2.0), lambda v: mul(v, 3.0)]
    close(vmap(lambda i: switch(i, branches, X))(index), 0.5 * (np.clip(index, 0, 2) + 1))

    def power(n, x):
        return while_loop(lambda c: lt(c[0], n), lambda c: (add(c[0], 1), mul(c[1], x)),
                          (0, np.float32(1)))[1]

    close(vmap(power)(np.arange(4), XS), XS ** np.arange(4))
    close(jit(vmap(power))(np.arange(4), XS), XS ** np.arange(4))


def test_cond_spellings():
    close(cond(False, 1.0, lambda x: x, 2.0, lambda x: add(x, 1.0)), 3.0)
    close(cond(1, lambda x: x, lambda x: add(x, 1.0), operand=2.0), 2.0)
    close(jit(lambda y: cond(True, lambda: mul(y, 2.0), lambda: y))(X), 1.0)
    close(grad(lambda y: cond(True, lambda: mul(y, y), lambda: y))(X), 1.0)
    assert cond(True, lambda x: {"a": x}, lambda x: {"a": 1.0}, X)["a"].dtype == np.float32


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8"])
def test_fori_loop_with_traced_bounds(dtype):
    fun = jit(lambda n, x: fori_loop(0, n, lambda i, c: mul(c, sin(c)), x))
    close(fun(np.asarray(3, dtype), X), plain_counted(0.5))


def test_fori_loop_index():
    assert int(fori_loop(2, 5, lambda i, c: add(c, i), 0)) == 9
    assert int(fori_loop(5, 2, lambda i, c: add(c, i), 7)) == 7


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("n", range(1, 8))
def test_associative_scan_keeps_negative_zeros(n, dtype):
    zeros = -onp.zeros(n, dtype)
    for found in (associative_scan(add, zeros), associative_scan(add, zeros, reverse=True)):
        parts = onp.stack([found.real, found.imag]) if dtype == "complex64" else found
        assert onp.signbit(parts).all()


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(n, reverse):
    x = np.arange(1, 2 * n + 1, dtype=np.float32).reshape(2, n)
    step = -1 if reverse else 1
    want = np.cumsum(x[:, ::step], 1)[:, ::step]
    close(associative_scan(add, x, reverse=reverse, axis=1), want)
    close(associative_scan(lambda p, q: {"k": add(p["k"], q["k"])}, {"k": x}, reverse, -1)["k"],
          want)


def raises(error, pattern, fun):
    with pytest.raises(error, match=pattern):
        fun()


@pytest.mark.parametrize("error, pattern, fun", [
    (TypeError, r"scan: .*the carry .*unexpected keys \['b'\]",
     lambda: scan(lambda c, x: ({"a": x, "b": x}, None), {"a": X}, XS)),
    (TypeError, r"carry\['a'\] is float32\[4\], required float32\[\]",
     lambda: scan(lambda c, x: ({"a": XS}, None), {"a": X}, XS)),
    (TypeError, r"scan body output must be a pair", lambda: scan(lambda c, x: c, X, XS)),
    (ValueError, r"xs\[0\]: 4, xs\[1\]: 2", lambda: scan(lambda c, x: (c, x), X, (XS, XS[:2]))),
    (ValueError, "leading axis to scan over", lambda: scan(lambda c, x: (c, x), X, X)),
    (ValueError, "no values to scan over", lambda: scan(lambda c, x: (c, x), X)),
    (ValueError, "length: 3, xs: 4", lambda: scan(lambda c, x: (c, x), X, XS, 3)),
    (TypeError, "lax.scan: f is 3", lambda: scan(3, X, XS)),
    (TypeError, "found list of length 1; required tuple of length 2",
     lambda: cond(True, lambda x: (x, x), lambda x: [x], X)),
    (TypeError, r"the result\['a'\] is int32\[\], required float32\[\]",
     lambda: cond(True, lambda x: {"a": x}, lambda x: {"a": 1}, X)),
    (TypeError, r"Pred must be a scalar, got .* of shape", lambda: cond(XS, sin, sin, X)),
    (ValueError, "switch: Empty branch sequence", lambda: switch(0, [], X)),
    (TypeError, r"Pred must be a scalar, got left of type <class 'str'>",
     lambda: cond("left", sin, sin, X)),
    (ValueError, "Can only use `unroll` in `fori_loop` if the loop bounds are statically",
     lambda: jit(lambda n: lax.fori_loop(0, n, lambda i, x: x, 0, unroll=2))(3)),
    (TypeError, "Pred type must be either boolean or number, got <function",
     lambda: cond(lambda: True, sin, sin, X)),
    (TypeError, r"Index type must be an integer, got left\.", lambda: switch("left", [sin], X)),
    (TypeError, "Index type must be an integer", lambda: switch(1.5, [sin], X)),
    (TypeError, r"cond_fun must return a boolean scalar",
     lambda: while_loop(lambda c: c, lambda c: c, X)),
    (TypeError, r"while_loop: .*the value that <lambda> \(.*test_control.py:\d+\) returns differs "
     "from its input; at the root: found tuple of length 2",
     lambda: while_loop(lambda c: lt(c, 1.0), lambda c: (c, c), X)),
    (TypeError, r"the value is int32\[\], required float32\[\]",
     lambda: while_loop(lambda c: lt(c, 1.0), lambda c: 1, X)),
    (ValueError, "while_loop: Reverse-mode", lambda: grad(while_doubling)(X)),
    (ValueError, "while_loop: Reverse-mode", lambda: grad(jit(while_doubling))(X)),
    (TypeError, "convert lower with int", lambda: fori_loop(0.0, 2, lambda i, c: c, X)),
    (ValueError, "map: batch_size is -1", lambda: lax_map(sin, XS, batch_size=-1)),
    (ValueError, "elems has no leaves", lambda: associative_scan(add, ())),
])
def test_errors(error, pattern, fun):
    raises(error, pattern, fun)


# Callbacks --------------------------------------------------------------------------------------

def host_sin(x, method="sequential"):
    return pure_callback(lambda v: np.sin(v), x, x, vmap_method=method)


@pytest.mark.parametrize("method", VMAP_METHODS)
def test_pure_callback(method):
    close(host_sin(X, method), np.sin(X))
    close(jit(host_sin)(X), np.sin(X))
    close(vmap(lambda x: host_sin(x, method))(XS), np.sin(XS))

    def plus(x, y):
        return pure_callback(lambda v, w: np.sin(v) + w, x, x, y, vmap_method=method)

    close(jit(vmap(plus, (0, None)))(XS, X), np.sin(XS) + X)


@pytest.mark.parametrize("call", [
    pure_callback, io_callback, functools.partial(io_callback, ordered=True)])
def test_results_of_callbacks_may_be_read_by_columns(call):
    # `qr` and `solve` read matrices by columns: XLA asked the callback for a transposed result.
    m = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)

    @jit
    def run(x):
        y = call(np.asarray, x, x)
        return y, onp.linalg.qr(y)

    y, (q, r) = run(m)
    assert (y == m).all()
    np.testing.assert_allclose(q @ r, m, atol=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_callbacks_get_arrays_and_return_their_leaves_in_any_structure(wrap):
    seen = []

    def host(*args, **kwargs):
        seen.extend([*args, *kwargs.values()])
        return args[0]

    for call in (lambda x: pure_callback(host, x, x, k=x), lambda x: io_callback(host, x, x),
                 lambda x: (debug.callback(host, x, k=x), x)[1]):
        out = wrap(call)(XS)
        olympus.effects_barrier()
        close(out, XS)
        assert seen and all(isinstance(x, olympus.Array) for x in seen)
        close(seen.pop(), XS)
        seen.clear()
    for returned, promise in (((X, X), [X, X]), ((X,), X), (X, (X,)), ([X, X], {"a": X, "b": X})):
        out = wrap(lambda x, p=promise, r=returned: pure_callback(lambda _: r, p, x))(X)
        assert olympus.tree.structure(out) == olympus.tree.structure(promise)
        close(olympus.tree.leaves(out)[0], X)
    with olympus.enable_x64(True):
        out = wrap(lambda x: pure_callback(lambda v: (seen.append(v), v)[1], x, x))(np.float64(0.1))
        assert (seen[0].dtype, out.dtype, float(out)) == ("float64", "float64", 0.1)


def failing(_):
    raise KeyError("mine")


class Mine(Exception):
    def __init__(self, a, b):
        super().__init__("text")
        self.a, self.b = a, b


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
@pytest.mark.parametrize("error", [
    KeyError("k"), ZeroDivisionError(), RuntimeError("r"), FileNotFoundError(2, "no", "file"),
    UnicodeDecodeError("utf8", b"a", 0, 1, "r"), Mine(1, 2)], ids=lambda e: type(e).__name__)
def test_exceptions_of_callbacks_are_runtime_errors_too(error, wrap):
    def raising(_):
        raise error

    for base in (type(error), olympus.errors.OlympusRuntimeError):
        with pytest.raises(base) as caught:
            olympus.block_until_ready(wrap(lambda x: pure_callback(raising, x, x))(X))
        found = caught.value
        assert (str(found), repr(found), vars(found)) == (str(error), repr(error), vars(error))
        assert getattr(found, "filename", None) == getattr(error, "filename", None)


CALLS = {
    "pure": lambda f, x: pure_callback(f, x, x, vmap_method="sequential"),
    "io": lambda f, x: io_callback(f, x, x),
    "ordered io": lambda f, x: io_callback(f, x, x, ordered=True),
    "debug": lambda f, x: debug.callback(f, x) or x,
    "ordered debug": lambda f, x: debug.callback(f, x, ordered=True) or x,
}
AROUND = {
    "eager": lambda f: f,
    "jit": jit,
    "loop": lambda f: jit(lambda x: fori_loop(0, 2, lambda i, c: f(c), x)),
    "grad": lambda f: jit(grad(lambda x: mul(x, f(lax.stop_gradient(x))))),
    "vmap": lambda f: jit(lambda x: vmap(f)(onp.stack([x, x]))),
}


@pytest.mark.parametrize("kind, around", [
    (kind, around) for kind in CALLS for around in AROUND
    if (kind, around) != ("ordered io", "vmap")])
def test_ctrl_c_and_exit_in_a_callback_are_not_taken_for_an_error_of_the_program(kind, around):
    armed = None

    def host(x):
        if armed is not None:
            raise armed
        return x

    for called_before in (False, True):
        f = AROUND[around](lambda x: CALLS[kind](host, x))

        def run(f=f):
            olympus.block_until_ready(f(X))
            effects_barrier()

        if called_before:
            run()
        for armed in (KeyboardInterrupt(), SystemExit(3)):
            with pytest.raises(type(armed)) as caught:
                run()
            assert not isinstance(caught.value, Exception)
            assert caught.value.args == armed.args
        armed = None
        run()


@pytest.mark.parametrize("error, pattern, fun", [
    (ValueError, "vmap_method=None", lambda: vmap(lambda x: host_sin(x, None))(XS)),
    (ValueError, "Pure callbacks do not support JVP", lambda: grad(host_sin)(X)),
    (ValueError, "vmap_method must be one of", lambda: host_sin(X, "z")),
    (TypeError, r"returned float32\[3\] as result 0; float32\[\] was promised",
     lambda: pure_callback(lambda v: np.zeros(3, "f"), X, X)),
    (TypeError, r"returned float32\[3\] as result 0; float32\[\] was promised",
     lambda: jit(lambda x: pure_callback(lambda v: np.zeros(3, "f"), x, x))(X)),
    (TypeError, "another structure than result_shape_dtypes",
     lambda: pure_callback(lambda v: (v, v), X, X)),
    (KeyError, "mine", lambda: pure_callback(failing, X, X)),
    (KeyError, "mine", lambda: jit(lambda x: pure_callback(failing, x, x))(X)),
    (ValueError, "Cannot .vmap. ordered IO callback",
     lambda: vmap(lambda x: io_callback(lambda v: v, x, x, ordered=True))(XS)),
    (ValueError, r"names \['0'\]", lambda: debug.print("{}")),
    (IndexError, r"names \['0'\]", lambda: debug.print("{}", x=X)),
    (KeyError, r"names \['x'\]", lambda: debug.print("{x}", X)),
    (TypeError, "given without the first", lambda: debug.print(x=1)),
    (TypeError, "given without the first", lambda: debug.callback(None, 1)),
    (ValueError, r"names \['x'\]", lambda: debug.print("{x}", y=1)),
    (ValueError, r"Unused positional arguments: \['0'\] given", lambda: debug.print("a", X)),
    (ValueError, r"Unused keyword .* may be passing an f-string", lambda: debug.print("a", x=X)),
    (ValueError, r"names \['w'\]", lambda: debug.print("{x:{w}}", x=X)),
    (ValueError, r"names \['1'\]", lambda: debug.print("{:{}.2f}", X)),
    (TypeError, "debug.print: fmt is 3", lambda: debug.print(3)),
])
def test_callback_errors(error, pattern, fun):
    raises(error, pattern, fun)


@pytest.mark.parametrize("ordered", [False, True])
def test_io_callback_runs_once_each_time(ordered):
    log = []

    def record(x):
        return io_callback(lambda v: (log.append(float(v)), v)[1], x, x, ordered=ordered)

    record(X)
    fun = jit(lambda xs: scan(lambda c, x: (add(c, record(x)), None), X, xs)[0])
    close(fun(XS), 1.5)
    close(fun(XS), 1.5)
    effects_barrier()
    np.testing.assert_allclose(log, [0.5, *XS, *XS])


def test_ordered_callbacks_keep_their_order():
    log = []

    def record(i, x):
        io_callback(lambda v: log.append(i), None, x, ordered=True)

    def fun(x):
        for i in range(20):
            record(i, x)
        return x

    jit(fun)(X).block_until_ready()
    effects_barrier()
    assert log == list(range(20))


def square(x):
    debug.print("x={x} {}", 3, x=x)
    return mul(x, x)


@pytest.mark.parametrize("fun, args, count", [
    (square, X, 1), (jit(square), X, 1), (grad(square), X, 1), (jit(grad(square)), X, 1),
    (vmap(square), XS, 4), (jit(vmap(square)), XS, 4),
    (lambda xs: scan(lambda c, x: (c, square(x)), 0, xs), XS, 4),
    (lambda x: cond(True, square, lambda v: v, x), X, 1),
])
def test_debug_print(capfd, fun, args, count):
    fun(args)
    effects_barrier()
    values = np.asarray(args).reshape(-1)
    assert capfd.readouterr().out.splitlines() == [f"x={v} 3" for v in values][:count]


def test_debug_functions_take_their_options_first(capfd):
    seen = []
    jit(lambda x: debug.print(ordered=True)("x = {}", x))(2)
    debug.callback(ordered=True)(lambda v: seen.append(int(v)), 3)
    olympus.effects_barrier()
    assert capfd.readouterr().out == "x = 2\n"
    assert seen == [3]
    # Behind them any name is one of a value.
    debug.print(ordered=True)("{partitioned}", partitioned=4)
    debug.callback(ordered=True)(lambda **values: seen.append(sorted(values)), partitioned=4)
    olympus.effects_barrier()
    assert capfd.readouterr().out == "4\n" and seen == [3, ["partitioned"]]
    with pytest.raises(ValueError, match=r"Unused keyword arguments: \['partitioned'\]"):
        debug.print(ordered=True)("x", partitioned=False)


def test_debug_print_has_the_options_of_numpy_where_it_is_called(capfd):
    x = onp.array([1.23456, 1e-9])
    with np.printoptions(precision=3, suppress=True):
        for transform in (lambda f: f, jit):
            transform(lambda x: debug.print("{}", x))(x)
    jit(lambda x: debug.print("{}", x))(x)
    olympus.effects_barrier()
    assert capfd.readouterr().out == "[1.235 0.   ]\n" * 2 + "[1.23456e+00 1.00000e-09]\n"


@pytest.mark.parametrize("call", [pure_callback, io_callback])
def test_integers_of_callbacks_are_not_cut(call):
    promised = olympus.ShapeDtypeStruct((), np.int64)
    for transform in (lambda f: f, jit):
        power = transform(lambda x: call(lambda x: np.int64(2) ** int(x), promised, x))
        assert power(30) == 2 ** 30
        with pytest.raises(OverflowError, match="returned int64 .*does not hold"):
            power(40).block_until_ready()


def test_debug_print_formats(capfd):
    debug.print("{:.2f} {} {{}}", X, "static")
    jit(lambda x: debug.print("{}", x, ordered=True))(X)
    debug.print("{x:{w}.1f} {:{}}", 1, 3, x=X, w=5)
    debug.callback(lambda a, b: print(a, b), X, "q")
    debug.print("no field", X, x=2, skip_format_check=True)
    effects_barrier()
    assert capfd.readouterr().out.splitlines() == ["0.50 static {}", "0.5", "  0.5   1",
                                                   "0.5 q", "no field 0.5 2"]


# Evaluation while tracing -------------------------------------------------------------------------

@pytest.mark.parametrize("wrap", [
    lambda f: f, jit, lambda f: lambda x: jvp(f, (x,), (x,))[0],
    lambda f: lambda x: vmap(f)(x[None])[0], lambda f: checkpoint(jit(f)),
    lambda f: lambda x: scan(lambda c, _: (f(c), None), x, None, 1)[0]])
def test_what_depends_on_a_traced_value_is_staged_while_the_rest_is_evaluated(wrap):
    @olympus.custom_jvp
    def ruled(x, y):
        return sin(x) * y

    ruled.defjvps(lambda t, out, x, y: 7 * t, None)

    def f(x):
        with olympus.ensure_compile_time_eval():
            n = int(onp.arange(4).sum()) + int(jit(lambda: onp.ones(3).sum())())
            assert float(grad(ruled)(0.5, 2.0)) == 7 and float(ruled(0.0, 2.0)) == 0
            with olympus.ensure_compile_time_eval():
                y = onp.sin(x) * n + lax.cond(n > 3, lambda: 1.0, lambda: x.sum())
            assert int(onp.full(n, 2).sum()) == 2 * n
        return y * jit(onp.cos)(x)

    close(wrap(f)(XS), (np.sin(XS) * 9 + 1) * np.cos(XS))
    slope = grad(lambda x: wrap(f)(x).sum())(XS)
    close(slope, 9 * np.cos(2 * XS) - np.sin(XS))


def test_collectives_are_not_evaluated_apart_from_their_axis():
    def f(x):
        with olympus.ensure_compile_time_eval():
            return x * lax.psum(1, "i") + lax.axis_index("i")

    close(vmap(f, axis_name="i")(XS), len(XS) * XS + np.arange(len(XS)))
