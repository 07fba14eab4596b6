"""`jax._src.dispatch`: Equinox waits for effects when a program ends."""

from ....core.effects import effects_barrier as wait_for_tokens

__all__ = ["wait_for_tokens"]
HOMES = ("olympus.interpreters.xla",)
