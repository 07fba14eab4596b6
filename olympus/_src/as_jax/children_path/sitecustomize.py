"""Python runs this at the start of each child process of a program in the mode `olympus.as_jax`.

It costs a child that does not use JAX nothing: Olympus is imported with the first import of jax.
The `sitecustomize` that Python would have run without this one runs, too.
"""
# `olympus.as_jax` puts a finder in front that has more methods than every finder must have.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.abspath(os.path.join(_HERE, *[os.pardir] * 4))


class Waiting:
    """Hands over to `olympus.as_jax` at the first question about jax."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of `jax`, of the finder that takes this one's place."""
        if name != "jax":
            return None
        self.end()
        return importlib.util.find_spec(name)

    def find_distributions(self, context: object) -> object:
        """The distribution `jax`, of that finder."""
        if getattr(context, "name", None) != "jax":
            return ()
        self.end()
        return sys.meta_path[0].find_distributions(context)

    def end(self) -> None:
        """Let `olympus.as_jax` take this finder's place."""
        sys.meta_path.remove(self)
        if importlib.util.find_spec("olympus") is None:
            sys.path.append(_ROOT)
        importlib.import_module("olympus.as_jax")


def run_the_next() -> None:
    """Run the `sitecustomize` that this one hides."""
    others = [p for p in sys.path if os.path.abspath(p) != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("OLYMPUS_AS_JAX") == sys.prefix:
    sys.meta_path.insert(0, Waiting())
run_the_next()
