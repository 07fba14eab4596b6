"""`jax._src.numpy`: s2fft imports `util` from it."""

__all__ = []
HOMES = ("olympus.numpy",)
