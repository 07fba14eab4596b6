"""`jax.version`: TensorFlow Probability and Orbax read it."""

from ..release import __version__, __version_info__

__all__ = ["__version__", "__version_info__"]
