"""JAX's programs, unchanged: after `import olympus.as_jax`, `import jax` gives Olympus.

That holds in this process and in the Python processes that it starts; nothing is changed on disk.
`python -m olympus.as_jax PROGRAM.py` does the same for a program that does not know of it.
"""

from .._src.as_jax import active as _active

__all__ = []
