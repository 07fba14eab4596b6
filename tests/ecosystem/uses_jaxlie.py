"""jaxlie: rigid motions, their exponentials and derivatives; poses found by gradient steps."""

import jax
import jax.numpy as jnp
import jaxlie


def main():
    keys = jax.random.split(jax.random.key(0), 3)
    twists = jax.random.normal(keys[0], (4, 6))
    poses = jax.vmap(jaxlie.SE3.exp)(twists)
    points = jax.random.normal(keys[1], (8, 3))
    target = jaxlie.SE3.exp(twists[0])
    observed = jax.vmap(target.apply)(points)

    def loss(pose):
        return jnp.mean((jax.vmap(pose["camera"].apply)(points) - observed) ** 2)

    @jax.jit
    def step(pose, _):
        value, gradient = jaxlie.manifold.value_and_grad(loss)(pose)
        moved = jaxlie.manifold.rplus(pose, jax.tree.map(lambda g: -0.3 * g, gradient))
        return jaxlie.manifold.normalize_all(moved), value

    found, losses = jax.lax.scan(step, {"camera": jaxlie.SE3.identity()}, None, length=40)
    plane = jaxlie.SE2.from_xy_theta(1.0, 2.0, 0.5)
    turn = jaxlie.SO3.sample_uniform(keys[2])
    return {"matrices": poses.as_matrix(), "adjoints": jax.vmap(lambda p: p.adjoint())(poses),
            "back": jax.vmap(lambda p: p.log())(poses) - twists,
            "relative": (poses.inverse() @ target).log(), "losses": losses[::10],
            "found": found["camera"].parameters(), "plane": (plane @ plane.inverse()).parameters(),
            "rotation": jaxlie.SO2.from_radians(0.4).as_matrix(), "turn": turn.as_matrix(),
            "angles": list(turn.as_rpy_radians()),
            "jacobian": jax.jacfwd(lambda t: jaxlie.SO3.exp(t).as_matrix())(twists[0, 3:])}
