"""e3nn-jax: spherical harmonics, tensor products, an equivariant layer and its gradient."""

import e3nn_jax as e3nn
import flax
import jax
import jax.numpy as jnp


class Layer(flax.linen.Module):
    @flax.linen.compact
    def __call__(self, positions, features):
        edges = positions[:, None] - positions[None]
        harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", edges, True)
        messages = e3nn.tensor_product(features[:, None], harmonics, filter_ir_out="0e + 1o + 1e")
        hidden = e3nn.flax.Linear("4x0e + 2x1o")(e3nn.mean(messages, axis=1))
        return e3nn.norm_activation(hidden, [jax.nn.gelu, None])


def main():
    keys = jax.random.split(jax.random.key(0), 3)
    positions = jax.random.normal(keys[0], (5, 3))
    features = e3nn.normal("2x0e + 1o", keys[1], (5,))
    layer = Layer()
    params = layer.init(keys[2], positions, features)
    out = jax.jit(layer.apply)(params, positions, features)
    angles = 0.3, 0.7, -0.4
    turned = layer.apply(params, positions @ e3nn.angles_to_matrix(*angles).T,
                         features.transform_by_angles(*angles))
    difference = jnp.abs(turned.array - out.transform_by_angles(*angles).array).max()
    forces = jax.grad(lambda p: e3nn.sum(layer.apply(params, p, features)).array[:4].sum())
    product = e3nn.elementwise_tensor_product(
        e3nn.normal("1o", keys[0]), e3nn.normal("1o", keys[1]))
    return {"out": out.array, "irreps": str(out.irreps), "equivariant": bool(difference < 1e-4),
            "forces": forces(positions), "product": product.array,
            "of types": str(e3nn.tensor_product("1o", "2e")),
            "clebsch gordan": e3nn.clebsch_gordan(1, 1, 2), "wigner":
            e3nn.Irrep("2e").D_from_angles(*angles), "gate": e3nn.gate(
                e3nn.normal("3x0e + 2x1o", keys[2])).array,
            "sphere": e3nn.to_s2grid(e3nn.normal("0e + 1o", keys[0]), 6, 7,
                                     quadrature="gausslegendre").grid_values}
