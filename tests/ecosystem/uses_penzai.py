"""penzai: named axes, a network of its layers, parameters selected, replaced and trained."""

import jax
import jax.numpy as jnp
from penzai import pz


def main():
    named = pz.nx.wrap(jnp.arange(12.0).reshape(3, 4)).tag("row", "column")
    weights = pz.nx.wrap(jnp.array([1.0, -1.0, 0.5, 2.0])).tag("column")
    dot = pz.nx.nmap(jnp.dot)(named.untag("column"), weights.untag("column"))
    net = pz.nn.Sequential([
        pz.nn.Affine.from_config("in", jax.random.key(0), {"feature": 4}, {"feature": 8}),
        pz.nn.Elementwise(jnp.tanh),
        pz.nn.Affine.from_config("out", jax.random.key(1), {"feature": 8}, {"feature": 2})])
    model, variables = pz.unbind_params(net, freeze=True)
    x = pz.nx.wrap(jnp.linspace(-1, 1, 12).reshape(3, 4)).tag("batch", "feature")

    def loss(variables):
        out = pz.bind_variables(model, variables)(x)
        return pz.nx.nmap(lambda a: jnp.mean(a ** 2))(out.untag("batch", "feature")).unwrap()

    value, gradient = jax.jit(jax.value_and_grad(loss))(variables)
    doubled = pz.select(net).at_instances_of(pz.nn.Elementwise).apply(
        lambda layer: pz.nn.Elementwise(jnp.sin))
    return {"dot": dot.unwrap("row"), "sum": (named + weights).unwrap("column", "row"),
            "out": net(x).unwrap("batch", "feature"), "sin": doubled(x).unwrap("batch", "feature"),
            "loss": value, "gradients": [jnp.sum(leaf ** 2) for leaf in jax.tree.leaves(gradient)]}
