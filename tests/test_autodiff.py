"""grad, jvp, vjp, linearize, linear_transpose, Jacobians: values, structures, dtypes, errors."""

import cmath
import math
import re
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import olympus
from olympus import errors, grad, jvp, lax, linearize, numpy as onp, vjp

F0 = olympus.float0
X = np.array([0.3, -0.7, 1.2], np.float32)
C = np.complex64


def total(x: Any) -> Any:
    return lax.reduce_sum(x, tuple(range(x.ndim)))


def square(x: Any) -> Any:
    return lax.mul(x, x)


def product(x: Any, y: Any) -> Any:
    return lax.mul(x, y)


def close(found: Any, wanted: Any) -> None:
    found_leaves, found_tree = olympus.tree.flatten(found)
    leaves, tree = olympus.tree.flatten(wanted)
    assert found_tree == tree
    for a, b in zip(found_leaves, leaves, strict=True):
        assert a.shape == np.shape(b)
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-5, atol=1e-6)


# grad -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("transform", [lambda f: f, olympus.jit], ids=["eager", "jit"])
def test_grad_of_pytrees(transform: Callable) -> None:
    def f(params: Any, scale: Any, *, shift: Any) -> Any:
        return lax.mul(total(lax.mul(square(params["w"]), params["b"])), lax.add(scale, shift))

    params = {"w": X, "b": np.ones(3, np.float32)}
    wanted = {"w": 2 * X * 3, "b": X * X * 3}
    close(transform(olympus.grad(f))(params, np.float32(2), shift=np.float32(1)), wanted)
    both = transform(olympus.grad(f, argnums=(0, -1)))(params, np.float32(2), shift=np.float32(1))
    close(both, (wanted, np.float32((X * X).sum())))


def test_value_and_grad_aux_may_be_anything() -> None:
    f = olympus.value_and_grad(lambda x: (square(x), {"x": x, "note": "text"}), has_aux=True)
    (value, aux), slope = f(3.0)
    assert (float(value), float(aux["x"]), aux["note"], float(slope)) == (9.0, 3.0, "text", 6.0)
    assert not isinstance(aux["x"], olympus._src.core.trace.Tracer)


def test_grad_sees_values() -> None:
    f = olympus.grad(lambda x: lax.sin(x) if lax.gt(x, 0.0) else square(x))
    close(f(1.0), np.cos(1.0))
    close(f(-1.0), -2.0)
    close(olympus.grad(f)(1.0), -np.sin(1.0))


LOSSY = {
    "float": float, "complex": complex, "math": math.sin, "cmath": cmath.sin, "floor": math.floor,
    "tolist": lambda x: x.tolist(), "tobytes": lambda x: x.tobytes(),
    "format": lambda x: f"{x:.3f}", "%f": "%f".__mod__,
}


@pytest.mark.parametrize("wrap", [
    lambda f: grad(f)(3.0), lambda f: jvp(f, (3.0,), (1.0,)), lambda f: vjp(f, 3.0),
    lambda f: grad(grad(f))(3.0), lambda f: linearize(f, 3.0), lambda f: olympus.jacfwd(f)(3.0)])
@pytest.mark.parametrize("name", LOSSY)
def test_a_number_made_of_a_differentiated_value_does_not_lose_its_derivative(
        name: str, wrap: Callable) -> None:
    seen: list[Any] = []

    def refused(x: Any) -> Any:
        with pytest.raises(errors.ConcretizationTypeError, match="stop_gradient"):
            LOSSY[name](x * x)
        with pytest.raises(TypeError):
            LOSSY[name](x)
        # Without a tangent it is a number, and so are piecewise constant results.
        seen[:] = [LOSSY[name](y) for y in (lax.stop_gradient(x), onp.floor(x), x > 1, 0 * x > 0)]
        seen.append((bool(x), int(x), bool(x == 3), (x > 2).item(), x.item()))
        return x

    wrap(refused)
    assert seen[-1] == (True, 3, True, True, 3.0) and seen[0] == seen[1]


def test_grad_of_constant_and_identity() -> None:
    close(olympus.grad(lambda x: 2.0)(3.0), 0.0)
    close(olympus.grad(lambda x: x)(3.0), 1.0)
    close(olympus.jit(olympus.grad(lambda x: x))(3.0), 1.0)


def test_grad_of_integers() -> None:
    g = olympus.grad(lambda x, i: square(x), argnums=(0, 1), allow_int=True)
    dx, di = g(3.0, np.arange(2))
    assert float(dx) == 6.0
    assert di.dtype == F0
    assert di.shape == (2,)


@pytest.mark.parametrize("shape, axis", [((0,), 0), ((0, 3), 0), ((0, 3), 1), ((3, 0), 1)])
def test_sorting_nothing_has_a_derivative(shape: tuple, axis: int) -> None:
    x = np.zeros(shape, np.float32)
    for f in (lambda x: onp.sort(x, axis), lambda x: lax.sort((x, x), dimension=axis)[1]):
        assert grad(lambda x: f(x).sum())(x).shape == shape
        assert jvp(f, (x,), (x,))[1].shape == shape
        assert olympus.jacfwd(f)(x).shape == (*shape, *shape)


def test_jacobian_of_integer_results_is_zero_of_their_dtype() -> None:
    for wrap in (lambda f: f, olympus.jit):
        found = wrap(olympus.jacfwd(lambda x: (x.astype(int), onp.uint8(3), x > 0, 2 * x)))(X)
        assert [x.dtype for x in found] == [np.int32, np.uint8, F0, np.float32]
        assert [x.shape for x in found] == [(3, 3), (3,), (3, 3), (3, 3)]
        np.testing.assert_array_equal(found[0], 0)


WEAK = {
    "grad": grad, "grad jit": lambda f: grad(olympus.jit(f)), "jit grad": lambda f: olympus.jit(
        grad(f)), "grad checkpoint": lambda f: grad(olympus.checkpoint(f)),
    "value_and_grad": lambda f: lambda x: olympus.value_and_grad(f)(x)[1],
    "jacfwd": olympus.jacfwd, "jacrev": olympus.jacrev, "hessian": olympus.hessian,
    "vjp": lambda f: lambda x: vjp(f, x)[1](f(x))[0],
    "jvp": lambda f: lambda x: jvp(f, (x,), (np.float32(1),))[1],
    "vmap grad": lambda f: lambda x: olympus.vmap(grad(f), axis_size=2, in_axes=None)(x),
}


@pytest.mark.parametrize("name", WEAK)
def test_derivatives_are_as_weakly_typed_as_what_they_are_of(name: str) -> None:
    for f in (lambda x: x, lambda x: x * x, onp.sin, lambda x: 3.0 * x + 1):
        assert WEAK[name](f)(2.0).weak_type
        assert not WEAK[name](f)(np.float32(2)).weak_type
    if "jac" not in name and "jvp" not in name and name != "hessian":
        assert WEAK[name](lambda x: x * np.float32(2))(2.0).weak_type
    assert WEAK[name](lambda x: x * np.float32(2))(2.0).dtype == np.float32


def test_grad_of_complex() -> None:
    close(olympus.grad(square, holomorphic=True)(C(1 + 2j)), C(2 + 4j))


def test_perturbations_are_kept_apart() -> None:
    outer = olympus.grad(lambda x: lax.mul(x, olympus.grad(lambda y: lax.add(x, y))(1.0)))
    close(outer(3.0), 1.0)


GRAD_ERRORS: list[tuple[Callable[[], Any], type, str]] = [
    (lambda: olympus.grad(3), TypeError, "Expected a callable value, got 3"),
    (lambda: olympus.grad(square)(X), TypeError, "Output had shape: (3,)"),
    (lambda: olympus.grad(square)(3), TypeError, "x of square: grad requires real- or complex"),
    (lambda: olympus.grad(lambda p: p["a"][0])({"a": [3]}), TypeError, "argument p['a'][0]"),
    (lambda: olympus.grad(square)("s"), TypeError, "'s' of type <class 'str'>"),
    (lambda: olympus.grad(lambda x: "s")(1.0), TypeError, "value of type <class 'str'> at result"),
    (lambda: olympus.grad(lambda x: (x, x))(1.0), TypeError, "a tuple of 2 arrays"),
    (lambda: olympus.grad(lambda x: None)(1.0), TypeError, "returned None"),
    (lambda: olympus.grad(lambda x: 3)(1.0), TypeError, "requires real-valued outputs"),
    (lambda: olympus.grad(square)(1j), TypeError, "holomorphic=True"),
    (lambda: olympus.grad(square, holomorphic=True)(1.0), TypeError, "inputs with complex dtype"),
    (lambda: olympus.grad(square, argnums=1)(1.0), TypeError, "argnums=1 requires at least 2"),
    (lambda: olympus.grad(square, argnums=-2)(1.0), ValueError, "argnums=-2 requires at least 2"),
    (lambda: olympus.grad(square, argnums="x"), TypeError, "argnums='x'"),
    (lambda: olympus.grad(product, argnums=(0, -2))(1.0, 2.0), ValueError, "twice"),
    (lambda: olympus.grad(square, has_aux=True)(1.0), TypeError, "a two-element tuple"),
    (lambda: olympus.grad(square, reduce_axes=("i",)), ValueError, "reduce_axes"),
    (lambda: olympus.jvp(square, 1.0, 1.0), TypeError, "tuples or lists"),
    (lambda: olympus.jvp(square, (1.0,), (1.0, 2.0)), TypeError, "the same tree structure"),
    (lambda: olympus.jvp(square, (1.0,), (X,)), ValueError, "tangent of x is float32[3]"),
    (lambda: olympus.jvp(square, (1.0,), (1,)), TypeError, "tangent of x is int32[]"),
    (lambda: olympus.jvp(square, (1,), (1,)), TypeError, "float0 is required"),
    (lambda: olympus.vjp(square, 1.0)[1](X), ValueError, "cotangent of result of square"),
    (lambda: olympus.vjp(square, 1.0)[1](np.int32(1)), ValueError, "is int32[]"),
    (lambda: olympus.vjp(lambda x: {"a": x}, 1.0)[1]({"b": 1.0}), ValueError, "['a']"),
    (lambda: olympus.linearize(square, 1.0)[1](X), ValueError, "tangent of arguments[0]"),
    (lambda: olympus.linearize(square, 1.0)[1](1.0, 2.0), TypeError, "another structure"),
    (lambda: olympus.linear_transpose(square, 1.0)(1.0), TypeError, "not linear"),
    (lambda: olympus.linear_transpose(lambda x: x, True), TypeError, "bool[]"),
    (lambda: olympus.linear_transpose(lambda x: x, 1.0)(X), TypeError, "float32[3]"),
    (lambda: olympus.jacfwd(square)(1), TypeError, "jacfwd requires real-valued inputs"),
    (lambda: olympus.jacfwd(square)(1j), TypeError, "but got complex64"),
    (lambda: olympus.jacrev(square)(1j), TypeError, "jacrev requires real-valued outputs"),
]


@pytest.mark.parametrize(("call", "error", "text"), GRAD_ERRORS,
                         ids=[text for _, _, text in GRAD_ERRORS])
def test_errors(call: Callable[[], Any], error: type, text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call()


# jvp, vjp, linearize ----------------------------------------------------------------------------

def test_jvp_and_linearize_agree_with_differences() -> None:
    def f(x: Any) -> Any:
        return {"s": lax.sin(x), "n": total(square(x)), "i": 3}

    t = np.array([1.0, 2.0, -1.0], np.float32)
    wanted = {"s": np.cos(X) * t, "n": (2 * X * t).sum(), "i": np.zeros((), F0)}
    _, direct = olympus.jvp(f, (X,), (t,))
    _, linear = olympus.linearize(f, X)
    assert direct["i"].dtype == linear(t)["i"].dtype == F0
    jitted = olympus.jit(lambda t: {k: linear(t)[k] for k in "sn"})
    for found in (direct, linear(t), jitted(t)):
        close({k: found[k] for k in "sn"}, {k: wanted[k] for k in "sn"})


def test_vjp_of_several_arguments_with_aux() -> None:
    out, pullback, aux = olympus.vjp(lambda x, i, y: (lax.mul(x, y), i), X, 4, 2 * X, has_aux=True)
    assert int(aux) == 4
    np.testing.assert_allclose(out, 2 * X * X)
    dx, di, dy = pullback(X)
    np.testing.assert_allclose(dx, 2 * X * X)
    np.testing.assert_allclose(dy, X * X)
    assert di.dtype == F0


def test_jit_returns_a_pullback() -> None:
    out, pullback = olympus.jit(lambda x: olympus.vjp(lax.sin, x))(X)
    np.testing.assert_allclose(pullback(np.ones(3, np.float32))[0], np.cos(X), rtol=1e-5)
    assert "sin" in repr(pullback)


@pytest.mark.parametrize("jitted", [True, False])
@pytest.mark.parametrize(("argnums", "wanted"), [(0, 3.0), ((0, 1), (3.0, 2.0))])
def test_fwd_and_bwd(jitted: bool, argnums: Any, wanted: Any) -> None:
    fwd, bwd = olympus.fwd_and_bwd(product, argnums, jitted=jitted)
    out, residuals = fwd(2.0, 3.0)
    close((out, bwd(residuals, 1.0)), (6.0, wanted))


def test_linear_transpose_takes_types_and_integers() -> None:
    f = olympus.linear_transpose(lambda x: total(lax.mul(x, 2.0)),
                                 olympus.ShapeDtypeStruct((3,), "float32"))
    close(f(1.0), (np.full(3, 2.0),))
    close(olympus.linear_transpose(lambda x: lax.mul(x, 3), 1)(2), (6,))


# Jacobians --------------------------------------------------------------------------------------

@pytest.mark.parametrize("jac", [olympus.jacfwd, olympus.jacrev], ids=["fwd", "rev"])
@pytest.mark.parametrize("transform", [lambda f: f, olympus.jit], ids=["eager", "jit"])
def test_jacobian_of_pytrees(jac: Callable, transform: Callable) -> None:
    def f(p: Any) -> Any:
        return {"v": lax.mul(p["x"], p["x"]), "s": lax.mul(total(p["x"]), p["y"]), "c": 1.0}

    x, y = X[:2], np.float32(2.0)
    wanted = {"v": {"x": np.diag(2 * x), "y": np.zeros(2)},
              "s": {"x": np.full(2, y), "y": x.sum()}, "c": {"x": np.zeros(2), "y": np.zeros(())}}
    close(transform(jac(f))({"x": x, "y": y}), wanted)


@pytest.mark.parametrize("jac", [olympus.jacfwd, olympus.jacrev], ids=["fwd", "rev"])
def test_jacobian_options(jac: Callable) -> None:
    close(jac(product, argnums=(0, 1))(2.0, 3.0), (3.0, 2.0))
    close(jac(square, holomorphic=True)(C(1j)), C(2j))
    value, aux = jac(lambda x: (square(x), "aux"), has_aux=True)(X)
    assert aux == "aux"
    close(value, np.diag(2 * X))
    close(olympus.vmap(jac(square))(X.reshape(3, 1)), (2 * X).reshape(3, 1, 1))


def test_hessian() -> None:
    f = olympus.hessian(lambda p: total(lax.mul(square(p["a"]), p["a"])))
    close(f({"a": X}), {"a": {"a": np.diag(6 * X)}})
    close(olympus.hessian(product, argnums=(0, 1))(2.0, 3.0), ((0.0, 1.0), (1.0, 0.0)))


# Leaks ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("run", [
    lambda f: olympus.jit(f)(X), lambda f: olympus.vmap(f)(X),
    lambda f: olympus.grad(lambda x: total(f(x)))(X)], ids=["jit", "vmap", "grad"])
def test_leak_check(run: Callable) -> None:
    kept: list[Any] = []

    def leaky(x: Any) -> Any:
        kept.append(lax.sin(x))
        return x

    with olympus.checking_leaks(), pytest.raises(errors.UnexpectedTracerError, match=(
            r"made by sin at .*test_autodiff.py:\d+.*kept.append.*; held by item 0 of a list, the "
            r"closure cell kept of test_leak_check.*outlived")):
        run(leaky)
    kept.clear()
    with olympus.checking_leaks():
        run(lax.sin)


class Keeper:
    kept: Any


def test_a_leak_names_the_attribute_and_the_global_that_hold_it(
        monkeypatch: pytest.MonkeyPatch) -> None:
    module, keeper = types.ModuleType("keeping"), Keeper()
    monkeypatch.setitem(sys.modules, "keeping", module)

    def by_attribute(x: Any) -> Any:
        keeper.kept = lax.sin(x)
        return x

    def by_global(x: Any) -> Any:
        vars(module)["leaked"] = lax.cos(x)
        return x

    for fun, held in ((by_attribute, "the attribute kept of a Keeper"),
                      (by_global, "the global leaked of keeping")):
        with olympus.checking_leaks(), pytest.raises(errors.LeakError, match=f"held by {held}"):
            olympus.jit(fun)(X)


# Arrays of float0, which no device has, pass through whatever moves arrays and computes nothing.

Z = np.zeros(3, F0)
MOVES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "jit": (lambda: olympus.jit(lambda z: z)(Z), (3,)),
    "jit of tree": (lambda: olympus.jit(lambda d: d)({"z": Z, "x": 1.0})["z"], (3,)),
    "jit, donated": (lambda: olympus.jit(lambda z: z, donate_argnums=0)(Z), (3,)),
    "jit, closed over": (lambda: olympus.jit(lambda x: (x, Z))(1.0)[1], (3,)),
    "jit in jit": (lambda: olympus.jit(lambda z: olympus.jit(lambda z: z)(z))(Z), (3,)),
    "compiled": (lambda: olympus.jit(lambda z: z).lower(Z).compile()(Z), (3,)),
    "indexed": (lambda: olympus.jit(lambda z: z[1:])(Z), (2,)),
    "stacked": (lambda: onp.stack([Z, Z]), (2, 3)),
    "asarray": (lambda: onp.asarray(Z), (3,)),
    "zeros_like": (lambda: onp.zeros_like(Z), (3,)),
    "device_put": (lambda: olympus.device_put({"z": Z, "x": 1.0})["z"], (3,)),
    "carry": (lambda: lax.scan(lambda c, _: (c, None), Z, None, length=2)[0], (3,)),
    "xs and ys": (lambda: lax.scan(lambda c, z: (c + 1, z), 0.0, Z)[1], (3,)),
    "ys": (lambda: lax.scan(lambda c, _: (c, Z), 0.0, None, length=2)[1], (2, 3)),
    "ys are gradients": (lambda: lax.scan(lambda c, n: (c, grad(
        lambda n: n * 1.0, allow_int=True)(n)), 0.0, onp.arange(3))[1], (3,)),
    "while_loop": (lambda: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, Z))[1], (3,)),
    "cond": (lambda: lax.cond(True, lambda z: z, lambda z: z, Z), (3,)),
    "switch": (lambda: lax.switch(1, [lambda z: z] * 2, Z), (3,)),
    "map": (lambda: lax.map(lambda z: z, Z), (3,)),
    "vmap": (lambda: olympus.vmap(lambda z: z)(Z), (3,)),
    "vmap of jit": (lambda: olympus.vmap(olympus.jit(lambda z: z))(Z), (3,)),
    "vmap of vjp": (lambda: olympus.vmap(
        lambda x: vjp(lambda a, n: a * n, x, 2)[1](x))(X)[1], (3,)),
    "checkpoint": (lambda: olympus.checkpoint(lambda z: z)(Z), (3,)),
    "callback": (lambda: olympus.pure_callback(
        lambda z: np.float32(z.shape == (3,)), olympus.ShapeDtypeStruct((), "float32"), Z), ()),
    "cotangent in jit": (lambda: olympus.jit(lambda ct: vjp(
        lambda x, n: (x, n), 2.0, 3)[1]((1.0, ct))[1])(Z[0]), ()),
    "through a gradient": (lambda: grad(
        lambda x: lax.scan(lambda c, z: (c * x, z), 1.0, Z)[0])(2.0), ()),
}


@pytest.mark.parametrize(("call", "shape"), MOVES.values(), ids=MOVES)
def test_float0_passes_through(call: Callable[[], Any], shape: tuple[int, ...]) -> None:
    for _ in range(2):
        out = call()
        assert out.shape == shape
        if shape:
            assert isinstance(out, np.ndarray)
            assert out.dtype == F0
    if call is MOVES["through a gradient"][0]:
        assert float(out) == 12.0


@pytest.mark.parametrize("call", [
    lambda: onp.add(Z, Z), lambda: lax.add(Z, Z), lambda: onp.sum(Z),
    lambda: olympus.jit(onp.add)(Z, Z)])
def test_float0_is_computed_with_nowhere(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"float0\[3\]"):
        call()


@pytest.mark.parametrize("linear", [
    lambda x: olympus.vjp(onp.sin, x)[1], lambda x: olympus.linearize(onp.sin, x)[1],
    lambda x: olympus.linear_transpose(lambda y: y * onp.cos(x), x)],
    ids=["vjp", "linearize", "linear_transpose"])
def test_a_linear_map_that_jit_returns_holds_no_traced_value(linear):
    with olympus.checking_leaks():
        derivative = olympus.jit(linear)(0.5)
    found = olympus.tree.leaves(olympus.jit(lambda f, t: f(t))(derivative, 2.0))
    assert [float(x) for x in found] == [pytest.approx(2 * np.cos(0.5))]


@pytest.mark.parametrize("derive", [
    lambda f, x: olympus.grad(f, has_aux=True)(x)[1],
    lambda f, x: olympus.value_and_grad(f, has_aux=True)(x)[0][1],
    lambda f, x: olympus.vjp(f, x, has_aux=True)[2],
    lambda f, x: olympus.jvp(f, (x,), (1.0,), has_aux=True)[2],
    lambda f, x: olympus.linearize(f, x, has_aux=True)[2],
    lambda f, x: olympus.jacfwd(f, has_aux=True)(x)[1],
    lambda f, x: olympus.jacrev(f, has_aux=True)(x)[1],
])
def test_auxiliary_data_of_a_users_class_is_made_outside_of_the_transformation(derive):
    """Flax's variables note the trace in which they are made, and are kept by no other."""
    made = []

    class Node:
        def __init__(self, x):
            self.x = x

    def unflattened(_, children):
        made.append(olympus.extend.core.get_opaque_trace_state())
        return Node(*children)

    olympus.tree_util.register_pytree_node(Node, lambda node: ((node.x,), None), unflattened)

    def outer(x):
        made.clear()
        node = derive(lambda x: (x * x, Node(x + 1)), x)
        assert made == [olympus.extend.core.get_opaque_trace_state()]
        return node.x

    assert outer(3.0) == olympus.jit(outer)(3.0) == 4
    assert olympus.grad(outer)(3.0) == 1


@pytest.mark.parametrize("part, expected", [
    (lambda x: olympus.lax.dynamic_slice(x, (np.int32(1),), (2,)), [261, 262, 262, 261]),
    (lambda x: x[onp.array([1, 1, 2])], [261, 263, 262, 261])], ids=["slice", "gather"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_four_terms_of_16_bits_of_which_one_is_of_a_part_are_summed_in_float32(
        part, expected, dtype):
    """`add` refused a sum in float32 beside the cotangent of a slice in bfloat16."""
    def f(x):
        return part(x).sum() + x.sum() + (4 * x).sum() + (256 * x).sum()

    x = onp.arange(4, dtype=dtype)
    found = [olympus.grad(f)(x), olympus.jit(olympus.grad(f))(x)]
    assert [y.tolist() for y in found] == [onp.array(expected, dtype).tolist()] * 2
