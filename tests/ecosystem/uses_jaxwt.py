"""jaxwt: wavelet transforms of one and two dimensions and their inverses, gradients."""

import jax
import jax.numpy as jnp
import jaxwt


def main():
    keys = jax.random.split(jax.random.key(0), 2)
    signal, image = jax.random.normal(keys[0], (2, 32)), jax.random.normal(keys[1], (1, 16, 16))
    bands = jaxwt.wavedec(signal, "db3", level=3, mode="reflect")
    plane = jaxwt.wavedec2(image, "haar", level=2)
    scales, frequencies = jaxwt.cwt(signal[0], jnp.arange(1.0, 5.0), "mexh")
    return {"bands": list(bands), "back": jaxwt.waverec(bands, "db3")[:, :32] - signal + 1,
            "plane": plane[0], "details": list(plane[1]), "image": jaxwt.waverec2(plane, "haar"),
            "continuous": scales.real, "frequencies": frequencies,
            "gradient": jax.grad(lambda x: jnp.sum(jnp.abs(jaxwt.wavedec(
                x, "sym4", level=2)[-1])))(signal)}
