"""Python runs this at the start of each child process of a program in the mode `olympus.as_jax`.

It costs a child that does not use JAX nothing: Olympus is imported with the first import of jax.
The `sitecustomize` that Python would have run without this one runs, too.
"""

import importlib.util
import os
import sys
from importlib.machinery import PathFinder

_HERE = os.path.dirname(os.path.abspath(__file__))
_ROOT = os.path.abspath(os.path.join(_HERE, *[os.pardir] * 4))


class Waiting:
    """Hands over to `olympus.as_jax` at the first question about jax."""

    def find_spec(self, name, path=None, target=None):
        if name != "jax":
            return None
        self.end()
        return importlib.util.find_spec(name)

    def find_distributions(self, context):
        if context.name != "jax":
            return ()
        self.end()
        return (d for f in sys.meta_path[:1] for d in f.find_distributions(context))

    def end(self):
        sys.meta_path.remove(self)
        if importlib.util.find_spec("olympus") is None:
            sys.path.append(_ROOT)
        importlib.import_module("olympus.as_jax")


def run_the_next():
    """Run the `sitecustomize` that this one hides."""
    others = [p for p in sys.path if os.path.abspath(p) != _HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if os.environ.get("OLYMPUS_AS_JAX") == sys.prefix:
    sys.meta_path.insert(0, Waiting())
run_the_next()
