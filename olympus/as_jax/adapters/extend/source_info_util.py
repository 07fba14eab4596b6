"""`jax.extend.source_info_util`: Flax leaves its frames out of tracebacks."""

from ...._src.base.source import exclude as register_exclusion

__all__ = ["register_exclusion"]
