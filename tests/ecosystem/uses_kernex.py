"""kernex: stencils by decorated functions, with padding and strides, and their derivatives."""

import jax
import jax.numpy as jnp
import kernex as kex


def main():
    x = jnp.sin(jnp.arange(30.0)).reshape(5, 6)

    @kex.kmap(kernel_size=(3, 3), padding="same", relative=True)
    def laplace(x):
        return x[0, 1] + x[0, -1] + x[1, 0] + x[-1, 0] - 4 * x[0, 0]

    @kex.kmap(kernel_size=(2, 2), strides=(2, 2))
    def largest(x):
        return jnp.max(x)

    return {"laplace": laplace(x), "largest": largest(x[:4]),
            "gradient": jax.grad(lambda x: (laplace(x) ** 2).sum())(x),
            "jitted": jax.jit(laplace)(x)}
