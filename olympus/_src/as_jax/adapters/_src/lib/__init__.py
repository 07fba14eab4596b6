"""`jax._src.lib`: Dynamiqs imports `xla_client` from it."""

__all__ = []
HOMES = ("olympus.lib",)
