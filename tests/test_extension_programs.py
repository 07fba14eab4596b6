"""Programs cut, differentiated and rearranged by the functions of `olympus.interpreters`."""

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import core, lax
from olympus.extend import core as extend
from olympus.extend import linear_util as lu
from olympus.interpreters import ad, partial_eval


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
