"""einops: patches of images, attention over heads, reductions and einsum, traced and not."""

import jax
import jax.numpy as jnp
from einops import einsum, pack, rearrange, reduce, repeat, unpack


@jax.jit
def attention(x, weights):
    q, k, v = rearrange(x @ weights, "b n (three h d) -> three b h n d", three=3, h=2)
    scores = jax.nn.softmax(einsum(q, k, "b h i d, b h j d -> b h i j"), axis=-1)
    return rearrange(einsum(scores, v, "b h i j, b h j d -> b h i d"), "b h n d -> b n (h d)")


def main():
    images = jnp.sin(jnp.arange(2 * 4 * 4 * 3.)).reshape(2, 4, 4, 3)
    patches = rearrange(images, "b (h p) (w q) c -> b (h w) (p q c)", p=2, q=2)
    tokens, shape = pack([patches, jnp.ones((2, 1, 12))], "b * d")
    weights = jnp.cos(jnp.arange(12 * 24.)).reshape(12, 24) / 4
    outputs = attention(tokens, weights)
    gradient = jax.grad(lambda w: reduce(attention(tokens, w), "b n d -> b", "max").sum())(weights)
    first, second = unpack(outputs, shape, "b * d")
    return {"patches": patches[0, 1], "outputs": outputs[1, :2, :4], "gradient": gradient[0],
            "pooled": reduce(images, "b (h 2) (w 2) c -> b h w c", "mean")[0, 0],
            "repeated": repeat(jnp.arange(2.), "n -> n k", k=2),
            "mapped": jax.vmap(lambda x: reduce(x, "h w c -> c", "sum"))(images),
            "shapes": [first.shape, second.shape]}
