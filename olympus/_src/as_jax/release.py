"""The release of JAX whose API is meant."""

__all__ = ["__version__", "__version_info__"]

__version__ = "0.10.2"
__version_info__ = (0, 10, 2)
