"""`jax._src.ad_util`: Lineax gives `stop_gradient_p` a transpose rule."""

from ....lax.barriers import stop_gradient_p

__all__ = ["stop_gradient_p"]
HOMES = ("olympus.interpreters.ad", "olympus.custom_derivatives")
