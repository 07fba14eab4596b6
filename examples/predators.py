"""Fit a differential equation to data by gradient descent: predators and their prey.

    python examples/predators.py           half a minute on two cores; draws predators.png

Lotka and Volterra's equation has four rates. From noisy counts of both animals at forty times, the
rates are found by descending the gradient of the misfit, which goes through the solver of the
equation as an equation of its own (the adjoint), and through no step that the solver took.
"""

import argparse

import matplotlib

matplotlib.use("Agg")  # a file is all we draw, so no display is needed

import matplotlib.pyplot as plt
import numpy as np

import olympus
import olympus.numpy as onp
from olympus import random
from olympus.example_libraries import optimizers
from olympus.experimental.ode import odeint

RATES = onp.array([1.1, 0.4, 0.4, 0.1])  # births, hunting, deaths, gain of a hunt
START = onp.array([10.0, 5.0])
TIMES = onp.linspace(0.0, 15.0, 40)


def growth(counts, time, rates):
    """How fast prey and predators multiply."""
    prey, hunters = counts
    births, hunting, deaths, gain = rates
    return onp.array([(births - hunting * hunters) * prey, (gain * prey - deaths) * hunters])


def counts_at(log_rates, times):
    """[times, 2]: rates are positive, so their logarithms are what is learned."""
    return odeint(growth, START, times, onp.exp(log_rates), rtol=1e-4, atol=1e-4)


@olympus.jit
def misfit(log_rates, data):
    """The mean squared error of the logarithms, in which noise is even."""
    return onp.mean((onp.log(counts_at(log_rates, TIMES)) - onp.log(data)) ** 2)


def fit(data, steps):
    """Rates by Adam from a rough guess, and the misfit on the way."""
    init, update, get = optimizers.adam(optimizers.exponential_decay(0.1, steps // 2, 0.2))
    slope = olympus.jit(olympus.value_and_grad(misfit))
    state, history = init(onp.log(onp.array([1.0, 0.5, 0.5, 0.08]))), []
    for i in range(steps):
        loss, gradient = slope(get(state), data)
        state = update(i, gradient, state)
        history.append(float(loss))
    return onp.exp(get(state)), history


def draw(data, rates, path):
    """Counts as points, the fitted curve beyond the data, and a phase portrait."""
    long = onp.linspace(0.0, 25.0, 400)
    curve = np.asarray(counts_at(onp.log(rates), long))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    for k, (name, colour) in enumerate((("prey", "tab:green"), ("predators", "tab:red"))):
        left.plot(TIMES, data[:, k], "o", color=colour, markersize=3)
        left.plot(long, curve[:, k], color=colour, label=name)
    left.axvspan(15, 25, color="0.93")
    left.set(xlabel="time", ylabel="count", title="fitted, and foretold (grey)")
    left.legend()
    right.plot(*curve.T, color="tab:blue")
    right.plot(*data.T, "o", color="0.5", markersize=3)
    right.set(xlabel="prey", ylabel="predators", title="the cycle")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--output", default="predators.png")
    options = parser.parse_args()
    noise = 0.05 * random.normal(random.key(0), (len(TIMES), 2))
    data = counts_at(onp.log(RATES), TIMES) * onp.exp(noise)
    rates, history = fit(data, options.steps)
    print(f"misfit {history[0]:.4f} -> {history[-1]:.4f}")
    for name, found, true in zip(("births", "hunting", "deaths", "gain"), rates, RATES):
        print(f"{name:8} {found:.3f}  (true {true:.3f})")
    draw(data, rates, options.output)
    print(f"drew {options.output}")


if __name__ == "__main__":
    main()
