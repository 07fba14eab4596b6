"""einshape: reshapes and transposes in one string."""

import jax
import jax.numpy as jnp
from einshape import jax_einshape as einshape


def main():
    x = jnp.arange(24.0).reshape(2, 3, 4)
    return {"merged": einshape("abc->(ab)c", x), "turned": einshape("abc->c(ba)", x),
            "split": einshape("(ab)c->bca", x.reshape(6, 4), a=2),
            "spread": einshape("ab->anb", x[0], n=3),
            "jitted": jax.jit(lambda v: einshape("a(bc)->cba", v, b=2))(x.reshape(6, 4)),
            "gradient": jax.grad(lambda v: (einshape("abc->(cab)", v) ** 3).sum())(x)}
