"""Primitives of one's own, from public names only: the tables of rules, lowering, and all of it
under every transformation; and the small public functions on programs and avals.
"""

import copy
import gc
import itertools
import weakref

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import api_util, core, lax
from olympus._src.core.primitive import programs_within
from olympus.extend import core as extend, linear_util as lu
from olympus.extend.core import Literal, Primitive, primitives
from olympus.extend.mlir.dialects import stablehlo as hlo
from olympus.interpreters import ad, batching, mlir, partial_eval, xla
from olympus.memory import Space


def mul_add_primitive():
    """x * y + z with every rule, as the how-to of this field defines it."""
    p = Primitive("mul_add")

    def mul_add(x, y, z):
        return p.bind(x, y, z)

    @p.def_impl
    def impl(x, y, z):
        return onp.asarray(np.add(np.multiply(x, y), z))

    @p.def_abstract_eval
    def abstract(x, y, z):
        assert x.shape == y.shape == z.shape
        return core.ShapedArray(x.shape, x.dtype)

    def lower(ctx, x, y, z):
        assert [a.shape for a in ctx.avals_in] == [ctx.avals_out[0].shape] * 3
        return [hlo.add(hlo.multiply(x, y), z)]

    def jvp(primals, tangents):
        x, y, z = primals
        xt, yt, zt = map(ad.instantiate_zeros, tangents)
        return mul_add(x, y, z), mul_add(xt, y, mul_add(x, yt, zt))

    def transpose(ct, x, y, z):
        if ad.is_undefined_primal(x):
            assert not ad.is_undefined_primal(y)
            ct_x = p.bind(ct, y, onp.zeros(ct.shape, ct.dtype))
            return ct_x, None, ct
        ct_y = p.bind(x, ct, onp.zeros(ct.shape, ct.dtype))
        return None, ct_y, ct

    def batch(args, dims):
        size = next(a.shape[d] for a, d in zip(args, dims) if d is not None)
        return mul_add(*[batching.bdim_at_front(a, d, size) for a, d in zip(args, dims)]), 0

    mlir.register_lowering(p, lower)
    ad.primitive_jvps[p] = jvp
    ad.primitive_transposes[p] = transpose
    batching.primitive_batchers[p] = batch
    return p


mul_add_p = mul_add_primitive()
X, Y, Z = (onp.asarray(v, "float32") for v in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0]))


def square_add(x, z):
    return mul_add_p.bind(x, x, z)


@pytest.mark.parametrize("transform", [lambda f: f, olympus.jit, lambda f: olympus.jit(
    olympus.jit(f))], ids=["eager", "jit", "jit jit"])
def test_primitive_of_ones_own_computes(transform):
    np.testing.assert_allclose(transform(square_add)(X, Z), X * X + Z)


@pytest.mark.parametrize("transform", [lambda f: f, olympus.jit], ids=["eager", "jit"])
def test_primitive_of_ones_own_differentiates(transform):
    out, tangent = transform(lambda *args: olympus.jvp(square_add, args[:2], args[2:]))(
        X, Z, onp.ones(2), onp.ones(2))
    np.testing.assert_allclose(out, X * X + Z)
    np.testing.assert_allclose(tangent, 2 * X + 1)
    total = transform(olympus.grad(lambda x, z: square_add(x, z).sum(), argnums=(0, 1)))
    np.testing.assert_allclose(total(X, Z), (2 * X, onp.ones(2)))
    hessian = transform(olympus.hessian(lambda x: square_add(x, Z).sum()))
    np.testing.assert_allclose(hessian(X), 2 * np.eye(2))


@pytest.mark.parametrize("transform", [lambda f: f, olympus.jit], ids=["eager", "jit"])
def test_primitive_of_ones_own_batches(transform):
    mapped = transform(olympus.vmap(square_add, in_axes=(1, None)))
    x = onp.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(mapped(x, Z), (x * x + Z[:, None]).T)
    gradients = transform(olympus.vmap(olympus.grad(lambda x: square_add(x, 1.0 * x)), 0))
    np.testing.assert_allclose(gradients(X), 2 * X + 1)


def test_primitive_of_ones_own_in_loops():
    def body(carry, z):
        return square_add(carry, z), carry.sum()

    out, sums = lax.scan(body, X, onp.stack([Z, Z]))
    np.testing.assert_allclose(out, (X * X + Z) ** 2 + Z)
    np.testing.assert_allclose(sums, [X.sum(), (X * X + Z).sum()])
    slope = olympus.grad(lambda x: lax.scan(body, x, onp.stack([Z, Z]))[0].sum())(X)
    np.testing.assert_allclose(slope, 2 * (X * X + Z) * 2 * X)
    checked = olympus.grad(olympus.checkpoint(lambda x: square_add(x, Z).sum()))(X)
    np.testing.assert_allclose(checked, 2 * X)


def test_primitive_of_ones_own_prints_by_name():
    text = str(olympus.make_olympuspr(square_add)(X, Z))
    assert text == "{ lambda ; a:f32[2] b:f32[2]. let c:f32[2] = mul_add a a b in (c,) }"
    assert "stablehlo.multiply" in olympus.jit(square_add).lower(X, Z).as_text()


def test_params_that_python_calls_equal_are_told_apart():
    p = Primitive("scale")
    p.def_impl(lambda x, *, by: type(by).__name__)
    assert [p.bind(X, by=by) for by in (1, 1.0, True)] == ["int", "float", "bool"]
    p = Primitive("kind")
    p.def_abstract_eval(lambda x, *, by: core.ShapedArray(
        x.shape, {int: "int32", float: "float32", bool: "bool"}[type(by)]))
    dtypes = [olympus.eval_shape(lambda x, by=by: p.bind(x, by=by), X).dtype
              for by in (1, 1.0, True)]
    assert list(map(str, dtypes)) == ["int32", "float32", "bool"]


def split_primitive():
    """(x + 1, x * by): two results, lowered by a traced function."""
    p = Primitive("split")
    p.multiple_results = True
    p.def_abstract_eval(lambda x, *, by: [x, x])
    p.def_impl(lambda *args, **params: xla.apply_primitive(p, *args, **params))
    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, by: (x + 1, x * by)))
    batching.defvectorized(p)
    return p


def test_several_results_lower_fun_and_apply_primitive():
    p = split_primitive()
    for fun in (p.bind, olympus.jit(p.bind, static_argnames="by")):
        more, scaled = fun(X, by=3)
        np.testing.assert_allclose(more, X + 1)
        np.testing.assert_allclose(scaled, X * 3)
    assert [a.tolist() for a in olympus.vmap(lambda x: p.bind(x, by=2))(X)] == [[2, 3], [2, 4]]
    assert p.bind(X, by=True)[1].tolist() == X.tolist()


def test_lowering_rule_of_a_platform_goes_first():
    p = Primitive("where_am_i")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, lambda ctx, x: hlo.negate(x))
    mlir.register_lowering(p, lambda ctx, x: hlo.abs(x), platform="cpu")
    mlir.register_lowering(p, lambda ctx, x: hlo.tan(x), platform="cuda")
    traced = olympus.jit(p.bind).trace(-X)
    assert "stablehlo.abs" in traced.lower(lowering_platforms=("cpu",)).as_text()
    assert "stablehlo.negate" in traced.lower(lowering_platforms=("tpu",)).as_text()
    assert "stablehlo.tan" in traced.lower(lowering_platforms=("gpu",)).as_text()
    assert p.bind(-X).tolist() == X.tolist()    # without `impl`, the lowering is run


def elementwise_primitive(name, rule):
    p = Primitive(name)
    p.def_abstract_eval(lambda *xs, **params: xs[0])
    mlir.register_lowering(p, mlir.lower_fun(rule, multiple_results=False))
    batching.defbroadcasting(p)
    return p


def test_derivatives_by_operand():
    p = elementwise_primitive("times_sin", lambda x, y: x * onp.sin(y))
    ad.defjvp(p, lambda t, x, y: t * onp.sin(y), lambda t, x, y: t * x * onp.cos(y))
    np.testing.assert_allclose(olympus.grad(lambda x, y: p.bind(x, y).sum(), (0, 1))(X, Y),
                               (np.sin(Y), X * np.cos(Y)), rtol=1e-6)
    p = elementwise_primitive("first", lambda x, y: x)
    ad.defjvp(p, lambda t, x, y: t, None)
    assert olympus.jvp(p.bind, (X, Y), (X, Y))[1].tolist() == X.tolist()
    assert olympus.jvp(lambda y: p.bind(X, y), (Y,), (Y,))[1].tolist() == [0, 0]
    p = elementwise_primitive("exponential", onp.exp)
    ad.defjvp2(p, lambda t, out, x: t * out)
    np.testing.assert_allclose(olympus.vmap(olympus.grad(p.bind))(X), np.exp(X), rtol=1e-6)


def test_linear_and_bilinear():
    p = elementwise_primitive("halve", lambda x: x / 2)
    ad.deflinear(p, lambda ct: [p.bind(ct)])
    assert olympus.grad(lambda x: p.bind(x).sum())(X).tolist() == [0.5, 0.5]
    p = elementwise_primitive("over", lambda x, *, by: x / by)
    ad.deflinear2(p, lambda ct, x, *, by: [p.bind(ct, by=by)])
    transpose = ad.get_primitive_transpose(p)
    assert transpose(X, ad.UndefinedPrimal(X.aval), by=2.0)[0].tolist() == [0.5, 1.0]
    assert olympus.grad(lambda x: p.bind(x, by=4.0).sum())(X).tolist() == [0.25, 0.25]
    p = elementwise_primitive("product", lambda x, y: x * y)
    ad.defbilinear(p, lambda ct, x, y: p.bind(ct, y), lambda ct, x, y: p.bind(x, ct))
    assert olympus.grad(lambda x, y: p.bind(x, y).sum(), (0, 1))(X, Y)[0].tolist() == Y.tolist()
    assert olympus.grad(lambda x: p.bind(x, x).sum())(X).tolist() == (2 * X).tolist()
    mixed = olympus.vmap(p.bind, in_axes=(0, None))(onp.stack([X, Y]), Z)
    np.testing.assert_allclose(mixed, np.stack([X * Z, Y * Z]))


def test_reducer():
    p = Primitive("total")
    p.def_abstract_eval(lambda x, *, axes: core.ShapedArray(
        [n for i, n in enumerate(x.shape) if i not in axes], x.dtype))
    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, axes: onp.sum(x, axes),
                                             multiple_results=False))
    batching.defreducer(p)
    x = onp.arange(24.0).reshape(2, 3, 4)
    for axis in range(3):
        for axes in ((0,), (1,), (0, 1)):
            got = olympus.vmap(lambda v: p.bind(v, axes=axes), in_axes=axis)(x)
            np.testing.assert_allclose(got, np.stack([v.sum(axes) for v in np.moveaxis(
                np.asarray(x), axis, 0)]))


def test_rule_with_the_axis():
    p = elementwise_primitive("mean_over_axis", lambda x: x)

    batching.fancy_primitive_batchers[p] = lambda axis, args, dims: (
        onp.sum(args[0], dims[0]) / axis.size, None)
    assert olympus.vmap(p.bind, out_axes=None)(X) == 1.5


def test_tables_are_views_of_the_rules():
    assert ad.primitive_jvps[mul_add_p].__name__ == "jvp"
    assert batching.primitive_batchers[mul_add_p].__name__ == "batch"
    out, tangent = ad.primitive_jvps[lax.sin_p]((X,), (onp.ones(2),))
    np.testing.assert_allclose(tangent, np.cos(X), rtol=1e-6)
    out, dim = batching.primitive_batchers[lax.sin_p]((X,), (0,))
    assert dim == 0
    assert lax.sin_p in ad.primitive_jvps and lax.floor_p in set(batching.primitive_batchers)
    assert 50 < len(ad.primitive_jvps) == len(list(ad.primitive_jvps))
    bare = Primitive("bare")
    assert bare not in ad.primitive_jvps and ad.primitive_jvps.get(bare) is None
    with pytest.raises(KeyError):
        del ad.primitive_transposes[bare]
    ad.primitive_jvps[bare] = lambda primals, tangents: (primals, tangents)
    del ad.primitive_jvps[bare]
    assert bare not in ad.primitive_jvps


def test_primitive_is_the_class_of_all():
    assert isinstance(lax.add_p, Primitive) and isinstance(mul_add_p, Primitive)
    assert olympus.make_olympuspr(square_add)(X, Z).eqns[0].primitive is mul_add_p


def test_primitives_are_not_kept():
    p = Primitive("short_lived")
    p.def_impl(lambda x: x)
    p.bind(X)
    dead = weakref.ref(p)
    del p
    gc.collect()
    assert dead() is None


@pytest.mark.parametrize(("use", "error", "message"), [
    (lambda p: p.bind(X), NotImplementedError, "Evaluation rule for 'bare' not implemented"),
    (lambda p: olympus.jit(p.bind)(X), NotImplementedError, "p.def_abstract_eval"),
    (lambda p: olympus.grad(lambda x: p.bind(x).sum())(X), NotImplementedError,
     "Differentiation rule for 'bare' not implemented"),
    (lambda p: olympus.vmap(p.bind)(X), NotImplementedError,
     "Batching rule for 'bare' not implemented"),
    (lambda p: ad.get_primitive_transpose(p), NotImplementedError, "it has no transpose rule"),
])
def test_missing_rules_say_how_to_give_them(use, error, message):
    with pytest.raises(error, match=message):
        use(Primitive("bare"))


def test_wrong_rules_are_told():
    p = Primitive("wrong")
    p.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match=r"not found for .*register_lowering\(wrong"):
        olympus.jit(p.bind)(X)
    mlir.register_lowering(p, lambda ctx, x: [x, x])
    with pytest.raises(TypeError, match=r"wrong: its lowering rule returned values of types "
                                        r"tensor<2xf32>, tensor<2xf32>; tensor<2xf32> is required"):
        olympus.jit(p.bind)(X)
    p.def_abstract_eval(lambda x: [x])
    with pytest.raises(ValueError, match="a tuple or a list iff wrong.multiple_results"):
        olympus.jit(p.bind)(X)


def test_mlir_attributes_and_constants():
    assert str(mlir.i32_attr(3)) == "3 : i32" and str(mlir.i64_attr(4)) == "4 : i64"
    assert str(mlir.dense_int_array([1, 2])) == "array<i64: 1, 2>"
    assert str(mlir.dense_int_elements([1, 2])) == "dense<[1, 2]> : tensor<2xi64>"
    assert str(mlir.dtype_to_ir_type(np.dtype(bool))) == "i1"
    assert str(mlir.token_type()) == "!stablehlo.token"
    assert str(mlir.aval_to_ir_type(None, X.aval)) == "tensor<2xf32>"
    assert mlir.aval_to_ir_types(None, X.aval) == (mlir.aval_to_ir_type(None, X.aval),)
    for value, text in ((True, "true"), (3, "3 : i64"), ("a", '"a"'), (1.5, "1.500000e+00 : f64"),
                        (np.float32(2), "2.000000e+00 : f32"), (np.int8(1), "1 : i8")):
        assert str(mlir.ir_attribute(value)) == text
    assert str(mlir.ir_attribute([1, "b"])) == '[1, "b"]'
    assert str(mlir.ir_attribute(np.arange(2))) == "dense<[0, 1]> : tensor<2xi64>"
    with pytest.raises(TypeError, match="ir_attribute: .*given; a bool, number"):
        mlir.ir_attribute(object())
    assert mlir.flatten_ir_values([1, (2, 3)]) == mlir.flatten_ir_types((1, [2, 3])) == [1, 2, 3]
    with mlir.make_ir_context(), mlir.ir.Location.unknown():
        module = mlir.ir.Module.create()
        with mlir.ir.InsertionPoint(module.body):
            assert isinstance(mlir.ir_constant(np.float32(1)), mlir.Value)
            assert str(mlir.ir_constants(np.arange(3, dtype="int8"))[0].type) == "tensor<3xi8>"
            assert str(mlir.ir_constant(1, aval=core.ShapedArray((), "float16")).type) == \
                "tensor<f16>"
    assert mlir.module_to_string(module).count("stablehlo.constant") == 3
    assert "loc(" in mlir.module_to_string(module, enable_debug_info=True)
    assert mlir.module_to_bytecode(module)[:4] == b"ML\xefR"


def test_tangents_and_zeros():
    zero = ad.Zero(X.aval)
    assert ad.add_tangents(zero, X) is X and ad.add_tangents(X, zero) is X
    assert ad.add_tangents(X, X).tolist() == ad.add_olympusvals(X, X).tolist() == [2, 4]
    assert ad.zeros_like_aval(X.aval).tolist() == [0, 0]


def test_programs_cut_and_closed():
    closed = olympus.make_olympuspr(lambda x, y: (onp.sin(x), onp.cos(y) + Z))(X, Y)
    pr, used = partial_eval.dce_olympuspr(closed.olympuspr, [True, False])
    assert used == [True, False] and len(pr.eqns) == len(pr.invars) == len(pr.constvars) == 1
    pr, consts, used = partial_eval.dce_olympuspr_consts(closed.olympuspr, [False, True], True)
    assert consts == [True] and used == [True, True] and len(pr.invars) == 2
    opened = partial_eval.convert_constvars_olympuspr(closed.olympuspr)
    assert len(opened.invars) == 3 and not opened.constvars
    again = partial_eval.close_olympuspr(opened)
    np.testing.assert_allclose(core.eval_olympuspr(again.olympuspr, [], Z, X, Y)[1],
                               np.cos(Y) + Z, rtol=1e-6)
    kinds = []
    olympus.make_olympuspr(lambda x: kinds.append(type(x)) or x)(X)
    assert kinds == [partial_eval.DynamicOlympusprTracer]


def test_evaluated_programs_keep_lines_and_names():
    closed = olympus.make_olympuspr(olympus.named_call(lambda x: onp.sin(x) * 2, name="inner"))(X)
    line = closed.eqns[0].source_info.traceback

    def run(x, **options):
        with olympus.named_scope("outer"):
            return core.eval_olympuspr(closed.olympuspr, closed.consts, x, **options)

    kept = olympus.make_olympuspr(run)(X).eqns
    assert kept[0].source_info.traceback == line and kept[0].ctx.path == "outer/inner/"
    own = olympus.make_olympuspr(lambda x: run(x, propagate_source_info=False))(X).eqns
    assert own[0].source_info.traceback != line and own[0].ctx.path == "outer/inner/"
    through = olympus.make_olympuspr(olympus.grad(lambda x: run(x)[0].sum()))(X).eqns
    assert line in [eqn.source_info.traceback for eqn in through]
    with pytest.raises(TypeError, match="eval_olympuspr: 2 arguments given; the program takes 1"):
        core.eval_olympuspr(closed.olympuspr, [], X, X)


def test_evaluation_context():
    seen = []

    @olympus.jit
    def f(x):
        with core.eval_context():
            seen.append(onp.arange(3).sum())
        return x * int(seen[0])

    assert f(2) == 6


def test_avals_of_mapped_axes():
    aval = core.ShapedArray((2, 3), "float32")
    assert extend.mapped_aval(3, 1, aval) is core.ShapedArray((2,), "float32")
    assert extend.unmapped_aval(4, 0, aval) is core.ShapedArray((4, 2, 3), "float32")
    assert extend.mapped_aval(3, None, aval) is aval is extend.unmapped_aval(3, None, aval)
    with pytest.raises(ValueError, match=r"mapped_aval: float32\[2,3\] and axis 1 of size 4 given"):
        extend.mapped_aval(4, 1, aval)
    assert (core.max_dim(2, 3), core.min_dim(2, 3)) == (3, 2)
    assert extend.primal_dtype_to_tangent_dtype(np.dtype("float16")) == np.float16
    assert extend.primal_dtype_to_tangent_dtype(np.dtype("int8")) == olympus.dtypes.float0


def test_values_that_operations_take():
    assert extend.valid_olympustype(X) and extend.valid_olympustype(1.0)
    assert not extend.valid_olympustype("text")
    assert extend.concrete_or_error(int, 2.5) == 2 and extend.concrete_or_error(None, X) is X
    with pytest.raises(olympus.errors.ConcretizationTypeError, match="the size must be static"):
        olympus.jit(lambda n: extend.concrete_or_error(int, n, "the size must be static"))(3)
    assert olympus.grad(lambda x: x * extend.concrete_or_error(int, x))(3.0) == 3.0


def test_programs_within_programs():
    inner = olympus.jit(lambda x: onp.sin(x))
    closed = olympus.make_olympuspr(lambda x: lax.cond(x > 0, inner, lambda x: x, x))(1.0)
    cond = next(e for e in closed.eqns if e.primitive.name == "cond")
    assert len(list(extend.olympusprs_in_params(cond.params))) == 2
    assert len(list(extend.subolympusprs(closed.olympuspr))) == 2
    assert extend.olympuspr_as_fun(closed)(-1.0)[0].tolist() == -1.0
    eqn = extend.new_olympuspr_eqn(cond.invars, cond.outvars, cond.primitive, cond.params,
                                   cond.effects, cond.source_info)
    again = closed.olympuspr.replace(eqns=[eqn if e is cond else e for e in closed.eqns])
    core.check_olympuspr(again)
    assert str(again) == str(closed)


def test_a_program_to_which_many_paths_lead_is_visited_once():
    f = olympus.jit(lambda x: lax.sin(x))
    for _ in range(40):
        f = olympus.jit(lambda x, f=f: f(x) + f(x))
    closed = olympus.make_olympuspr(f)(1.0)
    assert len([*itertools.islice(programs_within(closed.olympuspr), 100)]) == 42


def test_trace_state():
    outside, inside = extend.get_opaque_trace_state(), []
    olympus.jit(lambda x: inside.append(extend.get_opaque_trace_state()) or x)(X)
    assert outside == extend.get_opaque_trace_state() and inside[0] != outside
    assert hash(outside) == hash(extend.get_opaque_trace_state())
    assert isinstance(extend.find_top_trace([X]), core.Trace)


# Names and params that Olympus uses too


@pytest.mark.parametrize("name", ["jit", "scan", "cond", "while", "dot_general", "remat2",
                                  "broadcast_in_dim", "convert_element_type"])
def test_outsiders_primitive_may_have_the_name_of_ours(name):
    p = Primitive(name)
    p.def_impl(lambda x, **params: x)
    p.def_abstract_eval(lambda x, **params: x)
    mlir.register_lowering(p, lambda ctx, x, **params: [x])
    ad.deflinear2(p, lambda ct, x, **params: [ct])
    batching.defvectorized(p)

    def f(x):
        return p.bind(x, olympuspr="mine", branches=3, name=("a", 1), call_olympuspr=None) * 2.0

    x = onp.arange(3.0)
    closed = olympus.make_olympuspr(f)(x)
    assert f"{name}[" in str(closed) and "olympuspr=mine" in str(closed)
    core.check_olympuspr(closed)
    assert list(extend.subolympusprs(closed.olympuspr)) == []
    for g in (f, olympus.jit(f), olympus.vmap(f),
              olympus.checkpoint(f, policy=olympus.checkpoint_policies.dots_saveable),
              olympus.checkpoint(
                  f, policy=olympus.checkpoint_policies.dots_with_no_batch_dims_saveable)):
        np.testing.assert_allclose(g(x), 2 * np.arange(3.0))
        np.testing.assert_allclose(olympus.grad(lambda x, g=g: g(x).sum())(x), 2 * np.ones(3))


def test_outsiders_param_that_is_a_program_is_one_whatever_it_is_called():
    p = Primitive("apply")
    p.multiple_results = True
    p.def_impl(lambda *args, inside: core.eval_olympuspr(inside.olympuspr, inside.consts, *args))
    p.def_abstract_eval(lambda *avals, inside: inside.out_avals)
    body = olympus.make_olympuspr(lambda x: onp.sin(x) + 1)(1.0)
    closed = olympus.make_olympuspr(lambda x: p.bind(x, inside=body)[0])(1.0)
    assert list(extend.subolympusprs(closed.olympuspr)) == [body.olympuspr]
    assert "sin" in str(closed)
    core.check_olympuspr(closed)
    np.testing.assert_allclose(p.bind(onp.float32(2.0), inside=body)[0], np.sin(2.0) + 1, rtol=1e-6)


def wrong_rules(several, **rules):
    """x -> x, or x -> x, x, with wrong rules."""
    p = Primitive("miscounted")
    p.multiple_results = several
    p.def_impl(lambda x: [x, x] if several else x)
    p.def_abstract_eval(lambda x: [x, x] if several else x)
    tables = {"jvp": ad.primitive_jvps, "transpose": ad.primitive_transposes,
              "vmap": batching.primitive_batchers}
    for name, rule in rules.items():
        tables[name][p] = rule
    return p


X2 = onp.ones(2)


@pytest.mark.parametrize("several, rule, message", [
    (True, {"jvp": lambda ps, ts: ([ps[0]] * 2, [ts[0]])}, "jvp rule returned 1 tangents; 2 are"),
    (True, {"jvp": lambda ps, ts: ([ps[0]] * 2, ts[0])}, "a list of 2 is required"),
    (False, {"jvp": lambda ps, ts: ps[0]}, r"a pair \(results, tangent\) is required"),
    (False, {"jvp": lambda ps, ts: (ps[0], ts[0], ts[0])}, r"a pair \(results, tangent\) is"),
    (True, {"jvp": lambda ps, ts: ([ps[0]], [ts[0]])}, "as its results; a list of 2 is"),
    (True, {"jvp": lambda ps, ts: (ps[0], ts[0])}, "as its results; a list of 2 is"),
    (True, {"vmap": lambda xs, ds: ([xs[0]], [0])}, "as its results; a list of 2 is"),
    (True, {"vmap": lambda xs, ds: ([xs[0]] * 2, [0])}, "vmap rule returned 1 mapped axes; 2 are"),
    (True, {"vmap": lambda xs, ds: ([xs[0]] * 2, 0)}, "a list of 2 is required"),
    (False, {"vmap": lambda xs, ds: [xs[0]]}, r"a pair \(results, mapped axis\) is required"),
], ids=range(10))
@pytest.mark.parametrize("transform", [lambda f: f, olympus.jit], ids=["eager", "jit"])
def test_rules_that_return_too_few_or_too_many_are_told(several, rule, message, transform):
    p = wrong_rules(several, **rule)
    use = (lambda x: olympus.jvp(p.bind, (x,), (x,))) if "jvp" in rule else olympus.vmap(p.bind)
    with pytest.raises(TypeError, match=f"^miscounted: its .*{message}"):
        transform(use)(X2)


@pytest.mark.parametrize("cts, message", [
    (lambda ct, x, y: [ct], "transpose rule returned 1 cotangents; 2 are required"),
    (lambda ct, x, y: [ct, ct, ct], "transpose rule returned 3 cotangents; 2 are required"),
    (lambda ct, x, y: ct, "a list of 2 is required"),
], ids=["too few", "too many", "no list"])
def test_transpose_rules_that_return_too_few_give_no_silent_zeros(cts, message):
    p = Primitive("miscounted")
    p.def_impl(lambda x, y: x + y)
    p.def_abstract_eval(lambda x, y: x)
    mlir.register_lowering(p, lambda ctx, x, y: [hlo.add(x, y)])
    ad.deflinear2(p, cts)
    for f in (p.bind, olympus.jit(p.bind)):
        with pytest.raises(TypeError, match=f"^miscounted: its .*{message}"):
            olympus.grad(lambda x, f=f: f(2 * x, 3 * x).sum())(X2)


# Names for libraries with transformations of their own


def test_rule_with_the_axis_in_parts():
    p = Primitive("axis_index_plus")
    p.def_impl(lambda x: x)
    p.def_abstract_eval(lambda x: x)
    seen = []

    def rule(axis_size, axis_name, trace_type, vals, dims):
        seen.append((axis_size, axis_name, tuple(dims)))
        return vals[0] + onp.arange(axis_size), dims[0]

    batching.axis_primitive_batchers[p] = rule
    assert batching.axis_primitive_batchers[p] is rule
    np.testing.assert_array_equal(olympus.vmap(p.bind, axis_name="i")(onp.zeros(3)), [0, 1, 2])
    assert seen == [(3, "i", (0,))]
    given = batching.axis_primitive_batchers[lax.sin_p]
    out, dim = given(3, "i", None, [onp.zeros(3)], [0])
    assert dim == 0 and out.shape == (3,)


def test_marks_are_nodes_without_leaves():
    aval = core.ShapedArray((2,), "float32")
    for mark in (ad.Zero(aval), ad.UndefinedPrimal(aval)):
        leaves, tree = olympus.tree.flatten({"a": mark, "b": 1.0})
        assert leaves == [1.0]
        again = tree.unflatten(leaves)["a"]
        assert type(again) is type(mark) and again.aval is aval


def test_rules_for_unknown_platforms_are_refused():
    with pytest.raises(NotImplementedError, match=r"unknown platform foo. Known platforms are: .+"):
        mlir.register_lowering(Primitive("p"), lambda ctx, x: [x], platform="foo")


def test_backends_are_found_by_platform():
    backend = olympus.extend.backend
    assert backend.backends()["cpu"] is backend.get_backend("cpu")
    assert backend.get_default_device() == olympus.devices()[0]
    with pytest.raises(RuntimeError, match="Unknown backend foo"):
        backend.get_backend("foo")


def test_debug_info_names_leaves_in_the_order_of_the_pytree():
    info = olympus.api_util.debug_info("jit", lambda x, y, z: x, (1,), {"z": 2, "y": 3})
    assert info.arg_names == ("x", "y", "z")


def test_equations_say_their_scopes():
    def f(x):
        with olympus.named_scope("outer"), olympus.named_scope("inner"):
            return onp.sin(x)

    eqn = olympus.make_olympuspr(f)(1.0).eqns[0]
    assert str(eqn.source_info.name_stack) == "outer/inner"
    assert eqn.source_info.traceback is not None


def test_the_top_trace_has_a_main():
    def f(x):
        assert extend.find_top_trace([x]).main is extend.find_top_trace([x]).main is not outer
        return x

    outer = extend.find_top_trace([1.0]).main
    olympus.vmap(f)(X)


def test_python_callback_in_a_lowering_rule():
    p = Primitive("on_host")
    p.def_abstract_eval(lambda x: x)

    def lower(ctx, x):
        out, token, _ = mlir.emit_python_callback(
            ctx, lambda x: (np.sin(x),), None, [x], ctx.avals_in, ctx.avals_out,
            has_side_effect=False)
        assert token is None
        return out

    mlir.register_lowering(p, lower)
    np.testing.assert_allclose(olympus.jit(p.bind)(X), np.sin(X), rtol=1e-6)


def test_functions_of_flat_arguments():
    def f(x, y, *, scale):
        return {"sum": (x + y["a"]) * scale}

    args, kwargs = (1.0, {"a": 2.0}), {"scale": 3.0}
    flat, in_tree = olympus.tree.flatten((args, kwargs))
    info = api_util.debug_info("test", f, args, kwargs)
    assert info.func_name == "f" and info.arg_names == ("x", "y['a']", "scale")
    named = api_util.debug_info("test", f, args, kwargs, sourceinfo="f at program.py:3")
    assert (named.traced_for, named.func_src_info, named.func_name) == (
        "test", "f at program.py:3", "f")
    wrapped, out_tree = api_util.flatten_fun(lu.wrap_init(f, debug_info=info), in_tree)
    with pytest.raises(lu.StoreException, match="read before"):
        out_tree()
    assert wrapped.call_wrapped(*flat) == [9.0]
    assert out_tree() == olympus.tree.structure({"sum": 0})

    flat, in_tree = olympus.tree.flatten(args)
    wrapped, out_tree = api_util.flatten_fun_nokwargs(lu.wrap_init(f, {"scale": 2.0}), in_tree)
    assert wrapped.call_wrapped(*flat) == [6.0] and wrapped == wrapped.replace_debug_info(info)

    fun, dynamic = api_util.argnums_partial(lu.wrap_init(lambda *args: args), (2, 0), (1, 2, 3))
    assert dynamic == (1, 3) and fun.call_wrapped("a", "b") == ("a", 2, "b")
    same, _ = api_util.argnums_partial(lu.wrap_init(fun.f), (2, 0), (5, 2, 6))
    other, _ = api_util.argnums_partial(lu.wrap_init(fun.f), (2, 0), (5, 2.0, 6))
    assert fun == same and hash(fun) == hash(same) and fun != other
    with pytest.raises(ValueError, match="argument 1 is \\[2\\], which is fixed; a hashable"):
        api_util.argnums_partial(lu.wrap_init(f), 0, (1, [2]))


def test_donation_and_axes_by_leaf():
    tree = olympus.tree.structure((((1, 2), 3), {"k": [4, 5], "l": 6}))
    assert api_util.donation_vector((0,), ("k",), tree) == (True, True, False, True, True, False)
    assert api_util.donation_vector((1,), (), olympus.tree.structure((1, 2)), False) == (
        False, True)
    assert api_util.rebase_donate_argnums((3, 4), (0, 1)) == (1, 2)
    assert api_util.rebase_donate_argnums((4, 4), (0, 2)) == (2,)
    with pytest.raises(ValueError, match="no position may be in both"):
        api_util.rebase_donate_argnums((1,), (1,))
    assert api_util.flatten_axes("test", olympus.tree.structure((1, (2, 3))), (None, 0)) == [
        None, 0, 0]
    assert str(api_util.shaped_abstractify(1.0)) == str(olympus.typeof(1.0))
    assert api_util.safe_map(lambda x, y: x + y, [1, 2], [3, 4]) == [4, 6]


def test_transformations_of_functions():
    @lu.transformation
    def doubled(*args, **kwargs):
        out = yield [2 * a for a in args], kwargs
        yield out + 1

    @lu.transformation_with_aux
    def counted(prefix, *args):
        out = yield args, {}
        yield out, prefix + str(len(args))

    fun, count = counted(doubled(lu.wrap_init(lambda x, y: x + y)), "n=")
    assert fun.call_wrapped(1, 2) == 7 and count() == "n=2"
    with pytest.raises(lu.StoreException, match="a second time"):
        fun.call_wrapped(1, 2)

    @lu.transformation2
    def negated(f, *args):
        return -f(*args)

    assert negated(lu.wrap_init(abs)).call_wrapped(-3) == -3
    empty = counted(lu.wrap_init(abs), "")[1]
    assert lu.merge_linear_aux(count, empty) == (True, "n=2")
    assert lu.merge_linear_aux(empty, count) == (False, "n=2")
    with pytest.raises(lu.StoreException, match="2 of two"):
        lu.merge_linear_aux(count, count)


def test_primitives_by_the_names_of_jax():
    def f(x):
        return lax.cond(x > 0, olympus.jit(lax.sin), olympus.checkpoint(lax.cos), x)

    outer = olympus.make_olympuspr(f)(1.0).eqns
    assert [e.primitive for e in outer] == [primitives.gt_p, primitives.convert_element_type_p,
                                            primitives.cond_p]
    inner = [b.olympuspr.eqns[0].primitive for b in outer[-1].params["branches"]]
    assert inner == [primitives.remat_p, primitives.jit_p]
    assert primitives.call_p is primitives.closed_call_p is primitives.jit_p
    assert primitives.add_olympusvals_p.bind(1.0, 2.0) == 3
    assert [olympus.jit(lambda: primitives.empty2_p.bind(dtype=t, memory_space=None))().dtype
            for t in ("int8", "bfloat16", "complex64")] == ["int8", "bfloat16", "complex64"]
    empty = lambda x: x + primitives.empty2_p.bind(dtype="float32", memory_space=Space.Device)
    assert olympus.vmap(olympus.grad(empty))(np.ones(2, "f")).tolist() == [1, 1]
    assert all(isinstance(getattr(primitives, name), Primitive) for name in primitives.__all__
               if name.endswith("_p"))


def test_the_current_trace_taken_and_set_again():
    def f(x):
        y = x + 1
        with extend.take_current_trace() as trace:
            assert not isinstance(onp.ones(2) + 1, core.Tracer)
            with extend.set_current_trace(trace):
                z = lax.mul(y, 2.0)
        assert isinstance(z, core.Tracer)
        return z

    assert [e.primitive for e in olympus.make_olympuspr(f)(1.0).eqns] == [
        primitives.add_p, primitives.mul_p]
    assert extend.TraceTag() == extend.TraceTag() and len({extend.TraceTag() for _ in "ab"}) == 1
    assert isinstance(extend.gensym()(olympus.typeof(1.0)), extend.Var)


def test_what_a_function_is_under():
    def state(x):
        found.append((extend.unsafe_am_i_under_a_jit_DO_NOT_USE(),
                      extend.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
                      extend.nonempty_axis_env_DO_NOT_USE(),
                      extend.unsafe_get_axis_names_DO_NOT_USE()))
        return x

    found, x = [], onp.ones(2)
    state(x), olympus.jit(state)(x), olympus.vmap(state, axis_name="i")(x)
    olympus.grad(lambda x: olympus.vmap(state)(x).sum())(x)
    olympus.jit(olympus.vmap(state))(x)
    assert found == [(False, False, False, []), (True, False, False, []),
                     (False, True, True, ["i"]), (False, True, False, []),
                     (True, True, False, [])]


def test_a_constant_result_of_a_program_is_a_number():
    """It was a `Literal`, with which nothing can be computed."""
    closed = olympus.make_olympuspr(lambda x: (x, 3.0, np.float16(2)))(1.0)
    for run in (lambda x: core.eval_olympuspr(closed.olympuspr, closed.consts, x),
                extend.olympuspr_as_fun(closed)):
        _, weak, strong = run(1.0)
        assert weak + 1 == 4.0 and strong.dtype == "float16" and strong * 2 == 4
        assert [olympus.typeof(x) for x in olympus.jit(run)(1.0)] == closed.out_avals


def test_a_wrapped_function_recorded():
    pr, avals, consts = partial_eval.trace_to_olympuspr_dynamic(
        lu.wrap_init(lambda x, y: [x + y, onp.sum(y)]), [olympus.typeof(1.0)] * 2)
    assert [a.shape for a in avals] == [(), ()] and not consts
    assert [float(x) for x in core.eval_olympuspr(pr, consts, 1.0, 2.0)] == [3.0, 2.0]
    for auto_dce in (False, True):
        pr, _, _ = partial_eval.trace_to_olympuspr_dynamic(
            lu.wrap_init(lambda y: [y * 2, (y + 1, y)[1]]), [olympus.typeof(1.0)] * 2,
            keep_inputs=[False, True], auto_dce=auto_dce)
        assert core.eval_olympuspr(pr, [], 1.0, 2.0) == [4.0, 2.0]
        assert [e.primitive.name for e in pr.eqns] == ["mul"] + ["add"] * (not auto_dce)


def test_results_kept_for_equal_functions():
    calls = []

    def trace(fun, x):
        calls.append(x)
        return fun.call_wrapped(x)

    def f(x):
        return [x]

    cached = lu.cache(trace)
    for _ in range(2):
        fun, out_tree = api_util.flatten_fun_nokwargs(lu.wrap_init(f), olympus.tree.structure((1,)))
        assert cached(fun, 3) == [3] and out_tree() == olympus.tree.structure([1])
    assert calls == [3]


@pytest.mark.parametrize("transform", [lambda f: f, olympus.jit, lambda f: lambda x: lax.scan(
    lambda c, _: (f(c), None), x, None, length=1)[0]], ids=["plain", "jit", "scan"])
def test_rules_get_numbers_for_the_constants_of_a_program(transform):
    """They got the program's own objects, which equal no number."""
    by_p = Primitive("times")
    by_p.def_abstract_eval(lambda x, n: core.ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(by_p, mlir.lower_fun(lambda x, n: x * n, multiple_results=False))
    seen = []

    def note(n):
        seen.append(n == 2)
        return n

    ad.primitive_jvps[by_p] = lambda primals, tangents: (
        by_p.bind(*primals), by_p.bind(tangents[0], note(primals[1])))
    ad.primitive_transposes[by_p] = lambda ct, x, n: (by_p.bind(ct, note(n)), None)
    batching.primitive_batchers[by_p] = lambda args, dims: (
        by_p.bind(args[0], note(args[1])), dims[0])
    fun = transform(lambda x: by_p.bind(x, 2.0))
    assert float(olympus.grad(fun)(3.0)) == 2.0
    np.testing.assert_array_equal(olympus.vmap(fun)(X), 2 * X)
    assert seen == [True] * 3


def test_a_rule_given_for_an_operation_of_ours_gets_numbers():
    old, seen = ad.primitive_jvps[lax.rem_p], []

    def rule(primals, tangents):
        seen.append(primals[1] == 2)
        return old(primals, tangents)

    ad.primitive_jvps[lax.rem_p] = rule
    try:
        assert float(olympus.grad(olympus.jit(lambda x: lax.rem(x, 2.0)))(3.0)) == 1.0
    finally:
        ad.primitive_jvps[lax.rem_p] = old
    assert seen == [True]


def test_operations_of_ours_may_be_evaluated_by_others():
    lax.cbrt_p.def_impl(lambda x, **params: 7.0)
    try:
        assert lax.cbrt(8.0) == 7.0
    finally:
        lax.cbrt_p.def_impl(None)
    assert lax.cbrt(8.0) == 2.0


def test_checkpoint_of_an_operation_that_only_python_evaluates():
    """It was compiled for the second computation, which needs a lowering."""
    cosine_p = Primitive("cosine")
    cosine_p.def_impl(lambda x: np.cos(x))
    cosine_p.def_abstract_eval(lambda x: core.ShapedArray(x.shape, x.dtype))
    ad.primitive_jvps[cosine_p] = lambda primals, tangents: (
        cosine_p.bind(*primals), lax.mul(tangents[0], cosine_p.bind(*primals)))
    slope = olympus.grad(olympus.checkpoint(lambda x: cosine_p.bind(onp.sin(x))))
    np.testing.assert_allclose(slope(2.0), np.cos(np.sin(2.0)) * np.cos(2.0), rtol=1e-6)
    mlir.register_lowering(cosine_p, mlir.lower_fun(onp.cos, multiple_results=False))
    np.testing.assert_allclose(olympus.jit(slope)(2.0), slope(2.0), rtol=1e-6)


def test_an_invalid_operation_of_a_lowering_rule_is_refused_when_it_is_lowered():
    """By MLIR's verification, which modules of Olympus's own rules go without."""
    bad = Primitive("bad_add")
    bad.def_abstract_eval(lambda x: x)
    mlir.register_lowering(bad, lambda ctx, x: [
        mlir.ir.Operation.create("stablehlo.add", [x.type], [x]).result])
    with pytest.raises(mlir.ir.MLIRError, match="expected 2 operands, but found 1"):
        olympus.jit(bad.bind).lower(1.0)


def test_a_copied_program_has_the_operations_of_its_original():
    local_p = Primitive("local")        # which no module names, so that it cannot be pickled
    local_p.def_abstract_eval(lambda x: x)
    program = olympus.make_olympuspr(local_p.bind)(1.0)
    assert copy.deepcopy(program).eqns[0].primitive is local_p


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "uint32", "complex64"])
def test_an_interpreter_of_the_users_binds_literals_of_every_dtype(dtype):
    """Regression: a literal was Python's number, which a primitive took for float32 or int32."""
    def f(x):
        return (x * 2 + 1) - onp.where(x == 2, x, 3)

    x = onp.arange(4).astype(dtype)
    program = olympus.make_olympuspr(f)(x)
    env = dict(zip(program.olympuspr.invars, [x], strict=True))
    read = lambda atom: atom.val if isinstance(atom, Literal) else env[atom]
    for eqn in program.eqns:
        outs = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs],
                       strict=True))
    out, want = env[program.olympuspr.outvars[0]], f(x)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out, want)
