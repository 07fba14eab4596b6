"""Bad arguments are refused in words: a share of the sweep of tools/bad_input.py."""

import re

import bad_input as tool
import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax


@pytest.mark.parametrize("module", [*[m for m in tool.MODULES if "." not in m], "scipy.integrate",
                                    "scipy.interpolate", "scipy.linalg", "scipy.ndimage",
                                    "scipy.optimize", "scipy.signal", "scipy.sparse.linalg",
                                    "scipy.special"])
def test_a_bad_argument_is_refused_in_words(module):
    """Each function with some of the bad values; the tool tries all."""
    found = [(name, what, result) for name, what, result in tool.sweep([f"{module}."], (3, 23))
             if result not in ("taken", "refused", "no legal call")]
    assert not found


def test_the_sweep_notices_a_message_from_inside():
    def careless(axes):
        return sorted(axes)

    call = tool.Call("lax.careless", careless, {"axes": None})
    assert "'NoneType' object is not iterable" in tool.outcome(call)


@pytest.mark.parametrize("call", [
    lambda: onp.choose(onp.array([0]), None), lambda: onp.linalg.multi_dot(None),
    lambda: onp.ravel_multi_index(1.5, (2, 3)), lambda: onp.einsum(None, onp.ones(3)),
    lambda: onp.searchsorted(onp.arange(3), 1, sorter=7), lambda: onp.linspace(0, 1, 10**30),
    lambda: lax.dot_general(onp.ones(3), onp.ones(3), None),
    lambda: olympus.nn.get_scaled_dot_general_config([1]),
    lambda: olympus.nn.scaled_dot_general(onp.ones((1, 3)), onp.ones((1, 3)), None, configs=1.5),
    lambda: olympus.pmap(lambda x: x, out_axes=10**30)(onp.ones((1, 2))),
    lambda: olympus.vmap(lambda x: x, in_axes=1.5), lambda: olympus.devices("a, b"),
    lambda: olympus.eval_shape(lambda x: x, 10**30),
], ids=["choose", "multi_dot", "ravel_multi_index", "einsum", "searchsorted", "linspace",
        "dot_general", "get_scaled_dot_general_config", "scaled_dot_general", "pmap", "vmap",
        "devices", "eval_shape"])
def test_raw_messages_that_users_saw(call):
    assert tool.outcome(tool.Call("olympus.call", call, {})) == "refused"


OBJECTS = np.array([1, None])
NAMED = {   # how the message of a call begins: with the function called, not with one inside it
    "sum: the Python int": lambda: onp.sum(10**30),
    "add: the Python int": lambda: onp.add(onp.arange(2), 2**40),
    "where: the Python int": lambda: onp.where(True, onp.arange(2), 2**40),
    "divide: operand 1 ": lambda: onp.divide(1, None),
    "less: operand 0 ": lambda: onp.less(None, 1),
    "arccos: operand 0 ": lambda: onp.arccos(None),
    "negative: operand 0 ": lambda: onp.negative(None),
    "fliplr: operand 0 ": lambda: onp.fliplr(None),
    "zeros: dtype: 'ab' ": lambda: onp.zeros(3, "ab"),
    "multiply: dtype: a value of type dict ": lambda: onp.multiply(1, 2, dtype={}),
    "add: casting None ": lambda: onp.add(1, 2, casting=None),
    "subtract: casting array": lambda: onp.subtract(1, 2, casting=OBJECTS),
    "concatenate: casting array": lambda: onp.concatenate([onp.ones(2)], casting=OBJECTS),
    "copyto: casting 'ab' ": lambda: onp.copyto(onp.ones(2), 1, casting="ab", inplace=False),
    "astype: casting 3 ": lambda: onp.ones(2).astype(int, casting=3),
    "apply_along_axis: func1d is None": lambda: onp.apply_along_axis(None, 0, onp.ones(2)),
    "apply_over_axes: func is 3": lambda: onp.apply_over_axes(3, onp.ones(2), 0),
    "fromfunction: function is 'ab'": lambda: onp.fromfunction("ab", (2,)),
    "mask_indices: mask_func is None": lambda: onp.mask_indices(3, None),
    "stack: operand 0 is a NumPy array of dtype object": lambda: onp.stack(OBJECTS),
    "roll: operand 1 ": lambda: onp.roll(onp.ones(3), None),
    "arange: device_put: device 'ab' ": lambda: onp.arange(3, device="ab"),
    "at[...].power: operand 1 ": lambda: onp.ones(2).at[0].power("a"),
    "at[...].divide: values float32[3] ": lambda: onp.ones(2).at[0].divide(onp.ones(3)),
    "frompyfunc: func is None": lambda: onp.frompyfunc(None, 1, 1),
    "vectorize: pyfunc is None": lambda: onp.vectorize(None),
}


@pytest.mark.parametrize("begins", NAMED)
def test_a_message_begins_with_the_function_that_was_called(begins):
    with pytest.raises((TypeError, ValueError, OverflowError), match="^" + re.escape(begins)):
        NAMED[begins]()


def test_every_function_has_a_legal_call():
    """A function without one is not swept."""
    assert [name for name, fun in tool.functions() if tool.legal_call(name, fun) is None] == []


@pytest.mark.parametrize("what", [
    "numpy.take(fill_value=text)", "lax.gather(fill_value=1j)", "lax.gather(dimension_numbers=set)",
    "lax.slice_in_dim(stride=10**30)", "lax.reduce_precision(exponent_bits=10**30)",
    "lax.full_like(fill_value=1j)", "lax.linalg.qr(use_magma=dict)", "lax.psum(axis_name=dict)",
    "lax.ppermute(perm=None)", "olympus.jit(device=text)", "olympus.make_mesh(axis_sizes=1j)",
    "numpy.ones_like(a=cyclic)", "scipy.linalg.eigh_tridiagonal(select=dict)",
    "scipy.linalg.hilbert(n=10**30)", "scipy.linalg.null_space(rcond=decimal)",
    "scipy.linalg.pinvh(atol=key)", "scipy.ndimage.convolve1d(origin=None)",
    "scipy.ndimage.gaussian_filter(sigma=nan)", "scipy.ndimage.map_coordinates(coordinates=1j)",
    "scipy.ndimage.affine_transform(output_shape=empty)", "scipy.ndimage.zoom(input=1.5)",
    "scipy.ndimage.rank_filter(size=-1)", "scipy.signal.butter(btype=dict)",
    "scipy.signal.cheby1(rp=10**30)", "scipy.signal.firwin(width=text)",
    "scipy.signal.freqz(fs=None)", "scipy.signal.kaiserord(ripple=nan)",
    "scipy.signal.periodogram(nfft=text)", "scipy.signal.sos2tf(sos=objects)",
    "scipy.signal.welch(fs=strings)", "scipy.signal.zpk2sos(z=nan)",
    "scipy.signal.zpk2tf(k=None)", "scipy.interpolate.interp1d(kind=list)",
    "scipy.special.zeta(x=key)"])
def test_raw_messages_of_calls_that_ran(what):
    """What only compiling and running showed, or a call below vmap."""
    name, _, bad = what[:-1].partition("(")
    fun = dict(tool.functions())[name]
    call = dict(tool.bad_calls(tool.legal_call(name, fun)))[bad]
    assert tool.outcome(call, eager=True) in ("taken", "refused")


@pytest.mark.parametrize("x", ["ab", object, {1}, np.datetime64("2020")],
                         ids=["text", "class", "set", "date"])
@pytest.mark.parametrize("name", ["psum", "pmax", "pmin", "all_gather", "pswapaxes", "pbroadcast",
                                  "ppermute"])
def test_collectives_of_what_is_no_array(name, x):
    """What is alike for all elements is its own maximum: anything was."""
    more = {"pswapaxes": (0,), "pbroadcast": (1,), "ppermute": ([(0, 1)],)}.get(name, ())

    def run(i):
        getattr(lax, name)(x, "i", *more)
        return i

    with pytest.raises(TypeError):
        olympus.vmap(run, axis_name="i")(onp.arange(3))


@pytest.mark.parametrize("run", [olympus.jit, lambda fun: fun], ids=["jit", "eager"])
def test_a_type_in_place_of_a_value(run):
    spec = olympus.ShapeDtypeStruct((3,), np.float32)
    assert olympus.eval_shape(lambda: lax.abs(spec)) == spec    # as JAX: no value is needed
    for fun in (lambda: lax.abs(spec), lambda: onp.sin(spec), lambda: onp.add(1, spec),
                lambda: onp.asarray(spec), lambda: onp.std(onp.ones(3), mean=spec)):
        with pytest.raises(TypeError, match="does not have a value|asarray"):
            run(fun)()


KEEPING = [(name, fun) for name, fun in tool.functions()
           if not name.startswith("lax.") and "keepdims" in tool.signature(fun).parameters]


@pytest.mark.parametrize(("name", "fun"), KEEPING, ids=[name for name, _ in KEEPING])
def test_a_keepdims_that_is_no_flag(name, fun):
    """{} was False, "no" was True; NumPy's sums refuse both, JAX values without a hash."""
    legal = tool.legal_call(name, fun)
    for bad in ("no", "", {}, [], 1.0, np.array(True), onp.array(False)):
        call = legal._replace(arguments={**legal.arguments, "keepdims": bad})
        with pytest.raises(TypeError, match=r"^[\w.]+: keepdims .*True or False is required"):
            call.run()
    for given in (None, 0, np.False_):
        legal._replace(arguments={**legal.arguments, "keepdims": given}).run()


@pytest.mark.parametrize("k", [-2**40, -2**31, -2, 3, 2**31 - 1, 3 * 10**9, 2**32, 10**30])
def test_diagonals_outside_of_a_matrix(k):
    """int32 wrapped: `tri(3, k=2**32)` was `tri(3)`."""
    near = max(-4, min(k, 4))
    for fun in (np.tri, np.eye):
        np.testing.assert_array_equal(getattr(onp, fun.__name__)(3, k=k), fun(3, k=near))
    for fun in (np.tril, np.triu):
        x = np.arange(12.).reshape(3, 4)
        np.testing.assert_array_equal(getattr(onp, fun.__name__)(x, k), fun(x, near))


@pytest.mark.parametrize("start", [-2**40, -2**31, 2**31, 2**32, 10**30])
@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_a_window_far_outside_is_moved_inside(start, dtype):
    x, one = onp.arange(12).reshape(3, 4), onp.asarray(1, dtype)
    wanted = np.arange(12).reshape(3, 4)[:2 if start < 0 else 3, 1:3][-2:]
    np.testing.assert_array_equal(lax.dynamic_slice(x, (start, one), (2, 2)), wanted)
    np.testing.assert_array_equal(
        olympus.jit(lambda x, i: lax.dynamic_slice(x, (start, i), (2, 2)))(x, one), wanted)


@pytest.mark.parametrize("what", [
    "lax.convert_element_type(operand=1j)", "lax.linalg.schur(select_callable=dict)",
    "lax.slice(strides=empty)", "lax.conv(window_strides=bytes)",
    "numpy.linalg.matrix_rank(tol=text)", "numpy.linalg.matrix_rank(rtol=objects)",
    "numpy.linalg.vector_norm(ord=1j)", "numpy.nanstd(ddof=1j)", "numpy.pad(pad_width[0]=set)",
    "numpy.pad(pad_width[0]=bytes)", "numpy.piecewise(condlist=set)",
    "random.beta(a=1j)", "random.chisquare(df=1j)", "random.geometric(p=1j)",
    "random.uniform(minval=1j)", "random.wald(mean=1j)"])
def test_what_numpy_and_jax_refuse_is_refused(what):
    """Each was computed, without the part that means nothing."""
    name, _, bad = what[:-1].partition("(")
    fun = dict(tool.functions())[name]
    call = dict(tool.bad_calls(tool.legal_call(name, fun)))[bad]
    assert tool.outcome(call) == "refused"


class Theirs:
    """An array of a library that describes arrays by an attribute of the same name."""
    aval = "f32[2]"


@pytest.mark.parametrize("call", [
    onp.concatenate, onp.stack, onp.hstack, onp.column_stack, onp.block, onp.sin, onp.negative,
    onp.sum, lambda x: onp.stack([x]), lambda x: onp.hstack([x]), lambda x: onp.add(x, 1),
    lambda x: onp.ones(2) * x, lambda x: onp.ones(2)[x], olympus.jit(lambda x: x),
    olympus.jit(lambda x: onp.ones(2))])
def test_what_only_has_an_attribute_aval_is_no_array(call):
    """Regression: it was taken for a tracer, and its message looked for the tracer's origin."""
    with pytest.raises((TypeError, IndexError), match="Theirs|unsupported operand"):
        call(Theirs())
