"""Importing this module lets the process, and those that it starts, import Olympus as `jax`."""

from . import children, environment, finder, objects

__all__ = []

finder.install()
environment.take_over()
objects.respell()
children.inherit()
