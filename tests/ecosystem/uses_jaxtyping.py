"""jaxtyping: shapes in annotations, checked by beartype, under jit and vmap, and in dataclasses."""

import dataclasses

import jax
import jax.numpy as jnp
from beartype import beartype
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree, Scalar, jaxtyped


@jaxtyped(typechecker=beartype)
def attend(query: Float[Array, "queries dim"], keys: Float[Array, "keys dim"],
           values: Float[Array, "keys out"]) -> Float[Array, "queries out"]:
    weights: Float[Array, "queries keys"] = jax.nn.softmax(query @ keys.T, axis=-1)
    return weights @ values


@jaxtyped(typechecker=beartype)
def total(tree: PyTree[Float[Array, "..."]]) -> Scalar:
    return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(tree))


@jaxtyped(typechecker=beartype)
@dataclasses.dataclass
class Batch:
    images: Float[Array, "batch height width"]
    labels: Int[Array, " batch"]


@jaxtyped(typechecker=beartype)
def noise(key: PRNGKeyArray, n: int) -> Float[Array, " {n}"]:
    return jax.random.normal(key, (n,))


def refused(function, *args):
    try:
        function(*args)
    except Exception as error:
        return type(error).__name__
    return "nothing"


def main():
    q, k, v = (jnp.sin(jnp.arange(float(n * m))).reshape(n, m) for n, m in ((2, 3), (4, 3), (4, 5)))
    gradient = jax.grad(lambda q: attend(q, k, v).sum())(q)
    return {"attended": jax.jit(attend)(q, k, v), "gradient": gradient,
            "mapped": jax.vmap(attend, in_axes=(0, None, None))(jnp.stack([q, -q]), k, v)[1],
            "total": total({"a": q, "b": (k, v)}), "noise": noise(jax.random.key(0), 3),
            "batch": len(Batch(jnp.zeros((2, 3, 3)), jnp.zeros(2, int)).labels),
            "refused": [refused(attend, q, k, v[:3]), refused(total, {"a": 1}),
                        refused(jax.jit(attend), q, k.T, v),
                        refused(Batch, jnp.zeros((2, 3, 3)), jnp.zeros(3, int))],
            "isinstance": [isinstance(q, Float[Array, "2 3"]), isinstance(q, Float[Array, "3 3"]),
                           isinstance(q, Int[Array, "..."])]}
