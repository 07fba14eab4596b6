"""Convolutions against plain loops in NumPy, and their derivatives against the bilinear law."""

import itertools

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax

CASES = {
    "1d valid": {"lhs": (2, 3, 8), "rhs": (4, 3, 3), "strides": (1,), "padding": "VALID"},
    "2d same": {"lhs": (2, 3, 6, 5), "rhs": (4, 3, 3, 2), "strides": (2, 1), "padding": "SAME"},
    "same lower": {"lhs": (1, 2, 5, 5), "rhs": (2, 2, 2, 2), "strides": (1, 2),
                   "padding": "SAME_LOWER"},
    "asymmetric pads": {"lhs": (2, 2, 7), "rhs": (3, 2, 3), "strides": (2,), "padding": ((2, 0),)},
    "negative pads": {"lhs": (2, 2, 9), "rhs": (3, 2, 2), "strides": (2,), "padding": ((-1, -2),)},
    "dilated kernel": {"lhs": (2, 2, 9), "rhs": (3, 2, 3), "strides": (1,), "padding": ((1, 1),),
                           "rhs_dilation": (2,)},
    "dilated image": {"lhs": (2, 2, 4), "rhs": (3, 2, 3), "strides": (2,), "padding": ((2, 1),),
                          "lhs_dilation": (3,)},
    "feature groups": {"lhs": (2, 4, 6), "rhs": (6, 2, 3), "strides": (1,), "padding": "SAME",
                           "feature_group_count": 2},
    "batch groups": {"lhs": (4, 3, 6), "rhs": (6, 3, 3), "strides": (1,), "padding": "SAME",
                         "batch_group_count": 2},
    "depthwise": {"lhs": (1, 3, 5, 5), "rhs": (3, 1, 3, 3), "strides": (1, 1), "padding": "SAME",
                      "feature_group_count": 3},
    "no spatial axes": {"lhs": (2, 3), "rhs": (4, 3), "strides": (), "padding": ()},
}


def naive(lhs, rhs, strides, padding, lhs_dilation=None, rhs_dilation=None,
          feature_group_count=1, batch_group_count=1):
    """The definition, in loops over output positions; NCHW, OIHW."""
    rank = lhs.ndim - 2
    ld, rd = lhs_dilation or (1,) * rank, rhs_dilation or (1,) * rank

    def spread(x, dilation):
        shape = [0 if n == 0 else (n - 1) * d + 1 for n, d in zip(x.shape[2:], dilation)]
        out = np.zeros((*x.shape[:2], *shape))
        out[(slice(None), slice(None), *(slice(None, None, d) for d in dilation))] = x
        return out

    if isinstance(padding, str):
        pads = []
        for n, k, s, d in zip(lhs.shape[2:], rhs.shape[2:], strides, rd):
            total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0) if padding != "VALID" else 0
            low = total // 2 if padding != "SAME_LOWER" else total - total // 2
            pads.append((low, total - low))
        padding = pads
    x, w = spread(lhs, ld), spread(rhs, rd)
    for axis, (lo, hi) in enumerate(padding, 2):
        widths = [(0, 0)] * x.ndim
        widths[axis] = (max(lo, 0), max(hi, 0))
        x = np.pad(x, widths)
        cut = [slice(None)] * x.ndim
        cut[axis] = slice(max(-lo, 0), x.shape[axis] - max(-hi, 0))
        x = x[tuple(cut)]
    sizes = [(n - k) // s + 1 for n, k, s in zip(x.shape[2:], w.shape[2:], strides)]
    fg, bg = feature_group_count, batch_group_count
    batch, features = x.shape[0] // bg, w.shape[0]
    out = np.zeros((batch, features, *sizes))
    for n, o in itertools.product(range(batch), range(features)):
        group = o // (features // fg)
        channels = slice(group * w.shape[1], (group + 1) * w.shape[1])
        image = x[o // (features // bg) * batch + n, channels]
        for at in itertools.product(*map(range, sizes)):
            window = tuple(slice(i * s, i * s + k) for i, s, k in zip(at, strides, w.shape[2:]))
            out[(n, o, *at)] = np.sum(image[(slice(None), *window)] * w[o])
    return out


def operands(case, rng):
    return rng.normal(size=case["lhs"]), rng.normal(size=case["rhs"])


def run(case, lhs, rhs):
    options = {k: v for k, v in case.items() if k not in ("lhs", "rhs", "strides", "padding")}
    return lax.conv_general_dilated(lhs, rhs, case["strides"], case["padding"], **options)


@pytest.mark.parametrize("name", CASES)
def test_values(name, rng):
    case = CASES[name]
    lhs, rhs = operands(case, rng)
    expected = naive(lhs, rhs, **{k: v for k, v in case.items() if k not in ("lhs", "rhs")})
    with olympus.enable_x64():
        np.testing.assert_allclose(run(case, onp.asarray(lhs), onp.asarray(rhs)), expected,
                                   atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_cotangents_obey_the_bilinear_law(name, rng):
    case = CASES[name]
    lhs, rhs = operands(case, rng)
    with olympus.enable_x64():
        out, pull = olympus.vjp(lambda x, y: run(case, x, y), onp.asarray(lhs), onp.asarray(rhs))
        ct = rng.normal(size=out.shape)
        d_lhs, d_rhs = pull(onp.asarray(ct))
        t_lhs, t_rhs = operands(case, rng)
        left = np.vdot(ct, run(case, onp.asarray(t_lhs), onp.asarray(rhs)))
        right = np.vdot(ct, run(case, onp.asarray(lhs), onp.asarray(t_rhs)))
        np.testing.assert_allclose(np.sum(np.asarray(d_lhs) * t_lhs), left, rtol=1e-9)
        np.testing.assert_allclose(np.sum(np.asarray(d_rhs) * t_rhs), right, rtol=1e-9)


@pytest.mark.parametrize("mapped", [(0, None), (None, 1), (1, 0)], ids=str)
@pytest.mark.parametrize("name", ["2d same", "feature groups", "batch groups", "dilated image"])
def test_vmap_is_a_loop(name, mapped, rng):
    case = CASES[name]
    xs = [np.stack([operands(case, rng)[i] for _ in range(3)], 0 if d is None else d)
          for i, d in enumerate(mapped)]
    xs = [x if d is not None else x[0] for x, d in zip(xs, mapped)]
    with olympus.enable_x64():
        got = olympus.vmap(lambda x, y: run(case, x, y), mapped)(*map(onp.asarray, xs))
        want = [run(case, *[onp.asarray(x if d is None else np.take(x, k, d))
                            for x, d in zip(xs, mapped)]) for k in range(3)]
    np.testing.assert_allclose(got, np.stack(want), atol=1e-12)


@pytest.mark.parametrize(("change", "error", "message"), [
    ({"rhs": (4, 2, 3)}, ValueError, "has 3 features"),
    ({"padding": "MIDDLE"}, ValueError, "padding 'MIDDLE' given"),
    ({"strides": (1, 1)}, ValueError, "one entry for each is required"),
    ({"feature_group_count": 2, "batch_group_count": 2}, ValueError, "one of them 1"),
])
def test_bad_arguments_are_explained(change, error, message, rng):
    case = {**CASES["1d valid"], **change}
    with pytest.raises(error, match=message):
        run(case, *(onp.asarray(x, onp.float32) for x in operands(case, rng)))


def test_dimension_numbers_name_axes():
    x, w = np.ones((1, 5, 5, 2), np.float32), np.ones((3, 3, 2, 4), np.float32)
    out = lax.conv_general_dilated(x, w, (1, 1), "VALID",
                                   dimension_numbers=("NHWC", "HWIO", "NHWC"))
    assert out.shape == (1, 3, 3, 4)
    np.testing.assert_array_equal(out, np.full((1, 3, 3, 4), 18.0))


def test_loops_and_branches_have_convolutions_as_xla_computes_them_fast():
    """On a CPU XLA moves features last in a program's main computation alone; others took 25 times
    as long. A function that is called from both is emitted twice, and one without is not.
    """
    x = np.random.default_rng(0).normal(size=(2, 3, 8, 7)).astype("f")
    kernel = np.random.default_rng(1).normal(size=(3, 3, 3, 3)).astype("f")
    blur = olympus.jit(lambda k: lax.conv_general_dilated(x, onp.tanh(k), (1, 1), "SAME"))
    plain = olympus.jit(lambda k: onp.tanh(k) * 2)
    smooth = lambda k: 0.1 * blur(plain(k))[0, :, :3, :3] + 0 * k
    slope = lambda k: olympus.grad(lambda k: (smooth(k) ** 2).sum())(k)
    for step in (slope, smooth):
        looped = olympus.jit(lambda k, step=step: lax.cond(
            k[0, 0, 0, 0] < 9, lambda k: lax.fori_loop(0, 3, lambda i, k: k + step(k), k),
            step, k) + step(k))
        wanted = kernel
        for _ in range(3):
            wanted = wanted + step(wanted)
        np.testing.assert_allclose(looped(kernel), wanted + step(kernel), rtol=1e-4)
    text = looped.lower(kernel).as_text()
    assert text.count("dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]") == 1
    assert text.count("dim_numbers = [b, f, 0, 1]") == 1
    once = olympus.jit(lambda k: lax.fori_loop(0, 3, lambda i, k: plain(k), plain(k)))
    assert once.lower(kernel).as_text().count("func.func private") == 1
