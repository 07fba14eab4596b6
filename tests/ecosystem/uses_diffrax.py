"""Diffrax: predators and prey by an adaptive solver, gradients through it, and a noisy equation."""

import diffrax
import jax
import jax.numpy as jnp

TOLERANCES = {"solution": 1e-3, "losses": 1e-2}     # steps depend on the last bit


def populations(t, y, args):
    prey, predators = y
    a, b, c, d = args
    return jnp.array([a * prey - b * prey * predators, c * prey * predators - d * predators])


def solve(args, times):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(populations), diffrax.Tsit5(), t0=0., t1=5., dt0=0.1,
        y0=jnp.array([2., 1.]), args=args, saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6)).ys


def noisy(key):
    brownian = diffrax.VirtualBrownianTree(0., 1., tol=1e-2, shape=(2,), key=key)
    terms = diffrax.MultiTerm(diffrax.ODETerm(lambda t, y, args: -y),
                              diffrax.ControlTerm(lambda t, y, args: 0.2 * jnp.eye(2), brownian))
    return diffrax.diffeqsolve(terms, diffrax.Heun(), 0., 1., dt0=0.05, y0=jnp.ones(2)).ys[-1]


def main():
    times = jnp.linspace(0., 5., 6)
    truth = jnp.array([1.1, 0.4, 0.1, 0.4])
    data = solve(truth, times)

    @jax.jit
    @jax.value_and_grad
    def loss(args):
        return jnp.mean((jnp.log(solve(args, times)) - jnp.log(data)) ** 2)

    args, losses = truth * 1.05, []
    for _ in range(5):
        value, gradient = loss(args)
        losses.append(value)
        args -= 0.002 * gradient
    return {"solution": data, "losses": losses, "args": args,
            "noisy": jax.jit(jax.vmap(noisy))(jax.random.split(jax.random.PRNGKey(0), 3))}
