"""Families of operations over symbolic sizes, from the smallest on: as the static programs.

Each row is one program of several operations, exported once and called at several sizes.
"""

from typing import Any

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import export, lax, nn, random

PLACES = np.array([-2, 0, 1, -1])


def negative_places(x: Any, y: Any) -> Any:
    return (x[PLACES], x.at[PLACES].add(1.0), onp.take(y, PLACES, 1),
            onp.take_along_axis(x, PLACES, 0), onp.unravel_index(PLACES, y.shape, order="F"))


def triangles(x: Any, y: Any) -> Any:
    n, m = y.shape
    return [place(size, k, other) for k in (-1, 0, 2) for size, other in ((n, m), (3, n))
            for place in (onp.tril_indices, onp.triu_indices)]


def inserted(x: Any, y: Any) -> Any:
    return (onp.insert(x, np.array([0, 2, 0, 1]), np.array([1., 2., 3., 4.], np.float32)),
            onp.insert(y, -1, x[0], axis=0), onp.insert(x, onp.arange(x.shape[0]), x),
            onp.insert(y, PLACES, x[0], axis=0), onp.insert(x, slice(0, 2), 5.0), onp.delete(x, 1),
            onp.delete(y, [1, 1, 0], axis=1), onp.delete(x, slice(0, 1)), onp.resize(x, (2, 5)),
            onp.resize(y, (3, y.shape[0])))


def padded(x: Any, y: Any) -> Any:
    return [onp.pad(array, width, mode=mode) for mode in ("edge", "wrap", "reflect", "symmetric")
            for array, width in ((x, 1), (x, 7), (y, ((x.shape[0], 0), (0, 2))))]


def differences(x: Any, y: Any) -> Any:
    return (onp.diff(x, n=2), x[2:] - x[:-2], y[1:, 1:].reshape(-1), y[2:].ravel(),
            onp.cumsum(x[1:]), lax.cummax(y[:, :-1], axis=1))


def sets(x: Any, y: Any) -> Any:
    x, y = onp.round(x), onp.round(y)
    return (onp.isin(x, y), onp.isin(x + 1j * x, x[1:]), onp.intersect1d(x, y, size=3),
            onp.setdiff1d(y, x, size=3), onp.polyval(x, y))


def factored(x: Any, y: Any) -> Any:
    a = onp.outer(x, x) + 4 * onp.eye(x.shape[0])
    singular = a.at[0].set(a[-1])
    return (olympus.grad(onp.linalg.det)(a), olympus.grad(onp.linalg.det)(singular),
            olympus.scipy.linalg.lu(a), onp.linalg.multi_dot([a, y, y.T, a, x]),
            olympus.scipy.linalg.lu_solve(olympus.scipy.linalg.lu_factor(a), x),
            olympus.scipy.sparse.linalg.cg(a, x)[0])


def collectives(x: Any, y: Any) -> Any:
    def along(function: Any, *args: Any) -> Any:
        return olympus.vmap(function, axis_name="i")(*args)

    def every(row: Any) -> Any:
        return (lax.pmean(row, "i"), lax.psum(2, "i") * row, row * lax.axis_size("i"),
                onp.zeros(lax.axis_size("i")), lax.all_gather(row, "i", tiled=True),
                lax.pbroadcast(row, "i", 1), lax.ppermute(row, "i", [(0, 1), (1, 0)]),
                lax.psum(x, "i"), lax.psum_scatter(x, "i"))

    def nested(row: Any) -> Any:
        both = ("i", "j")
        return (lax.axis_index(both), lax.psum(row, both), lax.all_gather(row, both),
                lax.pbroadcast(row, both, 2))

    square = onp.outer(x, x + 1)
    return (along(every, y), along(lambda row: lax.all_to_all(row, "i", 0, 0), square),
            along(lambda row: lax.psum_scatter(row, "i"), square),
            olympus.grad(lambda y: along(lambda r: lax.pmean(onp.sin(r), "i") * r, y).sum())(y),
            along(olympus.vmap(nested, axis_name="j"), onp.stack([y, y + 1], 1)))


def of_matrices(x: Any, y: Any) -> Any:
    linalg = olympus.scipy.linalg
    a = onp.outer(x, x) + 4 * onp.eye(x.shape[0])
    return (linalg.toeplitz(x, y[0]), linalg.hankel(x), linalg.circulant(y), linalg.sqrtm(a),
            linalg.rsf2csf(a, a)[0], linalg.solve_sylvester(a, a, onp.outer(x, y[0]) @ y.T))


def shuffled(x: Any, y: Any) -> Any:
    key, n = random.key(3), x.shape[0]
    return (random.permutation(key, y), random.permutation(key, y, 1, independent=True),
            random.permutation(key, n), random.choice(key, x, (3,)),
            random.choice(key, n, x.shape, replace=False),
            random.choice(key, n, (4,), p=nn.softmax(x)))


def bits(x: Any, y: Any) -> Any:
    narrow = lax.bitcast_convert_type(y, "uint8")
    return (narrow, lax.bitcast_convert_type(narrow, "float32"), x.view("int16"),
            lax.composite(lambda x: 2 * x, "symbolic.twice")(x))


def convolved(x: Any, y: Any) -> Any:
    image = onp.sin(onp.arange(60.0)).reshape(1, 3, 4, 5) * x[:, None, None, None, None]
    kernel = onp.cos(onp.arange(36.0)).reshape(2, 3, 2, 3) + x[:, None, None, None, None]
    loss = olympus.vmap(lambda l, r: (lax.conv(l, r, (1, 1), "SAME") ** 2).sum())
    depthwise = lax.conv_general_dilated(y.T[None], onp.ones((1, 1, x.shape[0])), (1,), "VALID",
                                         dimension_numbers=("NWC", "WIO", "NWC"),
                                         feature_group_count=x.shape[0])
    return loss(image, kernel), olympus.grad(lambda k: loss(image, k).sum())(kernel), depthwise


def attended(x: Any, y: Any) -> Any:
    query = y[None, :, None, :]
    return nn.dot_product_attention(query, query, query)


def interpolated(x: Any, y: Any) -> Any:
    return [olympus.scipy.ndimage.map_coordinates(y, [1.3 * x, x - 0.3], order, mode=mode)
            for order, mode in ((0, "constant"), (1, "wrap"), (1, "nearest"), (2, "reflect"),
                                (2, "grid-wrap"), (3, "mirror"))]


def powers(x: Any, y: Any) -> Any:
    whole = onp.round(5 * x).astype(int)
    return (onp.vander(x), onp.vander(whole, y.shape[1], increasing=True), onp.polyder(whole, 2),
            onp.polyint(x, 3), onp.polyint(x, 2, k=x), onp.polydiv(x, y[0]), onp.polydiv(y[0], x),
            onp.sort(abs(onp.roots(x, strip_zeros=False))), onp.array_split(y, 3),
            olympus.scipy.integrate.simpson(y, axis=0))


def slid(x: Any, y: Any) -> Any:
    windows = (onp.arange(3.0), onp.arange(4.0), y[0])
    return ([slide(x, w, mode) for slide in (onp.convolve, onp.correlate) for w in windows
             for mode in ("full", "same", "valid")],
            olympus.grad(lambda x: (onp.convolve(x, y[0], "same") ** 2).sum())(x),
            lax.conv_transpose(y[None, :, :, None], onp.ones((3, 4, 1, 2)), (2, 3), "SAME"))


def of_vectors(x: Any, y: Any) -> Any:
    linalg = olympus.scipy.linalg
    a, b = [onp.outer(v, v) + 4 * onp.eye(x.shape[0]) for v in (x, onp.sin(x) + 1)]
    return (linalg.companion(x), linalg.fiedler_companion(x), linalg.leslie(x, x[1:]),
            [linalg.convolution_matrix(x, y.shape[1], mode) for mode in ("full", "same", "valid")],
            linalg.qr_multiply(a, y, "left")[0], linalg.eigvalsh(a, b), linalg.bandwidth(y),
            linalg.eigh_tridiagonal(x, x[1:], eigvals_only=True),
            linalg.solve_discrete_lyapunov(a / 30, b, "bilinear"))


def banded(x: Any, y: Any) -> Any:
    linalg = olympus.scipy.linalg
    few, pair = 6 + onp.stack([x / 9, x / 9, x, x / 8]), onp.stack([x / 9, abs(x) + 4])
    return (linalg.solve_banded((2, 1), few * np.float32([[.1], [.2], [1], [.2]]), y),
            linalg.solveh_banded(pair, x), linalg.cholesky_banded(pair[::-1], lower=True),
            linalg.cho_solve_banded((linalg.cholesky_banded(pair), False), y))


def signals(x: Any, y: Any) -> Any:
    signal = olympus.scipy.signal
    a, b = np.float32([1, .4]), np.float32([.2, .3])
    return (signal.convolve(x, y[0]), signal.correlate(x, x, "same"), signal.detrend(x),
            signal.detrend(y, 0, bp=2), signal.filtfilt(b, a, x, padlen=3, padtype="even"),
            signal.savgol_filter(x, 3, 1), signal.savgol_filter(y, 3, 2, axis=0, mode="mirror"),
            signal.convolve2d(y, np.ones((2, 3), "f4"), "same", "symm"),
            signal.correlate2d(y, y[:2], boundary="wrap"),
            signal.correlation_lags(x.shape[0], y.shape[1], "same"))


def spectra(x: Any, y: Any) -> Any:
    signal = olympus.scipy.signal
    f, t, z = signal.stft(x, nperseg=3)
    return (f, t, z, signal.istft(z, nperseg=3), signal.welch(y, nperseg=3, axis=0),
            signal.csd(x, x[1:], nperseg=4, noverlap=3), signal.spectrogram(x, nperseg=4))


def filtered(x: Any, y: Any) -> Any:
    ndimage = olympus.scipy.ndimage
    return (ndimage.median_filter(y, 3), ndimage.maximum_filter(x, 4), ndimage.rank_filter(y, 1, 2),
            ndimage.gaussian_filter(y, 1.0), ndimage.convolve(y, np.ones((2, 3)), mode="wrap"),
            ndimage.shift(y, 0.3, order=1), ndimage.rotate(y, 30.0, reshape=False, order=1),
            ndimage.affine_transform(y, 0.9 * np.eye(2), order=3, mode="mirror"))


FAMILIES = [
    # program, constraints, the smallest size
    pytest.param(negative_places, "n >= 2", 2, marks=pytest.mark.slow),
    pytest.param(differences, "n >= 1", 1, marks=pytest.mark.slow),
    pytest.param(triangles, "n >= 1", 1, marks=pytest.mark.slow),
    pytest.param(inserted, "n >= 2", 2, marks=pytest.mark.slow),
    pytest.param(padded, "n >= 1", 1, marks=pytest.mark.slow),
    pytest.param(sets, "n >= 1", 1, marks=pytest.mark.slow),
    pytest.param(factored, "n >= 1", 1, marks=pytest.mark.slow),
    pytest.param(collectives, "n >= 2", 2, marks=pytest.mark.slow),
    pytest.param(of_matrices, "n >= 1", 1, marks=pytest.mark.slow),
    pytest.param(shuffled, "n >= 1", 1, marks=pytest.mark.slow),
    pytest.param(bits, "n >= 1", 1, marks=pytest.mark.slow),
    pytest.param(convolved, "n >= 1", 1, marks=pytest.mark.slow),
    pytest.param(interpolated, "n >= 2", 2, marks=pytest.mark.slow),
    pytest.param(powers, "n >= 3", 3, marks=pytest.mark.slow),
    pytest.param(slid, "n >= 3", 3, marks=pytest.mark.slow),
    pytest.param(of_vectors, "n >= 2", 2, marks=pytest.mark.slow),
    pytest.param(banded, "n >= 1", 1, marks=pytest.mark.slow),
    pytest.param(signals, "n >= 4", 4, marks=pytest.mark.slow),
    pytest.param(spectra, "n >= 5", 5, marks=pytest.mark.slow),
    pytest.param(filtered, "n >= 2", 2, marks=pytest.mark.slow),
    pytest.param(attended, "n >= 1", 1, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("program", "constraint", "least"), FAMILIES)
def test_a_family_runs_at_every_size(program: Any, constraint: str, least: int) -> None:
    n, m = export.symbolic_shape("n, m", constraints=[constraint, "m >= 2"])
    f = olympus.jit(program)
    exported = export.export(f)(olympus.ShapeDtypeStruct((n,), "float32"),
                                olympus.ShapeDtypeStruct((n, m), "float32"))
    for size in (least, least + 1, 6):
        random = np.random.default_rng(size)
        x = random.normal(size=size).astype(np.float32)
        y = random.normal(size=(size, 9 - size)).astype(np.float32)
        wants = olympus.tree.leaves(f(x, y))
        for got, want in zip(olympus.tree.leaves(exported.call(x, y)), wants, strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3)
