"""Programs cut, differentiated and rearranged by the functions of `olympus.interpreters`."""

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import core, lax
from olympus.extend import core as extend, linear_util as lu
from olympus.interpreters import ad, batching, mlir, partial_eval


def test_partial_evaluation_runs_what_is_known():
    ran = []

    def f(x, y):
        ran.append("large" if x > 1 else "small")       # known, so that Python may ask
        return [x * x, x * y + onp.arange(3.0), onp.sin(x) * 0 + y]

    def cut(x, y, instantiate=False):
        pr, outs, consts = partial_eval.trace_to_olympuspr_nounits(
            lu.wrap_init(f), [partial_eval.PartialVal.known(x),
                              partial_eval.PartialVal.unknown(olympus.typeof(y))], instantiate)
        rest = iter(core.eval_olympuspr(pr, consts, y))
        return [out.get_known() if out.is_known() else next(rest) for out in outs], outs, pr

    for instantiate in (False, True, [True, True, False]):
        found, outs, _ = cut(2.0, 3.0, instantiate)
        for got, want in zip(found, f(2.0, 3.0), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)
        first = instantiate if isinstance(instantiate, bool) else instantiate[0]
        assert [out.is_known() for out in outs] == [not first, False, False]
        assert outs[1].get_aval().shape == (3,) and ran[-1] == "large"
    assert [e.primitive.name for e in cut(2.0, 3.0)[2].eqns].count("sin") == 0
    dx, dy = olympus.grad(lambda x, y: cut(x, y)[0][1].sum(), (0, 1))(2.0, 3.0)
    assert (float(dx), float(dy)) == (9.0, 6.0)


@pytest.mark.parametrize("instantiate", [False, True, [True, False, True]], ids=str)
@pytest.mark.parametrize("unknown", [[False, True], [True, False], [True, True], [False, False]],
                         ids=str)
def test_the_halves_of_a_program_give_what_it_gives(unknown, instantiate):
    table = onp.arange(3.0)

    def f(x, y):
        total, _ = lax.scan(lambda c, row: (c + row * x, c), onp.sin(x), table)
        return total, onp.cos(y) * x + table, x

    args = 2.0, 3.0
    program = olympus.make_olympuspr(f)(*args)
    known, later, unknown_out, avals = partial_eval.partial_eval_olympuspr_nounits(
        program, unknown, instantiate)
    taken = list(zip(args, unknown, strict=True))
    first = extend.olympuspr_as_fun(known)(*(x for x, u in taken if not u))
    n = unknown_out.count(False)
    outs, residuals = first[:n], first[n:]
    assert avals == known.out_avals[n:] == later.in_avals[:len(residuals)]
    rest = extend.olympuspr_as_fun(later)(*residuals, *(x for x, u in taken if u))
    outs, rest = iter(outs), iter(rest)
    for u, want in zip(unknown_out, f(*args), strict=True):
        np.testing.assert_allclose(next(rest if u else outs), want, rtol=1e-6)
    assert list(outs) == list(rest) == []
    force = [instantiate] * 3 if isinstance(instantiate, bool) else instantiate
    assert unknown_out == [u or k for u, k in zip(
        [unknown[0], any(unknown), unknown[0]], force, strict=True)]


def test_programs_with_tangents_with_fewer_outputs_and_with_moved_inputs():
    program = olympus.make_olympuspr(lambda x, y: (x * x, y, onp.sin(y)))(2.0, 3.0)
    run = extend.olympuspr_as_fun
    closed, has = ad.jvp_olympuspr(program, [True, False], False)
    assert has == [True, False, False]
    np.testing.assert_allclose(run(closed)(2.0, 3.0, 1.0), [4, 3, np.sin(3), 4], rtol=1e-6)
    closed, has = ad.jvp_olympuspr(program, [True, False], [False, True, False])
    assert has == [True, True, False]
    np.testing.assert_allclose(run(closed)(2.0, 3.0, 1.0), [4, 3, np.sin(3), 4, 0], rtol=1e-6)
    pruned = partial_eval.prune_closed_olympuspr_outputs(program, [False, True, False])
    assert run(pruned)(2.0, 3.0) == [3.0] and len(pruned.eqns) == 2
    moved = partial_eval.move_binders_to_back(program, [True])
    np.testing.assert_allclose(run(moved)(3.0, 2.0), run(program)(2.0, 3.0))
    assert partial_eval.move_binders_to_back(program, [True, True]) is program


def test_the_types_of_what_a_function_returns():
    def run(x, y, *, n):
        return [x @ y, onp.tile(x, n)]

    avals = [olympus.typeof(onp.ones((2, 3))), olympus.typeof(onp.ones(3))]
    names = extend.DebugInfo("run", "run")
    found = partial_eval.abstract_eval_fun(run, *avals, n=4, debug_info=names)
    assert [a.shape for a in found] == [(2,), (2, 12)]
    with pytest.raises(TypeError, match="contract"):
        partial_eval.abstract_eval_fun(run, *avals[::-1], n=4, debug_info=names)


# Calls of programs by primitives of one's own -----------------------------------------------------

def square_and_next(x, y):
    return lax.sin(x) * y, x + 1


@pytest.mark.parametrize("late", [True, False], ids=["inline", "function"])
@pytest.mark.parametrize("wrap", [lambda f: f, olympus.jit], ids=["eager", "jit"])
def test_a_primitive_that_calls_a_program_is_that_program(late, wrap):
    program = olympus.make_olympuspr(square_and_next)(1.0, 2.0)
    call_p = extend.create_call_primitive("called", inline_olympus_late=late)

    def called(x, y):
        return tuple(call_p.bind(x, y, call_olympuspr=program))

    x, y = onp.linspace(-1, 1, 3), onp.float32(2)
    eqn, = olympus.make_olympuspr(called)(1.0, 2.0).eqns
    assert eqn.primitive is call_p and eqn.params == {"call_olympuspr": program}
    for f in (called, square_and_next):
        first = lambda *args: f(*args)[0]
        found = (wrap(f)(x[0], y), wrap(olympus.vmap(f, (0, None)))(x, y),
                 wrap(olympus.grad(first, (0, 1)))(x[0], y), wrap(olympus.hessian(first))(x[0], y),
                 wrap(lambda x: olympus.jvp(f, (x, y), (x, y)))(x[0]))
        if f is called:
            got = found
    olympus.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), got, found)


def test_a_call_of_a_wrapped_function_differentiates_what_it_closes_over():
    call_p = extend.CallPrimitive("wrapped")
    f = lambda x: call_p.bind(x, subfuns=(lu.wrap_init(lambda z: [z * x]),))[0]
    assert (float(f(3.0)), float(olympus.grad(f)(3.0))) == (9.0, 6.0)
    np.testing.assert_array_equal(olympus.jit(olympus.vmap(f))(onp.arange(3.0)), [0, 1, 4])


# Rules of one's own for the cuts of programs ------------------------------------------------------

@pytest.mark.parametrize("newer", [False, True], ids=["eqn", "live ins and eqn"])
def test_a_rule_of_dead_code_says_what_an_equation_needs(newer):
    p = extend.Primitive("apart")
    p.multiple_results = True
    p.def_impl(lambda x, y: [x + 1, y * 2])
    p.def_abstract_eval(lambda x, y: [x, y])
    inc_p = extend.Primitive("left")
    inc_p.multiple_results = True
    inc_p.def_abstract_eval(lambda x: [x])

    def rule(used, *rest):
        eqn = rest[-1]
        assert used == [True, False] and len(rest) == 1 + newer
        return [True, False], eqn.replace(primitive=inc_p, invars=eqn.invars[:1],
                                          outvars=eqn.outvars[:1])

    partial_eval.dce_rules[p] = (lambda used, live, eqn: rule(used, live, eqn)) if newer else (
        lambda used, eqn: rule(used, eqn))
    program = olympus.make_olympuspr(p.bind)(1.0, 2.0).olympuspr
    pr, used = partial_eval.dce_olympuspr(program, [True, False])
    assert [e.primitive for e in pr.eqns] == [inc_p] and used == [True, False]
    assert partial_eval.dce_olympuspr(program, [True, True])[0].eqns[0].primitive is p


def test_the_rules_of_dead_code_of_calls_are_read_as_functions():
    f = olympus.jit(lambda x, y: (x + 1, y * 2))
    eqn, = olympus.make_olympuspr(lambda x, y: f(x, y))(1.0, 1.0).eqns
    for rule in (partial_eval.dce_olympuspr_call_rule, partial_eval.dce_rules[eqn.primitive]):
        used, new = rule([False, True], eqn)
        assert used == [False, True] and new.invars == eqn.invars[1:]
        assert rule([False, False], eqn) == ([False, False], None)


def test_a_rule_of_partial_evaluation_decides_what_is_recorded():
    p, seen = extend.Primitive("sum_of_two"), []
    p.def_impl(lambda x, y: x + y)
    p.def_abstract_eval(lambda x, y: x)

    def rule(trace, x, y):
        seen.append([trace.owns(x), trace.owns(y)])
        return trace.record(p, (x, y), {})

    partial_eval.custom_partial_eval_rules[p] = rule
    assert partial_eval.custom_partial_eval_rules[p] is rule
    _, outs, _ = partial_eval.trace_to_olympuspr_nounits(
        lu.wrap_init(lambda x, y: [p.bind(x, y)]),
        [partial_eval.PartialVal.known(2.0), partial_eval.PartialVal.unknown(olympus.typeof(1.0))])
    assert seen == [[False, True]] and not outs[0].is_known()


# Derivatives of functions, as interpreters ask for them -------------------------------------------

@pytest.mark.parametrize("wrap", [lambda f: f, olympus.jit], ids=["eager", "jit"])
def test_derivatives_by_interpreters_are_those_of_the_transformations(wrap):
    def f(tree, y):
        return {"a": onp.sin(tree["x"]) * y, "b": y * 2}, (tree["x"], 7)

    primals, tangents = ({"x": onp.arange(3.0)}, 2.0), ({"x": onp.ones(3)}, 3.0)
    want = olympus.jvp(lambda *a: f(*a)[0], primals, tangents)
    near = lambda got, wanted: olympus.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), got, wanted)
    out, tangent, aux = wrap(lambda p, t: ad.jvp(f, p, t, has_aux=True))(primals, tangents)
    near((out, tangent), want)
    assert int(aux[1]) == 7

    def by_program(primals, tangents):
        out, nonzero, program, consts, aux = ad.linearize(f, primals, has_aux=True)
        assert nonzero == [True, True]
        return out, core.eval_olympuspr(program, consts, *olympus.tree.leaves(tangents)), aux

    out, found, aux = wrap(by_program)(primals, tangents)
    near((out, {"a": found[0], "b": found[1]}), want)
    zero = ad.Zero(olympus.typeof(1.0))
    _, (kept, gone) = ad.jvp(lambda x, y: (x, y), (1.0, 1.0), (2.0, zero), instantiate=False)
    assert (kept, type(gone)) == (2.0, ad.Zero)
    assert ad.linearize(lambda x, y: (x, y), (1.0, 1.0), in_nzs=[False, True])[1] == [False, True]
    with pytest.raises(TypeError, match="has_aux=True given, and the function returned a"):
        ad.jvp(lambda x: x, (1.0,), (1.0,), has_aux=True)


def test_a_mapped_program_puts_axes_where_they_are_wanted():
    found = []
    program = olympus.make_olympuspr(lambda x, y: (x + y, y))(onp.ones(2), onp.ones(2))
    p = extend.Primitive("taken")
    p.def_impl(lambda x: x)

    def rule(axis, args, dims):
        for dest in ([1, batching.zero_if_mapped], [batching.zero_if_mapped, 0]):
            closed, mapped = batching.batch_olympuspr_axes(program, axis, [0, None], dest)
            outs = extend.olympuspr_as_fun(closed)(args[0], onp.arange(2.0))
            found.append((mapped, [o.shape for o in outs]))
        with pytest.raises(ValueError, match=r"out_axes_dest\[0\] is None, and output 0 is mapped"):
            batching.batch_olympuspr_axes(program, axis, [0, None], [None, None])
        return args[0], dims[0]

    batching.fancy_primitive_batchers[p] = rule
    olympus.vmap(p.bind)(onp.ones((3, 2)))
    assert found == [([True, False], [(2, 3), (2,)]), ([True, True], [(3, 2), (3, 2)])]


def test_programs_lowered_by_hand_refuse_what_only_main_has():
    program = olympus.make_olympuspr(lambda x: x * 2 + 1)(1.0)
    p = extend.Primitive("by_hand")
    p.def_abstract_eval(lambda x: x)

    def rule(ctx, x):
        with pytest.raises(NotImplementedError, match="arg_shardings given"):
            mlir.lower_olympuspr_to_fun(ctx, "f", program, [], num_const_args=0, arg_shardings=[1],
                                        in_avals=program.in_avals)
        fun = mlir.lower_olympuspr_to_fun(ctx, "f", program, [], num_const_args=0,
                                          in_avals=program.in_avals)
        assert fun.name.value == "f"
        return mlir.olympuspr_subcomp(
            ctx, program.olympuspr, ctx.name_stack, ctx.tokens_in, (), x, outer_traceback=None,
            dim_var_values=ctx.dim_var_values, const_lowering=ctx.const_lowering)[0]

    mlir.register_lowering(p, rule)
    assert olympus.jit(p.bind)(3.0) == 7.0
    with pytest.raises(TypeError, match="the ctx that a lowering rule receives"):
        mlir.olympuspr_subcomp(None, program.olympuspr, "", None, (), dim_var_values=(),
                               const_lowering=None, outer_traceback=None)
    found = mlir.lower_olympuspr_to_module(
        "doubled", program, num_const_args=0, in_avals=program.in_avals, ordered_effects=[],
        platforms=("cpu", "gpu"), backend=None, axis_context=mlir.ShardingContext(1),
        donated_args=[False], lowering_parameters=mlir.LoweringParameters())
    assert found.shape_poly_state.has_platform_index_argument
    with pytest.raises(TypeError, match="has a handler in ir_type_handlers"):
        mlir.aval_to_ir_types(None, object())
