"""augmax: a chain of random changes of an image, its mask and points, mapped over a batch."""

import augmax
import jax
import jax.numpy as jnp
from augmax import InputType


def main():
    keys = jax.random.split(jax.random.key(0), 4)
    images = jax.random.uniform(jax.random.key(1), (4, 16, 16, 3))
    masks = (images[..., 0] > 0.5).astype(jnp.int32)
    points = jnp.tile(jnp.array([[2.0, 3.0], [9.0, 11.0]]), (4, 1, 1))
    chain = augmax.Chain(
        augmax.RandomSizedCrop(12, 12), augmax.HorizontalFlip(), augmax.Rotate(25),
        augmax.ColorJitter(p=1.0), augmax.GaussianBlur(), input_types=[
            InputType.IMAGE, InputType.MASK, InputType.KEYPOINTS])
    out, mask, moved = jax.jit(jax.vmap(chain))(keys, [images, masks, points])
    plain = augmax.Chain(augmax.Warp(strength=3, coarseness=4), augmax.Solarization(p=1.0),
                         augmax.Normalize())
    return {"images": out, "masks": mask.sum((1, 2)), "points": moved,
            "warped": jax.vmap(plain)(keys, images)}
