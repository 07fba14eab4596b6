"""`jax._src.config`: libraries read and set options by it."""

from ...options import config

__all__ = ["config"]
HOMES = ("olympus",)
