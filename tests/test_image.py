"""olympus.image: pixels by a loop over the definition, laws, and what must be refused."""

import numpy as np
import pytest
from test_kernel_rules import taken

import olympus
from olympus import image, jit, numpy as onp, test_util

METHODS = ["linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area"]


def kernel(method, x):
    if method == "linear":
        return max(1 - x, 0)
    if method.startswith("lanczos"):
        radius = int(method[-1])
        return np.sinc(x) * np.sinc(x / radius) if x < radius else 0
    a = -0.5 if method == "cubic" else -0.75
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0


def resampled(x, size, scale, shift, method, antialias):
    """One axis, pixel by pixel."""
    n, out = len(x), np.zeros(size)
    method = "cubic" if method == "cubic-pytorch" and antialias else method
    for j in range(size):
        at, width = (j + 0.5 - shift) / scale, max(1 / scale, 1) if antialias else 1
        weights = np.zeros(n)
        for i in range(-9, n + 9):
            w = (max(min((j + 1 - shift) / scale, i + 1) - max((j - shift) / scale, i), 0)
                 if method == "area" else kernel(method, abs(at - 0.5 - i) / width))
            if 0 <= i < n or method == "cubic-pytorch":
                weights[np.clip(i, 0, n - 1)] += w
        if 0 <= at <= n and weights.sum():
            out[j] = weights @ x / weights.sum()
    return out


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_pixels_are_weighted_by_the_kernel(method, antialias):
    x = np.random.default_rng(0).normal(size=7)
    for size in (3, 18):
        out = image.resize(x.astype("f4"), (size,), method, antialias)
        np.testing.assert_allclose(out, resampled(x, size, size / 7, 0, method, antialias),
                                   rtol=1e-5, atol=2e-6)
    out = image.scale_and_translate(
        x.astype("f4"), (9,), (0,), onp.array([0.71]), onp.array([2.33]), method, antialias)
    np.testing.assert_allclose(out, resampled(x, 9, 0.71, 2.33, method, antialias), rtol=1e-5,
                               atol=2e-6)


BANDS = "sums of the pixels with weights"
# The image, the result, the method, antialias, and how many axes have few weights.
RESIZED = [
    ((127, 128), (127, 256), "linear", True, 1), ((111, 148), (111, 149), "linear", True, 1),
    ((1024, 16), (3, 16), "linear", True, 0), ((1023, 17), (48, 17), "lanczos3", True, 0),
    ((1023, 17), (100, 17), "lanczos3", True, 1),
    ((4, 30, 70, 3), (4, 60, 90, 3), "cubic", True, 1),
    ((2, 200, 150, 3), (2, 70, 149, 3), "area", True, 2), ((16385,), (5000,), "lanczos5", True, 1),
    ((200, 300), (90, 301), "cubic-pytorch", True, 2), ((150, 160), (149, 1), "linear", False, 1),
    ((200, 300), (90, 301), "cubic-pytorch", False, 0)]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "size", "method", "antialias", "used"), RESIZED)
def test_images_by_the_few_weights_that_are_not_0(shape, size, method, antialias, used):
    """As by the product with all weights, and so are the gradients, also mapped."""
    x = np.random.default_rng(0).normal(size=shape).astype("f4")

    def resize(x):
        return image.resize(x, size, method, antialias)

    def both(x):
        return olympus.vjp(resize, x)[1](resize(x))[0]

    assert len([k for k in taken(resize, x) if k == BANDS]) == used
    for fun in (resize, both):
        plain = jit(fun, kernels="off")(x)
        np.testing.assert_allclose(jit(fun)(x), plain, rtol=0, atol=1e-5 * abs(plain).max())
    pair, plain = jit(olympus.vmap(both))(np.stack([x, -x])), np.stack([plain, -plain])
    np.testing.assert_allclose(pair, plain, rtol=0, atol=1e-5 * abs(plain).max())


def test_the_gradient_of_a_sum_of_a_resized_image_is_the_sums_of_weights():
    """The gradient of one number everywhere raised a ValueError in lowering."""
    x = np.ones((200, 9), "f4")
    gradient = jit(olympus.grad(lambda x: image.resize(x, (100, 9), "linear").sum()))(x)
    np.testing.assert_allclose(gradient, np.full((200, 9), 0.5), rtol=0.2)
    np.testing.assert_allclose(gradient.sum(), 900, rtol=1e-5)


def test_a_pixel_that_is_nan_stays_among_its_neighbours():
    x = np.zeros((200, 200), "f4")
    x[100, 50] = np.nan
    out = np.asarray(jit(lambda x: image.resize(x, (400, 200), "linear"))(x))
    assert set(zip(*np.nonzero(np.isnan(out)), strict=True)) <= {(i, 50) for i in range(198, 204)}
    assert np.isnan(out[200, 50])


def placed(x, scale, shift, size, method):
    return image.scale_and_translate(x, (size,), (0,), onp.array([scale]), onp.array([shift]),
                                     method)


def test_pixels_at_the_edge_are_of_the_image():
    x = np.arange(1, 8, dtype="f4")
    np.testing.assert_allclose(placed(x, 1.0, 0.5, 8, "linear"),
                               resampled(x, 8, 1.0, 0.5, "linear", True), rtol=1e-6)


@pytest.mark.parametrize("method", ["linear", "area"])
def test_a_negative_scale_mirrors(method):
    x = np.arange(1, 8, dtype="f4")
    np.testing.assert_allclose(placed(x, -1.0, 7.0, 7, method), x[::-1], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_images_have_derivatives_in_pixels_scale_and_translation(method, antialias):
    def moved(x, scale, shift):
        return image.scale_and_translate(x, (9,), (0,), scale, shift, method, antialias)

    with olympus.enable_x64(True):
        x = np.random.default_rng(1).normal(size=7)
        test_util.check_grads(olympus.jit(moved), (x, np.array([0.71]), np.array([0.33])), 1)


def test_axes_are_resampled_one_by_one():
    x = np.random.default_rng(2).normal(size=(4, 5, 3)).astype("f4")
    both = image.resize(x, (6, 2, 3), "cubic")
    each = image.resize(image.resize(x, (6, 5, 3), "cubic"), (6, 2, 3), "cubic")
    np.testing.assert_allclose(both, each, rtol=1e-5, atol=1e-6)
    moved = image.scale_and_translate(x, (6, 2, 3), (0, 1), onp.array([1.5, 0.4]),
                                      onp.zeros(2), "cubic")
    np.testing.assert_allclose(both, moved, rtol=1e-5, atol=1e-6)


def test_nearest_takes_pixels_without_rounding_positions():
    x = onp.arange(7)
    assert image.resize(x, (3,), "nearest").tolist() == [1, 3, 5]
    assert image.resize(x > 2, (14,), "nearest").dtype == bool
    many = onp.arange(100_003)
    places = (2 * np.arange(70_001) + 1) * 100_003 // (2 * 70_001)
    assert (np.asarray(image.resize(many, (70_001,), "nearest")) == places).all()


def test_blocks_are_averaged_and_straight_lines_stay_straight():
    x = np.random.default_rng(3).normal(size=(6, 8)).astype("f4")
    blocks = x.reshape(3, 2, 2, 4).mean((1, 3))
    np.testing.assert_allclose(image.resize(x, (3, 2), "area"), blocks, rtol=1e-5, atol=1e-6)
    line = image.resize(onp.arange(8.0), (24,), "cubic")
    np.testing.assert_allclose(line[6:-6], (np.arange(24)[6:-6] + 0.5) / 3 - 0.5, rtol=1e-5)


@pytest.mark.parametrize("dtype, found", [
    ("int8", "float32"), ("bool", "float32"), ("float16", "float16"), ("bfloat16", "bfloat16"),
    ("complex64", "complex64"), ("float8_e4m3fn", "float8_e4m3fn")])
def test_images_of_every_dtype(dtype, found):
    x = np.arange(2000) % 2
    out = image.resize(onp.asarray(x, dtype), (1000,), "linear")
    assert out.dtype == found       # positions beyond 2048 are exact in no half precision
    np.testing.assert_allclose(np.asarray(out).astype("c8")[1:-1], 0.5, rtol=1e-2)


def test_images_without_pixels():
    assert image.resize(onp.ones((4, 4), int), (0, 2), "linear").shape == (0, 2)
    assert image.resize(onp.ones((4, 4)), (4, 4), image.ResizeMethod.CUBIC).shape == (4, 4)
    with pytest.raises(ValueError, match="pixels"):
        image.resize(onp.ones((0, 4)), (2, 4), "linear")


@pytest.mark.parametrize("call, match", [
    (lambda x: image.resize(x, (2,), "linear"), "dimensions"),
    (lambda x: image.resize(x, (2, 2), "best"), "'best'"),
    (lambda x: image.resize(x, (2, 2), None), "None"),
    (lambda x: image.scale_and_translate(x, (2, 4), (1,), onp.ones(1), onp.zeros(1), "area"),
     r"\[0\]"),
    (lambda x: image.scale_and_translate(x, (4, 4), (1,), onp.ones(2), onp.zeros(1), "area"),
     "scale"),
    (lambda x: image.scale_and_translate(x, (4, 4), (1, 1), onp.ones(2), onp.zeros(2), "area"),
     "duplicate"),
    (lambda x: image.scale_and_translate(x, (4, 4), (1,), onp.ones(1), onp.zeros(1), "nearest"),
     "nearest")], ids=["rank", "name", "none", "changed", "scales", "twice", "nearest"])
def test_images_refuse_in_words(call, match):
    with pytest.raises(ValueError, match=match):
        call(onp.ones((4, 4)))
