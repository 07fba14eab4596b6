"""What programs ask of a machine, counted by hand."""

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.experimental import roofline as r
from olympus.sharding import AbstractMesh

M, K, N = 64, 32, 16
A, B = (olympus.ShapeDtypeStruct(shape, "float32") for shape in ((M, K), (K, N)))
P = olympus.P


def product(x, y):
    return onp.tanh(x @ y)


def test_a_product_is_what_bounds_a_fused_program():
    out, found = r.roofline(product)(A, B)
    moved = 4 * (M * K + K * N + M * N)
    assert (out.shape, out.dtype) == ((M, N), "float32")
    assert (found.flops, found.hbm_bytes) == (2 * M * N * K, moved)
    assert found.unfused_flops == 2 * M * N * K + M * N
    assert found.unfused_hbm_bytes == moved + 2 * 4 * M * N
    assert found.peak_hbm_bytes == max(moved, 4 * 2 * M * N)
    assert found.ici_bytes == found.ici_latency == {}


def test_pinned_operands_are_not_read():
    _, found = r.roofline(product, pin_lhs_in_vmem=True)(A, B)
    assert found.hbm_bytes == 4 * (K * N + M * N)
    _, found = r.roofline(product, pin_lhs_in_vmem=True, pin_rhs_in_vmem=True)(A, B)
    assert found.hbm_bytes == 4 * M * N


def test_the_pullback_has_two_products_more():
    _, alone, both = r.roofline_and_grad(product, None, None, None)(A, B)
    assert both.flops == 3 * alone.flops == 3 * r.roofline(product)(A, B)[1].flops


def test_loops_calls_and_branches():
    square = olympus.ShapeDtypeStruct((8, 8), "float32")
    times = lambda n: lambda x: lax.scan(lambda c, _: (c @ c, None), x, None, length=n)[0]
    one = r.roofline(lambda x: x @ x)(square)[1].flops
    assert r.roofline(times(5))(square)[1].flops == 5 * one
    assert r.roofline(olympus.jit(olympus.checkpoint(times(2))))(square)[1].flops == 2 * one
    branch = lambda x: lax.cond(x[0, 0] > 0, times(3), times(1), x)
    assert r.roofline(branch)(square)[1].flops == 3 * one
    solve = lambda a, b: lax.custom_linear_solve(lambda x: a @ x, b, lambda _, b: a @ b,
                                                 lambda _, b: a.T @ b)
    assert r.roofline(solve)(square, square)[1].flops == one


def test_what_is_alive_at_most():
    x = olympus.ShapeDtypeStruct((100,), "float32")
    chain = lambda x: onp.sin(onp.sin(onp.sin(x)))
    assert r.roofline(chain)(x)[1].peak_hbm_bytes == 2 * 400
    fan = lambda x: [onp.sin(x), onp.cos(x), onp.tan(x)]
    assert r.roofline(fan)(x)[1].peak_hbm_bytes == 4 * 400


COLLECTIVES = {     # of 128 bytes on each of 8 devices: bytes over each link, steps
    "psum": (lambda x: lax.psum(x, "x"), P(), 2 * 128 * 7 // 8, 16),
    "all_gather": (lambda x: lax.all_gather(x, "x"), P(), 128 * 7, 8),
    "psum_scatter": (lambda x: lax.psum_scatter(x, "x"), P("x"), 128 * 7 // 8, 8),
    "ppermute": (lambda x: lax.ppermute(x, "x", [(0, 1)]), P("x"), 128, 1),
    "all_to_all": (lambda x: lax.all_to_all(x, "x", 0, 0), P("x"), 128 * 8 // 4, 4),
}


@pytest.mark.parametrize("f, out, moved, steps", COLLECTIVES.values(), ids=COLLECTIVES)
def test_collectives_go_over_rings(f, out, moved, steps):
    mesh = AbstractMesh((8,), ("x",))
    x = olympus.ShapeDtypeStruct((64, 4), "float32")
    _, found = r.roofline(f, mesh=mesh, in_specs=P("x"), out_specs=out)(x)
    assert (found.ici_bytes, found.ici_latency) == ({"x": moved}, {"x": steps})
    assert found.flops == 0 and 128 <= found.peak_hbm_bytes <= 128 * 9


def test_a_rule_of_the_users():
    seen = []

    @r.register_roofline(lax.erf_inv_p)
    def rule(ctx, x, **params):
        seen.append((ctx.primitive, ctx.avals_in[0].shape, ctx.mesh))
        return r.RooflineResult(unfused_flops=30 * x.size, peak_hbm_bytes=x.bytes)

    try:
        assert r.roofline(lax.erf_inv)(A)[1].unfused_flops == 30 * M * K
    finally:
        r.register_standard_roofline(lax.erf_inv_p)
    assert seen == [(lax.erf_inv_p, (M, K), None)]
    assert r.roofline(lax.erf_inv)(A)[1].unfused_flops != 30 * M * K


def test_results_add_up_and_multiply():
    one = r.RooflineResult(flops=1, ici_bytes={"x": 2}, peak_hbm_bytes=5)
    two = r.RooflineResult(flops=2, ici_bytes={"x": 1, "y": 3}, peak_hbm_bytes=4)
    assert one + two == r.RooflineResult(flops=3, ici_bytes={"x": 3, "y": 3}, peak_hbm_bytes=5)
    assert one * 3 == 3 * one == r.RooflineResult(flops=3, ici_bytes={"x": 6}, peak_hbm_bytes=5)
    assert r.RooflineResult.zeros() + one == one


def test_shapes_count_bits():
    assert r.RooflineShape(shape=(3,), dtype=np.dtype("bfloat16")).bytes == 6
    assert r.RooflineShape.from_aval(olympus.ShapeDtypeStruct((3,), "int4")).bytes == 2
    assert r.RooflineShape.total_bytes([A, B]) == 4 * (M * K + K * N)


def test_the_program_is_printed(capsys):
    r.roofline(product, print_olympuspr=True)(A, B)
    assert "dot_general" in capsys.readouterr().out
