"""Functions of functions: differential equations, integrals, minima and roots.

Oracles are closed forms, SciPy, and finite differences.
"""

from functools import partial

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import olympus
from olympus import numpy as onp
from olympus.experimental.ode import odeint
from olympus.scipy.integrate import fixed_quad, quad, solve_ivp
from olympus.scipy.optimize import least_squares, minimize, root

T = np.array([0.0, 0.7, 2.0], np.float32)


# odeint ------------------------------------------------------------------------------------------

def spring(y, t, rate):
    """A spring without friction as a pytree; rate is its frequency squared."""
    return {"v": -rate * y["x"], "x": y["v"]}


def test_odeint_solves_a_spring_of_pytrees_forward_and_back():
    y = odeint(spring, {"x": 1.0, "v": 0}, T, 4.0)
    np.testing.assert_allclose(y["x"], np.cos(2 * T), atol=2e-5)
    np.testing.assert_allclose(y["v"], -2 * np.sin(2 * T), atol=2e-5)
    last = {"x": y["x"][-1], "v": y["v"][-1]}
    np.testing.assert_allclose(odeint(spring, last, T[::-1], 4.0)["x"][::-1], y["x"], atol=2e-5)


def test_derivatives_of_odeint_in_every_order_of_modes_are_the_closed_forms():
    def decay(rate, y0, t):
        return odeint(lambda y, t: -rate * y, y0, t)      # closes over the differentiated value

    exact = 1.5 * np.exp(-0.5 * T)
    for jacobian in (olympus.jacfwd, olympus.jacrev):
        by_rate, by_y0, by_t = jacobian(decay, (0, 1, 2))(0.5, 1.5, T)
        np.testing.assert_allclose(by_rate, -T * exact, atol=2e-5)
        np.testing.assert_allclose(by_y0, exact / 1.5, atol=2e-5)
        expected = np.diag(-0.5 * exact)
        expected[:, 0] += 0.5 * exact
        np.testing.assert_allclose(by_t, expected, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("inner", [olympus.jacfwd, olympus.jacrev])
@pytest.mark.parametrize("outer", [olympus.jacfwd, olympus.jacrev])
def test_second_derivatives_of_odeint(inner, outer):
    found = outer(inner(lambda rate: odeint(lambda y, t: -rate * y, 1.5, T)))(0.5)
    np.testing.assert_allclose(found, T * T * 1.5 * np.exp(-0.5 * T), atol=1e-4)


def test_odeint_under_vmap_and_jit_is_a_loop_of_itself():
    run = olympus.jit(olympus.vmap(lambda rate: odeint(lambda y, t, r: -r * y, 1.0, T, rate)))
    rates = np.array([0.1, 5.0], np.float32)
    np.testing.assert_allclose(run(rates), np.exp(-rates[:, None] * T), atol=2e-5)


def test_odeint_takes_lists_of_slopes():
    t = onp.linspace(0.0, 1.0, 4)
    found = odeint(lambda y, t: [y[1], -y[0]], onp.array([0.0, 1.0]), t)
    np.testing.assert_allclose(found, np.stack([np.sin(t), np.cos(t)], -1), atol=1e-5)


def test_odeint_of_complex_states():
    y = odeint(lambda y, t: 2j * y, 1 + 0j, T)
    np.testing.assert_allclose(y, np.exp(2j * T), atol=2e-5)
    slope = olympus.grad(lambda w: odeint(lambda y, t, w: 1j * w * y, 1 + 0j, T, w)[-1].real)(2.0)
    np.testing.assert_allclose(slope, -2 * np.sin(4.0), atol=1e-4)


def test_where_odeint_does_not_get_there_it_says_nan():
    explodes = odeint(lambda y, t: y * y, 1.0, np.array([0.0, 0.5, 2.0], np.float32))
    np.testing.assert_allclose(explodes[:2], [1, 2], atol=1e-4)
    assert np.isnan(explodes[2])
    assert np.isnan(odeint(lambda y, t: -y, 1.0, T, mxstep=1)[-1])
    np.testing.assert_allclose(odeint(lambda y, t: -y, 1.0, T, hmax=0.05), np.exp(-T), atol=2e-5)


@pytest.mark.parametrize(("args", "words"), [
    ((lambda y, t: (y, y), 1.0, T), "structure of y0"),
    ((lambda y, t: onp.zeros(3), onp.ones(2), T), "shape of the state"),
    ((lambda y, t: y, "1", T), "y0"), ((lambda y, t, f: y, 1.0, T, max), "close over"),
    ((None, 1.0, T), "callable"),
])
def test_odeint_refuses_in_words(args, words):
    with pytest.raises(TypeError, match=words):
        odeint(*args)
    with pytest.raises(ValueError, match="vector"):
        odeint(lambda y, t: y, 1.0, 2.0)


# solve_ivp ---------------------------------------------------------------------------------------

def swing(t, y, rate, lib=onp):
    return lib.stack([y[1], -rate * y[0]])


def kinetics(t, y, rate=0.04, lib=onp):     # Robertson's, stiff
    slow, fast, quick = rate * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return lib.stack([fast - slow, slow - fast - quick, quick])


@pytest.mark.slow
@pytest.mark.parametrize(("method", "f", "span", "y0"), [
    *((m, partial(swing, rate=2.0), (10.0, 0.0), [1.0, 0.0]) for m in ("RK23", "RK45", "DOP853")),
    ("Radau", partial(swing, rate=2.0), (3.0, 0.0), [1.0, 0.0]),
    ("Radau", kinetics, (0.0, 1e4), [1.0, 0.0, 0.0]),
])
def test_solve_ivp_takes_the_steps_of_scipys(method, f, span, y0):
    options = {"method": method, "dense_output": True, "rtol": 1e-4, "atol": 1e-8}
    with olympus.enable_x64():
        ours, theirs = (solve(partial(f, lib=lib), span, y0, **options)
                        for solve, lib in ((solve_ivp, onp), (scipy.integrate.solve_ivp, np)))
        exact = scipy.integrate.solve_ivp(
            partial(f, lib=np), span, y0, "Radau", dense_output=True, rtol=1e-9, atol=1e-11)
        assert ours.success
        # SciPy's steps do not grow after a failure, and keep Jacobian matrices for some steps.
        assert abs(len(ours.t) - len(theirs.t)) <= max(2, 0.05 * len(theirs.t))
        assert abs(ours.nfev - theirs.nfev) <= 0.15 * theirs.nfev
        between = np.linspace(*span, 23)
        errors = [abs(x.sol(between) - exact.sol(between)).max() for x in (ours, theirs)]
        assert errors[0] <= 2 * errors[1]
        np.testing.assert_allclose(ours.sol(ours.t), ours.y, atol=1e-12)


@pytest.mark.slow
def test_derivatives_of_stiff_solutions_are_differences():
    times = [0.4, 40.0]
    exact = {rate: scipy.integrate.solve_ivp(
        partial(kinetics, rate=rate, lib=np), (0.0, 40.0), [1.0, 0.0, 0.0], "Radau",
        t_eval=times, rtol=1e-10, atol=1e-13).y[2] for rate in (0.0398, 0.04, 0.0402)}
    with olympus.enable_x64():
        def at_times(rate):
            return solve_ivp(partial(kinetics, rate=rate), (0.0, 40.0), [1.0, 0.0, 0.0], "Radau",
                             t_eval=times, rtol=1e-7, atol=1e-10, max_steps=200).y[2]
        values, slopes, bends = olympus.jit(olympus.vmap(lambda rate: (
            at_times(rate), olympus.jacrev(at_times)(rate),
            olympus.jacfwd(olympus.jacrev(at_times))(rate))))(onp.array([0.04, 0.0402]))
    np.testing.assert_allclose(values, [exact[0.04], exact[0.0402]], rtol=1e-6)
    np.testing.assert_allclose(slopes[0], (exact[0.0402] - exact[0.0398]) / 4e-4, rtol=2e-5)
    np.testing.assert_allclose(
        bends[0], (exact[0.0402] - 2 * exact[0.04] + exact[0.0398]) / 4e-8, rtol=2e-3)


def thrown(t, y, lib=onp):
    return lib.stack([y[2], y[3], 0 * y[0], 0 * y[0] - 9.8])


def landing(t, y):
    return y[1]


landing.terminal, landing.direction = True, -1
EVENTS = [landing, lambda t, y: y[3], lambda t, y: y[0] - 30, lambda t, y: y[0] - 1e3]


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    {}, {"t_eval": np.linspace(0, 100, 41)}, {"method": "DOP853", "dense_output": True},
    {"method": "Radau", "first_step": 0.1, "atol": [1e-6, 1e-7, 1e-5, 1e-4]},
], ids=["steps", "times", "dense", "stiff"])
def test_events_of_a_thrown_ball_are_scipys(options):
    with olympus.enable_x64():
        ours, theirs = (solve(partial(thrown, lib=lib), (0.0, 100.0), [0.0, 0.0, 10.0, 50.0],
                              events=EVENTS, **options)
                        for solve, lib in ((solve_ivp, onp), (scipy.integrate.solve_ivp, np)))
        assert ours.status == theirs.status == 1
        assert ours.message == theirs.message
        assert ours.t.shape == theirs.t.shape
        assert ours.t_events[0] == pytest.approx([100 / 9.8])
        for a, b in zip(ours.t_events + ours.y_events, theirs.t_events + theirs.y_events,
                        strict=True):
            np.testing.assert_allclose(a, b.reshape(a.shape), atol=1e-10)
        if ours.sol:
            times = np.linspace(0, 10.2, 13)
            np.testing.assert_allclose(ours.sol(times), theirs.sol(times), atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("terminal", [None, 3])
@pytest.mark.parametrize("direction", [0, 1, -1])
def test_events_count_changes_of_sign_in_their_direction(terminal, direction):
    def event(t, y):
        return y[0]

    event.terminal, event.direction = terminal, direction
    for span in ((0.0, 20.0), (20.0, 0.0)):
        ours, theirs = (solve(partial(swing, rate=1.0, lib=lib), span, [0.0, 1.0], events=event,
                              rtol=1e-5)
                        for solve, lib in ((solve_ivp, onp), (scipy.integrate.solve_ivp, np)))
        assert ours.status == theirs.status
        np.testing.assert_allclose(ours.t_events[0], theirs.t_events[0], atol=5e-4)
        assert ours.t[-1] == pytest.approx(theirs.t[-1], abs=5e-4)


@pytest.mark.slow
def test_the_time_of_an_event_has_derivatives_and_a_bound_under_jit():
    def flight(speed):
        found = solve_ivp(thrown, (0.0, 100.0), speed * onp.array([0.0, 0.0, 0.0, 1.0]),
                          events=landing, max_steps=40)
        assert found.t_events[0].shape == (40,)
        return found.t_events[0][:2], found.t[-1]

    speeds = onp.array([49.0, 98.0])
    (first, then), last = olympus.jit(olympus.vmap(flight, out_axes=(1, 0)))(speeds)
    np.testing.assert_allclose(first, [10, 20], rtol=1e-5)
    np.testing.assert_allclose(last, [10, 20], rtol=1e-5)
    assert onp.isnan(then).all()
    for way in (olympus.jacfwd, olympus.jacrev):
        (slope, _), moved = way(flight)(49.0)
        assert slope == pytest.approx(2 / 9.8, rel=1e-4)
        assert moved == pytest.approx(2 / 9.8, rel=1e-4)


@pytest.mark.slow
def test_a_jacobian_matrix_that_is_given_takes_the_place_of_jacfwd():
    matrix = onp.array([[-100.0, 1.0], [0.0, -0.5]])
    called = []

    def jacobian(t, y, factor):
        called.append(y.shape)
        return factor * matrix

    found = [solve_ivp(lambda t, y, factor: factor * matrix @ y, (0.0, 10.0), [1.0, 1.0], "Radau",
                       args=(1.0,), jac=jac) for jac in (jacobian, matrix, None)]
    assert set(called) == {(2,)}
    for result in found:
        np.testing.assert_allclose(result.y[:, -1], np.exp(-5) * np.array([1 / 99.5, 1]), rtol=5e-3)
        assert len(result.t) == len(found[0].t)
    with pytest.warns(UserWarning, match="'RK45' has no use"):
        solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], jac=matrix)


@pytest.mark.slow
def test_derivatives_where_each_element_has_its_tolerance():
    def end(y0):
        return solve_ivp(partial(swing, rate=1.0), (0.0, 3.0), y0, atol=[1e-4, 1e-6],
                         t_eval=[3.0]).y[0, 0]
    for way in (olympus.jacfwd, olympus.jacrev):
        np.testing.assert_allclose(way(end)(onp.array([0.5, 1.0])), [np.cos(3), np.sin(3)],
                                   atol=3e-3)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853", "Radau"])
def test_half_precision_solves_at_the_default_tolerances(method):
    found = solve_ivp(partial(swing, rate=1.0), (0.0, 10.0), onp.array([0, 1], "float16"), method)
    assert found.success
    assert found.y.dtype == "float16"
    np.testing.assert_allclose(found.y[:, -1], [np.sin(10), np.cos(10)], atol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "dtype"), [
    ("RK23", "float32"), ("DOP853", "float32"), ("RK23", "bfloat16"), ("Radau", "bfloat16"),
])
def test_solve_ivp_keeps_narrow_floats(method, dtype):
    rtol = 0.03 if dtype == "bfloat16" else 1e-3
    found = solve_ivp(partial(swing, rate=2.0), (0.0, 3.0), onp.array([1, 0], dtype), method,
                      dense_output=True, rtol=rtol, atol=1e-3)
    assert found.success
    assert found.y.dtype == found.sol(1.0).dtype == dtype
    times = np.linspace(0, 3, 31)
    np.testing.assert_allclose(np.asarray(found.sol(times)[0], float), np.cos(2 ** 0.5 * times),
                               atol=0.2 if dtype == "bfloat16" else 0.01)


def test_derivatives_of_solve_ivp_with_and_without_steps_of_its_own():
    exact = -np.sin(np.sqrt(2) * 3) * 3 / (2 * np.sqrt(2))
    steps = {"dense_output": True, "rtol": 1e-5, "max_steps": 64}
    for options in (steps, {"t_eval": [3.0], "rtol": 1e-6, "atol": 1e-7}):
        def end(rate, options=options):
            found = solve_ivp(swing, (0.0, 3.0), [1.0, 0.0], args=(rate,), **options)
            return found.sol(3.0)[0] if found.sol else found.y[0, 0]
        for way in (olympus.grad, olympus.jacfwd):
            np.testing.assert_allclose(olympus.jit(way(end))(2.0), exact, rtol=1e-3)


@pytest.mark.slow
def test_solve_ivp_says_what_it_cannot():
    with pytest.raises(ValueError, match="max_steps= is required"):
        olympus.jit(lambda y: solve_ivp(lambda t, y: y, (0.0, 1.0), y).y)(onp.ones(1))
    for atol in ([1e-3], -1e-3):
        with pytest.raises(ValueError, match="atol"):
            solve_ivp(lambda t, y: y, (0.0, 1.0), [1.0, 2.0], atol=atol)
    with pytest.raises(ValueError, match="first_step 2.0 given"):
        solve_ivp(lambda t, y: y, (0.0, 1.0), [1.0], first_step=2.0)
    with pytest.raises(ValueError, match=r"jac is float32\[1\]; a square matrix of 1 rows"):
        solve_ivp(lambda t, y: y, (0.0, 1.0), [1.0], "Radau", jac=[1.0])
    with pytest.raises(TypeError, match=r"an event returned float32\[2\]"):
        solve_ivp(lambda t, y: y, (0.0, 1.0), [1.0, 2.0], events=lambda t, y: y)
    with pytest.raises(NotImplementedError, match="'Radau' is"):
        solve_ivp(lambda t, y: y, (0.0, 1.0), [1.0], method="BDF")
    with pytest.raises(ValueError, match="RK23, RK45, DOP853, Radau"):
        solve_ivp(lambda t, y: y, (0.0, 1.0), [1.0], method="Euler")
    with pytest.raises(ValueError, match="real states"):
        solve_ivp(lambda t, y: y, (0.0, 1.0), [1j], method="Radau")
    with pytest.raises(ValueError, match="max_steps= is required"):     # closed over
        olympus.vmap(lambda a: solve_ivp(lambda t, y: a * y, (0.0, 1.0), [1.0]).y)(onp.ones(2))
    found = solve_ivp(lambda t, y: y * y, (0.0, 2.0), [1.0])
    assert not found.success
    assert "not reached" in found.message


# Integrals ---------------------------------------------------------------------------------------

@pytest.mark.parametrize(("f", "a", "b", "exact"), [
    (lambda x: onp.exp(-x * x), -np.inf, np.inf, np.sqrt(np.pi)),
    (lambda x: 1 / (1 + x * x), 1.0, np.inf, np.pi / 4), (onp.exp, -np.inf, 1.0, np.e),
    (lambda x: abs(x - 0.3), 0.0, 1.0, 0.29), (onp.sin, 2.0, 0.0, np.cos(2) - 1),
    (lambda x: 1 / onp.sqrt(x), 0.0, 1.0, 2.0), (lambda x: onp.exp(1j * x), 0.0, np.pi, 2j),
    (lambda x: onp.exp(-x * x), np.inf, -np.inf, -np.sqrt(np.pi)),
])
def test_quad_finds_known_integrals_and_how_well(f, a, b, exact):
    with olympus.enable_x64():
        found, error = quad(f, a, b)
        assert abs(found - exact) <= 2 * error + 1e-13
        assert error < 3e-8


def test_derivatives_of_quad_and_gauss():
    def area(c, b):
        return quad(lambda x: onp.cos(c * x), 0.0, b)[0]
    exact = [np.cos(2) / 2 - np.sin(2) / 4, np.cos(2)]
    for way in (olympus.grad, olympus.jacfwd):
        found = olympus.jit(way(area, (0, 1)))(2.0, 1.0)
        np.testing.assert_allclose(found, exact, atol=1e-5)
    rows = olympus.vmap(area, (0, None))(onp.array([1.0, 2.0]), 1.0)
    np.testing.assert_allclose(rows, [np.sin(1), np.sin(2) / 2], atol=1e-5)
    np.testing.assert_allclose(fixed_quad(lambda x: x ** 9, 0.0, 2.0)[0], 2 ** 10 / 10, rtol=1e-5)
    with pytest.raises(ValueError, match="interval"):
        quad(onp.sin, np.inf, np.inf)


# Minima and roots --------------------------------------------------------------------------------

def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Newton-CG",
                                    "l-bfgs-experimental-do-not-rely-on-this"])
def test_minimize_finds_the_end_of_rosenbrocks_valley(method):
    with olympus.enable_x64():
        found = minimize(rosenbrock, np.zeros(6), method=method)
        assert found.success and found.status == 0
        assert abs(found.jac).max() <= 1e-5
        np.testing.assert_allclose(found.x, 1, atol=1e-4)


def test_bfgs_learns_the_inverse_of_the_hessian():
    a = onp.array([[3.0, 1, 0], [1, 2, 0.5], [0, 0.5, 1]])
    found = minimize(lambda x: x @ a @ x / 2 + x[0], onp.ones(3), method="BFGS")
    np.testing.assert_allclose(found.hess_inv @ a, np.eye(3), atol=0.05)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Newton-CG"])
def test_the_minimum_has_the_derivatives_of_the_equation_it_satisfies(method):
    def lowest(a):
        return minimize(lambda x: (a - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2, onp.zeros(2),
                        method=method).x
    with olympus.enable_x64():
        for jacobian in (olympus.jacfwd, olympus.jacrev):
            np.testing.assert_allclose(jacobian(lowest)(1.5), [1, 3], atol=1e-3)
        both = olympus.jit(olympus.vmap(lowest))(onp.array([0.5, 1.5]))
        np.testing.assert_allclose(both, [[0.5, 0.25], [1.5, 2.25]], atol=1e-4)


def test_bounds_hold_and_have_derivatives():
    def lowest(low, centre):
        def f(x):
            return ((x - centre) ** 2).sum() + x[0] * x[1]
        return minimize(f, onp.zeros(3), method="L-BFGS-B", bounds=(low, 1.0)).x
    centre = onp.array([-2.0, 0.3, 4.0])
    np.testing.assert_allclose(lowest(-0.5, centre), [-0.5, 0.55, 1.0], atol=1e-5)
    by_low, by_centre = olympus.jacobian(lowest, (0, 1))(-0.5, centre)
    np.testing.assert_allclose(by_low, [1, -0.5, 0], atol=1e-5)
    np.testing.assert_allclose(by_centre, np.diag([0, 1, 0]), atol=1e-5)


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "Newton-CG"])
def test_minimize_of_complex_numbers(method):
    """|z² - c|² + |z - 2i|² has its minimum for c = -4 at 2i."""
    def fun(z, c):
        return (onp.abs(z ** 2 - c) ** 2 + onp.abs(z - 2j) ** 2).sum()

    guess = onp.array([1 + 1j, 0.5 + 3j])
    found = minimize(fun, guess, (-4.0,), method=method)
    np.testing.assert_allclose(found.x, [2j, 2j], atol=1e-4)
    early = minimize(fun, guess, (-4.0,), method=method, options={"maxiter": 1})
    np.testing.assert_allclose(early.jac, olympus.grad(fun)(early.x, -4.0), rtol=1e-4)


def test_minimize_takes_pytrees_and_says_what_it_takes():
    found = minimize(lambda p, c: (p["a"] - c) ** 2 + (p["b"] ** 2).sum(),
                     {"a": 0.0, "b": onp.ones((2, 2))}, (3.0,), method="BFGS", tol=1e-6)
    np.testing.assert_allclose(found.x["a"], 3, atol=1e-5)
    assert found.x["b"].shape == found.jac["b"].shape == (2, 2)
    stopped = minimize(rosenbrock, onp.zeros(4), method="bfgs", options={"maxiter": 2})
    assert (stopped.status, stopped.nit, bool(stopped.success)) == (1, 2, False)
    for options, words in (({"method": "Powell"}, "method"),
                           ({"method": "BFGS", "options": {"gtoll": 1}}, "gtoll"),
                           ({"method": "BFGS", "bounds": (0, 1)}, "bounds")):
        with pytest.raises(ValueError, match=words):
            minimize(rosenbrock, onp.zeros(2), **options)
    with pytest.raises(TypeError, match="bounds and x0 of dtype complex64"):
        minimize(rosenbrock, onp.zeros(2, complex), method="L-BFGS-B", bounds=(0, 1))
    with pytest.raises(TypeError, match="real scalar"):
        minimize(lambda x: x, onp.zeros(2), method="BFGS")


RNG = np.random.default_rng(0)
TIMES = np.linspace(0, 3, 15)
DATA = 2 * np.exp(-1.3 * TIMES) + 0.5 + 0.05 * RNG.normal(size=15) + (np.arange(15) == 3)


def residuals(x, weights=1, lib=onp):
    return weights * (x[0] * lib.exp(-x[1] * TIMES) + x[2] - DATA)


@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.0, 1.5)], ids=["free", "bounded"])
@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy", "arctan"])
def test_least_squares_are_scipys(loss, bounds):
    with olympus.enable_x64():
        ours = least_squares(residuals, np.ones(3), loss=loss, f_scale=0.1, bounds=bounds)
        theirs = scipy.optimize.least_squares(partial(residuals, lib=np), np.ones(3), loss=loss,
                                              f_scale=0.1, bounds=bounds)
        assert ours.success
        np.testing.assert_allclose(ours.cost, theirs.cost, rtol=1e-6)
        np.testing.assert_allclose(ours.x, theirs.x, atol=3e-4)


def test_derivatives_of_least_squares_are_differences():
    def fit(weights):
        return least_squares(partial(residuals, weights=weights), onp.ones(3), loss="cauchy",
                             f_scale=0.1, gtol=1e-12, ftol=0.0).x
    with olympus.enable_x64():
        step = 1e-4 * np.eye(15)[4]
        slope = (fit(1 + step) - fit(1 - step)) / 2e-4
        for jacobian in (olympus.jacfwd, olympus.jacrev):
            np.testing.assert_allclose(jacobian(fit)(onp.ones(15))[:, 4], slope, atol=1e-5)


def test_roots_and_their_derivatives():
    def point(r):
        return root(lambda x: onp.array([x[0] - x[1], x @ x - r * r]), onp.array([1.0, 2.0])).x
    np.testing.assert_allclose(point(2.0), [2 ** 0.5] * 2, rtol=1e-6)
    np.testing.assert_allclose(olympus.jacobian(point)(2.0), [0.5 ** 0.5] * 2, rtol=1e-5)
    np.testing.assert_allclose(olympus.jacfwd(olympus.jacrev(lambda a: root(
        lambda x: x * x - a, 3.0).x))(4.0), -1 / 32, rtol=1e-4)
    found = root(lambda p: {"a": p["a"] ** 2 - 2}, {"a": onp.ones((2, 2))})
    assert found.success and found.x["a"].shape == (2, 2)
    assert not root(lambda x: x * x + 1, onp.array([3.0])).success
    with pytest.raises(TypeError, match="as many elements"):
        root(lambda x: x[:1], onp.ones(2))
