"""`jax._src.interpreters.pxla`: Flax reads its table of results at import."""

from types import MappingProxyType

__all__ = ["global_result_handlers"]
HOMES = ("olympus.interpreters.pxla",)

global_result_handlers = MappingProxyType({})     # results are made elsewhere
