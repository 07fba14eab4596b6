"""`jax._src.flatten_util`: BlackJAX takes `ravel_pytree` from it."""

__all__ = []
HOMES = ("olympus.flatten_util",)
