"""`jax._src.lib.xla_client`: Dynamiqs catches its error."""

from .....base.errors import OlympusRuntimeError as XlaRuntimeError

__all__ = ["XlaRuntimeError"]
