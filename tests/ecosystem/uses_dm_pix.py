"""dm-pix: filters, colours, crops and metrics of images, and a gradient through them."""

import dm_pix as pix
import jax
import jax.numpy as jnp


def main():
    keys = jax.random.split(jax.random.key(0), 3)
    image, other = (jax.random.uniform(k, (12, 10, 3)) for k in keys[:2])
    blurred = pix.gaussian_blur(image, sigma=1.2, kernel_size=3)
    return {"blurred": blurred, "hsv": pix.rgb_to_hsv(image), "grey": pix.rgb_to_grayscale(image),
            "contrast": pix.adjust_contrast(image, 1.5), "hue": pix.adjust_hue(image, 0.2),
            "gamma": pix.adjust_gamma(image, 2.2), "flipped": pix.flip_left_right(image),
            "rotated": pix.rotate(image, 0.3),
            "crop": pix.random_crop(keys[2], image, (5, 4, 3)),
            "psnr": pix.psnr(image, other), "ssim": pix.ssim(image, other),
            "depth": pix.depth_to_space(jnp.tile(image[:4, :4], (1, 1, 4)), 2),
            "gradient": jax.grad(lambda x: pix.ssim(x, other).sum())(image)}
