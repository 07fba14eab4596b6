"""`jax._src.checkify`: Flax's nnx transforms `checkify`."""

from ..experimental.checkify import __getattr__, check, debug_check

__all__ = ["check", "debug_check"]

assert __getattr__
