"""checkpoint: the same derivatives, from fewer saved values."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import olympus
from olympus import (
    checkpoint, checkpoint_policies, custom_vjp, grad, jit, jvp, lax, nn, numpy as onp, random,
    typeof, vmap,
)
from olympus._src.core.staging import stage
from olympus.ad_checkpoint import checkpoint_name
from olympus.experimental.compute_on import compute_on
from olympus.experimental.serialize_executable import deserialize_and_load, serialize
from olympus.experimental.xla_metadata import set_xla_metadata
from olympus.lax import mul, scan, sin

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


def elsewhere(fun, *args):
    """The module for a platform where no call is kept."""
    return jit(fun).trace(*args).lower(lowering_platforms=("tpu",)).as_text()


def test_barrier():
    def count(prevent):
        fun = checkpoint(plain, prevent_cse=prevent)
        return elsewhere(grad(fun), X).count("optimization_barrier")

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
    lines = [line for line in elsewhere(both, *args).splitlines() if "optimization_barrier" in line]
    assert bool(guarded) == ("inlineable" in jit(both).lower(*args).as_text())
    found = "".join(name for name, kind in (("x", "tensor<5xf32>"), ("y", "tensor<1xf32>"))
                    if any(kind in line for line in lines))
    assert found == guarded


def test_a_sum_of_a_loop_passes_no_barrier():
    # XLA summed the gradient of `w` over the devices in each step, not once behind the loop.
    def loss(w, xs):
        step = checkpoint(lambda h, x: (sin(lax.dot(h, w) + x), None))
        return lax.scan(step, xs[0], xs)[0].sum()

    w, xs = np.eye(3, dtype=np.float32), np.ones((4, 2, 3), np.float32)
    barriers = [line for line in elsewhere(grad(loss), w, xs).splitlines()
                if "optimization_barrier" in line]
    assert [line.count("tensor<3x3xf32>") for line in barriers] == [1]     # `w` itself


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


def layer(w, x):
    return onp.tanh(nn.gelu(x @ w) @ w.T) + x


def deep(layer):
    def loss(ws, x):
        for w in ws:
            x = layer(w, x)
        return (x ** 2).mean()
    return loss


def scanned(layer):
    return lambda ws, x: (scan(lambda x, w: (layer(w, x), None), x, onp.stack(ws))[0] ** 2).mean()


def in_groups(layer):
    inner = checkpoint(layer)

    @checkpoint
    def group(ws, x):
        for w in ws:
            x = inner(w, x)
        return x

    def loss(ws, x):
        for i in range(0, len(ws), 4):
            x = group(ws[i:i + 4], x)
        return (x ** 2).mean()
    return loss


WS = [onp.asarray(np.linspace(-1, 1, 8 * 32, dtype=np.float32).reshape(8, 32) / (i + 4))
      for i in range(8)]
ROWS = onp.asarray(np.linspace(-1, 1, 64 * 8, dtype=np.float32).reshape(64, 8))
DOTS = checkpoint_policies.dots_saveable

LEAN = {        # programs with checkpoints, and at most which part of the plain gradient's memory
    "layers": (deep(checkpoint(layer)), 0.3),
    "jitted layers": (deep(checkpoint(jit(layer))), 0.3),
    "jitted loss": (jit(deep(checkpoint(layer))), 0.3),
    "products kept": (deep(checkpoint(layer, policy=DOTS)), 0.7),
    "layers in groups": (in_groups(layer), 0.3),
    "layers in a scan": (scanned(checkpoint(layer)), 0.5),
}


def temporaries(fun, *args):
    return jit(fun).lower(*args).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize("name", LEAN)
def test_a_checkpointed_gradient_takes_less_memory(name):
    fun, part = LEAN[name]
    assert temporaries(grad(fun), WS, ROWS) <= part * temporaries(grad(deep(layer)), WS, ROWS)
    for a, b in zip(jit(grad(fun))(WS, ROWS), grad(deep(layer))(WS, ROWS), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def kept(fun, *args):
    """How many calls of the module XLA may not make part of their callers, but for holds."""
    return jit(fun, hold="off").lower(*args).as_text().count("inlineable")


def test_what_is_computed_again_is_a_call_that_stays():
    def slope(**options):
        return grad(lambda x: checkpoint(lambda x: sin(sin(x)), **options)(x).sum())

    def printed(x):
        olympus.debug.print("{}", x.sum(), ordered=True)
        return sin(sin(x))

    assert kept(slope(), XS) == kept(vmap(slope()), XS[None]) == 1
    assert kept(checkpoint(lambda x: sin(sin(x))), XS) == 0        # nothing is computed again
    assert kept(slope(prevent_cse=False), XS) == 0
    ordered = jit(grad(lambda x: checkpoint(printed)(x).sum())).lower(XS).as_text()
    assert "inlineable" not in ordered and "optimization_barrier" in ordered


def test_checkpoints_nest_deeper_than_calls_can():
    fun = sin
    for _ in range(80):
        fun = checkpoint(lambda x, fun=fun: sin(fun(x)))
    text = jit(grad(fun)).lower(X).as_text()
    assert text.count("inlineable") == 64 and "optimization_barrier" in text
    assert np.isfinite(jit(grad(fun))(X))


def test_what_xla_is_told_of_a_scope_it_is_told_of_the_call():
    def loss(x):
        with compute_on("device_host"), set_xla_metadata(origin="loss"):
            return checkpoint(lambda x: sin(sin(x)))(x)

    (call,) = [line for line in jit(grad(loss)).lower(X).as_text().splitlines() if "call @" in line]
    assert all(word in call for word in ("inlineable", '_xla_compute_type = "host"', "origin"))
    close(jit(grad(loss))(X), np.cos(np.sin(X)) * np.cos(X))


def test_several_devices_and_exports_have_the_barrier():
    fun = jit(grad(lambda x: checkpoint(lambda x: sin(sin(x)))(x).sum()))
    exported = olympus.export.export(fun)(XS)
    mesh = olympus.make_mesh((1,), "x", axis_types=(olympus.sharding.AxisType.Auto,))
    cut = olympus.sharding.NamedSharding(mesh, olympus.sharding.PartitionSpec("x"))
    within = jit(lambda x: lax.with_sharding_constraint(fun(x), cut))
    with olympus.set_mesh(mesh):
        around = fun.lower(XS).as_text()
    for text in (around, within.lower(XS).as_text(), exported.mlir_module()):
        assert "inlineable" not in text and "optimization_barrier" in text
    np.testing.assert_array_equal(exported.call(XS), fun(XS))


@custom_vjp
def tripled(x):
    return onp.sin(x)


tripled.defvjp(lambda x: (onp.sin(x), onp.cos(x)), lambda res, ct: (3 * res * ct,))


def programs(mark):
    """Functions of an array of floats, of which `mark` checkpoints a part."""
    twice = mark(lambda x: onp.sin(onp.sin(x) * x))
    loss = lambda x: abs(twice(x) ** 2).sum()
    drawn = mark(lambda x, key, i: onp.sin(onp.sin(x) * random.normal(key, x.shape)) * i)
    return {
        "gradient": grad(loss), "mapped": vmap(grad(loss)), "of a mapped one": grad(
            lambda x: vmap(twice)(x).sum()), "second": grad(lambda x: grad(loss)(x).sum()),
        "hessian": olympus.hessian(loss), "pushed": lambda x: jvp(grad(loss), (x,), (x,))[1],
        "in a loop": grad(lambda x: scan(lambda c, _: (twice(c), c.sum()), x, None, 3)[1].sum()),
        "a loop": grad(lambda x: mark(lambda x: scan(
            lambda c, _: (onp.sin(c) * x, None), x, None, 3)[0])(x).sum()),
        "while": grad(lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (
            c[0] + 1, twice(c[1])), (0, x), checkpoints=2)[1].sum()),
        "branch": grad(lambda x: lax.cond(x.shape[0] > 1, twice, lambda x: x, x).sum()),
        "nested": grad(lambda x: mark(lambda x: twice(twice(x)))(x).sum()),
        "custom rule": grad(lambda x: mark(lambda x: tripled(x) * tripled(onp.sin(x)))(x).sum()),
        "other operands": grad(lambda x: drawn(x, random.key(1), onp.arange(4)).sum()),
        "complex": grad(lambda x: abs(twice(x + 1j * x)).sum()),
        "constants": grad(lambda x: mark(lambda x: onp.sin(onp.sin(x) @ WS[0][:4, :5]))(x).sum()),
        "factors": grad(lambda x: mark(lambda x: onp.linalg.solve(
            x.T @ x + onp.eye(4, dtype=x.dtype), onp.sin(x.T)))(x).sum()),
        "a bfloat16": lambda x: grad(lambda x: twice(x).sum())(x.astype("bfloat16")),
        "empty": lambda x: grad(loss)(x[:0]),
        "donated": lambda x: jit(lambda y: y - grad(loss)(y), donate_argnums=0)(x + 0),
    }


@pytest.mark.parametrize(("name", "x64"), [
    *[(name, False) for name in programs(checkpoint)], ("second", True), ("complex", True)])
def test_derivatives_are_those_without(name, x64):
    with olympus.enable_x64(x64):
        x = onp.asarray(np.linspace(0.1, 1, 12).reshape(3, 4))
        given, plain = programs(checkpoint)[name], programs(lambda f: f)[name]
        assert name == "donated" or kept(given, x) > kept(plain, x) == 0
        a, b = jit(given)(x), plain(x)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        tol = 3e-2 if "bfloat16" in name else 1e-9 if x64 else 1e-4
        np.testing.assert_allclose(np.asarray(a).astype("f8"), np.asarray(b).astype("f8"),
                                   rtol=tol, atol=tol)


def test_callbacks_in_a_call_that_stays_run_and_raise():
    seen = []

    def loud(x):
        olympus.debug.callback(lambda x: seen.append(float(x)), x.sum())
        return onp.sin(onp.sin(x))

    fun = jit(grad(lambda x: checkpoint(loud)(x).sum()))
    assert kept(fun, XS) == 1
    fun(XS)
    olympus.effects_barrier()
    assert len(seen) == 2 and seen[0] == seen[1]

    def refuse(x):
        raise ValueError("refused")

    pure = custom_vjp(lambda x: x)
    pure.defvjp(lambda x: (x, x), lambda x, ct: (ct * olympus.pure_callback(refuse, x, x),))
    with pytest.raises(ValueError, match="refused"):
        jit(grad(lambda x: checkpoint(lambda x: pure(onp.sin(x)))(x).sum()))(XS)


@pytest.mark.parametrize("way", [lambda f: f, jit])
def test_what_a_checkpoint_keeps_is_not_computed_again_by_its_other_readers(way):
    def size(depth):
        layer = checkpoint(lambda x: onp.sin(onp.cos(onp.tanh(x) * 1.1) + x))
        loss = way(lambda x: functools.reduce(lambda x, _: layer(x), range(depth), x).sum())
        return jit(grad(loss)).lower(onp.ones((4, 4))).compile().as_text().count(" = ")

    assert size(16) - size(8) < 1.2 * (size(8) - size(4)) * 2


FAST = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
CONVOLUTIONS = [("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC"), ("CNHW", "IHWO", "HWNC")]


@pytest.mark.parametrize("spec", CONVOLUTIONS)
@pytest.mark.parametrize("options", [
    {"window_strides": (2, 1)}, {"feature_group_count": 2, "rhs_dilation": (1, 2)}])
def test_convolutions_that_are_computed_again_have_the_fast_form(spec, options):
    sizes = {"N": 2, "C": 4, "H": 5, "W": 6}
    groups = options.get("feature_group_count", 1)
    lhs, rhs = [onp.asarray(np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape))
                for shape in ([sizes[c] for c in spec[0]],
                              [{**sizes, "O": 6, "I": 4 // groups, "H": 3, "W": 2}[c]
                               for c in spec[1]])]

    def loss(lhs, rhs):
        return (lax.conv_general_dilated(onp.sin(lhs), rhs, **{
            "window_strides": (1, 1), "padding": [(1, 1), (0, 1)], "dimension_numbers": spec,
            **options}) ** 2).sum()

    fun = jit(grad(checkpoint(loss), (0, 1)))
    for a, b in zip(fun(lhs, rhs), grad(loss, (0, 1))(lhs, rhs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    body = fun.lower(lhs, rhs).as_text().split("func.func private @checkpoint")[1]
    assert body.count("stablehlo.convolution") == body.count(FAST) == 3


def test_a_jitted_convolution_has_the_fast_form_where_it_is_computed_again_only():
    inner = jit(lambda x, k: lax.conv(onp.sin(x), k, (1, 1), "SAME"))
    x, k = onp.ones((1, 2, 4, 4)), onp.ones((2, 2, 3, 3))
    loss = checkpoint(lambda w, x: onp.sin(inner(x, k) * w).sum())
    text = jit(olympus.value_and_grad(loss)).lower(1.0, x).as_text()
    assert text.count("stablehlo.convolution") == 2 and text.count(FAST) == 1


def test_a_program_that_was_written_down_needs_as_little_memory():
    compiled = jit(grad(deep(checkpoint(layer)))).lower(WS, ROWS).compile()
    loaded = deserialize_and_load(*serialize(compiled))
    assert (loaded.memory_analysis().temp_size_in_bytes
            == compiled.memory_analysis().temp_size_in_bytes)
    for a, b in zip(loaded(WS, ROWS), compiled(WS, ROWS), strict=True):
        np.testing.assert_array_equal(a, b)
