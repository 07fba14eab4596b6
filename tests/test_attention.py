"""nn.dot_product_attention against a loop over queries and heads; scaled products."""

import functools

import numpy as np
import pytest

import olympus
from olympus import nn, numpy as onp, test_util

RNG = np.random.default_rng(0)
B, T, S, N, H = 2, 5, 6, 4, 3
NOBODY = np.zeros((B, 1, 1, S), bool)
MASK = RNG.random((B, N, T, S)) < 0.5
BIAS = RNG.normal(size=(1, N, T, S))
NEVER = np.where(np.arange(T)[:, None] == 2, -np.inf, 0) + np.zeros((T, S))
LENGTHS = np.array([3, 5], np.int32)

OPTIONS = {
    "plain": {}, "causal": {"is_causal": True}, "mask": {"mask": MASK}, "nobody": {"mask": NOBODY},
    "bias": {"bias": BIAS}, "infinite bias": {"bias": NEVER}, "scale": {"scale": 0.3},
    "window": {"local_window_size": (1, 2)}, "symmetric window": {"local_window_size": 1},
    "causal window behind": {"is_causal": True, "local_window_size": (3, -1)},
    "causal window": {"is_causal": True, "local_window_size": 2},
    "lengths": {"query_seq_lengths": LENGTHS, "key_value_seq_lengths": np.array([2, 0], np.int32)},
    "all": {"is_causal": True, "local_window_size": (2, 2), "mask": MASK, "bias": BIAS,
            "query_seq_lengths": LENGTHS, "key_value_seq_lengths": np.array([6, 2], np.int8)},
}


def operands(heads, dtype="f4"):
    shapes = (B, T, N, H), (B, S, heads, H), (B, S, heads, H)
    rng = np.random.default_rng(heads)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def looped(q, k, v, bias=0.0, mask=True, scale=None, is_causal=False, query_seq_lengths=None,
           key_value_seq_lengths=None, local_window_size=None):
    """(attention, logsumexp), query by query in double precision."""
    bias, mask = (np.broadcast_to(x, (B, N, T, S)) for x in (bias, mask))
    window = local_window_size
    before, after = (99, 99) if window is None else (window, window) if isinstance(
        window, int) else window
    q_length = [T] * B if query_seq_lengths is None else query_seq_lengths
    k_length = [S] * B if key_value_seq_lengths is None else key_value_seq_lengths
    out, lse = np.zeros((B, T, N, H)), np.full((B, T, N), -np.inf)
    for b, t, n in np.ndindex(B, T, N):
        head = n * k.shape[2] // N
        seen = [s for s in range(S) if mask[b, n, t, s] and t < q_length[b] and s < k_length[b]
                and t - before <= s <= t + after and (s <= t or not is_causal)]
        logits = np.array([q[b, t, n].astype(float) @ k[b, s, head] * (scale or H**-0.5)
                           + bias[b, n, t, s] for s in seen])
        if len(seen) and logits.max() > -np.inf:
            weights = np.exp(logits - logits.max())
            out[b, t, n] = weights @ v[b, seen, head] / weights.sum()
            lse[b, t, n] = np.log(weights.sum()) + logits.max()
    return out, lse


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_attention_is_a_loop_over_queries(options):
    x = operands(2)
    out, lse = nn.dot_product_attention(*x, **options, return_residual=True)
    expected, residual = looped(*x, **options)
    np.testing.assert_allclose(out, expected, rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(lse, residual, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("heads", [1, 4], ids=["one for all", "as many"])
def test_attention_shares_heads(heads):
    x = operands(heads)
    options = {"is_causal": True}
    out = nn.dot_product_attention(*x, **options)
    np.testing.assert_allclose(out, looped(*x, **options)[0], rtol=2e-5, atol=2e-6)
    single = nn.dot_product_attention(*[a[1] for a in x], **options)
    np.testing.assert_allclose(single, out[1], rtol=2e-5, atol=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "all", "nobody", "infinite bias"])
def test_attention_has_derivatives_and_no_nan_where_nothing_is_seen(name):
    options = OPTIONS[name]

    def attend(q, k, v):
        out, lse = nn.dot_product_attention(q, k, v, **options, return_residual=True)
        return out, onp.where(lse > -onp.inf, lse, 0)

    with olympus.enable_x64(True):
        x = operands(2, "f8")
        test_util.check_grads(olympus.jit(attend), x, 1)
        if name == "nobody":
            grads = olympus.grad(lambda *x: attend(*x)[0].sum(), (0, 1, 2))(*x)
            assert all((g == 0).all() for g in grads)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "int32"])
def test_attention_accumulates_in_float32(dtype):
    """A sum of 4,096 ones, and weights of as many keys: neither is exact in half precision."""
    n = 4096
    q, k = onp.ones((1, 1, n), dtype), onp.ones((n, 1, n), dtype)
    v = onp.broadcast_to(onp.asarray(np.arange(n) % 2, dtype)[:, None, None], (n, 1, n))
    out, lse = nn.dot_product_attention(q, k, v, return_residual=True, scale=1 / n)
    assert out.dtype == lse.dtype == ("float32" if dtype == "int32" else dtype)
    np.testing.assert_allclose(np.asarray(out).astype(float), 0.5, rtol=1e-2)
    np.testing.assert_allclose(np.asarray(lse).astype(float), 1 + np.log(n), rtol=5e-2)


def test_attention_without_keys_and_without_queries():
    x = onp.ones((5, 4, 3))
    assert (nn.dot_product_attention(x, x[:0], x[:0]) == 0).all()
    assert nn.dot_product_attention(x[:0], x, x).shape == (0, 4, 3)


def equations(program):
    inner = [getattr(v, "olympuspr", v) for e in program.eqns for v in e.params.values()]
    return len(program.eqns) + sum(equations(p) for p in inner if hasattr(p, "eqns"))


@pytest.mark.parametrize("name, most", [("plain", 23), ("causal", 30), ("mask", 25)])
def test_attention_is_a_small_program(name, most):
    fun = functools.partial(nn.dot_product_attention, **OPTIONS[name])
    assert equations(olympus.make_olympuspr(fun)(*operands(2))) <= most


@pytest.mark.parametrize("change, error, match", [
    ({"implementation": "cudnn"}, RuntimeError, "cudnn"),
    ({"implementation": "best"}, ValueError, "'best'"),
    ({"bias": np.ones((1, 3, T, S))}, ValueError, "bias"),
    ({"mask": np.ones((T, S))}, ValueError, "mask"),
    ({"query_seq_lengths": np.ones(3, int)}, ValueError, "query_seq_lengths"),
    ({"key_value_seq_lengths": np.ones(2)}, ValueError, "key_value_seq_lengths"),
    ({"local_window_size": (1, 2, 3)}, ValueError, "local_window_size"),
    ({"key": np.ones((B, S, 3, H), "f4")}, ValueError, "value|key"),
    ({"value": np.ones((B, S, 2, 7), "f4")}, ValueError, "value"),
    ({"key": np.ones((B, S, 2, H), "f2")}, ValueError, "dtype of the query"),
    ({"key": np.ones((S, 2, H), "f4")}, ValueError, "equal rank")], ids=lambda x: "")
def test_attention_refuses_in_words(change, error, match):
    given = dict(zip(("query", "key", "value"), operands(2), strict=True))
    with pytest.raises(error, match=match):
        nn.dot_product_attention(**given | change)


# Scaled products ---------------------------------------------------------------------------------

def test_scaled_matmul_scales_blocks_of_rows():
    rng = np.random.default_rng(1)
    x, y = rng.integers(-4, 5, (2, 3, 8)), rng.integers(-4, 5, (2, 5, 8))
    a, b = 2.0 ** rng.integers(-2, 3, (2, 3, 2)), 2.0 ** rng.integers(-2, 3, (2, 5, 4))
    expected = np.repeat(a, 4, 2) * x @ (np.repeat(b, 2, 2) * y).swapaxes(1, 2)
    out = nn.scaled_matmul(*(onp.asarray(v, "float8_e4m3fn") for v in (x, y)),
                           *(onp.asarray(v, "float8_e8m0fnu") for v in (a, b)))
    assert out.dtype == onp.float32
    assert (out == expected).all()
    with pytest.raises(TypeError, match="three axes"):
        nn.scaled_matmul(x[0], y[0], a[0], b[0])


@pytest.mark.parametrize("mode, rough", [("mxfp8", 0.05), ("nvfp4", 0.2)])
def test_scaled_dot_general_is_dot_general_but_for_rounding(mode, rough):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 40, 5)).astype("f4"), rng.normal(size=(40, 2, 7)).astype("f4")
    numbers = ((1,), (0,)), ((0,), (1,))
    scale = None if mode == "mxfp8" else onp.array([50 / (6 * 448)])
    configs = [nn.get_scaled_dot_general_config(mode, scale)] * 3

    def dot(x, y):
        return nn.scaled_dot_general(x, y, numbers, configs=configs)

    exact, pull = olympus.vjp(lambda x, y: olympus.lax.dot_general(x, y, numbers), x, y)
    out, ruled = olympus.jit(lambda x, y: (dot(x, y), olympus.vjp(dot, x, y)[1](exact)))(x, y)
    for found, right in zip((out, *ruled), (exact, *pull(exact)), strict=True):
        assert np.linalg.norm(found - right) < rough * np.linalg.norm(right)
    assert (nn.scaled_dot_general(x, y, numbers) == exact).all()


@pytest.mark.parametrize("mode", ["mxfp8", "nvfp4"])
def test_numbers_that_the_format_has_are_exact(mode):
    config = nn.get_scaled_dot_general_config(mode)
    x = np.array([[6.0, -1.5, 0.5, 0, 3, 4, -6, 2] * 8, [0] * 64], "f4")
    numbers = ((1,), (1,)), ((), ())
    assert (nn.scaled_dot_general(x, x, numbers, configs=[config] * 3) == x @ x.T).all()


def test_scaled_products_refuse_in_words():
    for given in (("fp3",), ("mxfp8", onp.ones(1))):
        with pytest.raises(ValueError, match="'nvfp4'"):
            nn.get_scaled_dot_general_config(*given)
    config = nn.get_scaled_dot_general_config("mxfp8")
    numbers = ((0,), (0,)), ((), ())
    with pytest.raises(ValueError, match="three"):
        nn.scaled_dot_general(onp.ones(3), onp.ones(3), numbers, configs=[config])
    with pytest.raises(TypeError, match="equal sizes"):
        nn.scaled_dot_general(onp.ones(3), onp.ones(4), numbers, configs=[config] * 3)
