"""Functions with rules of their own: custom_gradient, closure_convert, linear_call, custom_vmap,
custom_root, custom_linear_solve; offloaded residuals and what print_saved_residuals tells."""

import io
import re
from contextlib import redirect_stdout

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import (
    closure_convert, custom_gradient, grad, jit, jvp, lax, linear_transpose, make_olympuspr, vmap,
)
from olympus._src.base import lib
from olympus.ad_checkpoint import checkpoint_name, print_saved_residuals
from olympus.custom_batching import custom_vmap, sequential_vmap
from olympus.custom_derivatives import linear_call

XS = np.array([0.5, 1.0, 2.0], "f")


def close(found, expected, tol=1e-5):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), tol, tol)


# custom_gradient ---------------------------------------------------------------------------------

@custom_gradient
def scaled_square(x, y=2.0):
    z = onp.sin(x)
    return x * x * y, lambda ct: (ct * 10 * z, 7.0 * ct)


def test_custom_gradient_uses_its_rule_with_what_the_function_computed():
    for transform in (lambda f: f, jit):
        close(transform(grad(scaled_square))(3.0), 10 * np.sin(3.0))
        close(transform(grad(scaled_square, (0, 1)))(3.0, 5.0), [10 * np.sin(3.0), 7.0])
        close(transform(vmap(grad(scaled_square)))(XS), 10 * np.sin(XS))
        close(transform(grad(grad(scaled_square)))(3.0), 10 * np.cos(3.0))
    assert float(scaled_square(3.0, y=4.0)) == 36.0


def test_custom_gradient_of_one_argument_may_return_a_bare_cotangent_or_pytrees():
    f = custom_gradient(lambda x: (x * x, lambda ct: ct * 3))
    assert float(grad(f)(2.0)) == 3.0
    g = custom_gradient(lambda d: (d["a"] * 2, lambda ct: ({"a": ct * 5, "n": None},)))
    assert float(grad(g, allow_int=True)({"a": 1.0, "n": 3})["a"]) == 5.0
    h = custom_gradient(lambda x: ((x, 3), lambda cts: cts[0] * 4))
    assert float(grad(lambda x: h(x)[0])(1.0)) == 4.0


@pytest.mark.parametrize(("fun", "message"), [
    (lambda x: x, "a pair"),
    (lambda x: (x, lambda ct: (ct, ct)), "cotangent"),
    (lambda x: (x, lambda ct: (onp.ones(3),)), "equal shape and"),
])
def test_custom_gradient_errors(fun, message):
    with pytest.raises((TypeError, ValueError), match=message):
        grad(custom_gradient(fun))(1.0)


# closure_convert and linear_call -----------------------------------------------------------------

def test_closure_convert_hoists_what_has_a_derivative():
    def f(a):
        g, consts = closure_convert(lambda x: a * x + np.float32(2), 1.0)
        assert len(consts) == 1
        return g(3.0, *consts)

    assert float(grad(f)(5.0)) == 3.0
    assert float(jit(grad(f))(5.0)) == 3.0
    g, consts = closure_convert(lambda x, y: {"s": x + y}, 1.0, 2)
    assert consts == [] and float(g(1.0, 2)["s"]) == 3.0
    with pytest.raises(TypeError, match="2 arguments and then 0 values"):
        g(1.0)


def scale(c, x):
    return linear_call(lambda c, x: c * x, lambda c, ct: 3 * c * ct, c, x)     # not the transpose


def test_linear_call_is_transposed_by_its_own_rule():
    assert float(scale(2.0, 5.0)) == 10.0
    assert float(linear_transpose(lambda x: scale(2.0, x), 1.0)(1.0)[0]) == 6.0
    for transform in (lambda f: f, jit):
        assert float(transform(grad(scale, 1))(2.0, 5.0)) == 6.0
        assert float(transform(grad(scale, 0))(2.0, 5.0)) == 5.0
        close(transform(vmap(grad(scale, 1), (0, None)))(XS, 5.0), 3 * XS)
        close(transform(vmap(grad(scale, 1), (None, 0)))(2.0, XS), [6.0] * 3)
    twice = linear_transpose(lambda ct: linear_transpose(lambda x: scale(2.0, x), 1.0)(ct)[0], 1.0)
    assert float(twice(1.0)[0]) == 2.0     # the transpose of the transpose is the function
    close(jvp(lambda x: scale(x, x), (2.0,), (1.0,)), [4.0, 4.0])
    with pytest.raises(TypeError, match="transpose output pytree"):
        linear_call(lambda c, x: x, lambda c, ct: (ct, ct), 1.0, 2.0)
    with pytest.raises(TypeError, match="other types than linear_args"):
        linear_call(lambda c, x: x, lambda c, ct: onp.ones(3), 1.0, 2.0)


# custom_vmap ------------------------------------------------------------------------------------

def observed():
    """A function and the calls that its rule has seen."""
    calls = []

    @custom_vmap
    def f(x, y):
        return x + onp.sin(y)

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        calls.append((axis_size, in_batched))
        return x + onp.sin(y), True

    return f, calls


def test_custom_vmap_runs_its_rule():
    f, calls = observed()
    close(f(1.0, 2.0), 1 + np.sin(2.0))
    assert calls == []
    close(vmap(f, (0, None))(XS, 1.0), XS + np.sin(1.0))
    assert calls.pop() == (3, [True, False])
    close(jit(vmap(f, (None, 0)))(2.0, XS), 2 + np.sin(XS))
    assert calls.pop() == (3, [False, True])
    close(vmap(jit(f))(XS, XS), XS + np.sin(XS))
    assert calls.pop() == (3, [True, True])
    close(vmap(vmap(f, (0, None)), (None, 0))(XS, XS), XS + np.sin(XS)[:, None])
    assert calls.pop() == (3, [True, False])


def test_custom_vmap_under_derivatives():
    f, calls = observed()
    close(vmap(lambda x, y: jvp(f, (x, y), (1.0, y)))(XS, XS)[1], 1 + XS * np.cos(XS))
    assert len(calls) == 1
    close(vmap(grad(f, 1))(XS, XS), np.cos(XS))
    close(grad(lambda x: vmap(f)(x, x).sum())(XS), 1 + np.cos(XS))


def tripled():
    """A function whose rule is three times it, so that a rule that is not used is noticed."""
    f = custom_vmap(lambda x, y: (onp.sin(x) * y, onp.int32(3)))
    f.def_vmap(lambda size, batched, x, y: ((3 * onp.sin(x) * y, onp.int32(3)), (True, False)))
    return lambda x: f(x, 2.0)[0]


@pytest.mark.parametrize("wrap", [
    lambda f: f, jit, olympus.checkpoint, lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x),
    lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 1)[0]],
    ids=["plain", "jit", "checkpoint", "cond", "scan"])
@pytest.mark.parametrize("outer", [lambda f: f, jit], ids=["plain", "jit"])
def test_custom_vmap_under_reverse_mode_and_then_vmap_runs_its_rule(wrap, outer):
    f = wrap(tripled())
    close(outer(grad(f))(0.5), 2 * np.cos(0.5))
    close(outer(vmap(olympus.value_and_grad(f)))(XS), [6 * np.sin(XS), 6 * np.cos(XS)])
    close(outer(grad(lambda x: vmap(f)(x).sum()))(XS), 6 * np.cos(XS))
    close(outer(vmap(grad(grad(f))))(XS), -6 * np.sin(XS))
    close(outer(vmap(lambda x: jvp(grad(f), (x,), (1.0,))[1]))(XS), -6 * np.sin(XS))
    close(outer(vmap(grad(lambda x: jvp(f, (x,), (1.0,))[1])))(XS), -6 * np.sin(XS))
    close(outer(grad(lambda x: vmap(grad(f))(x).sum()))(XS), -6 * np.sin(XS))
    close(outer(vmap(vmap(grad(f))))(XS[None]), 6 * np.cos(XS)[None])


def test_custom_vmap_mapped_over_cotangents_alone_uses_the_function_and_over_tangents_the_rule():
    f = tripled()
    close(vmap(olympus.vjp(f, 0.5)[1])(XS)[0], 2 * XS * np.cos(0.5))
    close(vmap(olympus.linearize(f, 0.5)[1])(XS), 6 * XS * np.cos(0.5))
    for wrap in (lambda f: f, jit):
        close(wrap(olympus.jacfwd(f))(0.5), 6 * np.cos(0.5))
        close(vmap(lambda t: wrap(lambda t: olympus.jvp(f, (0.5,), (t,))[1])(t))(XS),
              6 * XS * np.cos(0.5))
    close(vmap(olympus.jacrev(lambda x: (f(x), x)))(XS)[0], 6 * np.cos(XS))


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["plain", "jit"])
def test_custom_vmap_mapped_over_primals_or_tangents_alone_leaves_the_other_output_unmapped(wrap):
    told = []

    def derivative(fun, rule, flag):
        f = custom_vmap(fun)
        f.def_vmap(lambda size, batched, x: told.append(batched) or (rule(x), flag or batched[0]))
        return wrap(lambda x, t: jvp(f, (x,), (t,)))

    cos = derivative(lambda x: onp.sin(x), onp.cos, False)
    y, dy = vmap(cos, (None, 0), (None, 0))(0.5, XS)
    close(y, np.cos(0.5))
    close(dy, -np.sin(0.5) * XS)
    close(vmap(cos, (0, None))(XS, 4.0), [np.cos(XS), -np.sin(XS) * 4])
    assert told == [[False]] * 2
    _, dy = vmap(derivative(lambda x: 2 * x, lambda x: 3 * x, False), (0, None), (0, None))(XS, 4.0)
    close(dy, 12.0)
    with pytest.raises(ValueError, match="at vmap out_axes"):
        vmap(cos, (0, None), (0, None))(XS, 4.0)
    # A rule that calls its output mapped whatever it is given is told of all that is.
    close(vmap(derivative(lambda x: onp.sin(x), onp.cos, True), (None, 0))(0.5, XS),
          [[np.cos(0.5)] * 3, -np.sin(0.5) * XS])


def test_sequential_vmap_is_lax_map_of_the_function():
    f = sequential_vmap(lambda x, y: x + y)
    mapped, looped = vmap(f, (0, None)), lambda x, y: lax.map(lambda x: f(x, y), x)
    assert str(olympus.make_olympuspr(mapped)(XS, 4.0)) == str(
        olympus.make_olympuspr(looped)(XS, 4.0))


def test_custom_vmap_rules_may_call_their_function():
    """Asked what it returns where nothing is mapped, a rule asked itself, without end."""
    f = custom_vmap(lambda x: onp.sin(x))
    f.def_vmap(lambda size, batched, x: (f(x), True))
    close(olympus.jacfwd(f)(XS), np.diag(np.cos(XS)))
    close(olympus.hessian(lambda x: f(x).sum())(XS), np.diag(-np.sin(XS)))


def test_sequential_vmap_under_jacfwd():
    sin = sequential_vmap(lambda x: onp.sin(x))
    close(olympus.jacfwd(sin)(XS), np.diag(np.cos(XS)))


def test_custom_vmap_rules_may_return_what_all_elements_share():
    f = custom_vmap(lambda x, y: (x * 2 * y, 1.0))
    f.def_vmap(lambda size, batched, x, y: (((x * 2 * y).sum(0), 1.0), False))
    close(vmap(grad(lambda x: sum(f(x, 5.0))))(XS), [30.0] * 3)      # all three read each of them
    close(vmap(grad(lambda y: sum(f(1.0, y))))(XS), [6.0] * 3)


def test_effects_of_a_custom_vmap_function_happen_once_under_reverse_mode(capfd):
    f = custom_vmap(lambda x: (olympus.debug.print("x {}", x), onp.sin(x))[1])
    f.def_vmap(lambda size, batched, x: (onp.sin(x), True))
    for transform in (grad(f), jit(grad(f)), jit(grad(jit(f)))):
        close(transform(1.0), np.cos(1.0))
        olympus.effects_barrier()
        assert capfd.readouterr().out == "x 1.0\n"


def test_custom_vmap_functions_may_close_over_traced_values():
    def f(t, rule):
        g = custom_vmap(lambda x: onp.sin(x) * t)
        g.def_vmap(lambda size, batched, x: (rule(x), True))
        return g

    ignorant = lambda t: f(t, lambda x: 3 * onp.sin(x))
    for transform in (lambda g: g, jit):
        for call in (lambda t: ignorant(t)(0.5), lambda t: jit(ignorant(t))(0.5),
                     lambda t: lax.scan(lambda c, _: (ignorant(t)(0.5), None), 0., None, 1)[0]):
            close(transform(grad(call))(2.0), np.sin(0.5))
            close(transform(olympus.jacfwd(call))(2.0), np.sin(0.5))
    close(grad(lambda t: vmap(f(t, lambda x: 3 * onp.sin(x) * t))(XS).sum())(2.0),
          3 * np.sin(XS).sum())
    for fun in (lambda t: ignorant(t)(0.5), lambda t: jit(ignorant(t))(0.5)):
        with pytest.raises(TypeError, match="closes over a mapped value; .* as an argument"):
            vmap(fun)(XS)
    with pytest.raises(TypeError, match="closes over a differentiated value"):
        vmap(lambda x: grad(lambda t: ignorant(t)(x))(2.0))(XS)


def test_sequential_vmap_calls_the_function_per_element():
    shapes = []

    @sequential_vmap
    def f(x, y):
        shapes.append(x.shape)
        return {"s": x * y.sum()}

    close(vmap(f, (0, None))(XS, XS)["s"], XS * XS.sum())
    close(vmap(vmap(f), (0, None))(onp.stack([XS, XS]), XS)["s"], [XS * XS] * 2)
    assert set(shapes) == {()}
    close(vmap(grad(lambda x, y: f(x, y)["s"]), (0, None))(XS, XS), [XS.sum()] * 3)


def test_custom_vmap_errors():
    with pytest.raises(AttributeError, match="No batching rule defined"):
        custom_vmap(lambda x: x)(1.0)
    for result, message in ((lambda x: x, "a pair"), (lambda x: ((x, x), True), "structure"),
                            (lambda x: (x.sum(), True), "leading axis of size 3")):
        f = custom_vmap(lambda x: x)
        f.def_vmap(lambda size, batched, x, result=result: result(x))
        with pytest.raises((TypeError, ValueError), match=message):
            vmap(jit(f))(XS)


# Solvers ---------------------------------------------------------------------------------------

def root(a):
    """√a by Newton's method in a while loop, which alone would have no reverse mode."""
    def newton(f, x):
        return lax.while_loop(lambda x: onp.abs(f(x)) > 1e-6, lambda x: x - f(x) / grad(f)(x), x)

    return lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))


def test_custom_root_is_differentiated_by_its_equation():
    close(root(4.0), 2.0)
    for transform in (lambda f: f, jit):
        close(transform(grad(root))(4.0), 0.25)
        close(transform(vmap(grad(root)))(XS), 0.5 / np.sqrt(XS))
        close(transform(grad(grad(root)))(4.0), -0.25 * 4.0 ** -1.5)
        close(transform(lambda a: jvp(root, (a,), (1.0,)))(4.0), [2.0, 0.25])
    x, aux = lax.custom_root(lambda x: x - 3.0, 0.0, lambda f, x: (x - f(x), {"steps": 1}),
                             lambda g, y: y, has_aux=True)
    assert float(x) == 3.0 and int(aux["steps"]) == 1


A = np.array([[3.0, 1.0, 0.5], [0.2, 4.0, 1.0], [0.1, 0.3, 2.0]], "f")
B = np.array([1.0, -2.0, 0.5], "f")


def jacobi(matvec, b):
    """Forty rounds of Jacobi's method: enough for the matrix A."""
    diagonal = onp.diagonal(vmap(matvec)(onp.eye(3)))
    return lax.fori_loop(0, 40, lambda _, x: x + (b - matvec(x)) / diagonal, onp.zeros(3))


def solved(a, b):
    return lax.custom_linear_solve(lambda x: a @ x, b, jacobi, jacobi)


def test_custom_linear_solve_is_differentiated_by_its_equation():
    close(solved(A, B), np.linalg.solve(A, B), 1e-4)
    x, w = np.linalg.solve(A, B), np.linalg.solve(A.T, np.ones(3, "f"))
    for transform in (lambda f: f, jit):
        d_a, d_b = transform(grad(lambda a, b: solved(a, b).sum(), (0, 1)))(A, B)
        close(d_b, w, 1e-4)
        close(d_a, -np.outer(w, x), 1e-4)
        close(transform(vmap(solved, (None, 0)))(A, np.stack([B, 2 * B])), [x, 2 * x], 1e-4)
        close(transform(vmap(solved, (0, None)))(np.stack([A, 2 * A]), B), [x, x / 2], 1e-4)
    t = np.array([1.0, 2.0, 3.0], "f")
    close(jvp(lambda b: solved(A, b), (B,), (t,))[1], np.linalg.solve(A, t), 1e-4)
    hess = jit(grad(lambda b: (grad(lambda b: (solved(A, b) ** 3).sum())(b)).sum()))(B)
    inv = np.linalg.inv(A)
    close(hess, (6 * inv.T * x) @ inv @ np.ones(3), 1e-3)


def test_custom_linear_solve_errors():
    with pytest.raises(TypeError, match="transpose_solve required"):
        grad(lambda b: lax.custom_linear_solve(lambda x: A @ x, b, jacobi).sum())(B)
    with pytest.raises(ValueError, match=r"solve\(\) output shapes must match b"):
        lax.custom_linear_solve(lambda x: x, B, lambda f, b: onp.ones(2))
    with pytest.raises(TypeError, match=r"matvec\(\) output pytree structure must match b"):
        lax.custom_linear_solve(lambda x: (x, x), B, jacobi)
    with pytest.raises(TypeError, match="auxiliary data"):
        lax.custom_linear_solve(lambda x: x, 1.0, lambda f, b: b, has_aux=True)
    x, steps = lax.custom_linear_solve(lambda x: 2 * x, 3.0, lambda f, b: (b / f(1.0), 7),
                                       symmetric=True, has_aux=True)
    assert (float(x), int(steps)) == (1.5, 7)


def test_custom_root_refuses_a_tangent_of_another_structure():
    def f(a):
        return lax.custom_root(lambda x: x - a, 1.0, lambda f, x: x - f(x), lambda g, y: (y, y))

    with pytest.raises(TypeError, match="custom_root: .*<lambda> returned another structure"):
        grad(f)(2.0)


# Wrong arguments ---------------------------------------------------------------------------------

def vjp_of(fun, fwd, bwd, *args):
    f = olympus.custom_vjp(fun)
    f.defvjp(fwd, bwd)
    return grad(f)(*args)


def one_rule_for_two():
    f = olympus.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda t, out, x, y: t * y)
    return grad(f)(1.0, 2.0)


@pytest.mark.parametrize(("error", "message", "fun"), [
    (TypeError, "custom_jvp: fun is 3", lambda: olympus.custom_jvp(3)),
    (TypeError, "jvp is 3", lambda: olympus.custom_jvp(lambda x: x).defjvp(3)),
    (ValueError, r"nondiff_argnums is \(3,\); the function takes 1",
     lambda: olympus.custom_jvp(lambda x: x, nondiff_argnums=(3,))),
    (TypeError, "defjvps has 1 rules", one_rule_for_two),
    (TypeError, r"the same container .*unexpected keys \['v'\]",
     lambda: vjp_of(lambda p: p["w"] * 2, lambda p: (p["w"] * 2, None), lambda r, ct: ({"v": ct},),
                    {"w": 2.0})),
    (TypeError, r"the residuals of fwd <lambda>: 's' of type str given at \['k'\]",
     lambda: vjp_of(lambda x: x, lambda x: (x, {"k": "s"}), lambda r, ct: (ct,), 1.0)),
    (TypeError, "checkpoint: policy is 'dots'", lambda: olympus.checkpoint(named, policy="dots")),
    (TypeError, "called with them first", lambda: grad(olympus.checkpoint(
        named, policy=olympus.checkpoint_policies.save_only_these_names))(1.0)),
    (TypeError, "checkpoint_name: name is 3", lambda: checkpoint_name(1.0, 3)),
])
def test_wrong_arguments_are_named(error, message, fun):
    with pytest.raises(error, match=message):
        fun()


# Residuals --------------------------------------------------------------------------------------

def named(x):
    return onp.sin(checkpoint_name(onp.sin(x), "a"))


def test_offloaded_residuals_are_in_host_memory():
    policy = olympus.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["a"], offload_src="device",
        offload_dst="pinned_host")
    f = olympus.checkpoint(named, policy=policy)
    expected = grad(lambda x: named(x).sum())(XS)
    close(grad(lambda x: f(x).sum())(XS), expected)
    close(jit(grad(lambda x: f(x).sum()))(XS), expected)
    for way in (f, jit(f), jit(jit(f))):
        kinds = [x.sharding.memory_kind for x in olympus.tree.leaves(olympus.vjp(way, XS)[1])
                 if isinstance(x, olympus.Array)]
        assert "pinned_host" in kinds
        close(grad(lambda x, way=way: way(x).sum())(XS), expected)
    program = str(make_olympuspr(grad(lambda x: f(x).sum()))(XS))
    assert program.count("device_put[") == 2
    dots = olympus.checkpoint(lambda x, w: onp.sin(x @ w), policy=olympus.checkpoint_policies
                              .offload_dot_with_no_batch_dims("device", "pinned_host"))
    w = np.eye(3, dtype="f")
    close(grad(lambda x: dots(x, w).sum())(XS), np.cos(XS))
    with pytest.raises(ValueError, match="in both sets"):
        olympus.checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"], names_which_can_be_offloaded=["a"],
            offload_src="device", offload_dst="pinned_host")
    with pytest.raises(ValueError, match="memory space: 'moon'"):
        olympus.checkpoint_policies.offload_dot_with_no_batch_dims("moon", "device")


@pytest.mark.parametrize("x", [onp.ones(3), np.ones(3, "f"), 2.0, 3, onp.ones(3, onp.bfloat16),
                               olympus.random.key(0)], ids=["array", "numpy", "float", "int",
                                                            "bfloat16", "key"])
def test_device_put_respects_the_memory_kind_of_a_sharding(x):
    device = olympus.devices()[0]
    host = lib.SingleDeviceSharding(device, memory_kind="pinned_host")

    def kind(x):
        return getattr(x, "_base_array", x).sharding.memory_kind

    plain, there = olympus.device_put(x), olympus.device_put(x, host)
    assert (kind(plain), kind(there)) == ("device", "pinned_host")
    assert there.dtype == plain.dtype and getattr(there, "weak_type", 0) == getattr(
        plain, "weak_type", 0)
    back = olympus.device_put(there, lib.SingleDeviceSharding(device, memory_kind="device"))
    assert kind(back) == "device" and str(back) == str(plain)
    assert kind(olympus.device_put(there)) == "pinned_host"
    assert kind(olympus.device_put(there, device)) == "device"
    assert olympus.device_put(there, host) is there or x is not there
    assert kind(olympus.device_put(plain, olympus.memory.Space.Host)) == "pinned_host"


def test_device_put_of_traced_values_respects_the_memory_kind():
    host = lib.SingleDeviceSharding(olympus.devices()[0], memory_kind="pinned_host")
    x = onp.ones(3)
    put = lambda x: olympus.device_put(x, host) ** 2
    assert "target=MemorySpace.Host" in str(make_olympuspr(put)(x))
    assert str(make_olympuspr(grad(lambda x: put(x).sum()))(x)).count("device_put[") == 2
    for transform in (lambda f: f, jit):
        close(transform(put)(x), x)
        close(transform(grad(lambda x: put(x).sum()))(x), 2 * x)
        close(transform(vmap(grad(put)))(x), 2 * x)
    mapped = vmap(lambda x: olympus.device_put(x, host))(x)
    assert mapped.sharding.memory_kind == "pinned_host"


def test_device_put_gives_up_what_it_moves_to_another_memory():
    x, host = onp.ones(3), olympus.memory.Space.Host
    moved = olympus.device_put(x, host, donate=True)
    assert x.is_deleted()
    assert not olympus.device_put(moved, host, donate=True).is_deleted()


def test_policies_see_into_jitted_functions():
    f = olympus.checkpoint(lambda x: jit(named)(x).sum(),
                           policy=olympus.checkpoint_policies.save_only_these_names("a"))
    program = str(make_olympuspr(grad(f))(XS))
    again = program[program.index("remat2"):]
    assert "sin" not in again and again.count("cos") == 2      # the named value is not made again
    close(grad(f)(XS), grad(lambda x: named(x).sum())(XS))


def residuals(fun, *args, **kwargs):
    out = io.StringIO()
    with redirect_stdout(out):
        print_saved_residuals(fun, *args, **kwargs)
    return out.getvalue().splitlines()


def test_print_saved_residuals_tells_where_each_comes_from():
    lines = residuals(lambda d, x: named(x) * d["k"], {"k": 2.0}, 3.0)
    origins = sorted(re.sub(r" from \S+\.py:.*", "", line) for line in lines)
    assert origins == ["f32[] from the argument d['k']", "f32[] output of cos",
                       "f32[] output of cos", "f32[] output of sin"]
    (line,) = residuals(olympus.checkpoint(named), 3.0)
    assert line == "f32[] from the argument x"
    assert residuals(jit(onp.sin), 3.0)[0].startswith("f32[] output of jitted function 'sin' from")
    assert residuals(lambda x: x * 2.0, 3.0) == []
    lines = residuals(lambda b, a: a * b, b=np.ones(4, "f"), a=np.ones((2, 1), "f"))
    assert "f32[4] from the argument b" in lines    # in the order of the call, not of the names


def scans():
    """Ten loops, by name: a function and its arguments."""
    def over(body, length=None):
        return lambda *args: lax.scan(lambda c, x: body(c, x, *args[1:]), args[0], None,
                                      length)[0]

    ones, eye = np.ones((7, 3), "f"), np.ones((3, 3), "f")
    return {
        "sine": (lambda x: lax.scan(lambda c, a: (onp.sin(c) * a, c), x, np.ones(5, "f"))[0], 2.0),
        "rnn": (lambda h, w: lax.scan(lambda h, x: (onp.tanh(h @ w + x), None), h, ones)[0],
                ones[0], eye),
        "invariant": (lambda h, k: lax.scan(lambda h, x: (h * onp.exp(k) + x, None), h, ones)[0],
                      ones[0], ones[0]),
        "cumsum": (lambda x: lax.scan(lambda c, a: (c + a, c), x, np.ones(5, "f"))[1], 2.0),
        "relu": (lambda h, ws: lax.scan(lambda h, w: (olympus.nn.relu(h @ w), None), h, ws)[0],
                 np.ones((2, 3), "f"), np.ones((7, 3, 3), "f")),
        "gelu": (lambda h, ws: lax.scan(lambda h, w: (olympus.nn.gelu(h @ w), None), h, ws)[0],
                 np.ones((2, 3), "f"), np.ones((7, 3, 3), "f")),
        "broadcast": (over(lambda h, _, k: (onp.sin(h * k), None), 7), np.ones((2, 3), "f"), 2.0),
        "euler": (over(lambda h, _: ((h[0] + .1 * h[1], h[1] - .1 * onp.sin(h[0])), None), 9),
                  (1.0, 2.0)),
        "decay": (over(lambda h, _, k: (onp.exp(-k * h), None), 4), 1.0, 2.0),
        "nested": (over(lambda c, _: (lax.scan(lambda c, _: (onp.sin(c), None), c, None, 3)[0],
                                      None), 4), 1.0),
    }


# Number and bytes of JAX 0.10.2's residuals for the same loops (jax.ad_checkpoint, frozen).
JAX = {"sine": (2, 40), "rnn": (4, 288), "invariant": (2, 96), "cumsum": (0, 0), "relu": (4, 486),
       "gelu": (7, 1260), "broadcast": (3, 340), "euler": (1, 36), "decay": (3, 36),
       "nested": (1, 48)}


def size(line):
    kind, dims = re.match(r"([a-z]+)\d*\[(.*?)\]", line).groups()
    return elements(dims) * (1 if kind == "bool" else 4)


def elements(dims):
    return int(np.prod([int(n) for n in dims.split(",") if n]))


@pytest.mark.parametrize("name", list(scans()))
def test_a_scan_keeps_no_more_than_it_does_in_jax(name):
    lines = residuals(*scans()[name])
    count, total = JAX[name]
    assert (len(lines) <= count, sum(map(size, lines)) <= total) == (True, True), lines


@pytest.mark.parametrize("fun, most", [
    (olympus.nn.softplus, 2), (olympus.nn.log_sigmoid, 2), (olympus.nn.mish, 5), (onp.sinc, 7),
    (lambda x: onp.logaddexp(x, x[::-1]), 2), (lambda x: onp.logaddexp2(x, x[::-1]), 2)],
    ids=["softplus", "log_sigmoid", "mish", "sinc", "logaddexp", "logaddexp2"])
def test_elementary_functions_keep_no_more_residuals_than_in_jax(fun, most):
    shown = io.StringIO()
    with redirect_stdout(shown):
        print_saved_residuals(fun, onp.linspace(0.1, 0.9, 8))
    lines = shown.getvalue().strip().splitlines()
    assert 0 < len(lines) <= most, lines


def test_logaddexp_where_nothing_is_known_of_the_difference():
    inf = float("inf")
    for f in (onp.logaddexp, onp.logaddexp2):
        for x, y, slopes in [(inf, inf, (1, 1)), (-inf, -inf, (1, 1)), (-inf, 1.0, (0, 1)),
                             (inf, 1.0, (1, 0)), (2.0, 2.0, (0.5, 0.5)), (1e30, 0.0, (1, 0))]:
            close(grad(f, (0, 1))(x, y), slopes)
            close(jvp(lambda x: f(x, y), (x,), (1.0,))[1], slopes[0])
            close(jvp(lambda y: f(x, y), (y,), (1.0,))[1], slopes[1])
    close(grad(grad(onp.logaddexp))(0.0, 0.0), 0.25)


@pytest.mark.parametrize("decorator", [olympus.custom_vjp, olympus.custom_jvp])
def test_an_error_in_the_body_of_a_function_with_rules_names_that_function(decorator):
    def power(x, n):
        return x ** int(n)

    f = decorator(power)
    if decorator is olympus.custom_vjp:
        f.defvjp(lambda x, n: (f(x, n), ()), lambda _, g: (g, None))
    else:
        f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    with pytest.raises(olympus.errors.ConcretizationTypeError) as info:
        jit(f)(3., 2.)
    assert "tracing the function power" in " ".join(str(info.value).split())
    assert "<unknown>" not in str(info.value)


def test_rules_may_close_over_a_dict_whose_keys_cannot_be_sorted():
    plan = {"order": np.array([1, 0]), (0, 1): 2.0}

    def under(scale):
        f = olympus.custom_jvp(lambda x: x[plan["order"]] * plan[0, 1] * held["scale"])
        held = {"scale": scale, 0: None}
        f.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
        return f

    x = np.array([1.0, 2.0], np.float32)
    np.testing.assert_array_equal(jit(lambda x: under(3.0)(x))(x), [12, 6])
    np.testing.assert_array_equal(grad(lambda x: under(3.0)(x)[0])(x), [0, 6])
    with pytest.raises(TypeError, match="differentiated with respect to a value"):
        grad(lambda s: jit(lambda x: under(s)(x).sum())(x))(3.0)
