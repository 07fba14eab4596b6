"""`jax._src.checkify`: Flax's nnx transforms `checkify`."""

from ..experimental.checkify import JaxRuntimeError, __getattr__, check, debug_check

__all__ = ["JaxRuntimeError", "check", "debug_check"]

assert __getattr__
