"""Chex: dataclasses as pytrees, assertions on shapes, types, traces and trees, variants of jit."""

import chex
import jax
import jax.numpy as jnp


@chex.dataclass(frozen=True)
class Particles:
    position: chex.Array
    velocity: chex.Array


@jax.jit
@chex.assert_max_traces(n=1)
def move(particles, dt):
    chex.assert_rank([particles.position, particles.velocity], 2)
    chex.assert_equal_shape([particles.position, particles.velocity])
    chex.assert_type(dt, float)
    force = jax.grad(lambda x: -0.5 * jnp.sum(x**2))(particles.position)
    velocity = particles.velocity + dt * force
    return particles.replace(position=particles.position + dt * velocity, velocity=velocity)


def refused(check, *args, **kwargs):
    try:
        check(*args, **kwargs)
    except AssertionError:
        return True
    return False


def main():
    start = Particles(position=jnp.ones((5, 2)), velocity=jnp.zeros((5, 2)))
    particles = start
    for _ in range(20):
        particles = move(particles, 0.1)
    chex.assert_trees_all_equal_shapes_and_dtypes(start, particles)
    chex.assert_tree_all_finite(particles)
    chex.assert_shape(particles.position, (None, 2))
    chex.assert_tree_is_on_device(particles, platform="cpu")
    with chex.fake_pmap_and_jit():
        doubled = jax.jit(lambda p: jax.tree.map(lambda x: 2 * x, p))(particles)
    chex.assert_numerical_grads(lambda x: jnp.sum(jnp.sin(x)), (jnp.ones(3),), order=1)
    return {"position": particles.position[0], "velocity": particles.velocity[0],
            "doubled": doubled.position[0], "leaves": len(jax.tree.leaves(particles)),
            "refused": [refused(chex.assert_shape, start.position, (2, 5)),
                        refused(chex.assert_trees_all_close, start, particles),
                        refused(chex.assert_scalar, jnp.ones(2)),
                        refused(chex.assert_axis_dimension, start.position, 0, 5)]}
