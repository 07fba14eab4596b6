"""Regression by a Gaussian process whose length scale and noise are learned.

    python examples/gaussian_process.py    ten seconds; draws gaussian_process.png

Twenty-five noisy values of a curve, a covariance that falls with distance, and the marginal
likelihood of its three parameters, which L-BFGS makes as large as it can. The prediction is a
normal distribution at every place: its mean, and a band of two standard deviations.
"""

import argparse

import matplotlib

matplotlib.use("Agg")  # a file is all we draw, so no display is needed

import matplotlib.pyplot as plt

import olympus
import olympus.numpy as onp
from olympus import random
from olympus.scipy.linalg import cho_factor, cho_solve
from olympus.scipy.optimize import minimize

olympus.config.update("olympus_enable_x64", True)  # covariances are nearly singular


def curve(x):
    """What is to be found."""
    return onp.sin(3 * x) + 0.5 * x


def covariance(x, y, params):
    """[len(x), len(y)]: the squared exponential of distances in units of the length scale."""
    distances = (x[:, None] - y) / onp.exp(params["length"])
    return onp.exp(2 * params["height"] - 0.5 * distances**2)


def factor(x, params):
    """Cholesky's factor of the covariance of the values at x, noise included."""
    noise = onp.exp(2 * params["noise"]) * onp.eye(len(x))
    return cho_factor(covariance(x, x, params) + noise, lower=True)


def surprise(params, x, y):
    """The negative logarithm of the values' probability."""
    root = factor(x, params)
    logdet = 2 * onp.log(onp.diag(root[0])).sum()
    return 0.5 * (y @ cho_solve(root, y) + logdet + len(x) * onp.log(2 * onp.pi))


@olympus.jit
def predict(params, x, y, at):
    """Means and standard deviations of the curve."""
    root, cross = factor(x, params), covariance(at, x, params)
    mean = cross @ cho_solve(root, y)
    explained = onp.sum(cross.T * cho_solve(root, cross.T), axis=0)
    return mean, onp.sqrt(onp.exp(2 * params["height"]) - explained)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="gaussian_process.png")
    options = parser.parse_args()
    places, noise = random.split(random.key(1))
    x = random.uniform(places, (25,), minval=-2.0, maxval=2.0)
    y = curve(x) + 0.15 * random.normal(noise, x.shape)
    start = {"length": 0.0, "height": 0.0, "noise": -1.0}
    found = minimize(surprise, start, (x, y), method="L-BFGS-B")
    learned = {name: float(onp.exp(v)) for name, v in found.x.items()}
    print(f"surprise {surprise(start, x, y):.2f} -> {found.fun:.2f} in {found.nit} iterations")
    print(", ".join(f"{name} {value:.3f}" for name, value in learned.items()))
    at = onp.linspace(-2.5, 2.5, 300)
    mean, deviation = predict(found.x, x, y, at)
    inside = onp.abs(mean - curve(at)) <= 2 * deviation
    print(f"the curve is within two deviations at {100 * inside.mean():.0f} % of places")
    figure, axes = plt.subplots(figsize=(7, 4))
    axes.fill_between(at, mean - 2 * deviation, mean + 2 * deviation, color="0.88",
                      label="two deviations")
    axes.plot(at, mean, label="mean")
    axes.plot(at, curve(at), "--", color="0.4", label="truth")
    axes.plot(x, y, "k.", label="data")
    axes.set(xlabel="x", ylabel="y", title="Gaussian process")
    axes.legend()
    figure.tight_layout()
    figure.savefig(options.output, dpi=120)
    print(f"drew {options.output}")


if __name__ == "__main__":
    main()
