"""The version of Olympus: the one place that states it (pyproject.toml reads it from here)."""

__all__ = ["__version__", "__version_info__"]

__version__ = "0.2.0"
__version_info__ = (0, 2, 0)
