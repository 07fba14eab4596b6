"""One training program of a library, timed by itself: import, first step, steady state.

    python -m olympus.as_jax tools/ecosystem_training.py linen|equinox|numpyro

Prints three CPU times of the process: seconds until the imports are done, since it started; seconds
of making the model and of the first step, which compiles; seconds of a step after that, the least
of ten averages.
`tools/ecosystem_times.py` runs it on Olympus and on jax by turns.
"""

import sys
import time

STEPS = {"linen": 10, "equinox": 40, "numpyro": 40}     # per average


def linen():
    """A convolutional classifier of Flax's, with Adam of Optax's."""
    import flax.linen as nn
    import jax
    import jax.numpy as jnp
    import optax
    from flax.training.train_state import TrainState

    class Network(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.avg_pool(nn.relu(nn.Conv(16, (3, 3))(x)), (2, 2), strides=(2, 2))
            x = nn.avg_pool(nn.relu(nn.Conv(32, (3, 3))(x)), (2, 2), strides=(2, 2))
            x = nn.relu(nn.Dense(64)(x.reshape(len(x), -1)))
            return nn.Dense(10)(x)

    yield
    x = jax.random.normal(jax.random.key(0), (32, 28, 28, 1))
    y = jnp.arange(32) % 10
    network = Network()
    state = TrainState.create(apply_fn=network.apply, tx=optax.adam(1e-3),
                              params=network.init(jax.random.key(1), x)["params"])

    @jax.jit
    def step(state, x, y):
        def loss(params):
            logits = state.apply_fn({"params": params}, x)
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()
        value, grads = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=grads), value

    while True:
        state, value = step(state, x, y)
        yield value


def equinox():
    """A perceptron of Equinox's, its loss and step filtered, with AdamW of Optax's."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    yield
    model = eqx.nn.MLP(16, 1, 128, 4, activation=jax.nn.gelu, key=jax.random.key(0))
    optimizer = optax.chain(optax.clip_by_global_norm(1.), optax.adamw(1e-3))
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    x = jax.random.normal(jax.random.key(1), (128, 16))
    y = jnp.sin(x.sum(-1, keepdims=True))

    @eqx.filter_value_and_grad
    def loss(model, x, y):
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    @eqx.filter_jit
    def step(model, state, x, y):
        value, grads = loss(model, x, y)
        updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_inexact_array))
        return eqx.apply_updates(model, updates), state, value

    while True:
        model, state, value = step(model, state, x, y)
        yield value


def numpyro():
    """Stochastic variational inference of a regression with two levels, by NumPyro."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    def model(x, group, y):
        mean = numpyro.sample("mean", dist.Normal(0., 5.))
        spread = numpyro.sample("spread", dist.HalfNormal(2.))
        with numpyro.plate("groups", 8):
            offset = numpyro.sample("offset", dist.Normal(mean, spread))
        w = numpyro.sample("w", dist.Normal(jnp.zeros(6), 1.).to_event(1))
        noise = numpyro.sample("noise", dist.Gamma(2., 2.))
        with numpyro.plate("rows", len(x)):
            numpyro.sample("y", dist.StudentT(4., x @ w + offset[group], noise), obs=y)

    yield
    x = jax.random.normal(jax.random.key(0), (512, 6))
    group = jnp.arange(512) % 8
    y = x.sum(-1) + group
    svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(1e-2), Trace_ELBO(num_particles=4))
    state = svi.init(jax.random.key(1), x, group, y)
    step = jax.jit(svi.update)
    while True:
        state, value = step(state, x, group, y)
        yield value


def main(name):
    training = globals()[name]()
    next(training)
    imported = time.process_time()
    next(training).block_until_ready()
    first = time.process_time() - imported
    steady = []
    for _ in range(10):
        start = time.process_time()
        for _ in range(STEPS[name]):
            value = next(training)
        value.block_until_ready()
        steady.append((time.process_time() - start) / STEPS[name])
    assert abs(float(value)) < 1e6, value
    print(imported, first, min(steady))


if __name__ == "__main__":
    main(sys.argv[1])
