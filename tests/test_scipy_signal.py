"""olympus.scipy.signal, fft, ndimage and sparse.linalg beside SciPy, and what they refuse."""

import itertools

import numpy as np
import pytest
import scipy.fft as sf
import scipy.ndimage as sn
import scipy.signal as ss

import olympus
from olympus._src.runtime.eager import EvalTrace
from olympus.scipy import fft, ndimage, signal
from olympus.scipy.signal import windows
from olympus.scipy.sparse.linalg import bicgstab, cg, gmres

PARAMETERS = {"general_cosine": ([0.3, 0.5, 0.2],), "general_hamming": (0.7,), "gaussian": (2.0,),
              "general_gaussian": (1.5, 2.0), "kaiser": (3.0,)}


def close(found, expected, tol=1e-4):
    for a, e in zip(olympus.tree.leaves(found), olympus.tree.leaves(expected), strict=True):
        assert np.shape(a) == np.shape(e)
        np.testing.assert_allclose(a, e, tol, tol)


# Windows and transforms --------------------------------------------------------------------------

@pytest.mark.parametrize("name", [n for n in windows.__all__ if n != "get_window"])
def test_windows_are_scipys(name):
    args = PARAMETERS.get(name, ())
    for size, sym in itertools.product((0, 1, 2, 7, 8), (True, False)):
        close(getattr(windows, name)(size, *args, sym=sym),
              getattr(ss.windows, name)(size, *args, sym=sym), 1e-6)


def test_names_of_windows_are_scipys():
    for name in ("hann", "ham", "flattop", "boxcar", "tukey", ("kaiser", 4.0), ("tukey", 0.3), 3.0):
        close(signal.get_window(name, 9), ss.get_window(name, 9), 1e-6)
    with pytest.raises(ValueError, match="window 'odd' is unknown"):
        signal.get_window("odd", 4)
    with pytest.raises(ValueError, match="another number of parameters"):
        signal.get_window("gaussian", 4)


@pytest.mark.parametrize(("window", "error", "message"), [
    (("kaiser", "a"), TypeError, "get_window: parameter 0 of window 'kaiser': 'a'"),
    (("kaiser", 1.0, 2.0), ValueError, "another number of parameters"),
    (("general_gaussian", 1.0), ValueError, "another number of parameters"),
    (("tukey", None), TypeError, "parameter 0 of window 'tukey'"),
    (("exponential", None, None), TypeError, "parameter 1 of window 'exponential'"),
    (("gaussian", 0.0), ValueError, "a width of 0"),
    (("exponential", None, 0.0), ValueError, "tau 0"),
    (("general_cosine", "ab"), TypeError, "a sequence of real numbers"),
    (("general_cosine", ()), TypeError, "a sequence of real numbers")])
def test_bad_parameters_of_windows_are_refused_in_words(window, error, message):
    """Raw messages of NumPy's and of Python's came out, and NaN of a width of 0."""
    with pytest.raises(error, match=message):
        signal.get_window(window, 5)


@pytest.mark.parametrize("design", [
    signal.kaiser_beta, lambda x: signal.tf2zpk(x[None], x[None]),
    lambda x: signal.get_window(("kaiser", x), 5)])
@pytest.mark.parametrize("mode", [olympus.jit, olympus.vmap])
def test_designs_on_the_host_say_that_a_value_is_traced(design, mode):
    """They said that a tracer is no real number: TypeError, where a value is needed."""
    with pytest.raises((olympus.errors.ConcretizationTypeError,
                        olympus.errors.TracerArrayConversionError)):
        mode(design)(np.float32(2) if mode is olympus.jit else np.ones(1, "f4"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
def test_cosine_and_sine_transforms_of_all_types_sizes_and_norms(name, rng):
    for n, kind, norm in itertools.product((2, 3, 4, 5, 9), (1, 2, 3, 4), (None, "ortho", "forward")
                                           ):
        x = rng.normal(size=(2, n))
        close(getattr(fft, name)(x, kind, norm=norm), getattr(sf, name)(x, kind, norm=norm))


def test_fast_sizes_are_scipys():
    for n in range(1, 200):
        assert fft.next_fast_len(n) == sf.next_fast_len(n)
        assert fft.next_fast_len(n, True) == sf.next_fast_len(n, True)
        assert fft.prev_fast_len(n) == sf.prev_fast_len(n)


# Convolutions and spectra ------------------------------------------------------------------------

@pytest.mark.slow
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_of_all_forms(mode, rng):
    shapes = (((5,), (3,)), ((3,), (6,)), ((4, 5), (2, 3)), ((2, 3), (4, 5)))
    for (n, m), name in itertools.product(shapes, ("convolve", "correlate")):
        x, y = rng.normal(size=n) + 1j * rng.normal(size=n), rng.normal(size=m)
        for method in ("direct", "fft"):
            close(getattr(signal, name)(x, y, mode, method), getattr(ss, name)(x, y, mode))
        if len(n) == 2:
            for edge in ("fill", "wrap", "symm"):
                close(getattr(signal, name + "2d")(x.real, y, mode, edge),
                      getattr(ss, name + "2d")(x.real, y, mode, edge))


def test_integers_are_convolved_exactly():
    x = np.array([3, 10**6, 7], np.int32)
    for method in ("auto", "direct"):
        np.testing.assert_array_equal(signal.convolve(x, x[:2], method=method), np.convolve(x, x[:2]
                                                                                            ))
    assert signal.convolve(x, x).dtype == np.int32


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    {}, {"nperseg": 15, "noverlap": 3, "fs": 10.0}, {"nperseg": 16, "nfft": 20, "boundary": None},
    {"nperseg": 16, "boundary": "odd", "window": "hamming", "detrend": "linear"},
    {"nperseg": 8, "return_onesided": False, "padded": False}, {"nperseg": 8, "axis": 0},
], ids=["plain", "odd-size", "filled", "detrended", "two-sided", "axis"])
@pytest.mark.filterwarnings("ignore:.*nperseg")
def test_short_time_transforms(options, rng):
    x = rng.normal(size=(40, 40))
    close(signal.stft(x, **options), ss.stft(x, **options))


@pytest.mark.slow
def test_istft_undoes_stft(rng):
    x = rng.normal(size=(2, 41)).astype("f4")
    for options in ({"nperseg": 8}, {"nperseg": 9, "noverlap": 6, "window": "hamming", "fs": 3.0}):
        _, _, z = signal.stft(x, **options)
        close(signal.istft(z, **options)[1][:, :41], x, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    {"nperseg": 16}, {"nperseg": 15, "fs": 10.0, "scaling": "spectrum"},
    {"nperseg": 16, "average": "median"}, {"nperseg": 16, "nfft": 32, "detrend": "linear"},
    {"nperseg": 8, "axis": 0, "return_onesided": False},
], ids=["plain", "spectrum", "median", "filled", "two-sided"])
def test_spectral_densities(options, rng):
    x, y = rng.normal(size=(2, 40, 40))
    close(signal.csd(x, y, **options), ss.csd(x, y, **options))
    close(signal.welch(x, **options), ss.welch(x, **options))
    short = {k: v for k, v in options.items() if k in ("fs", "axis", "scaling", "detrend")}
    close(signal.periodogram(x, **short), ss.periodogram(x, **short), 2e-3)


def test_sums_of_the_same_shape_begin_where_scipys_do(rng):
    x, y = rng.normal(size=(4, 5)), rng.normal(size=(2, 4))
    close(signal.correlate2d(x, y, "same"), ss.correlate2d(x, y, "same"))
    close(signal.convolve2d(x, y, "same"), ss.convolve2d(x, y, "same"))


def test_lags_are_those_of_correlations():
    """Even windows, too, where SciPy's are one too large in the mode "same"."""
    x, y = np.arange(7) ** 2, np.array([1, 10, 100, 1000])
    whole = np.correlate(x, y, "full")      # from lag -3
    for mode in ("same", "valid"):
        lags = np.asarray(signal.correlation_lags(7, 4, mode))
        np.testing.assert_array_equal(signal.correlate(x, y, mode), whole[lags + 3])


@pytest.mark.slow
def test_detrend_fits_a_line_between_break_points(rng):
    x = rng.normal(size=(3, 40))
    close(signal.detrend(x, bp=(10, 25)), ss.detrend(x, bp=(10, 25)))
    close(signal.detrend(x, 0, "constant"), ss.detrend(x, 0, "constant"))


# Images ------------------------------------------------------------------------------------------

@pytest.mark.slow
@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_images_beyond_their_edges(order, rng):
    """JAX's "constant" and "wrap" are the ones that SciPy calls grid-constant and grid-wrap."""
    x, at = rng.normal(size=(12, 15)), rng.uniform(-9, 25, size=(2, 60))
    grid = {"constant": "grid-constant", "wrap": "grid-wrap"}
    with olympus.enable_x64(True):
        for mode in ("constant", "nearest", "wrap", "mirror", "reflect", "grid-constant"):
            expected = sn.map_coordinates(x, at, order=order, mode=grid.get(mode, mode), cval=0.7)
            close(ndimage.map_coordinates(x, at, order, mode, 0.7), expected, 1e-6)
            close(ndimage.shift(x, (1.3, -2.6), order=order, mode=mode),
                  sn.shift(x, (1.3, -2.6), order=order, mode=mode), 1e-6)
        close(ndimage.zoom(x, (1.7, 0.6), order=order), sn.zoom(x, (1.7, 0.6), order=order), 1e-6)
        close(ndimage.rotate(x, 33.0, order=order), sn.rotate(x, 33.0, order=order), 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["reflect", "mirror", "nearest", "wrap", "constant"])
def test_filters_of_images_beyond_their_edges(mode, rng):
    x, weights = rng.normal(size=(7, 8)), rng.normal(size=(4, 3))
    calls = [("correlate", weights), ("convolve", weights), ("correlate1d", weights[:, 0]),
             ("convolve1d", weights[:, 0]), ("uniform_filter", 4), ("gaussian_filter", 1.3),
             ("maximum_filter", (2, 3)), ("median_filter", 3), ("sobel", 0), ("prewitt", -1)]
    for name, given in calls:
        close(getattr(ndimage, name)(x, given, mode=mode), getattr(sn, name)(x, given, mode=mode))
    close(ndimage.laplace(x, mode=mode), sn.laplace(x, mode=mode))
    close(ndimage.gaussian_laplace(x, 1.0, mode=mode), sn.gaussian_laplace(x, 1.0, mode=mode))


SMOOTHING = {"gaussian_filter": (1.5,), "gaussian_filter1d": (0.75,), "uniform_filter": (3,),
             "uniform_filter1d": (7,)}
OF_SIGNS = {"gaussian_laplace": (1.0,), "sobel": (), "prewitt": (), "laplace": ()}


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.uint32])
def test_filters_of_integers_are_scipys(dtype):
    """Regression: float32 lost digits of large ones, and results were cut off once, at the end."""
    ends, signed = np.iinfo(dtype), np.iinfo(dtype).min < 0
    high = ends.max // 16 if signed else ends.max
    pixels = np.random.default_rng(0).integers(-high if signed else 0, high, (9, 11))
    for x in (pixels.astype(dtype), (high // 2 + np.arange(35).reshape(5, 7)).astype(dtype)):
        # Where SciPy has no integers for its results, its numbers depend on the processor.
        for name, given in (SMOOTHING | OF_SIGNS if signed else SMOOTHING).items():
            found = getattr(ndimage, name)(x, *given)
            np.testing.assert_array_equal(found, getattr(sn, name)(x, *given), name)
            assert found.dtype == dtype
    if not signed:
        found = ndimage.sobel(np.array([[0, 3, 3, 1]], dtype))
        np.testing.assert_array_equal(found, (4 * np.array([[3, 3, -2, -2]])).astype(dtype))


def test_a_constant_image_of_integers_stays_what_it_is():
    """The sum of a Gaussian's weights is a bit less than 1."""
    for value in range(1, 250, 3):
        image = np.full((4, 5), value, np.uint8)
        np.testing.assert_array_equal(ndimage.gaussian_filter(image, 1.5), image)
        np.testing.assert_array_equal(ndimage.correlate1d(image, [0.25, 0.5, 0.25]), image)


@pytest.mark.parametrize(("name", "given"), [
    ("uniform_filter", 3), ("prewitt", 1), *[
        pytest.param(name, given, marks=pytest.mark.slow) for name, given in (
            ("maximum_filter", 3), ("minimum_filter", (2, 3)), ("sobel", 0), ("laplace", None),
            ("gaussian_filter", 1.0), ("gaussian_laplace", 1.0),
            ("gaussian_gradient_magnitude", 1.0))]])
def test_each_axis_of_an_image_has_a_mode_of_its_own(name, given, rng):
    """SciPy's Gaussian derivatives go by the derivative's axis alone: one mode for a term."""
    x, given = rng.normal(size=(5, 6)), () if given is None else (given,)
    ours, theirs = getattr(ndimage, name), getattr(sn, name)
    for mode in (("nearest", "wrap"), ["constant", "reflect"]):
        close(ours(x, *given, mode=mode, cval=0.5), theirs(x, *given, mode=mode, cval=0.5))
    with pytest.raises(ValueError, match=f"(?s){name}: mode .* one per axis"):
        ours(x, *given, mode=("wrap",) * 3)


@pytest.mark.parametrize("name", ["laplace", "gaussian_laplace", "gaussian_gradient_magnitude"])
def test_an_image_without_axes_has_no_derivatives(name):
    given = (1.0,) if name.startswith("gaussian") else ()       # was: 0, for any image
    with pytest.raises(ValueError, match=f"{name}: .*an image of at least one axis"):
        getattr(ndimage, name)(np.float32(2.0), *given)


@pytest.mark.slow
def test_filters_with_origins_orders_and_footprints(rng):
    x, weights = rng.normal(size=(7, 8)), rng.normal(size=(3, 3))
    close(ndimage.convolve(x, weights, origin=(1, -1)), sn.convolve(x, weights, origin=(1, -1)))
    close(ndimage.gaussian_filter(x, (0.7, 2.0), (1, 0)), sn.gaussian_filter(x, (0.7, 2.0), (1, 0)))
    modes = ["reflect", "wrap"]     # was: unhashable type
    close(ndimage.gaussian_filter(x, 1.2, mode=modes), sn.gaussian_filter(x, 1.2, mode=modes))
    close(ndimage.gaussian_filter1d(x, 2.0, order=3, radius=4),
          sn.gaussian_filter1d(x, 2.0, order=3, radius=4))
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
    close(ndimage.maximum_filter(x, footprint=cross), sn.maximum_filter(x, footprint=cross))
    close(ndimage.rank_filter(x, -2, 3), sn.rank_filter(x, -2, 3))
    close(ndimage.gaussian_gradient_magnitude(x, 1.0), sn.gaussian_gradient_magnitude(x, 1.0))


@pytest.mark.parametrize("name", ["maximum_filter", "minimum_filter"])
def test_extrema_over_boxes_of_every_size_are_scipys(name, rng):
    """They go axis by axis, by halves of windows."""
    ours, theirs = getattr(ndimage, name), getattr(sn, name)
    row, image = rng.integers(0, 99, 12).astype("i4"), rng.normal(size=(5, 4, 6)).astype("f4")
    for size in range(1, 13):
        np.testing.assert_array_equal(ours(row, size), theirs(row, size))
    for size, mode in (((2, 3, 5), "wrap"), ((1, 4, 1), "mirror"), ((5, 1, 2), "constant")):
        np.testing.assert_array_equal(ours(image, size, mode=mode, cval=0.5),
                                      theirs(image, size, mode=mode, cval=0.5))
    box = np.ones((3, 2, 1), bool)
    np.testing.assert_array_equal(ours(image, footprint=box), theirs(image, footprint=box))
    with pytest.raises(ValueError, match=f"{name}: a footprint of shape"):
        ours(row, 0)


def test_extrema_of_an_image_called_eagerly_are_one_program():
    """Regression: each of the 81 neighbours was an operation, at ten times SciPy's time."""
    ran, x = [], olympus.numpy.ones((9, 9))
    ndimage.maximum_filter(x, 9)
    process = EvalTrace.process
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EvalTrace, "process", lambda *args: ran.append(args) or process(*args))
        ndimage.maximum_filter(x, 9)
    assert not ran


@pytest.mark.parametrize("name", ["correlate1d", "convolve1d"])
def test_windows_along_one_axis_have_scipys_places(name, rng):
    """Even and odd sizes, on which a mirrored window's place depends."""
    x = rng.normal(size=(3, 5)).astype("f4")
    for size, origin in ((3, 1), (4, -1)):
        weights = rng.normal(size=size).astype("f4")
        close(getattr(ndimage, name)(x, weights, 1, mode="nearest", origin=origin),
              getattr(sn, name)(x, weights, 1, mode="nearest", origin=origin))


def test_gaussians_are_cut_off_at_the_nearest_pixel(rng):
    x = rng.normal(size=9)
    close(ndimage.gaussian_filter1d(x, 0.7), sn.gaussian_filter1d(x, 0.7))


def test_integer_images_are_rounded(rng):
    x, at = rng.integers(0, 50, size=(6, 7)).astype("i4"), rng.uniform(0, 5, size=(2, 9))
    found = ndimage.map_coordinates(x, at, 1)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, sn.map_coordinates(x, at, order=1))


# Systems -----------------------------------------------------------------------------------------

@pytest.mark.slow
@olympus.tree_util.register_pytree_node_class
class Scaling:
    """An operator that is neither a function nor an array."""

    def __init__(self, by):
        self.by = by

    def __matmul__(self, x):
        return olympus.tree.map(lambda x: self.by * x, x)

    def tree_flatten(self):
        return (self.by,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@pytest.mark.parametrize("solver", [cg, bicgstab, gmres])
def test_iterative_solvers_take_operators(solver):
    solve = olympus.jit(lambda a: solver(a, {"x": np.ones(2)}, M=Scaling(0.5))[0]["x"])
    np.testing.assert_allclose(solve(Scaling(2.0)), 0.5, rtol=1e-6)
    jacobian = olympus.jacobian(lambda by: solve(Scaling(by)))(2.0)
    np.testing.assert_allclose(jacobian, -0.25, rtol=1e-6)


@pytest.mark.parametrize("solver", [cg, bicgstab, gmres], ids=["cg", "bicgstab", "gmres"])
@pytest.mark.parametrize("kind", ["f8", "c16"])
def test_solvers_and_their_derivatives_are_those_of_the_system(solver, kind, rng):
    with olympus.enable_x64(True):
        a, b = rng.normal(size=(6, 6)), rng.normal(size=6)
        if kind == "c16":
            a = a + 1j * rng.normal(size=(6, 6))
        a = a @ a.conj().T / 6 + np.eye(6) if solver is cg else a / 3 + 3 * np.eye(6)
        ta, tb = rng.normal(size=(6, 6)).astype(kind), rng.normal(size=6).astype(kind)
        inverse = np.diag(1 / np.diag(a).real)

        def solve(a, b):
            return solver(lambda x: a @ x, b, tol=1e-13, M=inverse)[0]

        x = np.linalg.solve(a, b)
        found, moved = olympus.jvp(solve, (a, b.astype(kind)), (ta, tb))
        close(found, x, 1e-10)
        close(moved, np.linalg.solve(a, tb - ta @ x), 1e-10)
        _, pull = olympus.vjp(solve, a, b.astype(kind))
        ga, gb = map(np.asarray, pull(tb))
        np.testing.assert_allclose((ga * ta).sum() + (gb * tb).sum(), (np.asarray(moved) * tb).sum()
                                   )
        many = np.stack([b, 2 * b, 0 * b]).astype(kind)
        close(olympus.vmap(lambda b: solve(a, b))(many), np.linalg.solve(a, many.T).T, 1e-10)


@pytest.mark.parametrize("solver", [cg, bicgstab, gmres])
def test_traced_tolerances_and_numbers_of_steps_are_those_given(solver):
    a, b = np.diag([1., 2., 4.]), np.ones(3)

    @olympus.jit
    @olympus.value_and_grad
    def total(tol, atol, steps):
        return solver(a, b, tol=tol, atol=atol, maxiter=steps)[0].sum()

    close(total(1e-6, 0., 9), (1.75, 0.))
    close(total(0., 9., 9), (0., 0.))       # the start is near enough
    close(total(0., 0., 0), (0., 0.))
    with pytest.raises(TypeError, match=r"tol float32\[2\] given; a number is"):
        total(np.ones(2, np.float32), 0., 9)
    with pytest.raises(TypeError, match=r"maxiter float32\[\] given; an int is required"):
        olympus.jit(lambda steps: solver(a, b, maxiter=steps))(9.)


@pytest.mark.slow
def test_solvers_take_pytrees_and_report_failure():
    tree = {"a": np.ones(3, "f4"), "b": np.full((2, 2), 4, "f4")}
    x, info = cg(lambda t: olympus.tree.map(lambda x: 2 * x, t), tree)
    assert info == 0
    close(x, {"a": tree["a"] / 2, "b": tree["b"] / 2})
    a = np.diag(np.arange(1, 9.0))
    assert cg(a, np.ones(8), maxiter=2)[1] == 2
    assert gmres(np.zeros((2, 2)), np.ones(2), maxiter=3)[1] == 3


@pytest.mark.parametrize(("call", "match"), [
    (lambda: cg(np.eye(2), np.ones(3)), "must be a square matrix"),
    (lambda: cg(np.eye(2), np.ones(2), np.ones(3)), "x0 and b must have matching shape"),
    (lambda: cg(lambda x: x, np.ones(2), {"a": np.ones(2)}), "matching tree structure"),
    (lambda: cg(lambda x: (x, x), np.ones(2)), "the structure of b"),
    (lambda: gmres(np.eye(2), np.ones(2), solve_method="odd"), "solve_method 'odd'"),
    (lambda: fft.dct(np.ones(3), 5), "type 5"), (lambda: fft.dct(np.ones(1), 1), "at least 2"),
    (lambda: signal.convolve(np.ones((2, 3)), np.ones((3, 2)), "valid"), "one array as large"),
    (lambda: signal.convolve(np.ones(2), np.ones((3, 2))), "equal ranks"),
    (lambda: signal.convolve2d(np.eye(2), np.eye(2), boundary="odd"), "boundary 'odd'"),
    (lambda: signal.stft(np.ones(9), nperseg=4, noverlap=4), "noverlap 4"),
    (lambda: signal.welch(np.ones(9), window=np.ones(20)), "20 weights given for 9 samples"),
    (lambda: signal.detrend(np.ones(9), bp=12), "places within"),
    (lambda: ndimage.map_coordinates(np.eye(2), [np.ones(2)], 1), "one array per axis"),
    (lambda: ndimage.map_coordinates(np.eye(2), np.ones((2, 2)), 4), "order 4"),
], ids=["matrix", "x0", "tree", "structure", "method", "type", "size", "valid", "ranks", "boundary",
        "noverlap", "window", "bp", "coordinates", "order"])
def test_refusals(call, match):
    with pytest.raises(ValueError, match=match):
        call()


# Filters -----------------------------------------------------------------------------------------

@pytest.mark.slow
def test_recursive_and_moving_filters_with_and_without_memory(rng):
    x = rng.normal(size=(2, 9, 3))
    b, a = np.array([2, 0.5, 1, -1]), np.array([2, 0.3, -0.4])
    for below in (a, np.array([2.0])):
        close(signal.lfilter(b, below, x, 1), ss.lfilter(b, below, x, 1))
        zi = rng.normal(size=(2, 3, 3))
        close(signal.lfilter(b, below, x, 1, zi), ss.lfilter(b, below, x, 1, zi))
    close(signal.lfilter(b, 1, x[0, :2, 0], zi=zi[0, :, 0]),
          ss.lfilter(b, 1, x[0, :2, 0], zi=zi[0, :, 0]))
    close(signal.lfilter(2.0, 4.0, x), x / 2)
    close(signal.lfilter_zi(b, a), ss.lfilter_zi(b, a))


@pytest.mark.slow
def test_sections_there_and_back_are_scipys(rng):
    x = rng.normal(size=(2, 60))
    for order in (3, 4):
        sos = ss.butter(order, 0.3, output="sos")
        b, a = ss.butter(order, 0.3)
        close(signal.sosfilt_zi(sos), ss.sosfilt_zi(sos))
        zi = rng.normal(size=(2, 2, 2))
        close(signal.sosfilt(sos, x, zi=zi), ss.sosfilt(sos, x, zi=zi))
        close(olympus.jit(lambda x: signal.sosfiltfilt(sos, x))(x), ss.sosfiltfilt(sos, x), 2e-4)
        for padtype in ("odd", "even", "constant", None):
            close(signal.sosfiltfilt(sos, x, padtype=padtype),
                  ss.sosfiltfilt(sos, x, padtype=padtype), 2e-4)
            close(signal.filtfilt(b, a, x.T, 0, padtype), ss.filtfilt(b, a, x.T, 0, padtype), 2e-4)


@pytest.mark.slow
def test_filters_have_the_derivatives_of_finite_differences(rng):
    x, b, a = rng.normal(size=12), np.array([1.0, 0.5]), np.array([1.0, -0.4, 0.2])
    with olympus.enable_x64(True):
        def loss(b, a, x):
            y = signal.filtfilt(b, a, x, padlen=5)
            return (y ** 3).sum()
        grads = olympus.jit(olympus.grad(loss, (0, 1, 2)))(b, a, x)
        for k, given in enumerate((b, a, x)):
            t = rng.normal(size=given.shape)
            at = [[b, a, x][:k] + [given + s * 1e-6 * t] + [b, a, x][k + 1:] for s in (1, -1)]
            expected = (loss(*at[0]) - loss(*at[1])) / 2e-6
            np.testing.assert_allclose((grads[k] * t).sum(), expected, 1e-5)
        many = np.stack([x, 2 * x])
        close(olympus.vmap(lambda x: signal.lfilter(b, a, x))(many), ss.lfilter(b, a, many), 1e-9)


@pytest.mark.slow
def test_decimate_is_scipys(rng):
    x = rng.normal(size=(120, 2))
    with olympus.enable_x64(True):
        for q, n, ftype, zero in ((3, None, "iir", True), (2, 5, "iir", False),
                                  (3, None, "fir", True), (2, 7, "fir", True),
                                  (4, 8, "fir", False)):
            close(signal.decimate(x, q, n, ftype, 0, zero), ss.decimate(x, q, n, ftype, 0, zero),
                  1e-6)


@pytest.mark.slow
def test_responses_are_scipys():
    b, a = ss.butter(3, 0.3)
    sos = ss.butter(3, 0.3, output="sos")
    for options in ({"worN": 7}, {"worN": 6, "whole": True, "fs": 10.0},
                    {"worN": np.array([0.1, 2.0]), "fs": 5.0}):
        close(signal.freqz(b, a, **options), ss.freqz(b, a, **options))
        close(signal.sosfreqz(sos, **options), ss.sosfreqz(sos, **options))
    close(signal.freqz(b, worN=5, include_nyquist=True), ss.freqz(b, worN=5, include_nyquist=True))


# Designs -----------------------------------------------------------------------------------------

@pytest.mark.parametrize(("name", "args"), [
    ("butter", ()), ("cheby1", (1.0,)), ("cheby2", (40.0,))])
def test_recursive_filters_are_scipys(name, args):
    ours, theirs = (getattr(lib, name) for lib in (signal, ss))
    with olympus.enable_x64():
        for order, (band, edge), output, analog in itertools.product(
                (1, 2, 5), (("low", 0.2), ("hp", 0.7), ("band", [0.2, 0.5]), ("bs", [0.3, 0.35])),
                ("ba", "zpk", "sos"), (False, True)):
            if analog and output == "sos":
                continue
            found, expected = (f(order, *args, edge, band, analog, output) for f in (ours, theirs))
            if output == "zpk":     # conjugates may stand either way
                found, expected = ([*map(np.sort_complex, x[:2]), x[2]] for x in (found, expected))
            close(found, expected, 1e-7)
        close(ours(3, *args, [10, 20], "bp", fs=100), theirs(3, *args, [10, 20], "bp", fs=100))


def test_sections_of_zeros_and_poles_are_scipys():
    filters = [
        ss.ellip(6, 1, 50, 0.3, output="zpk"), ss.bessel(5, 0.3, output="zpk"),
        ss.ellip(7, 1, 50, [0.2, 0.4], "bandstop", output="zpk"), ([], [0.5, -0.3], 2.0),
        ([1, 1j, -1j], [0.2, 0.3, 0.9], 1.0), ([0.1, 0.2], [], 1.0), ([], [], 3.0),
        ([1, -1, 0.5], [0.9 + 0.1j, 0.9 - 0.1j, 0.2], 0.1),
    ]
    with olympus.enable_x64():
        for z, p, k in filters:
            close(signal.zpk2sos(z, p, k), ss.zpk2sos(z, p, k), 1e-7)
            close(signal.zpk2tf(z, p, k), ss.zpk2tf(z, p, k), 1e-7)
        sos = ss.ellip(7, 1, 50, [0.2, 0.4], output="sos", btype="bandpass")
        close(signal.sos2tf(sos), ss.sos2tf(sos), 1e-12)
        close(signal.tf2zpk([2, 1], [1, 0.5, 0.25]), ss.tf2zpk([2, 1], [1, 0.5, 0.25]), 1e-12)


def test_windowed_sincs_are_scipys():
    with olympus.enable_x64():
        for options in ({}, {"pass_zero": False}, {"window": ("kaiser", 4.0)}, {"width": 0.1},
                        {"scale": False}):
            for edges, fs in ((0.3, None), ([3, 5.5], 20), ([0.2, 0.4, 0.6, 0.8], None)):
                close(signal.firwin(31, edges, fs=fs, **options),
                      ss.firwin(31, edges, fs=fs, **options), 1e-12)
        close(signal.firwin(30, [0.2, 0.4], pass_zero="bandpass"),
              ss.firwin(30, [0.2, 0.4], pass_zero="bandpass"), 1e-12)
    for depth in (10.0, 30.0, 65.0):
        close(signal.kaiser_beta(depth), ss.kaiser_beta(depth), 1e-15)
        close(signal.kaiserord(depth, 0.1), ss.kaiserord(depth, 0.1), 1e-15)
    close(signal.kaiser_atten(211, 0.04), ss.kaiser_atten(211, 0.04), 1e-15)


@pytest.mark.slow
def test_resonances_are_scipys_and_have_derivatives():
    with olympus.enable_x64():
        for name in ("iirnotch", "iirpeak"):
            ours, theirs = (getattr(lib, name) for lib in (signal, ss))
            close(ours(60.0, 30.0, 400.0), theirs(60.0, 30.0, 400.0), 1e-12)
            step = 1e-4
            moved = [np.stack(theirs(60.0, q, 400.0)) for q in (30 - step, 30 + step)]
            close(np.stack(olympus.jacfwd(lambda q, f=ours: f(60.0, q, 400.0))(30.0)),
                  (moved[1] - moved[0]) / (2 * step), 1e-7)


# Signals made anew -------------------------------------------------------------------------------

def test_analytic_signals_are_scipys(rng):
    x = rng.normal(size=(7, 2))
    for size in (None, 6, 10):
        close(signal.hilbert(x, size, 0), ss.hilbert(x, size, 0))


@pytest.mark.slow
def test_resampling_to_fewer_and_more_samples(rng):
    for n, num in ((1, 3), (2, 4), (6, 3), (6, 4), (6, 6), (7, 4), (7, 9), (6, 10)):
        x = rng.normal(size=(n, 2))
        t = np.arange(n) / 4 + 1
        for window in (None, "hamming", rng.normal(size=n), np.cos):
            close(signal.resample(x, num, window=window), ss.resample(x, num, window=window))
            z = x[:, 0] + 1j * x[:, 1]
            for domain in ("time", "freq"):
                close(signal.resample(z, num, window=window, domain=domain),
                      ss.resample(z, num, window=window, domain=domain))
        if n > 1:
            close(signal.resample(x, num, t), ss.resample(x, num, t))


def test_weights_of_fitted_polynomials_are_scipys():
    with olympus.enable_x64(True):
        for args in ((5, 2), (7, 3, 2, 0.5), (4, 1), (5, 2, 3), (5, 4, 1, 1.0, 0),
                     (6, 2, 0, 1, 3.5)):
            for use in ("conv", "dot"):
                close(signal.savgol_coeffs(*args, use=use), ss.savgol_coeffs(*args, use=use), 1e-9)
        # SciPy loses half the digits here; the weights leave polynomials of the degree as they are.
        powers = np.linspace(-1, 1, 51)[:, None] ** np.arange(10)
        close(signal.savgol_coeffs(51, 9) @ powers, np.eye(10)[0], 1e-12)


@pytest.mark.slow
def test_smoothing_by_polynomials_is_scipys(rng):
    x = rng.normal(size=(11, 2))
    for mode in ("interp", "mirror", "nearest", "wrap", "constant"):
        for args in ((5, 2), (7, 3, 1, 0.5), (4, 2), (1, 0)):
            close(signal.savgol_filter(x, *args, axis=0, mode=mode, cval=2.0),
                  ss.savgol_filter(x, *args, axis=0, mode=mode, cval=2.0))


@pytest.mark.parametrize(("call", "match"), [
    (lambda: signal.lfilter(np.eye(2), 1, np.ones(3)), "a vector with elements"),
    (lambda: signal.sosfilt(np.ones((1, 5)), np.ones(3)), r"sections \[k, 6\]"),
    (lambda: signal.lfilter(np.ones(3), 1, np.ones((4, 2)), 0, np.ones((3, 2))), r"\(2, 2\)"),
    (lambda: signal.sosfilt(np.ones((1, 6)), np.ones(3), zi=np.ones(2)), r"\(1, 2\)"),
    (lambda: signal.filtfilt(np.ones(2), 1, np.ones(6)), "give a smaller padlen"),
    (lambda: signal.filtfilt(np.ones(2), 1, np.ones(9), padtype="zeros"), "padtype 'zeros'"),
    (lambda: signal.decimate(np.ones(9), 2, ftype="odd"), "ftype 'odd'"),
    (lambda: signal.butter(0, 0.2), "N 0 given"),
    (lambda: signal.butter(2, 1.2), "above 0 and below 1 are"),
    (lambda: signal.butter(2, 30.0, fs=50), "below fs / 2"),
    (lambda: signal.butter(2, 0.2, "bp"), "of 'bandpass' 2 are"),
    (lambda: signal.butter(2, 0.2, "odd"), "btype 'odd'"),
    (lambda: signal.butter(2, 0.2, output="odd"), "output 'odd'"),
    (lambda: signal.butter(2, 0.2, analog=True, fs=2), "no samples"),
    (lambda: signal.cheby1(2, -1, 0.2), "rp -1 given"),
    (lambda: signal.firwin(4, 0.5, pass_zero=False), "an odd one is"),
    (lambda: signal.firwin(5, 1.5), "cutoff 1.5"),
    (lambda: signal.firwin(5, [0.2, 0.5], pass_zero="lowpass"), "of one edge"),
    (lambda: signal.kaiserord(2, 0.1), "at least 8 decibels"),
    (lambda: signal.zpk2sos([1j], [], 1.0), "without their conjugates"),
    (lambda: signal.tf2zpk([1], [0]), "a of zeros"),
    (lambda: signal.zpk2tf(np.eye(2), [], 1.0), "a vector is required"),
    (lambda: signal.hilbert(np.ones(3) * 1j), "a real signal"),
    (lambda: signal.resample(np.ones(3), 5, window=np.ones(4)), "each of 3 frequencies"),
    (lambda: signal.savgol_coeffs(3, 3), "polyorder < window_length"),
    (lambda: signal.savgol_filter(np.ones(3), 5, 1), "window_length 5 given for 3"),
], ids=["lfilter", "sosfilt", "zi", "zi-sections", "samples", "padtype", "ftype", "order", "edge",
        "nyquist", "edges", "band", "output", "analog", "ripple", "even", "cutoff", "pass_zero",
        "ripples", "conjugates", "zeros", "vector", "hilbert", "window", "polyorder", "interp"])
def test_refusals_of_filters(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_programs_of_long_spectra_hold_no_table_of_their_samples():
    x = olympus.ShapeDtypeStruct((100_000,), np.float32)
    for overlap in (128, 100):      # which divides the segments, and which does not

        def there_and_back(x):
            z = signal.stft(x, nperseg=256, noverlap=overlap)[2]
            return signal.istft(z, nperseg=256, noverlap=overlap)[1]

        assert len(olympus.jit(there_and_back).lower(x).as_text()) < 50_000
