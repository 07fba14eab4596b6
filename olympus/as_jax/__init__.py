"""JAX's programs, unchanged: after `import olympus.as_jax`, `import jax` gives Olympus.

That holds in this process and in the Python processes that it starts; nothing is changed on disk.
`python -m olympus.as_jax PROGRAM.py` does the same for a program that does not know of it.
"""

from . import children, environment, objects
from .finder import install as _install

__all__ = []

_install()
environment.take_over()
objects.respell()
children.inherit()
