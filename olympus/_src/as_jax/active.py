"""Importing this module lets the process, and those that it starts, import Olympus as `jax`.

Not where OLYMPUS_AS_JAX is "off": tools that import every module of a package set it.
"""

import os

from . import children, environment, finder, objects

if os.environ.get(children.VARIABLE) != "off":
    finder.install()
    environment.take_over()
    objects.respell()
    children.inherit()
