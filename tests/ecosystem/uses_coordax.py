"""coordax: arrays with labelled axes, mapped over by name, differentiated and scanned."""

import coordax as cx
import jax
import jax.numpy as jnp


def main():
    x = cx.LabeledAxis("x", jnp.linspace(0, 1, 4))
    y = cx.SizedAxis("y", 3)
    field = cx.wrap(jnp.arange(12.0).reshape(4, 3), x, y)
    other = cx.wrap(jnp.array([1.0, -1.0, 2.0]), y)

    def energy(data):
        f = cx.wrap(data, x, y)
        return cx.cmap(jnp.sum)((cx.cmap(jnp.sin)(f) * other).untag(x, y)).data

    scaled = cx.cmap(lambda row, w: jnp.dot(row, w))(field.untag(y), other.untag(y))
    carried, _ = jax.lax.scan(lambda c, _: (c + 0.5 * c * other, None), field, None, length=3)
    return {"dims": list(scaled.dims), "scaled": scaled.data,
            "broadcast": (field + other).order_as("y", "x").data,
            "gradient": jax.jit(jax.grad(energy))(field.data), "carried": carried.data,
            "cumulated": cx.cmap(jnp.cumsum)(field.untag("x")).tag("x").data,
            "ticks": (field * x.fields["x"]).data,
            "leaves": [leaf.shape[0] for leaf in jax.tree.leaves(field)]}
