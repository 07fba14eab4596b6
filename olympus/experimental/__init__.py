"""What may still change: names only."""

from .._src.control.callbacks import io_callback

__all__ = ["io_callback"]
