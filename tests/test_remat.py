"""checkpoint: the same derivatives, from fewer saved values."""

from __future__ import annotations

import numpy as np
import pytest

import olympus
from olympus import custom_vjp, grad, jit, jvp, lax, vmap
from olympus import numpy as onp
from olympus._src.control.remat import checkpoint, checkpoint_name, checkpoint_policies
from olympus._src.core.staging import stage
from olympus._src.core.trace import typeof
from olympus._src.lax.arithmetic import mul
from olympus._src.lax.transcendental import sin
from olympus._src.loops.scan import scan

X = np.float32(0.5)
XS = np.array([0.1, 0.2, 0.3], np.float32)


def plain(x):
    return sin(checkpoint_name(sin(mul(x, x)), "a"))


def slope(v):
    return np.cos(np.sin(v * v)) * np.cos(v * v) * 2 * v


POLICIES = {
    "none": (None, "inputs"), "nothing": (checkpoint_policies.nothing_saveable, "inputs"),
    "dots": (checkpoint_policies.dots_saveable, "inputs"),
    "everything": (checkpoint_policies.everything_saveable, "everything"),
    "named": (checkpoint_policies.save_only_these_names("a"), "some"),
    "not_named": (checkpoint_policies.save_anything_except_these_names("a"), "everything"),
}


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), b, rtol=2e-5)


@pytest.mark.parametrize("name", POLICIES)
def test_values_and_derivatives(name):
    fun = checkpoint(plain, policy=POLICIES[name][0])
    close(fun(X), np.sin(np.sin(0.25)))
    for wrapped in (fun, jit(fun)):
        close(grad(wrapped)(X), slope(0.5))
        close(jit(grad(wrapped))(X), slope(0.5))
        close(vmap(grad(wrapped))(XS), slope(XS))
        close(jvp(wrapped, (X,), (np.float32(1),))[1], slope(0.5))
        close(grad(grad(wrapped))(X), (slope(0.5 + 1e-6) - slope(0.5 - 1e-6)) / 2e-6)
    close(grad(lambda x: scan(lambda c, _: (fun(c), None), x, None, 3)[0])(X),
          grad(lambda x: plain(plain(plain(x))))(X))


def keep_all_but(*names):
    return lambda prim, *_, **params: prim.name != "name" or params["name"] not in names


@pytest.mark.parametrize("policy, times", [
    (None, 2), (checkpoint_policies.nothing_saveable, 2),
    (checkpoint_policies.everything_saveable, 1),
    (checkpoint_policies.save_any_names_but_these("b"), 2),     # keeps no print, and no sum
    (keep_all_but("a"), 1), (keep_all_but("a", "b"), 2)])
@pytest.mark.parametrize("ordered", [False, True])
def test_a_print_of_kept_values_is_not_made_again(policy, times, ordered):
    seen = []

    def fun(x):
        a = checkpoint_name(x + 1, "a")
        b = checkpoint_name(a * 2, "b")
        olympus.debug.callback(lambda a, b: seen.append((float(a), float(b))), a, b,
                               ordered=ordered)
        return onp.exp(b)

    grad(checkpoint(fun, policy=policy))(2.0)
    olympus.effects_barrier()
    assert seen == [(3, 6)] * times


@pytest.mark.parametrize("way", [checkpoint, lambda f: jit(checkpoint(f)),
                                 lambda f: checkpoint(jit(f)), lambda f: vmap(checkpoint(f))])
@pytest.mark.parametrize("optimize", [False, True])
def test_optimize_remat_runs_the_function_where_no_residual_is_read(way, optimize):
    said = []

    @custom_vjp
    def f(x):
        olympus.debug.callback(lambda: said.append("f"))
        return onp.sin(x)

    def fwd(x):
        olympus.debug.callback(lambda: said.append("fwd"))
        return onp.sin(x), onp.cos(x)

    f.defvjp(fwd, lambda res, ct: (ct * res,), optimize_remat=optimize)
    slopes = grad(lambda xs: way(lambda x: f(x) * f(x))(xs).sum())(XS)
    olympus.effects_barrier()
    close(slopes, np.sin(2 * np.asarray(XS)))
    first = "f" if optimize else "fwd"
    assert set(said[:2]) == {first} and set(said[-2:]) == {"fwd"}
    said.clear()
    grad(lambda xs: vmap(f)(xs).sum())(XS)
    olympus.effects_barrier()
    assert set(said) == {"fwd"}


@pytest.mark.parametrize("name", POLICIES)
def test_what_is_computed_again(name):
    policy, saved = POLICIES[name]
    program = stage(lambda x: [grad(checkpoint(plain, policy=policy))(x)], [typeof(X)])
    again = [e for e in program.eqns if e.primitive.name == "remat2"]
    assert len(again) == 1 and again[0].params["differentiated"]
    body = [e.primitive.name for e in again[0].params["olympuspr"].eqns]
    assert ("sin" in body) == (saved == "inputs")
    assert ("cos" in body) == (saved != "everything")


def test_barrier():
    def count(prevent):
        fun = checkpoint(plain, prevent_cse=prevent)
        return jit(grad(fun)).lower(X).as_text().count("optimization_barrier")

    assert count(True) == 1
    assert count(False) == 0


@pytest.mark.parametrize(("prevent", "guarded"), [
    (True, "xy"), (False, ""), ((True, False), "x"), ([False, True], "y"),
    (({"a": True}, False), "x"), ((False, False), ""), ((True, True), "xy")])
def test_a_barrier_for_some_arguments(prevent, guarded):
    def plain(x, y):
        return (sin(mul(sin(x["a"]), y["b"])) * 2).sum()

    # Sizes tell the operands of the barrier apart. What is no argument, a cotangent, is in it too.
    args = {"a": np.linspace(0, 1, 5, dtype=np.float32)}, {"b": np.full(1, 0.5, np.float32)}
    fun = checkpoint(plain, prevent_cse=prevent)
    both = grad(fun, (0, 1))
    close(both(*args)[0]["a"], grad(plain, (0, 1))(*args)[0]["a"])
    close(jit(both)(*args)[1]["b"], grad(plain, (0, 1))(*args)[1]["b"])
    close(vmap(both)(*[{k: v[None] for k, v in a.items()} for a in args])[0]["a"][0],
          grad(plain)(*args)["a"])
    close(jvp(grad(lambda x: fun(x, args[1])), args[:1], args[:1])[1]["a"],
          jvp(grad(lambda x: plain(x, args[1])), args[:1], args[:1])[1]["a"])
    lines = [line for line in jit(both).lower(*args).as_text().splitlines()
             if "optimization_barrier" in line]
    found = "".join(name for name, kind in (("x", "tensor<5xf32>"), ("y", "tensor<1xf32>"))
                    if any(kind in line for line in lines))
    assert found == guarded


def test_prevent_cse_takes_bools():
    for wrong in (1, None, "x", (True, 0), {"a": True}):
        with pytest.raises(TypeError, match="checkpoint: prevent_cse"):
            checkpoint(plain, prevent_cse=wrong)
    for wrong in ((), (True, True), (({"a": True}),)):
        with pytest.raises(ValueError, match="prefix"):
            checkpoint(plain, prevent_cse=wrong)(X)
    assert checkpoint(lambda x, *, k: x * k, prevent_cse=((True,), {"k": False}))(2, k=3) == 6


def test_static_arguments_and_closures():
    fun = checkpoint(lambda n, x, *, k: mul(x, float(n * k)), static_argnums=0, static_argnames="k")
    close(grad(fun, 1)(3, X, k=2), 6)
    close(grad(lambda w: checkpoint(lambda x: mul(x, mul(w, w)))(X))(X), 0.5)
    with pytest.raises(TypeError, match="checkpoint: fun is 3"):
        checkpoint(3)


def test_static_argnames_hold_for_arguments_given_by_position():
    def f(x, flag):
        return x * 2 if flag == "double" else x

    g = checkpoint(f, static_argnames="flag")
    assert float(grad(g)(3.0, "double")) == float(grad(g)(3.0, flag="double")) == 2.0


W = np.array([[0.5, -0.3], [0.2, 0.4]], np.float32)


def layers(x):
    return onp.sin(onp.sin(x @ W) @ W)


HOLDING = {     # products that are computed, and those that are computed again without a policy
    "cond": (lambda x: lax.cond(x.sum() > 0, layers, lambda x: onp.cos(x @ W @ W), x), 8, 4),
    "scan": (lambda x: lax.scan(lambda c, _: (layers(c), None), x, length=3)[0], 4, 2),
    "scan of jit": (lambda x: lax.scan(lambda c, _: (jit(layers)(c), c), x, length=3)[0], 4, 2),
    "cond in scan": (lambda x: lax.scan(lambda c, _: (lax.cond(
        c.sum() > 0, layers, lambda c: c, c), None), x, length=3)[0], 4, 2),
    "scan in cond": (lambda x: lax.cond(x.sum() > 0, lambda x: lax.fori_loop(
        0, 3, lambda i, c: layers(c) + i, x), lambda x: x, x), 4, 2),
}


@pytest.mark.parametrize("name", HOLDING)
def test_policies_hold_in_loops_and_branches(name):
    fun, least, again = HOLDING[name]
    x = np.array([[0.3, 0.7], [0.1, 0.9]], np.float32)

    def slope(policy):
        return grad(lambda x: checkpoint(fun, policy=policy)(x).sum())

    for policy, count in ((checkpoint_policies.dots_saveable, least),
                          (checkpoint_policies.everything_saveable, least),
                          (checkpoint_policies.nothing_saveable, least + again)):
        program = str(olympus.make_olympuspr(slope(policy))(x))
        assert program.count("dot_general") == count, policy
        wanted = grad(lambda x: fun(x).sum())(x)
        for each in jit(lambda x, p=policy: (slope(p)(x), vmap(slope(p))(x[None])[0]))(x):
            np.testing.assert_allclose(each, wanted, rtol=1e-5, atol=1e-6)
